package loop_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
)

const lessonsJSON = `{
  "heuristics": [
    {"id": "rotate", "domain": "alerts", "pack": "ops", "condition": "the disk is full",
     "action": "Rotate\nthen wait", "initial": 0.4}
  ],
  "notes": [{"id": "room", "category": "places", "topic": "disk", "text": "Room 3."}],
  "arms": [
    {"id": "small", "weight": 2, "model": "mini", "system": "Be brief.", "tools": ["search"]}
  ]
}`

func TestLessonsAreReadFromFiles(t *testing.T) {
	want := loop.Lessons{
		Heuristics: []learning.Heuristic{{
			ID: "rotate", Domain: "alerts", Pack: "ops", Condition: "the disk is full",
			Action: "Rotate\nthen wait", Initial: 0.4,
		}},
		Notes: []loop.Note{{ID: "room", Category: "places", Topic: "disk", Text: "Room 3."}},
		Arms: []loop.Arm{{
			ID: "small", Weight: 2, ModelName: "mini", System: "Be brief.", Tools: []string{"search"},
		}},
	}
	got, err := loop.ReadLessons(strings.NewReader(lessonsJSON))
	require.NoError(t, err)
	assert.Equal(t, want, got)
	none, err := loop.ReadLessons(strings.NewReader("{}"))
	require.NoError(t, err)
	assert.Equal(t, loop.Lessons{}, none)
	only, err := loop.ReadLessons(strings.NewReader(`{"only": true}`))
	require.NoError(t, err)
	assert.True(t, only.Only)
}

// A fault names its line, or its lesson.
func TestFaultsInFilesOfLessons(t *testing.T) {
	for text, want := range map[string]string{
		"{\"heuristics\": [{\n\"id\": 3}]}":             "line 2: .*ID of type string",
		`{"heuristics": [{"id": "a", "weigth": [{}]}]}`: `unknown field "weigth"`,
		`{"rules": [{"id": "a"}]}`:                      `unknown field "rules"`,
		`{"notes": [{"id": "a"}]}`:                      `Notes\[0\].Text: must not be empty`,
		`{"heuristics": [{"action": "a", "id": "x"}]}`:  `Heuristics\[0\].Condition: must not`,
		`{"arms": [{"id": "a", "weight": "much"}]}`:     "line 1: .*Weight of type float64",
		`{"arms": [{"id": "a", "weight": 1e999}]}`:      "line 1: ",
		`{"notes": 3}`:       "line 1: ",
		"":                   "EOF",
		"{\n\"notes\": [\n}": "line 3: ",
		`{} {}`:              "something after",
		`{"heuristics": [{"id": "a", "condition": "c", "action": "b", "initial": 1}]}`: `\[0\].Initial: must be above 0 and below 1`,
		`{"notes": [{"id": "a", "text": "b\u0000"}]}`:                                  `Notes\[0\].Text: must be valid UTF-8`,
		`{"notes": [{"id": "a", "text": "t"}, {"id": "a", "text": "t"}]}`:              "of an earlier lesson",
	} {
		got, err := loop.ReadLessons(strings.NewReader(text))
		require.Error(t, err, text)
		assert.Regexp(t, want, err.Error())
		assert.Equal(t, loop.Lessons{}, got)
	}
	_, err := loop.ReadLessons(
		strings.NewReader(`{"heuristics": [{"initial": -1}], "arms": [{"id": "a", "weight": -1}]}`),
	)
	assert.Len(t, strings.Split(err.Error(), "\n"), 3, "two faults of a lesson, and one of another")
	_, err = loop.ReadLessons(strings.NewReader(strings.Repeat(" ", 16<<20+1)))
	assert.ErrorContains(t, err, "16 MiB")
}

// The faults of a configuration's file are told together, with the file.
func TestFaultsNameTheirFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lessons.json")
	for text, want := range map[string]string{
		`{"heuristics": [{"id": "a", "condition": "c", "action": "b",
			"initial": 2}], "arms": [
			{"id": "big", "model": "maxi"}, {"id": "small", "model": "mini"}]}`: "" +
			"loop: FILE: Heuristics[0].Initial: must be above 0 and below 1\n" +
			"Arms[0].ModelName: must be in Config.Models",
		"{\n\"notes\"": "loop: FILE: ",
	} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := loop.New(ctx, loop.Config{
			Lessons: loop.LessonsFile(file), Models: map[string]decision.LLM{"mini": &mouth{}},
		})
		require.ErrorContains(t, err, strings.ReplaceAll(want, "FILE", file))
	}
	_, err := loop.New(ctx, loop.Config{Lessons: loop.LessonsFile(t.TempDir())})
	assert.ErrorContains(t, err, "directory")
}

// An arm of a file names its model, which the host has.
func TestAnArmOfAFileNamesItsModel(t *testing.T) {
	mini := &mouth{says: "Brief."}
	w := newWorld(t, loop.Config{Models: map[string]decision.LLM{"mini": mini}})
	lessons, err := loop.ReadLessons(strings.NewReader(lessonsJSON))
	require.NoError(t, err)
	_, err = w.Teach(ctx, lessons)
	require.NoError(t, err)
	answer := w.answer(loop.Event{Text: "Hello"})
	assert.Equal(t, "Brief.", answer.Text)
	assert.Equal(t, []string{"search"}, answer.Plan.Arm.Tools)

	lessons.Arms[0].ModelName = "maxi"
	_, err = w.Teach(ctx, lessons)
	assertField(t, "Arms[0].ModelName", err)
}

func FuzzReadLessons(f *testing.F) {
	f.Add(lessonsJSON)
	f.Add(`{"notes": [{"id": 1}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		l, err := loop.ReadLessons(strings.NewReader(text))
		if err != nil {
			assert.Equal(t, loop.Lessons{}, l)
		}
	})
}

// New teaches a file, and names it where it is at fault.
func TestLessonsOfAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lessons.json")
	teach := func(text string) (*loop.Agent, error) {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		return loop.New(ctx, loop.Config{Lessons: loop.LessonsFile(file)})
	}
	agent, err := teach(`{"notes": [{"id": "room", "text": "Room 4."}], "arms": [{"id": "small"}]}`)
	require.NoError(t, err)
	assert.Equal(t, 1, agent.Taught().New)
	assert.Len(t, agent.Strategy().Config().Arms, 1)
	_, err = teach("{\"notes\": [{\"id\": \"room\"}],\n\"only\": 1}")
	require.ErrorContains(t, err, file)
	require.ErrorContains(t, err, "line 2: ")
	_, err = teach(`{"notes": [{"id": "own", "text": "3"}, {"id": "own", "text": "4"}]}`)
	require.ErrorContains(t, err, "is that of an earlier lesson")
	none := loop.LessonsFile(filepath.Join(t.TempDir(), "none"))
	_, err = loop.New(ctx, loop.Config{Lessons: none})
	require.ErrorIs(t, err, os.ErrNotExist)
}

// A nil pointer in Config.Lessons means no lessons, and New does not panic.
func TestNoLessons(t *testing.T) {
	for _, none := range []loop.LessonSource{nil, (*loop.Lessons)(nil), (*loop.LessonsFile)(nil),
		&loop.Lessons{}, loop.LessonsFile("")} {
		_, err := loop.New(t.Context(), loop.Config{Lessons: none})
		assert.NoError(t, err)
	}
}

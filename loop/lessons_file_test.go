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
	got, err := loop.ReadLessonsFrom(strings.NewReader(lessonsJSON))
	require.NoError(t, err)
	assert.Equal(t, want, got)
	none, err := loop.ReadLessonsFrom(strings.NewReader("{}"))
	require.NoError(t, err)
	assert.Equal(t, loop.Lessons{}, none)
	only, err := loop.ReadLessonsFrom(strings.NewReader(`{"only": true}`))
	require.NoError(t, err)
	assert.True(t, only.Only)
}

// A fault names its line, or its lesson.
func TestFaultsInFilesOfLessons(t *testing.T) {
	for text, want := range map[string]string{
		"{\"heuristics\": [{\n\"id\": 3}]}":            "line 2: .*ID of type string",
		"\n{\"heuristics\": [{\n\"weigth\": [{}]}]}":   `line 3: .*unknown field "weigth"`,
		`{"rules": [{"id": "a"}]}`:                     `line 1: .*unknown field "rules"`,
		`{"notes": [{"id": "a"}]}`:                     `Notes\[0\].Text: must not be empty`,
		`{"heuristics": [{"action": "a", "id": "x"}]}`: `Heuristics\[0\].Condition: must not`,
		`{"arms": [{"id": "a", "weight": "much"}]}`:    "line 1: .*Weight of type float64",
		`{"arms": [{"id": "a", "weight": 1e999}]}`:     "line 1: ",
		`{"notes": 3}`:       "line 1: ",
		"":                   "is empty",
		"{\n\"notes\": [\n}": "line 3: ",
		`{} {}`:              "something after",
		`{"only": true}]]`:   "something after",
		`{"heuristics": [{"id": "a", "condition": "c", "action": "b", "initial": 1}]}`: `\[0\].Initial: must be above 0 and below 1`,
		`{"notes": [{"id": "a", "text": "b\u0000"}]}`:                                  `Notes\[0\].Text: must be valid UTF-8`,
		`{"notes": [{"id": "a", "text": "t"}, {"id": "a", "text": "t"}]}`:              "of an earlier lesson",
		"{\"arms\": [\n{\"text\" : 1}], \"notes\": [\n{\"text\": \"a\"}]}":             "line 2 or 3: ",
	} {
		got, err := loop.ReadLessonsFrom(strings.NewReader(text))
		require.Error(t, err, text)
		assert.Regexp(t, want, err.Error())
		assert.Equal(t, loop.Lessons{}, got)
	}
	_, err := loop.ReadLessonsFrom(
		strings.NewReader(`{"heuristics": [{"initial": -1}], "arms": [{"id": "a", "weight": -1}]}`),
	)
	assert.Len(t, strings.Split(err.Error(), "\n"), 3, "two faults of a lesson, and one of another")
	_, err = loop.ReadLessonsFrom(strings.NewReader(strings.Repeat(" ", 16<<20+1)))
	assert.ErrorContains(t, err, "16 MiB")
	many := `{"arms": [` + strings.Repeat("\n{\"x\": 1},", 100_000) + "{}]}"
	_, err = loop.ReadLessonsFrom(strings.NewReader(many))
	assert.EqualError(t, err, `line 2 or 3 or 4 or 5: json: unknown field "x"`)
}

// The faults of a file are returned together, with the file. New reports a model that it lacks.
func TestFaultsNameTheirFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lessons.json")
	read := func(text string) (loop.Lessons, error) {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		return loop.ReadLessons(file)
	}
	_, err := read(`{"heuristics": [{"id": "a", "condition": "c", "action": "b", "initial": 2}],
		"arms": [{"id": "big", "weight": -1}]}`)
	require.EqualError(t, err, "loop: lessons: "+file+": Heuristics[0].Initial: must be above 0 and "+
		"below 1\nArms[0].Weight: must be in [0, 1e6]")
	_, err = read("{\n\"notes\"")
	require.ErrorContains(t, err, "loop: lessons: "+file+": ")
	lessons, err := read(`{"arms": [{"id": "big", "model": "maxi"}]}`)
	require.NoError(t, err)
	_, err = loop.New(ctx, loop.Config{
		Lessons: lessons, Models: map[string]decision.LLM{"mini": &mouth{}},
	})
	require.EqualError(t, err, "loop: Lessons.Arms[0].ModelName: must be in Config.Models")
	_, err = loop.New(ctx, loop.Config{Lessons: lessons})
	require.NoError(t, err, "the framework asks its own models")
	_, err = loop.ReadLessons(t.TempDir())
	require.ErrorContains(t, err, "directory")
	_, err = loop.ReadLessons(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
	none, err := loop.ReadLessons("")
	require.NoError(t, err)
	assert.Equal(t, loop.Lessons{}, none)
}

// An arm of a file names its model, which the host has. Each tenant has the arm, and an agent that
// was made can't be taught another one.
func TestAnArmOfAFileNamesItsModel(t *testing.T) {
	mini := &mouth{says: "Brief."}
	lessons, err := loop.ReadLessonsFrom(strings.NewReader(lessonsJSON))
	require.NoError(t, err)
	cfg := loop.Config{
		Models: map[string]decision.LLM{"mini": mini}, Arms: []loop.Arm{{ID: "small", System: "Old."}},
		Lessons: lessons,
	}
	w := newWorld(t, cfg)
	acme, err := w.Tenant(ctx, "acme")
	require.NoError(t, err)
	for _, agent := range []*loop.Agent{w.Agent, acme} {
		answer, err := agent.Answer(ctx, loop.Event{Text: "Hello"})
		require.NoError(t, err)
		assert.Equal(t, "Brief.", answer.Text)
		assert.Equal(t, "Be brief.", answer.Plan.Arm.System)
		assert.Equal(t, []string{"search"}, answer.Plan.Arm.Tools)
	}
	_, err = w.Teach(ctx, lessons)
	assertField(t, "Arms", err)

	cfg.Lessons.Arms[0].ModelName = "maxi"
	_, err = loop.New(ctx, cfg)
	assertField(t, "Lessons.Arms[0].ModelName", err)
}

func FuzzReadLessons(f *testing.F) {
	f.Add(lessonsJSON)
	f.Add(`{"notes": [{"id": 1}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		l, err := loop.ReadLessonsFrom(strings.NewReader(text))
		if err != nil {
			assert.Equal(t, loop.Lessons{}, l)
		}
	})
}

// A note or a heuristic with text that can't be kept is a fault that names it.
func TestLessonsWithTextThatCannotBeKept(t *testing.T) {
	w := newWorld(t, loop.Config{})
	for _, text := range []string{"", "\xff", "a\x00b"} {
		for field, l := range map[string]loop.Lessons{
			"Notes[0].Text": {Notes: []loop.Note{{ID: "n", Text: text}}},
			"Heuristics[0].Action": {
				Heuristics: []learning.Heuristic{{ID: "h", Condition: "c", Action: text}},
			},
			"Heuristics[0].Condition": {
				Heuristics: []learning.Heuristic{{ID: "h", Condition: text, Action: "a"}},
			},
		} {
			_, err := w.Teach(ctx, l)
			assertField(t, field, err)
		}
	}
}

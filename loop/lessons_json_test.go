package loop_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
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

// Each fault names its line and its field, and all are told together.
func TestFaultsInFilesOfLessons(t *testing.T) {
	for text, want := range map[string][]string{
		`{"heuristics": [{
			"id": 3, "condition": "c", "action": "a",
			"weigth": [{}]}]}`: {
			"2 heuristics[0].id must be a text",
			"3 heuristics[0].weigth is not known: ReadLessons has the fields",
		},
		`{"notes": [{"id": "a", "text": "t"},
			{"id": "a", "text": "t"}]}`: {"2 notes[1].id is that of an earlier lesson"},
		`{"notes": [
			{"id": "a"}]}`: {"2 notes[0].text must not be empty"},
		`{"heuristics": [
			{"action": "a", "id": "x"}]}`: {"2 heuristics[0].condition must not be empty"},
		`{"notes": [{"id": "a", "text": "one",
			"text": "two"}]}`: {"2 notes[0].text is there twice"},
		`{"notes": [],
			"notes": [{"id": "a", "text": "one"}]}`: {"2 notes is there twice"},
		`{"arms": [{"id": "a", "weight": "much",
			"tools": [1]}]}`: {
			"1 arms[0].weight must be a number", "2 arms[0].tools[0] must be a text",
		},
		`{"rules": [{"id": "a"}],
			"only": 1}`: {
			"1 rules is not known: ReadLessons has the fields", "2 only must be true or false",
		},
		`{"heuristics": [{"Id": "a", "condition": "c", "action": "a"}]}`: {
			"1 heuristics[0].Id is not known: ReadLessons has the fields",
		},
		`{"arms": [{"id": "a",
			"weight": 1e999}]}`: {"1  "},
		`{"notes": 3}`: {"1 notes must be a list"},
		"null":         {"1  "},
		"":             {"1  "},
		`{
			"notes": [
			{"id": "a"},
			{"id": 4, "text": "t"}]}`: {
			"4 notes[1].id must be a text", "3 notes[0].text must not be empty",
		},
		`{
			"notes": [3]}`: {"2 notes[0] must be an object", "2 notes[0].id must not be empty"},
		`{
			"notes": [
			}`: {"3  "},
	} {
		t.Run(text, func(t *testing.T) {
			_, err := loop.ReadLessons(strings.NewReader(text))
			require.Error(t, err)
			var got []string
			for _, fault := range faultsOf(err) {
				line := fmt.Sprintf("%d %s %s", fault.Line, fault.Field, fault.Reason)
				if fault.Field == "" {
					line = fmt.Sprintf("%d  ", fault.Line) // the parser's own words
				}
				got = append(got, line)
			}
			assert.Equal(t, want, got, err.Error())
		})
	}
	_, err := loop.ReadLessons(
		strings.NewReader(`{"heuristics": [{"initial": -1}], "arms": [{"id": "a", "weight": -1}]}`),
	)
	assert.Len(t, faultsOf(err), 3, "two faults of a lesson, and one of another")
	_, err = loop.ReadLessons(strings.NewReader(strings.Repeat(" ", 16<<20+1)))
	assert.ErrorContains(t, err, "16 MiB")
}

// The faults of a configuration's file are told together, each with the file, its line and its
// field.
func TestFaultsNameTheirFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lessons.json")
	for text, want := range map[string]string{
		`{"heuristics": [{"id": "a", "condition": "c", "action": "b",
			"initial": 2}], "arms": [
			{"id": "big", "model": "maxi"}, {"id": "small", "model": "mini"}]}`: "" +
			"loop: FILE: line 2: heuristics[0].initial: must be above 0 and below 1\n" +
			"FILE: line 3: arms[0].model: must be in Config.Models",
		"{\n\"notes\"": "loop: FILE: line 2: ",
		`{"notes": [{"id": "a", "text": "b\u0000"}]}`: "" +
			"loop: FILE: line 1: notes[0].text: must be valid UTF-8 without NUL",
	} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := loop.New(ctx, loop.Config{
			LessonsFile: file, Models: map[string]decision.LLM{"mini": &mouth{}},
		})
		require.ErrorContains(t, err, strings.ReplaceAll(want, "FILE", file))
		assert.Equal(t, file, faultsOf(err)[0].File)
	}
	_, err := loop.New(ctx, loop.Config{LessonsFile: t.TempDir()})
	assert.Equal(t, "LessonsFile", slices.Collect(heed.ConfigErrors(err))[0].Field)
}

func faultsOf(err error) (all []*loop.LessonError) {
	var several interface{ Unwrap() []error }
	if errors.As(err, &several) {
		for _, e := range several.Unwrap() {
			all = append(all, faultsOf(e)...)
		}
		return all
	}
	var one *loop.LessonError
	if errors.As(err, &one) {
		all = append(all, one)
	}
	return all
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
		own := loop.Lessons{Notes: []loop.Note{{ID: "own", Text: "Room 3."}}}
		return loop.New(ctx, loop.Config{LessonsFile: file, Lessons: own})
	}
	agent, err := teach(`{"notes": [{"id": "room", "text": "Room 4."}], "arms": [{"id": "small"}]}`)
	require.NoError(t, err)
	assert.Equal(t, 2, agent.Taught().New)
	assert.Len(t, agent.Strategy().Config().Arms, 1)
	_, err = teach("{\"only\": 1,\n\"notes\": [{\"id\": \"room\"}]}")
	require.ErrorContains(t, err, file)
	require.ErrorContains(t, err, "line 1: only: must be true or false")
	require.ErrorContains(t, err, "line 2: notes[0].text")
	_, err = teach(`{"notes": [{"id": "own", "text": "Room 4."}]}`)
	require.ErrorContains(t, err, "is that of an earlier lesson")
	_, err = loop.New(ctx, loop.Config{LessonsFile: filepath.Join(t.TempDir(), "none")})
	require.ErrorIs(t, err, os.ErrNotExist)
}

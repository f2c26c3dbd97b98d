package loop_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
)

// Each statement is explained with its source as it is: a person or an instrument by name, or an
// unknown user, whether a heuristic answered or the model did.
func TestExplainNamesTheSources(t *testing.T) {
	yes, no := true, false
	for name, event := range map[string]loop.Event{
		"heuristic": {ID: "e", Text: full}, "model": {ID: "e", Text: "The mail is late"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, loop.Config{
				Instruments: []string{"ci", "pay"},
				Arms:        []loop.Arm{{ID: "a"}, {ID: "b"}},
				Lessons:     loop.Lessons{Heuristics: []learning.Heuristic{trusted(rotating)}},
			})
			w.answer(event)
			require.NoError(t, w.Outcome(ctx, "e", loop.Outcome{
				Success: &yes, Source: "ci",
			}))
			told := func() string {
				account, err := w.Explain(ctx, "e")
				require.NoError(t, err)
				return account.String()
			}
			tree := told()
			assert.Contains(t, tree, "the instrument ci reported an outcome")
			assert.NotContains(t, tree, "user said it")
			if name == "heuristic" {
				assert.Contains(t, tree, "the instrument ci reported an outcome: 0.80 for")
			}

			require.NoError(t, w.Outcome(ctx, "e", loop.Outcome{Success: &no, Source: "pay"}))
			require.NoError(t, w.React(ctx, "e", loop.Reaction{Person: "ann", Value: 1}))
			tree = told()
			assert.Contains(t, tree, "the instrument pay reported an outcome")
			assert.Contains(t, tree, "ann said it")
			assert.NotContains(t, tree, "unknown user")
			require.NoError(t, w.React(ctx, "e", loop.Reaction{Value: -1}))
			assert.Contains(t, told(), "an unknown user said it")
		})
	}
}

// What only people do is refused in the name of an instrument, with the remedy.
func TestInstrumentsAreNoPeople(t *testing.T) {
	yes := true
	w := newWorld(t, loop.Config{Instruments: []string{"ci"}, Arms: []loop.Arm{{ID: "a"}}})
	w.answer(loop.Event{ID: "e", Text: "The mail is late", Person: "ann"})
	for name, did := range map[string]func() error{
		"Person": func() error { return w.React(ctx, "e", loop.Reaction{Person: "ci", Value: 1}) },
		"person": func() error { return w.Undo(ctx, "e", "ci") },
		"Reviewer": func() error {
			_, err := w.Correct(ctx, "e", loop.Correction{Reviewer: "ci", Text: "Look first"})
			return err
		},
	} {
		var fault *heed.InputError
		require.ErrorAs(t, did(), &fault, name)
		assert.Equal(t, name, fault.Field)
		assert.Contains(t, fault.Reason, "Outcome")
	}
	_, err := w.Answer(ctx, loop.Event{Text: "undo that", Person: "ci"})
	require.ErrorContains(t, err, "an instrument")
	_, err = w.Hear(ctx, learning.Message{Text: "undo that", Person: "ci"})
	require.ErrorContains(t, err, "an instrument")
	account, err := w.Explain(ctx, "e")
	require.NoError(t, err)
	assert.Empty(t, account.Statements)

	kinds := map[string]answer.SourceKind{
		"ci": "instrument", "ben": "person", "": "",
	}
	for source := range kinds {
		require.NoError(t, w.Outcome(ctx, "e", loop.Outcome{Success: &yes, Source: source}))
	}
	account, err = w.Explain(ctx, "e")
	require.NoError(t, err)
	require.Len(t, account.Statements, len(kinds))
	for _, s := range account.Statements {
		assert.Equal(t, kinds[s.Source], s.Kind, s.Source)
	}
	_, err = loop.New(ctx, loop.Config{Instruments: []string{""}})
	require.ErrorContains(t, err, "Instruments")
}

// The names of the instruments reach all parts: what CI reports about a heuristic counts in full in
// a crowd, and what one of the crowd reports does not.
func TestInstrumentsAreBelieved(t *testing.T) {
	loud := func(source string) float64 {
		w := newWorld(t, loop.Config{
			Instruments: []string{"ci"}, Arms: []loop.Arm{{ID: "a"}, {ID: "b"}},
			Lessons: loop.Lessons{Heuristics: []learning.Heuristic{trusted(rotating)}},
		})
		require.Equal(t, []string{"ci"}, w.Strategy().Config().Trust.Instruments)
		before := 0.
		for i := range 40 {
			text := full
			if i%2 == 1 {
				text = "The mail is late"
			}
			id, person, no := fmt.Sprint(i), fmt.Sprint("person ", i%20), false
			w.answer(loop.Event{ID: id, Text: text, Person: person, Item: "i", Session: id})
			require.NoError(t, w.React(ctx, id, loop.Reaction{Person: person, Value: 1}))
			if i < 20 {
				continue
			}
			if i == 20 {
				before = w.confidence("rotate")
			}
			require.NoError(t, w.Outcome(ctx, id, loop.Outcome{Success: &no, Source: source}))
		}
		for i := range 60 {
			no := false
			require.NoError(t, w.Outcome(ctx, fmt.Sprint(i%40),
				loop.Outcome{Success: &no, Source: source}))
		}
		return w.confidence("rotate") - before
	}
	assert.Less(t, loud("ci"), loud("mallory")-0.1)
}

package loop_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/patterns"
)

// An event that is delivered again has the plan as it was, although other things were learned
// since: the arm and its choice, what the prompt had and lacked, and how the answer came about.
func TestARepetitionHasThePlanAsItWas(t *testing.T) {
	w := newWorld(t, loop.Config{
		Arms: []loop.Arm{{ID: "only", System: "Be brief."}},
		Lessons: loop.Lessons{
			Heuristics: []learning.Heuristic{trusted(rotating)},
			Notes: []loop.Note{
				{ID: "n", Topic: "the mail is late", Text: strings.Repeat("n", 1001)},
			},
		},
	})
	for i := range 8 {
		w.clock.Advance(time.Hour)
		for n, way := range []string{"by feature", "by layer"} {
			_, err := w.Patterns().Record(ctx, patterns.Outcome{
				ID: string(rune('a'+i)) + way, Task: string(rune('a' + i)), At: w.clock.Now(),
				Description: "The mail is late", Strategy: patterns.IDOf(way), Success: n == 0,
				Duration: time.Minute,
			})
			require.NoError(t, err)
		}
	}
	approved(t, w.Feedback(), "Name the ticket.")
	w.enforce("Never rotate.", feedback.Check{Forbid: "Rotate"})
	undone := w.answer(loop.Event{ID: "u", Text: "What?", Session: "t", Person: "ann"}).ID
	events := []loop.Event{
		{ID: "m", Text: "The mail is late", Task: "z", Session: "s", Person: "ann"},
		{ID: "h", Text: full, Session: "s", Person: "ann"}, // overruled
		{ID: "b", Text: "Undo that", Session: "t", Person: "ann"},
	}
	var first []loop.Answer
	for _, e := range events {
		w.clock.Advance(time.Second)
		first = append(first, w.answer(e))
	}
	assert.Len(t, first[0].Plan.Rules, 2)
	assert.NotEmpty(t, first[0].Plan.Ways)
	assert.NotEmpty(t, first[0].Plan.Warnings)
	assert.NotEmpty(t, first[0].Plan.LeftOut)
	assert.NotNil(t, first[0].Plan.Choice)
	assert.Equal(t, "heuristic", first[1].Plan.LeftOut[0].What)
	assert.Equal(t, []string{undone}, first[2].Plan.Undone)

	w.cfg.Lessons, w.cfg.Arms = loop.Lessons{Only: true}, []loop.Arm{{ID: "only"}, {ID: "other"}}
	w.model.says = "Something else."
	other := w.again()
	for i, e := range events {
		want := first[i]
		got, err := other.Answer(ctx, e)
		require.NoError(t, err)
		assert.Equal(t, want.Text, got.Text)
		assert.Equal(t, want.Plan.Arm.ID, got.Plan.Arm.ID)
		assert.Equal(t, want.Plan.Rules, got.Plan.Rules)
		assert.Equal(t, want.Plan.Ways, got.Plan.Ways)
		assert.Equal(t, want.Plan.Warnings, got.Plan.Warnings)
		assert.Equal(t, want.Plan.LeftOut, got.Plan.LeftOut)
		assert.Equal(t, want.Plan.Undone, got.Plan.Undone)
		assert.Equal(t, want.Plan.Choice != nil && len(want.Plan.Undone) == 0, got.Plan.Choice != nil)
		assert.Len(t, got.Plan.Notes, len(want.Plan.Notes))
		for n, note := range got.Plan.Notes {
			assert.Equal(t, loop.Note{ID: want.Plan.Notes[n].ID}, note)
		}
		assert.Equal(t, want.Result.Path, got.Result.Path)
		assert.Equal(t, want.Result.LLM, got.Result.LLM)
		assert.Equal(t, want.Result.ResponseID, got.Result.ResponseID)
		assert.Equal(t, want.Result.CreditID, got.Result.CreditID)
		assert.InDelta(t, want.Result.Threshold, got.Result.Threshold, 1e-9)
		assert.True(t, got.Plan.Ready)
	}
}

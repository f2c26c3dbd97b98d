package loop_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/store"
)

// audited returns how many entries the audit log has.
func (w *world) audited() (n int) {
	w.t.Helper()
	for _, err := range store.AuditEntries(ctx, w.store, store.Query{}) {
		require.NoError(w.t, err)
		n++
	}
	return n
}

// A person who presses the same thumb again changes no evidence, and no entry of the audit log. The
// press is still the latest: of two sources of outcomes, it decides which one counts.
func TestTheSameThumbAgain(t *testing.T) {
	for _, id := range []string{"model", "heuristic"} {
		w := newSpoken(t, loop.Config{})
		press := func(value float64, at int) {
			require.NoError(t, thumbOf("ann", value, at).addStatement(w, id))
		}
		press(1, 1)
		require.NoError(t, outcomeOf("ci", 1, 2).addStatement(w, id))
		require.NoError(t, outcomeOf("qa", -1, 3).addStatement(w, id))
		before, entries := w.record(id), w.audited()
		for i := range 20 {
			press(1, 10+i)
		}
		after := w.record(id)
		assert.Equal(t, entries, w.audited(), id)
		assert.Equal(t, before.Numbers, after.Numbers, id)
		assert.Equal(t, seconds(29), after.Statements[0].At, id)
		assert.Equal(t, before.Statements[0].N, after.Statements[0].N, id)
		if id == "model" {
			assert.Equal(t, before.Choice, after.Choice)
		}
		press(-1, 28)
		assert.Equal(t, 1., w.record(id).Statements[0].Value, "it is older than the latest press")

		require.NoError(t, outcomeOf("ci", 1, 40).addStatement(w, id))
		worth := w.account(id).Worth
		require.NoError(t, outcomeOf("qa", -1, 41).addStatement(w, id))
		assert.Less(t, w.account(id).Worth, worth, "%s: the latest outcome counts", id)
		press(-1, 50)
		assert.Equal(t, before.Numbers+1, w.record(id).Numbers, id)
	}
}

// A reaction whose praise could not be turned into a heuristic does so when it is repeated.
func TestPraiseThatFailedTeachesWhenItIsRepeated(t *testing.T) {
	failing := errors.New("not now")
	model := decision.LLMFunc(func(
		_ context.Context, r decision.LLMRequest,
	) (decision.LLMResponse, error) {
		if r.JSON && failing != nil {
			return decision.LLMResponse{}, failing
		}
		if r.JSON {
			return decision.LLMResponse{Text: written}, nil
		}
		return decision.LLMResponse{Text: "Look at the logs."}, nil
	})
	w := newWorld(t, loop.Config{Model: model, Tuning: loop.Tuning{Extract: []string{"*"}}})
	w.answer(loop.Event{ID: "e", Text: full, Person: "ann"})
	praise := loop.Reaction{Person: "ann", Value: 1}
	learned := func() (n int) {
		for _, err := range w.Learning().Heuristics(ctx) {
			require.NoError(t, err)
			n++
		}
		return n
	}
	require.NoError(t, w.React(ctx, "e", praise))
	require.Zero(t, learned())
	w.clock.Advance(time.Second)
	failing = nil
	require.NoError(t, w.React(ctx, "e", praise))
	assert.Equal(t, 1, learned())
}

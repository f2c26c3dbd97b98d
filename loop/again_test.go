package loop_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
)

// audited returns how many entries the audit log has. Entries of outages do not count.
func (w *world) audited() (n int) {
	w.t.Helper()
	for e, err := range store.AuditEntries(ctx, w.store, store.Query{}) {
		require.NoError(w.t, err)
		if e.Action != "loop.outage" && e.Action != "loop.recovery" {
			n++
		}
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
		assert.NotEqual(t, after.Statements[0].N, w.record(id).Statements[0].N, id)
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

// Praise returns no error only if it has become a heuristic, whatever call of the store fails. So
// does praise that is repeated with its moment.
func TestPraiseThatTheStoreFails(t *testing.T) {
	writer := decision.LLMFunc(func(
		_ context.Context, r decision.LLMRequest,
	) (decision.LLMResponse, error) {
		if r.JSON {
			return decision.LLMResponse{Text: written}, nil
		}
		return decision.LLMResponse{Text: "Look at the logs."}, nil
	})
	storetest.FailEach(func(at int, after bool) bool {
		st := &storetest.Failing{Store: new(memstore.Store)}
		w := newWorld(t, loop.Config{
			Store: st, RequireStore: true, Model: writer, Tuning: loop.Tuning{Extract: []string{"*"}},
		})
		w.answer(loop.Event{ID: "e", Text: full, Person: "ann"})
		st.Fail(at, after)
		praise := loop.Reaction{Person: "ann", Value: 1, At: w.clock.Now().Add(1)}
		failed := false
		for done := false; !done; {
			done = w.React(ctx, "e", praise) == nil
			failed = failed || st.Failed()
			st.Fail(0, false)
		}
		learned := 0
		for _, err := range w.Learning().Heuristics(ctx) {
			require.NoError(t, err)
			learned++
		}
		assert.Equal(t, 1, learned, "%d, after %v", at, after)
		return failed
	})
}

// Praise returns the error of a similarity that can't compare the new heuristic with others.
func TestPraiseThatCannotBeCompared(t *testing.T) {
	var away error
	similarity := heed.Embedder(func(_ context.Context, texts []string) ([][]float32, error) {
		all := make([][]float32, len(texts))
		for i := range all {
			all[i] = []float32{1}
		}
		return all, away
	})
	w := newWorld(t, loop.Config{
		Model: adviser, Tuning: loop.Tuning{Similarity: similarity, Extract: []string{"*"}},
		Lessons: loop.Lessons{Heuristics: []learning.Heuristic{rotating}},
	})
	w.answer(loop.Event{ID: "e", Text: full, Person: "ann"})
	away = errors.New("away")
	require.ErrorIs(t, w.React(ctx, "e", loop.Reaction{Person: "ann", Value: 1}), away)
}

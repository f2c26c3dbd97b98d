package loop_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/internal/settings"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/llm"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
)

// An account of a task's answer tells of the ways of working that the prompt recommended and warned
// of.
func TestAnAccountTellsOfWaysOfWorking(t *testing.T) {
	w := newWorld(t, loop.Config{})
	for i := range 30 {
		w.model.says = []string{"Split by feature: the shop first.",
			"Split by layer: first the interface, then the data."}[i%2]
		id := fmt.Sprint(i)
		w.answer(loop.Event{ID: id, Text: "Build a shop.", Task: "task" + id})
		worked := i%2 == 0
		require.NoError(t, w.Outcome(ctx, id, loop.Outcome{Success: &worked, Failure: "late"}))
	}
	answer := w.answer(loop.Event{ID: "e", Text: "Build a shop.", Task: "t"})
	system, _ := w.model.last()
	assert.Contains(t, system, "feature")
	require.NotEmpty(t, answer.Plan.Ways)
	require.NotEmpty(t, answer.Plan.Warnings)
	assert.NotEmpty(t, answer.Plan.Contents[answer.Plan.Warnings[0]], "what it says")
	account, err := w.Explain(ctx, "e")
	require.NoError(t, err)
	assert.Equal(t, answer.Plan.Ways, account.Ways)
	assert.Equal(t, answer.Plan.Warnings, account.Warnings)
	assert.Equal(t, []string{"pattern-split-by-layer-ui-logic-data",
		"pattern-handle-shared-types-first"}, account.Followed)
	assert.Contains(t, account.String(),
		"the answer followed the way of working pattern-split-by-layer-ui-logic-data: ")
	assert.Contains(t, account.String(), "the prompt recommended the way of working "+account.Ways[0])
	warning := account.Warnings[0]
	assert.Contains(t, account.Contents[warning], "AVOID: ")
	assert.Contains(t, account.String(),
		"the prompt warned of the way of working "+warning+": "+account.Contents[warning])
}

// An account says that a session kept an arm of before: the draws are older than the answer.
func TestAnAccountTellsThatTheSessionKeptItsArm(t *testing.T) {
	w := newWorld(t, loop.Config{Arms: []loop.Arm{{ID: "brief"}, {ID: "long"}}})
	for _, id := range []string{"first", "second"} {
		w.answer(loop.Event{ID: id, Text: "The disk is full.", Session: "s1"})
		w.clock.Advance(time.Minute)
	}
	const kept = "the session s1 has had it since 2026-01-05 09:00:00, when the arms drew"
	first, err := w.Explain(ctx, "first")
	require.NoError(t, err)
	assert.NotContains(t, first.String(), "has had it since")
	second, err := w.Explain(ctx, "second")
	require.NoError(t, err)
	assert.Contains(t, second.String(), kept)
}

// An outcome may say which ways of working were followed, where the text of the answer does not.
func TestAnOutcomeNamesTheWaysThatWereFollowed(t *testing.T) {
	w := newWorld(t, loop.Config{})
	w.model.says = "Split by feature: the shop first."
	w.answer(loop.Event{ID: "e", Text: "Build a shop.", Task: "t"})
	worked, own := true, patterns.IDOf("Ask first")
	bad := w.Outcome(ctx, "e", loop.Outcome{Success: &worked, Ways: []patterns.PatternID{""}})
	var input *heed.InputError
	require.ErrorAs(t, bad, &input)
	require.NoError(t, w.Outcome(ctx, "e", loop.Outcome{Success: &worked,
		Ways: []patterns.PatternID{own}}))
	account, err := w.Explain(ctx, "e")
	require.NoError(t, err)
	assert.Equal(t, []string{string(own)}, account.Followed)
	standing, err := w.Patterns().Standing(ctx, own)
	require.NoError(t, err)
	assert.Positive(t, standing.Helpful)
}

// After the person who asked took an answer back and is forgotten, Explain shows what the arm has
// learned: nothing, until another statement comes.
func TestExplainAfterAnUndoIsForgotten(t *testing.T) {
	w := newWorld(t, loop.Config{Arms: []loop.Arm{{ID: "a"}}})
	given, err := w.Agent.Answer(ctx, loop.Event{Text: "Why?", Person: "asker", Session: "s"})
	require.NoError(t, err)
	require.NoError(t, w.Agent.React(ctx, given.ID, loop.Reaction{Person: "bob", Value: 1}))
	require.NoError(t, w.Agent.Undo(ctx, given.ID, "asker"))
	err = store.Run(ctx, w.store, store.Job{Forget: []string{"asker"}})
	require.NoError(t, err)
	confidences := func() (all []float64) {
		account, err := w.Agent.Explain(ctx, given.ID)
		require.NoError(t, err)
		for _, s := range account.Statements {
			if s.Source == "bob" {
				all = append(all, s.Confidence)
			}
		}
		return all
	}
	assert.Equal(t, []float64{0}, confidences())
	require.NoError(t, w.Agent.React(ctx, given.ID, loop.Reaction{Person: "bob", Value: 1}))
	assert.Equal(t, []float64{1}, confidences())
}

// A tool explains an answer by the store alone, and returns the errors of the store.
func TestExplainOutsideOfTheHost(t *testing.T) {
	w := newWorld(t, loop.Config{Arms: []loop.Arm{{ID: "only"}}})
	_, err := w.Patterns().Define(ctx, patterns.Pattern{
		ID: "big", Content: "Avoid big steps", Anti: true,
	})
	require.NoError(t, err)
	id := w.answer(loop.Event{Text: "Why?", Person: "ann", Task: "t"}).ID
	require.NoError(t, w.Outcome(ctx, id, loop.Outcome{Success: new(bool)}))
	want, err := w.Explain(ctx, id)
	require.NoError(t, err)
	require.NotEmpty(t, want.Contents, "it says what it was warned of")
	cfg := loop.Config{Name: w.Name(), Testing: loop.Testing{Now: w.clock.Now}}
	_, err = loop.Explain(ctx, cfg, id)
	require.ErrorAs(t, err, new(*heed.ConfigError), "without a store")
	st := &storetest.Failing{Store: w.store}
	cfg.Store = st
	storetest.FailEach(func(at int, late bool) bool {
		st.Fail(at, late)
		got, err := loop.Explain(ctx, cfg, id)
		failed := st.Failed()
		st.Fail(0, false)
		if failed {
			require.ErrorIs(t, err, storetest.ErrFailed, "call %d", at)
			return true
		}
		require.NoError(t, err)
		assert.Equal(t, want.String(), got.String())
		return false
	})
}

// An agent without arms has chosen none, and one without a control group keeps no key to draw it.
func TestWhatAnAgentDoesNotDoLeavesNoTrace(t *testing.T) {
	w := newWorld(t, loop.Config{})
	account, err := w.Explain(ctx, w.answer(loop.Event{Text: "Why?"}).ID)
	require.NoError(t, err)
	assert.Nil(t, account.Choice)
	keys := func() []string {
		names, err := settings.Names("loop/")(ctx, w.store)
		require.NoError(t, err)
		return names
	}
	assert.NotContains(t, keys(), w.Name()+"/control")
	w.cfg.Control = 0.1
	w.again()
	assert.Contains(t, keys(), w.Name()+"/control")
}

// An answer that was delivered once is not undelivered because its repetition does not arrive.
func TestARepetitionThatIsNotDelivered(t *testing.T) {
	w := newWorld(t, loop.Config{})
	for _, first := range []bool{true, false} {
		e := loop.Event{ID: fmt.Sprint("first ", first), Text: "Why?"}
		if !first {
			w.answer(e)
		}
		left, leave := context.WithCancel(ctx)
		e.OnChunk = func(context.Context, string, bool) { leave() }
		_, _ = w.Answer(left, e)
		leave()
		account, err := w.Explain(ctx, e.ID)
		if err == nil {
			assert.Equal(t, first, account.Undelivered)
		} else {
			require.ErrorIs(t, err, loop.ErrNoAnswer)
			assert.True(t, first)
		}
	}
}

// What is stated about an answer that took another one back, or that a fallback gave, counts
// nothing for an arm.
func TestStatementsThatCountNothing(t *testing.T) {
	w := newWorld(t, loop.Config{
		Model: &mouth{err: llm.Unreachable}, Fallbacks: []decision.LLM{&mouth{says: "I am here."}},
		Arms: []loop.Arm{{ID: "only"}},
	})
	w.answer(loop.Event{ID: "spare", Text: "Why?", Session: "s", Person: "ann"})
	w.clock.Advance(time.Second)
	undo := w.answer(loop.Event{ID: "undo", Text: "Undo that.", Session: "s", Person: "ann"})
	require.Equal(t, []string{"spare"}, undo.Plan.Undone)
	for _, id := range []string{"spare", "undo"} {
		require.NoError(t, w.React(ctx, id, loop.Reaction{Person: "ann", Value: 1}))
		account, err := w.Explain(ctx, id)
		require.NoError(t, err)
		require.NotEmpty(t, account.Statements)
		for _, s := range account.Statements {
			assert.Zero(t, s.Confidence, "%s: %+v", id, s)
		}
	}
}

// An account is whole, or an error, whichever call of the store fails.
func TestAnAccountWithoutTheNthCall(t *testing.T) {
	st := &storetest.Failing{Store: new(memstore.Store)}
	w := newWorld(t, loop.Config{
		Store: st, RequireStore: true, Arms: []loop.Arm{{ID: "only"}},
		Lessons: loop.Lessons{Heuristics: []learning.Heuristic{trusted(rotating)}},
	})
	approved(t, w.Feedback(), "Name the ticket.")
	w.model.says = "Split by feature: the shop first."
	w.answer(loop.Event{ID: "model", Text: "Build a shop.", Task: "t"})
	w.answer(loop.Event{ID: "heuristic", Text: full})
	for _, id := range []string{"model", "heuristic"} {
		require.NoError(t, w.React(ctx, id, loop.Reaction{Person: "ann", Value: 1}))
		whole, err := w.Explain(ctx, id)
		require.NoError(t, err)
		for name, of := range map[string]func() (loop.Account, error){
			"the agent's": func() (loop.Account, error) { return w.Explain(ctx, id) },
			"the store's": func() (loop.Account, error) { return loop.Explain(ctx, w.cfg, id) },
		} {
			storetest.FailEach(func(at int, after bool) bool {
				st.Fail(at, after)
				account, err := of()
				failed := st.Failed()
				st.Fail(0, false)
				if failed {
					assert.ErrorIs(t, err, storetest.ErrFailed, "%s of %s, call %d", name, id, at)
				} else {
					assert.Equal(t, whole.String(), account.String(), "%s of %s", name, id)
				}
				return failed
			})
		}
	}
}

// An account has the latest five outcomes of the item that the arm was chosen for.
func TestAnAccountHasTheLatestOutcomes(t *testing.T) {
	w := newWorld(t, loop.Config{Arms: []loop.Arm{{ID: "only"}}})
	for i := range 7 {
		id := fmt.Sprint(i)
		w.answer(loop.Event{ID: id, Text: "Why?", Item: "i"})
		require.NoError(t, w.React(ctx, id, loop.Reaction{Value: 1}))
		w.clock.Advance(time.Second)
	}
	account, err := w.Explain(ctx, "0")
	require.NoError(t, err)
	require.Len(t, account.Outcomes, 5)
	assert.Equal(t, start.Add(6*time.Second), account.Outcomes[0].Result.At)
}

// An answer with learning is not of the control group, and the account of a heuristic that was
// deleted since goes without its trust.
func TestWhatAnAccountLeavesOut(t *testing.T) {
	w := newWorld(t, loop.Config{Lessons: loop.Lessons{
		Heuristics: []learning.Heuristic{trusted(rotating)},
	}})
	id := w.answer(loop.Event{Text: full}).ID
	account, err := w.Explain(ctx, id)
	require.NoError(t, err)
	assert.Nil(t, account.Control)
	assert.NotNil(t, account.Trust)
	require.NoError(t, w.Learning().Delete(ctx, "rotate"))
	account, err = w.Explain(ctx, id)
	require.NoError(t, err)
	assert.Nil(t, account.Trust)
	assert.Contains(t, account.String(), "it was deleted since")
}

// An account has the five latest outcomes of its item.
func TestAnAccountHasFiveOutcomes(t *testing.T) {
	w := newWorld(t, loop.Config{Arms: []loop.Arm{{ID: "only"}}})
	var id string
	for n := range 7 {
		id = w.answer(loop.Event{Text: "Why?", Item: "i"}).ID
		other := w.answer(loop.Event{Text: "Why?", Item: fmt.Sprint("other ", n)}).ID
		account, err := w.Explain(ctx, other)
		require.NoError(t, err)
		assert.Nil(t, account.Item, "the item has no outcome, and others may have some")
		w.clock.Advance(time.Second)
		require.NoError(t, w.React(ctx, id, loop.Reaction{Person: fmt.Sprint(n), Value: 1}))
		account, err = w.Explain(ctx, id)
		require.NoError(t, err)
		assert.Len(t, account.Outcomes, min(n+1, 5))
		require.NotNil(t, account.Item)
		assert.EqualValues(t, n+1, account.Item.Outcomes)
	}
}

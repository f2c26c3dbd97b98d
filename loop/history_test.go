package loop_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
)

// An answer that the conversation has already says nothing about a heuristic, and the account says
// so. The result has the conversation, and the trace its length.
func TestTheConversationTellsTheHeuristic(t *testing.T) {
	w := newWorld(t, loop.Config{Lessons: loop.Lessons{Heuristics: []learning.Heuristic{rotating}}})
	w.model.says = rotate
	said := []loop.Turn{{Role: "user", Text: full}, {Role: "assistant", Text: rotate}}
	answer := w.answer(loop.Event{ID: "e", Text: full, History: said})
	_, prompt := w.model.last()
	assert.Contains(t, prompt, "assistant: "+rotate)
	assert.Equal(t, prompt, answer.Result.Prompt)
	trace, err := w.Decision().Trace(ctx, answer.Result.ResponseID)
	require.NoError(t, err)
	assert.Equal(t, 2, trace.Turns)
	assert.NotContains(t, trace.Prompt, "assistant:")

	assert.Empty(t, answer.Result.Compared)
	assert.Equal(t, []string{"rotate"}, answer.Result.Told)
	account, err := w.Explain(ctx, "e")
	require.NoError(t, err)
	assert.Equal(t, []string{"rotate"}, account.Told)
	assert.Contains(t, account.String(),
		"withheld the heuristic rotate, but the prompt or the conversation so far says the same")

	account, err = w.Explain(ctx, w.answer(loop.Event{Text: full}).ID)
	require.NoError(t, err)
	assert.Empty(t, account.Told)
}

// An agent without arms has silence in its account, too.
func TestTheAccountHasSilence(t *testing.T) {
	w := newWorld(t, loop.Config{Lessons: loop.Lessons{
		Heuristics: []learning.Heuristic{trusted(rotating)}}})
	for name, text := range map[string]string{"the model": "Why?", "a heuristic": full} {
		id := w.answer(loop.Event{Text: text, Session: name, Person: "ann"}).ID
		account, err := w.Explain(ctx, id)
		require.NoError(t, err)
		assert.Contains(t, account.String(), "what it was worth is not known yet", name)
		w.clock.Advance(time.Hour)
		require.NoError(t, w.Sweep(ctx, time.Time{}))
		account, err = w.Explain(ctx, id)
		require.NoError(t, err)
		assert.Contains(t, account.String(), "no user reacted 2026-01-05", name)
		require.NoError(t, w.React(ctx, id, loop.Reaction{Person: "ann", Value: -1}))
		account, err = w.Explain(ctx, id)
		require.NoError(t, err)
		assert.NotContains(t, account.String(), "known by: no user reacted", name)
	}
}

// A plan keeps the conversation as it was, whatever the host does with its own.
func TestAPlansHistoryIsItsOwn(t *testing.T) {
	w := newWorld(t, loop.Config{})
	history := []loop.Turn{{Role: "user", Text: "Hello."}}
	p, err := w.Prepare(ctx, loop.Event{Text: "Why?", History: history})
	require.NoError(t, err)
	history[0].Text = "Goodbye."
	assert.Equal(t, "Hello.", p.Event.History[0].Text)
}

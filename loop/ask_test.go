package loop_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/llm"
	"github.com/heedhq/heed/loop"
)

// Where the host wants the model, it answers. It sees the heuristics, and is compared with none.
func TestAskModelHasTheModelAnswer(t *testing.T) {
	for _, h := range []learning.Heuristic{rotating, trusted(rotating)} {
		w := newWorld(t, loop.Config{Lessons: loop.Lessons{Heuristics: []learning.Heuristic{h}}})
		p, err := w.Prepare(ctx, loop.Event{Text: full, AskModel: true})
		require.NoError(t, err)
		assert.False(t, p.Ready)
		assert.Contains(t, p.Prompt, rotate)
		answer := w.answer(loop.Event{Text: full, AskModel: true})
		assert.Equal(t, decision.Model, answer.Result.Path)
		assert.Equal(t, "Look at the logs.", answer.Text)
		assert.Empty(t, answer.Result.Compared)
	}
}

func TestExtractNeedsAModel(t *testing.T) {
	_, err := loop.New(ctx, loop.Config{Tuning: loop.Tuning{Extract: []string{"*"}}})
	var fault *heed.ConfigError
	require.ErrorAs(t, err, &fault)
	assert.Equal(t, "Tuning.Extract", fault.Field)
}

// The fallbacks can write heuristics as well.
func TestExtractWithFallbacks(t *testing.T) {
	spare := &mouth{says: "I am here."}
	w := newWorld(t, loop.Config{Model: &mouth{err: llm.Unreachable},
		Fallbacks: []decision.LLM{spare}, Tuning: loop.Tuning{Extract: []string{"*"}}})
	a := w.answer(loop.Event{Text: "Why?", Person: "ann"})
	require.NoError(t, w.React(ctx, a.ID, loop.Reaction{Person: "ann", Value: 1}))
	assert.Len(t, spare.asked, 2, "the answer and the heuristic")
}

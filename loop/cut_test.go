package loop_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/decision/llmtest"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
)

// An answer that was cut off is kept, so that a thumb finds it. It is no evidence of what a
// heuristic says, and no heuristic is made of it.
func TestAnAnswerThatWasCutOff(t *testing.T) {
	for name, cut := range map[string]bool{"cut off": true, "whole": false} {
		t.Run(name, func(t *testing.T) {
			always := 1.
			model := &llmtest.Model{
				Answers:     []llmtest.Step{{Text: rotate, Cut: cut}},
				Predictions: llmtest.Say(`{"condition": "the app is slow", "action": {"message": "Restart the app."}}`),
			}
			w := newWorld(t, loop.Config{
				Model: model,
				Tuning: loop.Tuning{Extract: []string{"*"},
					Decision: decision.Config{Withhold: &always}},
				Lessons: loop.Lessons{Heuristics: []learning.Heuristic{rotating}},
			})
			answer := w.answer(loop.Event{ID: "e", Text: full, Person: "ann"})
			assert.Equal(t, rotate, answer.Text)
			assert.Equal(t, cut, answer.Result.Cut)
			assert.Equal(t, cut, len(answer.Result.Compared) == 0)
			assert.Equal(t, cut, w.answer(loop.Event{ID: "e", Text: full}).Result.Cut,
				"the event comes again")
			require.NoError(t, w.React(ctx, "e", loop.Reaction{Person: "ann", Value: 1}))
			account, err := w.Explain(ctx, "e")
			require.NoError(t, err)
			assert.Equal(t, cut, account.Cut)
			assert.Positive(t, account.Worth)
			assert.Len(t, model.Requests(), map[bool]int{true: 1, false: 2}[cut],
				"a whole answer is asked for the heuristic behind it")

			plan, err := w.Prepare(ctx, loop.Event{ID: "f", Text: "Why?"})
			require.NoError(t, err)
			answer, err = w.Answered(ctx, plan, loop.Reply{Text: "Because", Cut: cut})
			require.NoError(t, err)
			assert.Equal(t, cut, answer.Result.Cut, "of a framework's model")
		})
	}
}

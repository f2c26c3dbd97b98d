package loop_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/loop"
)

// An event that waited in a queue for an hour is answered, its silence settles, and no later answer waits behind it.
func TestAnOldEventHoldsNothingUp(t *testing.T) {
	now := time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)
	agent, err := loop.New(ctx, loop.Config{
		Model: &mouth{says: "Rotate its logs."}, Arms: []loop.Arm{{ID: "a"}, {ID: "b"}}, Now: func() time.Time { return now },
	})
	require.NoError(t, err)
	_, err = agent.Answer(ctx, loop.Event{ID: "old", Text: "The disk is full.", Person: "ann", At: now.Add(-time.Hour)})
	require.NoError(t, err)
	_, err = agent.Answer(ctx, loop.Event{ID: "new", Text: "The light is on.", Person: "ann"})
	require.NoError(t, err)
	now = now.Add(time.Hour)
	require.NoError(t, agent.Sweep(ctx, now))
	require.NoError(t, agent.React(ctx, "old", loop.Reaction{Person: "ann", Value: 1}))
	require.NoError(t, agent.Sweep(ctx, now))
	for _, id := range []string{"old", "new"} {
		account, err := agent.Explain(ctx, id)
		require.NoError(t, err)
		assert.True(t, account.Known, id)
	}
}

// A fallback is asked where the model panics, or says nothing but thoughts.
func TestFallbacksAreAskedWhateverIsWrong(t *testing.T) {
	for name, broken := range map[string]decision.LLMFunc{
		"a panic": func(context.Context, decision.LLMRequest) (decision.LLMResponse, error) { panic("oops") },
		"thoughts": func(context.Context, decision.LLMRequest) (decision.LLMResponse, error) {
			return decision.LLMResponse{Text: "<think>Which disk?</think>"}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			agent, err := loop.New(ctx, loop.Config{Model: broken, Fallbacks: []decision.LLM{&mouth{says: "Rotate its logs."}}})
			require.NoError(t, err)
			answer, err := agent.Answer(ctx, loop.Event{ID: "e", Text: "The disk is full."})
			require.NoError(t, err)
			assert.Equal(t, "Rotate its logs.", answer.Text)
		})
	}
}

package looptest_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/loop/looptest"
)

var ctx = context.Background()

// assistant is what a host has.
func assistant() loop.Config {
	real := decision.LLMFunc(func(context.Context, decision.LLMRequest) (decision.LLMResponse,
		error) {
		panic("the network")
	})
	return loop.Config{
		Model: real, Fallbacks: []decision.LLM{real}, Models: map[string]decision.LLM{"big": real},
		Arms: []loop.Arm{{ID: "big", ModelName: "big"}, {ID: "own", Model: real}},
		Lessons: loop.Lessons{Heuristics: []learning.Heuristic{
			{ID: "rotate", Condition: "the disk of db-1 is full", Action: "Rotate its logs.",
				Initial: 0.8},
		}},
	}
}

func TestAHostsAgentInAFixedWorld(t *testing.T) {
	agent, w := looptest.New(t, assistant(), "Call Ann.", "Call Bob.")
	first, err := agent.Answer(ctx, loop.Event{Text: "The queue is stuck."})
	require.NoError(t, err)
	assert.Equal(t, "event-1", first.ID)
	assert.Equal(t, "answer-1", first.Result.ResponseID)
	assert.Equal(t, time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC), first.Plan.Event.At)
	for range 2 {
		next, err := agent.Answer(ctx, loop.Event{Text: "The queue is stuck."})
		require.NoError(t, err)
		assert.Equal(t, "Call Bob.", next.Text, "the script ends with it")
	}
	assert.Len(t, w.Model.Requests(), 3)

	w.Advance(time.Minute)
	account, err := agent.Explain(ctx, first.ID)
	require.NoError(t, err)
	assert.Equal(t, "silence", account.Channel, "the sweep was part of it")
	assert.Equal(t, first.Plan.Event.At.Add(time.Minute), w.Now())

	second, err := loop.New(ctx, w.Config)
	require.NoError(t, err)
	account, err = second.Explain(ctx, first.ID)
	require.NoError(t, err)
	assert.Equal(t, "Call Ann.", account.Text, "another process has the same store")
}

// Two worlds are alike to the last choice of an arm.
func TestAFixedWorldIsAlwaysTheSame(t *testing.T) {
	play := func() (arms []string) {
		agent, _ := looptest.New(t, assistant(), "Call Ann.")
		for range 30 {
			answer, err := agent.Answer(ctx, loop.Event{Text: "The queue is stuck."})
			require.NoError(t, err)
			arms = append(arms, answer.Plan.Arm.ID)
		}
		return arms
	}
	first := play()
	assert.Equal(t, first, play())
	assert.Contains(t, first, "big")
	assert.Contains(t, first, "own")
}

func TestAWorldLeavesWhatTheHostSet(t *testing.T) {
	cfg := loop.Config{
		Testing: loop.Testing{NewID: func() string { return "mine" }},
		Model: decision.LLMFunc(func(context.Context, decision.LLMRequest) (decision.LLMResponse,
			error) {
			return decision.LLMResponse{Text: "By the host's model."}, nil
		}),
	}
	agent, w := looptest.New(t, cfg)
	answer, err := agent.Answer(ctx, loop.Event{Text: "The queue is stuck."})
	require.NoError(t, err)
	assert.Equal(t, "mine", answer.ID)
	assert.Equal(t, "By the host's model.", answer.Text)
	assert.Empty(t, w.Model.Requests())
}

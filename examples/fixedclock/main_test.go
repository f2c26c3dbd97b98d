package main

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

func Example() {
	main()
	// Output:
	// heuristic: Restart it.
	// llm: Ask the people on call.
}

var (
	ctx    = context.Background()
	resume = learning.Heuristic{ID: "resume", Condition: "the queue is stuck again",
		Action: "Resume it."}
	drain = learning.Heuristic{ID: "drain", Condition: "a queue is stuck", Action: "Drain it."}
)

// A bench is the agent in a world that stands still, with a model that answers from a script.
type bench struct {
	*testing.T
	*loop.Agent
	*looptest.World
}

func newBench(t *testing.T, cfg loop.Config) *bench {
	agent, world := looptest.New(t, cfg, "Call Ann.", "Call Bob.")
	return &bench{t, agent, world}
}

func (b *bench) alert() loop.Answer {
	b.Helper()
	answer, err := b.Answer(ctx, loop.Event{Text: stuck})
	require.NoError(b, err)
	return answer
}

func (b *bench) thumb(id string, value float64) {
	b.Helper()
	require.NoError(b, b.React(ctx, id, loop.Reaction{Person: "ann", Value: value}))
}

func (b *bench) confidence() float64 {
	b.Helper()
	standing, err := b.Learning().Standing(ctx, restart.ID)
	require.NoError(b, err)
	return standing.Confidence
}

func TestATrustedHeuristicAnswersWithoutTheModel(t *testing.T) {
	b := newBench(t, config(nil, restart))
	got := b.alert()
	assert.Equal(t, decision.Heuristic, got.Result.Path)
	assert.Equal(t, "event-1", got.ID)
	assert.InDelta(t, 0.75, got.Result.Prediction.Success, 1e-9)
	assert.Empty(t, b.Model.Requests())
}

func TestAComplaintHandsOverToTheModelUntilItIsTakenBack(t *testing.T) {
	b := newBench(t, config(nil, restart))
	first := b.alert()
	b.thumb(first.ID, -1) // 0.75 to 1.5/(2+0.8)
	assert.InDelta(t, 1.5/2.8, b.confidence(), 1e-9)
	second := b.alert()
	assert.Equal(t, decision.Model, second.Result.Path)
	assert.Equal(t, "Call Ann.", second.Text)
	b.Advance(time.Second)
	b.thumb(first.ID, 1) // the last click holds: (1.5+0.8)/(2+0.8)
	assert.InDelta(t, 2.3/2.8, b.confidence(), 1e-9)
	assert.Equal(t, decision.Heuristic, b.alert().Result.Path)
}

func TestSilenceIsHeardAfterThirtySeconds(t *testing.T) {
	b := newBench(t, config(nil, restart))
	b.alert()
	for _, step := range []struct {
		later time.Duration
		want  float64
	}{{29 * time.Second, 0.75}, {2 * time.Second, 1.9 / 2.4}, {time.Hour, 1.9 / 2.4}} {
		b.Advance(step.later)
		assert.InDelta(t, step.want, b.confidence(), 1e-9, "after another %v", step.later)
	}
}

// TestASeedDecidesAlike shows what a seed is for: the model is shown heuristics that nobody trusts
// yet in random order.
func TestASeedDecidesAlike(t *testing.T) {
	shown := func() (all [][]string) {
		young := restart
		young.Initial = 0
		cfg := config(nil, young, resume, drain)
		cfg.Tuning.Decision.Withhold = new(float64) // it is always shown them
		b := newBench(t, cfg)
		for range 40 {
			all = append(all, b.alert().Result.ShownIDs)
		}
		return all
	}
	once := shown()
	assert.Equal(t, once, shown())
	assert.Contains(t, once, []string{"restart", "resume", "drain"})
	assert.Contains(t, once, []string{"drain", "resume", "restart"})
}

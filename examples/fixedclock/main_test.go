package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/decision/llmtest"
	"github.com/heedhq/heed/learning"
)

func Example() {
	main()
	// Output:
	// heuristic: Restart it.
	// llm: Ask the people on call.
}

var (
	ctx     = context.Background()
	restart = decision.Candidate{HeuristicID: "restart", Condition: "a queue is stuck", Action: "Restart it."}
	rotate  = decision.Candidate{HeuristicID: "rotate", Condition: "a disk is full", Action: "Rotate the logs."}
	wait    = decision.Candidate{HeuristicID: "wait", Condition: "a build is slow", Action: "Wait."}
)

// A bench has an agent with a clock that the test sets, ids that count, and a model that answers from a script.
type bench struct {
	*Agent
	now   time.Time
	model *llmtest.Model
}

func newBench(t *testing.T, seed uint64, taught ...decision.Candidate) *bench {
	b := &bench{now: time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC), model: &llmtest.Model{Answers: llmtest.Say("Call Ann.", "Call Bob.")}}
	ids := 0
	agent, err := NewAgent(ctx, World{
		LLM: b.model, Now: func() time.Time { return b.now }, Seed: rand.NewPCG(seed, 0),
		NewID: func() string { ids++; return fmt.Sprint("answer ", ids) },
	}, taught...)
	require.NoError(t, err)
	b.Agent = agent
	return b
}

func (b *bench) alert(t *testing.T, id string) decision.Result {
	t.Helper()
	b.now = b.now.Add(time.Minute)
	result, err := b.Alert(ctx, id, "The queue is stuck.")
	require.NoError(t, err)
	return result
}

func TestATrustedHeuristicAnswersWithoutTheModel(t *testing.T) {
	b := newBench(t, 1, restart)
	got := b.alert(t, "a")
	assert.Equal(t, decision.Heuristic, got.Path)
	assert.Equal(t, "answer 1", got.ResponseID)
	assert.InDelta(t, 0.75, got.Prediction.Success, 1e-9)
	assert.Empty(t, b.model.Requests())
}

func TestAComplaintHandsOverToTheModelUntilItIsTakenBack(t *testing.T) {
	b := newBench(t, 1, restart)
	first := b.alert(t, "a")
	require.NoError(t, b.Thumb(ctx, first.ResponseID, "ann", false)) // 0.75 to 1.5/(2+0.8)
	second := b.alert(t, "b")
	assert.Equal(t, decision.Model, second.Path)
	assert.Equal(t, "Call Ann.", second.Text)
	require.NoError(t, b.Thumb(ctx, second.ResponseID, "ann", false), "what the model said is not held against a heuristic")
	b.now = b.now.Add(time.Second)
	require.NoError(t, b.Thumb(ctx, first.ResponseID, "ann", true)) // the last click holds: (1.5+0.8)/(2+0.8)
	third := b.alert(t, "c")
	assert.Equal(t, decision.Heuristic, third.Path)
	assert.InDelta(t, 2.3/2.8, third.Prediction.Success, 1e-9)
}

func TestSilenceIsHeardAfterThirtySeconds(t *testing.T) {
	b := newBench(t, 1, restart)
	shown, at := b.alert(t, "a"), b.now
	for _, step := range []struct {
		after time.Duration
		want  float64
	}{{29 * time.Second, 0.75}, {31 * time.Second, 1.8 / 2.3}, {time.Hour, 1.8 / 2.3}} {
		b.now = at.Add(step.after)
		require.NoError(t, b.Tick(ctx, b.now))
		standing, err := b.learning.Standing(ctx, shown.CreditID)
		require.NoError(t, err)
		assert.InDelta(t, step.want, standing.Confidence, 1e-9, "after %v", step.after)
	}
}

// TestASeedDecidesAlike shows what a seed is for: candidates are shown to the model in random order.
func TestASeedDecidesAlike(t *testing.T) {
	shown := func(seed uint64) (all [][]string) {
		b := newBench(t, seed, restart, rotate, wait)
		for _, c := range []decision.Candidate{restart, rotate, wait} { // nobody trusts any of them any more
			_, err := b.learning.Judge(ctx, learning.Judgement{Verdict: heed.Verdict{HeuristicID: c.HeuristicID, EventID: "long ago", Person: "ann", Value: -1}})
			require.NoError(t, err)
		}
		for i := range 60 {
			all = append(all, b.alert(t, fmt.Sprint(i)).ShownIDs)
		}
		return all
	}
	once, again, other := shown(1), shown(1), shown(2)
	assert.Equal(t, once, again)
	assert.NotEqual(t, once, other, "another seed shows the candidates in other orders")
}

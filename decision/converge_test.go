package decision_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/decision/llmtest"
)

// similarity says what it is told.
type similarity struct {
	values []float64
	err    error
}

func (s similarity) Similar(context.Context, string, []string) ([]float64, error) {
	return s.values, s.err
}

// failsLater is a similarity whose second call fails.
type failsLater struct{ calls int }

func (f *failsLater) Similar(_ context.Context, _ string, others []string) ([]float64, error) {
	if f.calls++; f.calls > 1 {
		return nil, errLater
	}
	return make([]float64, len(others)), nil
}

func converge(t *testing.T, cfg decision.Config) decision.Result {
	t.Helper()
	cfg.LLM, cfg.Withhold = model("Do it."), new(float64)
	return decide(t, cfg, decision.Request{Candidates: candidates(0.5, 0.4, 0.3, 0.2)})
}

func TestConvergence(t *testing.T) {
	res := converge(t, decision.Config{Similarity: similarity{values: []float64{0.75, 0.7499, 0.9, 1}}, MaxCandidates: 1})
	assert.Equal(t, []decision.Convergence{{HeuristicID: "h4", Similarity: 1}, {HeuristicID: "h3", Similarity: 0.9}, {HeuristicID: "h1", Similarity: 0.75, Shown: true}}, res.Convergence)
	assert.Empty(t, res.CreditID, "it moves nothing")
	res = converge(t, decision.Config{Similarity: similarity{values: []float64{0.75, 0.7499, 0.9, 1}}, SimilarityThreshold: 0.95})
	assert.Len(t, res.Convergence, 1)
	assert.Empty(t, res.Compared, "nothing was withheld")
	off := decision.Config{NoSimilarity: true, Similarity: similarity{err: errors.New("not asked")}}
	res = converge(t, off)
	assert.Nil(t, res.Convergence)
	assert.NoError(t, res.Err)
	res = decide(t, decision.Config{Similarity: similarity{err: errors.New("not asked")}}, decision.Request{Candidates: candidates(0.9)})
	assert.NoError(t, res.Err, "a heuristic's answer is compared with nothing")
}

func TestConvergenceThatFails(t *testing.T) {
	for name, s := range map[string]heed.Similarity{
		"an error":       similarity{err: errors.New("out of order")},
		"too few":        similarity{values: []float64{1}},
		"not a number":   similarity{values: []float64{1, 1, 1, math.NaN()}},
		"out of range":   similarity{values: []float64{1, 1, 1, 1.5}},
		"a panic":        heed.Embedder(func(context.Context, []string) ([][]float32, error) { panic("x") }),
		"no vectors yet": heed.Embedder(func(context.Context, []string) ([][]float32, error) { return nil, nil }),
	} {
		res := converge(t, decision.Config{Similarity: s})
		assert.Equal(t, decision.Model, res.Path, name)
		assert.Equal(t, "Do it.", res.Text)
		assert.Nil(t, res.Convergence)
		assert.Error(t, res.Err)
	}
}

func TestSlowConvergenceIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		slow := heed.Embedder(func(context.Context, []string) ([][]float32, error) { <-release; return nil, nil })
		h, err := decision.New(ctx, decision.Config{LLM: model("Do it."), Similarity: slow, SimilarityTimeout: 300 * time.Millisecond})
		require.NoError(t, err)
		began := time.Now()
		res, err := h.Decide(context.Background(), decision.Request{Candidates: candidates(0.5)})
		require.NoError(t, err)
		assert.Equal(t, "Do it.", res.Text)
		assert.Equal(t, 300*time.Millisecond, time.Since(began))
		assert.Equal(t, 1, decision.GivenUp(h))
	})
}

func TestReevaluate(t *testing.T) {
	var heuristics []decision.Candidate
	for i := range 30 {
		c := float64(i%3)*0.3 + 0.2 // 0.2, 0.5, 0.8
		heuristics = append(heuristics, decision.Candidate{HeuristicID: fmt.Sprint("h", i), Condition: fmt.Sprint("situation ", i), Action: "Do it.", Confidence: c})
	}
	m := &llmtest.Model{Answers: llmtest.Say("do it", "Call the fire brigade.", "")}
	h := newHeuristicFirst(t, decision.Config{LLM: m})
	cfg := decision.ReevaluateConfig{Strategy: h, PerTier: [3]int{2, 0, 1}, Seed: rand.NewPCG(1, 2)}
	got, err := decision.Reevaluate(ctx, cfg, heuristics)
	require.NoError(t, err)
	require.Len(t, got, 3)
	for i, confidence := range []float64{0.2, 0.2, 0.8} {
		assert.InDelta(t, confidence, got[i].Heuristic.Confidence, 1e-9, "so many are drawn of each tier")
		assert.Contains(t, got[i].Result.Prompt, got[i].Heuristic.Condition)
		assert.NotContains(t, got[i].Result.Prompt, "Do it.", "the model is not shown what it is compared with")
		assert.NoError(t, got[i].Err)
	}
	assert.NotEqual(t, got[0].Heuristic.HeuristicID, got[1].Heuristic.HeuristicID)
	assert.Equal(t, []answer.Comparison{{
		HeuristicID: got[0].Heuristic.HeuristicID, Similarity: 1, Agrees: true,
	}}, got[0].Result.Compared)
	require.Len(t, got[1].Result.Compared, 1)
	assert.False(t, got[1].Result.Compared[0].Agrees)
	assert.Less(t, got[1].Result.Compared[0].Similarity, 0.5)
	assert.Equal(t, decision.Fallback, got[2].Result.Path)

	// the draw is the seed's
	m2 := decision.ReevaluateConfig{Strategy: newHeuristicFirst(t, decision.Config{}), PerTier: [3]int{2, 0, 1}, Seed: rand.NewPCG(1, 2)}
	again, err := decision.Reevaluate(ctx, m2, heuristics)
	require.NoError(t, err)
	for i := range got {
		assert.Equal(t, got[i].Heuristic, again[i].Heuristic)
	}
	other, err := decision.Reevaluate(ctx, decision.ReevaluateConfig{Strategy: m2.Strategy}, heuristics)
	require.NoError(t, err)
	assert.Len(t, other, 15)
}

// onlyDecides is a strategy made of a function.
type onlyDecides func(context.Context, decision.Request) (decision.Result, error)

func (f onlyDecides) Decide(ctx context.Context, r decision.Request) (decision.Result, error) {
	return f(ctx, r)
}

func TestReevaluateSurvives(t *testing.T) {
	one := []decision.Candidate{{HeuristicID: "h", Condition: "c", Action: "a", Confidence: 0.5}}
	replies := onlyDecides(func(context.Context, decision.Request) (decision.Result, error) {
		return decision.Result{Path: decision.Model, Text: "a"}, nil
	})
	for name, cfg := range map[string]decision.ReevaluateConfig{
		"a strategy that panics": {Strategy: onlyDecides(func(context.Context, decision.Request) (decision.Result, error) { panic("x") })},
		"a strategy that fails": {Strategy: onlyDecides(func(context.Context, decision.Request) (decision.Result, error) {
			return decision.Result{}, errors.New("x")
		})},
		"a similarity that fails":  {Strategy: replies, Similarity: similarity{err: errors.New("x")}},
		"one that says too little": {Strategy: replies, Similarity: similarity{}},
	} {
		got, err := decision.Reevaluate(ctx, cfg, one)
		require.NoError(t, err, name)
		assert.Error(t, got[0].Err, name)
	}
	got, err := decision.Reevaluate(ctx, decision.ReevaluateConfig{
		Strategy: replies, Similarity: similarity{values: []float64{0.8}}, Threshold: 0.9,
	}, one)
	require.NoError(t, err)
	assert.Equal(t, []answer.Comparison{{HeuristicID: "h", Similarity: 0.8}}, got[0].Result.Compared)
	done, cancel := context.WithCancel(ctx)
	cancel()
	_, err = decision.Reevaluate(done, decision.ReevaluateConfig{Strategy: replies}, one)
	assert.ErrorIs(t, err, context.Canceled)
	one[0].Confidence = 2
	_, err = decision.Reevaluate(ctx, decision.ReevaluateConfig{Strategy: replies}, one)
	assert.ErrorContains(t, err, "heuristics[0].Confidence")
	assert.True(t, strings.HasPrefix(err.Error(), "decision: reevaluate: "))
}

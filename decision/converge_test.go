package decision_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/decision"
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
	res := converge(t, decision.Tuned(decision.Config{
		Similarity: similarity{values: []float64{0.75, 0.7499, 0.9, 1}}},
		decision.Tuning{MaxCandidates: 1}))
	assert.Equal(t, []answer.Comparison{
		{HeuristicID: "h4", Similarity: 1, Agrees: true},
		{HeuristicID: "h3", Similarity: 0.9, Agrees: true},
		{HeuristicID: "h1", Similarity: 0.75, Agrees: true},
	}, res.Convergence)
	assert.Empty(t, res.CreditID, "it moves nothing")
	assert.Empty(t, res.Compared, "nothing was withheld")
	off := decision.Tuned(decision.Config{Similarity: similarity{err: errors.New("not asked")}},
		decision.Tuning{NoSimilarity: true})
	res = converge(t, off)
	assert.Nil(t, res.Convergence)
	assert.NoError(t, res.Err)
	res = decide(t, decision.Config{Similarity: similarity{err: errors.New("not asked")}},
		decision.Request{Candidates: candidates(0.9)})
	assert.NoError(t, res.Err, "a heuristic's answer is compared with nothing")
}

func TestConvergenceThatFails(t *testing.T) {
	for name, s := range map[string]heed.Similarity{
		"an error":     similarity{err: errors.New("out of order")},
		"too few":      similarity{values: []float64{1}},
		"not a number": similarity{values: []float64{1, 1, 1, math.NaN()}},
		"out of range": similarity{values: []float64{1, 1, 1, 1.5}},
		"a panic": heed.Embedder(func(context.Context, []string) ([][]float32,
			error) {
			panic("x")
		}),
		"no vectors yet": heed.Embedder(func(context.Context, []string) ([][]float32,
			error) {
			return nil, nil
		}),
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
		slow := heed.Embedder(func(context.Context, []string) ([][]float32,
			error) {
			<-release
			return nil, nil
		})
		h, err := decision.New(ctx, decision.Config{LLM: model("Do it."), Similarity: slow})
		require.NoError(t, err)
		began := time.Now()
		res, err := h.Decide(context.Background(), decision.Request{Candidates: candidates(0.5)})
		require.NoError(t, err)
		assert.Equal(t, "Do it.", res.Text)
		assert.Equal(t, time.Second, time.Since(began))
		assert.Equal(t, 1, decision.GivenUp(h))
	})
}

// onlyDecides is a strategy made of a function.
type onlyDecides func(context.Context, decision.Request) (decision.Result, error)

func (f onlyDecides) Decide(ctx context.Context, r decision.Request) (decision.Result, error) {
	return f(ctx, r)
}

package learning_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/store"
)

// A forecast is what a dumb oracle keeps of each fire that has come to an end.
type forecast struct {
	heuristic, path     string
	prediction, outcome float64
}

func reliability(all []forecast, wanted func(forecast) bool) (r learning.Reliability) {
	var bins [10][]forecast
	for _, f := range all {
		if !wanted(f) {
			continue
		}
		r.N++
		r.Brier += (f.prediction - f.outcome) * (f.prediction - f.outcome)
		bin := min(int(f.prediction*10), 10-1)
		bins[bin] = append(bins[bin], f)
	}
	for i, bin := range bins {
		for _, f := range bin {
			r.Table[i].N++
			r.Table[i].Prediction += f.prediction / float64(len(bin))
			r.Table[i].Success += f.outcome / float64(len(bin))
		}
		r.Error += float64(len(bin)) / float64(max(r.N, 1)) * math.Abs(
			r.Table[i].Prediction-r.Table[i].Success)
	}
	r.Brier /= float64(max(r.N, 1))
	return r
}

func assertReliability(t *testing.T, want, got learning.Reliability) {
	t.Helper()
	assert.Equal(t, want.N, got.N)
	assert.InDelta(t, want.Brier, got.Brier, 1e-9)
	assert.InDelta(t, want.Error, got.Error, 1e-9)
	for i := range want.Table {
		assert.Equal(t, want.Table[i].N, got.Table[i].N)
		assert.InDelta(t, want.Table[i].Prediction, got.Table[i].Prediction, 1e-9)
		assert.InDelta(t, want.Table[i].Success, got.Table[i].Success, 1e-9)
	}
}

// TestCalibration compares with an oracle that keeps every fire: of two heuristics and of the
// model, on three paths.
func TestCalibration(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h1", "h2")
	rng := rand.New(rand.NewPCG(1, 2))
	var all []forecast
	for i := range 300 {
		is := forecast{[]string{"h1", "h2", ""}[rng.IntN(3)],
			[]string{"heuristic", "llm", ""}[rng.IntN(3)], math.Round(rng.Float64()*20) / 20, 1}
		fire := learning.Fire{HeuristicID: is.heuristic, EventID: fmt.Sprint(i), Path: is.path,
			Prediction: &is.prediction, Session: "room"}
		if i%10 == 0 {
			fire.Prediction = nil
		}
		require.NoError(t, f.Fire(ctx, fire))
		if fire.Prediction != nil {
			*fire.Prediction = is.prediction
		}
		if rng.Float64() > is.prediction {
			is.outcome = 0
			assert.Len(t, f.event("", "undo"), 1)
		}
		if fire.Prediction != nil {
			all = append(all, is)
		}
		f.clock.Advance(time.Minute)
		f.sweep()
	}
	got, err := f.Calibration(ctx)
	require.NoError(t, err)
	assertReliability(t, reliability(all, func(forecast) bool { return true }), got.Overall)
	assert.Len(t, got.Heuristics, 3)
	for heuristic, r := range got.Heuristics {
		assertReliability(t, reliability(all, func(
			f forecast) bool {
			return f.heuristic == heuristic
		}), r)
	}
	assert.Len(t, got.Paths, 3)
	for path, r := range got.Paths {
		assertReliability(t, reliability(all, func(f forecast) bool { return f.path == path }), r)
	}
}

// They are compared with how fires end, by a pattern as well, and that is all.
func TestPredictionsMoveNoConfidence(t *testing.T) {
	with, without := 0., 0.
	for _, prediction := range []*float64{nil, new(float64)} {
		f := newFixture(t, learning.Config{Expectations: []learning.Expectation{{Trigger: "oven",
			Outcome: "off"}}}, "h")
		require.NoError(t, f.Fire(ctx, learning.Fire{HeuristicID: "h", EventID: "e", Condition: "oven",
			Prediction: prediction, Session: "room"}))
		f.event("", "off")
		c, err := f.Calibration(ctx)
		require.NoError(t, err)
		if prediction == nil {
			without = f.confidence("h")
			assert.Zero(t, c.Overall.N)
			continue
		}
		with = f.confidence("h")
		assert.EqualValues(t, 1, c.Overall.Brier, "nobody believed in it, and it worked")
	}
	assert.Equal(t, without, with)
}

func TestCalibrationOfTheEdges(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	empty, err := f.Calibration(ctx)
	require.NoError(t, err)
	assert.Zero(t, empty.Overall)
	for i, p := range []float64{0, 1, 1} {
		require.NoError(t, f.Fire(ctx, learning.Fire{HeuristicID: "h", EventID: fmt.Sprint(i),
			Prediction: &p, Session: "room"}))
		p = 0.5 // the caller's variable is the caller's
	}
	f.clock.Advance(time.Minute)
	f.sweep()
	got, err := f.Calibration(ctx)
	require.NoError(t, err)
	low, high := got.Overall.Table[0], got.Overall.Table[9]
	assert.Equal(t, []float64{1, 0, 1}, []float64{float64(low.N), low.Prediction, low.Success})
	assert.Equal(t, []float64{2, 1, 1}, []float64{float64(high.N), high.Prediction, high.Success})
	assert.InDelta(t, 1./3, got.Overall.Brier, 1e-12)
	assert.InDelta(t, 1./3, got.Overall.Error, 1e-12)
}

// A success that came of silence is taken back with the silence. Foreign cells are passed over.
func TestCalibrationFollowsAnUndo(t *testing.T) {
	f := newFixture(t, windows(60, 30), "h")
	p := 0.9
	require.NoError(t, f.Fire(ctx, learning.Fire{HeuristicID: "h", EventID: "e", Prediction: &p,
		Session: "room"}))
	f.clock.Advance(31 * time.Second)
	f.sweep()
	f.event("", "undo")
	for _, name := range []string{"", "a/b", "x/11/true", "x/-1/true", "x/y/true"} {
		_, err := f.store.Commit(ctx, store.Batch{Observations: []evidence.Observation{{
			ID: "foreign" + name, Cell: evidence.Cell{Kind: "learning.calibration", Item: "h",
				Name: name}, Weight: 1, At: start,
		}}})
		require.NoError(t, err)
	}
	got, err := f.Calibration(ctx)
	require.NoError(t, err)
	assert.EqualValues(t, 1, got.Overall.N)
	assert.InDelta(t, 0.81, got.Overall.Brier, 1e-12)
}

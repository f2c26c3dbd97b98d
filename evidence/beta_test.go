//go:build !race

package evidence_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/heedhq/heed/evidence"
)

func TestBetaAgreesWithGonum(t *testing.T) {
	shapes := []float64{1e-2, 0.08, 0.3, 0.5, 1, 1.5, 3, 40, 1e3, 1e6}
	for i := range len(shapes) * len(shapes) {
		b := evidence.Beta{Alpha: shapes[i/len(shapes)], Beta: shapes[i%len(shapes)]}
		want := distuv.Beta{Alpha: b.Alpha, Beta: b.Beta}
		assert.InEpsilon(t, want.Mean(), b.Mean(), 1e-12, "%v", b)
		assert.InEpsilon(t, want.Variance(), evidence.Variance(b), 1e-9, "%v", b)
		low, high := b.Interval(0.9)
		assert.True(t, 0 <= low && low <= high && high <= 1, "%v", b)
		for q, x := range map[float64]float64{0.05: low, 0.95: high} {
			if x > 1e-9 && x < 1-1e-9 {
				assert.InDelta(t, q, want.CDF(x), 1e-5, "%v", b)
			}
		}
	}
}

// A distribution function is in [0, 1] and does not fall, whatever the shapes.
func TestCDFEverywhere(t *testing.T) {
	for _, alpha := range []float64{5e-324, 1e-300, 1e-7, 1e-6, 1e-3, 1, 1e4, 9e7, 2e8, 1e12, 1e300} {
		for _, beta := range []float64{5e-324, 1e-300, 1e-7, 1e-6, 1e-3, 1, 1e4, 9e7, 2e8, 1e12,
			1e300} {
			b := evidence.Beta{Alpha: alpha, Beta: beta}
			last := 0.
			for _, x := range []float64{0, 1e-9, 0.1, 0.5 - 1e-6, 0.5, 0.5 + 1e-6, 0.9, 1 - 1e-9, 1} {
				p := evidence.CDF(b, x)
				require.True(t, p >= last-1e-12 && p <= 1, "%v: CDF(%v) = %v after %v", b, x, p, last)
				last = p
			}
			low, high := b.Interval(0.9)
			require.True(t, 0 <= low && low <= high && high <= 1, "%v: %v to %v", b, low, high)
		}
	}
	assert.InDelta(t, 0.5, evidence.CDF(evidence.Beta{Alpha: 1e12, Beta: 1e12}, 0.5), 1e-9)
}

// A rate that a hundred million observations show has the interval of the normal distribution.
func TestIntervalsOfManyObservations(t *testing.T) {
	for _, b := range []evidence.Beta{{Alpha: 1e9, Beta: 1e9}, {Alpha: 1e8, Beta: 4e8}} {
		deviation := math.Sqrt(evidence.Variance(b))
		low, high := b.Interval(0.95)
		assert.InDelta(t, -1.959964, (low-b.Mean())/deviation, 1e-5)
		assert.InDelta(t, 1.959964, (high-b.Mean())/deviation, 1e-5)
	}
}

// With a concentration, a draw is from a distribution with the belief's mean, which is also the
// floor. Without one it is from the level.
func TestWhatABeliefIsDrawnFrom(t *testing.T) {
	level := evidence.Beta{Alpha: 3, Beta: 1}
	b := evidence.Belief{Level: level}
	of, floor := b.Drawn()
	assert.Equal(t, level, of)
	assert.Zero(t, floor)
	b.Strength, b.Successes, b.Failures, b.Concentration = 4, 1, 3, 20 // (4·¾ + 1) / 8
	of, floor = b.Drawn()
	assert.Equal(t, evidence.Beta{Alpha: 10, Beta: 10}, of)
	assert.Equal(t, 0.5, floor)
	b.Successes = 2
	_, floor = b.Drawn()
	assert.Equal(t, math.Round(5./9*(1<<24))/(1<<24), floor)
	src := rand.NewPCG(1, 2)
	for range 100 {
		assert.GreaterOrEqual(t, b.Draw(src), floor*(1-1e-9))
	}
	b.Concentration = 1e-3 // a third of the draws are too small for a number
	for range 100 {
		assert.GreaterOrEqual(t, b.Draw(src), floor*(1-1e-6))
	}
}

func TestInvalidBeta(t *testing.T) {
	for _, shape := range []float64{0, -1, math.NaN(), math.Inf(1), math.Inf(-1)} {
		for _, b := range []evidence.Beta{{Alpha: shape, Beta: 1}, {Alpha: 1, Beta: shape}} {
			assert.False(t, evidence.Valid(b))
			low, high := b.Interval(0.9)
			for _, x := range []float64{b.Mean(), evidence.Variance(b), evidence.CDF(b, 0.5), low,
				high} {
				assert.True(t, math.IsNaN(x), "%v gave %v", b, x)
			}
		}
	}
	low, _ := evidence.Beta{Alpha: 1, Beta: 1}.Interval(1)
	assert.True(t, math.IsNaN(low))
}

// The interval of a belief is the same each time and in every version. Doubt about the strength
// widens it, and without a strength it is the level's.
func TestIntervalsOfBeliefsStayTheSame(t *testing.T) {
	b := evidence.Belief{Level: evidence.Beta{Alpha: 4, Beta: 3}, Strength: 5, Successes: 2,
		Failures: 1}
	for doubt, want := range map[float64][2]float64{
		0: {0.26737092, 0.89508119}, 0.5: {0.26631559, 0.90161175},
	} {
		b.Doubt = doubt
		low, high := b.Interval(0.9)
		assert.InDelta(t, want[0], low, 1e-7, doubt)
		assert.InDelta(t, want[1], high, 1e-7, doubt)
	}
	for _, level := range []float64{0, 1} {
		low, high := b.Interval(level)
		assert.True(t, math.IsNaN(low) && math.IsNaN(high), level)
	}
	low, high := b.Level.Interval(0.9)
	b.Strength = 0
	l, h := b.Interval(0.9)
	assert.Equal(t, [2]float64{low, high}, [2]float64{l, h})
	assert.InDelta(t, 0.05, evidence.CDF(b.Level, low), 1e-9)
	assert.InDelta(t, 0.95, evidence.CDF(b.Level, high), 1e-9)
}

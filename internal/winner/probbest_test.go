//go:build !race

package winner_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/chance"
	"github.com/heedhq/heed/internal/winner"
)

// steps returns the size of a long test: few, or many with HEED_LONG.
func steps(few, many int) int {
	if os.Getenv("HEED_LONG") != "" {
		return many
	}
	return few
}

func TestProbBestOfTwo(t *testing.T) {
	// Of two beliefs with whole shapes, P(B > A) is a finite sum (Miller 2015).
	exact := func(a, b evidence.Beta) (p float64) {
		ln := func(x, y float64) float64 {
			lx, _ := math.Lgamma(x)
			ly, _ := math.Lgamma(y)
			lxy, _ := math.Lgamma(x + y)
			return lx + ly - lxy
		}
		for i := range int(b.Alpha) {
			i := float64(i)
			p += math.Exp(ln(a.Alpha+i, a.Beta+b.Beta) - math.Log(b.Beta+i) - ln(1+i,
				b.Beta) - ln(a.Alpha, a.Beta))
		}
		return p
	}
	shapes := []float64{1, 2, 7, 40, 300, 2000}
	for _, a := range shapes {
		for _, b := range shapes {
			for _, c := range shapes {
				x, y := evidence.Beta{Alpha: a, Beta: b}, evidence.Beta{Alpha: c, Beta: 30}
				got := winner.ProbBest([]evidence.Beta{x, y})
				assert.InDelta(t, exact(x, y), got[1], 1e-9, "%v %v", x, y)
				assert.InDelta(t, 1, got[0]+got[1], 1e-12)
			}
		}
	}
}

// TestProbBestOfMany compares with a dumb sum over a fine grid of the logit, with gonum's densities
// and distribution functions.
func TestProbBestOfMany(t *testing.T) {
	dumb := func(beliefs []evidence.Beta) []float64 {
		best := make([]float64, len(beliefs))
		var sum float64
		points := steps(15_000, 40_000)
		for s := range points {
			logit := -30 + 60*(float64(s)+0.5)/float64(points)
			x := 1 / (1 + math.Exp(-logit))
			for i, b := range beliefs {
				p := distuv.Beta{Alpha: b.Alpha, Beta: b.Beta}.Prob(x) * x / (1 + math.Exp(logit))
				for j, c := range beliefs {
					if j != i {
						p *= distuv.Beta{Alpha: c.Alpha, Beta: c.Beta}.CDF(x)
					}
				}
				best[i] += p
				sum += p
			}
		}
		for i := range best {
			best[i] /= sum
		}
		return best
	}
	for _, beliefs := range [][]evidence.Beta{
		{{Alpha: 1, Beta: 1}, {Alpha: 1, Beta: 1}, {Alpha: 1, Beta: 1}, {Alpha: 1, Beta: 1}},
		{{Alpha: 1, Beta: 1}, {Alpha: 30000, Beta: 31000}, {Alpha: 2, Beta: 2}},
		{{Alpha: 0.7, Beta: 0.8}, {Alpha: 1.2, Beta: 1}, {Alpha: 3, Beta: 0.9}, {Alpha: 20, Beta: 9},
			{Alpha: 5, Beta: 4}},
	} {
		got := winner.ProbBest(beliefs)
		for i, want := range dumb(beliefs) {
			assert.InDelta(t, want, got[i], 2e-6, "%v: arm %d", beliefs, i)
		}
	}
	assert.Empty(t, winner.ProbBest(nil))
	assert.Equal(t, []float64{1}, winner.ProbBest([]evidence.Beta{{Alpha: 2, Beta: 1}}))
}

// TestProbBestAtTheEdges checks what must hold of any shapes: the probabilities sum to 1, equal
// beliefs have equal ones, the order does not matter, and what is sure is sure.
func TestProbBestAtTheEdges(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	shape := func() float64 { return math.Pow(10, -3+9*rng.Float64()) }
	for range steps(60, 300) {
		beliefs := make([]evidence.Beta, 2+rng.IntN(5))
		for i := range beliefs {
			beliefs[i] = evidence.Beta{Alpha: shape(), Beta: shape()}
		}
		got := winner.ProbBest(append(beliefs, beliefs[0]))
		var sum float64
		for _, p := range got {
			require.True(t, p >= 0 && p <= 1, "%v: %v", beliefs, got)
			sum += p
		}
		assert.InDelta(t, 1, sum, 1e-9)
		assert.InDelta(t, got[0], got[len(beliefs)], 1e-9)
		turned := slices.Clone(append(beliefs, beliefs[0]))
		slices.Reverse(turned)
		back := winner.ProbBest(turned)
		slices.Reverse(back)
		assert.InDeltaSlice(t, got, back, 1e-9)
	}
	for range 2000 {
		b := evidence.Beta{Alpha: math.Pow(10, -6+21*rng.Float64()),
			Beta: math.Pow(10, -6+21*rng.Float64())}
		got := winner.ProbBest([]evidence.Beta{b, {Alpha: 1, Beta: 1}})
		require.InDelta(t, 1, got[0]+got[1], 1e-9, "%v", b)
		// Against the uniform rate, a belief wins with the probability of its mean.
		require.InDelta(t, b.Mean(), got[0], 1e-5, "%v", b)
	}
	assert.InDelta(t, 0.875, winner.ProbBest([]evidence.Beta{{Alpha: 1e308, Beta: 1e308},
		{Alpha: 1, Beta: 3}})[0], 1e-5)
	for _, extreme := range []evidence.Beta{{Alpha: 1e-300, Beta: 1e-300},
		{Alpha: 1e300, Beta: 1e300}, {Alpha: 5e-324, Beta: math.MaxFloat64}} {
		got := winner.ProbBest([]evidence.Beta{extreme, {Alpha: 2, Beta: 2}})
		assert.InDelta(t, 1, got[0]+got[1], 1e-9, "%v", extreme)
	}
	assert.InDelta(t, 1, winner.ProbBest([]evidence.Beta{{Alpha: 1, Beta: 1e6},
		{Alpha: 1e6, Beta: 1}})[1], 1e-12)
}

// TestThompsonChoosesWithItsPropensity draws choices and counts them.
func TestThompsonChoosesWithItsPropensity(t *testing.T) {
	beliefs := []evidence.Beta{{Alpha: 1.2, Beta: 1}, {Alpha: 0.8, Beta: 1}, {Alpha: 0.4, Beta: 0.5},
		{Alpha: 9, Beta: 6}}
	const n = 200_000
	counts := make([]float64, len(beliefs))
	rng := chance.Rand{State: 9}
	for range n {
		best, most := 0, -1.
		for i, b := range beliefs {
			s := chance.Beta(b.Alpha, b.Beta)
			if x := s.Draw(&rng); x > most {
				best, most = i, x
			}
		}
		counts[best]++
	}
	for i, p := range winner.ProbBest(beliefs) {
		assert.InDelta(t, p, counts[i]/n, 4.5*math.Sqrt(p*(1-p)/n))
	}
}

func BenchmarkProbBest(b *testing.B) {
	for name, beliefs := range map[string][]evidence.Beta{
		"warm": {{Alpha: 5, Beta: 2}, {Alpha: 8, Beta: 3}, {Alpha: 4, Beta: 4}, {Alpha: 2, Beta: 2}},
		"unequal": {{Alpha: 1, Beta: 1}, {Alpha: 30000, Beta: 31000}, {Alpha: 0.001, Beta: 100},
			{Alpha: 1e6, Beta: 2}},
	} {
		b.Run("arms=4/beliefs="+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				winner.ProbBest(beliefs)
			}
		})
	}
}

// A draw below the mean is at most a trace below it, and draws keep their order.
func TestDrawsAreRaised(t *testing.T) {
	b := evidence.Belief{Level: evidence.Beta{Alpha: 4, Beta: 3}, Strength: 5, Successes: 2,
		Failures: 1, Concentration: 8}
	of, floor := b.Drawn()
	assert.InDelta(t, b.Mean(), floor, 1e-7)
	assert.InDelta(t, b.Mean(), of.Mean(), 1e-12)
	sampler := chance.Beta(of.Alpha, of.Beta)
	plain, raised := chance.Rand{State: 1}, chance.Rand{State: 1}
	draws := make([][2]float64, 2000)
	for i := range draws {
		x := sampler.Draw(&plain)
		draws[i] = [2]float64{x, winner.Draw(&b, &raised)}
		if x >= floor {
			assert.Equal(t, x, draws[i][1])
			continue
		}
		assert.Less(t, draws[i][1], floor)
		assert.GreaterOrEqual(t, draws[i][1], floor*(1-chance.Trace))
	}
	slices.SortFunc(draws, func(a, b [2]float64) int { return cmp.Compare(a[0], b[0]) })
	assert.True(t, slices.IsSortedFunc(draws, func(a, b [2]float64) int {
		return cmp.Compare(a[1], b[1])
	}))
	assert.Greater(t, draws[900][1], draws[0][1])
	b.Concentration = 0
	of, floor = b.Drawn()
	assert.Equal(t, b.Level, of)
	assert.Zero(t, floor)
}

// Shapes that make no distribution give NaN.
func TestInvalidShapes(t *testing.T) {
	for _, shape := range []float64{0, -1, math.NaN(), math.Inf(1), math.Inf(-1)} {
		for _, b := range []evidence.Beta{{Alpha: shape, Beta: 1}, {Alpha: 1, Beta: shape}} {
			best := winner.ProbBest([]evidence.Beta{{Alpha: 1, Beta: 1}, b})
			assert.True(t, math.IsNaN(best[0]), "%v", b)
		}
	}
}

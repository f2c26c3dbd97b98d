//go:build !race

package evidence_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/heedhq/heed/evidence"
)

// steps returns the size of a long test: few, or many with HEED_LONG.
func steps(few, many int) int {
	if os.Getenv("HEED_LONG") != "" {
		return many
	}
	return few
}

// grid calls the function with every pair of some shapes from 1e-2 to 1e6.
func grid(t *testing.T, f func(t *testing.T, b evidence.Beta)) {
	shapes := []float64{1e-2, 0.08, 0.3, 0.5, 1, 1.5, 3, 40, 1e3, 1e6}
	for _, alpha := range shapes {
		for _, beta := range shapes {
			t.Run(fmt.Sprintf("%v,%v", alpha, beta),
				func(t *testing.T) { f(t, evidence.Beta{Alpha: alpha, Beta: beta}) })
		}
	}
}

func draw(b evidence.Beta, n int, seed uint64) []float64 {
	sampler, rng := b.Sampler(), evidence.Rand{State: seed}
	xs := make([]float64, n)
	for i := range xs {
		xs[i] = sampler.Draw(&rng)
	}
	return xs
}

// TestExponentialTail counts the draws of a million beyond the last layer. Chance passes the bound
// of five standard deviations once in a million.
func TestExponentialTail(t *testing.T) {
	const draws, end = 1_000_000, 7.69711747013104972
	rng, beyond := evidence.Rand{State: 1}, 0.
	for range draws {
		if evidence.Exp(&rng) > end {
			beyond++
		}
	}
	want := draws * math.Exp(-end)
	assert.InDelta(t, want, beyond, 5*math.Sqrt(want))
}

// TestSamplerFollowsTheDistribution compares 4,000 draws, or 20,000 with HEED_LONG, with gonum's
// distribution function, mean and variance. Chance passes the bound of the Kolmogorov–Smirnov
// statistic once in 8,000 pairs of shapes.
func TestSamplerFollowsTheDistribution(t *testing.T) {
	draws := steps(4_000, 20_000)
	n := float64(draws)
	grid(t, func(t *testing.T, b evidence.Beta) {
		want := distuv.Beta{Alpha: b.Alpha, Beta: b.Beta}
		xs := draw(b, draws, 1)
		var sum, squares float64
		for _, x := range xs {
			require.True(t, x >= 0 && x <= 1, x)
			sum += x
			squares += (x - want.Mean()) * (x - want.Mean())
		}
		sd := math.Sqrt(want.Variance())
		assert.InDelta(t, want.Mean(), sum/n, 4.5*sd/math.Sqrt(n)+1e-15)
		kurtosis := 3 + max(want.ExKurtosis(), -1.99)
		assert.InDelta(t, want.Variance(), squares/n,
			4.5*want.Variance()*math.Sqrt((kurtosis-1)/n)+1e-15)
		slices.Sort(xs)
		var d float64
		for i, x := range xs {
			p := want.CDF(x)
			if i+1 == draws || xs[i+1] > x {
				d = max(d, math.Abs(float64(i+1)/n-p))
			}
			if x < 1 && (i == 0 || xs[i-1] < x) { // what rounds to 1 is not at 1
				d = max(d, math.Abs(p-float64(i)/n))
			}
		}
		assert.Less(t, d*math.Sqrt(n), 2.2)
	})
}

func TestBetaAgreesWithGonum(t *testing.T) {
	grid(t, func(t *testing.T, b evidence.Beta) {
		want := distuv.Beta{Alpha: b.Alpha, Beta: b.Beta}
		assert.InEpsilon(t, want.Mean(), b.Mean(), 1e-12)
		assert.InEpsilon(t, want.Variance(), evidence.Variance(b), 1e-9)
		low, high := b.Interval(0.9)
		assert.True(t, 0 <= low && low <= high && high <= 1)
		for q, x := range map[float64]float64{0.05: low, 0.95: high} {
			if x > 1e-9 && x < 1-1e-9 {
				assert.InDelta(t, q, want.CDF(x), 1e-5)
			}
		}
	})
}

// TestSamplerIsBoundedEverywhere draws at shapes so small and so large that others give NaN, or
// never return.
func TestSamplerIsBoundedEverywhere(t *testing.T) {
	shapes := []float64{5e-324, 1e-308, 1e-300, 1e-100, 1e-16, 1e-4, 1e-3, 0.0833, 0.084, 1, 1e8,
		1e13, 1e100, 1e300, math.MaxFloat64}
	began := time.Now()
	for _, alpha := range shapes {
		for _, beta := range shapes {
			b := evidence.Beta{Alpha: alpha, Beta: beta}
			var ones float64
			for _, x := range draw(b, 2000, 3) {
				require.True(t, x >= 0 && x <= 1, "%v drew %v", b, x)
				ones += x / 2000
			}
			if max(alpha, beta) <= 1e300 && min(alpha, beta) >= 1e-300 {
				assert.InDelta(t, b.Mean(), ones, 0.06, "%v", b)
			}
		}
	}
	assert.Less(t, time.Since(began), 5*time.Minute)
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

func TestInvalidBeta(t *testing.T) {
	for _, shape := range []float64{0, -1, math.NaN(), math.Inf(1), math.Inf(-1)} {
		for _, b := range []evidence.Beta{{Alpha: shape, Beta: 1}, {Alpha: 1, Beta: shape}} {
			assert.False(t, evidence.Valid(b))
			low, high := b.Interval(0.9)
			for _, x := range []float64{b.Mean(), evidence.Variance(b), evidence.CDF(b, 0.5), low, high,
				draw(b, 1, 1)[0],
				evidence.ProbBest([]evidence.Beta{{Alpha: 1, Beta: 1}, b})[0]} {
				assert.True(t, math.IsNaN(x), "%v gave %v", b, x)
			}
		}
	}
	low, _ := evidence.Beta{Alpha: 1, Beta: 1}.Interval(1)
	assert.True(t, math.IsNaN(low))
}

// TestKeyKeepsPartsApart checks that a generator depends on every part, on where parts end, and on
// nothing else.
func TestKeyKeepsPartsApart(t *testing.T) {
	key := evidence.Key{A: 1, B: 2}
	first := func(r evidence.Rand) uint64 { return r.Uint64() }
	seen := make(map[uint64]string)
	for _, parts := range [][]string{{}, {""}, {"", ""}, {"ab", "c"}, {"a", "bc"}, {"abc"},
		{"abc", ""}, {"", "abc"},
		{"a\x00"}, {"a"}, {"12345678"}, {"12345678", "9"}, {"123456789"}} {
		for number := range uint64(3) {
			name := fmt.Sprint(number, parts)
			x := first(key.Rand(number, parts...))
			assert.Empty(t, seen[x], "%q draws like %q", name, seen[x])
			seen[x] = name
			assert.Equal(t, x, first(key.Rand(number, parts...)))
			assert.NotEqual(t, x, first(evidence.Key{A: 1, B: 3}.Rand(number, parts...)))
		}
	}
}

// TestKeyDerivesIndependentStreams draws twice from each of many streams that differ in one part or
// in the number: first and second draws must be uniform, and must not tell of each other.
func TestKeyDerivesIndependentStreams(t *testing.T) {
	const n, bins = 20_000, 8
	for name, stream := range map[string]func(i uint64) evidence.Rand{
		"by number": func(i uint64) evidence.Rand {
			return evidence.Key{A: 1, B: 2}.Rand(i,
				"session", "item")
		},
		"by a short part": func(i uint64) evidence.Rand {
			return evidence.Key{A: 1, B: 2}.Rand(0,
				fmt.Sprint(i), "item")
		},
		"before a long part": func(i uint64) evidence.Rand {
			return evidence.Key{A: 1, B: 2}.Rand(0, fmt.Sprint(i),
				"an item of sixteen bytes, or many more")
		},
		"by a long part": func(i uint64) evidence.Rand {
			return evidence.Key{A: 1, B: 2}.Rand(0, fmt.Sprintf("9f3c8a5e-0000-4000-8000-%012d", i),
				"item")
		},
		"by the key": func(i uint64) evidence.Rand {
			return evidence.Key{A: 0, B: i}.Rand(0, "session",
				"item")
		},
	} {
		var counts [bins][bins]float64
		for i := range uint64(n) {
			rng := stream(i)
			counts[int(rng.Float64()*bins)][int(rng.Float64()*bins)]++
		}
		var chi2 float64
		for _, row := range counts {
			for _, count := range row {
				expected := float64(n) / (bins * bins)
				chi2 += (count - expected) * (count - expected) / expected
			}
		}
		// 63 degrees of freedom: 120 is passed by chance once in 40,000.
		assert.Less(t, chi2, 120., name)
	}
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
				got := evidence.ProbBest([]evidence.Beta{x, y})
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
		got := evidence.ProbBest(beliefs)
		for i, want := range dumb(beliefs) {
			assert.InDelta(t, want, got[i], 2e-6, "%v: arm %d", beliefs, i)
		}
	}
	assert.Empty(t, evidence.ProbBest(nil))
	assert.Equal(t, []float64{1}, evidence.ProbBest([]evidence.Beta{{Alpha: 2, Beta: 1}}))
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
		got := evidence.ProbBest(append(beliefs, beliefs[0]))
		var sum float64
		for _, p := range got {
			require.True(t, p >= 0 && p <= 1, "%v: %v", beliefs, got)
			sum += p
		}
		assert.InDelta(t, 1, sum, 1e-9)
		assert.InDelta(t, got[0], got[len(beliefs)], 1e-9)
		turned := slices.Clone(append(beliefs, beliefs[0]))
		slices.Reverse(turned)
		back := evidence.ProbBest(turned)
		slices.Reverse(back)
		assert.InDeltaSlice(t, got, back, 1e-9)
	}
	for range 2000 {
		b := evidence.Beta{Alpha: math.Pow(10, -6+21*rng.Float64()),
			Beta: math.Pow(10, -6+21*rng.Float64())}
		got := evidence.ProbBest([]evidence.Beta{b, {Alpha: 1, Beta: 1}})
		require.InDelta(t, 1, got[0]+got[1], 1e-9, "%v", b)
		// Against the uniform rate, a belief wins with the probability of its mean.
		require.InDelta(t, b.Mean(), got[0], 1e-5, "%v", b)
	}
	assert.InDelta(t, 0.875, evidence.ProbBest([]evidence.Beta{{Alpha: 1e308, Beta: 1e308},
		{Alpha: 1, Beta: 3}})[0], 1e-5)
	for _, extreme := range []evidence.Beta{{Alpha: 1e-300, Beta: 1e-300},
		{Alpha: 1e300, Beta: 1e300}, {Alpha: 5e-324, Beta: math.MaxFloat64}} {
		got := evidence.ProbBest([]evidence.Beta{extreme, {Alpha: 2, Beta: 2}})
		assert.InDelta(t, 1, got[0]+got[1], 1e-9, "%v", extreme)
	}
	assert.InDelta(t, 1, evidence.ProbBest([]evidence.Beta{{Alpha: 1, Beta: 1e6},
		{Alpha: 1e6, Beta: 1}})[1], 1e-12)
}

// TestThompsonChoosesWithItsPropensity draws choices and counts them.
func TestThompsonChoosesWithItsPropensity(t *testing.T) {
	beliefs := []evidence.Beta{{Alpha: 1.2, Beta: 1}, {Alpha: 0.8, Beta: 1}, {Alpha: 0.4, Beta: 0.5},
		{Alpha: 9, Beta: 6}}
	const n = 200_000
	counts := make([]float64, len(beliefs))
	rng := evidence.Rand{State: 9}
	for range n {
		best, most := 0, -1.
		for i, b := range beliefs {
			s := b.Sampler()
			if x := s.Draw(&rng); x > most {
				best, most = i, x
			}
		}
		counts[best]++
	}
	for i, p := range evidence.ProbBest(beliefs) {
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
				evidence.ProbBest(beliefs)
			}
		})
	}
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

// A draw below the mean is at most a trace below it, and draws keep their order.
func TestDrawsAreRaised(t *testing.T) {
	b := evidence.Belief{Level: evidence.Beta{Alpha: 4, Beta: 3}, Strength: 5, Successes: 2,
		Failures: 1, Concentration: 8}
	of, floor := b.Drawn()
	assert.InDelta(t, b.Mean(), floor, 1e-7)
	assert.InDelta(t, b.Mean(), of.Mean(), 1e-12)
	sampler, plain, raised := of.Sampler(), evidence.Rand{State: 1}, evidence.Rand{State: 1}
	draws := make([][2]float64, 2000)
	for i := range draws {
		x := sampler.Draw(&plain)
		draws[i] = [2]float64{x, b.Draw(&raised)}
		if x >= floor {
			assert.Equal(t, x, draws[i][1])
			continue
		}
		assert.Less(t, draws[i][1], floor)
		assert.GreaterOrEqual(t, draws[i][1], floor*(1-evidence.Trace))
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

// A key's draws are the same in every version.
func TestDrawsStayTheSame(t *testing.T) {
	first := uint64(0)
	for _, parts := range [][]string{{"a"}, {"12345678"}, {"123456789", "c"},
		{"sixteen letters.", ""}} {
		rng := evidence.Key{A: 1, B: 2}.Rand(3, parts...)
		first = first*31 + rng.Uint64()
	}
	assert.Equal(t, uint64(0x688192a11a236909), first)
	for shapes, want := range map[evidence.Beta]float64{
		{Alpha: 3, Beta: 2}: 11998.373502541, {Alpha: 0.5, Beta: 2}: 4023.786251837,
		{Alpha: 0.01, Beta: 0.3}: 628.186451821, {Alpha: 1, Beta: 7}: 2490.387501225,
		{Alpha: 2e12, Beta: 1e12}: 13333.333356017,
	} {
		sampler, rng, sum := shapes.Sampler(), evidence.Rand{State: 7}, 0.
		for range 20_000 {
			sum += sampler.Draw(&rng)
		}
		assert.InDelta(t, want, sum, 1e-6, shapes)
	}
}

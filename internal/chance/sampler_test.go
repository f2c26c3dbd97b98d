//go:build !race

package chance_test

import (
	"fmt"
	"math"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/chance"
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
	sampler, rng := chance.Beta(b.Alpha, b.Beta), chance.Rand{State: seed}
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
	rng, beyond := chance.Rand{State: 1}, 0.
	for range draws {
		if chance.Exp(&rng) > end {
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

// TestKeyKeepsPartsApart checks that a generator depends on every part, on where parts end, and on
// nothing else.
func TestKeyKeepsPartsApart(t *testing.T) {
	key := chance.Key{A: 1, B: 2}
	first := func(r chance.Rand) uint64 { return r.Uint64() }
	seen := make(map[uint64]string)
	for _, parts := range [][]string{{}, {""}, {"", ""}, {"ab", "c"}, {"a", "bc"}, {"abc"},
		{"abc", ""}, {"", "abc"},
		{"a\x00"}, {"a"}, {"\x80\x00"}, {"\x00\x01"}, {"\x00\x80\x00"}, {"\x00\x00\x01"},
		{"12345678"}, {"12345678", "9"}, {"123456789"}} {
		for number := range uint64(3) {
			name := fmt.Sprint(number, parts)
			x := first(key.Rand(number, parts...))
			assert.Empty(t, seen[x], "%q draws like %q", name, seen[x])
			seen[x] = name
			assert.Equal(t, x, first(key.Rand(number, parts...)))
			assert.NotEqual(t, x, first(chance.Key{A: 1, B: 3}.Rand(number, parts...)))
		}
	}
}

// TestKeyDerivesIndependentStreams draws twice from each of many streams that differ in one part or
// in the number: first and second draws must be uniform, and must not depend on each other.
func TestKeyDerivesIndependentStreams(t *testing.T) {
	const n, bins = 20_000, 8
	for name, stream := range map[string]func(i uint64) chance.Rand{
		"by number": func(i uint64) chance.Rand {
			return chance.Key{A: 1, B: 2}.Rand(i,
				"session", "item")
		},
		"by a short part": func(i uint64) chance.Rand {
			return chance.Key{A: 1, B: 2}.Rand(0,
				fmt.Sprint(i), "item")
		},
		"before a long part": func(i uint64) chance.Rand {
			return chance.Key{A: 1, B: 2}.Rand(0, fmt.Sprint(i),
				"an item of sixteen bytes, or many more")
		},
		"by a long part": func(i uint64) chance.Rand {
			return chance.Key{A: 1, B: 2}.Rand(0, fmt.Sprintf("9f3c8a5e-0000-4000-8000-%012d", i),
				"item")
		},
		"by the key": func(i uint64) chance.Rand {
			return chance.Key{A: 0, B: i}.Rand(0, "session",
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

// A key's draws are the same in every version.
func TestDrawsStayTheSame(t *testing.T) {
	first := uint64(0)
	for _, parts := range [][]string{{"a"}, {"12345678"}, {"123456789", "c"},
		{"sixteen letters.", ""}} {
		rng := chance.Key{A: 1, B: 2}.Rand(3, parts...)
		first = first*31 + rng.Uint64()
	}
	assert.Equal(t, uint64(0x688192a11a236909), first)
	rng := chance.Key{A: 1, B: 2}.Rand(3, "letters", "nine letters")
	assert.Equal(t, uint64(0x715f6242acffe8c1), rng.Uint64())
	for shapes, want := range map[evidence.Beta]float64{
		{Alpha: 3, Beta: 2}: 11998.373502541, {Alpha: 0.5, Beta: 2}: 4023.786251837,
		{Alpha: 0.01, Beta: 0.3}: 628.186451821, {Alpha: 1, Beta: 7}: 2490.387501225,
		{Alpha: 2e12, Beta: 1e12}: 13333.333356017,
	} {
		sampler, rng, sum := chance.Beta(shapes.Alpha, shapes.Beta), chance.Rand{State: 7}, 0.
		for range 20_000 {
			sum += sampler.Draw(&rng)
		}
		assert.InDelta(t, want, sum, 1e-6, shapes)
	}
}

// A sample below a floor is raised to at most a billionth below it, and greater ones to more.
func TestSamplesAreRaisedInOrder(t *testing.T) {
	const floor = 0.5
	before := floor * (1 - chance.Trace)
	for _, x := range []float64{0, 1e-300, 1e-12, 0.1, 0.4, 0.5, 0.6} {
		raised := chance.Raised(x, floor)
		assert.GreaterOrEqual(t, raised, before, x)
		assert.Equal(t, x >= floor, raised >= floor, x)
		before = raised
	}
}

// Shapes that make no distribution give NaN.
func TestInvalidShapes(t *testing.T) {
	for _, shape := range []float64{0, -1, math.NaN(), math.Inf(1), math.Inf(-1)} {
		for _, b := range []evidence.Beta{{Alpha: shape, Beta: 1}, {Alpha: 1, Beta: shape}} {
			assert.True(t, math.IsNaN(draw(b, 1, 1)[0]), "%v", b)
		}
	}
}

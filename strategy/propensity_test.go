//go:build !race

package strategy_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/strategy"
)

// randomDraws believes something of each arm: of a segment as it may come about, or with levels of
// any shapes.
func randomDraws(arms int, wild bool, rng *rand.Rand) []strategy.Draw {
	from := func(low, high float64) float64 { return low * math.Pow(high/low, rng.Float64()) }
	known, strength := from(0.3, 300), from(1, 3000)
	sharpness := []float64{0, 1, 2, 5}[rng.IntN(4)]
	draws := make([]strategy.Draw, arms)
	for i := range draws {
		b := strategy.Belief{Level: evidence.Beta{Alpha: known * from(0.9, 10),
			Beta: known * from(0.9, 10)}, Strength: strength, Sharpness: sharpness}
		if wild {
			b.Level = evidence.Beta{Alpha: from(0.25, 1e4), Beta: from(0.01, 1e4)}
		}
		b.Successes, b.Failures = float64(rng.IntN(7)), float64(rng.IntN(7))
		draws[i] = strategy.Draw{Arm: strategy.ArmID(fmt.Sprint(i)), Belief: b.Keep()}
		if rng.IntN(8) == 0 {
			draws[i].Bonus = 0.2 * rng.Float64()
		}
	}
	return draws
}

// TestIntegratedPropensities are what draws show, and those of all arms sum to 1. The long form
// makes two billion draws of arms, in about two minutes of one core.
func TestIntegratedPropensities(t *testing.T) {
	thorough, cases := long(0, 1) == 1, long(12, 24)
	integrated := 0
	for number := range cases {
		rng := rand.New(rand.NewPCG(8, uint64(number)))
		arms := []int{2, 3, 5, 64}[number%4]
		n := long(10_000, 4_000_000)
		switch {
		case arms == 64 && thorough:
			n /= 10
		case arms == 64 && number > 3:
			arms = 8
		}
		draws := randomDraws(arms, number%3 == 2, rng)
		wins, random := make([]float64, arms), evidence.Rand{State: rng.Uint64()}
		for range n {
			wins[strategy.DrawArms(draws, &random)]++
		}
		var sum float64
		all := true
		for i, w := range wins {
			p, ok := strategy.BestOf(draws, i)
			if !ok {
				all = false
				break
			}
			assert.InDelta(t, p, w/float64(n), 4.5*math.Sqrt(max(p*(1-p), 1/float64(n))/float64(n))+1e-4,
				"case %d, arm %d", number, i)
			sum += p
		}
		if all {
			integrated++
			assert.InDelta(t, 1, sum, 1e-6, "case %d", number)
		}
	}
	assert.GreaterOrEqual(t, integrated, cases/2)
}

// TestTiesGoToTheFirst where rates are so near 1 that they are 1.
func TestTiesGoToTheFirst(t *testing.T) {
	b := strategy.Belief{Level: evidence.Beta{Alpha: 1, Beta: 0.02}, Strength: 5, Successes: 1,
		Sharpness: 2}
	draws := []strategy.Draw{{Arm: "a", Belief: b.Keep()}, {Arm: "b", Belief: b.Keep()}}
	first, ok := strategy.BestOf(draws, 0)
	require.True(t, ok)
	second, ok := strategy.BestOf(draws, 1)
	require.True(t, ok)
	const n = 20_000
	random, wins := evidence.Rand{State: 3}, 0.
	for range n {
		wins += float64(1 - strategy.DrawArms(draws, &random))
	}
	assert.InDelta(t, wins/n, first, 0.015)
	assert.Greater(t, first, 0.7)
	assert.InDelta(t, 1, first+second, 1e-6)
}

// The sample of an arm with a bonus lies above 1, and so above that of an arm without, whose rate
// is all but 1.
func TestABonusBeatsARateOfOne(t *testing.T) {
	favoured := strategy.Belief{Level: evidence.Beta{Alpha: 219, Beta: 3}, Strength: 7, Successes: 6,
		Failures: 1, Sharpness: 5}
	sure := strategy.Belief{Level: evidence.Beta{Alpha: 9000, Beta: 0.02}, Strength: 7, Sharpness: 5}
	draws := []strategy.Draw{{Arm: "a", Belief: favoured.Keep(), Bonus: 0.2},
		{Arm: "b", Belief: sure.Keep()}}
	const n = 4000
	random, wins := evidence.Rand{State: 3}, 0.
	for range n {
		wins += float64(1 - strategy.DrawArms(draws, &random))
	}
	sum := 0.
	for i, share := range []float64{wins / n, 1 - wins/n} {
		p, ok := strategy.BestOf(draws, i)
		require.True(t, ok)
		assert.InDelta(t, share, p, 0.01)
		sum += p
	}
	assert.Greater(t, wins/n, 0.9)
	assert.InDelta(t, 1, sum, 1e-6)
}

// Shapes that are too small, and those that take too many panels.
func TestWhatIsNotIntegratedIsCounted(t *testing.T) {
	good := strategy.Belief{Level: evidence.Beta{Alpha: 2, Beta: 3}, Strength: 5, Successes: 1,
		Failures: 1, Sharpness: 2}
	for name, change := range map[string]func(*strategy.Belief){
		"a small level":    func(b *strategy.Belief) { b.Level.Alpha = 0.2 },
		"a great strength": func(b *strategy.Belief) { b.Strength, b.Sharpness = 5e4, 10 },
		"no number":        func(b *strategy.Belief) { b.Successes = math.NaN() },
		"infinite":         func(b *strategy.Belief) { b.Level.Beta = math.Inf(1) },
		"negative":         func(b *strategy.Belief) { b.Failures = -1 },
	} {
		other := good
		change(&other)
		_, ok := strategy.BestOf([]strategy.Draw{{Arm: "a", Belief: good}, {Arm: "b", Belief: other}},
			0)
		assert.False(t, ok, name)
	}
	_, ok := strategy.BestOf([]strategy.Draw{{Arm: "a", Belief: good}, {Arm: "b", Belief: good}}, 0)
	assert.True(t, ok)
}

// BenchmarkPropensity sets the integral beside counting.
func BenchmarkPropensity(b *testing.B) {
	for _, arms := range []int{4, 16, 100} {
		rng := rand.New(rand.NewPCG(8, uint64(arms)))
		draws := make([]strategy.Draw, arms)
		for i := range draws {
			level := evidence.Beta{Alpha: 5 + 20*rng.Float64(), Beta: 10}
			belief := strategy.Belief{Level: level, Strength: 10, Successes: float64(rng.IntN(6)),
				Failures: float64(rng.IntN(6)), Sharpness: 2}
			draws[i] = strategy.Draw{Arm: strategy.ArmID(fmt.Sprint(i)), Belief: belief.Keep()}
		}
		b.Run(fmt.Sprintf("integrated/%d", arms), func(b *testing.B) {
			for b.Loop() {
				if _, ok := strategy.BestOf(draws, 0); !ok {
					b.Fatal("not integrated")
				}
			}
		})
		b.Run(fmt.Sprintf("counted/%d", arms), func(b *testing.B) {
			for b.Loop() {
				strategy.Count(strategy.Choice{}, draws, 0)
			}
		})
	}
}

//go:build !race

package strategy_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/chance"
	"github.com/heedhq/heed/strategy"
)

// randomDraws returns a random belief for each arm: one that a segment may produce, or one of any
// shapes if wild. Some beliefs have no floor, and some have the floor of another arm.
func randomDraws(arms int, wild bool, rng *rand.Rand) []answer.Draw {
	from := func(low, high float64) float64 { return low * math.Pow(high/low, rng.Float64()) }
	known, draws := from(0.3, 300), make([]answer.Draw, arms)
	for i := range draws {
		b := evidence.Belief{Level: evidence.Beta{Alpha: known * from(0.9, 10),
			Beta: known * from(0.9, 10)}}
		if wild {
			b.Level = evidence.Beta{Alpha: from(0.25, 1e4), Beta: from(0.02, 1e4)}
		}
		switch rng.IntN(4) {
		case 0: // plain
		case 1:
			b.Concentration = b.Level.Alpha + b.Level.Beta
		default:
			b.Strength = from(1, 3000)
			b.Successes, b.Failures = float64(rng.IntN(7)), float64(rng.IntN(7))
			b.Concentration = from(3, 3000)
		}
		draws[i] = answer.Draw{Arm: strategy.ArmID(fmt.Sprint(i)), Belief: b}
		if i > 0 && rng.IntN(4) == 0 {
			draws[i].Belief, draws[i].Bonus = draws[i-1].Belief, draws[i-1].Bonus
			draws[i].Belief.Concentration *= 2
		}
		if rng.IntN(8) == 0 {
			draws[i].Bonus = 0.2 * rng.Float64()
		}
	}
	return draws
}

// TestIntegratedPropensities compares propensities with the frequencies of draws. The propensities
// of all arms sum to 1, whether they are integrated or counted. The long form makes two billion
// draws of arms, in about two minutes of one core.
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
		wins, random := make([]float64, arms), chance.Rand{State: rng.Uint64()}
		for range n {
			wins[strategy.DrawArms(draws, &random)]++
		}
		counted := strategy.Counted(draws, 0)
		assert.InDelta(t, wins[0]/float64(n), counted, 0.05, "case %d, counted", number)
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

// propensities returns the propensities of all arms, and checks that they sum to 1 and are what
// draws show.
func propensities(t *testing.T, draws []answer.Draw) (all []float64) {
	const n = 20_000
	random, wins := chance.Rand{State: 3}, make([]float64, len(draws))
	for range n {
		wins[strategy.DrawArms(draws, &random)]++
	}
	sum := 0.
	for i := range draws {
		p, ok := strategy.BestOf(draws, i)
		require.True(t, ok)
		assert.InDelta(t, wins[i]/n, p, 0.015)
		all, sum = append(all, p), sum+p
	}
	assert.InDelta(t, 1, sum, 1e-6)
	return all
}

func drawsOf(beliefs ...evidence.Belief) (all []answer.Draw) {
	for i, b := range beliefs {
		all = append(all, answer.Draw{Arm: strategy.ArmID(fmt.Sprint(i)), Belief: b})
	}
	return all
}

// TestTiesGoToTheFirst where rates are so near 1 that they are 1.
func TestTiesGoToTheFirst(t *testing.T) {
	b := evidence.Belief{Level: evidence.Beta{Alpha: 1, Beta: 0.02}}
	assert.Greater(t, propensities(t, drawsOf(b, b))[0], 0.6)
}

// Arms with equal means have equal floors. If their draws are also equally sharp, they are chosen
// equally often.
func TestEqualArmsAreChosenEquallyOften(t *testing.T) {
	b := evidence.Belief{Level: evidence.Beta{Alpha: 2, Beta: 3}, Concentration: 5}
	sharp := b
	sharp.Concentration = 50
	for _, p := range propensities(t, drawsOf(b, b, b)) {
		assert.InDelta(t, 1./3, p, 1e-7)
	}
	all := propensities(t, drawsOf(b, sharp, sharp))
	assert.Greater(t, all[0], all[1])
	assert.InDelta(t, all[1], all[2], 1e-7)
	rest := evidence.Belief{Level: evidence.Beta{Alpha: 1, Beta: 3}, Concentration: 4}
	all = propensities(t, drawsOf(b, b, rest))
	assert.InDelta(t, all[0], all[1], 1e-7)
	assert.Less(t, all[2], all[0])
}

// Draws of very small shapes are close to 0, and means may differ by rounding only. Such arms are
// chosen equally often, too.
func TestEqualArmsOfHardlyAnyEvidence(t *testing.T) {
	b := evidence.Belief{Level: evidence.Beta{Alpha: 0.012, Beta: 2}, Concentration: 2.012}
	for _, p := range propensities(t, drawsOf(b, b, b, b)) {
		assert.InDelta(t, 0.25, p, 1e-6)
	}
	for _, off := range []float64{1e-12, 1e-10, 1e-9} {
		near := evidence.Belief{Level: evidence.Beta{Alpha: 2, Beta: 3}, Concentration: 5}
		other := evidence.Belief{Level: evidence.Beta{Alpha: 2 + 5*off, Beta: 3 - 5*off},
			Concentration: 5}
		assert.InDelta(t, 0.5, propensities(t, drawsOf(other, near))[0], 1e-6)
	}
}

// An arm with a bonus can have a sample above 1. It then wins against an arm without a bonus, even
// if the rate of the other arm is practically 1.
func TestABonusBeatsARateOfOne(t *testing.T) {
	draws := drawsOf(evidence.Belief{Level: evidence.Beta{Alpha: 219, Beta: 3}, Strength: 7,
		Successes: 6, Failures: 1, Concentration: 60}, evidence.Belief{Level: evidence.Beta{Alpha: 9000,
		Beta: 0.02}, Concentration: 9000})
	draws[0].Bonus = 0.2
	assert.Greater(t, propensities(t, draws)[0], 0.9)
}

// Shapes that are too small or too great, and what is no belief.
func TestWhatIsNotIntegratedIsCounted(t *testing.T) {
	good := evidence.Belief{Level: evidence.Beta{Alpha: 2, Beta: 3}, Strength: 5, Successes: 1,
		Failures: 1, Concentration: 9}
	for name, change := range map[string]func(*evidence.Belief){
		"a small level":         func(b *evidence.Belief) { b.Level.Alpha, b.Concentration = 0.002, 0 },
		"a great concentration": func(b *evidence.Belief) { b.Concentration = 1e7 },
		"just too great":        func(b *evidence.Belief) { b.Concentration = 2.2e6 },
		"no number":             func(b *evidence.Belief) { b.Successes = math.NaN() },
		"infinite":              func(b *evidence.Belief) { b.Concentration = math.Inf(1) },
		"negative":              func(b *evidence.Belief) { b.Concentration = -1 },
	} {
		other := good
		change(&other)
		_, ok := strategy.BestOf(drawsOf(good, other), 0)
		assert.False(t, ok, name)
	}
	great := good
	great.Concentration = 1.2e6
	for _, other := range []evidence.Belief{good, great} {
		_, ok := strategy.BestOf(drawsOf(good, other), 0)
		assert.True(t, ok)
	}
}

// BenchmarkPropensity sets the integral beside counting.
func BenchmarkPropensity(b *testing.B) {
	for _, arms := range []int{4, 16, 100} {
		rng := rand.New(rand.NewPCG(8, uint64(arms)))
		draws := make([]answer.Draw, arms)
		for i := range draws {
			level := evidence.Beta{Alpha: 5 + 20*rng.Float64(), Beta: 10}
			draws[i] = answer.Draw{Arm: strategy.ArmID(fmt.Sprint(i)), Belief: evidence.Belief{
				Level: level, Strength: 10, Successes: float64(rng.IntN(6)), Failures: float64(rng.IntN(6)),
				Concentration: 20 + 20*rng.Float64(),
			}}
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

// The propensity of an arm that is sure to be drawn is below 1, so that the others have one, too.
func TestThePropensityOfACertainArm(t *testing.T) {
	l := newLearner(t, strategy.Config{
		Arms: plain("a", "b"), Exploration: strategy.Exploration{Bonus: 1, MinSamples: 1},
	})
	try(t, l, strategy.Query{}, "a", -1)
	p := choose(t, l, strategy.Query{}).Propensity()
	assert.Less(t, p, 1.)
	assert.InDelta(t, 1, p, 1e-9)
}

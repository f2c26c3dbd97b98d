package strategy

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/chance"
)

func TestDispersion(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	arm := func(n int, reward func() float64) evidence.Sums {
		var tally evidence.Tally
		for range n {
			tally.Add(0.8, 0, reward(), 1)
		}
		return tally.At(1)
	}
	coin := func(p float64) func() float64 {
		return func() float64 {
			if rng.Float64() < p {
				return 1
			}
			return 0
		}
	}
	dispersion := func(arms ...evidence.Sums) float64 {
		var all spread
		for _, arm := range arms {
			all = all.plus(newSpread(arm, 0.3))
		}
		return all.dispersion()
	}
	assert.Equal(t, 1., dispersion())
	assert.InDelta(t, 1, dispersion(arm(500, coin(0.3)), arm(100, coin(0.9)), arm(1, coin(0.5))),
		1e-9, "0/1 rewards are coin tosses")
	// Graded rewards of Beta(10·m, 10·(1-m)) have an eleventh of the variance.
	graded := func(m float64) func() float64 {
		s, r := chance.Beta(10*m, 10*(1-m)),
			chance.Rand{State: rng.Uint64()}
		return func() float64 { return s.Draw(&r) }
	}
	assert.InDelta(t, 11, dispersion(arm(20_000, graded(0.3)), arm(20_000, graded(0.7))), 0.3)
	var few []evidence.Sums
	for range 10_000 {
		few = append(few, arm(3, graded(0.5)))
	}
	assert.InDelta(t, 11, dispersion(few...), 0.3, "many items of a few rewards each tell the same")
	assert.Less(t, dispersion(arm(2, func() float64 { return 0.6 })), 2.,
		"two that agree are not certainty")
	assert.EqualValues(t, maxDispersion, dispersion(arm(100_000, func() float64 { return 0.6 })))
	one, other := newSpread(few[0], 0.3), newSpread(few[1], 0.3)
	assert.InDelta(t, one.Seen, one.plus(other).minus(other).Seen, 1e-12)
	assert.InDelta(t, one.Coin, one.plus(other).minus(other).Coin, 1e-12)
	assert.Equal(t, spread{}, newSpread(evidence.Sums{Mass: 0.2, Squares: 0.02, Reward: 0.1}, 0.3),
		"less than one observation")
	assert.Equal(t, evidence.Sums{Mass: 3, Squares: 4, Reward: 1, RewardSquares: 1, Limited: 2},
		sumsWithout(evidence.Sums{Mass: 5, Squares: 5, Reward: 2, RewardSquares: 3, Limited: 4},
			evidence.Sums{Mass: 2, Squares: 1, Reward: 1, RewardSquares: 2, Limited: 2}))
	assert.Equal(t, spread{}, spread{Coin: 1, Seen: 1}.minus(spread{Coin: 1 + 1e-9, Seen: 1 + 1e-9}))
}

func TestLess(t *testing.T) {
	all, part := evidence.Sums{Mass: 3, Squares: 2, Reward: 1, RewardSquares: 0.5},
		evidence.Sums{Mass: 1, Squares: 1, Reward: 1 + 1e-9, RewardSquares: 0.25}
	want := evidence.Sums{Mass: 2, Squares: 1, Reward: 0, RewardSquares: 0.25}
	assert.Equal(t, want, sumsWithout(all, part))
}

package winner_test

import (
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/winner"
)

// TestTheDifferenceIsInItsBoundsAtEveryLook lets the means of two sides change, and looks after
// each reward of the smaller side, and each hundredth of the greater.
func TestTheDifferenceIsInItsBoundsAtEveryLook(t *testing.T) {
	lives, rewards := 300, 4000
	if os.Getenv("HEED_LONG") != "" {
		lives, rewards = 2000, 20_000
	}
	const miss = 0.1
	for name, c := range map[string]struct {
		share float64
		means func(at float64) (a, b float64) // at goes from 0 to 1
	}{
		"equal":  {0.05, func(float64) (a, b float64) { return 0.6, 0.6 }},
		"rising": {0.05, func(at float64) (a, b float64) { return 0.6 + 0.35*at, 0.6 }},
		"falling": {0.05, func(at float64) (a, b float64) {
			return 0.9 - 0.5*at, 0.9 - 0.7*at*at
		}},
		"rare success": {0.05, func(float64) (a, b float64) { return 0.03, 0.02 }},
		"rare failure": {0.05, func(float64) (a, b float64) { return 0.99, 0.97 }},
		"half":         {0.5, func(float64) (a, b float64) { return 0.7, 0.5 }},
		"a few":        {0.01, func(float64) (a, b float64) { return 0.7, 0.5 }},
	} {
		rng := rand.New(rand.NewPCG(11, 12))
		wrong := 0
		for range lives {
			var of [2]evidence.Sums
			truth := 0.
			for n := range rewards {
				a, b := c.means(float64(n) / float64(rewards))
				truth += a - b
				side, mean := 0, a
				if rng.Float64() < c.share {
					side, mean = 1, b
				}
				r := 0.
				if rng.Float64() < mean {
					r = 1
				}
				of[side] = of[side].Plus(evidence.Sums{Mass: 1, Reward: r, RewardSquares: r})
				if side == 0 && n%100 > 0 {
					continue
				}
				low, high := winner.Difference(of[0], of[1], 1, miss)
				if d := truth / float64(n+1); d < low || d > high {
					wrong++
					break
				}
			}
		}
		t.Logf("%s: %d wrong of %d", name, wrong, lives)
		assert.LessOrEqual(t, float64(wrong)/float64(lives), miss, name)
	}
}

// Of 50 rewards with a variance of 1/200 in their mean, the bounds are √(2/200 · log(2/miss²)) from
// the middle, and twice the variance is like half of the rewards.
func TestTheDifferenceByTheFormula(t *testing.T) {
	of := func(n float64) evidence.Sums {
		return evidence.Sums{Mass: n, Reward: n / 2, RewardSquares: n / 2}
	}
	low, high := winner.Difference(of(50), of(1e12), 1, 0.1)
	assert.InDelta(t, 0.23018, high, 1e-5)
	assert.InDelta(t, -high, low, 1e-9)
	_, twice := winner.Difference(of(100), of(1e12), 2, 0.1)
	assert.InDelta(t, high, twice, 1e-9)
}

// A difference of means in [0, 1] is in [-1, 1].
func TestTheDifferenceOfFewIsWithinItsRange(t *testing.T) {
	good := evidence.Sums{Mass: 5, Squares: 5, Reward: 5, RewardSquares: 5}
	bad := evidence.Sums{Mass: 5, Squares: 5}
	_, high := winner.Difference(good, bad, 1, 0.1)
	assert.Equal(t, 1., high)
	low, _ := winner.Difference(bad, good, 1, 0.1)
	assert.Equal(t, -1., low)
}

func TestTheDifferenceNarrows(t *testing.T) {
	width := func(n float64) float64 {
		a := evidence.Sums{Mass: 19 * n, Reward: 14 * n, RewardSquares: 14 * n}
		b := evidence.Sums{Mass: n, Reward: 0.6 * n, RewardSquares: 0.6 * n}
		low, high := winner.Difference(a, b, 1, 0.1)
		return high - low
	}
	assert.InDelta(t, 2, width(0.5), 1e-9, "nothing is known")
	last := math.Inf(1)
	for n := 2.; n < 1e6; n *= 2 {
		assert.Less(t, width(n), last+1e-9)
		last = width(n)
	}
	assert.Less(t, last, 0.006)
}

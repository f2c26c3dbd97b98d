package evidence

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/heedhq/heed/internal/chance"
)

// A Belief is what is believed of the rate at which one arm succeeds for one item. In the simplest
// case that is its Level alone, which then includes the item's Successes and Failures. If Strength
// is positive, the Level is the rate of the whole segment, and the item's rate lies around it:
// Beta(s·m + Successes, s·(1-m) + Failures) for strength s and level m. It is immutable.
type Belief struct {
	Level     Beta    `json:"level"`
	Strength  float64 `json:"strength,omitempty"`
	Successes float64 `json:"successes,omitempty"`
	Failures  float64 `json:"failures,omitempty"`
	// Doubt is the standard deviation of the logarithm of Strength. Draws treat the strength as
	// known. Intervals do not.
	Doubt float64 `json:"doubt,omitempty"`
	// Concentration is the sum of the shapes of the Beta distribution that is drawn from. Its mean is
	// the belief's mean, and a greater concentration makes draws sharper. A draw below the mean is
	// raised to just below it: see [Belief.Draw]. 0 means that the Level is drawn.
	Concentration float64 `json:"concentration,omitempty"`
}

// Mean returns the expected reward of the arm for the item.
func (b Belief) Mean() float64 { return b.given(b.Level.Mean()) }

// Interval returns the bounds between which the arm's rate lies with a probability of level, with
// equal tails. If the Level is not the whole belief they are quantiles of 4,096 draws, always the
// same ones. Doubt gives each draw its strength: before any evidence, all values of 1/√Strength
// count alike. For a level outside of (0, 1) they are NaN.
func (b Belief) Interval(level float64) (low, high float64) {
	if b.Strength == 0 || math.IsNaN(b.Level.Mean()) || !(level > 0 && level < 1) {
		return b.Level.Interval(level)
	}
	draws := make([]float64, 4096)
	levels := chance.Beta(b.Level.Alpha, b.Level.Beta)
	rng := chance.Key{A: uint64(len(draws))}.Rand(0)
	for i := range draws {
		at, strength := levels.Draw(&rng), b.Strength
		if b.Doubt > 0 {
			strength *= math.Exp(b.Doubt * (math.Sqrt2*math.Erfinv(2*rng.Float64()-1) - b.Doubt/2))
		}
		own := chance.Beta(max(strength*at+b.Successes, leastOwnShape),
			max(strength*(1-at)+b.Failures, leastOwnShape))
		draws[i] = own.Draw(&rng)
	}
	slices.Sort(draws)
	out := int((1 - level) / 2 * float64(len(draws)))
	return draws[out], draws[len(draws)-1-out]
}

// leastOwnShape keeps a drawn level of exactly 0 or 1 a distribution.
const leastOwnShape = 1e-9

// given returns the item's mean at a level.
func (b *Belief) given(level float64) float64 {
	if b.Strength == 0 {
		return level
	}
	return (b.Strength*level + b.Successes) / (b.Strength + b.Successes + b.Failures)
}

// Drawn returns the distribution that is drawn from, and the floor to which lower draws are raised.
// The floor is the mean, rounded to 24 bits, so that two means that differ by rounding only have
// the same floor.
func (b *Belief) Drawn() (of Beta, floor float64) {
	if b.Concentration == 0 {
		return b.Level, 0
	}
	mean := b.Mean()
	return Beta{Alpha: b.Concentration * mean, Beta: b.Concentration * (1 - mean)},
		math.Round(mean*(1<<24)) / (1 << 24)
}

// Draw draws the arm's rate, as a choice does, for a rule of choosing that a host writes. It takes
// one number of src. A draw below the floor becomes a sample that is at most a billionth of the
// floor below it. If all were the floor, the first of several arms with the same mean would win too
// often. If the belief is not valid, the draw is NaN.
func (b *Belief) Draw(src rand.Source) float64 {
	of, floor := b.Drawn()
	s := chance.Beta(of.Alpha, of.Beta)
	return chance.Raised(s.Draw(&chance.Rand{State: src.Uint64()}), floor)
}

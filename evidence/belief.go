package evidence

import (
	"math"
	"slices"
)

// A Belief is what is believed of the rate at which one arm succeeds for one item. In the simplest
// case that is its Level alone. If Strength is positive, the Level is the rate of the whole
// segment, and the item's rate lies around it: Beta(s·m + Successes, s·(1-m) + Failures) for
// strength s and level m. It is immutable.
type Belief struct {
	Level     Beta    `json:"level"`
	Strength  float64 `json:"strength,omitempty"`
	Successes float64 `json:"successes,omitempty"`
	Failures  float64 `json:"failures,omitempty"`
	// Sharpness is how many times strength and evidence count when the item's own rate is drawn. A
	// draw below the mean is replaced by the mean. 0: the item's own rate is not drawn, and its
	// mean at the drawn level is used.
	Sharpness float64 `json:"sharpness,omitempty"`
	// Doubt is the standard deviation of the logarithm of Strength. Draws treat the strength as
	// known. Intervals do not.
	Doubt float64 `json:"doubt,omitempty"`

	level *Sampler // of Level, where it is kept; it does not change
}

// Keep returns the belief prepared for drawing. A model should keep its beliefs so.
func (b Belief) Keep() Belief {
	level := b.Level.Sampler()
	b.level = &level
	return b
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
	b = b.Keep()
	draws := make([]float64, 4096)
	rng := Key{A: uint64(len(draws)), B: 0}.Rand(0)
	for i := range draws {
		at := b.level.Draw(&rng)
		one := b
		if b.Doubt > 0 {
			one.Strength *= math.Exp(b.Doubt * (math.Sqrt2*math.Erfinv(2*rng.Float64()-1) - b.Doubt/2))
		}
		draws[i] = one.own(at, 1, &rng)
	}
	slices.Sort(draws)
	out := int((1 - level) / 2 * float64(len(draws)))
	return draws[out], draws[len(draws)-1-out]
}

// given returns the item's mean at a level.
func (b *Belief) given(level float64) float64 {
	if b.Strength == 0 {
		return level
	}
	return (b.Strength*level + b.Successes) / (b.Strength + b.Successes + b.Failures)
}

// Plain reports whether draws of the arm's rate are draws of the Level.
func (b *Belief) Plain() bool {
	return b.Strength == 0 || b.Sharpness == 0 && b.Successes == 0 && b.Failures == 0
}

// Draw draws the arm's rate.
func (b *Belief) Draw(r *Rand) float64 {
	var level float64
	if b.level != nil {
		level = b.level.Draw(r)
	} else {
		s := b.Level.Sampler()
		level = s.Draw(r)
	}
	mean := b.given(level)
	if b.Strength == 0 || b.Sharpness == 0 {
		return mean
	}
	return max(b.own(level, b.Sharpness, r), mean)
}

// own draws the item's own rate at a level.
func (b *Belief) own(level, sharpness float64, r *Rand) float64 {
	s := Beta{
		Alpha: max(sharpness*(b.Strength*level+b.Successes), leastOwnShape),
		Beta:  max(sharpness*(b.Strength*(1-level)+b.Failures), leastOwnShape),
	}.Sampler()
	return s.Draw(r)
}

// leastOwnShape keeps a drawn level of exactly 0 or 1 a distribution.
const leastOwnShape = 1e-9

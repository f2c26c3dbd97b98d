package winner

import (
	"math"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/chance"
)

// Drawn returns the distribution of a belief that is drawn from, and the floor to which lower draws
// are raised. The floor is the mean, rounded to 24 bits, so that two means that differ by rounding
// only have the same floor.
func Drawn(b *evidence.Belief) (of evidence.Beta, floor float64) {
	if b.Concentration == 0 {
		return b.Level, 0
	}
	mean := b.Mean()
	return evidence.Beta{Alpha: b.Concentration * mean, Beta: b.Concentration * (1 - mean)},
		math.Round(mean*(1<<24)) / (1 << 24)
}

// Draw draws the arm's rate. A draw below the floor becomes a sample that is at most [Trace] below
// it. If all were the floor, the first of several arms with the same mean would win too often.
func Draw(b *evidence.Belief, r *chance.Rand) float64 {
	of, floor := Drawn(b)
	s := chance.Beta(of.Alpha, of.Beta)
	x := s.Draw(r)
	if x < floor {
		// The sample falls with x. The logarithm keeps very small draws apart.
		below := math.Log(floor / max(x, math.SmallestNonzeroFloat64))
		return floor - Trace*floor*below/(1+below)
	}
	return x
}

// Trace is how far below its floor a sample can be, as a fraction of the floor.
const Trace = 1e-9

package winner

import (
	"math"

	"github.com/heedhq/heed/evidence"
)

// tunedFor is for how many rewards of the smaller side [Difference] is the narrowest.
const tunedFor = 50

// Difference returns bounds of the difference of the means of two sides, whose rewards in [0, 1]
// were drawn at random by sides. The bounds hold at all looks together: the probability that they
// ever leave the difference out is about miss. They are by the mixture of Robbins (1970) for sums
// of the estimated variance (Waudby-Smith et al. 2024), so that means may change over time. Each
// side has two more successes and two more failures in its variance, because a few equal rewards
// would have no variance. wide is how many times greater the variance is than of independent
// rewards.
//
// [Gap] holds for any number of rewards, and needs twice as many for the same width.
func Difference(a, b evidence.Sums, wide, miss float64) (low, high float64) {
	n := min(a.Mass, b.Mass) / wide
	if n < 1 {
		return -1, 1
	}
	variance := wide * (varianceOf(a) + varianceOf(b))
	half := math.Sqrt(variance * (1 + tunedFor/n) * math.Log((1+n/tunedFor)/(miss*miss)))
	middle := a.Mean() - b.Mean()
	return max(middle-half, -1), min(middle+half, 1)
}

// varianceOf returns the variance of the mean of independent rewards.
func varianceOf(s evidence.Sums) float64 {
	n := s.Mass + 4
	mean := (s.Reward + 2) / n
	return max((s.RewardSquares+2)/n-mean*mean, 0) / s.Mass
}

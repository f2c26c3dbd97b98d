package evidence

import (
	"math"

	"gonum.org/v1/gonum/mathext"
	"gonum.org/v1/gonum/stat/distuv"
)

// Beta is a belief about a rate in [0, 1]: the Beta distribution with two positive, finite shapes.
// As a posterior of rewards, Alpha is a prior's plus the rewards seen, and Beta a prior's plus what
// the rewards lacked to 1. Beta{1, 1} is the even prior, under which every rate is as likely.
type Beta struct {
	Alpha float64 `json:"alpha"`
	Beta  float64 `json:"beta"`
}

// valid reports whether both shapes are positive and finite. The other methods return NaN where it
// is false.
func (b Beta) valid() bool { return positive(b.Alpha) && positive(b.Beta) }

func positive(x float64) bool { return x > 0 && x <= math.MaxFloat64 }

// Mean returns the expected rate.
func (b Beta) Mean() float64 {
	if !b.valid() {
		return math.NaN()
	}
	return 1 / (1 + b.Beta/b.Alpha)
}

// variance returns the variance of the rate.
func (b Beta) variance() float64 {
	if !b.valid() {
		return math.NaN()
	}
	rest := Beta{b.Beta, b.Alpha}
	return b.Mean() * rest.Mean() / (b.Alpha + b.Beta + 1)
}

// cdf returns the probability that the rate is at most x: the regularised incomplete beta function.
// For shapes that sum to more than 1e8 it is taken from the normal distribution with the same mean
// and variance, and for shapes below 1e-6 from the two points 0 and 1.
func (b Beta) cdf(x float64) float64 {
	switch {
	case !b.valid() || math.IsNaN(x):
		return math.NaN()
	case x <= 0:
		return 0
	case x >= 1:
		return 1
	case b.Alpha+b.Beta > 1e8:
		return distuv.UnitNormal.CDF((x - b.Mean()) / math.Sqrt(b.variance()))
	case b.Alpha < 1e-6 || b.Beta < 1e-6:
		return Beta{b.Beta, b.Alpha}.Mean()
	}
	return mathext.RegIncBeta(b.Alpha, b.Beta, x)
}

// Interval returns the equal-tailed credible interval of this level, in (0, 1): the rate is below
// it, and above it, with probability (1-level)/2 each. It is found by bisection of the distribution
// function, to about 1e-12 of the width of [0, 1], for shapes in [1e-3, 1e6].
func (b Beta) Interval(level float64) (low, high float64) {
	if !b.valid() || !(level > 0 && level < 1) {
		return math.NaN(), math.NaN()
	}
	return b.quantile((1 - level) / 2), b.quantile((1 + level) / 2)
}

func (b Beta) quantile(p float64) float64 {
	low, high := 0., 1.
	for high-low > 1e-13 {
		mid := low + (high-low)/2
		if b.cdf(mid) < p {
			low = mid
		} else {
			high = mid
		}
	}
	return low + (high-low)/2
}

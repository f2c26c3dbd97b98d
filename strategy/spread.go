package strategy

import "github.com/heedhq/heed/evidence"

// A spread compares the variance of rewards with the variance of coin tosses of the same means.
// Spreads of several arms or items add up, each measured around its own mean.
type spread struct {
	Coin float64 // the variance of tosses, times their number less one
	Seen float64 // the variance of the rewards, times the same
}

// newSpread returns the spread of the rewards in some sums. Both parts are equal for rewards of 0
// and 1. One observation has no spread. leastWeight means what it means in
// [evidence.Sums.Effective]. Tosses of mean m have the variance m(1−m), which estimated from n
// tosses is too small by one n-th.
func newSpread(s evidence.Sums, leastWeight float64) spread {
	n := s.Effective(leastWeight)
	if n <= 1 {
		return spread{}
	}
	mean := s.Mean()
	variance := max(s.RewardSquares/s.Mass-mean*mean, 0)
	// The second term corrects mean·(1-mean) for the mean's own error.
	return spread{Coin: (n-1)*mean*(1-mean) + variance, Seen: n * variance}
}

// plus returns the spread of both.
func (s spread) plus(o spread) spread { return spread{s.Coin + o.Coin, s.Seen + o.Seen} }

// minus returns the spread without o, which is a part of it.
func (s spread) minus(o spread) spread {
	return spread{max(s.Coin-o.Coin, 0), max(s.Seen-o.Seen, 0)}
}

// maxDispersion bounds [spread.dispersion].
const maxDispersion = 100

// dispersion returns how much more evidence each reward is than a toss of a coin: 1 for rewards of
// 0 and 1, more for graded ones, and at most [maxDispersion]. Four tosses are added, so that a few
// rewards that happen to agree are not certainty.
func (s spread) dispersion() float64 {
	const tosses = 4 * 0.25 // each with the variance of a fair coin
	return min(max((tosses+s.Coin)/(tosses+s.Seen), 1), maxDispersion)
}

// sumsWithout returns the sums s without their part o. A result below 0 is a
// rounding error, and becomes 0.
func sumsWithout(s, o evidence.Sums) evidence.Sums {
	return evidence.Sums{
		Mass: max(s.Mass-o.Mass, 0), Squares: max(s.Squares-o.Squares, 0),
		Reward: max(s.Reward-o.Reward, 0), RewardSquares: max(s.RewardSquares-o.RewardSquares, 0),
		Limited: max(s.Limited-o.Limited, 0),
	}
}

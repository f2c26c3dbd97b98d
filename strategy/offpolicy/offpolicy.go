package offpolicy

import (
	"fmt"
	"math"
	"slices"

	"github.com/heedhq/heed/internal/valid"
)

// A Logged is one choice that was made and rewarded, in the order of the choices, seen from another
// policy: what would that policy have earned? Log each choice's [strategy.Choice.Propensity] and
// its reward, and ask the other policy how probable the same arm would have been.
type Logged struct {
	// Propensity is the probability with which the arm was chosen, in (0, 1], and no less than 1e-100
	// of Target. NaN is refused: leave out choices whose propensity is unknown.
	Propensity float64
	Target     float64 // with which the other policy would have chosen it, in [0, 1]
	Reward     float64 // what it earned, in [0, 1]

	// Predicted is what a model expected the arm to earn, and Baseline what it expects the other
	// policy to earn in the same place: the sum, over the arms, of their target probabilities times
	// their predicted rewards. Both in [0, 1]; [DoublyRobust] alone reads them.
	Predicted float64
	Baseline  float64
}

// An Estimate is an estimate of a policy's mean reward from choices that another policy made.
type Estimate struct {
	Value float64 // the estimate, within the interval
	// Low and High are the interval of the level that was asked for. It holds with about that
	// probability, for a log of any length, and of a learner that adapts. It needs true propensities,
	// the order in which the choices were made, and a mean reward that stays as it is. It is the same
	// for all estimators, and wide for an arm that was given up: between 0 and 1 at worst.
	Low, High float64
	// Unsteady reports that parts of the log contradict each other: the mean reward changed in the
	// meantime, or the log is not in the order of the choices. Then the interval goes from 0 to 1,
	// and Value is a mean over that time.
	Unsteady bool
	// Effective is how many choices made by the policy the log is worth: (Σw)²/Σw² of weights
	// Target/Propensity.
	Effective float64
}

// SelfNormalized estimates a policy's mean reward by weighing each reward with Target/Propensity,
// divided by the sum of the weights (Hájek 1971): a little bias for less variance, and never
// outside of the range of the rewards. The level of the interval is in (0, 1). Bad input is a
// [*heed.InputError].
func SelfNormalized(log []Logged, level float64) (Estimate, error) {
	var weights, rewards float64
	for i := range log {
		if log[i].validate(i) == nil {
			weights += log[i].weight()
			rewards += log[i].weight() * log[i].Reward
		}
	}
	if weights == 0 {
		weights = 1 // the policy would have chosen no logged arm: avoid 0/0
	}
	value := rewards / weights
	return estimate(log, level, func(*Logged, float64) float64 { return value })
}

// DoublyRobust takes a model's prediction and corrects it by the weighed error of the model on what
// was seen (Dudík, Langford and Li 2011). It has no bias, whatever the model, and the less variance
// the better the model is. Without a model, with Predicted and Baseline 0, it is the estimate by
// inverse propensities (Horvitz and Thompson 1952).
func DoublyRobust(log []Logged, level float64) (Estimate, error) {
	for i, l := range log {
		switch {
		case !(l.Predicted >= 0 && l.Predicted <= 1):
			return Estimate{}, logFault(i, "Predicted", "must be in [0, 1]")
		case !(l.Baseline >= 0 && l.Baseline <= 1):
			return Estimate{}, logFault(i, "Baseline", "must be in [0, 1]")
		}
	}
	return estimate(log, level, func(l *Logged, weight float64) float64 {
		return l.Baseline + weight*(l.Reward-l.Predicted)
	})
}

func (l *Logged) weight() float64 { return l.Target / l.Propensity }

func (l *Logged) validate(i int) error {
	switch {
	case !(l.Propensity > 0 && l.Propensity <= 1):
		return logFault(i, "Propensity", "must be in (0, 1]")
	case !(l.Target >= 0 && l.Target <= 1):
		return logFault(i, "Target", "must be in [0, 1]")
	case !(l.Reward >= 0 && l.Reward <= 1):
		return logFault(i, "Reward", "must be in [0, 1]")
	case l.weight() > maxWeight:
		return logFault(i, "Propensity", "must not be that small beside Target")
	}
	return nil
}

// maxWeight keeps the squares of weights, and their sums, finite.
const maxWeight = 1e100

func logFault(i int, field, reason string) error {
	return fmt.Errorf("offpolicy: %w", valid.Input(fmt.Sprintf("log[%d].%s", i, field), "%s", reason))
}

// estimate returns the mean of the terms, and the interval of the log.
func estimate(
	log []Logged, level float64, term func(l *Logged, weight float64) float64,
) (Estimate, error) {
	switch {
	case len(log) < 2:
		return Estimate{}, fmt.Errorf("offpolicy: %w",
			valid.Input("log", "must have at least two choices"))
	case !(level > 0 && level < 1):
		return Estimate{}, fmt.Errorf("offpolicy: %w", valid.Input("level", "must be in (0, 1)"))
	}
	var mean, weights, weightSquares float64
	gained, lost := make([]float64, len(log)), make([]float64, len(log))
	for i := range log {
		l := &log[i]
		if err := l.validate(i); err != nil {
			return Estimate{}, err
		}
		w := l.weight()
		weights += w
		weightSquares += w * w
		mean += (term(l, w) - mean) / float64(i+1)
		gained[i], lost[i] = w*l.Reward, w*(1-l.Reward)
	}
	var e Estimate
	e.Low, e.High = bounds(gained, lost, 1-level)
	if e.Unsteady = contradicts(gained, lost, e.Low, e.High, 1-level); e.Unsteady {
		e.Low, e.High = 0, 1
	}
	e.Value = min(max(mean, e.Low), e.High)
	if weightSquares > 0 {
		e.Effective = weights * weights / weightSquares
	}
	return e, nil
}

// bounds returns an interval of the mean, which is wrong with a probability of about miss. Terms
// are gained and lost by each choice. The sum of both is its weight.
func bounds(gained, lost []float64, miss float64) (low, high float64) {
	var many, squares float64
	for i := range gained {
		w := gained[i] + lost[i]
		many += w / float64(len(gained))
		squares += w / float64(len(gained)) * w
	}
	enough := against(miss/2) * unlikely(many*many/squares)
	low, high = lowest(gained, enough), 1-lowest(lost, enough)
	if many > 1 {
		// The policy's arms came more often than by the propensities, and both bounds lie too far
		// inside. They are moved outwards, never inwards.
		gained, lost = slices.Clone(gained), slices.Clone(lost)
		for i := range gained {
			gained[i] /= many
			lost[i] /= many
		}
		low, high = min(low, lowest(gained, enough)), max(high, 1-lowest(lost, enough))
	}
	return low, high
}

// contradicts reports whether no mean lies in the interval of the whole log and in the intervals of
// its halves and quarters. In a log with a steady mean that has a probability of at most about
// 2*miss: each of the six parts is asked at miss/6.
func contradicts(gained, lost []float64, low, high, miss float64) bool {
	for parts := 2; parts <= 4; parts *= 2 {
		for i := range parts {
			from, to := i*len(gained)/parts, (i+1)*len(gained)/parts
			if to-from >= 2 {
				l, h := bounds(gained[from:to], lost[from:to], miss/6)
				low, high = max(low, l), min(high, h)
			}
		}
	}
	return low >= high
}

// against returns the logarithm of the capital that speaks against a mean: see lowest. By Ville's
// inequality (1939), -ln(miss) is enough, for any bets and however many. These bets are made for
// the length of the log. In a long log the logarithm of the capital is then a Brownian motion whose
// steps add up to a variance of twice what is enough. It ever comes to L with the probability
// Φ(-√2L) + e^-L/2, which is set to miss.
func against(miss float64) float64 {
	low, high := 0., -math.Log(miss)
	for range 50 {
		if l := (low + high) / 2; math.Erfc(math.Sqrt(l))/2+math.Exp(-l)/2 > miss {
			low = l
		} else {
			high = l
		}
	}
	return high
}

// unlikely is how much less is enough if weights differ, by the part of the choices that the log is
// worth: see [Estimate]. Both bounds then move together with the weights, and where too many came
// both are moved outwards, so each is wrong more seldom than by itself. The factor was set by
// simulations: TestIntervalsHoldAsOftenAsStated has others.
func unlikely(effective float64) float64 {
	const least = 0.7
	if !(effective > least) { // also if no weight is positive
		return least
	}
	return min(effective, 1)
}

// lowest returns a lower bound of the mean of terms that are at least 0. Each term may depend on
// those before it, if its expectation given these is the mean.
//
// For a mean of v one bets on each term, with stakes that only the terms before decide, so that one
// can't gain on average if v is right. A capital with a logarithm that is enough, at any time,
// speaks against v. This is the capital process of Waudby-Smith and Ramdas (2024), for weighted
// rewards as in Waudby-Smith et al. (2022).
func lowest(terms []float64, enough float64) float64 {
	stakes := stakesOf(terms, enough)
	low, high := 0., 1.
	for range 30 {
		if v := (low + high) / 2; ruin(terms, stakes, v, enough) {
			low = v
		} else {
			high = v
		}
	}
	return low
}

// stakesOf returns the bet on each term. A bet narrows the bound most if the term has the variance
// of those before it. The first bet assumes the variance of a fair coin.
func stakesOf(terms []float64, enough float64) []float64 {
	stakes, best := make([]float64, len(terms)), 2*enough/float64(len(terms))
	n, mean, squares := 1., 0.5, 0.25
	for i, x := range terms {
		stakes[i] = math.Sqrt(best / (squares / n))
		n++
		delta := x - mean // Welford's update (1962), because terms may differ by much
		mean += delta / n
		squares += delta * (x - mean)
	}
	return stakes
}

// ruin reports whether the bets against a mean of v win as much as speaks against it.
func ruin(terms, stakes []float64, v, enough float64) bool {
	const most = 0.75 // of the capital is staked
	var capital float64
	for i, x := range terms {
		capital += math.Log1p(min(stakes[i], most/v) * (x - v))
		if capital >= enough {
			return true
		}
	}
	return false
}

package offpolicy

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/heedhq/heed"
)

// A Logged is one choice that was made and rewarded, seen from another policy: what would that policy have earned? Log
// each choice's [strategy.Choice.Propensity] and its reward, and ask the other policy how probable the same arm would have been.
type Logged struct {
	// Propensity is the probability with which the arm was chosen, in (0, 1], and no less than 1e-100 of Target. NaN, as choices
	// have whose propensity is unknown, is refused: leave them out.
	Propensity float64
	Target     float64 // with which the other policy would have chosen it, in [0, 1]
	Reward     float64 // what it earned, in [0, 1]

	// Predicted is what a model expected the arm to earn, and Baseline what it expects the other policy to earn in the same
	// place: the sum, over the arms, of their target probabilities times their predicted rewards. Both in [0, 1];
	// [DoublyRobust] alone reads them.
	Predicted float64
	Baseline  float64
}

// An Estimate is an estimate of a policy's mean reward from choices that another policy made.
type Estimate struct {
	Value     float64 // the estimate
	Low, High float64 // the interval of the level that was asked for, by the normal approximation
	// Effective is how many choices of its own the log is worth to the policy: (Σw)²/Σw² of weights Target/Propensity. With
	// fewer than thirty, the interval is not to be trusted: that of an arm which a learner has long given up is far too
	// narrow, as the log hardly shows what else the arm might have earned.
	Effective float64
}

// InversePropensity estimates a policy's mean reward by weighing each reward with Target/Propensity (Horvitz and Thompson
// 1952). It has no bias, and a large variance where the policies differ much. The level of the interval is in (0, 1). What
// is not valid is a [*heed.InputError].
func InversePropensity(log []Logged, level float64) (Estimate, error) {
	return estimate(log, level, func(l *Logged, weight, _ float64) float64 { return weight * l.Reward })
}

// SelfNormalized divides by the sum of the weights instead of their number (Hájek 1971): a little bias for less variance,
// and never outside of the range of the rewards.
func SelfNormalized(log []Logged, level float64) (Estimate, error) {
	var weights, rewards float64
	for i := range log {
		if log[i].validate(i) == nil {
			weights += log[i].weight()
			rewards += log[i].weight() * log[i].Reward
		}
	}
	if weights == 0 {
		weights = 1 // the policy would have chosen none of the logged arms: there is nothing to divide
	}
	value := rewards / weights
	// The terms are the estimator's linear part, by the delta method, around its value.
	return estimate(log, level, func(l *Logged, weight, n float64) float64 {
		return value + weight*(l.Reward-value)*n/weights
	})
}

// DoublyRobust takes a model's prediction and corrects it by the weighed error of the model on what was seen (Dudík,
// Langford and Li 2011). It has no bias, whatever the model, and the less variance the better the model is.
func DoublyRobust(log []Logged, level float64) (Estimate, error) {
	for i, l := range log {
		switch {
		case !(l.Predicted >= 0 && l.Predicted <= 1):
			return Estimate{}, logFault(i, "Predicted", "must be in [0, 1]")
		case !(l.Baseline >= 0 && l.Baseline <= 1):
			return Estimate{}, logFault(i, "Baseline", "must be in [0, 1]")
		}
	}
	return estimate(log, level, func(l *Logged, weight, _ float64) float64 {
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
	return fmt.Errorf("offpolicy: %w", &heed.InputError{Field: fmt.Sprintf("log[%d].%s", i, field), Reason: reason})
}

// estimate returns the mean of the terms with its interval.
func estimate(log []Logged, level float64, term func(l *Logged, weight, n float64) float64) (Estimate, error) {
	switch {
	case len(log) < 2:
		return Estimate{}, fmt.Errorf("offpolicy: %w", &heed.InputError{Field: "log", Reason: "must have at least two choices"})
	case !(level > 0 && level < 1):
		return Estimate{}, fmt.Errorf("offpolicy: %w", &heed.InputError{Field: "level", Reason: "must be in (0, 1)"})
	}
	n := float64(len(log))
	var mean, squares, weights, weightSquares float64
	for i := range log {
		l := &log[i]
		if err := l.validate(i); err != nil {
			return Estimate{}, err
		}
		w := l.weight()
		weights += w
		weightSquares += w * w
		// Welford's update (1962), as weights may differ by much.
		x := term(l, w, n)
		delta := x - mean
		mean += delta / float64(i+1)
		squares += delta * (x - mean)
	}
	half := distuv.UnitNormal.Quantile((1+level)/2) * math.Sqrt(squares/(n-1)/n)
	e := Estimate{Value: mean, Low: mean - half, High: mean + half}
	if weightSquares > 0 {
		e.Effective = weights * weights / weightSquares
	}
	return e, nil
}

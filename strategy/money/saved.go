package money

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/offpolicy"
)

// A charge is a choice with its outcome, as compare reads it.
type charge struct {
	Arm        strategy.ArmID
	Propensity float64 // with which the arm was chosen, in (0, 1]
	Quality    float64 // the reward, in [0, 1]
	Cost       float64 // at least 0
	Latency    time.Duration
}

// Savings compare choices with what each arm alone would have done in their place. Money is in the
// host's unit.
type Savings struct {
	Choices int           `json:"choices"`  // that were compared
	LeftOut int           `json:"left_out"` // their propensity is not known
	Cost    float64       `json:"cost"`     // of all of them
	Quality float64       `json:"quality"`  // the mean reward, in [0, 1]
	Latency time.Duration `json:"latency"`  // the mean
	Level   float64       `json:"level"`    // of the intervals
	Arms    []Instead     `json:"arms,omitempty"`
}

// An Instead is what always choosing one arm would have changed. Each interval holds with about
// the probability of the level, if the arm's costs and qualities did not change in the meantime.
type Instead struct {
	Arm strategy.ArmID `json:"arm"`
	// how often it was. 0: it is unknown, and Saved and Gained are empty
	Chosen int `json:"chosen"`
	// Saved is how much less all choices cost than with this arm alone; less than 0: they cost more.
	// If each of at least ten choices of the arm cost the same, always choosing it costs exactly
	// that, and both bounds are the value.
	Saved Bounds `json:"saved"`
	// Gained is how much greater the mean reward was, in [-1, 1].
	Gained Bounds `json:"gained"`
	// Unsteady reports that the arm's costs or qualities changed in the meantime, so that an interval
	// would be wrong: see [offpolicy.Estimate].
	Unsteady bool `json:"unsteady,omitempty"`
}

// Bounds are an estimate with its interval.
type Bounds struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// Saved compares the choices of a learner that a filter lets pass and that have an outcome with
// what each of its arms alone would have done. The filter's Stage does not matter. The quality of a
// choice is the mean of its outcomes, and its cost and latency are the last outcome's. The level of
// the intervals is in (0, 1); 0 means 0.9. Choices whose propensity is not known are left out. If
// arms were not permitted for some of the choices, filter for those for which they were. It
// computes the propensity of each choice, which may take a millisecond, so run it for reports.
func Saved(ctx context.Context, learner *strategy.Learner, f strategy.ChoiceFilter,
	level float64) (Savings, error) {
	f.Stage = strategy.Observed
	var log []charge
	left := 0 // choices whose propensity is not known
	for r, err := range learner.History(ctx, f) {
		if err != nil {
			return Savings{}, fmt.Errorf("money: %w", err)
		}
		p := r.Choice.Propensity()
		if r.Result == nil || !(p > 0) {
			left++
			continue
		}
		log = append(log, charge{r.Choice.Arm, p, (r.Mean + 1) / 2, r.Result.Cost, r.Result.Latency})
	}
	slices.Reverse(log)
	var arms []strategy.ArmID
	for _, arm := range learner.Config().Arms {
		arms = append(arms, arm.ID)
	}
	s, err := compare(log, arms, level)
	s.LeftOut = left
	return s, err
}

// fewestPrices is how many equal costs are a price. With fewer, the next cost may be another one,
// and an interval is needed.
const fewestPrices = 10

// compare does what [Saved] does, for a log in the order of the choices. Costs are divided by the
// greatest one, because an estimate is of numbers in [0, 1]. For a log of less than two choices the
// result is empty. A bad log or level is a [*heed.InputError]. An arm that was never chosen can't
// be estimated, and has only its name. An arm whose choices all cost the same has a price, which
// needs no estimate. All others are estimated by weighing each of the arm's choices by one over its
// propensity.
func compare(log []charge, arms []strategy.ArmID, level float64) (Savings, error) {
	s := Savings{Choices: len(log), Level: cmp.Or(level, 0.9)}
	if !(s.Level > 0 && s.Level < 1) {
		return s, fmt.Errorf("money: %w", valid.Input("level",
			"must be in (0, 1), or 0 for the default"))
	}
	var most float64
	for i, e := range log {
		if !(e.Cost >= 0 && !math.IsInf(e.Cost, 0)) {
			return s, fmt.Errorf("money: %w", valid.Input(fmt.Sprintf("log[%d].Cost", i),
				"must be at least 0, and finite"))
		}
		most = max(most, e.Cost)
		s.Cost += e.Cost
		s.Quality += e.Quality / float64(len(log))
		s.Latency += e.Latency / time.Duration(len(log))
	}
	if len(log) < 2 {
		return s, nil
	}
	for _, arm := range arms {
		in := Instead{Arm: arm}
		price, constant := 0., true
		for _, e := range log {
			if e.Arm == arm {
				constant = constant && (in.Chosen == 0 || e.Cost == price)
				in.Chosen, price = in.Chosen+1, e.Cost
			}
		}
		if in.Chosen == 0 {
			s.Arms = append(s.Arms, in)
			continue
		}
		quality, err := always(log, arm, s.Level, func(e *charge) float64 { return e.Quality })
		if err != nil {
			return s, err
		}
		in.Gained, in.Unsteady = Bounds{s.Quality - quality.Value, s.Quality - quality.High,
			s.Quality - quality.Low}, quality.Unsteady
		switch n := float64(len(log)); {
		case constant && in.Chosen >= fewestPrices:
			all := n*price - s.Cost
			in.Saved = Bounds{all, all, all}
		case most > 0:
			cost, err := always(log, arm, s.Level, func(e *charge) float64 { return e.Cost / most })
			if err != nil {
				return s, err
			}
			in.Unsteady = in.Unsteady || cost.Unsteady
			in.Saved = Bounds{cost.Value*most*n - s.Cost, cost.Low*most*n - s.Cost,
				cost.High*most*n - s.Cost}
		}
		s.Arms = append(s.Arms, in)
	}
	return s, nil
}

// always estimates the mean of what an arm alone would have earned or cost: the policy that chooses
// it with a probability of 1. What is estimated is in [0, 1].
func always(log []charge, arm strategy.ArmID, level float64,
	of func(*charge) float64) (offpolicy.Estimate, error) {
	logged := make([]offpolicy.Logged, len(log))
	for i := range log {
		logged[i] = offpolicy.Logged{Propensity: log[i].Propensity, Reward: of(&log[i])}
		if log[i].Arm == arm {
			logged[i].Target = 1
		}
	}
	return offpolicy.SelfNormalized(logged, level)
}

package overview

import (
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/strategy"
)

// Sure returns how probable it is that each arm is the best. Rates whose distribution is no beta's are taken for the beta with their mean and
// the width of their interval.
func Sure(arms []strategy.ArmReport) []float64 {
	beliefs := make([]evidence.Beta, len(arms))
	for i, arm := range arms {
		beliefs[i] = likeBeta(arm)
	}
	return evidence.ProbBest(beliefs)
}

func likeBeta(arm strategy.ArmReport) evidence.Beta {
	if arm.Belief.Strength == 0 {
		return arm.Belief.Level
	}
	mean := min(max(arm.Mean, 1e-6), 1-1e-6)
	const ninety = 2 * 1.6449 // standard deviations that a normal's interval of 90 % is wide
	deviation := max((arm.High-arm.Low)/ninety, 1e-6)
	strength := max(mean*(1-mean)/(deviation*deviation)-1, 1e-3)
	return evidence.Beta{Alpha: strength * mean, Beta: strength * (1 - mean)}
}

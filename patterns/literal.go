package patterns

import (
	"time"

	"github.com/heedhq/heed/evidence"
)

// This file has the arithmetic of the learning-systems design as it stands there, for [Config.Literal].

// literalSlack is how far the design lets a faded total miss its gate.
const literalSlack = 0.01

// literalConditions are all on faded mass. None is on when the pattern last helped.
func literalConditions(m *Maturity, t *evidence.Tally, now time.Time) []Condition {
	s := t.At(evidence.InstantOf(now))
	total, ratio := s.Mass, 0.
	if total <= literalSlack {
		total = 0
	} else {
		ratio = harmfulMass(s) / total
	}
	return []Condition{
		newCondition(Established, fadedMass, total, atLeast, float64(m.MinFeedback)-literalSlack),
		newCondition(Deprecated, harmfulPart, ratio, moreThan, m.Deprecation),
		newCondition(Proven, fadedHelp, s.Reward, atLeast, float64(m.MinHelpful)-literalSlack),
		newCondition(Proven, harmfulPart, ratio, lessThan, m.MaxHarmful),
	}
}

// literalWeight is helpful/(helpful+harmful) and never less than the floor. Without evidence it is 1, as there is no prior.
func literalWeight(c *Criteria, s evidence.Sums) float64 {
	if s.Mass <= 0 {
		return 1
	}
	return max(c.Floor, s.Reward/s.Mass)
}

package patterns

import (
	"time"

	"github.com/heedhq/heed/evidence"
)

// This is the arithmetic of the learning-systems design as it stands there, for [Config.Literal]. It differs from ours in
// what the gates are on, and in what happens to the numbers that time has made small.

// literalSlack is by how much the design lets a faded total miss its gate.
const literalSlack = 0.01

// literalGates has all gates on faded mass, and none on when it last helped.
func literalGates(m *Maturity, t *evidence.Tally, now time.Time) []Gate {
	s := t.At(evidence.InstantOf(now))
	total, ratio := s.Mass, 0.
	if total <= literalSlack {
		total = 0
	} else {
		ratio = harmfulMass(s) / total
	}
	return []Gate{
		newGate(Established, FadedMass, total, AtLeast, float64(m.MinFeedback)-literalSlack),
		newGate(Deprecated, HarmfulPart, ratio, MoreThan, m.Deprecation),
		newGate(Proven, FadedHelp, s.Reward, AtLeast, float64(m.MinHelpful)-literalSlack),
		newGate(Proven, HarmfulPart, ratio, LessThan, m.MaxHarmful),
	}
}

// literalWeight is helpful/(helpful+harmful) and never less than the floor, without a prior: 1 where there is nothing.
func literalWeight(c *Criteria, s evidence.Sums) float64 {
	if s.Mass <= 0 {
		return 1
	}
	return max(c.Floor, s.Reward/s.Mass)
}

// literalDeprecated compares counts, which do not fade.
func literalDeprecated(c *Criteria, t *evidence.Tally) bool {
	n := t.Positive.N + t.Negative.N
	return n >= uint64(c.MinFeedback) && float64(t.Negative.N) > c.MaxHarmful*float64(n)+tolerance
}

// literalStrength weighs an outcome by its score, also where it was harmful.
func literalStrength(s Score) float64 { return float64(s.Value) / 100 }

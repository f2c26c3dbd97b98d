package patterns

import (
	"fmt"
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
	mass := func(x float64) string { return fmt.Sprintf("%.3f", x) }
	atLeast := func(n int) string { return fmt.Sprintf("at least %.2f", float64(n)-literalSlack) }
	enough := func(x float64, n int) bool { return x >= float64(n)-literalSlack-tolerance }
	return []Gate{
		{Established, "a faded mass", mass(total), atLeast(m.MinFeedback), enough(total, m.MinFeedback)},
		{Deprecated, whatShare, share(ratio), "more than " + share(m.Deprecation), ratio > m.Deprecation+tolerance},
		{Proven, "a faded helpful mass", mass(s.Reward), atLeast(m.MinHelpful), enough(s.Reward, m.MinHelpful)},
		{Proven, whatShare, share(ratio), "less than " + share(m.MaxHarmful), ratio < m.MaxHarmful-tolerance},
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

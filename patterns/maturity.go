package patterns

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/faults"
)

// Maturity says when a pattern is which of [Candidate], [Established], [Proven] and [Deprecated]. Gates of evidence are on
// counts, which do not fade, and ratios are of masses, which do:
//
//	deprecated   at least MinFeedback observations, harmful share > Deprecation
//	candidate    fewer than MinFeedback observations
//	proven       at least MinHelpful helpful ones, harmful share < MaxHarmful, the last helpful one within Recency
//	established  otherwise
//
// The first that holds is the state. So time alone brings a pattern from proven to established, and nowhere else. The
// zero value of each field means its default.
type Maturity struct {
	HalfLife    time.Duration // after which an observation counts half. 0 means 90 days
	MinFeedback int           // 0 means 3
	MinHelpful  int           // 0 means 5
	MaxHarmful  float64       // in (0, Deprecation]. 0 means 0.15
	Deprecation float64       // in (0, 1]. 0 means 0.3
	// Recency is how old the last helpful observation of a proven pattern may be. 0 means the half-life.
	Recency     time.Duration
	Multipliers Multipliers // zero means 0.5, 1, 1.5
}

// Multipliers are what the score of a pattern is multiplied by, according to its state. That of a deprecated and of an
// inverted pattern is 0.
type Multipliers struct{ Candidate, Established, Proven float64 }

// Of returns the multiplier of a state.
func (m Multipliers) Of(s State) float64 {
	switch s {
	case Candidate:
		return m.Candidate
	case Established:
		return m.Established
	case Proven:
		return m.Proven
	default:
		return 0
	}
}

const quarter = 90 * 24 * time.Hour

func (m Maturity) withDefaults() Maturity {
	m.HalfLife = cmp.Or(m.HalfLife, quarter)
	m.MinFeedback = cmp.Or(m.MinFeedback, 3)
	m.MinHelpful = cmp.Or(m.MinHelpful, 5)
	m.MaxHarmful = cmp.Or(m.MaxHarmful, 0.15)
	m.Deprecation = cmp.Or(m.Deprecation, 0.3)
	m.Recency = cmp.Or(m.Recency, m.HalfLife)
	m.Multipliers = cmp.Or(m.Multipliers, Multipliers{0.5, 1, 1.5})
	return m
}

func (m Maturity) validate() error {
	var found faults.List
	found.Join(evidence.Policy{HalfLife: m.HalfLife}.Validate())
	found.Check(m.MinFeedback > 0, "MinFeedback", m.MinFeedback, "must not be negative")
	found.Check(m.MinHelpful > 0, "MinHelpful", m.MinHelpful, "must not be negative")
	found.Check(m.Deprecation > 0 && m.Deprecation <= 1, "Deprecation", m.Deprecation, "must be in (0, 1], or 0 for the default")
	found.Check(m.MaxHarmful > 0 && m.MaxHarmful <= m.Deprecation, "MaxHarmful", m.MaxHarmful, "must be positive and at most Deprecation")
	found.Check(m.Recency > 0, "Recency", m.Recency, "must not be negative")
	x := m.Multipliers
	found.Check(x.Candidate >= 0 && x.Candidate <= x.Established && x.Established <= x.Proven && x.Proven <= 1e6, "Multipliers", x,
		"must be in [0, 1e6] and not fall from candidate to proven")
	return found.Err()
}

// A Gate is one condition of a state, with what there is and what it takes.
type Gate struct {
	State State // the state that it leads to
	What  Measure
	Have  float64
	Bound Bound // how Have must compare with Need
	Need  float64
	Met   bool
}

// A Measure is what a gate looks at: its text is for people.
type Measure string

// What gates look at. Shares and rates are in [0, 1].
const (
	Observations  Measure = "observations"
	HelpfulOnes   Measure = "helpful observations"
	HarmfulPart   Measure = "a harmful share"
	DaysSinceHelp Measure = "days since it last helped"
	FadedMass     Measure = "a faded mass"
	FadedHelp     Measure = "a faded helpful mass"
	FailureRate   Measure = "a failure rate"
	NewSuccesses  Measure = "successes since the inversion"
)

func (m Measure) format(x float64) string {
	switch m {
	case HarmfulPart, FailureRate:
		return share(x)
	case FadedMass, FadedHelp:
		return fmt.Sprintf("%.3f", x)
	case DaysSinceHelp:
		return fmt.Sprintf("%.1f", x)
	default:
		return fmt.Sprint(x)
	}
}

// A Bound says how a number must compare with another.
type Bound string

// The bounds. What differs by rounding alone is the same.
const (
	AtLeast  Bound = "at least"
	AtMost   Bound = "at most"
	MoreThan Bound = "more than"
	LessThan Bound = "less than"
)

// tolerance is by how much a number may miss a bound by rounding alone.
const tolerance = 1e-9

func newGate(s State, what Measure, have float64, bound Bound, need float64) Gate {
	g := Gate{State: s, What: what, Have: have, Bound: bound, Need: need}
	switch bound {
	case AtLeast:
		g.Met = have >= need-tolerance
	case AtMost:
		g.Met = have <= need+tolerance
	case MoreThan:
		g.Met = have > need+tolerance
	case LessThan:
		g.Met = have < need-tolerance
	}
	return g
}

func (g Gate) String() string {
	verdict := "missed"
	if g.Met {
		verdict = "met"
	}
	return fmt.Sprintf("%s needs %s: %s %s, has %s: %s", g.State, g.What, g.Bound, g.What.format(g.Need), g.What.format(g.Have), verdict)
}

// A gating judges evidence, in one of two ways: see [Maturity] and [literalGates].
type gating func(m *Maturity, t *evidence.Tally, now time.Time) []Gate

// gates returns the conditions of [Maturity] in a fixed order. How long ago it last helped is none where it never did, as
// another gate of proven is missed then.
func gates(m *Maturity, t *evidence.Tally, now time.Time) []Gate {
	ratio := harmfulShare(t)
	all := []Gate{
		newGate(Established, Observations, float64(t.Positive.N+t.Negative.N), AtLeast, float64(m.MinFeedback)),
		newGate(Deprecated, HarmfulPart, ratio, MoreThan, m.Deprecation),
		newGate(Proven, HelpfulOnes, float64(t.Positive.N), AtLeast, float64(m.MinHelpful)),
		newGate(Proven, HarmfulPart, ratio, LessThan, m.MaxHarmful),
	}
	if t.Positive.N > 0 {
		all = append(all, newGate(Proven, DaysSinceHelp, days(now.Sub(t.Positive.Last.Time())), AtMost, days(m.Recency)))
	}
	return all
}

// stateOf returns the first state whose gates are met, of deprecated, candidate, proven and established.
func stateOf(gates []Gate) State {
	met := map[State]bool{Established: true, Deprecated: true, Proven: true}
	for _, g := range gates {
		met[g.State] = met[g.State] && g.Met
	}
	switch {
	case !met[Established]:
		return Candidate
	case met[Deprecated]:
		return Deprecated
	case met[Proven]:
		return Proven
	default:
		return Established
	}
}

// harmfulShare returns the part of the mass that is harmful, and 0 where there is none. As all of it fades alike, it does
// not depend on when it is read; it is read when it was the most, so that it never fades away to nought by nought.
func harmfulShare(t *evidence.Tally) float64 {
	s := t.At(t.Last())
	if s.Mass <= 0 {
		return 0
	}
	return harmfulMass(s) / s.Mass
}

func harmfulMass(s evidence.Sums) float64 { return max(s.Mass-s.Reward, 0) }

func days(d time.Duration) float64 { return d.Hours() / 24 }

// share writes a share to a hundredth of a percent, so that one hardly reads as the bound that it misses.
func share(x float64) string { return strconv.FormatFloat(math.Round(1e4*x)/100, 'f', -1, 64) + "%" }

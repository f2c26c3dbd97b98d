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

// Maturity says when a pattern is [Candidate], [Established], [Proven] or [Deprecated]. Gates of evidence are on counts,
// which do not fade. Shares are of masses, which fade.
//
//	deprecated   at least MinFeedback observations, harmful share > Deprecation
//	candidate    fewer than MinFeedback observations
//	proven       at least MinHelpful helpful ones, harmful share < MaxHarmful, the last helpful one within Recency
//	established  otherwise
//
// The first that holds is the state. Time alone makes a proven pattern established, and changes no other state. The zero value
// of each field means its default.
type Maturity struct {
	HalfLife    time.Duration // after which an observation counts half. 0 means 90 days
	MinFeedback int           // 0 means 3
	MinHelpful  int           // 0 means 5
	MaxHarmful  float64       // in (0, Deprecation]. 0 means 0.15
	Deprecation float64       // in (0, 1]. 0 means 0.3
	// Recency is the greatest age of the last helpful observation of a proven pattern. 0 means the half-life.
	Recency time.Duration
	// Multipliers are the factors of a candidate's score, an established pattern's and a proven one's. They do not fall. That
	// of any other state is 0. Zero means 0.5, 1 and 1.5.
	Multipliers [3]float64
}

// multiplier returns the factor of a state.
func (m *Maturity) multiplier(s State) float64 {
	switch s {
	case Candidate:
		return m.Multipliers[0]
	case Established:
		return m.Multipliers[1]
	case Proven:
		return m.Multipliers[2]
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
	m.Multipliers = cmp.Or(m.Multipliers, [3]float64{0.5, 1, 1.5})
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
	found.Check(x[0] >= 0 && x[0] <= x[1] && x[1] <= x[2] && x[2] <= 1e6, "Multipliers", x, "must be in [0, 1e6] and must not fall")
	return found.Err()
}

// A Condition is one condition of a state: what a pattern or a criterion has, and what the state takes. Its text is for
// people.
type Condition struct {
	State State   // the state that it leads to; or "rehabilitated"
	What  string  // such as "helpful observations"
	Have  float64 // shares and rates are in [0, 1]
	Bound string  // how Have must compare with Need: "at least", "at most", "more than" or "less than"
	Need  float64
	Met   bool // a difference by rounding alone does not matter
}

// What conditions look at.
const (
	observations  = "observations"
	helpfulOnes   = "helpful observations"
	harmfulPart   = "a harmful share"
	daysSinceHelp = "days since it last helped"
	fadedMass     = "a faded mass"
	fadedHelp     = "a faded helpful mass"
	failureRate   = "a failure rate"
	newSuccesses  = "successes since the inversion"
)

// The bounds.
const (
	atLeast  = "at least"
	atMost   = "at most"
	moreThan = "more than"
	lessThan = "less than"
)

// rehabilitated stands for the state of a pattern whose inversion has ended.
const rehabilitated State = "rehabilitated"

// tolerance is how far rounding alone may move a number.
const tolerance = 1e-9

func newCondition(s State, what string, have float64, bound string, need float64) Condition {
	c := Condition{State: s, What: what, Have: have, Bound: bound, Need: need}
	switch bound {
	case atLeast:
		c.Met = have >= need-tolerance
	case atMost:
		c.Met = have <= need+tolerance
	case moreThan:
		c.Met = have > need+tolerance
	case lessThan:
		c.Met = have < need-tolerance
	}
	return c
}

func (c Condition) String() string {
	verdict := "missed"
	if c.Met {
		verdict = "met"
	}
	return fmt.Sprintf("%s needs %s: %s %s, has %s: %s", c.State, c.What, c.Bound, c.number(c.Need), c.number(c.Have), verdict)
}

func (c Condition) number(x float64) string {
	switch c.What {
	case harmfulPart, failureRate:
		return share(x)
	case fadedMass, fadedHelp:
		return fmt.Sprintf("%.3f", x)
	case daysSinceHelp:
		return fmt.Sprintf("%.1f", x)
	default:
		return fmt.Sprint(x)
	}
}

// conditions returns the conditions of [Maturity] in a fixed order, or those of the learning-systems design. That it last
// helped some time ago is no condition where it never did; another condition of proven is missed then.
func (c *Config) conditions(t *evidence.Tally, now time.Time) []Condition {
	m := &c.Maturity
	if c.Literal {
		return literalConditions(m, t, now)
	}
	ratio := harmfulShare(t)
	all := append(make([]Condition, 0, 9), // room for those of an inversion
		newCondition(Established, observations, float64(t.Positive.N+t.Negative.N), atLeast, float64(m.MinFeedback)),
		newCondition(Deprecated, harmfulPart, ratio, moreThan, m.Deprecation),
		newCondition(Proven, helpfulOnes, float64(t.Positive.N), atLeast, float64(m.MinHelpful)),
		newCondition(Proven, harmfulPart, ratio, lessThan, m.MaxHarmful))
	if t.Positive.N > 0 {
		all = append(all, newCondition(Proven, daysSinceHelp, days(now.Sub(t.Positive.Last.Time())), atMost, days(m.Recency)))
	}
	return all
}

// stateOf returns the first state whose conditions are met, of deprecated, candidate, proven and established.
func stateOf(conditions []Condition) State {
	established, deprecated, proven := true, true, true
	for _, c := range conditions {
		switch c.State {
		case Established:
			established = established && c.Met
		case Deprecated:
			deprecated = deprecated && c.Met
		case Proven:
			proven = proven && c.Met
		}
	}
	switch {
	case !established:
		return Candidate
	case deprecated:
		return Deprecated
	case proven:
		return Proven
	default:
		return Established
	}
}

// harmfulShare returns the part of the mass that is harmful, and 0 if there is no mass. All mass fades alike, so the share does
// not depend on the time. It is computed at the time of the greatest mass, so that it never becomes 0/0.
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

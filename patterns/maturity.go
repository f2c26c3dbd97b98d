package patterns

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/heedhq/heed/evidence"
)

// maturity decides when a pattern is a candidate, established, proven or deprecated. Gates of
// evidence are on counts, which do not fade. Shares are of masses, which fade.
//
//	deprecated   at least MinFeedback observations, harmful share > Deprecation
//	candidate    fewer than MinFeedback observations
//	proven       at least MinHelpful helpful ones, harmful share < MaxHarmful, the last helpful one
//	             within Recency
//	established  otherwise
//
// The first that holds is the state. Time alone makes a proven pattern established, and changes no
// other state.
type maturity struct {
	MinFeedback int
	MinHelpful  int
	MaxHarmful  float64
	Deprecation float64
	Recency     time.Duration // the greatest age of the last helpful observation of a proven pattern
}

// multiplier returns the factor that a state puts on a score. The factors are the design's.
func multiplier(state string) float64 {
	switch state {
	case candidate:
		return 0.5
	case established:
		return 1
	case proven:
		return 1.5
	default:
		return 0
	}
}

// quarter is the default half-life of patterns and criteria.
const quarter = 90 * 24 * time.Hour

// The values are the learning-systems design's.
func (m maturity) withDefaults(halfLife time.Duration) maturity {
	m.MinFeedback = cmp.Or(m.MinFeedback, 3)
	m.MinHelpful = cmp.Or(m.MinHelpful, 5)
	m.MaxHarmful = cmp.Or(m.MaxHarmful, 0.15)
	m.Deprecation = cmp.Or(m.Deprecation, 0.3)
	m.Recency = cmp.Or(m.Recency, halfLife)
	return m
}

// A Condition is one condition of a state: what a pattern or a criterion has, and what the state
// takes. Its text is for people.
type Condition struct {
	// State is the state that it leads to, "rehabilitated", or "planned" for what plans need in
	// addition.
	State string
	// What names what is compared, for example "helpful observations".
	What string
	// Have is the value and Need the bound. Shares and rates are in [0, 1].
	Have float64
	// Bound is how Have must compare with Need: "at least", "at most", "more than" or "less than".
	Bound string
	Need  float64
	// Met reports that it holds. A difference by rounding alone does not matter.
	Met bool
}

const (
	rehabilitated = "rehabilitated" // the inversion of a pattern ended
	inPlans       = "planned"       // plans recommend a pattern
)

// tolerance is how far rounding alone may move a number.
const tolerance = 1e-9

// newCondition compares a value with a bound. Sums of faded masses differ in the last digits, so a
// difference by rounding does not matter.
func newCondition(state string, what string, have float64, bound string, need float64) Condition {
	c := Condition{State: state, What: what, Have: have, Bound: bound, Need: need}
	switch bound {
	case "at least":
		c.Met = have >= need-tolerance
	case "at most":
		c.Met = have <= need+tolerance
	case "more than":
		c.Met = have > need+tolerance
	case "less than":
		c.Met = have < need-tolerance
	}
	return c
}

// String describes the condition, and whether it is met.
func (c Condition) String() string {
	verdict := "missed"
	if c.Met {
		verdict = "met"
	}
	return fmt.Sprintf("%s needs %s: %s %s, has %s: %s", c.State, c.What, c.Bound, c.number(c.Need),
		c.number(c.Have), verdict)
}

// number writes a value in the unit of its condition.
func (c Condition) number(x float64) string {
	switch c.What {
	case "a harmful share", "a failure rate":
		return share(x)
	case "a faded mass", "a faded helpful mass":
		return fmt.Sprintf("%.3f", x)
	case "days since it last helped", "days since its last evidence":
		return fmt.Sprintf("%.1f", x)
	default:
		return fmt.Sprint(x)
	}
}

// conditions returns the conditions of [maturity] in a fixed order, or the learning-systems
// design's. That it last helped some time ago is no condition where it never did; another condition
// of proven is missed then. They are the whole explanation of a state, because [stateOf] looks at
// them alone.
func (c *Config) conditions(t *evidence.Tally, now time.Time) []Condition {
	m := &c.tuning.Maturity
	if c.tuning.Literal {
		return literalConditions(m, t, now)
	}
	ratio := harmfulShare(t)
	all := append(make([]Condition, 0, 9), // room for the conditions of an inversion
		newCondition(established, "observations", float64(t.Positive.N+t.Negative.N), "at least",
			float64(m.MinFeedback)),
		newCondition(deprecated, "a harmful share", ratio, "more than", m.Deprecation),
		newCondition(proven, "helpful observations", float64(t.Positive.N), "at least",
			float64(m.MinHelpful)),
		newCondition(proven, "a harmful share", ratio, "less than", m.MaxHarmful))
	if t.Positive.N > 0 {
		all = append(all, m.recent(t, now))
	}
	return all
}

// recent is the one condition that depends on the time.
func (m *maturity) recent(t *evidence.Tally, now time.Time) Condition {
	return newCondition(proven, "days since it last helped", days(now.Sub(t.Positive.Last.Time())),
		"at most", days(m.Recency))
}

// stateOf returns the first state whose conditions are met, of deprecated, candidate, proven and
// established. The condition of established is the number of observations, so without it the
// pattern is a candidate, whatever its shares.
func stateOf(conditions []Condition) string {
	met := func(state string) bool {
		return !slices.ContainsFunc(conditions, func(c Condition) bool {
			return c.State == state && !c.Met
		})
	}
	switch {
	case !met(established):
		return candidate
	case met(deprecated):
		return deprecated
	case met(proven):
		return proven
	default:
		return established
	}
}

// harmfulShare returns the part of the mass that is harmful, and 0 if there is no mass. All mass
// fades alike, so the share does not depend on the time. It is computed at the time of the greatest
// mass, so that it never becomes 0/0.
func harmfulShare(t *evidence.Tally) float64 {
	s := t.At(t.Last())
	if s.Mass <= 0 {
		return 0
	}
	return harmfulMass(s) / s.Mass
}

// harmfulMass returns the mass of failures. It is never negative, although sums are rounded.
func harmfulMass(s evidence.Sums) float64 { return max(s.Mass-s.Reward, 0) }

func days(d time.Duration) float64 { return d.Hours() / 24 }

// share writes a share to a hundredth of a percent, so that one hardly reads as the bound that it
// misses.
func share(x float64) string {
	return strconv.FormatFloat(math.Round(1e4*x)/100, 'f', -1, 64) + "%"
}

// This file contains the arithmetic of the learning-systems design, which only [SpecConfig] sets.

const literalSlack = 0.01 // how far the design lets a faded total miss its gate

// literalConditions all compare faded mass. When the pattern last helped does not matter.
func literalConditions(m *maturity, t *evidence.Tally, now time.Time) []Condition {
	s := t.At(evidence.InstantOf(now))
	total, ratio := s.Mass, 0.
	if total <= literalSlack {
		total = 0
	} else {
		ratio = harmfulMass(s) / total
	}
	return []Condition{
		newCondition(established, "a faded mass", total, "at least",
			float64(m.MinFeedback)-literalSlack),
		newCondition(deprecated, "a harmful share", ratio, "more than", m.Deprecation),
		newCondition(proven, "a faded helpful mass", s.Reward, "at least",
			float64(m.MinHelpful)-literalSlack),
		newCondition(proven, "a harmful share", ratio, "less than", m.MaxHarmful),
	}
}

// literalWeight is helpful/(helpful+harmful) and never less than the floor. Without evidence it is
// 1, because there is no prior.
func literalWeight(s evidence.Sums) float64 {
	if s.Mass <= 0 {
		return 1
	}
	return max(criterionFloor, s.Reward/s.Mass)
}

// inversion decides when a pattern becomes an anti-pattern, and when it returns from that.
//
// A pattern is inverted, once, when it has at least MinObservations observations and at least
// FailureRatio of them are failures. These are counts, which do not fade, since it was last
// rehabilitated. While it is inverted, it reads as two: itself, and its anti-pattern, which has its
// content after "AVOID: " and is not stored.
//
// An inverted pattern goes on collecting evidence. It is rehabilitated when it has had
// MinObservations successes since the inversion, and its harmful share no longer deprecates it
// ([maturity]).
type inversion struct {
	MinObservations int
	FailureRatio    float64
}

const avoid = "AVOID: " // the design's prefix of an anti-pattern

// The values are the learning-systems design's.
func (v inversion) withDefaults() inversion {
	v.MinObservations = cmp.Or(v.MinObservations, 3)
	v.FailureRatio = cmp.Or(v.FailureRatio, 0.6)
	return v
}

// inverts reports whether these observations make an anti-pattern.
func (v *inversion) inverts(c Observations) bool {
	return c.total() >= uint64(v.MinObservations) &&
		float64(c.Failures) >= v.FailureRatio*float64(c.total())-tolerance
}

// reason describes how often a pattern failed.
func (c Observations) reason() string {
	return fmt.Sprintf("Failed %d/%d times (%d%% failure rate)", c.Failures, c.total(),
		percent(c.Failures, c.total()))
}

// percent returns a part in hundredths of the whole, rounded half up. It is 0 if the whole is.
func percent(part, whole uint64) uint64 {
	if whole == 0 {
		return 0
	}
	return (200*part + whole) / (2 * whole)
}

// warning returns the anti-pattern of an inverted pattern with these observations. The content is
// cut to the limit of a pattern, so that the reason always has room.
func (p Pattern) warning(counts Observations) Pattern {
	anti := p.clone()
	anti.ID, anti.Anti, anti.State, anti.Twin = p.Twin, true, inverted, p.ID
	anti.Override, anti.By = "", By{}
	anti.Base, anti.Inverted = Observations{}, Observations{}
	anti.Reason = counts.minus(p.Base).reason()
	about := strings.TrimRight(stripPrefixes(p.Content), ". \t\n")
	room := maxContent - len(avoid) - len(anti.Reason) - len(". …")
	if len(about) > room {
		about = strings.ToValidUTF8(about[:room], "") + "…"
	}
	anti.Content = avoid + about + ". " + anti.Reason
	return anti
}

// stripPrefixes removes prohibitions from the front of a text, however often they are repeated.
// Without it, a pattern "NEVER: x" that fails would read "AVOID: NEVER: x".
func stripPrefixes(text string) string {
	prefixes := []string{"AVOID:", "DO NOT:", "NEVER:"}
	for again := true; again; {
		again = false
		text = strings.TrimSpace(text)
		for _, p := range prefixes {
			if len(text) >= len(p) && strings.EqualFold(text[:len(p)], p) {
				text, again = text[len(p):], true
			}
		}
	}
	return text
}

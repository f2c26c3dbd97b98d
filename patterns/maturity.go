package patterns

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/heedhq/heed/evidence"
)

// These values decide when a pattern is a candidate, established, proven or deprecated. They are
// the learning-systems design's. Gates of evidence are on counts, which do not fade. Shares are of
// masses, which fade.
//
//	deprecated   at least minFeedback observations, harmful share > harmfulFrom
//	candidate    fewer than minFeedback observations
//	proven       at least minHelpful helpful ones, harmful share < provenBelow, the last helpful one
//	             within one half-life
//	established  otherwise
//
// The first that holds is the state. Time alone makes a proven pattern established, and changes no
// other state.
const (
	minFeedback = 3 // also of a criterion, to weigh or deprecate it
	minHelpful  = 5
	provenBelow = 0.15
	harmfulFrom = 0.3 // more deprecates a pattern or a criterion
)

// multipliers are the factors that states put on a score: 0 for all others. They are the design's.
var multipliers = map[string]float64{candidate: 0.5, established: 1, proven: 1.5}

// quarter is the default half-life of patterns and criteria.
const quarter = 90 * 24 * time.Hour

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

// conditions returns the conditions of the states in a fixed order. They are the whole explanation
// of a state, because [stateOf] looks at them alone. Only that it helped recently depends on the
// time, and it is no condition where it never helped; another condition of proven is missed then.
//
// The learning-systems design compares faded mass in place of counts, which may miss a gate by a
// hundredth. When the pattern last helped does not matter there.
func (c *Config) conditions(t *evidence.Tally, now time.Time) []Condition {
	what, total, slack := "observations", float64(t.Positive.N+t.Negative.N), 0.
	whatHelped, helped, ratio := "helpful observations", float64(t.Positive.N), harmfulShare(t)
	if c.literal {
		s := t.At(evidence.InstantOf(now))
		what, total, slack = "a faded mass", s.Mass, 0.01
		whatHelped, helped = "a faded helpful mass", s.Reward
		if total <= slack {
			total, ratio = 0, 0
		}
	}
	all := append(make([]Condition, 0, 9), // room for the conditions of an inversion
		newCondition(established, what, total, "at least", minFeedback-slack),
		newCondition(deprecated, "a harmful share", ratio, "more than", harmfulFrom),
		newCondition(proven, whatHelped, helped, "at least", minHelpful-slack),
		newCondition(proven, "a harmful share", ratio, "less than", provenBelow))
	if t.Positive.N > 0 && !c.literal {
		all = append(all, newCondition(proven, "days since it last helped",
			days(now.Sub(t.Positive.Last.Time())), "at most", days(c.HalfLife)))
	}
	return all
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

// These values decide when a pattern becomes an anti-pattern, and when it returns from that. They
// are the learning-systems design's.
//
// A pattern is inverted, once, when it has at least minInverting observations and at least
// failureRate of them are failures. These are counts, which do not fade, since it was last
// rehabilitated. While it is inverted, it reads as two: itself, and its anti-pattern, which has its
// content after "AVOID: " and is not stored.
//
// An inverted pattern goes on collecting evidence. It is rehabilitated when it has had minInverting
// successes since the inversion, and its harmful share no longer deprecates it.
const (
	minInverting = 3
	failureRate  = 0.6

	avoid = "AVOID: " // the prefix of an anti-pattern
)

// inverts reports whether these observations make an anti-pattern.
func (c Observations) inverts() bool {
	return c.total() >= minInverting &&
		float64(c.Failures) >= failureRate*float64(c.total())-tolerance
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

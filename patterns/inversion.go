package patterns

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/heedhq/heed/internal/faults"
)

// Inversion says when a pattern becomes an anti-pattern, and how it gets back.
//
// A pattern is inverted, once, when of at least MinObservations observations the FailureRatio or more are failures. These
// are counts, which do not fade, since it was last rehabilitated. Its anti-pattern is made in the same step, with the
// pattern's content after the prefix.
//
// It goes on collecting evidence, and is rehabilitated when since the inversion it has had Rehabilitation successes, and
// the harmful share of its mass is no longer one that deprecates it ([Maturity]). Its anti-pattern is then archived.
type Inversion struct {
	MinObservations int     // 0 means 3
	FailureRatio    float64 // in (0, 1]. 0 means 0.6
	Prefix          string  // "" means "AVOID: "
	Rehabilitation  int     // successes. 0 means as many as MinObservations
}

func (v Inversion) withDefaults() Inversion {
	v.MinObservations = cmp.Or(v.MinObservations, 3)
	v.FailureRatio = cmp.Or(v.FailureRatio, 0.6)
	v.Prefix = cmp.Or(v.Prefix, "AVOID: ")
	v.Rehabilitation = cmp.Or(v.Rehabilitation, v.MinObservations)
	return v
}

func (v Inversion) validate() error {
	var found faults.List
	found.Check(v.MinObservations > 0, "MinObservations", v.MinObservations, "must not be negative")
	found.Check(v.FailureRatio > 0 && v.FailureRatio <= 1, "FailureRatio", v.FailureRatio, "must be in (0, 1], or 0 for the default")
	found.Check(checkText("", v.Prefix, MaxID) == nil, "Prefix", v.Prefix, fmt.Sprintf("must be text of at most %d bytes", MaxID))
	found.Check(v.Rehabilitation > 0, "Rehabilitation", v.Rehabilitation, "must not be negative")
	return found.Err()
}

// inverts reports whether these observations make an anti-pattern.
func (v *Inversion) inverts(c Counts) bool {
	return c.Total() >= uint64(v.MinObservations) &&
		float64(c.Failures) >= v.FailureRatio*float64(c.Total())-tolerance
}

// reason tells how often a pattern failed.
func (c Counts) reason() string {
	return fmt.Sprintf("Failed %d/%d times (%d%% failure rate)", c.Failures, c.Total(), percent(c.Failures, c.Total()))
}

// percent returns a part in hundredths of the whole, rounded half up, and 0 of nothing.
func percent(part, whole uint64) uint64 {
	if whole == 0 {
		return 0
	}
	return (200*part + whole) / (2 * whole)
}

// warn makes of an anti-pattern the one of a pattern with these observations.
func (v *Inversion) warn(anti, of *Pattern, c Counts) {
	anti.ID, anti.Kind, anti.State, anti.Twin = AntiPrefix+of.ID, Anti, Inverted, of.ID
	anti.Reason = c.reason()
	about := strings.TrimRight(stripPrefixes(of.Content, v.Prefix), ". \t\n")
	room := MaxContent - len(v.Prefix) - len(anti.Reason) - len(". …")
	if len(about) > room {
		about = strings.ToValidUTF8(about[:room], "") + "…"
	}
	anti.Content = v.Prefix + about + ". " + anti.Reason
	anti.Tags, anti.Examples = of.Tags, of.Examples
}

// stripPrefixes takes what forbids off the front of a text, however often it stands there.
func stripPrefixes(text, prefix string) string {
	prefixes := []string{strings.TrimSpace(prefix), "AVOID:", "DO NOT:", "NEVER:"}
	for again := true; again; {
		again = false
		text = strings.TrimSpace(text)
		for _, p := range prefixes {
			if p != "" && len(text) >= len(p) && strings.EqualFold(text[:len(p)], p) {
				text, again = text[len(p):], true
			}
		}
	}
	return text
}

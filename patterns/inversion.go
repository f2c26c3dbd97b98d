package patterns

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/heedhq/heed/internal/faults"
)

// Inversion says when a pattern becomes an anti-pattern, and how it gets back.
//
// A pattern is inverted, once, when it has at least MinObservations observations and at least FailureRatio of them are
// failures. These are counts, which do not fade, since it was last rehabilitated. Its anti-pattern is made in the same commit
// and says the pattern's content after the prefix.
//
// An inverted pattern goes on collecting evidence. It is rehabilitated when it has had Rehabilitation successes since the
// inversion, and its harmful share no longer deprecates it ([Maturity]). Its anti-pattern is then archived.
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
	found.Check(checkText("", v.Prefix, maxID) == nil, "Prefix", v.Prefix, fmt.Sprintf("must be text of at most %d bytes", maxID))
	found.Check(v.Rehabilitation > 0, "Rehabilitation", v.Rehabilitation, "must not be negative")
	return found.Err()
}

// inverts reports whether these observations make an anti-pattern.
func (v *Inversion) inverts(c Counts) bool {
	return c.total() >= uint64(v.MinObservations) &&
		float64(c.Failures) >= v.FailureRatio*float64(c.total())-tolerance
}

// reason tells how often a pattern failed.
func (c Counts) reason() string {
	return fmt.Sprintf("Failed %d/%d times (%d%% failure rate)", c.Failures, c.total(), percent(c.Failures, c.total()))
}

// percent returns a part in hundredths of the whole, rounded half up. It is 0 if the whole is.
func percent(part, whole uint64) uint64 {
	if whole == 0 {
		return 0
	}
	return (200*part + whole) / (2 * whole)
}

// warn changes anti into the anti-pattern of a pattern with these observations.
func (v *Inversion) warn(anti, of *Pattern, c Counts) {
	anti.ID, anti.Anti, anti.State, anti.Twin = antiPrefix+of.ID, true, Inverted, of.ID
	anti.Reason = c.reason()
	about := strings.TrimRight(stripPrefixes(of.Content, v.Prefix), ". \t\n")
	room := maxContent - len(v.Prefix) - len(anti.Reason) - len(". …")
	if len(about) > room {
		about = strings.ToValidUTF8(about[:room], "") + "…"
	}
	anti.Content = v.Prefix + about + ". " + anti.Reason
	anti.Tags, anti.Examples = of.Tags, of.Examples
}

// stripPrefixes removes prohibitions from the front of a text, however often they stand there.
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

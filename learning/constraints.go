package learning

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/valid"
)

// Constraints limit what signals can do to a heuristic. There are four layers: a [Pin] overrides
// the heuristic's own, these override its pack's, and these the constraints of the pack "" in
// [Config].Packs. If a field is zero, the next layer decides.
type Constraints struct {
	// Lock sets whether signals count: "locked", "unlocked", or "" for the next layer. No signal
	// counts for a locked heuristic, and what came during the lock does not count after it is
	// unlocked. With a half-life, its evidence still fades. Lock a heuristic whose text is mandatory.
	Lock string
	// Range is a floor and a ceiling for the confidence. Set a ceiling below the threshold of
	// decisions for a heuristic that must never answer by itself.
	Range Range
	// FeedbackWeight multiplies the magnitude of every signal, in [0.25, 2]. It is 1 if no layer sets
	// it. Lower it for a heuristic that people judge for other reasons than its advice.
	FeedbackWeight float64
}

// The states of a lock.
const (
	locked   = "locked"
	unlocked = "unlocked"
)

// A Range limits a confidence: 0 ≤ Floor ≤ Ceiling ≤ 1. The zero Range leaves it to the next layer.
// Range{0, 1} means no limits.
type Range struct{ Floor, Ceiling float64 }

func (r Range) valid() bool { return r.Floor >= 0 && r.Floor <= r.Ceiling && r.Ceiling <= 1 }

func (r Range) clamp(x float64) float64 { return min(max(x, r.Floor), r.Ceiling) }

// validate reports all faults, each a [*heed.ConfigError].
func (c Constraints) validate() error {
	var found valid.Faults
	found.Check(c.Lock == "" || c.Lock == locked || c.Lock == unlocked, "Lock", c.Lock,
		"must be locked, unlocked or empty")
	found.Check(c.Range.valid(), "Range", c.Range, "must be 0 ≤ Floor ≤ Ceiling ≤ 1")
	found.Check(c.FeedbackWeight == 0 || c.FeedbackWeight >= 0.25 && c.FeedbackWeight <= 2,
		"FeedbackWeight", c.FeedbackWeight,
		"must be in [0.25, 2], or 0 to inherit")
	return found.Err()
}

// validateInput reports the first fault as one of the input.
func (c Constraints) validateInput() error {
	for fault := range heed.ConfigErrors(c.validate()) {
		return valid.Input("Constraints."+fault.Field, fault.Reason)
	}
	return nil
}

// over returns the constraints, with open fields from the next layer.
func (c Constraints) over(next Constraints) Constraints {
	return Constraints{
		Lock:           cmp.Or(c.Lock, next.Lock),
		Range:          cmp.Or(c.Range, next.Range),
		FeedbackWeight: cmp.Or(c.FeedbackWeight, next.FeedbackWeight),
	}
}

// text writes the constraints for people: "locked, 0.2 to 0.4, weight 0.5".
func (c Constraints) text() string {
	var limits []string
	if c.Lock != "" {
		limits = append(limits, c.Lock)
	}
	if c.Range != (Range{}) {
		limits = append(limits, fmt.Sprintf("%g to %g", c.Range.Floor, c.Range.Ceiling))
	}
	if c.FeedbackWeight != 0 {
		limits = append(limits, fmt.Sprintf("weight %g", c.FeedbackWeight))
	}
	return cmp.Or(strings.Join(limits, ", "), "nothing")
}

package learning

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/valid"
)

// Constraints limit what signals can do to a heuristic. There are four layers: a [Pin] overrides
// the heuristic's own, these override its pack's, and these the constraints of the pack "" in
// [Config].Packs. If a field is zero, the next layer decides. Constraints that are being changed
// must not be used concurrently.
type Constraints struct {
	// Lock sets whether signals count: "locked", "unlocked", or "" for the next layer. No signal
	// counts for a locked heuristic, and what came during the lock does not count after it is
	// unlocked. With a half-life, its evidence still fades. Lock a heuristic whose text is mandatory.
	Lock string
	// Floor and Ceiling bound the confidence: 0 ≤ Floor ≤ Ceiling ≤ 1. 0 and 1 mean no bounds. If
	// both are 0, the next layer decides. Set a ceiling below the threshold of decisions for a
	// heuristic that must never answer by itself.
	Floor, Ceiling float64
	// FeedbackWeight multiplies what every signal is worth, in [0.25, 2]. It is 1 if no layer sets
	// it. Lower it for a heuristic that people judge for other reasons than its advice.
	FeedbackWeight float64
}

// The states of a lock.
const (
	locked   = "locked"
	unlocked = "unlocked"
)

// bounds are what a confidence is held within.
type bounds struct{ Floor, Ceiling float64 }

func (b bounds) valid() bool { return b.Floor >= 0 && b.Floor <= b.Ceiling && b.Ceiling <= 1 }

func (b bounds) clamp(x float64) float64 { return min(max(x, b.Floor), b.Ceiling) }

func (c Constraints) bounds() bounds { return bounds{c.Floor, c.Ceiling} }

// storedConstraints are constraints as stores have always kept them.
type storedConstraints struct {
	Lock           string
	Range          bounds
	FeedbackWeight float64
}

// MarshalJSON writes Floor and Ceiling as the fields of a Range.
func (c Constraints) MarshalJSON() ([]byte, error) {
	return json.Marshal(storedConstraints{c.Lock, c.bounds(), c.FeedbackWeight})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (c *Constraints) UnmarshalJSON(text []byte) error {
	var r storedConstraints
	err := json.Unmarshal(text, &r)
	*c = Constraints{r.Lock, r.Range.Floor, r.Range.Ceiling, r.FeedbackWeight}
	return err
}

// validate reports all faults, each a [*heed.ConfigError].
func (c Constraints) validate() error {
	var found valid.Faults
	found.Check(c.Lock == "" || c.Lock == locked || c.Lock == unlocked, "Lock", c.Lock,
		"must be locked, unlocked or empty")
	found.Check(c.bounds().valid(), "Ceiling", c.Ceiling, "must be 0 ≤ Floor ≤ Ceiling ≤ 1")
	found.Check(c.FeedbackWeight == 0 || c.FeedbackWeight >= 0.25 && c.FeedbackWeight <= 2,
		"FeedbackWeight", c.FeedbackWeight,
		"must be in [0.25, 2], or 0 to inherit")
	return found.Err()
}

// validateInput reports the first fault as one of the input.
func (c Constraints) validateInput() error {
	for fault := range heed.ConfigErrors(c.validate()) {
		return valid.Input("Constraints."+fault.Field, "%s", fault.Reason)
	}
	return nil
}

// over returns the constraints, with open fields from the next layer.
func (c Constraints) over(next Constraints) Constraints {
	within := cmp.Or(c.bounds(), next.bounds())
	return Constraints{
		Lock: cmp.Or(c.Lock, next.Lock), Floor: within.Floor, Ceiling: within.Ceiling,
		FeedbackWeight: cmp.Or(c.FeedbackWeight, next.FeedbackWeight),
	}
}

// text writes the constraints for people: "locked, 0.2 to 0.4, weight 0.5".
func (c Constraints) text() string {
	var limits []string
	if c.Lock != "" {
		limits = append(limits, c.Lock)
	}
	if c.bounds() != (bounds{}) {
		limits = append(limits, fmt.Sprintf("%g to %g", c.Floor, c.Ceiling))
	}
	if c.FeedbackWeight != 0 {
		limits = append(limits, fmt.Sprintf("weight %g", c.FeedbackWeight))
	}
	return cmp.Or(strings.Join(limits, ", "), "nothing")
}

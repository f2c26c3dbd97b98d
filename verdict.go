package heed

import (
	"fmt"
	"time"

	"github.com/heedhq/heed/internal/text"
)

// A Target says what of an answer is meant. "" means all of it.
type Target string

// The targets.
const (
	TargetRule     Target = "rule"     // that there was this answer in this situation
	TargetResponse Target = "response" // what the answer said
)

// Valid reports whether the target is one of the above or "".
func (t Target) Valid() bool { return t == "" || t == TargetRule || t == TargetResponse }

// A Verdict is what a reaction to an answer is worth for the heuristic that gave the answer. Package decision makes one of each
// reaction, and package learning counts it.
//
// A person's last verdict on an answer holds, by channel and target.
type Verdict struct {
	// HeuristicID is the heuristic that answered. It is empty if the model answered.
	HeuristicID string
	// EventID is the event that was answered. It must not be empty.
	EventID string
	// Person is an opaque name. All without a name are one person.
	Person string
	// Session is where the reaction came. Channel is how it is known.
	Session, Channel string
	Target           Target
	// Value is how good the answer was, in [-1, 1]. 0 withdraws what the person said before.
	Value float64
	// Weight multiplies what the verdict counts, in [0, 1e6]. 0 means 1.
	Weight float64
	// At is when the reaction came. The zero time means now.
	At time.Time
}

// maxWeight is evidence.MaxWeight.
const maxWeight = 1e6

// Validate reports the first fault as an [*InputError].
func (v Verdict) Validate() error {
	for _, t := range [...]struct{ field, value string }{
		{"HeuristicID", v.HeuristicID}, {"EventID", v.EventID}, {"Person", v.Person}, {"Session", v.Session}, {"Channel", v.Channel},
	} {
		if reason := text.Fault(t.value); reason != "" {
			return &InputError{Field: t.field, Reason: reason}
		}
	}
	switch {
	case v.EventID == "":
		return &InputError{Field: "EventID", Reason: "must not be empty"}
	case !v.Target.Valid():
		return &InputError{Field: "Target", Reason: "must be rule, response or empty"}
	case !(v.Value >= -1 && v.Value <= 1):
		return &InputError{Field: "Value", Reason: fmt.Sprintf("is %v, must be in [-1, 1]", v.Value)}
	case !(v.Weight >= 0 && v.Weight <= maxWeight):
		return &InputError{Field: "Weight", Reason: fmt.Sprintf("is %v, must be in [0, 1e6]", v.Weight)}
	}
	return nil
}

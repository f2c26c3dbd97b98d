package learning

import (
	"math"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/internal/valid"
)

// The channels of signals: how something is known. A host or a strategy may use others, such as
// "user_implicit" for what the host concludes from what a user did.
const (
	// ChannelExplicit is what a user states, for example with a thumb.
	ChannelExplicit = "user_explicit"
	// ChannelDev is what a developer of the application states.
	ChannelDev = "dev"
	// ChannelReported is an outcome that a source reports, such as CI or a payment.
	ChannelReported = "outcome"
	// ChannelTimeout is silence: no statement was made until the silence window ended.
	ChannelTimeout = "implicit_timeout"
	// ChannelUndo is that a user undid the answer, by a message or a command.
	ChannelUndo = "implicit_undo"
	// ChannelIgnored is that a user went on without a word.
	ChannelIgnored = "implicit_ignored"
	// ChannelOutcome is that the outcome of an [Expectation] came.
	ChannelOutcome = "implicit_outcome"
	// ChannelAgreement: the model, which had not seen the heuristic, agreed with it or did not, and
	// people took the answer well or badly.
	ChannelAgreement = "agreement"
)

// A Signal is how strongly one observation counts for or against a heuristic.
type Signal struct {
	// HeuristicID is the heuristic that learns. It is empty in signals about answers of a model.
	HeuristicID string
	// EventID is the event that was answered. It is empty if several events together make the
	// signal, for example three ignores in a row.
	EventID string
	// Channel is how it is known, and the channel of the evidence.
	Channel string
	// Worth is how much it is worth, at most evidence.MaxWeight, and negative if it speaks against
	// the heuristic. 1 is one full observation for it, -0.4 less than half a one against it. 0 does
	// not count.
	Worth float64
	// Target is the part of the answer that it is about. "" means all of it.
	Target answer.Target
	// Metadata is for logs. It does not count.
	Metadata map[string]string
}

// Validate reports the first fault of the signal as a [*heed.InputError].
func (s Signal) Validate() error {
	switch {
	case !(math.Abs(s.Worth) <= evidence.MaxWeight):
		return valid.Input("Worth", "is %v, must be in [-1e6, 1e6]", s.Worth)
	case !answers.ValidTarget(s.Target):
		return valid.Input("Target", "must be rule, response or empty")
	}
	return valid.Texts(evidence.MaxText, "HeuristicID", s.HeuristicID, "EventID", s.EventID,
		"Channel", s.Channel)
}

// reward is the signal's reward as evidence.
func (s *Signal) reward() float64 {
	switch {
	case s.Worth > 0:
		return 1
	case s.Worth < 0:
		return 0
	default:
		return 0.5
	}
}

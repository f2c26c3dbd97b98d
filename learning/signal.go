package learning

import (
	"fmt"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/internal/valid"
)

// A SignalType is the direction of a signal: positive, negative or neutral.
type SignalType string

// The types of signals.
const (
	Positive SignalType = "positive"
	Negative SignalType = "negative"
	Neutral  SignalType = "neutral" // does not count, whatever its magnitude
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
	// Type is the direction. A neutral signal does not count, whatever its magnitude.
	Type SignalType
	// HeuristicID is the heuristic that learns. It is empty in signals about answers of a model.
	HeuristicID string
	// EventID is the event that was answered. It is empty if several events together make the
	// signal, for example three ignores in a row.
	EventID string
	// Channel is how it is known, and the channel of the evidence.
	Channel string
	// Magnitude is how much it is worth, in [0, evidence.MaxWeight]. 1 is one full observation, and 0
	// does not count.
	Magnitude float64
	// Target is the part of the answer that it is about. "" means all of it.
	Target answer.Target
	// Metadata is for logs. It does not count.
	Metadata map[string]string
}

// NewSignal returns a signal of magnitude 1.
func NewSignal(t SignalType, heuristicID, eventID, channel string) Signal {
	return Signal{Type: t, HeuristicID: heuristicID, EventID: eventID, Channel: channel, Magnitude: 1}
}

// Validate reports the first fault of the signal as a [*heed.InputError].
func (s Signal) Validate() error {
	switch {
	case s.Type != Positive && s.Type != Negative && s.Type != Neutral:
		return valid.Input("Type", "must be positive, negative or neutral")
	case !(s.Magnitude >= 0 && s.Magnitude <= evidence.MaxWeight):
		return valid.Input("Magnitude", fmt.Sprintf("is %v, must be in [0, %v]", s.Magnitude,
			float64(evidence.MaxWeight)))
	case !answers.ValidTarget(s.Target):
		return valid.Input("Target", "must be rule, response or empty")
	}
	return valid.Texts(evidence.MaxText, "HeuristicID", s.HeuristicID, "EventID", s.EventID,
		"Channel", s.Channel)
}

// implicit reports whether a channel is one of those that [Module] makes signals for.
func implicit(channel string) bool {
	return channel == ChannelTimeout || channel == ChannelUndo || channel == ChannelIgnored ||
		channel == ChannelOutcome || channel == ChannelAgreement
}

// worth is the signal's magnitude with its sign.
func (s *Signal) worth() float64 { return (2*s.reward() - 1) * s.Magnitude }

// neutral reports whether the signal has no effect, by its type or by its magnitude.
func (s *Signal) neutral() bool { return s.Type == Neutral || s.Magnitude == 0 }

// reward is the signal's reward as evidence.
func (s *Signal) reward() float64 {
	switch {
	case s.neutral():
		return 0.5
	case s.Type == Positive:
		return 1
	default:
		return 0
	}
}

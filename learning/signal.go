package learning

import (
	"fmt"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
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
	ChannelExplicit = "user_explicit"    // from a user
	ChannelDev      = "dev"              // from a developer
	ChannelReported = "outcome"          // a source reported an outcome, such as CI or a payment
	ChannelTimeout  = "implicit_timeout" // no statement was made
	ChannelUndo     = "implicit_undo"    // the user took the answer back
	ChannelIgnored  = "implicit_ignored" // the user went on without a word
	ChannelOutcome  = "implicit_outcome" // the outcome of an [Expectation] came
	// ChannelAgreement: the model, which had not seen the heuristic, agreed with it or did not, and
	// people took the answer well or badly.
	ChannelAgreement = "agreement"
)

// A Signal is how strongly one observation counts for or against a heuristic.
type Signal struct {
	Type        SignalType
	HeuristicID string
	EventID     string // "" if several events together make the signal
	Channel     string // how it is known; the channel of the evidence
	// Magnitude is how much it is worth, in [0, evidence.MaxWeight]. 1 is one full observation, and 0
	// does not count.
	Magnitude float64
	Target    answer.Target     // what of the answer it is about
	Metadata  map[string]string // for logs; not used in learning
}

// NewSignal returns a signal of magnitude 1.
func NewSignal(t SignalType, heuristicID, eventID, channel string) Signal {
	return Signal{Type: t, HeuristicID: heuristicID, EventID: eventID, Channel: channel, Magnitude: 1}
}

// Validate reports the first fault of the signal as a [*heed.InputError].
func (s Signal) Validate() error {
	switch {
	case s.Type != Positive && s.Type != Negative && s.Type != Neutral:
		return &heed.InputError{Field: "Type", Reason: "must be positive, negative or neutral"}
	case !(s.Magnitude >= 0 && s.Magnitude <= evidence.MaxWeight):
		return &heed.InputError{Field: "Magnitude",
			Reason: fmt.Sprintf("is %v, must be in [0, %v]", s.Magnitude, float64(evidence.MaxWeight))}
	case !s.Target.Valid():
		return &heed.InputError{Field: "Target", Reason: "must be rule, response or empty"}
	}
	return checkTexts(text{"HeuristicID", s.HeuristicID}, text{"EventID", s.EventID},
		text{"Channel", s.Channel})
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

type text struct{ field, value string }

func checkTexts(texts ...text) error {
	for _, t := range texts {
		if err := evidence.CheckText(t.field, t.value); err != nil {
			return err
		}
	}
	return nil
}

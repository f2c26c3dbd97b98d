package learning

import (
	"fmt"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
)

// overlap reports whether a click about one target replaces a click about the other.
func overlap(t, o heed.Target) bool { return t == o || t == "" || o == "" }

// A Scale is the range of a score. "" means thumbs: Judgement.Positive counts. The strategy decides how much evidence a score is:
// see [BayesianConfig].
type Scale string

// The scales.
const (
	UserScale Scale = "user" // 1 bad, 2 meh, 3 good
	DevScale  Scale = "dev"  // 1 to 5
)

// points returns the highest score of a scale, and 0 for thumbs and for an unknown scale.
func (s Scale) points() int {
	switch s {
	case UserScale:
		return 3
	case DevScale:
		return 5
	default:
		return 0
	}
}

// A Judgement is what a person says about an answer. It can come at any time.
type Judgement struct {
	HeuristicID, EventID string // the answer; neither may be empty
	// Person is an opaque name. The last judgement of a person about an answer replaces earlier ones about the same target, or
	// about both. People without a name count as one person.
	Person   string
	Channel  string // the caller's name for how it is known; [ChannelDev] marks a developer's word
	Scale    Scale
	Positive bool        // for thumbs
	Score    int         // for a scale: 1 to 3, or 1 to 5
	Target   heed.Target // it does not change how far the confidence moves; an [Explanation] tells the targets apart
	// Factor multiplies the magnitude of the strategy's signal, in [0, evidence.MaxWeight]: the weight that package decision gives a
	// reaction, for example. nil means 1.
	Factor  *float64
	Session string    // where it was said
	At      time.Time // the zero time means now
	Domain  string    // of the heuristic; the module sets it for the strategy
}

// Validate reports the first fault of the judgement as a [*heed.InputError].
func (j Judgement) Validate() error {
	switch most := j.Scale.points(); {
	case j.HeuristicID == "":
		return errEmpty("HeuristicID")
	case j.EventID == "":
		return errEmpty("EventID")
	case j.Scale != "" && most == 0:
		return &heed.InputError{Field: "Scale", Reason: "must be user, dev or empty"}
	case j.Scale != "" && (j.Score < 1 || j.Score > most):
		return &heed.InputError{Field: "Score", Reason: fmt.Sprintf("is %d, must be 1 to %d", j.Score, most)}
	case !j.Target.Valid():
		return &heed.InputError{Field: "Target", Reason: "must be rule, response or empty"}
	case j.Factor != nil && !(*j.Factor >= 0 && *j.Factor <= evidence.MaxWeight):
		return &heed.InputError{Field: "Factor", Reason: fmt.Sprintf("is %v, must be in [0, %v]", *j.Factor, float64(evidence.MaxWeight))}
	}
	return checkTexts(text{"HeuristicID", j.HeuristicID}, text{"EventID", j.EventID}, text{"Person", j.Person},
		text{"Channel", j.Channel}, text{"Session", j.Session}, text{"Domain", j.Domain})
}

func errEmpty(field string) error { return &heed.InputError{Field: field, Reason: "must not be empty"} }

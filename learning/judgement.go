package learning

import (
	"fmt"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
)

// A Target says what of an answer is meant: that the heuristic spoke in this situation, or what it said.
type Target string

// The targets. Whatever is meant, a signal moves the confidence by all of its weight; an [Explanation] tells rule and
// response apart, and counts half of a signal about both for each.
const (
	Both     Target = ""
	Rule     Target = "rule"
	Response Target = "response"
)

// Valid reports whether the target is one of those above.
func (t Target) Valid() bool { return t == Both || t == Rule || t == Response }

// overlaps reports whether a click about one target replaces one about the other.
func (t Target) overlaps(o Target) bool { return t == o || t == Both || o == Both }

// A Scale says what a score is out of.
type Scale string

// The scales. What each score is worth is for the strategy to say: see [Scores].
const (
	Thumbs    Scale = ""     // [Judgement].Positive
	UserScale Scale = "user" // 1 bad, 2 meh, 3 good
	DevScale  Scale = "dev"  // 1 to 5
)

// Points returns how many scores the scale has, and 0 for thumbs and for what is no scale.
func (s Scale) Points() int {
	switch s {
	case UserScale:
		return 3
	case DevScale:
		return 5
	default:
		return 0
	}
}

// Feedback is what somebody says of an answer. It can come at any time.
type Judgement struct {
	HeuristicID, EventID string // the answer; neither may be empty
	// Person is who says it, an opaque name. The last feedback of a person about an answer replaces the earlier ones that
	// spoke of the same target, or of both. All who have no name are one person.
	Person  string
	Channel string // what the caller calls where it comes from; [ChannelDev] is a developer's word
	Scale   Scale
	// Positive is what thumbs say, Score what a scale does, from 1 to its points. The other is of no account.
	Positive bool
	Score    int
	Target   Target
	// Factor multiplies the magnitude of whatever signal the strategy makes of it, in [0, evidence.MaxWeight]: the weight
	// that package decision gives a reaction, say. nil means 1.
	Factor  *float64
	Session string    // where it was said
	At      time.Time // the zero time means now
	Domain  string    // of the heuristic: the module fills it in for the strategy
}

// Validate reports the first fault of the feedback as a [*heed.InputError].
func (f Judgement) Validate() error {
	switch {
	case f.HeuristicID == "":
		return &heed.InputError{Field: "HeuristicID", Reason: "must not be empty"}
	case f.EventID == "":
		return &heed.InputError{Field: "EventID", Reason: "must not be empty"}
	case f.Scale != Thumbs && f.Scale.Points() == 0:
		return &heed.InputError{Field: "Scale", Reason: "must be user, dev or empty"}
	case f.Scale != Thumbs && (f.Score < 1 || f.Score > f.Scale.Points()):
		return &heed.InputError{Field: "Score", Reason: fmt.Sprintf("is %d, must be 1 to %d", f.Score, f.Scale.Points())}
	case !f.Target.Valid():
		return &heed.InputError{Field: "Target", Reason: "must be rule, response or empty"}
	case f.Factor != nil && !(*f.Factor >= 0 && *f.Factor <= evidence.MaxWeight):
		return &heed.InputError{Field: "Factor", Reason: fmt.Sprintf("is %v, must be in [0, %v]", *f.Factor, float64(evidence.MaxWeight))}
	}
	return checkTexts(text{"HeuristicID", f.HeuristicID}, text{"EventID", f.EventID}, text{"Person", f.Person},
		text{"Channel", f.Channel}, text{"Session", f.Session}, text{"Domain", f.Domain})
}

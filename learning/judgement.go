package learning

import (
	"fmt"

	"github.com/heedhq/heed"
)

// overlap reports whether a click about one target replaces a click about the other.
func overlap(t, o heed.Target) bool { return t == o || t == "" || o == "" }

// A Scale is the range of a score. "" means that there is no score: the verdict's value counts. The strategy decides how much
// evidence a score is: see [BayesianConfig].
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
	// Verdict names the answer and the person, and has the value from -1 (bad) to 1 (good). 0 withdraws. Without a HeuristicID it is about
	// the model's answer, and counts for what agreed with that: see [Fire].Compared. Channel [ChannelDev] marks a developer's word. The
	// weight multiplies the strategy's magnitude; 0 means 1.
	heed.Verdict
	// Scale and Score take the place of the value: 1 to 3, or 1 to 5.
	Scale  Scale
	Score  int
	Domain string // of the heuristic; the module sets it for the strategy
	// Again says that the person has judged this answer before. If the store knows nothing of that any more, Judge returns
	// [evidence.ErrForgotten], as the earlier judgement may go on counting.
	Again bool
}

// Validate reports the first fault of the judgement as a [*heed.InputError].
func (j Judgement) Validate() error {
	if err := j.Verdict.Validate(); err != nil {
		return err
	}
	switch most := j.Scale.points(); {
	case j.Scale != "" && most == 0:
		return &heed.InputError{Field: "Scale", Reason: "must be user, dev or empty"}
	case j.Scale != "" && (j.Score < 1 || j.Score > most):
		return &heed.InputError{Field: "Score", Reason: fmt.Sprintf("is %d, must be 1 to %d", j.Score, most)}
	case j.Scale == "" && j.Score != 0:
		return &heed.InputError{Field: "Score", Reason: "needs a scale"}
	case j.Scale != "" && j.Value != 0:
		return &heed.InputError{Field: "Value", Reason: "must be 0 beside a score"}
	}
	return checkTexts(text{"Domain", j.Domain})
}

func errEmpty(field string) error { return &heed.InputError{Field: field, Reason: "must not be empty"} }

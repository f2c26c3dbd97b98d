package loop

import (
	"context"
	"errors"
	"time"

	"github.com/heedhq/heed/internal/thoughts"
	"github.com/heedhq/heed/llm"
)

// A subject is what a call of a model is evidence about. Only the subject learns from a failure: an
// outage must not make an arm look bad.
type subject string

const (
	nothing subject = ""      // not learned
	someArm subject = "arm"   // the arm that was chosen: its model answered, and badly
	aModel  subject = "model" // the availability of the model, for all arms that use it
)

// An attempt is what became of asking a model once.
type attempt struct {
	called bool // the model was called
	text   string
	err    error
	// ended is the error of the context that the call had, if the context ended first.
	ended error
	// patient reports that the model had a fair part of its time.
	patient bool
	// host reports that code of the host's failed while it received the answer.
	host bool
}

// failure returns how the attempt failed. If the context ended, that counts, and not the error in
// which the client wrapped it.
func (a *attempt) failure() llm.Failure {
	switch {
	case errors.Is(a.ended, context.Canceled):
		return llm.Cancelled
	case a.ended != nil:
		return llm.TimedOut
	default:
		return llm.FailureOf(a.err)
	}
}

// answered reports whether there is an answer.
func (a *attempt) answered() bool {
	visible, _ := thoughts.Answer(a.text)
	return a.err == nil && visible != ""
}

// whose returns what a failure is evidence about, by what happened:
//
//	the model was not called, because no place became free or the caller left    neither
//	the host's code failed while it received the answer                          neither
//	the model answered with no text, or its answer cannot be used                the arm
//	it cannot be reached, limits the rate, failed, or took all of its time       the model
//	the caller stopped the call, or left the model too little time               neither
//	an error that heed does not recognise                                        neither
//
// What a fallback answers is no evidence about the arm that was chosen. If the store cannot be
// reached, that is no failure of a model.
func (a *attempt) whose() subject {
	if !a.called || a.host || a.answered() {
		return nothing
	}
	if a.err == nil {
		return someArm
	}
	switch a.failure() {
	case llm.Unusable:
		return someArm
	case llm.Unreachable, llm.RateLimited, llm.ServerError:
		return aModel
	case llm.TimedOut:
		if a.ended == nil || a.patient {
			return aModel
		}
	case llm.Cancelled, llm.Unrecognised:
	}
	return nothing
}

// unrecognised reports whether the error may be a fault of the host's own code.
func (a *attempt) unrecognised() bool {
	return a.called && !a.host && a.err != nil && a.failure() == llm.Unrecognised
}

// fairPart is the part of Tuning.Decision.Timeout after which a model that has not answered is
// slow. A model that had less was not given the time that it needs, because the caller's context
// ended.
const fairPart = 4

// patient reports whether a model had a fair part of its time.
func (a *Agent) patient(took time.Duration) bool {
	return took >= a.decider.Config().Timeout/fairPart
}

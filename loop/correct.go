package loop

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/store"
)

// A Correction is what a reviewer writes about an answer.
type Correction struct {
	// ID names the correction, which counts once. If empty, the answer, the reviewer and the text
	// name it.
	ID string
	// Reviewer is the person, like [Reaction].Person. The complaint about the answer keeps the name
	// unchanged, because the loop compares names exactly. Package feedback keeps the correction under
	// the name that package feedback has for it, by default in lower case. To forget a
	// reviewer "Ann", forget "Ann" and "ann".
	Reviewer string
	// Decision is what the reviewer decided. If empty, it is [feedback.ApprovedWithChanges] if
	// there is a text, and else [feedback.Approved].
	Decision feedback.Decision
	// Text states in a sentence what was wrong, or what was right and should be repeated. Comment
	// is further explanation.
	Text, Comment string
	// Severity is as in [feedback.Feedback].
	Severity string
	Tags     []string
	// the zero time means now for the complaint, and the time of the event for the rules
	At time.Time
}

// gate is where corrections of the loop are made.
const gate = "loop"

// Correct records a reviewer's correction. Corrections that mean the same become a proposal, which
// other people approve as a rule: see [Agent.Feedback]. Correct returns the correction with its
// Proposal, the id of the pending proposal that it supports, or "".
//
// Unless its Decision is [feedback.Approved], a correction is also the reviewer's complaint about
// the answer, like a [Reaction] of -1: it ends the silence, and counts against the heuristic or the
// arm. Both are one commit. A later reaction of the same person replaces the complaint, and so does
// a reaction from a clock that is ahead.
func (a *Agent) Correct(ctx context.Context, id string, c Correction) (feedback.Feedback, error) {
	f, err := a.correct(ctx, id, c)
	return f, wrap("correct", err)
}

// correct records the correction and the complaint in one step, and then evaluates the correction
// in a second one, because an evaluator of the host's may take long.
func (a *Agent) correct(ctx context.Context, id string, c Correction) (feedback.Feedback, error) {
	if err := a.cfg.person("Reviewer", c.Reviewer); err != nil {
		return feedback.Feedback{}, err
	}
	var f feedback.Feedback
	now := a.cfg.Testing.Now()
	err := a.change(ctx, id, func(tx *store.Tx, r *answer.Answer) error {
		f = a.feedbackOf(r, c)
		a.wantStatement(tx, r)
		known, err := a.feedback.RecordIn(tx, f)
		if fault := new(heed.InputError); errors.As(err, &fault) && fault.Field == "Summary" {
			return &heed.InputError{Field: "Text", Reason: fault.Reason}
		}
		if err != nil || known { // then it counts already
			return err
		}
		return a.complain(tx, r, &f, c, now)
	})
	if err != nil && !errors.Is(err, errStands) || f.ID == "" { // or the agent is frozen
		return feedback.Feedback{}, err
	}
	made, failed := a.feedback.Evaluate(ctx, f.ID)
	return made, cmp.Or(failed, err)
}

// feedbackOf returns a correction as package feedback records it.
func (a *Agent) feedbackOf(r *answer.Answer, c Correction) feedback.Feedback {
	decided := feedback.Approved
	if c.Text != "" {
		decided = feedback.ApprovedWithChanges
	}
	f := feedback.Feedback{
		ID:   cmp.Or(c.ID, "loop:"+store.IDOf(a.cfg.Name, r.ID, c.Reviewer, c.Text)),
		Gate: gate, Agent: a.cfg.Name, Task: r.ID, Decision: cmp.Or(c.Decision, decided),
		Reviewer: c.Reviewer, Summary: c.Text, Comment: c.Comment, Severity: c.Severity,
		Tags: slices.Clone(c.Tags), At: c.At,
	}
	if r.Prompt != nil {
		f.Rules = r.Prompt.Rules
	}
	if f.At.IsZero() {
		f.At = r.At // so that the same correction, sent again, is the same
	}
	return f
}

// complain puts a correction on the record of the answer as a complaint.
func (a *Agent) complain(tx *store.Tx, r *answer.Answer, f *feedback.Feedback, c Correction,
	now time.Time) error {
	if f.Decision == feedback.Approved {
		return nil
	}
	at := maxTime(c.At, r.At) // because clocks differ
	if c.At.IsZero() {
		at = answers.Arrival(r, now)
	}
	s := answer.Statement{
		By: c.Reviewer, Kind: a.cfg.kindOf(c.Reviewer), Channel: learning.ChannelExplicit,
		Of: answers.HeuristicOf(r), Value: -1, At: at,
	}
	if answers.BehindFuture(r, s, now) {
		return nil // the correction counts all the same
	}
	return a.addStatement(tx, r, s)
}

package loop

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/store"
)

// A Correction is what a reviewer says of an answer.
type Correction struct {
	// ID names the correction, which counts once. "" means that the answer, the reviewer and the text name it.
	ID       string
	Reviewer string
	// Decision is what the reviewer decided. "" means [feedback.ApprovedWithChanges] if there is a text, and else
	// [feedback.Approved].
	Decision feedback.Decision
	// Text says in a sentence what was wrong, or what was right and should be repeated. Comment is what else was said.
	Text, Comment string
	Severity      string // as in [feedback.Feedback]
	Tags          []string
	At            time.Time // the zero time means now
}

// gate is where corrections of the loop are made.
const gate = "loop"

// Correct takes a reviewer's words. Corrections that say the same become a proposal, which other people approve as a rule:
// see [Agent.Feedback]. It returns what was made of the correction: its Proposal is the id of the pending proposal that it speaks
// for, or "". Without feedback, the error is a [*heed.ConfigError].
//
// A correction of an answer that a heuristic gave is also the reviewer's complaint about the heuristic, as a [Reaction] of -1 is. A later
// reaction of the same person replaces it.
func (a *Agent) Correct(ctx context.Context, id string, c Correction) (feedback.Feedback, error) {
	f, err := a.correct(ctx, id, c)
	return f, wrap("correct", err)
}

func (a *Agent) correct(ctx context.Context, id string, c Correction) (feedback.Feedback, error) {
	if a.feedback == nil {
		return feedback.Feedback{}, &heed.ConfigError{Field: "Without", Value: a.cfg.Without, Reason: "must not have Feedback, to take corrections"}
	}
	kept, err := a.read(ctx, id)
	if err != nil || a.frozen.Load() {
		return feedback.Feedback{}, err
	}
	decided := feedback.Approved
	if c.Text != "" {
		decided = feedback.ApprovedWithChanges
	}
	f := feedback.Feedback{
		ID: cmp.Or(c.ID, "loop:"+store.IDOf(a.cfg.Name, id, c.Reviewer, c.Text)), Gate: gate, Agent: a.cfg.Name, Task: id,
		Decision: cmp.Or(c.Decision, decided), Reviewer: c.Reviewer, Summary: c.Text, Comment: c.Comment, Severity: c.Severity,
		Tags: slices.Clone(c.Tags), Rules: kept.Value.Rules, At: c.At,
	}
	if f.At.IsZero() {
		f.At = kept.Value.At // so that the same correction, told again, is the same
	}
	if _, err := a.feedback.Record(ctx, f); err != nil {
		return feedback.Feedback{}, err
	}
	made, err := a.feedback.Evaluate(ctx, f.ID)
	return made, errors.Join(err, a.complain(ctx, &kept.Value, &f, c))
}

// errHeard says that a correction was heard already.
var errHeard = errors.New("the correction counts already")

// complain takes a correction as a complaint about the heuristic that gave the answer, once.
func (a *Agent) complain(ctx context.Context, r *row, f *feedback.Feedback, c Correction) error {
	if f.Decision == feedback.Approved || r.Path != decision.Heuristic {
		return nil
	}
	if c.At.IsZero() {
		c.At = a.cfg.Now()
	}
	mark := store.IDOf(f.ID)
	complaint := Reaction{Person: c.Reviewer, Channel: learning.ChannelExplicit, Value: -1, Weight: 1, At: c.At}
	if complaint.At.Before(r.At) { // as clocks differ
		complaint.At = r.At
	}
	again := false
	err := a.change(ctx, r.ID, func(after *row) error {
		again = after.judged(complaint.Person)
		if slices.Contains(after.Corrected, mark) || len(after.Corrected) >= maxSaid {
			return errHeard
		}
		after.Corrected = append(slices.Clone(after.Corrected), mark)
		after.say(said{
			Person: complaint.Person, Channel: complaint.Channel, Value: complaint.Value, Weight: complaint.Weight, At: complaint.At,
			Judged: a.judges(),
		})
		return nil
	}, func(ctx context.Context, after *row, b store.Batch) error {
		return a.credit(ctx, after, complaint, again, b)
	})
	if errors.Is(err, errHeard) {
		return nil
	}
	return err
}

package decision

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/answers"
)

// A Reaction is what somebody thinks of an answer.
type Reaction struct {
	ResponseID string // of the answer; must not be empty
	Person     string // who reacts; may be empty
	// Channel is how the reaction is known, for example "user_explicit". Session is where it came.
	Channel, Session string
	Target           answer.Target // the part of the answer that is meant; "" means all of it
	// Value is how good the answer was, in [-1, 1]: 1 and -1 for thumbs, and [Score] for marks. 0
	// withdraws what the person stated before.
	Value float64
	// Weight multiplies what the reaction counts, in [0, 1e6]. 0 means 1. [Factors] computes
	// one.
	Weight float64
	At     time.Time // when the reaction came; the zero time means now
}

// Score returns the value of a mark from 1 to points, evenly spaced over [-1, 1]: of five marks, 1
// is -1, 3 is 0 and 5 is 1. Any other mark is NaN, which [Decider.Feedback] refuses.
func Score(mark, points int) float64 {
	if points < 2 || mark < 1 || mark > points {
		return math.NaN()
	}
	return answers.Scored(mark, points)
}

// A Credit is a [Reaction] together with the answer that it is about.
type Credit struct {
	// Statement returns the reaction as a statement for the record of the answer. It is about
	// HeuristicID.
	Statement   answer.Statement
	HeuristicID string // the heuristic that answered; empty if the model did
	EventID     string // package learning finds the answer by it
	Domain      string
	Path        Path
	Prediction  *Prediction // as in the result
	Variant     string      // of the experiment that the event was part of
	Answered    time.Time   // when the answer was given
}

// Feedback returns which heuristic earns a reaction. It only reads the trace of the answer and
// checks the reaction. To count the reaction, give the statement to package learning.
//
// It returns [heed.ErrNotFound] if the answer has no trace, for example because the trace has
// expired, and a [*heed.InputError] for an invalid reaction.
func (d *Decider) Feedback(ctx context.Context, r Reaction) (Credit, error) {
	credit, err := d.credit(ctx, &r)
	if err != nil {
		return Credit{}, fmt.Errorf("decision: feedback: %w", err)
	}
	return credit, nil
}

func (d *Decider) credit(ctx context.Context, r *Reaction) (Credit, error) {
	if r.At.IsZero() {
		r.At = d.cfg.Now()
	}
	s := answer.Statement{
		By: r.Person, Kind: answers.KindOf(r.Person, nil), Session: r.Session, Channel: r.Channel,
		Target: r.Target, Value: r.Value, Weight: r.Weight, At: evidence.InstantOf(r.At).Time(),
	}
	if err := d.checkReaction(r.ResponseID, &s); err != nil {
		return Credit{}, err
	}
	kept, err := getTrace(ctx, d.cfg.Store, r.ResponseID)
	if err != nil {
		return Credit{}, err
	}
	t := &kept.Value
	s.Of = t.CreditID
	return Credit{
		Statement: s, HeuristicID: t.CreditID, EventID: t.EventID, Domain: t.Domain, Path: t.Path,
		Prediction: t.Prediction, Variant: t.Variant, Answered: t.At,
	}, nil
}

func (d *Decider) checkReaction(responseID string, s *answer.Statement) error {
	if err := evidence.CheckText("ResponseID", responseID); err != nil {
		return err
	}
	if responseID == "" {
		return &heed.InputError{Field: "ResponseID", Reason: "must not be empty"}
	}
	if s.At.Unix() < 0 || s.At.Sub(d.cfg.Now()) > evidence.MaxSkew { // stores refuse it
		reason := fmt.Sprintf("must be from 1970 on, and at most %v ahead of the clock",
			evidence.MaxSkew)
		return &heed.InputError{Field: "At", Reason: reason}
	}
	return answers.Validate(s)
}

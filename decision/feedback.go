package decision

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/store"
)

// Score returns the value of a mark from 1 to points, evenly spaced over [-1, 1]: of five marks, 1
// is -1, 3 is 0 and 5 is 1. Any other mark is NaN, which [Decider.Feedback] refuses.
func Score(mark, points int) float64 {
	if points < 2 || mark < 1 || mark > points {
		return math.NaN()
	}
	return answers.Scored(mark, points)
}

// Feedback finds the answer that somebody's reaction is about. It returns the reaction as a
// statement about the heuristic that answered (Of; "" if the model did), and the answer's trace. It
// only reads the trace and checks the reaction. To count the reaction, give the statement to
// package learning.
//
// Of the reaction, By, Session, Channel, Target, Value ([Score] for marks), Scale and Score, Weight
// ([Factors] computes one) and At count. The zero At means now. An invalid reaction is a
// [*heed.InputError]. An answer without a trace, for example because the trace has expired, is
// [heed.ErrNotFound].
func (d *Decider) Feedback(
	ctx context.Context, responseID string, reaction answer.Statement,
) (s answer.Statement, t Trace, err error) {
	if reaction.At.IsZero() {
		reaction.At = d.cfg.Now()
	}
	s = answer.Statement{
		By: reaction.By, Kind: answers.KindOf(reaction.By, nil), Session: reaction.Session,
		Channel: reaction.Channel, Target: reaction.Target, Value: reaction.Value,
		Scale: reaction.Scale, Score: reaction.Score, Weight: reaction.Weight,
		At: evidence.InstantOf(reaction.At).Time(),
	}
	err = d.checkReaction(responseID, &s)
	var kept store.Row[Trace]
	if err == nil {
		kept, err = getTrace(ctx, d.cfg.Store, responseID)
	}
	if err != nil {
		return answer.Statement{}, Trace{}, fmt.Errorf("decision: feedback: %w", err)
	}
	s.Of = kept.Value.CreditID
	return s, kept.Value, nil
}

func (d *Decider) checkReaction(responseID string, s *answer.Statement) error {
	return cmp.Or(valid.Names(evidence.MaxText, "ResponseID", responseID),
		valid.Time("At", s.At, d.cfg.Now()), answers.Validate(s))
}

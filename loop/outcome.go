package loop

import (
	"cmp"
	"context"
	"time"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/attribution"
)

// Outcome records what came of an answer. It counts for the heuristic that answered, for the arm,
// and for the ways of working that the answer to a task follows. A later outcome of the same
// source, by its At, replaces it, except for the ways of working. The arm is credited with the
// latest outcome of all sources. If people reacted to the answer as well, the arm's worth is the
// mean of their reactions and the outcome.
func (a *Agent) Outcome(ctx context.Context, id string, o Outcome) error {
	now := a.cfg.Testing.Now()
	if err := a.completeOutcome(&o, now); err != nil {
		return wrap("outcome", err)
	}
	return wrap("outcome", a.change(ctx, id, func(tx *store.Tx, r *answer.Answer) error {
		return a.outcomeIn(tx, r, o, now)
	}))
}

// OutcomeIn does what [Agent.Outcome] does as a part of the caller's step. If the store forgot what
// is to be replaced for the heuristic, store.Do returns [heed.ErrNotFound] or
// [evidence.ErrForgotten], and the step is not committed. If the store forgot the arm's old
// credit, the old credit still counts, all else of the step is committed, and the observer receives
// the error that Outcome would return.
func (a *Agent) OutcomeIn(tx *store.Tx, id string, o Outcome) error {
	now := a.cfg.Testing.Now()
	if err := a.completeOutcome(&o, now); err != nil {
		return wrap("outcome", err)
	}
	return wrap("outcome", a.changeIn(tx, id, new(error), func(r *answer.Answer) error {
		return a.outcomeIn(tx, r, o, now)
	}))
}

// completeOutcome checks an outcome, and gives it its text as it may be stored.
func (a *Agent) completeOutcome(o *Outcome, now time.Time) error {
	if err := cmp.Or(o.validate(), optionalTime(o.At, now)); err != nil {
		return err
	}
	return a.redact(&o.Failure)
}

// outcomeIn credits the ways of working and adds the outcome to the record as a statement. Ways
// that the outcome names replace those that were found in the text.
func (a *Agent) outcomeIn(tx *store.Tx, r *answer.Answer, o Outcome, now time.Time) error {
	if o.At.IsZero() {
		o.At = answers.Arrival(r, now)
	}
	if o.Ways != nil {
		reply := own(r)
		reply.Followed = nil
		for _, id := range o.Ways {
			reply.Followed = append(reply.Followed, string(id))
		}
	}
	if err := a.followed(tx, r, &o); err != nil {
		return err
	}
	value, _ := o.value()
	s := answer.Statement{
		How: answers.Outcome, By: o.Source, Kind: a.cfg.kindOf(o.Source),
		Channel: learning.ChannelReported, Of: answers.HeuristicOf(r),
		Withdrawn: o.Withdraw, Value: value, Weight: o.Confidence,
		Sure: o.Confidence, At: o.At, Success: o.Success,
	}
	if o.Cost > 0 {
		s.Spent = &answer.Spent{Cost: o.Cost}
	}
	return a.addStatement(tx, r, s)
}

// Attribute records an outcome that a stream brought. It is for [attribution.Config].Answers: see
// there for which answer is meant. Without an id, the answer is the last one of the session at that
// time, for the item if it has one. The disposition is Dropped if the agent is frozen, and
// Duplicate if the record had the statement.
func (a *Agent) Attribute(
	ctx context.Context, id, session string, o strategy.Outcome,
) (did strategy.Disposition, err error) {
	if id == "" {
		if id, err = a.answered(ctx, session, o.Choice.Item, o.At); err != nil {
			return "", wrap("attribute", err)
		}
	}
	outcome := Outcome{
		Reward: &o.Value, Confidence: o.Confidence, Source: o.Source, At: o.At, Cost: o.Cost,
	}
	now := a.cfg.Testing.Now()
	if err := a.completeOutcome(&outcome, now); err != nil {
		return strategy.Dropped, wrap("attribute", err)
	}
	did = strategy.Dropped // by a frozen agent
	err = a.change(ctx, id, func(tx *store.Tx, r *answer.Answer) error {
		before := r.Numbers
		err := a.outcomeIn(tx, r, outcome, now)
		if did = strategy.Duplicate; r.Numbers > before {
			did = strategy.Applied
		}
		return err
	})
	return did, wrap("attribute", err)
}

// EndSession has the arms chosen again for what comes next in a session.
func (a *Agent) EndSession(ctx context.Context, session string) error {
	if a.learner == nil {
		return nil
	}
	return wrap("end session", a.learner.EndSession(ctx, session))
}

var _ attribution.Answers = (*Agent)(nil)

// followed credits the ways of working that the answer to a task follows, with the first outcome
// that reports whether it succeeded. Its id is derived from the answer, so later outcomes of the
// same answer do not count for the ways again.
func (a *Agent) followed(tx *store.Tx, r *answer.Answer, o *Outcome) error {
	if answers.TaskOf(r) == "" || o.Success == nil {
		return nil
	}
	ways := make([]patterns.PatternID, len(r.Reply.Followed))
	for i, id := range r.Reply.Followed {
		ways[i] = patterns.PatternID(id)
	}
	_, err := a.patterns.RecordIn(tx, patterns.Outcome{
		ID: store.IDOf("outcome", a.cfg.Name, r.ID), Task: answers.TaskOf(r),
		Description: r.Reply.About,
		Patterns:    ways, Duration: o.Duration, Errors: o.Errors, Retries: o.Retries,
		Success: *o.Success, FailureMode: o.Failure, Source: o.Source, At: o.At,
	})
	return err
}

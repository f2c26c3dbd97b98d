package loop

import (
	"cmp"
	"context"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/internal/limits"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/store"
)

// channelOutcome is the channel of a reported outcome.
const channelOutcome = "outcome"

// Outcome records what came of an answer. It counts for the heuristic that answered, for the arm, and for the ways of working
// that the answer to a task follows. A later outcome of the same source, by its At, replaces it, except for the ways of working.
// The arm is credited with the latest outcome of all sources. If people reacted to the answer as well, the arm's worth is the
// mean of their reactions and the outcome.
func (a *Agent) Outcome(ctx context.Context, id string, o Outcome) error {
	if err := a.completeOutcome(&o); err != nil || a.frozen.Load() {
		return wrap("outcome", err)
	}
	return wrap("outcome", a.change(ctx, id, func(tx *store.Tx, r *answer.Answer) error { return a.outcomeIn(tx, r, &o) }))
}

// OutcomeIn does what [Agent.Outcome] does as a part of the caller's step.
func (a *Agent) OutcomeIn(tx *store.Tx, id string, o Outcome) error {
	if err := a.completeOutcome(&o); err != nil || a.frozen.Load() {
		return wrap("outcome", err)
	}
	return wrap("outcome", a.changeIn(tx, id, new(error), func(r *answer.Answer) error { return a.outcomeIn(tx, r, &o) }))
}

// completeOutcome gives an outcome its time and its text as it may be stored.
func (a *Agent) completeOutcome(o *Outcome) error {
	if o.At.IsZero() {
		o.At = a.cfg.Now()
	}
	if err := cmp.Or(o.validate(), limits.CheckTime("At", o.At, a.cfg.Now())); err != nil {
		return err
	}
	return a.redact(&o.Failure)
}

func (a *Agent) outcomeIn(tx *store.Tx, r *answer.Answer, o *Outcome) error {
	if o.Ways != nil {
		reply := own(r)
		reply.Followed = nil
		for _, id := range o.Ways {
			reply.Followed = append(reply.Followed, string(id))
		}
	}
	if err := a.followed(tx, r, o); err != nil {
		return err
	}
	value, _ := o.value()
	s := answer.Statement{
		How: answer.Outcome, By: o.Source, Kind: o.Kind, Channel: channelOutcome, Of: r.Heuristic(), Withdrawn: o.Withdraw,
		Value: max(value-a.cfg.Price*o.Cost, -1), At: o.At, Success: o.Success,
	}
	if o.Cost > 0 {
		s.Spent = &answer.Spent{Cost: o.Cost}
	}
	return a.say(tx, r, s)
}

// followed credits the ways of working that the answer to a task follows, with the first outcome that says whether it succeeded.
func (a *Agent) followed(tx *store.Tx, r *answer.Answer, o *Outcome) error {
	if a.patterns == nil || r.Task() == "" || o.Success == nil {
		return nil
	}
	ways := make([]patterns.PatternID, len(r.Reply.Followed))
	for i, id := range r.Reply.Followed {
		ways[i] = patterns.PatternID(id)
	}
	_, err := a.patterns.RecordIn(tx, patterns.Outcome{
		ID: store.IDOf("outcome", a.cfg.Name, r.ID), Task: r.Task(), Description: r.Reply.About, Patterns: ways,
		Duration: o.Duration, Errors: o.Errors, Retries: o.Retries, Success: *o.Success, FailureMode: o.Failure,
		Source: o.Source, At: o.At,
	})
	return err
}

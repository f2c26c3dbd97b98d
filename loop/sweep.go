package loop

import (
	"context"
	"errors"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/store"
)

// Sweep does what is due at now: it counts silence, and sweeps the parts, the tenants and the
// store. It implements [heed.Sweeper]. If a part fails, Sweep goes on with the others, and returns
// the errors, joined.
func (a *Agent) Sweep(ctx context.Context, now time.Time) error {
	now = valid.Due(now, a.cfg.Testing.Now())
	return wrap("sweep", errors.Join(a.sweepParts(ctx, now), a.sweepTenants(ctx, now),
		a.cfg.Store.Sweep(ctx, now)))
}

// sweepParts does what is due, except for the store. A frozen agent learns from no silence, and its
// gain is reported all the same.
func (a *Agent) sweepParts(ctx context.Context, now time.Time) error {
	frozen, err := a.isFrozen(store.Reading(ctx, a.cfg.Store))
	errs := []error{err}
	if err == nil && !frozen {
		errs = append(errs, a.silence(ctx, now))
		if l := a.learner; l != nil {
			errs = append(errs, l.Sweep(ctx, now))
		}
		errs = append(errs, a.patterns.Sweep(ctx, now), a.feedback.Sweep(ctx, now))
		if a.partition != nil {
			errs = append(errs, a.partition.Sweep(ctx, now))
		}
		errs = append(errs, a.recordChanges(ctx, now))
	}
	errs = append(errs, a.reportGain(ctx))
	return errors.Join(errs...)
}

// silence counts silence about the answers that waited long enough, and closes those that no
// message can change any more.
func (a *Agent) silence(ctx context.Context, now time.Time) error {
	var failed []error // of the strategy
	isDue := func(r *answer.Answer) bool { return a.learning.Steps().Due(r, now) }
	swept, err := answers.Sweep(ctx, a.cfg.Store, a.answers, now, isDue,
		func(ids []string) (n int, err error) {
			var failure error
			err = store.Do(ctx, a.cfg.Store, func(tx *store.Tx) (err error) {
				n, err = a.silent(tx, ids, now)
				failure = a.learning.Steps().FailuresIn(tx)
				return err
			})
			failed = append(failed, failure)
			return n, err
		})
	a.watch.Swept(ctx, a.cfg.Testing.Now(), swept)
	return errors.Join(append(failed, err)...)
}

// silent counts the silence about some answers in a step, and returns about how many. An answer may
// have become known since it was found: then it is not due any more.
func (a *Agent) silent(tx *store.Tx, ids []string, now time.Time) (n int, err error) {
	for _, id := range ids {
		tx.Want(store.Wants{Refs: []store.Ref{a.answers.Ref(id)}})
	}
	if frozen, err := a.isFrozen(tx); err != nil || frozen {
		return 0, err
	}
	rows := make([]store.Row[answer.Answer], 0, len(ids))
	for _, id := range ids {
		row, err := a.answers.In(tx, id)
		if err != nil {
			return 0, err
		}
		if row.Revision > 0 && a.learning.Steps().Due(&row.Value, now) {
			rows = append(rows, row)
			if row.Value.Reply != nil {
				a.wantStatement(tx, &row.Value)
			}
		}
	}
	for i := range rows {
		before := answers.ForArm(&rows[i].Value)
		a.unheard(&rows[i].Value)
		if _, err := a.learning.Steps().TimeoutIn(tx, &rows[i].Value, now); err != nil {
			return 0, err
		}
		if rows[i].Value.Reply == nil { // a fire of package learning alone
			a.answers.Put(tx, rows[i].Value, rows[i].Revision)
		} else if err := a.settle(tx, rows[i], before, new(error)); err != nil {
			return 0, err
		}
	}
	return len(rows), nil
}

// wantStatement names what a statement about an answer reads, for a step that also reads for
// others.
func (a *Agent) wantStatement(tx *store.Tx, r *answer.Answer) {
	a.wantArm(tx, r)
	for i := range r.Fires {
		f := &r.Fires[i]
		tx.Want(a.learning.Steps().Wants(f.Heuristic))
		for _, c := range f.Compared {
			tx.Want(a.learning.Steps().Wants(c.HeuristicID))
		}
	}
}

// Run calls [Agent.Sweep] every minute until the context ends. The host runs it on a goroutine. It
// returns as [heed.Run] does.
func (a *Agent) Run(ctx context.Context) error { return heed.Run(ctx, time.Minute, a) }

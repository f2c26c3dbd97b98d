package loop

import (
	"context"
	"errors"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/store"
)

// How silence is counted. Records of open answers have keys by how long they wait, so a sweep finds
// the answers that may be due without reading the others. It works in steps of 64 answers. If a
// step fails, its answers are counted one by one, and a damaged record is passed over, so that one
// bad record does not stop the others.

// Sweep does what is due at now: it counts silence, and sweeps the parts, the tenants and the
// store. It implements [heed.Sweeper]. If a part fails, Sweep goes on with the others, and returns
// the errors, joined.
func (a *Agent) Sweep(ctx context.Context, now time.Time) error {
	if clock := a.cfg.Testing.Now(); now.IsZero() || now.After(clock) {
		now = clock
	}
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
		if l := a.Strategy(); l != nil {
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

// sweepStep is how many answers one step of a sweep reads.
const sweepStep = 64

// silence counts silence about the answers that waited long enough, and closes those that no
// message can change any more. Answers are found in the order of their times, page by page: a page
// begins after the last answer of the page before, whether or not that was due.
func (a *Agent) silence(ctx context.Context, now time.Time) error {
	queries, err := answers.Due(ctx, a.cfg.Store, a.answers.Name, now)
	if err != nil {
		return err
	}
	errs, swept := []error(nil), 0
	for _, q := range queries {
		q.Limit = sweepStep
		for more := true; more && ctx.Err() == nil; {
			ids, n := []string(nil), 0
			for record, err := range a.cfg.Store.Find(ctx, q) {
				if err != nil {
					return errors.Join(append(errs, err)...)
				}
				n, q.After = n+1, record.Place
				if row, err := a.answers.Of(record); err != nil {
					errs = append(errs, err)
				} else if a.learning.Steps().Due(&row.Value, now) {
					ids = append(ids, row.Value.ID)
				}
			}
			more = n == sweepStep
			errs, swept = append(errs, a.silent(ctx, ids, now)), swept+len(ids)
		}
	}
	if a.watch != nil && swept > 0 {
		a.watch.Tell(ctx, heed.Swept{Component: a.watch.Name(), At: a.cfg.Testing.Now(), Count: swept})
	}
	return errors.Join(errs...)
}

// silent takes answers whose time is over through one step. If that fails, each has a step of its
// own, so that one does not hold up the others.
func (a *Agent) silent(ctx context.Context, ids []string, now time.Time) error {
	if len(ids) == 0 {
		return nil
	}
	var failed error
	err := store.Do(ctx, a.cfg.Store, func(tx *store.Tx) error {
		for _, id := range ids {
			tx.Want(store.Wants{Refs: []store.Ref{a.answers.Ref(answers.ID(id))}})
		}
		if frozen, err := a.isFrozen(tx); err != nil || frozen {
			return err
		}
		// An answer may have become known since it was found: then it is not due any more.
		rows := make([]store.Row[answer.Answer], 0, len(ids))
		for _, id := range ids {
			row, err := a.answers.In(tx, answers.ID(id))
			if err != nil {
				return err
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
				return err
			}
			if rows[i].Value.Reply == nil { // a fire of package learning alone
				a.answers.Put(tx, rows[i].Value, rows[i].Revision)
			} else if err := a.settle(tx, rows[i], before, new(error)); err != nil {
				return err
			}
		}
		failed = a.learning.Steps().FailuresIn(tx)
		return nil
	})
	if err == nil || len(ids) == 1 || ctx.Err() != nil {
		return errors.Join(err, failed)
	}
	errs := []error{err}
	for _, id := range ids {
		errs = append(errs, a.silent(ctx, []string{id}, now))
	}
	return errors.Join(errs...)
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

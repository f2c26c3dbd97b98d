package learning

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/store"
)

// Sweep interprets the silence of the answers whose silence window ended, and closes answers that
// no message can change any more. It is a [heed.Sweeper]. The zero time, and any time after the
// module's clock, means that clock. Call it now and then, because silence counts only here.
//
// It works in steps of one commit each. If some of it fails, those answers stay open until the next
// call. A damaged record is an error, and the others count.
func (m *Module) Sweep(ctx context.Context, now time.Time) error {
	return m.timeouts(ctx, now, func([]*Change) {})
}

var _ heed.Sweeper = (*Module)(nil)

// timeouts is Sweep. It gives counted what each step has counted.
func (m *Module) timeouts(ctx context.Context, now time.Time, counted func([]*Change)) (err error) {
	defer doing("sweep", &err)
	if clock := m.orNow(time.Time{}); now.IsZero() || now.After(clock) {
		now = clock
	}
	s := sweep{m: m, now: m.orNow(now), counted: counted}
	queries, err := answers.Due(ctx, m.cfg.Store, m.kinds.answers.Name, s.now)
	for _, query := range queries {
		if err == nil {
			err = s.all(ctx, query)
		}
	}
	if m.watch != nil && s.swept > 0 {
		m.watch.Tell(ctx, heed.Swept{Component: m.watch.Name(), At: m.cfg.Now(), Count: s.swept})
	}
	m.watch.Failed(ctx, "sweep", err) // the strategy's failures were reported before
	return errors.Join(append(s.failures, err)...)
}

// A sweep is one call of Sweep. It works through the answers that are due in steps of one commit
// each. A step that meets a conflict is repeated with half as many answers, so that two processes
// that sweep at once both make progress.
type sweep struct {
	m        *Module
	now      time.Time
	swept    int
	counted  func([]*Change)
	failures []error // of the strategy, and of records that are damaged
}

// sweepStep is the number of answers in a step of a sweep.
const sweepStep = 256

// all does what is due among the answers of a query, step by step.
func (s *sweep) all(ctx context.Context, query store.Query) error {
	for more := true; more; {
		var changes []*Change
		var failed, damaged error
		var swept int
		query.Limit = sweepStep
		next := query.After
		err := store.Do(ctx, s.m.cfg.Store, func(tx *store.Tx) (err error) {
			var found []store.Record
			changes, found, swept, damaged, err = s.m.sweepIn(tx, query, s.now)
			failed = s.m.Steps().FailuresIn(tx)
			if more = len(found) == query.Limit; len(found) > 0 {
				next = found[len(found)-1].Place
			}
			// with fewer at a time, fewer can be in each other's way
			query.Limit = max(query.Limit/2, 1)
			return err
		})
		s.failures = append(s.failures, failed, damaged)
		if err != nil {
			return err
		}
		query.After, s.swept = next, s.swept+swept
		s.counted(changes)
	}
	return nil
}

// sweepIn does what is due among the answers of a query, and returns how many it changed. It passes
// over records that are damaged.
func (m *Module) sweepIn(
	tx *store.Tx, q store.Query, now time.Time,
) (changes []*Change, found []store.Record, swept int, damaged, err error) {
	var s store.Snapshot
	if err := tx.Read(&s, nil, nil, q); err != nil {
		return nil, nil, 0, nil, err
	}
	found = s.Found[0]
	var due []*heard
	for _, record := range found {
		row, err := m.kinds.answers.Of(record)
		damaged = errors.Join(damaged, err)
		if err != nil || !m.Steps().Due(&row.Value, now) {
			continue
		}
		due = append(due, &heard{Value: &row.Value, id: row.ID, revision: row.Revision})
	}
	r := m.newRun(tx, now)
	if err := r.timeouts(due...); err != nil {
		return nil, nil, 0, nil, err
	}
	for _, on := range due {
		if on.edited {
			swept++
			m.kinds.answers.Put(tx, *on.Value, on.revision)
		}
	}
	return r.changes(r.first), found, swept, damaged, nil
}

// Due reports whether TimeoutIn would change an answer at a moment.
func (m steps) Due(a *answer.Answer, now time.Time) bool {
	return slices.ContainsFunc(a.Fires, func(f answer.Fire) bool {
		return silenceDue(a, &f, now) || closes(a, &f, now)
	})
}

// silent reports whether the silence of a fire was counted, or cannot be.
func silent(a *answer.Answer, f *answer.Fire) bool {
	return f.Silence.IsZero() || answers.ReceptionOf(a, f.Heuristic).Silence != nil
}

func silenceDue(a *answer.Answer, f *answer.Fire, now time.Time) bool {
	return !f.Closed && !silent(a, f) && f.Silence.Before(now)
}

func closes(a *answer.Answer, f *answer.Fire, now time.Time) bool {
	return !f.Closed && silent(a, f) && last(f).Before(now)
}

// askerForgotten reports whether the person who asked may have stated something and was forgotten
// since. Then the answer did not pass in silence. The record does not keep whether it ever named
// the asker, so an answer without an asker loses its silence, too, if somebody else was forgotten.
func askerForgotten(a *answer.Answer) bool {
	return a.Person == "" && slices.ContainsFunc(a.Statements, func(s answer.Statement) bool {
		return s.Forgotten()
	})
}

// TimeoutIn interprets the silence of an answer whose silence window ended, and closes its fires
// that no message can change any more. It counts in the step. The caller puts the record of the
// answer, if it was due. The changes are complete after the commit. Failures of the
// strategy are in FailuresIn of [Module.Steps].
func (m steps) TimeoutIn(tx *store.Tx, a *answer.Answer, now time.Time) ([]*Change, error) {
	r := m.newRun(tx, m.orNow(now))
	if err := r.timeouts(&heard{Value: a}); err != nil {
		return nil, err
	}
	return r.changes(r.first), nil
}

// timeouts reads what it needs at once, and then interprets the silence of answers.
func (r *run) timeouts(all ...*heard) error {
	var ids []string
	for _, on := range all {
		for i := range on.Value.Fires {
			if f := &on.Value.Fires[i]; silenceDue(on.Value, f, r.at) {
				ids = append(ids, concerned(f)...)
			}
		}
	}
	err := r.read(ids...)
	for _, on := range all {
		if err == nil {
			r.timeout(on)
		}
	}
	return err
}

// timeout interprets the silence of the fires of an answer, or closes them.
func (r *run) timeout(on *heard) {
	strategy := r.m.cfg.Strategy
	for i := range on.Value.Fires {
		a, f := on.Value, &on.Value.Fires[i]
		switch {
		case silenceDue(a, f, r.at):
			w := &waiting{on: on, heuristic: f.Heuristic}
			s, err := Signal{HeuristicID: f.Heuristic, EventID: a.ID, Channel: ChannelTimeout}, error(nil)
			// else silence can't count any more
			if known := answers.ReceptionOf(a, f.Heuristic); !known.Observed() && !askerForgotten(a) {
				question := w.question(r.at)
				s, err = ask(func() (Signal, error) { return strategy.InterpretTimeout(question) })
			}
			if r.note(w, answers.Silence, s, err) {
				r.observe(w)
			}
		case closes(a, f, r.at):
			answers.OwnFires(a)
			a.Fires[i].Closed, a.Fires[i].Due, on.edited = true, r.at, true
		}
	}
}

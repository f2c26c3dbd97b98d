package learning

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/store"
)

// Sweep interprets the silence of the answers whose silence window ended, and closes answers that
// no message can change any more. It is a [heed.Sweeper]. The zero time, and any time after the
// module's clock, means that clock. Call it now and then, because silence counts only here.
//
// It works in steps of one commit each, for up to 64 answers. If a step fails, its answers are
// counted one by one, and those that fail again stay open until the next call. A damaged record is
// an error, and the others count.
func (m *Module) Sweep(ctx context.Context, now time.Time) error {
	return m.timeouts(ctx, now, func([]*Change) {})
}

var _ heed.Sweeper = (*Module)(nil)

// timeouts is Sweep. It gives counted what each step has counted.
func (m *Module) timeouts(ctx context.Context, now time.Time, counted func([]*Change)) (err error) {
	defer doing("sweep", &err)
	now = m.orNow(valid.Due(now, m.cfg.Now()))
	var failures []error // of the strategy, which were reported already
	isDue := func(a *answer.Answer) bool { return m.Steps().Due(a, now) }
	swept, err := answers.Sweep(ctx, m.cfg.Store, m.kinds.answers, now, isDue,
		func(ids []string) (n int, err error) {
			var changes []*Change
			var failed error
			err = store.Do(ctx, m.cfg.Store, func(tx *store.Tx) (err error) {
				changes, n, err = m.silent(tx, ids, now)
				failed = m.Steps().FailuresIn(tx)
				return err
			})
			failures = append(failures, failed)
			if err != nil {
				return 0, err
			}
			counted(changes)
			return n, nil
		})
	m.watch.Swept(ctx, m.cfg.Now(), swept)
	m.watch.Failed(ctx, "sweep", err)
	return errors.Join(append(failures, err)...)
}

// silent counts the silence about some answers in a step, and closes those that no message can
// change any more. It returns how many it changed. An answer may have become known since it was
// found: then it is not due any more.
func (m *Module) silent(
	tx *store.Tx, ids []string, now time.Time,
) (changes []*Change, changed int, err error) {
	for _, id := range ids {
		tx.Want(store.Wants{Refs: []store.Ref{m.kinds.answers.Ref(id)}})
	}
	var due []*heard
	for _, id := range ids {
		row, err := m.kinds.answers.In(tx, id)
		if err != nil {
			return nil, 0, err
		}
		due = append(due, &heard{Value: &row.Value, id: row.ID, revision: row.Revision})
	}
	r := m.newRun(tx, now)
	if err := r.timeouts(due...); err != nil {
		return nil, 0, err
	}
	for _, on := range due {
		if on.edited {
			changed++
			m.kinds.answers.Put(tx, *on.Value, on.revision)
		}
	}
	return r.changes(r.first), changed, nil
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

package learning

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/store"
)

// Sweep does what is due at now, as [Module.Timeouts] does. It implements [heed.Sweeper].
func (m *Module) Sweep(ctx context.Context, now time.Time) error {
	_, err := m.Timeouts(ctx, now)
	return err
}

var _ heed.Sweeper = (*Module)(nil)

// Timeouts interprets the silence of all answers whose silence window is over at now, and closes those of which nothing can
// come any more. The zero time means the module's clock. The host calls it now and then, as silence is only heard here.
//
// It works in steps, each of which is one commit, and returns what was counted, also where some of it failed. What failed is
// waited for as before, and comes up again the next time.
func (m *Module) Timeouts(ctx context.Context, now time.Time) (changes []Change, err error) {
	now = m.orNow(now)
	var failures []error
	for after, more := "", true; more && err == nil; {
		step := sweepStep
		r := m.newRun(now)
		var counted []Change
		var next string
		err = m.retry(ctx, nil, func() (err error) {
			r = m.newRun(now)
			counted, next, more, err = r.sweep(ctx, after, step)
			step = max(step/2, 1) // with fewer at a time, fewer can be in each other's way
			return err
		})
		if err == nil {
			after, changes = next, append(changes, counted...)
		}
		failures = append(failures, r.failures...)
	}
	if err := errors.Join(append(failures, err)...); err != nil {
		return changes, fmt.Errorf("learning: sweep: %w", err)
	}
	return changes, nil
}

// sweepStep is how many fires a step of a sweep has.
const sweepStep = 256

// sweep does one step, and returns where the next one begins, if there is more to do.
func (r *run) sweep(ctx context.Context, after string, step int) (changes []Change, next string, more bool, err error) {
	next = after
	var due []*waiting
	var heuristics []string
	query := store.Query{Keys: []string{waitingKey()}, Until: r.at, Oldest: true, After: after, Limit: step}
	for kept, err := range r.m.kinds.fires.Find(ctx, r.m.cfg.Store, query) {
		if err != nil {
			return nil, after, true, err
		}
		due = append(due, &waiting{Kept: kept})
		heuristics = append(heuristics, kept.Value.Heuristic)
		next = kept.Place
	}
	if len(due) == 0 {
		return nil, next, false, nil
	}
	if err := r.read(ctx, heuristics, nil); err != nil {
		return nil, after, true, err
	}
	for _, w := range due {
		r.timeout(w)
	}
	changes, err = r.commit(ctx)
	return changes, next, len(due) == step, err
}

// timeout interprets the silence of a fire, or closes it.
func (r *run) timeout(w *waiting) {
	f := w.Value
	if f.End == "" && !f.Silence.IsZero() {
		s, err := ask(func() (Signal, error) {
			return r.m.cfg.Strategy.InterpretTimeout(Timeout{f.Heuristic, f.Event, f.Domain, r.at.Sub(f.Shown)})
		})
		for _, v := range r.judge(nil, w, endSilence, s, err) {
			r.end(v)
		}
		return
	}
	if f.schedule(r.at); f.Closed {
		r.batch.Records = append(r.batch.Records, r.m.kinds.fires.Record(f, w.Revision))
	}
}

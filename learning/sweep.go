package learning

import (
	"context"
	"errors"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/store"
)

// Sweep does what is due, as [Module.Timeouts] does. It implements [heed.Sweeper].
func (m *Module) Sweep(ctx context.Context, now time.Time) error {
	_, err := m.Timeouts(ctx, now)
	return err
}

var _ heed.Sweeper = (*Module)(nil)

// Timeouts interprets the silence of the answers whose silence window has ended, and closes those that can earn no signal any more. It
// returns what it counted. The zero time, and any time after the module's clock, means that clock. Call it now and then, as silence counts
// only here.
//
// It works in steps of one commit each. If some of it fails, those answers stay open until the next call, and Timeouts returns what it
// counted with the error.
func (m *Module) Timeouts(ctx context.Context, now time.Time) (changes []Change, err error) {
	defer doing("sweep", &err)
	if clock := m.orNow(time.Time{}); now.IsZero() || now.After(clock) {
		now = clock
	}
	now = m.orNow(now)
	var failures []error
	swept := 0
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
			for _, record := range r.batch.Records {
				if record.Kind == m.kinds.fires.Name {
					swept++
				}
			}
		}
		m.failed(ctx, r)
		failures = append(failures, r.failures...)
	}
	if m.watch != nil && swept > 0 {
		m.watch.Tell(ctx, heed.Swept{Component: m.watch.Name(), At: m.cfg.Now(), Count: swept})
	}
	m.watch.Failed(ctx, "sweep", err) // it was told of the strategy's failures
	return changes, errors.Join(append(failures, err)...)
}

// sweepStep is the number of fires in a step of a sweep.
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
		due = append(due, &waiting{Row: kept})
		heuristics = append(heuristics, kept.Value.heuristics()...)
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
	if f.Facts.Silence == nil && !f.Silence.IsZero() {
		s, err := NewSignal(Neutral, f.Heuristic, f.Event, ChannelTimeout), error(nil)
		if !f.Facts.observed() { // else silence can't count any more
			s, err = ask(func() (Signal, error) { return r.m.cfg.Strategy.InterpretTimeout(w.question(r.at)) })
		}
		if r.judge(w, slotSilence, s, err) {
			r.end(w)
		}
		return
	}
	if f.schedule(r.at); f.Closed {
		r.batch.Records = append(r.batch.Records, r.m.kinds.fires.Record(f, w.Revision))
	}
}

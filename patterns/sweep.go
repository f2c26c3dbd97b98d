package patterns

import (
	"context"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/store"
)

// Sweep stores the changes that time alone made, each in one commit: proven patterns that no
// outcome confirmed for long are established again. Every read is right without a sweep. Sweep may
// be called at any rate. It works once a day, or more often if the half-life is below 90 days. The
// zero time, and any time after the recorder's clock, means that clock.
func (r *Recorder) Sweep(ctx context.Context, now time.Time) error {
	if clock := r.cfg.Now(); now.IsZero() || now.After(clock) {
		now = clock
	}
	if !r.due(now) {
		return nil
	}
	changed, err := r.sweep(ctx, now)
	if r.watch != nil && changed > 0 {
		r.watch.Tell(ctx, heed.Swept{Component: r.watch.Name(), At: now, Count: changed})
	}
	if err != nil {
		r.watch.Failed(ctx, "sweep", err)
		return failed("sweep", err)
	}
	r.swept.Store(&now)
	return nil
}

// due reports whether it is time for a sweep.
func (r *Recorder) due(now time.Time) bool {
	every := max(min(24*time.Hour, r.cfg.tuning.Maturity.Recency/90), time.Minute)
	last := r.swept.Load()
	return last == nil || now.Sub(*last) >= every || now.Before(*last)
}

// sweep returns how many patterns it changed. It first tries each pattern on what it has read. Only
// if that would change the pattern, it runs the step, which reads it again. So a sweep without
// changes writes no record.
func (r *Recorder) sweep(ctx context.Context, now time.Time) (changed int, err error) {
	all, err := r.readAll(store.Reading(ctx, r.cfg.Store), PatternQuery{})
	if err != nil {
		return 0, err
	}
	for _, id := range all.order {
		settle := func(d *draft) error {
			d.now = now
			return d.settle(id, "", unedited)
		}
		trial := &draft{reading: all, r: r, tx: store.Reading(ctx, r.cfg.Store), now: now}
		p, kept := all.patterns[id]
		if !kept || p.Value.Anti || settle(trial) != nil || trial.puts == 0 {
			continue // no change
		}
		if _, err := r.change(ctx, []PatternID{id}, settle); err != nil {
			return changed, err
		}
		changed++
	}
	return changed, nil
}

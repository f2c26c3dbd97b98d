package patterns

import (
	"context"
	"reflect"
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
	every := max(min(24*time.Hour, r.cfg.HalfLife/90), time.Minute)
	last := r.swept.Load()
	return last == nil || now.Sub(*last) >= every || now.Before(*last)
}

// sweep returns how many patterns it changed. A pattern that time has changed is read again in its
// step, so a sweep without changes writes no record.
func (r *Recorder) sweep(ctx context.Context, now time.Time) (changed int, err error) {
	all, err := r.readAll(store.Reading(ctx, r.cfg.Store), PatternQuery{})
	if err != nil {
		return 0, err
	}
	for _, id := range all.order {
		kept, stored := all.patterns[id]
		p, tally := kept.Value.clone(), all.tallies[id]
		if r.advance(&p, &tally, now); !stored || reflect.DeepEqual(p, kept.Value) {
			continue
		}
		_, err := r.change(ctx, []PatternID{id}, func(d *draft) error {
			d.now = now
			d.settle(d.edited(id), "", "")
			return nil
		})
		if err != nil {
			return changed, err
		}
		changed++
	}
	return changed, nil
}

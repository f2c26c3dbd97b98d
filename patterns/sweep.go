package patterns

import (
	"context"
	"errors"
	"reflect"
	"time"

	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/store"
)

// Sweep stores the changes that time alone made, each in one commit: proven patterns that no
// outcome confirmed for long are established again. Every read is right without a sweep. Sweep may
// be called at any rate. It works once a day, or more often if the half-life is below 90 days. The
// zero time, and any time after the recorder's clock, means that clock.
func (r *Recorder) Sweep(ctx context.Context, now time.Time) error {
	now = valid.Due(now, r.cfg.Now())
	if !r.due(now) {
		return nil
	}
	changed, err := r.sweep(ctx, now)
	r.watch.Swept(ctx, now, changed)
	r.watch.Failed(ctx, "sweep", err)
	if err == nil {
		r.swept.Store(&now)
	}
	return failed("sweep", err)
}

// due reports whether it is time for a sweep.
func (r *Recorder) due(now time.Time) bool {
	every := max(min(24*time.Hour, r.cfg.HalfLife/90), time.Minute)
	last := r.swept.Load()
	return last == nil || now.Sub(*last) >= every || now.Before(*last)
}

// sweep returns how many patterns it changed, and the errors of the others, joined. A pattern that
// time has changed is read again in its step, so a sweep without changes writes no record.
func (r *Recorder) sweep(ctx context.Context, now time.Time) (changed int, err error) {
	all, err := r.readAll(store.Reading(ctx, r.cfg.Store), PatternQuery{})
	failures := []error{err}
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
		if failures = append(failures, err); err == nil {
			changed++
		}
	}
	return changed, errors.Join(failures...)
}

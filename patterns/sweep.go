package patterns

import (
	"context"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// Sweep stores the changes that time alone made, each in one commit: proven patterns that no
// outcome confirmed for long are established again. It archives patterns without any evidence for
// their half-life, counted from their definition if they never had any. Every read is right
// without a sweep. Sweep may be called at any rate. It works once a day, or more often if the
// settings are about hours. The zero time, and any time after the recorder's clock, means that
// clock.
//
// An archived pattern keeps its evidence and its state, is in no prompt, and comes back with the
// next evidence. Inverted patterns are never archived, because models do not try what the prompt
// warns of, nor are those that somebody decided on by hand.
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
	every := max(min(24*time.Hour, r.cfg.tuning.StaleAfter/90, r.cfg.tuning.Maturity.Recency/90),
		time.Minute)
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
			return d.settle(id, "", func(p *Pattern, t *evidence.Tally) (string,
				error) {
				return r.archive(p, t, now)
			})
		}
		trial := &draft{reading: all, r: r, tx: store.Reading(ctx, r.cfg.Store), now: now}
		if all.patterns[id].Value.Anti || settle(trial) != nil || trial.puts == 0 {
			continue // no change
		}
		if _, err := r.change(ctx, []PatternID{id}, settle); err != nil {
			return changed, err
		}
		changed++
	}
	return changed, nil
}

// archive archives a pattern that has had no evidence for long.
func (r *Recorder) archive(p *Pattern, t *evidence.Tally, now time.Time) (cause string, err error) {
	heard, stale := r.stale(p, t, now)
	if !stale || p.archived() || p.Override != "" || p.State == Inverted {
		return "", nil
	}
	p.ArchivedAt = stored(now)
	return "archived, because its last evidence is of " + heard.UTC().Format(time.DateOnly), nil
}

// unarchive is an edit: it brings a pattern back that has new evidence. Evidence that is older than
// the half-life does not bring it back.
func (r *Recorder) unarchive(p *Pattern, t *evidence.Tally) (cause string, err error) {
	if _, stale := r.stale(p, t, r.cfg.Now()); stale || !p.archived() {
		return "", nil
	}
	p.ArchivedAt = time.Time{}
	return "back from the archive, because it has new evidence", nil
}

// stale returns the time of the last evidence on a pattern, and whether that is too long ago.
func (r *Recorder) stale(
	p *Pattern, t *evidence.Tally, now time.Time,
) (heard time.Time, stale bool) {
	heard = t.Last().Time()
	if heard.IsZero() {
		heard = p.CreatedAt
	}
	return heard, now.Sub(heard) > r.cfg.tuning.StaleAfter
}

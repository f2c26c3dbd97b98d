package patterns

import (
	"context"
	"fmt"
	"time"

	"github.com/heedhq/heed/evidence"
)

// Sweep stores what time alone has made of the patterns (those proven that nothing has confirmed for long are established
// again), and archives those that nothing was heard of for Config.StaleAfter (since they were defined, if nothing ever was).
// [Recorder.Transitions] tells of it. Any read is right without a sweep.
//
// It may be called at any rate: it does its work once a day, or more often where the settings are about hours. Now is taken
// to be no later than the recorder's own clock; the zero time means that clock.
//
// Archived patterns keep their evidence and their state, are in no prompt, and come back with the next thing that is heard
// of them. Inverted patterns are never archived, as nobody tries what the prompt warns of, and neither are those that
// someone decided on by hand.
func (r *Recorder) Sweep(ctx context.Context, now time.Time) error {
	clock := r.cfg.Now()
	if now.IsZero() || now.After(clock) {
		now = clock
	}
	if !r.due(now) {
		return nil
	}
	if err := r.sweep(ctx, now); err != nil {
		return fmt.Errorf("patterns: sweep: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.swept = now
	return nil
}

// due reports whether it is time for a sweep.
func (r *Recorder) due(now time.Time) bool {
	every := max(min(24*time.Hour, r.cfg.StaleAfter/90, r.cfg.Maturity.Recency/90), time.Minute)
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.swept.IsZero() || now.Sub(r.swept) >= every || now.Before(r.swept)
}

func (r *Recorder) sweep(ctx context.Context, now time.Time) error {
	all, err := r.readAll(ctx, PatternQuery{})
	if err != nil {
		return err
	}
	archive := func(p *Pattern, t *evidence.Tally) (string, error) { return r.archive(p, t, now) }
	trial := r.draft(all) // tells which patterns would change
	trial.now = now
	for _, id := range all.order {
		if p, _ := trial.pattern(id); p.Kind != Positive {
			continue
		}
		before := len(trial.order)
		if _, err := trial.settle(id, "", archive); err != nil {
			return err
		}
		if len(trial.order) == before {
			continue
		}
		err := r.retry(ctx, func() error {
			found, err := r.read(ctx, []PatternID{id}, "")
			if err != nil {
				return err
			}
			d := r.draft(found)
			d.now = now
			if _, err = d.settle(id, "", archive); err != nil {
				return err
			}
			_, err = d.commit(ctx)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// archive archives a pattern that nothing was heard of for long.
func (r *Recorder) archive(p *Pattern, t *evidence.Tally, now time.Time) (cause string, err error) {
	heard, stale := r.stale(p, t, now)
	if !stale || p.Archived() || p.Override != nil || p.State == Inverted {
		return "", nil
	}
	p.ArchivedAt = stored(now)
	return "archived, as nothing was heard of it since " + heard.UTC().Format(time.DateOnly), nil
}

// unarchive is an edit.
func (r *Recorder) unarchive(p *Pattern, t *evidence.Tally) (cause string, err error) {
	if _, stale := r.stale(p, t, r.cfg.Now()); stale || !p.Archived() {
		return "", nil
	}
	p.ArchivedAt = time.Time{}
	return "back from the archive, as something was heard of it", nil
}

// stale returns when anything was last heard of a pattern, and whether that is too long ago.
func (r *Recorder) stale(p *Pattern, t *evidence.Tally, now time.Time) (heard time.Time, stale bool) {
	heard = t.Last().Time()
	if heard.IsZero() {
		heard = p.CreatedAt
	}
	return heard, now.Sub(heard) > r.cfg.StaleAfter
}

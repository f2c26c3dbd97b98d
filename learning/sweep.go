package learning

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/heedhq/heed/evidence"
)

// Sweep interprets the silence of all answers whose silence window is over at this moment, and lets go of what is no
// longer waited for. It is for the host to call now and then: the memory of a module does not depend on it, but silence is
// only heard here.
//
// It returns what was counted, also where some of it failed. What failed is waited for as before, and comes up again in
// the next sweep.
func (m *Module) Sweep(ctx context.Context, now time.Time) ([]Change, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	now = instant(now)
	r := m.newRun(now)
	m.fires.each(func(w *watched) bool {
		return !w.silent && !w.silence.IsZero() && now.After(w.silence)
	}, func(w *watched) {
		s, err := ask(func() (Signal, error) {
			return m.cfg.Strategy.InterpretTimeout(Timeout{w.HeuristicID, w.EventID, w.domain, now.Sub(w.At)})
		})
		r.end(ctx, w, endSilence, s, err)
	})
	m.fires.each(func(w *watched) bool { return w.over(now) }, m.fires.drop)
	if err := m.dropClicks(ctx, now); err != nil {
		r.failures = append(r.failures, err)
	}
	if err := errors.Join(r.failures...); err != nil {
		return r.changes, fmt.Errorf("learning: sweep: %w", err)
	}
	return r.changes, nil
}

// over reports whether nothing can come of the fire any more.
func (w *watched) over(now time.Time) bool {
	return (w.silent || w.silence.IsZero()) && (w.undo.IsZero() || now.After(w.undo))
}

// dropClicks forgets, once a period, the clicks that are too old to be replaced.
func (m *Module) dropClicks(ctx context.Context, now time.Time) error {
	period := m.period(now)
	m.fires.mu.Lock()
	done := m.fires.clicks >= period
	m.fires.mu.Unlock()
	if done || m.cfg.DryRun {
		return nil
	}
	var b evidence.Batch
	for old := period - 12; old < period-1; old++ {
		b.Reset = append(b.Reset, evidence.Selection{Kind: m.kinds.click, Scope: periodScope(old)})
	}
	if _, err := m.cfg.Evidence.Commit(ctx, b); err != nil {
		return err
	}
	m.fires.mu.Lock()
	defer m.fires.mu.Unlock()
	m.fires.clicks = max(m.fires.clicks, period)
	return nil
}

package loop

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/store"
)

// pathReevaluated is the path of what the model says of heuristics while nobody waits.
const pathReevaluated = "reevaluated"

// A sleep reevaluates heuristics when that is due.
type sleep struct{ a *Agent }

// Sweep implements [heed.Sweeper].
func (s sleep) Sweep(ctx context.Context, now time.Time) error {
	a := s.a
	if a.cfg.Reevaluate == 0 || a.learning == nil || len(a.model(Arm{}).models) == 0 ||
		a.frozen.Load() {
		return nil
	}
	if clock := a.cfg.Now(); now.IsZero() || now.After(clock) {
		now = clock
	}
	due, err := a.claim(ctx, now)
	if err != nil || !due {
		return wrap("reevaluate", err)
	}
	return wrap("reevaluate", a.reevaluate(ctx, now))
}

// claim notes that heuristics are reevaluated now, if that is due and nobody else does it.
func (a *Agent) claim(ctx context.Context, now time.Time) (bool, error) {
	id := a.cfg.Name + "/reevaluated"
	kept, err := a.editions.Get(ctx, a.cfg.Store, id)
	if err != nil && !errors.Is(err, heed.ErrNotFound) {
		return false, err
	}
	if kept.Revision > 0 && now.Sub(kept.Value.At) < a.cfg.Reevaluate {
		return false, nil
	}
	_, err = a.cfg.Store.Commit(ctx, store.Batch{
		Records: []store.Record{a.editions.Record(edition{id, now}, kept.Revision)},
	})
	if errors.Is(err, heed.ErrConflict) { // somebody was quicker
		return false, nil
	}
	return err == nil, err
}

// reevaluate asks the model about some heuristics. Nobody sees its answers. They count as answers that people accepted by their silence,
// in the next sweep after it.
func (a *Agent) reevaluate(ctx context.Context, now time.Time) error {
	var ids []string
	var all []decision.Candidate
	for h, err := range a.learning.Heuristics(ctx) {
		if err != nil {
			return err
		}
		if h.Action != "" {
			ids = append(ids, h.ID)
			all = append(all, decision.Candidate{HeuristicID: h.ID, Condition: h.Condition, Action: h.Action})
		}
	}
	standings, err := a.learning.Standings(ctx, ids...)
	if err != nil {
		return err
	}
	for i := range all {
		all[i].Confidence = standings[all[i].HeuristicID].Confidence
	}
	d := a.decider.Config()
	found, err := decision.Reevaluate(ctx, decision.ReevaluateConfig{
		Strategy: unheard{a.decider, a.model(Arm{})}, Similarity: d.Similarity,
		Threshold: d.SimilarityThreshold, Seed: a.dice(now),
	}, all)
	errs := []error{err}
	for _, r := range found {
		for _, c := range r.Result.Compared {
			errs = append(errs, a.dreamt(ctx, &c, now))
		}
	}
	return errors.Join(errs...)
}

// An unheard strategy asks a model, shows it nothing and keeps no trace.
type unheard struct {
	decider *decision.Decider
	model   decision.LLM
}

// Decide implements [decision.Strategy].
func (u unheard) Decide(ctx context.Context, r decision.Request) (decision.Result, error) {
	r.AskModel, r.ShowNone = true, true
	ask, err := u.decider.Ask(r)
	if err != nil {
		return decision.Result{}, err
	}
	return u.decider.Reply(ctx, r, ask, u.model)
}

// dice draw the heuristics of one time.
func (a *Agent) dice(now time.Time) rand.Source {
	if a.strategy.seed == [2]uint64{} {
		return nil
	}
	return rand.NewPCG(a.strategy.seed[0], uint64(now.UnixNano())) //nolint:gosec // it is not negative
}

// dreamt has a comparison wait for silence, as an answer of the model's does.
func (a *Agent) dreamt(ctx context.Context, c *answer.Comparison, now time.Time) error {
	return a.learning.Fire(ctx, learning.Fire{
		EventID: fmt.Sprint("reevaluated:", store.IDOf(a.cfg.Name, c.HeuristicID), ":", now.UnixNano()),
		Path:    pathReevaluated, Compared: []answer.Comparison{*c}, At: now,
	})
}

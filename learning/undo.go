package learning

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/limits"
	"github.com/heedhq/heed/store"
)

// An Undo takes answers back.
type Undo struct {
	EventID     string // what was answered; never empty
	HeuristicID string // "" means all answers to the event
	Person      string // who takes it back, the source of the evidence; "" means the one to whom it was shown
	Session     string // where; for logs
	At          time.Time
}

// Undo takes back answers to an event. It is a command, and nothing sets it aside. It can come as long as the store keeps the answer, 30 days by
// default. It returns what it counted: nothing for answers that were taken back before. With caps on persons, as in [Guarded], the undos of several
// persons count each for itself: 41 of one answer at most.
//
// Invalid input is a [*heed.InputError], as is an At more than [evidence.MaxSkew] before an answer. If there is no such answer, Undo returns
// [heed.ErrNotFound]. Further batches are committed with it, as in [Module.Judge].
func (m *Module) Undo(ctx context.Context, u Undo, with ...store.Batch) (changes []Change, err error) {
	defer doing("undo", &err)
	if u.EventID == "" {
		return nil, errEmpty("EventID")
	}
	u.At = m.orNow(u.At)
	err = checkTexts(text{"EventID", u.EventID}, text{"HeuristicID", u.HeuristicID}, text{"Person", u.Person}, text{"Session", u.Session})
	if err := cmp.Or(err, limits.CheckTime("At", u.At, m.cfg.Now())); err != nil {
		return nil, err
	}
	r := m.newRun(u.At)
	err = m.retry(ctx, with, func() (err error) {
		r = m.newRun(u.At)
		changes, err = r.undoEvent(ctx, &u, with)
		return err
	})
	m.failed(ctx, r)
	return changes, errors.Join(append(r.failures, err)...)
}

func (r *run) undoEvent(ctx context.Context, u *Undo, with []store.Batch) ([]Change, error) {
	found, err := r.find(ctx, func(w *fired) bool {
		return !w.Shown.IsZero() && (u.HeuristicID == "" || u.HeuristicID == w.Heuristic)
	}, []string{eventKey(u.EventID)})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("EventID: no answer to it, call Fire first: %w", heed.ErrNotFound)
	}
	if slices.ContainsFunc(found, func(w *waiting) bool { return w.Value.before(u.At) }) {
		return nil, errBefore
	}
	found = slices.DeleteFunc(found, func(w *waiting) bool { return !r.m.countsUndo(&w.Value, cmp.Or(u.Person, w.Value.Person)) })
	if len(found) == 0 {
		_, err := r.m.commit(ctx, store.Batch{}, with...)
		return nil, err
	}
	ended, _ := r.takeBack(found, "")
	if len(ended) == 0 {
		if len(r.failures) == 0 {
			_, err = r.m.commit(ctx, store.Batch{}, with...)
		}
		return nil, err
	}
	if err := r.read(ctx, heuristicsOf(ended), nil); err != nil {
		return nil, err
	}
	for _, w := range ended {
		if u.Person != w.Value.Person {
			w.by = u.Person
		}
		r.end(w)
	}
	return r.commit(ctx, with...)
}

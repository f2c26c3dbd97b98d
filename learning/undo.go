package learning

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/store"
)

// An Undo takes answers back.
type Undo struct {
	// EventID is the event that was answered. It must not be empty.
	EventID string
	// HeuristicID selects one of the answers to the event. "" means all of them.
	HeuristicID string
	// Person takes the answers back, and is the source of the evidence. "" means the person to whom
	// they were shown.
	Person string
	// Session is where the command was given, for logs.
	Session string
	// At is when it was given. The zero time means now.
	At time.Time
}

// Undo takes back answers to an event. It always counts, because it is a command. It can come as
// long as the store keeps the answer, 30 days by default. It returns what it counted, without
// answers that the same person took back before. The record of an answer contains the undos of 41
// people at most. Each of them counts for itself against the heuristic.
//
// Invalid input is a [*heed.InputError], as is an At more than [evidence.MaxSkew] before an answer.
// If there is no such answer, Undo returns [heed.ErrNotFound].
func (m *Module) Undo(ctx context.Context, u Undo) (_ []Change, err error) {
	defer doing("undo", &err)
	var changes []*Change
	var failed error
	err = m.step(ctx, u.EventID, u.HeuristicID, func(tx *store.Tx, a *answer.Answer) (err error) {
		changes, err = m.UndoIn(tx, a, u)
		failed = m.Steps().FailuresIn(tx)
		return err
	})
	return valuesOf(changes, err), errors.Join(failed, err)
}

// UndoIn is [Module.Undo] as a part of a step. The caller puts the record of the answer. Failures
// of the strategy are in FailuresIn of [Module.Steps]. u may leave EventID empty.
func (m *Module) UndoIn(tx *store.Tx, a *answer.Answer, u Undo) ([]*Change, error) {
	u.EventID, u.At = cmp.Or(u.EventID, a.ID), m.orNow(u.At)
	texts := valid.Texts(evidence.MaxText, "EventID", u.EventID, "HeuristicID", u.HeuristicID,
		"Person", u.Person, "Session", u.Session)
	if err := cmp.Or(texts, valid.Time("At", u.At, m.cfg.Now())); err != nil {
		return nil, err
	}
	r := m.newRun(tx, u.At)
	var found []*waiting
	for i := range a.Fires {
		f := &a.Fires[i]
		switch {
		case f.Shown.IsZero() || u.HeuristicID != "" && u.HeuristicID != f.Heuristic:
			continue
		case before(f, u.At):
			return nil, errBefore
		}
		found = append(found, &waiting{on: &heard{Value: a}, heuristic: f.Heuristic})
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("EventID: no answer to it, call Fire first: %w", heed.ErrNotFound)
	}
	found = slices.DeleteFunc(found, func(w *waiting) bool {
		return !recordsUndo(a, w.fire(), cmp.Or(u.Person, a.Person))
	})
	if len(found) == 0 {
		return nil, nil
	}
	sortByShown(found)
	ended, _ := r.takeBack(found, "")
	if err := r.readFor(ended); err != nil {
		return nil, err
	}
	for _, w := range ended {
		w.by = u.Person
		if w.session = u.Session; u.Session == a.Session {
			w.session = ""
		}
		r.observe(w)
	}
	return r.changes(r.first), nil
}

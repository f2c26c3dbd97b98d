package loop

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
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/store"
)

// How the record of an answer is changed. Each call that reports something about an answer, such as
// React, is one step: change reads the record, an edit of the call adds a statement to it, and
// settle credits the arm with the difference and writes the record. What is derived from the
// statements is never added to: it is computed again from all of them, so the order in which they
// arrive does not matter.

// ErrNoAnswer reports that no answer has this id, or that it is not kept any more. It is a
// [heed.ErrNotFound].
var ErrNoAnswer = fmt.Errorf("no answer has this id: %w", heed.ErrNotFound)

// checkID reports an id that can't be an answer's.
func checkID(id string) error {
	if id == "" {
		return &heed.InputError{Field: "id", Reason: "must not be empty"}
	}
	return nil
}

// read reads the record of an answer.
func (a *Agent) read(ctx context.Context, id string) (answer.Answer, error) {
	if err := checkID(id); err != nil {
		return answer.Answer{}, err
	}
	row, err := a.in(store.Reading(ctx, a.cfg.Store), id)
	return row.Value, err
}

// Find returns the id of the newest answer of a session, for an outcome that has the session alone,
// such as the outcome of a ticket. Answers that took another one back are left out. Without any
// answer, the error is [ErrNoAnswer].
func (a *Agent) Find(ctx context.Context, session string) (id string, err error) {
	if err := valid.Names(evidence.MaxText, "session", session); err != nil {
		return "", wrap("find", err)
	}
	id, err = a.answered(ctx, session, "", time.Time{})
	return id, wrap("find", err)
}

// answered returns the answer that a session was given last, until a moment unless that is zero,
// for an item unless that is empty. Answers come from the newest on. The first one at the moment or
// before is the one; without such, it is the earliest of those that follow within the skew of
// clocks.
func (a *Agent) answered(
	ctx context.Context, session, item string, until time.Time,
) (id string, err error) {
	q := store.Query{Keys: []string{answers.Session(session)}}
	if !until.IsZero() {
		q.Until = until.Add(evidence.MaxSkew + time.Microsecond) // because clocks differ
	}
	for row, err := range a.answers.Find(ctx, a.cfg.Store, q) {
		if err != nil {
			return "", err
		}
		r := &row.Value
		if r.Session != session || r.Reply == nil || len(r.Undoes) > 0 ||
			item != "" && (r.Choice == nil || r.Choice.Item != item) {
			continue
		}
		if id = r.ID; until.IsZero() || !r.At.After(until) {
			break
		}
	}
	if id == "" {
		return "", ErrNoAnswer
	}
	return id, nil
}

// in returns the record of an answer as a step sees it.
func (a *Agent) in(tx *store.Tx, id string) (store.Row[answer.Answer], error) {
	row, err := a.answers.In(tx, answers.ID(id))
	if err == nil && row.Value.Reply == nil {
		err = ErrNoAnswer
	}
	return row, err
}

// change runs a step that changes the record of an answer, and credits the arm with the statements
// on the changed record. If the agent is frozen, it does not change the record or call edit.
func (a *Agent) change(
	ctx context.Context, id string, edit func(*store.Tx, *answer.Answer) error,
) error {
	if err := checkID(id); err != nil {
		return err
	}
	var stands error
	err := store.Do(ctx, a.cfg.Store, func(tx *store.Tx) error {
		return a.changeIn(tx, id, &stands, func(r *answer.Answer) error { return edit(tx, r) })
	})
	// the store forgot what is to be replaced
	if errors.Is(err, heed.ErrNotFound) && !errors.Is(err, ErrNoAnswer) {
		err = fmt.Errorf("the statement before: %w", evidence.ErrForgotten)
	}
	return cmp.Or(err, stands)
}

// changeIn is change as a part of a step. An edit may run several times, so it must not keep
// anything outside of the record.
func (a *Agent) changeIn(
	tx *store.Tx, id string, stands *error, edit func(*answer.Answer) error,
) error {
	// The record and the freeze are one read. What crediting the arm reads follows from the record,
	// so it is the second one.
	a.wantFrozen(tx)
	row, err := a.in(tx, id)
	if err != nil {
		return err
	}
	if frozen, err := a.isFrozen(tx); err != nil || frozen {
		return err
	}
	a.wantArm(tx, &row.Value)
	before := answers.ForArm(&row.Value)
	if err := edit(&row.Value); err != nil {
		return err
	}
	return a.settle(tx, row, before, stands)
}

// wantArm names what crediting the arm of an answer reads, so that it is read together with what a
// statement needs.
func (a *Agent) wantArm(tx *store.Tx, r *answer.Answer) {
	if learner := a.learner; learner != nil && r.Choice != nil {
		tx.Want(learner.CreditWants(r))
	}
}

// settle credits the arm of an answer and puts its record. If something can't be replaced in the
// arm's evidence, it goes on counting: when the step has been committed, stands is set to an error
// that names it, and the observer receives it.
func (a *Agent) settle(
	tx *store.Tx, row store.Row[answer.Answer], before []answers.ArmPart, stands *error,
) error {
	if err := a.credit(tx, &row.Value, before, stands); err != nil {
		return err
	}
	a.countGain(tx, &row.Value)
	a.changed.touch(&row.Value)
	a.answers.Put(tx, row.Value, row.Revision)
	return nil
}

// credit brings the arm's evidence in line with what the record of an answer has. before is what
// counted before the step: if that is the same, an arm that is not configured any more is not
// looked at again.
func (a *Agent) credit(
	tx *store.Tx, r *answer.Answer, before []answers.ArmPart, stands *error,
) error {
	if a.learner == nil || r.Choice == nil {
		return nil
	}
	// An arm that was taken out of the configuration keeps what it was credited with. It is looked at
	// again only if the statements changed.
	_, known := a.arm(string(r.Choice.Arm))
	configured := known && r.Choice.Learner == a.learner.Config().Name
	if !configured && slices.Equal(before, answers.ForArm(r)) {
		return nil
	}
	kept, err := a.learner.CreditIn(tx, r)
	if err != nil {
		return err
	}
	id := r.ID
	tx.Then(func(_ store.Receipt, err error) {
		// Whether the store could take back the former credit is known after the commit.
		if err == nil && *kept != nil {
			*stands = fmt.Errorf("%w: %w", errStands, *kept)
			a.watch.Failed(tx.Context(), "replace what the arm was credited with for "+id, *kept)
		}
	})
	return nil
}

// errStands reports that an arm keeps its credit, because it can't be replaced.
var errStands = errors.New("the arm keeps what it was credited with before")

// own returns the reply of a record to be changed.
func own(r *answer.Answer) *answer.Reply {
	reply := *r.Reply
	r.Reply = &reply
	return r.Reply
}

// addStatement puts a statement on the record of an answer, and counts it for the heuristic. That
// is s.Of, which may be empty.
func (a *Agent) addStatement(tx *store.Tx, r *answer.Answer, s answer.Statement) error {
	_, err := a.learning.JudgeIn(tx, r, s)
	if errors.Is(err, heed.ErrNotFound) { // the heuristic was deleted
		answers.Say(r, s)
		return nil
	}
	return err
}

// The kinds of records other than answers.

// A noteRow is a note as it is stored.
type noteRow struct {
	Note
	At time.Time `json:"at"`
}

// notesOf returns the kind of an agent's notes. It is versioned, so that one small read shows
// whether a process has all of them.
func notesOf(name string) store.View[noteRow] {
	return store.View[noteRow]{
		Kind: store.Kind{
			Name: name + ".note", Limits: store.Limits{Most: 100_000, Refuse: true}, Versioned: true,
		},
		Place: func(n noteRow) (string, time.Time, []string) {
			return store.IDOf(n.ID), n.At, nil
		},
	}
}

// A lessonRow marks a heuristic that was taught.
type lessonRow struct {
	ID string    `json:"id"`
	At time.Time `json:"at"`
}

// lessonsOf returns the kind of the marks of taught heuristics.
func lessonsOf(name string) store.View[lessonRow] {
	return store.View[lessonRow]{
		Kind:  store.Kind{Name: name + ".lesson", Limits: store.Limits{Most: 100_000, Refuse: true}},
		Place: func(l lessonRow) (string, time.Time, []string) { return store.IDOf(l.ID), l.At, nil },
	}
}

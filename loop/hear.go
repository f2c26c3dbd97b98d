package loop

import (
	"context"
	"errors"
	"slices"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/store"
)

// How a message counts for earlier answers. Package learning decides what its text means. The loop
// adds the arm: each record that the message changed is settled in the same step.

// Hear interprets a later message of a session that is not to be answered. It may take an answer
// back, show how it turned out, or pass it over. [Agent.Answer] and [Agent.Prepare] do so with
// their own event. The message's session, person and stream select the answers that it can be
// about. Hear returns what it changed. If the store forgot what an arm was credited with, Hear
// returns that and an error like [Agent.React].
func (a *Agent) Hear(ctx context.Context, m learning.Message) ([]learning.Change, error) {
	if m.At.IsZero() {
		m.At = a.cfg.Testing.Now()
	}
	if err := a.cfg.person("Person", m.Person); err != nil {
		return nil, wrap("hear", err)
	}
	h, err := a.learning.Steps().Hearing(m)
	if err != nil {
		return nil, wrap("hear", err)
	}
	var changes []*learning.Change
	var failed, stands error
	err = store.Do(ctx, a.cfg.Store, func(tx *store.Tx) error {
		tx.Want(h.Wants())
		frozen, err := a.isFrozen(tx)
		if changes = nil; err != nil || frozen {
			return err
		}
		changes, _, err = a.heard(tx, h, &stands)
		failed = a.learning.Steps().FailuresIn(tx)
		return err
	})
	return changesOf(changes), wrap("hear", errors.Join(err, failed, stands))
}

// heard counts what a message means, credits the arms of the answers that it changes, and returns
// what changed and which answers were taken back. A record without a reply is a fire of package
// learning alone, and has no arm.
func (a *Agent) heard(
	tx *store.Tx, h hearing, stands *error,
) (changes []*learning.Change, undone []string, err error) {
	rows, changes, err := h.In(tx)
	if err != nil {
		return nil, nil, err
	}
	for _, row := range rows {
		if row.Value.Reply != nil {
			if err := a.settle(tx, row, nil, stands); err != nil {
				return nil, nil, err
			}
		}
	}
	return changes, undoneBy(changes), nil
}

// undoneBy returns the answers that changes take back.
func undoneBy(changes []*learning.Change) (ids []string) {
	for _, c := range changes {
		if s := &c.Signal; s.Channel == learning.ChannelUndo && s.EventID != "" &&
			!slices.Contains(ids, s.EventID) {
			ids = append(ids, s.EventID)
		}
	}
	return ids
}

// changesOf returns copies, because the step may run again and change the originals.
func changesOf(all []*learning.Change) (changes []learning.Change) {
	for _, c := range all {
		changes = append(changes, *c)
	}
	return changes
}

// A hearing is a message as package learning interprets it, before it counts.
type hearing interface {
	Command() bool
	Wants() store.Wants
	In(tx *store.Tx) (rows []store.Row[answer.Answer], changes []*learning.Change, err error)
}

// hearing returns how an event's own text is interpreted.
func (a *Agent) hearing(e *Event) (hearing, error) {
	return a.learning.Steps().Hearing(learning.Message{
		ID: e.ID, Stream: e.Stream, Session: e.Session, Person: e.Person, Text: e.Text, At: e.At,
	})
}

// undoneQuery finds the answers that an event's text took back already, by a plan before this one.
func (a *Agent) undoneQuery(e *Event) store.Query {
	return store.Query{Kind: a.answers.Name, Keys: []string{answers.UndoneBy(e.ID)}}
}

// undoneBefore returns the answers that an event's text took back already. If the event is prepared
// a second time, its text must not look for another answer to undo.
func (a *Agent) undoneBefore(tx *store.Tx, e *Event) (ids []string, err error) {
	var s store.Snapshot
	if err := tx.Read(&s, nil, nil, a.undoneQuery(e)); err != nil {
		return nil, err
	}
	for _, r := range s.Found[0] {
		row, err := a.answers.Of(r)
		if err != nil {
			return nil, err
		}
		by := func(s answer.Statement) bool { return s.How == answers.Undo && s.Message == e.ID }
		if slices.ContainsFunc(row.Value.Statements, by) {
			ids = append(ids, row.Value.ID)
		}
	}
	return ids, nil
}

// hearIn counts what the event's own text means for earlier answers.
func (a *Agent) hearIn(tx *store.Tx, p *Plan, h hearing) (changes []*learning.Change, err error) {
	e := &p.Event
	if p.Command {
		if p.Undone, err = a.undoneBefore(tx, e); err != nil {
			return nil, err
		}
	}
	changes, undone, err := a.heard(tx, h, new(error))
	p.Undone = append(p.Undone, undone...) // a message takes an answer back once
	return changes, err
}

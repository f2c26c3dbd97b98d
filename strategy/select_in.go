package strategy

import (
	"context"
	"time"

	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/store"
)

// Wants names what [Learner.SelectIn] reads for a query, so that a step reads it together with what
// else it needs. It names nothing if this process remembers the session's choice.
func (l *Learner) Wants(q Query) (w store.Wants) {
	if l.cfg.Disabled || l.validateQuery(&q) != nil {
		return w
	}
	s, err := l.segment(q.Category, q.Context)
	if err != nil {
		return w
	}
	if q.Session != "" {
		name := answers.InSession(q.Item, q.Category, q.Context)
		if _, ok := l.pointed(&q, name, nil, l.cfg.Now()); ok {
			return w
		}
		if !l.cfg.Unrecorded {
			ofSession, ofChoice := bothIDs(l.cfg.Name, q.Session, name)
			w.Refs = []store.Ref{sessions.Ref(ofSession), sessions.Ref(ofChoice)}
		}
	}
	w.Cells = l.itemCells(s, q.Item, nil)
	return w
}

// SelectIn chooses an arm as a part of a step, for a host that keeps the choice in a record of an
// answer: see [Learner.CreditIn]. It draws as [Learner.Select] does, and the rules for errors are
// the same. It writes no answer. If a session chooses for an item for the first time, it writes a
// small record, by which all processes give the session one arm. Without a session it writes
// nothing. With [Config].Topic it adds the choice's event.
func (l *Learner) SelectIn(tx *store.Tx, q Query) (Choice, error) {
	return l.choice(tx.Context(), tx, &q)
}

// pointed returns the choice that this process remembers of a session, if the choice is still good.
func (l *Learner) pointed(
	q *Query, name string, own *ownChoice, now time.Time,
) (*remembered, bool) {
	r, ok := l.pointers.Get(q.Session, name, now)
	if !ok || !l.fresh(*r, q, own, now) {
		return nil, false
	}
	return *r, true
}

// rememberIn returns the choice that the session remembers, or makes one, as a part of a step.
func (l *Learner) rememberIn(
	tx *store.Tx, of Query, now time.Time, own *ownChoice,
) (Choice, error) {
	q, r, name := &of, &remembered{}, ""
	if q.Session != "" {
		name = answers.InSession(q.Item, q.Category, q.Context)
		if known, ok := l.pointed(q, name, own, now); ok {
			return known.choice(), nil
		}
	}
	if err := l.chooseIn(tx, q, name, now, own, r); err != nil {
		return Choice{}, err
	}
	tx.Then(func(_ store.Receipt, err error) {
		switch {
		case err != nil || q.Frozen:
			return
		case q.Session != "":
			l.pointers.Put(q.Session, name, now, r)
		}
		if l.watch != nil && r.drawn {
			l.watch.Tell(tx.Context(), l.selected(&r.made))
		}
	})
	return r.choice(), nil
}

// chooseIn takes over the choice that a session's record points to, or makes one.
func (l *Learner) chooseIn(
	tx *store.Tx, q *Query, name string, now time.Time, own *ownChoice, r *remembered,
) error {
	s, err := l.segment(q.Category, q.Context)
	if err != nil {
		return err
	}
	into := &scratch{cells: l.itemCells(s, q.Item, nil)}
	recalls := !l.cfg.Unrecorded && q.Session != ""
	if recalls {
		ofSession, ofChoice := bothIDs(l.cfg.Name, q.Session, name)
		into.refs = []store.Ref{sessions.Ref(ofSession), sessions.Ref(ofChoice)}
	}
	if err := l.readIn(tx, s, now, into); err != nil {
		return err
	}
	l.begin(q, now, &r.details)
	number := l.number(q)
	var pointer store.Row[sessionRow]
	if recalls {
		session, err := sessions.In(tx, into.refs[0].ID)
		if err != nil {
			return err
		}
		if pointer, err = sessions.In(tx, into.refs[1].ID); err != nil {
			return err
		}
		if l.recall(pointer.Value.Choice, session.Value.Epoch, q, own, now, r) {
			return nil
		}
	}
	if err := l.drawItem(s, q, number, own, now, into, r); err != nil || q.Frozen {
		return err
	}
	if recalls {
		sessions.Put(tx, sessionRow{ID: pointer.ID, At: r.made.At, Choice: &r.made}, pointer.Revision)
	}
	var b store.Batch
	if l.cfg.Topic != "" {
		err = l.emitSelected(&b, r)
	}
	tx.Add(b)
	return err
}

// readIn reads what is named in the scratch as a part of a step. It loads the segment if that is
// older than Config.Refresh.
func (l *Learner) readIn(tx *store.Tx, s *segment, now time.Time, into *scratch) error {
	if err := l.reload(tx.Context(), s, now); err != nil {
		return err
	}
	return tx.Read(&into.Snapshot, into.cells, into.refs)
}

// reload loads a segment that is older than Config.Refresh.
func (l *Learner) reload(ctx context.Context, s *segment, now time.Time) error {
	stale, err := l.stale(ctx, s, now)
	if err != nil || !stale {
		return err
	}
	defer s.loading.Unlock()
	return l.load(ctx, s, now, &scratch{})
}

// BeliefsIn does what [Learner.Beliefs] does as a part of a step. What it reads is among what
// [Learner.Wants] names, unless this process remembers the session's choice.
func (l *Learner) BeliefsIn(tx *store.Tx, q Query) (_ []Belief, err error) {
	defer because(&err, "beliefs")
	if err := q.validate(); err != nil {
		return nil, err
	}
	now := l.cfg.Now()
	s, err := l.segment(q.Category, q.Context)
	if err != nil {
		return nil, err
	}
	into := &scratch{cells: l.itemCells(s, q.Item, nil)}
	if err := l.readIn(tx, s, now, into); err != nil {
		return nil, err
	}
	return l.believe(s, &q, now, into), nil
}

// believe returns the beliefs that follow from what was read of an item.
func (l *Learner) believe(s *segment, q *Query, now time.Time, read *scratch) []Belief {
	l.readItem(s, q.Item, now, read)
	s.mu.RLock()
	defer s.mu.RUnlock()
	s.model.Believe(read.item, read.beliefs)
	return read.beliefs
}

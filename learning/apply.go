package learning

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/store"
)

// An Origin is where a signal comes from, for example a message and its author.
type Origin struct {
	ID      string // never empty
	Person  string // who caused it; may be empty
	Session string // where; may be empty
	At      time.Time
}

func (m *Module) checkSignal(s *Signal, o *Origin) error {
	if o.ID == "" {
		return errEmpty("ID")
	}
	texts := checkTexts(text{"ID", o.ID}, text{"Person", o.Person}, text{"Session", o.Session})
	if err := cmp.Or(texts, s.Validate()); err != nil {
		return err
	}
	if s.HeuristicID == "" {
		return errEmpty("HeuristicID")
	}
	return nil
}

// Apply counts a signal that the host made. Signals of the same origin ID count once. If the signal
// names an event, and its channel is not one of the implicit ones, it becomes a statement about
// that answer: like a judgement, it takes precedence over silence and other implicit signals. It
// counts for the heuristic alone, not for an arm.
func (m *Module) Apply(ctx context.Context, s Signal, o Origin) (_ Change, err error) {
	defer doing("apply", &err)
	o.At = m.orNow(o.At)
	if err := m.checkSignal(&s, &o); err != nil {
		return Change{}, err
	}
	if s.neutral() { // the store need not be read
		return Change{Signal: s, Limits: []Limit{LimitNeutral}}, ctx.Err()
	}
	change := new(Change)
	err = store.Do(ctx, m.cfg.Store, func(tx *store.Tx) (err error) {
		tx.Want(m.Wants(s.HeuristicID))
		if !s.stated() {
			change, err = m.ApplyIn(tx, nil, s, o)
			return err
		}
		row, err := m.load(tx, s.EventID)
		if err != nil {
			return err
		}
		before := row.Value.Numbers
		change, err = m.ApplyIn(tx, &row.Value, s, o)
		if err == nil && row.Value.Numbers != before {
			m.kinds.answers.Put(tx, row.Value, row.Revision)
		}
		return err
	})
	if err != nil {
		return Change{}, err
	}
	return *change, nil
}

// stated reports whether a signal of the host's becomes a statement about an answer.
func (s *Signal) stated() bool { return s.EventID != "" && !implicit(s.Channel) }

// ApplyIn is [Module.Apply] as a part of a step. a is the answer to the signal's event, and may be
// nil if the signal does not become a statement. The caller puts the record of the answer. The
// change is complete after the commit.
func (m *Module) ApplyIn(tx *store.Tx, a *answer.Answer, s Signal, o Origin) (*Change, error) {
	o.At = m.orNow(o.At)
	if err := m.checkSignal(&s, &o); err != nil {
		return nil, err
	}
	if s.neutral() {
		return &Change{Signal: s, Limits: []Limit{LimitNeutral}}, nil
	}
	l := m.ledger(tx)
	e := &entry{
		signal: s, cell: cellSeen, id: "signal:" + store.IDOf(m.cfg.Name, o.ID) + ":seen",
		person: o.Person, session: o.Session, at: o.At,
	}
	if s.Channel == ChannelTimeout {
		e.cell = cellSilence
	}
	if a == nil || !s.stated() {
		if err := l.read(s.HeuristicID); err != nil {
			return nil, err
		}
		return &e.change, l.count(e)
	}
	f := a.Fire(s.HeuristicID)
	if err := l.read(append(concerned(f), s.HeuristicID)...); err != nil {
		return nil, err
	}
	of, err := l.account(s.HeuristicID)
	if err != nil {
		return nil, err
	}
	if before(f, o.At) {
		return nil, errBefore
	}
	e.on, e.stated = a, true
	if slices.ContainsFunc(a.Statements, func(s answer.Statement) bool {
		return s.How == answer.Judged && s.Of == e.signal.HeuristicID && s.ID == o.ID
	}) {
		l.repeated(e, of, o.At)
		return &e.change, nil
	}
	statement := answer.Statement{
		ID: o.ID, By: o.Person, Session: o.Session, Channel: s.Channel, Target: s.Target,
		Of:    s.HeuristicID,
		Worth: s.worth(), At: o.At,
	}
	if l.blocked(of, f) != "" {
		statement.Worth = 0
	}
	return l.judge(e, of, a, statement)
}

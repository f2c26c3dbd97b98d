package learning

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/store"
)

// An Origin is where a signal comes from, for example a message and its author.
type Origin struct {
	// ID identifies what the host observed, for example a message. Signals of the same ID count once.
	// It must not be empty.
	ID string
	// Person is who caused the signal, and the source of the evidence. "" means that it is unknown.
	Person string
	// Session is where it happened, for logs and for forgetting. It may be empty.
	Session string
	// At is when it happened. The zero time means now.
	At time.Time
}

// checkSignal reports the first fault of a signal and its origin.
func (m *Module) checkSignal(s *Signal, o *Origin) error {
	return cmp.Or(valid.Names(evidence.MaxText, "ID", o.ID), valid.Texts(evidence.MaxText,
		"Person", o.Person, "Session", o.Session), s.Validate(),
		valid.Names(evidence.MaxText, "HeuristicID", s.HeuristicID))
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
		return Change{Signal: s, Limits: []string{limitNeutral}}, ctx.Err()
	}
	e := &entry{
		signal: s, cell: cellSeen, id: "signal:" + store.IDOf(m.cfg.Name, o.ID) + ":seen",
		person: o.Person, session: o.Session, at: o.At,
	}
	if s.Channel == ChannelTimeout {
		e.cell = cellSilence
	}
	change := new(Change)
	if s.EventID == "" || implicit(s.Channel) {
		err = store.Do(ctx, m.cfg.Store, func(tx *store.Tx) error {
			of, l := *e, m.ledger(tx)
			if err := l.read(s.HeuristicID); err != nil {
				return err
			}
			change = &of.change
			return l.count(&of)
		})
	} else {
		err = m.step(ctx, s.EventID, s.HeuristicID, func(tx *store.Tx, a *answer.Answer) (err error) {
			of := *e
			change, err = m.applyIn(tx, a, &of, o.ID)
			return err
		})
	}
	if err != nil {
		return Change{}, err
	}
	return *change, nil
}

// applyIn adds a signal of the host's to an answer as a statement.
func (m *Module) applyIn(
	tx *store.Tx, a *answer.Answer, e *entry, originID string,
) (*Change, error) {
	l, s, f := m.ledger(tx), &e.signal, answers.FireOf(a, e.signal.HeuristicID)
	if err := l.read(append(concerned(f), s.HeuristicID)...); err != nil {
		return nil, err
	}
	of, err := l.account(s.HeuristicID)
	if err != nil {
		return nil, err
	}
	if before(f, e.at) {
		return nil, errBefore
	}
	e.on, e.stated = a, true
	if slices.ContainsFunc(a.Statements, func(known answer.Statement) bool {
		return known.How == answers.Judged && known.Of == s.HeuristicID && known.ID == originID
	}) {
		l.repeated(e, of, e.at)
		return &e.change, nil
	}
	statement := answer.Statement{
		ID: originID, By: e.person, Session: e.session, Channel: s.Channel, Target: s.Target,
		Of: s.HeuristicID, Worth: s.worth(), At: e.at,
	}
	if l.blocked(of, f) != "" {
		statement.Worth = 0
	}
	return l.judge(e, of, a, statement)
}

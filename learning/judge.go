package learning

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/store"
)

// Judge counts what a person states about an answer. It replaces what the person stated before on
// the same channel about the same target, or about the whole answer; a value of 0 withdraws it. A
// judgement sets aside contrary signals that were only observed: docs/trust.md has the rules. The
// answer and the confidence change in one commit. An event that has no answer yet gets a record
// with the judgement, which counts for the heuristic at once.
//
// The same judgement again counts once: [Change].Limits has "duplicate". An
// earlier judgement that arrives late has "outdated". The record of the answer is kept for 30 days
// by default; after that a judgement counts in addition to the one before.
//
// Invalid input is a [*heed.InputError], as is an At more than [evidence.MaxSkew] before the
// answer. So is a judgement of the present that differs from one as far ahead of the clock that
// it would replace. An unknown heuristic is [heed.ErrNotFound]. If the store no longer holds the
// history of the judgement to be replaced, Judge returns [evidence.ErrForgotten], and the old
// judgement counts as before.
func (m *Module) Judge(ctx context.Context, j Judgement) (_ Change, err error) {
	defer doing("judge", &err)
	arrives, s := j.At.IsZero(), j.statement()
	s.Kind, s.At = m.cfg.kindOf(j.Person), m.orNow(j.At)
	change := new(Change)
	err = m.step(ctx, j.EventID, s.Of, func(tx *store.Tx, a *answer.Answer) (err error) {
		of := s
		if arrives {
			of.At = answers.Arrival(a, s.At)
		}
		change, err = m.JudgeIn(tx, a, of)
		return err
	})
	if errors.Is(err, heed.ErrNotFound) && !errors.Is(err, errNoHeuristic) {
		// the store forgot even the ids of what is to be replaced
		err = fmt.Errorf("the judgement before: %w", evidence.ErrForgotten)
	}
	if err != nil {
		return Change{}, err
	}
	return *change, nil
}

// step runs a step about the answer to an event, and puts its record if the step changed it. It
// reads everything that the step needs at once.
func (m *Module) step(
	ctx context.Context, eventID, heuristicID string, do func(*store.Tx, *answer.Answer) error,
) error {
	if eventID == "" {
		return valid.Input("EventID", "must not be empty")
	}
	return store.Do(ctx, m.cfg.Store, func(tx *store.Tx) error {
		ref := m.kinds.answers.Ref(answers.ID(eventID))
		tx.Want(m.Steps().Wants(heuristicID), store.Wants{Refs: []store.Ref{ref}})
		row, err := m.kinds.answers.In(tx, ref.ID)
		if err != nil {
			return err
		}
		if row.Revision == 0 {
			row.Value = answer.Answer{ID: eventID, At: m.orNow(time.Time{})}
		}
		statements, fires := row.Value.Numbers, len(row.Value.Fires)
		err = do(tx, &row.Value)
		if err == nil && (row.Value.Numbers != statements || len(row.Value.Fires) != fires) {
			m.kinds.answers.Put(tx, row.Value, row.Revision)
		}
		return err
	})
}

// JudgeIn is [Module.Judge] as a part of a step. The statement is a judgement or an outcome; an
// outcome that is withdrawn has value 0. Of names the heuristic, and is "" for the model. JudgeIn
// adds the statement to the answer with its Worth, and counts in the step. The caller puts the
// record of the answer. The change is complete after the commit. If JudgeIn returns an error, the
// answer and the step stay as they were.
//
// If the heuristic is locked, or has another wording than the answer, the statement has Worth 0: it
// stays known, and the heuristic does not learn from it. If the answer has no room for the
// statement, the Limits of the change have "full", and the statement is not on the record.
func (m *Module) JudgeIn(tx *store.Tx, a *answer.Answer, s answer.Statement) (*Change, error) {
	s.At = m.orNow(s.At)
	j := judgementOf(a, &s)
	if s.How != answers.Judged && s.How != answers.Outcome {
		return nil, valid.Input("How", "must be a judgement or an outcome")
	}
	now := m.cfg.Now()
	if err := cmp.Or(j.Validate(), valid.Time("At", s.At, now)); err != nil {
		return nil, err
	}
	if answers.BehindFuture(a, s, now) {
		return nil, errAhead
	}
	l, f := m.ledger(tx), answers.FireOf(a, s.Of)
	if err := l.read(append(concerned(f), s.Of)...); err != nil {
		return nil, err
	}
	var of *account
	var blocked string
	if s.Of != "" {
		var err error
		if of, err = l.account(s.Of); err != nil {
			return nil, err
		}
		j.Domain, blocked = of.heuristic.Value.Domain, l.blocked(of, f)
	}
	if before(f, s.At) {
		return nil, errBefore
	}
	signal, err := m.interpretJudgement(&j)
	if err != nil {
		return nil, err
	}
	if signal.Target != s.Target {
		s.About = signal.Target
	}
	if s.Worth = signal.Worth; blocked != "" {
		s.Worth = 0
	}
	return l.judge(&entry{
		signal: signal, cell: cellJudged, person: s.By, at: s.At, session: cmp.Or(s.Session, a.Session),
		explicit: true, on: a,
	}, of, a, s)
}

var errBefore = valid.Input("At", "is more than %v before the answer was shown", evidence.MaxSkew)

// errAhead refuses a statement that would be outdated by the work of a wrong clock.
var errAhead = valid.Input("At",
	"is before what the source stated last, more than %v ahead of the clock", evidence.MaxSkew)

// judge adds a statement to an answer, and counts it for its heuristic.
func (l *ledger) judge(
	e *entry, of *account, a *answer.Answer, s answer.Statement,
) (*Change, error) {
	unchanged := *a
	on, gone, effect := answers.Say(a, s)
	e.id = l.m.judgementID(a, &on)
	switch effect {
	case answers.Repeated:
		l.repeated(e, of, on.At)
		return &e.change, nil
	case answers.Outdated:
		return &Change{Signal: e.signal, Limits: []string{limitOutdated}}, nil
	case answers.Refused:
		return &Change{Signal: e.signal, Limits: []string{limitFull}}, nil
	case answers.Holds:
	}
	var kept []answer.Credit // if the heuristic does not learn now, they go on counting
	for i := range gone {
		g := &gone[i]
		credits := g.Kept
		if g.Credit != nil {
			credits = append(credits[:len(credits):len(credits)], *g.Credit)
		}
		if !answers.Replaces(&on, g) {
			if err := l.makeRoom(e, g, credits); err != nil {
				*a = unchanged
				return nil, err
			}
			continue
		}
		for j := range credits {
			e.replaces = append(e.replaces, l.m.observation(on.Of, &credits[j], on.By))
		}
		kept = append(kept, credits...)
	}
	if err := l.count(e); err != nil {
		return nil, err
	}
	if of != nil && e.signal.Worth > 0 {
		l.ignored(of, 0)
	}
	answers.Edit(a, on.N, func(s *answer.Statement) {
		switch {
		case of == nil:
		case e.counted == nil:
			s.Kept = kept
		default:
			s.Credit = credit(e.counted)
		}
	})
	return &e.change, nil
}

// makeRoom takes back what a statement counted that made room for another one. A locked heuristic
// keeps it, also if the new statement is about another heuristic.
func (l *ledger) makeRoom(e *entry, g *answer.Statement, credits []answer.Credit) error {
	err := l.read(g.Of)
	for i := range credits {
		o := l.m.observation(g.Of, &credits[i], g.By)
		switch of := l.accounts[g.Of]; {
		case of == nil || g.Forgotten():
		case g.Of == e.signal.HeuristicID:
			e.withdraw = append(e.withdraw, o)
		case l.blocked(of, nil) == "":
			l.evidence(store.Batch{Withdraw: []string{o.ID}})
		}
	}
	return err
}

// judgementID returns the id of the observation of a statement. It has the moment in it, because
// the store may have dropped an earlier record of the answer.
func (m *Module) judgementID(a *answer.Answer, s *answer.Statement) string {
	moment := strconv.FormatInt(s.At.UnixMicro(), 10)
	return "click:" + store.IDOf(m.cfg.Name, a.ID, s.Of, s.By, moment, strconv.FormatUint(s.N, 10))
}

// repeated reports a statement that counts already. It has no effect.
func (l *ledger) repeated(e *entry, of *account, at time.Time) {
	confidence := 0.
	if of != nil {
		b := l.m.believe(of)
		confidence, _ = b.confidence(of.parts, evidence.InstantOf(at))
	}
	e.change = Change{
		Signal: e.signal, Old: confidence, New: confidence, Limits: []string{limitDuplicate},
	}
	l.entries = append(l.entries, e)
}

// interpretJudgement asks the strategy for the signal.
func (m *Module) interpretJudgement(j *Judgement) (Signal, error) {
	s, err := ask(func() (Signal, error) { return m.cfg.Strategy.InterpretJudgement(*j) })
	if err == nil && (s.HeuristicID != j.HeuristicID || s.EventID != j.EventID) {
		err = errForeign
	}
	if err == nil {
		err = s.Validate()
	}
	if err == nil {
		s.Worth = clamped(s.Worth * cmp.Or(j.Weight, 1))
	}
	return s, err
}

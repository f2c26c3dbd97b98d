package learning

import (
	"slices"
	"strconv"
	"time"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/store"
)

// A settlement brings what counts of a fire in line with the statements about it. It computes what
// should count from the statements alone, compares that with what was counted before
// ([answer.FireEvidence]), and adds or withdraws only the difference. So the order in which
// statements arrive has no effect, and a statement that comes twice counts once.
//
// Three things follow from an answer: the implicit signal of its heuristic (fill), whether it ended
// well (end), and what it is worth for heuristics that were compared with it (agree).
type settlement struct {
	*ledger
	e *entry
	a *account // of the heuristic; nil if the model answered
	f *answer.Fire
	r answers.Reception
	c answer.FireEvidence // as it will be
}

// settle brings what counts of the entry's answer in line with its statements. The evidence of a
// locked heuristic stays as it is.
func (l *ledger) settle(e *entry, a *account, locked bool) {
	f := e.fire()
	if f == nil || f.Shown.IsZero() || locked && e.explicit || a != nil && a.outlived(f) {
		return
	}
	answers.OwnFires(e.on)
	s := settlement{ledger: l, e: e, a: a, f: e.fire()}
	s.r, s.c = answers.ReceptionOf(e.on, s.f.Heuristic), s.f.Counted
	s.c.N++
	how := s.r.Implicit(l.m.cfg.tuning.Independent)
	if a != nil && !locked {
		s.fill(how)
	}
	if e.how != "" && e.how != how && e.signal.Worth != 0 {
		e.limit(limitOutweighed)
	}
	// not if a complaint was withdrawn
	if a != nil && how != "" && how == e.how && s.r.Sign(how) > 0 {
		l.ignored(a, 0)
	}
	s.c.Implicit = how
	s.end()
	s.agree()
	s.f.Counted = s.c
}

// answerID is part of the ids of the observations of an answer.
func (m *Module) answerID(heuristicID, eventID string) string {
	return store.IDOf(m.cfg.Name, heuristicID, eventID)
}

// id returns an id of observations of the answer.
func (s *settlement) id(what string) string {
	of := s.m.answerID(s.f.Heuristic, s.e.on.ID)
	return "answer:" + of + ":" + strconv.Itoa(s.c.N) + ":" + what
}

// fill lets an implicit signal take the place of the one that was counted.
func (s *settlement) fill(how answer.How) {
	e, c := s.e, &s.c
	if c.Seen != nil && c.Seen.Forgotten() { // another person's undo may take its place
		c.Seen, c.Of, c.Implicit = nil, "", ""
	}
	if c.Seen != nil && c.Of != how {
		e.withdraw = append(e.withdraw, s.m.observation(s.f.Heuristic, c.Seen, c.Seen.Source))
		c.Seen, c.Of = nil, ""
	}
	statement := s.r.Of(how)
	if how == c.Implicit || s.r.Sign(how) == 0 || statement.Forgotten() || statement.Credit != nil {
		return
	}
	own := &entry{signal: Signal{Worth: clamped(statement.Worth)}}
	if how == e.how {
		own = e
	}
	cell := cellSeen
	if how == answers.Silence {
		cell = cellSilence
	}
	o := evidence.Observation{
		ID: s.id("seen"), Cell: s.m.cell(s.f.Heuristic, s.f.Edition, cell), Channel: statement.Channel,
		Source: statement.By, Session: e.on.Session, Reward: own.signal.reward(),
		Weight: s.m.weigh(own, s.m.believe(s.a).constraints, s.a.parts), At: statement.At,
	}
	c.Seen, c.Of = credit(&o), how
	c.Seen.Source, c.Seen.Named = o.Source, o.Source != ""
	if how == e.how {
		e.id, e.counted = o.ID, &o
	} else {
		e.also = append(e.also, o)
	}
}

// clamped is a worth within the bounds of a signal's.
func clamped(worth float64) float64 {
	return min(max(worth, -evidence.MaxWeight), evidence.MaxWeight)
}

// end counts how the answer was received, for its heuristic's rate of success. It is evidence of
// the person who decides it.
func (s *settlement) end() {
	before, implied := s.c.Ended, s.r.Fate(s.m.cfg.tuning.Independent)
	by := s.r.Decider(s.m.cfg.tuning.Independent)
	stays := by != nil && before != nil && before.Source == by.By && !before.Forgotten()
	if implied == s.c.Fate && stays {
		return
	}
	var b store.Batch
	if before != nil && !before.Forgotten() {
		b.Withdraw = append(b.Withdraw, before.ID)
	}
	s.c.Fate, s.c.Ended = implied, nil
	if by != nil && s.f.Heuristic != "" {
		o := evidence.Observation{
			ID: s.id("ended"), Cell: s.m.fireCell(s.f.Heuristic, s.f.Edition, cellEnded),
			Source: by.By, Session: s.e.on.Session, Channel: s.e.signal.Channel, Weight: 1, At: s.e.at,
		}
		if implied > 0 {
			o.Reward = 1
		}
		b.Observations = []evidence.Observation{o}
		s.c.Ended = &answer.Credit{ID: o.ID, Cell: cellEnded, Source: by.By, Named: by.By != ""}
	}
	s.evidence(b)
}

// agree counts what the answer is worth for the heuristics that were compared with it. A heuristic
// that was deleted earns no credit.
func (s *settlement) agree() {
	before, cfg := s.c.Agreed, &s.m.cfg
	s.c.Agreed = nil
	for _, compared := range s.f.Compared {
		var parts []answer.Credit
		if !cfg.tuning.NoAgreement {
			parts = s.r.AgreementParts(
				compared.Agrees, cfg.tuning.Independent, s.m.agreement.agree, s.m.agreement.disagree)
		}
		a, id := s.accounts[compared.HeuristicID], compared.HeuristicID
		if a == nil || a.heuristic.Revision == 0 ||
			s.f.Shown.Before(a.heuristic.Value.Since) || s.blocked(a, nil) != "" {
			s.agreed(id, before[id]...)
			continue
		}
		if !compared.Agrees {
			parts = s.ofAsker(parts)
		}
		s.divide(compared, before[id], parts)
	}
}

// ofAsker makes a disagreement the evidence of the person who asked. It counts whatever people
// state about the answer, so a person who complains about every answer must not become its source.
func (s *settlement) ofAsker(parts []answer.Credit) []answer.Credit {
	if s.e.on.Person == "" || len(parts) == 0 {
		return parts
	}
	one := answer.Credit{Source: s.e.on.Person}
	for _, p := range parts {
		one.Worth += p.Worth
	}
	return []answer.Credit{one}
}

// divide brings what the answer counted for a compared heuristic in line with the parts of its
// sources. What counts already stays. What does not count any more is withdrawn together with the
// first part that is new.
func (s *settlement) divide(
	compared answer.Comparison, before []answer.Credit, parts []answer.Credit,
) {
	var withdraw []evidence.Observation
	for i := range before {
		c := &before[i]
		j := slices.IndexFunc(parts, func(p answer.Credit) bool {
			return p.Source == c.Source && p.Worth == c.Worth
		})
		switch {
		case c.Forgotten(): // its observation is gone
		case j >= 0:
			s.agreed(compared.HeuristicID, *c)
			parts = slices.Delete(parts, j, j+1)
		default:
			o := s.m.observation(compared.HeuristicID, c, c.Source)
			withdraw = append(withdraw, o)
		}
	}
	if len(parts) == 0 && len(withdraw) > 0 {
		parts = []answer.Credit{{}}
	}
	for i, part := range parts {
		own := s.agreement(compared, part, i)
		own.withdraw, withdraw = withdraw, nil
		// its signal is valid, and its account is there
		if s.count(own) == nil && own.counted != nil {
			now := *credit(own.counted)
			now.Worth, now.Source, now.Named = part.Worth, part.Source, part.Source != ""
			s.agreed(compared.HeuristicID, now)
		}
	}
}

// agreed keeps what the answer is worth for a heuristic.
func (s *settlement) agreed(heuristicID string, all ...answer.Credit) {
	if len(all) == 0 {
		return
	}
	if s.c.Agreed == nil {
		s.c.Agreed = make(map[string][]answer.Credit, len(s.f.Compared))
	}
	s.c.Agreed[heuristicID] = append(s.c.Agreed[heuristicID], all...)
}

// agreement returns the entry of a part of what an answer of the model is worth for a heuristic.
func (s *settlement) agreement(compared answer.Comparison, part answer.Credit, number int) *entry {
	id := store.IDOf(compared.HeuristicID, strconv.Itoa(number))
	e := &entry{
		signal: Signal{Worth: clamped(part.Worth)}, cell: cellAgreed, id: s.id("agreed:" + id),
		person: part.Source, session: s.e.on.Session, at: s.e.at,
	}
	e.signal.HeuristicID, e.signal.EventID = compared.HeuristicID, s.e.on.ID
	if e.signal.Channel = ChannelAgreement; !compared.Agrees {
		e.cell = cellDisagreed
	}
	return e
}

// concerned returns the heuristics whose accounts a fire needs.
func concerned(f *answer.Fire) (ids []string) {
	if f == nil {
		return nil
	}
	ids = append(ids, f.Heuristic)
	for i := range f.Compared {
		ids = append(ids, f.Compared[i].HeuristicID)
	}
	return ids
}

// before reports whether a moment is so long before an answer that no clock can be that wrong.
func before(f *answer.Fire, at time.Time) bool {
	return f != nil && !f.Shown.IsZero() && at.Before(f.Shown.Add(-evidence.MaxSkew))
}

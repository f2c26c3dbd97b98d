package learning

import (
	"math"
	"strconv"
	"time"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// A settlement brings what counts of a fire in line with the statements about it.
type settlement struct {
	*ledger
	e *entry
	a *account // of the heuristic; nil if the model answered
	f *answer.Fire
	r answer.Reception
	c answer.FireEvidence // as it will be
}

// settle brings what counts of the entry's answer in line with its statements. The evidence of a
// locked heuristic stays as it is.
func (l *ledger) settle(e *entry, a *account, locked bool) {
	f := e.fire()
	if f == nil || f.Shown.IsZero() || locked && e.stated || a != nil && a.outlived(f) {
		return
	}
	e.on.OwnFires()
	s := settlement{ledger: l, e: e, a: a, f: e.fire()}
	s.r, s.c = e.on.Reception(s.f.Heuristic), s.f.Counted
	s.c.N++
	how := s.r.Implicit(l.m.cfg.Independent)
	if a != nil && !locked {
		s.fill(how)
	}
	if e.how != "" && e.how != how && !e.signal.neutral() {
		e.limit(LimitOutweighed)
	}
	// not if a complaint was withdrawn
	if a != nil && how != "" && how == e.how && s.r.Sign(how) > 0 {
		l.ignored(a, 0)
	}
	s.c.Implicit = how
	s.end()
	s.agree()
	if l.m.cfg.DryRun { // nothing of it is in the evidence
		s.c.Seen, s.c.Of, s.c.Agreed = nil, "", nil
	}
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
	if c.Seen != nil && c.Of != how {
		e.withdraw = append(e.withdraw, s.m.observation(s.f.Heuristic, c.Seen, c.Seen.Source))
		c.Seen, c.Of = nil, ""
	}
	said := s.r.Of(how)
	if how == c.Implicit || s.r.Sign(how) == 0 || said.Forgotten() {
		return
	}
	own := &entry{signal: signalOf(said.Worth)}
	if how == e.how {
		own = e
	}
	cell := cellSeen
	if how == answer.Silence {
		cell = cellSilence
	}
	o := evidence.Observation{
		ID: s.id("seen"), Cell: s.m.cell(s.f.Heuristic, s.f.Edition, cell), Channel: said.Channel,
		Source: said.By, Session: e.on.Session, Reward: own.signal.reward(),
		Weight: s.m.weigh(own, s.m.believe(s.a).constraints, s.a.parts), At: said.At,
	}
	c.Seen, c.Of = credit(&o), how
	c.Seen.Source = o.Source
	if how == e.how {
		e.id, e.counted = o.ID, &o
	} else {
		e.also = append(e.also, o)
	}
}

// signalOf returns a signal of a signed magnitude.
func signalOf(worth float64) Signal {
	s := Signal{Type: Neutral, Magnitude: min(math.Abs(worth), evidence.MaxWeight)}
	switch {
	case worth > 0:
		s.Type = Positive
	case worth < 0:
		s.Type = Negative
	}
	return s
}

// end counts how the answer was received: for its heuristic's rate of success, and for calibration.
func (s *settlement) end() {
	fate := s.r.Fate(s.m.cfg.Independent)
	if fate == s.c.Fate {
		return
	}
	var b store.Batch
	if s.c.Ended != "" {
		b.Withdraw = append(b.Withdraw, s.c.Ended)
	}
	s.c.Fate, s.c.Ended = fate, ""
	if fate != 0 {
		s.c.Ended = s.id("ended")
		o := evidence.Observation{
			ID: s.c.Ended, Source: s.e.on.Person, Session: s.e.on.Session,
			Channel: s.e.signal.Channel,
			Reward:  max(float64(fate), 0), Weight: 1, At: s.e.at,
		}
		if s.f.Heuristic != "" {
			o.Cell = s.m.fireCell(s.f.Heuristic, s.f.Edition, cellEnded)
			b.Observations = append(b.Observations, o)
		}
		if s.f.Prediction != nil {
			o.Cell, o.Reward = s.m.calibrationCell(s.f, fate > 0), *s.f.Prediction
			b.Observations = append(b.Observations, o)
		}
		s.e.evident = s.e.evident || len(b.Observations) > 0
	}
	s.evidence(b)
}

// agree counts what the answer is worth for the heuristics that were compared with it. A heuristic
// that was deleted earns nothing.
func (s *settlement) agree() {
	before, cfg := s.c.Agreed, &s.m.cfg
	s.c.Agreed = nil
	for _, compared := range s.f.Compared {
		was, counts := before[compared.HeuristicID]
		worth := 0.
		if !cfg.NoAgreement {
			worth = s.r.Agreement(compared.Agrees, cfg.Independent, cfg.Agreement, cfg.Disagreement)
		}
		a := s.accounts[compared.HeuristicID]
		if a == nil || a.heuristic.Revision == 0 || was.Worth == worth ||
			s.f.Shown.Before(a.heuristic.Value.Since) || s.blocked(a, nil) != "" {
			if counts {
				s.agreed(compared.HeuristicID, was)
			}
			continue
		}
		own := s.agreement(compared, worth)
		switch {
		case worth >= 0 || !compared.Agrees || s.e.person == "":
		case was.Worth < 0:
			own.person = was.Source
		default: // the evidence is of the person who rejects, and not of the one who asked
			own.person = s.e.person
		}
		if counts {
			o := s.m.observation(compared.HeuristicID, &was, was.Source)
			own.withdraw = []evidence.Observation{o}
		}
		// its signal is valid, and its account is there
		if s.count(own) == nil && own.counted != nil {
			now := *credit(own.counted)
			now.Worth, now.Source = worth, own.person
			s.agreed(compared.HeuristicID, now)
		}
	}
}

// agreed keeps what the answer is worth for a heuristic.
func (s *settlement) agreed(heuristicID string, c answer.Credit) {
	if s.c.Agreed == nil {
		s.c.Agreed = make(map[string]answer.Credit, len(s.f.Compared))
	}
	s.c.Agreed[heuristicID] = c
}

// agreement returns the entry of what an answer of the model is worth for a heuristic.
func (s *settlement) agreement(compared answer.Comparison, worth float64) *entry {
	e := &entry{
		signal: signalOf(worth), cell: cellAgreed,
		id:     s.id("agreed:" + store.IDOf(compared.HeuristicID)),
		person: s.e.on.Person, session: s.e.on.Session, at: s.e.at,
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

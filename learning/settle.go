package learning

import (
	"strconv"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// counted says what of an answer is in the evidence.
type counted struct {
	N     int                   `json:"n,omitempty"`    // how often it has changed; part of the observations' ids
	Slot  string                `json:"slot,omitempty"` // the implicit signal that counts
	Seen  *evidence.Observation `json:"seen,omitempty"` // that signal as it is in the confidence
	Of    string                `json:"of,omitempty"`   // which one Seen is. A lock may have kept Seen from being replaced
	Fate  int                   `json:"fate,omitempty"`
	Ended string                `json:"ended,omitempty"` // id of the observations of its fate
	// Agreed are what the answer was worth for the heuristics that were compared with it, by heuristic.
	Agreed map[string]agreed `json:"agreed,omitempty"`
}

// agreed is what an answer was worth for a heuristic that was compared with it.
type agreed struct {
	Worth float64              `json:"worth"`
	As    evidence.Observation `json:"as"`
}

// settle brings what counts of the entry's answer in line with the answer's facts, and writes its record. Account is that of its
// heuristic, nil if the model answered. The evidence of a locked heuristic stays as it is.
func (l *ledger) settle(e *entry, a *account, locked bool) {
	if e.answer == nil || locked && e.spoken { // what is said of a locked heuristic is no fact
		return
	}
	w := e.answer.Value
	if !w.Shown.IsZero() && !(a != nil && w.outlived(&a.heuristic.Value)) {
		c := w.Counted
		c.N++
		slot := w.Facts.slot(l.m.cfg.Independent)
		if a != nil && !locked {
			l.fill(e, &w, &c, slot)
		}
		if e.slot != "" && e.slot != slot && !e.signal.neutral() {
			e.limit(LimitOutweighed)
		}
		if a != nil && slot != "" && slot == e.slot && w.Facts.of(slot).sign() > 0 { // not where a complaint was withdrawn
			a.ignores = 0
		}
		c.Slot = slot
		l.end(e, &w, &c)
		l.agree(e, &w, &c)
		if w.Counted = c; l.m.cfg.DryRun { // nothing of it is in the evidence
			w.Counted.Seen, w.Counted.Of, w.Counted.Agreed = nil, "", nil
		}
	}
	if e.answer.Revision > 0 || w.Facts != (facts{}) || !w.Shown.IsZero() {
		l.batch.Records = append(l.batch.Records, l.m.kinds.fires.Record(w, e.answer.Revision))
	}
}

// obsID returns an id of observations of an answer.
func (m *Module) obsID(w *fired, n int, what string) string {
	return "answer:" + m.answerID(w.answer()) + ":" + strconv.Itoa(n) + ":" + what
}

// fill lets the implicit signal of a slot take the place of the one that was counted.
func (l *ledger) fill(e *entry, w *fired, c *counted, slot string) {
	if c.Seen != nil && c.Of != slot {
		e.withdraw = append(e.withdraw, *c.Seen)
		c.Seen, c.Of = nil, ""
	}
	s := w.Facts.of(slot)
	if slot == c.Slot || s.sign() == 0 {
		return
	}
	a := l.accounts[w.Heuristic]
	signal := Signal{Type: s.Type, Magnitude: s.Magnitude}
	own := &entry{signal: signal}
	if slot == e.slot {
		own = e
	}
	cell := cellSeen
	if slot == slotSilence {
		cell = cellSilence
	}
	o := evidence.Observation{
		ID: l.m.obsID(w, c.N, "seen"), Cell: l.m.cell(w.Heuristic, w.Edition, cell), Channel: s.Channel, Source: s.by(w), Session: w.Session,
		Reward: signal.reward(), Weight: l.m.weigh(own, l.m.believe(a).constraints, a.parts), At: s.At,
	}
	c.Seen, c.Of = &o, slot
	if slot == e.slot {
		e.id, e.counted = o.ID, &o
	} else {
		e.beside = append(e.beside, o)
	}
}

// by returns who caused an implicit signal.
func (s *seen) by(w *fired) string {
	if s != nil && s.Person != "" {
		return s.Person
	}
	return w.Person
}

// end counts how the answer was received: for its heuristic's rate of success, and for calibration.
func (l *ledger) end(e *entry, w *fired, c *counted) {
	fate := w.Facts.fate(l.m.cfg.Independent)
	if fate == c.Fate {
		return
	}
	if c.Ended != "" {
		l.batch.Withdraw = append(l.batch.Withdraw, c.Ended)
	}
	c.Fate, c.Ended = fate, ""
	if fate == 0 {
		return
	}
	c.Ended = l.m.obsID(w, c.N, "ended")
	reward := 0.
	if fate > 0 {
		reward = 1
	}
	o := evidence.Observation{ID: c.Ended, Source: w.Person, Session: w.Session, Channel: e.signal.Channel, Reward: reward, Weight: 1, At: e.at}
	if w.Heuristic != "" {
		o.Cell = l.m.fireCell(w.Heuristic, w.Edition, cellEnded)
		l.batch.Observations = append(l.batch.Observations, o)
		e.facts = true
	}
	if w.Prediction != nil {
		o.Cell, o.Reward = l.m.calibrationCell(w, fate > 0), *w.Prediction
		l.batch.Observations = append(l.batch.Observations, o)
		e.facts = true
	}
}

// agree counts what the answer is worth for the heuristics that were compared with it. A heuristic that was deleted earns nothing.
func (l *ledger) agree(e *entry, w *fired, c *counted) {
	before := c.Agreed
	c.Agreed = nil
	keep := func(id string, what agreed) {
		if c.Agreed == nil {
			c.Agreed = make(map[string]agreed, len(w.Compared))
		}
		c.Agreed[id] = what
	}
	for _, compared := range w.Compared {
		was, counts := before[compared.HeuristicID]
		worth := 0.
		if !l.m.cfg.NoAgreement {
			worth = w.Facts.agreement(compared.Agrees, &l.m.cfg)
		}
		a := l.accounts[compared.HeuristicID]
		switch {
		case a == nil || a.heuristic.Revision == 0 || was.Worth == worth || w.Shown.Before(a.heuristic.Value.Since) || l.m.believe(a).constraints.Lock == Locked:
			if counts {
				keep(compared.HeuristicID, was)
			}
			continue
		}
		own := l.agreement(w, compared, worth, e.at)
		switch {
		case worth >= 0 || !compared.Agrees || e.person == "":
		case was.Worth < 0:
			own.person = was.As.Source
		default: // who rejects an answer speaks for themselves, and not for the one who asked
			own.person = e.person
		}
		own.id = l.m.obsID(w, c.N, "agreed:"+store.IDOf(compared.HeuristicID))
		if counts {
			own.withdraw = []evidence.Observation{was.As}
		}
		if l.count(own) == nil && own.counted != nil { // its signal is valid, and its account is there
			keep(compared.HeuristicID, agreed{worth, *own.counted})
		}
	}
}

// agreement returns the entry of what an answer of the model is worth for a heuristic.
func (l *ledger) agreement(w *fired, compared heed.Comparison, worth float64, at time.Time) *entry {
	s := NewSignal(Neutral, compared.HeuristicID, w.Event, ChannelAgreement)
	switch s.Magnitude = min(max(worth, -worth), evidence.MaxWeight); {
	case worth > 0:
		s.Type = Positive
	case worth < 0:
		s.Type = Negative
	}
	cell := cellAgreed
	if !compared.Agrees {
		cell = cellDisagreed
	}
	return &entry{signal: s, cell: cell, person: w.Person, session: w.Session, at: at}
}

// heuristics returns the heuristics whose accounts an answer needs.
func (w *fired) heuristics() (ids []string) {
	if w.Heuristic != "" {
		ids = append(ids, w.Heuristic)
	}
	for _, c := range w.Compared {
		ids = append(ids, c.HeuristicID)
	}
	return ids
}

package learning

import (
	"time"

	"github.com/heedhq/heed"
)

// facts holds all that is known about one answer. The signals that count follow from the facts alone, so their order does not matter.
// docs/confidence.md has the table.
type facts struct {
	Praise    said  `json:"praise,omitzero"` // judgements that stand
	Complaint said  `json:"complaint,omitzero"`
	Undo      *seen `json:"undo,omitempty"`
	Outcome   *seen `json:"outcome,omitempty"`
	Ignore    *seen `json:"ignore,omitempty"`
	Silence   *seen `json:"silence,omitempty"`
}

// said counts judgements of one sign.
type said struct {
	N      int     `json:"n"`
	Weight float64 `json:"weight"` // the sum of their magnitudes
	Share  float64 `json:"share"`  // the sum of their shares of a full judgement: value times weight
}

// seen is an implicit signal of an answer, as the strategy understood it.
type seen struct {
	Type      SignalType  `json:"type"`
	Channel   string      `json:"channel,omitempty"`
	Magnitude float64     `json:"magnitude"`
	Target    heed.Target `json:"target,omitempty"`
	At        time.Time   `json:"at"`
	Person    string      `json:"person,omitempty"`  // who did it; "": the one to whom the answer was shown
	Message   string      `json:"message,omitempty"` // the id of the message that took the answer back
}

// The kinds of implicit signals. Of equal ones the first counts.
const (
	slotUndo    = "undo"
	slotOutcome = "outcome"
	slotIgnore  = "ignored"
	slotSilence = "silence"
)

var slots = [...]string{slotUndo, slotOutcome, slotIgnore, slotSilence}

// of returns the implicit signal of a kind, nil if there is none.
func (f *facts) of(slot string) *seen {
	if slot == "" {
		return nil
	}
	return *f.at(slot)
}

// at returns the place of a kind of implicit signal.
func (f *facts) at(slot string) **seen {
	switch slot {
	case slotUndo:
		return &f.Undo
	case slotOutcome:
		return &f.Outcome
	case slotIgnore:
		return &f.Ignore
	default:
		return &f.Silence
	}
}

// sign is 1 for a positive signal, -1 for a negative one, and 0 for one that says nothing, or if there is none.
func (s *seen) sign() int {
	switch {
	case s == nil || s.Magnitude == 0 || s.Type == Neutral:
		return 0
	case s.Type == Positive:
		return 1
	default:
		return -1
	}
}

// add adds a judgement of this worth, and of this share of a full one.
func (f *facts) add(worth, share float64) {
	switch {
	case worth > 0:
		f.Praise = said{f.Praise.N + 1, f.Praise.Weight + worth, f.Praise.Share + share}
	case worth < 0:
		f.Complaint = said{f.Complaint.N + 1, f.Complaint.Weight - worth, f.Complaint.Share + share}
	}
}

// remove takes back a judgement of this worth and share.
func (f *facts) remove(worth, share float64) {
	less := func(s said, worth float64) said {
		if s.N <= 1 {
			return said{}
		}
		return said{s.N - 1, max(s.Weight-worth, 0), max(s.Share-share, 0)}
	}
	switch {
	case worth > 0:
		f.Praise = less(f.Praise, worth)
	case worth < 0:
		f.Complaint = less(f.Complaint, -worth)
	}
}

// observed reports whether something other than silence was seen.
func (f *facts) observed() bool { return f.Undo != nil || f.Outcome != nil || f.Ignore != nil }

// slot returns the implicit signal that counts, "" if none does. Said beats seen: praise sets aside an ignore, a failure and
// silence; a complaint sets aside silence and a success. An undo is a command, and nothing sets it aside. If independent, judgements
// change nothing.
func (f *facts) slot(independent bool) (slot string) {
	praised, blamed := f.Praise.N > 0 && !independent, f.Complaint.N > 0 && !independent
	for _, s := range slots {
		it := f.of(s)
		switch {
		case it.sign() >= 0,
			s != slotUndo && praised && !blamed,
			(s == slotIgnore || s == slotSilence) && f.Outcome.sign() > 0:
			continue
		case slot == "" || it.Magnitude > f.of(slot).Magnitude:
			slot = s
		}
	}
	if slot != "" || blamed {
		return slot
	}
	for _, s := range slots[:3] {
		if f.of(s).sign() > 0 {
			return s
		}
	}
	if f.Silence != nil && !praised && !f.observed() {
		return slotSilence
	}
	return ""
}

// fate says how an answer was received: 1 well, -1 badly, and 0 if that is not known or people disagree.
func (f *facts) fate(independent bool) int {
	sign := f.of(f.slot(independent)).sign()
	praised, blamed := f.Praise.N > 0, f.Complaint.N > 0
	switch {
	case sign < 0 || independent:
		return sign
	case praised && blamed:
		return 0
	case blamed:
		return -1
	case praised:
		return 1
	default:
		return sign
	}
}

// agreement returns what an answer of the model is worth for a heuristic that was compared with it and that the model had not seen.
// Negative worth speaks against the heuristic. Disagreement is worth the same whether people accept the answer or not. So nobody helps
// a heuristic by complaints about what others say.
func (f *facts) agreement(agrees bool, c *Config) float64 {
	slot := f.slot(c.Independent)
	fate, sign := f.fate(c.Independent), f.of(slot).sign()
	share := 1.
	if sign <= 0 && f.Praise.N > 0 { // it is accepted by praise alone
		share = min(f.Praise.Share, 1)
	}
	switch {
	case !agrees && (f.Complaint.N > 0 || f.observed() || sign > 0):
		return -c.Disagreement
	case !agrees && fate > 0:
		return -c.Disagreement * share
	case agrees && fate > 0:
		return c.Agreement * share
	case agrees && fate < 0: // the heuristic would have said the same
		worth := f.Complaint.Weight
		if sign < 0 {
			worth += f.of(slot).Magnitude
		}
		return -min(worth, c.Disagreement)
	default:
		return 0
	}
}

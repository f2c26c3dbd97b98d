package learning

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/store"
)

// A Fire is an answer that was shown to a user.
type Fire struct {
	// HeuristicID is the heuristic that answered. It is empty if the host's model did: see Compared.
	HeuristicID string
	// EventID is the event that was answered, and must not be empty. A heuristic fires once for an
	// event.
	EventID string
	// Stream is where the event came from. The next message from there means that the answer was
	// ignored, unless somebody judged it. Without a stream, an answer is never ignored. Stream,
	// Person and Session are properties of the event: if several heuristics answer it, the first
	// fire that has one sets it.
	Stream string
	// Person is to whom the answer was shown, and the source of the evidence of silence.
	Person  string
	Session string
	// Path is how the answer came about, for example "heuristic" or "llm". It is kept on the record
	// of the answer, and does not count.
	Path string
	// Condition is the text in which triggers of expectations are searched. "" means the
	// heuristic's.
	Condition string
	// At is when the answer was shown. The zero time means now. All windows begin here.
	At time.Time
	// Compared are heuristics that the model did not see before it answered, each at most once and
	// at most 64. How the answer is received counts for them: see [ChannelAgreement]. HeuristicID
	// must be empty.
	Compared []answer.Comparison
	// Unheard has neither silence nor the next message of the stream count, because the person has
	// not seen the answer, or could not react. Explicit signals count.
	Unheard bool
}

const maxCompared = 64

// validate reports the first fault as a [*heed.InputError].
func (f *Fire) validate() error {
	return cmp.Or(valid.Names(evidence.MaxText, "EventID", f.EventID), f.validateCompared(),
		valid.Texts(evidence.MaxText, "HeuristicID", f.HeuristicID, "Stream", f.Stream,
			"Person", f.Person, "Session", f.Session, "Path", f.Path))
}

// validateCompared checks the comparisons. A heuristic that is there twice would count twice.
func (f *Fire) validateCompared() error {
	switch n := len(f.Compared); {
	case n > 0 && f.HeuristicID != "":
		return valid.Input("Compared", "must be empty if a heuristic answered")
	case n > maxCompared:
		return valid.Input("Compared", "has %d heuristics, may have %d", n, maxCompared)
	}
	known := make(map[string]bool, len(f.Compared))
	for i, c := range f.Compared {
		field := fmt.Sprintf("Compared[%d].HeuristicID", i)
		switch {
		case known[c.HeuristicID]:
			return valid.Input(field, "is there twice")
		case !(c.Similarity >= 0 && c.Similarity <= 1):
			return valid.Input(fmt.Sprintf("Compared[%d].Similarity", i),
				"is %v, must be in [0, 1]", c.Similarity)
		}
		known[c.HeuristicID] = true
		if err := valid.Names(evidence.MaxText, field, c.HeuristicID); err != nil {
			return err
		}
	}
	return nil
}

// Fire counts that an answer was shown and opens it for signals, in one commit. An answer that was
// fired before stays as it is, open or not. Open answers are in the store, so every module of this
// name sees them.
//
// Invalid input is a [*heed.InputError], and an unknown heuristic [heed.ErrNotFound].
func (m *Module) Fire(ctx context.Context, f Fire) (err error) {
	defer doing("fire", &err)
	return m.step(ctx, f.EventID, f.HeuristicID, func(tx *store.Tx, a *answer.Answer) error {
		if a.Reply == nil && len(a.Fires) == 0 { // it was only judged
			a.At = f.At
		}
		return m.FireIn(tx, a, f)
	})
}

// FireIn is [Module.Fire] as a part of a step: it adds the fire to the answer, and counts in the
// step. If people have judged the answer already, that counts now. The caller puts the record of
// the answer. f may leave EventID, and what the answer has, empty.
func (m *Module) FireIn(tx *store.Tx, a *answer.Answer, f Fire) error {
	f.EventID, f.At = cmp.Or(f.EventID, a.ID), m.orNow(f.At)
	if err := cmp.Or(f.validate(), valid.Time("At", f.At, m.cfg.Now())); err != nil {
		return err
	}
	if a.ID == "" {
		a.ID = f.EventID
	}
	if f.EventID != a.ID {
		return valid.Input("EventID", "must be the answer's")
	}
	if answers.FireOf(a, f.HeuristicID) != nil {
		return nil
	}
	w := answer.Fire{
		Heuristic: f.HeuristicID, Path: f.Path, Compared: slices.Clone(f.Compared), Shown: f.At,
	}
	if f.HeuristicID == "" {
		w.Domain = a.Domain
	}
	condition := f.Condition
	var heuristic store.Row[heuristicRecord]
	if f.HeuristicID != "" {
		var err error
		if heuristic, err = m.kinds.heuristics.In(tx, f.HeuristicID); err != nil {
			return err
		}
		if heuristic.Revision == 0 {
			return errNoHeuristic
		}
		h := &heuristic.Value
		w.Domain, w.Edition, condition = h.Domain, h.Edition, cmp.Or(f.Condition, h.Condition)
	}
	known := answers.ReceptionOf(a, f.HeuristicID)
	if err := m.setWindows(&w, condition, known.Silence != nil, f.Unheard); err != nil {
		return err
	}
	if known.Known() {
		if err := m.ledger(tx).read(concerned(&w)...); err != nil {
			return err
		}
	}
	if a.At.IsZero() {
		a.At = f.At
	}
	a.Person, a.Session = cmp.Or(a.Person, f.Person), cmp.Or(a.Session, f.Session)
	a.Stream = cmp.Or(a.Stream, f.Stream)
	a.Fires = append(slices.Clip(a.Fires), w)
	m.shown(tx, a, &w, &heuristic)
	if !known.Known() {
		return nil
	}
	return m.fireJudged(tx, a, &w)
}

// shown counts that a heuristic's answer was shown. The commit fails if the heuristic changed since
// it was read, because the fire would then be of a wording that the person has not seen.
func (m *Module) shown(
	tx *store.Tx, a *answer.Answer, w *answer.Fire, h *store.Row[heuristicRecord],
) {
	if w.Heuristic == "" {
		return
	}
	tx.Expect(m.kinds.heuristics.Expect(w.Heuristic, h.Revision))
	m.ledger(tx).evidence(store.Batch{Observations: []evidence.Observation{{
		ID:     "fire:" + m.answerID(w.Heuristic, a.ID),
		Cell:   m.fireCell(w.Heuristic, w.Edition, cellShown),
		Source: a.Person, Session: a.Session, Reward: 1, Weight: 1, At: w.Shown,
	}}})
}

// fireJudged counts what is known of an answer that was judged before it was fired: by another
// process, for example.
func (m *Module) fireJudged(tx *store.Tx, a *answer.Answer, w *answer.Fire) error {
	l := m.ledger(tx)
	e := &entry{signal: Signal{HeuristicID: w.Heuristic, EventID: a.ID}, at: w.Shown, on: a}
	if err := l.count(e); err != nil {
		return err
	}
	l.entries = slices.DeleteFunc(l.entries, func(other *entry) bool { return other == e })
	return nil
}

// setWindows sets how long an answer stays open, and the phrase that it waits for. The windows are
// fixed when the answer is shown, so a strategy that is replaced later changes only answers that
// are shown after that.
func (m *Module) setWindows(w *answer.Fire, condition string, silent, unheard bool) error {
	windows, err := ask(func() (Windows, error) { return m.cfg.Strategy.Windows(w.Domain), nil })
	if err != nil {
		return err
	}
	e := m.expectation(condition)
	w.Phrase, w.Failure = strings.ToLower(e.Outcome), e.Failure
	if windows.Silence = cmp.Or(e.Timeout, windows.Silence); unheard {
		windows.Silence, windows.Ignore = 0, 0
	}
	if windows.Undo > 0 {
		w.Undo = w.Shown.Add(windows.Undo)
	}
	if windows.Ignore > 0 {
		w.Ignore = w.Shown.Add(windows.Ignore)
	}
	if windows.Silence > 0 {
		w.Silence = w.Shown.Add(windows.Silence)
	}
	m.schedule(w, silent)
	return nil
}

// undoable reports whether a message of a moment can take an answer back. Clocks differ, so the
// message may be stamped shortly before the answer.
func undoable(f *answer.Fire, at time.Time) bool {
	return !f.Undo.IsZero() && !at.After(f.Undo) && !before(f, at)
}

// recordsUndo reports whether a person's undo of an answer is a new statement about it: it is the
// person's first, and there is room.
func recordsUndo(a *answer.Answer, f *answer.Fire, person string) bool {
	n := 0
	for i := range a.Statements {
		if s := &a.Statements[i]; s.How == answers.Undo && s.Of == f.Heuristic {
			n++
		}
	}
	return n < answers.MaxUndos && !answers.TookBack(a, f.Heuristic, person)
}

// awaits reports whether an expected outcome at a moment would count.
func awaits(f *answer.Fire, r *answers.Reception, at time.Time) bool {
	return r.Expected == nil && f.Phrase != "" && (f.Silence.IsZero() || !at.After(f.Silence)) &&
		!before(f, at)
}

// ignorable reports whether a message of a moment shows that the user went on without a word. If
// silence approved by then, the user has not.
func ignorable(f *answer.Fire, r *answers.Reception, at time.Time) bool {
	in := !f.Ignore.IsZero() && !at.After(f.Ignore) && (f.Silence.IsZero() || !at.After(f.Silence))
	return in && r.Ignored == nil && !at.Before(f.Shown)
}

// last returns when no message can change an answer any more: [evidence.MaxSkew] after its windows,
// because a message from within them may come late.
func last(f *answer.Fire) time.Time {
	ends := []time.Time{f.Shown, f.Undo, f.Ignore, f.Silence}
	return slices.MaxFunc(ends, time.Time.Compare).Add(evidence.MaxSkew)
}

// schedule sets when to look at a fire next. silent reports that its silence was counted. A fire is
// looked at when its silence window ends, and once more to be closed, when no message can change it
// any more. The times are keys of the record, so a sweep finds what is due without reading the
// rest.
func (m *Module) schedule(f *answer.Fire, silent bool) {
	now := m.orNow(time.Time{})
	switch {
	case f.Closed:
	case f.Lost, f.Undo.IsZero() && f.Ignore.IsZero() && f.Silence.IsZero():
		f.Closed, f.Due = true, now
	case !silent && !f.Silence.IsZero():
		f.Due = f.Silence
	case now.After(last(f)):
		f.Closed, f.Due = true, now
	default:
		f.Due = last(f)
	}
}

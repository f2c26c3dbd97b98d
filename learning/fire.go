package learning

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/limits"
	"github.com/heedhq/heed/internal/records"
	"github.com/heedhq/heed/store"
)

// A Fire is an answer that was shown to a user.
type Fire struct {
	HeuristicID string // "" if the host's model answered; only the prediction counts then
	EventID     string // what was answered; never empty. A heuristic fires once for an event
	// Stream is where the event came from. The next message from there means that the answer was ignored, unless somebody judged it.
	// Without a stream, an answer is never ignored.
	Stream  string
	Person  string // to whom it was shown: the source of the evidence
	Session string
	Path    string // how the answer came about, for calibration: "heuristic", "llm"
	// Condition is the text in which triggers of expectations are searched. "" means the heuristic's.
	Condition  string
	Prediction *float64  // the predicted probability of success, in [0, 1]; nil if there is none
	At         time.Time // when it was shown; the zero time means now
	// Compared are heuristics that the model did not see before it answered, each at most once and at most 64. The fate of
	// the answer counts for them: see [Config].Agreement. HeuristicID must be empty.
	Compared []heed.Comparison
}

const maxCompared = 64

func (f *Fire) validate() error {
	switch p := f.Prediction; {
	case f.EventID == "":
		return errEmpty("EventID")
	case p != nil && !(*p >= 0 && *p <= 1):
		return &heed.InputError{Field: "Prediction", Reason: fmt.Sprintf("is %v, must be in [0, 1]", *p)}
	case len(f.Path) > maxPath || strings.Contains(f.Path, "/"):
		return &heed.InputError{Field: "Path", Reason: fmt.Sprintf("must have no slash and at most %d bytes", maxPath)}
	}
	if err := f.validateCompared(); err != nil {
		return err
	}
	return checkTexts(text{"HeuristicID", f.HeuristicID}, text{"EventID", f.EventID}, text{"Stream", f.Stream},
		text{"Person", f.Person}, text{"Session", f.Session}, text{"Path", f.Path})
}

func (f *Fire) validateCompared() error {
	switch n := len(f.Compared); {
	case n > 0 && f.HeuristicID != "":
		return &heed.InputError{Field: "Compared", Reason: "must be empty, as a heuristic answered"}
	case n > maxCompared:
		return &heed.InputError{Field: "Compared", Reason: fmt.Sprintf("has %d heuristics, may have %d", n, maxCompared)}
	}
	known := make(map[string]bool, len(f.Compared))
	for i, c := range f.Compared {
		field := fmt.Sprintf("Compared[%d].HeuristicID", i)
		switch {
		case c.HeuristicID == "":
			return errEmpty(field)
		case known[c.HeuristicID]:
			return &heed.InputError{Field: field, Reason: "is there twice"}
		case !(c.Similarity >= 0 && c.Similarity <= 1):
			return &heed.InputError{Field: fmt.Sprintf("Compared[%d].Similarity", i), Reason: fmt.Sprintf("is %v, must be in [0, 1]", c.Similarity)}
		}
		known[c.HeuristicID] = true
		if err := evidence.CheckText(field, c.HeuristicID); err != nil {
			return err
		}
	}
	return nil
}

const maxPath = 256

// Fire counts that an answer was shown and opens it for signals, in one commit. An answer that was fired before stays as it is, open or
// not. Open answers are in the store, so every module of this name sees them.
//
// Invalid input is a [*heed.InputError], and an unknown heuristic [heed.ErrNotFound]. Further batches are committed with it, as in
// [Module.Judge]: the trace of the answer, for example.
func (m *Module) Fire(ctx context.Context, f Fire, with ...store.Batch) (err error) {
	defer doing("fire", &err)
	f.At = m.orNow(f.At)
	if err := cmp.Or(f.validate(), limits.CheckTime("At", f.At, m.cfg.Now())); err != nil {
		return err
	}
	return m.retry(ctx, with, func() error { return m.fire(ctx, &f, with) })
}

func (m *Module) fire(ctx context.Context, f *Fire, with []store.Batch) error {
	l := m.newLedger()
	shown, heuristic, err := l.readFire(ctx, f)
	switch {
	case err != nil:
		return err
	case !shown.Value.Shown.IsZero(): // delivered again
		_, err := m.commit(ctx, store.Batch{}, with...)
		return err
	}
	w := &shown.Value
	w.Heuristic, w.Event, w.Stream, w.Person, w.Session, w.Path = f.HeuristicID, f.EventID, f.Stream, f.Person, f.Session, f.Path
	w.Shown, w.Compared, w.Closed = f.At, slices.Clone(f.Compared), false
	if f.Prediction != nil {
		p := *f.Prediction
		w.Prediction = &p
	}
	if f.HeuristicID != "" {
		w.Domain, w.Edition = heuristic.Value.Domain, heuristic.Value.Edition
		l.batch.Expect = append(l.batch.Expect, m.kinds.heuristics.Expect(heuristic.ID, heuristic.Revision))
		l.batch.Observations = append(l.batch.Observations, evidence.Observation{
			ID: "fire:" + m.answerID(w.answer()), Cell: m.fireCell(w.Heuristic, w.Edition, cellShown),
			Source: w.Person, Session: w.Session, Reward: 1, Weight: 1, At: w.Shown,
		})
	}
	if err := m.setWindows(w, cmp.Or(f.Condition, heuristic.Value.Condition)); err != nil {
		return err
	}
	if w.Facts == (facts{}) {
		l.batch.Records = append(l.batch.Records, m.kinds.fires.Record(*w, shown.Revision))
		_, err = m.commit(ctx, l.batch, with...)
		return err
	}
	return l.fireJudged(ctx, shown, with)
}

// readFire reads what is known of an answer, and its heuristic.
func (l *ledger) readFire(ctx context.Context, f *Fire) (shown store.Row[fired], heuristic store.Row[Heuristic], err error) {
	k := &l.m.kinds
	refs := []store.Ref{k.fires.Ref(answer{f.HeuristicID, f.EventID}.record())}
	if f.HeuristicID != "" {
		refs = append(refs, k.heuristics.Ref(f.HeuristicID))
	}
	var s store.Snapshot
	if err := l.m.cfg.Store.Read(ctx, &s, nil, refs); err != nil {
		return shown, heuristic, err
	}
	if shown, err = k.fires.Of(s.Records[0]); err != nil || f.HeuristicID == "" {
		return shown, heuristic, err
	}
	heuristic, err = k.heuristics.Of(s.Records[1])
	if err == nil && heuristic.Revision == 0 {
		err = errNoHeuristic
	}
	return shown, heuristic, err
}

// fireJudged opens an answer that was judged before it was fired: by another process, for example.
func (l *ledger) fireJudged(ctx context.Context, shown store.Row[fired], with []store.Batch) error {
	w := &shown.Value
	expect := l.batch.Expect
	l.batch.Expect = nil
	if err := l.read(ctx, w.heuristics(), nil); err != nil {
		return err
	}
	if w.Heuristic == "" {
		l.batch.Expect = expect
	}
	e := &entry{signal: NewSignal(Neutral, w.Heuristic, w.Event, ""), at: w.Shown, answer: &shown}
	if err := l.count(e); err != nil {
		return err
	}
	l.entries = slices.DeleteFunc(l.entries, func(other *entry) bool { return other == e })
	_, err := l.commit(ctx, with...)
	return err
}

// setWindows sets how long the answer stays open, and the phrase that it waits for.
func (m *Module) setWindows(w *fired, condition string) error {
	windows, err := ask(func() (Windows, error) { return m.cfg.Strategy.Windows(w.Domain), nil })
	if err != nil {
		return err
	}
	e := m.expectation(condition)
	w.Phrase, w.Failure = strings.ToLower(e.Outcome), e.Failure
	windows.Silence = cmp.Or(e.Timeout, windows.Silence)
	if windows.Undo > 0 {
		w.Undo = w.Shown.Add(windows.Undo)
	}
	if windows.Ignore > 0 {
		w.Ignore = w.Shown.Add(windows.Ignore)
	}
	if windows.Silence > 0 {
		w.Silence = w.Shown.Add(windows.Silence)
	}
	w.schedule(m.orNow(time.Time{}))
	return nil
}

// An answer identifies a fire.
type answer struct{ heuristicID, eventID string }

// record is the id of the record of an answer.
func (a answer) record() string { return store.IDOf(a.heuristicID, a.eventID) }

// answerID is part of the ids of an answer's observations.
func (m *Module) answerID(a answer) string { return store.IDOf(m.cfg.Name, a.heuristicID, a.eventID) }

// fired is the record of an answer. Shown is zero if the answer was judged and not fired yet.
type fired struct {
	Heuristic  string            `json:"heuristic,omitempty"`
	Event      string            `json:"event"`
	Domain     string            `json:"domain,omitempty"`
	Stream     string            `json:"stream,omitempty"`
	Person     string            `json:"person,omitempty"`
	Session    string            `json:"session,omitempty"`
	Path       string            `json:"path,omitempty"`
	Prediction *float64          `json:"prediction,omitempty"`
	Compared   []heed.Comparison `json:"compared,omitempty"`
	Shown      time.Time         `json:"shown,omitzero"`
	Edition    uint64            `json:"edition,omitempty"` // of its heuristic, when it was shown
	Undo       time.Time         `json:"undo,omitzero"`     // the ends of its windows; zero: it has none
	Ignore     time.Time         `json:"ignore,omitzero"`
	Silence    time.Time         `json:"silence,omitzero"`
	Phrase     string            `json:"phrase,omitempty"` // shows, in the text of a later event, how it turned out
	Failure    bool              `json:"failure,omitempty"`

	Facts   facts     `json:"facts,omitzero"`
	Undos   []seen    `json:"undos,omitempty"` // of further persons. With caps on persons each counts for itself
	Counted counted   `json:"counted,omitzero"`
	Lost    bool      `json:"lost,omitempty"`   // its heuristic is gone
	Closed  bool      `json:"closed,omitempty"` // nothing is waited for any more
	Due     time.Time `json:"due"`              // when to look at it again, or since when it is closed
}

// outlived reports whether the answer was shown with another wording of its heuristic.
func (w *fired) outlived(h *Heuristic) bool { return !w.Shown.IsZero() && w.Edition != h.Edition }

// The keys by which fires are found.
func waitingKey() string              { return store.Key("waiting", "yes") }
func sessionKey(id string) string     { return store.Key("session", id) }
func shownToKey(person string) string { return store.Key("to", person) }
func streamKey(name string) string    { return store.Key("stream", name) }
func phraseKey(phrase string) string  { return store.Key("phrase", store.IDOf(phrase)) }
func undoneKey(id string) string      { return store.Key("undone", store.IDOf(id)) }
func eventKey(id string) string       { return store.Key("event", store.IDOf(id)) }

// place says how the record is found. A closed one is found by its id and its event, and when its people are forgotten.
func (w fired) place() (id string, at time.Time, keys []string) {
	keys = append(keys, eventKey(w.Event))
	if !w.Closed {
		keys = append(keys, waitingKey())
		undoable := w.Facts.Undo == nil || w.Person != "" && !w.undoneBy(w.Person)
		if w.Session != "" && undoable {
			keys = append(keys, sessionKey(w.Session))
		}
		if w.Person != "" && undoable {
			keys = append(keys, shownToKey(w.Person))
		}
		if w.Stream != "" && w.Facts.Ignore == nil {
			keys = append(keys, streamKey(w.Stream))
		}
		if w.Phrase != "" && w.Facts.Outcome == nil {
			keys = append(keys, phraseKey(w.Phrase))
		}
	}
	keys = append(keys, personKeys(w.Person)...)
	for _, u := range w.undos() {
		if u.Message != "" {
			keys = append(keys, undoneKey(u.Message))
		}
		if u.Person != w.Person {
			keys = append(keys, personKeys(u.Person)...)
		}
	}
	return w.answer().record(), w.Due, keys
}

// undos returns the undos of the answer, each of another person.
func (w *fired) undos() []seen {
	if w.Facts.Undo == nil {
		return nil
	}
	return append([]seen{*w.Facts.Undo}, w.Undos...)
}

// undoneBy reports whether a person has taken the answer back.
func (w *fired) undoneBy(person string) bool {
	return slices.ContainsFunc(w.undos(), func(u seen) bool { return u.by(w) == person })
}

// maxUndos is how many undos of further persons count for one answer. A store finds a record by a hundred keys.
const maxUndos = 40

func (w *fired) answer() answer { return answer{w.Heuristic, w.Event} }

// undoable reports whether a message of a moment can take the answer back. Clocks differ, so it may be stamped shortly before the answer.
func (w *fired) undoable(at time.Time) bool {
	return !w.Undo.IsZero() && !at.After(w.Undo) && !w.before(at)
}

// countsUndo reports whether a person's undo of an answer counts: it is the first, or each person's counts for itself.
func (m *Module) countsUndo(w *fired, person string) bool {
	return w.Facts.Undo == nil || m.cfg.Caps.SourceMass > 0 && w.Heuristic != "" && len(w.Undos) < maxUndos && !w.undoneBy(person)
}

// awaits reports whether an outcome at a moment would count.
func (w *fired) awaits(at time.Time) bool {
	return w.Facts.Outcome == nil && w.Phrase != "" && (w.Silence.IsZero() || !at.After(w.Silence)) && !w.before(at)
}

// ignorable reports whether a message of a moment shows that the user went on without a word. Once silence has approved, they have not.
func (w *fired) ignorable(at time.Time) bool {
	inWindows := !w.Ignore.IsZero() && !at.After(w.Ignore) && (w.Silence.IsZero() || !at.After(w.Silence))
	return w.Facts.Ignore == nil && inWindows && !at.Before(w.Shown)
}

// before reports whether a moment is so long before the answer that no clock can be that wrong.
func (w *fired) before(at time.Time) bool {
	return !w.Shown.IsZero() && at.Before(w.Shown.Add(-evidence.MaxSkew))
}

// schedule sets when the fire is looked at next. It stays open for [evidence.MaxSkew] after its windows, as a message from within them may
// come late.
func (w *fired) schedule(now time.Time) {
	last := slices.MaxFunc([]time.Time{w.Shown, w.Undo, w.Ignore, w.Silence}, time.Time.Compare).Add(evidence.MaxSkew)
	switch {
	case w.Closed:
	case w.Lost, w.Undo.IsZero() && w.Ignore.IsZero() && w.Silence.IsZero():
		w.Closed, w.Due = true, now
	case w.Facts.Silence == nil && !w.Silence.IsZero():
		w.Due = w.Silence
	case now.After(last):
		w.Closed, w.Due = true, now
	default:
		w.Due = last
	}
}

// Consider counts heuristics that could have answered an event but were not shown. They earn no signal.
func (m *Module) Consider(ctx context.Context, eventID string, heuristicIDs ...string) (err error) {
	defer doing("consider", &err)
	if eventID == "" {
		return errEmpty("EventID")
	}
	if err := checkTexts(text{"EventID", eventID}); err != nil || len(heuristicIDs) == 0 {
		return cmp.Or(err, ctx.Err())
	}
	return records.Retry(ctx, func() error { return m.consider(ctx, eventID, heuristicIDs) })
}

func (m *Module) consider(ctx context.Context, eventID string, heuristicIDs []string) error {
	l := m.newLedger()
	if err := l.read(ctx, heuristicIDs, nil); err != nil {
		return err
	}
	now := m.orNow(time.Time{})
	for _, id := range heuristicIDs {
		a, err := l.account(id)
		if err != nil {
			return err
		}
		l.batch.Observations = append(l.batch.Observations, evidence.Observation{
			ID: "considered:" + m.answerID(answer{id, eventID}), Cell: m.fireCell(id, a.heuristic.Value.Edition, cellConsidered), Reward: 0.5, Weight: 1, At: now,
		})
	}
	_, err := l.commit(ctx)
	return err
}

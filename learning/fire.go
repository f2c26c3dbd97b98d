package learning

import (
	"cmp"
	"context"
	"errors"
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
}

func (f *Fire) validate() error {
	switch p := f.Prediction; {
	case f.EventID == "":
		return errEmpty("EventID")
	case p != nil && !(*p >= 0 && *p <= 1):
		return &heed.InputError{Field: "Prediction", Reason: fmt.Sprintf("is %v, must be in [0, 1]", *p)}
	case len(f.Path) > maxPath || strings.Contains(f.Path, "/"):
		return &heed.InputError{Field: "Path", Reason: fmt.Sprintf("must have no slash and at most %d bytes", maxPath)}
	}
	return checkTexts(text{"HeuristicID", f.HeuristicID}, text{"EventID", f.EventID}, text{"Stream", f.Stream},
		text{"Person", f.Person}, text{"Session", f.Session}, text{"Path", f.Path})
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
	w := fired{
		Heuristic: f.HeuristicID, Event: f.EventID, Stream: f.Stream, Person: f.Person, Session: f.Session, Path: f.Path, Shown: f.At,
	}
	if f.Prediction != nil {
		p := *f.Prediction
		w.Prediction = &p
	}
	var b store.Batch
	condition := f.Condition
	if f.HeuristicID != "" {
		kept, err := m.kinds.heuristics.Get(ctx, m.cfg.Store, f.HeuristicID)
		if errors.Is(err, heed.ErrNotFound) {
			return errNoHeuristic
		}
		if err != nil {
			return err
		}
		w.Domain = kept.Value.Domain
		condition = cmp.Or(condition, kept.Value.Condition)
		b.Expect = append(b.Expect, m.kinds.heuristics.Expect(kept.ID, kept.Revision))
		b.Observations = append(b.Observations, evidence.Observation{
			ID: "fire:" + m.answerID(w.answer()), Cell: m.fireCell(w.Heuristic, cellShown),
			Source: w.Person, Session: w.Session, Reward: 1, Weight: 1, At: w.Shown,
		})
	}
	if err := m.setWindows(&w, condition); err != nil {
		return err
	}
	b.Records = append(b.Records, m.kinds.fires.Record(w, store.Once))
	_, err := m.commit(ctx, b, with...)
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
	if windows.Silence > 0 {
		w.Silence = w.Shown.Add(windows.Silence)
	}
	w.schedule(w.Shown)
	return nil
}

// An answer identifies a fire.
type answer struct{ heuristicID, eventID string }

// record is the id of the record of an answer.
func (a answer) record() string { return records.ID(a.heuristicID, a.eventID) }

// answerID is part of the ids of an answer's observations.
func (m *Module) answerID(a answer) string { return records.ID(m.cfg.Name, a.heuristicID, a.eventID) }

// fired is the record of an answer that was shown.
type fired struct {
	Heuristic  string    `json:"heuristic,omitempty"`
	Event      string    `json:"event"`
	Domain     string    `json:"domain,omitempty"`
	Stream     string    `json:"stream,omitempty"`
	Person     string    `json:"person,omitempty"`
	Session    string    `json:"session,omitempty"`
	Path       string    `json:"path,omitempty"`
	Prediction *float64  `json:"prediction,omitempty"`
	Shown      time.Time `json:"shown"`
	Undo       time.Time `json:"undo,omitzero"` // the ends of its windows; zero: it has none
	Silence    time.Time `json:"silence,omitzero"`
	Phrase     string    `json:"phrase,omitempty"` // shows, in the text of a later event, how it turned out
	Failure    bool      `json:"failure,omitempty"`

	End    string                `json:"end,omitempty"`    // how it has ended; "" while it is waited for
	Heard  bool                  `json:"heard,omitempty"`  // somebody has judged it
	Silent *evidence.Observation `json:"silent,omitempty"` // its silence as it was counted; an undo takes it back
	Closed bool                  `json:"closed,omitempty"` // no signal can end it any more
	Due    time.Time             `json:"due"`              // when to look at it again, or since when it is closed
}

// The ways in which a fire can end. They are in the ids of observations.
const (
	endOutcome   = "outcome"
	endUndo      = "undo"
	endIgnored   = "ignored"
	endSilence   = "silence"
	endComplaint = "complaint" // without an implicit signal
	endLost      = "lost"      // its heuristic is gone
)

// The keys by which open fires are found.
func waitingKey() string              { return store.Key("waiting", "yes") }
func sessionKey(id string) string     { return store.Key("session", id) }
func shownToKey(person string) string { return store.Key("to", person) }
func streamKey(name string) string    { return store.Key("stream", name) }
func phraseKey(phrase string) string  { return store.Key("phrase", records.ID(phrase)) }

// place says how the record is found. A closed one is found by its id, and when its person is forgotten.
func (w fired) place() (id string, at time.Time, keys []string) {
	if !w.Closed {
		keys = append(keys, waitingKey(), sessionKey(w.Session))
		if w.Person != "" {
			keys = append(keys, shownToKey(w.Person))
		}
		if w.Stream != "" && w.End == "" {
			keys = append(keys, streamKey(w.Stream))
		}
		if w.Phrase != "" && w.End == "" {
			keys = append(keys, phraseKey(w.Phrase))
		}
	}
	return w.answer().record(), w.Due, append(keys, personKeys(w.Person)...)
}

func (w *fired) answer() answer { return answer{w.Heuristic, w.Event} }

// undoable reports whether the fire can still be taken back at a moment.
func (w *fired) undoable(at time.Time) bool {
	return (w.End == "" || w.End == endSilence) && !w.Undo.IsZero() && !at.After(w.Undo) && !at.Before(w.Shown)
}

// awaits reports whether an outcome at a moment would count.
func (w *fired) awaits(at time.Time) bool {
	return w.End == "" && w.Phrase != "" && !at.Before(w.Shown) && (w.Silence.IsZero() || !at.After(w.Silence))
}

// ignorable reports whether it would count, at a moment, that the user went on without a word.
func (w *fired) ignorable(at time.Time) bool {
	return w.End == "" && w.Heuristic != "" && !w.Heard && w.undoable(at)
}

// schedule sets when the fire is looked at next. It stays open for [evidence.MaxSkew] after its windows, as a message from within them may
// come late.
func (w *fired) schedule(now time.Time) {
	last := slices.MaxFunc([]time.Time{w.Shown, w.Undo, w.Silence}, time.Time.Compare).Add(evidence.MaxSkew)
	switch {
	case w.Undo.IsZero() && w.Silence.IsZero():
		w.Closed, w.Due = true, now
	case w.End == "" && !w.Silence.IsZero():
		w.Due = w.Silence
	case w.End != "" && w.End != endSilence && w.End != endIgnored || now.After(last):
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
		if _, err := l.account(id); err != nil {
			return err
		}
		l.batch.Observations = append(l.batch.Observations, evidence.Observation{
			ID: "considered:" + m.answerID(answer{id, eventID}), Cell: m.fireCell(id, cellConsidered), Reward: 0.5, Weight: 1, At: now,
		})
	}
	_, err := l.commit(ctx)
	return err
}

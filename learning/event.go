package learning

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
)

// An Event is something that came in. Its text may show how an earlier answer turned out, or take it back.
type Event struct {
	ID      string // may be empty; the fires for this event are not judged by it
	Source  string // where it came from
	Session string
	Text    string
	At      time.Time // the zero time means now
}

// Event looks at what was shown before in the light of a new event: first whether a [Pattern]'s outcome has come, then
// whether the event takes answers back, and at last which answers were ignored, as the event is from where they were shown
// and nobody has judged them. An answer that was ignored earns no other implicit signal. Call it before the answers to the
// event itself are fired.
//
// It returns what was counted, also where some of it failed. What failed is waited for as before.
func (m *Module) Event(ctx context.Context, e Event) ([]Change, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := checkTexts(text{"ID", e.ID}, text{"Source", e.Source}, text{"Session", e.Session}); err != nil {
		return nil, fmt.Errorf("learning: event: %w", err)
	}
	e.At = m.orNow(e.At)
	r := m.newRun(e.At)
	r.outcomes(ctx, &e)
	if r.undo(ctx, &e) {
		r.ignore(ctx, &e)
	}
	if err := errors.Join(r.failures...); err != nil {
		return r.changes, fmt.Errorf("learning: event: %w", err)
	}
	return r.changes, nil
}

// A run is one call that may end several fires.
type run struct {
	m        *Module
	at       time.Time
	changes  []Change
	failures []error
	failed   map[answer]bool // what is not to be judged once more in this run
}

func (m *Module) newRun(at time.Time) *run { return &run{m: m, at: at, failed: make(map[answer]bool)} }

func (e *Event) mayJudge(w *watched) bool { return e.ID == "" || w.EventID != e.ID }

func (r *run) outcomes(ctx context.Context, e *Event) {
	words := strings.ToLower(e.Text)
	seen := make(map[*Pattern]bool) // looked for once, however many fires wait for it
	shows := func(p *Pattern) bool {
		if _, ok := seen[p]; !ok {
			seen[p] = strings.Contains(words, strings.ToLower(p.Outcome))
		}
		return seen[p]
	}
	r.m.fires.each(func(w *watched) bool {
		return w.pattern != nil && !w.silent && e.mayJudge(w) && !e.At.Before(w.At) &&
			(w.silence.IsZero() || !e.At.After(w.silence)) && shows(w.pattern)
	}, func(w *watched) {
		s, err := r.m.interpretOutcome(Outcome{w.HeuristicID, w.EventID, w.domain, !w.pattern.Failure})
		r.end(ctx, w, endOutcome, s, err)
	})
}

func (m *Module) interpretOutcome(o Outcome) (Signal, error) {
	if strategy, ok := m.cfg.Strategy.(OutcomeInterpreter); ok {
		return ask(func() (Signal, error) { return strategy.InterpretOutcome(o) })
	}
	t := Negative
	if o.Success {
		t = Positive
	}
	return NewSignal(t, o.HeuristicID, o.EventID, SourceOutcome), nil
}

// undo reports whether the event could be interpreted.
func (r *run) undo(ctx context.Context, e *Event) bool {
	m := r.m
	recent := m.fires.recent(e.At, func(w *watched) bool {
		return e.mayJudge(w) && !r.failed[w.key()] && (!m.cfg.UndoWithinSession || w.Session == e.Session)
	})
	if len(recent) == 0 {
		return true
	}
	signals, err := ask(func() ([]Signal, error) {
		return m.cfg.Strategy.InterpretUndo(Undo{Text: e.Text, Fires: slices.Clone(recent)})
	})
	if err != nil {
		r.failures = append(r.failures, err)
		return false
	}
	if len(signals) == 0 {
		return true
	}
	shown := make(map[answer]bool, len(recent))
	for _, f := range recent {
		shown[answer{f.HeuristicID, f.EventID}] = true
	}
	for _, s := range signals {
		key := answer{s.HeuristicID, s.EventID}
		err := s.Validate()
		if !shown[key] {
			err = errForeign("an undo")
		}
		if err != nil {
			r.failures = append(r.failures, err)
		}
		if err != nil || s.neutral() {
			continue
		}
		// Another call may have ended it meanwhile.
		m.fires.one(key, func(w *watched) bool { return w.undoable(e.At) && !r.failed[key] },
			func(w *watched) { r.end(ctx, w, endUndo, s, nil) })
	}
	return true
}

func errForeign(what string) error {
	return fmt.Errorf("the strategy answered %s with a signal for something else", what)
}

func (r *run) ignore(ctx context.Context, e *Event) {
	if e.Source == "" {
		return
	}
	m := r.m
	m.fires.each(func(w *watched) bool {
		return w.undoable(e.At) && !w.silent && !w.heard && w.HeuristicID != "" && w.Source == e.Source && e.mayJudge(w) && !r.failed[w.key()]
	}, func(w *watched) {
		n := m.fires.ignored(w.HeuristicID, e.At)
		s, err := ask(func() (Signal, error) {
			return m.cfg.Strategy.InterpretIgnore(Ignore{w.HeuristicID, w.EventID, w.domain, n})
		})
		if !r.end(ctx, w, endIgnored, s, err) {
			m.fires.unignored(w.HeuristicID)
		}
	})
}

// The ways in which a fire can end. They are in the ids of observations.
const (
	endOutcome = "outcome"
	endUndo    = "undo"
	endIgnored = "ignored"
	endSilence = "silence"
)

// end counts the one implicit signal of a fire. It reports whether that is done; else the fire is waited for as before,
// unless its heuristic is no more.
func (r *run) end(ctx context.Context, w *watched, how string, s Signal, err error) bool {
	m := r.m
	if err == nil && (s.HeuristicID != w.HeuristicID || s.EventID != "" && s.EventID != w.EventID) {
		err = errForeign("a question")
	}
	at := r.at
	if how == endSilence {
		at = w.silence // whenever it is swept
	}
	var change Change
	var counted bool
	if err == nil {
		change, counted, err = m.count(ctx, m.ending(w, how, s, at))
	}
	if err != nil {
		r.failures = append(r.failures, err)
		r.failed[w.key()] = true
		if errors.Is(err, heed.ErrNotFound) {
			m.fires.drop(w)
		}
		return false
	}
	r.changes = append(r.changes, change)
	if how != endIgnored || !s.neutral() {
		m.fires.noticed(w.HeuristicID)
	}
	m.fires.locked(func() {
		if how == endSilence && w.undoable(r.at) { // an undo may still come
			w.silent, w.counted = true, counted
			w.stored = w.stored || counted
			return
		}
		m.fires.end(w)
	})
	return true
}

// ending is what the end of a fire adds to the evidence.
func (m *Module) ending(w *watched, how string, s Signal, at time.Time) *entry {
	name := "implicit:" + m.hashOf(w.key())
	e := &entry{
		signal: s, cell: cellSeen, batch: name + ":0", id: name + ":" + how,
		person: w.Person, session: w.Session, at: at,
	}
	if w.counted {
		e.batch, e.retract = name+":1", []string{silenceID(name)}
	}
	var stored bool
	m.fires.locked(func() { stored = w.stored })
	if !stored && w.HeuristicID != "" {
		e.extra = append(e.extra, m.shown(w))
	}
	if s.neutral() {
		e.batch = "" // it is not the one signal
		return e
	}
	ended := evidence.Observation{ID: e.id, Source: w.Person, Session: w.Session, Channel: s.Source, Reward: s.reward(), Weight: 1, At: at}
	if w.HeuristicID != "" {
		ended.Cell = m.fireCell(w.domain, w.HeuristicID, cellEnded)
		e.extra = append(e.extra, ended)
	}
	if w.Prediction != nil {
		ended.Cell, ended.Reward = m.calibrationCell(w, s.Type == Positive), *w.Prediction
		e.extra = append(e.extra, ended)
	}
	return e
}

func silenceID(name string) string { return name + ":" + endSilence }

package learning

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
)

// A Fire is an answer that was shown to a user: a heuristic's, or, with no HeuristicID, the host's model's, of which only
// the prediction is of interest.
type Fire struct {
	HeuristicID string
	EventID     string // what was answered; never empty. A heuristic fires once for an event
	// Source is where the event came from. The next event from there means that the answer was ignored, unless somebody
	// judged it. Without a source an answer is never ignored.
	Source  string
	Person  string // to whom it was shown: the source of the evidence
	Session string
	// Path is how the answer came about, as calibration tells paths apart: "heuristic", "llm".
	Path string
	// Condition is what the triggers of patterns are looked for in. "" means the heuristic's.
	Condition string
	// Prediction is the probability of success that somebody gave the answer, in [0, 1]. nil: nobody did.
	Prediction *float64
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
	return checkTexts(text{"HeuristicID", f.HeuristicID}, text{"EventID", f.EventID}, text{"Source", f.Source},
		text{"Person", f.Person}, text{"Session", f.Session}, text{"Path", f.Path})
}

const maxPath = 256

// Fire begins to wait for what becomes of an answer, and counts that it was shown. An answer that is waited for already is
// left as it is. What a store can't count now is counted when the answer comes to an end; the fire is waited for in any
// case, and the failure is logged.
//
// Input that is not valid is a [*heed.InputError], an unknown heuristic [heed.ErrNotFound]; nothing is waited for then.
func (m *Module) Fire(ctx context.Context, f Fire) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := f.validate(); err != nil {
		return fmt.Errorf("learning: fire: %w", err)
	}
	w := &watched{Fire: f}
	w.At = m.orNow(f.At)
	if w.At.Unix() < 0 || w.At.Sub(m.cfg.Now()) > evidence.MaxSkew { // no store could ever count it
		reason := fmt.Sprintf("must be from 1970 on, and not more than %v ahead of the clock", evidence.MaxSkew)
		return fmt.Errorf("learning: fire: %w", &heed.InputError{Field: "At", Reason: reason})
	}
	if f.Prediction != nil {
		p := *f.Prediction
		w.Prediction = &p
	}
	if f.HeuristicID != "" {
		h, err := m.cfg.Heuristics.Get(ctx, f.HeuristicID)
		if err != nil {
			return fmt.Errorf("learning: fire: heuristic: %w", err)
		}
		w.domain = h.Domain
		if w.Condition == "" {
			w.Condition = h.Condition
		}
	}
	if err := m.setWindows(w); err != nil {
		return fmt.Errorf("learning: fire: %w", err)
	}
	added, dropped := m.fires.add(w)
	if dropped != nil {
		m.cfg.Logger.WarnContext(ctx, "learning: too many fires: the oldest is no longer waited for", "heuristic", dropped.HeuristicID)
	}
	if !added {
		return nil
	}
	if f.HeuristicID == "" || m.cfg.DryRun {
		return nil
	}
	if _, err := m.cfg.Evidence.Commit(ctx, m.batch(m.shown(w))); err != nil {
		m.cfg.Logger.WarnContext(ctx, "learning: a fire can't be counted yet", "heuristic", f.HeuristicID, "error", err)
		return nil
	}
	m.fires.find(w.key(), func(w *watched) { w.stored = true })
	return nil
}

func (m *Module) setWindows(w *watched) error {
	windows, err := ask(func() (Windows, error) { return m.cfg.Strategy.Windows(w.domain), nil })
	if err != nil {
		return err
	}
	if w.pattern = m.pattern(w.Condition); w.pattern != nil {
		windows.Silence = cmp.Or(w.pattern.Timeout, windows.Silence)
	}
	if windows.Undo > 0 {
		w.undo = w.At.Add(windows.Undo)
	}
	if windows.Silence > 0 {
		w.silence = w.At.Add(windows.Silence)
	}
	return nil
}

func (m *Module) batch(observations ...evidence.Observation) evidence.Batch {
	return evidence.Batch{Policies: m.policies, Observations: observations}
}

// shown is the observation that an answer was shown.
func (m *Module) shown(w *watched) evidence.Observation {
	return evidence.Observation{
		ID: "fire:" + m.hashOf(w.key()), Cell: m.fireCell(w.domain, w.HeuristicID, cellShown),
		Source: w.Person, Session: w.Session, Reward: 1, Weight: 1, At: w.At,
	}
}

func (m *Module) hashOf(a answer) string { return hash(m.cfg.Name, a.heuristicID, a.eventID) }

// Consider counts heuristics that could have answered an event, and were not shown. They earn no signal.
func (m *Module) Consider(ctx context.Context, eventID string, heuristicIDs ...string) error {
	if eventID == "" {
		return fmt.Errorf("learning: consider: %w", errEmpty("EventID"))
	}
	now := m.orNow(time.Time{})
	b := m.batch()
	for _, id := range heuristicIDs {
		h, err := m.cfg.Heuristics.Get(ctx, id)
		if err != nil {
			return fmt.Errorf("learning: consider: heuristic: %w", err)
		}
		b.Observations = append(b.Observations, evidence.Observation{
			ID: "considered:" + m.hashOf(answer{id, eventID}), Cell: m.fireCell(h.Domain, id, cellConsidered),
			Reward: 0.5, Weight: 1, At: now,
		})
	}
	if len(b.Observations) == 0 || m.cfg.DryRun {
		return ctx.Err()
	}
	if _, err := m.cfg.Evidence.Commit(ctx, b); err != nil {
		return fmt.Errorf("learning: consider: %w", err)
	}
	return nil
}

package assistant

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/store"
)

// A Heuristic is an entry of the runbook: in such a situation, do that.
type Heuristic struct{ ID, Condition, Action string }

const (
	fitting   = 0.22 // from this similarity on, a condition may be that of an event
	agreement = 0.60 // from this similarity on, the model said what a heuristic says
)

// newLearning returns the module that keeps how far each heuristic is trusted.
func newLearning(ctx context.Context, kept store.Store, now func() time.Time) (*learning.Module, error) {
	watching, err := learning.NewBayesian(learning.BayesianConfig{
		// Who says nothing may not have looked: it counts half of what it counts to take an answer back.
		Weights: map[string]float64{learning.ChannelTimeout: 0.5},
	})
	if err != nil {
		return nil, err
	}
	return learning.New(ctx, learning.Config{
		Store: kept, Strategy: watching, Now: now,
		HalfLife: 72 * time.Hour, // what works on a Monday may not on a Friday
		Caps:     evidence.Caps{SourceMass: 2},
	})
}

// A shelf has the heuristics with what they say.
type shelf struct {
	learning *learning.Module
	runbook  Runbook
	all      []Heuristic
}

// newShelf returns the shelf with what the runbook has, which is given its first entries where it has none.
func newShelf(ctx context.Context, module *learning.Module, runbook Runbook, first []Heuristic) (*shelf, error) {
	s := &shelf{learning: module, runbook: runbook}
	entries, err := s.runbook.Entries(ctx)
	if err != nil {
		return nil, err
	}
	for _, h := range entries {
		if err := s.put(ctx, h); err != nil {
			return nil, err
		}
	}
	for _, h := range first[min(len(entries), len(first)):] {
		if err := s.add(ctx, h); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *shelf) add(ctx context.Context, h Heuristic) error {
	if err := s.runbook.Add(ctx, h); err != nil {
		return err
	}
	return s.put(ctx, h)
}

// put makes a heuristic known to package learning, unless it is, and puts it on the shelf.
func (s *shelf) put(ctx context.Context, h Heuristic) error {
	_, err := s.learning.Put(ctx, learning.Heuristic{ID: h.ID, Domain: Alerts, Condition: h.Condition})
	if err != nil && !errors.Is(err, heed.ErrConflict) {
		return err
	}
	s.all = append(s.all, h)
	return nil
}

// like returns the heuristics whose conditions are like a text, as candidates without a confidence.
func (s *shelf) like(ctx context.Context, text string, least float64) ([]decision.Candidate, error) {
	conditions := make([]string, len(s.all))
	for i, h := range s.all {
		conditions[i] = h.Condition
	}
	similarities, err := heed.Trigrams{}.Similar(ctx, text, conditions)
	if err != nil {
		return nil, err
	}
	var found []decision.Candidate
	for i, h := range s.all {
		if similarities[i] >= least {
			found = append(found, decision.Candidate{
				HeuristicID: h.ID, Condition: h.Condition, Action: h.Action, Similarity: similarities[i],
			})
		}
	}
	return found, nil
}

// nearest returns the entry with the most similar action among those that fit the condition.
func (s *shelf) nearest(ctx context.Context, condition, message string) (id string, similarity float64, err error) {
	found, err := s.like(ctx, condition, fitting)
	if err != nil {
		return "", 0, err
	}
	actions := make([]string, len(found))
	for i, c := range found {
		actions[i] = c.Action
	}
	similarities, err := heed.Trigrams{}.Similar(ctx, message, actions)
	if err != nil {
		return "", 0, err
	}
	for i, alike := range similarities {
		if id == "" || alike > similarity {
			id, similarity = found[i].HeuristicID, alike
		}
	}
	return id, similarity, nil
}

// candidates returns the heuristics that fit an event, the best first, each as far as it is trusted now. One that has lost
// of the trust that it began with is not even shown to the model, which might believe it.
func (a *Assistant) candidates(ctx context.Context, e Event) (trusted []decision.Candidate, err error) {
	if e.Domain != Alerts {
		return nil, nil
	}
	found, err := a.shelf.like(ctx, e.Text, fitting)
	if err != nil {
		return nil, err
	}
	for _, c := range found {
		if c.Confidence, err = a.trust(ctx, e, c); err != nil {
			return nil, err
		}
		if c.Confidence >= decision.InitialConfidence {
			trusted = append(trusted, c)
		}
	}
	return decision.Rank(trusted, closeness), nil
}

func (a *Assistant) trust(ctx context.Context, e Event, c decision.Candidate) (float64, error) {
	if a.cfg.Trust != nil {
		return a.cfg.Trust(e, Heuristic{c.HeuristicID, c.Condition, c.Action}), nil
	}
	standing, err := a.Learning.Standing(ctx, c.HeuristicID)
	return standing.Confidence, err
}

// closeness is how much less similar a candidate may be that is preferred for its confidence.
const closeness = 0.5

// Shelf returns the heuristics, those that were learned among them.
func (a *Assistant) Shelf() []Heuristic { return slices.Clone(a.shelf.all) }

package strategy

import (
	"context"
	"fmt"
	"slices"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
)

// A Standing says in short how an item of a segment stands. [Learner.Item] has more about one.
type Standing struct {
	Item         string  `json:"item"`
	Leading      ArmID   `json:"leading"` // the arm with the greatest mean; of equals the first
	Mean         float64 `json:"mean"`    // of that arm, the reward that is expected
	Independence float64 `json:"independence"`
	Specialized  bool    `json:"specialized"`
	Sessions     uint64  `json:"sessions"` // in which it was seen
	Outcomes     uint64  `json:"outcomes"` // that count
}

// Standings returns how each item of a segment stands, by the items' names, or [heed.ErrNotFound] where the segment has no
// outcomes. It reads the segment once.
func (l *Learner) Standings(ctx context.Context, category, context string) ([]Standing, error) {
	standings, err := l.standings(ctx, category, context)
	if err != nil {
		return nil, fmt.Errorf("strategy: standings: %w", err)
	}
	return standings, nil
}

func (l *Learner) standings(ctx context.Context, category, context string) ([]Standing, error) {
	q := Query{Category: category, Context: context}
	if err := q.validate(); err != nil {
		return nil, err
	}
	space, now := space{l.kinds, segmentScope(category, context)}, evidence.InstantOf(l.cfg.Now())
	f, err := l.loadItems(ctx, space, now)
	if err != nil {
		return nil, err
	}
	if len(f.items) == 0 {
		return nil, heed.ErrNotFound
	}
	if err := l.loadGiven(ctx, space, now, &f); err != nil {
		return nil, err
	}
	model, beliefs := l.model(f.items), make([]Belief, len(l.cfg.Arms))
	standings := make([]Standing, len(f.items))
	for i, item := range f.items {
		s := &standings[i]
		s.Item, s.Independence = f.names[i], model.Independence(item)
		s.Specialized = s.Independence >= 0.5
		for _, n := range f.counts[i] {
			s.Outcomes += n
		}
		model.Believe(item, beliefs)
		for arm, b := range beliefs {
			if mean := b.Mean(); arm == 0 || mean > s.Mean {
				s.Leading, s.Mean = l.cfg.Arms[arm].ID, mean
			}
		}
	}
	for part, err := range l.cfg.Store.List(ctx, l.kinds.sessions, space.scope) {
		if err != nil {
			return nil, err
		}
		if i, ok := slices.BinarySearch(f.names, part.Cell.Item); ok {
			standings[i].Sessions += part.Tally.N()
		}
	}
	return standings, nil
}

package strategy

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

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

// ArmKind returns the kind of the cells in which a learner of this name keeps what its arms have shown.
func ArmKind(learner string) string { return kindsOf(learner).arm }

// StoredArms returns the arms that a store has outcomes of under a learner's name, with the parameters' values that it has
// outcomes of, all by their names and without weights: for a tool that looks into a store of a host that it doesn't know.
func StoredArms(ctx context.Context, store evidence.Store, learner string) ([]Arm, error) {
	kinds, seen := kindsOf(learner), make(map[ArmID]map[string][]string)
	for _, kind := range []string{kinds.arm, kinds.parameter} {
		for scope, err := range store.Scopes(ctx, kind) {
			if err != nil {
				return nil, fmt.Errorf("strategy: stored arms: %w", err)
			}
			for part, err := range store.List(ctx, kind, scope) {
				if err != nil {
					return nil, fmt.Errorf("strategy: stored arms: %w", err)
				}
				kinds.collect(seen, part.Cell)
			}
		}
	}
	arms := make([]Arm, 0, len(seen))
	for _, id := range slices.Sorted(maps.Keys(seen)) {
		arm := Arm{ID: id}
		for _, name := range slices.Sorted(maps.Keys(seen[id])) {
			slices.Sort(seen[id][name])
			arm.Parameters = append(arm.Parameters, Parameter{name, slices.Compact(seen[id][name])})
		}
		arms = append(arms, arm)
	}
	return arms, nil
}

func (k *kinds) collect(seen map[ArmID]map[string][]string, c evidence.Cell) {
	arm := ArmID(c.Name)
	if c.Kind == k.parameter {
		arm = ArmID(c.Item)
	}
	if seen[arm] == nil {
		seen[arm] = make(map[string][]string)
	}
	if name, value, ok := strings.Cut(c.Name, "="); ok && c.Kind == k.parameter {
		seen[arm][name] = append(seen[arm][name], value)
	}
}

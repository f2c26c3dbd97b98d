package memstore

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/learning"
)

// Heuristics is a [learning.Store] in memory. The zero value is ready to use; it must not be copied after first use.
// Heuristics is safe for concurrent use.
type Heuristics struct {
	mu  sync.RWMutex
	all map[string]learning.Heuristic
}

var _ learning.Store = (*Heuristics)(nil)

// Get implements [learning.Store].
func (s *Heuristics) Get(ctx context.Context, id string) (learning.Heuristic, error) {
	if err := ctx.Err(); err != nil {
		return learning.Heuristic{}, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	h, ok := s.all[id]
	if !ok {
		return learning.Heuristic{}, fmt.Errorf("memstore: get heuristic: %w", heed.ErrNotFound)
	}
	return h, nil
}

// Put implements [learning.Store].
func (s *Heuristics) Put(ctx context.Context, h learning.Heuristic) (learning.Heuristic, error) {
	if err := ctx.Err(); err != nil {
		return learning.Heuristic{}, err
	}
	if err := h.Validate(); err != nil {
		return learning.Heuristic{}, fmt.Errorf("memstore: put heuristic: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[h.ID].Revision != h.Revision {
		return learning.Heuristic{}, fmt.Errorf("memstore: put heuristic: %w", heed.ErrConflict)
	}
	if s.all == nil {
		s.all = make(map[string]learning.Heuristic)
	}
	h.Revision++
	h.CreatedAt = evidence.InstantOf(h.CreatedAt).Time()
	s.all[h.ID] = h
	return h, nil
}

// Delete implements [learning.Store].
func (s *Heuristics) Delete(ctx context.Context, id string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.all[id]; !ok {
		return fmt.Errorf("memstore: delete heuristic: %w", heed.ErrNotFound)
	}
	delete(s.all, id)
	return nil
}

// All implements [learning.Store]. It holds no lock while the loop runs.
func (s *Heuristics) All(ctx context.Context) iter.Seq2[learning.Heuristic, error] {
	return func(yield func(learning.Heuristic, error) bool) {
		s.mu.RLock()
		all := make([]learning.Heuristic, 0, len(s.all))
		for _, id := range slices.Sorted(maps.Keys(s.all)) {
			all = append(all, s.all[id])
		}
		s.mu.RUnlock()
		if err := ctx.Err(); err != nil {
			yield(learning.Heuristic{}, err)
			return
		}
		yieldAll(ctx, all, yield)
	}
}

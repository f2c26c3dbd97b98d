package sqlstore

import (
	"context"
	"fmt"
	"iter"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/export"
	"github.com/heedhq/heed/learning"
)

// Heuristics is a [learning.Store] in a database. It is safe for concurrent use.
type Heuristics struct{ shelf shelf[learning.Heuristic] }

var _ learning.Store = (*Heuristics)(nil)

// NewHeuristics returns the store of heuristics in a database.
func NewHeuristics(db *DB) *Heuristics {
	return &Heuristics{shelf[learning.Heuristic]{db, export.Heuristic}}
}

// Get implements [learning.Store].
func (s *Heuristics) Get(ctx context.Context, id string) (learning.Heuristic, error) {
	d, err := s.shelf.read(ctx, id)
	return d.value, err
}

// Put implements [learning.Store].
func (s *Heuristics) Put(ctx context.Context, h learning.Heuristic) (learning.Heuristic, error) {
	if err := h.Validate(); err != nil {
		return learning.Heuristic{}, fmt.Errorf("sqlstore: heuristic: %w", err)
	}
	read := h.Revision
	h.Revision++
	h.CreatedAt = evidence.InstantOf(h.CreatedAt).Time()
	err := s.shelf.write(ctx, func(t *tx) error {
		return s.shelf.put(t, document[learning.Heuristic]{id: h.ID, value: h}, read)
	})
	if err != nil {
		return learning.Heuristic{}, err
	}
	return h, nil
}

// Delete implements [learning.Store].
func (s *Heuristics) Delete(ctx context.Context, id string) error {
	return s.shelf.write(ctx, func(t *tx) error { return s.shelf.drop(t, id) })
}

// All implements [learning.Store].
func (s *Heuristics) All(ctx context.Context) iter.Seq2[learning.Heuristic, error] {
	return s.shelf.list(ctx, func(learning.Heuristic) bool { return true }, documentsByID, s.shelf.sort)
}

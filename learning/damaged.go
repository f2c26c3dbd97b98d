package learning

import (
	"context"
	"fmt"

	"github.com/heedhq/heed/internal/records"
	"github.com/heedhq/heed/store"
)

// Damaged returns the records of the module that hold something that this package has not written.
func (m *Module) Damaged(ctx context.Context) ([]store.Ref, error) {
	refs, err := records.Damaged(ctx, m.cfg.Store, &m.kinds.heuristics, &m.kinds.pins, &m.kinds.fires, &m.kinds.streaks, &m.kinds.clicks)
	if err != nil {
		return nil, fmt.Errorf("learning: damaged: %w", err)
	}
	return refs, nil
}

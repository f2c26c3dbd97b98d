package decision

import (
	"context"
	"fmt"

	"github.com/heedhq/heed/store"
)

// Damaged returns the records of the decider that hold something that this package has not written.
func (d *Decider) Damaged(ctx context.Context) ([]store.Ref, error) {
	refs, err := store.Damaged(ctx, d.cfg.Store, &traceKind, &outcomeKind)
	if err != nil {
		return nil, fmt.Errorf("decision: damaged: %w", err)
	}
	return refs, nil
}

package patterns

import (
	"context"
	"fmt"

	"github.com/heedhq/heed/internal/records"
	"github.com/heedhq/heed/store"
)

// Damaged returns the records of the recorder that hold something that this package has not written.
func (r *Recorder) Damaged(ctx context.Context) ([]store.Ref, error) {
	refs, err := records.Damaged(ctx, r.cfg.Store, &r.kinds.patterns, &r.kinds.transitions, &r.kinds.entries, &r.kinds.errors)
	if err != nil {
		return nil, fmt.Errorf("patterns: damaged: %w", err)
	}
	return refs, nil
}

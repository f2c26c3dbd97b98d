package strategy

import (
	"context"
	"fmt"

	"github.com/heedhq/heed/internal/records"
	"github.com/heedhq/heed/store"
)

// Damaged returns the records of the learner that hold something that this package has not written.
func (l *Learner) Damaged(ctx context.Context) ([]store.Ref, error) {
	refs, err := records.Damaged(ctx, l.cfg.Store, &choices, &sessions)
	if err != nil {
		return nil, fmt.Errorf("strategy: damaged: %w", err)
	}
	return refs, nil
}

package feedback

import (
	"context"
	"fmt"

	"github.com/heedhq/heed/internal/records"
	"github.com/heedhq/heed/store"
)

// Damaged returns the records of the service that hold something that this package has not written.
func (s *Service) Damaged(ctx context.Context) ([]store.Ref, error) {
	refs, err := records.Damaged(ctx, s.cfg.Store, &feedbackKind, &proposalKind, &ruleKind, &markKind, &laneKind)
	if err != nil {
		return nil, fmt.Errorf("feedback: damaged: %w", err)
	}
	return refs, nil
}

package decision

import (
	"context"
	"fmt"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/host"
)

// compare calls a similarity and checks its result.
func compare(ctx context.Context, g *host.Gate, s heed.Similarity, text string,
	others []string) ([]float64, error) {
	similarities, err := host.Pass(ctx, g, "the similarity",
		func(ctx context.Context) ([]float64, error) {
			return s.Similar(ctx, text, others)
		})
	if err != nil {
		return nil, fmt.Errorf("similarity: %w", err)
	}
	if len(similarities) != len(others) {
		return nil, fmt.Errorf("similarity: %d values for %d texts", len(similarities), len(others))
	}
	for _, x := range similarities {
		if !(x >= 0 && x <= 1) {
			return nil, fmt.Errorf("similarity: %v is not in [0, 1]", x)
		}
	}
	return similarities, nil
}

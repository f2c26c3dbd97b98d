package decision

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/host"
)

// compare calls a similarity and checks its result.
func compare(ctx context.Context, g *host.Gate, s heed.Similarity, text string, others []string) ([]float64, error) {
	similarities, err := host.Pass(ctx, g, "the similarity", func(ctx context.Context) ([]float64, error) {
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

// converge records which candidates say what the model said. A failure costs only this record.
func (d *Decider) converge(ctx context.Context, r *Request, res *Result) {
	c := &d.cfg
	if c.Similarity == nil || len(r.Candidates) == 0 {
		return
	}
	actions := make([]string, len(r.Candidates))
	for i := range r.Candidates {
		actions[i] = r.Candidates[i].Action
	}
	ctx, cancel := context.WithTimeout(ctx, c.SimilarityTimeout)
	defer cancel()
	similarities, err := compare(ctx, d.similar, c.Similarity, res.Text, actions)
	if err != nil {
		res.Err = errors.Join(res.Err, err)
		d.watch.Failed(ctx, "similarity", err)
		return
	}
	for i, s := range similarities {
		if id := r.Candidates[i].HeuristicID; s >= c.SimilarityThreshold {
			res.Convergence = append(res.Convergence, Convergence{id, s, slices.Contains(res.ShownIDs, id)})
		}
	}
	slices.SortStableFunc(res.Convergence, func(a, b Convergence) int { return cmp.Compare(b.Similarity, a.Similarity) })
}

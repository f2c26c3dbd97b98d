package learning_test

import (
	"context"
	"iter"
	"time"

	"github.com/heedhq/heed/learning"
)

// The reads that the documents name, each with its parameters.
var (
	// fire_count, success_count; a heuristic by id
	_ func(*learning.Module, context.Context, string) (learning.Standing,
		error) = (*learning.Module).Standing
	// shares by channel and person; history
	_ func(*learning.Module, context.Context, string) (learning.Explanation,
		error) = (*learning.Module).Explain
	// Memory's heuristics
	_ func(*learning.Module, context.Context) iter.Seq2[learning.Heuristic,
		error] = (*learning.Module).Heuristics
	// cleanup_expired
	_ func(*learning.Module, context.Context, time.Time) error = (*learning.Module).Sweep
	_ func(*learning.Module) learning.Config                   = (*learning.Module).Config
	// config
	_ func(learning.Strategy) map[string]string = learning.Strategy.Config
)

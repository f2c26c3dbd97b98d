package learning_test

import (
	"context"
	"iter"
	"time"

	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/store"
)

// The reads that the documents name, each with its parameters.
var (
	_ func(*learning.Module, context.Context, string) (learning.Standing, error)    = (*learning.Module).Standing    // fire_count, success_count; a heuristic by id
	_ func(*learning.Module, context.Context, string) (learning.Explanation, error) = (*learning.Module).Explain     // rule and response apart; shares by channel and person; history
	_ func(*learning.Module, context.Context) iter.Seq2[learning.Heuristic, error]  = (*learning.Module).Heuristics  // Memory's heuristics
	_ func(*learning.Module, context.Context) (learning.Calibration, error)         = (*learning.Module).Calibration // predicted_success, by heuristic and by path
	_ func(*learning.Module, context.Context, time.Time) ([]learning.Change, error) = (*learning.Module).Timeouts    // cleanup_expired, and its result
	_ func(*learning.Module) learning.Config                                        = (*learning.Module).Config
	_ func(context.Context, store.Store) ([]string, error)                          = learning.Names
	_ func(learning.Strategy) map[string]string                                     = learning.Strategy.Config // config
)

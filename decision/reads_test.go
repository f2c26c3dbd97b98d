package decision_test

import (
	"context"
	"iter"

	"github.com/heedhq/heed/decision"
)

// The reads that the Decision Strategy Interface design names: get_trace, all traces, config, the
// tiers of urgency, and the writing of heuristics.
var (
	_ interface {
		Trace(ctx context.Context, responseID string) (decision.Trace, error)
		Traces(ctx context.Context) iter.Seq2[decision.Trace, error]
		Config() decision.Config
	} = (*decision.Decider)(nil)
	_ func(*decision.Decider, context.Context, string, func(context.Context, string, string) (string,
		float64, error)) (decision.Extraction, error) = (*decision.Decider).Extract
)

package decision_test

import (
	"context"
	"iter"

	"github.com/heedhq/heed/decision"
)

// The reads that the Decision Strategy Interface design names.
var (
	_ func(*decision.Decider, context.Context, string) (decision.Trace, error)                                = (*decision.Decider).Trace  // get_trace
	_ func(*decision.Decider, context.Context) iter.Seq2[decision.Trace, error]                               = (*decision.Decider).Traces // all of them
	_ func(*decision.Decider) decision.Config                                                                 = (*decision.Decider).Config // config
	_ func(*decision.Decider, decision.Request) decision.Tier                                                 = (*decision.Decider).Tier   // urgency tiers
	_ func(*decision.Extractor, context.Context, string) (decision.Extraction, error)                         = (*decision.Extractor).Extract
	_ func(context.Context, decision.ReevaluateConfig, []decision.Candidate) ([]decision.Reevaluation, error) = decision.Reevaluate
)

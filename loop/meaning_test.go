package loop_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
)

// TestAHeuristicInOtherWordsStarts where the model compares. By wording it stays where it began,
// and does not sink.
func TestAHeuristicInOtherWordsStarts(t *testing.T) {
	compares := decision.LLMFunc(func(context.Context, decision.LLMRequest) (decision.LLMResponse,
		error) {
		return decision.LLMResponse{Text: "1: same"}, nil
	})
	for name, test := range map[string]struct {
		cfg  decision.Config
		want float64
	}{
		"the model": {decision.Config{Similarity: decision.SameMeaning(compares)}, 0.7},
		"wording":   {decision.Config{}, 0.3},
	} {
		agent, err := loop.New(ctx, loop.Config{Model: &mouth{
			says: "It would be best to have the old log files moved away."},
			Tuning: loop.Tuning{Decision: test.cfg}})
		require.NoError(t, err)
		_, err = agent.Teach(ctx, loop.Lessons{Heuristics: []learning.Heuristic{{ID: "rotate",
			Condition: "The disk is full.", Action: "Rotate its logs."}}})
		require.NoError(t, err)
		for i := range 15 {
			answer, err := agent.Answer(ctx, loop.Event{ID: fmt.Sprint(i), Text: "The disk is full."})
			require.NoError(t, err)
			require.NoError(t, agent.React(ctx, answer.ID, loop.Reaction{Person: "ann", Value: 1}))
		}
		standing, err := agent.Learning().Standing(ctx, "rotate")
		require.NoError(t, err)
		if test.want == 0.3 {
			assert.Equal(t, test.want, standing.Confidence, name)
		} else {
			assert.GreaterOrEqual(t, standing.Confidence, test.want, name)
		}
	}
}

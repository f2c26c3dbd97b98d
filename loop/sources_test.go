package loop_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
)

// Each statement is explained with its source as it is: "a user said it" only of people, whether a
// heuristic answered or the model did.
func TestExplainNamesTheSources(t *testing.T) {
	yes, no := true, false
	for name, event := range map[string]loop.Event{
		"heuristic": {ID: "e", Text: full}, "model": {ID: "e", Text: "The mail is late"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, loop.Config{
				Arms:    []loop.Arm{{ID: "a"}, {ID: "b"}},
				Lessons: loop.Lessons{Heuristics: []learning.Heuristic{trusted(rotating)}},
			})
			w.answer(event)
			require.NoError(t, w.Outcome(ctx, "e", loop.Outcome{
				Success: &yes, Source: "ci", Kind: answer.Instrument,
			}))
			told := func() string {
				account, err := w.Explain(ctx, "e")
				require.NoError(t, err)
				return account.String()
			}
			tree := told()
			assert.Contains(t, tree, "the instrument ci reported an outcome")
			assert.NotContains(t, tree, "a user said it")
			if name == "heuristic" {
				assert.Contains(t, tree, "an outcome was reported by ci: 0.80 for")
			}

			require.NoError(t, w.Outcome(ctx, "e", loop.Outcome{Success: &no, Source: "pay"}))
			require.NoError(t, w.React(ctx, "e", loop.Reaction{Person: "ann", Value: 1}))
			tree = told()
			assert.Contains(t, tree, "an outcome was reported by pay")
			assert.Contains(t, tree, "a user said it by ann")
			for _, line := range strings.Split(tree, "\n") {
				if strings.Contains(line, "a user said it") && !strings.Contains(line, "known by: ") {
					assert.Contains(t, line, "by ann", line)
				}
			}
		})
	}
}

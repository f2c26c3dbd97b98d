package enginetest_test

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
)

// openLoop opens the agent that tests share with other processes.
func openLoop(st store.Store) (*loop.Agent, error) {
	says := func(context.Context, decision.LLMRequest) (decision.LLMResponse, error) {
		return decision.LLMResponse{Text: "Look at the logs."}, nil
	}
	return loop.New(ctx, loop.Config{
		Store: st, Model: decision.LLMFunc(says), Arms: []loop.Arm{{ID: "only"}},
		Lessons: loop.Lessons{Heuristics: []learning.Heuristic{{ID: "h", Condition: "the disk is full", Action: "Rotate the logs.", Initial: 0.8}}},
	})
}

func init() {
	processes["answer"] = func() int {
		return inStoreProcess(func(st *sqlstore.Store) error {
			a, err := openLoop(st)
			if err != nil {
				return err
			}
			for id, text := range map[string]string{"by h": "The disk is full", "by the model": "Why?"} {
				if _, err := a.Answer(ctx, loop.Event{ID: id, Text: text, Session: id, Domain: "d"}); err != nil {
					return err
				}
			}
			os.Exit(0) // closes nothing
			return nil
		})
	}
}

// TestAnswersOutliveTheirProcess: one process answers and ends. Reactions to its answers reach heuristics and arms.
func TestAnswersOutliveTheirProcess(t *testing.T) {
	skipRaced(t)
	onEach(t, func(t *testing.T, at place) {
		a, err := openLoop(at.store(t, sqlstore.Config{}))
		require.NoError(t, err)
		require.NoError(t, child(t, "answer", at.env()...).Run())
		before, err := a.Learning().Standing(ctx, "h")
		require.NoError(t, err)
		assert.EqualValues(t, 1, before.Fires)
		require.NoError(t, a.Undo(ctx, "by h", "ann"))
		require.NoError(t, a.React(ctx, "by the model", loop.Reaction{Person: "ann", Value: 1}))
		after, err := a.Learning().Standing(ctx, "h")
		require.NoError(t, err)
		assert.Less(t, after.Confidence, before.Confidence)
		d, err := a.Strategy().Distribution(ctx, "d", "")
		require.NoError(t, err)
		assert.Greater(t, d.Arms[0].Mean, 0.5)
		account, err := a.Explain(ctx, "by the model")
		require.NoError(t, err)
		assert.Contains(t, account.String(), "only drew")
		account, err = a.Explain(ctx, "by h")
		require.NoError(t, err)
		assert.Contains(t, account.String(), "known by: undo")
		again, err := a.Answer(ctx, loop.Event{ID: "by the model", Text: "Why?"})
		require.NoError(t, err)
		assert.Equal(t, "Look at the logs.", again.Text)
	})
}

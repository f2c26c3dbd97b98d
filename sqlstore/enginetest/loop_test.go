package enginetest_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

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
		Lessons: loop.Lessons{Heuristics: []learning.Heuristic{{ID: "h", Condition: "the disk is full",
			Action: "Rotate the logs.", Initial: 0.8}}},
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
				if _, err := a.Answer(ctx, loop.Event{ID: id, Text: text, Session: id,
					Domain: "d"}); err != nil {
					return err
				}
			}
			os.Exit(0) // closes nothing
			return nil
		})
	}
}

// One process answers and ends. Reactions to its answers reach heuristics and arms.
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
		for d, err := range a.Strategy().Distributions(ctx) {
			require.NoError(t, err)
			assert.Greater(t, d.Arms[0].Mean, 0.5)
		}
		account, err := a.Explain(ctx, "by the model")
		require.NoError(t, err)
		assert.Contains(t, account.String(), "only: drew ")
		account, err = a.Explain(ctx, "by h")
		require.NoError(t, err)
		assert.Contains(t, account.String(), "known by: undo")
		again, err := a.Answer(ctx, loop.Event{ID: "by the model", Text: "Why?"})
		require.NoError(t, err)
		assert.Equal(t, "Look at the logs.", again.Text)
	})
}

// The loop opens a database by its handle alone, and keeps answers there for as long as Keep says.
func TestDatabaseOfTheLoop(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lessons.json")
	lessons := `{"only": true, "heuristics": [{"id": "h", "condition": "the disk is full",
		"action": "Rotate the logs.", "initial": 0.8}]}`
	require.NoError(t, os.WriteFile(file, []byte(lessons), 0o600))
	onEach(t, func(t *testing.T, at place) {
		now := time.Now()
		for keep, want := range map[time.Duration]error{0: loop.ErrNoAnswer, 90 * 24 * time.Hour: nil} {
			handle, err := at.open()
			require.NoError(t, err)
			name := "agent " + keep.String()
			lessons, err := loop.ReadLessons(file)
			require.NoError(t, err)
			agent, err := loop.New(ctx, loop.Config{
				DB: handle, Keep: keep, Name: name, Lessons: lessons,
				Testing: loop.Testing{Now: func() time.Time { return now }},
			})
			require.NoError(t, err)
			answer, err := agent.Answer(ctx, loop.Event{ID: "1", Text: "The disk is full"})
			require.NoError(t, err)
			assert.Equal(t, "Rotate the logs.", answer.Text)
			require.NoError(t, agent.React(ctx, "1", loop.Reaction{Person: "ann", Value: 1}))
			praised, err := agent.Learning().Standing(ctx, "h")
			require.NoError(t, err)
			now = now.Add(40 * 24 * time.Hour)
			require.NoError(t, agent.Sweep(ctx, now))
			require.ErrorIs(t, agent.React(ctx, "1", loop.Reaction{Person: "ann", Value: -1}), want)
			after, err := agent.Learning().Standing(ctx, "h")
			require.NoError(t, err)
			assert.Equal(t, want == nil, after.Confidence < 0.8,
				"the thumb takes the place of the one before")
			assert.Equal(t, want != nil, after.Confidence >= praised.Confidence)
			if at.dialect == sqlstore.SQLite {
				info, err := os.Stat(at.file())
				require.NoError(t, err)
				assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
			}
			require.NoError(t, handle.Close())
		}
	})
}

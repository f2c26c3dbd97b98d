package main

import (
	"context"
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/sqlstore"
)

// explainable returns a store in which an agent has given two answers, one of a heuristic and one of its model.
func explainable(t *testing.T, name string) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "agent.db")
	db, err := place{dialect: sqlstore.SQLite, file: file}.handle(ctx, true)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	now := func() time.Time { return start }
	st, err := sqlstore.Open(ctx, db, sqlstore.SQLite, sqlstore.Config{Now: now})
	require.NoError(t, err)
	agent, err := loop.New(ctx, loop.Config{
		Store: st, Name: name, Now: now,
		Model: decision.LLMFunc(func(context.Context, decision.LLMRequest) (decision.LLMResponse, error) {
			return decision.LLMResponse{Text: "Turn it\x1b[31m off."}, nil
		}),
		Arms: []loop.Arm{{ID: "brief", System: "Be brief."}},
		Lessons: loop.Lessons{Heuristics: []learning.Heuristic{
			{ID: "rotate", Condition: "the disk of a server is full", Action: "Rotate its logs.", Initial: 0.9},
		}},
	})
	require.NoError(t, err)
	for id, text := range map[string]string{"disk": "the disk of a server is full", "light": "the light is on"} {
		_, err := agent.Answer(ctx, loop.Event{ID: id, Text: text, Person: "ann", At: start})
		require.NoError(t, err)
		require.NoError(t, agent.React(ctx, id, loop.Reaction{Person: "ann", Value: -1, At: start}))
	}
	return file
}

func TestExplain(t *testing.T) {
	for _, name := range []string{"", "support"} {
		t.Run(name, func(t *testing.T) {
			file := explainable(t, name)
			args := func(more ...string) []string {
				all := append([]string{"--db", file, "--now", asOf, "explain"}, more...)
				if name != "" {
					all = append(all, "--agent", name)
				}
				return all
			}
			by := call{args: args("disk")}.run(t)
			require.Zero(t, by.code, by.err)
			assert.Contains(t, by.out, "answer disk")
			assert.Contains(t, by.out, "rotate")
			assert.Contains(t, by.out, "└─ ")
			model := call{args: args("light")}.run(t)
			require.Zero(t, model.code, model.err)
			assert.Contains(t, model.out, "brief")
			assert.NotContains(t, model.out, "\x1b")

			var tree loop.Branch
			asJSON := call{args: append([]string{"--json"}, args("disk")...)}.run(t)
			require.NoError(t, json.Unmarshal([]byte(asJSON.out), &tree))
			assert.NotEmpty(t, tree.On)

			trace := call{args: []string{"--db", file, "--now", asOf, "traces", "disk"}}.run(t)
			require.Zero(t, trace.code, trace.err)
			assert.Contains(t, trace.out, "Rotate its logs.", "by the event's id")

			none := call{args: args("desk")}.run(t)
			assert.Equal(t, failed, none.code)
			assert.Contains(t, none.err, `there is no answer "desk"`)
		})
	}
}

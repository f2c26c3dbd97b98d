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
	t.Parallel()
	for _, name := range []string{"", "support"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := explainable(t, name)
			args := func(more ...string) []string {
				all := append([]string{"--db", file, "--now", asOf, "explain"}, more...)
				return all
			}
			by := call{args: args("disk")}.run(t)
			require.Zero(t, by.code, by.err)
			assert.Contains(t, by.out, "answer disk")
			assert.Contains(t, by.out, "rotate")
			assert.Contains(t, by.out, "└─ ")
			listed := read[[]traceReport](t, "--db", file, "--now", asOf, "traces", "--path", "heuristic")
			require.Len(t, listed, 1)
			response := listed[0].ResponseID
			assert.Equal(t, by.out, call{args: args(response[:8])}.run(t).out, "by the start of the response that heed traces prints")
			if name != "" {
				return
			}
			assert.Equal(t, by.out, call{args: args(response)}.run(t).out)
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
			for _, given := range []string{response, response[:8]} {
				assert.Equal(t, trace.out, call{args: []string{"--db", file, "--now", asOf, "traces", given}}.run(t).out)
			}
			assertFits(t, call{args: args("disk"), env: []string{"NO_COLOR=1"}}.onTerminal(t, 40).out, 40)

			begun := call{args: args("li")}.run(t)
			require.Zero(t, begun.code, begun.err)
			assert.Contains(t, begun.out, "answer light")
			none := call{args: args("desk")}.run(t)
			assert.Equal(t, failed, none.code)
			assert.Contains(t, none.err, `there is no answer "desk": did you mean "disk"?`)
		})
	}
}

// Where several agents have a store, the command names them. The start of an id is enough where one answer has it.
func TestExplainAsksWhichAgent(t *testing.T) {
	t.Parallel()
	file := explainable(t, "")
	db, err := place{dialect: sqlstore.SQLite, file: file}.handle(ctx, true)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	st, err := sqlstore.Open(ctx, db, sqlstore.SQLite, sqlstore.Config{Now: func() time.Time { return start }})
	require.NoError(t, err)
	support, err := loop.New(ctx, loop.Config{
		Store: st, Name: "support", Now: func() time.Time { return start },
		Model: decision.LLMFunc(func(context.Context, decision.LLMRequest) (decision.LLMResponse, error) {
			return decision.LLMResponse{Text: "Yes."}, nil
		}),
	})
	require.NoError(t, err)
	for _, id := range []string{"disk-1", "disk-2"} {
		_, err := support.Answer(ctx, loop.Event{ID: id, Text: "Is it full?"})
		require.NoError(t, err)
	}
	of := func(args ...string) call { return call{args: append([]string{"--db", file, "explain"}, args...)} }
	which := of("disk").run(t)
	assert.Equal(t, misuse, which.code)
	assert.Contains(t, which.err, "has 2 agents: choose one with --agent: loop, support")
	many := of("disk", "--agent", "support").run(t)
	assert.Equal(t, failed, many.code)
	assert.Contains(t, many.err, `2 ids begin with "disk": give more of it (disk-1, disk-2)`)
	assert.Contains(t, of("disk", "--agent", "loop").run(t).out, "answer disk", "a whole id goes before the start of one")
	wrong := of("disk", "--agent", "supprt").run(t)
	assert.Contains(t, wrong.err, `there is no agent "supprt": did you mean "support"?`)
}

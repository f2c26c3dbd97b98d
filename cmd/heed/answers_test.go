package main

import (
	"cmp"
	"context"
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/strategy"
)

// explainable returns a store in which an agent has given two answers, one of a heuristic and one
// of its model.
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
		Store: st, Name: name, Testing: loop.Testing{Now: now},
		Model: decision.LLMFunc(func(context.Context, decision.LLMRequest) (decision.LLMResponse,
			error) {
			return decision.LLMResponse{Text: "Turn it\x1b[31m off."}, nil
		}),
		Arms: []loop.Arm{{ID: "brief", System: "Be brief."}},
		Lessons: loop.Lessons{Heuristics: []learning.Heuristic{
			{ID: "rotate", Condition: "the disk of a server is full", Action: "Rotate its logs.",
				Initial: 0.9},
		}},
	})
	require.NoError(t, err)
	for id, text := range map[string]string{"disk": "the disk of a server is full",
		"light": "the light is on"} {
		e := loop.Event{ID: id, Text: text, Item: "office", Person: "ann", At: start}
		_, err := agent.Answer(ctx, e)
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
				all := append([]string{"--db", file, "--now", asOf, "answers"}, more...)
				return all
			}
			by := call{args: args("disk")}.run(t)
			require.Zero(t, by.code, by.err)
			assert.Contains(t, by.out, "answer disk")
			assert.Contains(t, by.out, "rotate")
			assert.Contains(t, by.out, "└─ ")
			listed := read[[]view.Answer](t, args("--worst", "--limit", "1")...)
			require.Len(t, listed, 1)
			if name != "" {
				return
			}
			assert.Contains(t, by.out, "ann said it 2026-", "who judged it")
			model := call{args: args("light")}.run(t)
			require.Zero(t, model.code, model.err)
			assert.Contains(t, model.out, "brief")
			assert.NotContains(t, model.out, "\x1b")

			var explanation view.Explanation
			asJSON := call{args: append([]string{"--json"}, args("disk")...)}.run(t)
			require.NoError(t, json.Unmarshal([]byte(asJSON.out), &explanation))
			assert.NotEmpty(t, explanation.Tree.On)

			trace := call{args: args("light", "--prompt")}.run(t)
			require.Zero(t, trace.code, trace.err)
			assert.Contains(t, trace.out, "Be brief.")
			assert.Contains(t, trace.out, "the light is on")
			assert.NotContains(t, trace.out, "\x1b")

			assertFails(t, call{args: args("disk", "--prompt")}.run(t), failed, "no model was asked")
			none := call{args: args("desk")}.run(t)
			assert.Equal(t, failed, none.code)
			assert.Contains(t, none.err, `there is no answer "desk": heed answers lists`)
		})
	}
}

// TestAgentsStore calls the commands that look at one part on the store of an agent. The part's
// records are the agent's answers.
func TestAgentsStore(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "support"} {
		t.Run(cmp.Or(name, "default"), func(t *testing.T) {
			t.Parallel()
			file := explainable(t, name)
			of := func(args ...string) []string {
				return append([]string{"--db", file, "--now", asOf}, args...)
			}
			choices := read[[]view.Choice](t, of("strategy", "history", "office")...)
			require.Len(t, choices, 1, "the model answered once")
			assert.Equal(t, strategy.ArmID("brief"), choices[0].Choice.Arm)
			assert.NotEmpty(t, choices[0].Choice.ID, "it is a record, and no sum of evidence")
			assert.Equal(t, strategy.Observed, choices[0].Stage)
			require.NotNil(t, choices[0].Result)
			assert.Equal(t, "ann", choices[0].Result.Source)
			assert.InDelta(t, -1, *choices[0].Mean, 1e-9)
			pending := of("strategy", "history", "office", "--stage", "pending")
			assert.Empty(t, read[[]view.Choice](t, pending...))
			status := read[[]view.Status](t, of("strategy", "status")...)
			require.Len(t, status, 1)
			require.NotNil(t, status[0].Choices)

			assert.Equal(t, uint64(1), read[view.HeuristicDetail](t, of("confidence", "rotate")...).Fires)
			doctor := call{args: of("doctor")}.run(t)
			require.Zero(t, doctor.code, doctor.out+doctor.err)
		})
	}
}

// Where several agents have a store, the command names them. The start of an id is enough where one
// answer has it.
func TestExplainAsksWhichAgent(t *testing.T) {
	t.Parallel()
	file := explainable(t, "")
	db, err := place{dialect: sqlstore.SQLite, file: file}.handle(ctx, true)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	st, err := sqlstore.Open(ctx, db, sqlstore.SQLite,
		sqlstore.Config{Now: func() time.Time { return start }})
	require.NoError(t, err)
	support, err := loop.New(ctx, loop.Config{
		Store: st, Name: "support", Testing: loop.Testing{Now: func() time.Time { return start }},
		Model: decision.LLMFunc(func(context.Context, decision.LLMRequest) (decision.LLMResponse,
			error) {
			return decision.LLMResponse{Text: "Yes."}, nil
		}),
	})
	require.NoError(t, err)
	for _, id := range []string{"disk-1", "disk-2"} {
		_, err := support.Answer(ctx, loop.Event{ID: id, Text: "Is it full?"})
		require.NoError(t, err)
	}
	of := func(args ...string) call {
		return call{args: append([]string{"--db", file, "answers"},
			args...)}
	}
	which := of("disk").run(t)
	assert.Equal(t, misuse, which.code)
	assert.Contains(t, which.err, "has more than one agent: choose one with --agent: loop, support")
	assert.Equal(t, failed, of("disk", "--agent", "support").run(t).code, "that is no whole id")
	assert.Contains(t, of("disk", "--agent", "loop").run(t).out, "answer disk")
	wrong := of("disk", "--agent", "supprt").run(t)
	assert.Contains(t, wrong.err, `there is no agent "supprt": `)
}

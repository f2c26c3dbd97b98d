package main

import (
	"database/sql"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/strategy"
)

// armed puts an agent into a store, with one report on its arms. Without arms, it has no learner.
func armed(t *testing.T, handle *sql.DB, name string, arms ...loop.Arm) {
	t.Helper()
	agent, err := loop.New(t.Context(), loop.Config{DB: handle, Name: name, Arms: arms})
	require.NoError(t, err)
	if agent.Strategy() != nil {
		reported(t, agent.Strategy(), name)
	}
}

func reported(t *testing.T, learner *strategy.Learner, category string) {
	t.Helper()
	choice, err := learner.Select(t.Context(), strategy.Query{Session: "s", Category: category})
	require.NoError(t, err)
	_, err = learner.Observe(t.Context(), strategy.Outcome{Choice: choice, Value: 1, Confidence: 1})
	require.NoError(t, err)
}

// An agent may have the name of a part, or of a learner that is used without an agent. --agent
// chooses what the agent has, and never what another one has.
func TestAgentIsNotMistaken(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "agent.db")
	short := loop.Arm{ID: "short"}
	onFile(t, file, func(handle *sql.DB) {
		armed(t, handle, "", short)
		armed(t, handle, "strategy", short)
		armed(t, handle, "desk", short)
		armed(t, handle, "learning")
		st, err := sqlstore.Open(t.Context(), handle, sqlstore.SQLite, sqlstore.Config{})
		require.NoError(t, err)
		alone, err := strategy.New(t.Context(), strategy.Config{
			Store: st, Name: "desk", Arms: []strategy.Arm{{ID: "long"}},
		})
		require.NoError(t, err)
		reported(t, alone, "alone")
	})
	of := func(args ...string) result {
		return call{args: append([]string{"--db", file, "--json"}, args...)}.run(t)
	}
	categories := func(agent string) (all []string) {
		r := of("strategy", "--agent", agent, "distributions")
		require.Zero(t, r.code, r.err)
		var segments []view.Segment
		require.NoError(t, json.Unmarshal([]byte(r.out), &segments))
		return texts(segments, func(s view.Segment) string { return s.Category })
	}
	assert.Equal(t, []string{""}, categories("loop"))
	assert.Equal(t, []string{"strategy"}, categories("strategy"))
	assert.Equal(t, []string{"desk"}, categories("desk"))
	reset := of("--agent", "strategy", "strategy", "reset", "strategy", "--yes", "--reason", "x")
	require.Zero(t, reset.code, reset.err)
	assert.Equal(t, []string{""}, categories("loop"), "it is another agent's")
	assert.Empty(t, categories("strategy"))
	none := of("--agent", "learning", "strategy", "distributions")
	assert.Equal(t, failed, none.code, none.out)
	assert.Contains(t, none.err, `there is no learner "learning"`)
	which := of("strategy", "distributions")
	assert.Equal(t, misuse, which.code)
	assert.Contains(t, which.err,
		"has more than one learner: choose one with --agent: desk, loop, strategy")
}

// In a store with one agent, --agent chooses a learner that is used without it, and the name in the
// environment does not disturb what is for all agents.
func TestAgentIsNotTheOnlyOne(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "agent.db")
	onFile(t, file, func(handle *sql.DB) {
		armed(t, handle, "", loop.Arm{ID: "short"})
		st, err := sqlstore.Open(t.Context(), handle, sqlstore.SQLite, sqlstore.Config{})
		require.NoError(t, err)
		models, err := strategy.New(t.Context(), strategy.Config{
			Store: st, Name: "models", Arms: []strategy.Arm{{ID: "large"}},
		})
		require.NoError(t, err)
		reported(t, models, "law")
	})
	s := serving(t, []string{"HEED_TOKENS=shop=a-token-of-the-shop"}, "--db", file, "serve",
		"--listen", "127.0.0.1:0", "--agent", "models")
	_, body := s.call(http.MethodGet, "/v1/segments", "a-token-of-the-shop", "")
	assert.Contains(t, body, `"law"`)
	assert.NotContains(t, body, `"short"`)
	s.end(os.Interrupt)
	for code, commands := range map[int][][]string{
		failed: {{}, {"strategy"}, {"rules"}, {"serve"}, {"answers"}},
		done:   {{"doctor"}, {"store", "audit"}, {"store", "export"}},
	} {
		for _, args := range commands {
			r := call{
				args: append([]string{"--db", file}, args...), env: []string{"HEED_AGENT=typo"},
			}.run(t)
			assert.Equal(t, code, r.code, "%v: %s", args, r.err)
			if code == failed {
				assert.Contains(t, r.err, `there is no agent "typo": `+file+` has "loop", "models"`)
			}
		}
	}
}

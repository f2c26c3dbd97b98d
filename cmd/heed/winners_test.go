package main

import (
	"database/sql"
	"encoding/json"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/best"
)

func TestWinners(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "agent.db")
	onFile(t, file, func(handle *sql.DB) {
		w := newWorld(t, handle, sqlstore.SQLite, start)
		learner, err := strategy.New(ctx, strategy.Config{
			Store: w.store, Now: w.clock, NewID: w.id, Seed: rand.NewPCG(5, 6), Name: "models",
			Pooling: strategy.Alone{},
			Arms:    []strategy.Arm{{ID: "small"}, {ID: "large"}},
		})
		require.NoError(t, err)
		race, err := best.New(ctx, best.Config{Learner: learner, Explore: 0.1})
		require.NoError(t, err)
		for range 60 {
			w.now = w.now.Add(time.Minute)
			c, err := race.Select(ctx, strategy.Query{Category: "law"})
			require.NoError(t, err)
			o := strategy.Outcome{Choice: c, Value: 1, Confidence: 1, Cost: 1, Latency: time.Second}
			if c.Arm == "large" {
				o.Value, o.Cost = -0.9, 8
			}
			_, err = learner.Observe(ctx, o)
			require.NoError(t, err)
		}
	})
	for name, args := range map[string][]string{"winners": {"strategy", "winners"}} {
		screen := call{args: append([]string{"--db", file}, args...),
			env: []string{"NO_COLOR=1"}}.onTerminal(t, 80)
		require.Zero(t, screen.code, screen.out)
		assertFits(t, screen.out, 80)
		golden(t, name+"-80.txt", ansi.Strip(screen.out))
		inJSON := call{args: append([]string{"--db", file, "--json"}, args...)}.run(t)
		assert.True(t, json.Valid([]byte(inJSON.out)), inJSON.out)
	}
	db := sqliteFile(t)
	assert.Contains(t, call{args: []string{"--db", db, "strategy", "--learner", "models",
		"winners"}}.run(t).out, "There are no winners here.")
}

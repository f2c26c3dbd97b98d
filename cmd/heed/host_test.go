package main

import (
	"database/sql"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/sqlstore"
)

// host opens a file as an application does that goes on at a moment of the tests.
func host(t testing.TB, file string) *world {
	handle, err := sql.Open("sqlite", "file:"+file)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, handle.Close()) })
	return newWorld(t, handle, sqlstore.SQLite, end)
}

// complain has a user say of an answer of a heuristic that it was wrong.
func complain(t testing.TB, file, heuristic, event string) {
	w := host(t, file)
	module, err := learning.New(ctx, learning.Config{Store: w.store, Now: w.clock})
	require.NoError(t, err)
	_, err = module.Judge(ctx, learning.Judgement{
		HeuristicID: heuristic, EventID: "complaint-" + event, Person: "zoe", At: w.now, Value: -1,
	})
	require.NoError(t, err)
}

// fading returns the fixture with a module whose evidence counts half after a day, and which knows
// one heuristic.
func fading(t testing.TB) string {
	file := sqliteFile(t)
	w := host(t, file)
	module, err := learning.New(ctx, learning.Config{Store: w.store, Now: w.clock, Name: "fading",
		HalfLife: day})
	require.NoError(t, err)
	_, err = module.Put(ctx, learning.Heuristic{ID: "praised", CreatedAt: w.now})
	require.NoError(t, err)
	for n := range 8 {
		_, err := module.Judge(ctx, learning.Judgement{
			HeuristicID: "praised", EventID: fmt.Sprint(n), Person: "ann", At: w.now, Value: 1,
		})
		require.NoError(t, err)
	}
	return file
}

package main

import (
	"database/sql"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/sqlstore"
)

// host opens a file as an application does that goes on at a moment of the tests.
func host(t testing.TB, file string) (*sqlstore.DB, *world) {
	handle, err := sql.Open("sqlite", "file:"+file)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, handle.Close()) })
	db, err := sqlstore.New(ctx, handle, sqlstore.SQLite)
	require.NoError(t, err)
	w := &world{t: t, now: end}
	w.evidence, err = sqlstore.NewEvidence(db, sqlstore.EvidenceConfig{Now: w.clock})
	require.NoError(t, err)
	w.store, err = sqlstore.Open(ctx, handle, sqlstore.SQLite, sqlstore.Config{Now: w.clock})
	require.NoError(t, err)
	return db, w
}

// complain has a user say of an answer of a heuristic that it was wrong.
func complain(t testing.TB, file, heuristic, event string) {
	db, w := host(t, file)
	module, err := learning.New(learning.Config{Heuristics: sqlstore.NewHeuristics(db), Evidence: w.evidence, Now: w.clock})
	require.NoError(t, err)
	_, err = module.Feedback(ctx, learning.Feedback{HeuristicID: heuristic, EventID: "complaint-" + event, Person: "zoe", At: w.now})
	require.NoError(t, err)
}

package agent

import (
	"bytes"
	"context"
	"database/sql"
	"io"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/lab/internal/kit"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
)

func report(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, Run(context.Background(), kit.NewCall("agent", &out, args...)))
	return out.String()
}

// All packages come to the same answers over SQLite as in memory.
func TestADatabaseChangesNothing(t *testing.T) {
	t.Parallel()
	in := stream{seed: 5, events: 100}
	memory := lives(t, learns, in)
	in.database = filepath.Join(t.TempDir(), "agent.db")
	kept := lives(t, learns, in)
	require.Len(t, kept.answers, len(memory.answers))
	for i, a := range memory.answers {
		assert.Equal(t, a.Text, kept.answers[i].Text)
		assert.Equal(t, a.Result.CreditID, kept.answers[i].Result.CreditID)
	}
	assert.Equal(t, scoreOf(memory.answers), scoreOf(kept.answers))
}

// Traces are kept for a day, in a database too.
func TestWhatHasPassedIsSwept(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "agent.db")
	report(t, "-events", "200", "-db", file)
	handle, err := sql.Open("sqlite", file)
	require.NoError(t, err)
	defer handle.Close() //nolint:errcheck // it was only read
	st, err := sqlstore.Open(t.Context(), handle, sqlstore.SQLite)
	require.NoError(t, err)
	traces := 0
	for _, err := range st.Find(context.Background(), store.Query{Kind: "decision.trace"}) {
		require.NoError(t, err)
		traces++
	}
	t.Log(traces, "traces")
	assert.NotZero(t, traces)
	assert.Less(t, traces, 180, "of 200 events in some two days")
}

// A further run would meet the same events again.
func TestAStoreIsUsedOnce(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "agent.db")
	report(t, "-events", "20", "-db", db)
	err := Run(context.Background(), kit.NewCall("agent", io.Discard, "-events", "20", "-db", db))
	require.ErrorContains(t, err, "-db names a store that has evidence")
}

package agent

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/lab/internal/database"
	"github.com/heedhq/heed/lab/internal/kit"
	"github.com/heedhq/heed/lab/internal/raced"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
)

func report(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, Run(context.Background(), kit.NewCall("agent", &out, args...)))
	return out.String()
}

// All five packages come to the same beliefs and answers over SQLite as in memory.
func TestADatabaseChangesNothing(t *testing.T) {
	raced.Skip(t)
	t.Parallel()
	kept := report(t, "-events", "100", "-seed", "5", "-db", filepath.Join(t.TempDir(), "agent.db"))
	assert.Equal(t, report(t, "-events", "100", "-seed", "5"), kept)
}

func TestASecondRunGoesOn(t *testing.T) {
	raced.Skip(t)
	t.Parallel()
	db := filepath.Join(t.TempDir(), "agent.db")
	run := func(events int) *result {
		r, err := order{seed: 2026, events: events, database: db}.run(context.Background(), silent)
		require.NoError(t, err)
		return r
	}
	first, second := run(200), run(20)
	assert.Equal(t, 0, first.Before)
	assert.Equal(t, 200, second.Before)
	assert.Less(t, first.of(learns).First.Heuristics, 0.1, "none is trusted at first")
	best := func(r *result) (most float64) {
		for _, h := range r.Heuristics {
			most = max(most, h.Confidence)
		}
		return most
	}
	assert.Greater(t, best(first), 0.6)
	assert.Greater(t, best(second), 0.6, "it takes more than 20 events to earn that")
	require.NotEmpty(t, first.Rules)
	for _, rule := range first.Rules {
		var texts []string
		for _, kept := range second.Rules {
			texts = append(texts, kept.Text)
		}
		assert.Contains(t, texts, rule.Text)
	}
}

// TestARunThatIsCutOff loses nothing: the next one meets later events, under ids of its own.
func TestARunThatIsCutOff(t *testing.T) {
	raced.Skip(t)
	t.Parallel()
	db := filepath.Join(t.TempDir(), "agent.db")
	ctx, cancel := context.WithCancel(context.Background())
	call := kit.NewCall("agent", io.Discard, "-events", "100", "-db", db)
	call.Progress = func(done, of int) {
		if done == of/2-20 {
			cancel()
		}
	}
	err := Run(ctx, call)
	require.ErrorIs(t, err, context.Canceled)
	assert.Contains(t, report(t, "-events", "50", "-db", db), fmt.Sprint("has lived through ", 100, " events before"))
}

// Traces are kept for a day, in a database too.
func TestWhatHasPassedIsSwept(t *testing.T) {
	raced.Skip(t)
	t.Parallel()
	file := filepath.Join(t.TempDir(), "agent.db")
	report(t, "-events", "200", "-db", file)
	handle, dialect, err := database.Handle(file)
	require.NoError(t, err)
	defer handle.Close() //nolint:errcheck // it was only read
	st, err := sqlstore.Open(context.Background(), handle, dialect)
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

// An export has heed's tables, without those of the host that belong to them.
func TestAnImportIsNotEnough(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	var files [2]string
	var all bytes.Buffer
	for i := range files {
		files[i] = filepath.Join(t.TempDir(), "agent.db")
		if i == 0 {
			report(t, "-events", "20", "-db", files[i])
		}
		st, handle, err := database.Open(ctx, files[i], sqlstore.Config{})
		require.NoError(t, err)
		if i == 0 {
			require.NoError(t, st.Dump(ctx, &all))
		} else {
			require.NoError(t, st.Load(ctx, &all))
		}
		require.NoError(t, handle.Close())
	}
	require.ErrorContains(t, Run(ctx, kit.NewCall("agent", io.Discard, "-events", "20", "-db",
		files[1])), "agent_runs")
}

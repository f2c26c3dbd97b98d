package enginetest_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/strategy"
)

func export(t testing.TB, db *sqlstore.DB) string {
	var out bytes.Buffer
	require.NoError(t, db.Export(ctx, &out))
	return out.String()
}

// TestExport: what one engine has exported, each imports, and exports again to the last byte.
func TestExport(t *testing.T) {
	skipRaced(t)
	first := sqliteFile(t, "sqlite")
	handle := first.handle(t)
	db, err := sqlstore.New(ctx, handle, first.dialect)
	require.NoError(t, err)
	s := newStores(t, handle, db)
	s.evidence = newEvidence(t, db, sqlstore.EvidenceConfig{Now: func() time.Time { return start }, HistoryPerCell: 2, NoCache: true})
	for seed := range 30 {
		b := rapid.Custom(someBatch).Example(seed)
		if _, err := s.evidence.Commit(ctx, b); err != nil {
			require.True(t, expected(err), "%v", err)
		}
	}
	for i := range 4 {
		add(t, s.evidence, observe(fmt.Sprint("arm", i), start))
	}
	require.NoError(t, s.evidence.Sweep(ctx))
	for i := range 3 {
		require.NoError(t, s.choices.Add(ctx, choiceOf(i)))
		require.NoError(t, s.stream.Publish(ctx, evidence.Event{ID: fmt.Sprint(i), Topic: "t", At: start, Payload: []byte{0, byte(i)}}))
	}
	_, err = sqlstore.NewHeuristics(db).Put(ctx, learning.Heuristic{ID: "h", Condition: "it rains"})
	require.NoError(t, err)
	_, err = s.choices.Settle(ctx, choiceOf(1).ID, strategy.Result{ID: "r", Value: 0.1, At: start})
	require.NoError(t, err)
	text := export(t, db)
	for _, table := range tables {
		assert.Contains(t, text, `"table":"`+strings.TrimPrefix(table, "heed_")+`"`)
	}

	onEach(t, func(t *testing.T, at place) {
		handle := at.handle(t)
		copied, err := sqlstore.New(ctx, handle, at.dialect)
		require.NoError(t, err)
		for _, broken := range []string{
			"", "{}", "x", "{\"heed\":99}\n", strings.Replace(text, `"table":"ids"`, `"table":"users"`, 1), strings.Replace(text, `"kind":"`, `"sort":"`, 1), text + "{",
			text[:strings.LastIndex(text[:len(text)-1], "\n")+1], // its last line is missing
			text[:strings.Index(text, "\n")+1] + text[max(strings.Index(text, "{\"rows\":"), 0):], text + "{\"table\":\"ids\"}\n",
		} {
			var fault *heed.InputError
			require.ErrorAs(t, copied.Import(ctx, strings.NewReader(broken)), &fault)
		}
		require.NoError(t, copied.Import(ctx, strings.NewReader(text)))
		assert.Equal(t, text, export(t, copied))
		requireSame(t, s.evidence, newEvidence(t, copied, sqlstore.EvidenceConfig{}))
		requireAnalyzed(t, handle, at.dialect)
		require.ErrorIs(t, copied.Import(ctx, strings.NewReader(text)), heed.ErrConflict)
	})
}

// requireAnalyzed checks that PostgreSQL knows how many rows each table has.
func requireAnalyzed(t testing.TB, handle *sql.DB, dialect sqlstore.Dialect) {
	if dialect != sqlstore.Postgres {
		return
	}
	for _, table := range tables {
		var rows, known int
		require.NoError(t, handle.QueryRow("SELECT count(*) FROM "+table).Scan(&rows))
		require.NoError(t, handle.QueryRow("SELECT reltuples::bigint FROM pg_class WHERE oid = $1::regclass", table).Scan(&known))
		require.Equal(t, rows, known, table)
		require.Positive(t, rows, table)
	}
}

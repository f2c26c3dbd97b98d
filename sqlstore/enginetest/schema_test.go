package enginetest_test

import (
	"database/sql"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/sqlstore"
)

// TestMigrateAtOnce lets several handles migrate and use one new database at the same time.
func TestMigrateAtOnce(t *testing.T) {
	onEach(t, func(t *testing.T, at place) {
		var wait sync.WaitGroup
		for i := range 8 {
			wait.Go(func() {
				store := newEvidence(t, at.db(t), sqlstore.EvidenceConfig{})
				_, err := store.Commit(ctx, outcome(fmt.Sprint(i)))
				assert.NoError(t, err)
			})
		}
		wait.Wait()
		parts, err := newEvidence(t, at.db(t), sqlstore.EvidenceConfig{}).Read(ctx, nil, arm)
		require.NoError(t, err)
		require.Len(t, parts, 1)
		assert.EqualValues(t, 8, parts[0].Tally.N())
	})
}

func TestSchemaVersions(t *testing.T) {
	onEach(t, func(t *testing.T, at place) {
		handle, err := at.open()
		require.NoError(t, err)
		defer func() { require.NoError(t, handle.Close()) }()
		var wrong *sqlstore.SchemaError
		_, err = sqlstore.New(ctx, handle, at.dialect)
		require.ErrorAs(t, err, &wrong)
		assert.Zero(t, wrong.Found)
		assert.ErrorContains(t, err, "run Migrate")

		// A host may run the files with a tool of its own.
		files, err := sqlstore.Schema(at.dialect)
		require.NoError(t, err)
		names, err := fs.Glob(files, "*.sql")
		require.NoError(t, err)
		for _, name := range names {
			text, err := fs.ReadFile(files, name)
			require.NoError(t, err)
			_, err = handle.Exec(string(text))
			require.NoError(t, err)
		}
		_, err = sqlstore.New(ctx, handle, at.dialect)
		require.NoError(t, err)
		if at.dialect == sqlstore.SQLite {
			var mode string
			require.NoError(t, handle.QueryRow("PRAGMA journal_mode").Scan(&mode))
			assert.Equal(t, "wal", mode)
		}
		require.NoError(t, sqlstore.Migrate(ctx, handle, at.dialect), "there is nothing left to do")

		_, err = handle.Exec("INSERT INTO heed_schema (version) VALUES (1000)")
		require.NoError(t, err)
		for _, err := range []error{sqlstore.Migrate(ctx, handle, at.dialect), func() error {
			_, err := sqlstore.New(ctx, handle, at.dialect)
			return err
		}()} {
			require.ErrorAs(t, err, &wrong)
			assert.Equal(t, 1000, wrong.Found)
			assert.ErrorContains(t, err, "too old")
		}
	})
}

func TestSQLiteIsSetUp(t *testing.T) {
	for _, driver := range []string{"sqlite", "sqlite3"} {
		at := sqliteFile(t, driver)
		at.dsn += "?_pragma=synchronous(0)" // what the host asks for is not weaker than what is promised
		handle := at.handle(t)
		handle.SetMaxOpenConns(1)
		db, err := sqlstore.New(ctx, handle, at.dialect)
		require.NoError(t, err)
		_, err = newEvidence(t, db, sqlstore.EvidenceConfig{}).Commit(ctx, outcome("1"))
		require.NoError(t, err)
		for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "busy_timeout": "10000"} {
			var got string
			require.NoError(t, handle.QueryRow("PRAGMA "+pragma).Scan(&got))
			assert.Equal(t, want, got, "%s of %s", pragma, driver)
		}
	}
}

// fill puts rows enough into the tables for an engine to think about how to find them. It has no statistics of them.
var fill = []string{
	`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) INSERT INTO heed_choices
			SELECT i, 'l' || i % 5, 's' || i, 'i' || i, 'c' || i % 50, 'x', i, CASE WHEN i % 100 = 0 THEN 'pending' ELSE 'observed' END, '', 0, '{}', NULL, 0, '', '' FROM n`,
	`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) INSERT INTO heed_cells
			SELECT 'k' || i, 'kind', 's' || i % 50, 'i' || i, 'n', 0, 0, 0 FROM n`,
	`INSERT INTO heed_tallies SELECT cell, '', 'u' || item, 0, 1, 1, 1, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0 FROM heed_cells`,
	`INSERT INTO heed_ids SELECT 0, cell, 1, 1, 0 FROM heed_cells`,
	`INSERT INTO heed_history (cell, id, happened, recorded, source, observation) SELECT cell, cell, 1, 1, 'u' || item, '{}' FROM heed_cells`,
	`INSERT INTO heed_forgotten SELECT cell, cell, 1 FROM heed_cells`,
	`INSERT INTO heed_outbox (id, topic, happened) SELECT cell, 't', '' FROM heed_cells`,
	`INSERT INTO heed_audit (entry) SELECT cell FROM heed_cells`,
	`INSERT INTO heed_stream (stream, id, topic, happened, due, deliveries, holder) SELECT 's' || length(item), cell, 't', '', 1, 0, '' FROM heed_cells`,
}

// TestPlans: what a running application asks for is found by an index, on every engine, and so in tables that were just filled:
// PostgreSQL makes its statistics a minute later.
func TestPlans(t *testing.T) {
	skipRaced(t)
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			at := b.place(t)
			handle := at.handle(t)
			for _, statement := range fill {
				_, err := handle.Exec(statement)
				require.NoError(t, err)
			}
			t.Run("just filled", func(t *testing.T) { checkPlans(t, at, handle) })
			_, err := handle.Exec("ANALYZE")
			require.NoError(t, err)
			t.Run("analyzed", func(t *testing.T) { checkPlans(t, at, handle) })
		})
	}
}

func checkPlans(t *testing.T, at place, handle *sql.DB) {
	statements, err := sqlstore.Statements(at.dialect)
	require.NoError(t, err)
	filter := func(session, item, category, stage string) []any {
		return []any{"", session, item, category, "", stage, 0, 16000, "z", 10}
	}
	reads := map[string]bool{"cells of a scope": true, "ids past their time": true} // much, so that a table as a whole may be quicker
	for what, want := range map[string]struct {
		text  string // that is in the statement
		args  []any
		index string
	}{
		"choices by session":    {"AND session = $2 ORDER", filter("s7", "", "", ""), "heed_choices_session"},
		"choices by item":       {"AND item = $3 ORDER", filter("", "i7", "", ""), "heed_choices_item"},
		"choices by category":   {"AND category = $4 ORDER", filter("", "", "c7", ""), "heed_choices_category"},
		"pending choices":       {"AND stage = 'pending' ORDER", filter("", "", "", "pending"), "heed_choices_pending"},
		"choices by time":       {"< ($8, $9) ORDER BY made", filter("", "", "", ""), "heed_choices_made"},
		"a choice":              {"FROM heed_choices WHERE id = $1", []any{"7"}, primary("heed_choices", "sqlite_autoindex_heed_choices_1")},
		"one cell":              {"WHERE t.cell = $1\n", []any{"k7"}, primary("heed_tallies", "PRIMARY KEY")},
		"several cells":         {"ORDER BY t.cell, t.channel", []any{`[["k7"],["k8"]]`}, primary("heed_tallies", "PRIMARY KEY")},
		"cells of a commit":     {"half_life, by_origin, restart, kind", []any{`[["k7"]]`}, primary("heed_cells", "PRIMARY KEY")},
		"cells of a scope":      {"ORDER BY c.item, c.name", []any{"kind", "s7"}, "heed_cells_scope"},
		"scopes":                {"WITH RECURSIVE scopes", []any{"kind"}, "heed_cells_scope"},
		"history of a cell":     {"AND (happened, seq) < ($2, $3) ORDER BY", []any{"k7", 9, 9}, "heed_history_cell"},
		"history of an id":      {"FROM heed_history\n\t\tWHERE id", []any{`[["k7"]]`}, "heed_history_id"},
		"history of a source":   {"FROM heed_history\n\t\tWHERE source <> ''", []any{`[["ui7"]]`}, "heed_history_source"},
		"tallies of a source":   {"DELETE FROM heed_tallies\n\t\tWHERE source <> ''", []any{`[["ui7"]]`}, "heed_tallies_source"},
		"an event that is due":  {"SELECT due - ", []any{"s3"}, "heed_stream_due"},
		"the next of a stream":  {"SET deliveries = abs(deliveries) + 1", []any{"", 1, "s3"}, "heed_stream_due"},
		"the outbox in order":   {"FROM heed_outbox WHERE seq > $1", []any{19990}, primary("heed_outbox", "INTEGER PRIMARY KEY")},
		"the audit in order":    {"FROM heed_audit WHERE seq < $1", []any{10}, primary("heed_audit", "INTEGER PRIMARY KEY")},
		"what was sent":         {"DELETE FROM heed_outbox", []any{`[["k7"]]`}, primary("heed_outbox_id", "sqlite_autoindex_heed_outbox_1")},
		"history past its time": {"FROM heed_history WHERE recorded < $1", []any{1}, "heed_history_recorded"},
		"ids past their time":   {"FROM heed_ids WHERE recorded < $1", []any{1}, "heed_ids_recorded"},
	} {
		index := want.index
		if parts := strings.Split(index, "|"); len(parts) == 2 {
			index = parts[0]
			if at.dialect == sqlstore.Postgres {
				index = parts[1]
			}
		}
		var plan string
		for _, statement := range statements {
			if strings.Contains(statement, want.text) {
				plan = explain(t, handle, at.dialect, statement, want.args...)
				break
			}
		}
		assert.Contains(t, plan, index, what)
		if !reads[what] {
			assert.NotContains(t, plan, "Seq Scan on heed_", what)
		}
	}
}

// primary names what finds a row by its primary key or a unique column, in SQLite and in PostgreSQL.
func primary(table, sqlite string) string {
	if strings.HasSuffix(table, "_id") {
		return sqlite + "|" + table + "_key"
	}
	return sqlite + "|" + table + "_pkey"
}

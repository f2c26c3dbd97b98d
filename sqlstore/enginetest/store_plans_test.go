package enginetest_test

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/sqlstore"
)

// fillStore returns statements that put rows enough into the tables for an engine to think about
// how to find them. It has no statistics of them.
func fillStore() []string {
	return []string{
		`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) INSERT INTO heed_cell
			SELECT 'k' || i, 'kind', 's' || i % 50, 'i' || i, 'n', 0, 0, 0, i FROM n`,
		`INSERT INTO heed_tally
			SELECT cell, '', 'u' || item, 0, 1, 1, 1, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0 FROM heed_cell`,
		`INSERT INTO heed_id SELECT cell, 1, 1, 0 FROM heed_cell`,
		`INSERT INTO heed_observation (cell, id, happened, recorded, source, observation)
			SELECT cell, cell, 1, 1, 'u' || item, '{}' FROM heed_cell`,
		`INSERT INTO heed_lost (id, cell, recorded, source) SELECT cell, cell, 1, 'u' || item
			FROM heed_cell`,
		`INSERT INTO heed_record (ref, kind, id, at, revision, keys, body)
			SELECT cell, scope, cell, 1000 + length(item), 1, '[]', '{}' FROM heed_cell`,
		`INSERT INTO heed_key SELECT 'h' || seq % 500, at, seq FROM heed_record`,
		`INSERT INTO heed_key SELECT 'all', at, seq FROM heed_record`,
	}
}

// All that a running application asks for is found by an index, on every engine, and so in tables
// that were just filled: PostgreSQL makes its statistics a minute later.
func TestStorePlans(t *testing.T) {
	skipRaced(t)
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			at := b.place(t)
			handle := at.handle(t)
			_ = open(t, handle, at.dialect)
			for _, statement := range fillStore() {
				_, err := handle.Exec(statement)
				require.NoError(t, err)
			}
			t.Run("just filled", func(t *testing.T) { checkStorePlans(t, at, handle) })
			_, err := handle.Exec("ANALYZE")
			require.NoError(t, err)
			t.Run("analyzed", func(t *testing.T) { checkStorePlans(t, at, handle) })
		})
	}
}

func checkStorePlans(t *testing.T, at place, handle *sql.DB) {
	statements, err := sqlstore.Statements(at.dialect)
	require.NoError(t, err)
	// much, so that a table as a whole may be quicker; a person may be named by any cell
	reads := map[string]bool{"cells of a scope": true, "ids past their time": true,
		"tallies of a person": true, "history of a person": true}
	cells, refs := `[["k7"],["k8"]]`, `[["k9"]]`
	type want struct {
		text  string // that is in the statement, or after a caret begins it
		args  []any
		index string // of SQLite, and after a bar of PostgreSQL
	}
	wants := map[string]want{
		"several cells": {"^SELECT 1, t.cell", []any{cells}, "PRIMARY KEY|heed_tally_pkey"},
		"records": {"^SELECT 0, r.ref", []any{refs, cells},
			"sqlite_autoindex_heed_record_1|heed_record_ref_key"},
		"cells of records": {"^SELECT 0, r.ref", []any{refs, cells},
			"PRIMARY KEY|heed_tally_pkey"},
		"cells of a commit": {"^SELECT cell, half_life", []any{cells},
			"PRIMARY KEY|heed_cell_pkey"},
		"cells of a scope": {
			"FROM heed_cell c JOIN heed_tally t ON t.cell = c.cell\n\t\tWHERE c.kind = $1 AND " +
				"c.scope = $2", []any{"kind", "s7"}, "heed_cell_scope"},
		"some lots": {"SELECT DISTINCT lot FROM heed_cell", []any{"kind", "s7", 10, 20},
			"heed_cell_scope"},
		"cells of some lots": {"AND c.lot >= $3 AND c.lot < $4", []any{"kind", "s7", 10, 20},
			"heed_cell_scope"},
		"scopes": {"SELECT c.scope FROM heed_cell c", []any{"kind"}, "heed_cell_scope"},
		"history of a cell": {"FROM heed_observation\n\t\tWHERE cell = $1 AND (happened, seq) <",
			[]any{"k7", 9, 9}, "heed_observation_cell"},
		"tallies of a person": {"WHERE c.scope = $1 OR c.item = $1", []any{"ui7"},
			"heed_tally_source"},
		"history of a person": {"WHERE c.scope = $1 OR c.item = $1", []any{"ui7"},
			"heed_observation_source"},
		"ids past their time": {"FROM heed_id WHERE recorded < $1", []any{1}, "heed_id_recorded"},
		"records to change":   {"UPDATE heed_record SET revision = ", []any{1, `[[7,1,"[]","{}"]]`}, "INTEGER PRIMARY KEY|heed_record_pkey"},
		"records to remove":   {"DELETE FROM heed_record WHERE seq", []any{`[[7]]`}, "INTEGER PRIMARY KEY|heed_record_pkey"},
		"keys to remove":      {"DELETE FROM heed_key", []any{`[["h7",1,7]]`}, "PRIMARY KEY|heed_key_pkey"},
		"newest of a kind": {"ORDER BY r.at DESC", []any{"s7", -1, 0, 2000, 0, 10},
			"heed_record_at"},
		"oldest of a kind": {"AND (r.at, r.seq) < ($4, $5) ORDER BY r.at, r.seq",
			[]any{"s7", -1, 0, 2000, 0, 10}, "heed_record_at"},
		"newest of a key": {"< ($4, $5) ORDER BY k.at DESC", []any{"h7", -1, 0, 2000, 0, 10},
			"heed_key USING PRIMARY KEY|heed_key_pkey"},
		"oldest of a key": {"< ($4, $5) ORDER BY k.at, k.seq", []any{"h7", -1, 0, 2000, 0, 10},
			"heed_key USING PRIMARY KEY|heed_key_pkey"},
		"newest of two keys":    {"o.seq = k.seq)) ORDER BY k.at DESC", []any{"h7", -1, 0, 2000, 0, `[["all"]]`, 10}, "heed_key USING PRIMARY KEY|heed_key_pkey"},
		"oldest of two keys":    {"o.seq = k.seq)) ORDER BY k.at, k.seq", []any{"h7", -1, 0, 2000, 0, `[["all"]]`, 10}, "heed_key USING PRIMARY KEY|heed_key_pkey"},
		"records past a moment": {"WHERE kind = $1 AND at < $2", []any{"s7", 1}, "heed_record_at"},
		"the first of too many": {"WHERE kind = $1 ORDER BY at, seq LIMIT $2", []any{"s7", 10},
			"heed_record_at"},
		"how many of a kind": {"SELECT count(*) FROM heed_record WHERE kind = $1", []any{"s7"},
			"heed_record_at"},
	}
	wants["kinds of records"] = want{"min(kind) FROM heed_record WHERE kind > k.kind", nil,
		"heed_record USING COVERING INDEX heed_record_at (kind>?)|using heed_record_at"}
	wants["kinds of cells"] = want{"min(kind) FROM heed_cell WHERE kind > k.kind", nil,
		"heed_cell USING COVERING INDEX heed_cell_scope (kind>?)|using heed_cell_scope"}
	wants["history of an id"] = want{
		"FROM heed_observation\n\t\tWHERE id", []any{cells}, "heed_observation_id",
	}
	wants["ids of a retraction"] = want{
		"traced, retracted FROM heed_id", []any{cells}, "PRIMARY KEY|heed_id_pkey",
	}
	wants["history past its time"] = want{
		"FROM heed_observation WHERE recorded < $1", []any{1}, "heed_observation_recorded",
	}
	wants["revisions of records"] = want{
		"SELECT ref, seq, kind, id, at, revision, keys", []any{refs},
		"sqlite_autoindex_heed_record_1|heed_record_ref_key",
	}
	if at.dialect == sqlstore.SQLite {
		wants["records to change"] = want{
			"UPDATE heed_record SET revision = ", []any{1, 1, "[]", "{}", 7}, "INTEGER PRIMARY KEY",
		}
		wants["several cells"] = want{"WHERE t.cell IN (SELECT", []any{cells}, "PRIMARY KEY"}
		wants["cells of a quick commit"] = want{"c.cell = heed_tally.cell", make([]any, 32*18),
			"SEARCH c USING PRIMARY KEY"}
		wants["keys to remove"] = want{
			"DELETE FROM heed_key WHERE (hash, at, seq) IN ( VALUES (?, ?, ?))",
			[]any{"h7", 1, 7}, "PRIMARY KEY",
		}
	}
	for what, want := range wants {
		index := want.index
		if sqlite, postgres, ok := strings.Cut(index, "|"); ok {
			index = sqlite
			if at.dialect == sqlstore.Postgres {
				index = postgres
			}
		}
		plan := "no such statement"
		for _, statement := range statements {
			text, begins := strings.CutPrefix(inLine(want.text), "^")
			in := inLine(statement)
			if begins && strings.HasPrefix(in, text) || !begins && strings.Contains(in, text) {
				plan = explain(t, handle, at.dialect, statement, want.args...)
				break
			}
		}
		plan = strings.ReplaceAll(plan, "SEARCH k USING", "SEARCH heed_key USING")
		assert.Contains(t, plan, index, what)
		if !reads[what] {
			assert.NotContains(t, plan, "Seq Scan on heed_", what)
		}
	}
}

// inLine returns a text with one space between words.
func inLine(text string) string { return strings.Join(strings.Fields(text), " ") }

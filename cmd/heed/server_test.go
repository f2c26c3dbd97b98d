package main

import (
	"database/sql"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/strategy"
)

func TestAServerInUse(t *testing.T) {
	t.Parallel()
	dsn := cluster.database(t, "heed_in_use")
	require.Zero(t, call{args: []string{"--db", dsn, "store", "import"},
		input: call{args: []string{"--db", sqliteFile(t), "store", "export"}}.run(t).out}.run(t).code)
	handle, err := (place{dialect: sqlstore.Postgres, dsn: dsn}).handle(ctx, false)
	require.NoError(t, err)
	defer handle.Close()
	var patience string
	require.NoError(t, handle.QueryRow("SHOW lock_timeout").Scan(&patience))
	assert.Equal(t, "10s", patience)

	tx, err := handle.Begin()
	require.NoError(t, err)
	defer tx.Rollback() //nolint:errcheck // there is nothing to take back
	_, err = tx.Exec("LOCK TABLE heed_tally, heed_record")
	require.NoError(t, err)
	impatient := dsn + "&lock_timeout=50"
	assertFails(t, call{args: []string{"--db", impatient, "strategy", "status"}}.run(t), failed,
		"is in use by another process", "try again")
	assertFails(t, call{args: []string{"--db", impatient, "strategy", "--agent", "strategy",
		"reset", "correction", "--yes", "--reason", "x"}}.run(t), failed, "is in use")

	waits := exec.Command(command, "--db", dsn, "confidence")
	waits.Env = environ()
	var says strings.Builder
	waits.Stderr = &says
	require.NoError(t, waits.Start())
	require.Eventually(t, func() bool {
		var waiting int
		require.NoError(t, handle.QueryRow("SELECT count(*) FROM pg_stat_activity WHERE "+
			"wait_event_type = 'Lock' AND datname = 'heed_in_use'").Scan(&waiting))
		return waiting > 0
	}, 10*time.Second, 10*time.Millisecond)
	require.NoError(t, waits.Process.Signal(syscall.SIGTERM))
	require.Error(t, waits.Wait())
	assert.Equal(t, "heed: interrupted\n", says.String())
}

// The pages and the API read and write a store in PostgreSQL.
func TestServeOnAServer(t *testing.T) {
	t.Parallel()
	dsn := cluster.database(t, "heed_serve")
	require.Zero(t, call{args: []string{"--db", dsn, "store", "import"},
		input: call{args: []string{"--db", sqliteFile(t), "store", "export"}}.run(t).out}.run(t).code)
	s := serving(t, nil, "--db", dsn, "serve", "--listen", "127.0.0.1:0", "--as", "kim", "--agent",
		"strategy")
	token := s.greeting.Entrants[1].Token
	status, body := s.call(http.MethodGet, "/v1/segments", token, "")
	assert.Equal(t, http.StatusOK, status)
	assert.Contains(t, body, `"category":"correction"`)
	status, body = s.call(http.MethodPost, "/v1/select", token,
		`{"item":"prefer-tabs","category":"correction","context":"interactive"}`)
	require.Equal(t, http.StatusOK, status, body)
	var chosen struct{ Arm string }
	require.NoError(t, json.Unmarshal([]byte(body), &chosen))
	history := read[[]view.Choice](t, "--db", dsn, "strategy", "--agent", "strategy", "history",
		"prefer-tabs", "--limit", "1")
	require.Len(t, history, 1)
	assert.Equal(t, chosen.Arm, string(history[0].Choice.Arm))
	assert.Equal(t, strategy.Pending, history[0].Stage)
	s.end(syscall.SIGTERM)
}

func TestWhatTheServerRefuses(t *testing.T) {
	t.Parallel()
	dsn := cluster.dsn(t)
	r := call{args: []string{"--db", inDatabase(t, dsn, "nowhere"), "strategy", "status"}}.run(t)
	assertFails(t, r, failed, `heed: database "nowhere" does not exist`, "check --db")
}

func TestTablesOnAServerChangedByHand(t *testing.T) {
	t.Parallel()
	dsn := cluster.database(t, "heed_by_hand")
	of := func(command ...string) result {
		return call{args: append([]string{"--db", dsn},
			command...)}.run(t)
	}
	require.Zero(t, of("store", "migrate").code)
	assert.Contains(t, of("doctor").out, "Nothing is wrong.")
	handle, err := sql.Open("pgx", dsn)
	require.NoError(t, err)
	defer handle.Close()
	_, err = handle.Exec("DROP TABLE heed_lost")
	require.NoError(t, err)
	assert.Contains(t, of("doctor").out,
		"fault: the table heed_lost is missing: restore the store from a copy")
}

// Rows of PostgreSQL are imported as psql --csv writes them.
func TestATableIsImported(t *testing.T) {
	t.Parallel()
	dsn := cluster.database(t, "heed_past")
	handle, err := sql.Open("pgx", dsn)
	require.NoError(t, err)
	defer handle.Close()
	_, err = handle.Exec(`CREATE TABLE answers (id int, at timestamptz, question text, answer text,
		user_id text, model text, thumb boolean, org text);
		INSERT INTO answers SELECT i, timestamptz '2026-01-08 10:00Z' + i * interval '1 minute',
			'It is full', 'Rotate, "now"', 'p' || i % 7, CASE i % 2 WHEN 0 THEN 'a' ELSE 'b' END,
			i % 3 > 0, CASE i % 2 WHEN 0 THEN 'acme' ELSE 'other' END FROM generate_series(1, 60) AS i`)
	require.NoError(t, err)
	db := filepath.Join(t.TempDir(), "a.db")
	conn, err := pgx.Connect(ctx, dsn)
	require.NoError(t, err)
	defer conn.Close(ctx) //nolint:errcheck // it was only read
	var table strings.Builder
	_, err = conn.PgConn().CopyTo(ctx, &table,
		"COPY (SELECT * FROM answers WHERE org = 'acme') TO STDOUT WITH (FORMAT csv, HEADER)")
	require.NoError(t, err)
	log := filepath.Join(t.TempDir(), "answers.csv")
	require.NoError(t, os.WriteFile(log, []byte(table.String()), 0o600))
	for _, known := range []int{0, 30} {
		got := call{args: []string{"--json", "--db", db, "import", log, "--new"}}.run(t)
		require.Zero(t, got.code, got.err)
		var r pastReport
		require.NoError(t, json.Unmarshal([]byte(got.out), &r), got.out)
		assert.Equal(t, known, r.Imported.Known)
		assert.Equal(t, map[string]int{"a": 30}, r.Arms)
		assert.Equal(t, 30-known, r.Imported.Reactions)
	}
}

package main

import (
	"bufio"
	"database/sql"
	"net/url"
	"os/exec"
	"os/user"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/sqlstore"
)

// interrupted runs a command in a terminal, types an answer, and then Ctrl-C when it asks a question.
func interrupted(t *testing.T, question, answer string, args ...string) result {
	cmd, screen := call{args: args, input: answer}.start(t, 150)
	var out strings.Builder
	for in := bufio.NewReader(screen); ; {
		b, err := in.ReadByte()
		if err != nil {
			break
		}
		out.WriteByte(b)
		if strings.HasSuffix(out.String(), question) {
			_, err = screen.WriteString("\x03")
			require.NoError(t, err)
		}
	}
	_ = cmd.Wait() // the code tells
	return result{out: out.String(), code: cmd.ProcessState.ExitCode()}
}

func TestCtrlCEndsAQuestion(t *testing.T) {
	db := sqliteFile(t)
	args := []string{"--db", db, "strategy", "--learner", "strategy", "reset", "correction"}
	for question, answer := range map[string]string{"Go on? [y/N] ": "", "Why? ": "y\n"} {
		r := interrupted(t, question, answer, args...)
		assert.Equal(t, failed, r.code, r.out)
		assert.Contains(t, r.out, "heed: interrupted: nothing was changed\r\n")
		assert.Equal(t, 60, outcomes(t, db))
	}
}

func TestTheEndOfTheInputIsNoYes(t *testing.T) {
	db := sqliteFile(t)
	r := call{args: []string{"--db", db, "strategy", "--learner", "strategy", "reset", "correction"}, input: "\x04"}.onTerminal(t, 150)
	assert.Equal(t, failed, r.code)
	assert.Contains(t, r.out, "\nheed: nothing was changed\n")
}

func TestWhoTheSystemSaysItIs(t *testing.T) {
	db := sqliteFile(t)
	account, err := user.Current()
	require.NoError(t, err)
	for env, who := range map[string]string{"USER=": account.Username, "HEED_ACTOR=nils": "nils", "USER=olive": "olive"} {
		r := call{args: []string{"--db", db, "confidence", "pin", "greet-by-name", "--yes", "--reason", env}, env: []string{env}}.run(t)
		require.Zero(t, r.code, r.err)
		assert.Equal(t, who, read[[]evidence.AuditEntry](t, "--db", db, "audit", "--limit", "1")[0].Actor)
	}
}

// database makes a database of its own on the server, and returns its DSN.
func (p *postgres) database(t *testing.T, name string) string {
	server, err := sql.Open("pgx", p.dsn(t))
	require.NoError(t, err)
	_, err = server.Exec("DROP DATABASE IF EXISTS " + name)
	require.NoError(t, err)
	_, err = server.Exec("CREATE DATABASE " + name)
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := server.Exec("DROP DATABASE " + name + " WITH (FORCE)")
		assert.NoError(t, err)
		assert.NoError(t, server.Close())
	})
	return inDatabase(t, p.dsn(t), name)
}

func inDatabase(t *testing.T, dsn, name string) string {
	address, err := url.Parse(dsn)
	require.NoError(t, err)
	address.Path = "/" + name
	return address.String()
}

func TestAServerInUse(t *testing.T) {
	dsn := cluster.database(t, "heed_in_use")
	require.Zero(t, call{args: []string{"--db", dsn, "import"}, input: call{args: []string{"--db", sqliteFile(t), "export"}}.run(t).out}.run(t).code)
	handle, err := (place{dialect: sqlstore.Postgres, dsn: dsn}).handle(ctx, false)
	require.NoError(t, err)
	defer handle.Close()
	var patience string
	require.NoError(t, handle.QueryRow("SHOW lock_timeout").Scan(&patience))
	assert.Equal(t, "10s", patience)

	tx, err := handle.Begin()
	require.NoError(t, err)
	defer tx.Rollback() //nolint:errcheck // there is nothing to take back
	_, err = tx.Exec("LOCK TABLE heed_tallies, heed_documents")
	require.NoError(t, err)
	impatient := dsn + "&lock_timeout=200"
	assertFails(t, call{args: []string{"--db", impatient, "strategy", "status"}}.run(t), failed, "is in use by another process", "try again")
	assertFails(t, call{args: []string{"--db", impatient, "patterns", "promote", "tests-first", "--yes", "--reason", "x"}}.run(t), failed, "is in use")

	waits := exec.Command(command, "--db", dsn, "confidence")
	waits.Env = environ()
	var says strings.Builder
	waits.Stderr = &says
	require.NoError(t, waits.Start())
	require.Eventually(t, func() bool {
		var waiting int
		require.NoError(t, handle.QueryRow("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = 'heed_in_use'").Scan(&waiting))
		return waiting > 0
	}, 10*time.Second, 10*time.Millisecond)
	require.NoError(t, waits.Process.Signal(syscall.SIGTERM))
	require.Error(t, waits.Wait())
	assert.Equal(t, "heed: interrupted\n", says.String())
}

func TestWhatTheServerRefuses(t *testing.T) {
	dsn := cluster.dsn(t)
	r := call{args: []string{"--db", inDatabase(t, dsn, "nowhere"), "strategy", "status"}}.run(t)
	assertFails(t, r, failed, `heed: database "nowhere" does not exist`, "check --db")
}

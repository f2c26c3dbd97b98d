package enginetest_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/servertest"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
)

// pgbouncer runs PgBouncer in transaction mode before the cluster of the tests for as long as the
// test runs, and returns the data source name of its database. If PgBouncer is not installed, the
// test is skipped, or fails if HEED_PGBOUNCER=require.
func pgbouncer(t testing.TB, sessions int) string {
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		program = "/usr/sbin/pgbouncer"
		_, err = os.Stat(program)
	}
	if err != nil {
		if os.Getenv("HEED_PGBOUNCER") == "require" {
			t.Fatal("PgBouncer is not installed")
		}
		t.Skip("PgBouncer is not installed")
	}
	server, err := pgx.ParseConfig(cluster(t))
	require.NoError(t, err)
	dir, err := os.MkdirTemp("", "heed-pgbouncer")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o755)) // PgBouncer is another user where this one is root
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := listener.Addr().(*net.TCPAddr).Port
	require.NoError(t, listener.Close())
	file := filepath.Join(dir, "pgbouncer.ini")
	users := filepath.Join(dir, "users")
	settings := fmt.Sprintf("[databases]\n* = host=%s port=%d\n[pgbouncer]\n"+
		"listen_addr = 127.0.0.1\nlisten_port = %d\nunix_socket_dir =\nauth_type = trust\n"+
		"auth_file = %s\npool_mode = transaction\ndefault_pool_size = %d\nmax_client_conn = 1000\n",
		server.Host, server.Port, port, users, sessions)
	user := fmt.Sprintf("%q %q\n", server.User, server.Password)
	require.NoError(t, os.WriteFile(users, []byte(user), 0o644))    //nolint:gosec // see above
	require.NoError(t, os.WriteFile(file, []byte(settings), 0o644)) //nolint:gosec // see above
	args := []string{"-q", file}
	if os.Getuid() == 0 {
		args = []string{"-q", "-u", "nobody", file}
	}
	cmd := exec.Command(program, args...)
	cmd.Stderr = t.Output()
	require.NoError(t, cmd.Start())
	end, err := servertest.AtEnd(`kill -9 "$1"`, strconv.Itoa(cmd.Process.Pid))
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = end()
		_ = cmd.Wait()
	})
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", port))
		return err == nil && conn.Close() == nil
	}, 20*time.Second, 10*time.Millisecond)
	return fmt.Sprintf("host=127.0.0.1 port=%d user=%s dbname=%s sslmode=disable", port, server.User,
		server.Database)
}

const pooledMode = " default_query_exec_mode=exec"

// Behind a pooler that gives each transaction another session, pgx has to keep no statements there.
// Without that, Open says so.
func TestPgBouncer(t *testing.T) {
	dsn := pgbouncer(t, 3)
	schema := emptySchema(t)
	broken := place{sqlstore.Postgres, "pgx", dsn}
	for range 3 {
		handle, err := broken.open()
		require.NoError(t, err)
		_, err = sqlstore.Open(ctx, handle, sqlstore.Postgres, sqlstore.Config{Schema: schema})
		var fault *heed.ConfigError
		require.ErrorAs(t, err, &fault)
		assert.Equal(t, "handle", fault.Field)
		assert.Contains(t, fault.Reason, "default_query_exec_mode=exec")
		require.NoError(t, handle.Close())
	}
	at := place{sqlstore.Postgres, "pgx", dsn + pooledMode}
	var wait sync.WaitGroup
	for w := range 4 {
		st := at.store(t, sqlstore.Config{Schema: schema})
		for g := range 4 {
			wait.Go(func() {
				for i := range 10 {
					b := onlyObserve(fmt.Sprint(w, " ", g, " ", i))
					assert.NoError(t, commits(b)(st))
					assert.NoError(t, st.Read(ctx, &store.Snapshot{}, []evidence.Cell{arm}, nil))
				}
			})
		}
	}
	wait.Wait()
	var s store.Snapshot
	st := at.store(t, sqlstore.Config{Schema: schema})
	require.NoError(t, st.Read(ctx, &s, []evidence.Cell{arm}, nil))
	require.Len(t, s.Parts, 1)
	assert.EqualValues(t, 160, s.Parts[0].Tally.N())
}

// A pooler that is found late, because it was busy when the store was opened, is the same error.
func TestPgBouncerFoundLate(t *testing.T) {
	hooks, handle := hookedAt(t, postgresSchema(t))
	t.Cleanup(func() { require.NoError(t, handle.Close()) })
	st := open(t, handle, sqlstore.Postgres)
	require.NoError(t, commits(noted("warm"))(st))
	for _, state := range []stateError{"42P05", "26000"} {
		hooks.set(func(string) error { return state })
		err := st.Read(ctx, &store.Snapshot{}, []evidence.Cell{{Kind: string(state)}}, nil)
		hooks.set(nil)
		var fault *heed.ConfigError
		require.ErrorAs(t, err, &fault)
		require.ErrorIs(t, err, state)
		assert.Equal(t, "handle", fault.Field)
	}
}

// TestStoreBehindPgBouncer runs the suite of stores through a pooler, each store in its own schema.
func TestStoreBehindPgBouncer(t *testing.T) {
	skipRaced(t)
	if os.Getenv("HEED_LONG") == "" {
		t.Skip("long: HEED_LONG=1 runs it")
	}
	at := place{sqlstore.Postgres, "pgx", pgbouncer(t, 5) + pooledMode}
	handle, err := at.open()
	require.NoError(t, err)
	t.Cleanup(func() { _ = handle.Close() })
	schemas := make(map[store.Store]string)
	in := func(schema string, o storetest.Options) (store.Store, error) {
		st, err := sqlstore.Open(ctx, handle, sqlstore.Postgres, sqlstore.Config{Now: o.Now,
			Retention: store.Retention{Limits: o.Limits}, Schema: schema})
		schemas[st] = schema
		return st, err
	}
	again := func(before store.Store, o storetest.Options) (store.Store, error) {
		return in(schemas[before], o)
	}
	storetest.Run(t, storetest.Subject{
		New:    func(o storetest.Options) (store.Store, error) { return in(emptySchema(t), o) },
		Reopen: again,
		Beside: again,
	})
}

// emptySchema returns the name of a schema that is not there, and is dropped with the test.
func emptySchema(t testing.TB) string {
	name := fmt.Sprintf("heed-Test-%d-%d", os.Getpid(), schemas.Add(1))
	t.Cleanup(func() {
		conn, err := pgx.Connect(ctx, cluster(t))
		require.NoError(t, err)
		_, err = conn.Exec(ctx, `DROP SCHEMA IF EXISTS "`+name+`" CASCADE`)
		require.NoError(t, errors.Join(err, conn.Close(ctx)))
	})
	return name
}

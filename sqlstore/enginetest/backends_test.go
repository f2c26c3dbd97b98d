package enginetest_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib"       // the driver "pgx"
	_ "github.com/ncruces/go-sqlite3/driver" // the driver "sqlite3"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/sqlstore"
)

var ctx = context.Background()

// A place is where a database is. It can be opened any number of times, as processes do.
type place struct {
	dialect     sqlstore.Dialect
	driver, dsn string
}

func (p place) open() (*sql.DB, error) { return sql.Open(p.driver, p.dsn) }

// A backend is an engine with a driver. Its places are new, without any tables, and are removed
// with the test.
type backend struct {
	name  string
	place func(testing.TB) place
}

// backends is the table that every suite runs over.
var backends = []backend{
	{"sqlite/modernc", func(t testing.TB) place { return sqliteFile(t, "sqlite") }},
	{"sqlite/ncruces", func(t testing.TB) place { return sqliteFile(t, "sqlite3") }},
	{"postgres/pgx", postgresSchema},
}

// calm is the table for tests that have no goroutines to race: an engine each. Without the race
// detector they take a tenth of the time.
var calm = []backend{backends[0], backends[2]}

// A run with the race detector leaves modernc's driver out, and HEED_ENGINES=unraced leaves only
// what such a run leaves out.
func init() {
	switch {
	case raced:
		backends = backends[1:]
	case os.Getenv("HEED_ENGINES") == "unraced":
		backends = backends[:1]
	}
}

// files are the backends that keep a file.
func files() []backend {
	return slices.DeleteFunc(slices.Clone(backends),
		func(b backend) bool { return strings.HasPrefix(b.name, "postgres") })
}

// onEach runs a test on each backend.
func onEach(t *testing.T, test func(*testing.T, place)) {
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) { test(t, b.place(t)) })
	}
}

func sqliteFile(t testing.TB, driver string) place {
	file := filepath.Join(t.TempDir(), "heed.db")
	// a "#" ends the name
	return place{sqlstore.SQLite, driver, "file:" + strings.ReplaceAll(file, "#", "%23")}
}

var schemas atomic.Int64

// postgresSchema makes a schema of its own in the cluster of the tests.
func postgresSchema(t testing.TB) place {
	cfg, err := pgx.ParseConfig(cluster(t))
	require.NoError(t, err)
	name := fmt.Sprintf("heed_test_%d_%d", os.Getpid(), schemas.Add(1))
	run := func(statement string) error {
		conn, err := pgx.ConnectConfig(ctx, cfg)
		if err != nil {
			return err
		}
		_, err = conn.Exec(ctx, statement)
		return errors.Join(err, conn.Close(ctx))
	}
	require.NoError(t, run("CREATE SCHEMA "+name))
	t.Cleanup(func() {
		// what a process that was killed has begun may still go on
		for try := 0; try < 100 && run("DROP SCHEMA "+name+" CASCADE") != nil; try++ {
			time.Sleep(10 * time.Millisecond)
		}
	})
	dsn := cluster(t) + " search_path=" + name
	if strings.Contains(dsn, "://") {
		within, err := url.Parse(cluster(t))
		require.NoError(t, err)
		values := within.Query()
		values.Set("search_path", name)
		within.RawQuery = values.Encode()
		dsn = within.String()
	}
	return place{sqlstore.Postgres, "pgx", dsn}
}

// tables that suites leave behind are emptied and used again, as to make them takes longer than
// most tests.
var idle = struct {
	sync.Mutex
	handles map[string][]*sql.DB
}{handles: make(map[string][]*sql.DB)}

// emptied returns a handle of the backend with empty tables.
func (b backend) emptied(t testing.TB) (*sql.DB, sqlstore.Dialect) {
	idle.Lock()
	var handle *sql.DB
	if free := idle.handles[b.name]; len(free) > 0 {
		handle, idle.handles[b.name] = free[len(free)-1], free[:len(free)-1]
	}
	idle.Unlock()
	dialect := sqlstore.SQLite
	if b.name == "postgres/pgx" {
		dialect = sqlstore.Postgres
	}
	if handle == nil {
		at := b.place(lasting{t})
		var err error
		handle, err = at.open()
		require.NoError(t, err)
		handle.SetMaxIdleConns(16) // as PostgreSQL plans the statements again in each connection
		_, err = sqlstore.Open(ctx, handle, dialect)
		require.NoError(t, err)
	}
	t.Cleanup(func() {
		wipe(t, handle)
		idle.Lock()
		defer idle.Unlock()
		idle.handles[b.name] = append(idle.handles[b.name], handle)
	})
	return handle, dialect
}

// lasting is a test whose places outlive it, until all tests are over.
type lasting struct{ testing.TB }

var lastly []func() error

func (l lasting) TempDir() string {
	dir, err := os.MkdirTemp("", "")
	require.NoError(l, err)
	return dir
}

func (l lasting) Cleanup(do func()) { lastly = append(lastly, func() error { do(); return nil }) }

// explain returns how an engine goes about a statement.
func explain(t testing.TB, handle *sql.DB, dialect sqlstore.Dialect, query string,
	args ...any) string {
	prefix := "EXPLAIN QUERY PLAN "
	if dialect == sqlstore.Postgres {
		prefix = "EXPLAIN "
	}
	if dialect == sqlstore.Postgres {
		args = append([]any{pgx.QueryExecModeSimpleProtocol}, args...)
	}
	rows, err := handle.QueryContext(ctx, prefix+query, args...)
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	var plan strings.Builder
	columns, err := rows.Columns()
	require.NoError(t, err)
	for rows.Next() {
		values := make([]any, len(columns))
		into := make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		require.NoError(t, rows.Scan(into...))
		fmt.Fprintln(&plan, values[len(values)-1])
	}
	require.NoError(t, rows.Err())
	return plan.String()
}

// wipe empties all tables.
func wipe(t require.TestingT, handle *sql.DB) {
	_, err := handle.ExecContext(ctx, "DELETE FROM "+strings.Join(tables, "; DELETE FROM "))
	require.NoError(t, err)
}

// tables are all of heed's but the one that has the version.
var tables = []string{
	"heed_cell", "heed_tally", "heed_id", "heed_observation", "heed_lost", "heed_kind", "heed_record",
	"heed_key",
}

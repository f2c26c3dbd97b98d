package enginetest_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
)

// An episode is a call in the life of a store. before makes ready for it.
type episode struct {
	name         string
	before, call func(context.Context, store.Store) error
	// steps tells that the call makes several commits, such as a sweep that takes one thing after the other. It may then
	// stop between two of them; called again, it comes to the same end.
	steps bool
}

// episodes are calls of the store and of every service over it. Each is deterministic: a fixed clock, seeds and ids.
var episodes = []episode{
	{
		name:   "store: evidence and records",
		before: declared,
		call: func(ctx context.Context, st store.Store) error {
			if err := declared(ctx, st); err != nil {
				return err
			}
			_, err := st.Commit(ctx,
				store.Batch{ID: "first", Observations: []evidence.Observation{observedAt("o1", 1)}, Records: []store.Record{suiteRecord("a", store.Once)}},
				store.Batch{ID: "second", Observations: []evidence.Observation{observedAt("o2", 0)}, Records: []store.Record{suiteRecord("b", store.Once)}})
			return err
		},
	},
	{
		name:   "store: commits of several callers",
		before: declared,
		call: func(ctx context.Context, st store.Store) error {
			if err := declared(ctx, st); err != nil {
				return err
			}
			var all sync.WaitGroup
			errs := make([]error, 6)
			for i := range errs {
				all.Go(func() {
					id := fmt.Sprint(i)
					_, errs[i] = st.Commit(ctx, store.Batch{
						ID: "batch " + id, Observations: []evidence.Observation{observedAt(id, 1)}, Records: []store.Record{suiteRecord(id, 0)},
					})
				})
			}
			all.Wait()
			return errors.Join(errs...)
		},
		steps: true,
	},
	{
		name: "store: a person is forgotten",
		before: func(ctx context.Context, st store.Store) error {
			if err := declared(ctx, st); err != nil {
				return err
			}
			_, err := st.Commit(ctx, store.Batch{
				Observations: []evidence.Observation{observedAt("o1", 1), observedAt("o2", 0)},
				Records: []store.Record{
					suiteRecord("a", 0), store.AuditEntry{ID: "x", At: killedAt, Actor: "ann", Action: "suite"}.Record(),
				},
			})
			return err
		},
		call: func(ctx context.Context, st store.Store) error {
			_, err := st.Commit(ctx, store.Batch{Forget: []string{"ann"}})
			return err
		},
	},
}

var (
	killedAt  = time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)
	suiteKind = store.Kind{Name: "suite.thing", Caused: []string{"by"}}
)

func declared(ctx context.Context, st store.Store) error {
	return st.Declare(ctx, suiteKind, store.Audit)
}

func observedAt(id string, reward float64) evidence.Observation {
	return evidence.Observation{ID: id, Cell: evidence.Cell{Kind: "suite", Item: "i"}, Source: "ann", Reward: reward, Weight: 1, At: killedAt}
}

func suiteRecord(id string, revision uint64) store.Record {
	return store.Record{
		Ref: store.Ref{Kind: suiteKind.Name, ID: id}, Revision: revision, At: killedAt,
		Keys: []string{store.PersonKey("ann")}, Body: store.Of(map[string]string{"by": "ann", "is": id}),
	}
}

// TestKilledBetweenStatements kills the process before each statement of each call. The store is then as before the call or
// as after it, and the call made again leaves what it leaves undisturbed. With HEED_LONG it is every statement of every
// driver's; else every third, of SQLite.
func TestKilledBetweenStatements(t *testing.T) {
	skipRaced(t)
	for _, e := range episodes {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			e.killed(t)
		})
	}
}

func (e *episode) killed(t *testing.T) {
	dir := t.TempDir()
	base := filepath.Join(dir, "base.db")
	e.at(t, base, e.before)
	before := contents(t, base)
	whole := copyOf(t, base, filepath.Join(dir, "whole.db"))
	e.at(t, whole, e.call)
	after := contents(t, whole)
	require.NotEqual(t, before, after, "the call changes nothing")
	step := 1
	if os.Getenv("HEED_LONG") == "" {
		step = 3
	}
	kills := 0
	for n := 1; ; n += step {
		file := copyOf(t, base, filepath.Join(dir, fmt.Sprint(n, ".db")))
		cmd := child(t, "episode", "HEED_TEST_NAME="+e.name, "HEED_TEST_DSN="+file, fmt.Sprint("HEED_TEST_DIE=", n))
		err := cmd.Run()
		if err == nil {
			break
		}
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit)
		require.True(t, exit.Sys().(syscall.WaitStatus).Signaled(), "the process was killed, and did not fail: %v", err)
		kills++
		if left := contents(t, file); !e.steps && left != before {
			require.Equal(t, after, left, "killed before statement %d", n)
		}
		e.at(t, file, e.call)
		require.Equal(t, after, contents(t, file), "killed before statement %d, and called again", n)
	}
	require.Greater(t, kills, 1)
	t.Logf("killed %d times", kills)
}

// at opens the store of a file for one step.
func (e *episode) at(t testing.TB, file string, do func(context.Context, store.Store) error) {
	handle, err := sql.Open("sqlite", file)
	require.NoError(t, err)
	defer func() { require.NoError(t, handle.Close()) }()
	require.NoError(t, within(handle, do))
}

// within opens the store in a handle with a fixed clock, and does something with it.
func within(handle *sql.DB, do func(context.Context, store.Store) error) error {
	st, err := sqlstore.Open(ctx, handle, sqlstore.SQLite, sqlstore.Config{Now: func() time.Time { return killedAt }, NoCache: true})
	if err != nil {
		return err
	}
	return do(ctx, st)
}

func copyOf(t testing.TB, file, to string) string {
	for _, suffix := range []string{"", "-wal"} {
		text, err := os.ReadFile(file + suffix)
		if errors.Is(err, os.ErrNotExist) && suffix != "" {
			continue
		}
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(to+suffix, text, 0o600))
	}
	return to
}

// contents returns what the tables of a store hold, but for numbers that only say in what order things came, and for the
// pseudonyms of people who were forgotten, which are random.
func contents(t testing.TB, file string) string {
	handle, err := sql.Open("sqlite", file)
	require.NoError(t, err)
	defer func() { require.NoError(t, handle.Close()) }()
	var all strings.Builder
	for _, query := range []string{
		`SELECT kind, id, at, keys, body FROM heed_record`, `SELECT at FROM heed_key`, `SELECT name FROM heed_kind`,
		`SELECT * FROM heed_cell`, `SELECT * FROM heed_tally`, `SELECT id, retracted FROM heed_id`,
		`SELECT cell, id, happened, source, observation FROM heed_observation`,
	} {
		rows := rowsOf(t, handle, query)
		slices.Sort(rows)
		fmt.Fprintf(&all, "%s\n\t%s\n", query, strings.Join(rows, "\n\t"))
	}
	return pseudonym.ReplaceAllString(all.String(), "forgotten")
}

var pseudonym = regexp.MustCompile(`forgotten-[0-9a-zA-Z_-]+`)

func rowsOf(t testing.TB, handle *sql.DB, query string) (all []string) {
	rows, err := handle.QueryContext(ctx, query)
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	columns, err := rows.Columns()
	require.NoError(t, err)
	for rows.Next() {
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		require.NoError(t, rows.Scan(into...))
		all = append(all, fmt.Sprint(values...))
	}
	require.NoError(t, rows.Err())
	return all
}

func init() {
	processes["episode"] = func() int {
		n, err := strconv.Atoi(os.Getenv("HEED_TEST_DIE"))
		if err == nil {
			err = dying(os.Getenv("HEED_TEST_NAME"), os.Getenv("HEED_TEST_DSN"), n)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
}

// dying makes the call of an episode, and kills the process before its n-th statement.
func dying(name, file string, n int) error {
	i := slices.IndexFunc(episodes, func(e episode) bool { return e.name == name })
	if i < 0 {
		return fmt.Errorf("no episode %q", name)
	}
	plain, err := sql.Open("sqlite", file)
	if err != nil {
		return err
	}
	defer func() { _ = plain.Close() }()
	d := &mortal{engine: plain.Driver(), dsn: file}
	handle := sql.OpenDB(d)
	defer func() { _ = handle.Close() }()
	return within(handle, func(ctx context.Context, st store.Store) error {
		d.left.Store(int64(n)) // opening has its statements before
		return episodes[i].call(ctx, st)
	})
}

// A mortal driver kills the process when its statements are used up.
type mortal struct {
	engine driver.Driver
	dsn    string
	left   atomic.Int64 // 0: for ever
}

func (m *mortal) Connect(context.Context) (driver.Conn, error) {
	conn, err := m.engine.Open(m.dsn)
	return &mortalConn{conn, m}, err
}

// statement is called before each.
func (m *mortal) statement() {
	if m.left.Load() > 0 && m.left.Add(-1) == 0 {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // until it is dead
	}
}

func (m *mortal) Driver() driver.Driver { return m.engine }

type mortalConn struct {
	driver.Conn
	of *mortal
}

func (c *mortalConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	c.of.statement()
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
}

func (c *mortalConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.of.statement()
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
}

func (c *mortalConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	c.of.statement()
	tx, err := c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts)
	return &mortalTx{tx, c.of}, err
}

func (c *mortalConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	stmt, err := c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, query)
	return &mortalStmt{stmt, c.of}, err
}

type mortalTx struct {
	driver.Tx
	of *mortal
}

func (t *mortalTx) Commit() error {
	t.of.statement()
	return t.Tx.Commit()
}

type mortalStmt struct {
	driver.Stmt
	of *mortal
}

func (s *mortalStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	s.of.statement()
	return s.Stmt.(driver.StmtExecContext).ExecContext(ctx, args)
}

func (s *mortalStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	s.of.statement()
	return s.Stmt.(driver.StmtQueryContext).QueryContext(ctx, args)
}

package enginetest_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
)

// noted is an outcome with a record of it.
func noted(id string) store.Batch {
	return store.Batch{
		Observations: []evidence.Observation{observe(id, time.Now())},
		Records: []store.Record{{Ref: store.Ref{Kind: "note", ID: id}, Revision: store.Once,
			At: time.Now(), Keys: []string{"k"}, Body: store.Of(id)}},
	}
}

// open opens the store of a handle, without a cache.
func open(t testing.TB, handle *sql.DB, dialect sqlstore.Dialect) *sqlstore.Store {
	st, err := sqlstore.Open(ctx, handle, dialect, sqlstore.Config{NoCache: true})
	require.NoError(t, err)
	require.NoError(t, st.Declare(ctx, store.Kind{Name: "note"}))
	return st
}

// both returns how many outcomes and how many records of them there are, which have to be as many.
func notedIn(t testing.TB, st *sqlstore.Store) (n uint64) {
	parts, err := gather(st.List(ctx, store.CellQuery{Kind: arm.Kind, Scope: arm.Scope}))
	require.NoError(t, err)
	for _, p := range parts {
		n += p.Tally.N()
	}
	records, err := gather(st.Find(ctx, store.Query{Kind: "note", Keys: []string{"k"}}))
	require.NoError(t, err)
	require.Len(t, records, int(n))
	return n
}

// Where transactions of the host read and write beside the store's own, all of them go through.
func TestStoreInHostsTransactions(t *testing.T) {
	onEach(t, func(t *testing.T, at place) {
		handle := ofHost(at).handle(t)
		_, err := handle.Exec("CREATE TABLE host (what TEXT PRIMARY KEY)")
		require.NoError(t, err)
		st := open(t, handle, at.dialect)
		hosts := func(id string) error {
			tx, err := handle.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			defer tx.Rollback() //nolint:errcheck // it does nothing after the commit
			var n int
			if err := tx.QueryRow("SELECT count(*) FROM host").Scan(&n); err != nil {
				return err
			}
			if _, err := st.CommitTx(ctx, tx, noted(id)); err != nil {
				return err
			}
			if _, err := tx.Exec("INSERT INTO host VALUES ($1)", id); err != nil {
				return err
			}
			return tx.Commit()
		}
		const writers, each = 4, 10
		var wait sync.WaitGroup
		for w := range writers {
			wait.Go(func() {
				for i := range each {
					assert.NoError(t, hosts(fmt.Sprint("host's ", w, i)))
				}
			})
			wait.Go(func() {
				for i := range each {
					_, err := st.Commit(ctx, noted(fmt.Sprint("store's ", w, i)))
					assert.NoError(t, err)
				}
			})
		}
		wait.Wait()
		assert.EqualValues(t, 2*writers*each, notedIn(t, st))
	})
}

// Records that the host takes back do not count towards the limit of their kind.
func TestLimitAfterTheHostsRollback(t *testing.T) {
	onEach(t, func(t *testing.T, at place) {
		handle := ofHost(at).handle(t)
		st := open(t, handle, at.dialect)
		require.NoError(t, st.Declare(ctx, store.Kind{Name: "note", Limits: store.Limits{Most: 1}}))
		_, err := st.Commit(ctx, noted("first"))
		require.NoError(t, err)
		tx, err := handle.BeginTx(ctx, nil)
		require.NoError(t, err)
		_, err = st.CommitTx(ctx, tx, noted("taken back"))
		require.NoError(t, err)
		require.NoError(t, tx.Rollback())
		_, err = st.Commit(ctx, noted("second"))
		require.NoError(t, err)
		left, err := gather(st.Find(ctx, store.Query{Kind: "note"}))
		require.NoError(t, err)
		require.Len(t, left, 1)
		assert.Equal(t, "second", left[0].ID)
	})
}

// Batches that are refused leave a transaction as it was, and reads beside it see nothing of it.
func TestRefusedInHostsTransaction(t *testing.T) {
	onEach(t, func(t *testing.T, at place) {
		handle := ofHost(at).handle(t)
		st := open(t, handle, at.dialect)
		_, err := st.Commit(ctx, noted("before"))
		require.NoError(t, err)
		tx, err := handle.BeginTx(ctx, nil)
		require.NoError(t, err)
		defer tx.Rollback() //nolint:errcheck // it does nothing after the commit
		_, err = st.CommitTx(ctx, tx, noted("meanwhile"))
		require.NoError(t, err)
		wrong := noted("wrong")
		wrong.Expect = []store.Precondition{{Ref: store.Ref{Kind: "note", ID: "before"},
			Revision: 1 << 40}}
		_, err = st.CommitTx(ctx, tx, wrong)
		require.ErrorIs(t, err, heed.ErrConflict)
		known := noted("before")
		known.ID = "before"
		receipts, err := st.CommitTx(ctx, tx, known, noted("beside one that is known"))
		require.NoError(t, err)
		assert.True(t, receipts[0].Duplicate)
		assert.EqualValues(t, 1, notedIn(t, st))
		require.NoError(t, tx.Commit())
		assert.EqualValues(t, 3, notedIn(t, st))
	})
}

// A transaction that promises or sees less than the store is refused, and stays usable.
func TestStoreRefusesWeakTransactions(t *testing.T) {
	refused := func(t *testing.T, st *sqlstore.Store, tx *sql.Tx, err error) {
		require.NoError(t, err)
		defer tx.Rollback() //nolint:errcheck // it does nothing after the commit
		_, err = st.CommitTx(ctx, tx, noted("1"))
		var fault *heed.InputError
		require.ErrorAs(t, err, &fault)
		assert.Equal(t, "transaction", fault.Field)
		require.NoError(t, tx.Commit())
		assert.Zero(t, notedIn(t, st))
	}
	onEach(t, func(t *testing.T, at place) {
		if at.dialect == sqlstore.Postgres {
			handle := at.handle(t)
			st := open(t, handle, at.dialect)
			for _, level := range []sql.IsolationLevel{sql.LevelRepeatableRead, sql.LevelSerializable} {
				tx, err := handle.BeginTx(ctx, &sql.TxOptions{Isolation: level})
				refused(t, st, tx, err)
			}
			return
		}
		at.handle(t)
		at.dsn += "?_pragma=synchronous(0)&_txlock=immediate"
		handle, err := at.open()
		require.NoError(t, err)
		t.Cleanup(func() { _ = handle.Close() })
		st := open(t, handle, at.dialect)
		inUse, err := handle.Conn(ctx) // the connection that heed had: the transaction's is another
		require.NoError(t, err)
		tx, err := handle.BeginTx(ctx, nil)
		refused(t, st, tx, err)
		require.NoError(t, inUse.Close())
	})
}

// A durable store's commits are durable on each connection of a handle, also after a relaxed store
// has used it.
func TestStoresOfOneHandle(t *testing.T) {
	for _, b := range files() {
		at := b.place(t)
		at.dsn += "?_pragma=synchronous(0)"
		handle, err := at.open()
		require.NoError(t, err)
		t.Cleanup(func() { _ = handle.Close() })
		handle.SetMaxOpenConns(1)
		for i := range 2 {
			for dialect, synchronous := range map[sqlstore.Dialect]string{sqlstore.SQLite: "2",
				sqlstore.SQLiteRelaxed: "1"} {
				st := open(t, handle, dialect)
				_, err := st.Commit(ctx, noted(fmt.Sprint(dialect, i)))
				require.NoError(t, err)
				for pragma, want := range map[string]string{"journal_mode": "wal",
					"synchronous": synchronous, "busy_timeout": "10000"} {
					var got string
					require.NoError(t, handle.QueryRow("PRAGMA "+pragma).Scan(&got))
					assert.Equal(t, want, got, "%s of %s, %s", pragma, b.name, dialect)
				}
			}
		}
	}
}

// A transaction of the host that adds, and then takes away, waits for those that add, and they for
// it. PostgreSQL takes one of them back. A commit of the store's own is made again.
func TestStoreDeadlock(t *testing.T) {
	handle := postgresSchema(t).handle(t)
	st := open(t, handle, sqlstore.Postgres)
	_, err := st.Commit(ctx, noted("before"))
	require.NoError(t, err)
	tx, err := handle.BeginTx(ctx, nil)
	require.NoError(t, err)
	defer tx.Rollback() //nolint:errcheck // it does nothing after the commit
	_, err = st.CommitTx(ctx, tx, noted("host's"))
	require.NoError(t, err)
	var wait sync.WaitGroup
	wait.Go(func() {
		_, err := st.Commit(ctx, noted("another's"))
		assert.NoError(t, err)
	})
	require.Eventually(t, func() bool {
		var waiting int
		err := handle.QueryRow(`SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()
			AND query LIKE '%heed_commit%'`).Scan(&waiting)
		return err == nil && waiting > 0
	}, 10*time.Second, 10*time.Millisecond)
	_, err = st.CommitTx(ctx, tx, store.Batch{Retract: []string{"before"}})
	if err == nil {
		require.NoError(t, tx.Commit())
	} else { // it was the host's that was taken back
		require.NoError(t, tx.Rollback())
	}
	wait.Wait()
	parts, err := gather(st.List(ctx, store.CellQuery{Kind: arm.Kind, Scope: arm.Scope}))
	require.NoError(t, err)
	assert.EqualValues(t, 2, parts[0].Tally.N(), "before and another's, or the host's and another's")
}

// A connection that could not be told to wait again, because an interrupt came late, does not go
// back to the host, whose statements would fail at once.
func TestAConnectionThatDoesNotWaitIsClosed(t *testing.T) {
	at := sqliteFile(t, lites[0])
	at.dsn += "?_pragma=busy_timeout(77)"
	driver, handle := hookedAt(t, at)
	defer func() { require.NoError(t, handle.Close()) }()
	handle.SetMaxOpenConns(1)
	st := open(t, handle, sqlstore.SQLite)
	failed := 0
	driver.set(func(statement string) error {
		if statement != "PRAGMA busy_timeout = 10000" {
			return nil
		}
		failed++
		return errors.New("interrupted")
	})
	_, err := st.Commit(ctx, noted("a"))
	require.NoError(t, err)
	driver.set(nil)
	assert.Positive(t, failed)
	var busy int
	require.NoError(t, handle.QueryRow("PRAGMA busy_timeout").Scan(&busy))
	assert.Equal(t, 77, busy, "it is a new one")
}

// TestStoreIsCutOff ends the context of a commit at each of its steps. Then all of it is there or
// nothing, also inside a transaction that the host commits nevertheless, and the connection can be
// used again.
func TestStoreIsCutOff(t *testing.T) {
	skipRaced(t)
	onEach(t, func(t *testing.T, at place) {
		if at.dialect == sqlstore.SQLite {
			// where the pool opens another
			at.dsn += "?_pragma=busy_timeout(1)&_pragma=synchronous(full)&_txlock=immediate"
		}
		handle := at.handle(t)
		handle.SetMaxOpenConns(1)
		st := open(t, handle, at.dialect)
		failed := 0
		for n := range rounds(60, 150) {
			before := notedIn(t, st)
			_, failure := st.Commit(newCounting(n+1), noted(fmt.Sprint("own", n)),
				noted(fmt.Sprint("own too", n)))
			if at.dialect == sqlstore.SQLite {
				var busy int
				require.NoError(t, handle.QueryRow("PRAGMA busy_timeout").Scan(&busy))
				require.NotZero(t, busy, "cut off at %d", n+1)
			}
			if failure != nil && at.dialect == sqlstore.Postgres {
				settle(t, handle)
			}
			after := notedIn(t, st)
			if failure == nil {
				require.Equal(t, before+2, after)
			}
			require.Contains(t, []uint64{before, before + 2}, after, "cut off at %d", n+1)
			tx, err := handle.BeginTx(ctx, nil)
			require.NoError(t, err)
			if _, err := st.CommitTx(newCounting(n+1), tx, noted(fmt.Sprint("host's", n)),
				noted(fmt.Sprint("host's too", n))); err != nil {
				failed++
			}
			_ = tx.Commit() // which may have been taken back
			require.Contains(t, []uint64{after, after + 2}, notedIn(t, st), "cut off at %d", n+1)
		}
		assert.Greater(t, failed, 10)
	})
}

// settle waits for the end of a session that was cut off. A COMMIT that was sent goes on in the
// server.
func settle(t *testing.T, handle *sql.DB) {
	require.Eventually(t, func() bool {
		var sessions int
		err := handle.QueryRow(`SELECT count(*) FROM pg_stat_activity
			WHERE backend_type = 'client backend' AND state <> 'idle' AND pid <> pg_backend_pid() AND datname = current_database()`).Scan(&sessions)
		return err == nil && sessions == 0
	}, 10*time.Second, time.Millisecond)
}

// newer makes tables look like those of a program to come. It waits for those who write, and
// returns how many ids they wrote.
func newer(handle *sql.DB, dialect sqlstore.Dialect) (n int, err error) {
	conn, err := handle.Conn(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Close() //nolint:errcheck // it goes back to the pool
	begin := []string{"PRAGMA busy_timeout = 10000", "BEGIN IMMEDIATE"}
	if dialect == sqlstore.Postgres {
		begin = []string{"BEGIN", "LOCK TABLE heed_store IN ACCESS EXCLUSIVE MODE"}
	}
	for _, statement := range begin {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return 0, err
		}
	}
	if _, err := conn.ExecContext(ctx, "UPDATE heed_store SET version = 1000"); err != nil {
		return 0, err
	}
	time.Sleep(20 * time.Millisecond) // in which others come to wait
	err = conn.QueryRowContext(ctx, "SELECT count(*) FROM heed_id").Scan(&n)
	_, failure := conn.ExecContext(ctx, "COMMIT")
	return n, errors.Join(err, failure)
}

// When a newer program has changed the tables, one that runs on writes nothing more, and says so.
func TestTwoVersions(t *testing.T) {
	onEach(t, func(t *testing.T, at place) {
		handle := at.handle(t)
		st := open(t, handle, at.dialect)
		_, err := st.Commit(ctx, noted("before"))
		require.NoError(t, err)
		var wait sync.WaitGroup
		for w := range 4 {
			wait.Go(func() {
				for i := 0; ; i++ {
					if _, err := st.Commit(ctx, noted(fmt.Sprint(w, " ", i))); err != nil {
						var old *sqlstore.SchemaError
						assert.ErrorAs(t, err, &old)
						return
					}
				}
			})
		}
		time.Sleep(20 * time.Millisecond)
		written, err := newer(handle, at.dialect)
		require.NoError(t, err)
		wait.Wait()
		var n int
		require.NoError(t, handle.QueryRow("SELECT count(*) FROM heed_id").Scan(&n))
		assert.Equal(t, written, n, "nothing is written with newer tables")
		assert.EqualValues(t, n, notedIn(t, st), "what is there can be read")
		_, failure := sqlstore.Open(ctx, handle, at.dialect)
		for what, err := range map[string]error{
			"Open": failure, "Declare": st.Declare(ctx, store.Kind{Name: "new"}),
			"Sweep":  st.Sweep(ctx, time.Time{}),
			"Forget": store.Run(ctx, st, store.Job{Forget: []string{"ann"}}),
		} {
			var old *sqlstore.SchemaError
			require.ErrorAs(t, err, &old, what)
			assert.Equal(t, 1000, old.Found)
			assert.ErrorContains(t, err, "too old")
		}
	})
}

// A tool learns what is wrong with a database, and makes no tables in it.
func TestCheck(t *testing.T) {
	onEach(t, func(t *testing.T, at place) {
		handle, err := at.open()
		require.NoError(t, err)
		defer handle.Close() //nolint:errcheck // nothing was written
		for range 2 {
			_, _, err := sqlstore.Check(ctx, handle, at.dialect, false)
			require.ErrorIs(t, err, heed.ErrNotFound)
			_, err = sqlstore.Open(ctx, handle, at.dialect, sqlstore.Config{Existing: true})
			require.ErrorIs(t, err, heed.ErrNotFound)
		}
		open(t, handle, at.dialect)
		faults, _, err := sqlstore.Check(ctx, handle, at.dialect, false)
		require.NoError(t, err)
		require.Empty(t, faults)
		_, err = sqlstore.Open(ctx, handle, at.dialect, sqlstore.Config{Existing: true})
		require.NoError(t, err)
		_, err = handle.Exec("DROP TABLE heed_lost")
		require.NoError(t, err)
		faults, _, err = sqlstore.Check(ctx, handle, at.dialect, false)
		require.NoError(t, err)
		require.Equal(t, []string{"the table heed_lost is missing: restore the store from a copy"},
			faults)
		for _, version := range []int{1, 2, 3, 4, 5, 1000} { // all but the last are of earlier layouts
			_, err = handle.Exec(fmt.Sprint("UPDATE heed_store SET version = ", version))
			require.NoError(t, err)
			_, err = sqlstore.Open(ctx, handle, at.dialect)
			var fault *sqlstore.SchemaError
			require.ErrorAs(t, err, &fault)
			require.Equal(t, version, fault.Found)
			if version < fault.Known {
				require.ErrorContains(t, err, "earlier layout")
			}
		}
		_, _, err = sqlstore.Check(ctx, handle, at.dialect, false)
		require.ErrorAs(t, err, new(*sqlstore.SchemaError))
		_, _, err = sqlstore.Check(ctx, handle, 0, false)
		require.ErrorAs(t, err, new(*heed.ConfigError))
	})
}

// An outcome that is too far ahead of the store's clock is refused, and nothing is swept that this
// clock would keep, whatever a caller says that the time is.
func TestStoreClock(t *testing.T) {
	onEach(t, func(t *testing.T, at place) {
		handle := at.handle(t)
		st := open(t, handle, at.dialect)
		_, err := st.Commit(ctx, noted("1"))
		require.NoError(t, err)
		early := noted("early")
		early.Observations[0].At = time.Now().Add(evidence.MaxSkew + time.Minute)
		_, err = st.Commit(ctx, early)
		var fault *heed.InputError
		require.ErrorAs(t, err, &fault)
		require.NoError(t, st.Sweep(ctx, time.Now().AddDate(10, 0, 0)))
		receipts, err := st.Commit(ctx, noted("1"))
		require.NoError(t, err)
		assert.Len(t, receipts[0].Duplicates, 1, "a sweep has forgotten what the clock keeps")
		later, err := sqlstore.Open(ctx, handle, at.dialect,
			sqlstore.Config{Now: func() time.Time { return time.Now().AddDate(1, 0, 0) }})
		require.NoError(t, err)
		require.NoError(t, later.Declare(ctx, store.Kind{Name: "note"}))
		_, err = later.Commit(ctx, early)
		require.NoError(t, err, "the host's clock counts, where it has one")
	})
}

// TestLeavingWaitsForCommits that run: a commit for a tenant has seen that the tenant is there.
func TestLeavingWaitsForCommits(t *testing.T) {
	onEach(t, func(t *testing.T, at place) {
		handle := ofHost(at).handle(t)
		st := open(t, handle, at.dialect)
		tx, err := handle.BeginTx(ctx, nil)
		require.NoError(t, err)
		_, err = st.CommitTx(ctx, tx, noted("on its way"))
		require.NoError(t, err)
		left := make(chan error)
		go func() { left <- store.Run(ctx, st, store.Job{Leave: "acme", At: time.Now()}) }()
		select {
		case err := <-left:
			t.Error("it did not wait", err)
		case <-time.After(200 * time.Millisecond):
		}
		require.NoError(t, tx.Commit())
		require.NoError(t, <-left)
	})
}

// Commits that expect the same tenant to stay do not wait for each other.
func TestCommitsTogetherExpectATenantToStay(t *testing.T) {
	onEach(t, func(t *testing.T, at place) {
		if at.dialect != sqlstore.Postgres {
			t.Skip("SQLite has one writer at a time")
		}
		handle := ofHost(at).handle(t)
		st := open(t, handle, at.dialect)
		stays := func(id string) store.Batch {
			b := noted(id)
			b.Observations = nil
			b.Expect = []store.Precondition{{Ref: store.Ref{Kind: "heed.leaving", ID: "acme"}}}
			return b
		}
		tx, err := handle.BeginTx(ctx, nil)
		require.NoError(t, err)
		defer tx.Rollback() //nolint:errcheck // the test is over
		_, err = st.CommitTx(ctx, tx, stays("on its way"))
		require.NoError(t, err)
		limited, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		_, err = st.Commit(limited, stays("another"))
		assert.NoError(t, err)
	})
}

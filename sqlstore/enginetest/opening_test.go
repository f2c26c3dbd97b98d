package enginetest_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
)

// Somebody who writes nearly all the time does not keep others from writing for long, nor at all
// from opening what needs no change.
func TestBusyWriter(t *testing.T) {
	skipRaced(t)
	for _, driver := range lites {
		t.Run(driver, func(t *testing.T) {
			at := sqliteFile(t, driver)
			st := at.store(t, sqlstore.Config{})
			handle, err := at.open()
			require.NoError(t, err)
			defer func() { require.NoError(t, handle.Close()) }()
			busy, err := handle.Conn(ctx)
			require.NoError(t, err)
			do := func(statement string) {
				_, err := busy.ExecContext(ctx, statement)
				require.NoError(t, err)
			}
			do("PRAGMA busy_timeout = 10000") // the other writer may have begun, and be slow
			for i := range 3 {
				do("BEGIN IMMEDIATE")
				done := make(chan error, 1)
				go func() {
					_, err := st.Commit(ctx, store.Batch{
						Observations: []evidence.Observation{observe(fmt.Sprint(i), time.Now())}})
					done <- err
				}()
				// SQLite itself asks after 328 ms, and then every 100 ms: never while nobody writes.
				time.Sleep(345 * time.Millisecond)
				waiting, gaps := true, 0
				for ; waiting && gaps < 20; gaps++ {
					do("COMMIT")
					select {
					case err := <-done:
						require.NoError(t, err)
						waiting = false
					case <-time.After(50 * time.Millisecond):
					}
					do("BEGIN IMMEDIATE")
					if waiting {
						time.Sleep(50 * time.Millisecond)
					}
				}
				do("COMMIT")
				require.False(t, waiting, "it missed %d opportunities", gaps)
			}

			do("BEGIN IMMEDIATE")
			within, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			_, err = sqlstore.Open(within, handle, at.dialect)
			assert.NoError(t, err)
			do("COMMIT")
			require.NoError(t, busy.Close())
		})
	}
}

func TestSQLiteIsSetUp(t *testing.T) {
	for _, driver := range lites {
		at := sqliteFile(t, driver)
		// what the host asks for is not weaker than what is promised
		at.dsn += "?_pragma=synchronous(0)"
		handle, err := at.open()
		require.NoError(t, err)
		handle.SetMaxOpenConns(1)
		st, err := sqlstore.Open(ctx, handle, at.dialect)
		require.NoError(t, err)
		_, err = st.Commit(ctx, store.Batch{Observations: []evidence.Observation{observe("1",
			time.Now())}})
		require.NoError(t, err)
		wants := map[string]string{"journal_mode": "wal", "synchronous": "2", "busy_timeout": "10000",
			"wal_autocheckpoint": "4000"}
		for pragma, want := range wants {
			var got string
			require.NoError(t, handle.QueryRow("PRAGMA "+pragma).Scan(&got))
			assert.Equal(t, want, got, "%s of %s", pragma, driver)
		}
		require.NoError(t, handle.Close())
	}
}

// The data source name of this host says when the log goes into the file: never.
func TestSQLiteKeepsTheHostsLog(t *testing.T) {
	at := sqliteFile(t, "sqlite3")
	at.dsn += "?_pragma=wal_autocheckpoint(0)"
	handle := at.handle(t)
	handle.SetMaxOpenConns(1)
	_, err := open(t, handle, at.dialect).Commit(ctx,
		store.Batch{Observations: []evidence.Observation{observe("1", time.Now())}})
	require.NoError(t, err)
	var got int
	require.NoError(t, handle.QueryRow("PRAGMA wal_autocheckpoint").Scan(&got))
	assert.Zero(t, got)
}

// The second store finds a connection of the pool as the first has set it up, and lengthens the log
// of connections that come later all the same.
func TestTwoStoresLengthenTheLog(t *testing.T) {
	at := sqliteFile(t, "sqlite3")
	handle := at.handle(t)
	handle.SetMaxOpenConns(1)
	commit := func(st *sqlstore.Store, id string) {
		_, err := st.Commit(ctx, store.Batch{Observations: []evidence.Observation{observe(id,
			time.Now())}})
		require.NoError(t, err)
	}
	commit(open(t, handle, at.dialect), "1")
	second := open(t, handle, at.dialect)
	handle.SetMaxIdleConns(0) // the next connection is new
	handle.SetMaxIdleConns(1)
	commit(second, "2")
	var got int
	require.NoError(t, handle.QueryRow("PRAGMA wal_autocheckpoint").Scan(&got))
	assert.Equal(t, 4000, got)
}

// A quick commit asks for nothing before it adds. One whose id is known, or whose cell has a
// restart, is made all the same.
func TestQuickCommit(t *testing.T) {
	h, handle := hookedAt(t, sqliteFile(t, lites[0]))
	defer func() { require.NoError(t, handle.Close()) }()
	st := open(t, handle, sqlstore.SQLite)
	commit := func(b store.Batch) (store.Receipt, []string) {
		var statements []string
		h.set(func(text string) error {
			statements = append(statements, text)
			return nil
		})
		receipts, err := st.Commit(ctx, b)
		h.set(nil)
		require.NoError(t, err)
		return receipts[0], statements
	}
	begun := func(statements []string, with string) (n int) {
		for _, text := range statements {
			if strings.HasPrefix(text, with) {
				n++
			}
		}
		return n
	}
	now := time.Now().Truncate(time.Microsecond)
	adds := func(ids ...string) store.Batch {
		var b store.Batch
		for _, id := range ids {
			b.Observations = append(b.Observations, observe(id, now))
		}
		b.PartsOf = store.CellsOf(b.Observations...)
		return b
	}
	for n, id := range []string{"1", "2"} { // the second finds the cell
		receipt, statements := commit(adds(id))
		assert.Zero(t, begun(statements, "SELECT"), statements)
		assert.Equal(t, 1, begun(statements, "BEGIN"))
		require.Len(t, receipt.Parts, 1)
		assert.EqualValues(t, n+1, receipt.Parts[0].Tally.N())
	}
	receipt, statements := commit(adds("2", "3"))
	assert.Equal(t, 2, begun(statements, "BEGIN"))
	assert.Equal(t, []string{"2"}, receipt.Duplicates)
	require.Len(t, receipt.Parts, 1)
	assert.EqualValues(t, 3, receipt.Parts[0].Tally.N())
	commit(store.Batch{Restart: []store.Restart{{Cell: observe("1", now).Cell,
		At: now.Add(time.Second)}}})
	receipt, statements = commit(adds("4")) // which happened before
	assert.Equal(t, 2, begun(statements, "BEGIN"))
	assert.Empty(t, receipt.Parts)
}

// The error asks for the cause, and not for a table that no database of this engine has.
func TestOtherDialect(t *testing.T) {
	for _, driver := range lites {
		handle, err := sqliteFile(t, driver).open()
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, handle.Close()) })
		_, err = sqlstore.Open(ctx, handle, sqlstore.Postgres)
		require.ErrorContains(t, err, "sqlstore: open: "+
			"the database does not answer as PostgreSQL does: is the dialect right?", driver)
	}
}

// TestACommitIsCached in SQLite: what it changed is not read back.
func TestACommitIsCached(t *testing.T) {
	h, handle := hookedAt(t, sqliteFile(t, lites[0]))
	defer func() { require.NoError(t, handle.Close()) }()
	st, err := sqlstore.Open(ctx, handle, sqlstore.SQLite)
	require.NoError(t, err)
	var statements atomic.Int64
	for n := range 3 {
		began := time.Now()
		var all sync.WaitGroup
		for k := range 8 {
			all.Go(func() {
				_, err := st.Commit(ctx, store.Batch{Observations: []evidence.Observation{
					observe(fmt.Sprint(n, " ", k), time.Now())}})
				assert.NoError(t, err)
			})
		}
		all.Wait()
		statements.Store(0)
		h.set(func(string) error {
			statements.Add(1)
			return nil
		})
		var s store.Snapshot
		require.NoError(t, st.Read(ctx, &s, []evidence.Cell{arm}, nil))
		h.set(nil)
		require.Len(t, s.Parts, 1)
		assert.EqualValues(t, 8*(n+1), s.Parts[0].Tally.N())
		if time.Since(began) < time.Second { // a cell is then read again
			assert.Zero(t, statements.Load())
		}
	}
}

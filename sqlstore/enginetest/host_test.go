package enginetest_test

import (
	"database/sql"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/sqlstore"
)

// ofHost is a place whose handle is set up as docs/stores.md says for transactions of the host's own.
func ofHost(at place) place {
	if at.dialect == sqlstore.SQLite {
		at.dsn += "?_pragma=busy_timeout(10000)&_txlock=immediate"
	}
	return at
}

// TestHostsTransactions: where transactions of the host read and write beside the store's own, all of them go through.
func TestHostsTransactions(t *testing.T) {
	onEach(t, func(t *testing.T, at place) {
		at = ofHost(at)
		handle := at.handle(t)
		_, err := handle.Exec("CREATE TABLE host (what TEXT PRIMARY KEY)")
		require.NoError(t, err)
		db, err := sqlstore.New(ctx, handle, at.dialect)
		require.NoError(t, err)
		store := newEvidence(t, db, sqlstore.EvidenceConfig{NoCache: true})
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
			if _, err := store.CommitTx(ctx, tx, outcome(id)); err != nil {
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
					_, err := store.Commit(ctx, outcome(fmt.Sprint("store's ", w, i)))
					assert.NoError(t, err)
				}
			})
		}
		wait.Wait()
		assert.EqualValues(t, 2*writers*each, count(t, store))
	})
}

// TestReadsBesideATransactionOfTheHost: while a transaction of the host writes, the store reads what was before.
func TestReadsBesideATransactionOfTheHost(t *testing.T) {
	onEach(t, func(t *testing.T, at place) {
		at = ofHost(at)
		handle := at.handle(t)
		db, err := sqlstore.New(ctx, handle, at.dialect)
		require.NoError(t, err)
		store := newEvidence(t, db, sqlstore.EvidenceConfig{NoCache: true})
		add(t, store, observe("before", time.Now()))
		tx, err := handle.BeginTx(ctx, nil)
		require.NoError(t, err)
		defer tx.Rollback() //nolint:errcheck // it does nothing after the commit
		_, err = store.CommitTx(ctx, tx, outcome("meanwhile"))
		require.NoError(t, err)
		assert.EqualValues(t, 1, count(t, store))
		require.NoError(t, tx.Commit())
		assert.EqualValues(t, 2, count(t, store))
	})
}

// TestIsolation: a transaction that does not see what was committed meanwhile is refused, and stays usable.
func TestIsolation(t *testing.T) {
	handle := postgresSchema(t).handle(t)
	db, err := sqlstore.New(ctx, handle, sqlstore.Postgres)
	require.NoError(t, err)
	store := newEvidence(t, db, sqlstore.EvidenceConfig{NoCache: true})
	for _, level := range []sql.IsolationLevel{sql.LevelRepeatableRead, sql.LevelSerializable} {
		tx, err := handle.BeginTx(ctx, &sql.TxOptions{Isolation: level})
		require.NoError(t, err)
		_, err = store.CommitTx(ctx, tx, outcome(level.String()))
		var fault *heed.InputError
		require.ErrorAs(t, err, &fault)
		assert.Equal(t, "transaction", fault.Field)
		require.NoError(t, tx.Commit())
	}
	assert.Zero(t, count(t, store))
}

// TestMemoryIsRefused: a database in memory would be another for each connection.
func TestMemoryIsRefused(t *testing.T) {
	for _, driver := range []string{"sqlite", "sqlite3"} {
		handle, err := sql.Open(driver, ":memory:")
		require.NoError(t, err)
		t.Cleanup(func() { _ = handle.Close() })
		require.ErrorContains(t, sqlstore.Migrate(ctx, handle, sqlstore.SQLite), "in memory")
	}
}

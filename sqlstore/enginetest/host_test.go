package enginetest_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/sqlstore"
)

// ofHost is a place whose handle is set up as docs/stores.md says for transactions of the host's own.
func ofHost(at place) place {
	if at.dialect == sqlstore.SQLite {
		at.dsn += "?_pragma=busy_timeout(10000)&_pragma=synchronous(full)&_txlock=immediate"
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
		defer tx.Rollback() //nolint:errcheck // it does nothing after the commit
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

// TestWeakerTransactionIsRefused: what a transaction of the host does not promise, the store does not promise either.
func TestWeakerTransactionIsRefused(t *testing.T) {
	for _, b := range backends[:2] {
		at := b.place(t)
		at.handle(t)
		at.dsn += "?_pragma=synchronous(0)&_txlock=immediate"
		handle, err := at.open()
		require.NoError(t, err)
		t.Cleanup(func() { _ = handle.Close() })
		db, err := sqlstore.New(ctx, handle, at.dialect)
		require.NoError(t, err)
		store := newEvidence(t, db, sqlstore.EvidenceConfig{NoCache: true})
		inUse, err := handle.Conn(ctx) // the connection that heed had: the transaction's is another
		require.NoError(t, err)
		tx, err := handle.BeginTx(ctx, nil)
		require.NoError(t, err)
		defer tx.Rollback() //nolint:errcheck // it does nothing after the commit
		_, err = store.CommitTx(ctx, tx, outcome("1"))
		var fault *heed.InputError
		require.ErrorAs(t, err, &fault, b.name)
		assert.Equal(t, "transaction", fault.Field)
		require.NoError(t, tx.Commit())
		require.NoError(t, inUse.Close())
		assert.Zero(t, count(t, store))
	}
}

// TestDialectsOfOneHandle: what is written as durable is so, whoever used the connection before.
func TestDialectsOfOneHandle(t *testing.T) {
	for _, b := range backends[:2] {
		at := b.place(t)
		handle := at.handle(t)
		handle.SetMaxOpenConns(1)
		for range 2 {
			for dialect, want := range map[sqlstore.Dialect]int{sqlstore.SQLite: 2, sqlstore.SQLiteRelaxed: 1} {
				db, err := sqlstore.New(ctx, handle, dialect)
				require.NoError(t, err)
				_, err = newEvidence(t, db, sqlstore.EvidenceConfig{}).Commit(ctx, outcome(dialect.String()))
				require.NoError(t, err)
				var synchronous int
				require.NoError(t, handle.QueryRow("PRAGMA synchronous").Scan(&synchronous))
				assert.Equal(t, want, synchronous, "%s of %s", dialect, b.name)
			}
		}
	}
}

// TestDeadlock: a transaction of the host that adds, and then takes away, waits for those that add, and they for it. PostgreSQL
// takes one of them back; a commit of the store's own is made again.
func TestDeadlock(t *testing.T) {
	handle := postgresSchema(t).handle(t)
	db, err := sqlstore.New(ctx, handle, sqlstore.Postgres)
	require.NoError(t, err)
	store := newEvidence(t, db, sqlstore.EvidenceConfig{NoCache: true})
	add(t, store, observe("before", time.Now()))
	tx, err := handle.BeginTx(ctx, nil)
	require.NoError(t, err)
	defer tx.Rollback() //nolint:errcheck // it does nothing after the commit
	_, err = store.CommitTx(ctx, tx, outcome("host's"))
	require.NoError(t, err)
	var wait sync.WaitGroup
	wait.Go(func() {
		_, err := store.Commit(ctx, outcome("another's"))
		assert.NoError(t, err)
	})
	require.Eventually(t, func() bool {
		var waiting int
		err := handle.QueryRow(`SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()
			AND query LIKE '%heed_tallies%'`).Scan(&waiting)
		return err == nil && waiting > 0
	}, 10*time.Second, 10*time.Millisecond)
	_, err = store.CommitTx(ctx, tx, evidence.Batch{Retract: []string{"before"}})
	if err == nil {
		require.NoError(t, tx.Commit())
	} else { // it was the host's that was taken back
		require.NoError(t, tx.Rollback())
	}
	wait.Wait()
	assert.EqualValues(t, 2, count(t, store), "before and another's, or the host's and another's")
}

// TestImportIsAlone: what others are about to write is waited for, so that tables that are not empty are seen to be so.
func TestImportIsAlone(t *testing.T) {
	source := postgresSchema(t).db(t)
	add(t, newEvidence(t, source, sqlstore.EvidenceConfig{}), observe("1", time.Now()))
	text := export(t, source)
	at := postgresSchema(t)
	handle := at.handle(t)
	db, err := sqlstore.New(ctx, handle, at.dialect)
	require.NoError(t, err)
	tx, err := handle.BeginTx(ctx, nil)
	require.NoError(t, err)
	defer tx.Rollback() //nolint:errcheck // it does nothing after the commit
	_, err = tx.Exec(`INSERT INTO heed_stream (stream, id, topic, happened, due, deliveries, holder) VALUES ('s', '1', 't', '', 1, 0, '')`)
	require.NoError(t, err)
	imported := make(chan error, 1)
	go func() { imported <- db.Import(ctx, strings.NewReader(text)) }()
	select {
	case err := <-imported:
		require.Fail(t, "it did not wait", "%v", err)
	case <-time.After(300 * time.Millisecond):
	}
	require.NoError(t, tx.Commit())
	require.ErrorIs(t, <-imported, heed.ErrConflict)
}

// TestSweepOfChoicesWaitsForNobody: a choice that somebody is about to change is left for the next sweep.
func TestSweepOfChoicesWaitsForNobody(t *testing.T) {
	at := postgresSchema(t)
	handle := at.handle(t)
	db, err := sqlstore.New(ctx, handle, at.dialect)
	require.NoError(t, err)
	ahead := time.Now().Add(365 * 24 * time.Hour)
	choices, err := sqlstore.NewChoices(db, sqlstore.ChoicesConfig{Now: func() time.Time { return ahead }})
	require.NoError(t, err)
	for i := range 3 {
		require.NoError(t, choices.Add(ctx, choiceOf(i)))
	}
	left := func() (n int) {
		require.NoError(t, handle.QueryRow("SELECT count(*) FROM heed_choices").Scan(&n))
		return n
	}
	tx, err := handle.BeginTx(ctx, nil)
	require.NoError(t, err)
	defer tx.Rollback() //nolint:errcheck // it does nothing after the commit
	_, err = tx.Exec("UPDATE heed_choices SET ended = 1 WHERE id = $1", choiceOf(1).ID.String())
	require.NoError(t, err)
	soon, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	require.NoError(t, choices.Sweep(soon))
	assert.Equal(t, 1, left())
	require.NoError(t, tx.Commit())
	require.NoError(t, choices.Sweep(soon))
	assert.Zero(t, left())
}

package enginetest_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/sqlstore"
)

// counting is a context that is cancelled when it is asked for the nth time.
type counting struct {
	context.Context
	cancel func()
	left   atomic.Int64
}

func newCounting(n int) *counting {
	c := &counting{}
	c.Context, c.cancel = context.WithCancel(ctx)
	c.left.Store(int64(n))
	return c
}

func (c *counting) ask() {
	if c.left.Add(-1) == 0 {
		c.cancel()
	}
}

func (c *counting) Done() <-chan struct{} { c.ask(); return c.Context.Done() }
func (c *counting) Err() error            { c.ask(); return c.Context.Err() }

// fiveOf returns a batch that adds to five cells.
func fiveOf(name string) (b evidence.Batch) {
	for i := range 5 {
		o := observe(fmt.Sprint(name, i), time.Now())
		o.Cell.Name = fmt.Sprint(i)
		b.Observations = append(b.Observations, o)
	}
	return b
}

func inAll(t testing.TB, store *sqlstore.Evidence) (n uint64) {
	for p, err := range store.List(ctx, arm.Kind, arm.Scope) {
		require.NoError(t, err)
		n += p.Tally.N()
	}
	return n
}

// TestCommitTxIsCutOff: wherever the context of a CommitTx ends, a host that commits nevertheless, and then the batch once more,
// has all of it once.
func TestCommitTxIsCutOff(t *testing.T) {
	skipRaced(t)
	onEach(t, func(t *testing.T, at place) {
		handle := ofHost(at).handle(t)
		db, err := sqlstore.New(ctx, handle, at.dialect)
		require.NoError(t, err)
		store := newEvidence(t, db, sqlstore.EvidenceConfig{NoCache: true})
		failed := 0
		for n := range rounds(60, 150) {
			tx, err := handle.BeginTx(ctx, nil)
			require.NoError(t, err)
			batch := fiveOf(fmt.Sprint(n, " "))
			if _, err := store.CommitTx(newCounting(n+1), tx, batch); err != nil {
				failed++
			}
			_ = tx.Commit() // which may have been taken back
			_, err = store.Commit(ctx, batch)
			require.NoError(t, err)
			require.EqualValues(t, 5*(n+1), inAll(t, store), "cut off at %d", n+1)
		}
		assert.Greater(t, failed, 10)
	})
}

// TestCommitIsCutOff: wherever the context of a commit ends, all of the batch is there or nothing, and the connection is as
// every other.
func TestCommitIsCutOff(t *testing.T) {
	skipRaced(t)
	onEach(t, func(t *testing.T, at place) {
		if at.dialect == sqlstore.SQLite {
			at.dsn += "?_pragma=busy_timeout(1)&_pragma=synchronous(0)" // where the pool opens another
		}
		handle := at.handle(t)
		handle.SetMaxOpenConns(1)
		db, err := sqlstore.New(ctx, handle, at.dialect)
		require.NoError(t, err)
		store := newEvidence(t, db, sqlstore.EvidenceConfig{NoCache: true})
		var before uint64
		for n := range rounds(60, 150) {
			_, err := store.Commit(newCounting(n+1), fiveOf(fmt.Sprint(n, " ")))
			if at.dialect == sqlstore.SQLite {
				var busy int
				require.NoError(t, handle.QueryRow("PRAGMA busy_timeout").Scan(&busy))
				require.NotZero(t, busy, "cut off at %d", n+1)
			}
			after := inAll(t, store)
			if err == nil {
				require.Equal(t, before+5, after)
			}
			require.Contains(t, []uint64{before, before + 5}, after, "cut off at %d", n+1)
			before = after
		}
		if at.dialect == sqlstore.SQLite {
			_, err := store.Commit(ctx, fiveOf("last"))
			require.NoError(t, err)
			var synchronous int
			require.NoError(t, handle.QueryRow("PRAGMA synchronous").Scan(&synchronous))
			assert.Equal(t, 2, synchronous)
		}
	})
}

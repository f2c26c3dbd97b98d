package enginetest_test

import (
	"context"
	"database/sql"
	"iter"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
)

// handle opens a place for as long as the test runs. The tables are there then.
func (p place) handle(t testing.TB) *sql.DB {
	handle, err := p.open()
	require.NoError(t, err)
	t.Cleanup(func() { _ = handle.Close() })
	_, err = sqlstore.Open(ctx, handle, p.dialect)
	require.NoError(t, err)
	return handle
}

var arm = evidence.Cell{Kind: "arm", Scope: "s", Item: "i", Name: "n"}

func observe(id string, at time.Time) evidence.Observation {
	return evidence.Observation{ID: id, Cell: arm, Reward: 1, Weight: 1, At: at}
}

// ofHost is a place whose handle is set up as docs/stores.md says for transactions of the host's
// own.
func ofHost(at place) place {
	if at.dialect == sqlstore.SQLite {
		at.dsn += "?_pragma=busy_timeout(10000)&_pragma=synchronous(full)&_txlock=immediate"
	}
	return at
}

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

func (c *counting) Err() error { c.ask(); return c.Context.Err() }

// A call is what a test does with a store.
type call func(*sqlstore.Store) error

func commits(batches ...store.Batch) call {
	return func(st *sqlstore.Store) error {
		_, err := st.Commit(ctx, batches...)
		return err
	}
}

func gather[T any](seq iter.Seq2[T, error]) (all []T, err error) {
	for one, err := range seq {
		if err != nil {
			return all, err
		}
		all = append(all, one)
	}
	return all, nil
}

func onlyObserve(id string) store.Batch {
	o := observe(id, time.Now())
	o.Source = "ann"
	return store.Batch{Observations: []evidence.Observation{o}}
}

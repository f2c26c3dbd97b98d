package enginetest_test

import (
	"context"
	"database/sql"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/sqlstore"
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

// ofHost is a place whose handle is set up as docs/stores.md says for transactions of the host's own.
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

// A trial is how a call went.
type trial struct {
	hit     bool   // whether there was the operation that was to fail
	failure error  // that the call returned
	left    string // what the tables hold afterwards, but for moments and what is random
}

// arm has the n-th operation from now on fail, or none if n is 0, when the database has forgotten what it has read.
func (d *disk) arm(t testing.TB, handle *sql.DB, n int) {
	_, err := handle.Exec("PRAGMA cache_size = 0; PRAGMA shrink_memory")
	require.NoError(t, err)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ops, d.fail = 0, n
}

// disarm reports whether the operation that was to fail has come.
func (d *disk) disarm() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	hit := d.fail > 0 && d.ops >= d.fail
	d.ops, d.fail = 0, 0
	return hit
}

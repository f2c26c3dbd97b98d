package enginetest_test

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/internal/servertest"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/strategy"
)

// BenchmarkShare sets a choice with its outcome beside a plain insertion of one row in a
// transaction of its own, on the same disk and in turns. The share is how many of the first are
// made in the time of one of the second.
func BenchmarkShare(b *testing.B) {
	for _, backend := range backends {
		for _, recorded := range []bool{false, true} {
			for _, callers := range []int{1, 8, 64} {
				b.Run(fmt.Sprintf("store=%s/recorded=%v/goroutines=%d", backend.name, recorded, callers),
					func(b *testing.B) {
						at := backend.place(b)
						if at.dialect == sqlstore.Postgres {
							at.dsn = durablePostgres(b)
						}
						plain, chosen := inserting(b, at), choosing(b, at, !recorded)
						var rates [2]float64
						for range b.N {
							for range 4 {
								for i, do := range []func() error{plain, chosen} {
									rates[i] += rate(b, callers, 500*time.Millisecond, do)
								}
							}
						}
						b.ReportMetric(rates[0]/float64(4*b.N), "raw/s")
						b.ReportMetric(rates[1]/float64(4*b.N), "chosen/s")
						b.ReportMetric(100*rates[1]/rates[0], "%share")
						b.ReportMetric(0, "ns/op")
					})
			}
		}
	}
}

// durable is a cluster that waits for the disk, as every one does that is not for tests.
var durable struct {
	once sync.Once
	*servertest.Server
	err error
}

func durablePostgres(b *testing.B) string {
	durable.once.Do(func() {
		if durable.Server, durable.err = servertest.New(""); durable.err == nil {
			lastly = append(lastly, durable.Close)
		}
	})
	skipWithout(b, durable.err)
	return durable.DSN()
}

// rate returns how often callers get something done in a second.
func rate(b *testing.B, callers int, during time.Duration, do func() error) float64 {
	var n atomic.Int64
	var all sync.WaitGroup
	began := time.Now()
	for range callers {
		all.Go(func() {
			for time.Since(began) < during {
				if err := do(); err != nil {
					b.Error(err)
					return
				}
				n.Add(1)
			}
		})
	}
	all.Wait()
	return float64(n.Load()) / time.Since(began).Seconds()
}

// pool opens a handle that keeps a connection for each caller.
func (p place) pool(b *testing.B) *sql.DB {
	handle, err := p.open()
	require.NoError(b, err)
	handle.SetMaxIdleConns(64)
	b.Cleanup(func() { _ = handle.Close() })
	return handle
}

// inserting makes a table and returns what adds a row to it.
func inserting(b *testing.B, at place) func() error {
	if at.dialect == sqlstore.SQLite {
		at.dsn = sqliteFile(b, at.driver).dsn
	}
	handle := at.pool(b)
	if at.dialect == sqlstore.SQLite {
		handle.SetMaxOpenConns(1)
		_, err := handle.Exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")
		require.NoError(b, err)
	}
	_, err := handle.Exec("DROP TABLE IF EXISTS plain_row")
	require.NoError(b, err)
	_, err = handle.Exec("CREATE TABLE plain_row (id BIGINT PRIMARY KEY, body TEXT NOT NULL)")
	require.NoError(b, err)
	insert, err := handle.Prepare("INSERT INTO plain_row (id, body) VALUES ($1, $2)")
	require.NoError(b, err)
	var id atomic.Int64
	return func() error {
		_, err := insert.Exec(id.Add(1), "a choice and what came of it")
		return err
	}
}

// choosing returns what makes a choice among three arms for one of 1,000 items, in a session of its
// own, and observes its outcome.
func choosing(b *testing.B, at place, unrecorded bool) func() error {
	st, err := sqlstore.Open(ctx, at.pool(b), at.dialect)
	require.NoError(b, err)
	learner, err := strategy.New(ctx, strategy.Config{
		Store: st, Name: fmt.Sprint("share-", unrecorded), Unrecorded: unrecorded,
		Arms: []strategy.Arm{{ID: "a"}, {ID: "b"}, {ID: "c"}},
	})
	require.NoError(b, err)
	run := rand.Uint64()
	var calls atomic.Int64
	return func() error {
		n := calls.Add(1)
		choice, err := learner.Select(ctx, strategy.Query{Session: fmt.Sprint(run, n),
			Item: fmt.Sprint("item", n%1000), Category: "law"})
		if err == nil {
			_, err = learner.Observe(ctx, strategy.Outcome{Choice: choice, Value: 0.5, Confidence: 0.8})
		}
		return err
	}
}

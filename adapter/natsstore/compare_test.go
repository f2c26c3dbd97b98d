package natsstore_test

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/adapter/natsstore"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

// TestBesidePostgres measures outcomes a second, and the time of a choice, on three servers of NATS
// and on the PostgreSQL of HEED_POSTGRES_DSN, in one run.
func TestBesidePostgres(t *testing.T) {
	dsn := os.Getenv("HEED_POSTGRES_DSN")
	if dsn == "" {
		t.Skip("HEED_POSTGRES_DSN is not set")
	}
	db, err := sql.Open("pgx", dsn)
	require.NoError(t, err)
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(64)
	db.SetMaxIdleConns(64)
	postgres := func() store.Store {
		st, err := sqlstore.Open(ctx, db, sqlstore.Postgres)
		require.NoError(t, err)
		return st
	}
	nodes := func(always bool) func() store.Store {
		c, made := startNodes(t, always), 0
		return func() store.Store {
			made++
			return open(t, c.connect(t, []int{(made - 1) % 3}), natsstore.Config{Name: "load"})
		}
	}
	for _, one := range []struct {
		name string
		open func() store.Store
	}{
		{"PostgreSQL", postgres},
		{"NATS, sync_interval 2m", nodes(false)},
		{"NATS, sync_interval always", nodes(true)},
	} {
		var handles []store.Store
		for _, n := range []int{1, 3} {
			for len(handles) < n {
				handles = append(handles, one.open())
			}
			for _, callers := range []int{1, 8, 64} {
				rate, choice := measured(t, handles, callers)
				t.Logf("%-28s %d programs, %2d callers: %5.0f outcomes a second, a choice in %v",
					one.name, n, callers, rate, choice)
			}
		}
	}
}

// measured has callers choose and tell the outcome for two seconds. It returns how many outcomes a
// second there were, and the median of the time of a choice.
func measured(t *testing.T, handles []store.Store, callers int) (float64, time.Duration) {
	t.Helper()
	var learners []*strategy.Learner
	for _, st := range handles {
		l, err := strategy.New(ctx, strategy.Config{Store: st,
			Arms: []strategy.Arm{{ID: "a"}, {ID: "b"}}})
		require.NoError(t, err)
		learners = append(learners, l)
	}
	var n atomic.Int64
	var mu sync.Mutex
	var choices []time.Duration
	var wait sync.WaitGroup
	began := time.Now()
	for caller := range callers {
		wait.Go(func() {
			l := learners[caller%len(learners)]
			for time.Since(began) < 2*time.Second {
				from := time.Now()
				choice, err := l.Select(ctx, strategy.Query{Category: fmt.Sprint(rand.IntN(10)),
					Item: fmt.Sprint(rand.IntN(100))})
				took := time.Since(from)
				if err == nil {
					_, err = l.Observe(ctx, strategy.Outcome{Choice: choice, Value: 1, Confidence: 1})
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				choices = append(choices, took)
				mu.Unlock()
				n.Add(1)
			}
		})
	}
	wait.Wait()
	slices.Sort(choices)
	return float64(n.Load()) / time.Since(began).Seconds(), choices[len(choices)/2].Round(
		10 * time.Microsecond)
}

package enginetest_test

import (
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/strategy"
)

// benchCells is how many cells the stores hold while they are timed: HEED_CELLS, or a thousand.
func benchCells(b *testing.B) int {
	n, err := strconv.Atoi(os.Getenv("HEED_CELLS"))
	if err != nil {
		n = 1000
	}
	return n
}

// overStores runs a benchmark over memory and each backend, with cells of four arms for each item.
func overStores(b *testing.B, run func(*testing.B, evidence.Store)) {
	fill := func(b *testing.B, store evidence.Store) {
		const each = 2000
		var batch evidence.Batch
		for i := range benchCells(b) {
			batch.Observations = append(batch.Observations, evidence.Observation{
				ID: fmt.Sprint("fill", i), Reward: 1, Weight: 1, At: time.Now(),
				Cell: evidence.Cell{Kind: "strategy.arm", Scope: "preference/planning", Item: fmt.Sprint("item", i/4), Name: string(rune('a' + i%4))},
			})
			if len(batch.Observations) == each {
				_, err := store.Commit(ctx, batch)
				require.NoError(b, err)
				batch.Observations = nil
			}
		}
		_, err := store.Commit(ctx, batch)
		require.NoError(b, err)
	}
	b.Run("store=memory", func(b *testing.B) {
		store := &memstore.Evidence{}
		fill(b, store)
		run(b, store)
	})
	for _, backend := range backends {
		b.Run("store="+backend.name, func(b *testing.B) {
			at := backend.place(b)
			if at.dialect == sqlstore.Postgres {
				at = durable(b)
			}
			store := newEvidence(b, at.db(b), sqlstore.EvidenceConfig{})
			fill(b, store)
			run(b, store)
		})
	}
}

// durable is a server of its own, that writes to the medium as it does by default.
func durable(b *testing.B) place {
	s, err := newServer("")
	skipWithout(b, err)
	b.Cleanup(func() { _ = s.stop("immediate"); _ = os.RemoveAll(s.dir) })
	return place{sqlstore.Postgres, "pgx", s.dsn()}
}

// overGoroutines runs a benchmark with one goroutine and with eight.
func overGoroutines(b *testing.B, run func(i int64) error) {
	var next atomic.Int64
	b.Run("goroutines=1", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := run(next.Add(1)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("goroutines=8", func(b *testing.B) {
		b.ReportAllocs()
		b.SetParallelism(4) // of two processors
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if err := run(next.Add(1)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	})
}

func newLearner(b *testing.B, store evidence.Store) *strategy.Learner {
	learner, err := strategy.New(strategy.Config{
		Store: store, Arms: []strategy.Arm{{ID: "a"}, {ID: "b"}, {ID: "c"}, {ID: "d"}}, Pooling: strategy.TwoLevel{},
	})
	require.NoError(b, err)
	return learner
}

func query(i int64) strategy.Query {
	return strategy.Query{Item: fmt.Sprint("item", i%50), Category: "preference", Context: "planning"}
}

// BenchmarkSelect times choices, in one session that remembers them and in none, where the cells are read from the store.
func BenchmarkSelect(b *testing.B) {
	for _, session := range []string{"same", "none"} {
		b.Run("session="+session, func(b *testing.B) {
			overStores(b, func(b *testing.B, store evidence.Store) {
				learner := newLearner(b, store)
				overGoroutines(b, func(i int64) error {
					q := query(i)
					if session == "same" {
						q.Session = "s"
					}
					_, err := learner.Select(ctx, q)
					return err
				})
			})
		})
	}
}

// BenchmarkObserve times the crediting of a choice.
func BenchmarkObserve(b *testing.B) {
	overStores(b, func(b *testing.B, store evidence.Store) {
		learner := newLearner(b, store)
		overGoroutines(b, func(i int64) error {
			choice, err := learner.Select(ctx, query(i))
			if err != nil {
				return err
			}
			_, err = learner.Observe(ctx, strategy.Outcome{Choice: choice, Value: 1, Confidence: 1})
			return err
		})
	})
}

// BenchmarkCommit times a batch of one observation, and of a hundred on as many cells.
func BenchmarkCommit(b *testing.B) {
	for _, size := range []int{1, 100} {
		b.Run(fmt.Sprint("observations=", size), func(b *testing.B) {
			overStores(b, func(b *testing.B, store evidence.Store) {
				overGoroutines(b, func(n int64) error {
					var batch evidence.Batch
					for i := range size {
						batch.Observations = append(batch.Observations, evidence.Observation{
							ID: fmt.Sprint(n, "-", i), Reward: 1, Weight: 1, At: time.Now(),
							Cell: evidence.Cell{Kind: "strategy.arm", Scope: "preference/planning", Item: fmt.Sprint("item", i), Name: "a"},
						})
					}
					_, err := store.Commit(ctx, batch)
					return err
				})
			})
		})
	}
}

// BenchmarkRead times the reading of the four cells of an item past the cache.
func BenchmarkRead(b *testing.B) {
	overStores(b, func(b *testing.B, store evidence.Store) {
		if s, ok := store.(*sqlstore.Evidence); ok {
			cfg := s.Config()
			cfg.NoCache = true
			store = newEvidence(b, s.DB(), cfg)
		}
		overGoroutines(b, func(i int64) error {
			cells := make([]evidence.Cell, 4)
			for j := range cells {
				cells[j] = evidence.Cell{Kind: "strategy.arm", Scope: "preference/planning", Item: fmt.Sprint("item", i%250), Name: string(rune('a' + j))}
			}
			_, err := store.Read(ctx, nil, cells...)
			return err
		})
	})
}

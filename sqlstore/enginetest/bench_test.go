package enginetest_test

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

// BenchmarkStores sets the databases beside memory in one run.
func BenchmarkStores(b *testing.B) {
	stores := map[string]func(*testing.B) store.Store{
		"memory": func(*testing.B) store.Store { return &memstore.Store{} }}
	names := []string{"memory"}
	for _, backend := range backends {
		names = append(names, backend.name)
		stores[backend.name] = func(b *testing.B) store.Store {
			return backend.place(b).store(b,
				sqlstore.Config{})
		}
	}
	for _, name := range names {
		b.Run("store="+name, func(b *testing.B) {
			st := stores[name](b)
			b.Run("commit=1", func(b *testing.B) { benchmarkCommit(b, st, 1) })
			b.Run("commit=100", func(b *testing.B) { benchmarkCommit(b, st, 100) })
			b.Run("select", func(b *testing.B) { benchmarkLearner(b, st, true, false) })
			b.Run("select recorded", func(b *testing.B) { benchmarkLearner(b, st, false, false) })
			b.Run("select and observe", func(b *testing.B) { benchmarkLearner(b, st, true, true) })
			b.Run("select and observe recorded", func(b *testing.B) {
				benchmarkLearner(b, st, false,
					true)
			})
		})
	}
}

func benchmarkCommit(b *testing.B, st store.Store, observations int) {
	run, n := rand.Uint64(), 0
	for b.Loop() {
		var batch store.Batch
		for i := range observations {
			n++
			batch.Observations = append(batch.Observations, evidence.Observation{
				ID: fmt.Sprint(run, n), Reward: 1, Weight: 1, At: time.Now(), Source: "ann",
				Cell: evidence.Cell{Kind: "bench", Scope: "s", Item: fmt.Sprint("item", (n+i)%1000),
					Name: "a"},
			})
		}
		if _, err := st.Commit(ctx, batch); err != nil {
			b.Fatal(err)
		}
	}
}

// benchmarkLearner has a session for each choice, over 1,000 items.
func benchmarkLearner(b *testing.B, st store.Store, unrecorded, observe bool) {
	learner, err := strategy.New(ctx, strategy.Config{
		Store: st, Name: fmt.Sprint("bench-", unrecorded, observe), Unrecorded: unrecorded,
		Arms: []strategy.Arm{{ID: "a"}, {ID: "b"}, {ID: "c"}},
	})
	require.NoError(b, err)
	run, n := rand.Uint64(), 0
	for b.Loop() {
		n++
		choice, err := learner.Select(ctx, strategy.Query{Session: fmt.Sprint(run, n),
			Item: fmt.Sprint("item", n%1000), Category: "law"})
		if err == nil && observe {
			_, err = learner.Observe(ctx, strategy.Outcome{Choice: choice, Value: 0.5, Confidence: 0.8})
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkTenant sets commits and reads of a tenant's view beside those of the store itself. The
// commits of 16 callers go through as many handles, as those of 16 processes do.
func BenchmarkTenant(b *testing.B) {
	for _, backend := range backends {
		place := backend.place(b)
		for _, tenant := range []string{"", "acme"} {
			views := make([]store.Store, 16)
			for i := range views {
				view, err := store.Tenant(place.store(b, sqlstore.Config{}), tenant)
				require.NoError(b, err)
				views[i] = view
			}
			name := fmt.Sprintf("store=%s/tenant=%q/", backend.name, tenant)
			b.Run(name+"commit", func(b *testing.B) { benchmarkCommit(b, views[0], 1) })
			b.Run(name+"commit of 16", func(b *testing.B) {
				var next atomic.Int64
				b.SetParallelism(8)
				b.RunParallel(func(pb *testing.PB) {
					st, run := views[next.Add(1)%16], rand.Uint64()
					for n := 0; pb.Next(); n++ {
						o := evidence.Observation{ID: fmt.Sprint(run, n), Reward: 1, Weight: 1, At: time.Now(),
							Cell: evidence.Cell{Kind: "bench", Scope: "s", Item: fmt.Sprint(run % 100)}}
						b1 := store.Batch{Observations: []evidence.Observation{o}}
						if _, err := st.Commit(ctx, b1); err != nil {
							b.Error(err)
						}
					}
				})
			})
			b.Run(name+"read of a cell", func(b *testing.B) {
				cells := []evidence.Cell{{Kind: "bench", Scope: "s", Item: "item1", Name: "a"}}
				var read store.Snapshot
				for b.Loop() {
					read.Parts = read.Parts[:0]
					require.NoError(b, views[0].Read(ctx, &read, cells, nil))
				}
			})
		}
	}
}

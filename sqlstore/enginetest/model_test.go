package enginetest_test

import (
	"database/sql"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
)

// TestStoresAgree makes random commits of everything that a batch can have, with sweeps and a clock
// that goes on. In between, stores are opened again, or loaded from the file that another one has
// written. Stores in memory and in each database say the same of each commit, and the same can be
// read of them. The deep check finds nothing.
func TestStoresAgree(t *testing.T) {
	skipRaced(t)
	places := make([]place, len(backends))
	handles := make([]*sql.DB, len(backends))
	for i, b := range backends {
		places[i] = b.place(t)
		handles[i] = places[i].handle(t)
		places[i].store(t, sqlstore.Config{}) // which makes the tables
	}
	rapid.Check(t, func(t *rapid.T) {
		m := &storeModel{now: modelStart}
		perCell := rapid.SampledFrom([]int{1, 3, 10_000}).Draw(t, "history")
		memory := func() store.Store {
			st, err := memstore.New(memstore.Config{
				Now: m.time, Retention: store.Retention{HistoryPerCell: perCell, HistoryFor: historyFor,
					IDsFor: 1000 * historyFor},
			})
			require.NoError(t, err)
			return st
		}
		m.add(memory(), func(s store.Store) store.Store { return s }, memory)
		for i, at := range places {
			var own *sql.DB
			open := func() store.Store {
				var err error
				own, err = at.open()
				require.NoError(t, err)
				st, err := sqlstore.Open(ctx, own, at.dialect, sqlstore.Config{
					Now: m.time, Retention: store.Retention{HistoryPerCell: perCell, HistoryFor: historyFor,
						IDsFor: 1000 * historyFor},
				})
				require.NoError(t, err)
				return st
			}
			reopen := func(store.Store) store.Store {
				require.NoError(t, own.Close())
				return open()
			}
			wipe(t, handles[i])
			m.add(open(), reopen, func() store.Store {
				wipe(t, handles[i])
				return reopen(nil)
			})
			defer func() { require.NoError(t, own.Close()) }()
		}
		m.run(t)
		for i, at := range places {
			faults, _, err := sqlstore.Check(ctx, handles[i], at.dialect, true)
			require.NoError(t, err)
			require.Empty(t, faults, "the deep check finds nothing in a store that is right")
		}
	})
}

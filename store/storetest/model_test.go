package storetest_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/heedhq/heed/internal/storemodel"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
)

// TestMemoryAgreesWithTheReference makes random commits of everything that a batch can have, with sweeps, a clock that goes on,
// and stores that are written to a file and loaded from it in between. A store in memory and the reference say the same of
// each commit, and the same can be read of them.
func TestMemoryAgreesWithTheReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := storemodel.New()
		perCell := rapid.SampledFrom([]int{1, 3, 10_000}).Draw(t, "history")
		open := func() *memstore.Store {
			st, err := memstore.New(memstore.Config{Now: m.Time, HistoryPerCell: perCell, HistoryFor: storemodel.HistoryFor, IDsFor: 1000 * storemodel.HistoryFor})
			require.NoError(t, err)
			return st
		}
		memory := open()
		plain := newReference(storetest.Options{Now: m.Time}, perCell)
		plain.historyFor = storemodel.HistoryFor
		m.Add(plain, func(s store.Store) store.Store { return s.(*reference).reopen() }, nil)
		m.Add(memory, func(s store.Store) store.Store {
			var file bytes.Buffer
			require.NoError(t, s.(*memstore.Store).Dump(background, &file))
			again := open()
			require.NoError(t, again.Load(background, &file))
			return again
		}, nil)
		m.Run(t)
	})
}

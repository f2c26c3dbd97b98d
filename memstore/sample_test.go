package memstore_test

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
)

// TestASampleOfAListing has about as many items as are wanted, each whole and in order, and as many
// of them from each tenth of the keys. A listing that is no longer than that is whole.
func TestASampleOfAListing(t *testing.T) {
	const items = 4000
	st := &memstore.Store{}
	var b store.Batch
	for i := range items {
		for _, arm := range []string{"a", "b"} {
			cell := evidence.Cell{Kind: "k", Scope: "s", Item: fmt.Sprintf("%06d", i), Name: arm}
			b.Observations = append(b.Observations,
				evidence.Observation{ID: fmt.Sprint(i, arm), Cell: cell, Reward: 1, Weight: 1,
					At: time.Now()})
		}
		if len(b.Observations) >= 1000 {
			_, err := st.Commit(t.Context(), b)
			require.NoError(t, err)
			b.Observations = nil
		}
	}
	for _, most := range []int{200, 500, 2000, items - 1, items, 2 * items} {
		sample := &store.Sample{Most: most}
		var names []string
		tenths := make([]int, 10)
		q := store.CellQuery{Kind: "k", Scope: "s", Sample: sample}
		for p, err := range st.List(t.Context(), q) {
			require.NoError(t, err)
			names = append(names, p.Cell.Item+p.Cell.Name)
			i, err := strconv.Atoi(p.Cell.Item)
			require.NoError(t, err)
			tenths[i*10/items]++
		}
		assert.True(t, slices.IsSorted(names))
		for i := 0; i < len(names); i += 2 {
			assert.Equal(t, names[i][:6]+"a"+names[i][:6]+"b", names[i]+names[i+1])
		}
		if most >= items {
			assert.Len(t, names, 2*items)
			assert.Equal(t, store.Sample{Most: most}, *sample)
			continue
		}
		assert.Equal(t, items, sample.All)
		assert.Equal(t, len(names)/2, sample.Given)
		assert.Greater(t, sample.Given, most/2)
		assert.Less(t, sample.Given, 2*most)
		for _, n := range tenths {
			expected := float64(len(names)) / 10
			assert.InDelta(t, expected, n, 6*math.Sqrt(2*expected), "of %d", most)
		}
	}
}

package enginetest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/strategy/partition"
)

// Two programs learn cells in one database, one after the other, and agree on the item of each
// text.
func TestCellsOfTwoPrograms(t *testing.T) {
	onEach(t, func(t *testing.T, at place) {
		var both [2]*partition.Partition
		for i := range both {
			var err error
			both[i], err = partition.New(ctx, partition.Config{Store: at.store(t, sqlstore.Config{})})
			require.NoError(t, err)
		}
		var texts []string
		for i := range 40 {
			texts = append(texts, fmt.Sprintf("order %d is late", i),
				fmt.Sprintf("func f%d() {\n\treturn\n}", i))
		}
		require.NoError(t, both[0].Fit(ctx, texts))
		for _, text := range texts {
			_, _, err := both[1].Item(ctx, text)
			require.NoError(t, err)
		}
		// reads the first version and makes the second
		require.NoError(t, both[1].Sweep(ctx, time.Time{}))
		require.NoError(t, both[0].Sweep(ctx, time.Time{}))
		assert.EqualValues(t, 2, both[0].Version())
		for _, text := range texts {
			one, _, err := both[0].Item(ctx, text)
			require.NoError(t, err)
			two, _, err := both[1].Item(ctx, text)
			require.NoError(t, err)
			assert.Equal(t, one, two)
		}
		one, err := both[0].MarshalJSON()
		require.NoError(t, err)
		two, err := both[1].MarshalJSON()
		require.NoError(t, err)
		assert.JSONEq(t, string(one), string(two))
	})
}

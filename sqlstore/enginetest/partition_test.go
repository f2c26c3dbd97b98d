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
		for _, p := range both { // the second reads the cells of the first, and changes them
			for _, text := range texts {
				_, _, err := p.Item(ctx, text)
				require.NoError(t, err)
			}
			require.NoError(t, p.Sweep(ctx, time.Time{}))
		}
		require.NoError(t, both[0].Sweep(ctx, time.Time{}))
		for _, text := range texts {
			one, _, err := both[0].Item(ctx, text)
			require.NoError(t, err)
			two, _, err := both[1].Item(ctx, text)
			require.NoError(t, err)
			assert.NotEmpty(t, one)
			assert.Equal(t, one, two)
		}
	})
}

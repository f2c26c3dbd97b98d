//go:build !race

package strategy_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/strategy"
)

// A report of a segment with many items reads a sample of them, and counts what it stands for. An
// item that is not in the sample is reported all the same.
func TestReportsOfManyItemsReadASample(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	st, err := memstore.New(memstore.Config{Now: clock})
	require.NoError(t, err)
	l, err := strategy.New(t.Context(), strategy.Config{
		Store: st, Now: clock, Seed: rand.NewPCG(1, 2), Unrecorded: true, Refresh: time.Hour,
		Arms: []strategy.Arm{{ID: "small"}, {ID: "large"}},
	})
	require.NoError(t, err)
	const many = 12_000
	var outcomes []strategy.Outcome
	for i := range many {
		q := strategy.Query{Category: "desk", Item: fmt.Sprint("item-", i)}
		c, err := l.Record(t.Context(), q, []strategy.ArmID{"small", "large"}[i%2], 0.5)
		require.NoError(t, err)
		outcomes = append(outcomes, strategy.Outcome{Choice: c, Value: 1, Confidence: 1})
	}
	for some := range slices.Chunk(outcomes, 200) {
		_, err = l.ObserveAll(t.Context(), some, "", "")
		require.NoError(t, err)
	}
	d, err := distribution(l, "desk", "")
	require.NoError(t, err)
	assert.Positive(t, d.Sampled)
	assert.Less(t, d.Sampled, 8001)
	assert.Len(t, d.Standings, d.Sampled)
	assert.InEpsilon(t, many, d.Items, 0.1)
	assert.InEpsilon(t, many, d.Outcomes, 0.1)
	for i := range 50 {
		r, err := itemReport(l, strategy.Query{Category: "desk", Item: fmt.Sprint("item-", i)})
		require.NoError(t, err)
		assert.Equal(t, uint64(1), r.Arms[i%2].Outcomes)
		assert.Zero(t, r.Arms[1-i%2].Outcomes)
	}
	_, err = itemReport(l, strategy.Query{Category: "desk", Item: "nowhere"})
	assert.ErrorIs(t, err, heed.ErrNotFound)
	down, cfg := &faulty{Store: st}, l.Config()
	cfg.Store = down
	other, err := strategy.Open(t.Context(), cfg)
	require.NoError(t, err)
	down.read.Store(&errStore) // the segment is listed, and the item is read
	_, err = itemReport(other, strategy.Query{Category: "desk", Item: "nowhere"})
	assert.ErrorIs(t, err, errStore)
}

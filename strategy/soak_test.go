//go:build !race

package strategy_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

// TestSoak lets sessions come and go for long: what is remembered stays bounded, and so do the heap
// and the goroutines. With HEED_LONG there are a million sessions, and without it five thousand.
func TestSoak(t *testing.T) {
	sessions := long(5000, 1_000_000)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	st, err := memstore.New(memstore.Config{
		Now: clock, Retention: store.Retention{HistoryFor: time.Hour, IDsFor: time.Hour,
			Limits: map[string]store.Limits{"strategy.answer": {For: time.Hour}}},
	})
	require.NoError(t, err)
	l := newLearner(t, strategy.Config{Store: st, Now: clock, Cache: strategy.Cache{Size: 1000}})
	var settled uint64
	for i := range sessions {
		now = now.Add(4 * time.Second)
		c := choose(t, l, strategy.Query{Session: fmt.Sprint("session ", i),
			Item: fmt.Sprint("item ", i%200)})
		if i%3 > 0 {
			_, err := l.Observe(ctx, strategy.Outcome{Choice: c, Value: float64(i%7)/3 - 1,
				Confidence: 0.8})
			require.NoError(t, err)
		}
		if i%500 == 0 || i == sessions-1 {
			require.NoError(t, st.Sweep(ctx, time.Time{}))
		}
		switch i {
		case sessions / 5:
			settled = heapInUse()
		case sessions - 1:
			// Ids are kept for one to two hours, so that their number swings.
			assert.Less(t, float64(heapInUse()), 1.1*float64(settled)+4e6)
		}
	}
	assert.LessOrEqual(t, l.Remembered(), 1000)
	runtime.KeepAlive(st)
}

func heapInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

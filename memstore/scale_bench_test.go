package memstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
)

// BenchmarkList lists 100 items of one scope, by the number of cells in other scopes.
func BenchmarkList(b *testing.B) {
	for _, others := range []int{1000, 10_000, 100_000, 1_000_000} {
		st := newStore(b, memstore.Config{Retention: store.Retention{NoHistory: true}})
		fill := func(scope string, items int) {
			for from := 0; from < items; from += 100 {
				var observed []evidence.Observation
				for i := from; i < from+100; i++ {
					o := observe(fmt.Sprint(scope, i), start)
					o.Cell.Scope, o.Cell.Item = scope, fmt.Sprint("item-", i)
					observed = append(observed, o)
				}
				put(b, st, store.Batch{Observations: observed})
			}
		}
		fill("mine", 100)
		for n := range 10 {
			fill(fmt.Sprint("other-", n), others/10)
		}
		b.Run(fmt.Sprint("others=", others), func(b *testing.B) {
			for b.Loop() {
				n := 0
				for _, err := range st.List(ctx, store.CellQuery{Kind: cell.Kind, Scope: "mine"}) {
					if n++; err != nil {
						b.Fatal(err)
					}
				}
				if n != 100 {
					b.Fatal(n)
				}
			}
		})
	}
}

// BenchmarkFullHistory commits one observation to a cell whose history is full, by its length.
func BenchmarkFullHistory(b *testing.B) {
	for _, length := range []int{100, 1000, 10_000, 100_000} {
		st := newStore(b, memstore.Config{Retention: store.Retention{HistoryPerCell: length}})
		n := 0
		add := func(b *testing.B) {
			n++
			_, err := st.Commit(ctx, store.Batch{Observations: []evidence.Observation{
				observe(fmt.Sprint(n), start.Add(time.Duration(n)))}})
			if err != nil {
				b.Fatal(err)
			}
		}
		for range length {
			add(b)
		}
		require.Len(b, history(b, st, cell), length)
		b.Run(fmt.Sprint("length=", length), func(b *testing.B) {
			worst := time.Duration(0)
			for b.Loop() {
				at := time.Now()
				add(b)
				worst = max(worst, time.Since(at))
			}
			b.ReportMetric(float64(worst.Microseconds()), "worst-µs")
		})
	}
}

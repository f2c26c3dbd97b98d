package strategy_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/strategy"
)

// BenchmarkCost times a choice, and a choice with its outcome, in a session of its own, over 1,000
// items.
func BenchmarkCost(b *testing.B) {
	for _, bench := range []struct {
		name              string
		recorded, observe bool
	}{{"select", false, false}, {"select recorded", true, false}, {"select and observe", false, true},
		{"select and observe recorded", true, true}} {
		b.Run(bench.name, func(b *testing.B) {
			ctx := context.Background()
			cfg := strategy.Config{Store: &memstore.Store{}, Unrecorded: !bench.recorded,
				Seed: rand.NewPCG(1, 2), Arms: []strategy.Arm{{ID: "a"}, {ID: "b"}, {ID: "c"}}}
			learner, err := strategy.New(ctx, cfg)
			require.NoError(b, err)
			items, sessions := make([]string, 1000), make([]string, 1<<16)
			for i := range items {
				items[i] = fmt.Sprint("item", i)
			}
			for i := range sessions {
				sessions[i] = fmt.Sprintf("session-%08x", i)
			}
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				n++
				choice, err := learner.Select(ctx, strategy.Query{Session: sessions[n%len(sessions)],
					Item: items[n%1000], Category: "law"})
				if err == nil && bench.observe {
					_, err = learner.Observe(ctx, strategy.Outcome{Choice: choice, Value: 0.5,
						Confidence: 0.8})
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

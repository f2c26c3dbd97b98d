package strategy_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

// BenchmarkArms times a choice and an outcome by the number of arms, each with some evidence.
func BenchmarkArms(b *testing.B) {
	for _, n := range []int{2, 4, 32, 256} {
		var arms []strategy.Arm
		for i := range n {
			arms = append(arms, strategy.Arm{ID: strategy.ArmID(fmt.Sprint("arm", i))})
		}
		scale(b, fmt.Sprintf("arms=%d", n), strategy.Config{Arms: arms}, func(i int) (strategy.ArmID, string) { return arms[i%n].ID, "" }, 4*n)
	}
}

// BenchmarkSources times both by the number of sources that an arm has evidence of, with limits on sources.
func BenchmarkSources(b *testing.B) {
	for _, n := range []int{1, 100, 10_000} {
		cfg := strategy.Config{Arms: plain("a"), Caps: evidence.Caps{SourceMass: 1, SourceShare: 0.05}}
		scale(b, fmt.Sprintf("sources=%d", n), cfg, func(i int) (strategy.ArmID, string) { return "a", fmt.Sprint("source", i%n) }, n)
	}
}

// scale times a learner that has seen a number of outcomes, the i-th of this arm and this source.
func scale(b *testing.B, name string, cfg strategy.Config, outcome func(i int) (strategy.ArmID, string), outcomes int) {
	cfg.Store, cfg.Seed, cfg.Unrecorded = &memstore.Store{}, rand.NewPCG(1, 2), true
	l, err := strategy.New(ctx, cfg)
	require.NoError(b, err)
	q := strategy.Query{Item: "i"}
	made := make(map[strategy.ArmID]strategy.Choice)
	observe := func(i int) error {
		arm, source := outcome(i)
		c, ok := made[arm]
		if !ok {
			q := q
			q.Arms = []strategy.ArmID{arm}
			c = choose(b, l, q)
			made[arm] = c
		}
		_, err := l.Observe(ctx, strategy.Outcome{Choice: c, ID: fmt.Sprint(i), Value: float64(i%3 - 1), Confidence: 1, Source: source})
		return err
	}
	for n := range outcomes { // as the learner would keep them, without reading what it has after each
		arm, source := outcome(n)
		cell := strategy.Choice{Item: q.Item, Arm: arm}.Cells()[0]
		cell.Kind = "strategy.arm"
		_, err := cfg.Store.Commit(ctx, store.Batch{
			Policies:     map[string]evidence.Policy{cell.Kind: {ByOrigin: cfg.Caps.SourceMass > 0}},
			Observations: []evidence.Observation{{ID: fmt.Sprint("before", n), Cell: cell, Source: source, Reward: 0.5, Weight: 1, At: time.Now()}},
		})
		require.NoError(b, err)
	}
	n := 0
	b.Run("select/"+name, func(b *testing.B) {
		for b.Loop() {
			if _, err := l.Select(ctx, q); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("observe/"+name, func(b *testing.B) {
		for b.Loop() {
			if err := observe(n); err != nil {
				b.Fatal(err)
			}
			n++
		}
	})
}

package strategy_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/injection"
)

// BenchmarkSelect times a choice among four arms over the in-memory store, with some evidence on
// every arm.
func BenchmarkSelect(b *testing.B) {
	ctx := context.Background()
	plain := []strategy.Arm{{ID: "a"}, {ID: "b"}, {ID: "c"}, {ID: "d"}}
	for _, bench := range []struct {
		name    string
		arms    []strategy.Arm
		pooling strategy.Pooling
	}{
		{"arms=plain/pooling=two-level", plain, strategy.TwoLevel{}},
		{"arms=plain/pooling=copy", plain, strategy.Copy{}},
		{"arms=plain/pooling=alone", plain, strategy.Alone{}},
		{"arms=injection/pooling=two-level", injection.Arms(), strategy.TwoLevel{}},
	} {
		learner, err := strategy.New(ctx, strategy.Config{
			Store: &memstore.Store{}, Arms: bench.arms, Pooling: bench.pooling, Seed: rand.NewPCG(1, 2),
		})
		require.NoError(b, err)
		const items = 100
		queries := make([]strategy.Query, items)
		for i := range queries {
			queries[i] = strategy.Query{Session: fmt.Sprint("session", i), Item: fmt.Sprint("item", i),
				Category: "preference", Context: "planning"}
			for range 10 {
				loose := queries[i]
				loose.Session = ""
				choice, err := learner.Select(ctx, loose)
				require.NoError(b, err)
				_, err = learner.Observe(ctx, strategy.Outcome{Choice: choice, Value: float64(i%3 - 1),
					Confidence: 1})
				require.NoError(b, err)
			}
			_, err = learner.Select(ctx, queries[i])
			require.NoError(b, err)
		}
		b.Run("session=new/"+bench.name, func(b *testing.B) {
			b.ReportAllocs()
			sessions := make([]string, 1<<14)
			for i := range sessions {
				sessions[i] = fmt.Sprintf("session-%08x", i)
			}
			i := 0
			for b.Loop() {
				q := queries[i%items]
				q.Session = sessions[i%len(sessions)]
				if i++; i%len(sessions) == 0 {
					b.StopTimer()
					for _, s := range sessions {
						require.NoError(b, learner.EndSession(ctx, s))
					}
					b.StartTimer()
				}
				if _, err := learner.Select(ctx, q); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("session=same/"+bench.name, func(b *testing.B) {
			for _, q := range queries {
				if _, err := learner.Select(ctx, q); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if _, err := learner.Select(ctx, queries[i%items]); err != nil {
					b.Fatal(err)
				}
				i++
			}
		})
	}
}

// BenchmarkObserve times crediting a choice.
func BenchmarkObserve(b *testing.B) {
	ctx := context.Background()
	learner, err := strategy.New(ctx, strategy.Config{Store: &memstore.Store{},
		Arms: []strategy.Arm{{ID: "a"}, {ID: "b"}, {ID: "c"}, {ID: "d"}}})
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		choice, err := learner.Select(ctx, strategy.Query{Item: "item", Category: "preference"})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := learner.Observe(ctx, strategy.Outcome{Choice: choice, Value: 1,
			Confidence: 1}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkObserver times choices and outcomes without an observer, which costs nothing, and with
// one.
func BenchmarkObserver(b *testing.B) {
	ctx := context.Background()
	for name, observer := range map[string]heed.Observer{"nil": nil,
		"set": func(context.Context, heed.Notice) {}} {
		learner, err := strategy.New(ctx, strategy.Config{
			Store: &memstore.Store{}, Arms: []strategy.Arm{{ID: "a"}, {ID: "b"}}, Observer: observer,
			Unrecorded: true,
		})
		require.NoError(b, err)
		b.Run("select/observer="+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := learner.Select(ctx, strategy.Query{Item: "item"}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("observe/observer="+name, func(b *testing.B) {
			choice, err := learner.Select(ctx, strategy.Query{Item: "item"})
			require.NoError(b, err)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := learner.Observe(ctx, strategy.Outcome{Choice: choice, Value: 1,
					Confidence: 1}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

package strategy_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/stream"
	"github.com/heedhq/heed/stream/streamtest"
)

// A parameter is learned along with its arm: here, how many passages to retrieve.
func ExampleParameter() {
	ctx := context.Background()
	learner, err := strategy.New(ctx, strategy.Config{
		Store: &memstore.Store{},
		Arms: []strategy.Arm{{ID: "retrieve", Parameters: []strategy.Parameter{
			{Name: "passages", Values: []string{"3", "10", "30"}},
		}}},
		Seed: rand.NewPCG(1, 2),
	})
	if err != nil {
		panic(err)
	}
	worth := map[string]float64{"3": -0.2, "10": 0.8, "30": 0.1}
	chosen := make(map[string]int)
	for range 100 {
		choice, err := learner.Select(ctx, strategy.Query{Category: "questions"})
		if err != nil {
			panic(err)
		}
		passages := choice.Parameter("passages")
		chosen[passages]++
		if _, err := learner.Observe(ctx, strategy.Outcome{Choice: choice, Value: worth[passages],
			Confidence: 1}); err != nil {
			panic(err)
		}
	}
	fmt.Println(chosen)
	// Output: map[10:88 3:4 30:8]
}

// A model that becomes worse is noticed by default, and what was believed before is left out.
func ExampleConfig_ignoreChanges() {
	ctx := context.Background()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	st, err := memstore.New(memstore.Config{Now: clock})
	if err != nil {
		panic(err)
	}
	learner, err := strategy.New(ctx, strategy.Config{
		Store: st, Now: clock,
		Arms: []strategy.Arm{{ID: "provider-a"}, {ID: "provider-b"}},
		Seed: rand.NewPCG(1, 2),
	})
	if err != nil {
		panic(err)
	}
	value := map[strategy.ArmID]float64{"provider-a": 1, "provider-b": -0.2}
	for answer := range 200 {
		if answer == 150 {
			value["provider-a"] = -1 // it has an outage
		}
		now = now.Add(time.Minute)
		choice, err := learner.Select(ctx, strategy.Query{Item: "summaries"})
		if err != nil {
			panic(err)
		}
		if _, err := learner.Observe(ctx, strategy.Outcome{Choice: choice, Value: value[choice.Arm],
			Confidence: 1}); err != nil {
			panic(err)
		}
	}
	for entry, err := range store.AuditEntries(ctx, st, store.Query{}) {
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s %s: %s\n", entry.At.Format("15:04"), entry.Subject, entry.Reason)
	}
	// Output: 02:36 summaries: the rewards of provider-a changed from 1.00 to 0.00 on average
}

// A learner's events wait in its store, in the same commit as their evidence, until a relay sends
// them.
func Example_relay() {
	ctx := context.Background()
	st := &memstore.Store{}
	learner, err := strategy.New(ctx, strategy.Config{Store: st, Arms: []strategy.Arm{{ID: "only"}},
		Topic: "heed.strategy"})
	if err != nil {
		panic(err)
	}
	choice, err := learner.Select(ctx, strategy.Query{Item: "release notes"})
	if err != nil {
		panic(err)
	}
	if _, err := learner.Observe(ctx, strategy.Outcome{Choice: choice, Value: 1,
		Confidence: 0.9}); err != nil {
		panic(err)
	}
	topic := &streamtest.Stream{} // in a host: a topic of its broker
	for range 2 {
		sent, err := stream.Relay(ctx, st, topic)
		fmt.Println(sent, err)
	}
	// Output:
	// 2 <nil>
	// 0 <nil>
}

package strategy_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

// What was attributed to a learning, and what was seen of the session, make one outcome.
func ExampleRouter() {
	router, err := strategy.NewRouter(strategy.RouterConfig{})
	if err != nil {
		panic(err)
	}
	routed, ok, err := router.Route("monday", &strategy.Attribution{Activated: true, Value: 0.5}, []strategy.Signal{
		{Session: "monday", Kind: strategy.SignalNegative, Confidence: 0.7},
		{Session: "monday", Kind: strategy.SignalToolFailure},
		{Session: "sunday", Kind: strategy.SignalPositive, Confidence: 1}, // of another session, so it does not count
	})
	if err != nil || !ok {
		panic(err)
	}
	fmt.Printf("%.2f with confidence %.1f, from %s\n", routed.Value, routed.Confidence, routed.Source)
	// Output: 0.05 with confidence 0.9, from both
}

// Before a host switches to always using the large model, it asks its log what that would have earned.
func ExampleSelfNormalized() {
	ctx := context.Background()
	learner, err := strategy.New(ctx, strategy.Config{
		Store:  &memstore.Store{},
		Arms:   []strategy.Arm{{ID: "small-model"}, {ID: "large-model"}},
		Source: rand.NewPCG(1, 2),
	})
	if err != nil {
		panic(err)
	}
	reward := map[strategy.ArmID]float64{"small-model": 0.4, "large-model": 0.7} // in a host: what the answer was worth
	var log []strategy.Logged
	for range 200 {
		choice, err := learner.Select(ctx, strategy.Query{Category: "law"})
		if err != nil {
			panic(err)
		}
		entry := strategy.Logged{Propensity: choice.Propensity(), Reward: reward[choice.Arm]}
		if choice.Arm == "large-model" {
			entry.Target = 1 // the other policy would always have chosen it
		}
		log = append(log, entry)
	}
	large, err := strategy.SelfNormalized(log, 0.95)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%.2f, from what %.0f choices tell\n", large.Value, large.Effective)
	// Output: 0.70, from what 104 choices tell
}

// A parameter is learned along with its arm: here, how many passages to retrieve.
func ExampleParameter() {
	ctx := context.Background()
	learner, err := strategy.New(ctx, strategy.Config{
		Store: &memstore.Store{},
		Arms: []strategy.Arm{{ID: "retrieve", Parameters: []strategy.Parameter{
			{Name: "passages", Values: []string{"3", "10", "30"}},
		}}},
		Source: rand.NewPCG(1, 2),
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
		if _, err := learner.Observe(ctx, strategy.Outcome{Choice: choice, Value: worth[passages], Confidence: 1}); err != nil {
			panic(err)
		}
	}
	fmt.Println(chosen)
	// Output: map[10:92 3:4 30:4]
}

// A model that becomes worse is noticed, and what was believed before is left out.
func ExampleChange() {
	ctx := context.Background()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	st, err := memstore.New(memstore.Config{Now: clock})
	if err != nil {
		panic(err)
	}
	learner, err := strategy.New(ctx, strategy.Config{
		Store: st, Now: clock,
		Arms:   []strategy.Arm{{ID: "provider-a"}, {ID: "provider-b"}},
		Change: strategy.Change{FalseAlarms: 0.001},
		Source: rand.NewPCG(1, 2),
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
		if _, err := learner.Observe(ctx, strategy.Outcome{Choice: choice, Value: value[choice.Arm], Confidence: 1}); err != nil {
			panic(err)
		}
	}
	for entry, err := range store.AuditEntries(ctx, st, store.AuditQuery{}) {
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s %s: %s\n", entry.At.Format("15:04"), entry.Subject, entry.Reason)
	}
	// Output: 02:34 summaries: the rewards of provider-a changed from 1.00 to 0.00 on average
}

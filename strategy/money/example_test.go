package money_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/money"
)

// A reward weighs quality, money and time at stated prices. Here a cent is worth 0.02 and a second
// 0.01 of the value, which runs from -1 to 1.
func ExampleReward() {
	reward := money.Reward{Cost: 2, Second: 0.01}
	cheap := strategy.Outcome{Value: 0.7, Cost: 0.01, Latency: time.Second}
	dear := strategy.Outcome{Value: 0.9, Cost: 0.15, Latency: 4 * time.Second}
	fmt.Printf("%.2f %.2f\n", reward.Value(cheap), reward.Value(dear))
	// Output: 0.67 0.56
}

// priced lets a Frugal choose 300 times between two arms, of which the cheap one is nearly as good.
func priced(ctx context.Context) (*strategy.Learner, *money.Frugal) {
	learner, err := strategy.New(ctx, strategy.Config{
		Store: &memstore.Store{}, Seed: rand.NewPCG(1, 2),
		Arms: []strategy.Arm{{ID: "small"}, {ID: "large"}},
	})
	if err != nil {
		panic(err)
	}
	frugal, err := money.New(ctx, money.Config{Learner: learner, Quality: 0.9})
	if err != nil {
		panic(err)
	}
	luck := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		choice, err := frugal.Select(ctx, strategy.Query{Category: "law"})
		if err != nil {
			panic(err)
		}
		good, cost := 0.93, 0.1
		if choice.Arm == "large" {
			good, cost = 0.95, 2
		}
		value := -1.0
		if luck.Float64() < good {
			value = 1
		}
		outcome := strategy.Outcome{Choice: choice, Value: value, Confidence: 1, Cost: cost}
		if _, err := learner.Observe(ctx, outcome); err != nil {
			panic(err)
		}
	}
	return learner, frugal
}

// A Frugal takes the cheapest arm that has 0.9 of the best quality.
func ExampleFrugal() {
	ctx := context.Background()
	_, frugal := priced(ctx)
	chosen := map[strategy.ArmID]int{}
	for range 100 {
		choice, err := frugal.Select(ctx, strategy.Query{Category: "law"})
		if err != nil {
			panic(err)
		}
		chosen[choice.Arm]++
	}
	fmt.Println(chosen["small"] > 90)
	// Output: true
}

// Saved estimates what always choosing one arm would have cost, from the records of choices.
func ExampleSaved() {
	ctx := context.Background()
	learner, _ := priced(ctx)
	saved, err := money.Saved(ctx, learner, strategy.ChoiceFilter{Category: "law"}, 0.9)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%d choices cost %.1f\n", saved.Choices, saved.Cost)
	for _, in := range saved.Arms {
		fmt.Printf("always %s: saved %.1f\n", in.Arm, in.Saved.Value)
	}
	// Output:
	// 300 choices cost 56.6
	// always small: saved -26.6
	// always large: saved 543.4
}

package offpolicy_test

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/offpolicy"
)

// Before a host switches to always using the large model, it asks its log what that would have
// earned.
func ExampleSelfNormalized() {
	ctx := context.Background()
	learner, err := strategy.New(ctx, strategy.Config{
		Store: &memstore.Store{},
		Arms:  []strategy.Arm{{ID: "small-model"}, {ID: "large-model"}},
		Seed:  rand.NewPCG(1, 2),
	})
	if err != nil {
		panic(err)
	}
	// in a host: what the answer was worth
	reward := map[strategy.ArmID]float64{"small-model": 0.4, "large-model": 0.7}
	var log []offpolicy.Logged
	for range 200 {
		choice, err := learner.Select(ctx, strategy.Query{Category: "law"})
		if err != nil {
			panic(err)
		}
		entry := offpolicy.Logged{Propensity: choice.Propensity(), Reward: reward[choice.Arm]}
		if choice.Arm == "large-model" {
			entry.Target = 1 // the other policy would always have chosen it
		}
		log = append(log, entry)
	}
	large, err := offpolicy.SelfNormalized(log, 0.95)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%.2f, from what %.0f choices tell\n", large.Value, large.Effective)
	// Output: 0.70, from what 104 choices tell
}

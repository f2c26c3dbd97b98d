package injection_test

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/injection"
)

// The catalogue has four ways of bringing a learning into an agent's session. A host may add values
// of its own.
func ExampleOf() {
	learner, err := strategy.New(ctx, strategy.Config{
		Store: &memstore.Store{},
		Arms: injection.Arms(strategy.Parameter{
			Name: "trigger", Values: []string{"explicit", injection.MessageCount(20)},
		}),
		Seed: rand.NewPCG(1, 2),
	})
	if err != nil {
		panic(err)
	}
	for _, item := range []string{"use tabs", "say why", "run the linter"} {
		choice, err := learner.Select(context.Background(), strategy.Query{
			Session: "monday", Item: item, Category: "preference", Context: "interactive",
		})
		if err != nil {
			panic(err)
		}
		how, err := injection.Of(choice)
		if err != nil {
			panic(err)
		}
		switch how.Arm {
		case injection.MainContext:
			fmt.Printf("%s: put it into the context, as %s\n", item, how.Position)
		case injection.Deferred:
			fmt.Printf("%s: wait for %s\n", item, how.Trigger)
		default:
			fmt.Printf("%s: %s\n", item, how)
		}
	}
	// Output:
	// use tabs: put it into the context, as prefix
	// say why: put it into the context, as suffix
	// run the linter: subagent(agent_type=planner, blocking=true, prompt_template="")
}

package best_test

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/best"
)

// newLearner returns a learner of two prompts.
func newLearner() *strategy.Learner {
	learner, err := strategy.New(context.Background(), strategy.Config{
		Store: &memstore.Store{}, Seed: rand.NewPCG(1, 2),
		Arms: []strategy.Arm{{ID: "terse"}, {ID: "steps"}},
	})
	if err != nil {
		panic(err)
	}
	return learner
}

// tell reports n outcomes of choices that the race makes: only "steps" works.
func tell(race *best.Race, learner *strategy.Learner, n int) {
	ctx := context.Background()
	for range n {
		choice, err := race.Select(ctx, strategy.Query{Category: "law"})
		if err != nil {
			panic(err)
		}
		outcome := strategy.Outcome{Choice: choice, Value: -1, Confidence: 1}
		if choice.Arm == "steps" {
			outcome.Value = 1
		}
		if _, err := learner.Observe(ctx, outcome); err != nil {
			panic(err)
		}
	}
}

// A race chooses in place of the learner until it is sure which arm is best, at a stated error.
func Example() {
	ctx := context.Background()
	learner := newLearner()
	race, err := best.New(ctx, best.Config{Learner: learner, Error: 0.05})
	if err != nil {
		panic(err)
	}
	tell(race, learner, 100)
	standing, err := race.Standing(ctx, strategy.Query{Category: "law"})
	if err != nil {
		panic(err)
	}
	fmt.Println(standing.Leader, standing.Ended, standing.Error)
	// Output: steps true 0.05
}

// After the end, Explore is the share of choices that still goes to the other arms.
func ExampleRace_Select() {
	ctx := context.Background()
	learner := newLearner()
	race, err := best.New(ctx, best.Config{Learner: learner, Error: 0.05, Explore: 0.1})
	if err != nil {
		panic(err)
	}
	tell(race, learner, 100)
	choice, err := race.Select(ctx, strategy.Query{Category: "law"})
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s, with a probability of %.2f\n", choice.Arm, choice.Propensity())
	// Output: steps, with a probability of 0.90
}

// Standing may be looked at as often as you like, because the test is valid at every look.
func ExampleRace_Standing() {
	ctx := context.Background()
	learner := newLearner()
	race, err := best.New(ctx, best.Config{Learner: learner})
	if err != nil {
		panic(err)
	}
	for range 3 {
		tell(race, learner, 5)
		standing, err := race.Standing(ctx, strategy.Query{Category: "law"})
		fmt.Println(standing.Needed, standing.Ended, err)
	}
	// Output:
	// 5 false <nil>
	// 9 true <nil>
	// 9 true <nil>
}

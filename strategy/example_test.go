package strategy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"

	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/strategy"
)

// Two models are tried on questions about the law, where the large one is right more often.
func Example() {
	ctx := context.Background()
	learner, err := strategy.New(ctx, strategy.Config{
		Store: &memstore.Store{},
		Arms:  []strategy.Arm{{ID: "small-model"}, {ID: "large-model"}},
		Seed:  rand.NewPCG(1, 2), // leave it out for choices that differ from run to run
	})
	if err != nil {
		panic(err)
	}
	// in a host: how good the answer was
	right := map[strategy.ArmID]float64{"small-model": -0.5, "large-model": 0.9}
	chosen := make(map[strategy.ArmID]int)
	for question := range 100 {
		choice, err := learner.Select(ctx, strategy.Query{Session: fmt.Sprint("question ", question),
			Category: "law"})
		if err != nil {
			fmt.Println("went on with", choice.Arm, "as", err)
		}
		chosen[choice.Arm]++
		if _, err := learner.Observe(ctx, strategy.Outcome{Choice: choice, Value: right[choice.Arm],
			Confidence: 0.8}); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(chosen)
	// Output: map[large-model:99 small-model:1]
}

// An outcome that comes late finds its choice again: all that is needed is the choice itself, kept
// as JSON.
func ExampleLearner_Observe() {
	ctx := context.Background()
	st := &memstore.Store{} // in a host: one that outlives the process
	cfg := strategy.Config{Store: st, Arms: []strategy.Arm{{ID: "short-prompt"}, {ID: "long-prompt"}}}
	monday, err := strategy.New(ctx, cfg)
	if err != nil {
		panic(err)
	}
	choice, err := monday.Select(ctx, strategy.Query{Session: "monday", Item: "release notes",
		Arms: []strategy.ArmID{"long-prompt"}})
	if err != nil {
		panic(err)
	}
	kept, err := json.Marshal(choice)
	if err != nil {
		panic(err)
	}

	tuesday, err := strategy.New(ctx, cfg)
	if err != nil {
		panic(err)
	}
	var again strategy.Choice
	if err := json.Unmarshal(kept, &again); err != nil {
		panic(err)
	}
	for range 2 { // it is delivered twice
		disposition, err := tuesday.Observe(ctx, strategy.Outcome{Choice: again, ID: "review", Value: 1,
			Confidence: 0.9})
		fmt.Println(disposition, err)
	}
	beliefs, err := tuesday.Beliefs(ctx, strategy.Query{Item: "release notes"})
	if err != nil {
		panic(err)
	}
	for i, arm := range cfg.Arms {
		fmt.Printf("%s %.2f\n", arm.ID, beliefs[i].Mean())
	}
	// Output:
	// applied <nil>
	// duplicate <nil>
	// short-prompt 0.50
	// long-prompt 0.67
}

// A query may name the arms that are permitted now, by a budget or a policy.
func ExampleLearner_Select_permitted() {
	ctx := context.Background()
	learner, err := strategy.New(ctx, strategy.Config{
		Store: &memstore.Store{},
		Arms:  []strategy.Arm{{ID: "small-model"}, {ID: "large-model"}, {ID: "huge-model"}},
	})
	if err != nil {
		panic(err)
	}
	for range 50 {
		choice, err := learner.Select(ctx, strategy.Query{Category: "law",
			Arms: []strategy.ArmID{"small-model", "large-model"}})
		if err != nil {
			panic(err)
		}
		if choice.Arm == "huge-model" {
			fmt.Println("over budget")
		}
	}
	_, err = learner.Select(ctx, strategy.Query{Category: "law",
		Arms: []strategy.ArmID{"tiny-model"}})
	fmt.Println(err)
	// Output: strategy: select: Arms: has "tiny-model", which is not one of the learner's arms
}

// Short questions are answered well by the small model, and long ones by the large model. The query
// has a vector that shows how long a question is, so the learner finds out.
func ExampleQuery() {
	ctx := context.Background()
	learner, err := strategy.New(ctx, strategy.Config{
		Store: &memstore.Store{},
		Arms:  []strategy.Arm{{ID: "small-model"}, {ID: "large-model"}},
		Seed:  rand.NewPCG(1, 2), // leave it out for choices that differ from run to run
	})
	if err != nil {
		panic(err)
	}
	vectors := [][]float32{{1, -1}, {1, 1}} // a constant, and the length; in a host: an embedding
	right := []strategy.ArmID{"small-model", "large-model"}
	good := 0
	for n := range 200 {
		kind := n % 2
		choice, err := learner.Select(ctx, strategy.Query{Vector: vectors[kind]})
		if err != nil {
			panic(err)
		}
		outcome := strategy.Outcome{Choice: choice, Value: -1, Confidence: 1}
		if choice.Arm == right[kind] {
			outcome.Value = 1
			if n >= 100 {
				good++
			}
		}
		if _, err := learner.Observe(ctx, outcome); err != nil {
			panic(err)
		}
	}
	fmt.Println(good > 95, "of the last hundred answers")
	// Output: true of the last hundred answers
}

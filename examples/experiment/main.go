// Experiment asks whether heuristics may answer with less confidence than they need today: an A/B experiment, split by
// user, on what users say of the answers. It ends when there is enough to decide by.
package main

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/decision/llmtest"
	"github.com/heedhq/heed/memstore"
)

// users are the population: which answers they like the agent does not know.
type users struct{ dice *rand.Rand }

var likes = map[decision.Path]float64{decision.Heuristic: 0.85, decision.Model: 0.7}

func (u users) react(result decision.Result) float64 {
	if u.dice.Float64() < likes[result.Path] {
		return 1
	}
	return -1
}

func main() {
	ctx := context.Background()
	traces := &memstore.Traces{}
	model := &llmtest.Model{Answers: llmtest.Say("Have a look at the sensor.")}
	var variants []decision.Variant
	for _, v := range []struct {
		name      string
		threshold float64
	}{{"as it is", 0.7}, {"bolder", 0.5}} {
		s, err := decision.NewHeuristicFirst(decision.Config{LLM: model, Traces: traces, Threshold: v.threshold})
		if err != nil {
			panic(err)
		}
		variants = append(variants, decision.Variant{Name: v.name, Strategy: s})
	}
	experiment, err := decision.NewExperiment(decision.ExperimentConfig{
		Name: "bolder heuristics", Variants: variants, Store: &memstore.Evidence{},
		Key:  func(r decision.Request) string { return r.Source }, // a user stays with one variant
		Stop: decision.Stop{MinOutcomes: 200},
	})
	if err != nil {
		panic(err)
	}
	reactions, err := decision.NewReactions(decision.ReactionsConfig{Traces: traces})
	if err != nil {
		panic(err)
	}

	population := users{rand.New(rand.NewPCG(7, 0))}
	var report decision.Report
	for event := 0; !report.Enough; event++ {
		user := fmt.Sprint("user ", event%500)
		result, err := experiment.Decide(ctx, decision.Request{
			EventID: fmt.Sprint(event), Source: user, Text: "It is 35 degrees in the server room.", Immediate: true,
			Candidates: []decision.Candidate{{HeuristicID: "cool", Action: "Turn the fan up.", Confidence: 0.6}},
		})
		if err != nil {
			panic(err)
		}
		credit, err := reactions.Feedback(ctx, decision.Reaction{
			ResponseID: result.ResponseID, Person: user, Source: "user_explicit", Value: population.react(result),
		})
		if err != nil {
			panic(err)
		}
		outcome := decision.ExperimentOutcome{
			Variant: credit.Variant, ID: credit.ID, Replaces: credit.Replaces, Reward: (credit.Value + 1) / 2, Source: credit.Person,
		}
		if err := experiment.Observe(ctx, outcome); err != nil {
			panic(err)
		}
		if event%100 == 99 {
			if report, err = experiment.Report(ctx); err != nil {
				panic(err)
			}
		}
	}

	for _, v := range report.Variants {
		fmt.Printf("%-8s  %3.0f outcomes  success %.2f  calls of the model %.0f a decision\n", v.Name, v.Outcomes, v.Success.Mean(), v.Cost)
	}
	bolder := report.Variants[1]
	fmt.Printf("better with probability %.3f, by %.2f to %.2f; keep %q (by %s)\n",
		bolder.ProbBetter, bolder.LiftLow, bolder.LiftHigh, report.Best, report.Why)
}

// Experiment asks whether heuristics may answer with less confidence than they need today: an A/B experiment, split by
// user, on what users say of the answers. It ends when there is enough to decide by; with -db and a number of -events it is
// broken off before, and the next run goes on with it.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/decision/llmtest"
	"github.com/heedhq/heed/examples/internal/database"
	"github.com/heedhq/heed/examples/internal/show"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
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

func main() { show.Main("experiment", command) }

func command(ctx context.Context, args []string, out io.Writer, _ func(done, of int)) (err error) {
	flags := flag.NewFlagSet("experiment", flag.ContinueOnError)
	where := flags.String("db", "", database.Usage)
	most := flags.Int("events", 100_000, "how many events to wait for, if it takes so many to decide")
	if err := show.Parse(flags, args); err != nil {
		return err
	}
	var st store.Store = &memstore.Store{}
	if *where != "" {
		kept, handle, err := database.Open(ctx, *where, sqlstore.Config{})
		if err != nil {
			return err
		}
		defer handle.Close() //nolint:errcheck // what counts is committed
		st = kept
	}
	report, err := try(ctx, st, *most)
	if err != nil {
		return err
	}
	for _, v := range report.Variants {
		fmt.Fprintf(out, "%-8s  %3.0f outcomes  success %.2f  calls of the model %.0f a decision\n", v.Name, v.Outcomes, v.Success.Mean(), v.Cost)
	}
	bolder := report.Variants[1]
	fmt.Fprintf(out, "better with probability %.3f, by %.2f to %.2f; ", bolder.ProbBetter, bolder.LiftLow, bolder.LiftHigh)
	if report.Enough {
		fmt.Fprintf(out, "keep %q (by %s)\n", report.Best, report.Why)
	} else {
		fmt.Fprintln(out, "it is too early to tell")
	}
	return nil
}

// try runs the experiment, on top of the outcomes that the store has of it.
func try(ctx context.Context, st store.Store, events int) (decision.ExperimentReport, error) {
	experiment, err := newExperiment(ctx, st)
	if err != nil {
		return decision.ExperimentReport{}, err
	}
	traces, err := decision.New(ctx, decision.Config{Store: st})
	if err != nil {
		return decision.ExperimentReport{}, err
	}
	report, err := experiment.Report(ctx)
	var before float64
	for _, v := range report.Variants {
		before += v.Outcomes
	}
	population := users{rand.New(rand.NewPCG(7, uint64(before)))}
	for event := 0; err == nil && event < events && !report.Enough; event++ {
		err = ask(ctx, experiment, traces, population, event)
		if err == nil && (event%100 == 99 || event == events-1) {
			report, err = experiment.Report(ctx)
		}
	}
	return report, err
}

func newExperiment(ctx context.Context, st store.Store) (*decision.Experiment, error) {
	model := &llmtest.Model{Answers: llmtest.Say("Have a look at the sensor.")}
	var variants []decision.Variant
	for _, v := range []struct {
		name      string
		threshold float64
	}{{"as it is", 0.7}, {"bolder", 0.5}} {
		s, err := decision.New(ctx, decision.Config{LLM: model, Store: st, Threshold: v.threshold})
		if err != nil {
			return nil, err
		}
		variants = append(variants, decision.Variant{Name: v.name, Strategy: s})
	}
	return decision.NewExperiment(ctx, decision.ExperimentConfig{
		Name: "bolder heuristics", Variants: variants, Store: st,
		Key:         func(r decision.Request) string { return r.Source }, // a user stays with one variant
		MinOutcomes: 200,
	})
}

// ask has one user ask, and gives the experiment the outcome that follows from the user's reaction.
// Any Decider finds the answers of all variants, because they are in one store.
func ask(
	ctx context.Context, experiment *decision.Experiment, traces *decision.Decider, population users,
	event int,
) error {
	user := fmt.Sprint("user ", event%500)
	result, err := experiment.Decide(ctx, decision.Request{
		EventID: fmt.Sprint(event), Source: user, Text: "It is 35 degrees in the server room.",
		Candidates: []decision.Candidate{{HeuristicID: "cool", Action: "Turn the fan up.", Confidence: 0.6}},
	})
	if err != nil {
		return err
	}
	credit, err := traces.Feedback(ctx, decision.Reaction{
		ResponseID: result.ResponseID, Person: user, Channel: "user_explicit",
		Value: population.react(result),
	})
	if err != nil {
		return err
	}
	return experiment.Observe(ctx, decision.ExperimentOutcome{
		Variant: credit.Variant, ID: result.ResponseID, Source: user,
		Reward: (credit.Statement.Value + 1) / 2,
	})
}

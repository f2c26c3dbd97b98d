// Ownlearning brings a strategy of one's own to package learning: what is seen means something
// else, and all the rest stays.
//
// The strategy that comes with the package lets an undo take back all answers to the last event.
// Here it takes back the last answer alone. The program wires it between what decides and
// what learns, and chooses it by its name.
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/memstore"
)

// LastOnly is a [learning.Strategy]: by embedding what [learning.NewBayesian] returns, it
// implements only what differs.
type LastOnly struct{ learning.Strategy }

// InterpretUndo implements [learning.Strategy].
func (l LastOnly) InterpretUndo(text string, answers []learning.Answer) ([]learning.Signal, error) {
	signals, err := l.Strategy.InterpretUndo(text, answers)
	return signals[max(0, len(signals)-1):], err
}

// Config implements [learning.Strategy].
func (l LastOnly) Config() map[string]string {
	cfg := l.Strategy.Config()
	cfg["strategy"] = "last_only"
	return cfg
}

func newLastOnly(cfg learning.BayesianConfig) (learning.Strategy, error) {
	bayesian, err := learning.NewBayesian(cfg)
	return LastOnly{bayesian}, err
}

// strategies are those that the program chooses from.
var strategies = map[string]func(learning.BayesianConfig) (learning.Strategy, error){
	"bayesian": learning.NewBayesian, "last_only": newLastOnly,
}

var actions = map[string]string{"blinds": "Close the blinds.", "heating": "Turn the heating down."}

// play shows two answers, has the user take something back, and returns what is believed then.
func play(ctx context.Context, name string) error {
	strategy, err := strategies[name](learning.BayesianConfig{})
	if err != nil {
		return err
	}
	module, err := learning.New(ctx, learning.Config{
		Strategy: strategy, Initial: 0.6, Store: &memstore.Store{},
	})
	if err != nil {
		return err
	}
	decide, err := decision.New(ctx, decision.Config{Threshold: 0.5})
	if err != nil {
		return err
	}

	shown := time.Now().Add(-10 * time.Second)
	for i, id := range []string{"blinds", "heating"} {
		if _, err := module.Put(ctx, learning.Heuristic{ID: id}); err != nil {
			return err
		}
		standing, err := module.Standing(ctx, id)
		if err != nil {
			return err
		}
		result, err := decide.Decide(ctx, decision.Request{EventID: "sun",
			Candidates: []decision.Candidate{
				// what was learned decides
				{HeuristicID: id, Action: actions[id], Confidence: standing.Confidence},
			}})
		if err != nil {
			return err
		}
		fire := learning.Fire{
			HeuristicID: result.CreditID, EventID: "sun", Person: "ann", Path: string(result.Path),
			At: shown.Add(time.Duration(i) * time.Second),
		}
		if err := module.Fire(ctx, fire); err != nil { // what was decided is learned from
			return err
		}
	}
	if _, err := module.Hear(ctx, learning.Message{Person: "ann",
		Text: "Undo that, I am cold."}); err != nil {
		return err
	}
	fmt.Printf("%-9s", name)
	for _, id := range []string{"blinds", "heating"} {
		standing, err := module.Standing(ctx, id)
		if err != nil {
			return err
		}
		fmt.Printf("  %s %.2f", id, standing.Confidence)
	}
	fmt.Println()
	return nil
}

func main() {
	for _, name := range []string{"bayesian", "last_only"} {
		if err := play(context.Background(), name); err != nil {
			panic(err)
		}
	}
}

package decision_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/decision/decisiontest"
)

// NightWatch is a strategy of a host's own: at night it answers nothing but threats, and leaves the
// rest to another.
type NightWatch struct {
	Night  func() bool
	ByDay  decision.Strategy
	Threat float64
}

// Decide implements [decision.Strategy].
func (n NightWatch) Decide(ctx context.Context, r decision.Request) (decision.Result, error) {
	if ctx.Err() == nil && r.Validate() == nil && n.Night() && r.Salience["threat"] < n.Threat {
		return decision.Result{Path: decision.Rejected, Reason: "night", Strategy: "night_watch"}, nil
	}
	return n.ByDay.Decide(ctx, r)
}

// A strategy of one's own is held to the contract by the suite.
func TestNightWatchKeepsTheContract(t *testing.T) {
	for _, night := range []bool{true, false} {
		decisiontest.RunStrategy(t, func(llm decision.LLM) (decision.Strategy, error) {
			byDay, err := decision.New(ctx, decision.Config{LLM: llm})
			return NightWatch{Night: func() bool { return night }, ByDay: byDay, Threat: 0.1}, err
		})
	}
}

func ExampleStrategy() {
	byDay, err := decision.New(ctx, decision.Config{})
	if err != nil {
		panic(err)
	}
	strategy := NightWatch{Night: func() bool { return true }, ByDay: byDay, Threat: 0.5}
	for _, threat := range []float64{0.1, 0.9} {
		result, err := strategy.Decide(context.Background(), decision.Request{
			Salience: map[string]float64{"threat": threat},
			Candidates: []decision.Candidate{{HeuristicID: "alarm", Action: "Wake everybody.",
				Confidence: 0.9}},
		})
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s %s: %q\n", result.Path, result.Reason, result.Text)
	}
	// Output:
	// rejected night: ""
	// heuristic : "Wake everybody."
}

// Owndecision brings a strategy of one's own to package decision: one that keeps to a budget of
// model calls.
//
// It wraps another strategy, like most do, and changes only the request to it. So it works with
// each of them, and in an experiment next to them.
package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/decision/llmtest"
)

// OutOfBudget is why an event got no answer that a model would have been asked about.
const OutOfBudget string = "out_of_budget"

// Budget is a [decision.Strategy] that lets another one call the model a number of times in each
// period. Decisions that run at the same time may go beyond it by what they call. It is safe for
// concurrent use. A Budget must not be copied.
type Budget struct {
	Next   decision.Strategy
	Calls  int
	Period time.Duration
	Now    func() time.Time

	mu    sync.Mutex
	until time.Time // when the present period is over
	spent int
}

// Decide implements [decision.Strategy].
func (b *Budget) Decide(ctx context.Context, r decision.Request) (decision.Result, error) {
	refuse := !r.CanWait && b.exhausted()
	if refuse {
		r.CanWait = true // no model is asked
	}
	result, err := b.Next.Decide(ctx, r)
	if refuse && result.Path == decision.Rejected && result.Reason == "not_immediate" {
		result.Reason = OutOfBudget
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spent += result.Calls
	return result, err
}

func (b *Budget) exhausted() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := b.Now(); !now.Before(b.until) {
		b.until, b.spent = now.Add(b.Period), 0
	}
	return b.spent >= b.Calls
}

func main() {
	ctx := context.Background()
	now := time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)
	model := &llmtest.Model{Answers: llmtest.Say("Have a look.")}
	first, err := decision.New(ctx, decision.Config{LLM: model})
	if err != nil {
		panic(err)
	}
	clock := func() time.Time { return now } // a host takes time.Now
	strategy := &Budget{Next: first, Calls: 2, Period: time.Hour, Now: clock}

	trusted := []decision.Candidate{{HeuristicID: "disk", Action: "Rotate the logs.",
		Confidence: 0.9}}
	for i, candidates := range [][]decision.Candidate{nil, nil, nil, trusted, nil} {
		if i == 4 {
			now = now.Add(time.Hour)
		}
		result, err := strategy.Decide(ctx, decision.Request{
			EventID: fmt.Sprint(i), Text: "Something is odd.", Candidates: candidates,
		})
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s %q %q\n", result.Path, result.Text, result.Reason)
	}
}

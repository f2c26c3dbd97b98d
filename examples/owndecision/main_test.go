package main

import (
	"context"
	"testing"
	"time"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/decision/decisiontest"
)

func Example() {
	main()
	// Output:
	// llm "Have a look." ""
	// llm "Have a look." ""
	// rejected "" "out_of_budget"
	// heuristic "Rotate the logs." ""
	// llm "Have a look." ""
}

// TestBudgetKeepsTheContract holds the strategy to what callers expect of one, with a budget and
// without any.
func TestBudgetKeepsTheContract(t *testing.T) {
	for _, calls := range []int{0, 3, 1000} {
		decisiontest.RunStrategy(t, func(llm decision.LLM) (decision.Strategy, error) {
			first, err := decision.New(context.Background(), decision.Config{LLM: llm})
			return &Budget{Next: first, Calls: calls, Period: time.Hour, Now: time.Now}, err
		})
	}
}

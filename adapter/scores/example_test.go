package scores_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/heedhq/heed/adapter/scores"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/loop"
)

// A score is what a service lists.
type score struct {
	ID, Trace, Name string
	Value           float64
	Updated         time.Time
}

// take is as the page has it.
func take(ctx context.Context, agent *loop.Agent, read func() []score) error {
	taker, err := scores.New(ctx, scores.Config{Agent: agent, Meanings: map[string]scores.Meaning{
		"helpful":  {},                  // from 0 to 1
		"toxicity": {Worst: 1, Best: 0}, // less is better
	}})
	if err != nil {
		return err
	}
	for _, s := range read() { // it is safe to read a score twice
		grade := scores.Grade{ID: s.ID, Answer: s.Trace, Name: s.Name, Value: &s.Value, At: s.Updated}
		if _, err := taker.Take(ctx, grade); err != nil {
			return err
		}
	}
	return nil
}

// Example is the program of README.md.
func Example() {
	ctx := context.Background()
	model := func(context.Context, decision.LLMRequest) (decision.LLMResponse, error) {
		return decision.LLMResponse{Text: "Rotate its logs."}, nil
	}
	agent, err := loop.New(ctx, loop.Config{Model: decision.LLMFunc(model)})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := agent.Answer(ctx, loop.Event{ID: "trace-1", Text: "The disk is full."}); err != nil {
		log.Fatal(err)
	}
	service := func() []score {
		return []score{
			{"s1", "trace-1", "helpful", 1, time.Now()}, {"s2", "trace-1", "toxicity", 0.25, time.Now()},
			{"s3", "trace-2", "helpful", 0, time.Now()}, // of a program without heed
		}
	}
	for range 2 {
		if err := take(ctx, agent, service); err != nil {
			log.Fatal(err)
		}
	}
	account, err := agent.Explain(ctx, "trace-1")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("worth", account.Worth)
	// Output:
	// worth 0.75
}

// Fixedclock is an agent whose decisions can be unit-tested: its time, its randomness, its ids and
// its model all come from outside. The program plays two alerts; main_test.go has the tests.
package main

import (
	"context"
	"fmt"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/decision/llmtest"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
)

// config is the agent: what it was taught, and who answers where that does not help. Tests set the
// clock, the seed, the ids and another model.
func config(model decision.LLM, taught ...learning.Heuristic) loop.Config {
	return loop.Config{Model: model, Lessons: loop.Lessons{Heuristics: taught}}
}

const stuck = "The queue is stuck."

var restart = learning.Heuristic{ID: "restart", Condition: "the queue is stuck",
	Action: "Restart it.", Initial: 0.75}

func main() {
	ctx := context.Background()
	agent, err := loop.New(ctx, config(&llmtest.Model{
		Answers: llmtest.Say("Ask the people on call.")}, restart))
	if err != nil {
		panic(err)
	}
	for _, person := range []string{"ann", "bob"} {
		answer, err := agent.Answer(ctx, loop.Event{Text: stuck, Person: person})
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s: %s\n", answer.Result.Path, answer.Text)
		if err := agent.React(ctx, answer.ID, loop.Reaction{Person: person, Value: -1}); err != nil {
			panic(err)
		}
	}
}

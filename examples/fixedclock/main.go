// Fixedclock is an agent whose decisions can be unit-tested: its time, its randomness, its ids and its model all come from
// outside. The program plays two alerts; main_test.go has the tests.
package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/decision/llmtest"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
)

// World is what an agent must not get for itself. The zero value of a field is the real thing.
type World struct {
	LLM   decision.LLM
	Now   func() time.Time
	Seed  rand.Source
	NewID func() string
}

// Agent answers alerts with what it was taught, as long as that is trusted, and else with a model.
type Agent struct {
	store     store.Store
	decide    *decision.Decider
	reactions *decision.Reactions
	learning  *learning.Module
	taught    []decision.Candidate
}

// NewAgent returns an agent that was taught these things. It trusts each with 0.75 to begin with.
func NewAgent(ctx context.Context, w World, taught ...decision.Candidate) (*Agent, error) {
	st, err := memstore.New(memstore.Config{Now: w.Now})
	if err != nil {
		return nil, err
	}
	a := &Agent{store: st, taught: taught}
	if a.learning, err = learning.New(ctx, learning.Config{Store: st, Initial: 0.75, Now: w.Now}); err != nil {
		return nil, err
	}
	for _, c := range taught {
		if _, err := a.learning.Put(ctx, learning.Heuristic{ID: c.HeuristicID}); err != nil {
			return nil, err
		}
	}
	if a.reactions, err = decision.NewReactions(ctx, decision.ReactionsConfig{Store: st, Now: w.Now}); err != nil {
		return nil, err
	}
	a.decide, err = decision.New(ctx, decision.Config{
		Withhold: new(float64), // the model is shown what is not trusted, as nothing is learned from its agreement here
		LLM:      w.LLM, Store: st, Now: w.Now, Seed: w.Seed, NewID: w.NewID,
	})
	return a, err
}

// Alert answers an alert.
func (a *Agent) Alert(ctx context.Context, id, text string) (decision.Result, error) {
	r := decision.Request{EventID: id, Text: text}
	for _, c := range a.taught {
		standing, err := a.learning.Standing(ctx, c.HeuristicID)
		if err != nil {
			return decision.Result{}, err
		}
		c.Confidence = standing.Confidence
		r.Candidates = append(r.Candidates, c)
	}
	r.Candidates = decision.Rank(r.Candidates, 0)
	r.Commit = func(ctx context.Context, answer decision.Result, trace store.Batch) error { // what is shown is waited for
		if answer.CreditID == "" {
			_, err := a.store.Commit(ctx, trace)
			return err
		}
		return a.learning.Fire(ctx, learning.Fire{HeuristicID: answer.CreditID, EventID: id}, trace)
	}
	return a.decide.Decide(ctx, r)
}

// Thumb is what somebody says of an answer.
func (a *Agent) Thumb(ctx context.Context, responseID, person string, up bool) error {
	r := decision.Reaction{ResponseID: responseID, Person: person, Value: -1}
	if up {
		r.Value = 1
	}
	r.Commit = func(ctx context.Context, c decision.Credit, verdict store.Batch) error {
		_, err := a.learning.Judge(ctx, learning.Judgement{Verdict: c.Verdict}, verdict)
		return err
	}
	_, err := a.reactions.Feedback(ctx, r)
	return err
}

// Tick is to be called now and then.
func (a *Agent) Tick(ctx context.Context, now time.Time) error {
	return a.learning.Sweep(ctx, now)
}

func main() {
	ctx := context.Background()
	model := &llmtest.Model{Answers: llmtest.Say("Ask the people on call.")}
	agent, err := NewAgent(ctx, World{LLM: model}, decision.Candidate{HeuristicID: "restart", Action: "Restart it."})
	if err != nil {
		panic(err)
	}
	for i, person := range []string{"ann", "bob"} {
		result, err := agent.Alert(ctx, fmt.Sprint("alert ", i), "The queue is stuck.")
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s: %s\n", result.Path, result.Text)
		if err := agent.Thumb(ctx, result.ResponseID, person, false); err != nil {
			panic(err)
		}
	}
}

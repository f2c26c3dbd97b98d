package loop_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
)

// A claim is a record of the host.
type claim struct {
	ID     string
	Opened time.Time
	Answer string // the event that heed answered
	Rating float64
}

var claims = store.View[claim]{
	Kind: store.Kind{Name: "shop.claim"},
	Place: func(c claim) (id string, at time.Time, keys []string) {
		return c.ID, c.Opened, nil
	},
}

var morning = time.Date(2026, 3, 14, 9, 0, 0, 0, time.UTC)

// newDesk returns an agent of a support desk, and its store. A host uses its own model and the
// database of sqlstore.
func newDesk(ctx context.Context) (*loop.Agent, store.Store) {
	now := func() time.Time { return morning }
	st, err := memstore.New(memstore.Config{Now: now})
	if err != nil {
		panic(err)
	}
	if err := st.Declare(ctx, claims.Kind); err != nil {
		panic(err)
	}
	says := func(context.Context, decision.LLMRequest) (decision.LLMResponse, error) {
		return decision.LLMResponse{Text: "Send it back within 30 days."}, nil
	}
	agent, err := loop.New(ctx, loop.Config{
		Store: st, Model: decision.LLMFunc(says),
		Testing: loop.Testing{Now: now, Seed: rand.NewPCG(1, 2)},
		Arms:    []loop.Arm{{ID: "brief", System: "Answer in one sentence."}},

		Instruments: []string{"shop"},
		Lessons: loop.Lessons{Heuristics: []learning.Heuristic{{
			ID: "invoice", Condition: "a customer needs a copy of an invoice", Initial: 0.9,
			Action: "Your invoices are under Account, Orders.",
		}}},
	})
	if err != nil {
		panic(err)
	}
	return agent, st
}

// A heuristic answers if it is trusted, and else the model.
func ExampleAgent_Answer() {
	ctx := context.Background()
	agent, _ := newDesk(ctx)
	for _, text := range []string{
		"A customer needs a copy of an invoice",
		"A customer wants to return a lamp",
	} {
		given, err := agent.Answer(ctx, loop.Event{Text: text, Person: "ann", Session: "C-1"})
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s: %s\n", given.Result.Path, given.Text)
	}
	// Output:
	// heuristic: Your invoices are under Account, Orders.
	// llm: Send it back within 30 days.
}

// The host's own record and the thumb are one commit: both are written, or neither.
func ExampleAgent_ReactIn() {
	ctx := context.Background()
	agent, st := newDesk(ctx)
	given, err := agent.Answer(ctx, loop.Event{ID: "e1", Text: "A customer wants to return a lamp"})
	if err != nil {
		panic(err)
	}
	err = store.Do(ctx, st, func(tx *store.Tx) error {
		row, err := claims.In(tx, "C-1")
		if err != nil {
			return err
		}
		c := claim{ID: "C-1", Opened: morning, Answer: given.ID, Rating: 1}
		claims.Put(tx, c, row.Revision)
		return agent.ReactIn(tx, c.Answer, loop.Reaction{Person: "ann", Value: c.Rating})
	})
	if err != nil {
		panic(err)
	}
	row, err := claims.Get(ctx, st, "C-1")
	if err != nil {
		panic(err)
	}
	account, err := agent.Explain(ctx, row.Value.Answer)
	if err != nil {
		panic(err)
	}
	fmt.Println(row.Value.Rating, account.Worth)
	// Output: 1 1
}

// An outcome of the shop's own system is reported in the step that closes the claim.
func ExampleAgent_OutcomeIn() {
	ctx := context.Background()
	agent, st := newDesk(ctx)
	given, err := agent.Answer(ctx, loop.Event{ID: "e1", Text: "A customer wants to return a lamp"})
	if err != nil {
		panic(err)
	}
	solved := true
	err = store.Do(ctx, st, func(tx *store.Tx) error {
		claims.Put(tx, claim{ID: "C-1", Opened: morning, Answer: given.ID}, 0)
		return agent.OutcomeIn(tx, given.ID, loop.Outcome{Success: &solved, Source: "shop"})
	})
	if err != nil {
		panic(err)
	}
	account, err := agent.Explain(ctx, given.ID)
	if err != nil {
		panic(err)
	}
	for _, s := range account.Statements {
		fmt.Println(s.Channel, s.Source, s.Kind, s.Value)
	}
	// Output: outcome shop instrument 1
}

// A correction is a complaint about the answer. Corrections that mean the same become a proposal
// for a rule.
func ExampleAgent_Correct() {
	ctx := context.Background()
	agent, _ := newDesk(ctx)
	given, err := agent.Answer(ctx, loop.Event{Text: "A customer wants to return a lamp"})
	if err != nil {
		panic(err)
	}
	for _, reviewer := range []string{"kim", "lee", "mo"} {
		made, err := agent.Correct(ctx, given.ID, loop.Correction{
			Reviewer: reviewer, Text: "Always name the address for returns.",
		})
		if err != nil {
			panic(err)
		}
		fmt.Println(reviewer, "supports a proposal:", made.Proposal != "")
	}
	account, err := agent.Explain(ctx, given.ID)
	if err != nil {
		panic(err)
	}
	fmt.Println("worth", account.Worth)
	// Output:
	// kim supports a proposal: false
	// lee supports a proposal: true
	// mo supports a proposal: true
	// worth -1
}

// An account lists what the answer rests on, and every statement about it with its source.
func ExampleAgent_Explain() {
	ctx := context.Background()
	agent, _ := newDesk(ctx)
	given, err := agent.Answer(ctx, loop.Event{ID: "e1", Text: "A customer wants to return a lamp"})
	if err != nil {
		panic(err)
	}
	if err := agent.React(ctx, given.ID, loop.Reaction{Person: "ann", Value: -1}); err != nil {
		panic(err)
	}
	solved := true
	err = agent.Outcome(ctx, given.ID, loop.Outcome{Success: &solved, Source: "shop"})
	if err != nil {
		panic(err)
	}
	account, err := agent.Explain(ctx, given.ID)
	if err != nil {
		panic(err)
	}
	fmt.Println(account.Path, account.Choice.Arm)
	fmt.Printf("%+.2f by %s\n", account.Worth, account.Channel)
	for _, s := range account.Statements {
		fmt.Printf("%s of %s: %+.0f, counts %.2f\n", s.Channel, s.Source, s.Value, s.Confidence)
	}
	// Output:
	// llm brief
	// +0.00 by outcome, user_explicit
	// user_explicit of ann: -1, counts 0.50
	// outcome of shop: +1, counts 0.50
}

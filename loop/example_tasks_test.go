package loop_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/decision/llmtest"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/llm"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/best"
)

// made returns an agent with a fixed clock and seed. It panics on a fault, as examples do.
func made(cfg loop.Config) *loop.Agent {
	cfg.Testing = loop.Testing{
		Now: func() time.Time { return morning }, Seed: rand.NewPCG(1, 2),
	}
	agent, err := loop.New(context.Background(), cfg)
	if err != nil {
		panic(err)
	}
	return agent
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// A webhook knows the ticket alone. Find returns the newest answer of the ticket's session. If the
// ticket is opened again, the outcome is withdrawn.
func ExampleAgent_Find() {
	ctx := context.Background()
	agent := made(loop.Config{
		Model:       &llmtest.Model{Answers: llmtest.Say("Rotate its logs.")},
		Instruments: []string{"helpdesk"},
	})
	must(agent.Answer(ctx, loop.Event{Text: "The disk of db-1 is full.", Session: "ticket 7"}))

	id := must(agent.Find(ctx, "ticket 7"))
	resolved := true
	fmt.Println(agent.Outcome(ctx, id, loop.Outcome{Success: &resolved, Source: "helpdesk"}))
	fmt.Println(must(agent.Explain(ctx, id)).Worth)
	fmt.Println(agent.Outcome(ctx, id, loop.Outcome{Withdraw: true, Source: "helpdesk"}))
	_, err := agent.Find(ctx, "ticket 8")
	fmt.Println(errors.Is(err, loop.ErrNoAnswer))
	// Output:
	// <nil>
	// 1
	// <nil>
	// true
}

// Prepare returns what to ask the model: what heed has learned follows the system prompt, and the
// heuristics that fit follow the event's text.
func ExampleAgent_Prepare() {
	ctx := context.Background()
	agent := made(loop.Config{
		System: "You help the people who run our servers.",
		Arms:   []loop.Arm{{ID: "brief", System: "Answer in one sentence."}},
		Lessons: loop.Lessons{
			Heuristics: []learning.Heuristic{{
				ID: "rotate", Condition: "the disk of db-1 is full", Action: "Rotate its logs.",
			}},
			Notes: []loop.Note{{ID: "db-1", Text: "db-1 is the billing database."}},
		},
		// By default the model is not shown what is still to earn trust.
		Tuning: loop.Tuning{Decision: decision.Config{Withhold: new(float64)}},
	})
	plan := must(agent.Prepare(ctx, loop.Event{ID: "e1", Text: "The disk of db-1 is full."}))
	fmt.Println(plan.Ready, plan.Arm.ID)
	fmt.Println(plan.System)
	fmt.Println("----")
	fmt.Println(plan.Prompt)

	// Your framework asks its model, and the agent records the answer.
	answer := must(agent.Answered(ctx, plan, loop.Reply{Text: "Rotate its logs."}))
	fmt.Println("----")
	fmt.Println(answer.ID, answer.Text)
	// Output:
	// false brief
	// Answer in one sentence.
	//
	// ## Notes
	//
	// - db-1 is the billing database.
	// ----
	// The disk of db-1 is full.
	//
	// Previous responses to similar situations (for context — you may ignore these):
	// 1. Situation: "the disk of db-1 is full" → Response: "Rotate its logs."
	// ----
	// e1 Rotate its logs.
}

// A text such as "undo that" takes back the newest answer of its session. The model is asked
// nevertheless, because it may have to do the undoing.
func ExampleAgent_Answer_undo() {
	ctx := context.Background()
	agent, _ := newDesk(ctx)
	addStatement := func(id, text string) loop.Answer {
		return must(agent.Answer(ctx, loop.Event{ID: id, Text: text, Session: "C-1", Person: "ann"}))
	}
	addStatement("e1", "A customer needs a copy of an invoice")
	fmt.Println(addStatement("e2", "undo that").Plan.Undone)
	fmt.Println(must(agent.Explain(ctx, "e1")).Channel)
	// Output:
	// [e1]
	// undo
}

// streaming is a model that gives its answer in pieces, as adapter/openai does.
type streaming struct{}

func (streaming) Generate(
	context.Context, decision.LLMRequest,
) (decision.LLMResponse, error) {
	return decision.LLMResponse{Text: "Rotate its logs."}, nil
}

func (streaming) Stream(
	_ context.Context, _ decision.LLMRequest, piece func(text string),
) (decision.LLMResponse, error) {
	piece("Rotate ")
	piece("its logs.")
	return decision.LLMResponse{Text: "Rotate its logs."}, nil
}

// OnChunk receives the answer in pieces, if the model is a Streamer. If again is true, the pieces
// before were thoughts, or their model broke off.
func ExampleStreamer() {
	agent := made(loop.Config{Model: streaming{}})
	answer := must(agent.Answer(context.Background(), loop.Event{
		Text: "The disk is full.",
		OnChunk: func(_ context.Context, text string, again bool) {
			fmt.Printf("%q %v\n", text, again)
		},
	}))
	fmt.Println(answer.Text)
	// Output:
	// "Rotate " false
	// "its logs." false
	// Rotate its logs.
}

// agree lets eve propose a rule about a tool, and two others approve it.
func agree(ctx context.Context, agent *loop.Agent, text, tool, forbid string) {
	rules := agent.Feedback().Rules()
	p := must(rules.Propose(ctx, feedback.Submission{
		Draft: feedback.Draft{
			Text: text, Agents: []string{agent.Name()},
			Check: feedback.Check{Tool: tool, Forbid: forbid},
		},
		Actor: "eve", Reason: "we lost one in May",
	}))
	for _, who := range []string{"cleo", "dan"} {
		must(rules.Review(ctx, feedback.Review{
			Proposal: p.ID, Hash: p.Hash(), Decision: feedback.Approved, Actor: who, Reason: "right",
		}))
	}
}

// Before a tool is called, Tool returns the rules that the call would break. The caller decides.
func ExampleAgent_Tool() {
	ctx := context.Background()
	agent := made(loop.Config{
		Name:  "coder",
		Model: &llmtest.Model{Answers: llmtest.Say("I drop the table.")},
	})
	answer := must(agent.Answer(ctx, loop.Event{ID: "e1", Text: "Free some space.", Task: "job 4"}))
	agree(ctx, agent, "Delete no table", "sql", `(?i)\bdrop\b`)

	violations := must(agent.Tool(ctx, answer.ID, loop.ToolResult{
		Before: true, Name: "sql", Input: "drop table users",
	}))
	for _, v := range violations {
		fmt.Println("breaks:", v.Text)
	}
	// The result of a tool that failed is shown to the next event of the task.
	failed := loop.ToolResult{ID: "c1", Name: "df", Err: errors.New("no df")}
	_, err := agent.Tool(ctx, answer.ID, failed)
	plan := must(agent.Prepare(ctx, loop.Event{ID: "e2", Text: "Try again.", Task: "job 4"}))
	fmt.Println(err, strings.Contains(plan.System, "no df"))
	// Output:
	// breaks: Delete no table
	// <nil> true
}

// A heuristic whose text changes starts without evidence, because people judged the old text.
func ExampleAgent_Teach() {
	ctx := context.Background()
	agent := made(loop.Config{})
	teach := func(action string) {
		taught := must(agent.Teach(ctx, loop.Lessons{Heuristics: []learning.Heuristic{
			{ID: "rotate", Condition: "the disk of a server is full", Action: action},
		}}))
		fmt.Println(taught.New, taught.Changed, taught.Restarted)
	}
	teach("Rotate its logs.")
	teach("Rotate its logs.")
	teach("Rotate its logs, and look for what fills it.")
	// Output:
	// 1 0 []
	// 0 0 []
	// 0 1 [rotate]
}

// If the model fails, a fallback answers. The failure says nothing about the quality of the arm.
func ExampleConfig_fallbacks() {
	ctx := context.Background()
	down := decision.LLMFunc(
		func(context.Context, decision.LLMRequest) (decision.LLMResponse, error) {
			return decision.LLMResponse{}, fmt.Errorf("%w: connection refused", llm.Unreachable)
		})
	agent := made(loop.Config{
		Model:     down,
		Fallbacks: []decision.LLM{&llmtest.Model{Answers: llmtest.Say("Rotate its logs.")}},
		Arms:      []loop.Arm{{ID: "brief"}},
	})
	answer := must(agent.Answer(ctx, loop.Event{Text: "The disk is full.", Item: "disk"}))
	fmt.Println(answer.Text)
	for d, err := range agent.Strategy().Distributions(ctx) {
		fmt.Println(d.Outcomes, err)
	}
	// Output:
	// Rotate its logs.
}

// A race chooses among the arms, and reports which one is best at a stated error.
func ExampleConfig_race() {
	ctx := context.Background()
	model := decision.LLMFunc(
		func(_ context.Context, r decision.LLMRequest) (decision.LLMResponse, error) {
			return decision.LLMResponse{Text: r.System}, nil
		})
	var race *best.Race
	agent := made(loop.Config{
		Model: model,
		Arms:  []loop.Arm{{ID: "long", System: "Explain."}, {ID: "brief", System: "One sentence."}},
		Choosing: loop.Choosing{
			Choose: func(ctx context.Context, l *strategy.Learner) (c loop.Chooser, err error) {
				race, err = best.New(ctx, best.Config{Learner: l, Error: 0.05})
				return race, err
			},
		},
	})
	for i := range 80 {
		answer := must(agent.Answer(ctx, loop.Event{ID: fmt.Sprint(i), Text: "Why?", Domain: "faq"}))
		liked := strings.Contains(answer.Text, "sentence")
		err := agent.Outcome(ctx, answer.ID, loop.Outcome{Success: &liked})
		if err != nil {
			panic(err)
		}
	}
	standing := must(race.Standing(ctx, strategy.Query{Category: "faq"}))
	fmt.Println(standing.Leader)
	// Output: brief
}

// Each organisation has an agent that learns from its own people alone.
func ExampleAgent_Tenant() {
	ctx := context.Background()
	agent, err := loop.New(ctx, loop.Config{
		Model: &llmtest.Model{Answers: llmtest.Say("Restart it.")},
	})
	if err != nil {
		panic(err)
	}
	for _, organisation := range []string{"acme", "bravo"} { // of who sends the request
		tenant, err := agent.Tenant(ctx, organisation)
		if err != nil {
			panic(err)
		}
		answer, err := tenant.Answer(ctx, loop.Event{ID: "42", Text: "The build hangs"})
		if err != nil {
			panic(err)
		}
		fmt.Println(organisation, answer.ID, answer.Text)
	}
	_, err = agent.Explain(ctx, "42")
	fmt.Println(errors.Is(err, loop.ErrNoAnswer))
	// Output:
	// acme 42 Restart it.
	// bravo 42 Restart it.
	// true
}

// While an agent is frozen, answers go on and nothing is learned.
func ExampleAgent_Freeze() {
	ctx := context.Background()
	agent, _ := newDesk(ctx)
	must(0, agent.Freeze(ctx, true))
	answer := must(agent.Answer(ctx, loop.Event{ID: "e1", Text: "A customer needs an invoice"}))
	fmt.Println(answer.Text != "", agent.React(ctx, "e1", loop.Reaction{Person: "ann", Value: 1}))
	fmt.Println(must(agent.Learning().Standing(ctx, "invoice")).Fires)
	// Output:
	// true <nil>
	// 0
}

// Before production, every event is answered as without learning, and Would names the heuristic
// that would have answered.
func ExampleConfig_shadow() {
	ctx := context.Background()
	agent := made(loop.Config{
		Model:   &llmtest.Model{Answers: llmtest.Say("Call Ann.")},
		Control: 1,
		Lessons: loop.Lessons{Heuristics: []learning.Heuristic{{
			ID: "rotate", Condition: "the disk is full", Action: "Rotate its logs.", Initial: 0.9,
		}}},
	})
	answer := must(agent.Answer(ctx, loop.Event{Text: "The disk is full."}))
	fmt.Println(answer.Text, answer.Plan.Would)
	// Output: Call Ann. rotate
}

// A failing store can be switched off, as a database that is away.
type failing struct {
	store.Store
	down bool
}

var errAway = errors.New("connection refused")

func (f *failing) Read(
	ctx context.Context, s *store.Snapshot, cells []evidence.Cell, refs []store.Ref,
	queries ...store.Query,
) error {
	if f.down {
		return errAway
	}
	return f.Store.Read(ctx, s, cells, refs, queries...)
}

func (f *failing) Commit(ctx context.Context, b ...store.Batch) ([]store.Receipt, error) {
	if f.down {
		return nil, errAway
	}
	return f.Store.Commit(ctx, b...)
}

// If the store fails, the agent answers by what it read last, and lists what is missing. The answer
// is recorded when the store is back.
func ExampleAgent_Answered_degraded() {
	ctx := context.Background()
	st := &failing{Store: must(memstore.New(memstore.Config{}))}
	agent := must(loop.New(ctx, loop.Config{
		Store: st, Model: &llmtest.Model{Answers: llmtest.Say("Rotate its logs.")},
	}))
	st.down = true
	answer := must(agent.Answer(ctx, loop.Event{ID: "e1", Text: "The disk is full."}))
	fmt.Println(answer.Text, answer.Degraded.Recorded())
	st.down = false
	again := must(agent.Answered(ctx, answer.Plan, loop.Reply{}))
	fmt.Println(again.ID, again.Degraded.Recorded())
	// Output:
	// Rotate its logs. false
	// e1 true
}

package looptest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/loop/looptest"
)

// unasked is a fault that asks no rules.
func unasked(*bot, context.Context, string, loop.ToolResult) ([]feedback.Violation, error) {
	return nil, nil
}

// broken are adapters with one fault each, by the rule that must find it.
var broken = map[string]map[string]fault{
	"an answer of the model is kept once, as it was said": {
		"tells of each piece under a name of its own": {piece: func(b *bot, ctx context.Context, p *loop.Plan, said *looptest.Piece) {
			q := *p
			q.Event.ID += said.Text
			_, _ = b.agent.Answered(ctx, q, loop.Reply{Text: said.Text})
		}},
		"tells of the first piece": {piece: func(b *bot, ctx context.Context, p *loop.Plan, said *looptest.Piece) {
			_, _ = b.agent.Answered(ctx, *p, loop.Reply{Text: said.Text})
		}},
		"adds to the answer": {said: func(_ *bot, _ context.Context, _ looptest.Turn, said *looptest.Said) { said.Text += " (by heed)" }},
	},
	"an answer has an id that takes a reaction": {
		"has no id": {said: func(_ *bot, _ context.Context, _ looptest.Turn, said *looptest.Said) { said.ID = "" }},
		"has no id where a heuristic answers": {ready: func(_ *bot, _ context.Context, t looptest.Turn, p *loop.Plan) (looptest.Said, error) {
			return looptest.Said{Text: p.Text}, nil
		}},
		"has decision's id": {answered: func(b *bot, ctx context.Context, p loop.Plan, r loop.Reply) (loop.Answer, error) {
			answer, err := b.agent.Answered(ctx, p, r)
			answer.ID = answer.Result.ResponseID
			return answer, err
		}},
		"does not tell what the model said": {answered: func(_ *bot, _ context.Context, p loop.Plan, r loop.Reply) (loop.Answer, error) {
			return loop.Answer{ID: p.Event.ID, Text: r.Text}, r.Err
		}},
	},
	"an answer earns nothing by itself": {
		"praises": {said: func(b *bot, ctx context.Context, t looptest.Turn, said *looptest.Said) {
			_ = b.agent.React(ctx, said.ID, loop.Reaction{Person: t.Person, Value: 1})
		}},
		"takes the end of a turn for a success": {said: func(b *bot, ctx context.Context, _ looptest.Turn, said *looptest.Said) {
			yes := true
			_ = b.agent.Outcome(ctx, said.ID, loop.Outcome{Success: &yes})
		}},
	},
	"a trusted heuristic answers and no model is called": {
		"asks the model in any case": {ready: func(b *bot, ctx context.Context, t looptest.Turn, p *loop.Plan) (looptest.Said, error) {
			said, err := b.ask(ctx, p, []looptest.Line{{Role: looptest.User, Text: t.Text}}, t.Stream)
			return looptest.Said{ID: t.ID, Text: said.Text}, err
		}},
		"remembers what heuristics answered": {turn: func(b *bot, ctx context.Context, t looptest.Turn) (looptest.Said, error) {
			if said, is := b.plans.Load(t.Text); is {
				t.ID = said.(looptest.Said).ID
			}
			said, err := b.contained(ctx, t)
			b.plans.Store(t.Text, said)
			return said, err
		}},
		"streams nothing where a heuristic answers": {ready: func(_ *bot, _ context.Context, t looptest.Turn, p *loop.Plan) (looptest.Said, error) {
			return looptest.Said{ID: p.Event.ID, Text: p.Text}, nil
		}},
	},
	"credit is given once": {
		"prepares twice": {turn: func(b *bot, ctx context.Context, t looptest.Turn) (looptest.Said, error) {
			_, err := b.agent.Prepare(ctx, loop.Event{Text: t.Text, Session: t.Session, Person: t.Person})
			if err != nil {
				return looptest.Said{}, err
			}
			return b.contained(ctx, t)
		}},
	},
	"a turn that is delivered again has the same answer": {
		"makes an id for each delivery": {event: func(_ *bot, e *loop.Event) { e.ID = "" }},
	},
	"a turn that is delivered twice at once has one answer": {
		"makes an id for each delivery": {event: func(_ *bot, e *loop.Event) { e.ID = "" }},
		"says what the model said": {answered: func(b *bot, ctx context.Context, p loop.Plan, r loop.Reply) (loop.Answer, error) {
			answer, err := b.agent.Answered(ctx, p, r)
			answer.Text = r.Text
			return answer, errors.Join(r.Err, err)
		}},
	},
	"each message has an answer of its own": {
		"takes the session for the id": {event: func(_ *bot, e *loop.Event) { e.ID = e.Session }},
		"takes the text for the id":    {event: func(_ *bot, e *loop.Event) { e.ID = e.Text }},
	},
	"person and session reach heed": {
		"drops the person":  {event: func(_ *bot, e *loop.Event) { e.Person = "" }},
		"drops the session": {event: func(_ *bot, e *loop.Event) { e.Session = "" }},
		"swaps them":        {event: func(_ *bot, e *loop.Event) { e.Person, e.Session = e.Session, e.Person }},
	},
	"a person's words take an answer back": {
		"hears the words again after the answer": {said: func(b *bot, ctx context.Context, t looptest.Turn, _ *looptest.Said) {
			_, _ = b.agent.Hear(ctx, learning.Message{Session: t.Session, Person: t.Person, Text: t.Text})
		}},
	},
	"what heed adds reaches the model once": {
		"adds to each request": {request: func(_ *bot, p *loop.Plan, lines []looptest.Line) []looptest.Line {
			return append([]looptest.Line{{Role: looptest.System, Text: p.System}}, lines...)
		}},
		"adds it to the user's text, too": {lines: func(_ *bot, _ looptest.Turn, p *loop.Plan, lines []looptest.Line) []looptest.Line {
			lines[len(lines)-1].Text = p.System + lines[len(lines)-1].Text
			return lines
		}},
		"adds nothing": {lines: func(b *bot, _ looptest.Turn, _ *loop.Plan, lines []looptest.Line) []looptest.Line {
			lines[0].Text = b.script.System
			return lines
		}},
		"leaves the heuristics out": {lines: func(_ *bot, t looptest.Turn, _ *loop.Plan, lines []looptest.Line) []looptest.Line {
			lines[len(lines)-1].Text = t.Text
			return lines
		}},
		"forgets it after a tool": {request: func(b *bot, _ *loop.Plan, lines []looptest.Line) []looptest.Line {
			if lines[len(lines)-1].Role == looptest.ToolRole {
				lines[0].Text = b.script.System
			}
			return lines
		}},
	},
	"the record of an answer says what the prompt had": {
		"makes the plan anew": {answered: func(b *bot, ctx context.Context, p loop.Plan, r loop.Reply) (loop.Answer, error) {
			answer, err := b.agent.Answered(ctx, loop.Plan{Event: p.Event}, r)
			return answer, errors.Join(r.Err, err)
		}},
	},
	"the user's text reaches the model once and unchanged": {
		"sends text and prompt": {lines: func(_ *bot, t looptest.Turn, _ *loop.Plan, lines []looptest.Line) []looptest.Line {
			return append(lines, looptest.Line{Role: looptest.User, Text: t.Text})
		}},
		"writes it small": {event: func(_ *bot, e *loop.Event) { e.Text = strings.ToLower(e.Text) }},
		"trims it":        {event: func(_ *bot, e *loop.Event) { e.Text = strings.Join(strings.Fields(e.Text), " ") }},
		"sends it as the system's": {lines: func(_ *bot, _ looptest.Turn, _ *loop.Plan, lines []looptest.Line) []looptest.Line {
			lines[len(lines)-1].Role = looptest.System
			return lines
		}},
	},
	"the host's system prompt reaches the model once": {
		"puts heed's in its place": {lines: func(_ *bot, _ looptest.Turn, p *loop.Plan, lines []looptest.Line) []looptest.Line {
			lines[0].Text = p.System
			return lines
		}},
	},
	"only rules in force reach the model": {
		"adds corrections": {lines: func(b *bot, _ looptest.Turn, _ *loop.Plan, lines []looptest.Line) []looptest.Line {
			records, _, _ := b.agent.Feedback().List(context.Background(), feedback.Listing{})
			for _, r := range records {
				lines[0].Text += "\n" + r.Summary
			}
			return lines
		}},
		"adds rules of others": {lines: func(b *bot, _ looptest.Turn, _ *loop.Plan, lines []looptest.Line) []looptest.Line {
			rules, _ := b.agent.Feedback().Rules().List(context.Background(), feedback.RuleQuery{})
			for _, r := range rules {
				lines[0].Text += "\n" + r.Text
			}
			return lines
		}},
		"adds all proposals": {lines: func(b *bot, _ looptest.Turn, _ *loop.Plan, lines []looptest.Line) []looptest.Line {
			proposals, _, _ := b.agent.Feedback().Rules().Proposals(context.Background(), feedback.ProposalQuery{}, 0)
			for _, p := range proposals {
				lines[0].Text += "\n" + p.Text
			}
			return lines
		}},
		"keeps those of the first turn": {lines: func(b *bot, _ looptest.Turn, _ *loop.Plan, lines []looptest.Line) []looptest.Line {
			if b.kept == nil {
				b.kept = lines[0]
			}
			lines[0] = b.kept.(looptest.Line)
			return lines
		}},
	},
	"an echo of what heed added is no evidence": {
		"hears the answer": {said: func(b *bot, ctx context.Context, t looptest.Turn, said *looptest.Said) {
			_, _ = b.agent.Hear(ctx, learning.Message{Session: t.Session, Person: t.Person, Text: said.Text})
		}},
		"hears the system prompt": {lines: func(b *bot, t looptest.Turn, p *loop.Plan, lines []looptest.Line) []looptest.Line {
			for _, note := range p.Notes {
				_, _ = b.agent.Hear(context.Background(), learning.Message{Session: t.Session, Text: note.Text})
			}
			return lines
		}},
		"takes the prompt for the text": {answered: func(b *bot, ctx context.Context, p loop.Plan, r loop.Reply) (loop.Answer, error) {
			p.Event.Text = p.System + p.Prompt
			answer, err := b.agent.Answered(ctx, p, r)
			return answer, errors.Join(r.Err, err)
		}},
		"takes an answer that has a rule for praise": {said: func(b *bot, ctx context.Context, t looptest.Turn, said *looptest.Said) {
			if account, err := b.agent.Explain(ctx, said.ID); err == nil && len(account.Rules) > 0 {
				_ = b.agent.React(ctx, said.ID, loop.Reaction{Value: 0.5})
			}
		}},
		"takes the answer for a correction": {said: func(b *bot, ctx context.Context, _ looptest.Turn, said *looptest.Said) {
			_, _ = b.agent.Correct(ctx, said.ID, loop.Correction{Reviewer: "model", Text: said.Text})
		}},
	},
	"a tool's output is nobody's words": {
		"hears the tool": {tool: func(b *bot, ctx context.Context, p *loop.Plan, r loop.ToolResult) error {
			_, err := b.agent.Hear(ctx, learning.Message{Session: p.Event.Session, Person: p.Event.Person, Text: r.Text})
			return err
		}},
	},
	"a call of a tool that works counts for nothing": {
		"tells of each reply of the model": {replied: func(b *bot, ctx context.Context, p *loop.Plan, said looptest.Piece) {
			_, _ = b.agent.Answered(ctx, *p, loop.Reply{Text: said.Text})
		}},
		"takes each result for an error": {tool: func(b *bot, ctx context.Context, p *loop.Plan, r loop.ToolResult) error {
			r.Err = errors.Join(r.Err, errors.New(r.Text))
			return told(b.agent.Tool(ctx, p.Event.ID, r))
		}},
		"calls a tool twice": {tool: func(b *bot, ctx context.Context, p *loop.Plan, r loop.ToolResult) error {
			_, err := b.call(ctx, p, looptest.Call{Tool: r.Name})
			return err
		}},
	},
	"each error of a tool counts once": {
		"does not tell of tools": {tool: func(*bot, context.Context, *loop.Plan, loop.ToolResult) error { return nil }},
		"tells twice": {tool: func(b *bot, ctx context.Context, p *loop.Plan, r loop.ToolResult) error {
			again := r
			again.ID += " again"
			return errors.Join(told(b.agent.Tool(ctx, p.Event.ID, r)), told(b.agent.Tool(ctx, p.Event.ID, again)))
		}},
		"tells without ids": {tool: func(b *bot, ctx context.Context, p *loop.Plan, r loop.ToolResult) error {
			r.ID = ""
			return told(b.agent.Tool(ctx, p.Event.ID, r))
		}},
		"tells of another task": {tool: func(b *bot, ctx context.Context, p *loop.Plan, r loop.ToolResult) error {
			return told(b.agent.Tool(ctx, p.Event.Session, r))
		}},
	},
	"a model that fails gives no answer": {
		"takes the error for the answer": {answered: func(b *bot, ctx context.Context, p loop.Plan, r loop.Reply) (loop.Answer, error) {
			if r.Err != nil {
				r.Text, r.Err = "Sorry: "+r.Err.Error(), nil
			}
			return b.agent.Answered(ctx, p, r)
		}},
		"does not tell of the error": {answered: func(b *bot, ctx context.Context, p loop.Plan, r loop.Reply) (loop.Answer, error) {
			if r.Err != nil {
				return loop.Answer{}, r.Err
			}
			return b.agent.Answered(ctx, p, r)
		}},
		"drops the error": {answered: func(b *bot, ctx context.Context, p loop.Plan, r loop.Reply) (loop.Answer, error) {
			return b.agent.Answered(ctx, p, r)
		}},
	},
	"a model that breaks off gives no answer": {
		"keeps what there was": {answered: func(b *bot, ctx context.Context, p loop.Plan, r loop.Reply) (loop.Answer, error) {
			if r.Text != "" {
				r.Err = nil
			}
			answer, err := b.agent.Answered(ctx, p, r)
			return answer, errors.Join(r.Err, err)
		}},
	},
	"a model that says nothing gives no answer": {
		"says the thoughts": {piece: func(_ *bot, _ context.Context, _ *loop.Plan, said *looptest.Piece) {
			if said.Text == "" {
				said.Text = said.Thought
			}
		}},
		"gives an id": {answered: func(b *bot, ctx context.Context, p loop.Plan, r loop.Reply) (loop.Answer, error) {
			answer, err := b.agent.Answered(ctx, p, r)
			return answer, errors.Join(r.Err, err)
		}},
		"finds words of its own": {answered: func(b *bot, ctx context.Context, p loop.Plan, r loop.Reply) (loop.Answer, error) {
			if strings.TrimSpace(r.Text) == "" {
				r.Text = "I do not know."
			}
			return b.agent.Answered(ctx, p, r)
		}},
	},
	"a context that ends leaves no answer behind": {
		"gives tools another context": {toolContext: context.WithoutCancel},
		"gives the model another context": {turn: func(b *bot, ctx context.Context, t looptest.Turn) (looptest.Said, error) {
			said, err := b.contained(context.WithoutCancel(ctx), t)
			return said, errors.Join(err, ctx.Err())
		}},
		"keeps what there was": {answered: func(b *bot, ctx context.Context, p loop.Plan, r loop.Reply) (loop.Answer, error) {
			if ctx.Err() != nil {
				_, _ = b.agent.Answered(context.WithoutCancel(ctx), p, loop.Reply{Text: r.Text + "…"})
				return loop.Answer{}, ctx.Err()
			}
			answer, err := b.agent.Answered(ctx, p, r)
			return answer, errors.Join(r.Err, err)
		}},
		"drops the error": {turn: func(b *bot, ctx context.Context, t looptest.Turn) (looptest.Said, error) {
			said, err := b.contained(ctx, t)
			if errors.Is(err, context.Canceled) {
				err = nil
			}
			return said, err
		}},
	},
	"a panic is an error and leaves no answer behind": {
		"lets it out": {turn: (*bot).run},
		"hides it": {turn: func(b *bot, ctx context.Context, t looptest.Turn) (said looptest.Said, err error) {
			defer func() { _ = recover() }()
			return b.run(ctx, t)
		}},
		"keeps an answer": {turn: func(b *bot, ctx context.Context, t looptest.Turn) (said looptest.Said, err error) {
			defer func() {
				if value := recover(); value != nil {
					p, _ := b.agent.Prepare(ctx, loop.Event{ID: t.ID, Text: t.Text, Session: t.Session, Person: t.Person})
					_, _ = b.agent.Answered(ctx, p, loop.Reply{Text: "Something went wrong."})
					err = fmt.Errorf("panic: %v", value)
				}
			}()
			return b.run(ctx, t)
		}},
		"stays locked": {turn: func(b *bot, ctx context.Context, t looptest.Turn) (said looptest.Said, err error) {
			b.lock <- struct{}{}
			said, err = b.contained(ctx, t)
			if err == nil || !strings.Contains(err.Error(), "panic") {
				<-b.lock
			}
			return said, err
		}},
	},
	"an answer that can't be kept has no id": {
		"gives its id": {answered: func(b *bot, ctx context.Context, p loop.Plan, r loop.Reply) (loop.Answer, error) {
			_, _ = b.agent.Answered(ctx, p, r)
			return loop.Answer{ID: p.Event.ID, Text: r.Text}, r.Err
		}},
	},
	"turns at once are kept apart": {
		"keeps plans by session": {
			lines: func(b *bot, t looptest.Turn, p *loop.Plan, lines []looptest.Line) []looptest.Line {
				b.plans.Store(t.Session, *p)
				return lines
			},
			answered: func(b *bot, ctx context.Context, p loop.Plan, r loop.Reply) (loop.Answer, error) {
				kept, _ := b.plans.Load(p.Event.Session)
				answer, err := b.agent.Answered(ctx, kept.(loop.Plan), r)
				return answer, errors.Join(r.Err, err)
			},
		},
		"has one plan for all": {
			lines: func(b *bot, _ looptest.Turn, p *loop.Plan, lines []looptest.Line) []looptest.Line {
				b.mu.Lock()
				defer b.mu.Unlock()
				b.kept = *p
				return lines
			},
			answered: func(b *bot, ctx context.Context, _ loop.Plan, r loop.Reply) (loop.Answer, error) {
				b.mu.Lock()
				p := b.kept.(loop.Plan)
				b.mu.Unlock()
				answer, err := b.agent.Answered(ctx, p, r)
				return answer, errors.Join(r.Err, err)
			},
		},
		"runs one after the other": {turn: func(b *bot, ctx context.Context, t looptest.Turn) (looptest.Said, error) {
			b.lock <- struct{}{}
			defer func() { <-b.lock }()
			return b.contained(ctx, t)
		}},
	},
	"tools of turns at once are kept apart": {
		"has one event for all": {
			lines: func(b *bot, _ looptest.Turn, p *loop.Plan, lines []looptest.Line) []looptest.Line {
				b.mu.Lock()
				defer b.mu.Unlock()
				b.kept = p.Event.ID
				return lines
			},
			tool: func(b *bot, ctx context.Context, _ *loop.Plan, r loop.ToolResult) error {
				b.mu.Lock()
				id := b.kept.(string)
				b.mu.Unlock()
				return told(b.agent.Tool(ctx, id, r))
			},
		},
	},
	"thoughts reach neither the user nor heed": {
		"shows what the model said": {answered: func(b *bot, ctx context.Context, p loop.Plan, r loop.Reply) (loop.Answer, error) {
			answer, err := b.agent.Answered(ctx, p, r)
			answer.Text = r.Text
			return answer, err
		}},
		"takes them for text": {piece: func(_ *bot, _ context.Context, _ *loop.Plan, said *looptest.Piece) {
			said.Text = said.Thought + said.Text
		}},
		"tells heed of them": {
			piece: func(b *bot, _ context.Context, _ *loop.Plan, said *looptest.Piece) { b.kept = said.Thought },
			answered: func(b *bot, ctx context.Context, p loop.Plan, r loop.Reply) (loop.Answer, error) {
				_, err := b.agent.Answered(ctx, p, loop.Reply{Text: fmt.Sprint(b.kept, r.Text)})
				return loop.Answer{ID: p.Event.ID, Text: r.Text}, err
			},
		},
	},
	"the end of an answer reaches who follows the stream": {
		"does not end the stream": {end: func(*bot, func()) {}},
	},
	"people of one session are told apart": {
		"names who opened the session": {event: func(b *bot, e *loop.Event) {
			opener, _ := b.plans.LoadOrStore(e.Session, e.Person)
			e.Person = opener.(string)
		}},
		"names who spoke before": {event: func(b *bot, e *loop.Event) {
			if before, is := b.plans.Swap(e.Session, e.Person); is {
				e.Person = before.(string)
			}
		}},
	},
	"the model of an arm answers": {
		"has one model": {model: func(b *bot, _ *loop.Plan) *looptest.Model { return b.script.Model }},
		"keeps the first arm's": {model: func(b *bot, p *loop.Plan) *looptest.Model {
			first, _ := b.plans.LoadOrStore("first", p.Arm.ModelName)
			if named := b.script.Models[first.(string)]; named != nil {
				return named
			}
			return b.script.Model
		}},
		"takes every model for it": {model: func(b *bot, _ *loop.Plan) *looptest.Model {
			for _, m := range b.script.Models {
				return m
			}
			return b.script.Model
		}},
	},
	"a model can call no tools but those of its arm": {
		"has all tools": {tools: func(*bot, *loop.Plan) []string { return nil }},
		"has none":      {tools: func(*bot, *loop.Plan) []string { return []string{} }},
	},
	"a call of a tool that breaks a rule is not made": {
		"does not ask": {before: unasked},
		"asks without the arguments": {before: func(b *bot, ctx context.Context, id string, r loop.ToolResult) ([]feedback.Violation, error) {
			r.Input = ""
			return b.agent.Tool(ctx, id, r)
		}},
		"compares the arguments as they are written": {before: func(b *bot, ctx context.Context, id string, r loop.ToolResult) ([]feedback.Violation, error) {
			if strings.Contains(r.Input, "db-1") || strings.Contains(r.Input, "a > b") {
				return b.agent.Tool(ctx, id, r)
			}
			return nil, nil
		}},
		"escapes the arguments twice": {before: func(b *bot, ctx context.Context, id string, r loop.ToolResult) ([]feedback.Violation, error) {
			r.Input = strings.NewReplacer("-", `\\u002d`, ">", `\\u003e`).Replace(r.Input)
			return b.agent.Tool(ctx, id, r)
		}},
		"refuses all": {before: func(*bot, context.Context, string, loop.ToolResult) ([]feedback.Violation, error) {
			return []feedback.Violation{{}}, nil
		}},
		"asks nothing about a turn without words": {
			turn: func(b *bot, ctx context.Context, t looptest.Turn) (looptest.Said, error) {
				if t.Text != "" {
					return b.contained(ctx, t)
				}
				careless := &bot{agent: b.agent, script: b.script, fault: fault{before: unasked}}
				text, err := careless.converse(ctx, &loop.Plan{Event: loop.Event{ID: t.ID}}, nil, t.Stream)
				return looptest.Said{Text: text}, err
			},
		},
	},
}

// Each broken adapter is found by the rule that is named for it.
func TestBrokenAdapters(t *testing.T) {
	for rule, faults := range broken {
		for name, fault := range faults {
			t.Run(rule+"/"+name, func(t *testing.T) {
				t.Parallel()
				subject := newBot(fault)
				subject.Patience = 2 * time.Second
				is, err := looptest.CheckRule(rule, subject)
				require.True(t, is, "there is no such rule")
				require.Error(t, err)
			})
		}
	}
	for _, rule := range looptest.Rules() {
		assert.NotEmpty(t, broken[rule], "no broken adapter shows that this rule bites: %s", rule)
	}
}

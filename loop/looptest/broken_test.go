//go:build !race

package looptest_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/llm"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/loop/looptest"
)

// hear has heed hear a text as the person's of the turn.
func (v *talk) hear(text string) error {
	_, err := v.agent.Hear(v.ctx, learning.Message{
		Session: v.turn.Session, Person: v.turn.Person, Text: text,
	})
	return err
}

// unasked is a fault that asks no rules.
func unasked(*talk, result) (violations, error) { return nil, nil }

// input is a fault that asks rules about changed arguments.
func input(change func(string) string) fault {
	return fault{before: func(v *talk, r result) (violations, error) {
		r.Input = change(r.Input)
		return v.asks(r)
	}}
}

// event is a fault that prepares another event.
func event(change func(*loop.Event)) fault {
	return fault{event: func(_ *bot, e *loop.Event) { change(e) }}
}

// first is a fault that changes the lines of the system and of the person in the first request.
func first(change func(v *talk, system, person *line)) fault {
	return fault{lines: func(v *talk, lines []line) []line {
		change(v, &lines[0], &lines[len(lines)-1])
		return lines
	}}
}

// locked runs a turn while no other runs.
func locked(v *talk) (said, error) {
	v.lock <- struct{}{}
	defer func() { <-v.lock }()
	return v.contained()
}

// broken are adapters with one fault each, by the rule that must find it.
var broken = map[string]map[string]fault{
	"an answer of the model is kept once, as it was said": {
		"tells of each piece under a name of its own": {piece: func(v *talk, p *piece) {
			plan := v.plan
			plan.Event.ID += p.Text
			_, _ = v.agent.Answered(v.ctx, plan, reply{Text: p.Text})
		}},
		"tells of the first piece": {piece: func(v *talk, p *piece) {
			_, _ = v.answered(reply{Text: p.Text})
		}},
		"adds to the answer": {said: func(_ *talk, s *said) { s.Text += " (by heed)" }},
	},
	"an answer has an id that takes a reaction, which counts once": {
		"has no id": {said: func(_ *talk, s *said) { s.ID = "" }},
		"has no id where a heuristic answers": {ready: func(v *talk) (said, error) {
			return said{Text: v.plan.Text}, nil
		}},
		"has decision's id": {answered: func(v *talk, r reply) (answer, error) {
			a, err := v.answered(r)
			a.ID = a.Result.ResponseID
			return a, err
		}},
		"does not tell what the model said": {answered: func(v *talk, r reply) (answer, error) {
			return answer{ID: v.plan.Event.ID, Text: r.Text}, r.Err
		}},
		"prepares twice": {turn: func(v *talk) (said, error) {
			event := v.event()
			event.ID = ""
			if _, err := v.agent.Prepare(v.ctx, event); err != nil {
				return said{}, err
			}
			return v.contained()
		}},
	},
	"an answer earns nothing by itself": {
		"praises": {said: func(v *talk, s *said) {
			_ = v.agent.React(v.ctx, s.ID, loop.Reaction{Person: v.turn.Person, Value: 1})
		}},
		"takes the end of a turn for a success": {said: func(v *talk, s *said) {
			yes := true
			_ = v.agent.Outcome(v.ctx, s.ID, loop.Outcome{Success: &yes})
		}},
	},
	"a trusted heuristic answers and no model is called": {
		"asks the model in any case": {ready: func(v *talk) (said, error) {
			p, err := v.ask([]line{{Role: looptest.User, Text: v.turn.Text}})
			return said{ID: v.turn.ID, Text: p.Text}, err
		}},
		"streams nothing where a heuristic answers": {ready: func(v *talk) (said, error) {
			return said{ID: v.plan.Event.ID, Text: v.plan.Text}, nil
		}},
	},
	"a turn that is delivered again has the same answer": {
		"makes an id for each delivery": event(func(e *loop.Event) { e.ID = "" }),
	},
	"a turn that is delivered twice at once has one answer": {
		"makes an id for each delivery": event(func(e *loop.Event) { e.ID = "" }),
		"says what the model said": {answered: func(v *talk, r reply) (answer, error) {
			a, err := v.answered(r)
			a.Text = r.Text
			return a, err
		}},
	},
	"each message has an answer of its own, for its person and session": {
		"remembers what heuristics answered": {turn: func(v *talk) (said, error) {
			if before, is := v.plans.Load(v.turn.Text); is {
				v.turn.ID = before.(said).ID
			}
			s, err := v.contained()
			v.plans.Store(v.turn.Text, s)
			return s, err
		}},
		"takes the session for the id": event(func(e *loop.Event) { e.ID = e.Session }),
		"takes the text for the id":    event(func(e *loop.Event) { e.ID = e.Text }),
		"drops the person":             event(func(e *loop.Event) { e.Person = "" }),
		"drops the session":            event(func(e *loop.Event) { e.Session = "" }),
		"swaps them": event(func(e *loop.Event) {
			e.Person, e.Session = e.Session, e.Person
		}),
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
	"a person's words take an answer back": {
		"hears the words again after the answer": {said: func(v *talk, _ *said) {
			_ = v.hear(v.turn.Text)
		}},
	},
	"what heed and the host add reaches the model once, and is on record": {
		"adds to each request": {request: func(v *talk, lines []line) []line {
			return append([]line{{Role: looptest.System, Text: v.plan.System}}, lines...)
		}},
		"adds it to the user's text, too": first(func(v *talk, _, person *line) {
			person.Text = v.plan.System + person.Text
		}),
		"adds nothing": first(func(v *talk, system, _ *line) {
			system.Text = v.script.System
		}),
		"leaves the heuristics out": first(func(v *talk, _, person *line) {
			person.Text = v.turn.Text
		}),
		"puts heed's in the place of the host's": first(func(v *talk, system, _ *line) {
			system.Text = v.plan.System
		}),
		"forgets it after a tool": {request: func(v *talk, lines []line) []line {
			if lines[len(lines)-1].Role == looptest.ToolRole {
				lines[0].Text = v.script.System
			}
			return lines
		}},
		"makes the plan again": {answered: func(v *talk, r reply) (answer, error) {
			v.plan = loop.Plan{Event: v.plan.Event}
			return v.answered(r)
		}},
	},
	"the user's text reaches the model once and unchanged": {
		"sends text and prompt": {lines: func(v *talk, lines []line) []line {
			return append(lines, line{Role: looptest.User, Text: v.turn.Text})
		}},
		"writes it small": event(func(e *loop.Event) { e.Text = strings.ToLower(e.Text) }),
		"trims it": event(func(e *loop.Event) {
			e.Text = strings.Join(strings.Fields(e.Text), " ")
		}),
		"sends it as the system's": first(func(_ *talk, _, person *line) {
			person.Role = looptest.System
		}),
	},
	"only rules in force reach the model": {
		"adds corrections": first(func(v *talk, system, _ *line) {
			records, _, _ := v.agent.Feedback().List(v.ctx, feedback.Listing{})
			for _, r := range records {
				system.Text += "\n" + r.Summary
			}
		}),
		"adds rules of others": first(func(v *talk, system, _ *line) {
			rules, _ := v.agent.Feedback().Rules().List(v.ctx, feedback.RuleQuery{})
			for _, r := range rules {
				system.Text += "\n" + r.Text
			}
		}),
		"adds all proposals": first(func(v *talk, system, _ *line) {
			all, _, _ := v.agent.Feedback().Rules().Proposals(v.ctx, feedback.ProposalQuery{}, 0)
			for _, p := range all {
				system.Text += "\n" + p.Text
			}
		}),
		"keeps those of the first turn": first(func(v *talk, system, _ *line) {
			if v.kept == nil {
				v.kept = *system
			}
			*system = v.kept.(line)
		}),
	},
	"an echo of what heed added is no evidence": {
		"hears the answer": {said: func(v *talk, s *said) { _ = v.hear(s.Text) }},
		"hears the system prompt": first(func(v *talk, _, _ *line) {
			v.turn.Person = ""
			for _, note := range v.plan.Notes {
				_ = v.hear(note.Text)
			}
		}),
		"takes the prompt for the text": {answered: func(v *talk, r reply) (answer, error) {
			v.plan.Event.Text = v.plan.System + v.plan.Prompt
			return v.answered(r)
		}},
		"takes an answer that has a rule for praise": {said: func(v *talk, s *said) {
			if account, err := v.agent.Explain(v.ctx, s.ID); err == nil && len(account.Rules) > 0 {
				_ = v.agent.React(v.ctx, s.ID, loop.Reaction{Value: 0.5})
			}
		}},
		"takes the answer for a correction": {said: func(v *talk, s *said) {
			_, _ = v.agent.Correct(v.ctx, s.ID, loop.Correction{Reviewer: "model", Text: s.Text})
		}},
	},
	"what a tool gives is neither words nor evidence": {
		"hears the tool": {tool: func(v *talk, r result) error { return v.hear(r.Text) }},
		"tells of each reply of the model": {replied: func(v *talk, p piece) {
			_, _ = v.answered(reply{Text: p.Text})
		}},
		"takes each result for an error": {tool: func(v *talk, r result) error {
			r.Err = errors.Join(r.Err, errors.New(r.Text))
			return v.tool(r)
		}},
		"calls a tool twice": {tool: func(v *talk, r result) error {
			_, err := v.call(looptest.Call{Tool: r.Name})
			return err
		}},
	},
	"each error of a tool counts once": {
		"does not tell of tools": {tool: func(*talk, result) error { return nil }},
		"tells twice": {tool: func(v *talk, r result) error {
			again := r
			again.ID += " again"
			return errors.Join(v.tool(r), v.tool(again))
		}},
		"tells without ids": {tool: func(v *talk, r result) error {
			r.ID = ""
			return v.tool(r)
		}},
		"tells of another task": {tool: func(v *talk, r result) error {
			return told(v.agent.Tool(v.ctx, v.plan.Event.Session, r))
		}},
	},
	"a model that fails or breaks off gives no answer": {
		"keeps what there was": {answered: func(v *talk, r reply) (answer, error) {
			if r.Text != "" {
				r.Err = nil
			}
			return v.answered(r)
		}},
		"takes the error for the answer": {answered: func(v *talk, r reply) (answer, error) {
			if r.Err != nil {
				r = reply{Text: "Sorry: " + r.Err.Error()}
			}
			return v.answered(r)
		}},
		"does not tell of the error": {answered: func(v *talk, r reply) (answer, error) {
			if r.Err != nil {
				return answer{}, r.Err
			}
			return v.answered(r)
		}},
		"drops the error": {answered: func(v *talk, r reply) (answer, error) {
			return v.agent.Answered(v.ctx, v.plan, r)
		}},
	},
	"a model that says nothing gives no answer": {
		"says the thoughts": {piece: func(_ *talk, p *piece) {
			if p.Text == "" {
				p.Text = p.Thought
			}
		}},
		"gives an id": {answered: (*talk).answered},
		"finds words of its own": {answered: func(v *talk, r reply) (answer, error) {
			if strings.TrimSpace(r.Text) == "" {
				r.Text = "I do not know."
			}
			return v.agent.Answered(v.ctx, v.plan, r)
		}},
	},
	"a model that is unavailable is no evidence about the arm": {
		"keeps only the text of the error": {answered: func(v *talk, r reply) (answer, error) {
			if r.Err != nil {
				r.Err = errors.New(r.Err.Error())
			}
			return v.answered(r)
		}},
		"does not tell of the error": {answered: func(v *talk, r reply) (answer, error) {
			if r.Err != nil {
				return answer{}, r.Err
			}
			return v.answered(r)
		}},
		"takes it for a bad answer": {answered: func(v *talk, r reply) (answer, error) {
			if r.Err != nil {
				r.Err = llm.Unusable
			}
			return v.answered(r)
		}},
		"takes it for a server's fault": {answered: func(v *talk, r reply) (answer, error) {
			if r.Err != nil {
				r.Err = llm.ServerError
			}
			return v.answered(r)
		}},
	},
	"an answer that cannot be used counts against the arm": {
		"keeps only the text of the error": {answered: func(v *talk, r reply) (answer, error) {
			if r.Err != nil {
				r.Err = errors.New(r.Err.Error())
			}
			return v.answered(r)
		}},
		"takes it for a server's fault": {answered: func(v *talk, r reply) (answer, error) {
			if r.Err != nil {
				r.Err = llm.ServerError
			}
			return v.answered(r)
		}},
	},
	"an answer that a person stops is no evidence": {
		"takes it for a slow model": {answered: func(v *talk, r reply) (answer, error) {
			if v.ctx.Err() == nil {
				return v.answered(r)
			}
			r.Err = context.DeadlineExceeded
			_, _ = v.agent.Answered(context.WithoutCancel(v.ctx), v.plan, r)
			return answer{}, v.ctx.Err()
		}},
		"takes it for an empty answer": {answered: func(v *talk, r reply) (answer, error) {
			if v.ctx.Err() == nil {
				return v.answered(r)
			}
			_, _ = v.agent.Answered(context.WithoutCancel(v.ctx), v.plan, reply{})
			return answer{}, v.ctx.Err()
		}},
	},
	"a context that ends leaves no answer behind": {
		"gives tools another context": {toolContext: context.WithoutCancel},
		"gives the model another context": {turn: func(v *talk) (said, error) {
			ctx := v.ctx
			v.ctx = context.WithoutCancel(ctx)
			s, err := v.contained()
			return s, errors.Join(err, ctx.Err())
		}},
		"keeps what there was": {answered: func(v *talk, r reply) (answer, error) {
			if v.ctx.Err() == nil {
				return v.answered(r)
			}
			ctx := context.WithoutCancel(v.ctx)
			_, _ = v.agent.Answered(ctx, v.plan, reply{Text: r.Text + "…"})
			return answer{}, v.ctx.Err()
		}},
		"drops the error": {turn: func(v *talk) (said, error) {
			s, err := v.contained()
			if errors.Is(err, context.Canceled) {
				err = nil
			}
			return s, err
		}},
	},
	"a panic is an error and leaves no answer behind": {
		"lets it out": {turn: (*talk).run},
		"hides it": {turn: func(v *talk) (s said, err error) {
			defer func() { _ = recover() }()
			return v.run()
		}},
		"keeps an answer": {turn: func(v *talk) (s said, err error) {
			defer func() {
				if value := recover(); value != nil {
					v.plan, _ = v.agent.Prepare(v.ctx, v.event())
					_, _ = v.answered(reply{Text: "Something went wrong."})
					err = fmt.Errorf("panic: %v", value)
				}
			}()
			return v.run()
		}},
		"stays locked": {turn: func(v *talk) (said, error) {
			v.lock <- struct{}{}
			s, err := v.contained()
			if err == nil || !strings.Contains(err.Error(), "panic") {
				<-v.lock
			}
			return s, err
		}},
	},
	"an answer that can't be kept is given all the same": {
		"fails the turn": {answered: func(v *talk, r reply) (answer, error) {
			a, err := v.answered(r)
			if err == nil && a.Degraded != nil {
				err = a.Degraded.After
			}
			return a, err
		}},
		"asks nothing without the store": {turn: func(v *talk) (said, error) {
			p, err := v.agent.Prepare(v.ctx, v.event())
			if err == nil && p.Degraded != nil {
				return said{}, p.Degraded.Before
			}
			return v.contained()
		}},
	},
	"turns at once are kept apart": {
		"keeps plans by session": {
			lines: func(v *talk, lines []line) []line {
				v.plans.Store(v.turn.Session, v.plan)
				return lines
			},
			answered: func(v *talk, r reply) (answer, error) {
				kept, _ := v.plans.Load(v.plan.Event.Session)
				v.plan = kept.(loop.Plan)
				return v.answered(r)
			},
		},
		"has one plan for all": {
			lines: func(v *talk, lines []line) []line {
				v.plans.Store("all", v.plan)
				return lines
			},
			answered: func(v *talk, r reply) (answer, error) {
				kept, _ := v.plans.Load("all")
				v.plan = kept.(loop.Plan)
				return v.answered(r)
			},
		},
		"runs one after the other": {turn: locked},
	},
	"tools of turns at once are kept apart": {
		"has one event for all": {
			lines: func(v *talk, lines []line) []line {
				v.plans.Store("all", v.plan.Event.ID)
				return lines
			},
			tool: func(v *talk, r result) error {
				id, _ := v.plans.Load("all")
				return told(v.agent.Tool(v.ctx, id.(string), r))
			},
		},
	},
	"thoughts reach neither the user nor heed": {
		"shows what the model said": {answered: func(v *talk, r reply) (answer, error) {
			a, err := v.answered(r)
			a.Text = r.Text
			return a, err
		}},
		"takes them for text": {piece: func(_ *talk, p *piece) { p.Text = p.Thought + p.Text }},
		"tells heed of them": {
			piece: func(v *talk, p *piece) { v.kept = p.Thought },
			answered: func(v *talk, r reply) (answer, error) {
				_, err := v.answered(reply{Text: fmt.Sprint(v.kept, r.Text)})
				return answer{ID: v.plan.Event.ID, Text: r.Text}, err
			},
		},
	},
	"the end of an answer reaches who follows the stream": {
		"does not end the stream": {end: func(func()) {}},
	},
	"the model of an arm answers": {
		"has one model": {model: func(v *talk) *looptest.Model { return v.script.Model }},
		"keeps the first arm's": {model: func(v *talk) *looptest.Model {
			name, _ := v.plans.LoadOrStore("first", v.plan.Arm.ModelName)
			if named := v.script.Models[name.(string)]; named != nil {
				return named
			}
			return v.script.Model
		}},
		"takes every model for it": {model: func(v *talk) *looptest.Model {
			for _, m := range v.script.Models {
				return m
			}
			return v.script.Model
		}},
	},
	"a model can call no tools but those of its arm": {
		"has all tools": {tools: func(*talk) []string { return nil }},
		"has none":      {tools: func(*talk) []string { return []string{} }},
	},
	"a call of a tool that breaks a rule is not made": {
		"does not ask":               {before: unasked},
		"asks without the arguments": input(func(string) string { return "" }),
		"compares the arguments as they are written": {
			before: func(v *talk, r result) (violations, error) {
				if strings.Contains(r.Input, "db-1") || strings.Contains(r.Input, "a > b") {
					return v.asks(r)
				}
				return nil, nil
			},
		},
		"escapes the arguments twice": input(
			strings.NewReplacer("-", `\\u002d`, ">", `\\u003e`).Replace),
		"refuses all": {before: func(*talk, result) (violations, error) {
			return violations{{}}, nil
		}},
		"asks nothing about a turn without words": {turn: func(v *talk) (said, error) {
			if v.turn.Text != "" {
				return v.contained()
			}
			v.bot = &bot{agent: v.agent, script: v.script, fault: fault{before: unasked}}
			v.plan.Event.ID = v.turn.ID
			text, err := v.converse(nil)
			return said{Text: text}, err
		}},
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

func TestBrokenDeskAdapters(t *testing.T) {
	t.Parallel()
	for _, name := range slices.Sorted(maps.Keys(brokenDesks)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := looptest.Check(deskSubject(brokenDesks[name]))
			if err == nil {
				t.Fatal("the suite lets this adapter pass")
			}
			t.Log(err)
		})
	}
}

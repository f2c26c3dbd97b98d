package looptest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/loop/looptest"
)

// A bot is an agent of a small framework, with an adapter over the loop by [loop.Agent.Prepare] and [loop.Agent.Answered]. It
// keeps the conversation of each session, calls tools, and streams.
type bot struct {
	agent  *loop.Agent
	script looptest.Script
	fault

	mu       sync.Mutex
	sessions map[string][]looptest.Line
	kept     any           // what a fault keeps between turns
	lock     chan struct{} // of faults
	plans    sync.Map      // likewise
}

// A fault replaces what the adapter does at one place. nil leaves it as it is.
type fault struct {
	turn        func(*bot, context.Context, looptest.Turn) (looptest.Said, error)
	event       func(*bot, *loop.Event)
	ready       func(*bot, context.Context, looptest.Turn, *loop.Plan) (looptest.Said, error)
	lines       func(*bot, looptest.Turn, *loop.Plan, []looptest.Line) []looptest.Line // the first request
	request     func(*bot, *loop.Plan, []looptest.Line) []looptest.Line                // each one
	piece       func(*bot, context.Context, *loop.Plan, *looptest.Piece)
	replied     func(*bot, context.Context, *loop.Plan, looptest.Piece)                            // of each call of the model
	tool        func(*bot, context.Context, *loop.Plan, loop.ToolResult) error                     // each result
	before      func(*bot, context.Context, string, loop.ToolResult) ([]feedback.Violation, error) // each call
	toolContext func(context.Context) context.Context
	answered    func(*bot, context.Context, loop.Plan, loop.Reply) (loop.Answer, error)
	said        func(*bot, context.Context, looptest.Turn, *looptest.Said) // in the end
	model       func(*bot, *loop.Plan) *looptest.Model
	tools       func(*bot, *loop.Plan) []string
	end         func(*bot, func()) // of a stream
}

func newBot(f fault) looptest.Subject {
	return looptest.Subject{Models: true, Tools: true, Enforce: true, New: func(agent *loop.Agent, s looptest.Script) (looptest.Driver, error) {
		b := &bot{agent: agent, script: s, fault: f, sessions: make(map[string][]looptest.Line), lock: make(chan struct{}, 1)}
		turn := (*bot).contained
		if f.turn != nil {
			turn = f.turn
		}
		return looptest.Driver{Turn: func(ctx context.Context, t looptest.Turn) (looptest.Said, error) { return turn(b, ctx, t) }}, nil
	}}
}

// contained runs a turn, and makes an error of a panic.
func (b *bot) contained(ctx context.Context, t looptest.Turn) (said looptest.Said, err error) {
	defer func() {
		if value := recover(); value != nil {
			said, err = looptest.Said{}, fmt.Errorf("panic: %v", value)
		}
	}()
	return b.run(ctx, t)
}

func (b *bot) run(ctx context.Context, t looptest.Turn) (said looptest.Said, err error) {
	event := loop.Event{ID: t.ID, Text: t.Text, Session: t.Session, Person: t.Person}
	if b.event != nil {
		b.event(b, &event)
	}
	plan, err := b.agent.Prepare(ctx, event)
	if err != nil {
		return looptest.Said{}, err
	}
	if plan.Ready {
		said, err = b.short(ctx, t, &plan)
	} else {
		said, err = b.long(ctx, t, plan)
	}
	if err != nil {
		return looptest.Said{}, err
	}
	if b.said != nil {
		b.said(b, ctx, t, &said)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sessions[t.Session] = append(b.sessions[t.Session],
		looptest.Line{Role: looptest.User, Text: t.Text}, looptest.Line{Role: looptest.Assistant, Text: said.Text})
	return said, nil
}

// short ends a turn that needs no model.
func (b *bot) short(ctx context.Context, t looptest.Turn, plan *loop.Plan) (looptest.Said, error) {
	if b.ready != nil {
		return b.ready(b, ctx, t, plan)
	}
	if t.Stream != nil {
		t.Stream(plan.Text)
	}
	return looptest.Said{ID: plan.Event.ID, Text: plan.Text}, nil
}

// long has the model answer.
func (b *bot) long(ctx context.Context, t looptest.Turn, plan loop.Plan) (looptest.Said, error) {
	lines := []looptest.Line{{Role: looptest.System, Text: b.script.System + "\n\n" + plan.System}}
	b.mu.Lock()
	lines = append(lines, b.sessions[t.Session]...)
	b.mu.Unlock()
	lines = append(lines, looptest.Line{Role: looptest.User, Text: plan.Prompt})
	if b.lines != nil {
		lines = b.lines(b, t, &plan, lines)
	}
	text, err := b.converse(ctx, &plan, lines, t.Stream)
	reply := loop.Reply{Text: text, Err: err}
	var answer loop.Answer
	if b.answered != nil {
		answer, err = b.answered(b, ctx, plan, reply)
	} else {
		answer, err = b.agent.Answered(ctx, plan, reply)
		err = errors.Join(reply.Err, err)
		if err == nil && answer.Text == "" {
			err = errors.New(string(answer.Result.Reason))
		}
	}
	return looptest.Said{ID: answer.ID, Text: answer.Text}, err
}

// converse asks the model until it calls no tool.
func (b *bot) converse(ctx context.Context, plan *loop.Plan, lines []looptest.Line, stream func(string)) (string, error) {
	for {
		if b.request != nil {
			lines = b.request(b, plan, lines)
		}
		said, err := b.ask(ctx, plan, lines, stream)
		if b.replied != nil {
			b.replied(b, ctx, plan, said)
		}
		if err != nil || len(said.Calls) == 0 {
			return said.Text, err
		}
		for _, call := range said.Calls {
			inner := ctx
			if b.toolContext != nil {
				inner = b.toolContext(ctx)
			}
			text, err := b.call(inner, plan, call)
			r := loop.ToolResult{ID: call.ID, Name: call.Tool, Text: text, Err: err, Task: plan.Event.Task}
			if b.tool != nil {
				err = b.tool(b, ctx, plan, r)
			} else {
				err = told(b.agent.Tool(ctx, plan.Event.ID, r))
			}
			if err != nil {
				return "", err
			}
			if r.Err != nil {
				text = "error: " + r.Err.Error()
			}
			lines = append(lines, looptest.Line{Role: looptest.ToolRole, Text: text})
		}
	}
}

// ask asks the model once. If the model breaks off, it returns what there is with the error.
func (b *bot) ask(ctx context.Context, plan *loop.Plan, lines []looptest.Line, stream func(string)) (said looptest.Piece, err error) {
	if stream == nil {
		said, err = b.modelOf(plan).Generate(ctx, lines)
		if b.piece != nil {
			b.piece(b, ctx, plan, &said)
		}
		return said, err
	}
	write, end := loop.Spoken(stream)
	for piece, err := range b.modelOf(plan).Stream(ctx, lines) {
		if err != nil {
			return said, err
		}
		if b.piece != nil {
			b.piece(b, ctx, plan, &piece)
		}
		write(piece.Text)
		said.Text += piece.Text
		said.Calls = append(said.Calls, piece.Calls...)
	}
	if b.end != nil {
		b.end(b, end)
	} else {
		end()
	}
	return said, nil
}

// modelOf returns the model of a plan's arm.
func (b *bot) modelOf(plan *loop.Plan) *looptest.Model {
	if b.model != nil {
		return b.model(b, plan)
	}
	if named := b.script.Models[plan.Arm.ModelName]; named != nil {
		return named
	}
	return b.script.Model
}

// call calls a tool.
func (b *bot) call(ctx context.Context, plan *loop.Plan, call looptest.Call) (string, error) {
	allowed := plan.Arm.Tools
	if b.tools != nil {
		allowed = b.tools(b, plan)
	}
	for _, tool := range b.script.Tools {
		if tool.Name != call.Tool || allowed != nil && !slices.Contains(allowed, call.Tool) {
			continue
		}
		if refused, err := b.refuses(ctx, plan, call); refused || err != nil {
			return "The call is not made.", err
		}
		return tool.Run(ctx, call.Input)
	}
	return "", errors.New("there is no such tool")
}

// refuses reports whether a call breaks a rule.
func (b *bot) refuses(ctx context.Context, plan *loop.Plan, call looptest.Call) (bool, error) {
	ask := b.before
	if ask == nil {
		ask = func(b *bot, ctx context.Context, id string, r loop.ToolResult) ([]feedback.Violation, error) {
			return b.agent.Tool(ctx, id, r)
		}
	}
	broken, err := ask(b, ctx, plan.Event.ID, loop.ToolResult{ID: call.ID, Name: call.Tool, Input: call.Input, Before: true})
	return len(broken) > 0, err
}

// The loop by hand is an adapter.
func TestPrepareAndAnswered(t *testing.T) { looptest.Run(t, newBot(fault{})) }

// turnKey is the key of the running turn in a context.
type turnKey struct{}

// TestAnswer has the loop call the model by itself. The model is a bot's conversation.
func TestAnswer(t *testing.T) {
	var b *bot
	looptest.Run(t, looptest.Subject{
		Models: true, Enforce: true, // the loop calls the model, and the model asks the rules
		Configure: func(c *loop.Config, s looptest.Script) {
			b = &bot{script: s}
			mine := b
			c.System = s.System
			c.Model = decision.LLMFunc(func(ctx context.Context, r decision.LLMRequest) (decision.LLMResponse, error) {
				if r.JSON {
					return decision.LLMResponse{}, errors.New("nobody asks for predictions here")
				}
				turn := ctx.Value(turnKey{}).(looptest.Turn)
				text, err := mine.converse(ctx, &loop.Plan{Event: loop.Event{ID: turn.ID}}, []looptest.Line{
					{Role: looptest.System, Text: r.System}, {Role: looptest.User, Text: r.Prompt},
				}, nil)
				return decision.LLMResponse{Text: text}, err
			})
		},
		New: func(agent *loop.Agent, s looptest.Script) (looptest.Driver, error) {
			b.agent = agent
			return looptest.Driver{Turn: func(ctx context.Context, t looptest.Turn) (looptest.Said, error) {
				answer, err := agent.Answer(context.WithValue(ctx, turnKey{}, t), loop.Event{
					ID: t.ID, Text: t.Text, Session: t.Session, Person: t.Person, OnChunk: func(_ context.Context, piece string, _ bool) {
						if t.Stream != nil {
							t.Stream(piece)
						}
					},
				})
				if err == nil && answer.Text == "" {
					err = errors.Join(answer.Result.Err, errors.New(string(answer.Result.Reason)))
				}
				if err != nil {
					return looptest.Said{}, err
				}
				return looptest.Said{ID: answer.ID, Text: answer.Text}, nil
			}}, nil
		},
	})
}

// told is the error of a call of Tool.
func told(_ []feedback.Violation, err error) error { return err }

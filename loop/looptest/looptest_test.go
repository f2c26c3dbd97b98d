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

type (
	said       = looptest.Said
	line       = looptest.Line
	piece      = looptest.Piece
	result     = loop.ToolResult
	reply      = loop.Reply
	answer     = loop.Answer
	violations = []feedback.Violation
)

// A bot is an agent of a small framework, with an adapter over the loop by [loop.Agent.Prepare] and
// [loop.Agent.Answered]. It keeps the conversation of each session, calls tools, and streams.
type bot struct {
	agent  *loop.Agent
	script looptest.Script
	fault  fault

	mu       sync.Mutex
	sessions map[string][]line
	kept     any           // what a fault keeps between turns
	lock     chan struct{} // of faults
	plans    sync.Map      // of faults, too
}

// A talk is one turn of a bot.
type talk struct {
	*bot
	ctx  context.Context
	turn looptest.Turn
	plan loop.Plan
}

// A fault replaces what the adapter does at one place. nil leaves it as it is.
type fault struct {
	turn        func(*talk) (said, error)
	event       func(*bot, *loop.Event)
	ready       func(*talk) (said, error)
	lines       func(*talk, []line) []line // the first request
	request     func(*talk, []line) []line // each one
	piece       func(*talk, *piece)
	replied     func(*talk, piece)                      // of each call of the model
	tool        func(*talk, result) error               // each result
	before      func(*talk, result) (violations, error) // each call
	toolContext func(context.Context) context.Context
	answered    func(*talk, reply) (answer, error)
	said        func(*talk, *said) // in the end
	model       func(*talk) *looptest.Model
	tools       func(*talk) []string
	end         func(func()) // of a stream
}

func newBot(f fault) looptest.Subject {
	return looptest.Subject{
		Models: true, Tools: true, Enforce: true,
		New: func(agent *loop.Agent, s looptest.Script) (looptest.Driver, error) {
			b := &bot{
				agent: agent, script: s, fault: f,
				sessions: make(map[string][]line), lock: make(chan struct{}, 1),
			}
			turn := (*talk).contained
			if f.turn != nil {
				turn = f.turn
			}
			return looptest.Driver{Turn: func(ctx context.Context, t looptest.Turn) (said, error) {
				return turn(&talk{bot: b, ctx: ctx, turn: t})
			}}, nil
		},
	}
}

// contained runs a turn, and makes an error of a panic.
func (v *talk) contained() (s said, err error) {
	defer func() {
		if value := recover(); value != nil {
			s, err = said{}, fmt.Errorf("panic: %v", value)
		}
	}()
	return v.run()
}

func (v *talk) event() loop.Event {
	t := v.turn
	return loop.Event{ID: t.ID, Text: t.Text, Session: t.Session, Person: t.Person}
}

func (v *talk) run() (s said, err error) {
	event := v.event()
	if v.fault.event != nil {
		v.fault.event(v.bot, &event)
	}
	if v.plan, err = v.agent.Prepare(v.ctx, event); err != nil {
		return said{}, err
	}
	if v.plan.Ready {
		s, err = v.short()
	} else {
		s, err = v.long()
	}
	if err != nil {
		return said{}, err
	}
	if v.fault.said != nil {
		v.fault.said(v, &s)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.sessions[v.turn.Session] = append(v.sessions[v.turn.Session],
		line{Role: looptest.User, Text: v.turn.Text}, line{Role: looptest.Assistant, Text: s.Text})
	return s, nil
}

// short ends a turn that needs no model.
func (v *talk) short() (said, error) {
	if v.fault.ready != nil {
		return v.fault.ready(v)
	}
	if v.turn.Stream != nil {
		v.turn.Stream(v.plan.Text)
	}
	return said{ID: v.plan.Event.ID, Text: v.plan.Text}, nil
}

// long has the model answer.
func (v *talk) long() (said, error) {
	lines := []line{{Role: looptest.System, Text: v.script.System + "\n\n" + v.plan.System}}
	v.mu.Lock()
	lines = append(lines, v.sessions[v.turn.Session]...)
	v.mu.Unlock()
	lines = append(lines, line{Role: looptest.User, Text: v.plan.Prompt})
	if v.fault.lines != nil {
		lines = v.fault.lines(v, lines)
	}
	text, err := v.converse(lines)
	r, a := reply{Text: text, Err: err}, answer{}
	if v.fault.answered != nil {
		a, err = v.fault.answered(v, r)
	} else if a, err = v.answered(r); err == nil && a.Text == "" {
		err = errors.New(a.Result.Reason)
	}
	return said{ID: a.ID, Text: a.Text}, err
}

// answered tells heed what the model said.
func (v *talk) answered(r reply) (answer, error) {
	a, err := v.agent.Answered(v.ctx, v.plan, r)
	return a, errors.Join(r.Err, err)
}

// converse asks the model until it calls no tool.
func (v *talk) converse(lines []line) (string, error) {
	for {
		if v.fault.request != nil {
			lines = v.fault.request(v, lines)
		}
		p, err := v.ask(lines)
		if v.fault.replied != nil {
			v.fault.replied(v, p)
		}
		if err != nil || len(p.Calls) == 0 {
			return p.Text, err
		}
		for _, call := range p.Calls {
			text, err := v.call(call)
			r := result{ID: call.ID, Name: call.Tool, Text: text, Err: err, Task: v.plan.Event.Task}
			told := v.tool
			if v.fault.tool != nil {
				told = func(r result) error { return v.fault.tool(v, r) }
			}
			if err := told(r); err != nil {
				return "", err
			}
			if err != nil {
				text = "error: " + err.Error()
			}
			lines = append(lines, line{Role: looptest.ToolRole, Text: text})
		}
	}
}

// tool tells heed what a tool gave.
func (v *talk) tool(r result) error { return told(v.agent.Tool(v.ctx, v.plan.Event.ID, r)) }

// ask asks the model once. If the model breaks off, it returns what there is with the error.
func (v *talk) ask(lines []line) (all piece, err error) {
	changed := func(p piece) piece {
		if v.fault.piece != nil {
			v.fault.piece(v, &p)
		}
		return p
	}
	if v.turn.Stream == nil {
		all, err = v.model().Generate(v.ctx, lines)
		return changed(all), err
	}
	write, end := loop.Spoken(v.turn.Stream)
	for p, err := range v.model().Stream(v.ctx, lines) {
		if err != nil {
			return all, err
		}
		p = changed(p)
		write(p.Text)
		all.Text += p.Text
		all.Calls = append(all.Calls, p.Calls...)
	}
	if v.fault.end != nil {
		v.fault.end(end)
	} else {
		end()
	}
	return all, nil
}

// model returns the model of a plan's arm.
func (v *talk) model() *looptest.Model {
	if v.fault.model != nil {
		return v.fault.model(v)
	}
	if named := v.script.Models[v.plan.Arm.ModelName]; named != nil {
		return named
	}
	return v.script.Model
}

// call calls a tool.
func (v *talk) call(call looptest.Call) (string, error) {
	ctx, allowed := v.ctx, v.plan.Arm.Tools
	if v.fault.toolContext != nil {
		ctx = v.fault.toolContext(ctx)
	}
	if v.fault.tools != nil {
		allowed = v.fault.tools(v)
	}
	for _, tool := range v.script.Tools {
		if tool.Name != call.Tool || allowed != nil && !slices.Contains(allowed, call.Tool) {
			continue
		}
		if refused, err := v.refuses(call); refused || err != nil {
			return "The call is not made.", err
		}
		return tool.Run(ctx, call.Input)
	}
	return "", errors.New("there is no such tool")
}

// asks asks heed whether a call may be made.
func (v *talk) asks(r result) (violations, error) { return v.agent.Tool(v.ctx, v.plan.Event.ID, r) }

// refuses reports whether a call breaks a rule.
func (v *talk) refuses(call looptest.Call) (bool, error) {
	ask := (*talk).asks
	if v.fault.before != nil {
		ask = v.fault.before
	}
	broken, err := ask(v, result{ID: call.ID, Name: call.Tool, Input: call.Input, Before: true})
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
			c.Model = decision.LLMFunc(
				func(ctx context.Context, r decision.LLMRequest) (decision.LLMResponse, error) {
					if r.JSON {
						return decision.LLMResponse{}, errors.New("predictions are not asked for here")
					}
					turn := ctx.Value(turnKey{}).(looptest.Turn)
					v := &talk{bot: mine, ctx: ctx, plan: loop.Plan{Event: loop.Event{ID: turn.ID}}}
					text, err := v.converse([]line{
						{Role: looptest.System, Text: r.System}, {Role: looptest.User, Text: r.Prompt},
					})
					return decision.LLMResponse{Text: text}, err
				})
		},
		New: func(agent *loop.Agent, s looptest.Script) (looptest.Driver, error) {
			b.agent = agent
			return looptest.Driver{Turn: func(ctx context.Context, t looptest.Turn) (said, error) {
				event := (&talk{turn: t}).event()
				event.OnChunk = func(_ context.Context, piece string, _ bool) {
					if t.Stream != nil {
						t.Stream(piece)
					}
				}
				a, err := agent.Answer(context.WithValue(ctx, turnKey{}, t), event)
				if err == nil && a.Text == "" {
					err = errors.Join(a.Result.Err, errors.New(a.Result.Reason))
				}
				if err != nil {
					return said{}, err
				}
				return said{ID: a.ID, Text: a.Text}, nil
			}}, nil
		},
	})
}

// told is the error of a call of Tool.
func told(_ violations, err error) error { return err }

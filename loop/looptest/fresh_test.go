package looptest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/loop/looptest"
)

// A desk is a small framework of its own: sessions with a history, rounds of tools, streams, and
// hooks for who wants to add something.
type desk struct {
	system string
	model  *looptest.Model
	tools  map[string]looptest.Tool
	hooks  deskHooks

	mu    sync.Mutex
	files map[string]*deskFile // by session
}

// A deskFile is what a desk keeps of a session.
type deskFile struct {
	opener string // the person with whose message it began
	past   looptest.Request
}

// A visit is one turn at a desk.
type visit struct {
	looptest.Turn
	opener string
	round  int // of the model, from 0
	at     int // where the person's message is in a request
	// The rest is the adapter's.
	plan  loop.Plan
	write func(piece string)
	flush func()
}

// deskHooks are called by a desk: open before a turn, ask before each request, piece for each piece
// of a streamed answer, used after each call of a tool, and closing at the end of a turn in which a
// model was asked, unless something panicked.
type deskHooks struct {
	open    func(ctx context.Context, v *visit) (said looptest.Said, done bool, err error)
	ask     func(v *visit, r looptest.Request)
	piece   func(v *visit, text string)
	used    func(ctx context.Context, v *visit, c looptest.Call, output string, failure error) error
	closing func(ctx context.Context, v *visit, text string, failure error) (looptest.Said, error)
}

func (d *desk) turn(ctx context.Context, t looptest.Turn) (said looptest.Said, err error) {
	defer func() {
		if p := recover(); p != nil {
			said, err = looptest.Said{}, fmt.Errorf("desk: panic: %v", p)
		}
	}()
	v, past := d.begin(t)
	said, done, err := d.hooks.open(ctx, v)
	if err != nil {
		return looptest.Said{}, err
	}
	lines := looptest.Request{{Role: looptest.User, Text: t.Text}}
	if !done {
		var text string
		var failure error
		lines, text, failure = d.rounds(ctx, v, past, lines)
		if said, err = d.hooks.closing(ctx, v, text, failure); err != nil {
			return looptest.Said{}, err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.files[t.Session]
	f.past = append(append(f.past, lines...), looptest.Line{Role: looptest.Assistant,
		Text: said.Text})
	return said, nil
}

// begin opens the file of a session and returns a copy of its history.
func (d *desk) begin(t looptest.Turn) (*visit, looptest.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.files[t.Session]
	if f == nil {
		f = &deskFile{opener: t.Person}
		d.files[t.Session] = f
	}
	return &visit{Turn: t, opener: f.opener, at: 1 + len(f.past)}, slices.Clone(f.past)
}

// rounds asks the model until it calls no more tools. It returns the lines of the turn and the text
// of the last round, or as much of it as came before the failure.
func (d *desk) rounds(ctx context.Context, v *visit, past,
	lines looptest.Request) (looptest.Request, string, error) {
	for v.round = 0; v.round < 10; v.round++ {
		r := slices.Concat(looptest.Request{{Role: looptest.System, Text: d.system}}, past, lines)
		d.hooks.ask(v, r)
		text, calls, err := d.request(ctx, v, r)
		if err != nil || len(calls) == 0 {
			return lines, text, err
		}
		lines = append(lines, looptest.Line{Role: looptest.Assistant, Text: text})
		for _, c := range calls {
			tool, ok := d.tools[c.Tool]
			if !ok {
				return lines, "", fmt.Errorf("desk: no tool %q", c.Tool)
			}
			output, failure := tool.Run(ctx, c.Input)
			if err := d.hooks.used(ctx, v, c, output, failure); err != nil {
				return lines, "", err
			}
			if failure != nil {
				output = failure.Error()
			}
			lines = append(lines, looptest.Line{Role: looptest.ToolRole, Text: output})
		}
	}
	return lines, "", errors.New("desk: too many rounds")
}

// request asks the model once. Thoughts that the model tells apart are dropped.
func (d *desk) request(ctx context.Context, v *visit, r looptest.Request) (text string,
	calls []looptest.Call, err error) {
	if v.Stream == nil {
		p, err := d.model.Generate(ctx, r)
		return p.Text, p.Calls, err
	}
	for p, err := range d.model.Stream(ctx, r) {
		if err != nil {
			return text, nil, err
		}
		text += p.Text
		calls = append(calls, p.Calls...)
		if p.Text != "" {
			d.hooks.piece(v, p.Text)
		}
	}
	return text, calls, ctx.Err()
}

// deskAdapter is the adapter for a desk.
func deskAdapter(agent *loop.Agent) deskHooks {
	return deskHooks{
		open: func(ctx context.Context, v *visit) (looptest.Said, bool, error) {
			return openVisit(ctx, agent, v, v.Person)
		},
		ask: func(v *visit, r looptest.Request) {
			if v.plan.System != "" {
				r[0].Text += "\n\n" + v.plan.System
			}
			r[v.at].Text = v.plan.Prompt
		},
		piece: func(v *visit, text string) { v.write(text) },
		used: func(ctx context.Context, v *visit, c looptest.Call, output string, failure error) error {
			r := loop.ToolResult{ID: c.ID, Name: c.Tool, Text: output, Err: failure,
				Task: v.plan.Event.Task}
			return told(agent.Tool(ctx, v.plan.Event.ID, r))
		},
		closing: func(ctx context.Context, v *visit, text string, failure error) (looptest.Said,
			error) {
			if err := ctx.Err(); err != nil {
				return looptest.Said{}, err
			}
			if failure == nil && v.Stream != nil {
				v.flush()
			}
			answer, err := agent.Answered(ctx, v.plan, loop.Reply{Text: text, Err: failure})
			if err = errors.Join(failure, err); err != nil {
				return looptest.Said{}, err
			}
			if answer.Text == "" {
				return looptest.Said{}, fmt.Errorf("no answer: %s", answer.Result.Reason)
			}
			return looptest.Said{ID: answer.ID, Text: answer.Text}, nil
		},
	}
}

func openVisit(ctx context.Context, agent *loop.Agent, v *visit, person string) (looptest.Said,
	bool, error) {
	plan, err := agent.Prepare(ctx, loop.Event{ID: v.ID, Text: v.Text, Person: person,
		Session: v.Session})
	if err != nil {
		return looptest.Said{}, false, err
	}
	v.plan = plan
	if v.Stream != nil {
		v.write, v.flush = loop.Spoken(v.Stream)
		if plan.Ready {
			v.Stream(plan.Text)
		}
	}
	return looptest.Said{ID: plan.Event.ID, Text: plan.Text}, plan.Ready, nil
}

func deskSubject(adapter func(*loop.Agent) deskHooks) looptest.Subject {
	return looptest.Subject{New: func(agent *loop.Agent, s looptest.Script) (looptest.Driver, error) {
		d := &desk{system: s.System, model: s.Model, tools: map[string]looptest.Tool{},
			hooks: adapter(agent),
			files: map[string]*deskFile{}}
		for _, t := range s.Tools {
			d.tools[t.Name] = t
		}
		return looptest.Driver{Turn: d.turn}, nil
	}}
}

func TestDeskAdapter(t *testing.T) {
	t.Parallel()
	looptest.Run(t, deskSubject(deskAdapter))
}

// brokenDesks are adapters for a desk, each with a fault that is easily made with the hooks of a
// framework.
var brokenDesks = map[string]func(agent *loop.Agent) deskHooks{
	// A gateway wants to lose no answer: where the client hangs up amid a stream, it tells what was
	// sent by then as the answer.
	"half an answer told after the client hung up": func(agent *loop.Agent) deskHooks {
		h := deskAdapter(agent)
		whole := h.closing
		h.closing = func(ctx context.Context, v *visit, text string, failure error) (looptest.Said,
			error) {
			if ctx.Err() != nil && text != "" {
				_, err := agent.Answered(context.WithoutCancel(ctx), v.plan, loop.Reply{Text: text})
				return looptest.Said{}, errors.Join(ctx.Err(), err)
			}
			return whole(ctx, v, text, failure)
		}
		return h
	},
	// In a group chat, a session has several people. A session's state that knows one user names the
	// first of them.
	"the person is who opened the session": func(agent *loop.Agent) deskHooks {
		h := deskAdapter(agent)
		h.open = func(ctx context.Context, v *visit) (looptest.Said, bool, error) {
			return openVisit(ctx, agent, v, v.opener)
		}
		return h
	},
	// Handlers of tools are often told the name of the tool, and not the id of the call.
	"a tool's name in place of its call's id": func(agent *loop.Agent) deskHooks {
		h := deskAdapter(agent)
		used := h.used
		h.used = func(ctx context.Context, v *visit, c looptest.Call, output string,
			failure error) error {
			c.ID = c.Tool
			return used(ctx, v, c, output, failure)
		}
		return h
	},
	// A chat bot keeps the id of its last answer in the session, for the buttons. It sets it where
	// the model has answered, and so not where a heuristic did.
	"the id of the answer before where no model was asked": func(agent *loop.Agent) deskHooks {
		h := deskAdapter(agent)
		open, closing := h.open, h.closing
		var last sync.Map
		h.open = func(ctx context.Context, v *visit) (looptest.Said, bool, error) {
			said, done, err := open(ctx, v)
			if id, ok := last.Load(v.Session); ok && done {
				said.ID = id.(string)
			}
			return said, done, err
		}
		h.closing = func(ctx context.Context, v *visit, text string, failure error) (looptest.Said,
			error) {
			said, err := closing(ctx, v, text, failure)
			if err == nil {
				last.Store(v.Session, said.ID)
			}
			return said, err
		}
		return h
	},
	// The framework makes each request from its history. A hook that runs once a turn changes the
	// first one only: the system text is in all of them, as it is set on the agent, but after a tool
	// the model sees the bare message.
	"the prompt in the first request only": func(agent *loop.Agent) deskHooks {
		h := deskAdapter(agent)
		ask := h.ask
		h.ask = func(v *visit, r looptest.Request) {
			message := r[v.at].Text
			ask(v, r)
			if v.round > 0 {
				r[v.at].Text = message
			}
		}
		return h
	},
}

package mcp_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/heedhq/heed/adapter/mcp"
	"github.com/heedhq/heed/llm"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/loop/looptest"
)

// A desk is a host that learns through the tools alone. It calls the model and its tools by itself,
// as every host of the protocol does, and has a session of the protocol for each person.
type desk struct {
	agent   *loop.Agent
	script  looptest.Script
	version string

	mu       sync.Mutex
	sessions map[string]client
	ends     []func() error
	said     map[string][]looptest.Line // of each conversation
}

// TestSuite has the suite of adapters judge the tools, through a host that does its part. All of
// its rules hold. With HEED_LONG=1 it does so with an older version of the protocol, too.
func TestSuite(t *testing.T) {
	versions := []string{newest}
	if os.Getenv("HEED_LONG") != "" {
		versions = append(versions, older)
	}
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			looptest.Run(t, looptest.Subject{Models: true, Tools: true, Enforce: true,
				New: func(agent *loop.Agent, s looptest.Script) (looptest.Driver, error) {
					d := &desk{agent: agent, script: s, version: version, sessions: make(map[string]client),
						said: make(map[string][]looptest.Line)}
					return looptest.Driver{Turn: d.turn, Close: d.close}, nil
				}})
		})
	}
}

func (d *desk) close() {
	for _, end := range d.ends {
		_ = end() // the rules have ended
	}
}

// of returns the session of a person.
func (d *desk) of(person string) (client, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c, ok := d.sessions[person]; ok {
		return c, nil
	}
	server, err := mcp.New(mcp.Config{Agent: d.agent, Person: person})
	if err != nil {
		return client{}, err
	}
	there, here := sdk.NewInMemoryTransports()
	served, err := server.Connect(context.Background(), there, nil)
	if err != nil {
		return client{}, err
	}
	c, err := connect(context.Background(), here, d.version)
	if err != nil {
		return client{}, err
	}
	d.sessions[person], d.ends = c, append(d.ends, c.Close, served.Wait)
	return c, nil
}

func (d *desk) turn(ctx context.Context, t looptest.Turn) (said looptest.Said, err error) {
	defer func() {
		if value := recover(); value != nil {
			said, err = looptest.Said{}, fmt.Errorf("panic: %v", value)
		}
	}()
	c, err := d.of(t.Person)
	if err != nil {
		return said, err
	}
	plan, err := c.do(ctx, "prepare", arguments{"text": t.Text, "id": t.ID, "session": t.Session})
	if err != nil {
		return said, err
	}
	if plan["ready"] == true {
		if t.Stream != nil {
			t.Stream(plan["text"].(string))
		}
		return d.keep(t, looptest.Said{ID: plan["id"].(string), Text: plan["text"].(string)}), nil
	}
	text, failed := d.converse(ctx, c, plan, &t)
	in := arguments{"id": plan["id"], "text": text}
	if failed != nil {
		in["error"] = failed.Error()
		if what := llm.FailureOf(failed); what != llm.Unrecognised {
			in["failure"] = string(what)
		}
	}
	answer, err := c.do(ctx, "answered", in)
	if err = errors.Join(failed, err); err != nil {
		return said, err
	}
	if answer["text"] == "" {
		return said, errors.New(answer["reason"].(string))
	}
	return d.keep(t, looptest.Said{ID: answer["id"].(string), Text: answer["text"].(string)}), nil
}

// keep keeps a turn for the next ones of its conversation.
func (d *desk) keep(t looptest.Turn, said looptest.Said) looptest.Said {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.said[t.Session] = append(d.said[t.Session],
		looptest.Line{Role: looptest.User, Text: t.Text},
		looptest.Line{Role: looptest.Assistant, Text: said.Text})
	return said
}

// converse asks the model until it calls no tool.
func (d *desk) converse(
	ctx context.Context, c client, plan arguments, t *looptest.Turn,
) (string, error) {
	system, _ := plan["system"].(string)
	lines := []looptest.Line{{Role: looptest.System, Text: d.script.System + "\n\n" + system}}
	d.mu.Lock()
	lines = append(lines, d.said[t.Session]...)
	d.mu.Unlock()
	lines = append(lines, looptest.Line{Role: looptest.User, Text: plan["prompt"].(string)})
	arm, _ := plan["arm"].(arguments)
	model, _ := arm["model"].(string)
	for {
		said, err := d.ask(ctx, cmp.Or(d.script.Models[model], d.script.Model), lines, t.Stream)
		if err != nil || len(said.Calls) == 0 {
			return said.Text, err
		}
		for _, call := range said.Calls {
			text, err := d.call(ctx, c, plan, call)
			in := arguments{"answer": plan["id"], "name": call.Tool, "call": call.ID, "text": text}
			if err != nil {
				in["error"], text = err.Error(), "error: "+err.Error()
			}
			if _, err := c.do(ctx, "tool_result", in); err != nil {
				return "", err
			}
			lines = append(lines, looptest.Line{Role: looptest.ToolRole, Text: text})
		}
	}
}

// ask asks the model once.
func (d *desk) ask(ctx context.Context, m *looptest.Model, lines []looptest.Line,
	stream func(string)) (said looptest.Piece, err error) {
	if stream == nil {
		return m.Generate(ctx, lines)
	}
	write, end := loop.Spoken(stream)
	for piece, err := range m.Stream(ctx, lines) {
		if err != nil {
			return said, err
		}
		write(piece.Text)
		said.Text += piece.Text
		said.Calls = append(said.Calls, piece.Calls...)
	}
	end()
	return said, nil
}

// call calls a tool of the host's that the arm allows, and the rules.
func (d *desk) call(
	ctx context.Context, c client, plan arguments, call looptest.Call,
) (string, error) {
	arm, _ := plan["arm"].(arguments)
	allowed, limited := arm["tools"].([]any)
	for _, tool := range d.script.Tools {
		if tool.Name != call.Tool {
			continue
		}
		may := !limited
		for _, name := range allowed {
			may = may || name == tool.Name
		}
		if may {
			told, err := c.do(ctx, "tool_result", arguments{
				"answer": plan["id"], "name": call.Tool, "call": call.ID, "before": true,
				"input": call.Input,
			})
			if err != nil || len(told["violations"].([]any)) > 0 {
				return "The call is not made.", err
			}
			return tool.Run(ctx, call.Input)
		}
	}
	return "", errors.New("there is no such tool")
}

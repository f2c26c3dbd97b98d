package eino_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/components/tool/utils"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"

	"github.com/heedhq/heed/adapter/eino"
	"github.com/heedhq/heed/adapter/internal/adaptertest"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/loop/looptest"
)

// TestSuite has the suite of adapters judge the middleware, in Eino's own runner. All of its rules
// hold, with whole answers and with streams.
func TestSuite(t *testing.T) {
	looptest.Run(t, looptest.Subject{Models: true, Tools: true, Enforce: true,
		New: func(agent *loop.Agent, s looptest.Script) (looptest.Driver, error) {
			h, err := newHost(agent, s)
			if err != nil {
				return looptest.Driver{}, err
			}
			return looptest.Driver{Turn: adaptertest.Guarded(h.turn)}, nil
		}})
}

// A host has an agent of Eino's, and keeps the conversations, as Eino's hosts do.
type host struct {
	adapter *eino.Adapter
	config  adk.ChatModelAgentConfig

	mu   sync.Mutex
	said map[string][]*schema.Message
}

func newHost(agent *loop.Agent, s looptest.Script) (*host, error) {
	models := make(map[string]model.BaseChatModel)
	for name, m := range s.Models {
		models[name] = scripted{m}
	}
	heeding, err := eino.New(eino.Config{Agent: agent, Models: models, Enforce: true})
	if err != nil {
		return nil, err
	}
	var tools []tool.BaseTool
	for _, played := range s.Tools {
		made, err := utils.InferTool(played.Name, played.Description,
			func(ctx context.Context, in struct {
				Host string `json:"host"`
			}) (string, error) {
				input, err := json.Marshal(in)
				if err != nil {
					return "", err
				}
				return played.Run(ctx, string(input))
			})
		if err != nil {
			return nil, err
		}
		tools = append(tools, made)
	}
	return &host{adapter: heeding, said: make(map[string][]*schema.Message),
		config: adk.ChatModelAgentConfig{
			Name: "ops", Description: "Helps.", Instruction: s.System, Model: scripted{s.Model},
			ToolsConfig: adk.ToolsConfig{ToolsNodeConfig: compose.ToolsNodeConfig{Tools: tools}},
			Handlers:    []adk.ChatModelAgentMiddleware{heeding.Middleware()},
		}}, nil
}

func (h *host) turn(ctx context.Context, t looptest.Turn) (said looptest.Said, err error) {
	h.mu.Lock()
	messages := append(slices.Clone(h.said[t.Session]), schema.UserMessage(t.Text))
	h.mu.Unlock()
	// for one run, as runs at once of an agent with tools are a data race in Eino 0.9.13
	agent, err := adk.NewChatModelAgent(ctx, &h.config)
	if err != nil {
		return looptest.Said{}, err
	}
	runner := adk.NewRunner(ctx, adk.RunnerConfig{Agent: agent, EnableStreaming: t.Stream != nil})
	for event, err := range h.adapter.Run(ctx, runner,
		loop.Event{ID: t.ID, Session: t.Session, Person: t.Person}, messages) {
		if err != nil {
			return looptest.Said{}, err
		}
		if event.Output == nil || event.Output.MessageOutput == nil ||
			event.Output.MessageOutput.Role != schema.Assistant {
			continue
		}
		message, err := read(event.Output.MessageOutput, t.Stream)
		if err != nil {
			return looptest.Said{}, err
		}
		if id := eino.ID(message); id != "" {
			said = looptest.Said{ID: id, Text: message.Content}
		}
	}
	if said.ID == "" {
		return said, errors.New("the run has no answer")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.said[t.Session] = append(h.said[t.Session], schema.UserMessage(t.Text),
		schema.AssistantMessage(said.Text, nil))
	return said, nil
}

// read reads a message, as a whole or piece by piece.
func read(out *adk.MessageVariant, show func(string)) (*schema.Message, error) {
	if !out.IsStreaming {
		return out.Message, nil
	}
	defer out.MessageStream.Close()
	var pieces []*schema.Message
	for {
		piece, err := out.MessageStream.Recv()
		if errors.Is(err, io.EOF) {
			return schema.ConcatMessages(pieces)
		}
		if err != nil {
			return nil, err
		}
		if piece.Content != "" {
			show(piece.Content)
		}
		pieces = append(pieces, piece)
	}
}

// scripted is the suite's model as one of Eino's.
type scripted struct{ *looptest.Model }

func (m scripted) Generate(ctx context.Context, input []*schema.Message,
	opts ...model.Option) (*schema.Message, error) {
	said, err := m.Model.Generate(ctx, linesOf(input))
	if err != nil {
		return nil, err
	}
	return messageOf(said), nil
}

func (m scripted) Stream(ctx context.Context, input []*schema.Message,
	opts ...model.Option) (*schema.StreamReader[*schema.Message], error) {
	reader, writer := schema.Pipe[*schema.Message](0)
	go func() {
		defer writer.Close()
		defer func() { // Eino has clients of models make errors of what happens on goroutines of theirs
			if value := recover(); value != nil {
				writer.Send(nil, fmt.Errorf("panic: %v", value))
			}
		}()
		for piece, err := range m.Model.Stream(ctx, linesOf(input)) {
			if err != nil {
				writer.Send(nil, err)
				return
			}
			if writer.Send(messageOf(piece), nil) {
				return
			}
		}
	}()
	return reader, nil
}

func messageOf(p looptest.Piece) *schema.Message {
	m := schema.AssistantMessage(p.Text, nil)
	m.ReasoningContent = p.Thought
	for i, call := range p.Calls {
		m.ToolCalls = append(m.ToolCalls, schema.ToolCall{
			Index: &i, ID: call.ID, Type: "function",
			Function: schema.FunctionCall{Name: call.Tool, Arguments: call.Input},
		})
	}
	return m
}

func linesOf(input []*schema.Message) (lines looptest.Request) {
	for _, m := range input {
		if m.Content != "" {
			lines = append(lines, looptest.Line{Role: string(m.Role), Text: m.Content})
		}
	}
	return lines
}

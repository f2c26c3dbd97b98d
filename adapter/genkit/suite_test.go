package genkit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/firebase/genkit/go/ai"
	sdk "github.com/firebase/genkit/go/genkit"

	"github.com/heedhq/heed/adapter/genkit"
	"github.com/heedhq/heed/adapter/internal/adaptertest"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/loop/looptest"
)

// TestSuite has the suite of adapters judge the middleware, in Genkit itself. All of its rules
// hold, with whole answers and with streams.
func TestSuite(t *testing.T) {
	looptest.Run(t, looptest.Subject{Models: true, Tools: true, Enforce: true,
		New: func(agent *loop.Agent, s looptest.Script) (looptest.Driver, error) {
			h, err := newHost(agent, s)
			if err != nil {
				return looptest.Driver{}, err
			}
			return looptest.Driver{Turn: adaptertest.Guarded(h.turn), Close: h.stop}, nil
		}})
}

// A host keeps the conversations, as Genkit's hosts do: by the history of each response.
type host struct {
	g       *sdk.Genkit
	adapter *genkit.Adapter
	system  string
	tools   []ai.ToolRef
	stop    context.CancelFunc

	mu   sync.Mutex
	said map[string][]*ai.Message
}

func newHost(agent *loop.Agent, s looptest.Script) (*host, error) {
	ctx, stop := context.WithCancel(context.Background())
	h := &host{g: sdk.Init(ctx), system: s.System, stop: stop, said: make(map[string][]*ai.Message)}
	define(h.g, "main", scripted{s.Model}.generate)
	models := make(map[string]ai.Model)
	for name, m := range s.Models {
		models[name] = define(h.g, name, scripted{m}.generate)
	}
	for _, played := range s.Tools {
		h.tools = append(h.tools, sdk.DefineTool(h.g, played.Name, played.Description,
			func(ctx *ai.ToolContext, in struct {
				Host string `json:"host"`
			}) (text string, err error) {
				defer func() { // Genkit runs tools on goroutines of its own, where a panic ends the program
					if value := recover(); value != nil {
						err = fmt.Errorf("panic: %v", value)
					}
				}()
				input, err := json.Marshal(in)
				if err != nil {
					return "", err
				}
				return played.Run(ctx, string(input))
			}))
	}
	var err error
	h.adapter, err = genkit.New(genkit.Config{Agent: agent, Models: models, Enforce: true})
	return h, err
}

func define(g *sdk.Genkit, name string, run ai.ModelFunc) ai.Model {
	return sdk.DefineModel(g, "test/"+name, &ai.ModelOptions{Supports: &ai.ModelSupports{
		Multiturn: true, SystemRole: true, Tools: true, Media: true,
	}}, run)
}

func (h *host) turn(ctx context.Context, t looptest.Turn) (said looptest.Said, err error) {
	h.mu.Lock()
	messages := append(slices.Clone(h.said[t.Session]), ai.NewUserTextMessage(t.Text))
	h.mu.Unlock()
	opts := []ai.GenerateOption{
		ai.WithModelName("test/main"), ai.WithSystem("%s", h.system), ai.WithMessages(messages...),
		ai.WithTools(h.tools...),
		ai.WithUse(h.adapter.For(loop.Event{ID: t.ID, Session: t.Session, Person: t.Person})),
	}
	if t.Stream != nil {
		opts = append(opts, ai.WithStreaming(func(_ context.Context, c *ai.ModelResponseChunk) error {
			for _, part := range c.Content {
				if part.IsText() {
					t.Stream(part.Text)
				}
			}
			return nil
		}))
	}
	response, err := sdk.Generate(ctx, h.g, opts...)
	if err != nil {
		return looptest.Said{}, err
	}
	id := genkit.ID(response)
	if id == "" {
		return looptest.Said{}, errors.New("the response is no answer")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.said[t.Session] = slices.DeleteFunc(slices.Clone(response.History()),
		func(m *ai.Message) bool { return m.Role == ai.RoleSystem })
	return looptest.Said{ID: id, Text: response.Text()}, nil
}

// scripted is the suite's model as one of Genkit's.
type scripted struct{ *looptest.Model }

func (m scripted) generate(ctx context.Context, r *ai.ModelRequest,
	stream ai.ModelStreamCallback) (*ai.ModelResponse, error) {
	if stream == nil {
		said, err := m.Generate(ctx, linesOf(r))
		if err != nil {
			return nil, err
		}
		return responseOf(r, said), nil
	}
	var whole looptest.Piece
	for piece, err := range m.Stream(ctx, linesOf(r)) {
		if err != nil {
			return nil, err
		}
		whole.Text += piece.Text
		whole.Thought += piece.Thought
		whole.Calls = append(whole.Calls, piece.Calls...)
		if err := stream(ctx, &ai.ModelResponseChunk{Content: responseOf(r,
			piece).Message.Content}); err != nil {
			return nil, err
		}
	}
	return responseOf(r, whole), nil
}

func responseOf(r *ai.ModelRequest, p looptest.Piece) *ai.ModelResponse {
	m := &ai.Message{Role: ai.RoleModel}
	if p.Thought != "" {
		m.Content = append(m.Content, ai.NewReasoningPart(p.Thought, nil))
	}
	if p.Text != "" {
		m.Content = append(m.Content, ai.NewTextPart(p.Text))
	}
	for _, call := range p.Calls {
		m.Content = append(m.Content, ai.NewToolRequestPart(&ai.ToolRequest{Ref: call.ID,
			Name: call.Tool, Input: json.RawMessage(call.Input)}))
	}
	return &ai.ModelResponse{Request: r, Message: m, FinishReason: ai.FinishReasonStop}
}

func linesOf(r *ai.ModelRequest) (lines looptest.Request) {
	for _, m := range r.Messages {
		for _, part := range m.Content {
			switch {
			case part.IsToolResponse():
				lines = append(lines, looptest.Line{Role: looptest.ToolRole,
					Text: fmt.Sprint(part.ToolResponse.Output)})
			case part.IsText():
				role := string(m.Role)
				if m.Role == ai.RoleModel {
					role = looptest.Assistant
				}
				lines = append(lines, looptest.Line{Role: role, Text: part.Text})
			}
		}
	}
	return lines
}

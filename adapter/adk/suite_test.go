package adk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	sdkagent "google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/plugin"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/functiontool"
	"google.golang.org/genai"

	"github.com/heedhq/heed/adapter/adk"
	"github.com/heedhq/heed/adapter/internal/adaptertest"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/loop/looptest"
)

// TestSuite has the suite of adapters judge the plugin, in ADK's own runner. All of its rules hold,
// with whole answers and with streams.
func TestSuite(t *testing.T) {
	looptest.Run(t, looptest.Subject{Models: true, Tools: true, Enforce: true,
		New: func(agent *loop.Agent, s looptest.Script) (looptest.Driver, error) {
			r, err := runnerOf(agent, s, session.InMemoryService())
			return looptest.Driver{Turn: adaptertest.Guarded(
				func(ctx context.Context, t looptest.Turn) (looptest.Said, error) {
					return turn(ctx, r, t)
				})}, err
		}})
}

// runnerOf returns a runner of ADK's over what the suite plays.
func runnerOf(agent *loop.Agent, s looptest.Script, sessions session.Service,
	more ...*plugin.Plugin) (*runner.Runner, error) {
	heeding, err := adk.New(adk.Config{Agent: agent, Enforce: true})
	if err != nil {
		return nil, err
	}
	models := make(map[string]model.LLM)
	for name, m := range s.Models {
		models[name] = scripted{m, name}
	}
	var tools []tool.Tool
	for _, played := range s.Tools {
		made, err := functiontool.New(functiontool.Config{Name: played.Name,
			Description: played.Description},
			func(ctx sdkagent.Context, in struct {
				Host string `json:"host"`
			}) (map[string]any, error) {
				input, err := json.Marshal(in)
				if err != nil {
					return nil, err
				}
				text, err := played.Run(ctx, string(input))
				return map[string]any{"output": text}, err
			})
		if err != nil {
			return nil, err
		}
		tools = append(tools, made)
	}
	root, err := llmagent.New(llmagent.Config{
		Name: "ops", Mode: llmagent.ModeChat, Instruction: s.System,
		Model: heeding.Model(scripted{s.Model, "main"}, models), Tools: tools,
	})
	if err != nil {
		return nil, err
	}
	return runner.New(runner.Config{
		AppName: "suite", Agent: root, SessionService: sessions, AutoCreateSession: true,
		PluginConfig: runner.PluginConfig{Plugins: append(more, heeding.Plugin())},
	})
}

// turn runs a turn as a host does: it shows the pieces, and the whole answer where there were none.
func turn(ctx context.Context, r *runner.Runner, t looptest.Turn) (said looptest.Said, err error) {
	user, conversation := t.Person, t.Session
	if user == "" {
		user = "somebody" // ADK wants a user
	}
	if conversation == "" {
		conversation = "of " + t.ID
	}
	config := sdkagent.RunConfig{StreamingMode: sdkagent.StreamingModeNone}
	if t.Stream != nil {
		config.StreamingMode = sdkagent.StreamingModeSSE
	}
	ctx = adk.WithEvent(ctx, loop.Event{ID: t.ID})
	shown := false
	for event, err := range r.Run(ctx, user, conversation,
		genai.NewContentFromText(t.Text, genai.RoleUser), config) {
		if err != nil {
			return looptest.Said{}, err
		}
		text := textOf(event.Content)
		if t.Stream != nil && text != "" && (event.Partial || !shown) {
			t.Stream(text)
			shown = event.Partial
		}
		if id := adk.ID(event); id != "" {
			said = looptest.Said{ID: id, Text: text}
		}
	}
	if said.ID == "" {
		return said, errors.New("the run has no answer")
	}
	return said, nil
}

func textOf(c *genai.Content) (text string) {
	if c == nil {
		return ""
	}
	for _, part := range c.Parts {
		if !part.Thought {
			text += part.Text
		}
	}
	return text
}

// scripted is the suite's model as one of ADK's.
type scripted struct {
	*looptest.Model
	name string
}

func (m scripted) Name() string { return m.name }

func (m scripted) GenerateContent(ctx context.Context, r *model.LLMRequest,
	stream bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		request := linesOf(r)
		if !stream {
			said, err := m.Generate(ctx, request)
			yield(responseOf(said), err)
			return
		}
		var whole looptest.Piece
		for piece, err := range m.Stream(ctx, request) {
			whole.Text += piece.Text
			whole.Thought += piece.Thought
			whole.Calls = append(whole.Calls, piece.Calls...)
			response := responseOf(piece)
			response.Partial = true
			if len(piece.Calls) > 0 && err == nil {
				continue // come with the whole
			}
			if !yield(response, err) || err != nil {
				return
			}
		}
		yield(responseOf(whole), nil)
	}
}

func responseOf(p looptest.Piece) *model.LLMResponse {
	content := &genai.Content{Role: genai.RoleModel}
	if p.Thought != "" {
		content.Parts = append(content.Parts, &genai.Part{Text: p.Thought, Thought: true})
	}
	if p.Text != "" {
		content.Parts = append(content.Parts, genai.NewPartFromText(p.Text))
	}
	for _, call := range p.Calls {
		var args map[string]any
		if json.Unmarshal([]byte(call.Input), &args) != nil {
			continue
		}
		content.Parts = append(content.Parts, &genai.Part{FunctionCall: &genai.FunctionCall{ID: call.ID,
			Name: call.Tool, Args: args}})
	}
	return &model.LLMResponse{Content: content}
}

func linesOf(r *model.LLMRequest) (lines looptest.Request) {
	if r.Config != nil && r.Config.SystemInstruction != nil {
		var parts []string
		for _, part := range r.Config.SystemInstruction.Parts {
			parts = append(parts, part.Text)
		}
		lines = append(lines, looptest.Line{Role: looptest.System, Text: strings.Join(parts, "\n")})
	}
	for _, c := range r.Contents {
		role := looptest.User
		if c.Role == genai.RoleModel {
			role = looptest.Assistant
		}
		for _, part := range c.Parts {
			switch {
			case part.FunctionResponse != nil:
				lines = append(lines, looptest.Line{Role: looptest.ToolRole,
					Text: fmt.Sprint(part.FunctionResponse.Response)})
			case part.Text != "":
				lines = append(lines, looptest.Line{Role: role, Text: part.Text})
			}
		}
	}
	return lines
}

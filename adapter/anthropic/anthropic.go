// Package anthropic makes models of Anthropic's official SDK,
// github.com/anthropics/anthropic-sdk-go, learn. A [Model] is the model of a [loop.Agent]: give it
// to loop.Config.Model. [Model.Answer] also lets it call your tools, which heed checks against the
// rules and learns from.
package anthropic

import (
	"context"
	"net/http"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/heedhq/heed/adapter/internal/turn"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/loop"
)

// A Model asks a model through the messages of the SDK. It is a [loop.Streamer], and safe for
// concurrent use while its fields stay as they are. Its errors have an llm.Failure.
type Model struct {
	Client sdk.Client
	Name   string // of the model, which must be set
	// System is the system prompt of [Model.Answer]. heed's text follows it.
	System string
	// Tools are what the model may call in [Model.Answer].
	Tools []Tool
}

// A Tool is a function that a model may call.
type Tool = turn.Tool

// inJSON asks for JSON in words, because the API asks for a schema otherwise.
const inJSON = "Answer with JSON alone."

// Generate implements [decision.LLM].
func (m *Model) Generate(ctx context.Context, r decision.LLMRequest) (decision.LLMResponse, error) {
	return m.chat().Stream(ctx, r, nil)
}

// Stream implements [loop.Streamer]. If piece is nil, the reply comes as a whole.
func (m *Model) Stream(ctx context.Context, r decision.LLMRequest,
	piece func(text string)) (decision.LLMResponse, error) {
	return m.chat().Stream(ctx, r, piece)
}

// Answer answers an event as [loop.Agent.Answer] does, with this model and its Tools. A call that a
// rule forbids, or that the chosen arm does not list, is not made, and the model gets the reason.
// Other calls are made one after the other, and heed learns from their results. An arm's ModelName
// is the name of another model of the same Client.
func (m *Model) Answer(ctx context.Context, agent *loop.Agent, e loop.Event) (loop.Answer, error) {
	return m.chat().Answer(ctx, agent, e)
}

func (m *Model) chat() turn.Chat {
	return turn.Chat{Name: m.Name, System: m.System, Tools: m.Tools, Open: m.open}
}

func (m *Model) open(r turn.Request) turn.Asker {
	ask := sdk.MessageNewParams{Model: r.Model, MaxTokens: int64(r.MaxTokens)}
	if r.System != "" {
		ask.System = []sdk.TextBlockParam{{Text: r.System}}
	}
	if r.JSON {
		ask.System = append(ask.System, sdk.TextBlockParam{Text: inJSON})
	}
	if r.Temperature != nil {
		ask.Temperature = sdk.Float(*r.Temperature)
	}
	for _, said := range r.Messages {
		block := sdk.NewTextBlock(said.Text)
		if said.Role == "assistant" {
			ask.Messages = append(ask.Messages, sdk.NewAssistantMessage(block))
		} else {
			ask.Messages = append(ask.Messages, sdk.NewUserMessage(block))
		}
	}
	for _, tool := range r.Tools {
		schema := sdk.ToolInputSchemaParam{ExtraFields: tool.Schema}
		offered := sdk.ToolUnionParamOfTool(schema, tool.Name)
		offered.OfTool.Description = sdk.String(tool.Description)
		ask.Tools = append(ask.Tools, offered)
	}
	return func(
		ctx context.Context, results []turn.Result, piece func(string),
	) (said turn.Said, _ error) {
		var answers []sdk.ContentBlockParamUnion
		for _, r := range results {
			answers = append(answers, sdk.NewToolResultBlock(r.ID, r.Text, r.Failed))
		}
		if len(answers) > 0 {
			ask.Messages = append(ask.Messages, sdk.NewUserMessage(answers...))
		}
		got, err := m.send(ctx, ask, piece)
		if err != nil {
			return said, err
		}
		ask.Messages = append(ask.Messages, got.ToParam())
		return read(got)
	}
}

func (m *Model) send(ctx context.Context, ask sdk.MessageNewParams,
	piece func(string)) (*sdk.Message, error) {
	var response *http.Response
	if piece == nil {
		got, err := m.Client.Messages.New(ctx, ask, option.WithResponseInto(&response),
			option.WithMiddleware(turn.Bounded))
		return got, turn.Failed(err, response)
	}
	whole := &sdk.Message{}
	err := turn.Each(
		m.Client.Messages.NewStreaming(ctx, ask, option.WithResponseInto(&response),
			option.WithMiddleware(turn.Bounded)),
		func(event sdk.MessageStreamEventUnion) error {
			if err := whole.Accumulate(event); err != nil {
				return err
			}
			if event.Delta.Type == "text_delta" && event.Delta.Text != "" {
				piece(event.Delta.Text)
			}
			return nil
		})
	if err == nil && whole.StopReason == "" {
		err = turn.ErrBroken
	}
	return whole, turn.Failed(err, response)
}

// read returns the text and the tool calls of a message.
func read(got *sdk.Message) (said turn.Said, _ error) {
	said.LLMResponse = decision.LLMResponse{
		Model: got.Model, Cut: got.StopReason == sdk.StopReasonMaxTokens,
		InputTokens: int(got.Usage.InputTokens), OutputTokens: int(got.Usage.OutputTokens),
	}
	for i := range got.Content {
		switch block := &got.Content[i]; block.Type {
		case "text":
			said.Text += block.Text
		case "thinking":
			said.Thoughts += block.Thinking
		case "tool_use":
			said.Calls = append(said.Calls,
				turn.Call{ID: block.ID, Tool: block.Name, Input: string(block.Input)})
		}
	}
	return turn.Usable(said, got.StopReason == sdk.StopReasonRefusal)
}

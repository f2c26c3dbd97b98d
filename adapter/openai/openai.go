// Package openai makes models of OpenAI's official SDK, github.com/openai/openai-go, learn. A
// [Model] is the model of a [loop.Agent]: give it to loop.Config.Model. [Model.Answer] also lets it
// call your tools, which heed checks against the rules and learns from.
package openai

import (
	"context"
	"net/http"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/shared"

	"github.com/heedhq/heed/adapter/internal/turn"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/loop"
)

// A Model asks a model through the chat completions of the SDK. It is a [loop.Streamer], and safe
// for concurrent use while its fields stay as they are. Its errors have an llm.Failure.
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
	ask := sdk.ChatCompletionNewParams{
		Model: r.Model, MaxCompletionTokens: sdk.Int(int64(r.MaxTokens)),
	}
	if r.Temperature != nil {
		ask.Temperature = sdk.Float(*r.Temperature)
	}
	if r.JSON {
		ask.ResponseFormat.OfJSONObject = &shared.ResponseFormatJSONObjectParam{}
	}
	if r.System != "" {
		ask.Messages = append(ask.Messages, sdk.SystemMessage(r.System))
	}
	for _, said := range r.Messages {
		if said.Role == "assistant" {
			ask.Messages = append(ask.Messages, sdk.AssistantMessage(said.Text))
		} else {
			ask.Messages = append(ask.Messages, sdk.UserMessage(said.Text))
		}
	}
	for _, tool := range r.Tools {
		ask.Tools = append(ask.Tools, sdk.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
			Name: tool.Name, Description: sdk.String(tool.Description), Parameters: tool.Schema,
		}))
	}
	return func(
		ctx context.Context, results []turn.Result, piece func(string),
	) (said turn.Said, _ error) {
		for _, r := range results {
			ask.Messages = append(ask.Messages, sdk.ToolMessage(r.Text, r.ID))
		}
		got, err := m.send(ctx, ask, piece)
		if err != nil {
			return said, turn.Failed(err, piece != nil,
				func(e *sdk.Error) *http.Response { return e.Response })
		}
		ask.Messages = append(ask.Messages, got.Choices[0].Message.ToParam())
		return read(got)
	}
}

// send returns a completion, which has a choice.
func (m *Model) send(ctx context.Context, ask sdk.ChatCompletionNewParams,
	piece func(string)) (*sdk.ChatCompletion, error) {
	if piece == nil {
		got, err := m.Client.Chat.Completions.New(ctx, ask)
		if err == nil && len(got.Choices) == 0 {
			err = turn.Unusable("no choice")
		}
		return got, err
	}
	ask.StreamOptions.IncludeUsage = sdk.Bool(true)
	var whole sdk.ChatCompletionAccumulator
	err := turn.Each(m.Client.Chat.Completions.NewStreaming(ctx, ask),
		func(chunk sdk.ChatCompletionChunk) error {
			if !whole.AddChunk(chunk) {
				return turn.Unusable("its pieces do not fit together")
			}
			for _, choice := range chunk.Choices {
				if choice.Index == 0 && choice.Delta.Content != "" {
					piece(choice.Delta.Content)
				}
			}
			return nil
		})
	if err == nil && (len(whole.Choices) == 0 || whole.Choices[0].FinishReason == "") {
		err = turn.ErrBroken
	}
	return &whole.ChatCompletion, err
}

// read returns the text and the tool calls of a completion.
func read(got *sdk.ChatCompletion) (said turn.Said, _ error) {
	first := &got.Choices[0]
	said.LLMResponse = decision.LLMResponse{
		Text: first.Message.Content, Model: got.Model, Cut: first.FinishReason == "length",
		InputTokens: int(got.Usage.PromptTokens), OutputTokens: int(got.Usage.CompletionTokens),
	}
	for _, call := range first.Message.ToolCalls {
		said.Calls = append(said.Calls,
			turn.Call{ID: call.ID, Tool: call.Function.Name, Input: call.Function.Arguments})
	}
	return turn.Usable(said, first.Message.Refusal != "" || first.FinishReason == "content_filter")
}

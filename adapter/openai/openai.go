// Package openai makes models of OpenAI's official SDK, github.com/openai/openai-go, learn. A
// [Model] is the model of a [loop.Agent]: give it to loop.Config.Model. [Model.Answer] also lets it
// call your tools, which heed checks against the rules and learns from.
package openai

import (
	"cmp"
	"context"
	"errors"
	"time"

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
	// Now is the clock that [Model.Answer] measures the model with. nil means time.Now.
	Now func() time.Time
}

// A Tool is a function that a model may call.
type Tool = turn.Tool

// mostTokens bounds each reply in [Model.Answer].
const mostTokens = 16_384

// Generate implements [decision.LLM].
func (m *Model) Generate(
	ctx context.Context, r decision.LLMRequest,
) (decision.LLMResponse, error) {
	return m.Stream(ctx, r, nil)
}

// Stream implements [loop.Streamer]. If piece is nil, the reply comes as a whole.
func (m *Model) Stream(
	ctx context.Context, r decision.LLMRequest, piece func(text string),
) (decision.LLMResponse, error) {
	ask := m.request(m.Name, r.System, []loop.Turn{{Text: r.Prompt}}, r.MaxTokens)
	if r.Temperature != nil {
		ask.Temperature = sdk.Float(*r.Temperature)
	}
	if r.JSON {
		ask.ResponseFormat.OfJSONObject = &shared.ResponseFormatJSONObjectParam{}
	}
	got, err := m.send(ctx, ask, piece)
	if err != nil {
		return decision.LLMResponse{}, err
	}
	said, err := read(got)
	return said.LLMResponse, err
}

// Answer answers an event as [loop.Agent.Answer] does, with this model and its Tools. A call that a
// rule forbids, or that the chosen arm does not list, is not made, and the model gets the reason. Other
// calls are made one after the other, and heed learns from their results. An arm's ModelName is the
// name of another model of the same Client.
func (m *Model) Answer(
	ctx context.Context, agent *loop.Agent, e loop.Event,
) (loop.Answer, error) {
	t := &turn.Turn{Agent: agent, Enforce: true, Event: e}
	now := m.Now
	if now == nil {
		now = time.Now //nolint:forbidigo // the default clock
	}
	return t.Run(ctx, m.Tools, func() turn.Asker {
		system, messages := t.Messages(m.System)
		ask := m.request(cmp.Or(t.Plan.Arm.ModelName, m.Name), system, messages, mostTokens)
		for _, tool := range t.Offered(m.Tools) {
			ask.Tools = append(ask.Tools, sdk.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
				Name: tool.Name, Description: sdk.String(tool.Description), Parameters: tool.Schema,
			}))
		}
		return func(
			ctx context.Context, results []turn.Result, piece func(string),
		) (turn.Said, error) {
			for _, r := range results {
				ask.Messages = append(ask.Messages, sdk.ToolMessage(r.Text, r.ID))
			}
			got, err := m.send(ctx, ask, piece)
			if err != nil {
				return turn.Said{}, err
			}
			ask.Messages = append(ask.Messages, got.Choices[0].Message.ToParam())
			return read(got)
		}
	}, now)
}

func (m *Model) request(
	name, system string, messages []loop.Turn, most int,
) sdk.ChatCompletionNewParams {
	ask := sdk.ChatCompletionNewParams{Model: name, MaxCompletionTokens: sdk.Int(int64(most))}
	if system != "" {
		ask.Messages = append(ask.Messages, sdk.SystemMessage(system))
	}
	for _, said := range messages {
		if said.Role == "assistant" {
			ask.Messages = append(ask.Messages, sdk.AssistantMessage(said.Text))
		} else {
			ask.Messages = append(ask.Messages, sdk.UserMessage(said.Text))
		}
	}
	return ask
}

// send returns a completion, which has a choice.
func (m *Model) send(
	ctx context.Context, ask sdk.ChatCompletionNewParams, piece func(string),
) (*sdk.ChatCompletion, error) {
	if piece == nil {
		got, err := m.Client.Chat.Completions.New(ctx, ask)
		if err == nil && len(got.Choices) == 0 {
			err = turn.Unusable("no choice")
		}
		return got, failed(err, false)
	}
	ask.StreamOptions.IncludeUsage = sdk.Bool(true)
	stream := m.Client.Chat.Completions.NewStreaming(ctx, ask)
	defer stream.Close() //nolint:errcheck // what was read is what counts
	var whole sdk.ChatCompletionAccumulator
	for stream.Next() {
		chunk := stream.Current()
		if !whole.AddChunk(chunk) {
			return nil, turn.Unusable("its pieces do not fit together")
		}
		for _, choice := range chunk.Choices {
			if choice.Index == 0 && choice.Delta.Content != "" {
				piece(choice.Delta.Content)
			}
		}
	}
	if err := stream.Err(); err != nil {
		return nil, failed(err, true)
	}
	if len(whole.Choices) == 0 || whole.Choices[0].FinishReason == "" {
		return nil, turn.ErrBroken
	}
	return &whole.ChatCompletion, nil
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
	switch {
	case first.Message.Refusal != "", first.FinishReason == "content_filter":
		return said, turn.Unusable("it refused")
	case said.Text == "" && len(said.Calls) == 0:
		return said, turn.Unusable("no text") // thoughts may have taken all tokens
	}
	return said, nil
}

// failed classifies an error of the SDK.
func failed(err error, streams bool) error {
	var e *sdk.Error
	if errors.As(err, &e) {
		return turn.Failed(err, e.StatusCode, e.Response, streams)
	}
	return turn.Failed(err, 0, nil, streams)
}

// Package openai makes models of OpenAI's official SDK, github.com/openai/openai-go, learn. A
// [Model] is the model of a [loop.Agent]: give it to loop.Config.Model. [Model.Answer] also lets it
// call your tools, which heed checks against the rules and learns from.
package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"slices"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/respjson"
	"github.com/openai/openai-go/v3/shared"

	"github.com/heedhq/heed/adapter/internal/turn"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/loop"
)

// A Model asks a model through the chat completions of the SDK, at OpenAI or at any server with the
// same interface. It is a [loop.Streamer], and safe for concurrent use while its fields stay as
// they are. Its errors have an llm.Failure. LLMResponse.Thoughts has what the server returns
// apart from the text; heed removes thoughts in tags.
type Model struct {
	Client sdk.Client
	Name   string // of the model; "" leaves it out, for servers that have only one
	// System is the system prompt of [Model.Answer]. heed's text follows it.
	System string
	// Tools are what the model may call in [Model.Answer].
	Tools []Tool
	// OldLimit sends the limit on an answer's tokens as max_tokens. The default is
	// max_completion_tokens, because OpenAI's reasoning models refuse the other name. Set it if the
	// server ignores the default, for example Ollama.
	OldLimit bool
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
	ask, limit := sdk.ChatCompletionNewParams{Model: r.Model}, sdk.Int(int64(r.MaxTokens))
	if m.OldLimit {
		ask.MaxTokens = limit
	} else {
		ask.MaxCompletionTokens = limit
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
		got, thoughts, err := m.send(ctx, ask, piece)
		if err != nil {
			return said, err
		}
		ask.Messages = append(ask.Messages, got.Choices[0].Message.ToParam())
		return read(got, thoughts)
	}
}

// send returns a completion, which has a choice, and the model's thoughts.
func (m *Model) send(
	ctx context.Context, ask sdk.ChatCompletionNewParams, piece func(string),
) (_ *sdk.ChatCompletion, thoughts string, _ error) {
	var response *http.Response
	if piece == nil {
		got, err := m.Client.Chat.Completions.New(ctx, ask, option.WithResponseInto(&response),
			option.WithMiddleware(turn.Bounded))
		if err != nil || got == nil || len(got.Choices) == 0 ||
			hasFailed(got.Choices[0].FinishReason, got.Choices[0].JSON.ExtraFields) {
			return nil, "", turn.Failed(cmp.Or(err, errNoChoice), response)
		}
		return got, thoughtsIn(got.Choices[0].Message.JSON.ExtraFields), nil
	}
	ask.StreamOptions.IncludeUsage = sdk.Bool(true)
	var whole sdk.ChatCompletionAccumulator
	var usage sdk.CompletionUsage
	err := turn.Each(
		m.Client.Chat.Completions.NewStreaming(ctx, ask, option.WithResponseInto(&response),
			option.WithMiddleware(turn.Bounded)),
		func(chunk sdk.ChatCompletionChunk) error {
			chunk.ID = "" // some servers give each piece another one
			if !whole.AddChunk(chunk) {
				return turn.Unusable("its pieces do not fit together")
			}
			// Some servers send the sum so far with each piece.
			usage.PromptTokens = max(usage.PromptTokens, chunk.Usage.PromptTokens)
			usage.CompletionTokens = max(usage.CompletionTokens, chunk.Usage.CompletionTokens)
			for i := range chunk.Choices {
				choice := &chunk.Choices[i]
				if choice.Index != 0 {
					continue
				}
				if hasFailed(choice.FinishReason, choice.JSON.ExtraFields) {
					return errNoChoice
				}
				thoughts += thoughtsIn(choice.Delta.JSON.ExtraFields)
				if choice.Delta.Content != "" {
					piece(choice.Delta.Content)
				}
			}
			return nil
		})
	if err == nil && (len(whole.Choices) == 0 || whole.Choices[0].FinishReason == "") {
		err = turn.ErrBroken
	}
	whole.Usage = usage
	return &whole.ChatCompletion, thoughts, turn.Failed(err, response)
}

var errNoChoice = errors.New("the server's response has no choice")

// hasFailed reports whether a server writes that it failed at a choice.
func hasFailed(finished string, fields map[string]respjson.Field) bool {
	failure := fields["error"].Raw()
	return finished == "error" || failure != "" && failure != "null"
}

// thoughtsIn returns the thoughts among the further fields of a message. Servers name them in
// either way, and some in both.
func thoughtsIn(fields map[string]respjson.Field) (thoughts string) {
	for _, name := range []string{"reasoning_content", "reasoning"} {
		if json.Unmarshal([]byte(fields[name].Raw()), &thoughts) == nil && thoughts != "" {
			break
		}
	}
	return thoughts
}

// read returns the text and the tool calls of a completion.
func read(got *sdk.ChatCompletion, thoughts string) (said turn.Said, _ error) {
	first := &got.Choices[0]
	tokens := func(n int64) int { return int(max(0, min(n, math.MaxInt32))) }
	said.LLMResponse = decision.LLMResponse{
		Text: first.Message.Content, Thoughts: thoughts, Model: got.Model,
		Cut:         first.FinishReason == "length",
		InputTokens: tokens(got.Usage.PromptTokens), OutputTokens: tokens(got.Usage.CompletionTokens),
	}
	for _, call := range first.Message.ToolCalls {
		said.Calls = append(said.Calls,
			turn.Call{ID: call.ID, Tool: call.Function.Name, Input: call.Function.Arguments})
	}
	return turn.Usable(said, first.Message.Refusal != "" || first.FinishReason == "content_filter")
}

// Embed returns the vectors of texts, in their order. It is a [heed.Embedder] if Name is a model
// for embeddings: model.Embed.
func (m *Model) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	var response *http.Response
	got, err := m.Client.Embeddings.New(ctx, sdk.EmbeddingNewParams{
		Model: m.Name, Input: sdk.EmbeddingNewParamsInputUnion{OfArrayOfStrings: texts},
		EncodingFormat: sdk.EmbeddingNewParamsEncodingFormatFloat,
	}, option.WithResponseInto(&response), option.WithMiddleware(turn.Bounded))
	if err != nil || got == nil || len(got.Data) != len(texts) {
		return nil, turn.Failed(cmp.Or(err, errVectors), response)
	}
	slices.SortStableFunc(got.Data, func(a, b sdk.Embedding) int {
		return cmp.Compare(a.Index, b.Index)
	})
	vectors := make([][]float32, len(texts))
	last := got.Data[len(texts)-1].Index
	for i := range vectors {
		// Some servers leave the index out.
		if at := got.Data[i].Index; at != int64(i) && (at != 0 || last != 0) {
			return nil, turn.Failed(errVectors, response)
		}
		for _, x := range got.Data[i].Embedding {
			vectors[i] = append(vectors[i], float32(x))
		}
	}
	return vectors, nil
}

var errVectors = errors.New("the server's response does not have one vector for each text")

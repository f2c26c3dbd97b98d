// Command openai answers an event by a model of OpenAI, through the official SDK. It needs
// OPENAI_API_KEY:
//
//	cd examples/models; GOWORK=off go run ./openai
package main

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/shared"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/loop"
)

// modelOf makes a model for heed of a client and the name of a model.
func modelOf(client openai.Client, name string) decision.LLM {
	return decision.LLMFunc(func(ctx context.Context, r decision.LLMRequest) (decision.LLMResponse,
		error) {
		ask := openai.ChatCompletionNewParams{
			Model:               name,
			Messages:            []openai.ChatCompletionMessageParamUnion{openai.UserMessage(r.Prompt)},
			MaxCompletionTokens: openai.Int(int64(r.MaxTokens)),
		}
		if r.System != "" {
			ask.Messages = append([]openai.ChatCompletionMessageParamUnion{
				openai.SystemMessage(r.System)}, ask.Messages...)
		}
		if r.Temperature != nil {
			ask.Temperature = openai.Float(*r.Temperature)
		}
		if r.JSON {
			ask.ResponseFormat.OfJSONObject = &shared.ResponseFormatJSONObjectParam{}
		}
		got, err := client.Chat.Completions.New(ctx, ask)
		if err != nil {
			return decision.LLMResponse{}, err
		}
		// thoughts took all tokens, or it refused
		if len(got.Choices) == 0 || got.Choices[0].Message.Content == "" {
			return decision.LLMResponse{}, errors.New("the model gave no answer")
		}
		return decision.LLMResponse{
			Text: got.Choices[0].Message.Content, Model: got.Model,
			Cut:         got.Choices[0].FinishReason == "length",
			InputTokens: int(got.Usage.PromptTokens), OutputTokens: int(got.Usage.CompletionTokens),
		}, nil
	})
}

func main() {
	ctx := context.Background()
	agent, err := loop.New(ctx, loop.Config{Model: modelOf(openai.NewClient(),
		openai.ChatModelGPT5_4Mini)})
	if err != nil {
		log.Fatal(err)
	}
	answer, err := agent.Answer(ctx, loop.Event{Text: "The disk of db-1 is full."})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer.Text, answer.Result.Reason)
}

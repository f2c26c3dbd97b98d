// Command anthropic answers an event by a model of Anthropic, through the official SDK. It needs
// ANTHROPIC_API_KEY:
//
//	cd examples/models; GOWORK=off go run ./anthropic
package main

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/anthropics/anthropic-sdk-go"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/loop"
)

// inJSON asks for JSON in words, because the API asks for a schema otherwise.
const inJSON = "Answer with JSON alone."

// modelOf makes a model for heed of a client and the name of a model.
func modelOf(client anthropic.Client, name anthropic.Model) decision.LLM {
	return decision.LLMFunc(func(ctx context.Context, r decision.LLMRequest) (decision.LLMResponse,
		error) {
		ask := anthropic.MessageNewParams{
			Model:     name,
			MaxTokens: int64(r.MaxTokens),
			Messages: []anthropic.MessageParam{anthropic.NewUserMessage(
				anthropic.NewTextBlock(r.Prompt))},
		}
		if r.System != "" {
			ask.System = []anthropic.TextBlockParam{{Text: r.System}}
		}
		if r.JSON {
			ask.System = append(ask.System, anthropic.TextBlockParam{Text: inJSON})
		}
		if r.Temperature != nil {
			ask.Temperature = anthropic.Float(*r.Temperature)
		}
		got, err := client.Messages.New(ctx, ask)
		if err != nil {
			return decision.LLMResponse{}, err
		}
		answer := decision.LLMResponse{
			Model: got.Model, Cut: got.StopReason == anthropic.StopReasonMaxTokens,
			InputTokens: int(got.Usage.InputTokens), OutputTokens: int(got.Usage.OutputTokens),
		}
		for _, block := range got.Content {
			switch block.Type {
			case "text":
				answer.Text += block.Text
			case "thinking":
				answer.Thoughts += block.Thinking
			}
		}
		if answer.Text == "" || got.StopReason == anthropic.StopReasonRefusal {
			return decision.LLMResponse{}, errors.New("the model gave no answer")
		}
		return answer, nil
	})
}

func main() {
	ctx := context.Background()
	agent, err := loop.New(ctx, loop.Config{Model: modelOf(anthropic.NewClient(),
		anthropic.ModelClaudeHaiku4_5)})
	if err != nil {
		log.Fatal(err)
	}
	answer, err := agent.Answer(ctx, loop.Event{Text: "The disk of db-1 is full."})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer.Text, answer.Result.Reason)
}

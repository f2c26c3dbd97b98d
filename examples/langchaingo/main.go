// Langchaingo has a model of LangChainGo learn: a loop.Agent asks it, and what was learned is in
// the prompt. A chain or an agent of LangChainGo that calls its model itself asks for a plan
// before: see the section on adapters in docs/extend.md.
package main

import (
	"cmp"
	"context"
	"fmt"
	"log"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/fake"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/llm"
	"github.com/heedhq/heed/loop"
)

// modelOf returns a model of LangChainGo, which does not give its name, as one of heed's.
func modelOf(chat llms.Model, name string) decision.LLM {
	return decision.LLMFunc(func(
		ctx context.Context, r decision.LLMRequest,
	) (none decision.LLMResponse, _ error) {
		options := []llms.CallOption{llms.WithMaxTokens(r.MaxTokens)}
		if r.Temperature != nil {
			options = append(options, llms.WithTemperature(*r.Temperature))
		}
		if r.JSON {
			options = append(options, llms.WithJSONMode())
		}
		messages := []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeHuman, r.Prompt)}
		if r.System != "" {
			system := llms.TextParts(llms.ChatMessageTypeSystem, r.System)
			messages = append([]llms.MessageContent{system}, messages...)
		}
		got, err := chat.GenerateContent(ctx, messages, options...)
		if err != nil {
			return none, err
		}
		if len(got.Choices) == 0 || got.Choices[0].Content == "" {
			return none, llm.Unusable
		}
		first := got.Choices[0]
		count := func(name string) (n int) { n, _ = first.GenerationInfo[name].(int); return n }
		return decision.LLMResponse{
			Text: first.Content, Thoughts: first.ReasoningContent, Model: name,
			Cut:          first.StopReason == "length" || first.StopReason == "max_tokens",
			InputTokens:  cmp.Or(count("PromptTokens"), count("InputTokens")),
			OutputTokens: cmp.Or(count("CompletionTokens"), count("OutputTokens")),
		}, nil
	})
}

func run(ctx context.Context, chat llms.Model) error {
	agent, err := loop.New(ctx, loop.Config{Model: modelOf(chat, "gpt")})
	if err != nil {
		return err
	}
	answer, err := agent.Answer(ctx, loop.Event{ID: "m1", Text: "The disk is full.", Person: "ann"})
	if err != nil {
		return err
	}
	fmt.Println(answer.Text)
	return agent.React(ctx, answer.ID, loop.Reaction{Person: "ann", Value: 1})
}

func main() {
	chat := fake.NewFakeLLM([]string{"Rotate its logs."}) // or openai.New() of LangChainGo
	if err := run(context.Background(), chat); err != nil {
		log.Fatal(err)
	}
}

package main

import (
	"context"
	"testing"

	"github.com/tmc/langchaingo/llms"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/decision/llmtest"
)

func Example() {
	main()
	// Output: Rotate its logs.
}

// TestModel has the suite of models judge modelOf.
func TestModel(t *testing.T) {
	llmtest.Run(t, func(provider decision.LLM) (decision.LLM, error) {
		return modelOf(played{provider}, "one-of-many"), nil
	})
}

// played is a model of LangChainGo that answers as a provider does. Like the clients there, it
// gives up when the context ends.
type played struct{ decision.LLM }

func (p played) GenerateContent(
	ctx context.Context, messages []llms.MessageContent, options ...llms.CallOption,
) (*llms.ContentResponse, error) {
	var given llms.CallOptions
	for _, option := range options {
		option(&given)
	}
	r := decision.LLMRequest{MaxTokens: given.MaxTokens, JSON: given.JSONMode}
	if given.Temperature != 0 {
		r.Temperature = &given.Temperature
	}
	for _, m := range messages {
		text := m.Parts[0].(llms.TextContent).Text
		if m.Role == llms.ChatMessageTypeSystem {
			r.System = text
		} else {
			r.Prompt = text
		}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	type reply struct {
		decision.LLMResponse
		error
	}
	replies := make(chan reply, 1)
	go func() {
		got, err := p.Generate(ctx, r)
		replies <- reply{got, err}
	}()
	var got reply
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case got = <-replies:
	}
	if got.error != nil {
		return nil, got.error
	}
	choice := &llms.ContentChoice{Content: got.Text, ReasoningContent: got.Thoughts,
		GenerationInfo: map[string]any{
			"PromptTokens": got.InputTokens, "CompletionTokens": got.OutputTokens,
		}}
	if got.Cut {
		choice.StopReason = "length"
	}
	return &llms.ContentResponse{Choices: []*llms.ContentChoice{choice}}, nil
}

func (p played) Call(ctx context.Context, prompt string, _ ...llms.CallOption) (string, error) {
	got, err := p.Generate(ctx, decision.LLMRequest{Prompt: prompt})
	return got.Text, err
}

package decision

import "context"

// An LLM is a language model.
//
// Generate must be safe for concurrent use by multiple goroutines, and should return soon after its context is done. It
// returns an error if there is no answer; an empty text counts as none. Package llmtest has the suite for this contract, and
// a scripted model for tests.
type LLM interface {
	Generate(ctx context.Context, r LLMRequest) (LLMResponse, error)
}

// LLMFunc makes an LLM of a function, such as a closure over the client that a host has.
type LLMFunc func(ctx context.Context, r LLMRequest) (LLMResponse, error)

// Generate calls the function.
func (f LLMFunc) Generate(ctx context.Context, r LLMRequest) (LLMResponse, error) { return f(ctx, r) }

// An LLMRequest is one prompt.
type LLMRequest struct {
	System string // the system prompt; may be empty
	Prompt string
	// JSON asks for JSON. It is a hint: answers are read the same way without it.
	JSON bool
	// MaxTokens bounds the answer. It is never 0.
	MaxTokens int
	// Temperature is how freely the model draws. nil leaves it to the model.
	Temperature *float64
}

// An LLMResponse is an answer.
type LLMResponse struct {
	Text  string
	Model string // the model that answered
	// Tokens as counted by the provider. 0 where it does not tell.
	InputTokens, OutputTokens int
}

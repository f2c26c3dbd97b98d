// Package llmtest has a model for tests, which answers from a script, and the contract of [decision.LLM] in executable
// form, for adapters to a provider. Run it from a test of your adapter, with a server of yours that behaves as the provider
// does:
//
//	func TestAdapter(t *testing.T) {
//		llmtest.Run(t, func(provider decision.LLM) (decision.LLM, error) {
//			server := httptest.NewServer(handlerThatAsks(provider))
//			t.Cleanup(server.Close)
//			return myadapter.New(server.URL)
//		})
//	}
//
// It needs nothing but the standard library. Later versions of the suite may test more of what the contract says.
package llmtest

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/heedhq/heed/decision"
)

// A Step is one answer of a [Model]: what it gives, and how it behaves before.
type Step struct {
	Text  string
	Err   error         // is returned with the text
	Panic any           // is thrown, where it is not nil
	Delay time.Duration // passes before; less where the context is done sooner, whose error is then returned
	Hang  bool          // waits until the context is done, and returns its error
	// Deaf waits for this channel to be closed, whatever the context says, where it is not nil. It models a provider that
	// does not heed its context.
	Deaf chan struct{}

	InputTokens, OutputTokens int
}

// Say returns steps that give these texts.
func Say(texts ...string) []Step {
	steps := make([]Step, len(texts))
	for i, text := range texts {
		steps[i].Text = text
	}
	return steps
}

// A Model is a [decision.LLM] that answers from a script. Set the fields before its first use. The zero value answers
// "ok", and predicts ½ of it.
//
// A Model is safe for concurrent use by multiple goroutines; steps are then taken in the order of the calls.
type Model struct {
	// Name is the model's name in its answers.
	Name string
	// Answers are given to prompts, and Predictions to those that ask for JSON, one after the other; the last one is
	// repeated.
	Answers, Predictions []Step

	mu       sync.Mutex
	requests []decision.LLMRequest
	answers  int // so many were given
	foretold int // so many predictions
}

var _ decision.LLM = (*Model)(nil)

// Generate implements [decision.LLM].
func (m *Model) Generate(ctx context.Context, r decision.LLMRequest) (decision.LLMResponse, error) {
	step := m.next(r)
	switch {
	case step.Hang:
		<-ctx.Done()
		return decision.LLMResponse{}, ctx.Err()
	case step.Deaf != nil:
		<-step.Deaf
	case step.Delay > 0:
		timer := time.NewTimer(step.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return decision.LLMResponse{}, ctx.Err()
		}
	}
	if step.Panic != nil {
		panic(step.Panic) //nolint:forbidigo // the script says so
	}
	return decision.LLMResponse{
		Text: step.Text, Model: m.Name, InputTokens: step.InputTokens, OutputTokens: step.OutputTokens,
	}, step.Err
}

// next notes a request and returns its step.
func (m *Model) next(r decision.LLMRequest) Step {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests = append(m.requests, r)
	steps, given, otherwise := m.Answers, &m.answers, "ok"
	if r.JSON {
		steps, given, otherwise = m.Predictions, &m.foretold, `{"success": 0.5, "confidence": 0.5}`
	}
	*given++
	if len(steps) == 0 {
		return Step{Text: otherwise}
	}
	return steps[min(*given, len(steps))-1]
}

// Requests returns what the model was asked so far, in the order of the calls.
func (m *Model) Requests() []decision.LLMRequest {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.requests)
}

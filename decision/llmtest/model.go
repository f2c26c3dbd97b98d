// Package llmtest has a scripted model for tests, and the contract of [decision.LLM] as a test
// suite for adapters to a provider. Run it from a test of your adapter, with a server that behaves
// as the provider does:
//
//	func TestAdapter(t *testing.T) {
//		llmtest.Run(t, func(provider decision.LLM) (decision.LLM, error) {
//			server := httptest.NewServer(handlerThatAsks(provider))
//			t.Cleanup(server.Close)
//			return myadapter.New(server.URL)
//		})
//	}
//
// Later versions of the suite may test more of the contract.
package llmtest

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/heedhq/heed/decision"
)

// A Step is one answer of a [Model].
type Step struct {
	Text  string
	Err   error // is returned with the text
	Panic any   // if it is not nil, the model panics with it
	// passes before the answer. If the context is done before, its error is returned
	Delay time.Duration
	Hang  bool          // waits until the context is done, and returns its error
	Deaf  chan struct{} // if it is not nil, waits until it is closed, and ignores the context

	Cut bool // the text is marked as cut off

	InputTokens, OutputTokens int
}

// Say returns steps that reply with these texts.
func Say(texts ...string) []Step {
	steps := make([]Step, len(texts))
	for i, text := range texts {
		steps[i].Text = text
	}
	return steps
}

// A Model is a [decision.LLM] that answers from a script. Set the fields before its first use. The
// zero value answers "ok", and predicts ½ for it. A Model is safe for concurrent use by multiple
// goroutines.
type Model struct {
	Name string // in its answers
	// Answers are the answers to prompts, and Predictions those to prompts for JSON, in the order of
	// the calls. The last one is repeated.
	Answers, Predictions []Step

	mu       sync.Mutex
	requests []decision.LLMRequest
	answers  int // given so far
	foretold int // predictions given so far
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
		panic(step.Panic) //nolint:forbidigo // the script asks for it
	}
	return decision.LLMResponse{
		Text: step.Text, Cut: step.Cut, Model: m.Name, InputTokens: step.InputTokens,
		OutputTokens: step.OutputTokens,
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

// Requests returns the requests so far, in the order of the calls.
func (m *Model) Requests() []decision.LLMRequest {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.requests)
}

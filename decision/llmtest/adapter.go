package llmtest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/internal/conformance"
)

// NewAdapter returns an adapter to a provider that answers as this model does. The adapter's requests must reach the model, and
// the model's answers must come back in the provider's format, errors too.
type NewAdapter func(provider decision.LLM) (decision.LLM, error)

// Run runs the suite: a subtest for each rule, with an adapter of its own.
func Run(t *testing.T, newAdapter NewAdapter) { conformance.Run(t, rules, newAdapter) }

// Check runs the suite outside a test and returns all failures, joined. Each begins with the name of its rule.
func Check(newAdapter NewAdapter) error { return conformance.Check(rules, newAdapter) }

type tb = conformance.TB

var rules = []conformance.Rule[NewAdapter]{
	{Name: "a request arrives whole", Check: requestArrives},
	{Name: "an answer comes back whole", Check: answerComesBack},
	{Name: "any text passes in both directions", Check: anyText},
	{Name: "a long text passes in both directions", Check: longText},
	{Name: "a provider's failure is an error", Check: failureIsError},
	{Name: "a context that is done asks nobody", Check: doneAsksNobody},
	{Name: "a call ends when its context does", Check: callEnds},
	{Name: "calls are concurrent and not mixed up", Check: concurrentCalls},
}

var ctx = context.Background()

func open(t tb, newAdapter NewAdapter, provider decision.LLM) decision.LLM {
	t.Helper()
	adapter, err := newAdapter(provider)
	if err != nil {
		t.Fatalf("new: %v", err)
	}
	return adapter
}

func requestArrives(t tb, newAdapter NewAdapter) {
	var model Model
	adapter := open(t, newAdapter, &model)
	warm := 0.25
	for _, want := range []decision.LLMRequest{
		{System: "Be brief.", Prompt: "How are you?", MaxTokens: 100, Temperature: &warm},
		{Prompt: "Nothing else.", MaxTokens: 7, JSON: true},
	} {
		if _, err := adapter.Generate(ctx, want); err != nil {
			t.Fatalf("generate: %v", err)
		}
		all := model.Requests()
		if got := all[len(all)-1]; !reflect.DeepEqual(got, want) {
			t.Errorf("the provider got %+v with a temperature of %v, want %+v with %v", got, value(got.Temperature), want, value(want.Temperature))
		}
	}
}

// value returns what a pointer points to, or nil.
func value(x *float64) any {
	if x == nil {
		return nil
	}
	return *x
}

func answerComesBack(t tb, newAdapter NewAdapter) {
	adapter := open(t, newAdapter, &Model{Name: "one-of-many", Answers: []Step{{Text: " Fine. \n", InputTokens: 12, OutputTokens: 3}}})
	got, err := adapter.Generate(ctx, decision.LLMRequest{Prompt: "How are you?", MaxTokens: 100})
	want := decision.LLMResponse{Text: " Fine. \n", Model: "one-of-many", InputTokens: 12, OutputTokens: 3}
	got.Text, want.Text = strings.TrimSpace(got.Text), strings.TrimSpace(want.Text)
	if err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}

// echoes answers with the prompt.
var echoes = decision.LLMFunc(func(_ context.Context, r decision.LLMRequest) (decision.LLMResponse, error) {
	return decision.LLMResponse{Text: r.Prompt, Model: r.System}, nil
})

func wantEcho(t tb, adapter decision.LLM, text string) {
	t.Helper()
	got, err := adapter.Generate(ctx, decision.LLMRequest{System: "s", Prompt: text, MaxTokens: 100})
	if err != nil || got.Text != text {
		t.Errorf("got %.100q, %v, want %.100q", got.Text, err, text)
	}
}

func anyText(t tb, newAdapter NewAdapter) {
	adapter := open(t, newAdapter, echoes)
	for _, text := range []string{
		"one\ntwo\r\n\tthree", `"quoted" \ and {"json": [1]}`, "<b>&amp;</b> ${x} %s {{y}}", "Grüße 你好 שלום 👩‍🚀", "```\ncode\n```",
	} {
		wantEcho(t, adapter, text)
	}
}

func longText(t tb, newAdapter NewAdapter) {
	wantEcho(t, open(t, newAdapter, echoes), strings.Repeat("a long text; ", 5000)+"end")
}

func failureIsError(t tb, newAdapter NewAdapter) {
	adapter := open(t, newAdapter, &Model{Answers: []Step{{Err: errors.New("out of order")}}})
	got, err := adapter.Generate(ctx, decision.LLMRequest{Prompt: "How are you?", MaxTokens: 100})
	if err == nil {
		t.Errorf("got %+v and no error", got)
	}
}

func doneAsksNobody(t tb, newAdapter NewAdapter) {
	var model Model
	adapter := open(t, newAdapter, &model)
	done, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := adapter.Generate(done, decision.LLMRequest{Prompt: "How are you?", MaxTokens: 100}); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want %v", err, context.Canceled)
	}
	if n := len(model.Requests()); n != 0 {
		t.Errorf("the provider was asked %d times", n)
	}
}

func callEnds(t tb, newAdapter NewAdapter) {
	release := make(chan struct{})
	defer close(release)
	adapter := open(t, newAdapter, &Model{Answers: []Step{{Deaf: release}}})
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	over := make(chan error, 1)
	go func() {
		_, err := adapter.Generate(short, decision.LLMRequest{Prompt: "How are you?", MaxTokens: 100})
		over <- err
	}()
	select {
	case err := <-over:
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error is %v, want %v", err, context.DeadlineExceeded)
		}
	case <-time.After(5 * time.Second):
		t.Errorf("it has not returned 5 s after its context was done")
	}
}

func concurrentCalls(t tb, newAdapter NewAdapter) {
	adapter := open(t, newAdapter, echoes)
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			for n := range 10 {
				wantEcho(t, adapter, fmt.Sprintf("call %d of %d", n, i))
			}
		})
	}
	all.Wait()
}

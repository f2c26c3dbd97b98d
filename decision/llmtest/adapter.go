package llmtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/internal/conformance"
)

// NewAdapter returns an adapter to a provider that answers as this model does. The adapter's
// requests must reach the model, and the model's answers must come back in the provider's format,
// errors too.
type NewAdapter func(provider decision.LLM) (decision.LLM, error)

// Run runs the suite: a subtest for each rule, with its own adapter.
func Run(t *testing.T, newAdapter NewAdapter) { conformance.Run(t, rules, newAdapter) }

type checker = conformance.Checker

var rules = []conformance.Rule[NewAdapter]{
	conformance.Checked("a request arrives whole", requestArrives),
	conformance.Checked("an answer comes back whole", answerComesBack),
	conformance.Checked("any text passes in both directions", anyText),
	conformance.Checked("a provider's failure is an error", failureIsError),
	conformance.Checked("a context that is done asks nobody", doneAsksNobody),
	conformance.Checked("a call ends when its context does", callEnds),
	conformance.Checked("calls are concurrent and not mixed up", concurrentCalls),
}

var (
	ctx  = context.Background()
	asks = decision.LLMRequest{Prompt: "How are you?", MaxTokens: 100}
)

func open(t *checker, newAdapter NewAdapter, provider decision.LLM) decision.LLM {
	adapter, err := newAdapter(provider)
	t.Must("new", err)
	return adapter
}

func requestArrives(t *checker, newAdapter NewAdapter) {
	var model Model
	adapter := open(t, newAdapter, &model)
	warm := 0.25
	for _, want := range []decision.LLMRequest{
		{System: "Be brief.", Prompt: "How are you?", MaxTokens: 100, Temperature: &warm},
		{Prompt: "Nothing else.", MaxTokens: 7, JSON: true},
	} {
		_, err := adapter.Generate(ctx, want)
		t.Must("generate", err)
		all := model.Requests()
		got, _ := json.Marshal(all[len(all)-1])
		wanted, _ := json.Marshal(want)
		t.Equal("the request that the provider got", string(got), string(wanted))
	}
}

func answerComesBack(t *checker, newAdapter NewAdapter) {
	adapter := open(t, newAdapter, &Model{Name: "one-of-many",
		Answers: []Step{{Text: " Fine. \n", InputTokens: 12, OutputTokens: 3}}})
	got, err := adapter.Generate(ctx, asks)
	want := decision.LLMResponse{Text: " Fine. \n", Model: "one-of-many", InputTokens: 12,
		OutputTokens: 3}
	got.Text, want.Text = strings.TrimSpace(got.Text), strings.TrimSpace(want.Text)
	t.Check(err == nil && got == want, "got %+v, %v, want %+v", got, err, want)
}

// echoes answers with the prompt.
var echoes = decision.LLMFunc(func(_ context.Context, r decision.LLMRequest) (decision.LLMResponse,
	error) {
	return decision.LLMResponse{Text: r.Prompt, Model: r.System}, nil
})

func wantEcho(t *checker, adapter decision.LLM, text string) {
	got, err := adapter.Generate(ctx, decision.LLMRequest{System: "s", Prompt: text, MaxTokens: 100})
	t.Check(err == nil && got.Text == text, "got %.100q, %v, want %.100q", got.Text, err, text)
}

func anyText(t *checker, newAdapter NewAdapter) {
	adapter := open(t, newAdapter, echoes)
	for _, text := range []string{
		"one\ntwo\r\n\tthree", `"quoted" \ and {"json": [1]}`, "<b>&amp;</b> ${x} %s {{y}}",
		"Grüße 你好 שלום 👩‍🚀", "```\ncode\n```", strings.Repeat("a long text; ", 5000) + "end",
	} {
		wantEcho(t, adapter, text)
	}
}

func failureIsError(t *checker, newAdapter NewAdapter) {
	adapter := open(t, newAdapter, &Model{Answers: []Step{{Err: errors.New("out of order")}}})
	got, err := adapter.Generate(ctx, asks)
	t.Check(err != nil, "got %+v and no error", got)
}

func doneAsksNobody(t *checker, newAdapter NewAdapter) {
	var model Model
	adapter := open(t, newAdapter, &model)
	done, cancel := context.WithCancel(ctx)
	cancel()
	_, err := adapter.Generate(done, asks)
	t.Check(errors.Is(err, context.Canceled), "error is %v, want %v", err, context.Canceled)
	t.Equal("how often the provider was asked", len(model.Requests()), 0)
}

func callEnds(t *checker, newAdapter NewAdapter) {
	release := make(chan struct{})
	defer close(release)
	adapter := open(t, newAdapter, &Model{Answers: []Step{{Deaf: release}}})
	err := t.EndsInTime(func(ctx context.Context) error {
		_, err := adapter.Generate(ctx, asks)
		return err
	})
	t.Check(errors.Is(err, context.DeadlineExceeded), "error: %v, want that its time is over", err)
}

func concurrentCalls(t *checker, newAdapter NewAdapter) {
	adapter := open(t, newAdapter, echoes)
	t.AtOnce(16, func(caller int) {
		for n := range 10 {
			wantEcho(t, adapter, fmt.Sprintf("call %d of %d", n, caller))
		}
	})
}

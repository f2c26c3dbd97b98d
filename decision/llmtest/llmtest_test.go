package llmtest_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/decision/llmtest"
)

var ctx = context.Background()

func TestModel(t *testing.T) {
	var m llmtest.Model
	got, err := m.Generate(ctx, decision.LLMRequest{Prompt: "x"})
	require.NoError(t, err)
	assert.Equal(t, "ok", got.Text)
	outOfOrder := errors.New("out of order")
	n := &llmtest.Model{Name: "m", Answers: []llmtest.Step{{Text: "one", InputTokens: 2,
		OutputTokens: 3}, {Text: "two", Err: outOfOrder}}, Predictions: llmtest.Say("{}")}
	got, err = n.Generate(ctx, decision.LLMRequest{Prompt: "a"})
	require.NoError(t, err)
	assert.Equal(t, decision.LLMResponse{Text: "one", Model: "m", InputTokens: 2, OutputTokens: 3},
		got)
	got, err = n.Generate(ctx, decision.LLMRequest{Prompt: "b", JSON: true})
	require.NoError(t, err)
	assert.Equal(t, "{}", got.Text)
	for range 2 {
		_, err = n.Generate(ctx, decision.LLMRequest{Prompt: "c"})
		assert.ErrorIs(t, err, outOfOrder, "the last step is repeated")
	}
	var prompts []string
	for _, r := range n.Requests() {
		prompts = append(prompts, r.Prompt)
	}
	assert.Equal(t, []string{"a", "b", "c", "c"}, prompts)
}

func TestSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		short, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		deaf := make(chan struct{})
		m := &llmtest.Model{Answers: []llmtest.Step{{Delay: time.Second, Text: "slow"}, {Panic: "boom"},
			{Hang: true}, {Delay: time.Hour}, {Deaf: deaf, Text: "deaf"}}}
		got, err := m.Generate(short, decision.LLMRequest{})
		require.NoError(t, err)
		assert.Equal(t, "slow", got.Text)
		assert.Equal(t, time.Second, time.Since(began))
		assert.PanicsWithValue(t, "boom", func() { _, _ = m.Generate(short, decision.LLMRequest{}) })
		for range 2 {
			_, err = m.Generate(short, decision.LLMRequest{})
			assert.ErrorIs(t, err, context.DeadlineExceeded)
			assert.Equal(t, time.Minute, time.Since(began))
		}
		time.AfterFunc(time.Hour, func() { close(deaf) })
		got, err = m.Generate(short, decision.LLMRequest{})
		require.NoError(t, err)
		assert.Equal(t, "deaf", got.Text)
		assert.Equal(t, time.Hour+time.Minute, time.Since(began))
	})
}

// adapter asks the provider on a goroutine, as one that goes over a network does.
func adapter(provider decision.LLM) decision.LLM {
	return decision.LLMFunc(func(ctx context.Context, r decision.LLMRequest) (decision.LLMResponse,
		error) {
		if err := ctx.Err(); err != nil {
			return decision.LLMResponse{}, err
		}
		type reply struct {
			decision.LLMResponse
			error
		}
		replies := make(chan reply, 1)
		go func() {
			response, err := provider.Generate(context.WithoutCancel(ctx), r)
			replies <- reply{response, err}
		}()
		select {
		case r := <-replies:
			return r.LLMResponse, r.error
		case <-ctx.Done():
			return decision.LLMResponse{}, ctx.Err()
		}
	})
}

func TestSuite(t *testing.T) {
	llmtest.Run(t, func(provider decision.LLM) (decision.LLM, error) {
		return adapter(provider),
			nil
	})
}

func TestSuiteCatchesBrokenAdapters(t *testing.T) {
	type response = decision.LLMResponse
	change := func(request func(*decision.LLMRequest),
		answer func(*response, *error)) func(decision.LLM) decision.LLM {
		return func(inner decision.LLM) decision.LLM {
			return decision.LLMFunc(func(ctx context.Context, r decision.LLMRequest) (response, error) {
				if request != nil {
					request(&r)
				}
				got, err := inner.Generate(ctx, r)
				if answer != nil {
					answer(&got, &err)
				}
				return got, err
			})
		}
	}
	cold := 0.
	var mu sync.Mutex
	last := ""
	for name, tt := range map[string]struct {
		breaks func(decision.LLM) decision.LLM
		rule   string
	}{
		"no system prompt": {change(func(r *decision.LLMRequest) { r.System = "" }, nil),
			"a request arrives whole"},
		"no hint of JSON": {change(func(r *decision.LLMRequest) { r.JSON = false }, nil),
			"a request arrives whole"},
		"a limit of its own": {change(func(r *decision.LLMRequest) { r.MaxTokens = 4096 }, nil),
			"a request arrives whole"},
		"always cold": {change(func(r *decision.LLMRequest) { r.Temperature = &cold }, nil),
			"a request arrives whole"},
		"no temperature": {change(func(r *decision.LLMRequest) { r.Temperature = nil }, nil),
			"a request arrives whole"},
		"the model asked for": {change(nil, func(r *response, _ *error) { r.Model = "asked for" }),
			"an answer comes back whole"},
		"no tokens": {change(nil, func(r *response, _ *error) { r.InputTokens = 0 }),
			"an answer comes back whole"},
		"one line": {change(func(r *decision.LLMRequest) {
			r.Prompt, _,
				_ = strings.Cut(r.Prompt, "\n")
		}, nil), "any text passes"},
		"a short memory": {change(nil, func(r *response,
			_ *error) {
			r.Text = r.Text[:min(len(r.Text), 4096)]
		}), "any text passes"},
		"an error as an answer": {change(nil, func(r *response, err *error) {
			r.Text, *err = "sorry",
				nil
		}), "a provider's failure is an error"},
		"others' answers": {change(nil, func(r *response,
			_ *error) {
			mu.Lock()
			defer mu.Unlock()
			r.Text, last = last, r.Text
		}), "not mixed up"},
		"asks when it is done": {func(inner decision.LLM) decision.LLM { return deafTo(inner, true) },
			"asks nobody"},
		"waits when it is over": {func(inner decision.LLM) decision.LLM { return deafTo(inner, false) },
			"a call ends"},
		"an error of another sort": {change(nil, func(_ *response, err *error) {
			if *err != nil {
				*err = errors.New("timeout")
			}
		}), "a call ends"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := llmtest.Check(func(provider decision.LLM) (decision.LLM,
				error) {
				return tt.breaks(adapter(provider)), nil
			})
			assert.ErrorContains(t, err, tt.rule)
		})
	}
	assert.ErrorContains(t, llmtest.Check(func(decision.LLM) (decision.LLM, error) {
		return nil,
			errors.New("x")
	}), "new: x")
}

// deafTo makes an adapter that does not heed its context: when it is done on entry, or later.
func deafTo(inner decision.LLM, onEntry bool) decision.LLM {
	return decision.LLMFunc(func(ctx context.Context, r decision.LLMRequest) (decision.LLMResponse,
		error) {
		if done := ctx.Err(); (done != nil) == onEntry {
			reply, err := inner.Generate(context.WithoutCancel(ctx), r)
			return reply, errors.Join(err, done)
		}
		return inner.Generate(ctx, r)
	})
}

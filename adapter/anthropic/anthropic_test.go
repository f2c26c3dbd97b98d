package anthropic_test

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/adapter/anthropic"
	"github.com/heedhq/heed/adapter/internal/adaptertest"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/decision/llmtest"
	"github.com/heedhq/heed/llm"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/loop/looptest"
)

// TestModel has the suite of models judge Generate and Stream through the SDK.
func TestModel(t *testing.T) {
	llmtest.Run(t, func(provider decision.LLM) (decision.LLM, error) {
		client := serve(t, func(w http.ResponseWriter, r *http.Request, in *request) {
			ask := decision.LLMRequest{MaxTokens: in.MaxTokens, Temperature: in.Temperature}
			for _, s := range in.System {
				if ask.JSON = s.Text == "Answer with JSON alone."; !ask.JSON {
					ask.System += s.Text
				}
			}
			for _, c := range in.Messages[0].Content {
				ask.Prompt += c.Text
			}
			got, err := provider.Generate(r.Context(), ask)
			if err != nil {
				fails(w, http.StatusInternalServerError)
				return
			}
			say(w, got, nil)
		})
		return &anthropic.Model{Client: client, Name: "m"}, nil
	})
}

// TestSuite has the suite of adapters judge Answer, whole and in pieces.
func TestSuite(t *testing.T) {
	looptest.Run(t, looptest.Subject{Models: true, Tools: true, Enforce: true,
		New: func(agent *loop.Agent, s looptest.Script) (looptest.Driver, error) {
			client := serve(t, plays(func(name string) script {
				if m := s.Models[name]; m != nil {
					return m
				}
				return s.Model
			}))
			model := &anthropic.Model{
				Client: client, Name: "main", System: s.System, Tools: adaptertest.Tools(s),
			}
			return adaptertest.Talk(agent, model.Answer), nil
		}})
}

// TestFailures classifies failures, of whole answers and of answers in pieces.
func TestFailures(t *testing.T) {
	ask := decision.LLMRequest{Prompt: "p", MaxTokens: 10}
	for name, tt := range map[string]struct {
		handle http.HandlerFunc
		want   llm.Failure
		wait   time.Duration
	}{
		"too many": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "30")
			fails(w, http.StatusTooManyRequests)
		}, llm.RateLimited, 30 * time.Second},
		"a server that fails": {func(w http.ResponseWriter, _ *http.Request) {
			fails(w, http.StatusServiceUnavailable)
		}, llm.ServerError, 0},
		"no such key": {func(w http.ResponseWriter, _ *http.Request) {
			fails(w, http.StatusUnauthorized)
		}, llm.Unreachable, 0},
		"a connection that breaks": {func(http.ResponseWriter, *http.Request) {
			panic(http.ErrAbortHandler)
		}, llm.Unreachable, 0},
		"no text": {func(w http.ResponseWriter, _ *http.Request) {
			say(w, decision.LLMResponse{}, nil)
		}, llm.Unusable, 0},
		"a refusal": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = fmt.Fprint(w, `{"content": [{"type": "text", "text": "I"}], "stop_reason": "refusal"}`)
		}, llm.Unusable, 0},
	} {
		model := &anthropic.Model{Name: "m", Client: serve(t,
			func(w http.ResponseWriter, r *http.Request, _ *request) { tt.handle(w, r) })}
		_, err := model.Generate(t.Context(), ask)
		assert.Equal(t, tt.want, llm.FailureOf(err), "%s: %v", name, err)
		assert.Equal(t, tt.wait, llm.RetryAfter(err), name)
	}
}

// TestStreamsThatFail give the pieces that came, and the failure.
func TestStreamsThatFail(t *testing.T) {
	const begun = `event: message_start
data: {"type":"message_start","message":{"id":"m","content":[]}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Rotate"}}

`
	for _, tt := range []struct {
		rest string
		want llm.Failure
	}{
		{"", llm.Unreachable},
		{"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n",
			llm.ServerError},
		{"event: content_block_delta\ndata: {\"type\n\n", llm.ServerError},
	} {
		model := &anthropic.Model{Name: "m", Client: serve(t,
			func(w http.ResponseWriter, _ *http.Request, in *request) {
				assert.True(t, in.Stream)
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = fmt.Fprint(w, begun+tt.rest)
			})}
		var got string
		_, err := model.Stream(t.Context(), decision.LLMRequest{Prompt: "p", MaxTokens: 10},
			func(text string) { got += text })
		assert.Equal(t, tt.want, llm.FailureOf(err), "%q: %v", tt.rest, err)
		assert.Equal(t, "Rotate", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	model := &anthropic.Model{Name: "m", Client: serve(t, nil)}
	_, err := model.Stream(ctx, decision.LLMRequest{Prompt: "p", MaxTokens: 10}, func(string) {})
	assert.Equal(t, llm.Cancelled, llm.FailureOf(err))
}

// A busy model calls a tool, with a word before, and then answers with what the tool gave.
type busy struct{}

func (busy) reply(r looptest.Request) looptest.Piece {
	if last := r[len(r)-1]; last.Role == looptest.ToolRole {
		return looptest.Piece{Text: "Rotate its logs: " + last.Text}
	}
	return looptest.Piece{Text: "Let me look.", Calls: []looptest.Call{
		{ID: "call-1", Tool: "df", Input: `{}`},
	}}
}

func (b busy) Generate(_ context.Context, r looptest.Request) (looptest.Piece, error) {
	return b.reply(r), nil
}

func (b busy) Stream(
	_ context.Context, r looptest.Request,
) iter.Seq2[looptest.Piece, error] {
	return func(yield func(looptest.Piece, error) bool) { yield(b.reply(r), nil) }
}

// TestPiecesRestart after a call of a tool, because the text before is no part of the answer.
func TestPiecesRestart(t *testing.T) {
	model := &anthropic.Model{
		Client: serve(t, plays(func(string) script { return busy{} })), Name: "m",
		Tools: []anthropic.Tool{{Name: "df", Run: func(context.Context, string) (string, error) {
			return "97%", nil
		}}},
	}
	agent, _ := looptest.New(t, loop.Config{})
	var pieces []string
	answer, err := model.Answer(t.Context(), agent, loop.Event{
		ID: "m1", Text: "The disk is full.",
		OnChunk: func(_ context.Context, text string, restart bool) {
			pieces = append(pieces, fmt.Sprint(text, " ", restart))
		},
	})
	require.NoError(t, err)
	assert.Equal(t, "Rotate its logs: 97%", answer.Text)
	assert.Equal(t, []string{"Let me look. false", "Rotate its logs: 97% true"}, pieces)
}

// TestDocs runs the program of the page against a server.
func TestDocs(t *testing.T) {
	serve(t, plays(func(string) script { return busy{} }))
	adaptertest.Page(t, "README.md")
}

package openai_test

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/adapter/openai"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/llm"
)

// serving returns a model of a server, which keeps the latest request.
func serving(
	t *testing.T, handle func(w http.ResponseWriter),
) (model *openai.Model, request map[string]any) {
	t.Helper()
	request = make(map[string]any)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		clear(request)
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
			t.Error(err)
		}
		handle(w)
	}))
	t.Cleanup(server.Close)
	return modelAt(server.URL), request
}

var asked = decision.LLMRequest{Prompt: "p", MaxTokens: 10}

// Servers name thoughts in either way, and some in both. They are no part of the text.
func TestThoughts(t *testing.T) {
	for fields, want := range map[string]string{
		`"reasoning_content": "Hm."`: "Hm.", `"reasoning": "Hm."`: "Hm.",
		`"reasoning": "Hm.", "reasoning_content": "Hm."`: "Hm.",
		`"reasoning": {"effort": 1}, "x": 1`:             "", `"reasoning_content": null`: "",
	} {
		model, _ := serving(t, func(w http.ResponseWriter) {
			answer(w, `{"choices": [{"message": {"content": "Fine.", `+fields+`}}]}`)
		})
		got, err := model.Generate(t.Context(), asked)
		require.NoError(t, err)
		assert.Equal(t, decision.LLMResponse{Text: "Fine.", Thoughts: want}, got, fields)

		model, _ = serving(t, func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/event-stream")
			for _, delta := range []string{fields, `"content": "Fi"`, `"content": "ne."`} {
				_, _ = io.WriteString(w, `data: {"choices": [{"delta": {`+delta+`}}]}`+"\n\n")
			}
			_, _ = io.WriteString(w, `data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}`+
				"\n\ndata: [DONE]\n\n")
		})
		var pieces string
		got, err = model.Stream(t.Context(), asked, func(text string) { pieces += text })
		require.NoError(t, err)
		assert.Equal(t, decision.LLMResponse{Text: "Fine.", Thoughts: want}, got, fields)
		assert.Equal(t, "Fine.", pieces)
	}
}

// The limit has the name that the server reads, and a model without a name is left out.
func TestLimit(t *testing.T) {
	model, request := serving(t, func(w http.ResponseWriter) { answer(w, fine) })
	for old, name := range map[bool]string{false: "max_completion_tokens", true: "max_tokens"} {
		model.OldLimit = old
		_, err := model.Generate(t.Context(), asked)
		require.NoError(t, err)
		assert.Equal(t, map[string]any{name: 10.0,
			"messages": []any{map[string]any{"role": "user", "content": "p"}}}, request)
	}
}

// A response in another form is a failure of the server, and none of the arm.
func TestResponsesInAnotherForm(t *testing.T) {
	for name, handle := range map[string]func(w http.ResponseWriter){
		"the page of a proxy": func(w http.ResponseWriter) {
			_, _ = io.WriteString(w, "<html>Sign in</html>")
		},
		"no JSON":   func(w http.ResponseWriter) { answer(w, "{]") },
		"no choice": func(w http.ResponseWriter) { answer(w, `{"choices": []}`) },
		"a failure": func(w http.ResponseWriter) { answer(w, `{"error": {"code": 502}}`) },
		"a failure behind a text": func(w http.ResponseWriter) {
			answer(w, `{"choices": [{"message": {"content": "Fi"}, "finish_reason": "error"}]}`)
		},
		"a failure in a choice": func(w http.ResponseWriter) {
			answer(w, `{"choices": [{"message": {"content": "Fi"}, "error": {"code": 502}}]}`)
		},
		"null": func(w http.ResponseWriter) { answer(w, "null") },
		"no end": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(bytes.Repeat([]byte(" "), 20<<20))
			_, _ = io.WriteString(w, `{"choices": [{"message": {"content": "Fine."}}]}`)
		},
		"a status alone": func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadGateway) },
	} {
		model, _ := serving(t, handle)
		_, err := model.Generate(t.Context(), asked)
		assert.Equal(t, llm.ServerError, llm.FailureOf(err), "%s: %v", name, err)
		_, err = model.Embed(t.Context(), []string{"a"})
		assert.Equal(t, llm.ServerError, llm.FailureOf(err), "%s: %v", name, err)
	}
}

// A stream that ends with a failure or without a finish_reason returns an error, and the tokens are
// the greatest counts that a piece reports.
func TestStreamsInAnotherForm(t *testing.T) {
	stream := func(pieces ...string) (decision.LLMResponse, error) {
		model, _ := serving(t, func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/event-stream")
			for _, piece := range append(pieces, "[DONE]") {
				_, _ = io.WriteString(w, "data: "+piece+"\n\n")
			}
		})
		return model.Stream(t.Context(), asked, func(string) {})
	}
	const half = `{"choices": [{"delta": {"content": "Fi"}}]}`
	for end, want := range map[string]llm.Failure{
		`{"choices": [{"delta": {}, "finish_reason": "error"}]}`:                   llm.ServerError,
		`{"choices": [{"delta": {}, "finish_reason": "stop", "error": {"x": 1}}]}`: llm.ServerError,
		`{"choices": [{"delta": {"content": "ne."}}]}`:                             llm.Unreachable,
	} {
		_, err := stream(half, end)
		assert.Equal(t, want, llm.FailureOf(err), "%s: %v", end, err)
	}
	got, err := stream(
		`{"id": "1", "choices": [{"delta": {"content": "Fi"}}], "usage": {"prompt_tokens": 3}}`,
		`{"id": "2", "choices": [{"delta": {"content": "ne."}, "finish_reason": "stop"}], `+
			`"usage": {"prompt_tokens": 3, "completion_tokens": 2}}`)
	require.NoError(t, err)
	assert.Equal(t, decision.LLMResponse{Text: "Fine.", InputTokens: 3, OutputTokens: 2}, got)
}

// A server can't make the text, the name of the model or the counts larger than they may be.
func TestResponsesAreBounded(t *testing.T) {
	var body string
	model, _ := serving(t, func(w http.ResponseWriter) { answer(w, body) })
	body = `{"choices": [{"message": {"content": "` + strings.Repeat("x", 1<<20+1) + `"}}]}`
	_, err := model.Generate(t.Context(), asked)
	assert.Equal(t, llm.Unusable, llm.FailureOf(err))
	body = `{"model": "` + strings.Repeat("m", 1000) + `", "choices": [{"message": {"content": "x"}}],
		"usage": {"prompt_tokens": -5, "completion_tokens": 9223372036854775807}}`
	got, err := model.Generate(t.Context(), asked)
	require.NoError(t, err)
	assert.LessOrEqual(t, len([]rune(got.Model)), 201)
	assert.Zero(t, got.InputTokens)
	assert.Equal(t, math.MaxInt32, got.OutputTokens)
}

func TestEmbed(t *testing.T) {
	var body string
	model, request := serving(t, func(w http.ResponseWriter) { answer(w, body) })
	model.Name = "small"
	for _, body = range []string{
		`{"data": [{"index": 1, "embedding": [0.5, 1]}, {"index": 0, "embedding": [2, -1]}]}`,
		`{"data": [{"embedding": [2, -1]}, {"embedding": [0.5, 1]}]}`,
	} {
		got, err := model.Embed(t.Context(), []string{"a", "b"})
		require.NoError(t, err)
		assert.Equal(t, [][]float32{{2, -1}, {0.5, 1}}, got)
		assert.Equal(t, map[string]any{"model": "small", "input": []any{"a", "b"},
			"encoding_format": "float"}, request)
	}
	for _, body = range []string{
		`{"data": [{"index": 0, "embedding": [1]}]}`,
		`{"data": [{"index": 1, "embedding": [1]}, {"index": 1, "embedding": [2]}]}`,
		`{"data": [{"index": 0, "embedding": [1]}, {"index": 7, "embedding": [2]}]}`,
	} {
		_, err := model.Embed(t.Context(), []string{"a", "b"})
		assert.Equal(t, llm.ServerError, llm.FailureOf(err), body)
	}
	got, err := model.Embed(t.Context(), nil)
	require.NoError(t, err)
	assert.Empty(t, got)
}

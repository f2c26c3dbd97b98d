package openaicompat_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/llm/openaicompat"
)

func TestRequest(t *testing.T) {
	warm := 0.25
	user := map[string]any{"role": "user", "content": "How are you?"}
	for name, tt := range map[string]struct {
		cfg    openaicompat.Config
		base   string // below the server
		req    decision.LLMRequest
		url    string
		header map[string]string
		want   map[string]any
	}{
		"the least": {
			base: "/v1", req: ask, url: "/v1/chat/completions",
			header: map[string]string{"Content-Type": "application/json", "Accept": "application/json",
				"Authorization": ""},
			want: map[string]any{"messages": []any{user}, "max_tokens": 100.0},
		},
		"everything": {
			cfg:  openaicompat.Config{Model: "m", APIKey: "secret"},
			base: "/v1/", // with a slash too many
			req: decision.LLMRequest{System: "Be brief.", Prompt: "How are you?", MaxTokens: 7,
				Temperature: &warm, JSON: true},
			url:    "/v1/chat/completions",
			header: map[string]string{"Authorization": "Bearer secret"},
			want: map[string]any{
				"model": "m", "messages": []any{map[string]any{"role": "system", "content": "Be brief."},
					user},
				"max_tokens": 7.0, "temperature": 0.25,
				"response_format": map[string]any{"type": "json_object"},
			},
		},
		"a deployment": {
			cfg:    openaicompat.Config{APIKey: "secret"},
			base:   "/openai/deployments/d?api-version=2024-10-21",
			req:    ask,
			url:    "/openai/deployments/d/chat/completions?api-version=2024-10-21",
			header: map[string]string{"Authorization": "Bearer secret", "Api-Key": ""},
			want:   map[string]any{"messages": []any{user}, "max_tokens": 100.0},
		},
		"LM Studio": {
			cfg: openaicompat.Config{JSON: "json_schema"}, base: "/v1", url: "/v1/chat/completions",
			req: decision.LLMRequest{Prompt: "How are you?", MaxTokens: 1, JSON: true},
			want: map[string]any{"messages": []any{user}, "max_tokens": 1.0,
				"response_format": map[string]any{
					"type": "json_schema", "json_schema": map[string]any{"name": "answer",
						"schema": map[string]any{"type": "object"}},
				}},
		},
		"a reasoning model that knows no JSON": {
			cfg: openaicompat.Config{JSON: "prompt", MaxCompletionTokens: true}, url: "/chat/completions",
			req:  decision.LLMRequest{Prompt: "How are you?", MaxTokens: 1, JSON: true},
			want: map[string]any{"messages": []any{user}, "max_completion_tokens": 1.0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := serve(t, func(w http.ResponseWriter, r *http.Request) {
				assert.Equal(t, http.MethodPost, r.Method)
				assert.Equal(t, tt.url, r.URL.String())
				for name, value := range tt.header {
					assert.Equal(t, value, r.Header.Get(name), name)
				}
				assert.Equal(t, tt.want, sent(t, r))
				answer(http.StatusOK, fine)(w, r)
			})
			tt.cfg.BaseURL = server.URL + tt.base
			got, err := newClient(t, tt.cfg).Generate(ctx, tt.req)
			require.NoError(t, err)
			assert.Equal(t, decision.LLMResponse{Text: "Fine.", Model: tt.cfg.Model}, got)
		})
	}
}

// Azure's addresses get the key in Azure's own header.
func TestAzure(t *testing.T) {
	for host, header := range map[string]string{
		"r.openai.azure.com": "Api-Key", "azure.com.example": "Authorization",
	} {
		client := newClient(t, openaicompat.Config{BaseURL: "https://" + host, APIKey: secret,
			HTTPClient: &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
				assert.Contains(t, r.Header.Get(header), secret)
				return nil, io.ErrUnexpectedEOF
			})}})
		_, err := client.Generate(ctx, ask)
		require.Error(t, err)
	}
}

func TestRequestRefused(t *testing.T) {
	server := serve(t, answer(http.StatusOK, fine))
	client := newClient(t, openaicompat.Config{BaseURL: server.URL})
	for name, tt := range map[string]struct {
		change func(*decision.LLMRequest)
		field  string
	}{
		"no tokens": {func(r *decision.LLMRequest) { r.MaxTokens = 0 }, "MaxTokens"},
		"no number": {func(r *decision.LLMRequest) {
			r.Temperature = new(
				float64)
			*r.Temperature = math.NaN()
		}, "Temperature"},
		"too hot": {func(r *decision.LLMRequest) {
			r.Temperature = new(
				float64)
			*r.Temperature = 2.1
		}, "Temperature"},
		"too long": {func(r *decision.LLMRequest) {
			r.Prompt = strings.Repeat("a canary. ",
				110_000)
		}, "Prompt"},
		"too long, \"": {func(r *decision.LLMRequest) { r.Prompt = strings.Repeat(`"`, 600_000) }, "Prompt"},
	} {
		t.Run(name, func(t *testing.T) {
			r := ask
			tt.change(&r)
			_, err := client.Generate(ctx, r)
			var fault *heed.InputError
			require.ErrorAs(t, err, &fault)
			assert.Equal(t, tt.field, fault.Field)
			assert.NotContains(t, err.Error(), "canary")
		})
	}
	assert.Zero(t, server.asked.Load())
}

func TestAnswer(t *testing.T) {
	text, err := os.ReadFile("testdata/answers.json")
	require.NoError(t, err)
	var cases []struct {
		Name, Raw, Text, Thoughts, Model, Fault, Code string
		Body                                          json.RawMessage
		In, Out, Status                               int
		Cut                                           bool
	}
	require.NoError(t, json.Unmarshal(text, &cases))
	for _, tt := range cases {
		t.Run(tt.Name, func(t *testing.T) {
			body := tt.Raw
			if tt.Body != nil {
				body = string(tt.Body)
			}
			server := serve(t, answer(http.StatusOK, body))
			client := newClient(t, attempts(1,
				openaicompat.Config{BaseURL: server.URL, Model: "configured"}))
			got, err := client.Generate(ctx, ask)
			assert.Equal(t, decision.LLMResponse{Text: tt.Text, Thoughts: tt.Thoughts, Model: tt.Model,
				Cut: tt.Cut, InputTokens: tt.In, OutputTokens: tt.Out}, got)
			var fault *openaicompat.AnswerError
			var status *openaicompat.StatusError
			switch {
			case tt.Fault != "":
				require.ErrorAs(t, err, &fault)
				assert.Equal(t, tt.Fault, fault.Fault)
			case tt.Status != 0:
				require.ErrorAs(t, err, &status)
				assert.Equal(t, tt.Status, status.Status)
				assert.Equal(t, tt.Code, status.Code)
				assert.NotEmpty(t, status.Excerpt)
			default:
				require.NoError(t, err)
			}
		})
	}
}

// An answer that is none is not asked for again, as it is paid for each time.
func TestAnswerIsFinal(t *testing.T) {
	server := serve(t, answer(http.StatusOK, `{"choices": []}`))
	_, err := newClient(t, openaicompat.Config{BaseURL: server.URL}).Generate(ctx, ask)
	assert.EqualError(t, err, "openaicompat: unusable answer: no choice")
	assert.EqualValues(t, 1, server.asked.Load())
}

// The body counts. Its stated type is a hint in the error.
func TestContentType(t *testing.T) {
	as := func(contentType, body string) *endpoint {
		return serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			_, _ = io.WriteString(w, body)
		})
	}
	got, err := newClient(t, openaicompat.Config{BaseURL: as("text/plain", fine).URL}).Generate(ctx,
		ask)
	require.NoError(t, err)
	assert.Equal(t, "Fine.", got.Text)

	_, err = newClient(t, openaicompat.Config{BaseURL: as("text/html; charset=utf-8",
		"<html>Sign in</html>").URL}).Generate(ctx, ask)
	assert.EqualError(t, err, "openaicompat: unusable answer: no JSON object (text/html)")

	_, err = newClient(t, openaicompat.Config{BaseURL: as("you were/hacked!", "no").URL}).Generate(
		ctx, ask)
	assert.EqualError(t, err, "openaicompat: unusable answer: no JSON object")
}

func TestMaxResponse(t *testing.T) {
	long := func(w io.Writer) {
		_, _ = io.WriteString(w, `{"choices": [{"message": {"content": "`)
		for range 1 << 8 { // 4 MiB
			if _, err := io.WriteString(w, strings.Repeat("a", 1<<14)); err != nil {
				return // the client has hung up
			}
		}
	}
	for name, handler := range map[string]http.HandlerFunc{
		"as it is": func(w http.ResponseWriter, _ *http.Request) { long(w) },
		"compressed": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			packed := gzip.NewWriter(w)
			long(packed)
			_ = packed.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := serve(t, handler)
			_, err := newClient(t, openaicompat.Config{BaseURL: server.URL}).Generate(ctx, ask)
			assert.EqualError(t, err, "openaicompat: unusable answer: too large")
			assert.EqualValues(t, 1, server.asked.Load())
		})
	}
	t.Run("to the byte", func(t *testing.T) {
		server := serve(t, answer(http.StatusOK, fine))
		_, err := newClient(t, reading(len(fine),
			openaicompat.Config{BaseURL: server.URL})).Generate(ctx, ask)
		assert.NoError(t, err)
		_, err = newClient(t, reading(len(fine)-1,
			openaicompat.Config{BaseURL: server.URL})).Generate(ctx, ask)
		assert.EqualError(t, err, "openaicompat: unusable answer: too large")
	})
	t.Run("a failure", func(t *testing.T) {
		server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			long(w)
		})
		_, err := newClient(t, openaicompat.Config{BaseURL: server.URL}).Generate(ctx, ask)
		var status *openaicompat.StatusError
		require.ErrorAs(t, err, &status)
		assert.Len(t, []rune(status.Excerpt), 300)
	})
}

func TestTimeout(t *testing.T) {
	slow := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // so that the server notices that the client hangs up
		<-r.Context().Done()
	})
	_, err := newClient(t, openaicompat.Config{BaseURL: slow.URL,
		Timeout: 20 * time.Millisecond}).Generate(ctx, ask)
	assert.EqualError(t, err, "openaicompat: context deadline exceeded")
	assert.ErrorIs(t, err, context.DeadlineExceeded)

	trickle := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, " ")
			_ = http.NewResponseController(w).Flush()
			time.Sleep(time.Millisecond)
		}
	})
	_, err = newClient(t, openaicompat.Config{BaseURL: trickle.URL,
		Timeout: 50 * time.Millisecond}).Generate(ctx, ask)
	assert.EqualError(t, err, "openaicompat: context deadline exceeded")
	assert.EqualValues(t, 1, trickle.asked.Load())
}

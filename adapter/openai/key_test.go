package openai_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/openai/openai-go/v3/option"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/llm"
)

// The key, and the prompt, go to the configured host and to no other, also by a client of the
// host's own.
func TestRedirect(t *testing.T) {
	for name, more := range map[string][]option.RequestOption{
		"by default": nil, "by a client that follows": {option.WithHTTPClient(&http.Client{
			CheckRedirect: func(*http.Request, []*http.Request) error { return nil },
		})},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			other := httptest.NewServer(http.HandlerFunc(
				func(w http.ResponseWriter, _ *http.Request) {
					asked++
					answer(w, fine)
				}))
			defer other.Close()
			for _, status := range []int{301, 302, 303, 307, 308} {
				var keys []string
				server := httptest.NewServer(http.HandlerFunc(
					func(w http.ResponseWriter, r *http.Request) {
						keys = append(keys, r.Header.Get("Authorization"))
						http.Redirect(w, r, other.URL+"/chat/completions", status)
					}))
				model := modelAt(server.URL, more...)
				r := decision.LLMRequest{Prompt: "p", MaxTokens: 10}
				_, err := model.Generate(t.Context(), r)
				assert.Equal(t, llm.Unreachable, llm.FailureOf(err), err)
				_, err = model.Stream(t.Context(), r, func(string) {})
				assert.Equal(t, llm.Unreachable, llm.FailureOf(err), err)
				_, err = model.Embed(t.Context(), []string{"a"})
				assert.Equal(t, llm.Unreachable, llm.FailureOf(err), err)
				assert.Equal(t, []string{"Bearer key", "Bearer key", "Bearer key"}, keys)
				server.Close()
			}
			assert.Zero(t, asked)
		})
	}
}

// Neither the key nor the prompt is in an error, whatever the endpoint sends back.
func TestKeyIsNotEchoed(t *testing.T) {
	for _, status := range []int{200, 302, 400, 401, 429, 500} {
		for _, body := range []string{
			"canary", `"canary"`, `{"error": {"code": "canary", "message": "canary"}}`,
			"data: {\"error\": {\"message\": \"canary\"}}\n\n", "data: canary\n\n",
		} {
			server := httptest.NewServer(http.HandlerFunc(
				func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(status)
					_, _ = w.Write([]byte(body))
				}))
			model := modelAt(server.URL, option.WithAPIKey("canary"))
			for _, piece := range []func(string){nil, func(string) {}} {
				_, err := model.Stream(t.Context(),
					decision.LLMRequest{Prompt: "the canary", MaxTokens: 10}, piece)
				require.Error(t, err, "%d, %s", status, body)
				assert.NotContains(t, err.Error(), "canary", "%d, %s", status, body)
			}
			server.Close()
		}
	}
}

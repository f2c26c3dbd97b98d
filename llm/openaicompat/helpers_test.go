package openaicompat_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/llm/openaicompat"
)

var ctx = context.Background()

const fine = `{"choices": [{"message": {"content": "Fine."}}]}`

var ask = decision.LLMRequest{Prompt: "How are you?", MaxTokens: 100}

// newClient returns a client whose waits are short, if nothing else is said.
func newClient(t testing.TB, cfg openaicompat.Config) *openaicompat.Client {
	t.Helper()
	client, err := openaicompat.New(openaicompat.Tuned(cfg,
		openaicompat.Tuning{Backoff: time.Millisecond}))
	require.NoError(t, err)
	return client
}

// An endpoint is a local server with a count of its requests.
type endpoint struct {
	URL   string
	asked atomic.Int64
}

func serve(t testing.TB, handler http.HandlerFunc) *endpoint {
	t.Helper()
	e := &endpoint{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.asked.Add(1)
		handler(w, r)
	}))
	t.Cleanup(server.Close)
	e.URL = server.URL
	return e
}

// answer answers every request alike.
func answer(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// inTurn answers each request by its own handler, and the rest by the last one.
func inTurn(handlers ...http.HandlerFunc) http.HandlerFunc {
	var n atomic.Int64
	return func(w http.ResponseWriter, r *http.Request) {
		handlers[min(int(n.Add(1)), len(handlers))-1](w, r)
	}
}

// sent reads what a client sends.
func sent(t testing.TB, r *http.Request) map[string]any {
	t.Helper()
	var body map[string]any
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		t.Errorf("the request is no JSON: %v", err)
	}
	return body
}

// A transport stands in for the network.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// attempts returns a configuration that asks this often at most.
func attempts(n int, cfg openaicompat.Config) openaicompat.Config {
	return openaicompat.Tuned(cfg, openaicompat.Tuning{MaxAttempts: n})
}

// reading returns a configuration that reads this many bytes of a response at most.
func reading(n int, cfg openaicompat.Config) openaicompat.Config {
	return openaicompat.Tuned(cfg, openaicompat.Tuning{MaxResponse: n})
}

package openaicompat_test

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/llm"
	"github.com/heedhq/heed/llm/openaicompat"
)

// TestFailures has a server fail in every way, and checks what the client says about the model.
func TestFailures(t *testing.T) {
	hangs := func(_ http.ResponseWriter, r *http.Request) {
		sent(t, r) // a server only notices that the client has left when it has read the body
		<-r.Context().Done()
	}
	half := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = w.Write([]byte(`{"choices": [{"mess`))
	}
	waits := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTooManyRequests)
	}
	closes := func(http.ResponseWriter, *http.Request) {
		panic(http.ErrAbortHandler) // this is how a handler closes it
	}
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		want    llm.Failure
		wait    time.Duration
	}{
		"hangs":             {hangs, llm.TimedOut, 0},
		"half an answer":    {half, llm.Unreachable, 0},
		"closes":            {closes, llm.Unreachable, 0},
		"limits":            {waits, llm.RateLimited, 7 * time.Second},
		"fails":             {answer(500, ""), llm.ServerError, 0},
		"fails inside":      {answer(200, `{"error": {"code": 503}}`), llm.ServerError, 0},
		"does not know us":  {answer(401, ""), llm.Unreachable, 0},
		"redirects":         {answer(302, ""), llm.Unreachable, 0},
		"refuses the input": {answer(400, ""), llm.Unrecognised, 0},
		"a proxy":           {answer(200, "<html>"), llm.ServerError, 0},
		"no choice":         {answer(200, "{}"), llm.ServerError, 0},
		"refuses to answer": {
			answer(200, `{"choices": [{"message": {"refusal": "No."}}]}`), llm.Unusable, 0,
		},
		"says nothing": {answer(200, `{"choices": [{"message": {"content": " "}}]}`), llm.Unusable, 0},
	} {
		t.Run(name, func(t *testing.T) {
			client := newClient(t, openaicompat.Config{
				BaseURL: serve(t, test.handler).URL, Timeout: 300 * time.Millisecond, MaxAttempts: 1,
			})
			_, err := client.Generate(ctx, ask)
			assert.Equal(t, test.want, llm.FailureOf(err), err)
			assert.Equal(t, test.wait, llm.RetryAfter(err))
			_, err = client.Stream(ctx, ask, func(string) {})
			assert.Equal(t, test.want, llm.FailureOf(err), "streamed: %v", err)
		})
	}
}

func TestNobodyListens(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	client := newClient(t, openaicompat.Config{BaseURL: "http://" + l.Addr().String()})
	_, err = client.Generate(ctx, ask)
	assert.Equal(t, llm.Unreachable, llm.FailureOf(err), err)
}

func TestTheCallerGivesUp(t *testing.T) {
	asked := make(chan struct{})
	client := newClient(t, openaicompat.Config{
		BaseURL: serve(t, func(_ http.ResponseWriter, r *http.Request) {
			sent(t, r)
			close(asked)
			<-r.Context().Done()
		}).URL,
	})
	ending, cancel := context.WithCancel(ctx)
	go func() { <-asked; cancel() }()
	_, err := client.Generate(ending, ask)
	assert.Equal(t, llm.Cancelled, llm.FailureOf(err), err)
}

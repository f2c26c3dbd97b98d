package openaicompat_test

import (
	"context"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/llm"
	"github.com/heedhq/heed/llm/openaicompat"
	"github.com/heedhq/heed/loop"
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
		"fails in words":    {answer(200, `{"error": {"message": "overloaded"}}`), llm.ServerError, 0},
		"fails in a word":   {answer(200, `{"error": "overloaded"}`), llm.ServerError, 0},
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
			client := newClient(t, attempts(1, openaicompat.Config{
				BaseURL: serve(t, test.handler).URL, Timeout: 300 * time.Millisecond,
			}))
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

// A model that answers at the moment at which the caller gives up either has answered or was
// cancelled. It is no failure of the model in any case.
func TestTheAnswerComesAsTheCallerGivesUp(t *testing.T) {
	var leave atomic.Pointer[context.CancelFunc]
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		sent(t, r)
		(*leave.Load())()
		answer(http.StatusOK, fine)(w, r)
	})
	client := newClient(t, openaicompat.Config{BaseURL: server.URL})
	agent, err := loop.New(ctx, loop.Config{Model: client, Arms: []loop.Arm{{ID: "a"}}})
	require.NoError(t, err)
	for range 20 {
		ending, cancel := context.WithCancel(ctx)
		leave.Store(&cancel)
		a, err := agent.Answer(ending, loop.Event{Text: "How are you?"})
		cancel()
		assert.NotErrorAs(t, err, new(*loop.UnavailableError))
		if a.Text == "" {
			assert.Error(t, ending.Err())
		}
	}
	assert.EqualValues(t, 20, server.asked.Load(), "the model is never left out")
	for d, err := range agent.Strategy().Distributions(ctx) {
		require.NoError(t, err)
		assert.Zero(t, d.Outcomes)
	}
}

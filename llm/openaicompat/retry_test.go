package openaicompat_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/llm/openaicompat"
)

func TestRetryableStatuses(t *testing.T) {
	again := map[int]bool{408: true, 429: true, 500: true, 502: true, 503: true, 504: true}
	for _, status := range []int{
		300, 304, 400, 401, 402, 403, 404, 405, 408, 409, 413, 415, 418, 422, 425, 429, 451, 499,
		500, 501, 502, 503, 504, 505, 507, 520, 529, 599,
	} {
		server := serve(t, answer(status, `{"error": {"message": "no", "code": "a_code"}}`))
		_, err := newClient(t, openaicompat.Config{BaseURL: server.URL}).Generate(ctx, ask)
		require.Error(t, err, status)
		if again[status] {
			assert.EqualValues(t, 3, server.asked.Load(), status)
		} else {
			assert.EqualValues(t, 1, server.asked.Load(), status)
		}
		// which has no body
		if fault := (*openaicompat.StatusError)(nil); errors.As(err, &fault) && status != 304 {
			assert.Equal(t, status, fault.Status)
			assert.Equal(t, "a_code", fault.Code)
		}
	}
}

func TestRetrySucceeds(t *testing.T) {
	cut := func(w http.ResponseWriter, _ *http.Request) { // in the middle of the body
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, fine[:20])
	}
	hangUp := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	for name, first := range map[string]http.HandlerFunc{
		"busy":                  answer(http.StatusTooManyRequests, `{}`),
		"busy behind a success": answer(http.StatusOK, `{"error": {"code": 503, "message": "no provider"}}`),
		"cut off":               cut,
		"hung up":               hangUp,
		"down, and no JSON":     answer(http.StatusBadGateway, `<html>nginx</html>`),
		"a failure, and then cut": func(w http.ResponseWriter,
			r *http.Request) {
			w.WriteHeader(500)
			panic(http.ErrAbortHandler)
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := serve(t, inTurn(first, func(w http.ResponseWriter, r *http.Request) {
				assert.Equal(t, 100.0, sent(t, r)["max_tokens"], "the request is sent whole again")
				answer(http.StatusOK, fine)(w, r)
			}))
			got, err := newClient(t, attempts(2, openaicompat.Config{BaseURL: server.URL})).Generate(
				ctx, ask)
			require.NoError(t, err)
			assert.Equal(t, "Fine.", got.Text)
			assert.EqualValues(t, 2, server.asked.Load())
		})
	}
	t.Run("never", func(t *testing.T) {
		server := serve(t, cut)
		_, err := newClient(t, attempts(4, openaicompat.Config{BaseURL: server.URL})).Generate(ctx,
			ask)
		assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
		assert.EqualValues(t, 4, server.asked.Load())
	})
	t.Run("nobody there", func(t *testing.T) {
		_, err := newClient(t, openaicompat.Config{BaseURL: "http://127.0.0.1:1/v1?token=canary"}).Generate(ctx, ask)
		assert.ErrorContains(t, err, "openaicompat: dial tcp 127.0.0.1:1: ")
		assert.NotContains(t, err.Error(), "canary")
	})
}

// A network stands in for the network: it answers by script, and notes when it was asked, counted
// from the first time.
type network struct {
	begin   time.Time
	at      []time.Duration
	answers []http.RoundTripper // the last one is repeated
}

func script(answers ...http.RoundTripper) *network { return &network{answers: answers} }

func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	if n.begin.IsZero() {
		n.begin = time.Now()
	}
	n.at = append(n.at, time.Since(n.begin))
	return n.answers[min(len(n.at), len(n.answers))-1].RoundTrip(r)
}

// A reply is a status, with headers and their values in turn.
type reply struct {
	status int
	header []string
}

func replies(status int, header ...string) reply { return reply{status, header} }

func (p reply) RoundTrip(r *http.Request) (*http.Response, error) {
	h := http.Header{}
	for i := 0; i < len(p.header); i += 2 {
		h.Set(p.header[i], p.header[i+1])
	}
	return &http.Response{StatusCode: p.status, Header: h,
		Body: io.NopCloser(strings.NewReader(fine)), Request: r}, nil
}

var hangs = transport(func(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
})

func overNetwork(t *testing.T, n *network, cfg openaicompat.Config) *openaicompat.Client {
	cfg.BaseURL, cfg.HTTPClient = "http://endpoint.example/v1", &http.Client{Transport: n}
	client, err := openaicompat.New(cfg)
	require.NoError(t, err)
	return client
}

func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := script(replies(500))
		client := overNetwork(t, n, attempts(8, openaicompat.Config{Timeout: time.Hour}))
		_, err := client.Generate(ctx, ask)
		require.Error(t, err)
		require.Len(t, n.at, 8)
		full := time.Second / 2
		differ := false
		for i := range n.at[1:] {
			wait := n.at[i+1] - n.at[i]
			assert.GreaterOrEqual(t, wait, full/2, i)
			assert.LessOrEqual(t, wait, full, i)
			differ = differ || wait != full*3/4
			full = min(2*full, 8*time.Second)
		}
		assert.True(t, differ, "the waits are random")
	})
}

func TestRetryAfter(t *testing.T) {
	const date = "Sat, 21 Nov 2026 10:00:00 GMT"
	for name, tt := range map[string]struct {
		header []string
		want   time.Duration // what is asked for
	}{
		"seconds":          {[]string{"Retry-After", "7"}, 7 * time.Second},
		"parts of seconds": {[]string{"Retry-After", "2.5"}, 2500 * time.Millisecond},
		"a date": {[]string{"Retry-After", "Sat, 21 Nov 2026 10:00:20 GMT", "Date", date},
			20 * time.Second},
		"a date without one": {[]string{"Retry-After", "Sat, 21 Nov 2026 10:00:20 GMT"}, 0},
		"a date in the past": {[]string{"Retry-After", "Sat, 21 Nov 2026 09:00:20 GMT", "Date", date},
			0},
		"none":                 {nil, 0},
		"nothing":              {[]string{"Retry-After", "0"}, 0},
		"less than nothing":    {[]string{"Retry-After", "-5"}, 0},
		"no number":            {[]string{"Retry-After", "NaN"}, 0},
		"soon":                 {[]string{"Retry-After", "soon"}, 0},
		"an endless number":    {[]string{"Retry-After", "1e400"}, 0},
		"until further notice": {[]string{"Retry-After", "Inf"}, 365 * 24 * time.Hour},
		"a date far away": {[]string{"Retry-After", "Sat, 21 Nov 9999 10:00:00 GMT", "Date", date},
			365 * 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := script(replies(429, tt.header...), replies(200))
				_, err := overNetwork(t, n, openaicompat.Config{}).Generate(ctx, ask)
				if tt.want > time.Minute { // more than the call may take
					var status *openaicompat.StatusError
					require.ErrorAs(t, err, &status)
					assert.Equal(t, tt.want, status.RetryAfter)
					assert.NotErrorIs(t, err, context.DeadlineExceeded)
					assert.Len(t, n.at, 1)
					assert.Zero(t, time.Since(n.begin), "it does not wait for nothing")
					return
				}
				require.NoError(t, err)
				require.Len(t, n.at, 2)
				if tt.want > 0 {
					assert.Equal(t, tt.want, n.at[1])
				} else {
					assert.LessOrEqual(t, n.at[1], time.Second/2)
					assert.GreaterOrEqual(t, n.at[1], time.Second/4)
				}
			})
		})
	}
}

// Where a wait would end with the call or after it, the failure is returned at once.
func TestRetryAfterAndDeadline(t *testing.T) {
	for wait, want := range map[string]int{"9": 2, "10": 1, "11": 1} {
		synctest.Test(t, func(t *testing.T) {
			n := script(replies(503, "Retry-After", wait))
			client := overNetwork(t, n, attempts(2, openaicompat.Config{}))
			short, cancel := context.WithTimeout(ctx, 10*time.Second)
			defer cancel()
			_, err := client.Generate(short, ask)
			assert.EqualError(t, err, "openaicompat: status 503 Service Unavailable")
			assert.Len(t, n.at, want, wait)
		})
	}
}

func TestDeadlineToTheMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for i := range 1000 {
			limit := time.Duration(i+1) * 37 * time.Millisecond
			short, cancel := context.WithTimeout(ctx, limit)
			begin := time.Now()
			n := script(hangs)
			_, err := overNetwork(t, n, openaicompat.Config{}).Generate(short, ask)
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, limit, time.Since(begin))
			require.Len(t, n.at, 1)
		}
	})
}

// Failures from before the deadline are a part of the error.
func TestDeadlineAfterFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := script(replies(503), hangs)
		_, err := overNetwork(t, n, openaicompat.Config{}).Generate(ctx, ask)
		assert.EqualError(t, err,
			"openaicompat: status 503 Service Unavailable; then context deadline exceeded")
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		var status *openaicompat.StatusError
		assert.ErrorAs(t, err, &status)
		assert.Equal(t, time.Minute, time.Since(n.begin))
	})
}

func TestCancelWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := script(replies(429, "Retry-After", "30"))
		client := overNetwork(t, n, openaicompat.Config{})
		cancelled, cancel := context.WithCancel(ctx)
		time.AfterFunc(3*time.Second, cancel)
		_, err := client.Generate(cancelled, ask)
		assert.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, 3*time.Second, time.Since(n.begin))
		assert.Len(t, n.at, 1)
	})
}

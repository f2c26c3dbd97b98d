package openai_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/adapter/openai"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/llm"
	"github.com/heedhq/heed/loop"
)

const fine = `{"choices": [{"message": {"content": "Fine."}, "finish_reason": "stop"}]}`

// modelAt returns a model of the server at an address, which asks once.
func modelAt(url string, more ...option.RequestOption) *openai.Model {
	return &openai.Model{Client: sdk.NewClient(append([]option.RequestOption{
		option.WithBaseURL(url), option.WithAPIKey("key"), option.WithMaxRetries(0),
	}, more...)...)}
}

// answer answers with a body of JSON.
func answer(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, body)
}

// A peer is a server of a model that behaves differently from one time to the next.
type peer struct {
	how     atomic.Pointer[string]
	running atomic.Int64
	began   time.Time
	crowded chan struct{} // closed when more than 60 requests are there at once
	once    sync.Once
}

func (p *peer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := p.running.Add(1)
	defer p.running.Add(-1)
	if n > 60 && p.crowded != nil {
		p.once.Do(func() { close(p.crowded) })
	}
	_, _ = io.Copy(io.Discard, r.Body) // only then does a server notice that the client has left
	switch how := *p.how.Load(); {
	case how == "flaps" && time.Since(p.began)%time.Second < time.Second/2:
		w.WriteHeader(http.StatusServiceUnavailable)
	default:
		p.serve(how, w, r)
	}
}

func (p *peer) serve(how string, w http.ResponseWriter, r *http.Request) {
	switch how {
	case "hangs":
		<-r.Context().Done()
	case "slow": // until the crowd is there, which a queue of heed's would prevent
		select {
		case <-p.crowded:
			answer(w, fine)
		case <-r.Context().Done():
		}
	case "fails":
		w.WriteHeader(http.StatusInternalServerError)
	case "limits":
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
	case "half":
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", "1000")
		_, _ = w.Write([]byte(fine[:20]))
	case "closes":
		panic(http.ErrAbortHandler) // this is how a handler closes it
	default:
		answer(w, fine)
	}
}

// people ask at once: more than a queue of a few places could hide.
const people = 100

// crowd sends their events, and returns how many were answered and the errors of the others.
func crowd(t *testing.T, agent *loop.Agent) (answered int, reasons []string) {
	t.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	for range people {
		all.Go(func() {
			a, err := agent.Answer(t.Context(), loop.Event{Text: "How are you?", Person: "ann"})
			assert.NotErrorIs(t, err, decision.ErrBusy)
			mu.Lock()
			defer mu.Unlock()
			if a.Text != "" {
				answered++
			}
			reasons = append(reasons, a.Result.Reason)
		})
	}
	all.Wait()
	slices.Sort(reasons)
	return answered, slices.Compact(reasons)
}

// TestACrowdAtAServerThatFails sends 100 events at once to a server of a model that is slow, fails,
// limits the rate, sends half an answer, closes connections or hangs. With defaults no answer is
// lost to heed, and nothing is learned of the arms.
func TestACrowdAtAServerThatFails(t *testing.T) {
	for _, how := range []string{"well", "slow", "fails", "limits", "half", "closes", "hangs"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			p := &peer{crowded: make(chan struct{})}
			p.how.Store(&how)
			server := httptest.NewServer(p)
			defer server.Close()
			var failure atomic.Value
			timeout := time.Minute // a busy machine may answer late
			if how == "hangs" {
				timeout = 5 * time.Second
			}
			agent, err := loop.New(t.Context(), loop.Config{
				Model: modelAt(server.URL), Arms: []loop.Arm{{ID: "a"}, {ID: "b", System: "Be brief."}},
				Tuning: loop.Tuning{Decision: decision.Config{Timeout: timeout}},
				Observer: func(_ context.Context, n heed.Notice) {
					if o, ok := n.(heed.Outage); ok && o.What == "model" {
						failure.Store(llm.FailureOf(o.Err))
					}
				},
			})
			require.NoError(t, err)
			answered, reasons := crowd(t, agent)
			want := map[string]llm.Failure{
				"fails": llm.ServerError, "limits": llm.RateLimited, "half": llm.Unreachable,
				"closes": llm.Unreachable, "hangs": llm.TimedOut,
			}[how]
			if want == "" {
				assert.Equal(t, people, answered)
				assert.Nil(t, failure.Load())
			} else {
				assert.Zero(t, answered)
				assert.Equal(t, want, failure.Load())
			}
			assert.Subset(t, []string{"", "llm_error", "llm_timeout", "llm_unavailable"}, reasons)
			p.heals(t, agent)
		})
	}
}

// A server that fails in each second half a second is asked again and again, and nothing is learned
// of the arms.
func TestACrowdAtAServerThatFlaps(t *testing.T) {
	t.Parallel()
	p, how := &peer{began: time.Now()}, "flaps"
	p.how.Store(&how)
	server := httptest.NewServer(p)
	defer server.Close()
	agent, err := loop.New(t.Context(), loop.Config{
		Model: modelAt(server.URL),
		Arms:  []loop.Arm{{ID: "a"}, {ID: "b", System: "Be brief."}},
	})
	require.NoError(t, err)
	answered := 0
	for answered == 0 && time.Since(p.began) < 3*time.Minute {
		n, reasons := crowd(t, agent)
		answered += n
		assert.Subset(t, []string{"", "llm_error", "llm_unavailable"}, reasons)
		time.Sleep(100 * time.Millisecond) // until the model is asked again, events are refused at once
	}
	assert.Positive(t, answered)
	p.heals(t, agent)
}

// heals has the server work again. The agent has learned nothing about its arms until then, and
// answers all events soon.
func (p *peer) heals(t *testing.T, agent *loop.Agent) {
	t.Helper()
	for d, err := range agent.Strategy().Distributions(t.Context()) {
		require.NoError(t, err)
		assert.Zero(t, d.Outcomes)
	}
	well := "well"
	p.how.Store(&well)
	assert.Eventually(t, func() bool {
		n, _ := crowd(t, agent)
		return n == people
	}, time.Minute, 200*time.Millisecond)
}

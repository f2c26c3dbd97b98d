package decision_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/decision/llmtest"
	"github.com/heedhq/heed/memstore"
)

// hung has a thousand decisions wait for a model. Each has to end at the deadline exactly: of the
// model's time, or of the wait for a place.
func hung(t *testing.T, cfg decision.Config) *decision.Decider {
	t.Helper()
	cfg.Timeout = 7 * time.Second
	cfg.Store = &memstore.Store{}
	h, err := decision.New(ctx, cfg)
	require.NoError(t, err)
	began := time.Now()
	var all sync.WaitGroup
	var late, busy atomic.Int64
	for range 1000 {
		all.Go(func() {
			r := decision.Request{Candidates: candidates(0.5)}
			res, err := h.Decide(context.Background(), r)
			assert.NoError(t, err)
			switch res.Reason {
			case "llm_timeout":
				late.Add(1)
				assert.Equal(t, decision.Fallback, res.Path)
			case "llm_busy":
				busy.Add(1)
				assert.Equal(t, decision.Rejected, res.Path)
				assert.ErrorIs(t, res.Err, decision.ErrBusy)
			default:
				assert.Fail(t, res.Reason)
			}
			assert.Equal(t, 7*time.Second, time.Since(began))
		})
	}
	all.Wait()
	assert.Empty(t, traces(t, h))
	if cfg.MaxInFlight == 0 {
		assert.Zero(t, busy.Load())
	} else {
		assert.EqualValues(t, cfg.MaxInFlight, late.Load())
	}
	// The scorecard adds them up.
	t.Logf("%d decisions waited until their deadline", late.Load()+busy.Load())
	return h
}

func TestModelThatHangsAndHeedsItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // which fails if a goroutine is left
		h := hung(t, decision.Config{LLM: &llmtest.Model{Answers: []llmtest.Step{{Hang: true}}}})
		synctest.Wait()
		assert.Zero(t, decision.GivenUp(h))
	})
}

func TestModelThatHangsAndIsDeaf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		deaf := make(chan struct{})
		m := &llmtest.Model{Answers: []llmtest.Step{
			{Text: "late", Deaf: deaf}, {Text: "late", Deaf: deaf}, {Text: "late", Deaf: deaf},
			{Text: "in time"},
		}}
		h := hung(t, decision.Config{LLM: m, MaxInFlight: 3})
		synctest.Wait()
		assert.Equal(t, 3, decision.GivenUp(h))
		assert.Len(t, m.Requests(), 3, "there are never more calls than that")

		// While all places are held, the model is not called, and nobody waits.
		began := time.Now()
		res, err := h.Decide(context.Background(), decision.Request{})
		require.NoError(t, err)
		assert.Equal(t, "llm_busy", res.Reason)
		assert.Zero(t, time.Since(began))
		assert.Zero(t, res.Calls)
		assert.Len(t, m.Requests(), 3)

		// When it recovers, it is called again. The late answers are nobody's.
		close(deaf)
		synctest.Wait()
		assert.Zero(t, decision.GivenUp(h))
		res, err = h.Decide(context.Background(), decision.Request{})
		require.NoError(t, err)
		assert.Equal(t, "in time", res.Text)
		assert.Len(t, traces(t, h), 1)
	})
}

func TestPredictionThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &llmtest.Model{Answers: []llmtest.Step{{Text: "Do it.", Delay: 4 * time.Second}},
			Predictions: []llmtest.Step{{Hang: true}}}
		h, err := decision.New(ctx, decision.Config{LLM: m, Prediction: true,
			Timeout: 10 * time.Second})
		require.NoError(t, err)
		began := time.Now()
		res, err := h.Decide(context.Background(), decision.Request{})
		require.NoError(t, err)
		assert.Equal(t, "Do it.", res.Text)
		assert.Equal(t, 0.5, res.Prediction.Success)
		assert.ErrorIs(t, res.Err, context.DeadlineExceeded)
		assert.Equal(t, 10*time.Second, time.Since(began), "both calls together have that long")
	})
}

func TestCallerGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, err := decision.New(ctx, decision.Config{
			LLM: &llmtest.Model{Answers: []llmtest.Step{{Hang: true}}}})
		require.NoError(t, err)
		short, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		began := time.Now()
		res, err := h.Decide(short, decision.Request{})
		require.NoError(t, err)
		assert.Equal(t, "llm_timeout", res.Reason)
		assert.Equal(t, time.Second, time.Since(began))
	})
}

// A caller who gives up while the model predicts has the answer, and nothing is begun for it any
// more.
func TestNoCallIsBegunWhenTheTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		short, cancel := context.WithCancel(context.Background())
		var compared atomic.Int64
		s, err := decision.New(ctx, decision.Config{
			Prediction: true,
			LLM: decision.LLMFunc(func(_ context.Context, r decision.LLMRequest) (decision.LLMResponse,
				error) {
				if r.JSON {
					cancel()
				}
				return decision.LLMResponse{Text: "hi"}, nil
			}),
			Similarity: heed.Embedder(func(context.Context, []string) ([][]float32, error) {
				compared.Add(1)
				return nil, errors.New("too late")
			}),
		})
		require.NoError(t, err)
		res, err := s.Decide(short, decision.Request{Candidates: candidates(0.5)})
		require.NoError(t, err)
		synctest.Wait()
		assert.Equal(t, "hi", res.Text)
		assert.Equal(t, 2, res.Calls)
		assert.ErrorIs(t, res.Err, context.Canceled)
		assert.Zero(t, compared.Load())
	})
}

func TestCallsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, most atomic.Int64
		llm := decision.LLMFunc(func(context.Context, decision.LLMRequest) (decision.LLMResponse,
			error) {
			n := running.Add(1)
			defer running.Add(-1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			time.Sleep(time.Second)
			return decision.LLMResponse{Text: "{}"}, nil
		})
		h, err := decision.New(ctx, decision.Config{LLM: llm, MaxInFlight: 2,
			Prediction: true})
		require.NoError(t, err)
		began := time.Now()
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				res, err := h.Decide(context.Background(), decision.Request{})
				assert.NoError(t, err)
				assert.Equal(t, decision.Model, res.Path)
			})
		}
		all.Wait()
		assert.EqualValues(t, 2, most.Load())
		assert.Equal(t, 4*time.Second, time.Since(began), "eight calls, two at a time")
	})
}

// TestWaitingUsesNoneOfTheModelsTime has three decisions ask a model that answers one at a time and
// nearly takes all of its time.
func TestWaitingUsesNoneOfTheModelsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &llmtest.Model{
			Answers:     []llmtest.Step{{Text: "Do it.", Delay: 6 * time.Second}},
			Predictions: []llmtest.Step{{Text: "{}", Delay: 500 * time.Millisecond}},
		}
		h, err := decision.New(ctx, decision.Config{
			LLM: m, MaxInFlight: 1, Timeout: 7 * time.Second, Prediction: true,
		})
		require.NoError(t, err)
		began := time.Now()
		results := make([]decision.Result, 2)
		var all sync.WaitGroup
		for i := range results {
			all.Go(func() {
				res, err := h.Decide(context.Background(), decision.Request{})
				assert.NoError(t, err)
				results[i] = res
			})
		}
		short, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		synctest.Wait()
		res, err := h.Decide(short, decision.Request{})
		require.NoError(t, err)
		assert.Equal(t, "llm_busy", res.Reason, "the caller's context ended in line")
		assert.Equal(t, decision.Rejected, res.Path)
		assert.ErrorIs(t, res.Err, decision.ErrBusy)
		assert.ErrorIs(t, res.Err, context.DeadlineExceeded)
		assert.Zero(t, res.Calls)
		all.Wait()
		for _, res := range results {
			assert.Equal(t, "Do it.", res.Text)
			assert.NoError(t, res.Err, "the prediction had its time, too")
		}
		assert.Len(t, m.Requests(), 4)
		assert.Equal(t, 13*time.Second, time.Since(began))
	})
}

func TestModelThatEndsItsGoroutine(t *testing.T) {
	llm := decision.LLMFunc(func(context.Context, decision.LLMRequest) (decision.LLMResponse, error) {
		runtime.Goexit()
		return decision.LLMResponse{}, nil
	})
	res := decide(t, decision.Config{LLM: llm, Prediction: true}, decision.Request{})
	assert.Equal(t, "llm_error", res.Reason)
	var panicked *heed.PanicError
	require.ErrorAs(t, res.Err, &panicked)
	assert.Nil(t, panicked.Value)
	llm = func(context.Context, decision.LLMRequest) (decision.LLMResponse,
		error) {
		panic(errors.New("boom"))
	}
	res = decide(t, decision.Config{LLM: llm, Prediction: true}, decision.Request{})
	require.ErrorAs(t, res.Err, &panicked)
	assert.EqualError(t, res.Err, "the model panicked: boom")
	assert.Contains(t, string(panicked.Stack), "TestModelThatEndsItsGoroutine")
}

func TestExtractionsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &llmtest.Model{Predictions: []llmtest.Step{{Text: "{}", Delay: time.Second}}}
		e := extractor(t, decision.Config{LLM: m}, "", praised)
		began := time.Now()
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				_, err := e.Extract(context.Background(), "r", nil)
				assert.NoError(t, err)
			})
		}
		all.Wait()
		assert.Equal(t, 2*time.Second, time.Since(began))
	})
}

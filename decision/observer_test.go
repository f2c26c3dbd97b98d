package decision_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/decision/llmtest"
)

// A listener notes what an observer is told.
type listener struct {
	mu      sync.Mutex
	exposed []heed.Notice
}

func (l *listener) observe(_ context.Context, n heed.Notice) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.exposed = append(l.exposed, n)
}

// take returns what was told since the last call.
func (l *listener) take() []heed.Notice {
	l.mu.Lock()
	defer l.mu.Unlock()
	exposed := l.exposed
	l.exposed = nil
	return exposed
}

func TestObserverOfDecisions(t *testing.T) {
	boom := errors.New("boom")
	broken := similarity{err: boom}
	for name, tt := range map[string]struct {
		answer, prediction llmtest.Step
		cfg                decision.Config
		r                  decision.Request
		stop               bool
		failed             []string
		want               heed.Decided
	}{
		"a heuristic answers": {
			r:    decision.Request{Candidates: candidates(0.9)},
			want: heed.Decided{ID: "r1", Path: "heuristic", Heuristic: "h1"},
		},
		"the model answers": {
			answer: llmtest.Step{Text: "Do it."}, prediction: llmtest.Step{Text: `{"success": 0.9, "confidence": 0.9}`},
			r: decision.Request{Candidates: candidates(0.1)}, want: heed.Decided{ID: "r1", Path: "llm"},
		},
		"nobody is asked": {r: decision.Request{CanWait: true},
			want: heed.Decided{Path: "rejected", Reason: "not_immediate"}},
		"the model fails": {
			answer: llmtest.Step{Err: boom}, r: decision.Request{}, failed: []string{"model"},
			want: heed.Decided{Path: "fallback", Reason: "llm_error"},
		},
		"the caller stops the model": {
			answer: llmtest.Step{Hang: true}, stop: true,
			want: heed.Decided{Path: "fallback", Reason: "llm_stopped"},
		},
		"the model says nothing": {
			answer: llmtest.Step{Text: " "}, r: decision.Request{}, failed: []string{"model"},
			want: heed.Decided{Path: "fallback", Reason: "llm_no_response"},
		},
		"the prediction fails": {
			answer: llmtest.Step{Text: "Do it."}, prediction: llmtest.Step{Err: boom},
			r:      decision.Request{},
			failed: []string{"prediction"}, want: heed.Decided{ID: "r1", Path: "llm"},
		},
		"the prediction is nonsense": {
			answer: llmtest.Step{Text: "Do it."}, prediction: llmtest.Step{Text: "7"},
			r:      decision.Request{},
			failed: []string{"prediction"}, want: heed.Decided{ID: "r1", Path: "llm"},
		},
		"the similarity fails": {
			answer: llmtest.Step{Text: "Do it."}, prediction: llmtest.Step{Text: `{"success": 0.9, "confidence": 0.9}`},
			cfg: decision.Config{Similarity: broken},
			r:   decision.Request{Candidates: candidates(0.1)}, failed: []string{"similarity"},
			want: heed.Decided{ID: "r1", Path: "llm"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var l listener
			model := &llmtest.Model{Answers: []llmtest.Step{tt.answer},
				Predictions: []llmtest.Step{tt.prediction}}
			asking, stop := context.WithCancel(ctx)
			defer stop()
			tt.cfg.LLM = decision.LLMFunc(func(ctx context.Context, r decision.LLMRequest) (
				decision.LLMResponse, error,
			) {
				if tt.stop {
					stop()
				}
				return model.Generate(ctx, r)
			})
			tt.cfg.Observer, tt.cfg.Prediction = l.observe, true
			ticks := start
			tt.cfg.Now = func() time.Time { ticks = ticks.Add(time.Second); return ticks }
			d, err := decision.New(ctx, withFixtures(tt.cfg))
			require.NoError(t, err)
			_, err = d.Decide(asking, tt.r)
			require.NoError(t, err)
			exposed := l.take()
			require.Len(t, exposed, len(tt.failed)+1)
			for i, what := range tt.failed {
				failed := exposed[i].(heed.Failed)
				assert.Equal(t, [2]string{"decision", what}, [2]string{failed.Component, failed.What})
				assert.Error(t, failed.Err)
			}
			got := exposed[len(tt.failed)].(heed.Decided)
			assert.Positive(t, got.Took)
			assert.Equal(t, ticks, got.At)
			tt.want.Component, tt.want.At, tt.want.Took = "decision", got.At, got.Took
			assert.Equal(t, tt.want, got)
		})
	}
}

func TestObserverIsNotToldOfWhatWasNotStored(t *testing.T) {
	var l listener
	broken := brokenStore{newStore((&clock{}).Now), errors.New("broken")}
	d, err := decision.New(ctx, withFixtures(decision.Config{Store: broken, Observer: l.observe}))
	require.NoError(t, err)
	_, err = d.Decide(ctx, decision.Request{Candidates: candidates(0.9)})
	require.ErrorIs(t, err, broken.err)
	assert.Empty(t, l.take())
}

func TestObserverOfExtractions(t *testing.T) {
	var l listener
	boom := errors.New("boom")
	m := &llmtest.Model{Predictions: []llmtest.Step{{Err: boom},
		{Text: written(words(12), "warn", words(12))}}}
	e := extractor(t, decision.Config{LLM: m, Observer: l.observe, Now: (&clock{}).Now}, "",
		praised)
	_, err := e.Extract(ctx, "r", nil)
	require.NoError(t, err)
	exposed := l.take()
	require.Len(t, exposed, 1)
	failed := exposed[0].(heed.Failed)
	assert.ErrorIs(t, failed.Err, boom)
	failed.Err = nil
	assert.Equal(t, heed.Failed{Component: "decision", At: start, What: "model"}, failed)
	_, err = e.Extract(ctx, "r", nil)
	require.NoError(t, err)
	assert.Empty(t, l.take())
}

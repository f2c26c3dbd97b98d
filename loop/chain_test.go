package loop_test

import (
	"context"
	"errors"
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
	"github.com/heedhq/heed/llm"
	"github.com/heedhq/heed/loop"
)

// A hanger streams pieces and then hangs, until its context ends or, if it is deaf, until it is let
// go.
type hanger struct {
	pieces []string
	deaf   bool
	let    chan struct{}
}

func (h *hanger) Generate(ctx context.Context, r decision.LLMRequest) (decision.LLMResponse,
	error) {
	return h.Stream(ctx, r, func(string) {})
}

func (h *hanger) Stream(ctx context.Context, _ decision.LLMRequest,
	piece func(string)) (decision.LLMResponse, error) {
	for _, text := range h.pieces {
		piece(text)
	}
	if !h.deaf {
		<-ctx.Done()
		return decision.LLMResponse{}, ctx.Err()
	}
	<-h.let
	piece("too late")
	return decision.LLMResponse{Text: "too late"}, nil
}

func TestAHangingModelLeavesTimeToItsFallbacks(t *testing.T) {
	for name, test := range map[string]struct {
		hangs  *hanger
		stream bool
		want   time.Duration // 0: the fallback has no part in it
	}{
		"half of 30 seconds":        {hangs: &hanger{}, want: 16 * time.Second},
		"it is deaf to its context": {hangs: &hanger{deaf: true}, want: 16 * time.Second},
		"it streams nothing":        {hangs: &hanger{}, stream: true, want: 16 * time.Second},
		"it streams thoughts alone": {hangs: &hanger{pieces: []string{"<think>hm"}}, stream: true,
			want: 16 * time.Second},
		"it streams nothing and is deaf": {hangs: &hanger{deaf: true}, stream: true,
			want: 16 * time.Second},
		"its answer has begun": {hangs: &hanger{pieces: []string{"Look"}}, stream: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				test.hangs.let = make(chan struct{})
				spare := &llmtest.Model{Answers: []llmtest.Step{{Text: "I am here.", Delay: time.Second}}}
				agent, err := loop.New(ctx, loop.Config{
					Model: test.hangs, Fallbacks: []decision.LLM{spare},
				})
				require.NoError(t, err)
				var heard string
				e := loop.Event{Text: "Why?"}
				if test.stream {
					e.OnChunk = func(_ context.Context, text string, _ bool) { heard += text }
				}
				begin := time.Now()
				answer, err := agent.Answer(t.Context(), e)
				require.NoError(t, err)
				if test.want == 0 {
					assert.Equal(t, "llm_timeout", answer.Result.Reason)
					assert.Equal(t, "Look", heard)
					assert.Empty(t, spare.Requests())
					return
				}
				assert.Equal(t, "I am here.", answer.Text)
				assert.Equal(t, test.want, time.Since(begin))
				if test.stream {
					assert.Equal(t, "I am here.", heard)
				}
				close(test.hangs.let)
				synctest.Wait()
				assert.NotContains(t, heard, "too late")
			})
		})
	}
}

// A model that hangs for good is asked three times. Then the fallback answers at once.
func TestAModelThatHangsForGoodIsPassedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := &hanger{deaf: true, let: make(chan struct{})}
		agent, err := loop.New(ctx, loop.Config{Model: hangs,
			Fallbacks: []decision.LLM{&mouth{says: "I am here."}}})
		require.NoError(t, err)
		for i := range 6 {
			begin := time.Now()
			answer, err := agent.Answer(t.Context(), loop.Event{Text: "Why?"})
			require.NoError(t, err)
			assert.Equal(t, "I am here.", answer.Text)
			if i >= 3 {
				assert.Zero(t, time.Since(begin), "the model is unavailable")
			}
		}
		close(hangs.let)
	})
}

// All models hang. That says nothing about the arm.
func TestAllModelsHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent, err := loop.New(ctx, loop.Config{
			Model: &hanger{}, Fallbacks: []decision.LLM{&hanger{}, &hanger{}},
			Arms: []loop.Arm{{ID: "only"}},
		})
		require.NoError(t, err)
		begin := time.Now()
		answer, err := agent.Answer(t.Context(), loop.Event{Text: "Why?"})
		require.NoError(t, err)
		assert.Equal(t, "llm_timeout", answer.Result.Reason)
		assert.Equal(t, 30*time.Second, time.Since(begin))
		assert.Zero(t, distribution(t, agent.Strategy(), "").Outcomes)
	})
}

// The thoughts of a model that failed do not hide the next one's answer.
func TestAModelFailsInItsThoughts(t *testing.T) {
	w := newWorld(t, loop.Config{
		Model:     &stutterer{pieces: []string{"<think>hm"}, fails: errors.New("x")},
		Fallbacks: []decision.LLM{&mouth{says: "I am here."}},
	})
	var heard string
	answer := w.answer(loop.Event{Text: "Why?",
		OnChunk: func(_ context.Context, text string, _ bool) { heard += text }})
	assert.Equal(t, "I am here.", heard)
	assert.Equal(t, "I am here.", answer.Text)
}

// A receiver of pieces that panics is the host's fault. It says nothing about the arm, and no
// answer is kept.
func TestAReceiverThatPanicsIsNoOutcomeOfTheArm(t *testing.T) {
	for name, model := range map[string]decision.LLM{
		"whole":                  &mouth{says: "Look at the logs."},
		"in pieces":              &stutterer{pieces: []string{"Look", " at"}},
		"what was held back":     &stutterer{pieces: []string{"<"}},
		"then it hangs for good": &hanger{pieces: []string{"Look"}},
	} {
		t.Run(name, func(t *testing.T) {
			spare := &mouth{says: "I am here."}
			w := newWorld(t, loop.Config{Model: model, Fallbacks: []decision.LLM{spare},
				Arms: []loop.Arm{{ID: "only"}}})
			begin := time.Now()
			_, err := w.Answer(ctx, loop.Event{ID: "e", Text: "Why?",
				OnChunk: func(context.Context, string, bool) { panic("no more paper") }})
			require.ErrorAs(t, err, new(*heed.PanicError))
			assert.Less(t, time.Since(begin), 15*time.Second, "the model was stopped")
			assert.Zero(t, spare.calls())
			w.clock.Advance(time.Hour)
			require.NoError(t, w.Sweep(ctx, time.Time{}))
			_, err = w.Explain(ctx, "e")
			assert.ErrorIs(t, err, loop.ErrNoAnswer)
			assert.Zero(t, distribution(t, w.Strategy(), "").Outcomes)
		})
	}
}

// A time that can't be is refused before anybody is asked.
func TestABadTimeIsRefusedBeforeAModelIsAsked(t *testing.T) {
	for name, at := range map[string]time.Time{
		"tomorrow": start.Add(24 * time.Hour), "before 1970": time.Date(1969, 1, 1, 0, 0, 0, 0,
			time.UTC), "far away": time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, loop.Config{})
			_, err := w.Answer(ctx, loop.Event{Text: "Why?", At: at})
			assertField(t, "At", err)
			_, err = w.Prepare(ctx, loop.Event{Text: "Why?", At: at})
			assertField(t, "At", err)
			assert.Zero(t, w.model.calls())
		})
	}
}

// A fallback answers several events at the same time.
func TestAFallbackAnswersManyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := decision.LLMFunc(func(
			context.Context, decision.LLMRequest,
		) (decision.LLMResponse, error) {
			time.Sleep(time.Second)
			return decision.LLMResponse{Text: "I am here."}, nil
		})
		agent, err := loop.New(ctx, loop.Config{
			Model:     &mouth{err: errors.New("x")},
			Fallbacks: []decision.LLM{slow, &mouth{says: "So am I."}},
		})
		require.NoError(t, err)
		begin := time.Now()
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				answer, err := agent.Answer(ctx, loop.Event{Text: "Why?"})
				assert.NoError(t, err)
				assert.Equal(t, "I am here.", answer.Text)
			})
		}
		all.Wait()
		assert.Equal(t, time.Second, time.Since(begin))
	})
}

// A fallback that was unavailable is asked by one event, to find out whether it is back. Until then
// the others pass it over.
func TestAFallbackIsProbedByOneEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		var back chan struct{}
		first := decision.LLMFunc(func(
			context.Context, decision.LLMRequest,
		) (decision.LLMResponse, error) {
			if asked.Add(1); back == nil {
				return decision.LLMResponse{}, llm.Unreachable
			}
			<-back
			return decision.LLMResponse{Text: "I am here."}, nil
		})
		agent, err := loop.New(ctx, loop.Config{
			Model:     &mouth{err: llm.Unreachable},
			Fallbacks: []decision.LLM{first, &mouth{says: "So am I."}},
		})
		require.NoError(t, err)
		ask := func(want string) {
			answer, err := agent.Answer(ctx, loop.Event{Text: "Why?"})
			assert.NoError(t, err)
			assert.Equal(t, want, answer.Text)
		}
		for range 6 {
			ask("So am I.")
		}
		time.Sleep(time.Minute)
		back = make(chan struct{})
		before := asked.Load()
		var probe sync.WaitGroup
		probe.Go(func() { ask("I am here.") })
		synctest.Wait()
		require.Equal(t, before+1, asked.Load())
		for range 3 {
			ask("So am I.")
		}
		assert.Equal(t, before+1, asked.Load())
		close(back)
		probe.Wait()
	})
}

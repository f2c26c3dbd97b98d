package loop_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
)

// A stutterer is a model that gives its answer in pieces.
type stutterer struct {
	mouth
	pieces []string
	fails  error
	late   chan struct{} // if it is there, the last piece comes after the call was given up
	wrote  chan struct{}
}

func (s *stutterer) Stream(_ context.Context, _ decision.LLMRequest,
	piece func(string)) (decision.LLMResponse, error) {
	var whole string
	for i, text := range s.pieces {
		if s.late != nil && i == len(s.pieces)-1 {
			<-s.late
			defer close(s.wrote)
		}
		piece(text)
		whole += text
	}
	return decision.LLMResponse{Text: whole}, s.fails
}

func TestAnAnswerComesInPieces(t *testing.T) {
	for name, test := range map[string]struct {
		model    *stutterer
		fallback decision.LLM
		want     string
		path     decision.Path
	}{
		"pieces": {&stutterer{pieces: []string{"Look ", "at ", "the logs."}}, nil,
			"Look at the logs.", decision.Model},
		"thoughts are left out": {&stutterer{pieces: []string{"<thi", "nk>hm</think>", "Look."}}, nil,
			"Look.", decision.Model},
		"a dropped opening tag": {&stutterer{pieces: []string{"hm", "</think>", "Look."}}, nil, "Look.",
			decision.Model},
		"it fails at once": {&stutterer{fails: errors.New("x")}, &mouth{says: "I am here."},
			"I am here.", decision.Model},
		"it fails half-way": {&stutterer{pieces: []string{"Lo"}, fails: errors.New("x")},
			&mouth{says: "I am here."}, "I am here.", decision.Model},
		"so does the fallback": {&stutterer{pieces: []string{"Lo"}, fails: errors.New("x")},
			&stutterer{pieces: []string{"I ", "am"}, fails: errors.New("y")}, "I am", decision.Fallback},
		"the fallback thinks": {&stutterer{pieces: []string{"Lo"}, fails: errors.New("x")},
			&stutterer{pieces: []string{"hm", "</think>", "I am ", "here."}}, "I am here.",
			decision.Model},
		"no fallback": {&stutterer{pieces: []string{"Lo"}, fails: errors.New("x")}, nil, "Lo",
			decision.Fallback},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := loop.Config{Model: test.model}
			if test.fallback != nil {
				cfg.Fallbacks = []decision.LLM{test.fallback}
			}
			w := newWorld(t, cfg)
			var heard string
			answer := w.answer(loop.Event{Text: "Why?",
				OnChunk: func(_ context.Context, text string, anew bool) {
					if anew {
						heard = ""
					}
					heard += text
				}})
			assert.Equal(t, test.want, heard)
			assert.Equal(t, test.path, answer.Result.Path)
			if test.path == decision.Model {
				assert.Equal(t, test.want, answer.Text)
			} else {
				assert.Empty(t, answer.Text)
			}
			assert.Zero(t, test.model.calls(), "it was asked once, for pieces")
		})
	}
}

// Two deliveries of one event are answered at once. The later delivery is shown the stored answer,
// and not what its model wrote.
func TestAnotherDeliveryAnswersFirst(t *testing.T) {
	model := &stutterer{
		pieces: []string{"Restart ", "it."}, late: make(chan struct{}), wrote: make(chan struct{}),
	}
	w := newWorld(t, loop.Config{Model: model})
	quick := newWorld(t, loop.Config{Store: w.Store(),
		Model: &stutterer{pieces: []string{"Look ", "at the logs."}}})
	var first, heard string
	begun := make(chan struct{})
	go func() {
		defer close(model.late)
		<-begun
		_, _ = quick.Answer(ctx, loop.Event{ID: "e", Text: "Why?",
			OnChunk: func(_ context.Context, text string, _ bool) { first += text }})
	}()
	given, err := w.Answer(ctx, loop.Event{ID: "e", Text: "Why?",
		OnChunk: func(_ context.Context, text string, anew bool) {
			if heard == "" {
				close(begun)
			}
			if anew {
				heard = ""
			}
			heard += text
		}})
	require.NoError(t, err)
	assert.Equal(t, "Look at the logs.", first)
	assert.Equal(t, first, given.Text)
	assert.Equal(t, first, heard)
}

// A model that was given up says nothing any more, nor is anything given that was held back.
func TestNoPieceComesAfterTheAnswer(t *testing.T) {
	for _, pieces := range [][]string{{"Lo", "ok"}, {"Lo<", "th"}} {
		synctest.Test(t, func(t *testing.T) {
			model := &stutterer{
				pieces: pieces, late: make(chan struct{}), wrote: make(chan struct{}),
			}
			w := newWorld(t, loop.Config{Model: model})
			var heard string
			answer := w.answer(loop.Event{Text: "Why?",
				OnChunk: func(_ context.Context, text string, _ bool) { heard += text }})
			assert.Equal(t, "llm_timeout", answer.Result.Reason)
			close(model.late)
			<-model.wrote
			synctest.Wait()
			assert.Equal(t, "Lo", heard)
		})
	}
}

func TestTheTreeOfAnAnswer(t *testing.T) {
	b := loop.Branch{Text: "a", On: []loop.Branch{{Text: "b", On: []loop.Branch{{Text: "c"}}},
		{Text: "d", On: []loop.Branch{{Text: "e"}}}}}
	assert.Equal(t, "a\n├─ b\n│  └─ c\n└─ d\n   └─ e\n", b.String())
}

// A receiver that panics is an error, whoever answers and whenever the piece comes.
func TestAReceiverPanics(t *testing.T) {
	for name, says := range map[string]string{"a piece": "Look.", "what was held back": "<",
		"a heuristic": ""} {
		t.Run(name, func(t *testing.T) {
			var told []heed.Notice
			w := newWorld(t, loop.Config{
				Lessons:  loop.Lessons{Heuristics: []learning.Heuristic{trusted(rotating)}},
				Observer: func(_ context.Context, n heed.Notice) { told = append(told, n) },
			})
			w.model.says = says
			e := loop.Event{ID: "e", Text: "Why?", OnChunk: func(context.Context, string,
				bool) {
				panic("no more paper")
			}}
			if says == "" {
				e.Text = full
			}
			answer, err := w.Answer(ctx, e)
			if err == nil {
				err = answer.Result.Err
			}
			var panicked *heed.PanicError
			require.ErrorAs(t, err, &panicked)
			assert.Equal(t, "no more paper", panicked.Value)
			require.NotEmpty(t, told)
			for _, n := range told {
				_, failed := n.(heed.Failed)
				assert.False(t, failed, "the model has not failed: %v", n)
				if decided, ok := n.(heed.Decided); ok {
					assert.Empty(t, decided.Reason)
				}
			}
		})
	}
}

// A fallback that does not begin in its time is given up, also where the model before it had begun.
func TestASlowFallbackAfterABrokenStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // so that a busy machine does not use up the time
		stuck := decision.LLMFunc(func(
			ctx context.Context, _ decision.LLMRequest,
		) (decision.LLMResponse, error) {
			<-ctx.Done()
			return decision.LLMResponse{}, ctx.Err()
		})
		w := newWorld(t, loop.Config{
			Model:     &stutterer{pieces: []string{"Lo"}, fails: errors.New("x")},
			Fallbacks: []decision.LLM{stuck, &mouth{says: "I am here."}},
		})
		var heard string
		answer := w.answer(loop.Event{Text: "Why?",
			OnChunk: func(_ context.Context, text string, anew bool) {
				if anew {
					heard = ""
				}
				heard += text
			}})
		assert.Equal(t, "I am here.", heard)
		assert.Equal(t, "I am here.", answer.Text)
	})
}

// If another delivery of an event was quicker, the person gets its answer in place of the pieces so
// far, unless they are the same.
func TestAQuickerDeliveryReplacesThePieces(t *testing.T) {
	for quicker, want := range map[string][]string{
		"So.": {"So."}, "Look here.": {"So.", "again: Look here."},
	} {
		var w *world
		model := &stutterer{pieces: []string{"So."}}
		w = newWorld(t, loop.Config{Model: model})
		plan, err := w.Prepare(ctx, loop.Event{ID: "e", Text: "Why?"})
		require.NoError(t, err)
		var heard []string
		a := w.answer(loop.Event{ID: "e", Text: "Why?",
			OnChunk: func(_ context.Context, text string, restart bool) {
				if len(heard) == 0 {
					assert.NoError(t, second(w.Answered(ctx, plan, loop.Reply{Text: quicker})))
				}
				if restart {
					text = "again: " + text
				}
				heard = append(heard, text)
			}})
		assert.Equal(t, quicker, a.Text)
		assert.Equal(t, want, heard)
	}
}

// If a receiver panics at the last piece, which was held back until the end, the panic is the error
// of the event.
func TestAReceiverThatPanicsAtTheEnd(t *testing.T) {
	model := &stutterer{pieces: []string{"So be it <thin"}}
	w := newWorld(t, loop.Config{Model: model})
	pieces := 0
	e := loop.Event{Text: "Why?", OnChunk: func(context.Context, string, bool) {
		if pieces++; pieces == 2 {
			panic("no more paper")
		}
	}}
	given, err := w.Answer(ctx, e)
	require.ErrorAs(t, err, new(*heed.PanicError))
	assert.Equal(t, 2, pieces)
	assert.Empty(t, given.Text)
	require.ErrorAs(t, given.Result.Err, new(*heed.PanicError))
}

package loop_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/loop"
)

// A drip is a model that takes a second for each of ten pieces. After its context ended, it needs
// deaf to return.
type drip struct {
	mouth
	deaf time.Duration
}

func (d *drip) Stream(ctx context.Context, _ decision.LLMRequest,
	piece func(string)) (decision.LLMResponse, error) {
	var whole string
	for n := range 10 {
		select {
		case <-ctx.Done():
			time.Sleep(d.deaf)
			return decision.LLMResponse{}, ctx.Err()
		case <-time.After(time.Second):
		}
		text := fmt.Sprint(n)
		whole += text
		piece(text)
	}
	return decision.LLMResponse{Text: whole}, nil
}

// People whose connections take no more pieces hold their own answers only. The model is not to
// blame for the time that it waited, so everybody else is answered.
func TestReceiversThatHoldTheModel(t *testing.T) {
	hang := func(ctx context.Context, _ string, _ bool) { <-ctx.Done() }
	for name, c := range map[string]struct {
		model   *drip
		left    time.Duration
		receive func(context.Context, string, bool)
	}{
		"until the model's time is over": {&drip{}, time.Hour, hang},
		"until the caller's is":          {&drip{}, 10 * time.Second, hang},
		"a model that is not stopped": {&drip{deaf: time.Minute}, time.Hour,
			func(context.Context, string, bool) { panic("no more paper") }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var outages int
				agent, err := loop.New(ctx, loop.Config{Model: c.model, Observer: func(
					_ context.Context, n heed.Notice,
				) {
					if _, is := n.(heed.Outage); is {
						outages++
					}
				}})
				require.NoError(t, err)
				for i := range 12 {
					limited, cancel := context.WithTimeout(ctx, c.left)
					a, _ := agent.Answer(limited, loop.Event{ID: fmt.Sprint(i), Text: "Why?",
						OnChunk: c.receive})
					cancel()
					assert.Empty(t, a.Text)
				}
				given, err := agent.Answer(ctx, loop.Event{Text: "Why?", OnChunk: readsAll})
				require.NoError(t, err)
				assert.Equal(t, "0123456789", given.Text)
				assert.Zero(t, outages)
				time.Sleep(c.model.deaf)
			})
		})
	}
}

func readsAll(context.Context, string, bool) {}

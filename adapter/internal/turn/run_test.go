package turn_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/adapter/internal/turn"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/llm"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/strategy"
)

// An arm with Arm.Model is not credited in a conversation with tools, because the conversation asks
// the client's model.
func TestAnArmWithAModelOfItsOwn(t *testing.T) {
	ctx, asked := t.Context(), 0
	own := decision.LLMFunc(func(context.Context, decision.LLMRequest) (decision.LLMResponse, error) {
		asked++
		return decision.LLMResponse{Text: "It is well."}, nil
	})
	agent, err := loop.New(ctx, loop.Config{Arms: []loop.Arm{{ID: "own", Model: own}}})
	require.NoError(t, err)
	chat := turn.Chat{Name: "client", Open: func(turn.Request) turn.Asker {
		return func(context.Context, []turn.Result, func(string)) (turn.Said, error) {
			asked++
			return turn.Said{LLMResponse: decision.LLMResponse{Text: "All is well."}}, nil
		}
	}}
	_, err = chat.Answer(ctx, agent, loop.Event{ID: "e", Text: "Is it well?"})
	require.ErrorContains(t, err, `the arm "own" has a Model`)
	assert.Zero(t, asked)
	assert.ErrorIs(t, agent.React(ctx, "e", loop.Reaction{Value: 1}), loop.ErrNoAnswer)
	for range agent.Strategy().History(ctx, strategy.ChoiceFilter{Evidence: true}) {
		t.Error("nothing is learned of the arm")
	}
}

// A server asks to wait in seconds, or until a date.
func TestRetryAfter(t *testing.T) {
	for header, want := range map[string]time.Duration{
		"7": 7 * time.Second, "-7": 0, "soon": 0, "": 0, "9999999999": 1 << 20 * time.Second,
		"Fri, 01 Jan 2100 00:00:00 GMT": 1 << 20 * time.Second, "Fri, 01 Jan 1999 00:00:00 GMT": 0,
	} {
		response := &http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{}}
		response.Header.Set("Retry-After", header)
		err := turn.Failed(errors.New("too many requests"), response)
		assert.Equal(t, want, llm.RetryAfter(err), header)
	}
}

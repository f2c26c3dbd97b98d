package loop_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/llm"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

// An event that waited in a queue for an hour is answered, its silence settles, and no later answer
// waits behind it.
func TestAnOldEventHoldsNothingUp(t *testing.T) {
	now := time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)
	agent, err := loop.New(ctx, loop.Config{
		Model: &mouth{says: "Rotate its logs."}, Arms: []loop.Arm{{ID: "a"}, {ID: "b"}},
		Testing: loop.Testing{Now: func() time.Time { return now }},
	})
	require.NoError(t, err)
	_, err = agent.Answer(ctx, loop.Event{ID: "old", Text: "The disk is full.", Person: "ann",
		At: now.Add(-time.Hour)})
	require.NoError(t, err)
	_, err = agent.Answer(ctx, loop.Event{ID: "new", Text: "The light is on.", Person: "ann"})
	require.NoError(t, err)
	now = now.Add(time.Hour)
	require.NoError(t, agent.Sweep(ctx, now))
	require.NoError(t, agent.React(ctx, "old", loop.Reaction{Person: "ann", Value: 1}))
	require.NoError(t, agent.Sweep(ctx, now))
	for _, id := range []string{"old", "new"} {
		account, err := agent.Explain(ctx, id)
		require.NoError(t, err)
		assert.True(t, account.Known, id)
	}
}

// A fallback is asked where the model panics, or says nothing but thoughts.
func TestFallbacksAreAskedWhateverIsWrong(t *testing.T) {
	for name, broken := range map[string]decision.LLMFunc{
		"a panic": func(context.Context, decision.LLMRequest) (decision.LLMResponse,
			error) {
			panic("oops")
		},
		"thoughts": func(context.Context, decision.LLMRequest) (decision.LLMResponse, error) {
			return decision.LLMResponse{Text: "<think>Which disk?</think>"}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			agent, err := loop.New(ctx, loop.Config{Model: broken,
				Fallbacks: []decision.LLM{&mouth{says: "Rotate its logs."}}})
			require.NoError(t, err)
			answer, err := agent.Answer(ctx, loop.Event{ID: "e", Text: "The disk is full."})
			require.NoError(t, err)
			assert.Equal(t, "Rotate its logs.", answer.Text)
		})
	}
}

// A person who takes back the answers of others is the source of that evidence. Limits on sources
// hold for it, and it is forgotten with the person.
func TestTheUndoOfAnothersAnswer(t *testing.T) {
	st := &memstore.Store{}
	agent, err := loop.New(ctx, loop.Config{
		Store: st, Model: &mouth{says: "Rotate its logs."}, Arms: []loop.Arm{{ID: "a"}},
		Choosing: loop.Choosing{ArmsIgnoreSilence: true},
	})
	require.NoError(t, err)
	mean := func() float64 { return meanOfArm(t, agent) }
	for i := range 40 {
		id := fmt.Sprint("e", i)
		_, err := agent.Answer(ctx, loop.Event{ID: id, Text: "The disk is full.",
			Person: fmt.Sprint("person ", i)})
		require.NoError(t, err)
		if i < 20 {
			require.NoError(t, agent.React(ctx, id,
				loop.Reaction{Person: fmt.Sprint("person ", i), Value: 1}))
		}
	}
	before := mean()
	for i := 20; i < 40; i++ {
		if i%2 == 0 {
			require.NoError(t, agent.Undo(ctx, fmt.Sprint("e", i), "mallory"))
			continue
		}
		_, err := agent.Hear(ctx, learning.Message{ID: fmt.Sprint("m", i), Text: "undo that",
			Person: "mallory"})
		require.NoError(t, err)
	}
	assert.Greater(t, mean(), before-0.1)
	err = store.Run(ctx, st, store.Job{Expunge: []string{"mallory"}})
	require.NoError(t, err)
	assert.InDelta(t, before, mean(), 1e-9)
}

// meanOfArm returns what is believed of the agent's only arm, as the store has it.
func meanOfArm(t *testing.T, agent *loop.Agent) float64 {
	t.Helper()
	require.NoError(t, agent.Strategy().Refresh(ctx))
	beliefs, err := agent.Strategy().Beliefs(ctx, strategy.Query{})
	require.NoError(t, err)
	return beliefs[0].Mean()
}

// One account that takes back every answer that others praised moves the arm within its limit. The
// people who asked take back their own answers in full.
func TestTheUndoOfWhatOthersPraised(t *testing.T) {
	for name, undoes := range map[string]func(int) string{
		"one other account": func(int) string { return "mallory" },
		"those who asked":   func(i int) string { return fmt.Sprint("person ", i) },
	} {
		agent, err := loop.New(ctx, loop.Config{
			Store: &memstore.Store{}, Model: &mouth{says: "Rotate its logs."},
			Arms: []loop.Arm{{ID: "a"}},
		})
		require.NoError(t, err)
		for i := range 40 {
			id, person := fmt.Sprint("e", i), fmt.Sprint("person ", i)
			_, err := agent.Answer(ctx, loop.Event{ID: id, Text: "The disk is full.", Person: person})
			require.NoError(t, err)
			require.NoError(t, agent.React(ctx, id, loop.Reaction{Person: person, Value: 1}))
		}
		require.Greater(t, meanOfArm(t, agent), 0.9)
		for i := range 40 {
			require.NoError(t, agent.Undo(ctx, fmt.Sprint("e", i), undoes(i)))
		}
		if name == "one other account" {
			assert.Greater(t, meanOfArm(t, agent), 0.85)
		} else {
			assert.Less(t, meanOfArm(t, agent), 0.3)
		}
	}
}

// A secret that begins where the comparable part of a text ends is still a secret.
func TestRedactBeforeATextIsCut(t *testing.T) {
	st := &memstore.Store{}
	secret := "sk-" + strings.Repeat("7", 32)
	agent, err := loop.New(ctx, loop.Config{
		Store: st, Model: &mouth{says: "Rotate its logs."},
		Redact: func(text string) string { return strings.ReplaceAll(text, secret, "[key]") },
	})
	require.NoError(t, err)
	yes := true
	text := strings.Repeat("a", 8192-20) + secret
	_, err = agent.Answer(ctx, loop.Event{ID: "e", Text: text, Person: "ann", Task: "t"})
	require.NoError(t, err)
	require.NoError(t, agent.Outcome(ctx, "e", loop.Outcome{Success: &yes}))
	var dump bytes.Buffer
	require.NoError(t, st.Dump(ctx, &dump))
	assert.NotContains(t, dump.String(), "sk-7")
}

// One person who judges everybody's answers with the greatest weight does not turn what forty
// people have stated about an arm around. A greater weight is refused.
func TestAWeightDoesNotTurnTheOthersAround(t *testing.T) {
	w := newWorld(t, loop.Config{Arms: []loop.Arm{{ID: "a"}}})
	for i := range 80 {
		who := fmt.Sprint("p", i%40)
		id := w.answer(loop.Event{ID: fmt.Sprint("e", i), Text: "Why is it slow?", Person: who}).ID
		require.NoError(t, w.React(ctx, id, loop.Reaction{Person: who, Value: 1}))
		require.NoError(t, w.React(ctx, id, loop.Reaction{Person: "mallory", Value: -1, Weight: 10}))
	}
	assert.Greater(t, w.mean("", "a"), 0.6)
	mallory := loop.Reaction{Person: "mallory", Value: -1, Weight: 10.1}
	assertField(t, "Weight", w.React(ctx, "e0", mallory))
}

// If several models fail, the failure names each of them, because an operator has to know which
// provider to look at. The notice names a single model already.
func TestAFailureNamesEachModel(t *testing.T) {
	down, spare := &mouth{err: llm.ServerError}, []decision.LLM{&mouth{err: llm.RateLimited}}
	const failed, limited = "the model's server failed", "the model limits the rate of requests"
	for want, cfg := range map[string]loop.Config{
		"arm small: " + failed + "\nfallback 0: " + limited: {
			Arms: []loop.Arm{{ID: "small", Model: down}}, Fallbacks: spare,
		},
		"model: " + failed + "\nfallback 0: " + limited: {Model: down, Fallbacks: spare},
		"arm small: " + failed:                          {Arms: []loop.Arm{{ID: "small", Model: down}}},
		failed:                                          {Model: down},
	} {
		var failures []heed.Failed
		cfg.Observer = func(_ context.Context, n heed.Notice) {
			if failed, is := n.(heed.Failed); is {
				failures = append(failures, failed)
			}
		}
		agent, err := loop.New(ctx, cfg)
		require.NoError(t, err)
		answer, err := agent.Answer(ctx, loop.Event{ID: "e", Text: "The disk is full."})
		require.NoError(t, err)
		assert.Empty(t, answer.Text)
		require.Len(t, failures, 1)
		assert.Equal(t, "model", failures[0].What)
		require.EqualError(t, failures[0].Err, want)
		require.ErrorIs(t, failures[0].Err, llm.ServerError)
	}
}

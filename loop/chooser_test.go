package loop_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/llm"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/best"
)

// A meter is a model that takes two seconds, and counts its tokens.
type meter struct{ clock *clock }

func (m meter) Generate(context.Context, decision.LLMRequest) (decision.LLMResponse, error) {
	m.clock.Advance(2 * time.Second)
	return decision.LLMResponse{Text: "Look.", InputTokens: 1000, OutputTokens: 500}, nil
}

// spent returns the outcome of the only choice.
func spent(t *testing.T, a *loop.Agent) strategy.Result {
	for r, err := range a.Strategy().History(ctx, strategy.ChoiceFilter{}) {
		require.NoError(t, err)
		require.NotNil(t, r.Result)
		return *r.Result
	}
	t.Fatal("there is no choice")
	return strategy.Result{}
}

// A count that no answer reaches is a mistake, and stays a number on machines of 32 bits.
func TestTokensOfAMistakenCount(t *testing.T) {
	w := newWorld(t, loop.Config{Arms: []loop.Arm{{ID: "a"}}, Model: decision.LLMFunc(
		func(context.Context, decision.LLMRequest) (decision.LLMResponse, error) {
			return decision.LLMResponse{
				Text: "Look.", InputTokens: math.MaxInt32, OutputTokens: math.MaxInt32,
			}, nil
		},
	)})
	a := w.answer(loop.Event{Text: full})
	require.NoError(t, w.React(ctx, a.ID, loop.Reaction{Person: "ann", Value: 1}))
	assert.LessOrEqual(t, spent(t, w.Agent).Tokens, math.MaxInt32)
}

// Tokens at their prices and what the host adds, and the time of the model.
func TestAnOutcomeHasWhatTheAnswerTook(t *testing.T) {
	w := newWorld(t, loop.Config{Arms: []loop.Arm{{ID: "a", InputPrice: 2, OutputPrice: 8}}})
	cfg := w.cfg
	cfg.Model = meter{w.clock}
	agent, err := loop.New(ctx, cfg)
	require.NoError(t, err)
	answer, err := agent.Answer(ctx, loop.Event{Text: full})
	require.NoError(t, err)
	require.NoError(t, agent.React(ctx, answer.ID, loop.Reaction{Person: "ann", Value: 1}))
	got := spent(t, agent)
	assert.InDelta(t, 0.006, got.Cost, 1e-12)
	assert.Equal(t, 1500, got.Tokens)
	assert.Equal(t, 2*time.Second, got.Latency)
	worked := true
	require.NoError(t, agent.Outcome(ctx, answer.ID, loop.Outcome{Success: &worked, Cost: 0.1}))
	assert.InDelta(t, 0.106, spent(t, agent).Cost, 1e-12)
}

// TestAFrameworkTellsWhatItsModelTook. An answer of no use is an outcome of its arm.
func TestAFrameworkTellsWhatItsModelTook(t *testing.T) {
	for _, reply := range []loop.Reply{{Text: "Look."}, {Err: llm.Unusable}} {
		w := newWorld(t, loop.Config{Arms: []loop.Arm{{ID: "a", InputPrice: 10}}})
		plan, err := w.Prepare(ctx, loop.Event{Text: full, Domain: "d", Item: "i"})
		require.NoError(t, err)
		reply.InputTokens, reply.Latency = 100_000, 3*time.Second
		answer, err := w.Answered(ctx, plan, reply)
		require.NoError(t, err)
		if reply.Err == nil {
			require.NoError(t, w.React(ctx, answer.ID, loop.Reaction{Person: "ann", Value: 1}))
			assert.InDelta(t, 1, spent(t, w.Agent).Cost, 1e-12)
			assert.Equal(t, 3*time.Second, spent(t, w.Agent).Latency)
			continue
		}
		assert.EqualValues(t, -1, w.outcomes()[0].Value, "the failure counts, and there is no answer")
	}
}

// TestARaceChooses the arms of an agent, and its winner answers from then on.
func TestARaceChooses(t *testing.T) {
	var race *best.Race
	w := newWorld(t, loop.Config{
		Arms:   []loop.Arm{{ID: "good"}, {ID: "bad"}},
		Tuning: loop.Tuning{Strategy: strategy.Config{Seed: rand.NewPCG(1, 2)}},
		Choosing: loop.Choosing{Choose: func(ctx context.Context, l *strategy.Learner) (_ loop.Chooser,
			err error) {
			race, err = best.New(ctx, best.Config{Learner: l})
			return race, err
		}},
	})
	counts := make(map[string]int)
	for n := range 80 {
		w.clock.Advance(time.Minute)
		answer, err := w.Answer(ctx, loop.Event{ID: fmt.Sprint(n), Text: full})
		require.NoError(t, err)
		worked := answer.Plan.Arm.ID == "good"
		require.NoError(t, w.Outcome(ctx, answer.ID, loop.Outcome{Success: &worked}))
		if n >= 60 {
			counts[answer.Plan.Arm.ID]++
		}
	}
	standing, err := race.Standing(ctx, strategy.Query{})
	require.NoError(t, err)
	assert.True(t, standing.Ended)
	assert.Equal(t, map[string]int{"good": 20}, counts)
}

func TestAChooserThatFails(t *testing.T) {
	away := errors.New("away")
	_, err := loop.New(ctx, loop.Config{
		Model: &mouth{says: "x"}, Arms: []loop.Arm{{ID: "a"}},
		Choosing: loop.Choosing{Choose: func(context.Context, *strategy.Learner) (loop.Chooser,
			error) {
			return nil, away
		}},
	})
	require.ErrorIs(t, err, away)
	_, err = loop.New(ctx, loop.Config{
		Model: &mouth{says: "x"}, Arms: []loop.Arm{{ID: "a"}},
		Choosing: loop.Choosing{Choose: func(context.Context, *strategy.Learner) (loop.Chooser,
			error) {
			return nil, nil
		}},
	})
	var fault *heed.ConfigError
	require.ErrorAs(t, err, &fault)
	assert.Equal(t, "Choose", fault.Field)
	_, err = loop.New(ctx, loop.Config{Arms: []loop.Arm{{ID: "a", InputPrice: -1}}})
	require.ErrorAs(t, err, &fault)
	assert.Equal(t, "Arms[0].InputPrice", fault.Field)
}

// Its choice is used where there is one, and its panic stays an error.
func TestAChooserInTrouble(t *testing.T) {
	away := errors.New("away")
	var told []error
	var learner *strategy.Learner
	var how chooses
	w := newWorld(t, loop.Config{
		Arms: twoArms,
		Choosing: loop.Choosing{Choose: func(_ context.Context, l *strategy.Learner) (loop.Chooser,
			error) {
			learner = l
			return chooses(func(ctx context.Context, q strategy.Query) (strategy.Choice, error) {
				return how(ctx, q)
			}), nil
		}},
		Observer: func(_ context.Context, n heed.Notice) {
			if f, ok := n.(heed.Failed); ok {
				told = append(told, f.Err)
			}
		},
	})
	how = func(ctx context.Context, q strategy.Query) (strategy.Choice, error) {
		c, err := learner.Select(ctx, q)
		return c, errors.Join(err, away)
	}
	answer, err := w.Answer(ctx, loop.Event{Text: full})
	require.NoError(t, err)
	assert.NotEmpty(t, answer.Plan.Arm.ID)
	require.Len(t, told, 1)
	require.ErrorIs(t, told[0], away)
	how = func(context.Context, strategy.Query) (strategy.Choice, error) {
		return strategy.Choice{}, away
	}
	_, err = w.Answer(ctx, loop.Event{Text: full})
	require.ErrorIs(t, err, away)
	how = func(context.Context, strategy.Query) (strategy.Choice, error) { panic("oh") }
	_, err = w.Answer(ctx, loop.Event{Text: full})
	var panicked *heed.PanicError
	require.ErrorAs(t, err, &panicked)
}

// TestAFrozenAgentEndsNoRace, though there is enough.
func TestAFrozenAgentEndsNoRace(t *testing.T) {
	w := newWorld(t, loop.Config{Arms: twoArms, Choosing: loop.Choosing{ArmsIgnoreSilence: true,
		Choose: func(_ context.Context, l *strategy.Learner) (loop.Chooser, error) {
			return chooses(func(ctx context.Context, q strategy.Query) (strategy.Choice, error) {
				q.Shares = []float64{0.5, 0.5}
				return l.Select(ctx, q)
			}), nil
		}}})
	for range 60 {
		w.clock.Advance(time.Minute)
		a := w.answer(loop.Event{Text: "x", Person: "ann"})
		worked := a.Plan.Arm.ID == twoArms[0].ID
		require.NoError(t, w.Outcome(ctx, a.ID, loop.Outcome{Success: &worked}))
	}
	w.cfg.Choosing.Choose = func(ctx context.Context, l *strategy.Learner) (loop.Chooser, error) {
		return best.New(ctx, best.Config{Learner: l})
	}
	agent := w.again()
	for _, frozen := range []bool{true, false} {
		require.NoError(t, agent.Freeze(ctx, frozen))
		_, err := agent.Answer(ctx, loop.Event{Text: "x", Person: "ann"})
		require.NoError(t, err)
		ended := false
		for e, err := range store.AuditEntries(ctx, w.store, store.Query{}) {
			require.NoError(t, err)
			ended = ended || strings.HasSuffix(e.Action, ".winner")
		}
		assert.Equal(t, !frozen, ended)
	}
}

// Two agents without a seed make different choices. Of two seeds, Tuning.Strategy.Seed counts.
func TestSeedsOfChoices(t *testing.T) {
	chosen := func(cfg loop.Config) (all string) {
		cfg.Store, cfg.Model = new(memstore.Store), &mouth{says: "So."}
		cfg.Arms = []loop.Arm{{ID: "a"}, {ID: "b"}}
		agent, err := loop.New(ctx, cfg)
		require.NoError(t, err)
		for n := range 60 {
			p, err := agent.Prepare(ctx, loop.Event{ID: fmt.Sprint(n), Text: "Why?"})
			require.NoError(t, err)
			all += p.Arm.ID
		}
		return all
	}
	one, other := chosen(loop.Config{}), chosen(loop.Config{})
	assert.NotEqual(t, one, other)
	seeded := func(agent, own uint64) loop.Config {
		cfg := loop.Config{Testing: loop.Testing{Seed: newSource(agent)}}
		if own > 0 {
			cfg.Tuning.Strategy.Seed = newSource(own)
		}
		return cfg
	}
	one, other = chosen(seeded(1, 0)), chosen(seeded(1, 0))
	assert.Equal(t, one, other)
	assert.NotEqual(t, chosen(seeded(1, 0)), chosen(seeded(2, 0)))
	assert.Equal(t, chosen(seeded(1, 3)), chosen(seeded(2, 3)))
}

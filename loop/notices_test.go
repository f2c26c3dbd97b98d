package loop_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/llm"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/store/storetest"
)

// The observer receives one decision for each event that is answered, and none for an answer that
// was there.
func TestEachDecisionIsReportedOnce(t *testing.T) {
	for name, test := range map[string]struct {
		call func(w *world) error
		want []string
	}{
		"a heuristic": {func(w *world) error {
			return second(w.Answer(ctx, loop.Event{Text: full}))
		}, []string{"heuristic "}},
		"a heuristic, by Prepare": {func(w *world) error {
			return second(w.Prepare(ctx, loop.Event{Text: full}))
		}, []string{"heuristic "}},
		"the model": {func(w *world) error {
			return second(w.Answer(ctx, loop.Event{Text: "Why?"}))
		}, []string{"llm "}},
		"a model that fails": {func(w *world) error {
			w.model.err = llm.Unusable
			return second(w.Answer(ctx, loop.Event{Text: "Why?"}))
		}, []string{"fallback llm_error"}},
		"no model": {func(w *world) (err error) {
			cfg := w.cfg
			cfg.Model = nil
			if w.Agent, err = loop.New(ctx, cfg); err != nil {
				return err
			}
			a, err := w.Answer(ctx, loop.Event{Text: "Why?"})
			assert.Equal(t, decision.Rejected, a.Result.Path)
			return err
		}, []string{"rejected llm_unavailable"}},
		"a plan": {func(w *world) error {
			return second(w.Prepare(ctx, loop.Event{Text: "Why?"}))
		}, nil},
		"a framework's model": {func(w *world) error {
			p, err := w.Prepare(ctx, loop.Event{Text: "Why?"})
			require.NoError(t, err)
			require.NoError(t, second(w.Answered(ctx, p, loop.Reply{Text: "So."})))
			return second(w.Answered(ctx, p, loop.Reply{Text: "No."}))
		}, []string{"llm "}},
		"a framework's model that fails": {func(w *world) error {
			p, err := w.Prepare(ctx, loop.Event{Text: "Why?"})
			require.NoError(t, err)
			require.NoError(t, second(w.Answered(ctx, p, loop.Reply{Err: llm.Unusable})))
			require.NoError(t, second(w.Answered(ctx, p, loop.Reply{Text: "So."})))
			return second(w.Answered(ctx, p, loop.Reply{Err: llm.Unusable}))
		}, []string{"fallback llm_error", "llm "}},
		"a repetition": {func(w *world) error {
			for range 3 {
				require.NoError(t, second(w.Answer(ctx, loop.Event{ID: "e", Text: "Why?"})))
				require.NoError(t, second(w.Prepare(ctx, loop.Event{ID: "h", Text: full})))
			}
			return nil
		}, []string{"llm ", "heuristic "}},
		"a receiver that panics": {func(w *world) error {
			a, err := w.Answer(ctx, loop.Event{ID: "e", Text: "Why?",
				OnChunk: func(context.Context, string, bool) { panic("no more paper") }})
			require.ErrorAs(t, err, new(*heed.PanicError))
			assert.Empty(t, a.Text)
			assert.Equal(t, decision.Fallback, a.Result.Path)
			assert.Equal(t, decision.Fallback, a.Plan.Result.Path)
			require.ErrorIs(t, second(w.Explain(ctx, "e")), loop.ErrNoAnswer)
			return nil
		}, []string{"fallback "}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			w := newWorld(t, loop.Config{
				Lessons: loop.Lessons{Heuristics: []learning.Heuristic{trusted(rotating)}},
				Observer: func(_ context.Context, n heed.Notice) {
					if d, is := n.(heed.Decided); is {
						got = append(got, d.Path+" "+d.Reason)
						assert.Zero(t, d.Took)
					}
				},
			})
			require.NoError(t, test.call(w))
			assert.Equal(t, test.want, got)
		})
	}
}

// The result has the prompt with the conversation, as the model got it. An answer of before has
// none.
func TestTheResultHasThePrompt(t *testing.T) {
	w := newWorld(t, loop.Config{})
	e := loop.Event{
		ID: "e", Text: "And now?", History: []loop.Turn{{Role: "user", Text: "It's down"}},
	}
	a := w.answer(e)
	_, prompt := w.model.last()
	assert.Equal(t, prompt, a.Result.Prompt)
	assert.Contains(t, prompt, "user: It's down\n")
	assert.Empty(t, w.answer(e).Result.Prompt)
}

// A timeout that a framework reports counts against the model if the model had a quarter of its 30
// seconds, or if the framework does not tell the time.
func TestATimeoutOfAFrameworksModel(t *testing.T) {
	for latency, out := range map[time.Duration]bool{
		0: true, 1: false, 7 * time.Second: false, 7500 * time.Millisecond: true, time.Hour: true,
	} {
		observer, told := outagesOf()
		w := newWorld(t, loop.Config{Observer: observer})
		for range 3 {
			p, err := w.Prepare(ctx, loop.Event{Text: "Why?"})
			require.NoError(t, err)
			_, err = w.Answered(ctx, p, loop.Reply{Err: context.DeadlineExceeded, Latency: latency})
			require.NoError(t, err)
		}
		assert.Equal(t, out, len(told()) > 0, latency)
	}
}

// What a framework reports must make sense.
func TestAReplyMustNotBeNegative(t *testing.T) {
	w := newWorld(t, loop.Config{})
	p, err := w.Prepare(ctx, loop.Event{Text: "Why?"})
	require.NoError(t, err)
	for _, r := range []loop.Reply{{InputTokens: -1}, {OutputTokens: -1}, {Latency: -1}} {
		r.Text = "So."
		assertField(t, "Reply", second(w.Answered(ctx, p, r)))
	}
	require.NoError(t, second(w.Answered(ctx, p, loop.Reply{Text: "So."})))
}

// An answer that could not be recorded is recorded later, unless that fails as well. The caller's
// plan stays as it is, so that it can be used again.
func TestAnAnswerIsRecordedLater(t *testing.T) {
	w := newIsland(t, loop.Config{})
	w.answer(loop.Event{Text: "The mail is late"})
	w.sea.SetAway(true)
	given := w.answer(loop.Event{ID: "e", Text: "The mail is late", Task: "t"})
	require.False(t, given.Degraded.Recorded())
	w.sea.SetAway(false)

	ended, cancel := context.WithCancel(ctx)
	cancel()
	a, err := w.Answered(ended, given.Plan, loop.Reply{})
	require.ErrorIs(t, err, context.Canceled)
	assert.Empty(t, a.Text)
	require.ErrorIs(t, second(w.Explain(ctx, "e")), loop.ErrNoAnswer)

	require.NoError(t, w.Freeze(ctx, true))
	damage(t, w.sea, "loop.frozen", "frozen")
	a, err = w.Answered(ctx, given.Plan, loop.Reply{})
	require.ErrorIs(t, err, heed.ErrDamaged)
	assert.Empty(t, a.Text)
	require.NoError(t, w.Freeze(ctx, false))

	w.sea.SetAway(true)
	a, err = w.Answered(ctx, given.Plan, loop.Reply{})
	require.NoError(t, err)
	assert.False(t, a.Degraded.Recorded())
	w.sea.SetAway(false)
	for range 2 {
		a, err = w.Answered(ctx, given.Plan, loop.Reply{})
		require.NoError(t, err)
		assert.True(t, a.Degraded.Recorded())
		assert.False(t, given.Degraded.Recorded(), "it is the caller's")
	}
	require.NoError(t, second(w.Explain(ctx, "e")))
}

// That an answer is of no use is recorded later, too, if the store is away: against the arm, and
// without an answer. If the host requires the store, it is an error.
func TestAFailureIsRecordedLater(t *testing.T) {
	for _, strict := range []bool{false, true} {
		var w *island
		w = newIsland(t, loop.Config{RequireStore: strict, Model: decision.LLMFunc(
			func(context.Context, decision.LLMRequest) (decision.LLMResponse, error) {
				w.sea.SetAway(true)
				return decision.LLMResponse{}, nil
			})})
		a, err := w.Answer(ctx, loop.Event{
			ID: "e", Text: "The mail is late", Item: "i", Domain: "d",
		})
		if strict {
			require.ErrorIs(t, err, storetest.ErrFailed)
			continue
		}
		require.NoError(t, err)
		require.ErrorIs(t, a.Degraded.After, storetest.ErrFailed)
		w.sea.SetAway(false)
		require.NoError(t, w.Freeze(ctx, true))
		require.NoError(t, second(w.Answered(ctx, a.Plan, loop.Reply{})))
		assert.Empty(t, w.outcomes(), "a frozen agent does not learn")
		require.NoError(t, w.Freeze(ctx, false))
		for range 2 {
			again, err := w.Answered(ctx, a.Plan, loop.Reply{})
			require.NoError(t, err)
			assert.True(t, again.Degraded.Recorded())
			assert.Empty(t, again.Text)
			require.ErrorIs(t, second(w.Explain(ctx, "e")), loop.ErrNoAnswer)
			require.Len(t, w.outcomes(), 1)
			assert.EqualValues(t, -1, w.outcomes()[0].Value)
		}
	}
}

// A failure that is recorded late does not count against an answer that the event got since.
func TestAFailureIsRecordedAfterAnAnswer(t *testing.T) {
	var w *island
	says := ""
	w = newIsland(t, loop.Config{Model: decision.LLMFunc(
		func(context.Context, decision.LLMRequest) (decision.LLMResponse, error) {
			w.sea.SetAway(says == "")
			return decision.LLMResponse{Text: says}, nil
		})})
	e := loop.Event{ID: "e", Text: "The mail is late", Item: "i", Domain: "d"}
	failed, err := w.Answer(ctx, e)
	require.NoError(t, err)
	require.Error(t, failed.Degraded.After)
	w.sea.SetAway(false)
	says = "So."
	given, err := w.Answer(ctx, e)
	require.NoError(t, err)
	require.Equal(t, says, given.Text)
	late, err := w.Answered(ctx, failed.Plan, loop.Reply{})
	require.NoError(t, err)
	assert.Equal(t, says, late.Text)
	assert.Empty(t, w.outcomes())
}

// A clock that is put back while a model works makes no time negative.
func TestTheClockIsPutBackDuringAnAnswer(t *testing.T) {
	var w *world
	w = newWorld(t, loop.Config{Arms: []loop.Arm{{ID: "only"}}, Model: decision.LLMFunc(
		func(context.Context, decision.LLMRequest) (decision.LLMResponse, error) {
			w.clock.Advance(-time.Second)
			return decision.LLMResponse{Text: "So."}, nil
		})})
	w.answer(loop.Event{Text: "Why?"})
	assert.Zero(t, w.records()[0].Reply.Spent.Latency)
}

// A fallback's tokens are no cost of the arm. The time is, because a person waited for it.
func TestWhatAFallbackTook(t *testing.T) {
	w := newWorld(t, loop.Config{
		Arms:  []loop.Arm{{ID: "only", InputPrice: 10, OutputPrice: 10}},
		Model: &mouth{err: llm.Unreachable},
	})
	w.cfg.Fallbacks = []decision.LLM{meter{w.clock}}
	w.Agent = w.again()
	w.answer(loop.Event{Text: "Why?"})
	reply := w.records()[0].Reply
	assert.True(t, reply.Spare)
	assert.False(t, reply.Unusable)
	assert.Zero(t, reply.Spent.Cost)
	assert.Zero(t, reply.Spent.Tokens)
	assert.Equal(t, 2*time.Second, reply.Spent.Latency)
}

// The gain sums up what answers took, by the side that they are on.
func TestTheGainHasWhatAnswersTook(t *testing.T) {
	w := newWorld(t, loop.Config{
		Control: 0.5, Arms: []loop.Arm{{ID: "only", InputPrice: 2, OutputPrice: 8}},
	})
	w.cfg.Model = meter{w.clock}
	w.Agent = w.again()
	control, learned := w.sessions(20)
	require.NotEmpty(t, control)
	require.NotEmpty(t, learned)
	g, err := w.Gain(ctx)
	require.NoError(t, err)
	for side, n := range map[*loop.Measured]int{&g.Learned: len(learned), &g.Control: len(control)} {
		assert.InDelta(t, n, side.Answers, 1e-9)
		assert.InDelta(t, 1, side.Calls, 1e-9)
		assert.InDelta(t, 0.006, side.Cost, 1e-9)
		assert.InDelta(t, 2, side.Seconds, 1e-9)
		assert.Zero(t, side.Outcomes)
		assert.Zero(t, side.Success)
	}
	assert.Equal(t, g.Learned, g.Days[0].Learned)
	calls, cost, took := g.Saved()
	assert.InDelta(t, 0, calls, 1e-9)
	assert.InDelta(t, 0, cost, 1e-9)
	assert.InDelta(t, 0, took.Seconds(), 1e-6)
}

// What was saved is the difference of the means, for all answers with learning.
func TestWhatIsSaved(t *testing.T) {
	g := loop.Gain{
		Since:   start,
		Learned: loop.Measured{Answers: 10, Calls: 0.5, Cost: 2, Seconds: 3},
		Control: loop.Measured{Answers: 4, Calls: 1, Cost: 1, Seconds: 5},
	}
	calls, cost, took := g.Saved()
	assert.InDelta(t, 5, calls, 1e-9)
	assert.InDelta(t, -10, cost, 1e-9)
	assert.Equal(t, 20*time.Second, took)
	for verdict, bounds := range map[loop.Verdict][2]float64{
		loop.Helps: {0.1, 0.2}, loop.Harms: {-0.2, -0.1}, loop.Undecided: {0, 0},
	} {
		g.Low, g.High = bounds[0], bounds[1]
		assert.Equal(t, verdict, g.Verdict())
	}
}

// A store that takes long is given up by the step that keeps an answer, or the lack of one.
func TestAnAnswerDoesNotWaitForASlowCommit(t *testing.T) {
	for _, text := range []string{"So.", ""} {
		synctest.Test(t, func(t *testing.T) {
			w := newIsland(t, loop.Config{})
			sea := &tide{Store: w.sea}
			cfg := w.cfg
			cfg.Store = sea
			cfg.Model = decision.LLMFunc(func(context.Context,
				decision.LLMRequest) (decision.LLMResponse, error) {
				sea.out.Store(true)
				return decision.LLMResponse{Text: text}, nil
			})
			agent, err := loop.New(ctx, cfg)
			require.NoError(t, err)
			began := time.Now()
			a, err := agent.Answer(ctx, loop.Event{Text: "The mail is late"})
			require.NoError(t, err)
			assert.Equal(t, text, a.Text)
			assert.ErrorIs(t, a.Degraded.After, heed.ErrUnavailable)
			assert.Equal(t, 5*time.Second, time.Since(began))
		})
	}
}

// A notice about a tenant's answer has the tenant.
func TestNoticesHaveTheirTenant(t *testing.T) {
	tenants := make(map[string]int)
	w := newWorld(t, loop.Config{
		Arms: []loop.Arm{{ID: "only"}}, Observer: func(ctx context.Context, n heed.Notice) {
			if _, is := n.(heed.Selected); is {
				tenants[heed.TenantOf(ctx)]++
			}
		},
	})
	acme, err := w.Tenant(ctx, "acme")
	require.NoError(t, err)
	for _, agent := range []*loop.Agent{w.Agent, acme} {
		require.NoError(t, second(agent.Answer(ctx, loop.Event{Text: "Why?", Session: "s"})))
	}
	assert.Equal(t, map[string]int{"": 1, "acme": 1}, tenants)
}

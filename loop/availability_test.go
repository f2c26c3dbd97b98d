package loop_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
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
)

// A provider is a model that fails while err is set.
type provider struct {
	err   atomic.Pointer[error]
	asked atomic.Int64
}

func (p *provider) fail(err error) {
	if p.err.Store(&err); err == nil {
		p.err.Store(nil)
	}
}

func (p *provider) Generate(
	context.Context, decision.LLMRequest,
) (decision.LLMResponse, error) {
	p.asked.Add(1)
	if err := p.err.Load(); err != nil {
		return decision.LLMResponse{}, *err
	}
	return decision.LLMResponse{Text: "Look at the logs."}, nil
}

// outagesOf returns an observer of outages, and what it was told since the last call.
func outagesOf() (heed.Observer, func() []string) {
	var mu sync.Mutex
	var told []string
	return func(_ context.Context, n heed.Notice) {
			mu.Lock()
			defer mu.Unlock()
			switch n := n.(type) {
			case heed.Outage:
				told = append(told, n.What+" is out")
			case heed.Restored:
				told = append(told, n.What+" is back")
			}
		}, func() []string {
			mu.Lock()
			defer mu.Unlock()
			was := told
			told = nil
			return was
		}
}

// A market is an agent with two arms whose models are two providers, and a third arm that shares
// the first one's.
type market struct {
	*world
	first, second provider
	told          func() []string
}

func newMarket(t *testing.T, change func(*loop.Config)) *market {
	m := &market{}
	cfg := loop.Config{
		Store:  new(memstore.Store),
		Models: map[string]decision.LLM{"first": &m.first, "second": &m.second},
		Arms: []loop.Arm{
			{ID: "a", ModelName: "first"}, {ID: "b", ModelName: "second"}, {ID: "c", Model: &m.first},
		},
		Tuning: loop.Tuning{Strategy: strategy.Config{Seed: rand.NewPCG(1, 2)}},
	}
	cfg.Observer, m.told = outagesOf()
	if change != nil {
		change(&cfg)
	}
	m.world = newWorld(t, cfg)
	return m
}

// ask answers n events, a second apart, and returns how often each arm was chosen.
func (m *market) ask(n int) (arms map[string]int, answers []loop.Answer) {
	arms = make(map[string]int)
	for range n {
		m.clock.Advance(time.Second)
		a, _ := m.Answer(ctx, loop.Event{Text: "Why?", Item: "i"})
		arms[a.Plan.Arm.ID]++
		answers = append(answers, a)
	}
	return arms, answers
}

// An arm whose model is down is left out, with all other arms of that model, and nothing is learned
// of it. It comes back by itself, and every choice has its propensity.
func TestArmsOfAModelThatIsDownAreLeftOut(t *testing.T) {
	m := newMarket(t, nil)
	m.first.fail(&llm.Error{Failure: llm.ServerError})
	_, answers := m.ask(300)
	var unanswered int
	for _, a := range answers {
		if a.Text == "" {
			unanswered++
			assert.Equal(t, decision.Fallback, a.Result.Path)
		}
		drawn := a.Plan.Choice.Record().Draws
		if len(drawn) == 1 {
			assert.Equal(t, "b", a.Plan.Arm.ID)
			assert.InDelta(t, 1, a.Plan.Choice.Propensity(), 0)
		} else {
			require.Len(t, drawn, 3, "it is the turn of a probe, or the outage was not noticed yet")
		}
	}
	// Three failures, and then a probe in 1, 2, 4, 8 and 15 seconds if one of its arms is drawn.
	assert.Less(t, unanswered, 30)
	assert.EqualValues(t, unanswered, m.first.asked.Load())
	assert.Empty(t, m.outcomes())
	assert.Equal(t, []string{"model first is out"}, m.told())

	m.first.fail(nil)
	arms, _ := m.ask(100)
	assert.Equal(t, []string{"model first is back"}, m.told())
	assert.Greater(t, arms["a"], 20)
	assert.Greater(t, arms["c"], 20)
}

// A model that fails half of the calls is left out for most of the time, and comes back.
func TestAModelThatFailsHalfOfTheCalls(t *testing.T) {
	m := newMarket(t, nil)
	rng := rand.New(rand.NewPCG(1, 1))
	half := func(n int) (unanswered int) {
		for range n {
			if m.first.fail(nil); rng.IntN(2) == 0 {
				m.first.fail(llm.Unreachable)
			}
			if _, answers := m.ask(1); answers[0].Text == "" {
				unanswered++
			}
		}
		return unanswered
	}
	half(200)
	assert.Less(t, half(500), 100, "two of three arms use it, so 167 without availability")
	assert.Empty(t, m.outcomes())
	m.first.fail(nil)
	m.ask(30)
	arms, _ := m.ask(100)
	assert.Greater(t, arms["a"]+arms["c"], 40)
}

// After a model became unavailable, others answer three events before it is asked again, however
// many they answered while it failed.
func TestOthersAnswerBeforeAProbe(t *testing.T) {
	m := newMarket(t, nil)
	m.first.fail(llm.Unreachable)
	for m.first.asked.Load() == 0 {
		m.ask(1)
	}
	m.first.fail(nil)
	m.ask(20)
	m.first.fail(llm.Unreachable)
	for len(m.told()) == 0 {
		m.ask(1)
	}
	asked := m.first.asked.Load()
	for range 3 {
		m.clock.Advance(20 * time.Second)
		m.ask(1)
	}
	assert.Equal(t, asked, m.first.asked.Load())
}

// A second process learns of the outage and of its end by its next answer.
func TestAnotherReplicaLearnsOfAnOutage(t *testing.T) {
	m := newMarket(t, nil)
	var told func() []string
	m.cfg.Observer, told = outagesOf()
	other := m.again()
	m.first.fail(llm.RateLimited)
	for len(m.told()) == 0 {
		m.ask(1)
	}
	asked := m.first.asked.Load()
	for range 20 { // no time passes, so there is no probe
		a, err := other.Answer(ctx, loop.Event{Text: "Why?", Item: "i"})
		require.NoError(t, err)
		assert.Equal(t, "b", a.Plan.Arm.ID)
	}
	assert.Equal(t, asked, m.first.asked.Load())
	assert.Equal(t, []string{"model first is out"}, told())
	m.first.fail(nil)
	for len(m.told()) == 0 {
		m.ask(1)
	}
	_, err := other.Answer(ctx, loop.Event{Text: "Why?", Item: "i"})
	require.NoError(t, err)
	assert.Equal(t, []string{"model first is back"}, told())
}

// A record of a model's health that can't be read is reported once, keeps no tenant from an answer,
// and is written again by the next report.
func TestADamagedHealthIsNoHealth(t *testing.T) {
	var faults []string
	m := newMarket(t, func(cfg *loop.Config) {
		cfg.Observer = func(_ context.Context, n heed.Notice) {
			if f, is := n.(heed.Failed); is && errors.Is(f.Err, heed.ErrDamaged) {
				faults = append(faults, f.What)
			}
		}
	})
	ref := store.Ref{Kind: "loop.model", ID: store.IDOf("model first")}
	_, err := m.store.Commit(ctx, store.Batch{Records: []store.Record{
		{Ref: ref, At: start, Body: store.Of("no health")},
	}})
	require.NoError(t, err)
	tenant, err := m.Tenant(ctx, "acme")
	require.NoError(t, err)
	for range 3 {
		m.clock.Advance(2 * time.Second)
		_, err = m.Prepare(ctx, loop.Event{Text: "Why?"})
		require.NoError(t, err)
		_, err = tenant.Answer(ctx, loop.Event{Text: "Why?"})
		require.NoError(t, err)
	}
	assert.Equal(t, []string{"read the availability of model first"}, faults)

	m.first.fail(&llm.Error{Failure: llm.ServerError})
	m.ask(60)
	var read store.Snapshot
	require.NoError(t, m.store.Read(ctx, &read, nil, []store.Ref{ref}))
	text, err := read.Records[0].Body.JSON()
	require.NoError(t, err)
	assert.Contains(t, string(text), `"failure":"server_error"`)
	_, err = m.again().Answer(ctx, loop.Event{Text: "Why?"})
	require.NoError(t, err)
	assert.Len(t, faults, 1)
}

// A clock that is put back or forward by an hour during an outage keeps a model away for no longer
// than the longest wait, and the observer is told of its end.
func TestTheClockJumpsDuringAnOutage(t *testing.T) {
	for _, jump := range []time.Duration{-time.Hour, -4 * time.Minute, time.Hour} {
		m := newMarket(t, nil)
		m.first.fail(&llm.Error{Failure: llm.RateLimited, RetryAfter: 365 * 24 * time.Hour})
		m.second.fail(llm.Unreachable)
		m.ask(60)
		assert.Contains(t, m.told(), "models is out", jump)
		m.clock.Advance(jump)
		m.ask(5)
		m.first.fail(nil)
		m.second.fail(nil)
		m.ask(130)
		_, answers := m.ask(50)
		for _, a := range answers {
			assert.NotEmpty(t, a.Text, jump)
		}
		told := m.told()
		assert.Contains(t, told, "models is back", jump)
		assert.Contains(t, told, "model first is back", jump)
		assert.Empty(t, m.outcomes())
	}
}

// A replica whose clock is an hour ahead keeps no model away from the others.
func TestAnotherReplicasClockIsWrong(t *testing.T) {
	m := newMarket(t, nil)
	ahead := m.cfg
	ahead.Testing.Now = func() time.Time { return m.clock.Now().Add(time.Hour) }
	other, err := loop.New(ctx, ahead)
	require.NoError(t, err)
	m.first.fail(llm.Unreachable)
	for range 30 {
		_, _ = other.Answer(ctx, loop.Event{Text: "Why?", Item: "i"})
	}
	m.first.fail(nil)
	arms, _ := m.ask(100)
	assert.Greater(t, arms["a"]+arms["c"], 30)
}

// Two processes share a store, and one of them can't reach the only model. The other one is
// answered all the same.
func TestOneOfTwoProcessesSeesAnOutage(t *testing.T) {
	var cut, well provider
	cut.fail(llm.Unreachable)
	w := newWorld(t, loop.Config{
		Store: new(memstore.Store), Model: &cut, Arms: []loop.Arm{{ID: "a"}},
	})
	cfg := w.cfg
	cfg.Model = &well
	other, err := loop.New(ctx, cfg)
	require.NoError(t, err)
	answered := 0
	for range 300 {
		w.clock.Advance(time.Second)
		_, _ = w.Answer(ctx, loop.Event{Text: "Why?"})
		if a, _ := other.Answer(ctx, loop.Event{Text: "Why?"}); a.Text != "" {
			answered++
		}
	}
	assert.Greater(t, answered, 285)
	assert.Empty(t, w.outcomes())
}

// If every model is down, an event is refused at once, with what is known. Until then, choices go
// on by what was known. The observer is told of the incident when it begins and when it ends.
func TestAnIncident(t *testing.T) {
	m := newMarket(t, nil)
	m.first.fail(&llm.Error{Failure: llm.RateLimited, RetryAfter: 40 * time.Second})
	m.second.fail(llm.ServerError)
	m.ask(60)
	out := []string{"model first is out", "model second is out", "models is out"}
	assert.ElementsMatch(t, out, m.told())
	asked := m.first.asked.Load() + m.second.asked.Load()
	assert.Less(t, asked, int64(50), "most events are refused at once")
	var refused error
	for range 20 {
		m.clock.Advance(time.Second)
		a, err := m.Answer(ctx, loop.Event{Text: "Why?", Item: "i"})
		if err == nil {
			continue
		}
		require.ErrorIs(t, err, loop.ErrNoModel)
		refused = err
		assert.Equal(t, "llm_unavailable", a.Result.Reason)
		assert.Equal(t, decision.Rejected, a.Result.Path)
	}
	require.Error(t, refused)
	assert.Positive(t, llm.RetryAfter(refused))
	assert.Regexp(t, `no model is available; model \w+ failed [1-9]\d+ times in a row [^;]*$`,
		refused.Error(), "of the arm that was chosen alone")
	plan, err := m.Prepare(ctx, loop.Event{Text: "Why?", Item: "i", Session: "s"})
	if err != nil {
		require.ErrorIs(t, err, loop.ErrNoModel)
		assert.NotEmpty(t, plan.Prompt, "a framework may ask all the same")
	}
	assert.Empty(t, m.outcomes())
	m.first.fail(nil)
	m.second.fail(nil)
	m.ask(100)
	told := m.told()
	assert.Contains(t, told, "models is back")
	assert.Contains(t, told, "model first is back")
	assert.Contains(t, told, "model second is back")
	assert.Empty(t, m.outcomes())
}

// It is no incident while a fallback can be asked, although the only other model is down.
func TestAFallbackThatAnswersIsNoIncident(t *testing.T) {
	var first, spare provider
	observer, told := outagesOf()
	w := newWorld(t, loop.Config{
		Model: &first, Fallbacks: []decision.LLM{&spare}, Observer: observer,
	})
	ask := func() {
		for range 30 {
			w.clock.Advance(time.Second)
			_, _ = w.Answer(ctx, loop.Event{Text: "Why?"})
		}
	}
	first.fail(llm.ServerError)
	ask()
	assert.Equal(t, []string{"model is out"}, told())
	spare.fail(llm.ServerError)
	ask()
	assert.Equal(t, []string{"fallback 0 is out", "models is out"}, told())
}

// The notice of an outage has the cause, because a fallback's answer hides it: a wrong address or
// key, for example.
func TestAnOutageHasItsCause(t *testing.T) {
	refused := errors.New("no such host")
	model := decision.LLMFunc(func(
		context.Context, decision.LLMRequest,
	) (decision.LLMResponse, error) {
		return decision.LLMResponse{}, fmt.Errorf("%w: %w", llm.Unreachable, refused)
	})
	var causes []error
	w := newWorld(t, loop.Config{
		Model: model, Fallbacks: []decision.LLM{&provider{}},
		Observer: func(_ context.Context, n heed.Notice) {
			if o, ok := n.(heed.Outage); ok {
				causes = append(causes, o.Err)
			}
		},
	})
	for range 5 {
		w.clock.Advance(time.Second)
		_, err := w.Answer(ctx, loop.Event{Text: "Why?"})
		require.NoError(t, err)
	}
	require.Len(t, causes, 1)
	assert.ErrorIs(t, causes[0], refused)
	assert.Equal(t, llm.Unreachable, llm.FailureOf(causes[0]))
}

// While a model is down, its fallback answers at once, without a wait for the model.
func TestAFallbackAnswersForAModelThatIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs, spare := &hanger{}, &provider{}
		agent, err := loop.New(ctx, loop.Config{
			Model: hangs, Fallbacks: []decision.LLM{spare}, Arms: []loop.Arm{{ID: "only"}},
		})
		require.NoError(t, err)
		for i := range 5 {
			began := time.Now()
			a, err := agent.Answer(ctx, loop.Event{Text: "Why?", Item: "i"})
			require.NoError(t, err)
			assert.Equal(t, "Look at the logs.", a.Text)
			if i >= 3 {
				assert.Zero(t, time.Since(began))
			}
			require.NoError(t, agent.React(ctx, a.ID, loop.Reaction{Person: "ann", Value: 1}))
		}
		assert.Zero(t, distribution(t, agent.Strategy(), "").Outcomes, "the fallback is no arm")
	})
}

// Whose a failure is, by what happened. Nothing but an answer of no use is learned of the arm, and
// nothing but an unavailable model leaves it out.
func TestWhoseAFailureIs(t *testing.T) {
	answers := func(err error) decision.LLMFunc {
		return func(context.Context, decision.LLMRequest) (decision.LLMResponse, error) {
			return decision.LLMResponse{}, err
		}
	}
	hangs := func(ctx context.Context, _ decision.LLMRequest) (decision.LLMResponse, error) {
		<-ctx.Done()
		return decision.LLMResponse{}, ctx.Err()
	}
	panics := func(context.Context, decision.LLMRequest) (decision.LLMResponse, error) { panic("x") }
	for name, test := range map[string]struct {
		model  decision.LLMFunc
		caller time.Duration // until the caller's deadline, or 0
		stops  bool          // the caller cancels in place of that
		arm    bool
		out    bool
		fault  bool // in the host's code, perhaps
	}{
		"unreachable":           {model: answers(llm.Unreachable), out: true},
		"rate limited":          {model: answers(llm.RateLimited), out: true},
		"a server's fault":      {model: answers(fmt.Errorf("x: %w", llm.ServerError)), out: true},
		"it says it is slow":    {model: answers(context.DeadlineExceeded), out: true},
		"it is slow":            {model: hangs, out: true},
		"slow for the caller":   {model: hangs, caller: 20 * time.Second, out: true},
		"the caller is hasty":   {model: hangs, caller: time.Second},
		"the caller stops":      {model: hangs, caller: 20 * time.Second, stops: true},
		"an empty answer":       {model: answers(nil), arm: true},
		"an unusable answer":    {model: answers(llm.Unusable), arm: true},
		"a fault of the host's": {model: answers(errors.New("nil map")), fault: true},
		"a bad request":         {model: answers(llm.FromStatus(400, 0, nil)), fault: true},
		"a panic":               {model: panics, fault: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				observer, told := outagesOf()
				fault := false
				agent, err := loop.New(ctx, loop.Config{
					Model: test.model, Arms: []loop.Arm{{ID: "only"}},
					Observer: func(ctx context.Context, n heed.Notice) {
						if f, is := n.(heed.Failed); is {
							fault = fault || strings.Contains(f.Err.Error(), "does not recognise")
						}
						observer(ctx, n)
					},
				})
				require.NoError(t, err)
				for range 3 {
					within, cancel := context.WithCancel(ctx)
					switch {
					case test.stops:
						time.AfterFunc(test.caller, cancel)
					case test.caller > 0:
						within, cancel = context.WithTimeout(ctx, test.caller)
					}
					a, _ := agent.Answer(within, loop.Event{Text: "Why?", Item: "i"})
					cancel()
					assert.Empty(t, a.Text)
					assert.Error(t, errors.Join(a.Result.Err, errors.New(a.Result.Reason)))
				}
				outcomes := 0
				if test.arm {
					outcomes = 3
				}
				assert.EqualValues(t, outcomes, distribution(t, agent.Strategy(), "").Outcomes)
				assert.Equal(t, test.out, len(told()) > 0)
				assert.Equal(t, test.fault, fault)
			})
		})
	}
}

// MaxInFlight makes events wait. Waiting teaches nothing, and takes nothing of the model's time.
func TestALineBeforeTheModelTeachesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		observer, told := outagesOf()
		slow := func(ctx context.Context, _ decision.LLMRequest) (decision.LLMResponse, error) {
			select {
			case <-time.After(20 * time.Second):
				return decision.LLMResponse{Text: "Look at the logs."}, nil
			case <-ctx.Done():
				return decision.LLMResponse{}, ctx.Err()
			}
		}
		for _, most := range []int{0, 1} {
			agent, err := loop.New(ctx, loop.Config{
				Model: decision.LLMFunc(slow), Arms: []loop.Arm{{ID: "only"}}, Observer: observer,
				Tuning: loop.Tuning{Decision: decision.Config{MaxInFlight: most}},
			})
			require.NoError(t, err)
			var answered, busy atomic.Int64
			var all sync.WaitGroup
			for range 40 {
				all.Go(func() {
					a, err := agent.Answer(ctx, loop.Event{Text: "Why?", Item: "i"})
					switch {
					case a.Text != "":
						answered.Add(1)
					case errors.Is(err, decision.ErrBusy) && a.Result.Reason == "llm_busy":
						busy.Add(1)
					}
				})
			}
			all.Wait()
			if most == 0 {
				assert.EqualValues(t, 40, answered.Load())
			} else {
				assert.EqualValues(t, 2, answered.Load(), "one at once, and one after 20 of 30 seconds")
				assert.EqualValues(t, 38, busy.Load())
			}
			assert.Zero(t, distribution(t, agent.Strategy(), "").Outcomes)
			assert.Empty(t, told())
		}
	})
}

// A framework asks a model that is down once to find out whether it is back. Until that is over, or
// as long as a probe takes, its other events are refused.
func TestAFrameworkProbesAModel(t *testing.T) {
	c := &clock{now: start}
	a, err := loop.New(ctx, loop.Config{Testing: loop.Testing{Now: c.Now}})
	require.NoError(t, err)
	prepare := func() (loop.Plan, error) { return a.Prepare(ctx, loop.Event{Text: "Why?"}) }
	for {
		p, err := prepare()
		if errors.Is(err, loop.ErrNoModel) {
			break
		}
		require.NoError(t, err)
		require.NoError(t, second(a.Answered(ctx, p, loop.Reply{Err: llm.Unreachable})))
		c.Advance(time.Second)
	}
	c.Advance(20 * time.Second)
	probe, err := prepare()
	require.NoError(t, err)
	require.ErrorIs(t, second(prepare()), loop.ErrNoModel)
	require.NoError(t, second(a.Answered(ctx, probe, loop.Reply{Text: "So."})))
	require.NoError(t, second(prepare()))
}

// If each model that arms ask is down, that is one incident, whatever Config.Model would be.
func TestAnIncidentOfTheArmsModels(t *testing.T) {
	observer, notices := outagesOf()
	var p provider
	p.fail(&llm.Error{Failure: llm.ServerError})
	w := newWorld(t, loop.Config{Observer: observer, Arms: []loop.Arm{{ID: "a", Model: &p}}})
	for range 3 {
		w.answer(loop.Event{Text: "Why?"})
	}
	assert.Equal(t, []string{"arm a is out", "models is out"}, notices())
}

// A list is a model of a type that can't be compared.
type list []string

func (l list) Generate(context.Context, decision.LLMRequest) (decision.LLMResponse, error) {
	return decision.LLMResponse{Text: l[0]}, nil
}

// Models of a type that can't be compared are different ones.
func TestModelsThatCannotBeCompared(t *testing.T) {
	w := newWorld(t, loop.Config{
		Model: list{"So."}, Fallbacks: []decision.LLM{list{"So."}},
		Arms: []loop.Arm{{ID: "a", Model: list{"So."}}, {ID: "b", Model: list{"So."}}, {ID: "c"}},
	})
	assert.Equal(t, "So.", w.answer(loop.Event{Text: "Why?"}).Text)
}

// A model that the framework asks, and that failed ten times, is asked by one event at a time.
func TestAFrameworksModelIsProbedByOneEvent(t *testing.T) {
	w := newWorld(t, loop.Config{})
	p, err := w.Prepare(ctx, loop.Event{Text: "Why?"})
	require.NoError(t, err)
	for range 10 {
		_, _ = w.Answered(ctx, p, loop.Reply{Err: &llm.Error{Failure: llm.ServerError}})
	}
	_, err = w.Prepare(ctx, loop.Event{Text: "Why?"})
	require.ErrorIs(t, err, loop.ErrNoModel)
	w.clock.Advance(16 * time.Second)
	_, err = w.Prepare(ctx, loop.Event{Text: "Why?"})
	require.NoError(t, err)
	_, err = w.Prepare(ctx, loop.Event{Text: "Why?"})
	require.ErrorIs(t, err, loop.ErrNoModel, "the one before finds out")
}

// How long a provider asks to wait is known although another process needs no news of it.
func TestAWaitThatIsNotShared(t *testing.T) {
	clock := &clock{now: start}
	agent, err := loop.New(ctx, loop.Config{
		Arms:    []loop.Arm{{ID: "x", ModelName: "x"}, {ID: "y", ModelName: "y"}},
		Testing: loop.Testing{Now: clock.Now, Seed: newSource(1)},
	})
	require.NoError(t, err)
	var plans []loop.Plan
	for len(plans) < 4 {
		p, err := agent.Prepare(ctx, loop.Event{Text: "Why?"})
		require.NoError(t, err)
		if p.Arm.ID == "x" {
			plans = append(plans, p)
		}
	}
	for n, p := range plans {
		failure := &llm.Error{Failure: llm.RateLimited}
		if n == 3 {
			failure.RetryAfter = time.Minute
		}
		_, _ = agent.Answered(ctx, p, loop.Reply{Err: failure})
	}
	arms := func() (asked map[string]bool) {
		asked = make(map[string]bool)
		for range 40 {
			p, err := agent.Prepare(ctx, loop.Event{Text: "Why?"})
			require.NoError(t, err)
			asked[p.Arm.ID] = true
		}
		return asked
	}
	clock.Advance(50 * time.Second)
	assert.Equal(t, map[string]bool{"y": true}, arms())
	clock.Advance(11 * time.Second)
	assert.True(t, arms()["x"])
}

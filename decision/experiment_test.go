package decision_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
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
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
)

// says is a strategy that always gives this answer.
func says(text string, path decision.Path) decision.Strategy {
	var n atomic.Int64
	return onlyDecides(func(_ context.Context, r decision.Request) (decision.Result, error) {
		return decision.Result{Path: path, Text: text, ResponseID: fmt.Sprint(text, n.Add(1)), Calls: len(text), Variant: r.Variant}, nil
	})
}

func experiment(t testing.TB, cfg decision.ExperimentConfig) *decision.Experiment {
	t.Helper()
	if cfg.Now == nil {
		cfg.Now = (&clock{}).Now
	}
	if cfg.Store == nil {
		cfg.Store = newStore(cfg.Now)
	}
	if cfg.Variants == nil {
		cfg.Variants = []decision.Variant{{Name: "a", Strategy: says("a", decision.Heuristic)}, {Name: "b", Strategy: says("bb", decision.Model)}}
	}
	e, err := decision.NewExperiment(ctx, cfg)
	require.NoError(t, err)
	return e
}

func report(t testing.TB, e *decision.Experiment) decision.ExperimentReport {
	t.Helper()
	r, err := e.Report(ctx)
	require.NoError(t, err)
	return r
}

// Over 10,000 keys a share has a standard error of at most 0.005.
func TestSplit(t *testing.T) {
	variants := []decision.Variant{{Name: "a", Strategy: says("a", decision.Heuristic), Share: 6}, {Name: "b", Strategy: says("b", decision.Model), Share: 3}, {Name: "c", Strategy: says("c", decision.Model), Share: 1}}
	e := experiment(t, decision.ExperimentConfig{Name: "first", Variants: variants})
	other := experiment(t, decision.ExperimentConfig{Name: "second", Variants: variants})
	counts, both := make(map[string]float64), 0
	for i := range 10_000 {
		r := decision.Request{EventID: fmt.Sprint("event ", i)}
		res, err := e.Decide(ctx, r)
		require.NoError(t, err)
		assert.Equal(t, decision.VariantOf(e, r), res.Variant)
		assert.Equal(t, res.Variant, res.Text)
		counts[res.Variant] += 1e-4
		if decision.VariantOf(e, r) == "c" && decision.VariantOf(other, r) == "c" {
			both++
		}
	}
	assert.InDelta(t, 0.6, counts["a"], 0.025)
	assert.InDelta(t, 0.3, counts["b"], 0.025)
	assert.InDelta(t, 0.1, counts["c"], 0.025)
	assert.InDelta(t, 100, both, 50, "experiments split each in its own way")
	r := report(t, e)
	assert.Equal(t, 10_000, r.Variants[0].Decisions+r.Variants[1].Decisions+r.Variants[2].Decisions)

	// where a key goes is fixed for ever
	var first strings.Builder
	for i := range 20 {
		first.WriteString(decision.VariantOf(e, decision.Request{EventID: fmt.Sprint("event ", i)}))
	}
	assert.Equal(t, "baaaaaaaabaaaabacaab", first.String())
}

func TestSplitByKey(t *testing.T) {
	e := experiment(t, decision.ExperimentConfig{Key: func(r decision.Request) string { return r.Source }})
	seen := make(map[string]string)
	for i := range 200 {
		r := decision.Request{EventID: fmt.Sprint(i), Source: fmt.Sprint("person ", i%10)}
		if before, ok := seen[r.Source]; ok {
			assert.Equal(t, before, decision.VariantOf(e, r))
		}
		seen[r.Source] = decision.VariantOf(e, r)
	}
	assert.Contains(t, fmt.Sprint(seen), ":a")
	assert.Contains(t, fmt.Sprint(seen), ":b")
}

func TestVariantIsInTheTrace(t *testing.T) {
	st := newStore((&clock{}).Now)
	h := newHeuristicFirst(t, decision.Config{Store: st})
	e := experiment(t, decision.ExperimentConfig{Variants: []decision.Variant{{Name: "a", Strategy: h}, {Name: "b", Strategy: h}}})
	seen := make(map[string]bool)
	for i := range 20 {
		res, err := e.Decide(ctx, decision.Request{EventID: fmt.Sprint(i), Candidates: candidates(0.9)})
		require.NoError(t, err)
		credit := feedback(t, h, decision.Reaction{ResponseID: res.ResponseID, Value: 1})
		assert.Equal(t, res.Variant, credit.Variant)
		seen[credit.Variant] = true
	}
	assert.Len(t, seen, 2)
}

func TestReport(t *testing.T) {
	c := &clock{}
	slow := onlyDecides(func(context.Context, decision.Request) (decision.Result, error) {
		c.Advance(time.Second)
		return decision.Result{Path: decision.Model, Text: "slow", OutputTokens: 5}, nil
	})
	fails := onlyDecides(func(context.Context, decision.Request) (decision.Result, error) {
		return decision.Result{}, errors.New("x")
	})
	e := experiment(t, decision.ExperimentConfig{
		Now: c.Now, Cost: func(r decision.Result) float64 { return 0.1 * float64(r.OutputTokens) },
		Variants: []decision.Variant{{Name: "slow", Strategy: slow}, {Name: "fails", Strategy: fails}, {Name: "fast", Strategy: says("fast", decision.Heuristic)}},
	})
	for i := range 300 {
		_, _ = e.Decide(ctx, decision.Request{EventID: fmt.Sprint(i)})
	}
	r := report(t, e)
	first, second, third := r.Variants[0], r.Variants[1], r.Variants[2]
	assert.Equal(t, 300, first.Decisions+second.Decisions+third.Decisions)
	assert.Equal(t, second.Decisions, second.Errors)
	assert.Zero(t, first.Errors)
	assert.Equal(t, map[decision.Path]int{decision.Model: first.Decisions}, first.Paths)
	assert.Zero(t, second.Paths[decision.Model])
	assert.Equal(t, map[decision.Path]int{decision.Heuristic: third.Decisions}, third.Paths)
	assert.InDelta(t, 0.5, first.Cost, 1e-9)
	assert.Zero(t, second.Cost)
	assert.Equal(t, time.Second, first.Latency)
	assert.InEpsilon(t, time.Second.Seconds(), first.Latency95.Seconds(), 0.1)
	assert.Less(t, third.Latency95, time.Microsecond)
	assert.False(t, r.Enough)
	assert.InDelta(t, 1./3, first.ProbBest, 1e-6)
	assert.Equal(t, 0.5, second.ProbBetter)
}

func observe(t testing.TB, e *decision.Experiment, variant, id string, reward float64) {
	t.Helper()
	require.NoError(t, e.Observe(ctx, decision.ExperimentOutcome{Variant: variant, ID: id, Reward: reward}))
}

func TestOutcomes(t *testing.T) {
	e := experiment(t, decision.ExperimentConfig{})
	for i := range 200 {
		observe(t, e, "a", fmt.Sprint("a", i), float64(i%2))
		observe(t, e, "b", fmt.Sprint("b", i), min(float64(i%4), 1))
		observe(t, e, "b", fmt.Sprint("b", i), 0) // it is known already
	}
	r := report(t, e)
	a, b := r.Variants[0], r.Variants[1]
	assert.Equal(t, [2]float64{200, 200}, [2]float64{a.Outcomes, b.Outcomes})
	assert.InDelta(t, 0.5, a.Success.Mean(), 0.01)
	assert.InDelta(t, 0.75, b.Success.Mean(), 0.01)
	assert.InDelta(t, 0.25, b.Lift, 0.01)
	assert.InDelta(t, 0.25-1.96*0.0465, b.LiftLow, 0.01)
	assert.InDelta(t, 0.25+1.96*0.0465, b.LiftHigh, 0.01)
	assert.Greater(t, b.ProbBetter, 0.999)
	assert.InDelta(t, b.ProbBest, b.ProbBetter, 1e-9, "of two")
	assert.InDelta(t, 0.25, a.Loss, 0.01)
	assert.Less(t, b.Loss, 0.001)
	assert.Equal(t, [3]any{"b", true, "probability"}, [3]any{r.Best, r.Enough, r.Why})
	assert.Equal(t, r, report(t, e), "a report can be repeated")

	// what is replaced is taken back; what was never counted can be replaced too
	require.NoError(t, e.Observe(ctx, decision.ExperimentOutcome{Variant: "a", ID: "later", Replaces: "a199", Reward: 1}))
	require.NoError(t, e.Observe(ctx, decision.ExperimentOutcome{Variant: "a", ID: "latest", Replaces: "never seen", Reward: 1}))
	assert.Equal(t, 201., report(t, e).Variants[0].Outcomes)
	require.NoError(t, e.Observe(ctx, decision.ExperimentOutcome{Variant: "a", ID: "late", Replaces: "a0", Reward: 1}))
	a = report(t, e).Variants[0]
	assert.Equal(t, 201., a.Outcomes, "beyond the 100 observations that the store keeps of a cell")
	assert.InDelta(t, 102./202, a.Success.Mean(), 0.005)

	for field, o := range map[string]decision.ExperimentOutcome{
		"Variant": {Variant: "c", ID: "x"}, "ID": {Variant: "a"}, "Observations[0].Reward": {Variant: "a", ID: "x", Reward: 1.5},
	} {
		var fault *heed.InputError
		require.ErrorAs(t, e.Observe(ctx, o), &fault)
		assert.Equal(t, field, fault.Field)
	}
}

func TestStop(t *testing.T) {
	with := func(cfg decision.ExperimentConfig, n int, a, b float64) decision.ExperimentReport {
		e := experiment(t, cfg)
		for i := range n {
			observe(t, e, "a", fmt.Sprint("a", i), a)
			observe(t, e, "b", fmt.Sprint("b", i), b)
		}
		return report(t, e)
	}
	assert.Empty(t, with(decision.ExperimentConfig{}, 99, 0.2, 0.8).Why, "too few, however clear")
	assert.Equal(t, "probability", with(decision.ExperimentConfig{}, 100, 0.2, 0.8).Why)
	assert.Equal(t, "probability", with(decision.ExperimentConfig{MinOutcomes: 20}, 20, 0.2, 0.8).Why)
	assert.Empty(t, with(decision.ExperimentConfig{MinOutcomes: 20, Probability: 0.9999}, 20, 0.4, 0.6).Why)
	assert.Empty(t, with(decision.ExperimentConfig{}, 100, 0.5, 0.5).Why)
	assert.Equal(t, "loss", with(decision.ExperimentConfig{}, 4000, 0.5, 0.5).Why, "there is no difference that matters")
	assert.Equal(t, "loss", with(decision.ExperimentConfig{Loss: 0.1}, 100, 0.5, 0.5).Why)
	assert.False(t, with(decision.ExperimentConfig{}, 100, 0.5, 0.5).Enough)
}

// Its requests go to the better variant, and after the end to that one alone.
func TestARaceUsesItsWinner(t *testing.T) {
	e := experiment(t, decision.ExperimentConfig{Error: 0.05})
	rates, rng := map[string]float64{"a": 0.3, "b": 0.8}, rand.New(rand.NewPCG(5, 6))
	counts, ended := make(map[string]int), 0
	for n := range 300 {
		result, err := e.Decide(ctx, decision.Request{EventID: fmt.Sprint(n), Text: "x"})
		require.NoError(t, err)
		counts[result.Variant]++
		reward := 0.
		if rng.Float64() < rates[result.Variant] {
			reward = 1
		}
		observe(t, e, result.Variant, fmt.Sprint(n), reward)
		if r := report(t, e); r.Enough && ended == 0 {
			ended = n
			assert.Equal(t, "b", r.Best)
			assert.Equal(t, "winner", r.Why)
			counts = make(map[string]int)
		}
	}
	assert.Positive(t, ended)
	assert.Less(t, ended, 200)
	assert.LessOrEqual(t, counts["a"], 3, "until the next look")
	assert.Greater(t, counts["b"], 80)
}

// True rates are drawn evenly. The winner of an experiment is then the best variant as often as the report says, though the test looks
// after each outcome. It allows four standard errors, so less than one run in ten thousand fails by chance.
func TestTheReportIsRightAsOftenAsItSays(t *testing.T) {
	experiments := 100
	if os.Getenv("HEED_LONG") != "" {
		experiments = 2000
	}
	rng := rand.New(rand.NewPCG(5, 6))
	var stated, right, variance, inside, loss, statedLoss float64
	stopped := 0
	for n := range experiments {
		e := experiment(t, decision.ExperimentConfig{MinOutcomes: 50, Probability: 0.9, Loss: 0.01})
		truth := map[string]float64{"a": rng.Float64(), "b": rng.Float64()}
		var r decision.ExperimentReport
		for i := 0; i < 500 && !r.Enough; i++ {
			for variant, p := range truth {
				reward := 0.
				if rng.Float64() < p {
					reward = 1
				}
				observe(t, e, variant, fmt.Sprint(n, variant, i), reward)
			}
			if i%100 == 50 {
				r = report(t, e)
			}
		}
		if !r.Enough {
			continue
		}
		stopped++
		best := r.Variants[0]
		if r.Best == "b" {
			best = r.Variants[1]
		}
		stated += best.ProbBest
		variance += best.ProbBest * (1 - best.ProbBest)
		if truth[r.Best] >= max(truth["a"], truth["b"]) {
			right++
		}
		if lift := truth["b"] - truth["a"]; lift >= r.Variants[1].LiftLow && lift <= r.Variants[1].LiftHigh {
			inside++
		}
		loss += max(truth["a"], truth["b"]) - truth[r.Best]
		statedLoss += best.Loss
	}
	n := float64(stopped)
	t.Logf("%d of %d stopped: right %.3f, as stated %.3f; the lift inside its interval %.3f; lost %.5f, as stated %.5f",
		stopped, experiments, right/n, stated/n, inside/n, loss/n, statedLoss/n)
	assert.Greater(t, stopped, experiments*8/10)
	assert.InDelta(t, stated, right, 4*math.Sqrt(variance)+0.5)
	assert.InDelta(t, 0.95*n, inside, 4*math.Sqrt(0.95*0.05*n)+0.5)
	assert.Less(t, loss/n, 0.005)
}

func TestShadow(t *testing.T) {
	candidates := candidates(0.5)
	var seen atomic.Pointer[decision.Request]
	watcher := onlyDecides(func(_ context.Context, r decision.Request) (decision.Result, error) {
		seen.Store(&r)
		return decision.Result{Path: decision.Heuristic, Text: " a ", ResponseID: "x", CreditID: "h"}, nil
	})
	e := experiment(t, decision.ExperimentConfig{Shadow: true, Variants: []decision.Variant{
		{Name: "control", Strategy: says("a", decision.Heuristic)}, {Name: "same", Strategy: watcher}, {Name: "other", Strategy: says("bb", decision.Model)},
	}})
	for i := range 20 {
		res, err := e.Decide(ctx, decision.Request{EventID: fmt.Sprint(i), Candidates: candidates})
		require.NoError(t, err)
		assert.Equal(t, [2]string{"a", "control"}, [2]string{res.Text, res.Variant}, "the control acts")
		require.NoError(t, e.Wait(ctx))
		assert.Equal(t, "same", seen.Load().Variant)
		assert.NotSame(t, &candidates[0], &seen.Load().Candidates[0], "what runs on has copies")
	}
	r := report(t, e)
	assert.Equal(t, [3]int{20, 20, 20}, [3]int{r.Variants[0].Decisions, r.Variants[1].Decisions, r.Variants[2].Decisions})
	assert.Equal(t, [3]int{0, 20, 0}, [3]int{r.Variants[0].Agreed, r.Variants[1].Agreed, r.Variants[2].Agreed})
	assert.Equal(t, 2., r.Variants[2].Cost)
	assert.Equal(t, "control", decision.VariantOf(e, decision.Request{EventID: "any"}))
}

func TestShadowsThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var called atomic.Int64
		release := make(chan struct{})
		deaf := onlyDecides(func(context.Context, decision.Request) (decision.Result, error) {
			called.Add(1)
			<-release
			return decision.Result{}, nil
		})
		e, err := decision.NewExperiment(ctx, decision.ExperimentConfig{
			Shadow: true, Store: &memstore.Store{}, MaxShadows: 2, ShadowTimeout: time.Second,
			Variants: []decision.Variant{{Name: "control", Strategy: says("a", decision.Heuristic)}, {Name: "deaf", Strategy: deaf}},
		})
		require.NoError(t, err)
		began := time.Now()
		for range 100 {
			_, err := e.Decide(context.Background(), decision.Request{})
			require.NoError(t, err)
		}
		assert.Zero(t, time.Since(began), "the control does not wait")
		short, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		assert.ErrorIs(t, e.Wait(short), context.DeadlineExceeded)
		require.NoError(t, e.Wait(context.Background()))
		assert.Equal(t, time.Second, time.Since(began))
		_, err = e.Decide(context.Background(), decision.Request{})
		require.NoError(t, err)
		require.NoError(t, e.Wait(context.Background()))
		assert.EqualValues(t, 2, called.Load(), "there are never more calls than that")
		assert.Equal(t, 101, report(t, e).Variants[1].Skipped)
		close(release)
		synctest.Wait()
		assert.Equal(t, 101, report(t, e).Variants[1].Skipped)
		assert.Zero(t, report(t, e).Variants[1].Decisions, "what comes too late is not counted once more")
	})
}

func TestACostThatIsNoNumber(t *testing.T) {
	cost := 3.
	e := experiment(t, decision.ExperimentConfig{
		Variants: []decision.Variant{{Name: "a", Strategy: says("a", decision.Heuristic), Share: 1e6}, {Name: "b", Strategy: says("a", decision.Heuristic), Share: 1e-6}},
		Cost:     func(decision.Result) float64 { return cost },
	})
	for _, cost = range []float64{3, math.NaN(), math.Inf(1)} {
		res, err := e.Decide(ctx, decision.Request{EventID: "e"})
		assert.Equal(t, cost == 3, err == nil)
		assert.Equal(t, "a", res.Text, "the answer is not lost by it")
	}
	r := report(t, e).Variants[0]
	assert.Equal(t, 2, r.Errors)
	assert.Equal(t, 1., r.Cost)
}

func TestOutcomesOutOfOrder(t *testing.T) {
	e := experiment(t, decision.ExperimentConfig{})
	for _, o := range []decision.ExperimentOutcome{
		{ID: "2", Replaces: "1", Reward: 1}, {ID: "1"}, {ID: "2", Replaces: "1", Reward: 1}, {ID: "1"},
	} {
		o.Variant = "a"
		require.NoError(t, e.Observe(ctx, o))
	}
	v := report(t, e).Variants[0]
	assert.Equal(t, 1., v.Outcomes, "what was replaced before it came counts nothing")
	assert.InDelta(t, 2./3, v.Success.Mean(), 1e-9)
}

func TestExperimentsShareAStore(t *testing.T) {
	store := newStore((&clock{}).Now)
	for name, id := range map[string]string{"a": "b:c", "a:b": "c"} {
		e := experiment(t, decision.ExperimentConfig{Name: name, Store: store})
		require.NoError(t, e.Observe(ctx, decision.ExperimentOutcome{Variant: "a", ID: id, Reward: 1}))
		assert.Equal(t, 1., report(t, e).Variants[0].Outcomes, "an outcome of one is none of another")
	}
}

func TestExperimentSurvivesPanics(t *testing.T) {
	panics := onlyDecides(func(context.Context, decision.Request) (decision.Result, error) { panic("boom") })
	good := says("a", decision.Heuristic)
	var panicked *heed.PanicError
	for name, cfg := range map[string]decision.ExperimentConfig{
		"a variant": {Variants: []decision.Variant{{Name: "a", Strategy: panics}, {Name: "b", Strategy: panics}}},
		"the key":   {Key: func(decision.Request) string { panic("boom") }},
		"the cost":  {Cost: func(decision.Result) float64 { panic("boom") }},
		"a shadow":  {Shadow: true, Variants: []decision.Variant{{Name: "a", Strategy: good}, {Name: "b", Strategy: panics}}},
	} {
		e := experiment(t, cfg)
		_, err := e.Decide(ctx, decision.Request{EventID: "e"})
		if name != "a shadow" {
			assert.ErrorAs(t, err, &panicked, name)
			continue
		}
		assert.NoError(t, err)
		require.NoError(t, e.Wait(ctx))
		assert.Equal(t, 1, report(t, e).Variants[1].Errors)
	}
}

func TestConcurrentExperiment(t *testing.T) {
	e := experiment(t, decision.ExperimentConfig{Shadow: true, MaxShadows: 1000, Variants: []decision.Variant{
		{Name: "a", Strategy: newHeuristicFirst(t, decision.Config{LLM: model("x")})}, {Name: "b", Strategy: says("bb", decision.Model)},
	}})
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := range 50 {
				r := decision.Request{EventID: fmt.Sprint(i, n), Candidates: candidates(0.5), Biases: map[string]float64{"x": 1}}
				_, err := e.Decide(ctx, r)
				assert.NoError(t, err)
				r.Candidates[0].Action, r.Biases["x"] = "changed", 2
				assert.NoError(t, e.Observe(ctx, decision.ExperimentOutcome{Variant: "a", ID: r.EventID + "/", Reward: 1}))
			}
		})
	}
	all.Wait()
	require.NoError(t, e.Wait(ctx))
	r := report(t, e)
	assert.Equal(t, 400, r.Variants[0].Decisions)
	assert.Equal(t, 400, r.Variants[1].Decisions+r.Variants[1].Skipped)
}

// The replacements are as many as the outcomes before, and say the opposite.
func TestReplacedOutcomesOpenARace(t *testing.T) {
	e := experiment(t, decision.ExperimentConfig{Error: 0.05})
	chosen := func() (names []string) {
		for n := range 50 {
			result, err := e.Decide(ctx, decision.Request{EventID: fmt.Sprint(n), Text: "x"})
			require.NoError(t, err)
			names = append(names, result.Variant)
		}
		return slices.Compact(names)
	}
	for n := range 30 {
		observe(t, e, "a", fmt.Sprint("a", n), 1)
		observe(t, e, "b", fmt.Sprint("b", n), 0)
	}
	assert.Equal(t, []string{"a"}, chosen())
	for n := range 30 {
		for variant, reward := range map[string]float64{"a": 0, "b": 1} {
			id := fmt.Sprint(variant, n)
			require.NoError(t, e.Observe(ctx, decision.ExperimentOutcome{Variant: variant, ID: id + "'", Replaces: id, Reward: reward}))
		}
	}
	assert.Equal(t, "b", report(t, e).Best)
	assert.Equal(t, []string{"b"}, chosen())
}

// away is a store whose reads fail.
type away struct {
	store.Store
	fails bool
}

func (s *away) Read(ctx context.Context, into *store.Snapshot, cells []evidence.Cell, refs []store.Ref, finds ...store.Query) error {
	if s.fails {
		return errors.New("the store is away")
	}
	return s.Store.Read(ctx, into, cells, refs, finds...)
}

// TestARaceWithoutItsStore goes by the shares, and the observer is told.
func TestARaceWithoutItsStore(t *testing.T) {
	st := &away{Store: newStore((&clock{}).Now)}
	var told []string
	e := experiment(t, decision.ExperimentConfig{Store: st, Error: 0.05, Observer: func(_ context.Context, n heed.Notice) {
		if f, ok := n.(heed.Failed); ok {
			told = append(told, f.What)
		}
	}})
	even := experiment(t, decision.ExperimentConfig{})
	st.fails = true
	for n := range 50 {
		r := decision.Request{EventID: fmt.Sprint(n), Text: "x"}
		got, err := e.Decide(ctx, r)
		require.NoError(t, err)
		wanted, err := even.Decide(ctx, r)
		require.NoError(t, err)
		assert.Equal(t, wanted.Variant, got.Variant)
	}
	assert.Contains(t, told, "read the race")
}

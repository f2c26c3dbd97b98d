//go:build !race

// One thing at a time is done here, and the race detector makes it five times slower.

package money_test

import (
	"context"
	"iter"
	"math"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/money"
)

var ctx = context.Background()

func TestARewardTakesCostAndTimeOff(t *testing.T) {
	r := money.Reward{Cost: 2, Second: 0.01}
	assert.InDelta(t, 0.8-0.4-0.05, r.Value(strategy.Outcome{Value: 0.8, Cost: 0.2,
		Latency: 5 * time.Second}), 1e-12)
	assert.InDelta(t, -1, r.Value(strategy.Outcome{Value: -0.8, Cost: 5}), 0)
	assert.InDelta(t, 0.5, money.Reward{}.Value(strategy.Outcome{Value: 0.5, Cost: 5}), 0)
	assert.InDelta(t, 1, money.Reward{Cost: -1}.Value(strategy.Outcome{Value: 0.5, Cost: 5}), 0)
}

var (
	qualities = map[strategy.ArmID]float64{"small": 0.9, "large": 0.92, "tiny": 0.3}
	prices    = map[strategy.ArmID]float64{"small": 1, "large": 10, "tiny": 0.1}
)

func newLearner(t *testing.T, st store.Store, pooling strategy.Pooling,
	seed uint64) *strategy.Learner {
	l, err := strategy.New(ctx, strategy.Config{
		Store: st, Arms: []strategy.Arm{{ID: "small"}, {ID: "large"}, {ID: "tiny"}}, Pooling: pooling,
		Seed: rand.NewPCG(seed, 2),
	})
	require.NoError(t, err)
	return l
}

// play makes n choices, and tells what came of them and what they cost.
func play(t *testing.T, f *money.Frugal, l *strategy.Learner, quality map[strategy.ArmID]float64,
	luck *rand.Rand, n int) map[strategy.ArmID]int {
	counts := make(map[strategy.ArmID]int)
	for range n {
		c, err := f.Select(ctx, strategy.Query{Category: "law"})
		require.NoError(t, err)
		counts[c.Arm]++
		value := -1.
		if luck.Float64() < quality[c.Arm] {
			value = 1
		}
		_, err = l.Observe(ctx, strategy.Outcome{Choice: c, Value: value, Confidence: 1,
			Cost: prices[c.Arm] * (0.5 + luck.Float64()), Latency: time.Second})
		require.NoError(t, err)
	}
	return counts
}

// TestTheCheapestThatIsGoodEnough wins, whether its cost is told or learned.
func TestTheCheapestThatIsGoodEnough(t *testing.T) {
	worse := map[strategy.ArmID]float64{"small": 0.5, "large": 0.95, "tiny": 0.3}
	for name, test := range map[string]struct {
		costs, quality map[strategy.ArmID]float64
		pooling        strategy.Pooling
		best           strategy.ArmID
	}{
		"told, good enough":        {prices, qualities, strategy.Alone{}, "small"},
		"learned, good enough":     {nil, qualities, strategy.Alone{}, "small"},
		"told, not good enough":    {prices, worse, strategy.TwoLevel{}, "large"},
		"learned, not good enough": {nil, worse, strategy.TwoLevel{}, "large"},
	} {
		l := newLearner(t, &memstore.Store{}, test.pooling, 3)
		f, err := money.New(ctx, money.Config{Learner: l, Quality: 0.9, Costs: test.costs})
		require.NoError(t, err)
		luck := rand.New(rand.NewPCG(3, 6))
		play(t, f, l, test.quality, luck, 200)
		late := play(t, f, l, test.quality, luck, 50)
		assert.Greater(t, late[test.best], 40, "%s: %v", name, late)
	}
}

// Another learner over it, after a restart, says the same.
func TestWhatWasSavedIsInTheStore(t *testing.T) {
	st := &memstore.Store{}
	l := newLearner(t, st, strategy.Alone{}, 1)
	f, err := money.New(ctx, money.Config{Learner: l, Costs: prices})
	require.NoError(t, err)
	play(t, f, l, qualities, rand.New(rand.NewPCG(7, 6)), 200)
	s, err := money.Saved(ctx, l, strategy.ChoiceFilter{}, 0)
	require.NoError(t, err)
	again, err := money.Saved(ctx, newLearner(t, st, strategy.Alone{}, 9), strategy.ChoiceFilter{}, 0)
	require.NoError(t, err)
	assert.Equal(t, s, again)
	assert.Equal(t, 200, s.Choices)
	assert.Equal(t, time.Second, s.Latency)
	large := s.Arms[1]
	assert.Equal(t, strategy.ArmID("large"), large.Arm)
	assert.Greater(t, large.Saved.Value, 500.)
	assert.LessOrEqual(t, large.Saved.Low, 2000-s.Cost)
	assert.GreaterOrEqual(t, large.Saved.High, 2000-s.Cost)
	assert.Positive(t, large.Saved.Low)
	assert.Less(t, large.Saved.High, 2000.)

	c, err := l.Record(ctx, strategy.Query{}, "small", 0.5) // without an outcome
	require.NoError(t, err)
	require.NotEmpty(t, c.ID)
	failing := &storetest.Failing{Store: st}
	again, err = money.Saved(ctx, newLearner(t, failing, strategy.Alone{}, 9),
		strategy.ChoiceFilter{}, 0)
	require.NoError(t, err)
	assert.Equal(t, s, again)
	l = newLearner(t, failing, strategy.Alone{}, 9)
	failing.SetAway(true)
	_, err = money.Saved(ctx, l, strategy.ChoiceFilter{}, 0)
	require.ErrorIs(t, err, storetest.ErrFailed)
}

// TestAChoiceOfUnknownPropensityIsLeftOut, and counted.
func TestAChoiceOfUnknownPropensityIsLeftOut(t *testing.T) {
	l := newLearner(t, &memstore.Store{}, strategy.Alone{}, 1)
	for _, p := range []float64{0.5, 0, 0.5} {
		c, err := l.Record(ctx, strategy.Query{}, "small", p)
		require.NoError(t, err)
		_, err = l.Observe(ctx, strategy.Outcome{Choice: c, Value: 1, Confidence: 1, Cost: 2})
		require.NoError(t, err)
	}
	s, err := money.Saved(ctx, l, strategy.ChoiceFilter{}, 0)
	require.NoError(t, err)
	assert.Equal(t, 2, s.Choices)
	assert.Equal(t, 1, s.LeftOut)
	assert.InDelta(t, 4, s.Cost, 1e-12)
}

// TestSeveralPeopleAreOneChoice holds that a choice on which people disagree has the mean of their
// values, and is paid once.
func TestSeveralPeopleAreOneChoice(t *testing.T) {
	l := newLearner(t, &memstore.Store{}, strategy.Alone{}, 1)
	for range 2 {
		c, err := l.Record(ctx, strategy.Query{}, "small", 0.5)
		require.NoError(t, err)
		var outcomes []strategy.Outcome
		for person, value := range map[string]float64{"ann": 1, "bob": 0, "eve": -1} {
			outcomes = append(outcomes, strategy.Outcome{Choice: c, ID: person, Source: person,
				Value: value, Confidence: 1, Share: 1. / 3, Cost: 2})
		}
		_, err = l.Revise(ctx, nil, outcomes, "")
		require.NoError(t, err)
	}
	s, err := money.Saved(ctx, l, strategy.ChoiceFilter{}, 0)
	require.NoError(t, err)
	assert.Equal(t, 2, s.Choices)
	assert.InDelta(t, 0.5, s.Quality, 1e-12)
	assert.InDelta(t, 4, s.Cost, 1e-12)
}

// TestTheIntervalsHold for logs of a chooser that sends most to one arm: of 90 % intervals 90 to 98
// of 100, give or take two standard errors. They are wide because few choices with large weights
// count.
func TestTheIntervalsHold(t *testing.T) {
	times, n := float64(60), 300
	if os.Getenv("HEED_LONG") != "" {
		times = 1000
	}
	arms, shares := []strategy.ArmID{"small", "large"}, []float64{0.8, 0.2}
	luck := rand.New(rand.NewPCG(5, 6))
	var held float64
	for range int(times) {
		log := make([]money.Charge, n)
		actual := 0.
		for i := range log {
			at := 0
			if luck.Float64() < shares[1] {
				at = 1
			}
			log[i] = money.Charge{Arm: arms[at], Propensity: shares[at],
				Cost: prices[arms[at]] * (0.5 + luck.Float64())}
			actual += log[i].Cost
		}
		s, err := money.Compare(log, arms, 0.9)
		require.NoError(t, err)
		truth := 10*float64(n) - actual
		if got := s.Arms[1].Saved; got.Low <= truth && truth <= got.High {
			held++
		}
		assert.LessOrEqual(t, s.Arms[1].Saved.Low, s.Arms[1].Saved.Value)
	}
	t.Logf("%.3f of %v", held/times, times)
	assert.InDelta(t, 0.94, held/times, 0.04+2*math.Sqrt(0.9*0.1/times))
}

// TestAnArmThatWasNeverChosen has no estimate.
func TestAnArmThatWasNeverChosen(t *testing.T) {
	log := []money.Charge{{Arm: "a", Propensity: 0.5, Quality: 1, Cost: 3},
		{Arm: "a", Propensity: 0.5, Quality: 0.9, Cost: 4}}
	s, err := money.Compare(log, []strategy.ArmID{"a", "b"}, 0)
	require.NoError(t, err)
	assert.Equal(t, money.Instead{Arm: "b"}, s.Arms[1])
	s, err = money.Compare(log, []strategy.ArmID{"b", "a", "c"}, 0)
	require.NoError(t, err)
	require.Len(t, s.Arms, 3)
	assert.Equal(t, money.Instead{Arm: "b"}, s.Arms[0])
	assert.Equal(t, 2, s.Arms[1].Chosen)
}

// If no choice cost anything, no money was saved.
func TestNothingWasPaid(t *testing.T) {
	log := []money.Charge{{Arm: "a", Propensity: 0.5, Quality: 1}, {Arm: "b", Propensity: 0.5,
		Quality: 0.9}, {Arm: "a", Propensity: 0.5, Quality: 0.5}}
	s, err := money.Compare(log, []strategy.ArmID{"a", "b"}, 0)
	require.NoError(t, err)
	for _, arm := range s.Arms {
		assert.Zero(t, arm.Saved)
		assert.NotZero(t, arm.Gained)
	}
}

// TestAConstantPriceNeedsNoInterval holds from ten equal costs on.
func TestAConstantPriceNeedsNoInterval(t *testing.T) {
	compare := func(n int, last float64) money.Instead {
		var log []money.Charge
		for range n {
			log = append(log, money.Charge{Arm: "a", Propensity: 0.5, Quality: 1, Cost: 3},
				money.Charge{Arm: "b", Propensity: 0.5, Cost: float64(len(log))})
		}
		log[0].Cost = last
		s, err := money.Compare(log, []strategy.ArmID{"a"}, 0)
		require.NoError(t, err)
		return s.Arms[0]
	}
	total := 0.
	for n := range 10 {
		total += 3 + float64(2*n)
	}
	exact := 20*3 - total
	assert.Equal(t, money.Bounds{Value: exact, Low: exact, High: exact}, compare(10, 3).Saved)
	for _, in := range []money.Instead{compare(9, 3), compare(10, 4)} {
		assert.Greater(t, in.Saved.High-in.Saved.Low, 1.)
	}
	assert.Greater(t, compare(10, 3).Gained.High-compare(10, 3).Gained.Low, 0.01,
		"the quality keeps its interval")
}

// After bad luck a cheap arm keeps its part of Explore. A dearer arm has none.
func TestAFrugalExplores(t *testing.T) {
	const n = 2000
	for name, test := range map[string]struct {
		lead    strategy.ArmID
		explore float64
		shares  map[strategy.ArmID]float64 // expected
	}{
		"the dear one leads":  {"large", 0.2, map[strategy.ArmID]float64{"small": 0.1, "tiny": 0.1}},
		"by default":          {"large", 0, map[strategy.ArmID]float64{"small": 0.01, "tiny": 0.01}},
		"the cheap one leads": {"tiny", 0.2, map[strategy.ArmID]float64{}},
	} {
		l := newLearner(t, &memstore.Store{}, strategy.Alone{}, 1)
		for arm, outcomes := range map[strategy.ArmID]int{"small": 30, "large": 30, "tiny": 30} {
			for range outcomes {
				c, err := l.Record(ctx, strategy.Query{}, arm, 0)
				require.NoError(t, err)
				value := -1.
				if arm == test.lead {
					value = 1
				}
				_, err = l.Observe(ctx, strategy.Outcome{Choice: c, Value: value, Confidence: 1})
				require.NoError(t, err)
			}
		}
		f, err := money.New(ctx, money.Config{Learner: l, Costs: prices, Explore: test.explore})
		require.NoError(t, err)
		counts, rest := make(map[strategy.ArmID]float64), 1.
		for range n {
			c, err := f.Select(ctx, strategy.Query{})
			require.NoError(t, err)
			counts[c.Arm]++
			if share, ok := test.shares[c.Arm]; ok {
				assert.InDelta(t, share, c.Propensity(), 1e-9, name)
			}
		}
		for arm, share := range test.shares {
			assert.InDelta(t, share, counts[arm]/n, 4*math.Sqrt(share/n), "%s: %s", name, arm)
			rest -= share
		}
		assert.InDelta(t, rest, counts[test.lead]/n, 4*math.Sqrt((1-rest)/n)+1e-9, name)
	}
}

func TestInputThatIsNone(t *testing.T) {
	l := newLearner(t, &memstore.Store{}, nil, 1)
	silent, err := strategy.New(ctx, strategy.Config{Store: &memstore.Store{}, Arms: l.Config().Arms,
		Unrecorded: true})
	require.NoError(t, err)
	curious, err := strategy.New(ctx, strategy.Config{Store: &memstore.Store{}, Arms: l.Config().Arms,
		Exploration: strategy.Exploration{Bonus: 0.1}})
	require.NoError(t, err)
	for field, cfg := range map[string]money.Config{
		"Learner": {}, "Explore": {Learner: l, Explore: 0.6},
		"Learner.Exploration": {Learner: curious}, "Quality": {Learner: l, Quality: 1.1},
		`Costs["x"]`:     {Learner: l, Costs: map[strategy.ArmID]float64{"x": 1}},
		`Costs["small"]`: {Learner: l, Costs: map[strategy.ArmID]float64{"small": -1}}, "Costs": {Learner: silent},
	} {
		_, err := money.New(ctx, cfg)
		var fault *heed.ConfigError
		require.ErrorAs(t, err, &fault, field)
		assert.Equal(t, field, fault.Field)
	}
	_, err = money.New(ctx, money.Config{Learner: l, Explore: -0.5, Quality: -0.5,
		Costs: map[strategy.ArmID]float64{"small": math.Inf(1)}})
	require.ErrorContains(t, err, "Explore")
	require.ErrorContains(t, err, "Quality")
	require.ErrorContains(t, err, "Costs")
	_, err = money.New(ctx, money.Config{Learner: silent, Explore: 0.5, Quality: 1,
		Costs: map[strategy.ArmID]float64{"small": 0, "large": 1, "tiny": 2}})
	require.NoError(t, err)
	good := money.Charge{Arm: "a", Propensity: 1}
	for _, cost := range []float64{-0.5, math.Inf(1)} {
		_, err := money.Compare([]money.Charge{{Arm: "a", Propensity: 1, Cost: cost}}, nil, 0)
		require.ErrorContains(t, err, "log[0].Cost")
	}
	for field, spoil := range map[string]func(*money.Charge){
		"log[0].Cost":       func(e *money.Charge) { e.Cost = math.NaN() },
		"log[0].Propensity": func(e *money.Charge) { e.Propensity = 0 },
		"log[0].Reward":     func(e *money.Charge) { e.Quality = 2 },
	} {
		e := good
		spoil(&e)
		_, err := money.Compare([]money.Charge{e, good}, []strategy.ArmID{"a"}, 0)
		var fault *heed.InputError
		require.ErrorAs(t, err, &fault, field)
		assert.Equal(t, field, fault.Field)
	}
	for _, level := range []float64{1, -0.5} {
		_, err = money.Compare(nil, nil, level)
		require.ErrorContains(t, err, "level")
	}
	s, err := money.Compare([]money.Charge{good}, []strategy.ArmID{"a"}, 0)
	require.NoError(t, err)
	assert.Empty(t, s.Arms)
}

// TestAFrugalAsksOnlyForPermittedArms, in any order of them.
func TestAFrugalAsksOnlyForPermittedArms(t *testing.T) {
	l := newLearner(t, &memstore.Store{}, nil, 1)
	f, err := money.New(ctx, money.Config{Learner: l, Costs: prices})
	require.NoError(t, err)
	rapid.Check(t, func(t *rapid.T) {
		arms := rapid.Permutation([]strategy.ArmID{"small", "large", "tiny"}).Draw(t,
			"arms")[:rapid.IntRange(1, 3).Draw(t, "n")]
		c, err := f.Select(ctx, strategy.Query{Arms: arms})
		if err != nil || !contains(arms, c.Arm) || !(c.Propensity() > 0) {
			t.Fatalf("%v of %v, %v", c.Arm, arms, err)
		}
	})
	_, err = f.Select(ctx, strategy.Query{Arms: []strategy.ArmID{"x"}})
	var fault *heed.InputError
	assert.ErrorAs(t, err, &fault)

	f, err = money.New(ctx, money.Config{Learner: l, Costs: prices, Quality: 0.01})
	require.NoError(t, err)
	for _, arms := range [][]strategy.ArmID{{"large", "small"}, {"small", "large"}} {
		c, err := f.Select(ctx, strategy.Query{Arms: arms, Session: "s"})
		require.NoError(t, err)
		assert.Equal(t, strategy.ArmID("small"), c.Arm, "the cheaper one of these")
		assert.Greater(t, c.Propensity(), 0.9)
	}
}

// Of arms that cost the same the better draw decides, and none is explored. The best arm is always
// good enough. What can't be drawn has no shares.
func TestArmsOfOneCost(t *testing.T) {
	l := newLearner(t, &memstore.Store{}, nil, 1)
	costs := map[strategy.ArmID]float64{"small": 1, "large": 1, "tiny": 1}
	f, err := money.New(ctx, money.Config{Learner: l, Quality: 1, Costs: costs})
	require.NoError(t, err)
	beliefs := make([]evidence.Belief, 3)
	for i := range beliefs {
		beliefs[i].Level = evidence.Beta{Alpha: 1 + float64(30*i), Beta: 30}
	}
	shares := f.SharesOf(beliefs)
	require.Len(t, shares, 3)
	assert.Greater(t, shares[2], 0.9)
	assert.Positive(t, shares[1])
	assert.Zero(t, shares[0])
	assert.InDelta(t, 1, shares[1]+shares[2], 1e-12)
	f, err = money.New(ctx, money.Config{Learner: l, Quality: 0.01, Costs: costs})
	require.NoError(t, err)
	assert.Equal(t, shares, f.SharesOf(beliefs))
	beliefs[2].Level.Alpha = math.NaN()
	assert.Nil(t, f.SharesOf(beliefs))
}

func contains(arms []strategy.ArmID, arm strategy.ArmID) bool {
	for _, a := range arms {
		if a == arm {
			return true
		}
	}
	return false
}

// TestADearArmStaysDear, though thousands of outcomes of another category came since, and after a
// restart. An arm without a cost is not the cheapest.
func TestADearArmStaysDear(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	st, err := memstore.New(memstore.Config{Now: clock})
	require.NoError(t, err)
	l, err := strategy.New(ctx, strategy.Config{
		Store: st, Now: clock, Arms: []strategy.Arm{{ID: "small"}, {ID: "large"}, {ID: "new"}},
		Pooling: strategy.Alone{}, Seed: rand.NewPCG(1, 2),
	})
	require.NoError(t, err)
	give := func(category string, arm strategy.ArmID, n int, value, cost float64) {
		for range n {
			now = now.Add(time.Second)
			c, err := l.Record(ctx, strategy.Query{Category: category}, arm, 0.5)
			require.NoError(t, err)
			_, err = l.Observe(ctx, strategy.Outcome{Choice: c, Value: value, Confidence: 1, Cost: cost})
			require.NoError(t, err)
		}
	}
	select500 := func(f *money.Frugal, category string) map[strategy.ArmID]int {
		now = now.Add(time.Hour)
		n := make(map[strategy.ArmID]int)
		for range 500 { // their outcomes come tomorrow
			c, err := f.Select(ctx, strategy.Query{Category: category})
			require.NoError(t, err)
			n[c.Arm]++
		}
		return n
	}
	give("law", "large", 200, 0.9, 10)
	give("law", "small", 200, 0.88, 1)
	f, err := money.New(ctx, money.Config{Learner: l, Quality: 0.9})
	require.NoError(t, err)
	give("other", "small", 2000, 0.5, 20) // dear there
	again, err := money.New(ctx, money.Config{Learner: l, Quality: 0.9})
	require.NoError(t, err)
	assert.InDelta(t, 20, again.CostsOf(strategy.Query{Category: "new"})[0], 1e-12,
		"elsewhere the last 2,000 outcomes count")
	assert.InDelta(t, 1, again.CostsOf(strategy.Query{Category: "law"})[0], 1e-12)
	for name, f := range map[string]*money.Frugal{"the same": f, "after a restart": again} {
		n := select500(f, "law")
		assert.Greater(t, n["small"], 450, "%s: %v", name, n)
		assert.Positive(t, n["new"], "%s: it is tried now and then, so that its cost becomes known",
			name)
	}
	give("other", "large", 20, 0.5, 10)
	n := select500(again, "other")
	assert.Greater(t, n["large"], n["small"], "%v: there it is the cheaper one", n)
}

// TestAnArmThatTurnedIsSaidToHaveChanged, and the other is not.
func TestAnArmThatTurnedIsSaidToHaveChanged(t *testing.T) {
	var log []money.Charge
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 2000 {
		e := money.Charge{Arm: "small", Propensity: 0.5, Cost: 1}
		rate := 0.5
		if rng.Float64() < 0.5 {
			e.Arm, rate = "large", []float64{0.9, 0.1}[i/1000]
		}
		if rng.Float64() < rate {
			e.Quality = 1
		}
		log = append(log, e)
	}
	s, err := money.Compare(log, []strategy.ArmID{"small", "large"}, 0)
	require.NoError(t, err)
	assert.False(t, s.Arms[0].Unsteady)
	assert.True(t, s.Arms[1].Unsteady)
	assert.InDelta(t, 1, s.Arms[1].Gained.High-s.Arms[1].Gained.Low, 1e-9)
	for i := range log {
		log[i].Cost = 1 + float64(i/1000)
	}
	s, err = money.Compare(log, []strategy.ArmID{"small"}, 0)
	require.NoError(t, err)
	assert.True(t, s.Arms[0].Unsteady, "its cost changed")
}

// The better arm alone would have gained: all of the interval is below 0.
func TestWhatWasGained(t *testing.T) {
	var log []money.Charge
	for range 100 {
		log = append(log, money.Charge{Arm: "a", Propensity: 0.5, Quality: 0.9},
			money.Charge{Arm: "b", Propensity: 0.5, Quality: 0.1})
	}
	s, err := money.Compare(log, []strategy.ArmID{"a", "b"}, 0)
	require.NoError(t, err)
	assert.InDelta(t, -0.4, s.Arms[0].Gained.Value, 1e-9)
	assert.Negative(t, s.Arms[0].Gained.High)
	assert.Less(t, s.Arms[0].Gained.Low, -0.4)
	assert.InDelta(t, 0.4, s.Arms[1].Gained.Value, 1e-9)
	assert.Positive(t, s.Arms[1].Gained.Low)
}

// Fewer than twenty outcomes do not replace a cost that more have shown.
func TestFewOutcomesReplaceNoCost(t *testing.T) {
	l := newLearner(t, &memstore.Store{}, strategy.Alone{}, 1)
	pay := func(times int, cost float64) {
		for range times {
			c, err := l.Record(ctx, strategy.Query{}, "small", 0.5)
			require.NoError(t, err)
			_, err = l.Observe(ctx, strategy.Outcome{Choice: c, Value: 1, Confidence: 1, Cost: cost})
			require.NoError(t, err)
		}
	}
	pay(30, 1)
	f, err := money.New(ctx, money.Config{Learner: l})
	require.NoError(t, err)
	pay(20, 5)
	for newest, cost := range []float64{19: 1, 20: 5} {
		if cost > 0 {
			require.NoError(t, money.Refresh(f, ctx, l.Config().Now(), time.Time{}, newest))
			assert.InDelta(t, cost, f.CostsOf(strategy.Query{})[0], 1e-12, newest)
		}
	}
}

// Arms of little weight and priors of little mass have draws of exactly 0 and 1.
func TestBeliefsNearTheEdge(t *testing.T) {
	for name, cfg := range map[string]strategy.Config{
		"weights": {Arms: []strategy.Arm{{ID: "a", Weight: 1}, {ID: "b", Weight: 0.003}}},
		"a prior": {
			Arms: []strategy.Arm{{ID: "a"}, {ID: "b"}}, Prior: evidence.Beta{Alpha: 0.01, Beta: 0.01},
		},
		"both": {
			Arms:  []strategy.Arm{{ID: "a", Weight: 1e-9}, {ID: "b", Weight: 1e9}},
			Prior: evidence.Beta{Alpha: 1e-3, Beta: 1e6},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg.Store, cfg.Seed = &memstore.Store{}, rand.NewPCG(1, 2)
			l, err := strategy.New(ctx, cfg)
			require.NoError(t, err)
			f, err := money.New(ctx, money.Config{
				Learner: l, Costs: map[strategy.ArmID]float64{"a": 1, "b": 2},
			})
			require.NoError(t, err)
			for n := range 20 {
				c, err := f.Select(ctx, strategy.Query{Item: "i"})
				require.NoError(t, err)
				p := c.Propensity()
				assert.True(t, p > 0 && p <= 1)
				_, err = l.Observe(ctx, strategy.Outcome{Choice: c, Value: float64(n%3 - 1), Confidence: 1})
				require.NoError(t, err)
			}
		})
	}
}

// TestAStepSharesTheSame as Select does, and reads once.
func TestAStepSharesTheSame(t *testing.T) {
	cfg := strategy.Config{Arms: []strategy.Arm{{ID: "a"}, {ID: "b"}}}
	var choices [2]strategy.Choice
	for i := range choices {
		st := &storetest.Failing{Store: &memstore.Store{}}
		cfg.Store, cfg.Seed = st, rand.NewPCG(1, 2)
		l, err := strategy.New(ctx, cfg)
		require.NoError(t, err)
		f, err := money.New(ctx, money.Config{
			Learner: l, Costs: map[strategy.ArmID]float64{"a": 1, "b": 2},
		})
		require.NoError(t, err)
		q := strategy.Query{Session: "s", Item: "i"}
		if i == 0 {
			choices[i], err = f.Select(ctx, q)
		} else {
			_, err = f.Select(ctx, strategy.Query{Item: "i"}) // it loads the segment
			require.NoError(t, err)
			st.Fail(0, false)
			err = store.Do(ctx, st, func(tx *store.Tx) (err error) {
				tx.Want(f.Wants(q))
				choices[i], err = f.SelectIn(tx, q)
				return err
			})
			assert.Equal(t, []int{1, 1, 2}, []int{st.Calls("Read"), st.Calls("Commit"), st.Calls()})
		}
		require.NoError(t, err)
	}
	assert.Equal(t, choices[0].Arm, choices[1].Arm)
	assert.InDelta(t, choices[0].Propensity(), choices[1].Propensity(), 0)
}

// A paidArm is an arm that was chosen once, with what that cost.
type paidArm struct {
	arm  strategy.ArmID
	cost float64
}

// once returns a learner in whose store each of these arms was chosen once, and succeeded. The
// learner has the first two arms, in the order of their names.
func once(t *testing.T, st store.Store, now func() time.Time, paid ...paidArm) *strategy.Learner {
	t.Helper()
	of := func(ids ...strategy.ArmID) *strategy.Learner {
		cfg := strategy.Config{Store: st, Now: now, Pooling: strategy.Alone{}}
		for _, id := range ids {
			cfg.Arms = append(cfg.Arms, strategy.Arm{ID: id})
		}
		l, err := strategy.New(ctx, cfg)
		require.NoError(t, err)
		return l
	}
	before := of("a", "b", "gone")
	for _, one := range paid {
		c, err := before.Record(ctx, strategy.Query{}, one.arm, 0.5)
		require.NoError(t, err)
		_, err = before.Observe(ctx, strategy.Outcome{Choice: c, Value: 1, Confidence: 1,
			Cost: one.cost})
		require.NoError(t, err)
	}
	return of("a", "b")
}

// One outcome shows what an arm costs. An arm that the learner no longer has does not matter.
func TestOneOutcomeShowsACost(t *testing.T) {
	l := once(t, &memstore.Store{}, time.Now, paidArm{"a", 5}, paidArm{"b", 1}, paidArm{"gone", 9})
	f, err := money.New(ctx, money.Config{Learner: l, Quality: 0.01})
	require.NoError(t, err)
	c, err := f.Select(ctx, strategy.Query{})
	require.NoError(t, err)
	assert.Equal(t, strategy.ArmID("b"), c.Arm)
	assert.Greater(t, c.Propensity(), 0.9)
}

// Costs are read when the Frugal is made, and again after 16 choices while a cost is unknown. After
// a reading of more than 256 records it is a sixteenth of them. Costs that the host has given are
// not read.
func TestCostsAreReadSeldom(t *testing.T) {
	st := &storetest.Failing{Store: &memstore.Store{}}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	l := once(t, st, clock, paidArm{"a", 5})
	q := strategy.Query{}
	finds := func(cfg money.Config) (at []int) {
		before := st.Calls("Find")
		f, err := money.New(ctx, cfg)
		require.NoError(t, err)
		for n := range 40 {
			if calls := st.Calls("Find"); calls > before {
				at, before = append(at, n), calls
			}
			_, err := f.Select(ctx, q)
			require.NoError(t, err)
		}
		return at
	}
	assert.Equal(t, []int{0, 16, 32}, finds(money.Config{Learner: l}))
	q.Frozen = true
	assert.Equal(t, []int{0}, finds(money.Config{Learner: l}), "a query that only looks")
	q.Frozen = false
	for range 320 - 1 - 40 {
		_, err := l.Record(ctx, q, "a", 0.5)
		require.NoError(t, err)
	}
	assert.Equal(t, []int{0, 20}, finds(money.Config{Learner: l}))
	f, err := money.New(ctx, money.Config{Learner: l})
	require.NoError(t, err)
	before := st.Calls("Find")
	now = now.Add(l.Config().Refresh)
	_, err = f.Select(ctx, q)
	require.NoError(t, err)
	assert.Equal(t, before+1, st.Calls("Find"), "they are due")
	given := map[strategy.ArmID]float64{"a": 1, "b": 2}
	assert.Empty(t, finds(money.Config{Learner: l, Costs: given}))
}

// A counted store counts the records that are read of queries.
type counted struct {
	store.Store
	found int
	fails bool // the next query
}

func (c *counted) Find(ctx context.Context, q store.Query) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		if c.fails {
			c.fails = false
			yield(store.Record{}, storetest.ErrFailed)
			return
		}
		for r, err := range c.Store.Find(ctx, q) {
			if c.found++; !yield(r, err) {
				return
			}
		}
	}
}

// A choice looks at 2,000 records at most, however many have no outcome. One that has its outcome
// after thousands of other choices shows its cost all the same.
func TestAReadingOfCostsIsShort(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	memory, err := memstore.New(memstore.Config{Now: clock})
	require.NoError(t, err)
	st := &counted{Store: memory}
	l := once(t, st, clock, paidArm{"a", 5})
	late, err := l.Record(ctx, strategy.Query{}, "b", 0.5)
	require.NoError(t, err)
	for range 5000 {
		now = now.Add(time.Second)
		_, err := l.Record(ctx, strategy.Query{}, "a", 0.5)
		require.NoError(t, err)
	}
	f, err := money.New(ctx, money.Config{Learner: l, Quality: 0.01})
	require.NoError(t, err)
	_, err = l.Observe(ctx, strategy.Outcome{Choice: late, Value: 1, Confidence: 1, Cost: 1})
	require.NoError(t, err)
	readings := 0
	for n := 0; ; n++ {
		before := st.found
		st.fails = readings == 1 // the second looks at the newest and at older ones
		c, err := f.Select(ctx, strategy.Query{})
		if readings == 1 && !st.fails {
			readings++
			require.ErrorIs(t, err, storetest.ErrFailed)
			continue
		}
		require.NoError(t, err)
		if st.found > before {
			readings++
		}
		require.LessOrEqual(t, st.found-before, 2000)
		if c.Arm == "b" && c.Propensity() > 0.9 {
			break
		}
		require.Less(t, n, 400)
	}
}

// Whichever call of the store fails, an arm is chosen, and the error reports the failure.
func TestAFrugalWithoutTheStore(t *testing.T) {
	st := &storetest.Failing{Store: &memstore.Store{}}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	l := once(t, st, func() time.Time { return now }, paidArm{"a", 5})
	f, err := money.New(ctx, money.Config{Learner: l})
	require.NoError(t, err)
	for at := 1; ; at++ {
		now = now.Add(time.Hour) // the costs are due
		st.Fail(at, false)
		c, err := f.Select(ctx, strategy.Query{})
		assert.NotEmpty(t, c.Arm)
		if !st.Failed() {
			require.NoError(t, err)
			break
		}
		assert.Error(t, err, "call %d", at)
	}
	st.Fail(0, false)
	disabled := l.Config()
	disabled.Disabled = true
	l, err = strategy.New(ctx, disabled)
	require.NoError(t, err)
	f, err = money.New(ctx, money.Config{Learner: l})
	require.NoError(t, err)
	st.SetAway(true)
	for _, choose := range ways(t, f, &memstore.Store{}) {
		c, err := choose(strategy.Query{})
		require.NoError(t, err, "a learner that is disabled reads nothing")
		assert.Equal(t, strategy.ArmID("a"), c.Arm)
	}
}

// ways returns the two ways in which a Frugal chooses: by itself, and in a step.
func ways(t *testing.T, f *money.Frugal,
	st store.Store) []func(strategy.Query) (strategy.Choice, error) {
	return []func(strategy.Query) (strategy.Choice, error){
		func(q strategy.Query) (strategy.Choice, error) { return f.Select(ctx, q) },
		func(q strategy.Query) (c strategy.Choice, err error) {
			require.NoError(t, store.Do(ctx, st, func(tx *store.Tx) error {
				c, err = f.SelectIn(tx, q)
				return nil
			}))
			return c, err
		},
	}
}

// A caller's shares decide, and need no costs.
func TestACallersSharesDecide(t *testing.T) {
	st := &counted{Store: &memstore.Store{}}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	l := once(t, st, func() time.Time { return now }, paidArm{"a", 5}, paidArm{"b", 1})
	f, err := money.New(ctx, money.Config{Learner: l})
	require.NoError(t, err)
	now = now.Add(time.Hour) // the costs are due
	before := st.found
	for _, choose := range ways(t, f, st) {
		for _, q := range []strategy.Query{{Shares: []float64{1, 0}},
			{Arms: []strategy.ArmID{"a"}, Shares: []float64{1}}} {
			c, err := choose(q)
			require.NoError(t, err)
			assert.Equal(t, strategy.ArmID("a"), c.Arm)
		}
	}
	assert.Equal(t, before, st.found)
}

// Sums of less than a unit of money are compared.
func TestSmallSums(t *testing.T) {
	log := []money.Charge{{Arm: "a", Propensity: 0.5, Quality: 1, Cost: 0.04},
		{Arm: "b", Propensity: 0.5, Quality: 1, Cost: 0.02}}
	s, err := money.Compare(log, []strategy.ArmID{"a", "b"}, 0)
	require.NoError(t, err)
	assert.InDelta(t, 0.02, s.Arms[0].Saved.Value, 1e-9)
	assert.InDelta(t, -0.02, s.Arms[1].Saved.Value, 1e-9)
}

// While a cost is unknown, each reading looks at the newest records too, however long the history
// is. It finds there the first outcome of an arm, and that the price of another one rose.
func TestNewCostsAreReadSoon(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	st, err := memstore.New(memstore.Config{Now: clock})
	require.NoError(t, err)
	l := once(t, st, clock, paidArm{"a", 1})
	pay := func(times int, arm strategy.ArmID, cost float64) {
		for range times {
			now = now.Add(time.Second)
			c, err := l.Record(ctx, strategy.Query{}, arm, 0.5)
			require.NoError(t, err)
			_, err = l.Observe(ctx, strategy.Outcome{Choice: c, Value: 1, Confidence: 1, Cost: cost})
			require.NoError(t, err)
		}
	}
	pay(5000, "a", 1)
	f, err := money.New(ctx, money.Config{Learner: l, Quality: 0.01})
	require.NoError(t, err)
	for n := 0; ; n++ {
		if n == 130 { // a reading of the newest 2,000 is after 125
			pay(600, "a", 9)
			pay(1, "b", 2)
		}
		now = now.Add(time.Second)
		c, err := f.Select(ctx, strategy.Query{})
		require.NoError(t, err)
		if c.Arm == "b" && c.Propensity() > 0.9 {
			break
		}
		require.Less(t, n, 260)
	}
}

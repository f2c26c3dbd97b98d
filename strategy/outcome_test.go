package strategy_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/injection"
)

func TestValuesAreMappedToRewardsOnce(t *testing.T) {
	for _, test := range []struct{ value, confidence, reward float64 }{
		{-1, 1, 0}, {-0.3, 0.8, 0.35}, {0, 0.5, 0.5}, {0.5, 0.7, 0.75}, {1, 0.3, 1},
	} {
		st := newStore(t, (&clock{}).Now)
		l := newLearner(t, strategy.Config{Store: st, Arms: injection.Arms()})
		q := strategy.Query{Session: "s", Item: "i", Category: "solution", Context: "batch"}
		c := choose(t, l, q)
		_, err := l.Observe(ctx, strategy.Outcome{Choice: c, Value: test.value,
			Confidence: test.confidence})
		require.NoError(t, err)
		parts := read(t, st, c.Cells()...)
		require.Len(t, parts, len(c.Cells()), "the arm and its parameters")
		for _, p := range parts {
			assert.Equal(t, test.confidence, p.Tally.Mass)
			assert.InDelta(t, test.confidence*test.reward, p.Tally.Reward, 1e-15)
		}
		assert.Len(t, kept(t, st, q, "arm", "parameter", "sessions"), len(parts),
			"and nothing else")
	}
}

// TestOutcomesAddUp checks an arm that is alone. Its belief is the prior and the outcomes, and each
// outcome counts in full, the first as the hundredth. Shapes never fall. An outcome as good as
// expected leaves the mean where it is.
func TestOutcomesAddUp(t *testing.T) {
	type outcomes = []float64
	for name, test := range map[string]struct {
		arm    strategy.ArmID // of the catalogue; empty: one whose prior is Beta(1, 1)
		values outcomes
		want   evidence.Beta
	}{
		"nothing":                   {"", nil, evidence.Beta{Alpha: 1, Beta: 1}},
		"a good one":                {"", outcomes{1}, evidence.Beta{Alpha: 2, Beta: 1}},
		"good ones, then a bad one": {"", outcomes{1, 1, -1}, evidence.Beta{Alpha: 3, Beta: 2}},
		"a middling one":            {"", outcomes{0}, evidence.Beta{Alpha: 1.5, Beta: 1.5}},
		"bad ones":                  {"", outcomes{-1, -1}, evidence.Beta{Alpha: 1, Beta: 3}},
		"a hundred": {"", slices.Repeat(outcomes{1}, 100),
			evidence.Beta{Alpha: 101, Beta: 1}},
		"main context, good": {injection.MainContext, outcomes{1},
			evidence.Beta{Alpha: 2.2, Beta: 1}},
		"main context, rather bad": {injection.MainContext, outcomes{-0.3},
			evidence.Beta{Alpha: 1.55, Beta: 1.65}},
		"background, bad": {injection.BackgroundSubagent, outcomes{-0.8},
			evidence.Beta{Alpha: 0.5, Beta: 1.9}},
		"background, bad two times": {injection.BackgroundSubagent, outcomes{-1, -1},
			evidence.Beta{Alpha: 0.4, Beta: 3}},
		"deferred, middling": {injection.Deferred, outcomes{0},
			evidence.Beta{Alpha: 2.1, Beta: 1.5}},
		"deferred, half bad": {injection.Deferred, outcomes{-0.5},
			evidence.Beta{Alpha: 1.85, Beta: 1.75}},
		"deferred, as bad as it can be": {injection.Deferred, outcomes{-1},
			evidence.Beta{Alpha: 1.6, Beta: 2}},
		"subagent, as expected of it": {injection.Subagent, outcomes{-1. / 9},
			evidence.Beta{Alpha: 0.8 + 4./9, Beta: 1 + 5./9}},
		"deferred, from good to bad": {injection.Deferred, outcomes{1, -1},
			evidence.Beta{Alpha: 2.6, Beta: 2}},
		"main context, a middling thing": {injection.MainContext, outcomes{0},
			evidence.Beta{Alpha: 1.7, Beta: 1.5}},
	} {
		t.Run(name, func(t *testing.T) {
			arms := plain("", "b")
			if arms[0].ID = "a"; test.arm != "" {
				arms = injection.Arms()
			}
			arm := cmp.Or(test.arm, "a")
			l := newLearner(t, strategy.Config{Arms: arms, Pooling: strategy.Alone{}})
			q := strategy.Query{Item: "i"}
			before := levels(beliefs(t, l, q))
			for _, value := range test.values {
				try(t, l, q, arm, value)
			}
			for i, level := range levels(beliefs(t, l, q)) {
				want := before[i]
				if arms[i].ID == arm {
					want = test.want
				}
				assert.InDelta(t, want.Alpha, level.Alpha, 1e-9)
				assert.InDelta(t, want.Beta, level.Beta, 1e-9)
			}
		})
	}
}

func TestAnOutcomeCreditsTheArmAlone(t *testing.T) {
	for _, pooling := range poolings {
		t.Run(fmt.Sprint(pooling), func(t *testing.T) {
			l := newLearner(t, strategy.Config{Pooling: pooling,
				Arms: injection.Arms()})
			q := strategy.Query{Item: "i"}
			before := means(t, l, q)
			try(t, l, q, injection.Subagent, 1)
			after := means(t, l, q)
			assert.Greater(t, after[1], before[1])
			for _, other := range []int{0, 2, 3} {
				assert.Equal(t, before[other], after[other])
			}
		})
	}
}

func TestAParametersValueIsSharedByTheItemsOfItsSegment(t *testing.T) {
	arms := []strategy.Arm{
		{ID: "a", Parameters: []strategy.Parameter{{Name: "n", Values: []string{"1", "2"}},
			{Name: "m", Values: []string{"1", "2"}}}},
		{ID: "b", Parameters: []strategy.Parameter{{Name: "n", Values: []string{"1", "2"}}}},
	}
	l := newLearner(t, strategy.Config{Arms: arms})
	q := strategy.Query{Category: "x", Arms: []strategy.ArmID{"a"}}
	for i := range 300 {
		q.Item = fmt.Sprint(i)
		c := choose(t, l, q)
		credit(t, l, c, map[string]float64{"1": -1, "2": 1}[c.Parameter("n")])
	}
	count := func(q strategy.Query, name string) (twos int) {
		for range 200 {
			if choose(t, l, q).Parameter(name) == "2" {
				twos++
			}
		}
		return twos
	}
	q.Item = "new"
	assert.Greater(t, count(q, "n"), 190)
	// Elsewhere nothing has been learned: of n in another segment, or of another arm's n.
	elsewhere := q
	elsewhere.Category = "y"
	assert.InDelta(t, 100, count(elsewhere, "n"), 32) // 4.5 standard errors
	q.Arms = []strategy.ArmID{"b"}
	assert.InDelta(t, 100, count(q, "n"), 32)
}

// edited returns the choice with a field of its JSON replaced.
func edited(t *testing.T, c strategy.Choice, field string, value any) (e strategy.Choice) {
	text, err := json.Marshal(c)
	require.NoError(t, err)
	var fields map[string]any
	require.NoError(t, json.Unmarshal(text, &fields))
	fields[field] = value
	text, err = json.Marshal(fields)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &e))
	return e
}

// TestObserveRefusesWhatIsNotValid, names it, asks the store for nothing, and changes nothing.
func TestObserveRefusesWhatIsNotValid(t *testing.T) {
	long := strings.Repeat("x", 1025)
	st := &faulty{Store: newStore(t, (&clock{}).Now)}
	l := newLearner(t, strategy.Config{Store: st})
	other := newLearner(t, strategy.Config{Name: "other"})
	more := newLearner(t, strategy.Config{Arms: plain("e")})
	q := strategy.Query{Session: "s", Item: "i", Category: "c", Context: "x"}
	c := choose(t, l, q)
	credit(t, l, c, 1)
	before, believed := everything(t, st, q), beliefs(t, l, q)

	changed := func(change func(*strategy.Choice)) strategy.Choice {
		d := throughJSON(t, c)
		change(&d)
		return d
	}
	for _, test := range []struct {
		field string
		o     strategy.Outcome
	}{
		{"Value", strategy.Outcome{Choice: c, ID: "1", Value: math.NaN(), Confidence: 1}},
		{"Value", strategy.Outcome{Choice: c, ID: "1", Value: math.Inf(1), Confidence: 1}},
		{"Value", strategy.Outcome{Choice: c, ID: "1", Value: math.Inf(-1), Confidence: 1}},
		{"Value", strategy.Outcome{Choice: c, ID: "1", Value: 1.0000001, Confidence: 1}},
		{"Value", strategy.Outcome{Choice: c, ID: "1", Value: -5, Confidence: 1}},
		{"Value", strategy.Outcome{Choice: c, ID: "1", Value: 2, Confidence: 0.1}},
		{"Confidence", strategy.Outcome{Choice: c, ID: "1", Value: 1, Confidence: 0}},
		{"Confidence", strategy.Outcome{Choice: c, ID: "1", Value: 1, Confidence: -0.5}},
		{"Confidence", strategy.Outcome{Choice: c, ID: "1", Value: 1, Confidence: 1.5}},
		{"Confidence", strategy.Outcome{Choice: c, ID: "1", Value: 1, Confidence: math.NaN()}},
		{"Confidence", strategy.Outcome{Choice: c, ID: "1", Value: 1, Confidence: math.Inf(1)}},
		{"Choice", strategy.Outcome{ID: "1", Value: 1, Confidence: 1}},
		{"Choice", strategy.Outcome{Choice: choose(t, other, q), Value: 1, Confidence: 1}},
		{"Choice", strategy.Outcome{Choice: strategy.Choice{ID: c.ID, Arm: c.Arm, Item: c.Item},
			Value: 1, Confidence: 1}},
		{"Choice.Arm", strategy.Outcome{Choice: choose(t, more, q), Value: 1, Confidence: 1}},
		{"Choice.Arm", strategy.Outcome{Choice: edited(t, c, "arm", "A"), Value: 1, Confidence: 1}},
		{"ID", strategy.Outcome{Choice: c, ID: "\x00", Value: 1, Confidence: 1}},
		{"ID", strategy.Outcome{Choice: c, ID: "\xff", Value: 1, Confidence: 1}},
		{"ID", strategy.Outcome{Choice: c, ID: long, Value: 1, Confidence: 1}},
		{"ID", strategy.Outcome{Choice: c, ID: long[:1000], Value: 1, Confidence: 1}},
		{"Channel", strategy.Outcome{Choice: c, ID: "1", Channel: "\x00", Value: 1, Confidence: 1}},
		{"Source", strategy.Outcome{Choice: c, ID: "1", Source: long, Value: 1, Confidence: 1}},
		{"Choice.Session", strategy.Outcome{Choice: changed(
			func(c *strategy.Choice) { c.Session = "\x00" }), ID: "1", Value: 1, Confidence: 1}},
		{"Choice.Item", strategy.Outcome{Choice: changed(func(c *strategy.Choice) { c.Item = "\xff" }),
			ID: "1", Value: 1, Confidence: 1}},
		{"Choice.Item", strategy.Outcome{Choice: changed(func(c *strategy.Choice) { c.Item = long }),
			ID: "1", Value: 1, Confidence: 1}},
		{"Choice.Category", strategy.Outcome{Choice: changed(
			func(c *strategy.Choice) { c.Category = "\x00" }), ID: "1", Value: 1, Confidence: 1}},
		{"Choice.Category", strategy.Outcome{Choice: changed(
			func(c *strategy.Choice) { c.Category = long[:600]; c.Context = long[:600] }), ID: "1",
			Value: 1, Confidence: 1}},
		{"Choice.Context", strategy.Outcome{Choice: changed(
			func(c *strategy.Choice) { c.Context = "\x00" }), ID: "1", Value: 1, Confidence: 1}},
		{"Choice.Parameters", strategy.Outcome{Choice: edited(t, c, "parameters",
			[]answer.Setting{{Name: "n", Value: long}}), ID: "1", Value: 1, Confidence: 1}},
		{"Choice.Parameters", strategy.Outcome{Choice: edited(t, c, "parameters",
			[]answer.Setting{{Name: "n\x00", Value: "1"}}), ID: "1", Value: 1, Confidence: 1}},
	} {
		unreachable := fmt.Errorf("the store is asked, though %s is not valid", test.field)
		st.read.Store(&unreachable)
		st.list.Store(&unreachable)
		st.commit.Store(&unreachable)
		disposition, err := l.Observe(ctx, test.o)
		st.read.Store(nil)
		st.list.Store(nil)
		st.commit.Store(nil)
		assertInputError(t, err, test.field)
		assert.Empty(t, disposition)
		assert.Equal(t, before, everything(t, st, q), test.field)
		assert.Equal(t, believed, beliefs(t, l, q), test.field)
	}
}

func TestAnOutcomeInTheFutureIsRefused(t *testing.T) {
	c := &clock{}
	st := newStore(t, c.Now)
	l := newLearner(t, strategy.Config{Now: c.Now, Store: st})
	q := strategy.Query{Item: "i"}
	_, err := l.Observe(ctx, strategy.Outcome{Choice: choose(t, l, q), Value: 1, Confidence: 1,
		At: start.Add(time.Hour)})
	assert.ErrorContains(t, err, "ahead of the clock")
	assert.Empty(t, everything(t, st, q))
}

func TestOutcomesOfLittleConfidenceAreDropped(t *testing.T) {
	for _, test := range []struct{ least, confidence float64 }{{0, 0.299}, {0, 0.001}, {0.9, 0.899},
		{1, 0.999}} {
		st := newStore(t, (&clock{}).Now)
		l := newLearner(t, strategy.Config{Store: st, MinConfidence: test.least})
		q := strategy.Query{Session: "s", Item: "i"}
		o := strategy.Outcome{Choice: choose(t, l, q), Value: -1, Confidence: test.confidence}
		before := beliefs(t, l, q)
		disposition, err := l.Observe(ctx, o)
		require.NoError(t, err)
		assert.Equal(t, strategy.Dropped, disposition)
		assert.Empty(t, everything(t, st, q))
		assert.Equal(t, before, beliefs(t, l, q))

		o.Confidence = l.Config().MinConfidence
		disposition, err = l.Observe(ctx, o)
		require.NoError(t, err)
		assert.Equal(t, strategy.Applied, disposition, "what was dropped has not used up its id")
	}
}

func TestAnOutcomeCountsOnce(t *testing.T) {
	for _, pooling := range poolings {
		t.Run(fmt.Sprint(pooling), func(t *testing.T) {
			c := &clock{}
			st := newStore(t, c.Now)
			cfg := strategy.Config{Now: c.Now, Store: st, Pooling: pooling,
				Arms: injection.Arms()}
			l := newLearner(t, cfg)
			q := strategy.Query{Session: "s", Item: "i"}
			o := strategy.Outcome{Choice: choose(t, l, q), ID: "build 7", Value: 1, Confidence: 0.5}
			disposition, err := l.Observe(ctx, o)
			require.NoError(t, err)
			assert.Equal(t, strategy.Applied, disposition)
			before, believed := everything(t, st, q), means(t, l, q)

			restarted := newLearner(t, cfg)
			late := o
			late.Choice = throughJSON(t, o.Choice)
			other := o
			other.Value, other.Confidence, other.Source = -1, 1, "somebody"
			for _, again := range []strategy.Outcome{o, late, other} {
				c.Advance(time.Minute)
				for _, l := range []*strategy.Learner{l, restarted} {
					disposition, err := l.Observe(ctx, again)
					require.NoError(t, err)
					assert.Equal(t, strategy.Duplicate, disposition)
					assert.Equal(t, before, everything(t, st, q))
					assert.Equal(t, believed, means(t, l, q))
				}
			}
		})
	}
}

func TestRacingDeliveriesOfAnOutcomeCountOnce(t *testing.T) {
	const outcomes, deliveries = 30, 40
	st := newStore(t, (&clock{}).Now)
	cfg := withFixtures(t, strategy.Config{Store: st, Pooling: strategy.Alone{}})
	learners := []*strategy.Learner{newLearner(t, cfg), newLearner(t, cfg)}
	q := strategy.Query{Item: "i"}
	choices := make([]strategy.Choice, outcomes)
	for i := range choices {
		choices[i] = choose(t, learners[0], q)
	}
	var applied, duplicate atomic.Int64
	var wait sync.WaitGroup
	for i := range deliveries {
		wait.Go(func() {
			for j := range outcomes {
				disposition, err := learners[i%2].Observe(ctx,
					strategy.Outcome{Choice: choices[(i+j)%outcomes], Value: 1, Confidence: 1})
				assert.NoError(t, err)
				if disposition == strategy.Applied {
					applied.Add(1)
				} else if disposition == strategy.Duplicate {
					duplicate.Add(1)
				}
			}
		})
	}
	wait.Wait()
	assert.EqualValues(t, outcomes, applied.Load())
	assert.EqualValues(t, outcomes*(deliveries-1), duplicate.Load())
	assert.Equal(t, float64(outcomes), massOf(kept(t, st, q, "arm")))
}

func TestAChoiceMayHaveSeveralOutcomes(t *testing.T) {
	st := newStore(t, (&clock{}).Now)
	l := newLearner(t, strategy.Config{Store: st, Pooling: strategy.Copy{}})
	q := strategy.Query{Session: "s", Item: "i"}
	c := choose(t, l, q)
	for _, id := range []string{"", "1", "2", " ", "ü/:\n"} {
		disposition, err := l.Observe(ctx, strategy.Outcome{Choice: c, ID: id, Value: 1,
			Confidence: 0.5})
		require.NoError(t, err)
		assert.Equal(t, strategy.Applied, disposition)
	}
	assert.Equal(t, 2.5, massOf(kept(t, st, q, "arm")))
	assert.Equal(t, 1., massOf(kept(t, st, q, "sessions")), "in one session")
}

// Another name is another learner, with evidence of its own.
func TestLearnersOfOneStoreAreKeptApartByName(t *testing.T) {
	st := &memstore.Store{}
	one, two := newLearner(t, strategy.Config{Store: st}),
		newLearner(t, strategy.Config{Store: st, Name: "two"})
	q := strategy.Query{Item: "i"}
	try(t, one, q, "a", 1)
	assert.NotEqual(t, 0.5, means(t, one, q)[0])
	assert.Equal(t, []float64{0.5, 0.5, 0.5, 0.5}, means(t, two, q))
	assert.Equal(t, "two.arm", choose(t, two, q).Cells()[0].Kind)
}

// TestNothingIsCountedTwice adds up what the learner believes of an item of its own, and of its
// segment: as much evidence as there were outcomes, when items specialise too.
func TestNothingIsCountedTwice(t *testing.T) {
	for _, pooling := range []strategy.Pooling{strategy.Copy{Sessions: 3}, strategy.Copy{Sessions: 1},
		strategy.Alone{}} {
		t.Run(fmt.Sprintf("%+v", pooling), func(t *testing.T) {
			st := newStore(t, (&clock{}).Now)
			cfg := withFixtures(t, strategy.Config{Store: st, Pooling: pooling})
			l := newLearner(t, cfg)
			var q strategy.Query
			own := make(map[string]float64)
			for i := range 200 {
				q.Item, q.Session = fmt.Sprint("item", i%4), fmt.Sprint(i/8)
				_, err := l.Observe(ctx, strategy.Outcome{Choice: choose(t, l, q), ID: fmt.Sprint(i),
					Value: float64(i%3/2*2 - 1), Confidence: 0.5})
				require.NoError(t, err)
				own[q.Item] += 0.5
				if i%20 != 19 {
					continue
				}
				assert.Equal(t, float64(i+1)/2, massOf(kept(t, st, q, "arm")))
				if _, ok := pooling.(strategy.Copy); !ok {
					continue
				}
				for _, l := range []*strategy.Learner{l, newLearner(t, cfg)} {
					var level evidence.Beta
					for _, b := range beliefs(t, l, strategy.Query{Item: "new"}) {
						level.Alpha += b.Level.Alpha - 1
						level.Beta += b.Level.Beta - 1
					}
					assert.InDelta(t, float64(i+1)/2, level.Alpha+level.Beta, 1e-9, "in the segment")
				}
			}
			for item, mass := range own {
				q.Item = item
				var given, believed float64
				for _, p := range kept(t, st, q, "given") {
					if p.Cell.Item == item {
						given += p.Tally.Mass
					}
				}
				for _, b := range beliefs(t, l, q) {
					believed += b.Level.Alpha + b.Level.Beta - 2
				}
				if _, ok := pooling.(strategy.Copy); ok {
					assert.Positive(t, given)
					assert.InDelta(t, mass+given, believed, 1e-9, "of %s", item)
				} else {
					assert.InDelta(t, mass/0.5, believed, 1e-9, "one outcome is one observation")
				}
			}
		})
	}
}

// An outcome's id may be so long that the id of its evidence just fits into a text.
func TestTheLongestIDOfAnOutcome(t *testing.T) {
	l := newLearner(t, strategy.Config{Name: "name"})
	most := evidence.MaxText - len("name:") - 36 - len(":")
	for n, fits := range map[int]bool{most: true, most + 1: false} {
		_, err := l.Observe(ctx, strategy.Outcome{Choice: choose(t, l, strategy.Query{}), Value: 1,
			Confidence: 1, ID: strings.Repeat("x", n)})
		if fits {
			require.NoError(t, err)
			continue
		}
		fault := (*heed.InputError)(nil)
		require.ErrorAs(t, err, &fault)
		assert.Equal(t, "ID", fault.Field)
		assert.Equal(t, "is 1025 bytes long with the choice's, may be 1024", fault.Reason)
	}
}

// A choice whose record can't be read has no outcome until then, because the record may have it.
func TestADamagedRecordTakesNoOutcome(t *testing.T) {
	cfg := withFixtures(t, strategy.Config{})
	l, q := newLearner(t, cfg), strategy.Query{Item: "i"}
	c := throughJSON(t, choose(t, l, q))
	id := c.ID.String()
	_, err := cfg.Store.Commit(ctx, store.Batch{Records: []store.Record{{
		Ref: store.Ref{Kind: "strategy.answer", ID: id}, Revision: revisionOf(t, cfg.Store, id),
		At: start, Body: store.Raw([]byte(`{"id": 5}`)),
	}}})
	require.NoError(t, err)
	_, err = l.Observe(ctx, strategy.Outcome{Choice: c, Value: 1, Confidence: 1})
	require.ErrorIs(t, err, heed.ErrDamaged)
	require.ErrorIs(t, l.Retract(ctx, c, []string{""}, "", ""), heed.ErrDamaged)
	assert.Empty(t, everything(t, cfg.Store, q))
}

// What can't be an outcome is refused within a step, too, and the step decides what follows.
func TestAStepRefusesWhatIsNotValid(t *testing.T) {
	l := newLearner(t, strategy.Config{})
	c := choose(t, l, strategy.Query{})
	require.NoError(t, store.Do(ctx, l.Config().Store, func(tx *store.Tx) error {
		did, err := l.ObserveIn(tx, strategy.Outcome{Choice: c, Value: 2, Confidence: 1})
		assertInputError(t, err, "Value")
		assert.Nil(t, did)
		return nil
	}))
	assert.Equal(t, strategy.Pending, record(t, l, c.ID).Stage)
}

// If the sources of a cell can't be read, an outcome does not count, because its source may have to
// share a place there.
func TestAnOutcomeNeedsTheSourcesOfItsCells(t *testing.T) {
	st := &faulty{Store: newStore(t, (&clock{}).Now)}
	c := choose(t, newLearner(t, strategy.Config{Store: st}), strategy.Query{Item: "i"})
	l := newLearner(t, strategy.Config{Store: st}) // which has not seen the cells
	st.read.Store(&errStore)
	o := strategy.Outcome{Choice: c, Value: 1, Confidence: 1, Source: "ann"}
	_, err := l.Observe(ctx, o)
	require.ErrorIs(t, err, errStore)
	st.read.Store(nil)
	require.Equal(t, strategy.Pending, record(t, l, c.ID).Stage)
	did, err := l.Observe(ctx, o)
	require.NoError(t, err)
	assert.Equal(t, strategy.Applied, did)
}

// An outcome that was counted before keeps none of the others in a step from being learned.
func TestADuplicateAmongOutcomes(t *testing.T) {
	cfg := withFixtures(t, strategy.Config{Unrecorded: true})
	l, q := newLearner(t, cfg), strategy.Query{Item: "i", Arms: []strategy.ArmID{"a"}}
	all := make([]strategy.Outcome, 3)
	for i := range all {
		all[i] = strategy.Outcome{Choice: choose(t, l, q), Value: 1, Confidence: 1}
	}
	credit(t, l, all[0].Choice, 1)
	did, err := l.ObserveAll(ctx, all, "", "")
	require.NoError(t, err)
	assert.Equal(t, []strategy.Disposition{
		strategy.Duplicate, strategy.Applied, strategy.Applied,
	}, did)
	assert.InDeltaSlice(t, means(t, newLearner(t, cfg), q), means(t, l, q), 1e-9)
}

// The records and cells of several outcomes are read together.
func TestOutcomesAreReadTogether(t *testing.T) {
	cfg := withFixtures(t, strategy.Config{})
	l := newLearner(t, cfg)
	var all []strategy.Outcome
	for n := range 5 {
		q := strategy.Query{Session: fmt.Sprint(n % 2), Item: fmt.Sprint(n)}
		all = append(all, strategy.Outcome{
			Choice: throughJSON(t, choose(t, l, q)), Value: 1, Confidence: 1, Source: "ann",
		})
	}
	st := &storetest.Failing{Store: cfg.Store}
	cfg.Store = st
	l = newLearner(t, cfg)
	st.Fail(0, false)
	_, err := l.ObserveAll(ctx, all, "once", "1")
	require.NoError(t, err)
	assert.Equal(t, []int{1, 1}, []int{st.Calls("Read"), st.Calls("Commit")})
}

// Outcomes that are refused end no session.
func TestRefusedOutcomesEndNoSession(t *testing.T) {
	for _, unrecorded := range []bool{false, true} {
		l := newLearner(t, strategy.Config{Unrecorded: unrecorded})
		q := strategy.Query{Session: "s", Item: "i"}
		c := choose(t, l, q)
		_, err := l.ObserveAll(ctx, []strategy.Outcome{{Choice: c, Value: 2, Confidence: 1}}, "e", "s")
		assertInputError(t, err, "Value")
		assert.Equal(t, 1, l.Remembered())
		_, err = l.ObserveAll(ctx, []strategy.Outcome{{Choice: c, Value: 1, Confidence: 1}}, "", "")
		require.NoError(t, err)
		assert.Equal(t, c.ID, choose(t, l, q).ID)
		_, err = l.ObserveAll(ctx, []strategy.Outcome{{Choice: c, Confidence: 1}}, "e", "s")
		require.NoError(t, err)
		assert.NotEqual(t, c.ID, choose(t, l, q).ID, "others end it")
	}
}

// The error of each method shows the method.
func TestErrorsShowTheirMethod(t *testing.T) {
	st := &storetest.Failing{Store: newStore(t, (&clock{}).Now)}
	l := newLearner(t, strategy.Config{Store: st, Silence: strategy.Silence{After: 1}})
	c := throughJSON(t, choose(t, l, strategy.Query{Session: "s", Item: "i"}))
	credit(t, l, c, 1)
	q, o := strategy.Query{Item: "j"}, strategy.Outcome{Choice: c, ID: "x", Value: 1, Confidence: 1}
	for doing, call := range map[string]func() error{
		"select: the default arm, because": func() error {
			_, err := l.Select(ctx, q)
			return err
		},
		"record": func() error {
			_, err := l.Record(ctx, q, "a", 0)
			return err
		},
		"observe": func() error { _, err := l.Observe(ctx, o); return err },
		"retract": func() error { return l.Retract(ctx, c, []string{""}, "", "") },
		"revise": func() error {
			_, err := l.Revise(ctx, []string{""}, []strategy.Outcome{o}, "")
			return err
		},
		"reset":         func() error { return l.Reset(ctx, strategy.Reset{Reason: "r"}) },
		"end session":   func() error { return l.EndSession(ctx, "s") },
		"refresh":       func() error { return l.Refresh(ctx) },
		"beliefs":       func() error { _, err := l.Beliefs(ctx, q); return err },
		"sweep":         func() error { return l.Sweep(ctx, time.Time{}) },
		"find":          func() error { _, err := l.Find(ctx, "s", "i", time.Time{}); return err },
		"find session":  func() error { _, err := l.FindSession(ctx, "s", time.Time{}); return err },
		"distributions": func() error { _, err := distribution(l, "", ""); return err },
		"history":       func() error { _, err := outcomes(l, q, 1); return err },
		"open: strategy/strategy": func() error {
			_, err := strategy.Open(ctx, l.Config())
			return err
		},
		"rebuild": func() error {
			_, err := strategy.Rebuild(ctx, l.Config(), "", "")
			return err
		},
	} {
		st.SetAway(true)
		err := call()
		require.ErrorIs(t, err, storetest.ErrFailed)
		assert.Equal(t, "strategy: "+doing, strings.TrimRight(strings.TrimSuffix(err.Error(),
			storetest.ErrFailed.Error()), ": "))
	}
}

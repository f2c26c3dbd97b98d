package best_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/best"
)

var ctx = context.Background()

// A bench is a learner's world: its store, its clock, and the true rates of its arms.
type bench struct {
	t     *testing.T
	now   time.Time
	store *memstore.Store
	rates map[strategy.ArmID]float64
	luck  *rand.Rand

	learner *strategy.Learner // of the last race
}

func newBench(t *testing.T, rates map[strategy.ArmID]float64) *bench {
	b := &bench{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), rates: rates,
		luck: rand.New(rand.NewPCG(3, 4))}
	var err error
	b.store, err = memstore.New(memstore.Config{Now: b.clock})
	require.NoError(t, err)
	return b
}

func (b *bench) clock() time.Time { return b.now }

// race returns a race over a new learner of the store, as a process has it that starts.
func (b *bench) race(cfg best.Config, of strategy.Config) *best.Race {
	of.Store, of.Now, of.Seed = b.store, b.clock, rand.NewPCG(1, 2)
	if of.Arms == nil {
		of.Arms = []strategy.Arm{{ID: "a"}, {ID: "b"}}
	}
	of.Pooling = strategy.Alone{}
	learner, err := strategy.New(ctx, of)
	require.NoError(b.t, err)
	cfg.Learner = learner
	r, err := best.New(ctx, cfg)
	require.NoError(b.t, err)
	b.learner = learner
	return r
}

// play has a race choose n times, and tells its learner what came of it. It returns how often each
// arm was chosen.
func (b *bench) play(r *best.Race, n int) map[strategy.ArmID]int {
	counts := make(map[strategy.ArmID]int)
	for range n {
		b.now = b.now.Add(time.Second)
		c, err := r.Select(ctx, strategy.Query{Category: "triage"})
		require.NoError(b.t, err)
		counts[c.Arm]++
		b.credit(c)
	}
	return counts
}

func (b *bench) credit(c strategy.Choice) {
	value := -1.
	if b.luck.Float64() < b.rates[c.Arm] {
		value = 1
	}
	_, err := b.learner.Observe(ctx, strategy.Outcome{Choice: c, Value: value, Confidence: 1})
	require.NoError(b.t, err)
}

func (b *bench) report(r *best.Race) best.Standing {
	report, err := r.Standing(ctx, strategy.Query{Category: "triage"})
	require.NoError(b.t, err)
	return report
}

// actions returns what the audit says was done.
func (b *bench) actions() (all []string) {
	for e, err := range store.AuditEntries(ctx, b.store, store.Query{}) {
		require.NoError(b.t, err)
		all = append(all, e.Action)
	}
	return all
}

// TestTheWinnerIsUsed, also after a restart, and the report says it in words.
func TestTheWinnerIsUsed(t *testing.T) {
	b := newBench(t, map[strategy.ArmID]float64{"a": 0.3, "b": 0.8})
	r := b.race(best.Config{}, strategy.Config{})
	open := b.report(r)
	assert.Equal(t, "undecided after 0 outcomes, because an arm has fewer than 5", open.String())
	assert.Equal(t, []best.Contestant{{Arm: "a"}, {Arm: "b"}}, zeroMeans(open.Arms))
	for least := uint64(0); least < 5; {
		open = b.report(r)
		assert.Empty(t, open.Leader, "with one arm of %d outcomes", least)
		b.play(r, 1)
		open = b.report(r)
		least = min(open.Arms[0].Outcomes, open.Arms[1].Outcomes)
	}
	assert.NotEmpty(t, open.Leader)
	assert.Regexp(t, `^no winner after \d+ outcomes; b leads; a is at most \d\.\d\d worse and \d\.\d\d better$`, open.String())
	b.play(r, 300)
	report := b.report(r)
	require.True(t, report.Ended)
	assert.Equal(t, strategy.ArmID("b"), report.Leader)
	assert.Less(t, report.Needed, uint64(200))
	assert.Regexp(t, `^b is best, with an error of at most 5 %, after \d+ outcomes; a is worse by 0\.\d\d to 0\.\d\d$`, report.String())
	assert.LessOrEqual(t, report.Arms[0].Low, 0.5)
	assert.GreaterOrEqual(t, report.Arms[0].High, 0.5)
	assert.Equal(t, map[strategy.ArmID]int{"b": 100}, b.play(r, 100))
	assert.Contains(t, b.actions(), "strategy.winner")

	again := b.race(best.Config{}, strategy.Config{})
	assert.Equal(t, map[strategy.ArmID]int{"b": 50}, b.play(again, 50), "the store knows the winner")
	assert.Equal(t, report.Needed, b.report(again).Needed)
}

func zeroMeans(all []best.Contestant) []best.Contestant {
	for i := range all {
		all[i].Mean = 0
	}
	return all
}

// TestAShareGoesOnExploring with the propensity that it has.
func TestAShareGoesOnExploring(t *testing.T) {
	b := newBench(t, map[strategy.ArmID]float64{"a": 0.2, "b": 0.9, "c": 0.2})
	r := b.race(best.Config{Explore: 0.2}, strategy.Config{Arms: []strategy.Arm{{ID: "a"}, {ID: "b"},
		{ID: "c"}}})
	b.play(r, 300)
	require.True(t, b.report(r).Ended)
	counts := b.play(r, 1000)
	assert.InDelta(t, 800, counts["b"], 50)
	assert.InDelta(t, 100, counts["a"], 40)
	one, err := r.Select(ctx, strategy.Query{Category: "triage", Arms: []strategy.ArmID{"b"}})
	require.NoError(t, err)
	assert.InDelta(t, 1, one.Propensity(), 0)
	for _, arms := range [][]strategy.ArmID{{"b", "c"}, {"c", "b"}} {
		c, err := r.Select(ctx, strategy.Query{Category: "triage", Arms: arms})
		require.NoError(t, err)
		assert.InDelta(t, map[strategy.ArmID]float64{"b": 0.8, "c": 0.2}[c.Arm], c.Propensity(), 1e-9)
	}
}

// The permitted arms are raced among themselves while the race is open, and where the winner is
// not one of them. Of two, top-two sampling takes each as often.
func TestSomeArmsRaceAmongThemselves(t *testing.T) {
	b := newBench(t, map[strategy.ArmID]float64{"a": 0.1, "b": 0.6, "c": 0.9})
	r := b.race(best.Config{}, strategy.Config{Arms: []strategy.Arm{{ID: "a"}, {ID: "b"}, {ID: "c"}}})
	for _, ended := range []bool{false, true} {
		b.play(r, map[bool]int{false: 60, true: 400}[ended])
		require.Equal(t, ended, b.report(r).Ended)
		for _, seed := range []string{"1", "2", "3"} { // so that both are drawn
			c, err := r.Select(ctx, strategy.Query{Category: "triage", Session: seed,
				Arms: []strategy.ArmID{"a", "b"}})
			require.NoError(t, err)
			assert.InDelta(t, 0.5, c.Propensity(), 1e-9)
			assert.NotEqual(t, strategy.ArmID("c"), c.Arm)
		}
	}
}

// TestTwoProcesses race on one store, with outcomes that come late or never.
func TestTwoProcesses(t *testing.T) {
	b := newBench(t, map[strategy.ArmID]float64{"a": 0.8, "b": 0.3})
	one, two := b.race(best.Config{}, strategy.Config{}), b.race(best.Config{}, strategy.Config{})
	var waiting []strategy.Choice
	for n := range 400 {
		b.now = b.now.Add(time.Second)
		r := one
		if n%2 == 1 {
			r = two
		}
		c, err := r.Select(ctx, strategy.Query{Category: "triage"})
		require.NoError(t, err)
		if n%5 != 0 { // the others stay without an outcome
			waiting = append(waiting, c)
		}
		if len(waiting) > 20 {
			b.credit(waiting[0])
			waiting = waiting[1:]
		}
	}
	first, second := b.report(one), b.report(two)
	require.True(t, first.Ended)
	assert.Equal(t, first, second)
	assert.Equal(t, strategy.ArmID("a"), first.Leader)
}

// TestAChangeOpensTheRaceAnew, and another arm wins it.
func TestAChangeOpensTheRaceAnew(t *testing.T) {
	b := newBench(t, map[strategy.ArmID]float64{"a": 0.9, "b": 0.5})
	r := b.race(best.Config{}, strategy.Config{})
	b.play(r, 400)
	require.Equal(t, strategy.ArmID("a"), b.report(r).Leader)
	require.True(t, b.report(r).Ended)
	b.rates["a"] = 0.05
	b.play(r, 400)
	report := b.report(r)
	assert.True(t, report.Ended)
	assert.Equal(t, strategy.ArmID("b"), report.Leader)
	assert.Contains(t, b.actions(), "strategy.reopen")
}

// The winner was not compared with it.
func TestAnotherArmOpensTheRaceAnew(t *testing.T) {
	b := newBench(t, map[strategy.ArmID]float64{"a": 0.2, "b": 0.7, "c": 0.99})
	r := b.race(best.Config{}, strategy.Config{})
	b.play(r, 200)
	require.True(t, b.report(r).Ended)
	r = b.race(best.Config{}, strategy.Config{Arms: []strategy.Arm{{ID: "a"}, {ID: "b"}, {ID: "c"}}})
	assert.False(t, b.report(r).Ended)
	b.play(r, 600)
	assert.Equal(t, strategy.ArmID("c"), b.report(r).Leader)
	assert.True(t, b.report(r).Ended)
}

// A reset segment begins again.
func TestForgottenEvidenceOpensTheRace(t *testing.T) {
	b := newBench(t, map[strategy.ArmID]float64{"a": 0.2, "b": 0.9})
	r := b.race(best.Config{}, strategy.Config{})
	b.play(r, 200)
	require.True(t, b.report(r).Ended)
	needed := b.report(r).Needed
	require.NoError(t, b.learner.Reset(ctx, strategy.Reset{Category: "triage", Actor: "kim",
		Reason: "a new model"}))
	report := b.report(r)
	assert.False(t, report.Ended)
	assert.Zero(t, report.Needed)
	b.now = b.now.Add(time.Second)
	b.report(r)
	reasons := map[string]int{}
	for e, err := range store.AuditEntries(ctx, b.store, store.Query{}) {
		require.NoError(t, err)
		reasons[e.Reason]++
	}
	assert.Equal(t, map[string]int{"a new model": 1, "the evidence for b no longer suffices": 1,
		fmt.Sprintf("b is best, with an error of at most 0.05, after %d outcomes", needed): 1}, reasons)
}

// A race of other arms begins again, although they are as many.
func TestAnArmInThePlaceOfAnotherOpensTheRace(t *testing.T) {
	b := newBench(t, map[strategy.ArmID]float64{"a": 0.2, "b": 0.9})
	r := b.race(best.Config{}, strategy.Config{})
	b.play(r, 200)
	require.True(t, b.report(r).Ended)
	r = b.race(best.Config{}, strategy.Config{Arms: []strategy.Arm{{ID: "c"}, {ID: "b"}}})
	for n := range 200 { // more than the other had, and as good as the winner
		c, err := b.learner.Record(ctx, strategy.Query{Category: "triage"}, "c", 0.5)
		require.NoError(t, err)
		b.tell(c, map[bool]float64{true: -1, false: 1}[n%10 == 0])
	}
	assert.False(t, b.report(r).Ended)
}

// The reset of an item opens its race, and no other one.
func TestAResetOfAnItemOpensItsRace(t *testing.T) {
	b := newBench(t, map[strategy.ArmID]float64{"a": 1, "b": 0})
	r := b.race(best.Config{}, strategy.Config{})
	ended := func(item string) bool {
		s, err := r.Standing(ctx, strategy.Query{Item: item})
		require.NoError(t, err)
		return s.Ended
	}
	for _, item := range []string{"i", "j"} {
		for range 40 {
			c, err := r.Select(ctx, strategy.Query{Item: item})
			require.NoError(t, err)
			b.credit(c)
		}
		require.True(t, ended(item))
	}
	require.NoError(t, b.learner.Reset(ctx, strategy.Reset{Item: "i", Actor: "kim", Reason: "x"}))
	for n := range 160 { // as many late ones, half of either arm's good
		c, err := b.learner.Record(ctx, strategy.Query{Item: "i"}, []strategy.ArmID{"a", "b"}[n%2], 0.5)
		require.NoError(t, err)
		b.tell(c, float64(1-n/2%2*2))
	}
	assert.False(t, ended("i"))
	assert.True(t, ended("j"))
}

// What the outcomes show changes the shares, before the race ends.
func TestSharesFollowTheOutcomes(t *testing.T) {
	b := newBench(t, map[strategy.ArmID]float64{"a": 0.05, "b": 0.9, "c": 0.9})
	r := b.race(best.Config{}, strategy.Config{Arms: []strategy.Arm{{ID: "a"}, {ID: "b"}, {ID: "c"}}})
	b.play(r, 60)
	assert.Less(t, b.play(r, 60)["a"], 6, "a third without outcomes")
	assert.False(t, b.report(r).Ended)
}

func TestItemsRaceByThemselves(t *testing.T) {
	b := newBench(t, map[strategy.ArmID]float64{"a": 1, "b": 0})
	r := b.race(best.Config{}, strategy.Config{})
	for range 80 {
		c, err := r.Select(ctx, strategy.Query{Item: "i", Session: b.now.String()})
		require.NoError(t, err)
		again, err := r.Select(ctx, strategy.Query{Item: "i", Session: b.now.String()})
		require.NoError(t, err)
		assert.Equal(t, c.ID, again.ID, "a session keeps its arm")
		b.credit(c)
		b.now = b.now.Add(time.Minute)
	}
	for item, ended := range map[string]bool{"i": true, "j": false} {
		report, err := r.Standing(ctx, strategy.Query{Item: item})
		require.NoError(t, err)
		assert.Equal(t, ended, report.Ended, item)
	}
}

func TestConfigurationsThatAreNone(t *testing.T) {
	b := newBench(t, nil)
	b.race(best.Config{}, strategy.Config{})
	good := b.learner
	fading, err := strategy.New(ctx, strategy.Config{Store: &memstore.Store{},
		Arms: good.Config().Arms, HalfLife: time.Hour})
	require.NoError(t, err)
	curious, err := strategy.New(ctx, strategy.Config{Store: &memstore.Store{},
		Arms: good.Config().Arms, Exploration: strategy.Exploration{Bonus: 0.1}})
	require.NoError(t, err)
	for field, cfg := range map[string]best.Config{
		"Learner": {}, "Learner.HalfLife": {Learner: fading}, "Learner.Exploration": {Learner: curious},
		"Error":   {Learner: good, Error: 0.5},
		"Explore": {Learner: good, Explore: 0.6},
	} {
		_, err := best.New(ctx, cfg)
		var fault *heed.ConfigError
		require.ErrorAs(t, err, &fault, field)
		assert.Equal(t, field, fault.Field)
	}
	_, err = best.New(ctx, best.Config{Learner: good, Explore: 0.5})
	require.NoError(t, err, "half is the most")
	for field, cfg := range map[string]best.Config{
		"Error": {Learner: good, Error: -0.01}, "Explore": {Learner: good, Explore: -0.01},
	} {
		_, err := best.New(ctx, cfg)
		var fault *heed.ConfigError
		require.ErrorAs(t, err, &fault, field)
		assert.Equal(t, field, fault.Field)
	}
}

// broken is a store whose reads fail.
type broken struct {
	*memstore.Store
	fails bool
}

var errBroken = errors.New("the store is away")

func (b *broken) Read(ctx context.Context, into *store.Snapshot, cells []evidence.Cell,
	refs []store.Ref, finds ...store.Query) error {
	if b.fails {
		return errBroken
	}
	return b.Store.Read(ctx, into, cells, refs, finds...)
}

// TestARaceExploresFirst as its learner's Exploration says, and then by top-two sampling.
func TestARaceExploresFirst(t *testing.T) {
	b := newBench(t, map[strategy.ArmID]float64{"a": 0.1, "b": 0.9, "c": 0.1})
	r := b.race(best.Config{}, strategy.Config{
		Arms:        []strategy.Arm{{ID: "a"}, {ID: "b"}, {ID: "c"}},
		Exploration: strategy.Exploration{Bonus: 1, MinSamples: 8},
	})
	assert.Equal(t, map[strategy.ArmID]int{"a": 8, "b": 8, "c": 8}, b.play(r, 24))
	assert.Greater(t, b.play(r, 30)["b"], 10)
}

// TestWithoutTheStore the default arm is chosen, and the error says why.
func TestWithoutTheStore(t *testing.T) {
	st := &broken{Store: &memstore.Store{}}
	learner, err := strategy.New(ctx, strategy.Config{Store: st,
		Arms: []strategy.Arm{{ID: "a"}, {ID: "b"}}})
	require.NoError(t, err)
	r, err := best.New(ctx, best.Config{Learner: learner})
	require.NoError(t, err)
	st.fails = true
	c, err := r.Select(ctx, strategy.Query{})
	require.ErrorIs(t, err, errBroken)
	assert.Equal(t, strategy.ArmID("a"), c.Arm)
	_, err = r.Standing(ctx, strategy.Query{})
	require.ErrorIs(t, err, errBroken)
	require.ErrorContains(t, err, "best: ")
	st.fails = false
	_, err = r.Select(ctx, strategy.Query{Arms: []strategy.ArmID{"x"}})
	var fault *heed.InputError
	assert.ErrorAs(t, err, &fault)
}

// ended plays a race over a and b, where a always succeeds and b never, until it is over. It
// returns the choices of a.
func (b *bench) ended(r *best.Race) (mine []strategy.Choice) {
	for range 60 {
		b.now = b.now.Add(time.Second)
		c, err := r.Select(ctx, strategy.Query{Category: "triage"})
		require.NoError(b.t, err)
		b.tell(c, map[strategy.ArmID]float64{"a": 1, "b": -1}[c.Arm])
		if c.Arm == "a" {
			mine = append(mine, c)
		}
	}
	require.Equal(b.t, strategy.ArmID("a"), b.report(r).Leader)
	require.True(b.t, b.report(r).Ended)
	return mine
}

func (b *bench) tell(c strategy.Choice, value float64) {
	_, err := b.learner.Observe(ctx, strategy.Outcome{Choice: c, ID: "first", Value: value,
		Confidence: 1})
	require.NoError(b.t, err)
}

// A correction turns outcomes against the winner, and their number stays.
func TestACorrectionOpensTheRace(t *testing.T) {
	b := newBench(t, nil)
	r := b.race(best.Config{}, strategy.Config{})
	for _, c := range b.ended(r) {
		_, err := b.learner.Revise(ctx, []string{"first"},
			[]strategy.Outcome{{Choice: c, ID: "second", Value: -1, Confidence: 1}}, "kim")
		require.NoError(t, err)
	}
	assert.False(t, b.report(r).Ended)
	assert.Positive(t, b.play(r, 60)["b"])
	assert.Contains(t, b.actions(), "strategy.reopen")
}

// TestAResetOpensTheRace, also where as many late outcomes came before anybody looked.
func TestAResetOpensTheRace(t *testing.T) {
	b := newBench(t, nil)
	r := b.race(best.Config{}, strategy.Config{})
	b.ended(r)
	var late []strategy.Choice
	for n := range 120 {
		c, err := b.learner.Record(ctx, strategy.Query{Category: "triage"},
			[]strategy.ArmID{"a", "b"}[n%2], 0.5)
		require.NoError(t, err)
		late = append(late, c)
	}
	require.NoError(t, b.learner.Reset(ctx, strategy.Reset{Category: "triage", Actor: "kim",
		Reason: "a new model"}))
	for n, c := range late {
		b.tell(c, float64(1-n/2%2*2)) // half of either arm's are good
	}
	assert.False(t, b.report(r).Ended)
}

// Outcomes after the end show that another arm is better.
func TestARefutedWinnerIsNone(t *testing.T) {
	b := newBench(t, nil)
	r := b.race(best.Config{}, strategy.Config{IgnoreChanges: true})
	b.ended(r)
	for range 300 {
		for arm, value := range map[strategy.ArmID]float64{"a": -1, "b": 1} {
			c, err := b.learner.Record(ctx, strategy.Query{Category: "triage"}, arm, 0.5)
			require.NoError(t, err)
			b.tell(c, value)
		}
	}
	report := b.report(r)
	assert.True(t, report.Ended)
	assert.Equal(t, strategy.ArmID("b"), report.Leader)
}

// The counted mass of twelve people no longer grows, but its mean still changes.
func TestARaceLooksAgainWhereSourcesAreLimited(t *testing.T) {
	b := newBench(t, nil)
	r := b.race(best.Config{}, strategy.Config{})
	last := 0
	for n := range 1300 {
		b.now = b.now.Add(time.Minute)
		c, err := r.Select(ctx, strategy.Query{Category: "triage"})
		require.NoError(t, err)
		value := 1.
		if n < 240 && b.luck.Float64() < 0.5 || n >= 240 && c.Arm == "a" {
			value = -1
		}
		if n >= 1200 && c.Arm == "b" {
			last++
		}
		_, err = b.learner.Observe(ctx, strategy.Outcome{Choice: c, Value: value, Confidence: 1,
			Source: fmt.Sprint(n % 12)})
		require.NoError(t, err)
	}
	assert.True(t, b.report(r).Ended)
	assert.Equal(t, 100, last)
}

// An end counts for a stricter process when that one has enough, and then for all.
func TestOtherSettingsJudge(t *testing.T) {
	b := newBench(t, map[strategy.ArmID]float64{"a": 1})
	strict := b.race(best.Config{Error: 1e-9}, strategy.Config{})
	other := b.race(best.Config{Error: 0.04}, strategy.Config{})
	r := b.race(best.Config{}, strategy.Config{})
	for !b.report(r).Ended {
		b.play(r, 1)
	}
	first := b.report(r)
	assert.False(t, b.report(strict).Ended, "it wants more")
	for range 100 {
		for _, race := range []*best.Race{r, other, strict} {
			b.play(race, 1)
		}
	}
	last := b.report(strict)
	assert.True(t, last.Ended)
	assert.Greater(t, last.Needed, first.Needed)
	for _, race := range []*best.Race{r, other} {
		report := b.report(race)
		assert.True(t, report.Ended)
		assert.Equal(t, last.Needed, report.Needed)
	}
	assert.LessOrEqual(t, len(b.actions()), 3)
	assert.NotContains(t, b.actions(), "strategy.reopen")
}

// TestARaceInSteps ends in the step that has enough, as a part of its commit, and not while it is
// frozen.
func TestARaceInSteps(t *testing.T) {
	b := newBench(t, map[strategy.ArmID]float64{"a": 0.2, "b": 0.9})
	r := b.race(best.Config{}, strategy.Config{})
	q := strategy.Query{Category: "triage"}
	in := func(q strategy.Query, fail error) (c strategy.Choice) {
		err := store.Do(ctx, b.store, func(tx *store.Tx) (err error) {
			tx.Want(r.Wants(q))
			if c, err = r.SelectIn(tx, q); err != nil {
				return err
			}
			return fail
		})
		require.ErrorIs(t, err, fail)
		return c
	}
	ended := func() bool { return slices.Contains(b.actions(), "strategy.winner") }
	for range 400 { // far more than it takes
		b.now = b.now.Add(time.Second)
		frozen := q
		frozen.Frozen = true
		b.credit(in(frozen, nil))
	}
	require.False(t, ended(), "it is frozen")
	failure := errors.New("no")
	in(q, failure)
	require.False(t, ended(), "the step has failed")
	in(q, nil)
	require.True(t, ended())
	last := in(q, nil)
	assert.Equal(t, strategy.ArmID("b"), last.Arm)
	assert.InDelta(t, 1, last.Propensity(), 0)
}

// In a step as well, a caller's shares go before the race's, and the store's error is returned.
func TestAStepWithOtherShares(t *testing.T) {
	b := newBench(t, map[strategy.ArmID]float64{"a": 0.2, "b": 0.9})
	learner, st := b.failing()
	r, err := best.New(ctx, best.Config{Learner: learner})
	require.NoError(t, err)
	in := func(q strategy.Query) (c strategy.Choice, err error) {
		err = store.Do(ctx, st, func(tx *store.Tx) (err error) {
			c, err = r.SelectIn(tx, q)
			return err
		})
		return c, err
	}
	for _, arm := range []strategy.ArmID{"a", "b"} {
		q := strategy.Query{Category: "triage", Shares: []float64{0, 1}}
		if arm == "a" {
			q.Shares = []float64{1, 0}
		}
		for range 5 {
			c, err := in(q)
			require.NoError(t, err)
			require.Equal(t, arm, c.Arm)
		}
	}
	st.SetAway(true)
	_, err = in(strategy.Query{Category: "triage"})
	require.ErrorIs(t, err, storetest.ErrFailed)
}

// failing returns a learner over the store of a bench, with calls that can fail.
func (b *bench) failing() (*strategy.Learner, *storetest.Failing) {
	st := &storetest.Failing{Store: b.store}
	learner, err := strategy.New(ctx, strategy.Config{Store: st, Now: b.clock,
		Arms: []strategy.Arm{{ID: "a"}, {ID: "b"}}, Pooling: strategy.Alone{}})
	require.NoError(b.t, err)
	return learner, st
}

// Whichever call of the store fails, no race seems open that has ended.
func TestFailuresHideNoWinner(t *testing.T) {
	b := newBench(t, nil)
	b.ended(b.race(best.Config{}, strategy.Config{}))
	learner, st := b.failing()
	r, err := best.New(ctx, best.Config{Learner: learner})
	require.NoError(t, err)
	for at := 1; ; at++ {
		st.Fail(at, false)
		standing, err := r.Standing(ctx, strategy.Query{Category: "triage"})
		if !st.Failed() {
			require.NoError(t, err)
			assert.True(t, standing.Ended)
			break
		}
		assert.Error(t, err, "call %d", at)
	}
	b.rewrite(`{"id":1}`)
	_, err = r.Standing(ctx, strategy.Query{Category: "triage"})
	require.Error(t, err)
}

// rewrite gives the record of the end of a race another body.
func (b *bench) rewrite(body string) {
	for record, err := range b.store.Find(ctx, store.Query{Kind: "strategy.winner"}) {
		require.NoError(b.t, err)
		record.Body = store.Raw([]byte(body))
		_, err = b.store.Commit(ctx, store.Batch{Records: []store.Record{record}})
		require.NoError(b.t, err)
	}
}

// While the end of a race can't be read, the learner chooses by itself, and reports why. A caller's
// shares need no race.
func TestADamagedEndLeavesTheChoiceToTheLearner(t *testing.T) {
	b := newBench(t, nil)
	r := b.race(best.Config{}, strategy.Config{})
	b.ended(r)
	b.rewrite(`{"id":1}`)
	q := strategy.Query{Category: "triage", Frozen: true}
	own, err := b.learner.Select(ctx, q)
	require.NoError(t, err)
	in := func(q strategy.Query) (c strategy.Choice, err error) {
		require.NoError(t, store.Do(ctx, b.store, func(tx *store.Tx) error {
			c, err = r.SelectIn(tx, q)
			return nil
		}))
		return c, err
	}
	for _, choose := range []func(strategy.Query) (strategy.Choice, error){in,
		func(q strategy.Query) (strategy.Choice, error) { return r.Select(ctx, q) }} {
		c, err := choose(q)
		require.ErrorIs(t, err, heed.ErrDamaged)
		assert.InDelta(t, own.Propensity(), c.Propensity(), 0.1, "and not 0.5")
		_, err = choose(strategy.Query{Category: "triage", Arms: []strategy.ArmID{"b"},
			Shares: []float64{1}})
		require.NoError(t, err)
	}
	_, err = r.Standing(ctx, q)
	require.ErrorIs(t, err, heed.ErrDamaged)
}

// An end with an arm that is none of its arms is none, and neither ends nor breaks the race.
func TestAnEndOfNoArm(t *testing.T) {
	b := newBench(t, nil)
	r := b.race(best.Config{}, strategy.Config{})
	b.ended(r)
	q := strategy.Query{Category: "triage", Frozen: true}
	for record, err := range b.store.Find(ctx, store.Query{Kind: "strategy.winner"}) {
		require.NoError(t, err)
		body, err := store.Decode[json.RawMessage](record.Body)
		require.NoError(t, err)
		require.Contains(t, string(body), `"arm":"a"`)
		b.rewrite(strings.Replace(string(body), `"arm":"a"`, `"arm":"x"`, 1))
	}
	s, err := r.Standing(ctx, q)
	require.NoError(t, err)
	assert.False(t, s.Ended)
}

// A race of one arm ends at the first look, and only once, but not if it could not be read.
func TestARaceOfOneArm(t *testing.T) {
	b := newBench(t, nil)
	st := &storetest.Failing{Store: b.store}
	learner, err := strategy.New(ctx, strategy.Config{Store: st, Now: b.clock,
		Arms: []strategy.Arm{{ID: "a"}}})
	require.NoError(t, err)
	r, err := best.New(ctx, best.Config{Learner: learner})
	require.NoError(t, err)
	require.NoError(t, store.Do(ctx, st, func(tx *store.Tx) error {
		st.Fail(1, false)
		_, err := r.SelectIn(tx, strategy.Query{})
		require.ErrorIs(t, err, storetest.ErrFailed)
		return nil
	}))
	assert.Empty(t, b.actions())
	for range 2 {
		b.now = b.now.Add(time.Second)
		assert.True(t, b.report(r).Ended)
	}
	assert.Equal(t, []string{"strategy.winner"}, b.actions())
}

// A learner that is disabled, and a query that has its shares, need no race.
func TestNoRaceIsReadInVain(t *testing.T) {
	st := &broken{Store: &memstore.Store{}}
	learner, err := strategy.New(ctx, strategy.Config{Store: st, Disabled: true,
		Arms: []strategy.Arm{{ID: "a"}, {ID: "b"}}})
	require.NoError(t, err)
	r, err := best.New(ctx, best.Config{Learner: learner})
	require.NoError(t, err)
	st.fails = true
	c, err := r.Select(ctx, strategy.Query{})
	require.NoError(t, err)
	assert.Equal(t, strategy.ArmID("a"), c.Arm)
	require.NoError(t, store.Do(ctx, st, func(tx *store.Tx) error {
		c, err = r.SelectIn(tx, strategy.Query{})
		return err
	}))
	assert.Equal(t, strategy.ArmID("a"), c.Arm)

	b := newBench(t, nil)
	learner, calls := b.failing()
	r, err = best.New(ctx, best.Config{Learner: learner})
	require.NoError(t, err)
	reads := func(q strategy.Query) int {
		before := calls.Calls("Read")
		require.NoError(t, store.Do(ctx, calls, func(tx *store.Tx) error {
			tx.Want(r.Wants(q))
			_, err := r.SelectIn(tx, q)
			return err
		}))
		return calls.Calls("Read") - before
	}
	assert.Equal(t, 1, reads(strategy.Query{}), "all that a step reads is named before")
	shared := strategy.Query{Shares: []float64{0.5, 0.5}}
	assert.Equal(t, learner.Wants(shared), r.Wants(shared))
	assert.Less(t, len(r.Wants(shared).Cells), len(r.Wants(strategy.Query{}).Cells))
}

// Of arms that are equally good until now, the first leads.
func TestTheFirstOfEqualArmsLeads(t *testing.T) {
	b := newBench(t, map[strategy.ArmID]float64{"a": 1, "b": 1})
	r := b.race(best.Config{}, strategy.Config{
		Exploration: strategy.Exploration{Bonus: 1, MinSamples: 5}})
	b.play(r, 10)
	assert.Equal(t, strategy.ArmID("a"), b.report(r).Leader)
}

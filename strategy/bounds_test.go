package strategy_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/internal/winner"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

// The tests in this file try each bound from both sides: the last value that is allowed, and the
// first that is not.

// above and below are the nearest numbers.
func above(x float64) float64 { return math.Nextafter(x, math.Inf(1)) }
func below(x float64) float64 { return math.Nextafter(x, math.Inf(-1)) }

func TestBoundsOfAConfiguration(t *testing.T) {
	type cfg = strategy.Config
	one := func(a strategy.Arm) cfg { return cfg{Arms: []strategy.Arm{a}} }
	value := func(n int) cfg {
		return one(strategy.Arm{ID: "a", Parameters: []strategy.Parameter{{
			Name: "n", Values: []string{strings.Repeat("v", n)},
		}}})
	}
	prior := func(alpha, beta float64) cfg {
		return cfg{Prior: evidence.Beta{Alpha: alpha, Beta: beta}}
	}
	many := func(n int) (c cfg) {
		for i := range n {
			c.Arms = append(c.Arms, strategy.Arm{ID: strategy.ArmID(fmt.Sprint(i))})
		}
		return c
	}
	text := func(n int) string { return strings.Repeat("n", n) }
	for _, test := range []struct {
		field string // of the fault, and empty without one
		cfg   cfg
	}{
		{"", cfg{Name: text(evidence.MaxText - 64)}}, {"Name", cfg{Name: text(evidence.MaxText - 63)}},
		{"", cfg{Answers: text(evidence.MaxText)}},
		{"Answers", cfg{Answers: text(evidence.MaxText + 1)}},
		{"", cfg{Topic: text(evidence.MaxText)}}, {"Topic", cfg{Topic: text(evidence.MaxText + 1)}},
		{"", prior(1e-3, 1e-3)}, {"", prior(1e6, 1e6)},
		{"Prior", prior(below(1e-3), 1)}, {"Prior", prior(1, below(1e-3))},
		{"Prior", prior(above(1e6), 1)}, {"Prior", prior(1, above(1e6))},
		{"", cfg{Exploration: strategy.Exploration{Bonus: 1, MinSamples: 1}}},
		{"Exploration.Bonus", cfg{Exploration: strategy.Exploration{Bonus: above(1)}}},
		{"Exploration.Bonus", cfg{Exploration: strategy.Exploration{Bonus: below(0)}}},
		{"", cfg{MinConfidence: 1}}, {"MinConfidence", cfg{MinConfidence: above(1)}},
		{"", cfg{MinConfidence: above(0)}}, {"MinConfidence", cfg{MinConfidence: below(0)}},
		{"", cfg{Silence: strategy.Silence{Confidence: 1}}},
		{"Silence.Confidence", cfg{Silence: strategy.Silence{Confidence: above(1)}}},
		{"Silence.Confidence", cfg{Silence: strategy.Silence{Confidence: below(0)}}},
		{"", cfg{Silence: strategy.Silence{After: 1}}},
		{"Silence.After", cfg{Silence: strategy.Silence{After: -1}}},
		{"", cfg{Cache: strategy.Cache{TTL: 1, Size: 1}}},
		{"", cfg{Refresh: 1}},
		{"", cfg{HalfLife: time.Minute}}, {"HalfLife", cfg{HalfLife: time.Minute - time.Microsecond}},
		{"", one(strategy.Arm{ID: "a", Weight: 1e-9})}, {"", one(strategy.Arm{ID: "a", Weight: 1e9})},
		{"Arms[0].Weight", one(strategy.Arm{ID: "a", Weight: below(1e-9)})},
		{"Arms[0].Weight", one(strategy.Arm{ID: "a", Weight: above(1e9)})},
		{"Arms[0].Weight", one(strategy.Arm{ID: "a", Weight: below(0)})},
		{"", value(evidence.MaxText - 2)}, // with the name and an equals sign
		{"Arms[0].Parameters[0].Values", value(evidence.MaxText - 1)},
		{"", many(1000)}, {"Arms", many(1001)},
		{"", cfg{Pooling: strategy.Copy{MinConfidence: below(1)}}},
		{"Pooling.MinConfidence", cfg{Pooling: strategy.Copy{MinConfidence: below(0)}}},
		{"Silence", cfg{Silence: strategy.Silence{After: 1}, Unrecorded: true}},
		{"Silence", cfg{Silence: strategy.Silence{Confidence: 1}, Answers: "other"}},
		{"", cfg{Unrecorded: true}}, {"", cfg{Answers: "other"}},
	} {
		_, err := strategy.New(ctx, withFixtures(t, test.cfg))
		if test.field == "" {
			assert.NoError(t, err)
			continue
		}
		assert.Equal(t, []string{test.field}, fields(err), "%.200v", err)
	}
}

// A long value is shown by its first 60 bytes, and never with half of a letter.
func TestALongValueIsShownByItsStart(t *testing.T) {
	shown := func(value string) any {
		_, err := strategy.New(ctx, withFixtures(t, strategy.Config{
			Arms: []strategy.Arm{{ID: "a", Parameters: []strategy.Parameter{{
				Name: "n", Values: []string{value, value},
			}}}},
		}))
		for fault := range heed.ConfigErrors(err) {
			return fault.Value
		}
		return nil
	}
	whole := strings.Repeat("v", 60)
	assert.Equal(t, whole, shown(whole))
	assert.Equal(t, whole+"…", shown(whole+"v"))
	assert.Equal(t, whole[:59]+"…", shown(whole[:59]+"é"))
}

func TestBoundsOfAnOutcome(t *testing.T) {
	cfg, c := recording(t, strategy.Config{})
	c.Advance(time.Hour)
	l := newLearner(t, cfg)
	choice := choose(t, l, strategy.Query{Item: "i"})
	type outcome = strategy.Outcome
	for n, test := range []struct {
		field string // of the fault, and empty without one
		o     outcome
	}{
		{"", outcome{Value: -1}}, {"Value", outcome{Value: below(-1)}},
		{"", outcome{Value: 1}}, {"Value", outcome{Value: above(1)}},
		{"", outcome{Confidence: 1}}, {"Confidence", outcome{Confidence: above(1)}},
		{"", outcome{Confidence: above(0)}}, {"Confidence", outcome{Confidence: below(0)}},
		{"", outcome{Share: above(0)}}, {"Share", outcome{Share: below(0)}},
		{"", outcome{Share: 1}}, {"Share", outcome{Share: above(1)}},
		{"", outcome{At: c.Now().Add(evidence.MaxSkew)}},
		{"At", outcome{At: c.Now().Add(evidence.MaxSkew + 1)}},
		{"", outcome{At: choice.At.Add(-evidence.MaxSkew)}},
		{"At", outcome{At: choice.At.Add(-evidence.MaxSkew - 1)}},
		{"", outcome{Cost: 1e15}}, {"Cost", outcome{Cost: above(1e15)}},
		{"Cost", outcome{Cost: below(0)}},
		{"Latency", outcome{Latency: -1}}, {"Tokens", outcome{Tokens: -1}},
		{"", outcome{Source: strings.Repeat("s", evidence.MaxText)}},
		{"Source", outcome{Source: strings.Repeat("s", evidence.MaxText+1)}},
		{"", outcome{ID: "heed"}}, {"ID", outcome{ID: "heed:"}},
	} {
		o := test.o
		o.Choice = choice
		if o.ID == "" {
			o.ID = fmt.Sprint(n)
		}
		if o.Confidence == 0 {
			o.Confidence = 0.5
		}
		_, err := l.Observe(ctx, o)
		if test.field == "" {
			assert.NoError(t, err)
			continue
		}
		assertInputError(t, err, test.field)
	}
}

func TestBoundsOfAQuery(t *testing.T) {
	l := newLearner(t, strategy.Config{Arms: plain("a", "b")})
	type query = strategy.Query
	long := strings.Repeat("t", evidence.MaxText)
	vector := func(n int) []float32 {
		x := make([]float32, n)
		x[0] = 1
		return x
	}
	for _, test := range []struct {
		field string // of the fault, and empty without one
		q     query
	}{
		{"", query{Vector: vector(1 << 16)}}, {"Vector", query{Vector: vector(1<<16 + 1)}},
		{"", query{Shares: []float64{0, 1}}}, {"Shares", query{Shares: []float64{below(0), 1}}},
		{"Shares", query{Shares: []float64{0, above(1)}}},
		{"", query{Shares: []float64{0.5, 0.5 + 0.99e-6}}},
		{"Shares", query{Shares: []float64{0.5, 0.5 + 1.01e-6}}},
		{"", query{Shares: []float64{0.5, 0.5 - 0.99e-6}}},
		{"Shares", query{Shares: []float64{0.5, 0.5 - 1.01e-6}}},
		{"Shares", query{Shares: []float64{1}}},
		{"", query{Shares: []float64{1}, Arms: []strategy.ArmID{"b"}}},
		{"Shares", query{Shares: []float64{0, 1}, Arms: []strategy.ArmID{"b"}}},
		{"", query{Arms: []strategy.ArmID{"b", "a"}}},
		{"Arms", query{Arms: []strategy.ArmID{"b", "b"}}},
		{"", query{Session: long, Key: long, Item: long}}, {"Session", query{Session: long + "t"}},
		{"Key", query{Key: long + "t"}}, {"Item", query{Item: long + "t"}},
		{"Category", query{Category: long + "t"}}, {"Context", query{Context: long + "t"}},
		{"Category", query{Category: long[:600], Context: long[:600]}},
	} {
		c, err := l.Select(ctx, test.q)
		if test.field == "" {
			require.NoError(t, err)
			assert.False(t, c.Record().Fallback)
			continue
		}
		assertInputError(t, err, test.field)
		assert.Equal(t, strategy.Choice{}, c, "bad input has no default")
		assert.Equal(t, store.Wants{}, l.Wants(test.q), "and needs no reading")
	}
}

// An arm with the share 1 is always taken, wherever it is in the list, and has that propensity.
func TestAShareOfOne(t *testing.T) {
	l := newLearner(t, strategy.Config{})
	for i, arm := range []strategy.ArmID{"a", "b", "c", "d"} {
		shares := make([]float64, 4)
		shares[i] = 1
		for range 5 {
			c := choose(t, l, strategy.Query{Shares: shares})
			assert.Equal(t, arm, c.Arm)
			assert.Equal(t, 1., c.Propensity())
		}
		c := choose(t, l, strategy.Query{Shares: shares, Arms: []strategy.ArmID{"d", "c", "b", "a"}})
		assert.Equal(t, strategy.ArmID(rune('d'-i)), c.Arm)
	}
}

// A choice of the session holds although the clock was put back, as far as clocks differ.
func TestAChoiceHoldsAsFarAsClocksDiffer(t *testing.T) {
	for back, holds := range map[time.Duration]bool{
		evidence.MaxSkew: true, evidence.MaxSkew + 1: false,
	} {
		for _, unrecorded := range []bool{false, true} {
			cfg, c := recording(t, strategy.Config{
				Unrecorded: unrecorded, Refresh: time.Hour, Cache: strategy.Cache{TTL: time.Hour},
			})
			c.Advance(time.Hour)
			l, q := newLearner(t, cfg), strategy.Query{Session: "s", Item: "i"}
			made := choose(t, l, q)
			c.Advance(-back)
			assert.Equal(t, holds, choose(t, l, q).ID == made.ID, "%v back", back)
		}
	}
}

// The record of a session's choice is read again after Config.Refresh, however the clock moved.
func TestARememberedChoiceIsCheckedAfterRefresh(t *testing.T) {
	for moved, checked := range map[time.Duration]bool{
		5*time.Minute - 1: false, 5 * time.Minute: true,
		-5*time.Minute + 1: false, -5 * time.Minute: true,
	} {
		cfg, c := recording(t, strategy.Config{Refresh: 5 * time.Minute})
		c.Advance(time.Hour)
		one, q := newLearner(t, cfg), strategy.Query{Session: "s", Item: "i"}
		made := choose(t, one, q)
		require.NoError(t, newLearner(t, cfg).EndSession(ctx, "s"))
		c.Advance(moved)
		assert.Equal(t, checked, choose(t, one, q).ID != made.ID, "%v later", moved)
	}
}

// A choice waits for its outcome as long as Config.Silence allows, and no longer.
func TestHowLongAChoiceWaits(t *testing.T) {
	for after, stage := range map[time.Duration]strategy.Stage{
		time.Hour: strategy.Pending, time.Hour + time.Microsecond: strategy.Expired,
	} {
		cfg, c := recording(t, strategy.Config{Silence: strategy.Silence{After: time.Hour}})
		l := newLearner(t, cfg)
		choice := choose(t, l, strategy.Query{Item: "i"})
		credit(t, l, choice, 1)
		c.Advance(after)
		require.NoError(t, l.Retract(ctx, choice, []string{""}, "", ""))
		assert.Equal(t, stage, record(t, l, choice.ID).Stage, "after %v", after)

		choice = choose(t, l, strategy.Query{Item: "i"})
		c.Advance(after)
		require.NoError(t, l.Sweep(ctx, time.Time{}))
		assert.Equal(t, stage, record(t, l, choice.ID).Stage, "after %v", after)
	}
}

// A record keeps the last outcome and 16 others, and has their mean.
func TestHowManyOutcomesARecordHas(t *testing.T) {
	cfg, c := recording(t, strategy.Config{})
	l := newLearner(t, cfg)
	choice := choose(t, l, strategy.Query{Item: "i"})
	id := func(n int) string { return fmt.Sprintf("%02d", n) }
	for n := range 20 {
		c.Advance(time.Minute)
		_, err := l.Observe(ctx, strategy.Outcome{
			Choice: choice, ID: id(n), Value: float64(n)/10 - 1, Confidence: 0.5,
		})
		require.NoError(t, err)
		r := record(t, l, choice.ID)
		assert.Equal(t, id(n), r.Result.ID)
		assert.Equal(t, min(n+1, 17), r.Reports)
		assert.InDelta(t, float64(r.Reports)/2, r.Mass, 1e-9)
		assert.InDelta(t, float64(max(n-16, 0)+n)/20-1, r.Mean, 1e-9)
	}
}

// Beliefs that are drawn as they are have an exact propensity, however small their shapes are.
func TestThePropensityOfSmallShapes(t *testing.T) {
	prior := evidence.Beta{Alpha: 2e-3, Beta: 1e-3}
	l := newLearner(t, strategy.Config{Pooling: strategy.Alone{}, Prior: prior})
	c := choose(t, l, strategy.Query{Arms: []strategy.ArmID{"a", "b", "c"}})
	assert.InDelta(t, 1./3, c.Propensity(), 1e-9)
	assert.InDelta(t, 1./3, winner.ProbBest([]evidence.Beta{prior, prior, prior})[0], 1e-9)
}

// Shapes from 0.01 to 1e6, and bonuses from -1 to 1, are integrated.
func TestWhichShapesAreIntegrated(t *testing.T) {
	plain := evidence.Beta{Alpha: 1, Beta: 1}
	for _, test := range []struct {
		of    evidence.Beta
		bonus float64
		ok    bool
	}{
		{evidence.Beta{Alpha: 0.01, Beta: 1}, 0, true}, {evidence.Beta{Alpha: 1, Beta: 0.01}, 0, true},
		{evidence.Beta{Alpha: below(0.01), Beta: 1}, 0, false},
		{evidence.Beta{Alpha: 1, Beta: below(0.01)}, 0, false},
		{evidence.Beta{Alpha: 1e6, Beta: 1}, 0, true}, {evidence.Beta{Alpha: 1, Beta: 1e6}, 0, true},
		{evidence.Beta{Alpha: above(1e6), Beta: 1}, 0, false},
		{evidence.Beta{Alpha: 1, Beta: above(1e6)}, 0, false},
		{plain, 1, true}, {plain, -1, true}, {plain, above(1), false}, {plain, below(-1), false},
	} {
		_, ok := strategy.BestOf([]answer.Draw{
			{Arm: "a", Belief: evidence.Belief{Level: plain}},
			{Arm: "b", Belief: evidence.Belief{Level: test.of}, Bonus: test.bonus},
		}, 0)
		assert.Equal(t, test.ok, ok, "%+v", test)
	}
}

// The choices of a session for an item are numbered from 0, so that each draws by itself.
func TestChoicesOfASessionAreNumbered(t *testing.T) {
	cfg := withFixtures(t, strategy.Config{})
	l, q := newLearner(t, cfg), strategy.Query{Session: "s", Item: "i"}
	for n, arm := range []strategy.ArmID{"a", "b", "c", "d"} {
		q.Arms = []strategy.ArmID{arm}
		if n == 2 {
			l = newLearner(t, cfg) // another process continues the session
		}
		assert.EqualValues(t, n, numberOf(t, cfg.Store, choose(t, l, q).ID))
	}
	require.NoError(t, l.EndSession(ctx, "s"))
	assert.Zero(t, numberOf(t, cfg.Store, choose(t, l, q).ID))
}

// numberOf returns the number that the record of a choice has.
func numberOf(t *testing.T, st store.Store, id strategy.ChoiceID) uint64 {
	rows := answers.View("strategy.answer")
	for row, err := range rows.Find(ctx, st, store.Query{}) {
		require.NoError(t, err)
		if row.Value.Choice.ID == id {
			return row.Value.Choice.Number
		}
	}
	t.Fatal("there is no record of the choice")
	return 0
}

// A key draws the same for good: the arm, its parameters, and by a vector. Another way to draw
// changes these choices for all hosts.
func TestDrawsStay(t *testing.T) {
	arms := []strategy.Arm{
		{ID: "a", Parameters: []strategy.Parameter{{Name: "n", Values: []string{"1", "2", "3"}}}},
		{ID: "b"}, {ID: "c", Parameters: []strategy.Parameter{{Name: "n", Values: []string{"1", "2"}}}},
	}
	for name, test := range map[string]struct {
		vector bool
		cfg    strategy.Config
		want   string
	}{
		"two levels": {
			false, strategy.Config{},
			"c2a1c2a3a1bc1bc2c1c2c1c2c2c1c1c2c2c2bba3bba2bc1a3bba1c2ba1c2ba2c2c2ba3a2bbbbbbbb",
		},
		"alone": {
			false, strategy.Config{Pooling: strategy.Alone{}},
			"c2a3bc2bbc1c1ba2ba2c2bc1a3a3c1bbba3c1bbbba1c1c1a1c1c1a1c1ba1c1ba1c1c1a2a2c1a2bc1a1c2",
		},
		"a bonus": {
			false, strategy.Config{Exploration: strategy.Exploration{Bonus: 0.2}},
			"c2a1c2a3a1bc1bc2c1ba3ba3bc1c2c1bba3a3c1ba2c1c1a3a3c2a1a1ba1c2c2a1c2c2a1a3a3c2a3ba3c1bc1a2",
		},
		"a vector": {
			true, strategy.Config{},
			"c1a2c1a3a2bc1bc1c1c2c2c1c2a3c2c2c1bc1a2a2c1c1a1c2c1a2bc1a3c1ba3c1c2a2c1c1c2a2c1bbbbbbbb",
		},
	} {
		test.cfg.Arms = arms
		l, got := newLearner(t, test.cfg), ""
		for n := range 50 {
			q := strategy.Query{Key: fmt.Sprint(n), Item: fmt.Sprint(n % 3)}
			if test.vector {
				q.Vector = []float32{float32(n%2)*2 - 1, float32(n%5) / 4}
			}
			c := choose(t, l, q)
			credit(t, l, c, float64((7*n+3*len(got)+int(c.Arm[0]))%5)/2-1)
			got += string(c.Arm) + c.Parameter("n")
		}
		assert.Equal(t, test.want, got, name)
	}
}

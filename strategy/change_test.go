package strategy_test

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

// TestAChangeRestartsAllArmsOfTheItem lets an arm that was good become bad.
func TestAChangeRestartsAllArmsOfTheItem(t *testing.T) {
	for _, pooling := range poolings {
		c := &clock{}
		st := newStore(t, c.Now)
		cfg := withFixtures(t, strategy.Config{
			Store: st, Now: c.Now, Arms: plain("good", "spare"), Pooling: pooling,
			Change: strategy.ChangeTest{FalseAlarms: 0.001},
		})
		l := newLearner(t, cfg)
		q, other := strategy.Query{Item: "changes"}, strategy.Query{Item: "stays"}
		for range 100 {
			c.Advance(time.Minute)
			try(t, l, q, "good", 1)
			try(t, l, q, "spare", -1)
			try(t, l, other, "good", 1)
		}
		stays := func() []evidence.Part {
			return slices.DeleteFunc(everything(t, st, other),
				func(p evidence.Part) bool { return p.Cell.Item != "stays" })
		}
		before := stays()
		changed := c.Now()
		for range 15 {
			c.Advance(time.Minute)
			try(t, l, q, "good", -1)
		}
		for _, p := range kept(t, st, q, "arm") {
			if p.Cell.Item == "changes" {
				assert.Equal(t, "good", p.Cell.Name,
					"what was before the change does not count, for no arm")
				assert.EqualValues(t, 15, p.Tally.N())
			}
		}
		assert.Equal(t, before, stays(), "another item has not changed")
		entry := audited(t, st)[0]
		assert.Equal(t, "strategy.restart", entry.Action)
		assert.Equal(t, "changes", entry.Subject)
		assert.Contains(t, entry.Reason, "from 1.00 to 0.00")
		assert.True(t, entry.At.After(changed))
	}
}

// Among three people and more, one of them makes up no change. What changes for several is found.
func TestNoOnePersonMakesUpAChange(t *testing.T) {
	for name, test := range map[string]struct {
		people, liars int
		after         func(n int) string // who speaks of the change
		restarts      bool
	}{
		"one of forty":           {40, 500, func(int) string { return "mallory" }, false},
		"one of forty, known":    {40, 500, func(int) string { return "person 3" }, false},
		"all of forty":           {40, 60, func(n int) string { return fmt.Sprint("person ", n%40) }, true},
		"an instrument of forty": {40, 60, func(int) string { return "ci" }, true},
		"one who is alone":       {1, 30, func(int) string { return "person 0" }, true},
	} {
		c := &clock{}
		st := newStore(t, c.Now)
		l := newLearner(t, strategy.Config{
			Store: st, Now: c.Now, Arms: plain("good", "spare"), Refresh: time.Minute,
			Change: strategy.ChangeTest{FalseAlarms: 0.001},
			Trust:  evidence.Trust{Instruments: []string{"ci"}},
		})
		q := strategy.Query{Item: "changes"}
		say := func(who string, value float64) {
			c.Advance(time.Minute)
			choice, err := l.Record(t.Context(), q, "good", 0)
			require.NoError(t, err)
			_, err = l.Observe(t.Context(), strategy.Outcome{
				Choice: choice, Value: value, Confidence: 1, Source: who,
			})
			require.NoError(t, err)
		}
		for n := range 200 {
			say(fmt.Sprint("person ", n%test.people), 1)
		}
		for n := range test.liars {
			say(test.after(n), -1)
		}
		restarts := 0
		for _, e := range audited(t, st) {
			if e.Action == "strategy.restart" {
				restarts++
			}
		}
		assert.Equal(t, test.restarts, restarts > 0, name)
	}
}

// One person among many does not end the trials of an arm.
func TestNoOnePersonEndsTrials(t *testing.T) {
	for _, named := range []bool{true, false} {
		c := &clock{}
		l := newLearner(t, strategy.Config{
			Store: newStore(t, c.Now), Now: c.Now, Arms: plain("old", "new"), Refresh: time.Hour,
			Exploration: strategy.Exploration{Bonus: 1, MinSamples: 12},
		})
		say := func(who string, arm strategy.ArmID, value float64) {
			choice, err := l.Record(t.Context(), strategy.Query{}, arm, 0)
			require.NoError(t, err)
			o := strategy.Outcome{Choice: choice, Value: value, Confidence: 1}
			if named {
				o.Source = who
			}
			_, err = l.Observe(t.Context(), o)
			require.NoError(t, err)
		}
		for n := range 80 {
			say(fmt.Sprint("person ", n%40), "old", 1)
		}
		for range 100 {
			say("mallory", "new", -1)
		}
		choice, err := l.Select(t.Context(), strategy.Query{})
		require.NoError(t, err)
		want := strategy.ArmID("old")
		if named {
			want = "new" // its bonus decides
		}
		assert.Equal(t, want, choice.Arm)
	}
}

// A probability of 0.001 of a false alarm is one that holds for a whole run of tests.
func TestStillWorldsRaiseFewAlarms(t *testing.T) {
	c := strategy.ChangeTest{FalseAlarms: 0.001}
	rng := rand.New(rand.NewPCG(1, 2))
	alarms := 0
	runs := long(500, 2000)
	for run := range runs {
		rate := float64(run%9+1) / 10
		var outcomes []evidence.Observation
		for n := 1; n <= 150; n++ {
			outcomes = append(outcomes, evidence.Observation{Weight: 1, Reward: coin(rate, rng)})
			if n%5 != 0 {
				continue
			}
			if _, found := strategy.FindChange(c, outcomes); found {
				alarms++
				break
			}
		}
	}
	t.Logf("%d false alarms in %d runs", alarms, runs)
	assert.LessOrEqual(t, alarms, runs/500) // twice what is promised
}

// An arm goes from one rate to quite another, and the test finds the place.
func TestAChangeIsFoundWhereItIs(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		before := 50 + rng.IntN(80)
		var outcomes []evidence.Observation
		for i := range before + 30 {
			rate := 0.9
			if i >= before {
				rate = 0.1
			}
			outcomes = append(outcomes, evidence.Observation{Weight: 0.3, Reward: coin(rate, rng)})
		}
		at, found := strategy.FindChange(strategy.ChangeTest{FalseAlarms: 0.001}, outcomes)
		assert.True(t, found)
		assert.InDelta(t, before, at, 8)
		// Confidences count relative to each other.
		for i := range outcomes {
			outcomes[i].Weight = 1
		}
		again, _ := strategy.FindChange(strategy.ChangeTest{FalseAlarms: 0.001}, outcomes)
		assert.Equal(t, at, again)
	}
}

// The test is made on what the store's history holds.
func TestWithoutHistoryNoChangeIsFound(t *testing.T) {
	c := &clock{}
	st, err := memstore.New(memstore.Config{Now: c.Now, NoHistory: true})
	require.NoError(t, err)
	l := newLearner(t, strategy.Config{Store: st, Now: c.Now, Arms: plain("a", "b"),
		Change: strategy.ChangeTest{FalseAlarms: 0.5}.Each(1)})
	for n := range 60 {
		c.Advance(time.Minute)
		try(t, l, strategy.Query{Item: "i"}, "a", float64(1-n/30*2))
	}
	assert.Equal(t, 60., massOf(kept(t, st, strategy.Query{}, "arm")))
}

// TestChangeIsTestedAsOftenAsConfigured counts how often the history is read.
func TestChangeIsTestedAsOftenAsConfigured(t *testing.T) {
	for every, want := range map[int]int{0: 4, 1: 19, 7: 2, 100: 0} {
		c := &clock{}
		st := &countingHistory{Store: newStore(t, c.Now)}
		l := newLearner(t, strategy.Config{Store: st, Now: c.Now, Arms: plain("a"),
			Change: strategy.ChangeTest{FalseAlarms: 0.001}.Each(every)})
		for range 20 {
			try(t, l, strategy.Query{Item: "i"}, "a", 1)
		}
		assert.Equal(t, want, st.read, "every %d", every)
	}
}

type countingHistory struct {
	store.Store
	read int
}

func (c *countingHistory) History(ctx context.Context,
	cell evidence.Cell) iter.Seq2[evidence.Observation, error] {
	c.read++
	return c.Store.History(ctx, cell)
}

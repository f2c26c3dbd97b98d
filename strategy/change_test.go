//go:build !race

package strategy_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
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
		for _, p := range kept(t, st, q, "given") {
			assert.Equal(t, "stays", p.Cell.Item, "the copy is of the time before")
		}
		for _, p := range kept(t, st, q, "sessions") {
			if p.Cell.Item == "changes" {
				assert.Less(t, p.Tally.N(), uint64(15), "sessions count from the change on")
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
	everyPerson := func(n int) string { return fmt.Sprint("person ", n%40) }
	for name, test := range map[string]struct {
		people, liars int
		after         func(n int) string // who speaks of the change
		restarts      bool
	}{
		"one of forty":           {40, 500, func(int) string { return "mallory" }, false},
		"one of forty, known":    {40, 500, func(int) string { return "person 3" }, false},
		"all of forty":           {40, 60, everyPerson, true},
		"an instrument of forty": {40, 60, func(int) string { return "ci" }, true},
		"one who is alone":       {1, 30, func(int) string { return "person 0" }, true},
	} {
		c := &clock{}
		st := newStore(t, c.Now)
		l := newLearner(t, strategy.Config{
			Store: st, Now: c.Now, Arms: plain("good", "spare"), Refresh: time.Minute,
			Trust: evidence.Trust{Instruments: []string{"ci"}},
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

// A process that counted outcomes of few people alone, because it has just started or because they
// filled its window, makes up no change for the others.
func TestFewInAProcessMakeUpNoChange(t *testing.T) {
	for liars, outcomes := range map[int]int{1: 60, 2: 200, 3: 2600} {
		c := &clock{}
		st := newStore(t, c.Now)
		say := func(l *strategy.Learner, who string, value float64) {
			c.Advance(time.Second)
			choice, err := l.Record(t.Context(), strategy.Query{Item: "i"}, "a", 0)
			require.NoError(t, err)
			_, err = l.Observe(t.Context(), strategy.Outcome{
				Choice: choice, Value: value, Confidence: 1, Source: who,
			})
			require.NoError(t, err)
		}
		first := newLearner(t, strategy.Config{Store: st, Now: c.Now})
		for n := range 120 {
			say(first, fmt.Sprint("person ", n%40), 1)
		}
		l := newLearner(t, strategy.Config{Store: st, Now: c.Now})
		say(l, "person 1", 1)
		for n := range outcomes {
			say(l, fmt.Sprint("liar ", n%liars), 1-2*float64(2*n/outcomes))
		}
		assert.Empty(t, audited(t, st), "%d liars", liars)
		for n := range 400 { // a change for all of them
			say(l, fmt.Sprint("person ", n%40), float64(1-2*(n/200)))
		}
		assert.NotEmpty(t, audited(t, st), "%d liars", liars)
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
	rng := rand.New(rand.NewPCG(1, 2))
	alarms := 0
	runs := long(500, 2000)
	for run := range runs {
		items := make([]float64, 1+run%2*20) // one, or some around the rate
		for i := range items {
			items[i] = float64(run%9+1)/10 + (rng.Float64()-0.5)*float64(run%2)/5
		}
		var outcomes []evidence.Observation
		for n := 1; n <= 150; n++ {
			i := rng.IntN(len(items))
			outcomes = append(outcomes, evidence.Observation{Weight: 1, Reward: coin(items[i], rng),
				Cell: evidence.Cell{Item: fmt.Sprint(i)}})
			if n%5 != 0 {
				continue
			}
			if _, found := strategy.FindChange(0.001, outcomes); found {
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
		at, found := strategy.FindChange(0.001, outcomes)
		assert.True(t, found)
		assert.InDelta(t, before, at, 8)
		// Confidences count relative to each other.
		for i := range outcomes {
			outcomes[i].Weight = 1
		}
		again, _ := strategy.FindChange(0.001, outcomes)
		assert.Equal(t, at, again)
	}
}

// The test is made on what the store's history holds.
func TestWithoutHistoryNoChangeIsFound(t *testing.T) {
	c := &clock{}
	st, err := memstore.New(memstore.Config{Now: c.Now, Retention: store.Retention{NoHistory: true}})
	require.NoError(t, err)
	l := newLearner(t, strategy.Eager(strategy.Config{Store: st, Now: c.Now, Arms: plain("a", "b")},
		0.5, 1))
	for n := range 60 {
		c.Advance(time.Minute)
		try(t, l, strategy.Query{Item: "i"}, "a", float64(1-n/30*2))
	}
	assert.Equal(t, 60., massOf(kept(t, st, strategy.Query{}, "arm")))
}

// TestAChangeOfAllItemsIsFoundInAll lets an arm become worse for forty items, each with so
// few outcomes that it shows nothing by itself.
func TestAChangeOfAllItemsIsFoundInAll(t *testing.T) {
	restarts, after := changesOf(t, strategy.Config{}, 40, func(n, item int, rng *rand.Rand) float64 {
		if n < 400 {
			return coin(0.85-float64(item%3)/10, rng)
		}
		return coin(0.35-float64(item%3)/10, rng)
	})
	assert.Equal(t, 1, restarts)
	assert.InDelta(t, 450, after, 40, "the outcomes that it takes to find it")
}

// What changes is which items come, and for one item alone.
func TestOtherItemsAreNoChange(t *testing.T) {
	restarts, _ := changesOf(t, strategy.Config{}, 40, func(n, item int, rng *rand.Rand) float64 {
		if item >= 20 {
			return coin(0.3, rng)
		}
		return coin(0.9, rng)
	})
	assert.Zero(t, restarts)
}

// One of forty people makes up no change of all items, whatever items are made up for that. All of
// them do.
func TestNoOnePersonMakesUpAChangeOfAllItems(t *testing.T) {
	for liars, restarts := range map[int]bool{1: false, 40: true} {
		c := &clock{}
		st := newStore(t, c.Now)
		l, rng := newLearner(t, strategy.Config{Store: st, Now: c.Now}), rand.New(rand.NewPCG(5, 6))
		for n := range 700 {
			c.Advance(time.Minute)
			who, value := rng.IntN(40), 1.
			if n >= 400 {
				who, value = rng.IntN(liars), -1
			}
			choice, err := l.Record(t.Context(), strategy.Query{Item: fmt.Sprint(rng.IntN(20))}, "a", 0)
			require.NoError(t, err)
			_, err = l.Observe(t.Context(), strategy.Outcome{Choice: choice, Value: value, Confidence: 1,
				Source: fmt.Sprint(who)})
			require.NoError(t, err)
		}
		assert.Equal(t, restarts, len(audited(t, st)) > 0, "%d liars", liars)
	}
}

// changesOf plays 600 outcomes of one arm. In the second half, outcomes of the first half of the
// items become rare. It returns how often all items were restarted, and after how many outcomes
// first.
func changesOf(t *testing.T, cfg strategy.Config, items int,
	reward func(n, item int, rng *rand.Rand) float64) (restarts, first int) {
	c := &clock{}
	cfg.Store, cfg.Now, cfg.Arms = newStore(t, c.Now), c.Now, plain("a", "b")
	l, rng := newLearner(t, cfg), rand.New(rand.NewPCG(5, 6))
	for n := range 600 {
		c.Advance(time.Minute)
		item := rng.IntN(items)
		if n >= 300 && item < items/2 && rng.IntN(4) > 0 {
			item += items / 2
		}
		q := strategy.Query{Item: fmt.Sprint("i", item)}
		try(t, l, q, "a", 2*reward(n, item, rng)-1)
		all := audited(t, cfg.Store)
		if len(all) > 0 && first == 0 {
			first = n
		}
		restarts = len(all)
	}
	return restarts, first
}

// A restart that the store refuses is reported, and a later outcome tries again. The outcome counts
// all the same.
func TestARestartThatFailsIsTriedAgain(t *testing.T) {
	c := &clock{}
	st, down := &fragile{Store: newStore(t, c.Now)}, true
	st.before = func(_ context.Context, b store.Batch) error {
		if down && len(b.Restart) > 0 {
			return errStore
		}
		return nil
	}
	var failed []error
	l := newLearner(t, strategy.Config{
		Store: st, Now: c.Now, Arms: plain("a", "b"),
		Observer: func(_ context.Context, n heed.Notice) {
			if f, ok := n.(heed.Failed); ok {
				failed = append(failed, f.Err)
			}
		},
	})
	for n := range 60 {
		c.Advance(time.Minute)
		try(t, l, strategy.Query{Item: "i"}, "a", float64(1-n/40*2))
	}
	require.NotEmpty(t, failed)
	require.ErrorIs(t, failed[0], errStore)
	assert.Empty(t, audited(t, st))
	assert.Equal(t, 60., massOf(kept(t, st, strategy.Query{}, "arm")))
	down = false
	for range 20 {
		c.Advance(time.Minute)
		try(t, l, strategy.Query{Item: "i"}, "a", -1)
	}
	assert.Len(t, audited(t, st), 1)
}

// Two of twenty people make up no change together, though each alone could be left out.
func TestATenthOfThePeopleMakesUpNoChange(t *testing.T) {
	for liars, restarts := range map[int]bool{2: false, 20: true} {
		c := &clock{}
		st := newStore(t, c.Now)
		l := newLearner(t, strategy.Config{Store: st, Now: c.Now, Arms: plain("a", "b")})
		say := func(who int, value float64) {
			c.Advance(time.Minute)
			choice, err := l.Record(ctx, strategy.Query{Item: "i"}, "a", 0)
			require.NoError(t, err)
			_, err = l.Observe(ctx, strategy.Outcome{Choice: choice, Value: value, Confidence: 1,
				Source: fmt.Sprint(who)})
			require.NoError(t, err)
		}
		for n := range 400 {
			say(n%20, 1)
		}
		for n := range 300 {
			say(n%liars, -1)
		}
		assert.Equal(t, restarts, len(audited(t, st)) > 0, "%d liars", liars)
	}
}

// What another process has reset is not restarted once more.
func TestAChangeOfWhatWasResetRestartsNothing(t *testing.T) {
	for _, reset := range []bool{false, true} {
		c := &clock{}
		var w witness
		cfg := withFixtures(t, strategy.Config{
			Store: newStore(t, c.Now), Now: c.Now, Arms: plain("a", "b"), Observer: w.observe,
		})
		l, other := newLearner(t, cfg), newLearner(t, cfg)
		restarts := 0
		for n := range 65 {
			c.Advance(time.Second)
			if n == 50 && reset {
				require.NoError(t, other.Reset(ctx, strategy.Reset{Item: "i", Reason: "r"}))
			}
			try(t, l, strategy.Query{Item: "i"}, "a", float64(1-n/50*2))
		}
		for _, e := range audited(t, cfg.Store) {
			if e.Action == "strategy.restart" {
				restarts++
			}
		}
		assert.Equal(t, !reset, restarts > 0)
		told := slices.ContainsFunc(w.since(), func(n heed.Notice) bool {
			changed, is := n.(heed.Changed)
			return is && changed.What == "inverted"
		})
		assert.Equal(t, !reset, told, "the observer hears of restarts alone")
	}
}

// Among few outcomes, each counts as one yes or no, however much or little they differ.
func TestAChangeAmongFewOutcomes(t *testing.T) {
	halves := func(n int, low, high float64) (all []evidence.Observation) {
		for i := range 2 * n {
			o := evidence.Observation{Weight: 1, Reward: low}
			if i >= n {
				o.Reward = high
			}
			all = append(all, o)
		}
		return all
	}
	// The ratio of 20 outcomes is 20 times log 2, which is 13.9, and log(3*20*sqrt(20)/0.05) is 8.6.
	at, found := strategy.FindChange(0.05, halves(10, 0, 1))
	assert.True(t, found)
	assert.Equal(t, 10, at)
	// Of ten it is 6.9, and 7.6 are needed.
	_, found = strategy.FindChange(0.05, halves(5, 0, 1))
	assert.False(t, found)
	_, found = strategy.FindChange(0.05, halves(10, 0.45, 0.55))
	assert.False(t, found)
	_, found = strategy.FindChange(0.05, halves(10, 1, 1))
	assert.False(t, found)
	// Outcomes that hardly differ within an item are more evidence than a yes or no. Of 400, the
	// ratio is 2.0 by itself, log(3*400*20/0.05) is 13.1, and each is worth ten at most.
	at, found = strategy.FindChange(0.05, halves(200, 0.45, 0.55))
	assert.True(t, found)
	assert.Equal(t, 200, at)
	_, found = strategy.FindChange(0.05, halves(100, 0.45, 0.55))
	assert.False(t, found)
	for n := range 3 {
		_, found = strategy.FindChange(1, halves(10, 0, 1)[9:9+n])
		assert.False(t, found, "%d outcomes", n)
	}
}

// restarts counts the restarts in the audit of a store.
func restarts(t *testing.T, st store.Store) (n int) {
	for _, e := range audited(t, st) {
		if e.Action == "strategy.restart" {
			n++
		}
	}
	return n
}

// Two people are believed as they are, also if an instrument reports, too.
func TestTwoPeopleAndAnInstrumentMayChangeAnArm(t *testing.T) {
	c := &clock{}
	st := newStore(t, c.Now)
	l := newLearner(t, strategy.Config{
		Store: st, Now: c.Now, Arms: plain("a", "b"),
		Trust: evidence.Trust{Instruments: []string{"ci"}},
	})
	for n := range 100 {
		c.Advance(time.Minute)
		who, value := []string{"ann", "bob", "ci"}[n%3], 1.
		if n >= 60 {
			who, value = "ann", -1
		}
		_, err := l.Observe(ctx, strategy.Outcome{
			Choice: choose(t, l, strategy.Query{Item: "i", Arms: []strategy.ArmID{"a"}}),
			Value:  value, Confidence: 1, Source: who,
		})
		require.NoError(t, err)
	}
	assert.NotZero(t, restarts(t, st))
}

// What comes after a clock that was ahead is from before the change that it found, and counts again
// once somebody resets the item.
func TestAResetEndsAChangeOfAClockAhead(t *testing.T) {
	c, q := &clock{}, strategy.Query{Item: "changes"}
	st := newStore(t, c.Now)
	l := newLearner(t, strategy.Config{Store: st, Now: c.Now, Arms: plain("good", "spare")})
	play := func(value float64) {
		for range 30 {
			c.Advance(time.Minute)
			try(t, l, q, "good", value)
		}
	}
	count := func() (n uint64) {
		for _, p := range kept(t, st, q, "arm") {
			n += p.Tally.N()
		}
		return n
	}
	play(1)
	c.Advance(30 * 24 * time.Hour)
	play(-1)
	c.Advance(-30 * 24 * time.Hour)
	assert.EqualValues(t, 30, count())
	play(1)
	assert.EqualValues(t, 30, count())
	require.NoError(t, l.Reset(ctx, strategy.Reset{Item: q.Item, Reason: "the clock was ahead"}))
	play(1)
	assert.EqualValues(t, 30, count())
}

// The evidence of an arm that is no longer configured stays as it is when others begin again.
func TestAChangeLeavesArmsThatAreGone(t *testing.T) {
	c := &clock{}
	cfg := withFixtures(t, strategy.Config{
		Store: newStore(t, c.Now), Now: c.Now, Arms: plain("a", "gone"),
	})
	try(t, newLearner(t, cfg), strategy.Query{Item: "i"}, "gone", 1)
	cfg.Arms = plain("a", "b")
	l := newLearner(t, cfg)
	for n := range 70 {
		c.Advance(time.Minute)
		try(t, l, strategy.Query{Item: "i"}, "a", float64(1-n/50*2))
	}
	require.NotZero(t, restarts(t, cfg.Store))
	assert.Contains(t, fmt.Sprint(kept(t, cfg.Store, strategy.Query{}, "arm")), "gone")
}

// An arm that is chosen by the vectors of requests gets other requests in time, so that its rewards
// may change although the arm has not.
func TestRequestsOfAVectorAreNoChange(t *testing.T) {
	for weight, want := range map[float64]bool{0.5: true, 0.6: false} {
		c := &clock{}
		st := newStore(t, c.Now)
		l := newLearner(t, strategy.Config{Store: st, Now: c.Now, Arms: plain("a", "b")})
		for n := range 70 {
			c.Advance(time.Minute)
			q := strategy.Query{Item: "i", Arms: []strategy.ArmID{"a"}}
			r := choose(t, l, q).Record()
			r.Linear = &answer.Linear{Weight: weight}
			credit(t, l, strategy.ChoiceOf(r), float64(1-n/50*2))
		}
		assert.Equal(t, want, restarts(t, st) > 0, "%v", weight)
	}
}

// A process looks at its last 1,024 outcomes of a segment, and keeps a quarter more at most.
func TestTheWindowOfAChange(t *testing.T) {
	for _, n := range []int{10, 1024, 1025, 1280, 1281, 5000} {
		kept, looked := strategy.Window(n)
		assert.Equal(t, min(n, 1024), looked)
		assert.LessOrEqual(t, kept, 1280)
	}
}

// Nine good and four bad outcomes are a change, whether one person states them or several. The
// ratio is 9*log(13/9) + 4*log(13/4), which is 8.0, and log(3*13*sqrt(13)/0.05) is 7.9. Without
// each person a change needs less to show, or else several would have to state more than one.
func TestAChangeOfFewOutcomesOfManyPeople(t *testing.T) {
	for _, people := range []int{1, 3, 10} {
		c := &clock{}
		st := newStore(t, c.Now)
		l := newLearner(t, strategy.Eager(strategy.Config{
			Store: st, Now: c.Now, Arms: plain("a", "b"),
		}, 0.05, 1))
		for n := range 13 {
			require.Zero(t, restarts(t, st), "%d outcomes of %d people", n, people)
			c.Advance(time.Minute)
			choice, err := l.Record(ctx, strategy.Query{Item: "i"}, "a", 0)
			require.NoError(t, err)
			_, err = l.Observe(ctx, strategy.Outcome{
				Choice: choice, Value: float64(1 - n/9*2), Confidence: 1,
				Source: fmt.Sprint(n % people),
			})
			require.NoError(t, err)
		}
		assert.Equal(t, 1, restarts(t, st), "%d people", people)
	}
}

// One of ten people is a tenth of them, and two of eleven are. A change that only a tenth of the
// people state is none.
func TestATenthOfThePeople(t *testing.T) {
	for people, want := range map[int]int{10: 1, 11: 0} {
		c := &clock{}
		st := newStore(t, c.Now)
		l := newLearner(t, strategy.Eager(strategy.Config{
			Store: st, Now: c.Now, Arms: plain("a", "b"),
		}, 0.05, 1))
		say := func(who int, value float64) {
			c.Advance(time.Minute)
			choice, err := l.Record(ctx, strategy.Query{Item: "i"}, "a", 0)
			require.NoError(t, err)
			_, err = l.Observe(ctx, strategy.Outcome{
				Choice: choice, Value: value, Confidence: 1, Source: fmt.Sprint(who),
			})
			require.NoError(t, err)
		}
		for n := range 3 * people {
			say(n%people, 1)
		}
		for n := range 12 {
			say(people-1-n%2, -1)
		}
		assert.Equal(t, want, restarts(t, st), "%d people", people)
	}
}

// Two people who report a hundred outcomes each for yesterday make up no change of what forty
// others reported today, because the limits bound what the two count for in the mean as well.
func TestOldReportsOfTwoMakeUpNoChange(t *testing.T) {
	c := &clock{}
	c.Advance(24 * time.Hour)
	st := newStore(t, c.Now)
	l := newLearner(t, strategy.Config{Store: st, Now: c.Now, Arms: plain("a", "b")})
	reportOf(t, l, "i", 40, 3, c.Now(), 1, -1, -1, -1, -1)
	for range 4 {
		reportOf(t, l, "i", 2, 50, c.Now().Add(-12*time.Hour), 1)
		assert.Zero(t, restarts(t, st))
	}
}

// Five people make up no change of what sixty others reported in another process, however many
// outcomes they report. Nine do, because that is more than a tenth of all.
func TestFewOfManyMakeUpNoChangeInAProcess(t *testing.T) {
	for liars, want := range map[int]int{5: 0, 9: 1} {
		c := &clock{}
		st := newStore(t, c.Now)
		cfg := strategy.Config{Store: st, Now: c.Now, Arms: plain("a", "b")}
		reportOf(t, newLearner(t, cfg), "i", 60, 1, c.Now(), 1)
		l := newLearner(t, cfg)
		for _, value := range []float64{1, -1} {
			c.Advance(time.Minute)
			reportOf(t, l, "i", liars, 20, c.Now(), value)
		}
		assert.Equal(t, want, restarts(t, st), "%d liars", liars)
	}
}

// Four of forty-four people make up no change for all by an item that is theirs alone, while older
// reports of theirs about another item hide who makes it.
func TestReportsOfTwoKindsMakeUpNoChange(t *testing.T) {
	c := &clock{}
	c.Advance(1000 * time.Hour)
	st := newStore(t, c.Now)
	l := newLearner(t, strategy.Config{Store: st, Now: c.Now, Arms: plain("a", "b")})
	reportOf(t, l, "i", 40, 6, c.Now(), 1, -1, -1, -1, -1)
	reportOf(t, l, "own", 4, 8, c.Now(), 0)
	reportOf(t, l, "i", 4, 50, c.Now().Add(-500*time.Hour), 1)
	for range 4 {
		c.Advance(time.Minute)
		reportOf(t, l, "own", 4, 50, c.Now(), 1)
	}
	for _, e := range audited(t, st) {
		assert.Equal(t, "own", e.Subject, "a change of that item is theirs to make")
	}
}

// reportOf reports outcomes of an arm at once, with the values in turn, by as many people.
func reportOf(
	t *testing.T, l *strategy.Learner, item string, people, times int, at time.Time,
	values ...float64,
) {
	var all []strategy.Outcome
	for n := range people * times {
		choice, err := l.Record(ctx, strategy.Query{Item: item}, "a", 0)
		require.NoError(t, err)
		choice.At = at
		all = append(all, strategy.Outcome{Choice: choice, Value: values[n%len(values)],
			Confidence: 1, At: at, Source: fmt.Sprint(people, "'s ", n%people)})
	}
	_, err := l.ObserveAll(ctx, all, "", "")
	require.NoError(t, err)
}

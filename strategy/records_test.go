package strategy_test

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/injection"
)

// recording returns a configuration over a store that another learner may share, and its clock.
func recording(t testing.TB, cfg strategy.Config) (strategy.Config, *clock) {
	c := &clock{}
	cfg.Now = c.Now
	return withFixtures(t, cfg), c
}

func record(t testing.TB, l *strategy.Learner, id strategy.ChoiceID) strategy.ChoiceRecord {
	t.Helper()
	for _, r := range historyOf(t, l, strategy.ChoiceFilter{}) {
		if r.Choice.ID == id {
			return r
		}
	}
	require.Fail(t, "there is no record of the choice")
	return strategy.ChoiceRecord{}
}

func historyOf(t testing.TB, l *strategy.Learner,
	f strategy.ChoiceFilter) (records []strategy.ChoiceRecord) {
	for r, err := range l.History(ctx, f) {
		require.NoError(t, err)
		records = append(records, r)
	}
	return records
}

// TestAnOutcomeADayLaterFindsItsChoice, though the session has ended, the cache has let go of it,
// and the process was restarted: by session and item alone it is credited to the arm, in the
// segment, and with the parameters that it had.
func TestAnOutcomeADayLaterFindsItsChoice(t *testing.T) {
	for _, pooling := range poolings {
		t.Run(fmt.Sprint(pooling), func(t *testing.T) {
			cfg, c := recording(t, strategy.Config{Pooling: pooling,
				Arms: injection.Arms()})
			l := newLearner(t, cfg)
			q := strategy.Query{Session: "monday", Item: "i", Category: "a/b", Context: `"x"`, Arms: []strategy.ArmID{injection.MainContext}}
			made := choose(t, l, q)
			choose(t, l, strategy.Query{Session: "monday", Item: "another"})
			require.NoError(t, l.EndSession(ctx, "monday"))
			c.Advance(24 * time.Hour)

			restarted := newLearner(t, cfg)
			found, err := restarted.Find(ctx, "monday", "i", c.Now())
			require.NoError(t, err)
			assert.Equal(t, strategy.Pending, found.Stage)
			assert.Equal(t, drawn(made), drawn(found.Choice))
			assert.Equal(t, made.Cells(), found.Choice.Cells())
			assert.Equal(t, []string{"a/b", `"x"`}, []string{found.Choice.Category, found.Choice.Context})

			o := strategy.Outcome{Choice: found.Choice, ID: "review", Value: 1, Confidence: 0.8,
				Channel: "attribution", Source: "ann"}
			disposition, err := restarted.Observe(ctx, o)
			require.NoError(t, err)
			assert.Equal(t, strategy.Applied, disposition)
			parts := read(t, cfg.Store, made.Cells()...)
			require.Len(t, parts, 3, "the arm and its two parameters")
			for _, p := range parts {
				assert.Equal(t, 0.8, p.Tally.Mass)
			}
			found, err = restarted.Find(ctx, "monday", "i", time.Time{})
			require.NoError(t, err)
			assert.Equal(t, strategy.Observed, found.Stage)
			assert.Equal(t, &strategy.Result{
				ID: "review", Value: 1, Confidence: 0.8, Channel: "attribution", Source: "ann", At: c.Now(),
			}, found.Result)
		})
	}
}

// TestFindTakesTheLastChoiceOfItsTime, and allows for clocks that differ a little.
func TestFindTakesTheLastChoiceOfItsTime(t *testing.T) {
	cfg, c := recording(t, strategy.Config{})
	l := newLearner(t, cfg)
	var all []strategy.Choice
	for range 3 {
		all = append(all, choose(t, l, strategy.Query{Session: "s", Item: "i"}))
		choose(t, l, strategy.Query{Session: "s", Item: "j"})
		choose(t, l, strategy.Query{Session: "t", Item: "i"})
		require.NoError(t, l.EndSession(ctx, "s"))
		c.Advance(time.Hour)
	}
	for _, test := range []struct {
		at   time.Time
		want int
	}{
		{time.Time{}, 2},
		{start.Add(10 * time.Hour), 2},
		{start.Add(2 * time.Hour), 2},
		// one that was made before goes before one that was made a little later
		{start.Add(2*time.Hour - time.Microsecond), 1},
		{start.Add(time.Hour), 1},
		{start, 0},
		{start.Add(-evidence.MaxSkew), 0},
	} {
		found, err := l.Find(ctx, "s", "i", test.at)
		require.NoError(t, err)
		assert.Equal(t, all[test.want].ID, found.Choice.ID, test.at)
	}
	for _, unknown := range []struct {
		session, item string
		at            time.Time
	}{
		{"s", "i", start.Add(-evidence.MaxSkew - time.Microsecond)}, {"s", "k", time.Time{}},
		{"r", "i", time.Time{}},
		{"s", "", time.Time{}}, {"", "i", time.Time{}}, {"", "", time.Time{}},
	} {
		_, err := l.Find(ctx, unknown.session, unknown.item, unknown.at)
		assert.ErrorIs(t, err, heed.ErrNotFound, "%v", unknown)
	}
	cfg.Name = "another"
	_, err := newLearner(t, cfg).Find(ctx, "s", "i", time.Time{})
	assert.ErrorIs(t, err, heed.ErrNotFound)
}

// TestASessionsChoiceHoldsAcrossLearners, as after a restart or in another process: until the
// session ends, or for as long as one learner would have remembered it.
func TestASessionsChoiceHoldsAcrossLearners(t *testing.T) {
	for _, q := range []strategy.Query{
		{Session: "s", Item: "i", Category: "c", Context: "x"},
		{Session: "s", Category: "c", Context: "x"},
	} {
		cfg, c := recording(t, strategy.Config{Arms: injection.Arms()})
		next := func(seed uint64) *strategy.Learner {
			cfg.Seed = rand.NewPCG(seed, 0) // which another process has another of
			return newLearner(t, cfg)
		}
		first := choose(t, next(1), q)
		c.Advance(time.Hour - 1)
		second := next(2)
		again := choose(t, second, q)
		assert.Equal(t, throughJSON(t, first), throughJSON(t, again))
		assert.Equal(t, again, choose(t, second, q))
		assert.Len(t, historyOf(t, second, strategy.ChoiceFilter{}), 1)
		credit(t, second, again, 1)

		c.Advance(1)
		third := next(3)
		anew := choose(t, third, q)
		assert.NotEqual(t, first.ID, anew.ID, "an hour is over")
		assert.NotEqual(t, first.ID, choose(t, second, q).ID,
			"for a learner that had it from its record, too")
		assert.Equal(t, anew.ID, choose(t, next(4), q).ID)
		require.NoError(t, third.EndSession(ctx, "s"))
		assert.NotEqual(t, anew.ID, choose(t, next(5), q).ID)
	}
}

func TestARecordIsTakenUpOnlyWhereItFits(t *testing.T) {
	cfg, c := recording(t, strategy.Config{})
	q := strategy.Query{Session: "s", Item: "i", Category: "c", Arms: []strategy.ArmID{"b"}}
	first := choose(t, newLearner(t, cfg), q)
	t.Run("another category or context of the item", func(t *testing.T) {
		assert.Equal(t, first.ID, choose(t, newLearner(t, cfg),
			strategy.Query{Session: "s", Item: "i", Category: "d", Context: "y"}).ID)
	})
	t.Run("another item or session", func(t *testing.T) {
		for _, q := range []strategy.Query{{Session: "s", Item: "j"}, {Session: "t", Item: "i"},
			{Session: "s", Category: "c"}, {Item: "i", Category: "c"}} {
			assert.NotEqual(t, first.ID, choose(t, newLearner(t, cfg), q).ID, "%v", q)
		}
	})
	t.Run("another segment, without an item", func(t *testing.T) {
		one := choose(t, newLearner(t, cfg), strategy.Query{Session: "s", Category: "c"})
		two := choose(t, newLearner(t, cfg), strategy.Query{Session: "s", Category: "d"})
		assert.NotEqual(t, one.ID, two.ID)
		for _, c := range []strategy.Choice{one, two} {
			assert.Equal(t, c.ID, choose(t, newLearner(t, cfg),
				strategy.Query{Session: "s", Category: c.Category}).ID)
		}
	})
	t.Run("another learner", func(t *testing.T) {
		other := cfg
		other.Name = "other"
		assert.NotEqual(t, first.ID, choose(t, newLearner(t, other), q).ID)
	})
	t.Run("an arm that is no longer permitted", func(t *testing.T) {
		q := q
		q.Arms = []strategy.ArmID{"a", "c"}
		c.Advance(time.Second)
		l := newLearner(t, cfg)
		second := choose(t, l, q)
		assert.NotEqual(t, strategy.ArmID("b"), second.Arm)
		q.Arms = nil
		assert.Equal(t, second.ID, choose(t, newLearner(t, cfg), q).ID,
			"and takes the place of the other")
	})
	t.Run("an arm that there no longer is", func(t *testing.T) {
		fewer := cfg
		fewer.Arms = plain("x", "y")
		assert.Contains(t, []strategy.ArmID{"x", "y"},
			choose(t, newLearner(t, fewer), strategy.Query{Session: "s", Item: "i"}).Arm)
	})
}

func TestItemlessChoicesAreRecordedAndFound(t *testing.T) {
	cfg, c := recording(t, strategy.Config{Pooling: strategy.Alone{}})
	l := newLearner(t, cfg)
	made := choose(t, l, strategy.Query{Session: "s", Category: "c"})
	choose(t, l, strategy.Query{Session: "s", Item: "i", Category: "c"})
	c.Advance(time.Minute)
	found, err := l.Find(ctx, "s", "", c.Now())
	require.NoError(t, err)
	assert.Equal(t, made.ID, found.Choice.ID, "and not that of an item")
	credit(t, l, found.Choice, 1)
	assert.Equal(t, 1., massOf(kept(t, cfg.Store, strategy.Query{Category: "c"}, "arm")))
	alone := choose(t, l, strategy.Query{Item: "i"})
	assert.Equal(t, strategy.Pending, record(t, l, alone.ID).Stage,
		"a choice without a session has a record as well")
	credit(t, l, alone, 1)
	assert.Equal(t, strategy.Observed, record(t, l, alone.ID).Stage)
}

func TestHistoryByItemSessionAndTime(t *testing.T) {
	cfg, c := recording(t, strategy.Config{Silence: strategy.Silence{
		After: 11*time.Minute + time.Second}})
	l := newLearner(t, cfg)
	other := cfg
	other.Name = "other"
	choose(t, newLearner(t, other), strategy.Query{Session: "s0", Item: "i0"})
	var made []strategy.Choice
	for n := range 12 { // of items i0 to i2 and sessions s0 to s3, one a minute
		made = append(made, choose(t, l, strategy.Query{Session: fmt.Sprint("s", n%4),
			Item: fmt.Sprint("i", n%3), Category: "c", Context: fmt.Sprint("x", n%2)}))
		c.Advance(time.Minute)
	}
	for _, n := range []int{2, 5} {
		_, err := l.Observe(ctx, strategy.Outcome{Choice: made[n], Value: -0.5, Confidence: 0.6})
		require.NoError(t, err)
	}
	require.NoError(t, l.Sweep(ctx, c.Now()))
	for _, test := range []struct {
		name string
		f    strategy.ChoiceFilter
		want []int
	}{
		{"all", strategy.ChoiceFilter{}, []int{11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0}},
		{"the newest", strategy.ChoiceFilter{Limit: 2}, []int{11, 10}},
		{"an item", strategy.ChoiceFilter{Item: "i2"}, []int{11, 8, 5, 2}},
		{"a session", strategy.ChoiceFilter{Session: "s1"}, []int{9, 5, 1}},
		{"an item in a session", strategy.ChoiceFilter{Session: "s1", Item: "i0"}, []int{9}},
		{"a context", strategy.ChoiceFilter{Context: "x1", Category: "c", Limit: 2}, []int{11, 9}},
		{"a time", strategy.ChoiceFilter{Since: start.Add(4 * time.Minute),
			Until: start.Add(7 * time.Minute)}, []int{6, 5, 4}},
		{"what is pending of an item", strategy.ChoiceFilter{Item: "i2", Stage: strategy.Pending},
			[]int{11, 8}},
		{"what was observed", strategy.ChoiceFilter{Stage: strategy.Observed}, []int{5, 2}},
		{"what has expired", strategy.ChoiceFilter{Stage: strategy.Expired}, []int{0}},
		{"none", strategy.ChoiceFilter{Item: "i2", Session: "nobody's"}, nil},
	} {
		var got []int
		for _, r := range historyOf(t, l, test.f) {
			for n := range made {
				if made[n].ID == r.Choice.ID {
					got = append(got, n)
				}
			}
			if r.Stage == strategy.Observed {
				require.NotNil(t, r.Result)
				assert.Equal(t, strategy.Result{Value: -0.5, Confidence: 0.6, At: c.Now()}, *r.Result)
			} else {
				assert.Nil(t, r.Result)
			}
		}
		assert.Equal(t, test.want, got, test.name)
	}
	for r, err := range l.History(ctx, strategy.ChoiceFilter{}) {
		require.NoError(t, err)
		assert.Equal(t, made[11].ID, r.Choice.ID)
		break // a loop may end early
	}
}

// TestARecordHasTheLastOutcome that was counted, in whatever order they come; what comes again
// changes nothing.
func TestARecordHasTheLastOutcome(t *testing.T) {
	cfg, c := recording(t, strategy.Config{})
	l := newLearner(t, cfg)
	choice := choose(t, l, strategy.Query{Session: "s", Item: "i"})
	observe := func(o strategy.Outcome, want strategy.Disposition) {
		t.Helper()
		o.Choice = choice
		disposition, err := l.Observe(ctx, o)
		require.NoError(t, err)
		assert.Equal(t, want, disposition)
	}
	c.Advance(time.Hour)
	observe(strategy.Outcome{
		ID: "late", Value: 0.1, Confidence: 0.7, At: start.Add(30 * time.Minute),
	}, strategy.Applied)
	assert.Equal(t, 0.1, record(t, l, choice.ID).Mean, "the mean of one is its value")
	observe(strategy.Outcome{ID: "early", Value: -1, Confidence: 1, At: start.Add(10 * time.Minute)},
		strategy.Applied)
	assert.Equal(t, "late", record(t, l, choice.ID).Result.ID)
	c.Advance(time.Hour)
	// Without a time of its own, a second delivery is later than the first; it may tell of another
	// value, too.
	observe(strategy.Outcome{ID: "early", Value: 1, Confidence: 1}, strategy.Duplicate)
	observe(strategy.Outcome{ID: "late", Value: 1, Confidence: 1}, strategy.Duplicate)
	assert.Equal(t, &strategy.Result{ID: "late", Value: 0.1, Confidence: 0.7,
		At: start.Add(30 * time.Minute)}, record(t, l, choice.ID).Result)
	observe(strategy.Outcome{ID: "weak", Value: 1, Confidence: 0.1}, strategy.Dropped)
	assert.Equal(t, "late", record(t, l, choice.ID).Result.ID)
	assert.Equal(t, 1.7, massOf(kept(t, cfg.Store, strategy.Query{}, "arm")))
}

func TestWithoutRecordsThereIsNoHistory(t *testing.T) {
	l := newLearner(t, strategy.Config{Unrecorded: true})
	credit(t, l, choose(t, l, strategy.Query{Session: "s", Item: "i"}), 1)
	n := 0
	for r, err := range l.History(ctx, strategy.ChoiceFilter{}) {
		assert.ErrorIs(t, err, heed.ErrNotFound)
		assert.Zero(t, r)
		n++
	}
	assert.Equal(t, 1, n)
	_, err := l.Find(ctx, "s", "i", time.Time{})
	assert.ErrorIs(t, err, heed.ErrNotFound)
	assert.NoError(t, l.Sweep(ctx, time.Time{}))
	assert.NoError(t, l.EndSession(ctx, "s"))
}

// Select returns the default arm and the error, and there is no record.
func TestSelectFallsBackWhereNoRecordCanBeKept(t *testing.T) {
	for name, of := range map[string]func(*faulty) *atomic.Pointer[error]{
		"Commit": func(f *faulty) *atomic.Pointer[error] { return &f.commit },
		"Read":   func(f *faulty) *atomic.Pointer[error] { return &f.read },
	} {
		t.Run(name, func(t *testing.T) {
			st := &faulty{Store: newStore(t, (&clock{}).Now)}
			l := newLearner(t, strategy.Config{Store: st, Default: "c"})
			q := strategy.Query{Session: "s", Item: "i"}
			of(st).Store(&errStore)
			c, err := l.Select(ctx, q)
			require.ErrorIs(t, err, errStore)
			assert.True(t, c.Record().Fallback)
			assert.Equal(t, strategy.ArmID("c"), c.Arm)
			assert.Zero(t, l.Remembered())
			of(st).Store(nil)
			assert.Empty(t, historyOf(t, l, strategy.ChoiceFilter{}))
			credit(t, l, c, 1)
			assert.Empty(t, historyOf(t, l, strategy.ChoiceFilter{}),
				"its outcome counts, and makes no record")
			drawn := choose(t, l, q)
			assert.False(t, drawn.Record().Fallback)
			of(st).Store(&errStore)
			assert.Equal(t, drawn, choose(t, l, q), "what is remembered needs no record")
		})
	}
}

// Neither the outcome nor its record is there, and then both are.
func TestWhatCannotBeCommittedIsDeliveredAgain(t *testing.T) {
	st := &faulty{Store: newStore(t, (&clock{}).Now)}
	l := newLearner(t, strategy.Config{Store: st})
	c := choose(t, l, strategy.Query{Session: "s", Item: "i"})
	o := strategy.Outcome{Choice: c, Value: 1, Confidence: 1}
	st.commit.Store(&errStore)
	disposition, err := l.Observe(ctx, o)
	assert.ErrorIs(t, err, errStore)
	assert.Empty(t, disposition)
	assert.Equal(t, strategy.Pending, record(t, l, c.ID).Stage)
	assert.Empty(t, everything(t, st, strategy.Query{}))
	st.commit.Store(nil)
	disposition, err = l.Observe(ctx, o)
	require.NoError(t, err)
	assert.Equal(t, strategy.Applied, disposition)
	assert.Equal(t, strategy.Observed, record(t, l, c.ID).Stage)
	assert.Equal(t, 1., massOf(kept(t, st, strategy.Query{}, "arm")))
}

// TestASessionWhoseEndCannotBeWritten goes on, until it can be.
func TestASessionWhoseEndCannotBeWritten(t *testing.T) {
	st := &faulty{Store: newStore(t, (&clock{}).Now)}
	l := newLearner(t, strategy.Config{Store: st})
	q := strategy.Query{Session: "s", Item: "i"}
	first := choose(t, l, q)
	st.commit.Store(&errStore)
	assert.ErrorIs(t, l.EndSession(ctx, "s"), errStore)
	assert.Equal(t, first.ID, choose(t, l, q).ID)
	st.commit.Store(nil)
	st.read.Store(&errStore)
	assert.ErrorIs(t, l.EndSession(ctx, "s"), errStore)
	st.read.Store(nil)
	require.NoError(t, l.EndSession(ctx, "s"))
	assert.NotEqual(t, first.ID, choose(t, l, q).ID)
	require.NoError(t, l.EndSession(ctx, ""))
}

func TestHistoryAndFindReportWhatFailed(t *testing.T) {
	st := &faulty{Store: newStore(t, (&clock{}).Now)}
	l := newLearner(t, strategy.Config{Store: st})
	choose(t, l, strategy.Query{Session: "s", Item: "i"})
	st.find.Store(&errStore)
	n := 0
	for _, err := range l.History(ctx, strategy.ChoiceFilter{}) {
		assert.ErrorIs(t, err, errStore)
		n++
	}
	assert.Equal(t, 1, n)
	_, err := l.Find(ctx, "s", "i", time.Time{})
	assert.ErrorIs(t, err, errStore)
	assert.NotErrorIs(t, err, heed.ErrNotFound)
	assert.ErrorIs(t, l.Sweep(ctx, time.Time{}), errStore)
}

// Within a session, the same arm with the same parameters is the same choice of the host. Another
// arm replaces it, and so does another value of a parameter.
func TestWhatTheHostChoosesInASession(t *testing.T) {
	arms := plain("a", "b")
	arms[0].Parameters = []strategy.Parameter{{Name: "n", Values: []string{"1", "2"}}}
	l := newLearner(t, strategy.Config{Arms: arms})
	q := strategy.Query{Session: "s", Item: "i"}
	record := func(arm strategy.ArmID, parameters ...answer.Setting) strategy.Choice {
		c, err := l.Record(ctx, q, arm, 0, parameters...)
		require.NoError(t, err)
		assert.Equal(t, arm, c.Arm)
		return c
	}
	one, two := answer.Setting{Name: "n", Value: "1"}, answer.Setting{Name: "n", Value: "2"}
	var last strategy.Choice
	for i, choice := range []func() strategy.Choice{
		func() strategy.Choice { return record("a") }, func() strategy.Choice { return record("b") },
		func() strategy.Choice { return record("a", one) },
		func() strategy.Choice { return record("a", two) },
		func() strategy.Choice { return record("a") },
	} {
		c := choice()
		assert.NotEqual(t, last.ID, c.ID, i)
		assert.Equal(t, c.ID, choice().ID, i)
		last = c
	}
}

// A record has what an outcome took, whether that is money, time or tokens alone.
func TestARecordHasWhatAnOutcomeTook(t *testing.T) {
	l := newLearner(t, strategy.Config{})
	for _, want := range []strategy.Result{{Cost: 2}, {Latency: 3}, {Tokens: 4}} {
		c := choose(t, l, strategy.Query{})
		_, err := l.Observe(ctx, strategy.Outcome{
			Choice: c, Value: 1, Confidence: 1, Cost: want.Cost, Latency: want.Latency,
			Tokens: want.Tokens,
		})
		require.NoError(t, err)
		want.Value, want.Confidence, want.At = 1, 1, start
		assert.Equal(t, &want, record(t, l, c.ID).Result)
	}
}

// A record keeps the last 17 outcomes of a choice by their times, in whatever order they come.
func TestARecordLeavesOutTheFirstOutcome(t *testing.T) {
	for _, earliest := range []int{0, 9, 17} {
		cfg, c := recording(t, strategy.Config{})
		l := newLearner(t, cfg)
		made := choose(t, l, strategy.Query{})
		c.Advance(time.Hour)
		for n := range 18 {
			o := strategy.Outcome{Choice: made, ID: fmt.Sprint(n), Value: 1, Confidence: 1}
			if n == earliest {
				o.Value, o.At = -1, start
			}
			_, err := l.Observe(ctx, o)
			require.NoError(t, err)
		}
		r := record(t, l, made.ID)
		assert.Equal(t, 17, r.Reports)
		assert.Equal(t, 1., r.Mean, "%d came first", earliest)
	}
}

package strategy_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/strategy"
)

// teach lets other items of a segment show, n times each, that arm a is good and arm b is bad.
func teach(t *testing.T, l *strategy.Learner, q strategy.Query, n int) {
	for i := range n {
		q.Item, q.Session = fmt.Sprint("other", i%10), fmt.Sprint("of others", i)
		try(t, l, q, "a", 1)
		try(t, l, q, "b", -1)
	}
}

func TestAnItemSpecialisesAfterTwentySessions(t *testing.T) {
	st := newStore(t, (&clock{}).Now)
	l := newLearner(t, strategy.Config{Store: st, Pooling: strategy.Copy{}})
	q := strategy.Query{Item: "i", Session: "0", Category: "c"}
	teach(t, l, q, 1)
	given := func() []evidence.Part { return kept(t, st, q, "given") }

	c := choose(t, l, q)
	for n := range 30 {
		_, err := l.Observe(ctx, strategy.Outcome{Choice: c, ID: fmt.Sprint(n), Value: 0,
			Confidence: 1})
		require.NoError(t, err)
	}
	assert.Empty(t, given(), "outcomes of one session are one session")
	for n := 1; n < 19; n++ {
		q.Session = fmt.Sprint(n)
		try(t, l, q, "c", 0)
		require.Empty(t, given(), "after %d sessions", n+1)
	}
	// Going back to a session after others is no new session, and nor is what is dropped.
	q.Session = "3"
	_, err := l.Observe(ctx, strategy.Outcome{Choice: choose(t, l, q), ID: "again", Value: 0,
		Confidence: 1})
	require.NoError(t, err)
	q.Session = "of no account"
	_, err = l.Observe(ctx, strategy.Outcome{Choice: choose(t, l, q), Value: 0, Confidence: 0.1})
	require.NoError(t, err)
	require.Empty(t, given())

	q.Session = "19"
	try(t, l, q, "c", 0)
	assert.Len(t, given(), 2)
}

func TestAChoiceWithoutASessionIsASession(t *testing.T) {
	st := newStore(t, (&clock{}).Now)
	l := newLearner(t, strategy.Config{Store: st, Pooling: strategy.Copy{Sessions: 3}})
	q := strategy.Query{Item: "i"}
	teach(t, l, q, 1)
	for n := range 3 {
		assert.Empty(t, kept(t, st, q, "given"), "after %d", n)
		c := choose(t, l, q)
		for outcome := range 10 {
			_, err := l.Observe(ctx, strategy.Outcome{Choice: c, ID: fmt.Sprint(outcome), Value: 0,
				Confidence: 1})
			require.NoError(t, err)
		}
	}
	assert.NotEmpty(t, kept(t, st, q, "given"))
}

func TestOutcomesOfHalfConfidenceSpecialiseAnItemToo(t *testing.T) {
	l := newLearner(t, strategy.Config{Pooling: strategy.Copy{}})
	q := strategy.Query{Item: "i"}
	teach(t, l, q, 5)
	for n := range 20 {
		q.Session = fmt.Sprint(n)
		c := choose(t, l, q)
		_, err := l.Observe(ctx, strategy.Outcome{Choice: c, Value: 0, Confidence: 0.5})
		require.NoError(t, err)
	}
	before := beliefs(t, l, q)
	for n := range 10 {
		try(t, l, strategy.Query{Item: "other", Session: fmt.Sprint("more", n)}, "d", 1)
	}
	assert.Equal(t, before, beliefs(t, l, q), "it no longer follows its segment")
	assert.Greater(t, beliefs(t, l, strategy.Query{Item: "new"})[3].Level.Alpha, 10.)
}

// With n outcomes an item's confidence is √n/(1+√n), which is 0.6 at 2.25 and
// 0.9 at 81.
func TestCopyTrustsAnItemFromItsMinConfidenceOn(t *testing.T) {
	for _, test := range []struct {
		pooling strategy.Copy
		from    int
	}{
		{strategy.Copy{Sessions: 1}, 3},
		{strategy.Copy{Sessions: 2, MinConfidence: 0.75}, 9},
		{strategy.Copy{}, 20},
		{strategy.Copy{MinConfidence: 0.9}, 81},
	} {
		t.Run(fmt.Sprintf("%+v", test.pooling), func(t *testing.T) {
			l := newLearner(t, strategy.Config{Pooling: test.pooling})
			q := strategy.Query{Item: "i"}
			teach(t, l, q, 1)
			for n := 1; n <= test.from+2; n++ {
				q.Session = fmt.Sprint(n)
				c := choose(t, l, q)
				_, err := l.Observe(ctx, strategy.Outcome{Choice: c, Value: 0.2, Confidence: 0.5})
				require.NoError(t, err)
				try(t, l, strategy.Query{Item: "other", Session: fmt.Sprint("after", n)}, "d", 1)
				segment := levels(beliefs(t, l, strategy.Query{Item: "new"}))
				if n < test.from {
					require.Equal(t, segment, levels(beliefs(t, l, q)), "after %d", n)
				} else {
					require.NotEqual(t, segment, levels(beliefs(t, l, q)), "after %d", n)
				}
			}
		})
	}
}

func levels(beliefs []evidence.Belief) (levels []evidence.Beta) {
	for _, b := range beliefs {
		levels = append(levels, b.Level)
	}
	return levels
}

// An arm that is bad for the segment and good for one item wins for that item alone.
func TestASpecialisedItemGoesItsOwnWay(t *testing.T) {
	l := newLearner(t, strategy.Config{Pooling: strategy.Copy{}})
	q := strategy.Query{Item: "i", Category: "c"}
	teach(t, l, q, 40)
	reward := map[strategy.ArmID]float64{"a": -1, "b": 1, "c": -1, "d": -1}
	best := 0
	for n := range 600 {
		q.Session = fmt.Sprint(n)
		c := choose(t, l, q)
		credit(t, l, c, reward[c.Arm])
		if n >= 500 && c.Arm == "b" {
			best++
		}
	}
	assert.Greater(t, best, 90, "of 100")
	fresh := levels(beliefs(t, l, strategy.Query{Item: "new", Category: "c"}))
	assert.Greater(t, fresh[0].Alpha, 40., "the segment has not forgotten what others have shown")

	q.Session, q.Context = "", "elsewhere"
	for _, b := range beliefs(t, l, q) {
		assert.Equal(t, evidence.Beta{Alpha: 1, Beta: 1}, b.Level, "in another segment the item is new")
	}
}

// TestACopyHoldsWhatOthersHaveShown, and not the item's own outcomes; it is made once, in whichever
// process.
func TestACopyHoldsWhatOthersHaveShown(t *testing.T) {
	st := newStore(t, (&clock{}).Now)
	cfg := withFixtures(t, strategy.Config{Store: st, Pooling: strategy.Copy{Sessions: 5}})
	l := newLearner(t, cfg)
	q := strategy.Query{Item: "i", Category: "c"}
	teach(t, l, q, 7)
	for n := range 5 {
		q.Session = fmt.Sprint(n)
		try(t, l, q, "c", 1)
		try(t, l, strategy.Query{Item: "i", Session: q.Session + "!", Category: "another",
			Context: "x"}, "d", 1)
	}
	copied := kept(t, st, q, "given")
	require.Len(t, copied, 2)
	assert.Equal(t, "a", copied[0].Cell.Name)
	assert.Equal(t, []float64{7, 7}, []float64{copied[0].Tally.Mass, copied[0].Tally.Reward})
	assert.Equal(t, "b", copied[1].Cell.Name)
	assert.Equal(t, []float64{7, 0}, []float64{copied[1].Tally.Mass, copied[1].Tally.Reward})
	want := []evidence.Beta{{Alpha: 8, Beta: 1}, {Alpha: 1, Beta: 8}, {Alpha: 6, Beta: 1},
		{Alpha: 1, Beta: 1}}
	assert.Equal(t, want, levels(beliefs(t, l, q)))

	teach(t, l, q, 10)
	restarted := newLearner(t, cfg)
	assert.Equal(t, want, levels(beliefs(t, restarted, q)))
	for n := range 10 {
		q.Session = fmt.Sprint("later", n)
		try(t, restarted, q, "d", 1)
	}
	assert.Equal(t, copied, kept(t, st, q, "given"))
	want[3].Alpha = 11
	assert.Equal(t, want, levels(beliefs(t, restarted, q)))
	assert.Equal(t, want, levels(beliefs(t, l, q)), "as the item's own, it is seen at once")
}

// TestTheFirstOfItsSegmentGoesItsOwnWayWithNothing, whatever its confidences leave in sums by
// rounding: what others show later is not for it.
func TestTheFirstOfItsSegmentGoesItsOwnWayWithNothing(t *testing.T) {
	for _, confidence := range []float64{0.5, 0.6, 0.75, 0.8, 0.9, 1} {
		st := newStore(t, (&clock{}).Now)
		l := newLearner(t, strategy.Config{Store: st, Pooling: strategy.Copy{}})
		q := strategy.Query{Item: "i"}
		fail := func(sessions int) {
			for n := range sessions {
				q.Session, q.Arms = fmt.Sprint(sessions, n), []strategy.ArmID{"a"}
				_, err := l.Observe(ctx, strategy.Outcome{Choice: choose(t, l, q), Value: -1,
					Confidence: confidence})
				require.NoError(t, err)
			}
		}
		fail(60)
		teach(t, l, q, 60)
		fail(1)
		assert.Less(t, means(t, l, q)[0], 0.05, "%v", confidence)
		assert.InDelta(t, 0, massOf(kept(t, st, q, "given")), 1e-6, "%v", confidence)
		specialized := 0
		for _, d := range distributionsOf(t, l) {
			specialized += len(d.Specialized)
		}
		assert.Equal(t, 1, specialized, "%v", confidence)
		assert.InDelta(t, 0.5, means(t, l, q)[1], 1e-6, "%v", confidence)
	}
}

// The sessions of one do not count in another, and each copy is made.
func TestAnItemSpecialisesInEachSegmentForItself(t *testing.T) {
	st := newStore(t, (&clock{}).Now)
	l := newLearner(t, strategy.Config{Store: st, Pooling: strategy.Copy{Sessions: 3}})
	segments := []strategy.Query{{Item: "i", Category: "c", Context: "x"},
		{Item: "i", Category: "c", Context: "y"}}
	for n, q := range segments {
		teach(t, l, q, n+1)
	}
	for n := range 3 {
		for _, q := range segments {
			assert.Empty(t, kept(t, st, q, "given"), "after %d", n)
			q.Session = fmt.Sprint(n) // which is one and the same session in both
			assert.NoError(t, l.EndSession(ctx, q.Session))
			credit(t, l, choose(t, l, q), 0)
		}
	}
	for n, q := range segments {
		assert.Equal(t, float64(2*(n+1)), massOf(kept(t, st, q, "given")))
	}
}

// A copy is made once, also when the store has long forgotten its id.
func TestACopyIsMadeOnceForGood(t *testing.T) {
	c := &clock{}
	st := newStore(t, c.Now)
	l := newLearner(t, strategy.Config{Now: c.Now, Store: st, Pooling: strategy.Copy{Sessions: 3}})
	q := strategy.Query{Item: "i"}
	teach(t, l, q, 5)
	for n := range 12 {
		q.Session = fmt.Sprint(n)
		try(t, l, q, "c", 0)
		if n >= 2 {
			require.Equal(t, 10., massOf(kept(t, st, q, "given")), "after %d", n+1)
		}
		c.Advance(100 * 24 * time.Hour)
		require.NoError(t, st.Sweep(ctx, time.Time{}))
	}
}

// TestACopyFadesAsEvidenceDoes.
func TestACopyFadesAsEvidenceDoes(t *testing.T) {
	c := &clock{}
	l := newLearner(t, strategy.Config{Now: c.Now, Pooling: strategy.Copy{Sessions: 1},
		HalfLife: time.Hour})
	q := strategy.Query{Item: "i"}
	teach(t, l, q, 8)
	for range 64 {
		try(t, l, q, "b", 1)
	}
	for _, want := range []float64{8, 4, 2, 1} {
		assert.InDeltaSlice(t, []float64{1 + want, 1},
			[]float64{beliefs(t, l, q)[0].Level.Alpha, beliefs(t, l, q)[0].Level.Beta}, 1e-9)
		assert.InDeltaSlice(t, []float64{1 + 8*want, 1 + want},
			[]float64{beliefs(t, l, q)[1].Level.Alpha, beliefs(t, l, q)[1].Level.Beta}, 1e-9)
		c.Advance(time.Hour)
	}
}

func TestAFadedItemReturnsToItsSegment(t *testing.T) {
	c := &clock{}
	l := newLearner(t, strategy.Config{Now: c.Now, Pooling: strategy.Copy{Sessions: 4},
		HalfLife: time.Hour})
	q := strategy.Query{Item: "i"}
	teach(t, l, q, 20)
	for n := range 4 {
		q.Session = fmt.Sprint(n)
		try(t, l, q, "b", 1)
	}
	for n := range 10 {
		try(t, l, strategy.Query{Item: "other", Session: fmt.Sprint("more", n)}, "c", 1)
	}
	assert.Equal(t, evidence.Beta{Alpha: 1, Beta: 1}, beliefs(t, l, q)[2].Level)
	assert.Equal(t, evidence.Beta{Alpha: 11, Beta: 1},
		beliefs(t, l, strategy.Query{Item: "new"})[2].Level)
	c.Advance(time.Hour) // after which four outcomes are two: a confidence of 0.59
	assert.Equal(t, levels(beliefs(t, l, strategy.Query{Item: "new"})), levels(beliefs(t, l, q)))
}

func TestCopyReportsItsFaults(t *testing.T) {
	for _, test := range []struct {
		pooling strategy.Copy
		fields  []string
	}{
		{strategy.Copy{}, nil},
		{strategy.Copy{Sessions: 1, MinConfidence: 0.99}, nil},
		{strategy.Copy{Sessions: -1}, []string{"Pooling.Sessions"}},
		{strategy.Copy{Sessions: -1, MinConfidence: 1},
			[]string{"Pooling.Sessions", "Pooling.MinConfidence"}},
		{strategy.Copy{MinConfidence: -0.1}, []string{"Pooling.MinConfidence"}},
	} {
		_, err := strategy.New(ctx, withFixtures(t, strategy.Config{Pooling: test.pooling}))
		assert.Equal(t, test.fields, fields(err))
	}
}

// If a commit has several outcomes, each new one may specialise its item, also after a duplicate.
func TestAnItemSpecializesAfterADuplicate(t *testing.T) {
	cfg := withFixtures(t, strategy.Config{Pooling: strategy.Copy{Sessions: 1}})
	l := newLearner(t, cfg)
	known := choose(t, l, strategy.Query{Session: "s", Item: "known"})
	credit(t, l, known, 1)
	fresh := choose(t, l, strategy.Query{Session: "s", Item: "fresh"})
	did, err := l.ObserveAll(ctx, []strategy.Outcome{
		{Choice: known, Value: 1, Confidence: 1}, {Choice: fresh, Value: 1, Confidence: 1},
	}, "", "")
	require.NoError(t, err)
	require.Equal(t, []strategy.Disposition{strategy.Duplicate, strategy.Applied}, did)
	items := make(map[string]bool)
	for _, p := range kept(t, cfg.Store, strategy.Query{}, "given") {
		items[p.Cell.Item] = true
	}
	assert.Equal(t, map[string]bool{"known": true, "fresh": true}, items)
}

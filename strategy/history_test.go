package strategy_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/strategy"
)

func TestOutcomesAreWhatWasObserved(t *testing.T) {
	c := &clock{}
	l := newLearner(t, strategy.Config{Now: c.Now, Arms: plain("a", "b")})
	q := strategy.Query{Item: "i", Category: "c", Context: "x"}
	late := choose(t, l, strategy.Query{Session: "late", Item: "i", Category: "c", Context: "x",
		Arms: []strategy.ArmID{"a"}})
	type entry struct {
		arm     strategy.ArmID
		session string
		strategy.Result
	}
	var want []entry // the newest first
	for n, value := range []float64{1, -0.5, 0, 0.25, -1} {
		c.Advance(time.Minute)
		arm := strategy.ArmID("ab"[n%2 : n%2+1])
		q.Session, q.Arms = "s"+string(arm), []strategy.ArmID{arm}
		o := strategy.Outcome{
			Choice: choose(t, l, q), ID: q.Session + string(rune('0'+n)), Value: value,
			Confidence: 0.5 + float64(n)/10, Channel: "user", Source: "u" + string(arm),
		}
		_, err := l.Observe(ctx, o)
		require.NoError(t, err)
		want = append([]entry{{arm, q.Session, strategy.Result{
			ID: o.ID, Value: value, Confidence: o.Confidence, Channel: "user", Source: o.Source,
			At: c.Now(),
		}}}, want...)
	}
	// A late observation is placed by its own time. Other items and segments stand elsewhere.
	_, err := l.Observe(ctx, strategy.Outcome{Choice: late, Value: 1, Confidence: 1,
		At: start.Add(90 * time.Second)})
	require.NoError(t, err)
	want = append(want[:4:4], entry{"a", "late", strategy.Result{
		Value: 1, Confidence: 1, At: start.Add(90 * time.Second),
	}}, want[4])
	try(t, l, strategy.Query{Item: "j", Category: "c", Context: "x"}, "a", 1)
	try(t, l, strategy.Query{Item: "i", Category: "c"}, "a", 1)

	q = strategy.Query{Item: "i", Category: "c", Context: "x", Arms: []strategy.ArmID{"b"}}
	for limit, n := range map[int]int{0: 6, 1: 1, 2: 2, 4: 4, 6: 6, 100: 6} {
		all, err := outcomes(l, q, limit)
		require.NoError(t, err)
		var got []entry
		for _, r := range all {
			got = append(got, entry{r.Choice.Arm, r.Choice.Session, *r.Result})
			assert.Equal(t, strategy.Observed, r.Stage)
			assert.InDelta(t, r.Result.Value, r.Mean, 0)
		}
		assert.Equal(t, want[:n], got, "at most %d", limit)
	}
	for since, n := range map[time.Duration]int{0: 6, 2 * time.Minute: 4, 5 * time.Minute: 1} {
		f := strategy.ChoiceFilter{
			Evidence: true, Item: "i", Category: "c", Context: "x", Since: start.Add(since),
		}
		assert.Len(t, historyOf(t, l, f), n)
		f.Until = start.Add(5 * time.Minute)
		assert.Len(t, historyOf(t, l, f), n-1)
		f.Stage = strategy.Pending
		assert.Empty(t, historyOf(t, l, f))
	}
	got, err := outcomes(l, strategy.Query{Item: "nobody"}, 0)
	require.NoError(t, err)
	assert.Empty(t, got)
}

// An event that seems older than its choice finds the first choice, now and later.
func TestFindAllowsForSkew(t *testing.T) {
	clock := &clock{}
	l := newLearner(t, strategy.Config{Now: clock.Now})
	c := choose(t, l, strategy.Query{Session: "s0", Item: "i"})
	for _, at := range []time.Time{start.Add(-evidence.MaxSkew), start, {}} {
		record, err := l.Find(ctx, "s0", "i", at)
		require.NoError(t, err)
		assert.Equal(t, c.ID, record.Choice.ID)
	}
	_, err := l.Find(ctx, "s0", "i", start.Add(-evidence.MaxSkew-time.Second))
	require.ErrorIs(t, err, heed.ErrNotFound)
	require.NoError(t, l.EndSession(ctx, "s0"))
	clock.Advance(time.Minute)
	later := choose(t, l, strategy.Query{Session: "s0", Item: "i"})
	record, err := l.Find(ctx, "s0", "i", start.Add(-time.Minute))
	require.NoError(t, err)
	assert.Equal(t, c.ID, record.Choice.ID, "of those made later, the first")
	record, err = l.Find(ctx, "s0", "i", time.Time{})
	require.NoError(t, err)
	assert.Equal(t, later.ID, record.Choice.ID, "at any time, the last")
}

package feedback_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/feedback"
)

func TestWilsonLower(t *testing.T) {
	for _, test := range []struct {
		hits, n int
		want    float64
	}{{2, 8, 0.0715}, {5, 8, 0.306}, {8, 8, 0.676}, {0, 0, 0}, {0, 8, 0}} {
		assert.InDelta(t, test.want, feedback.WilsonLower(test.hits, test.n), 5e-4, "%d of %d",
			test.hits, test.n)
	}
	for n := range 100 { // rounding may give less
		assert.GreaterOrEqual(t, feedback.WilsonLower(0, n), 0.)
	}
}

// decide puts decisions into the store: hits of n are corrections, of the cluster if there is one,
// evenly over a time.
func (w *world) decide(from, to time.Time, hits, n int, cluster string, rules ...string) {
	w.t.Helper()
	for i := range n {
		w.count++
		f := w.correction("ann", "x")
		f.At = from.Add(to.Sub(from) * time.Duration(i) / time.Duration(n)).Truncate(time.Microsecond)
		f.Rules = rules
		r := f
		r.Recorded = f.At
		if i >= hits {
			r.Decision = feedback.Approved
		} else {
			r.Cluster = cluster
		}
		w.put(r)
	}
}

// measured returns the effect of a rule of the given age, with these decisions before and after.
func measured(t *testing.T, age time.Duration, before, after [2]int,
	clusters ...string) feedback.Effect {
	w := stocked(t, 1, feedback.Config{}, func(_ int, r *feedback.Rule) { r.Clusters = clusters })
	cluster := ""
	if len(clusters) > 0 {
		cluster = clusters[0]
	}
	w.decide(start.Add(-20*day), start, before[0], before[1], cluster)
	w.decide(start.Add(7*day), start.Add(max(age, 7*day+time.Hour)), after[0], after[1], cluster)
	w.clock.advance(age)
	e, err := feedback.Measure(ctx, w.Service, "r00", w.clock.Now())
	require.NoError(t, err)
	return e
}

func TestEffectStatuses(t *testing.T) {
	for _, test := range []struct {
		name          string
		age           time.Duration
		before, after [2]int
		improvement   float64
		status        string
	}{
		{"32 % to 18 %", 31 * day, [2]int{32, 100}, [2]int{18, 100}, 0.4375, "effective"},
		{"28 % to 26 %", 31 * day, [2]int{28, 100}, [2]int{26, 100}, 1 - 26./28, "under_review"},
		{"15 % to 14 %", 31 * day, [2]int{15, 100}, [2]int{14, 100}, 1 - 14./15, "under_review"},
		{"exactly 10 %", 31 * day, [2]int{20, 100}, [2]int{18, 100}, 0.1, "effective"},
		{"unchanged after 31 days", 31 * day, [2]int{20, 100}, [2]int{20, 100}, 0, "ineffective"},
		{"unchanged after 29 days", 29 * day, [2]int{20, 100}, [2]int{20, 100}, 0, "under_review"},
		{"a little worse", 31 * day, [2]int{20, 100}, [2]int{22, 100}, -0.1, "ineffective"},
		{"much worse", 31 * day, [2]int{20, 100}, [2]int{45, 100}, -1.25, "harmful"},
		{"younger than 7 days", 6 * day, [2]int{20, 100}, [2]int{0, 0}, 0, "stabilising"},
		{"7 decisions before", 31 * day, [2]int{7, 7}, [2]int{0, 100}, 0, "insufficient_data"},
		{"7 decisions after", 31 * day, [2]int{50, 100}, [2]int{7, 7}, 0, "insufficient_data"},
		{"8 and 8", 31 * day, [2]int{8, 8}, [2]int{2, 8}, 0.75, "effective"},
		{"nothing before, nothing after", 31 * day, [2]int{0, 100}, [2]int{0, 100}, 0,
			"insufficient_data"},
		{"nothing before, some after", 31 * day, [2]int{0, 100}, [2]int{30, 100}, 0, "harmful"},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := measured(t, test.age, test.before, test.after)
			assert.Equal(t, test.status, e.Status)
			assert.InDelta(t, test.improvement, e.Improvement, 1e-12)
			got := [][2]int{{e.Before.Hits, e.Before.Of}, {e.After.Hits, e.After.Of}}
			assert.Equal(t, test.before, got[0])
			if test.age >= 7*day {
				assert.Equal(t, test.after, got[1])
			}
			for _, x := range []float64{e.Improvement, e.Certainty, e.After.Mean} {
				assert.False(t, math.IsNaN(x))
			}
		})
	}
	assert.Greater(t, measured(t, 31*day, [2]int{32, 100}, [2]int{18, 100}).Certainty, 0.98)
	assert.InDelta(t, 0.5, measured(t, 31*day, [2]int{20, 100}, [2]int{20, 100}).Certainty, 1e-6)
	// Of Beta(9, 1) and Beta(5, 5): 1 − 13!·9!/(18!·4!).
	assert.InDelta(t, 67./68, measured(t, 31*day, [2]int{8, 8}, [2]int{4, 8}).Certainty, 1e-6)
}

func TestRecurrenceIsWhatARuleIsJudgedBy(t *testing.T) {
	// Of 100 decisions, 30 stood with the cluster before, and 5 after; all other corrections are as
	// many as ever.
	w := stocked(t, 1, feedback.Config{}, func(_ int,
		r *feedback.Rule) {
		r.Clusters = []string{"c"}
	})
	w.decide(start.Add(-20*day), start.Add(-day), 30, 50, "c")
	w.decide(start.Add(-20*day), start.Add(-day), 20, 50, "other")
	w.decide(start.Add(-31*day), start.Add(-30*day), 9, 9, "c") // before the time before
	w.decide(start, start.Add(6*day), 9, 9, "c")                // while it stabilises
	w.decide(start.Add(8*day), start.Add(30*day), 5, 50, "c", "r00")
	w.decide(start.Add(8*day), start.Add(30*day), 45, 50, "other", "r00")
	w.clock.advance(31 * day)
	e, err := feedback.Measure(ctx, w.Service, "r00", w.clock.Now())
	require.NoError(t, err)
	assert.Equal(t, feedback.Rate{Hits: 30, Of: 100, Mean: 0.3}, e.Before)
	assert.Equal(t, feedback.Rate{Hits: 5, Of: 100, Mean: 0.05}, e.After)
	assert.Equal(t, "effective", e.Status)
	assert.Equal(t, 5, e.Violations, "they came although the prompt had the rule")
	_, err = feedback.Measure(ctx, w.Service, "unknown", w.clock.Now())
	assert.ErrorIs(t, err, heed.ErrNotFound)
}

// A rule that was retired while it was measured gets no effect, also once it is back.
func TestAnEffectIsOfTheRuleThatWasMeasured(t *testing.T) {
	w, n := watched(t, feedback.Config{})
	was := w.activate(rule("Be brief"))
	e := feedback.Effect{Status: "effective", Measured: start.Add(day)}
	_, err := w.rules.Move(ctx, order(was.ID), feedback.StateRetired)
	require.NoError(t, err)
	require.NoError(t, feedback.KeepEffect(ctx, w.Service, was, e))
	assert.Zero(t, w.rule(was.ID).Effect)
	again := w.change(was.ID, feedback.Restore)
	require.NoError(t, feedback.KeepEffect(ctx, w.Service, was, e))
	assert.Zero(t, w.rule(was.ID).Effect)
	require.NoError(t, feedback.KeepEffect(ctx, w.Service, again, e))
	assert.Equal(t, e, w.rule(was.ID).Effect)
	assert.Empty(t, changes(t, n, "harmful"))

	e.Status, e.Measured = "harmful", start.Add(2*day)
	require.NoError(t, feedback.KeepEffect(ctx, w.Service, again, e))
	require.NoError(t, feedback.KeepEffect(ctx, w.Service, again, e))
	assert.Len(t, changes(t, n, "harmful"), 1, "once")
	entries, err := w.Audit(ctx, 1)
	require.NoError(t, err)
	assert.Equal(t, []any{"feedback.propose-retirement", e.Measured},
		[]any{entries[0].Action, entries[0].At})
}

// unfit is a world with that many rules, each for an agent of its own, the later ones the worse, a
// month on.
func unfit(t *testing.T, n int, cfg feedback.Config) *world {
	w := stocked(t, n, cfg, func(i int, r *feedback.Rule) {
		r.Agents, r.Activated, r.Since = []string{fmt.Sprint("agent", i)}, start, start
	})
	for i := range n {
		for _, side := range []struct {
			at   time.Time
			hits int
		}{{start.Add(-day), 10}, {start.Add(8 * day), 10 + i}} {
			for k := range 20 {
				f := w.correction("ann", "x")
				f.Agent, f.At = fmt.Sprint("agent", i), side.at.Add(time.Duration(k)*time.Minute)
				if k >= side.hits {
					f.Decision = feedback.Approved
				}
				f.Recorded = f.At
				w.put(f)
			}
		}
	}
	w.clock.advance(31 * day)
	return w
}

func (w *world) unfit() (ids []string) {
	w.t.Helper()
	rules, err := w.rules.List(ctx, feedback.RuleQuery{Unfit: true})
	require.NoError(w.t, err)
	for _, r := range rules {
		ids = append(ids, r.ID)
	}
	return ids
}

func TestEachTimeOfMeasuring(t *testing.T) {
	// 20 % before, and so many of a hundred after.
	for name, test := range map[string]struct {
		before, after, age time.Duration
		hits               int
		status             string
	}{
		"as it is":                 {5 * day, 8 * day, 12 * day, 17, "effective"},
		"a tenth is enough":        {5 * day, 8 * day, 12 * day, 18, "effective"},
		"too small an improvement": {5 * day, 8 * day, 12 * day, 19, "under_review"},
		"while it stabilises":      {5 * day, 3 * day, 7*day - time.Second, 17, "stabilising"},
		"only while it stabilised": {5 * day, 5 * day, 7 * day, 17, "insufficient_data"},
		"just stabilised":          {30 * day, 7 * day, 10 * day, 17, "effective"},
		"too long before":          {32 * day, 8 * day, 12 * day, 17, "insufficient_data"},
		"none, before the review":  {5 * day, 8 * day, 30*day - time.Second, 20, "under_review"},
		"none, at the review":      {5 * day, 8 * day, 30 * day, 20, "ineffective"},
		"some, at the review":      {5 * day, 8 * day, 30 * day, 19, "under_review"},
	} {
		w := stocked(t, 1, feedback.Config{}, nil)
		w.decide(start.Add(-test.before), start.Add(-test.before+day), 20, 100, "")
		w.decide(start.Add(test.after), start.Add(test.after+day), test.hits, 100, "")
		w.clock.advance(test.age)
		e, err := feedback.Measure(ctx, w.Service, "r00", w.clock.Now())
		require.NoError(t, err)
		assert.Equal(t, test.status, e.Status, name)
	}
}

func TestDryRun(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	w.says("ann", long)
	w.says("bob", "the summary is not too long")
	w.says("bob", "tests are missing")
	w.add(w.approval("ann", ""))
	f := w.correction("ann", long)
	f.Agent = "coder"
	w.add(f)
	before, err := w.Tree(ctx)
	require.NoError(t, err)
	applied, of, err := w.rules.DryRun(ctx, rule("The summary is too long"))
	require.NoError(t, err)
	assert.Equal(t, 3, of)
	require.Len(t, applied, 2)
	assert.Equal(t, "d1", applied[0].ID)
	assert.Equal(t, feedback.OpposedPolarity, applied[1].Opposed)
	applied, of, err = w.rules.DryRun(ctx, feedback.Draft{Text: "The summary is too long",
		AllAgents: true})
	require.NoError(t, err)
	assert.Equal(t, 4, of)
	assert.Len(t, applied, 3)
	after, err := w.Tree(ctx)
	require.NoError(t, err)
	assert.Equal(t, before, after)
	_, _, err = w.rules.DryRun(ctx, feedback.Draft{})
	assert.ErrorAs(t, err, new(*heed.InputError))

	w = newWorld(t, feedback.Config{Similarity: &flaky{failing: true}})
	w.add(w.correction("ann", long))
	applied, of, err = w.rules.DryRun(ctx, rule("The summary is too long"))
	assert.ErrorIs(t, err, errFlaky)
	assert.Empty(t, applied)
	assert.Zero(t, of)
}

package strategy_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gonum.org/v1/gonum/mathext"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/strategy"
)

func distributionOf(t testing.TB, l *strategy.Learner, category,
	context string) strategy.Distribution {
	d, err := distribution(l, category, context)
	require.NoError(t, err)
	return d
}

func distributionsOf(t testing.TB, l *strategy.Learner) (all []strategy.Distribution) {
	for d, err := range l.Distributions(ctx) {
		require.NoError(t, err)
		all = append(all, d)
	}
	return all
}

func itemOf(t testing.TB, l *strategy.Learner, q strategy.Query) strategy.Standing {
	r, err := itemReport(l, q)
	require.NoError(t, err)
	return r
}

// surveyed has one failure of b by item j, then two successes of a by item i in two sessions, then
// a success of b by j.
func surveyed(t testing.TB, pooling strategy.Pooling) (*strategy.Learner, *clock) {
	cfg, c := recording(t, strategy.Config{Arms: plain("a", "b"), Pooling: pooling})
	l := newLearner(t, cfg)
	for n, step := range []struct {
		item  string
		arm   strategy.ArmID
		value float64
	}{{"j", "b", -1}, {"i", "a", 1}, {"i", "a", 1}, {"j", "b", 1}} {
		c.Advance(time.Hour)
		try(t, l, strategy.Query{Session: fmt.Sprint("s", min(n, 2)), Item: step.item, Category: "c",
			Context: "x"}, step.arm, step.value)
	}
	return l, c
}

// assertArm checks a report of an arm whose belief is a plain Beta; the bounds are of its closed
// form.
func assertArm(t testing.TB, r strategy.ArmReport, arm strategy.ArmID, level evidence.Beta, low,
	high float64, outcomes uint64) {
	t.Helper()
	assert.Equal(t, arm, r.Arm)
	assert.Equal(t, level, r.Belief.Level)
	assert.InDelta(t, level.Alpha/(level.Alpha+level.Beta), r.Mean, 1e-12)
	assert.InDelta(t, low, r.Low, 1e-9)
	assert.InDelta(t, high, r.High, 1e-9)
	assert.Equal(t, outcomes, r.Outcomes)
}

// The bounds of 90 % of Beta(1, 1), of Beta(3, 1), whose distribution is x³, of Beta(1, 2),
// 1-(1-x)², and of Beta(2, 2), 3x²-2x³.
var (
	even     = [2]float64{0.05, 0.95}
	threeOne = [2]float64{math.Cbrt(0.05), math.Cbrt(0.95)}
	oneTwo   = [2]float64{1 - math.Sqrt(0.95), 1 - math.Sqrt(0.05)}
	twoTwo   = [2]float64{0.5 - math.Sin(math.Asin(0.9)/3), 0.5 + math.Sin(math.Asin(0.9)/3)}
)

func TestSurveyOfItemsAlone(t *testing.T) {
	l, c := surveyed(t, strategy.Alone{})
	d := distributionOf(t, l, "c", "x")
	require.Len(t, d.Arms, 2)
	assertArm(t, d.Arms[0], "a", evidence.Beta{Alpha: 1, Beta: 1}, even[0], even[1], 2)
	assertArm(t, d.Arms[1], "b", evidence.Beta{Alpha: 1, Beta: 1}, even[0], even[1], 2)
	assert.Equal(t, strategy.ArmID("a"), d.Leading, "the first of equals")
	assert.Equal(t, []string{"i", "j"}, d.Specialized, "an item is its own from the first outcome on")
	assert.Equal(t, 2, d.Items)
	assert.EqualValues(t, 4, d.Outcomes)
	assert.Zero(t, d.Sessions, "nothing asks for them")
	assert.Equal(t, c.Now(), d.Updated)
	assert.Empty(t, d.Parameters)

	r := itemOf(t, l, strategy.Query{Item: "i", Category: "c", Context: "x"})
	assertArm(t, r.Arms[0], "a", evidence.Beta{Alpha: 3, Beta: 1}, threeOne[0], threeOne[1], 2)
	assertArm(t, r.Arms[1], "b", evidence.Beta{Alpha: 1, Beta: 1}, even[0], even[1], 0)
	assert.Equal(t, 1., r.Independence)
	assert.True(t, r.Specialized)
	assert.Zero(t, d.SpecializesAt)
	assert.Zero(t, r.Sessions)
}

func TestSurveyOfCopies(t *testing.T) {
	l, _ := surveyed(t, strategy.Copy{Sessions: 2, MinConfidence: 0.58}) // √2/(1+√2) is 0.586
	d := distributionOf(t, l, "c", "x")
	assertArm(t, d.Arms[0], "a", evidence.Beta{Alpha: 3, Beta: 1}, threeOne[0], threeOne[1], 2)
	assertArm(t, d.Arms[1], "b", evidence.Beta{Alpha: 2, Beta: 2}, twoTwo[0], twoTwo[1], 2)
	assert.Equal(t, strategy.ArmID("a"), d.Leading)
	assert.Equal(t, []string{"i", "j"}, d.Specialized)
	assert.EqualValues(t, 4, d.Sessions, "two of each item")

	// Item i took its copy when b had failed once, and what j learned of b since does not reach it.
	r := itemOf(t, l, strategy.Query{Item: "i", Category: "c", Context: "x"})
	assertArm(t, r.Arms[0], "a", evidence.Beta{Alpha: 3, Beta: 1}, threeOne[0], threeOne[1], 2)
	assertArm(t, r.Arms[1], "b", evidence.Beta{Alpha: 1, Beta: 2}, oneTwo[0], oneTwo[1], 0)
	assert.Equal(t, 1., r.Independence)
	assert.Equal(t, 2, d.SpecializesAt)
	assert.EqualValues(t, 2, r.Sessions)

	l, _ = surveyed(t, strategy.Copy{Sessions: 2}) // whose two outcomes are too few to be relied on
	d = distributionOf(t, l, "c", "x")
	assert.Empty(t, d.Specialized)
	r = itemOf(t, l, strategy.Query{Item: "i", Category: "c", Context: "x"})
	assert.Zero(t, r.Independence)
	assert.False(t, r.Specialized)
	assert.Equal(t, d.Arms[0].Belief.Level, r.Arms[0].Belief.Level)
	l, _ = surveyed(t, strategy.Copy{})
	assert.Equal(t, 20, distributionOf(t, l, "c", "x").SpecializesAt)
}

// If each item has one outcome, every strength is as likely, and the strength their geometric mean,
// (1·3·10·30·100·300·1000·3000)^(1/8) = √3000. A single outcome counts in the segment for one.
func TestSurveyOfTwoLevels(t *testing.T) {
	cfg, _ := recording(t, strategy.Config{Arms: plain("a", "b")})
	l := newLearner(t, cfg)
	q := strategy.Query{Item: "i", Category: "c"}
	try(t, l, q, "a", 1)
	strength := math.Sqrt(3000)
	d := distributionOf(t, l, "c", "")
	assert.InDelta(t, 2, d.Arms[0].Belief.Level.Alpha, 1e-9)
	assert.InDelta(t, 1, d.Arms[0].Belief.Level.Beta, 1e-9)
	assert.InDelta(t, strength, d.Arms[0].Belief.Strength, 1e-9)
	assert.InDelta(t, 2./3, d.Arms[0].Mean, 1e-12)
	assert.Equal(t, 0.5, d.Arms[1].Mean)
	assert.Empty(t, d.Specialized)
	r := itemOf(t, l, q)
	assert.InDelta(t, 2./3, r.Arms[0].Mean, 1e-9, "the item has all evidence of the segment")
	assert.InDelta(t, 1/(strength+1), r.Independence, 1e-12)
	assert.False(t, r.Specialized)
	assert.Zero(t, d.SpecializesAt)

	// Items that differ as much as can be go their own way, from ½ on.
	for n := range 40 {
		try(t, l, strategy.Query{Item: fmt.Sprint("good", n%4), Category: "c"}, "a", 1)
		try(t, l, strategy.Query{Item: fmt.Sprint("bad", n%4), Category: "c"}, "a", -1)
	}
	d = distributionOf(t, l, "c", "")
	assert.Equal(t, []string{"bad0", "bad1", "bad2", "bad3", "good0", "good1", "good2", "good3"},
		d.Specialized)
	assert.Equal(t, 9, d.Items)
	r = itemOf(t, l, strategy.Query{Item: "good0", Category: "c"})
	assert.InDelta(t, 10/(d.Arms[0].Belief.Strength+10), r.Independence, 1e-9)
	assert.Greater(t, r.Arms[0].Mean, 0.8)
}

// TestTheSurveyIsWhatIsBelieved checks the surveys of items and segments, for each pooling, and
// from a second learner.
func TestTheSurveyIsWhatIsBelieved(t *testing.T) {
	for _, pooling := range []strategy.Pooling{strategy.TwoLevel{},
		strategy.Copy{Sessions: 3, MinConfidence: 0.1}, strategy.Alone{}} {
		l, q := experienced(t, strategy.Config{Pooling: pooling})
		require.NoError(t, l.Refresh(ctx))
		r, d := itemOf(t, l, q), distributionOf(t, l, "c", "x")
		for i, b := range beliefs(t, l, q) {
			assert.InDelta(t, b.Mean(), r.Arms[i].Mean, 1e-12)
		}
		for i, b := range beliefs(t, l, strategy.Query{Item: "new", Category: "c", Context: "x"}) {
			assert.InDelta(t, b.Mean(), d.Arms[i].Mean, 1e-12)
		}
		for _, r := range append(r.Arms, d.Arms...) {
			low, high := r.Belief.Interval(0.9)
			assert.Equal(t, []float64{low, high}, []float64{r.Low, r.High})
			assert.True(t, 0 <= low && low < r.Mean && r.Mean < high && high <= 1, "%+v", r)
		}
	}
}

func TestWhatHasNoOutcomesIsNotFound(t *testing.T) {
	cfg, _ := recording(t, strategy.Config{})
	l := newLearner(t, cfg)
	assert.Empty(t, distributionsOf(t, l))
	choose(t, l, strategy.Query{Item: "i", Category: "c"})
	_, err := distribution(l, "c", "")
	assert.ErrorIs(t, err, heed.ErrNotFound)
	_, err = itemReport(l, strategy.Query{Item: "i", Category: "c"})
	assert.ErrorIs(t, err, heed.ErrNotFound)
	assert.Empty(t, distributionsOf(t, l))
	try(t, l, strategy.Query{Item: "i", Category: "c"}, "a", 1)
	_, err = itemReport(l, strategy.Query{Item: "j", Category: "c"})
	assert.ErrorIs(t, err, heed.ErrNotFound)
	for _, err := range l.Distributions(ctx, strategy.Query{Item: "\x00"}) {
		assertInputError(t, err, "Item")
	}
	_, err = distribution(l, "\xff", "")
	assertInputError(t, err, "Category")
	fewer := cfg
	fewer.Arms = plain("x")
	_, err = distribution(newLearner(t, fewer), "c", "")
	assert.ErrorIs(t, err, heed.ErrNotFound, "of arms that the learner no longer has")
	assert.Empty(t, distributionsOf(t, newLearner(t, fewer)))
	st := &faulty{Store: cfg.Store}
	cfg.Store = st
	st.list.Store(&errStore)
	l = newLearner(t, cfg)
	_, err = itemReport(l, strategy.Query{Item: "i", Category: "c"})
	assert.ErrorIs(t, err, errStore)
	_, err = distribution(l, "c", "")
	assert.ErrorIs(t, err, errStore)
	for range 2 {
		n := 0
		for _, err := range l.Distributions(ctx) {
			assert.ErrorIs(t, err, errStore)
			n++
		}
		assert.Equal(t, 1, n)
	}
}

// TestSegmentsAreListedByTheirNames, of whatever text they are.
func TestSegmentsAreListedByTheirNames(t *testing.T) {
	cfg, _ := recording(t, strategy.Config{Pooling: strategy.Alone{}})
	l := newLearner(t, cfg)
	segments := [][2]string{{"", ""}, {"a", ""}, {"", "x"}, {"a/b", "c"}, {"a", "b/c"},
		{`"q"`, `"x"/`}, {"ü", "日本"}, {`\`, `\`}, {" ", "'"}}
	for n, s := range segments {
		for range n + 1 {
			try(t, l, strategy.Query{Item: "i", Category: s[0], Context: s[1]}, "b", 1)
		}
	}
	other := cfg
	other.Name = "other"
	try(t, newLearner(t, other), strategy.Query{Item: "i", Category: "of the other"}, "a", 1)
	got := make(map[[2]string]uint64)
	for _, d := range distributionsOf(t, newLearner(t, cfg)) {
		key := [2]string{d.Category, d.Context}
		assert.NotContains(t, got, key)
		got[key] = d.Outcomes
		assert.Equal(t, d, distributionOf(t, l, d.Category, d.Context))
	}
	assert.Len(t, got, len(segments))
	for n, s := range segments {
		assert.EqualValues(t, n+1, got[s], "%q", s)
	}
	for range l.Distributions(ctx) {
		break // a loop may end early
	}
}

func TestAResetShowsInTheSurvey(t *testing.T) {
	l, _ := surveyed(t, strategy.Copy{Sessions: 2, MinConfidence: 0.5})
	require.NoError(t, l.Reset(ctx, strategy.Reset{Category: "c", Context: "x", Item: "i",
		Reason: "reworded"}))
	_, err := itemReport(l, strategy.Query{Item: "i", Category: "c", Context: "x"})
	assert.ErrorIs(t, err, heed.ErrNotFound)
	d := distributionOf(t, l, "c", "x")
	assert.Equal(t, []string{"j"}, d.Specialized)
	assert.EqualValues(t, 2, d.Outcomes)
	assert.EqualValues(t, 2, d.Sessions)
	require.NoError(t, l.Reset(ctx, strategy.Reset{Category: "c", Context: "x",
		Reason: "a new model"}))
	_, err = distribution(l, "c", "x")
	assert.ErrorIs(t, err, heed.ErrNotFound)
	assert.Empty(t, distributionsOf(t, l))
	assert.Equal(t, 4, stages(t, l)[strategy.Observed], "what was chosen stays on record")
}

func TestParametersAreReported(t *testing.T) {
	cfg, _ := recording(t, strategy.Config{Arms: []strategy.Arm{
		{ID: "a", Parameters: []strategy.Parameter{{Name: "n", Values: []string{"1", "2"}},
			{Name: "m", Values: []string{""}}}}, {ID: "b"},
	}})
	l := newLearner(t, cfg)
	c := choose(t, l, strategy.Query{Item: "i", Arms: []strategy.ArmID{"a"}})
	credit(t, l, c, 1)
	won, even := evidence.Beta{Alpha: 2, Beta: 1}, evidence.Beta{Alpha: 1, Beta: 1}
	want := []strategy.ParameterReport{{Arm: "a", Name: "n", Value: "1", Belief: even},
		{Arm: "a", Name: "n", Value: "2", Belief: even},
		{Arm: "a", Name: "m", Belief: won, Outcomes: 1}}
	for i := range 2 {
		if want[i].Value == c.Parameter("n") {
			want[i].Belief, want[i].Outcomes = won, 1
		}
	}
	assert.Equal(t, want, distributionOf(t, l, "", "").Parameters)
}

// A plain belief has the quantiles of its distribution. A belief about an item around a level has
// those of the mixture. This test adds up the mixture's distribution over 400 quantiles of the
// level.
func TestIntervals(t *testing.T) {
	for _, level := range []evidence.Beta{{Alpha: 1, Beta: 1}, {Alpha: 3, Beta: 0.5},
		{Alpha: 400, Beta: 600}} {
		for _, p := range []float64{0.5, 0.9, 0.99} {
			wantLow, wantHigh := level.Interval(p)
			low, high := evidence.Belief{Level: level}.Interval(p)
			assert.Equal(t, []float64{wantLow, wantHigh}, []float64{low, high})
		}
	}
	for _, b := range []evidence.Belief{
		{Level: evidence.Beta{Alpha: 1, Beta: 1}, Strength: 1},
		{Level: evidence.Beta{Alpha: 30, Beta: 10}, Strength: 5, Successes: 2, Failures: 12},
		{Level: evidence.Beta{Alpha: 2, Beta: 9}, Strength: 300, Successes: 40},
		{Level: evidence.Beta{Alpha: 300, Beta: 100}, Strength: 0.2, Failures: 1},
	} {
		const steps = 400
		var levels []float64
		for i := range steps / 2 {
			low, high := b.Level.Interval(1 - (2*float64(i)+1)/steps)
			levels = append(levels, low, high)
		}
		at := func(x float64) (p float64) {
			for _, m := range levels {
				p += mathext.RegIncBeta(b.Strength*m+b.Successes, b.Strength*(1-m)+b.Failures, x) / steps
			}
			return p
		}
		low, high := b.Interval(0.9)
		assert.InDelta(t, 0.05, at(low), 0.015, "%+v", b) // 4.4 standard errors of 4,096 draws
		assert.InDelta(t, 0.95, at(high), 0.015, "%+v", b)
		again, _ := b.Interval(0.9)
		assert.Equal(t, low, again)
		narrow, wide := b.Interval(0.5)
		assert.True(t, low < narrow && narrow < wide && wide < high)
		for _, level := range []float64{0, 1, -1, 2, math.NaN(), math.Inf(1)} {
			low, high := b.Interval(level)
			assert.True(t, math.IsNaN(low) && math.IsNaN(high), "at %v", level)
		}
	}
	low, _ := evidence.Belief{Strength: 1}.Interval(0.9)
	assert.True(t, math.IsNaN(low))
}

// TestReportsKeepTheirShapeAsJSON, which dashboards read. HEED_UPDATE=1 writes the file again.
func TestReportsKeepTheirShapeAsJSON(t *testing.T) {
	cfg, c := recording(t, strategy.Config{
		Pooling: strategy.Copy{Sessions: 2, MinConfidence: 0.5},
		Arms: []strategy.Arm{{ID: "a", Parameters: []strategy.Parameter{{Name: "n",
			Values: []string{"1"}}}}, {ID: "b"}},
		NewID: func() strategy.ChoiceID { return strategy.ChoiceID{15: 7} },
	})
	l := newLearner(t, cfg)
	q := strategy.Query{Session: "s", Item: "i", Category: "c", Context: "x",
		Arms: []strategy.ArmID{"a"}}
	choice := choose(t, l, q)
	_, err := l.Observe(ctx, strategy.Outcome{Choice: choice, ID: "review", Value: 0.5, Confidence: 1,
		Channel: "user", Source: "ann"})
	require.NoError(t, err)
	c.Advance(time.Second)
	credits, err := outcomes(l, q, 0)
	require.NoError(t, err)
	got, err := json.MarshalIndent(rounded(t, map[string]any{
		"distribution": distributionOf(t, l, "c", "x"), "item": itemOf(t, l, q),
		"history": historyOf(t, l, strategy.ChoiceFilter{}), "outcomes": credits,
	}), "", "  ")
	require.NoError(t, err)
	file := filepath.Join("testdata", "reports.json")
	if os.Getenv("HEED_UPDATE") != "" {
		require.NoError(t, os.WriteFile(file, append(got, '\n'), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(want), string(got)+"\n")
}

// rounded returns a value as JSON has it, with numbers of four digits, and without what was drawn.
func rounded(t testing.TB, value any) any {
	text, err := json.Marshal(value)
	require.NoError(t, err)
	var tree any
	require.NoError(t, json.Unmarshal(text, &tree))
	var round func(any) any
	round = func(node any) any {
		switch node := node.(type) {
		case float64:
			return math.Round(node*1e4) / 1e4
		case []any:
			for i := range node {
				node[i] = round(node[i])
			}
		case map[string]any:
			delete(node, "sample")
			for key := range node {
				node[key] = round(node[key])
			}
		}
		return node
	}
	return round(tree)
}

// An independent pooling has items that go their own way to a stated degree.
type independent float64

func (p independent) Model(strategy.Segment, []strategy.Item) strategy.Model { return p }

func (independent) Update(int, evidence.Sums, evidence.Sums) bool { return false }

func (independent) Believe(_ strategy.Item, beliefs []evidence.Belief) {
	for i := range beliefs {
		beliefs[i].Level = evidence.Beta{Alpha: 1, Beta: 1}
	}
}

func (p independent) Independence(strategy.Item) float64 { return float64(p) }

// An item is specialised from an independence of a half on.
func TestWhenAnItemIsSpecialised(t *testing.T) {
	for p, want := range map[independent]bool{0.49: false, 0.5: true, 0.6: true} {
		l := newLearner(t, strategy.Config{Pooling: p})
		try(t, l, strategy.Query{Item: "i"}, "a", 1)
		d := distributionOf(t, l, "", "")
		assert.Equal(t, want, d.Standings[0].Specialized)
		assert.Equal(t, want, len(d.Specialized) == 1)
	}
}

// A query of a segment without outcomes has no report, and the next one has its own.
func TestReportsPassOverWhatHasNoOutcomes(t *testing.T) {
	l := newLearner(t, strategy.Config{})
	try(t, l, strategy.Query{Category: "c"}, "a", 1)
	var found []string
	for d, err := range l.Distributions(ctx, strategy.Query{Category: "none"},
		strategy.Query{Category: "c"}) {
		require.NoError(t, err)
		found = append(found, d.Category)
	}
	assert.Equal(t, []string{"c"}, found)
}

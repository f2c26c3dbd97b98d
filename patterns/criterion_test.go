package patterns_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/heedhq/heed/patterns"
)

func (w *world) criterion(name string) patterns.Criterion {
	w.t.Helper()
	all, err := w.Criteria(ctx, name)
	require.NoError(w.t, err)
	require.Len(w.t, all, 1)
	return all[0]
}

func TestCriterionWeights(t *testing.T) {
	for _, v := range readJSON[[]struct {
		Name                                 string
		Events                               []vectorEvent
		Default, Literal                     float64
		DefaultDeprecated, LiteralDeprecated bool
		Helpful, Harmful                     uint64
	}](t, "testdata/criteria.json") {
		t.Run(v.Name, func(t *testing.T) {
			both(t, func(t *testing.T, cfg patterns.Config) {
				weight, deprecated := v.Default, v.DefaultDeprecated
				if cfg.Literal() {
					weight, deprecated = v.Literal, v.LiteralDeprecated
				}
				w := newWorld(t, cfg)
				for _, e := range v.Events {
					for range e.N {
						w.feed(patterns.Rating{Criterion: "c", Class: e.Class, Strength: e.Raw}, e.Age)
					}
				}
				c := w.criterion("c")
				assert.InDelta(t, weight, c.Weight, 1e-6)
				assert.Equal(t, deprecated, c.Deprecated)
				assert.Equal(t, [2]uint64{v.Helpful, v.Harmful}, [2]uint64{c.HelpfulCount, c.HarmfulCount})
				if deprecated {
					assert.Zero(t, c.Effective)
				} else {
					assert.Equal(t, c.Weight, c.Effective)
				}
				assert.Equal(t, 90*day, c.HalfLife)
			})
		})
	}
}

func TestFading(t *testing.T) {
	for _, v := range []struct{ age, want float64 }{
		{0, 1}, {30, 0.793701}, {90, 0.5}, {100, 0.462937}, {180, 0.25}, {270, 0.125}, {365, 0.060139},
	} {
		w := newWorld(t, patterns.Config{})
		w.feed(patterns.Rating{Criterion: "c", Class: patterns.Helpful}, v.age)
		assert.InDelta(t, v.want, w.criterion("c").Helpful, 1e-6)
	}
	w := newWorld(t, patterns.Config{HalfLife: 45 * day})
	w.feed(patterns.Rating{Criterion: "c", Class: patterns.Helpful}, 90)
	assert.InDelta(t, 0.5, w.criterion("c").Helpful, 1e-9, "the half-life is of patterns")
	assert.Equal(t, 90*day, w.criterion("c").HalfLife)

	_, err := w.Rate(ctx, patterns.Rating{ID: "zone", Criterion: "z", Class: patterns.Helpful,
		Strength: 1, At: start.In(time.FixedZone("", 7200))})
	require.NoError(t, err)
	assert.Equal(t, 1., w.criterion("z").Helpful, "an instant is the same in every zone")
}

// TestOutcomeIsFeedback has the strength of an outcome on the criteria that it names.
func TestOutcomeIsFeedback(t *testing.T) {
	both(t, func(t *testing.T, cfg patterns.Config) {
		w := newWorld(t, cfg)
		o := good()
		o.Criteria = []string{"readable", "no_bugs", "readable"}
		o.At = start.Add(-90 * day)
		recorded := w.record(o)
		assert.Equal(t, 100, recorded.Score.Value, "a score does not fade")
		c := w.criterion("readable")
		assert.EqualValues(t, 1, c.HelpfulCount, "named twice, it counts once")
		assert.InDelta(t, 0.5, c.Helpful, 1e-9, "its evidence fades once, from when it happened")

		worst, mild := bad(), bad()
		worst.Criteria, mild.Criteria = []string{"worst"}, []string{"mild"}
		mild.Errors, mild.Duration, mild.Retries = 1, 15*time.Minute, 1
		require.Equal(t, 14, w.record(worst).Score.Value)
		require.Equal(t, 38, w.record(mild).Score.Value)
		if cfg.Literal() {
			assert.InDelta(t, 0.14, w.criterion("worst").Harmful, 1e-9)
			assert.InDelta(t, 0.38, w.criterion("mild").Harmful, 1e-9)
			w.feed(patterns.Rating{Criterion: "worst", Class: patterns.Helpful}, 0)
			assert.InDelta(t, 0.877193, w.criterion("worst").Weight, 1e-6)
		} else {
			assert.InDelta(t, 0.86, w.criterion("worst").Harmful, 1e-9)
			assert.InDelta(t, 0.62, w.criterion("mild").Harmful, 1e-9)
		}

		slow := good()
		slow.Criteria, slow.Duration, slow.Errors = []string{"neutral"}, time.Hour, 3
		require.Equal(t, patterns.Neutral, w.record(slow).Score.Class)
		assert.Zero(t, w.criterion("neutral").HelpfulCount+w.criterion("neutral").HarmfulCount)

		all, err := w.Criteria(ctx)
		require.NoError(t, err)
		var names []string
		for _, c := range all {
			names = append(names, c.Name)
		}
		assert.Equal(t, []string{"mild", "no_bugs", "readable", "worst"}, names,
			"no criterion is credited that was not named")
	})
}

func TestCriterionValidation(t *testing.T) {
	both(t, func(t *testing.T, cfg patterns.Config) {
		w := newWorld(t, cfg)
		w.feed(patterns.Rating{Criterion: "c", Class: patterns.Harmful}, 5)
		c := w.criterion("c")
		assert.Equal(t, start.Add(-5*day), c.LastFeedback)
		assert.Equal(t, !cfg.Literal(), c.LastValidated.IsZero())
		w.feed(patterns.Rating{Criterion: "c", Class: patterns.Helpful}, 9)
		want := start.Add(-9 * day)
		if cfg.Literal() {
			want = start.Add(-5 * day)
		}
		assert.Equal(t, want, w.criterion("c").LastValidated)
	})
}

// TestEffectiveWeights has the factors of scores: that of a deprecated criterion is 0.
func TestEffectiveWeights(t *testing.T) {
	w := newWorld(t, patterns.SpecConfig())
	w.feed(patterns.Rating{Criterion: "half", Class: patterns.Helpful}, 0)
	w.feed(patterns.Rating{Criterion: "half", Class: patterns.Harmful}, 0)
	for range 8 {
		w.feed(patterns.Rating{Criterion: "good", Class: patterns.Helpful}, 0)
	}
	for range 2 {
		w.feed(patterns.Rating{Criterion: "good", Class: patterns.Harmful}, 0)
	}
	for range 3 {
		w.feed(patterns.Rating{Criterion: "spoilt", Class: patterns.Harmful}, 0)
	}
	all, err := w.Criteria(ctx, "new", "half", "good", "spoilt", "half")
	require.NoError(t, err)
	require.Len(t, all, 5)
	for i, want := range []struct {
		name   string
		effect float64
	}{{"new", 1}, {"half", 0.5}, {"good", 0.8}, {"spoilt", 0}, {"half", 0.5}} {
		assert.Equal(t, want.name, all[i].Name, "in the order of the names")
		assert.InDelta(t, want.effect, all[i].Effective, 1e-12)
	}
	_, err = w.Criteria(ctx, "half", "")
	assertInputError(t, err, "Criterion")
}

func TestEachRuleOfCriteriaAlone(t *testing.T) {
	for _, test := range []struct {
		helpful, harmful int
		weight           float64
		deprecated       bool
	}{
		{0, 0, 0.5, false}, {2, 0, 0.5, false}, {3, 0, 0.8, false}, {0, 2, 0.5, false},
		{2, 1, 0.6, true}, {7, 3, 2. / 3, false}, {0, 20, 0.1, true},
	} {
		w := newWorld(t, patterns.Config{})
		for range test.helpful {
			w.feed(patterns.Rating{Criterion: "c", Class: patterns.Helpful}, 0)
		}
		for range test.harmful {
			w.feed(patterns.Rating{Criterion: "c", Class: patterns.Harmful}, 0)
		}
		c := w.criterion("c")
		assert.InDelta(t, test.weight, c.Weight, 1e-12, "%d and %d", test.helpful, test.harmful)
		assert.Equal(t, test.deprecated, c.Deprecated, "%d and %d", test.helpful, test.harmful)
	}
}

// From the gate on, what helps never lowers a weight, and what harms never raises it; as all
// fades alike, weights without a prior do not move with time, and those with one move towards it.
func TestWeightsFollowFeedback(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		literal := rapid.Bool().Draw(rt, "literal")
		var cfg patterns.Config
		if literal {
			cfg = patterns.SpecConfig()
		}
		w := newWorld(t, cfg)
		class := rapid.SampledFrom([]string{patterns.Helpful, patterns.Harmful})
		before := math.NaN()
		for range rapid.IntRange(1, 12).Draw(rt, "n") {
			f := patterns.Rating{Criterion: "c", Class: class.Draw(rt, "class"),
				Strength: rapid.Float64Range(0.01, 1).Draw(rt, "strength")}
			w.feed(f, rapid.Float64Range(0, 400).Draw(rt, "age"))
			c := w.criterion("c")
			now := c.Weight
			switch {
			case math.IsNaN(before) || !literal && c.HelpfulCount+c.HarmfulCount <= 3:
			case f.Class == patterns.Helpful:
				assert.GreaterOrEqual(rt, now, before-1e-9)
			default:
				assert.LessOrEqual(rt, now, before+1e-9)
			}
			before = now
		}
		w.clock.Advance(time.Duration(rapid.IntRange(1, 3000).Draw(rt, "days")) * day)
		later := w.criterion("c").Weight
		if literal {
			assert.InDelta(rt, before, later, 1e-9)
		} else {
			assert.LessOrEqual(rt, math.Abs(later-0.5), math.Abs(before-0.5)+1e-9)
		}
	})
}

// TestCriterionIsTheSum compares a criterion with the sum over all its feedback, in any order of
// arrival.
func TestCriterionIsTheSum(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t, patterns.Config{})
		var helpful, harmful float64
		type event struct {
			class         string
			strength, age float64
		}
		events := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) event {
			return event{
				rapid.SampledFrom([]string{patterns.Helpful, patterns.Harmful,
					patterns.Neutral}).Draw(rt, "class"),
				rapid.Float64Range(0.01, 1).Draw(rt, "strength"),
				rapid.Float64Range(0, 1000).Draw(rt, "age"),
			}
		}), 0, 20).Draw(rt, "events")
		for _, e := range events {
			w.feed(patterns.Rating{Criterion: "c", Class: e.class, Strength: e.strength}, e.age)
			value := e.strength * math.Exp2(-e.age/90)
			switch e.class {
			case patterns.Helpful:
				helpful += value
			case patterns.Harmful:
				harmful += value
			case patterns.Neutral:
			}
		}
		c := w.criterion("c")
		assert.InDelta(rt, helpful, c.Helpful, 1e-9)
		assert.InDelta(rt, harmful, c.Harmful, 1e-9)
	})
}

//go:build !race

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

// TestMaturity brings evidence in as a host does, and reads the state.
func TestMaturity(t *testing.T) {
	for _, v := range readJSON[[]struct {
		Name             string
		Events           []vectorEvent
		Default, Literal string
	}](t, "testdata/maturity.json") {
		t.Run(v.Name, func(t *testing.T) {
			both(t, func(t *testing.T, cfg patterns.Config) {
				want := v.Default
				if cfg.Literal() {
					want = v.Literal
				}
				w := newWorld(t, cfg)
				_, err := w.Define(ctx, patterns.Pattern{ID: "p", Content: "a way"})
				require.NoError(t, err)
				for _, e := range v.Events {
					for range e.N {
						w.feed(patterns.Rating{Pattern: "p", Class: e.Class, Strength: e.Raw}, e.Age)
					}
				}
				s := w.standing("p")
				assert.Equal(t, want, patterns.StateByEvidence(s.Conditions))
				if s.State == patterns.Inverted { // which comes before its maturity
					assert.GreaterOrEqual(t, 5*s.Counts.Failures, 3*(s.Counts.Successes+s.Counts.Failures))
					want = s.State
				}
				assert.Equal(t, want, s.State)
				assert.Equal(t, map[string]float64{"candidate": 0.5, "established": 1,
					"proven": 1.5, "deprecated": 0, "inverted": 0}[want], s.Multiplier)
				assert.Equal(t, want, s.Pattern.State, "what is stored was settled")
			})
		})
	}
}

func TestFadedCounts(t *testing.T) {
	w := newWorld(t, patterns.Config{})
	w.feedPattern("p", patterns.Helpful, 1, 0)
	w.feedPattern("p", patterns.Helpful, 1, 90)
	w.feedPattern("p", patterns.Harmful, 1, 180)
	s := w.standing("p")
	assert.InDelta(t, 1.5, s.Helpful, 1e-9)
	assert.InDelta(t, 0.25, s.Harmful, 1e-9)
	assert.Equal(t, patterns.Observations{Successes: 2, Failures: 1}, s.Counts)
}

// TestProvenNeedsRecentHelp is what an old record is worth: a pattern must go on helping.
func TestProvenNeedsRecentHelp(t *testing.T) {
	w := newWorld(t, patterns.Config{})
	w.feedPattern("p", patterns.Helpful, 20, 0)
	w.clock.Advance(90 * day)
	assert.Equal(t, patterns.Proven, w.standing("p").State)
	w.clock.Advance(time.Millisecond)
	assert.Equal(t, patterns.Established, w.standing("p").State)
	assert.Equal(t, patterns.Proven, w.standing("p").Pattern.State,
		"stored is what it was when something was last heard")

	w.feedPattern("p", patterns.Harmful, 1, 0)
	assert.Equal(t, patterns.Established, w.standing("p").State, "harm does not confirm")
	w.feedPattern("p", patterns.Helpful, 1, 0)
	assert.Equal(t, patterns.Proven, w.standing("p").State)

	short := newWorld(t, patterns.Config{HalfLife: day})
	short.feedPattern("p", patterns.Helpful, 9, 0)
	short.clock.Advance(25 * time.Hour)
	assert.Equal(t, patterns.Established, short.standing("p").State)
}

// TestStatesByTime lets time pass without any feedback: in our arithmetic a pattern goes from
// proven to established, and nowhere else.
func TestStatesByTime(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t, patterns.Config{})
		w.feedPattern("p", patterns.Helpful, rapid.IntRange(0, 12).Draw(rt, "helpful"),
			rapid.Float64Range(0, 200).Draw(rt, "age"))
		w.feedPattern("p", patterns.Harmful, rapid.IntRange(1, 4).Draw(rt, "harmful"),
			rapid.Float64Range(0, 200).Draw(rt, "harm's age"))
		before := w.standing("p")
		for range 5 {
			w.clock.Advance(time.Duration(rapid.IntRange(1, 2000).Draw(rt, "days")) * day)
			now := w.standing("p")
			if before.State != now.State {
				assert.Equal(rt, [2]string{patterns.Proven, patterns.Established},
					[2]string{before.State, now.State})
			}
			assert.InDelta(rt, before.HarmfulShare, now.HarmfulShare, 1e-12, "a share does not fade")
			assert.LessOrEqual(rt, now.Helpful, before.Helpful)
			before = now
		}
	})
}

// TestMaturityAgainstAnOracle holds the state of a pattern, after each observation and after time
// has passed, to an oracle that keeps every observation and adds them up by hand.
func TestMaturityAgainstAnOracle(t *testing.T) {
	type seen struct {
		helpful bool
		at      time.Time
	}
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t, patterns.Config{})
		var all []seen
		byEvidence := func() string { return patterns.StateByEvidence(w.standing("p").Conditions) }
		oracle := func() string {
			var helpful int
			var mass, harmful float64
			var last time.Time
			for _, o := range all {
				m := math.Exp2(-w.clock.Now().Sub(o.at).Hours() / 24 / 90)
				mass += m
				if !o.helpful {
					harmful += m
					continue
				}
				helpful++
				if o.at.After(last) {
					last = o.at
				}
			}
			switch share := harmful / mass; {
			case len(all) < 3:
				return patterns.Candidate
			case share > 0.3+1e-9:
				return patterns.Deprecated
			case helpful >= 5 && share < 0.15-1e-9 && w.clock.Now().Sub(last) <= 90*day:
				return patterns.Proven
			default:
				return patterns.Established
			}
		}
		for range rapid.IntRange(1, 15).Draw(rt, "n") {
			o := seen{rapid.IntRange(0, 5).Draw(rt, "helpful") > 0, w.clock.Now()}
			class := patterns.Harmful
			if o.helpful {
				class = patterns.Helpful
			}
			age := rapid.IntRange(0, 120).Draw(rt, "age")
			o.at = o.at.Add(-time.Duration(age) * day)
			w.feed(patterns.Rating{Pattern: "p", Class: class, Strength: 1}, float64(age))
			all = append(all, o)
			require.Equal(rt, oracle(), byEvidence(), "%v", all)
			w.clock.Advance(time.Duration(rapid.IntRange(0, 60).Draw(rt, "days")) * day)
			require.Equal(rt, oracle(), byEvidence(), "later: %v", all)
		}
	})
}

// TestLiteralTimes are the moments at which a pattern of n fresh helpful observations leaves its
// states in the design's arithmetic, in days: 90·log2(n/4.99) and 90·log2(n/2.99).
func TestLiteralTimes(t *testing.T) {
	for _, v := range []struct {
		n                   int
		established, unsure float64
	}{{5, 0.26, 66.8}, {6, 23.9, 90.4}, {10, 90.3, 156.8}, {20, 180.3, 246.8}} {
		w := newWorld(t, patterns.SpecConfig())
		w.feedPattern("p", patterns.Helpful, v.n, 0)
		at := func(days float64) string {
			w.clock.since.Store(int64(days * float64(day)))
			return w.standing("p").State
		}
		assert.Equal(t, patterns.Proven, at(v.established-0.1))
		assert.Equal(t, patterns.Established, at(v.established+0.1))
		assert.Equal(t, patterns.Established, at(v.unsure-0.1))
		assert.Equal(t, patterns.Candidate, at(v.unsure+0.1))
	}
	w := newWorld(t, patterns.SpecConfig())
	w.feedPattern("p", patterns.Helpful, 2, 0)
	w.feedPattern("p", patterns.Harmful, 1, 0)
	require.Equal(t, patterns.Deprecated, w.standing("p").State)
	w.clock.Advance(day)
	assert.Equal(t, patterns.Candidate, w.standing("p").State, "by the clock alone")
}

func TestLastValidated(t *testing.T) {
	both(t, func(t *testing.T, cfg patterns.Config) {
		w := newWorld(t, cfg)
		assert.True(t, func() bool {
			_, err := w.Define(ctx,
				patterns.Pattern{ID: "p", Content: "p"})
			return err == nil
		}())
		assert.True(t, w.standing("p").LastValidated.IsZero())
		w.feedPattern("p", patterns.Harmful, 1, 3)
		s := w.standing("p")
		assert.Equal(t, start.Add(-3*day), s.LastFeedback)
		assert.Equal(t, !cfg.Literal(), s.LastValidated.IsZero(),
			"in the design any feedback validates")
		w.feedPattern("p", patterns.Helpful, 1, 9)
		s = w.standing("p")
		assert.Equal(t, start.Add(-3*day), s.LastFeedback)
		if cfg.Literal() {
			assert.Equal(t, start.Add(-3*day), s.LastValidated)
		} else {
			assert.Equal(t, start.Add(-9*day), s.LastValidated)
		}
	})
}

func TestEachRuleOfMaturityAlone(t *testing.T) {
	for _, test := range []struct {
		helpful, harmful int
		want             string
	}{
		{2, 0, patterns.Candidate}, {3, 0, patterns.Established}, {4, 0, patterns.Established},
		{5, 0, patterns.Proven}, {5, 1, patterns.Established}, {17, 3, patterns.Established},
		{18, 3, patterns.Proven}, {7, 3, patterns.Established}, {2, 1, patterns.Deprecated},
	} {
		w := newWorld(t, patterns.Config{})
		w.feedPattern("p", patterns.Helpful, test.helpful, 0)
		w.feedPattern("p", patterns.Harmful, test.harmful, 0)
		assert.Equal(t, test.want, w.standing("p").State, "%d and %d", test.helpful, test.harmful)
	}
}

func TestAShareDoesNotReadAsTheBoundThatItMisses(t *testing.T) {
	g := patterns.Condition{State: patterns.Proven, What: "a harmful share", Have: 0.14974,
		Bound: "less than", Need: 0.15, Met: true}
	assert.Equal(t, "proven needs a harmful share: less than 15%, has 14.97%: met", g.String())
}

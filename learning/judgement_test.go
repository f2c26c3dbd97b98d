package learning_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
)

// Only a person's last click on an answer is in the evidence.
func TestLastClickCounts(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	for i, positive := range []bool{true, false, false, true, true, false} {
		c := f.say(thumb("h", "e", positive))
		weight := 0.8
		if !positive {
			weight = -0.8
		}
		assert.Equal(t, map[string][]float64{"user_explicit": {weight}}, f.counted("h"), i)
		fresh := newFixture(t, learning.Config{}, "h")
		assert.InDelta(t, fresh.say(thumb("h", "e", positive)).New, c.New, 1e-12,
			"as if it had been the first")
		f.clock.Advance(9 * 24 * time.Hour)
	}
	bob := thumb("h", "e", true)
	bob.Person = "bob"
	f.say(bob)
	f.say(thumb("h", "another", false))
	assert.Equal(t, map[string][]float64{"user_explicit": {-0.8, 0.8, -0.8}}, f.counted("h"),
		"others, and on others, count beside")
}

// The number of a click is found in the evidence, so that another module replaces it too.
func TestClicksOfSeveralProcesses(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	for i := range 6 {
		module, err := learning.New(ctx, f.Config())
		require.NoError(t, err)
		_, err = module.Judge(ctx, thumb("h", "e", i%2 == 0))
		require.NoError(t, err)
	}
	assert.Equal(t, map[string][]float64{"user_explicit": {-0.8}}, f.counted("h"))
}

// restless is a store in which the wording of a heuristic changes before each read.
type restless struct {
	store.Store
	before func()
}

func (r *restless) Read(ctx context.Context, into *store.Snapshot, cells []evidence.Cell,
	refs []store.Ref, finds ...store.Query) error {
	r.before()
	return r.Store.Read(ctx, into, cells, refs, finds...)
}

func TestAWordingThatKeepsChanging(t *testing.T) {
	f, n := newFixture(t, learning.Config{}, "h"), 0
	cfg := f.Config()
	cfg.Store = &restless{f.store, func() {
		n++
		h := f.standing("h").Heuristic
		h.Action = fmt.Sprint("wording ", n)
		_, err := f.Restart(ctx, h, "", "")
		require.NoError(t, err)
	}}
	m, err := learning.New(ctx, cfg)
	require.NoError(t, err)
	_, err = m.Judge(ctx, thumb("h", "e", true))
	require.ErrorIs(t, err, heed.ErrConflict)
}

// An answer that people praised does not count as ignored, and the change says why.
func TestOutweighed(t *testing.T) {
	f := newFixture(t, learning.Config{Strategy: newBayesian(t,
		learning.BayesianConfig{IgnoreThreshold: 1})}, "h")
	f.fire("h", "e", "s")
	f.say(thumb("h", "e", true))
	changes := f.event("s", "next")
	require.Len(t, changes, 1)
	assert.Contains(t, changes[0].Limits, learning.LimitOutweighed)
}

// TestPraiseOfTwoThatIsTakenBack outweighs nothing.
func TestPraiseOfTwoThatIsTakenBack(t *testing.T) {
	f := newFixture(t, learning.Config{Strategy: newBayesian(t,
		learning.BayesianConfig{IgnoreThreshold: 1})}, "h")
	f.fire("h", "e", "s")
	for _, value := range []float64{1, 0} {
		for _, person := range []string{"ann", "bob"} {
			f.clock.Advance(time.Second)
			f.say(learning.Judgement{HeuristicID: "h", EventID: "e", Person: person, Value: value})
		}
	}
	changes := f.event("s", "next")
	require.Len(t, changes, 1)
	assert.NotContains(t, changes[0].Limits, learning.LimitOutweighed)
}

// TestAChangeSaysWhatIsRead of a heuristic that has evidence of every kind.
func TestAChangeSaysWhatIsRead(t *testing.T) {
	for _, quiet := range []evidence.Trust{{}, {Silence: []string{learning.ChannelTimeout}}} {
		f := newFixtureDefault(t, learning.Config{Trust: quiet})
		f.put(learning.Heuristic{ID: "h"})
		require.NoError(t, f.Fire(ctx, learning.Fire{EventID: "m", Person: "ann",
			Compared: []answer.Comparison{{HeuristicID: "h", Agrees: true}}}))
		f.fire("h", "e", "s")
		f.clock.Advance(time.Hour)
		f.sweep()
		for _, value := range []float64{1, -1} {
			f.clock.Advance(time.Second)
			c := f.say(learning.Judgement{HeuristicID: "h", EventID: "e2", Person: "ann",
				Value: value})
			assert.InDelta(t, f.confidence("h"), c.New, 1e-12)
		}
	}
}

func TestAFloorThatIsMetIsNoLimit(t *testing.T) {
	f := newFixture(t, learning.Tuned(learning.Config{},
		learning.Tuning{Bounds: learning.Range{Floor: 0.5, Ceiling: 0.5}}), "h")
	e, err := f.Explain(ctx, "h")
	require.NoError(t, err)
	assert.Empty(t, e.Limits)
}

// A person clicks many times at once. Exactly one click is left.
func TestClicksAtTheSameMoment(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	var wait sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wait.Go(func() {
			for range 20 {
				if _, err := f.Judge(ctx, thumb("h", "e", i%2 == 0)); err != nil {
					errs[i] = err
				}
			}
		})
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			assert.ErrorIs(t, err, heed.ErrConflict) // one that gave way too often says so
		}
	}
	assert.Len(t, f.counted("h")["user_explicit"], 1)
}

func TestTargets(t *testing.T) {
	say := func(f *fixture, target answer.Target, score int) {
		f.clock.Advance(time.Second)
		f.say(learning.Judgement{HeuristicID: "h", EventID: "e", Person: "dev",
			Channel: learning.ChannelDev, Target: target, Scale: learning.DevScale, Score: score})
	}
	f := newFixture(t, learning.Config{}, "h")
	say(f, answer.TargetRule, 5)
	say(f, answer.TargetResponse, 1)
	assert.Equal(t, map[string][]float64{"dev": {0.4, -0.4}}, f.counted("h"),
		"two judgements of two things")
	assert.InDelta(t, 1.4/2.8, f.confidence("h"), 1e-12)
	say(f, answer.TargetRule, 2)
	assert.Equal(t, map[string][]float64{"dev": {-0.4, -0.2}}, f.counted("h"),
		"the rule is judged again")
	say(f, "", 4)
	assert.Equal(t, map[string][]float64{"dev": {0.2}}, f.counted("h"),
		"a judgement of both takes the place of all")
	say(f, answer.TargetResponse, 1)
	assert.Equal(t, map[string][]float64{"dev": {-0.4}}, f.counted("h"),
		"and one of a part that of both")
}

// neutralMiddle is a strategy to which the middle score is nothing.
type neutralMiddle struct{ learning.Strategy }

func (n neutralMiddle) InterpretJudgement(j learning.Judgement) (learning.Signal, error) {
	s, err := n.Strategy.InterpretJudgement(j)
	if j.Scale == learning.UserScale && j.Score == 2 {
		s.Worth = 0
	}
	return s, err
}

// A person who withdraws a click without another one is not counted.
func TestNeutralClickReplaces(t *testing.T) {
	f := newFixture(t, learning.Config{Strategy: neutralMiddle{loud}}, "h")
	meh := learning.Judgement{HeuristicID: "h", EventID: "e", Person: "ann",
		Scale: learning.UserScale, Score: 2}
	f.say(thumb("h", "e", false))
	c := f.say(meh)
	assert.InDelta(t, 0.5, c.New, 1e-12)
	assert.Contains(t, c.Limits, learning.LimitNeutral)
	f.say(thumb("h", "e", true))
	assert.InDelta(t, 1.8/2.8, f.confidence("h"), 1e-12)
	meh.EventID, meh.At = "unknown", start
	f.say(meh)
	later, earlier := thumb("h", "unknown", true), thumb("h", "unknown", false)
	later.At, earlier.At = start.Add(time.Microsecond), start.Add(-time.Second)
	assert.Equal(t, []string{learning.LimitOutdated}, f.say(earlier).Limits)
	f.clock.Advance(time.Second)
	f.say(later)
	assert.InDelta(t, 2.6/3.6, f.confidence("h"), 1e-12)
}

func TestFeedbackNeedsNoFireAndHasNoLimitOfTime(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	f.fire("h", "e", "s")
	f.clock.Advance(365 * 24 * time.Hour)
	f.sweep()
	f.say(thumb("h", "e", false))
	f.say(thumb("h", "never fired", false))
	assert.Equal(t, []float64{-0.8, -0.8}, f.counted("h")["user_explicit"])
}

// A click that comes late, or again, does not replace a later one.
func TestLateClicks(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	first := thumb("h", "e", false)
	first.At = start.Add(-30 * time.Hour) // as long ago as one likes
	last := thumb("h", "e", true)
	last.At = start.Add(-time.Minute)
	f.say(last)
	c := f.say(first)
	assert.Equal(t, []string{learning.LimitOutdated}, c.Limits)
	f.say(last)
	assert.Equal(t, map[string][]float64{"user_explicit": {0.8}}, f.counted("h"))
	rule := thumb("h", "e", false)
	rule.Target, rule.At = answer.TargetRule, start.Add(-time.Hour)
	assert.Equal(t, []string{learning.LimitOutdated}, f.say(rule).Limits)
	f.say(thumb("h", "e", false))
	assert.Equal(t, map[string][]float64{"user_explicit": {-0.8}}, f.counted("h"))
}

// A person goes without a trace, though the store holds the history of none of it.
func TestExpungeAtAnyTime(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	for i := range 150 {
		for _, person := range []string{"ann", "bob"} {
			event := fmt.Sprint(person, i)
			require.NoError(t, f.Fire(ctx, learning.Fire{HeuristicID: "h", EventID: event, Person: person,
				Session: "room"}))
			require.NoError(t, f.Fire(ctx, learning.Fire{HeuristicID: "h", EventID: event + " unsaid",
				Person: person}))
			f.say(learning.Judgement{HeuristicID: "h", EventID: event, Person: person,
				Value: value(person == "ann")})
		}
	}
	f.clock.Advance(40 * 24 * time.Hour)
	f.sweep()
	err := store.Run(ctx, f.store, store.Job{Expunge: []string{"ann"}})
	require.NoError(t, err)
	s := f.standing("h")
	assert.InDelta(t, (1+150)/(2+150+150*0.8), s.Confidence, 1e-9)
	assert.EqualValues(t, 300, s.Fires)
	assert.EqualValues(t, 150, s.Successes)
	assert.EqualValues(t, 150, s.Failures)
}

// Value and weight both multiply the magnitude of a click.
func TestTheGradeCounts(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	for _, tt := range []struct {
		judgement learning.Judgement
		weight    float64
	}{
		{learning.Judgement{Value: 1}, 0.8},
		{learning.Judgement{Value: 1, Weight: 0.5}, 0.4},
		{learning.Judgement{Value: -0.5, Weight: 0.1}, 0.04},
		{learning.Judgement{Value: -1, Weight: 2}, 1.6},
		{learning.Judgement{Weight: 2, Scale: learning.DevScale, Score: 1}, 0.8},
		{learning.Judgement{Value: 1, Weight: 10}, 8},
		{learning.Judgement{Value: 0, Weight: 3}, 0}, // it withdraws what was said before
	} {
		tt.judgement.HeuristicID, tt.judgement.EventID = "h", "e"
		change, err := f.Judge(ctx, tt.judgement)
		require.NoError(t, err)
		assert.InDelta(t, tt.weight, change.Weight, 1e-12)
		assert.InDelta(t, tt.weight, math.Abs(change.Signal.Worth), 1e-12)
		f.clock.Advance(time.Second)
	}
	assert.Equal(t, 0.5, f.confidence("h"))
}

// A person's thumb and their stars both hold.
func TestAVerdictOnOneChannelLeavesAnother(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	thumb, stars := thumb("h", "e", true), thumb("h", "e", false)
	stars.Channel = "stars"
	f.say(thumb)
	f.say(stars)
	assert.Equal(t, map[string][]float64{"user_explicit": {0.8, -0.8}}, f.counted("h"))
	stars.Value, stars.At = 0, start.Add(time.Second)
	f.say(stars)
	assert.InDelta(t, 1.8/2.8, f.confidence("h"), 1e-12)
}

func TestFeedbackRefuses(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	good := learning.Judgement{HeuristicID: "h", EventID: "e", Value: 1}
	for field, spoil := range map[string]func(j *learning.Judgement){
		"EventID": func(j *learning.Judgement) { j.EventID = "" },
		"Scale":   func(j *learning.Judgement) { j.Scale = "stars" },
		"Score":   func(j *learning.Judgement) { j.Value, j.Scale, j.Score = 0, learning.UserScale, 4 },
		"Value":   func(j *learning.Judgement) { j.Scale, j.Score = learning.UserScale, 3 },
		"Target":  func(j *learning.Judgement) { j.Target = "author" },
		"Person":  func(j *learning.Judgement) { j.Person = "\x00" },
		"Weight":  func(j *learning.Judgement) { j.Weight = math.NaN() },
	} {
		j := good
		spoil(&j)
		_, err := f.Judge(ctx, j)
		assertInputError(t, err, field)
	}
	scored := good
	scored.Score = 2
	_, err := f.Judge(ctx, scored)
	assertInputError(t, err, "Score")
	_, err = f.Judge(ctx, thumb("no such", "e", true))
	assert.ErrorIs(t, err, heed.ErrNotFound)
	assert.EqualError(t, err,
		"learning: judge: HeuristicID: no such heuristic, call Put first: not found")
	_, err = f.Judge(ctx, learning.Judgement{HeuristicID: "h", EventID: "e",
		At: start.Add(time.Hour), Value: -1})
	assertInputError(t, err, "At")
	assert.Empty(t, f.counted("h"))
}

// A click that the store no longer holds can't be replaced, and goes on counting.
func TestClickThatIsForgotten(t *testing.T) {
	long := map[string]store.Limits{"learning.answer": {For: 300 * 24 * time.Hour}}
	f := newFixtureOver(t, memstore.Config{Retention: store.Retention{Limits: long}},
		learning.Config{}, "h")
	f.say(thumb("h", "e", true))
	f.clock.Advance(40 * 24 * time.Hour) // the store keeps history for 30 days
	_, err := f.Judge(ctx, thumb("h", "e", false))
	assert.ErrorIs(t, err, evidence.ErrForgotten)
	assert.InDelta(t, 1.8/2.8, f.confidence("h"), 1e-12)

	f = newFixtureOver(t, memstore.Config{Retention: store.Retention{HistoryPerCell: 3}},
		learning.Config{}, "h")
	f.say(thumb("h", "e", true))
	for i := range 20 {
		f.apply(fmt.Sprint(i), "h", 1) // what was seen takes no room of what was said
	}
	f.say(thumb("h", "e", false))
	for i := range 3 {
		f.say(thumb("h", fmt.Sprint(i), true))
	}
	_, err = f.Judge(ctx, thumb("h", "e", true))
	assert.ErrorIs(t, err, evidence.ErrForgotten)
}

// The store holds only one of two clicks about two targets.
func TestHalfForgottenClicks(t *testing.T) {
	long := map[string]store.Limits{"learning.answer": {For: 300 * 24 * time.Hour}}
	f := newFixtureOver(t, memstore.Config{Retention: store.Retention{Limits: long}},
		learning.Config{}, "h")
	rule, response := thumb("h", "e", true), thumb("h", "e", true)
	rule.Target, response.Target = answer.TargetRule, answer.TargetResponse
	f.say(rule)
	f.clock.Advance(20 * 24 * time.Hour)
	f.say(response)
	f.clock.Advance(20 * 24 * time.Hour)
	_, err := f.Judge(ctx, thumb("h", "e", false))
	assert.ErrorIs(t, err, evidence.ErrForgotten)
	assert.InDelta(t, 2.6/3.6, f.confidence("h"), 1e-12)
}

// TestAJudgementCountsOnce, however often it is delivered, and whatever the store has forgotten by
// then.
func TestAJudgementCountsOnce(t *testing.T) {
	f, notices := observed(t, learning.Config{Diminish: 0.5}, "h")
	j := thumb("h", "e", true)
	j.At, j.Channel, j.Session = start, "email", "s"
	assert.Empty(t, f.say(j).Limits)
	assert.Len(t, notices(), 1)
	f.store.commits = nil
	confidence := f.confidence("h")
	for range 20 {
		f.clock.Advance(2 * 24 * time.Hour) // the store keeps history for 30 days
		c := f.say(j)
		assert.Equal(t, []string{learning.LimitDuplicate}, c.Limits)
		assert.Equal(t, [4]float64{confidence, confidence, 0, 0},
			[4]float64{c.Old, c.New, c.Delta, c.Weight})
		assert.Equal(t, []string{"duplicate user_explicit"}, notices())
	}
	assert.Empty(t, f.store.commits)

	f = newFixtureOver(t, memstore.Config{Retention: store.Retention{HistoryPerCell: 3}},
		learning.Config{}, "h")
	f.say(j)
	for i := range 3 {
		f.say(thumb("h", fmt.Sprint(i), true))
	}
	assert.Equal(t, []string{learning.LimitDuplicate}, f.say(j).Limits)
	half := f.another(learning.Config{Packs: map[string]learning.Constraints{
		"": {FeedbackWeight: 0.5}}})
	assert.Equal(t, []string{learning.LimitDuplicate}, half.say(j).Limits,
		"it would count for less now")
}

// TestAnotherJudgementAtTheSameTime is none that is delivered again.
func TestAnotherJudgementAtTheSameTime(t *testing.T) {
	for name, change := range map[string]func(j *learning.Judgement){
		"verdict": func(j *learning.Judgement) { j.Value = -1 },
		"scale":   func(j *learning.Judgement) { j.Value, j.Scale, j.Score = 0, learning.DevScale, 5 },
		"weight":  func(j *learning.Judgement) { j.Weight = 2 },
		"target":  func(j *learning.Judgement) { j.Target = answer.TargetRule },
		"channel": func(j *learning.Judgement) { j.Channel = "email" },
		"session": func(j *learning.Judgement) { j.Session = "other" },
		"person":  func(j *learning.Judgement) { j.Person = "bob" },
	} {
		f := newFixture(t, learning.Config{}, "h")
		j := thumb("h", "e", true)
		j.At = start
		f.say(j)
		f.clock.Advance(time.Second)
		change(&j)
		assert.NotContains(t, f.say(j).Limits, learning.LimitDuplicate, name)
		assert.Equal(t, []string{learning.LimitDuplicate}, f.say(j).Limits, name)
	}
	f := newFixture(t, learning.Config{}, "h")
	rule, response := thumb("h", "e", true), thumb("h", "e", true)
	rule.Target, response.Target, rule.At, response.At = answer.TargetRule, answer.TargetResponse,
		start, start
	f.say(rule)
	f.say(response)
	assert.Equal(t, []string{learning.LimitDuplicate}, f.say(rule).Limits,
		"of two that count")
}

// A click is kept for 30 days, or as the store is configured, and can be replaced till then.
func TestOldClicksAreDropped(t *testing.T) {
	f := newFixtureOver(t,
		memstore.Config{Retention: store.Retention{
			Limits: map[string]store.Limits{"learning.answer": {For: 24 * time.Hour}}}},
		learning.Config{}, "h")
	for i := range 10 {
		f.say(thumb("h", fmt.Sprint(i), true))
	}
	f.clock.Advance(23 * time.Hour)
	require.NoError(t, f.store.Sweep(ctx, time.Time{}))
	f.say(thumb("h", "0", false))
	assert.Len(t, f.counted("h")["user_explicit"], 10, "a day has not gone by: it is replaced")
	f.clock.Advance(25 * time.Hour)
	require.NoError(t, f.store.Sweep(ctx, time.Time{}))
	f.say(thumb("h", "0", true))
	assert.Len(t, f.counted("h")["user_explicit"], 11, "and now it counts beside")
	again := thumb("h", "1", true)
	again.At = start
	assert.Equal(t, []string{learning.LimitDuplicate}, f.say(again).Limits,
		"but what is delivered again does not")
}

func TestDiminishingReturns(t *testing.T) {
	f := newFixture(t, learning.Config{Diminish: 0.5}, "h")
	var weights []float64
	for i := range 5 {
		c := f.say(learning.Judgement{HeuristicID: "h", EventID: fmt.Sprint(i), Value: 1})
		weights = append(weights, c.Weight/0.8)
		assert.Equal(t, i > 0, len(c.Limits) > 0 && c.Limits[0] == "diminished")
	}
	assert.InDeltaSlice(t, []float64{1, 2. / 3, 0.5, 0.4, 1. / 3}, weights, 1e-12)
	c := f.say(thumb("h", "x", false))
	assert.InDelta(t, 0.8, c.Weight, 1e-12, "approval does not dampen the first complaint")
	c = f.say(thumb("h", "x", true))
	assert.InDelta(t, 0.8/3.5, c.Weight, 1e-12)
	f.clock.Advance(time.Microsecond)
	elsewhere := thumb("h", "x", true)
	elsewhere.Session = "another"
	c = f.say(elsewhere)
	assert.InDelta(t, 0.8/3.5, c.Weight, 1e-12,
		"a click does not count against the one that replaces it")
	c = f.apply("1", "h", 1)
	assert.EqualValues(t, 1, c.Weight, "what is seen does not diminish")
}

func TestConstraints(t *testing.T) {
	floor := learning.Constraints{Floor: 0.6, Ceiling: 0.95}
	for _, test := range []struct {
		name    string
		cfg     learning.Config
		h       learning.Heuristic
		signals []float64
		want    []float64
		limits  []string // of the last one
	}{
		{"free", learning.Config{}, learning.Heuristic{Initial: 0.5}, []float64{1}, []float64{2. / 3},
			nil},
		{"locked", learning.Config{}, learning.Heuristic{Initial: 0.5,
			Constraints: learning.Constraints{Lock: "locked"}}, []float64{5, -3},
			[]float64{0.5, 0.5}, []string{learning.LimitLocked}},
		{"a floor", learning.Config{}, learning.Heuristic{Initial: 0.62, Constraints: floor},
			[]float64{-10}, []float64{0.6}, []string{"floor"}},
		{"a ceiling", learning.Config{}, learning.Heuristic{Initial: 0.5,
			Constraints: learning.Constraints{Floor: 0, Ceiling: 0.7}},
			[]float64{10}, []float64{0.7}, []string{"ceiling"}},
		{"the bounds", learning.Config{}, learning.Heuristic{Initial: 0.5}, []float64{100, -5000},
			[]float64{0.95, 0.05}, []string{"floor"}},
		{"no bounds", learning.SpecConfig(), learning.Heuristic{Initial: 0.5}, []float64{98},
			[]float64{0.99}, nil},
		{"a range beyond the bounds", learning.Config{},
			learning.Heuristic{Initial: 0.5, Constraints: learning.Constraints{
				Floor: 0, Ceiling: 1}}, []float64{98}, []float64{0.95},
			[]string{"ceiling"}},
		{"a range above the bounds", learning.Tuned(learning.Config{},
			learning.Tuning{Bounds: learning.Range{Floor: 0.2, Ceiling: 0.5}}),
			learning.Heuristic{Initial: 0.3, Constraints: floor}, []float64{-1}, []float64{0.5},
			[]string{"floor"}},
		{"a feedback weight", learning.Config{}, learning.Heuristic{Initial: 0.5,
			Constraints: learning.Constraints{FeedbackWeight: 0.25}}, []float64{2}, []float64{1.5 / 2.5},
			[]string{"weight"}},
		{"a greater feedback weight", learning.Config{},
			learning.Heuristic{Initial: 0.5, Constraints: learning.Constraints{FeedbackWeight: 2}},
			[]float64{1}, []float64{0.75}, nil},
		{"the pack's", learning.Config{Packs: map[string]learning.Constraints{"p": floor}},
			learning.Heuristic{Pack: "p"}, []float64{-1}, []float64{0.6}, []string{"floor"}},
		{"the system's", learning.Config{Packs: map[string]learning.Constraints{"": floor}},
			learning.Heuristic{Pack: "p"}, []float64{-1}, []float64{0.6}, []string{"floor"}},
		{"the heuristic's before the pack's before the system's", learning.Config{
			Packs: map[string]learning.Constraints{
				"": {Lock: "locked", Floor: 0.9, Ceiling: 0.95,
					FeedbackWeight: 2},
				"p": {Floor: 0.3, Ceiling: 0.6},
			},
		}, learning.Heuristic{Pack: "p", Initial: 0.5,
			Constraints: learning.Constraints{Lock: "unlocked"}}, []float64{1}, []float64{0.6},
			[]string{"ceiling"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t, test.cfg)
			test.h.ID = "h"
			f.put(test.h)
			var last learning.Change
			for i, weight := range test.signals {
				last = f.apply(fmt.Sprint(i), "h", weight)
				assert.InDelta(t, test.want[i], last.New, 1e-12)
				assert.InDelta(t, test.want[i], f.confidence("h"), 1e-12)
			}
			assert.Equal(t, test.limits, last.Limits)
		})
	}
}

// A locked heuristic takes no signal from developers, from clicks that replace others, from undos
// or from silence. Signals of that time are lost for good. Fires are counted, as they are facts and
// no trust.
func TestLockedTakesNothingFromAnybody(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	f.say(thumb("h", "e", true))
	f.fire("h", "quiet", "")
	f.clock.Advance(time.Minute)
	f.sweep()
	before := f.confidence("h")
	lock := func(state string) {
		h := f.standing("h").Heuristic
		h.Constraints.Lock = state
		f.put(h)
	}
	lock("locked")
	f.say(thumb("h", "e", false))
	f.say(thumb("h", "quiet", false))
	f.say(learning.Judgement{HeuristicID: "h", EventID: "e", Channel: learning.ChannelDev,
		Scale: learning.DevScale, Score: 1})
	f.apply("1", "h", -50)
	f.fire("h", "undone", "")
	f.event("", "undo")
	for i := range 3 {
		f.fire("h", fmt.Sprint(i), "s")
	}
	f.event("s", "next")
	f.fire("h", "silent", "")
	f.clock.Advance(time.Minute)
	f.sweep()
	assert.Equal(t, before, f.confidence("h"))
	s := f.standing("h")
	assert.EqualValues(t, 6, s.Fires)
	assert.EqualValues(t, 2, s.Successes)
	assert.EqualValues(t, 2, s.Failures)
	lock("unlocked")
	assert.Equal(t, before, f.confidence("h"))
	f.say(thumb("h", "e", false))
	assert.Less(t, f.confidence("h"), before)
}

func TestExplain(t *testing.T) {
	f := newFixture(t, learning.Config{})
	f.put(learning.Heuristic{ID: "h", Constraints: learning.Constraints{
		Floor: 0.1, Ceiling: 0.4}})
	for i := range 5 {
		require.NoError(t, f.Fire(ctx, learning.Fire{HeuristicID: "h", EventID: fmt.Sprint(i),
			Person: "ann", Session: "room"}))
	}
	f.clock.Advance(time.Minute)
	f.sweep()
	f.clock.Advance(time.Minute)
	f.say(thumb("h", "3", true))
	f.say(thumb("h", "4", false))
	e, err := f.Explain(ctx, "h")
	require.NoError(t, err)
	assert.Equal(t, evidence.Beta{Alpha: 0.6, Beta: 1.4}, e.Prior)
	assert.Equal(t, 0.4, e.Standing.Confidence)
	assert.Equal(t, []string{"ceiling"}, e.Limits)
	assert.Equal(t, learning.Constraints{Lock: "unlocked",
		Floor: 0.1, Ceiling: 0.4, FeedbackWeight: 1}, e.Constraints)
	assert.Equal(t, []learning.Share{
		{
			Channel: learning.ChannelTimeout, Source: "ann", Kind: "person", For: 3,
			CountsFor: 3, Count: 3,
		},
		{
			Said: true, Channel: learning.ChannelExplicit, Source: "ann", Kind: "person",
			For: 0.8, Against: 0.8, CountsFor: 0.8, CountsAgainst: 0.8, Count: 2,
		},
	}, e.Shares)
	var history []string
	for _, o := range e.History {
		history = append(history, fmt.Sprint(o.Channel, " ", o.Reward))
	}
	assert.Equal(t, "user_explicit 0, user_explicit 1, implicit_timeout 1, implicit_timeout 1, "+
		"implicit_timeout 1", strings.Join(history, ", "))
	var sum evidence.Beta = e.Prior
	for _, share := range e.Shares {
		sum.Alpha += share.For
		sum.Beta += share.Against
	}
	assert.InDelta(t, 4.4/6.6, sum.Mean(), 1e-12, "the shares add up to what the ceiling holds")

	err = store.Run(ctx, f.store, store.Job{Expunge: []string{"ann"}})
	require.NoError(t, err)
	assert.InDelta(t, 0.3, f.confidence("h"), 1e-12,
		"without ann, it is as if she had never been there")
}

package loop_test

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
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

// records returns the records of all answers.
func (w *world) records() (all []answer.Answer) {
	w.t.Helper()
	view := answers.View(w.Name() + ".answer")
	for row, err := range view.Find(ctx, w.store, store.Query{}) {
		require.NoError(w.t, err)
		all = append(all, row.Value)
	}
	return all
}

// sessions answers an event in each of n sessions, and returns the sessions of each side.
func (w *world) sessions(n int) (control, learned []string) {
	for i := range n {
		id := fmt.Sprint("s", i)
		w.answer(loop.Event{ID: id, Session: id, Text: full, Person: "ann"})
	}
	for _, r := range w.records() {
		if r.Reply.Side.Control {
			control = append(control, r.ID)
		} else {
			learned = append(learned, r.ID)
		}
	}
	return control, learned
}

func TestTheControlGroupIsAnsweredWithoutLearning(t *testing.T) {
	w := newWorld(t, loop.Config{
		Control: 0.2,
		Arms:    []loop.Arm{{ID: "plain", System: "PLAIN"}, {ID: "other", System: "OTHER"}},
		Tuning:  loop.Tuning{Strategy: strategy.Config{Default: "plain"}},
		Lessons: loop.Lessons{Heuristics: []learning.Heuristic{trusted(rotating)}},
	})
	_, err := w.Patterns().Record(ctx, patterns.Outcome{ID: "o", Task: "t", Description: full,
		Patterns: []patterns.PatternID{"split"}, Success: true})
	require.NoError(t, err)
	control, learned := w.sessions(300)
	assert.InDelta(t, 60, len(control), 25)
	require.Equal(t, len(control), w.model.calls(), "the heuristic answers all others")
	system, prompt := w.model.last()
	assert.Contains(t, system, "PLAIN")
	assert.NotContains(t, system+prompt, rotate)

	for _, other := range []*loop.Agent{w.Agent, w.again()} { // also in another process
		p, err := other.Prepare(ctx, loop.Event{Session: control[0], Text: full, Task: "t"})
		require.NoError(t, err)
		assert.False(t, p.Ready)
		assert.Equal(t, "plain", p.Arm.ID)
		assert.Nil(t, p.Choice, "the arm is not credited")
		assert.Empty(t, p.Ways)
		require.NoError(t, other.KeepPlan(ctx, "kim", p))
		kept, err := w.again().KeptPlan(ctx, "kim", p.Event.ID)
		require.NoError(t, err)
		_, err = w.again().Answered(ctx, kept, loop.Reply{Text: "Wait."})
		require.NoError(t, err)
		p, err = other.Prepare(ctx, loop.Event{Session: learned[0], Text: full})
		require.NoError(t, err)
		assert.True(t, p.Ready)
	}

	require.NoError(t, w.React(ctx, control[0], loop.Reaction{Person: "ann", Value: 1}))
	assert.Zero(t, distribution(t, w.Strategy(), "").Outcomes)
	g, err := w.Gain(ctx)
	require.NoError(t, err)
	assert.InDelta(t, 1, g.Control.Outcomes, 1e-9)
	require.Len(t, g.Arms, 1)
	assert.Equal(t, "plain", g.Arms[0].Name)
	assert.InDelta(t, 1, g.Arms[0].Control.Outcomes, 1e-9)
	assert.InDelta(t, len(control)+2, g.Control.Answers, 1e-9)
	assert.InDelta(t, 1, g.Control.Calls, 1e-9)
	assert.InDelta(t, 0, g.Learned.Calls, 1e-9)
	calls, _, _ := g.Saved()
	assert.InDelta(t, len(learned)+2, calls, 1e-9) // with the two that were prepared
	for _, part := range []loop.GainPart{g.Days[0], g.Arms[0]} {
		assert.Equal(t, []float64{-1, 1}, []float64{part.Low, part.High}, "it is not compared")
	}
}

// There is no comparison, and so no saving, without answers without learning.
func TestNothingIsSavedWithoutAComparison(t *testing.T) {
	g := loop.Gain{Learned: loop.Measured{Answers: 7, Calls: 1, Cost: 2, Seconds: 3}}
	calls, cost, took := g.Saved()
	assert.Zero(t, calls)
	assert.Zero(t, cost)
	assert.Zero(t, took)
}

// TestAGainCountsWhatIsKnownNow compares the sums with the records after reactions that were
// changed, withdrawn and undone.
func TestAGainCountsWhatIsKnownNow(t *testing.T) {
	w := newWorld(t, loop.Config{Control: 0.4})
	control, learned := w.sessions(60)
	all := slices.Concat(control, learned)
	rng := rand.New(rand.NewPCG(3, 4))
	yes := true
	for range 400 {
		id := all[rng.IntN(len(all))]
		w.clock.Advance(time.Second)
		switch rng.IntN(4) {
		case 0:
			require.NoError(t, w.Outcome(ctx, id, loop.Outcome{Success: &yes, Source: "ci"}))
		case 1:
			require.NoError(t, w.Outcome(ctx, id, loop.Outcome{Withdraw: true, Source: "ci"}))
		case 2:
			require.NoError(t, w.React(ctx, id, loop.Reaction{
				Person: fmt.Sprint(rng.IntN(3)), Value: float64(rng.IntN(3) - 1),
			}))
		case 3:
			if rng.IntN(10) == 0 {
				require.NoError(t, w.Undo(ctx, id, "ann"))
			}
		}
		if rng.IntN(40) == 0 {
			require.NoError(t, w.Sweep(ctx, w.clock.Now()))
		}
	}
	var n, success [2]float64
	for _, r := range w.records() {
		if worth, _, known := answers.WorthOf(&r); known {
			side := 0
			if r.Reply.Side.Control {
				side = 1
			}
			n[side], success[side] = n[side]+1, success[side]+(worth+1)/2
		}
	}
	g, err := loop.ReadGain(ctx, w.store, "loop")
	require.NoError(t, err)
	assert.InDelta(t, n[0], g.Learned.Outcomes, 1e-6)
	assert.InDelta(t, n[1], g.Control.Outcomes, 1e-6)
	assert.InDelta(t, success[0]/n[0], g.Learned.Success, 1e-6)
	assert.InDelta(t, success[1]/n[1], g.Control.Success, 1e-6)
	assert.Less(t, g.Low, g.Learned.Success-g.Control.Success)
	assert.Greater(t, g.High, g.Learned.Success-g.Control.Success)
	require.Len(t, g.Days, 1)
	assert.Equal(t, "2026-01-05", g.Days[0].Name)
	assert.InDelta(t, g.Learned.Success, g.Days[0].Learned.Success, 1e-6)
	require.Len(t, g.Domains, 1)
	assert.InDelta(t, g.Low, g.Domains[0].Low, 1e-6)
	assert.True(t, g.Since.Equal(start.Truncate(24*time.Hour)))
}

// judged has each answer of sessions judged, and returns the gain.
func judged(t *testing.T, perSession int, good func(control bool, n int) bool) loop.Gain {
	w := newWorld(t, loop.Config{Control: 0.3})
	n := 0
	for i := range 400 / perSession {
		var all []loop.Answer
		for k := range perSession {
			session := fmt.Sprint("s", i)
			all = append(all, w.answer(loop.Event{
				ID: fmt.Sprint(session, "/", k), Text: "Why?", Session: session,
			}))
		}
		view := answers.View("loop.answer")
		row, err := view.Get(ctx, w.store, answers.ID(all[0].ID))
		require.NoError(t, err)
		for _, a := range all {
			r := loop.Reaction{Person: "ann", Value: -1}
			if good(row.Value.Reply.Side.Control, n) {
				r.Value = 1
			}
			require.NoError(t, w.React(ctx, a.ID, r))
		}
		n++
	}
	g, err := w.Gain(ctx)
	require.NoError(t, err)
	return g
}

func TestVerdicts(t *testing.T) {
	g := judged(t, 1, func(control bool, n int) bool { return !control || n%3 == 0 })
	assert.Equal(t, loop.Helps, g.Verdict())
	g = judged(t, 1, func(control bool, n int) bool { return control || n%3 == 0 })
	assert.Equal(t, loop.Harms, g.Verdict())
	g = judged(t, 1, func(_ bool, n int) bool { return n%2 == 0 })
	assert.Equal(t, loop.Undecided, g.Verdict())

	w := newWorld(t, loop.Config{})
	a := w.answer(loop.Event{Text: full})
	require.NoError(t, w.React(ctx, a.ID, loop.Reaction{Value: 1}))
	g, err := w.Gain(ctx)
	require.NoError(t, err)
	assert.Equal(t, loop.Unmeasured, g.Verdict())
	assert.InDelta(t, 1, g.Days[0].Alone.Success, 1e-9)
}

// What a side without outcomes succeeds at is not known, and a time in which all were answered
// without learning compares nothing.
func TestASideWithoutOutcomes(t *testing.T) {
	w := newWorld(t, loop.Config{Control: 1})
	answers := func(from int) (g loop.Gain) {
		for i := range 40 {
			id := fmt.Sprint("s", from+i)
			w.answer(loop.Event{ID: id, Session: id, Text: full, Person: "ann"})
			require.NoError(t, w.React(ctx, id, loop.Reaction{Person: "ann", Value: 1}))
		}
		g, err := w.Gain(ctx)
		require.NoError(t, err)
		return g
	}
	g := answers(0)
	assert.Equal(t, loop.Undecided, g.Verdict())
	assert.Equal(t, []float64{0, 0}, []float64{g.Learned.Outcomes, g.Learned.Success})
	assert.InDelta(t, 1, g.Control.Success, 1e-9)
	assert.Equal(t, []float64{-1, 1}, []float64{g.Low, g.High})

	w.cfg.Control = 0.5
	w.Agent = w.again()
	g = answers(40)
	assert.Positive(t, g.Learned.Outcomes)
	assert.InDelta(t, 1, g.Learned.Success, 1e-9)
	assert.InDelta(t, 1, g.Control.Success, 1e-9)
}

// The observer receives one alert that learning does harm, and the figures at each sweep.
func TestASweepTellsWhatLearningGains(t *testing.T) {
	var told []heed.Notice
	w := newWorld(t, loop.Config{
		Control: 0.3, Observer: func(_ context.Context, n heed.Notice) {
			switch n.(type) {
			case heed.Compared, heed.Changed:
				told = append(told, n)
			}
		},
	})
	control, learned := w.sessions(200)
	for i, all := range [][]string{control, learned} {
		for _, id := range all {
			require.NoError(t, w.React(ctx, id, loop.Reaction{Value: float64(1 - 2*i)}))
		}
	}
	for range 2 {
		require.NoError(t, w.Sweep(ctx, w.clock.Now()))
	}
	require.Len(t, told, 3)
	figures, _ := told[0].(heed.Compared)
	assert.InDelta(t, 1, figures.Control, 1e-9)
	assert.InDelta(t, 0, figures.Learned, 1e-9)
	assert.Less(t, figures.High, 0.)
	harm, _ := told[1].(heed.Changed)
	assert.Equal(t, []string{"harmful", "learning"}, []string{harm.What, harm.Subject})
	assert.Contains(t, harm.Reason, "less often")
}

// Answers of one session that are all good or all bad are about one answer.
func TestAnswersOfASessionCountTogether(t *testing.T) {
	alike := func(control bool, n int) bool { return n%10 < 7 }
	one, many := judged(t, 1, alike), judged(t, 20, alike)
	assert.Greater(t, many.High-many.Low, 2*(one.High-one.Low))
}

// Both sides are measured alike: where silence is no approval of arms, it is none of heuristics.
func TestSilenceIsCountedOnBothSidesOrNone(t *testing.T) {
	for _, ignore := range []bool{false, true} {
		w := newWorld(t, loop.Config{
			Control: 0.3, Choosing: loop.Choosing{ArmsIgnoreSilence: ignore},
			Arms:    []loop.Arm{{ID: "a"}, {ID: "b"}},
			Lessons: loop.Lessons{Heuristics: []learning.Heuristic{trusted(rotating)}},
		})
		control, learned := w.sessions(40)
		w.clock.Advance(time.Hour)
		require.NoError(t, w.Sweep(ctx, w.clock.Now()))
		g, err := w.Gain(ctx)
		require.NoError(t, err)
		want := [2]int{len(learned), len(control)}
		if ignore {
			want = [2]int{}
		}
		assert.InDelta(t, want[0], g.Learned.Outcomes, 1e-9)
		assert.InDelta(t, want[1], g.Control.Outcomes, 1e-9)
	}
}

// Nothing is compared as long as one of the sides has no outcome.
func TestASweepComparesNoSideAlone(t *testing.T) {
	for _, share := range []float64{1e-9, 1} {
		var told []heed.Notice
		w := newWorld(t, loop.Config{
			Control: share, Observer: func(_ context.Context, n heed.Notice) {
				if _, is := n.(heed.Compared); is {
					told = append(told, n)
				}
			},
		})
		id := w.answer(loop.Event{Text: full}).ID
		require.NoError(t, w.React(ctx, id, loop.Reaction{Value: 1}))
		require.NoError(t, w.Sweep(ctx, w.clock.Now()))
		assert.Empty(t, told, "%v", share)
	}
}

// The answers of a model are compared by the arms that were chosen.
func TestTheGainOfEachArm(t *testing.T) {
	w := newWorld(t, loop.Config{Control: 0.5, Arms: []loop.Arm{{ID: "a"}, {ID: "b"}}})
	want := make(map[string]float64)
	for i := range 20 {
		a := w.answer(loop.Event{Text: "Why?", Session: fmt.Sprint(i)})
		require.NoError(t, w.React(ctx, a.ID, loop.Reaction{Value: 1}))
		want[a.Plan.Arm.ID]++
	}
	g, err := w.Gain(ctx)
	require.NoError(t, err)
	got := make(map[string]float64)
	for _, arm := range g.Arms {
		got[arm.Name] = arm.Learned.Outcomes + arm.Control.Outcomes
	}
	assert.Equal(t, want, got)
}

// Without outcomes of both sides there is no comparison to report.
func TestAComparisonNeedsBothSides(t *testing.T) {
	compared := 0
	w := newWorld(t, loop.Config{Control: 0.5, Observer: func(_ context.Context, n heed.Notice) {
		if _, is := n.(heed.Compared); is {
			compared++
		}
	}})
	both := make(map[bool]bool)
	for n := 0; len(both) < 2; n++ {
		id := w.answer(loop.Event{ID: fmt.Sprint(n), Text: "Why?", Session: fmt.Sprint(n)}).ID
		for _, r := range w.records() {
			if r.ID == id {
				both[r.Reply.Side.Control] = true
			}
		}
		require.NoError(t, w.React(ctx, id, loop.Reaction{Person: "ann", Value: 1}))
		require.NoError(t, w.Sweep(ctx, time.Time{}))
		assert.Equal(t, len(both) == 2, compared > 0)
	}
}

// A success that was taken back leaves the comparison as if it had never been, and is counted by
// the arm that answered.
func TestAComparisonTakesBackWhatChanged(t *testing.T) {
	measured := func(first, last float64) loop.Gain {
		w := newWorld(t, loop.Config{Control: 0.5, Arms: []loop.Arm{{ID: "only"}}})
		for n := range 30 {
			id := fmt.Sprint(n)
			w.answer(loop.Event{ID: id, Text: "Why?", Session: id, Domain: "d"})
			for _, value := range []float64{first, last} {
				r := loop.Reaction{Person: "ann", Value: value * float64(1-n%3)}
				require.NoError(t, w.React(ctx, id, r))
			}
		}
		g, err := w.Gain(ctx)
		require.NoError(t, err)
		return g
	}
	want := measured(0.5, 0.5)
	got := measured(1, 0.5)
	assert.InDelta(t, want.Low, got.Low, 1e-9)
	assert.InDelta(t, want.High, got.High, 1e-9)
	assert.InDelta(t, want.Learned.Success, got.Learned.Success, 1e-9)
	require.Len(t, got.Arms, 1)
	assert.Equal(t, "only", got.Arms[0].Name)
	assert.Equal(t, "d", got.Domains[0].Name)
}

// With a single answer, each mean is what this answer took.
func TestTheGainOfASingleAnswer(t *testing.T) {
	w := newWorld(t, loop.Config{Control: 1})
	w.answer(loop.Event{Text: "Why?"})
	g, err := w.Gain(ctx)
	require.NoError(t, err)
	require.Len(t, g.Days, 1)
	for _, of := range []loop.Measured{g.Control, g.Days[0].Control} {
		assert.Equal(t, []float64{1, 1}, []float64{of.Answers, of.Calls})
	}
}

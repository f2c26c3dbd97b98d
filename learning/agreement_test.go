package learning_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/store"
)

// answerOfModel fires an answer of the model, with which "yes" agrees and "no" does not.
func (f *fixture) answerOfModel(event string) {
	f.Helper()
	require.NoError(f, f.Fire(ctx, learning.Fire{
		EventID: event, Stream: "s", Session: "room", Person: "ann", Condition: "oven",
		Compared: []answer.Comparison{{HeuristicID: "yes", Agrees: true}, {HeuristicID: "no"}},
	}))
}

// strong gives agreement weights that are easy to see in sums.
func (f *fixture) strong() *fixture {
	learning.WeighAgreement(f.Module, 2, 1, 10)
	return f
}

// TestAgreement says what an answer of the model counts for the heuristics that were compared with
// it, by what became of it. Steps are as in TestEndsOfFires; the answer is "@e".
func TestAgreement(t *testing.T) {
	for _, failure := range []bool{false, true} {
		for _, test := range []struct {
			name, steps string
			failure     bool
			yes, no     []float64
		}{
			{name: "silence", steps: "31s", yes: []float64{2}, no: []float64{-1}},
			{name: "not yet", steps: "wait 5s"},
			{name: "praise", steps: "+@e | 31s", yes: []float64{2}, no: []float64{-1}},
			{name: "a success", steps: "x: it is off", yes: []float64{2}, no: []float64{-1}},
			{name: "a failure", steps: "x: it is off | 31s", failure: true, yes: []float64{-1},
				no: []float64{-1}},
			{name: "a complaint", steps: "-@e | 31s", yes: []float64{-0.8}, no: []float64{-1}},
			{name: "an undo", steps: "x: undo that | 31s", yes: []float64{-1}, no: []float64{-1}},
			{name: "an undo after silence", steps: "31s | late: undo that", yes: []float64{-1},
				no: []float64{-1}},
			{name: "a complaint after silence", steps: "31s | -@e", yes: []float64{-0.8},
				no: []float64{-1}},
			{name: "a complaint and an undo", steps: "-@e | x: undo that", yes: []float64{-1},
				no: []float64{-1}},
			{name: "a complaint that is withdrawn", steps: "-@e | 31s | 0@e", yes: []float64{2},
				no: []float64{-1}},
			{name: "ignored", steps: "s: next | 31s", no: []float64{-1}},
			{name: "ignored, and then praised", steps: "s: next | +@e", yes: []float64{2},
				no: []float64{-1}},
			{name: "a little praise", steps: "+@e by 0.1 | 31s", yes: []float64{0.2},
				no: []float64{-0.1}},
			{name: "a little praise, and ignored", steps: "+@e by 0.1 | s: next", yes: []float64{0.2},
				no: []float64{-1}},
			{name: "a little praise of a success", steps: "+@e by 0.1 | x: it is off", yes: []float64{2},
				no: []float64{-1}},
			{name: "praise and a complaint", steps: "+@e | bob: -@e | 31s", no: []float64{-1}},
			{name: "praise and a failure", steps: "+@e | x: it is off", failure: true, yes: []float64{2},
				no: []float64{-1}},
		} {
			if test.failure != failure {
				continue
			}
			t.Run(test.name, func(t *testing.T) {
				expect := []learning.Expectation{{Trigger: "oven", Outcome: "it is off",
					Failure: test.failure}}
				f := newFixture(t, learning.Config{Expectations: expect}, "yes", "no").strong()
				f.answerOfModel("e")
				for step := range strings.SplitSeq(test.steps, " | ") {
					switch {
					case step == "":
					case step == "+@e by 0.1":
						j := thumb("", "e", true)
						j.Weight = 0.1
						f.clock.Advance(time.Second)
						f.say(j)
					case step == "bob: -@e":
						j := thumb("", "e", false)
						j.Person = "bob"
						f.say(j)
					case step == "late: undo that":
						f.hear(learning.Message{Session: "room", Text: "undo that",
							At: start.Add(29 * time.Second)})
					default:
						f.clock.Advance(time.Second)
						f.step(step)
					}
				}
				assertWeights(t, test.yes, f.counted("yes")[learning.ChannelAgreement])
				assertWeights(t, test.no, f.counted("no")[learning.ChannelAgreement])
			})
		}
	}
}

func assertWeights(t *testing.T, want, got []float64) {
	t.Helper()
	if assert.Len(t, got, len(want)) && want != nil {
		assert.InDeltaSlice(t, want, got, 1e-12)
	}
}

// TestAJudgementBeforeTheAnswer counts once the answer is fired.
func TestAJudgementBeforeTheAnswer(t *testing.T) {
	f := newFixture(t, learning.Config{}, "yes", "no").strong()
	f.say(thumb("", "e", false))
	f.answerOfModel("e")
	assert.Equal(t, map[string][]float64{"agreement": {-0.8}}, f.counted("yes"))
	f.answerOfModel("e")
	f.clock.Advance(time.Second)
	f.another(learning.Config{}).strong().say(thumb("", "e", true))
	assert.Equal(t, map[string][]float64{"agreement": {2}}, f.counted("yes"),
		"another process replaces it")
	assert.Equal(t, map[string][]float64{"agreement": {-1}}, f.counted("no"))
}

// Its mass is limited, and its mean stays. Judgements of the heuristic itself count in addition.
func TestAgreementIsCapped(t *testing.T) {
	f := newFixture(t, learning.Config{}, "yes", "no").strong()
	for i := range 100 {
		f.answerOfModel(fmt.Sprint(i))
		f.clock.Advance(31 * time.Second)
		f.sweep()
	}
	assert.InDelta(t, (1+10.)/(2+10), f.confidence("yes"), 1e-9)
	assert.InDelta(t, 0.5, f.confidence("no"), 1e-9)
	e, err := f.Explain(ctx, "yes")
	require.NoError(t, err)
	assert.Equal(t, []string{"cap"}, e.Limits)
	require.Len(t, e.Shares, 1)
	assert.InDelta(t, 200, e.Shares[0].For, 1e-9)
	e.Shares[0].For, e.Shares[0].CountsFor = 0, 0
	assert.Equal(t, learning.Share{
		Channel: learning.ChannelAgreement, Source: "ann", Kind: "person", Count: 100,
	}, e.Shares[0])
	assert.Zero(t, e.Standing.Fires, "it was not shown")
	f.say(thumb("yes", "other", false))
	assert.InDelta(t, (1+10.)/(2+10+0.8), f.confidence("yes"), 1e-9)
	err = store.Run(ctx, f.store, store.Job{Expunge: []string{"ann"}})
	require.NoError(t, err)
	assert.InDelta(t, 0.5, f.confidence("yes"), 1e-9)
}

// The shares tell it apart, and the observer hears of it.
func TestAgreementIsToldOf(t *testing.T) {
	f, notices := observed(t, learning.Config{}, "yes", "no")
	learning.WeighAgreement(f.Module, 0.38, 0.17, 6)
	f.answerOfModel("e")
	f.clock.Advance(31 * time.Second)
	changes := f.sweep()
	assert.Equal(t, []string{"positive ", "positive yes", "negative no"}, types(changes))
	assert.Equal(t, []string{"learning/learning counted yes agreement: 1 with 0.4, 0.50 to 0.58",
		"learning/learning counted no agreement: 0 with 0.2, 0.50 to 0.50", "swept 1"}, notices())
	e, err := f.Explain(ctx, "no")
	require.NoError(t, err)
	assert.Equal(t, []learning.Share{{
		Channel: "disagreement", Source: "ann", Kind: "person", Against: 0.17,
		CountsAgainst: 0.17, Count: 1,
	}}, e.Shares)
	assert.Equal(t, []string{"disagreement"}, e.Limits)
	f.clock.Advance(time.Second)
	f.say(thumb("", "e", false))
	assert.Equal(t, []string{"learning/learning counted yes agreement: 0 with 0.2, 0.58 to 0.46"},
		notices())
	assert.InDelta(t, 0.5, f.confidence("no"), 1e-12)
}

// Where it is off, where a heuristic is locked or deleted, it counts nothing.
func TestNoAgreement(t *testing.T) {
	for name, cfg := range map[string]learning.Config{
		"off":    learning.Tuned(learning.Config{}, learning.Tuning{NoAgreement: true}),
		"locked": {Packs: map[string]learning.Constraints{"": {Lock: "locked"}}},
	} {
		f := newFixture(t, cfg, "yes", "no")
		f.answerOfModel("e")
		f.clock.Advance(31 * time.Second)
		f.sweep()
		f.say(thumb("", "e", false))
		assert.Empty(t, f.counted("yes"), name)
		assert.Equal(t, 0.5, f.confidence("yes"), name)
	}
	f := newFixture(t, learning.Config{}, "no").strong()
	f.answerOfModel("e")
	f.clock.Advance(31 * time.Second)
	f.sweep()
	assert.Equal(t, map[string][]float64{"agreement": {-1}}, f.counted("no"),
		"the other one was deleted")
}

// TestARejectionCountsNoMoreThanDisagreement, so that one angry person does not take back what
// several answers earned.
func TestARejectionCountsNoMoreThanDisagreement(t *testing.T) {
	f := newFixtureDefault(t, learning.Config{}, "yes", "no")
	f.answerOfModel("e")
	f.say(thumb("", "e", false))
	assert.Equal(t, map[string][]float64{"agreement": {-0.072}}, f.counted("yes"))
	assert.Equal(t, map[string][]float64{"agreement": {-0.072}}, f.counted("no"), "as after silence")
}

func TestComparedRefuses(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	many := make([]answer.Comparison, 65)
	for i := range many {
		many[i].HeuristicID = fmt.Sprint(i)
	}
	for field, fire := range map[string]learning.Fire{
		"Compared": {EventID: "e", Compared: many},
		"Compared[0].Similarity": {EventID: "e", Compared: []answer.Comparison{{HeuristicID: "h",
			Similarity: math.NaN()}}},
		"Compared[0].HeuristicID": {EventID: "e", Compared: []answer.Comparison{{}}},
		"Compared[1].HeuristicID": {EventID: "e", Compared: []answer.Comparison{{HeuristicID: "h"},
			{HeuristicID: "h"}}},
	} {
		assertInputError(t, f.Fire(ctx, fire), field)
	}
	assertInputError(t, f.Fire(ctx, learning.Fire{HeuristicID: "h", EventID: "e",
		Compared: many[:1]}), "Compared")
	assertInputError(t, f.Fire(ctx, learning.Fire{EventID: "e",
		Compared: []answer.Comparison{{HeuristicID: "\xff"}}}), "Compared[0].HeuristicID")
	require.NoError(t, f.Fire(ctx, learning.Fire{EventID: "e", Compared: many[:64]}))
}

// Facts about a model's answer come in any order. The last state of the answer decides what counts.
func TestAgreementFollowsTheFacts(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg := learning.Tuned(learning.Config{}, learning.Tuning{Bounds: learning.Range{Floor: 0,
			Ceiling: 1}})
		f := newFixture(t, cfg, "yes", "no").strong()
		f.answerOfModel("e")
		clicks := map[string]float64{}
		undone, silent, ignored := false, false, false
		f.clock.Advance(10 * time.Second)
		for i := range rapid.IntRange(1, 8).Draw(rt, "steps") {
			f.clock.Advance(time.Second)
			switch rapid.IntRange(0, 5).Draw(rt, "step") {
			case 0:
				undone = true
				_, err := f.Undo(ctx, learning.Undo{EventID: "e"})
				require.NoError(t, err)
			case 1:
				silent = true
				f.clock.Advance(31 * time.Second)
				f.sweep()
			case 2:
				ignored = true
				f.hear(learning.Message{Stream: "s", Text: "next",
					At: start.Add(5*time.Second + time.Duration(i))})
			default:
				j := thumb("", "e", true)
				j.Person = rapid.SampledFrom([]string{"ann", "bob"}).Draw(rt, "person")
				j.Value = rapid.SampledFrom([]float64{-1, -0.5, 0, 1}).Draw(rt, "value")
				clicks[j.Person] = j.Value
				f.say(j)
			}
		}
		praise, blame := false, 0.
		for _, value := range clicks {
			praise, blame = praise || value > 0, blame+0.8*max(-value, 0)
		}
		yes, no := 0., []float64(nil)
		if undone || ignored || praise || blame > 0 || silent {
			no = []float64{-1}
		}
		switch {
		case undone:
			yes = -1
		case blame > 0 && !praise:
			yes = max(-blame, -1)
		case praise && blame == 0, silent && !praise && blame == 0 && !ignored:
			yes = 2
		}
		want := (1 + max(yes, 0)) / (2 + math.Abs(yes))
		if got := f.confidence("yes"); math.Abs(got-want) > 1e-9 {
			rt.Fatalf("yes is %v, and should be %v: %v", got, want, f.counted("yes"))
		}
		require.Equal(rt, no, f.counted("no")[learning.ChannelAgreement])
		require.Equal(rt, 0.5, f.confidence("no"))
	})
}

// A model that never says what the heuristic says may only use other words. Disagreement takes back
// at most what agreement gave.
func TestDisagreementAloneCountsNothing(t *testing.T) {
	f := newFixtureDefault(t, learning.Config{})
	f.put(learning.Heuristic{ID: "h"})
	n := 0
	next := func(agrees bool, clicks ...bool) {
		n++
		event := fmt.Sprint("event ", n)
		compared := []answer.Comparison{{HeuristicID: "h", Agrees: agrees}}
		require.NoError(t, f.Fire(ctx, learning.Fire{EventID: event, Compared: compared}))
		for _, up := range clicks {
			f.say(thumb("", event, up))
		}
		f.clock.Advance(time.Hour)
		f.sweep()
	}
	for range 40 {
		next(false)
	}
	assert.Equal(t, 0.3, f.confidence("h"))
	e, err := f.Explain(ctx, "h")
	require.NoError(t, err)
	assert.Equal(t, []string{"disagreement"}, e.Limits)
	require.Len(t, e.Shares, 1)
	assert.Equal(t, uint64(40), e.Shares[0].Count)
	assert.InDelta(t, 40*0.072, e.Shares[0].Against, 1e-9)
	next(true)
	assert.Equal(t, 0.3, f.confidence("h"), "it takes back what one agreement gives")
	for range 11 {
		next(true, false)
	}
	rejected := (0.6 + 0.24) / (2 + 0.24 + 11*0.072)
	assert.InDelta(t, rejected, f.confidence("h"), 1e-12, "rejected agreements count")
	next(false)
	assert.InDelta(t, rejected, f.confidence("h"), 1e-12, "and disagreement adds nothing to it")
	for range 25 {
		next(true)
	}
	of := 26 * 0.24 / (26*0.24 + 52*0.072)
	assert.InDelta(t, (0.6+learning.AgreementMass*of)/(2+learning.AgreementMass), f.confidence("h"),
		1e-9, "with more agreement it counts in full, within the cap of both")
	e, err = f.Explain(ctx, "h")
	require.NoError(t, err)
	assert.Equal(t, []string{"cap"}, e.Limits)
}

// Agreement that reaches its limit to the last counts in full, and more does not.
func TestTheLimitOnAgreement(t *testing.T) {
	f := newFixture(t, learning.Config{})
	f.strong() // each counts for 2, and all for 10 at most
	f.put(learning.Heuristic{ID: "h"})
	for n := range 6 {
		require.NoError(t, f.Fire(ctx, learning.Fire{EventID: fmt.Sprint(n), Person: fmt.Sprint(n),
			Compared: []answer.Comparison{{HeuristicID: "h", Agrees: true}}}))
		f.say(thumb("", fmt.Sprint(n), true))
		e, err := f.Explain(ctx, "h")
		require.NoError(t, err)
		assert.Equal(t, n > 4, slices.Contains(e.Limits, "cap"), n)
	}
}

// TestTheOrderOfComparisonsDoesNotMatter, and agreement never lowers a confidence.
func TestTheOrderOfComparisonsDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		type step struct{ agrees, rejected bool }
		steps := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
			return step{rapid.Bool().Draw(t, "agrees"), rapid.Bool().Draw(t, "rejected")}
		}), 1, 12).Draw(rt, "steps")
		f := newFixtureDefault(t, learning.Config{})
		f.put(learning.Heuristic{ID: "here"})
		f.put(learning.Heuristic{ID: "there"})
		good, bad, unlike := 0., 0., 0.
		for i := range steps {
			before := f.confidence("here")
			for id, s := range map[string]step{"here": steps[i], "there": steps[len(steps)-1-i]} {
				event := fmt.Sprint(id, i)
				compared := []answer.Comparison{{HeuristicID: id, Agrees: s.agrees}}
				require.NoError(t, f.Fire(ctx, learning.Fire{EventID: event, Compared: compared}))
				f.say(thumb("", event, !s.rejected))
			}
			switch s := steps[i]; {
			case s.rejected && s.agrees:
				bad += 0.072
			case s.agrees:
				good += 0.24
				require.GreaterOrEqual(t, f.confidence("here"), before-1e-12)
			default:
				unlike += 0.072
			}
			want := max((0.6+good)/(2+good+bad+unlike), min((0.6+good)/(2+good+bad), 0.3))
			require.InDelta(t, want, f.confidence("here"), 1e-9, "%v", steps)
		}
		require.InDelta(t, f.confidence("here"), f.confidence("there"), 1e-12, "%v", steps)
	})
}

// The record of an answer that was compared holds its people where forgetting finds them.
func TestAgreementNamesNobody(t *testing.T) {
	f := newFixture(t, learning.Config{}, "yes", "no")
	f.answerOfModel("e")
	_, err := f.Undo(ctx, learning.Undo{EventID: "e", Person: "Zoe"})
	require.NoError(t, err)
	err = store.Run(ctx, f.store, store.Job{Forget: []string{"Zoe"}})
	require.NoError(t, err)
	kinds, _ := learning.RecordKinds("learning")
	for _, kind := range kinds {
		for r, err := range f.store.Find(ctx, store.Query{Kind: kind.Name}) {
			require.NoError(t, err)
			text, err := r.Body.JSON()
			require.NoError(t, err)
			assert.NotContains(t, strings.ToLower(string(text)+fmt.Sprint(r.ID, r.Keys)), "zoe",
				kind.Name)
		}
	}
	assert.Equal(t, []string{"no disagreed -0.072 by ann"}, f.raw("learning.heuristic"), "she asked")
	f.undoes("")
	assert.Equal(t, []string{"no disagreed -0.072 by ann", "yes agreed -0.072 by ann"},
		f.raw("learning.heuristic"), "the asker takes it back as well")
	assert.Equal(t, "ann", f.answer("e").Person)
}

// Somebody complains about each answer that a heuristic would not have given. It has one in four
// from the model.
func TestAComplaintHelpsNobody(t *testing.T) {
	for name, asker := range map[string]string{"one person": "ann", "a crowd": ""} {
		f := newFixtureDefault(t, learning.Config{})
		f.put(learning.Heuristic{ID: "calm"})
		f.put(learning.Heuristic{ID: "angry"})
		for i := range 60 {
			for _, id := range []string{"calm", "angry"} {
				event, agrees := fmt.Sprint(id, i), i%4 == 0
				asked := learning.Fire{EventID: event, Person: cmp.Or(asker, fmt.Sprint("p", i%9)),
					Compared: []answer.Comparison{{HeuristicID: id, Agrees: agrees}}}
				require.NoError(t, f.Fire(ctx, asked))
				if id == "angry" && !agrees {
					f.say(thumb("", event, false))
				}
			}
			f.clock.Advance(time.Hour)
			f.sweep()
			require.LessOrEqual(t, f.confidence("angry"), f.confidence("calm")+1e-12, name)
		}
		assert.Less(t, f.confidence("angry"), 0.6, name)
	}
}

// TestAnIgnoredAgreementTakesNoDisagreementAway, nor does one that people complain about.
func TestAnIgnoredAgreementTakesNoDisagreementAway(t *testing.T) {
	after := func(fate string) float64 {
		f := newFixtureDefault(t, learning.Config{})
		f.put(learning.Heuristic{ID: "h"})
		for i := range 3 {
			f.say(thumb("h", fmt.Sprint(i), true))
		}
		for i := range 40 {
			fire := learning.Fire{EventID: fmt.Sprint("event ", i), Stream: "s",
				Compared: []answer.Comparison{{HeuristicID: "h", Agrees: i < 8}}}
			require.NoError(t, f.Fire(ctx, fire))
			switch {
			case i >= 8:
			case fate == "ignored":
				f.hear(learning.Message{Stream: "s", Text: "next"})
			case fate == "complaint":
				f.say(thumb("", fire.EventID, false))
			}
			f.clock.Advance(time.Hour)
			f.sweep()
		}
		return f.confidence("h")
	}
	silence, ignored, complaint := after("silence"), after("ignored"), after("complaint")
	assert.LessOrEqual(t, ignored, silence)
	assert.Less(t, complaint, ignored)
}

// TestTwoWhoTakeTheirPraiseBack leave nothing of it, for the heuristic that agreed neither.
func TestTwoWhoTakeTheirPraiseBack(t *testing.T) {
	f := newFixture(t, learning.Config{}, "yes", "no").strong()
	f.answerOfModel("e")
	for _, value := range []float64{1, 0} {
		for _, person := range []string{"ann", "bob"} {
			assert.Greater(t, f.confidence("yes"), 0.4)
			f.clock.Advance(time.Second)
			f.say(learning.Judgement{EventID: "e", Person: person, Value: value})
		}
		assert.Equal(t, value > 0, f.confidence("yes") > 0.5)
	}
}

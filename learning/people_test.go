package learning_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/store"
)

// raw returns the observations of a kind of cells as the store has them: item, cell, signed weight
// and source.
func (f *fixture) raw(kind string) (all []string) {
	f.Helper()
	cells := make(map[evidence.Cell]bool)
	for scope, err := range f.store.Scopes(ctx, kind) {
		require.NoError(f, err)
		for part, err := range f.store.List(ctx, store.CellQuery{Kind: kind, Scope: scope}) {
			require.NoError(f, err)
			cells[part.Cell] = true
		}
	}
	for cell := range cells {
		for o, err := range f.store.History(ctx, cell) {
			require.NoError(f, err)
			weight := o.Weight
			if o.Reward < 0.5 {
				weight = -weight
			}
			name := cell.Item + " " + cell.Name
			if cell.Name == "" {
				name = cell.Item
			}
			all = append(all, fmt.Sprintf("%s %+.3g by %s", name, weight, o.Source))
		}
	}
	slices.Sort(all)
	return all
}

func (f *fixture) forget(names ...string) {
	f.Helper()
	err := store.Run(ctx, f.store, store.Job{Forget: names})
	require.NoError(f, err)
	for _, name := range names {
		assert.NotContains(f, answers.People(f.answer("e")), name)
	}
}

// judges has a person judge the model's answer.
func (f *fixture) judges(person string, value float64) {
	f.Helper()
	f.clock.Advance(time.Second)
	f.say(learning.Judgement{EventID: "e", Person: person, Value: value})
}

func (f *fixture) undoes(person string) {
	f.Helper()
	f.clock.Advance(time.Second)
	_, err := f.Undo(ctx, learning.Undo{EventID: "e", Person: person})
	require.NoError(f, err)
}

// Where it is not known who asked, a disagreement is evidence of those who stated something, each
// for their part.
func TestADisagreementWithoutAnAsker(t *testing.T) {
	f := newFixture(t, learning.Config{}, "yes", "no").strong()
	require.NoError(t, f.Fire(ctx, learning.Fire{
		EventID: "e", Stream: "s", Session: "room", Condition: "oven",
		Compared: []answer.Comparison{{HeuristicID: "no"}},
	}))
	f.judges("bob", 0.25)
	f.judges("cid", 1)
	assert.Equal(t, []string{"no disagreed -0.25 by bob", "no disagreed -0.75 by cid"},
		f.raw("learning.heuristic"))
}

// An undo notes where it was said, if that is not where the answer was given.
func TestWhereAnUndoWasSaid(t *testing.T) {
	for session, noted := range map[string]string{"room": "", "desk": "desk", "": ""} {
		f := newFixture(t, learning.Config{}, "h")
		f.fire("h", "e", "s")
		_, err := f.Undo(ctx, learning.Undo{EventID: "e", Person: "bob", Session: session})
		require.NoError(t, err)
		said := f.answer("e").Statements
		require.Len(t, said, 1)
		assert.Equal(t, noted, said[0].Session)
	}
}

// What an answer is worth for the heuristics that were compared with it is evidence of the people
// whose statements make it so. So it goes if they are forgotten, and with nobody else. Ann asked.
func TestAgreementIsOfWhoStatedIt(t *testing.T) {
	silence := func(f *fixture) {
		f.clock.Advance(31 * time.Second)
		f.sweep()
	}
	for name, test := range map[string]struct {
		do     []func(f *fixture)
		forget string
		want   []string // afterwards
	}{
		"silence": {[]func(f *fixture){silence}, "", []string{
			"no disagreed -1 by ann", "yes agreed +2 by ann",
		}},
		"silence, the asker is forgotten": {[]func(f *fixture){silence}, "ann", nil},
		"praise, the asker is forgotten": {
			[]func(f *fixture){func(f *fixture) { f.judges("bob", 1) }}, "ann",
			[]string{"yes agreed +2 by bob"},
		},
		"praise, its person is forgotten": {
			[]func(f *fixture){func(f *fixture) { f.judges("bob", 1) }}, "bob",
			[]string{"no disagreed -1 by ann"},
		},
		"silence and praise, the asker is forgotten": {
			[]func(f *fixture){silence, func(f *fixture) { f.judges("bob", 1) }}, "ann",
			[]string{"yes agreed +2 by bob"},
		},
		"silence and praise, the person who praised is forgotten": {
			[]func(f *fixture){silence, func(f *fixture) { f.judges("bob", 1) }}, "bob",
			[]string{"no disagreed -1 by ann"},
		},
		"a little praise of two": {
			[]func(f *fixture){
				func(f *fixture) { f.judges("bob", 0.25) }, func(f *fixture) { f.judges("cid", 1) },
			}, "",
			[]string{
				"no disagreed -1 by ann",
				"yes agreed +0.5 by bob", "yes agreed +1.5 by cid",
			},
		},
		"a little praise of two, one is forgotten": {
			[]func(f *fixture){
				func(f *fixture) { f.judges("bob", 0.25) }, func(f *fixture) { f.judges("cid", 1) },
			}, "cid",
			[]string{"no disagreed -1 by ann", "yes agreed +0.5 by bob"},
		},
		"a complaint, the asker is forgotten": {
			[]func(f *fixture){func(f *fixture) { f.judges("bob", -1) }}, "ann",
			[]string{"yes agreed -0.8 by bob"},
		},
		"a complaint, its person is forgotten": {
			[]func(f *fixture){func(f *fixture) { f.judges("bob", -1) }}, "bob",
			[]string{"no disagreed -1 by ann"},
		},
		"complaints of two, the second is forgotten": {
			[]func(f *fixture){
				func(f *fixture) { f.judges("bob", -1) }, func(f *fixture) { f.judges("cid", -1) },
			}, "cid",
			[]string{"no disagreed -1 by ann", "yes agreed -0.8 by bob"},
		},
		"the first of two takes the complaint back": {
			[]func(f *fixture){
				func(f *fixture) { f.judges("bob", -1) }, func(f *fixture) { f.judges("cid", -1) },
				func(f *fixture) { f.judges("bob", 0) },
			}, "bob",
			[]string{"no disagreed -1 by ann", "yes agreed -0.8 by cid"},
		},
		"an undo, the asker is forgotten": {
			[]func(f *fixture){func(f *fixture) { f.undoes("bob") }}, "ann",
			[]string{"yes agreed -1 by bob"},
		},
		"an undo, its person is forgotten": {
			[]func(f *fixture){func(f *fixture) { f.undoes("bob") }}, "bob",
			[]string{"no disagreed -1 by ann"},
		},
		"a complaint next to an undo": {
			[]func(f *fixture){
				func(f *fixture) { f.judges("bob", -1) }, func(f *fixture) { f.undoes("cid") },
			}, "cid",
			[]string{"no disagreed -1 by ann", "yes agreed -0.8 by bob"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, learning.Config{}, "yes", "no").strong()
			f.answerOfModel("e")
			for _, do := range test.do {
				do(f)
			}
			if test.forget != "" {
				f.forget(test.forget)
			}
			assert.Equal(t, test.want, f.raw("learning.heuristic"))
		})
	}
}

// After a person was forgotten, what others state counts as if the person had stated nothing.
func TestAgreementAfterAPersonIsForgotten(t *testing.T) {
	f := newFixture(t, learning.Config{}, "yes", "no").strong()
	f.answerOfModel("e")
	f.judges("bob", -1)
	f.judges("cid", -1)
	f.forget("bob")
	f.judges("dan", -1)
	assert.Equal(t, []string{
		"no disagreed -1 by ann", "yes agreed -0.2 by dan", "yes agreed -0.8 by cid",
	}, f.raw("learning.heuristic"))
	f.forget("cid", "dan")
	assert.Equal(t, []string{"no disagreed -1 by ann"}, f.raw("learning.heuristic"))
	f.judges("eve", 1)
	assert.Equal(t, []string{"no disagreed -1 by ann", "yes agreed +2 by eve"},
		f.raw("learning.heuristic"))
}

// How an answer was received is evidence of the person who decides it, too.
func TestTheEndIsOfWhoDecidesIt(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	require.NoError(t, f.Fire(ctx, learning.Fire{
		HeuristicID: "h", EventID: "e", Person: "ann",
	}))
	say := func(person string, value float64) {
		f.clock.Advance(time.Second)
		f.say(learning.Judgement{HeuristicID: "h", EventID: "e", Person: person, Value: value})
	}
	say("bob", -1)
	say("cid", -1)
	want := []string{"h ended -1 by bob", "h shown +1 by ann"}
	assert.Equal(t, want, f.raw("learning.fire"))
	f.forget("ann")
	assert.Equal(t, want[:1], f.raw("learning.fire"), "the complaints are bob's and cid's")
	f.forget("bob")
	assert.Empty(t, f.raw("learning.fire"))
	say("dan", -1)
	assert.Equal(t, []string{"h ended -1 by cid"}, f.raw("learning.fire"))
	say("cid", 0)
	assert.Equal(t, []string{"h ended -1 by dan"}, f.raw("learning.fire"))
	f.forget("dan")
	assert.Empty(t, f.raw("learning.fire"))
	say("eve", 1)
	assert.Equal(t, []string{"h ended +1 by eve"}, f.raw("learning.fire"))
}

// The model's answer without a prediction has no evidence of how it was received. So there is
// nothing to take back if people change their minds.
func TestTheModelsAnswerHasNoEnd(t *testing.T) {
	f := newFixture(t, learning.Config{})
	require.NoError(t, f.Fire(ctx, learning.Fire{EventID: "e", Person: "ann"}))
	for _, value := range []float64{1, -1, 0} {
		f.judges("bob", value)
	}
	counted := answers.FireOf(f.answer("e"), "").Counted
	assert.Nil(t, counted.Ended)
	for _, b := range f.store.commits {
		assert.False(t, b.TakesAway())
		assert.Empty(t, b.Observations)
	}
}

// Whatever is observed about an answer is a person's doing, so the kind of its source is known.
func TestObservedStatementsAreOfPeople(t *testing.T) {
	expect := []learning.Expectation{{Trigger: "oven", Outcome: "it is off"}}
	for how, do := range map[answer.How]func(f *fixture){
		answers.Undo:     func(f *fixture) { f.undoes("bob") },
		answers.Expected: func(f *fixture) { f.hear(learning.Message{Text: "it is off"}) },
		answers.Ignored:  func(f *fixture) { f.hear(learning.Message{Stream: "s", Text: "next"}) },
		answers.Silence:  func(f *fixture) { f.clock.Advance(31 * time.Second); f.sweep() },
	} {
		f := newFixture(t, learning.Config{Expectations: expect}, "yes", "no")
		f.answerOfModel("e")
		do(f)
		said := f.answer("e").Statements
		if assert.Len(t, said, 1, how) {
			assert.Equal(t, how, said[0].How)
			assert.EqualValues(t, "person", said[0].Kind, how)
		}
	}
}

// What a person did is on the record of the answer, and counts for that person.
func TestASecondUndoIsOnTheRecord(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	require.NoError(t, f.Fire(ctx, learning.Fire{HeuristicID: "h", EventID: "e", Person: "ann"}))
	undo := func(person string) []learning.Change {
		f.clock.Advance(time.Second)
		changes, err := f.Undo(ctx, learning.Undo{EventID: "e", Person: person})
		require.NoError(t, err)
		return changes
	}
	require.Len(t, undo("bob"), 1)
	second := undo("cid")
	require.Len(t, second, 1)
	assert.Empty(t, second[0].Limits)
	assert.Negative(t, second[0].Delta)
	assert.Empty(t, undo("cid"), "the same again")
	var by []string
	for _, s := range f.answer("e").Statements {
		by = append(by, s.By)
	}
	assert.Equal(t, []string{"bob", "cid"}, by)
	assert.Equal(t, []string{"h seen -1 by bob", "h seen -1 by cid"}, f.raw("learning.heuristic"))

	f.forget("bob")
	assert.Equal(t, []string{"h seen -1 by cid"}, f.raw("learning.heuristic"))
	assert.Len(t, undo("dan"), 1)
	assert.Equal(t, []string{"h seen -1 by cid", "h seen -1 by dan"}, f.raw("learning.heuristic"))
	assert.Equal(t, []string{"h ended -1 by cid", "h shown +1 by ann"}, f.raw("learning.fire"))
}

// If the person whose undo counted is forgotten, the undo of another person counts.
func TestAnUndoAfterTheFirstPersonIsForgotten(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	require.NoError(t, f.Fire(ctx, learning.Fire{HeuristicID: "h", EventID: "e", Person: "ann"}))
	for _, person := range []string{"bob", "cid"} {
		f.clock.Advance(time.Second)
		changes, err := f.Undo(ctx, learning.Undo{EventID: "e", Person: person})
		require.NoError(t, err)
		require.Len(t, changes, 1)
		assert.Equal(t, []string{"h seen -1 by " + person}, f.raw("learning.heuristic"))
		f.forget(person)
	}
	assert.Empty(t, f.raw("learning.heuristic"))
}

// Who states neither praise nor blame is not counted among a domain's people.
func TestANeutralJudgementIsOfNobody(t *testing.T) {
	for value, people := range map[float64]int{0: 0, 1: 1} {
		f := newFixture(t, learning.Config{}, "h")
		f.fire("h", "e", "s")
		f.say(learning.Judgement{HeuristicID: "h", EventID: "e", Person: "bob", Value: value})
		assert.Len(t, f.raw("learning.people"), people, value)
		e, err := f.Explain(ctx, "h")
		require.NoError(t, err)
		assert.Equal(t, (1+value)/2, e.History[0].Reward, value)
	}
}

// Who was silent is one of the people of a domain once the silence counts.
func TestSilenceThatComesToCountIsOfAPerson(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	require.NoError(t, f.Fire(ctx, learning.Fire{HeuristicID: "h", EventID: "e", Person: "ann"}))
	f.say(learning.Judgement{HeuristicID: "h", EventID: "e", Person: "bob", Value: 1})
	f.clock.Advance(31 * time.Second)
	f.sweep()
	require.Len(t, f.raw("learning.people"), 1)
	f.say(learning.Judgement{HeuristicID: "h", EventID: "e", Person: "bob"})
	require.Contains(t, f.raw("learning.heuristic"), "h silence +1 by ann")
	assert.Len(t, f.raw("learning.people"), 2)
}

// A domain may have the name of a heuristic. Its people are no evidence.
func TestADomainWithTheNameOfAHeuristic(t *testing.T) {
	f := newFixture(t, learning.Config{})
	f.put(learning.Heuristic{ID: "h", Domain: "h", Initial: 0.5})
	f.say(thumb("h", "e", true))
	for _, m := range []*fixture{f, f.another(learning.Config{})} {
		assert.InDelta(t, 1.8/2.8, m.confidence("h"), 1e-12)
		e, err := m.Explain(ctx, "h")
		require.NoError(t, err)
		assert.Equal(t, 1., e.People)
	}
}

// A domain counts its people in at most 64 places, also if it has more people.
func TestPeopleHaveFewPlaces(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	f.store.forgets = true
	for i := range 150 {
		f.say(learning.Judgement{HeuristicID: "h", EventID: fmt.Sprint(i), Person: fmt.Sprint(i),
			Value: 1})
	}
	places := len(f.raw("learning.people"))
	assert.Greater(t, places, 32)
	assert.LessOrEqual(t, places, 64)
}

// The answer to an event keeps its time if another heuristic is shown later.
func TestALaterFireLeavesTheTimeOfTheAnswer(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h", "other")
	f.fire("h", "e", "s")
	at := f.answer("e").At
	f.clock.Advance(time.Second)
	f.fire("other", "e", "s")
	assert.Equal(t, at, f.answer("e").At)
}

// No limit on people holds for the model, so that its answer is taken back once.
func TestASecondUndoOfTheModel(t *testing.T) {
	f := newFixture(t, learning.Config{})
	f.answerOfModel("e")
	for _, want := range [][]string{nil, {learning.LimitOutweighed}} {
		f.clock.Advance(time.Second)
		changes, err := f.Undo(ctx, learning.Undo{EventID: "e", Person: fmt.Sprint("after ", want)})
		require.NoError(t, err)
		require.Len(t, changes, 1)
		assert.Equal(t, want, changes[0].Limits)
	}
}

// fireInRoom shows answers of the heuristic to Ann in a session that several people share.
func (f *fixture) fireInRoom(events ...string) {
	for _, event := range events {
		f.clock.Advance(time.Second)
		require.NoError(f, f.Fire(ctx, learning.Fire{
			HeuristicID: "h", EventID: event, Person: "ann", Session: "room",
		}))
	}
}

// After an undo of somebody else, the message of a third person takes back the answer before.
func TestAnUndoInAMessageOfAThirdPerson(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	f.fireInRoom("before", "e")
	f.undoes("bob")
	changes := f.hear(learning.Message{Session: "room", Text: "undo that", Person: "cid"})
	require.Len(t, changes, 1)
	assert.Equal(t, "before", changes[0].Signal.EventID)
}

// Where an answer has no room for another undo, a message means the one before.
func TestAnUndoForWhichThereIsNoRoom(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	f.fireInRoom("before", "e")
	for i := range answers.MaxUndos {
		_, err := f.Undo(ctx, learning.Undo{EventID: "e", Person: fmt.Sprint(i)})
		require.NoError(t, err)
	}
	changes := f.hear(learning.Message{Session: "room", Text: "undo that", Person: "ann"})
	require.Len(t, changes, 1)
	assert.Equal(t, "before", changes[0].Signal.EventID)
}

// An undo in a message of the person who asked means the answer, also after the undo of somebody
// else. The undo of a third person means the answer before.
func TestASecondUndoInAMessage(t *testing.T) {
	for name, cfg := range map[string]learning.Config{"": {}, "instrument": {
		Trust: evidence.Trust{Instruments: []string{"bob"}},
	}} {
		f := newFixture(t, cfg, "h")
		for _, event := range []string{"before", "e"} {
			f.clock.Advance(time.Second)
			require.NoError(t, f.Fire(ctx, learning.Fire{
				HeuristicID: "h", EventID: event, Person: "ann", Session: "room",
			}))
		}
		f.store.forgets = true
		for i := range answers.MaxUndos { // they leave room for undos
			f.say(learning.Judgement{HeuristicID: "h", EventID: "e", Person: fmt.Sprint(i), Value: 1})
		}
		f.undoes("bob")
		undo := learning.Message{Session: "room", Text: "undo that", Person: "ann"}
		changes := f.hear(undo)
		require.Len(t, changes, 1, name)
		assert.Equal(t, "e", changes[0].Signal.EventID, name)
		assert.True(t, answers.TookBack(f.answer("e"), "h", "ann"), name)
		undo.Person = "cid"
		changes = f.hear(undo)
		require.Len(t, changes, 1, name)
		assert.Equal(t, "before", changes[0].Signal.EventID, name)
	}
}

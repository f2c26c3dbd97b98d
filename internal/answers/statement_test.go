package answers_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/internal/answers"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// at returns a moment some seconds after the answer.
func at(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

const thumb = 0.8 // what a strategy makes of a full judgement

// judged is a person's judgement.
func judged(by string, value float64, seconds int) answer.Statement {
	return answer.Statement{
		By: by, Channel: "thumbs", Value: value, Worth: thumb * value, At: at(seconds),
	}
}

// outcome is what a source reported.
func outcome(by string, value float64, seconds int) answer.Statement {
	return answer.Statement{
		How: answers.Outcome, By: by, Channel: "outcome", Value: value, Worth: thumb * value,
		At: at(seconds),
	}
}

// withdrawn takes an outcome back.
func withdrawn(by string, seconds int) answer.Statement {
	return answer.Statement{
		How: answers.Outcome, By: by, Channel: "outcome", Withdrawn: true, At: at(seconds),
	}
}

func undo(by string, seconds int) answer.Statement {
	return answer.Statement{
		How: answers.Undo, By: by, Channel: "undo", Value: -1, Worth: -1, At: at(seconds),
	}
}

// observed is an implicit signal of the person who asked.
func observed(how answer.How, worth float64, seconds int) answer.Statement {
	return answer.Statement{
		How: how, By: "asker", Channel: string(how), Worth: worth, At: at(seconds),
	}
}

func success() answer.Statement { return observed(answers.Expected, 1, 20) }
func failure() answer.Statement { return observed(answers.Expected, -1, 20) }
func ignored() answer.Statement { return observed(answers.Ignored, -0.4, 30) }
func silent() answer.Statement  { return observed(answers.Silence, 0.4, 40) }

// about changes the target of a statement.
func about(t answer.Target, s answer.Statement) answer.Statement {
	s.Target = t
	return s
}

// weighing changes the weight of a judgement.
func weighing(weight float64, s answer.Statement) answer.Statement {
	s.Weight, s.Worth = weight, s.Worth*weight
	return s
}

// said is an answer about which all this was stated.
func said(all ...answer.Statement) *answer.Answer {
	a := &answer.Answer{ID: "e", At: start, Person: "asker"}
	for _, s := range all {
		answers.Say(a, s)
	}
	return a
}

// forget does what a store does to a record if a person is forgotten.
func forget(a *answer.Answer, person string) {
	for _, s := range a.Statements {
		if s.By == person {
			answers.Edit(a, s.N, func(s *answer.Statement) { s.By = "" })
		}
	}
}

// words are the statements on the record, by source, value and moment.
func words(all []answer.Statement) (words []string) {
	for _, s := range all {
		word := fmt.Sprintf("%s%s %+g @%d", s.By, s.Target, s.Value, int(s.At.Sub(start).Seconds()))
		if s.Withdrawn {
			word += " withdrawn"
		}
		words = append(words, word)
	}
	return words
}

func TestTheLatestStatementOfASourceHolds(t *testing.T) {
	for name, test := range map[string]struct {
		before []answer.Statement
		say    answer.Statement
		effect answers.Disposition
		gone   []string
		want   []string
	}{
		"the first": {nil, judged("ann", 1, 1), answers.Holds, nil, []string{"ann +1 @1"}},
		"a later one": {
			[]answer.Statement{judged("ann", 1, 1)}, judged("ann", -1, 2),
			answers.Holds, []string{"ann +1 @1"}, []string{"ann -1 @2"},
		},
		"an earlier one": {
			[]answer.Statement{judged("ann", 1, 2)}, judged("ann", -1, 1),
			answers.Outdated, nil, []string{"ann +1 @2"},
		},
		"the same": {
			[]answer.Statement{judged("ann", 1, 1)}, judged("ann", 1, 1),
			answers.Repeated, nil, []string{"ann +1 @1"},
		},
		"the same in another zone": {
			[]answer.Statement{judged("ann", 1, 1)},
			func() answer.Statement {
				s := judged("ann", 1, 1)
				s.At = s.At.In(time.FixedZone("there", 3600))
				return s
			}(), answers.Repeated, nil, []string{"ann +1 @1"},
		},
		"a weight of 1 is no weight": {
			[]answer.Statement{judged("ann", 1, 1)}, weighing(1, judged("ann", 1, 1)),
			answers.Repeated, nil, []string{"ann +1 @1"},
		},
		"of one moment the last to arrive": {
			[]answer.Statement{judged("ann", 1, 1)}, judged("ann", -1, 1),
			answers.Holds, []string{"ann +1 @1"}, []string{"ann -1 @1"},
		},
		"of somebody else": {
			[]answer.Statement{judged("ann", 1, 1)}, judged("bob", -1, 2),
			answers.Holds, nil, []string{"ann +1 @1", "bob -1 @2"},
		},
		"without a name": {
			[]answer.Statement{judged("", 1, 1)}, judged("", -1, 2),
			answers.Holds, []string{" +1 @1"}, []string{" -1 @2"},
		},
		"an outcome is no judgement": {
			[]answer.Statement{judged("ann", 1, 1)},
			func() answer.Statement {
				s := outcome("ann", -1,
					2)
				s.Channel = "thumbs"
				return s
			}(),
			answers.Holds, nil, []string{"ann +1 @1", "ann -1 @2"},
		},
		"another channel": {
			[]answer.Statement{judged("ann", 1, 1)},
			func() answer.Statement { s := judged("ann", -1, 2); s.Channel = "mail"; return s }(),
			answers.Holds, nil, []string{"ann +1 @1", "ann -1 @2"},
		},
		"another heuristic": {
			[]answer.Statement{judged("ann", 1, 1)},
			func() answer.Statement { s := judged("ann", -1, 2); s.Of = "h"; return s }(),
			answers.Holds, nil, []string{"ann +1 @1", "ann -1 @2"},
		},
		"another outcome of a choice": {
			[]answer.Statement{outcome("ci", 1, 1)},
			func() answer.Statement { s := outcome("ci", -1, 2); s.ID = "2"; return s }(),
			answers.Holds, nil, []string{"ci +1 @1", "ci -1 @2"},
		},
		"another part": {
			[]answer.Statement{about(answer.TargetRule, judged("ann", 1, 1))},
			about(answer.TargetResponse, judged("ann", -1, 2)),
			answers.Holds, nil, []string{"annrule +1 @1", "annresponse -1 @2"},
		},
		"the whole replaces the parts": {
			[]answer.Statement{
				about(answer.TargetRule, judged("ann", 1, 1)),
				about(answer.TargetResponse, judged("ann", 1, 2)),
			}, judged("ann", -1, 3),
			answers.Holds, []string{"annrule +1 @1", "annresponse +1 @2"}, []string{"ann -1 @3"},
		},
		"a part replaces the whole": {
			[]answer.Statement{judged("ann", 1, 1)}, about(answer.TargetRule, judged("ann", -1, 2)),
			answers.Holds, []string{"ann +1 @1"}, []string{"annrule -1 @2"},
		},
		"the whole is older than a part": {
			[]answer.Statement{
				about(answer.TargetRule, judged("ann", 1, 1)),
				about(answer.TargetResponse, judged("ann", 1, 3)),
			}, judged("ann", -1, 2),
			answers.Outdated, nil, []string{"annrule +1 @1", "annresponse +1 @3"},
		},
		"the strategy's target counts": {
			[]answer.Statement{about(answer.TargetRule, judged("ann", 1, 1))},
			func() answer.Statement {
				s := about(answer.TargetRule, judged("ann", -1, 2))
				s.About = answer.TargetResponse
				return s
			}(), answers.Holds, nil, []string{"annrule +1 @1", "annrule -1 @2"},
		},
		"outcomes have no target": {
			[]answer.Statement{about(answer.TargetRule, outcome("ci", 1, 1))},
			about(answer.TargetResponse, outcome("ci", -1, 2)),
			answers.Holds, []string{"cirule +1 @1"}, []string{"ciresponse -1 @2"},
		},
		"a withdrawal": {
			[]answer.Statement{judged("ann", 1, 1)}, judged("ann", 0, 2),
			answers.Holds, []string{"ann +1 @1"}, []string{"ann +0 @2"},
		},
		"what was withdrawn later": {
			[]answer.Statement{judged("ann", 0, 2)}, judged("ann", 1, 1),
			answers.Outdated, nil, []string{"ann +0 @2"},
		},
		"after a withdrawal": {
			[]answer.Statement{judged("ann", 0, 2)}, judged("ann", 1, 3),
			answers.Holds, []string{"ann +0 @2"}, []string{"ann +1 @3"},
		},
		"an outcome is withdrawn": {
			[]answer.Statement{outcome("ci", 1, 1)}, withdrawn("ci", 2),
			answers.Holds, []string{"ci +1 @1"}, []string{"ci +0 @2 withdrawn"},
		},
		"an outcome that was withdrawn later": {
			[]answer.Statement{withdrawn("ci", 2)}, outcome("ci", 1, 1),
			answers.Outdated, nil, []string{"ci +0 @2 withdrawn"},
		},
		"an outcome of 0 after its withdrawal": {
			[]answer.Statement{withdrawn("ci", 2)}, outcome("ci", 0, 2),
			answers.Holds, []string{"ci +0 @2 withdrawn"}, []string{"ci +0 @2"},
		},
		"a second undo": {
			[]answer.Statement{undo("ann", 1)}, undo("ann",
				2), answers.Refused, nil, []string{"ann -1 @1"},
		},
		"the same undo": {
			[]answer.Statement{undo("ann", 1)}, undo("ann",
				1), answers.Repeated, nil, []string{"ann -1 @1"},
		},
		"an undo that arrives late": {
			[]answer.Statement{undo("ann", 2)}, undo("ann",
				1), answers.Outdated, nil, []string{"ann -1 @2"},
		},
		"the undo of somebody else": {
			[]answer.Statement{undo("ann", 1)}, undo("bob", 2),
			answers.Holds, nil, []string{"ann -1 @1", "bob -1 @2"},
		},
		"a second ignore": {
			[]answer.Statement{ignored()}, observed(answers.Ignored, -1, 31),
			answers.Refused, nil, []string{"asker +0 @30"},
		},
		"the silence of somebody else": {
			[]answer.Statement{silent()},
			func() answer.Statement { s := silent(); s.By, s.At = "bob", at(41); return s }(),
			answers.Refused, nil, []string{"asker +0 @40"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := said(test.before...)
			require.Len(t, a.Statements, len(test.before))
			numbers := a.Numbers
			on, gone, effect := answers.Say(a, test.say)
			assert.Equal(t, test.effect, effect)
			assert.Equal(t, test.gone, words(gone))
			assert.Equal(t, test.want, words(a.Statements))
			switch effect {
			case answers.Holds:
				assert.Equal(t, numbers+1, on.N)
				assert.Equal(t, a.Statements[len(a.Statements)-1], on)
			case answers.Repeated:
				assert.Equal(t, numbers, a.Numbers)
				assert.Contains(t, a.Statements, on)
			default:
				assert.Equal(t, numbers, a.Numbers)
				assert.Zero(t, on.N)
			}
		})
	}
}

// A source that repeats a statement later moves its moment alone. A statement that is worth
// something else, is of another kind of source, or about another thing, takes its place.
func TestALaterRepetitionMovesItsMoment(t *testing.T) {
	first := judged("ann", 1, 1)
	first.Kind = "person"
	a := said(first)
	later := first
	later.At = at(2)
	on, gone, effect := answers.Say(a, later)
	assert.Equal(t, answers.Repeated, effect)
	assert.Empty(t, gone)
	assert.Equal(t, []uint64{1, 2}, []uint64{on.N, a.Numbers}, "the record shows a change")
	assert.Equal(t, []answer.Statement{on}, a.Statements)
	assert.Equal(t, at(2), on.At)
	for name, change := range map[string]func(*answer.Statement){
		"worth": func(s *answer.Statement) { s.Worth = 0.1 },
		"kind":  func(s *answer.Statement) { s.Kind = "instrument" },
		"about": func(s *answer.Statement) { s.About = answer.TargetRule },
	} {
		a, other := said(first), later
		change(&other)
		on, gone, effect := answers.Say(a, other)
		assert.Equal(t, answers.Holds, effect, name)
		assert.Len(t, gone, 1, name)
		assert.EqualValues(t, 2, on.N, name)
	}
}

// A report of the same moment that corrects what the one before had is another report.
func TestACorrectedReportIsNoRepetition(t *testing.T) {
	yes, no := true, false
	report := func(success *bool, cost float64) answer.Statement {
		s := outcome("ci", 0, 1)
		s.Success, s.Spent = success, &answer.Spent{Cost: cost}
		return s
	}
	again := yes
	a := said(report(&yes, 1))
	_, _, effect := answers.Say(a, report(&again, 1))
	assert.Equal(t, answers.Repeated, effect)
	for _, s := range []answer.Statement{report(&no, 1), report(nil, 1), report(nil, 2),
		outcome("ci", 0, 1)} {
		_, gone, effect := answers.Say(a, s)
		assert.Equal(t, answers.Holds, effect)
		assert.Len(t, gone, 1)
	}
}

// Say sets Named, because a source that is named now is not forgotten.
func TestSayNamesTheSource(t *testing.T) {
	s := judged("", 1, 1)
	s.Named = true
	a := said(s, judged("ann", 1, 1))
	assert.False(t, a.Statements[0].Forgotten())
	assert.False(t, a.Statements[0].Named)
	assert.True(t, a.Statements[1].Named)
	forget(a, "ann")
	assert.True(t, a.Statements[1].Forgotten())

	_, gone, effect := answers.Say(a, judged("", -1, 2))
	assert.Equal(t, answers.Holds, effect)
	assert.Equal(t, []string{" +1 @1"}, words(gone),
		"the forgotten person is not the one without a name")
	_, gone, effect = answers.Say(a, judged("ann", -1, 2))
	assert.Equal(t, answers.Holds, effect)
	assert.Empty(t, gone)
}

// crowd is an answer with one judgement each of many people.
func crowd(n int) *answer.Answer {
	a := said()
	for i := range n {
		answers.Say(a, judged(fmt.Sprint("person ", i), 1, i))
	}
	return a
}

func TestTheBoundOfJudgementsAndOutcomes(t *testing.T) {
	last := answers.MaxStated - 1
	for name, test := range map[string]struct {
		before []answer.Statement // after 98 people
		say    answer.Statement
		effect answers.Disposition
		gone   []string
	}{
		"the hundredth": {
			[]answer.Statement{judged("ann", 1, 200)}, judged("bob", 1, 201), answers.Holds, nil,
		},
		"the 101st": {
			[]answer.Statement{judged("ann", 1, 200), outcome("ci", 1, 201)}, judged("eve", 1, 202),
			answers.Refused, nil,
		},
		"the 101st, an outcome": {
			[]answer.Statement{judged("ann", 1, 200), outcome("ci", 1, 201)}, outcome("eve", 1,
				202),
			answers.Refused, nil,
		},
		"one that replaces another": {
			[]answer.Statement{judged("ann", 1, 200), outcome("ci", 1, 201)}, judged("ann", -1,
				202),
			answers.Holds, []string{"ann +1 @200"},
		},
		"another part of the same person": {
			[]answer.Statement{
				about(answer.TargetRule, judged("ann", 1, 200)), outcome("ci", 1, 201),
			}, about(answer.TargetResponse, judged("ann", -1, 202)),
			answers.Holds, []string{"annrule +1 @200"},
		},
		"a person who has two makes room": {
			[]answer.Statement{
				about(answer.TargetRule, judged("ann", 1, 200)),
				about(answer.TargetResponse, judged("ann", -1, 199)),
			}, judged("eve", 1, 202), answers.Holds, []string{"annresponse -1 @199"},
		},
		"a source with a judgement and an outcome makes room": {
			[]answer.Statement{judged("ann", 1, 200), outcome("ann", 1, 201)}, judged("eve", 1,
				202),
			answers.Holds, []string{"ann +1 @200"},
		},
		"a withdrawn judgement makes room": {
			[]answer.Statement{judged("ann", 0, 200), outcome("ci", 1, 201)}, judged("eve", 1, 202),
			answers.Holds, []string{"ann +0 @200"},
		},
		"a withdrawn outcome makes room": {
			[]answer.Statement{judged("ann", 1, 200), withdrawn("ci", 201)}, judged("eve", 1, 202),
			answers.Holds, []string{"ci +0 @201 withdrawn"},
		},
		"an outcome of 0 is not withdrawn": {
			[]answer.Statement{judged("ann", 1, 200), outcome("ci", 0, 201)}, judged("eve", 1, 202),
			answers.Refused, nil,
		},
		"a withdrawal of nothing pushes out nothing that counts": {
			[]answer.Statement{
				about(answer.TargetRule, judged("ann", 1, 200)),
				about(answer.TargetResponse, judged("ann", -1, 199)),
			}, judged("eve", 0, 202), answers.Refused, nil,
		},
		"a withdrawal of nothing in the place of another": {
			[]answer.Statement{judged("ann", 0, 200), outcome("ci", 1, 201)}, judged("eve", 0, 202),
			answers.Holds, []string{"ann +0 @200"},
		},
		"a withdrawal of what is there": {
			[]answer.Statement{judged("ann", 1, 200), outcome("ci", 1, 201)}, judged("ann", 0, 202),
			answers.Holds, []string{"ann +1 @200"},
		},
		"an undo needs no room": {
			[]answer.Statement{judged("ann", 1, 200), outcome("ci", 1, 201)}, undo("eve", 202),
			answers.Holds, nil,
		},
		"silence needs no room": {
			[]answer.Statement{judged("ann", 1, 200), outcome("ci", 1, 201)}, silent(),
			answers.Holds, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := crowd(last - 1)
			for _, s := range test.before {
				_, _, effect := answers.Say(a, s)
				require.Equal(t, answers.Holds, effect)
			}
			before := len(a.Statements)
			_, gone, effect := answers.Say(a, test.say)
			assert.Equal(t, test.effect, effect)
			assert.Equal(t, test.gone, words(gone))
			if effect == answers.Holds {
				assert.Len(t, a.Statements, before+1-len(gone))
			} else {
				assert.Len(t, a.Statements, before)
			}
		})
	}
}

// A forgotten person's judgement counts for nothing, so it is the first that makes room.
func TestAForgottenJudgementMakesRoom(t *testing.T) {
	a := crowd(answers.MaxStated)
	forget(a, "person 50")
	_, gone, effect := answers.Say(a, judged("eve", 1, 200))
	assert.Equal(t, answers.Holds, effect)
	assert.Equal(t, []string{" +1 @50"}, words(gone))
}

func TestTheBoundOfUndos(t *testing.T) {
	a := said()
	for i := range answers.MaxUndos {
		_, _, effect := answers.Say(a, undo(fmt.Sprint("person ", i), i))
		require.Equal(t, answers.Holds, effect)
	}
	_, gone, effect := answers.Say(a, undo("one too many", 100))
	assert.Equal(t, answers.Refused, effect)
	assert.Empty(t, gone)
	assert.Len(t, a.Statements, answers.MaxUndos)
	other := undo("one too many", 100)
	other.Of = "h"
	_, _, effect = answers.Say(a, other)
	assert.Equal(t, answers.Holds, effect, "the bound is one of each heuristic")
	_, _, effect = answers.Say(a, undo("person 3", 3))
	assert.Equal(t, answers.Repeated, effect)
}

func TestUndoneBy(t *testing.T) {
	a := said(undo("ann", 1))
	assert.True(t, answers.TookBack(a, "", "ann"))
	assert.False(t, answers.TookBack(a, "", "bob"))
	assert.False(t, answers.TookBack(a, "h", "ann"))
	assert.False(t, answers.TookBack(a, "", ""))
	forget(a, "ann")
	assert.False(t, answers.TookBack(a, "", ""), "a forgotten person is not one without a name")
	answers.Say(a, undo("", 2))
	assert.True(t, answers.TookBack(a, "", ""))
}

func TestEdit(t *testing.T) {
	a := said(judged("ann", 1, 1), judged("bob", 1, 2))
	before := *a
	answers.Edit(a, 2, func(s *answer.Statement) { s.Worth = 7 })
	assert.InDelta(t, 7, a.Statements[1].Worth, 0)
	assert.InDelta(t, thumb, before.Statements[1].Worth, 0,
		"what was read from a store stays as it is")
	answers.Edit(a, 3, func(*answer.Statement) { assert.Fail(t, "there is no such statement") })
}

func TestScored(t *testing.T) {
	for points, values := range map[int][]float64{2: {-1, 1}, 3: {-1, 0, 1},
		5: {-1, -0.5, 0, 0.5, 1}} {
		for i, want := range values {
			assert.InDelta(t, want, answers.Scored(i+1, points), 0)
		}
	}
}

func TestValidate(t *testing.T) {
	valid := judged("ann", 1, 1)
	for _, s := range []answer.Statement{
		valid, {}, weighing(10, valid), about(answer.TargetRule, valid), {Scale: "user", Score: 1},
		{Scale: "dev", Score: 5, Kind: "instrument"},
	} {
		assert.NoError(t, answers.Validate(&s))
	}
	for field, s := range map[string]answer.Statement{
		"Person": {By: "a\x00b"}, "Session": {Session: "\xff"}, "Channel": {Channel: "\x00"},
		"HeuristicID": {Of: "\x00"}, "Target": {Target: "all"}, "Kind": {Kind: "robot"},
		"Scale": {Scale: "ten", Score: 1},
	} {
		var fault *heed.InputError
		require.ErrorAs(t, answers.Validate(&s), &fault, field)
		assert.Equal(t, field, fault.Field)
	}
	for _, value := range []float64{1.01, -1.01, math.NaN(), math.Inf(1)} {
		s := answer.Statement{Value: value}
		assert.ErrorContains(t, answers.Validate(&s), "Value")
	}
	for _, weight := range []float64{-1, 10.1, math.NaN(), math.Inf(1)} {
		s := answer.Statement{Value: 1, Weight: weight}
		assert.ErrorContains(t, answers.Validate(&s), "Weight")
	}
	for _, s := range []answer.Statement{{Score: 1}, {Scale: "user", Score: 4}, {Scale: "dev"}} {
		assert.ErrorContains(t, answers.Validate(&s), "Score")
	}
	s := answer.Statement{Scale: "user", Score: 1, Value: 1}
	assert.ErrorContains(t, answers.Validate(&s), "Value")
}

// The names at the paths of Caused are what a store removes if a person is forgotten.
func TestPeopleAreAtTheCausedPaths(t *testing.T) {
	credit := func(source string) *answer.Credit { return &answer.Credit{ID: "o", Source: source} }
	a := said(judged("ann", 1, 1), judged("", 1, 1), judged("bob", 1, 1), undo("ann", 2))
	answers.Edit(a, 1, func(s *answer.Statement) {
		s.Credit, s.Kept = credit("cid"), []answer.Credit{*credit("fay"), *credit("ann")}
	})
	a.Fires = []answer.Fire{{Counted: answer.FireEvidence{
		Seen: credit("dan"), Ended: credit("gus"),
		Agreed: map[string][]answer.Credit{
			"h": {*credit("eve"), *credit("hal")}, "i": {*credit("ann")},
		},
	}}}
	want := []string{"asker", "ann", "cid", "fay", "bob", "dan", "gus", "eve", "hal"}
	assert.Equal(t, want, answers.People(a))
	assert.ElementsMatch(t, want, caused(t, a))
}

// caused returns the names at the paths of Caused in a record, each once.
func caused(t require.TestingT, a *answer.Answer) (names []string) {
	text, err := json.Marshal(a)
	require.NoError(t, err)
	var body any
	require.NoError(t, json.Unmarshal(text, &body))
	found := make(map[string]bool)
	for _, path := range answers.Caused() {
		walk(body, path, func(name string) {
			if name != "" && !found[name] {
				found[name], names = true, append(names, name)
			}
		})
	}
	return names
}

// walk calls found for every text at a path in a decoded record. * is any element or field.
func walk(body any, path string, found func(string)) {
	if path == "" {
		if text, ok := body.(string); ok {
			found(text)
		}
		return
	}
	step, rest, _ := strings.Cut(path, ".")
	switch body := body.(type) {
	case []any:
		if step == "*" {
			for _, element := range body {
				walk(element, rest, found)
			}
		}
	case map[string]any:
		for name, field := range body {
			if step == "*" || step == name {
				walk(field, rest, found)
			}
		}
	}
}

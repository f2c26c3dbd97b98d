package answers_test

import (
	"fmt"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/internal/answers"
)

// shares are the parts of an answer as text: whose, by which channel, and how much. set are the
// parts that other statements set aside.
func shares(a *answer.Answer) (all []string, set int) {
	for _, p := range answers.Parts(a) {
		if p.Share == 0 {
			set++
			continue
		}
		all = append(all, fmt.Sprintf("%s %s %+g %g %.4g", p.Source, p.Channel, p.Value, p.Trust,
			p.Share))
	}
	return all, set
}

// TestParts has the rows of the package's table of what counts for the arm.
func TestParts(t *testing.T) {
	praise, complaint := judged("ann", 1, 1), judged("bob", -1, 2)
	all := func(s ...answer.Statement) []answer.Statement { return s }
	for name, test := range map[string]struct {
		known   []answer.Statement
		want    []string
		set     int
		worth   float64
		channel string
	}{
		"nothing": {},
		"an undo": {
			all(praise, outcome("ci", 1, 2), success(), ignored(), silent(), undo("bob", 2),
				undo("asker", 3)), []string{"asker undo -1 1 1"}, 5, -1, "undo",
		},
		"an undo by another person": {
			all(praise, weighing(3, judged("bob", 1, 1)), ignored(), silent(), undo("bob", 3)),
			[]string{"ann thumbs +1 1 0.5", "bob undo -1 1 0.5"}, 3, 0, "thumbs, undo",
		},
		"an undo by another person, and an outcome": {
			all(outcome("ci", 1, 2), success(), silent(), undo("bob", 3)),
			[]string{"bob undo -1 1 0.5", "ci outcome +1 1 0.5"}, 1, 0, "outcome, undo",
		},
		"an undo by another person alone": {
			all(silent(), undo("bob", 3)), []string{"bob undo -1 1 1"}, 1, -1, "undo",
		},
		"undos": {all(undo("ann", 2), undo("bob", 1)),
			[]string{"ann undo -1 1 0.5", "bob undo -1 1 0.5"}, 0, -1, "undo"},
		"an undo by somebody who is not known": {
			all(praise, undo("", 3)), []string{" undo -1 1 1"}, 1, -1, "undo",
		},
		"judgements": {
			all(praise, complaint, success(), ignored(), silent()),
			[]string{"ann thumbs +1 1 0.5", "bob thumbs -1 1 0.5"}, 3, 0, "thumbs",
		},
		"judgements by weight": {
			all(weighing(3, praise), complaint),
			[]string{"ann thumbs +1 1 0.75", "bob thumbs -1 1 0.25"}, 0, 0.5, "thumbs",
		},
		"judgements of one person": {
			all(about(answer.TargetRule, weighing(3, praise)),
				about(answer.TargetResponse, judged("ann", -1, 2)), complaint),
			[]string{
				"ann thumbs +1 1 0.5625", "ann thumbs -1 1 0.1875", "bob thumbs -1 1 0.25",
			}, 0, 0.125, "thumbs",
		},
		"a judgement that was withdrawn": {
			all(praise, complaint, judged("ann", 0,
				3)), []string{"bob thumbs -1 1 1"}, 0, -1, "thumbs",
		},
		"a mark": {
			all(answer.Statement{By: "ann", Channel: "marks", Scale: "dev", Score: 2, At: at(1)}),
			[]string{"ann marks -0.5 1 1"}, 0, -0.5, "marks",
		},
		"a neutral mark": {
			all(answer.Statement{By: "ann", Channel: "marks", Scale: "user", Score: 2, At: at(1)},
				silent()),
			[]string{"asker silence +0.8 0.3 1"}, 0, 0.8, "silence",
		},
		"judgements and a reported outcome": {
			all(praise, complaint, outcome("ci", 0.5, 3), ignored()),
			[]string{
				"ann thumbs +1 1 0.25", "bob thumbs -1 1 0.25", "ci outcome +0.5 1 0.5",
			}, 1, 0.25, "outcome, thumbs",
		},
		"a judgement and an expected outcome": {
			all(praise, failure()), []string{"ann thumbs +1 1 1"}, 1, 1, "thumbs",
		},
		"a reported outcome": {
			all(outcome("ci", 0.5, 3), ignored(), silent()),
			[]string{"ci outcome +0.5 1 1"}, 2, 0.5, "outcome",
		},
		"a reported outcome of 0": {
			all(outcome("ci", 0, 3), silent()), []string{"ci outcome +0 1 1"}, 1, 0, "outcome",
		},
		"a reported and an expected outcome": {
			all(outcome("ci", 0.5, 3),
				failure()), []string{"ci outcome +0.5 1 1"}, 0, 0.5, "outcome",
		},
		"an expected success": {
			all(success(), ignored(),
				silent()), []string{"asker outcome +1 1 1"}, 2, 1, "outcome",
		},
		"an expected failure": {
			all(failure(), ignored()), []string{"asker outcome -1 1 1"}, 1, -1, "outcome",
		},
		"an expected outcome that is worth nothing": {
			all(observed(answers.Expected, 0, 1), ignored()),
			[]string{"asker ignored -0.5 0.5 1"}, 0, -0.5, "ignored",
		},
		"an ignore": {all(ignored(), silent()), []string{"asker ignored -0.5 0.5 1"}, 1, -0.5,
			"ignored"},
		"an ignore that is worth nothing yet": {
			all(observed(answers.Ignored, 0,
				1)), []string{"asker ignored -0.5 0.5 1"}, 0, -0.5, "ignored",
		},
		"silence": {all(silent()), []string{"asker silence +0.8 0.3 1"}, 0, 0.8,
			"silence"},
		"silence is worth nothing": {all(observed(answers.Silence, 0, 1)), nil, 0, 0, ""},
		"the latest outcome": {
			all(outcome("ci", 1, 2), outcome("qa", -1,
				1)), []string{"ci outcome +1 1 1"}, 0, 1, "outcome",
		},
		"the latest outcome is withdrawn": {
			all(outcome("ci", 1, 1), outcome("qa", -1, 2), withdrawn("qa", 3), silent()),
			[]string{"ci outcome +1 1 1"}, 1, 1, "outcome",
		},
		"an earlier outcome is withdrawn": {
			all(outcome("ci", 1, 1), outcome("qa", -1, 2), withdrawn("ci", 3)),
			[]string{"qa outcome -1 1 1"}, 0, -1, "outcome",
		},
		"somebody withdraws what they never reported": {
			all(outcome("ci", 1, 1), withdrawn("qa",
				3)), []string{"ci outcome +1 1 1"}, 0, 1, "outcome",
		},
		"all outcomes are withdrawn": {
			all(outcome("ci", 1, 1), withdrawn("ci", 2), failure()),
			[]string{"asker outcome -1 1 1"}, 0, -1, "outcome",
		},
		"an outcome is reported again": {
			all(outcome("ci", 1, 1), withdrawn("ci", 2), outcome("ci", -1, 3)),
			[]string{"ci outcome -1 1 1"}, 0, -1, "outcome",
		},
		"forgotten": {
			all(undo("forgotten", 1), outcome("forgotten", 1, 1), judged("forgotten", 1, 1),
				complaint),
			[]string{"bob thumbs -1 1 1"}, 0, -1, "thumbs",
		},
		"the first undo is forgotten": {
			all(undo("forgotten", 1), undo("ann", 2)), []string{"ann undo -1 1 1"}, 0, -1, "undo",
		},
		"without a name": {
			all(judged("", 1, 1), complaint),
			[]string{" thumbs +1 1 0.5", "bob thumbs -1 1 0.5"}, 0, 0, "thumbs",
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := said(test.known...)
			forget(a, "forgotten")
			got, set := shares(a)
			assert.Equal(t, test.want, got)
			assert.Equal(t, test.set, set, "parts that are set aside")
			worth, channel, known := answers.WorthOf(a)
			assert.InDelta(t, test.worth, worth, 1e-12)
			assert.Equal(t, test.channel, channel)
			assert.Equal(t, len(test.want) > 0, known)
		})
	}
}

// Statements about a heuristic that did not answer have no part.
func TestPartsAreOfWhatAnswered(t *testing.T) {
	a := said()
	for _, s := range []answer.Statement{
		judged("ann", 1, 1), outcome("ci", 1, 1), undo("ann", 1), success(), ignored(), silent(),
	} {
		s.Of = "other"
		answers.Say(a, s)
	}
	assert.Empty(t, answers.Parts(a))
	a.Reply = &answer.Reply{Path: "heuristic", Heuristic: "other"}
	assert.NotEmpty(t, answers.Parts(a))
	answers.Say(a, judged("ann", 1, 1))
	assert.NotContains(t, fmt.Sprint(answers.Parts(a)), "thumbs +1")
}

// A part names its statement, and no two statements have one name.
func TestAPartNamesItsStatement(t *testing.T) {
	a := said(judged("ann", 1, 1))
	first := answers.Parts(a)[0].Of
	assert.Equal(t, "said 1", first)
	answers.Say(a, judged("ann", -1, 2))
	second := answers.Parts(a)[0].Of
	assert.NotEqual(t, first, second)
	answers.Say(a, outcome("ci", 1, 3))
	assert.Equal(t, "outcome 3", answers.Parts(a)[1].Of)
}

func TestSilenceMayBeNothingToAnArm(t *testing.T) {
	a := said(silent())
	a.Choice = &answer.Choice{IgnoreSilence: true}
	assert.Empty(t, answers.Parts(a))
	r := answers.ReceptionOf(a, "")
	assert.Equal(t, answers.Silence, r.Implicit(false), "it goes on counting for the heuristic")
}

// Shares of many people may add up to more than 1 by rounding.
func TestAnAnswerIsWorthNoMoreThanItsStatements(t *testing.T) {
	for people := range 60 {
		var praises []answer.Statement
		for n := range people + 1 {
			praises = append(praises, weighing(1/float64(n+3), judged(fmt.Sprint(n), 1, 1)))
		}
		worth, _, known := answers.WorthOf(said(praises...))
		assert.True(t, known)
		assert.LessOrEqual(t, worth, 1.)
		assert.InDelta(t, 1, worth, 1e-12)
	}
}

// An answer that took another one back is worth 0, whatever was stated about it.
func TestAnUndoIsWorthNothing(t *testing.T) {
	a := said(judged("ann", 1, 1))
	a.Undoes = []string{"before"}
	worth, channel, known := answers.WorthOf(a)
	assert.Zero(t, worth)
	assert.Empty(t, channel)
	assert.False(t, known)
}

func TestForArm(t *testing.T) {
	a := said(judged("ann", 1, 1), ignored())
	assert.Empty(t, answers.ForArm(a), "no arm was chosen")
	a.Choice = &answer.Choice{ID: uuid.UUID{1}}
	require.Len(t, answers.ForArm(a), 1, "the ignore is set aside")
	a.Reply = &answer.Reply{Spare: true}
	assert.Empty(t, answers.ForArm(a), "its model was unavailable")
	a.Reply.Unusable = true
	assert.Equal(t, []answers.ArmPart{
		{Of: "failed", Channel: "error", At: start, Value: -1, Trust: 1, Share: 1},
	}, answers.ForArm(a))
	worth, _, _ := answers.WorthOf(a)
	assert.InDelta(t, 1, worth, 1e-12, "the answer was good all the same")
	a.Undoes = []string{"before"}
	assert.Empty(t, answers.ForArm(a))
	_, _, known := answers.WorthOf(a)
	assert.False(t, known)
}

func TestChanger(t *testing.T) {
	all := func(s ...answer.Statement) []answer.Statement { return s }
	other := judged("bob", 1, 9)
	other.Of = "other"
	for name, test := range map[string]struct {
		known []answer.Statement
		want  string
	}{
		"nothing":               {nil, ""},
		"the last":              {all(judged("ann", 1, 2), judged("bob", 1, 1)), "ann"},
		"one that is set aside": {all(judged("ann", 1, 1), ignored()), "ann"},
		"of another heuristic":  {all(judged("ann", 1, 1), other), "ann"},
		"a withdrawal": {all(judged("ann", 1, 1), judged("bob", 1, 2),
			judged("ann", 0, 3)), "ann"},
		"an outcome is withdrawn": {all(outcome("ci", 1, 1), judged("bob", 1, 2),
			withdrawn("ci", 3)), "ci"},
		"without a name":           {all(judged("ann", 1, 1), judged("", 1, 2)), ""},
		"an undo before":           {all(undo("asker", 1), judged("bob", 1, 2)), "asker"},
		"another's undo before":    {all(undo("ann", 1), judged("bob", 1, 2)), "bob"},
		"a person who is unknown":  {all(judged("ann", 1, 1), judged("forgotten", 1, 2)), "ann"},
		"a withdrawal, by unknown": {all(judged("ann", 1, 1), judged("forgotten", 0, 2)), "ann"},
	} {
		t.Run(name, func(t *testing.T) {
			a := said(test.known...)
			forget(a, "forgotten")
			assert.Equal(t, test.want, answers.Changer(a))
		})
	}
}

//go:build !race

package answers_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/internal/answers"
)

// FuzzAnswer decodes a record and calls all functions of it. Whatever a store returns, none panics,
// and what was decoded is not changed in place.
func FuzzAnswer(f *testing.F) {
	var filled answer.Answer
	n := 0
	fill(f, reflect.ValueOf(&filled).Elem(), &n)
	many := crowd(answers.MaxStated)
	some := said(judged("ann", 1, 1), judged("bob", -1, 1), outcome("ci", 1, 1))
	for _, s := range []answer.Statement{undo("ann", 1), success(), ignored(), silent(),
		outcome("ci", 1, 1), withdrawn("ci", 2)} {
		answers.Say(many, s)
	}
	for _, a := range []*answer.Answer{{}, &filled, many, some} {
		text, err := json.Marshal(a)
		require.NoError(f, err)
		f.Add(text, []byte(`{"statements":[{"by":"ann","how":"outcome","withdrawn":true}]}`))
	}
	for _, text := range []string{
		`null`, `{"statements":[{}]}`,
		`{"statements":[{"how":"dreamt","worth":-1},{"how":"dreamt","named":true}]}`,
		`{"statements":[{"value":1,"weight":5e-324},` +
			`{"by":"a","value":1,"weight":5e-324,"channel":"x"}]}`,
		`{"statements":[{"value":1,"weight":1.7e308},{"by":"a","value":1,"weight":1.7e308}]}`,
		`{"statements":[{"n":18446744073709551615,"how":"outcome"}],"numbers":18446744073709551615}`,
		`{"reply":{"spare":true},"choice":{"id":"00000000-0000-0000-0000-000000000000"},` +
			`"fires":[{},{}]}`,
	} {
		f.Add([]byte(text),
			[]byte(`{"statements":[{"by":"a","value":1,"at":"2026-03-01T12:00:00Z"},{"how":"undo"}]}`))
	}
	f.Fuzz(func(t *testing.T, text, more []byte) {
		var a, other answer.Answer
		if json.Unmarshal(text, &a) != nil {
			return
		}
		if json.Unmarshal(more, &other) != nil {
			return
		}
		given := a
		before := fmt.Sprint(given)
		use(&a)
		for _, s := range other.Statements {
			_ = answers.Validate(&s)
			_, gone, effect := answers.Say(&a, s)
			if effect != answers.Holds && len(gone) > 0 {
				t.Errorf("%s, and %d are gone", effect, len(gone))
			}
			answers.Edit(&a, s.N, func(s *answer.Statement) { s.Worth++ })
		}
		answers.OwnFires(&a)
		use(&a)
		if after := fmt.Sprint(given); before != after {
			t.Errorf("the record that was given has changed:\n%s\n%s", before, after)
		}
		if _, err := json.Marshal(&a); err != nil {
			t.Error(err)
		}
	})
}

// use calls everything that only reads.
func use(a *answer.Answer) {
	answers.Parts(a)
	answers.ForArm(a)
	answers.WorthOf(a)
	answers.Changer(a)
	answers.People(a)
	answers.TaskOf(a)
	answers.FireOf(a, answers.HeuristicOf(a))
	answers.TookBack(a, "", "")
	heuristics := map[string]bool{"": true, answers.HeuristicOf(a): true}
	for i := range a.Statements {
		heuristics[a.Statements[i].Of] = true
	}
	for of := range heuristics {
		r := answers.ReceptionOf(a, of)
		r.Known()
		r.Observed()
		for _, how := range []answer.How{answers.Judged, answers.Outcome, answers.Undo,
			answers.Silence, "other"} {
			r.Of(how)
			r.Sign(how)
		}
		for _, independent := range []bool{false, true} {
			r.Implicit(independent)
			r.Fate(independent)
			r.Agreement(true, independent, 0.24, 0.072)
			r.Agreement(false, independent, 0.24, 0.072)
		}
	}
}

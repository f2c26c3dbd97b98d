package answers_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/internal/answers"
)

// permutations calls do with every order of n things.
func permutations(n int, do func(order []int)) {
	order := make([]int, 0, n)
	var next func()
	next = func() {
		if len(order) == n {
			do(order)
			return
		}
		for i := range n {
			if !slices.Contains(order, i) {
				order = append(order, i)
				next()
				order = order[:len(order)-1]
			}
		}
	}
	next()
}

// summary is all that follows from the statements about an answer, without their numbers.
func summary(a *answer.Answer, heuristics ...string) (all []string) {
	number := func(s *answer.Statement) string {
		if s == nil {
			return "none"
		}
		return fmt.Sprint(s.How, s.By, s.At.Sub(start), s.Worth)
	}
	sum := func(s answers.Sum) string { return fmt.Sprintf("%d %.9f %.9f", s.N, s.Weight, s.Share) }
	for _, of := range heuristics {
		r := answers.ReceptionOf(a, of)
		all = append(all,
			fmt.Sprintf("of %q: %s, %s", of, sum(r.Praise), sum(r.Complaint)),
			number(r.Undo), number(r.Expected), number(r.Ignored), number(r.Silence),
			fmt.Sprintf("%s %d %.9f %.9f", r.Implicit(false), r.Fate(false),
				r.Agreement(true, false, 0.24, 0.072), r.Agreement(false, false, 0.24, 0.072)),
			fmt.Sprintf("%.9v %.9v by %s", r.AgreementParts(true, false, 0.24, 0.072),
				r.AgreementParts(false, false, 0.24, 0.072), number(r.Decider(false))))
	}
	var parts []string
	for _, p := range answers.Parts(a) {
		parts = append(parts, fmt.Sprintf("%s by %s at %v: %g %g %.9f", p.Channel, p.Source,
			p.At.Sub(start), p.Value, p.Trust, p.Share))
	}
	slices.Sort(parts)
	worth, channel, known := answers.WorthOf(a)
	return append(append(all, parts...), fmt.Sprintf("worth %.9f by %s %t, changed by %s", worth,
		channel, known, answers.Changer(a)))
}

func arrive(all []answer.Statement, order []int) *answer.Answer {
	a := said()
	for _, i := range order {
		answers.Say(a, all[i])
	}
	return a
}

// TestOrders has sets of statements of which every order of arrival ends in the same.
func TestOrders(t *testing.T) {
	onMail := func(s answer.Statement) answer.Statement { s.Channel = "mail"; return s }
	of := func(heuristic string, s answer.Statement) answer.Statement { s.Of = heuristic; return s }
	rule := func(s answer.Statement) answer.Statement { return about(answer.TargetRule, s) }
	words := func(s answer.Statement) answer.Statement { return about(answer.TargetResponse, s) }
	for name, set := range map[string][]answer.Statement{
		"one person changes their mind": {
			judged("ann", 1, 1), judged("ann", -1, 2), judged("ann", 0, 3), judged("ann", 0.5,
				4), judged("ann", -0.5, 5),
		},
		"withdrawn at last": {
			judged("ann", 1, 1), judged("ann", -1, 2), judged("ann", 0,
				3), silent(), judged("bob", 0, 1),
		},
		"people": {
			judged("ann", 1, 1), weighing(3, judged("bob", -1, 2)), judged("ann", -0.5,
				3), judged("", 1, 4), judged("", -1, 5),
		},
		"channels": {
			judged("ann", 1, 1), onMail(judged("ann", -1, 2)), judged("ann", 0.5,
				3), onMail(judged("ann", 1, 4)), judged("ann", 0, 5),
		},
		"a part of the whole": {
			judged("ann", 1, 1), rule(judged("ann", -1, 2)), rule(judged("ann", 0.5,
				3)), judged("bob", -1, 4), rule(judged("bob", 1, 1)),
		},
		"the whole after its parts": {
			rule(judged("ann", 1, 1)), words(judged("ann", -1, 2)), judged("ann", 0.5,
				3), ignored(), rule(judged("bob", 1, 1)),
		},
		"parts after the whole": {
			judged("ann", 0.5, 1), rule(judged("ann", 1, 2)), words(judged("ann", -1,
				3)), silent(), words(judged("ann", 1, 1)),
		},
		"everything observed": {undo("ann", 1), success(), ignored(), silent(),
			judged("ann", 1, 2)},
		"failures": {failure(), ignored(), silent(), judged("ann", 1, 2),
			judged("bob", -1, 3)},
		"an outcome and judgements": {
			outcome("ci", 1, 1), judged("ann", -1, 2), failure(), outcome("ci", -0.5,
				3), judged("ann", 0.5, 4),
		},
		"outcomes of several sources": {
			outcome("ci", 1, 1), outcome("qa", -1, 2), outcome("desk", 0.5, 3), outcome("ci",
				-0.5, 4), success(),
		},
		"the latest outcome is withdrawn": {
			outcome("ci", 1, 1), outcome("qa", -1, 2), withdrawn("qa", 3), silent(), success(),
		},
		"an earlier outcome is withdrawn": {
			outcome("ci", 1, 1), outcome("qa", -1, 2), withdrawn("ci", 3), judged("ann", 1,
				1), ignored(),
		},
		"withdrawn and reported again": {
			outcome("ci", 1, 1), withdrawn("ci", 2), outcome("ci", -1, 3), withdrawn("ci",
				4), outcome("qa", 1, 2),
		},
		"withdrawn by somebody else": {
			outcome("ci", 1, 1), withdrawn("qa", 2), failure(), ignored(), withdrawn("desk", 1),
		},
		"two heuristics": {
			of("h", judged("ann", 1, 1)), judged("ann", -1, 2), of("h", undo("ann", 3)), of("h",
				judged("ann", -1, 4)), silent(),
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.Len(t, set, 5)
			var want []string
			n := 0
			permutations(len(set), func(order []int) {
				a := arrive(set, order)
				got := summary(a, "", "h")
				if n++; n == 1 {
					want = got
				}
				require.Equal(t, want, got, "%v", order)
			})
			assert.Equal(t, 120, n)
		})
	}
}

// ends are the different ends of all orders, each with one order that leads there.
func ends(set []answer.Statement) map[string][][]int {
	all := make(map[string][][]int)
	permutations(len(set), func(order []int) {
		a := arrive(set, order)
		held := words(a.Statements)
		slices.Sort(held)
		all[fmt.Sprint(held)] = append(all[fmt.Sprint(held)], slices.Clone(order))
	})
	return all
}

// Of one moment, the last statement to arrive holds.
func TestOfOneMomentTheLastToArriveHolds(t *testing.T) {
	assert.Equal(t, map[string][][]int{
		"[ann +1 @1]": {{1, 0}}, "[ann -1 @1]": {{0, 1}},
	}, ends([]answer.Statement{judged("ann", 1, 1), judged("ann", -1, 1)}))

	set := []answer.Statement{outcome("ci", 1, 1), outcome("qa", -1, 1)}
	worth, _, _ := answers.WorthOf(arrive(set, []int{0, 1}))
	assert.InDelta(t, -1, worth, 0)
	worth, _, _ = answers.WorthOf(arrive(set, []int{1, 0}))
	assert.InDelta(t, 1, worth, 0)
}

// A judgement of the whole is not on the record while a later one of a part is. So it can't replace
// an earlier one of the other part that arrives after it, or that is there.
func TestTheWholeBetweenTwoParts(t *testing.T) {
	assert.Equal(t, map[string][][]int{
		"[annresponse +1 @3]":               {{0, 1, 2}, {1, 0, 2}},
		"[annresponse +1 @3 annrule -1 @1]": {{0, 2, 1}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}},
	}, ends([]answer.Statement{
		about(answer.TargetRule, judged("ann", -1, 1)), judged("ann", 1,
			2), about(answer.TargetResponse, judged("ann", 1, 3)),
	}))
}

// What was observed first holds, by arrival. It says when and by whom, and changes no worth.
func TestTheFirstObservationHolds(t *testing.T) {
	for _, s := range []answer.Statement{undo("ann", 1), success(), ignored(), silent()} {
		again := s
		again.At = s.At.Add(1)
		for _, set := range [][]answer.Statement{{s, again}, {again, s}} {
			a := said(set...)
			require.Len(t, a.Statements, 1)
			assert.Equal(t, set[0].At, a.Statements[0].At)
		}
	}
	set := []answer.Statement{undo("ann", 1), undo("bob", 2)}
	for first, order := range [][]int{{0, 1}, {1, 0}} {
		a := arrive(set, order)
		r := answers.ReceptionOf(a, "")
		assert.Equal(t, set[first].By, r.Undo.By)
		assert.Equal(t, set[first].By, answers.Parts(a)[0].Source)
		worth, _, _ := answers.WorthOf(a)
		assert.InDelta(t, -1, worth, 0)
		assert.Equal(t, -1, r.Fate(false))
	}
}

// Statements have their numbers by arrival. One that takes the place of another has a number that
// no statement had before.
func TestNumbersAreByArrival(t *testing.T) {
	set := []answer.Statement{judged("ann", 1, 1), judged("bob", 1, 2), judged("ann", -1, 3),
		judged("cid", 1, 0)}
	permutations(len(set), func(order []int) {
		a := said()
		used := make(map[uint64]bool)
		for _, i := range order {
			on, _, effect := answers.Say(a, set[i])
			if effect == answers.Holds {
				assert.False(t, used[on.N])
				used[on.N] = true
			}
		}
		assert.True(t, slices.IsSortedFunc(a.Statements,
			func(a, b answer.Statement) int { return cmp.Compare(a.N, b.N) }))
		assert.Equal(t, a.Numbers, a.Statements[len(a.Statements)-1].N)
	})
}

// If there is no room, the people who came first stay.
func TestRoomIsByArrival(t *testing.T) {
	a := crowd(answers.MaxStated - 1)
	first, second := *a, *a
	answers.Say(&first, judged("ann", 1, 1))
	answers.Say(&first, judged("bob", -1, 1))
	answers.Say(&second, judged("bob", -1, 1))
	answers.Say(&second, judged("ann", 1, 1))
	assert.Contains(t, answers.People(&first), "ann")
	assert.NotContains(t, answers.People(&first), "bob")
	assert.Contains(t, answers.People(&second), "bob")
	assert.NotContains(t, answers.People(&second), "ann")
}

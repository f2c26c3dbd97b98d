//go:build !race

package loop_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/loop"
)

// orders calls do with every order of some statements.
func orders(all []saying, do func([]saying)) {
	var next func(order, rest []saying)
	next = func(order, rest []saying) {
		if len(rest) == 0 {
			do(order)
		}
		for i := range rest {
			others := slices.Delete(slices.Clone(rest), i, i+1)
			next(append(slices.Clip(order), rest[i]), others)
		}
	}
	next(nil, all)
}

// ends returns the different ends of all orders of arrival, each with the orders that lead there.
func ends(t *testing.T, id string, all []saying) map[string][]string {
	ends := make(map[string][]string)
	orders(all, func(order []saying) {
		w := newSpoken(t, loop.Config{})
		for _, s := range order {
			require.NoError(t, s.addStatement(w, id), s)
		}
		end := w.evidence(id)
		ends[end] = append(ends[end], fmt.Sprint(order))
	})
	return ends
}

// Statements that arrive late, repeated or in another order end in the same evidence on the arm and
// on the heuristics, and in the same account.
func TestStatementsInEveryOrder(t *testing.T) {
	for name, all := range map[string][]saying{
		"a later thumb": {thumbOf("bob", 1, 1), thumbOf("bob", -1, 2), thumbOf("cid", 1, 1)},
		"repeated":      {thumbOf("bob", 1, 1), thumbOf("bob", 1, 1), thumbOf("cid", -1, 2)},
		"withdrawn": {
			thumbOf("bob", 1, 1), thumbOf("bob", 0, 2), thumbOf("cid", -0.5, 1),
		},
		"withdrawn before silence": {thumbOf("bob", -1, 1), thumbOf("bob", 0, 2), sweeping},
		"stated once more": {
			thumbOf("bob", -1, 1), thumbOf("bob", 0, 2), thumbOf("bob", 1, 3), sweeping,
		},
		"parts and the whole": {
			partOf(answer.TargetRule, "bob", -1, 1), partOf(answer.TargetResponse, "bob", 1, 2),
			thumbOf("bob", 0.5, 3), thumbOf("cid", 1, 1),
		},
		"a correction and silence": {correctionOf("kim", 1), correctionOf("lee", 2), sweeping},
		"a correction and thumbs": {
			correctionOf("kim", 1), thumbOf("kim", 1, 2), thumbOf("bob", -1, 1), sweeping,
		},
		"corrected again": {correctionOf("kim", 1), correctionOf("kim", 1), thumbOf("kim", 0, 2)},
		"outcomes": {
			outcomeOf("ci", 1, 1), outcomeOf("ci", -0.5, 2), outcomeOf("qa", 0.5, 3), sweeping,
		},
		"an outcome is withdrawn": {
			outcomeOf("ci", 1, 1), withdrawalOf("ci", 2), outcomeOf("qa", -1, 1), sweeping,
		},
		"an outcome and thumbs": {
			outcomeOf("ci", -1, 1), thumbOf("bob", 1, 2), correctionOf("kim", 3), ignoring,
		},
		"an undo": {
			undoOf("bob"), thumbOf("bob", 1, 1), outcomeOf("ci", 1, 2), sweeping,
		},
		"an undo of what was ignored": {undoOf("ann"), ignoring, sweeping},
		"undos": {
			undoOf("bob"), undoOf("cid"), undoOf("ann"), thumbOf("bob", 1, 1),
		},
		"ignored": {ignoring, thumbOf("ann", 1, 1), thumbOf("ann", 0, 2), sweeping},
	} {
		for _, id := range []string{"model", "heuristic"} {
			t.Run(name+" of the "+id, func(t *testing.T) {
				t.Parallel()
				found := ends(t, id, all)
				var each []string
				for end, orders := range found {
					each = append(each, fmt.Sprintf("%v\n%s", orders, end))
				}
				require.Len(t, found, 1, strings.Join(each, "\n\n"))
			})
		}
	}
}

// The order of arrival decides only in the cases that internal/answers lists.
func TestWhereTheOrderOfArrivalDecides(t *testing.T) {
	for name, test := range map[string]struct {
		all  []saying
		ends int
	}{
		"one source at one moment": {[]saying{thumbOf("bob", 1, 1), thumbOf("bob", -1, 1)}, 2},
		"outcomes of one moment":   {[]saying{outcomeOf("ci", 1, 1), outcomeOf("qa", -1, 1)}, 2},
		"the whole between two parts": {[]saying{
			partOf(answer.TargetRule, "bob", -1, 1), thumbOf("bob", 1, 2),
			partOf(answer.TargetResponse, "bob", 1, 3),
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Len(t, ends(t, "model", test.all), test.ends)
		})
	}
}

// A hundred people who withdraw a reaction leave room for those who say something.
func TestWithdrawnReactionsLeaveRoom(t *testing.T) {
	w := newWorld(t, loop.Config{Arms: []loop.Arm{{ID: "only"}}})
	id := w.answer(loop.Event{Text: "Why?"}).ID
	for _, value := range []float64{0, 1, 0} {
		for i := range 100 {
			w.clock.Advance(time.Second)
			require.NoError(t, w.React(ctx, id, loop.Reaction{Person: fmt.Sprint(i), Value: value}))
		}
	}
	require.NoError(t, w.React(ctx, id, loop.Reaction{Person: "ann", Value: -1}))
	account, err := w.Explain(ctx, id)
	require.NoError(t, err)
	assert.EqualValues(t, -1, account.Worth)
	assert.Len(t, account.Statements, 1)
}

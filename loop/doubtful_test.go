//go:build !race

// The race detector makes these tests several times slower. They try one call after another.

package loop_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
)

// A doubtful store returns an error from its commit number at, before or after the effect.
type doubtful struct {
	store.Store
	at      int
	err     error
	after   bool
	commits int
}

func (d *doubtful) Commit(
	ctx context.Context, batches ...store.Batch,
) (receipts []store.Receipt, err error) {
	d.commits++
	if d.commits != d.at {
		return d.Store.Commit(ctx, batches...)
	}
	if d.after {
		if _, err := d.Store.Commit(ctx, batches...); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%w: the connection broke", d.err)
}

// If a commit conflicts, or its outcome is unknown, each method does the same as otherwise, and
// returns no error.
func TestNobodySeesAConflict(t *testing.T) {
	kinds := []doubtful{
		{err: heed.ErrConflict}, {err: heed.ErrOutcomeUnknown},
		{err: heed.ErrOutcomeUnknown, after: true},
	}
	for _, f := range fallibles() {
		t.Run(f.method+" "+f.how, func(t *testing.T) {
			t.Parallel()
			whole := newWorkshop(t)
			require.NoError(t, f.call(whole))
			want := whole.state()
			for _, kind := range kinds {
				for at, done := 1, false; !done; at++ {
					synctest.Test(t, func(t *testing.T) { // a busy machine looks like a store that hangs
						w, d := newWorkshop(t), kind
						d.Store, d.at = w.fails.Store, at
						w.fails.Store = &d
						require.NoError(t, f.call(w), "%v, commit %d", kind, at)
						require.Equal(t, want, w.state(), "%v, commit %d", kind, at)
						done = d.commits < at
					})
				}
			}
		})
	}
}

// Two agents on one store, as of two replicas, learn the same as one agent, whatever is called
// where.
func TestTwoAgentsAreAsOne(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			states := make([][]string, 2)
			for i := range states {
				w := newWorkshop(t)
				agents := []*loop.Agent{w.Agent, w.Agent}
				if i == 1 {
					agents[1] = w.again()
				}
				rng := rand.New(rand.NewPCG(seed, 1))
				for n := range 60 {
					doing, err := randomCall(w, agents[rng.IntN(2)], rng, n)
					states[i] = append(states[i], fmt.Sprintf("%s: %v", doing, err))
					if n%6 == 5 {
						states[i] = append(states[i], w.state())
					}
				}
			}
			for n := range states[0] {
				require.Equal(t, states[0][n], states[1][n], "calls and states: %d", n)
			}
		})
	}
}

// randomCall makes a call of an agent that the randomness chooses.
func randomCall(w *workshop, a *loop.Agent, rng *rand.Rand, n int) (doing string, err error) {
	w.clock.Advance(time.Duration(rng.IntN(20)) * time.Second)
	id, person := []string{"h", "m", "e1", "e2", "e3"}[rng.IntN(5)], []string{"ann", "bob", "",
		"\u202e;--'\"{}$(x)"}[rng.IntN(4)]
	value, yes := float64(rng.IntN(5)-2)/2, rng.IntN(2) == 0
	calls := []string{"answer", "answer", "react", "react", "react", "undo", "outcome", "correct",
		"hear", "sweep", "forget", "put"}
	switch doing = calls[rng.IntN(len(calls))]; doing {
	case "answer":
		text := []string{full, "The mail is late", "undo that", "Thanks!"}[rng.IntN(4)]
		_, err = a.Answer(ctx, loop.Event{
			ID: fmt.Sprint("e", rng.IntN(6)), Text: text, Person: person, Session: "s", Stream: "x",
			Domain: "d", Item: "i",
		})
	case "react":
		err = a.React(ctx, id, loop.Reaction{Person: person, Value: value})
	case "undo":
		err = a.Undo(ctx, id, person)
	case "outcome":
		err = a.Outcome(ctx, id, loop.Outcome{Success: &yes, Source: person, Withdraw: value == 0})
	case "correct":
		_, err = a.Correct(ctx, id, loop.Correction{
			ID: fmt.Sprint("c", n), Reviewer: cmp.Or(person, "cid"), Text: "Name the ticket.",
		})
	case "hear":
		_, err = a.Hear(ctx, learning.Message{
			ID: fmt.Sprint("m", n), Text: "undo that", Session: "s", Person: person,
		})
	case "sweep":
		err = a.Sweep(ctx, time.Time{})
	case "forget":
		err = store.Run(ctx, w.kept, store.Job{Forget: []string{cmp.Or(person, "cid")}})
	case "put":
		h := rotating
		h.ID, h.Action = fmt.Sprint("taught", rng.IntN(2)), fmt.Sprint("Do ", rng.IntN(2))
		_, err = a.Teach(ctx, loop.Lessons{Heuristics: []learning.Heuristic{h}})
	}
	return doing, err
}

// TestALostReply loses the reply to each commit of each method, with its effect and without it.
// Then the call is made again. What was learned and the audit log are as after one call.
func TestALostReply(t *testing.T) {
	for _, f := range fallibles() {
		if f.method == "Sweep" { // its own clock moves
			continue
		}
		t.Run(f.method+" "+f.how, func(t *testing.T) {
			t.Parallel()
			whole := newWorkshop(t)
			require.NoError(t, f.call(whole))
			want, entries := whole.state(), whole.audited()
			failEach(t, func(t *testing.T, at int, late bool) bool {
				w := newWorkshop(t)
				st := &storetest.Failing{
					Store: w.kept, At: at, After: late, Replies: true, Blind: true,
				}
				w.fails.Store = st
				err := f.call(w)
				if !st.Failed() {
					return false
				}
				where := fmt.Sprintf("commit %d, with its effect: %v", at, late)
				if err != nil {
					assert.ErrorIs(t, err, storetest.ErrFailed, where)
				}
				st.Fail(0, false)
				require.NoError(t, f.call(w), where)
				assert.Equal(t, want, w.state(), where)
				assert.Equal(t, entries, w.audited(), where)
				return true
			})
		})
	}
}

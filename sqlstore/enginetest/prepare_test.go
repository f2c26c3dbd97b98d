package enginetest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
)

// TestPrepareIsTwoRoundTrips in a database, and knows what another process has done a moment
// before.
func TestPrepareIsTwoRoundTrips(t *testing.T) {
	onEach(t, func(t *testing.T, at place) {
		const text = "The disk of db-1 is full and its logs have grown"
		counted := &storetest.Failing{Store: at.store(t, sqlstore.Config{})}
		a := prepares(t, counted)
		other := prepares(t, at.store(t, sqlstore.Config{}))
		_, err := other.Teach(ctx, loop.Lessons{
			Heuristics: []learning.Heuristic{{ID: "h", Condition: text, Action: "Rotate the logs."}},
			Notes:      []loop.Note{{ID: "n", Topic: text, Text: "Logs are in /var/log."}},
		})
		require.NoError(t, err)
		_, err = other.Patterns().Record(ctx, patterns.Outcome{ID: "o", Task: "t1", Description: text,
			Success: true})
		require.NoError(t, err)
		rules := other.Feedback().Rules()
		p, err := rules.Propose(ctx, feedback.Submission{Draft: feedback.Draft{Text: "Be brief.",
			AllAgents: true}, Actor: "ann", Reason: "r"})
		require.NoError(t, err)
		for _, actor := range []string{"bob", "cid"} {
			_, err = rules.Review(ctx, feedback.Review{
				Proposal: p.ID, Decision: feedback.Approved, Actor: actor, Reason: "r", Hash: p.Hash(),
			})
			require.NoError(t, err)
		}
		n := 0
		prepare := func(e loop.Event) (loop.Plan, int) {
			before := counted.Calls()
			n++
			e.Text, e.Item, e.Session = text, fmt.Sprint("item-", n), "s"
			plan, err := a.Prepare(ctx, e)
			require.NoError(t, err)
			return plan, counted.Calls() - before
		}
		for _, e := range []loop.Event{{}, {Stream: "chat", Person: "ann"}, {Task: "t"}} {
			plan, _ := prepare(e)
			for range 2 {
				assert.Len(t, plan.Candidates, 1)
				assert.Len(t, plan.Notes, 1)
				assert.Equal(t, e.Task != "", strings.Contains(plan.System, "Similar Past Tasks"))
				require.Len(t, plan.Rules, 1)
				var calls int
				plan, calls = prepare(e)
				assert.Equal(t, 2, calls, "%+v", e)
			}
		}
		plan, _ := prepare(loop.Event{})
		_, err = rules.Move(ctx, feedback.Act{ID: plan.Rules[0], Actor: "ann", Reason: "r"},
			feedback.StateRevoked)
		require.NoError(t, err)
		require.NoError(t, other.Learning().Delete(ctx, "h"))
		plan, _ = prepare(loop.Event{})
		assert.Empty(t, plan.Rules)
		assert.Empty(t, plan.Candidates)
	})
}

// prepares returns an agent that chooses among two arms.
func prepares(t *testing.T, st store.Store) *loop.Agent {
	a, err := loop.New(ctx, loop.Config{Store: st, Arms: []loop.Arm{{ID: "a"}, {ID: "b"}}})
	require.NoError(t, err)
	return a
}

package enginetest_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/llm"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
)

// What is decided or noticed in one replica holds in another one from its next call on: an
// approval, a revocation, a pinned confidence, a note, that learning is stopped, that a person is
// forgotten, and that a model is down.
func TestReplicasAgree(t *testing.T) {
	onEach(t, func(t *testing.T, at place) {
		var down atomic.Bool
		var outages atomic.Int64 // of models, from the notices of observers
		told := func(_ context.Context, n heed.Notice) {
			if o, ok := n.(heed.Outage); ok && o.What == "model" {
				outages.Add(1)
			}
		}
		open := func() *loop.Agent {
			says := func(context.Context, decision.LLMRequest) (decision.LLMResponse, error) {
				if down.Load() {
					return decision.LLMResponse{}, llm.ServerError
				}
				return decision.LLMResponse{Text: "Look at the logs."}, nil
			}
			a, err := loop.New(ctx, loop.Config{Store: at.store(t, sqlstore.Config{}),
				Model: decision.LLMFunc(says), Arms: []loop.Arm{{ID: "only"}}, Observer: told,
				Lessons: loop.Lessons{Heuristics: []learning.Heuristic{{ID: "h",
					Condition: "the disk is full", Action: "Rotate the logs.", Initial: 0.9}}}})
			require.NoError(t, err)
			return a
		}
		here, there := open(), open()
		prepare := func(text string) loop.Plan {
			p, err := there.Prepare(ctx, loop.Event{Text: text, Person: "ann"})
			require.NoError(t, err)
			return p
		}
		assert.True(t, prepare("The disk is full").Ready)
		assert.NotContains(t, prepare("Why?").System, "Name the ticket")

		gate := here.Feedback().Rules()
		p, err := gate.Propose(ctx, feedback.Submission{Actor: "kim", Reason: "seen",
			Draft: feedback.Draft{Text: "Name the ticket", AllAgents: true}})
		require.NoError(t, err)
		for _, who := range []string{"lee", "max"} {
			if p.Status == feedback.StatePending {
				p, err = gate.Review(ctx, feedback.Review{Proposal: p.ID, Actor: who, Reason: "right",
					Hash: p.Draft.Hash(), Decision: feedback.Approved})
				require.NoError(t, err)
			}
		}
		assert.Contains(t, prepare("Why?").System, "Name the ticket")

		active, err := gate.List(ctx, feedback.RuleQuery{})
		require.NoError(t, err)
		_, err = gate.Move(ctx, feedback.Act{ID: active[0].ID, Actor: "lee", Reason: "wrong"},
			feedback.StateRevoked)
		require.NoError(t, err)
		assert.NotContains(t, prepare("Why?").System, "Name the ticket")
		require.NoError(t, here.Learning().Pin(ctx, learning.Pin{HeuristicID: "h", Actor: "kim",
			Reason: "wrong", Constraints: learning.Constraints{
				Floor: 0.1, Ceiling: 0.1}}))
		assert.False(t, prepare("The disk is full").Ready)
		note := loop.Note{ID: "n", Text: "The mail: see room 3"}
		_, err = here.Teach(ctx, loop.Lessons{Notes: []loop.Note{note}})
		require.NoError(t, err)
		assert.Len(t, prepare("The mail is late").Notes, 1)

		answer, err := there.Answer(ctx, loop.Event{ID: "e", Text: "Why?", Person: "ann"})
		require.NoError(t, err)
		require.NotEmpty(t, answer.Text)
		require.NoError(t, here.Freeze(ctx, true))
		require.NoError(t, there.React(ctx, "e", loop.Reaction{Person: "ann", Value: 1}))
		account, err := here.Explain(ctx, "e")
		require.NoError(t, err)
		assert.Empty(t, account.Statements)
		require.NoError(t, here.Freeze(ctx, false))
		require.NoError(t, there.React(ctx, "e", loop.Reaction{Person: "ann", Value: 1}))

		require.NoError(t, store.Run(ctx, here.Store(), store.Job{Forget: []string{"ann"}}))
		account, err = there.Explain(ctx, "e")
		require.NoError(t, err)
		for _, s := range account.Statements {
			assert.NotEqual(t, "ann", s.Source)
		}
		down.Store(true)
		for range 3 {
			_, err = here.Answer(ctx, loop.Event{Text: "Why?"})
			require.NoError(t, err)
		}
		require.EqualValues(t, 1, outages.Swap(0), "in the one that asked")
		prepare("Why?")
		assert.EqualValues(t, 1, outages.Load(), "in the other one, which asked nothing")
	})
}

package loop_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
)

// Agents of two names share a store, and the ids, sessions and people of both are the same. News
// for one agent changes nothing that the other one believes, says or asks. SECURITY.md lists the
// things that names do not keep apart, and the end of this test shows them.
func TestTenants(t *testing.T) {
	clock := &clock{now: start}
	st, err := memstore.New(memstore.Config{Now: clock.Now})
	require.NoError(t, err)
	model := &mouth{says: "Look at the logs."}
	tenant := func(name string) *world {
		cfg := loop.Config{
			Store: st, Name: name, Model: model, Testing: loop.Testing{Now: clock.Now},
			System: "You help.", Arms: []loop.Arm{{ID: "a"}},
			Lessons: loop.Lessons{Heuristics: []learning.Heuristic{trusted(rotating)}},
		}
		agent, err := loop.New(ctx, cfg)
		require.NoError(t, err)
		return &world{t: t, clock: clock, store: st, model: model, cfg: cfg, Agent: agent}
	}
	acme, umbrella := tenant("acme"), tenant("umbrella")
	event := loop.Event{Text: "Why is the build slow?", Session: "s", Person: "ann"}
	ask := func(w *world, id string) loop.Answer {
		e := event
		e.ID = id
		return w.answer(e)
	}
	for _, person := range []string{"ann", "bob"} {
		ask(umbrella, person)
		require.NoError(t, umbrella.React(ctx, person, loop.Reaction{Person: person, Value: 1}))
	}
	before, trust := umbrella.mean("", "a"), umbrella.confidence("rotate")

	for i := range 20 {
		id := fmt.Sprint("e", i)
		ask(acme, id)
		require.NoError(t, acme.React(ctx, id, loop.Reaction{Person: "ann", Value: -1}))
		answered := acme.answer(loop.Event{ID: "full " + id, Text: full, Session: "s", Person: "ann"})
		require.NoError(t, acme.React(ctx, answered.ID, loop.Reaction{Person: "ann", Value: -1}))
	}
	_, err = acme.Hear(ctx, learning.Message{ID: "m", Text: "undo that", Session: "s", Person: "ann"})
	require.NoError(t, err)
	require.NoError(t, second(acme.Correct(ctx, "e1",
		loop.Correction{Reviewer: "ann", Text: "Name the ticket always."})))
	assert.Less(t, acme.mean("", "a"), before)
	assert.Less(t, acme.confidence("rotate"), trust)
	require.NoError(t, umbrella.Strategy().Refresh(ctx))
	assert.InDelta(t, before, umbrella.mean("", "a"), 1e-12)
	assert.InDelta(t, trust, umbrella.confidence("rotate"), 1e-12)
	assert.ErrorIs(t, umbrella.React(ctx, "e1", loop.Reaction{Person: "ann", Value: 1}),
		loop.ErrNoAnswer)
	assert.ErrorIs(t, umbrella.Undo(ctx, "e1", "ann"), loop.ErrNoAnswer)

	approve(t, acme, feedback.Draft{Text: "Name the ticket always", Agents: []string{"acme"}})
	ask(acme, "later")
	system, _ := model.last()
	assert.Contains(t, system, "Name the ticket always")
	ask(umbrella, "later")
	system, _ = model.last()
	assert.NotContains(t, system, "Name the ticket always")

	approve(t, acme, feedback.Draft{Text: "Answer in one sentence", AllAgents: true})
	ask(umbrella, "at last")
	system, _ = model.last()
	assert.Contains(t, system, "Answer in one sentence", "a rule of all agents is one of all tenants")
	err = store.Run(ctx, st, store.Job{Forget: []string{"ann"}})
	require.NoError(t, err)
	require.NoError(t, umbrella.Strategy().Refresh(ctx))
	assert.Less(t, umbrella.mean("", "a"), before, "a person is forgotten in all tenants")
}

// approve makes a rule.
func approve(t *testing.T, w *world, d feedback.Draft) {
	t.Helper()
	rules := w.Feedback().Rules()
	p, err := rules.Propose(ctx, feedback.Submission{Draft: d, Actor: "kim", Reason: "r"})
	require.NoError(t, err)
	for _, actor := range []string{"lee", "max"} {
		_, err = rules.Review(ctx, feedback.Review{
			Proposal: p.ID, Decision: feedback.Approved, Hash: p.Hash(), Actor: actor, Reason: "r",
		})
		require.NoError(t, err)
	}
}

package feedback_test

import (
	"context"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/store"
)

// counted counts what is read from a store.
type counted struct {
	store.Store
	finds, found, reads, commits int
}

func (c *counted) Commit(ctx context.Context, batches ...store.Batch) ([]store.Receipt, error) {
	c.commits++
	return c.Store.Commit(ctx, batches...)
}

// trips returns how often the store was asked since the last reset.
func (c *counted) trips() int { return c.finds + c.reads + c.commits }

func (c *counted) Find(ctx context.Context, q store.Query) iter.Seq2[store.Record, error] {
	c.finds++
	return func(yield func(store.Record, error) bool) {
		for r, err := range c.Store.Find(ctx, q) {
			c.found++
			if !yield(r, err) {
				return
			}
		}
	}
}

func (c *counted) Read(ctx context.Context, into *store.Snapshot, cells []evidence.Cell,
	refs []store.Ref, finds ...store.Query) error {
	c.reads++
	err := c.Store.Read(ctx, into, cells, refs, finds...)
	for _, found := range into.Found {
		c.found += len(found)
	}
	return err
}

// crowded has ten thousand rules: ten of each of a thousand agents, five of them active, one for
// all agents, and one for many.
func crowded(t testing.TB) (*world, *counted) {
	c := &counted{Store: newStore(t, nil)}
	w := stocked(t, 10_000, feedback.Config{Store: c}, func(i int, r *feedback.Rule) {
		r.Agents = []string{fmt.Sprint("agent", i/10)}
		if i%2 == 1 {
			r.Status, r.Left = feedback.StateRetired, r.Since
		}
		r.Clusters = []string{fmt.Sprint("cluster", i)}
	})
	many := feedback.Rule{ID: "many", Draft: rule("For many", "agent1", "agent2", "agent3", "agent4",
		"agent5"), Status: feedback.StateActive, Activated: start}
	all := feedback.Rule{ID: "all", Draft: feedback.Draft{Text: "For all", AllAgents: true},
		Status: feedback.StateActive, Activated: start}
	for _, r := range []*feedback.Rule{&many, &all} {
		r.Action, r.Type = feedback.CreateRule, feedback.Guideline
		w.put(*r)
	}
	return w, c
}

func (c *counted) reset() { *c = counted{Store: c.Store} }

// TestAnAgentsRulesAreReadAlone, and not the ten thousand of the others.
func TestAnAgentsRulesAreReadAlone(t *testing.T) {
	w, c := crowded(t)
	w.activate(rule("Say why", "agent7"))
	c.reset()
	in := w.inject("agent7", "")
	assert.Len(t, in.Rules, 7)
	assert.Equal(t, 8, c.found,
		"its own, the one for all, and the one for many, which is for five others")
	assert.Equal(t, []int{0, 1}, []int{c.finds, c.reads})

	c.reset()
	assert.Equal(t, in, w.inject("agent7", ""))
	assert.Equal(t, []int{0, 1}, []int{c.finds, c.reads},
		"nothing has changed, which one small read tells")

	c.reset()
	ranked, err := w.rules.List(ctx, feedback.RuleQuery{Agent: "agent7", Status: feedback.StateActive,
		Ranked: true})
	require.NoError(t, err)
	assert.Len(t, ranked, 7)
	assert.Equal(t, 8, c.found)

	w.activate(rule("Name the owner", "agent3"))
	c.reset()
	p := w.propose("paul", rule("Be brief", "agent7"))
	w.approve(p, "cleo", "dan")
	assert.Less(t, c.found, 40,
		"proposing and reviewing read the rules of the agent, and what is pending")
	assert.Contains(t, w.inject("agent7", "").Rules, p.ID)
	assert.Contains(t, w.inject("agent3", "").Rules, "many")

	c.reset()
	_, err = w.rules.Conflicts(ctx, rule("Rule 70 does not hold", "agent7"))
	require.NoError(t, err)
	assert.Less(t, c.found, 12)
}

// Each call that a reviewer waits for makes one read of the store and one commit. A review makes
// one read more, because the host decides by the draft who may review it.
func TestTwoRoundTrips(t *testing.T) {
	w, c := crowded(t)
	trips := func(want int, what string, do func()) {
		t.Helper()
		c.reset()
		do()
		assert.Equal(t, want, c.trips(), what)
	}
	say := func(reviewer, summary string) feedback.Feedback {
		f := w.correction(reviewer, summary)
		f.Agent = "agent7"
		_, err := w.Record(ctx, f)
		require.NoError(t, err)
		return f
	}
	evaluate := func(f feedback.Feedback, want feedback.Classification) {
		evaluated, err := w.Evaluate(ctx, f.ID)
		require.NoError(t, err)
		assert.Equal(t, want, evaluated.Class)
	}
	first, second := say("ann", "name the owner of the table"),
		say("bob", "something else altogether")
	trips(2, "an evaluation", func() { evaluate(first, feedback.EdgeCase) })
	trips(2, "an evaluation beside others", func() { evaluate(second, feedback.EdgeCase) })
	third := say("cleo", "naming the owner of a table")
	trips(3, "one that joins others: one more for each cluster that it is compared with",
		func() { evaluate(third, feedback.GeneralizableHigh) })

	var p feedback.Proposal
	trips(2, "a correction", func() { say("dan", "unlike all of the others") })
	trips(2, "a correction in a step", func() {
		f := w.correction("eve", "this one is in a step")
		require.NoError(t, store.Do(ctx, c, func(tx *store.Tx) error {
			_, err := w.RecordIn(tx, f)
			return err
		}))
	})
	trips(2, "a proposal", func() { p = w.propose("paul", rule("Be brief", "agent7")) })
	trips(2, "a proposal with evidence", func() {
		w.propose("paul", rule("Say why", "agent7"),
			first.ID, second.ID)
	})
	trips(3, "the first approval, whose right needs the draft", func() { p = w.approve(p, "dan") })
	trips(2, "a look at what was approved once", func() {
		_, err := w.rules.Proposal(ctx, p.ID)
		require.NoError(t, err)
	})
	trips(3, "the last approval", func() { p = w.approve(p, "eve") })
	require.Equal(t, feedback.StateApproved, p.Status)
	over := rule("Be very brief", "agent7")
	over.Supersedes = []string{p.ID}
	trips(2, "a proposal that supersedes", func() { p = w.propose("paul", over) })
	w.approve(p, "dan")
	trips(3, "its last approval", func() { p = w.approve(p, "eve") })
	_, err := w.rules.Move(ctx, order(p.ID), feedback.StateRetired)
	require.NoError(t, err)
	d := w.rule(p.ID).Draft
	d.Change, d.Of = feedback.Restore, p.ID
	trips(2, "to ask for a restoration", func() { p = w.propose("olga", d) })
	w.approve(p, "dan")
	trips(3, "to restore", func() { w.approve(p, "eve") })
	trips(3, "an erasure", func() { require.NoError(t, w.Erase(ctx, order(first.ID))) })
	p = w.propose("paul", rule("Greet", "agent7"))
	trips(3, "a rejection", func() {
		_, err := w.review(p, reject, "dan")
		require.NoError(t, err)
	})
}

// TestAnotherProcessesRulesAreSeenAtOnce, and its retirements.
func TestAnotherProcessesRulesAreSeenAtOnce(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	other, err := feedback.New(ctx, feedback.Config{Store: w.store, Now: w.clock.Now})
	require.NoError(t, err)
	sees := func() []string {
		in, err := other.Rules().Inject(ctx, "prd", "", "")
		require.NoError(t, err)
		return in.Rules
	}
	assert.Empty(t, sees())
	first := w.activate(rule("Be brief"))
	assert.Equal(t, []string{first.ID}, sees())
	second := w.activate(rule("Say why"))
	assert.Equal(t, []string{second.ID, first.ID}, sees())
	w.change(first.ID, feedback.Pin)
	assert.Equal(t, []string{first.ID, second.ID}, sees())
	_, err = w.rules.Move(ctx, order(first.ID), feedback.StateRevoked)
	require.NoError(t, err)
	assert.Equal(t, []string{second.ID}, sees())
}

// TestAgentsInAnyNumberAreRemembered, a thousand of them.
func TestAgentsInAnyNumberAreRemembered(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	w.activate(feedback.Draft{Text: "Be brief", AllAgents: true})
	for i := range 2500 {
		assert.Len(t, w.inject(fmt.Sprint("agent", i), "").Rules, 1)
	}
}

// TestAListEnds lists the newest of many decisions, and reads no more than it counts.
func TestAListEnds(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	var all []any
	for i := range 5000 {
		f := w.correction("ann", fmt.Sprint("text ", i))
		f.At, f.Class = start.Add(time.Duration(i)*time.Second), feedback.EdgeCase
		all = append(all, f)
	}
	w.put(all...)
	for limit, want := range map[int][2]int{0: {100, 1000}, 1000: {1000, 1000}, 3000: {3000, 3000},
		9000: {5000, 5000}} {
		found, total, err := w.List(ctx, feedback.Listing{Limit: limit})
		require.NoError(t, err)
		assert.Equal(t, want, [2]int{len(found), total})
		assert.Equal(t, "text 4999", found[0].Summary)
	}
	found, total, err := w.List(ctx, feedback.Listing{Words: "4998"})
	require.NoError(t, err)
	assert.Equal(t, []int{1, 1}, []int{len(found), total})
}

// TestEveryReadThatADocumentNames calls each read that the Adaptive Feedback Learning design names:
// by id, agent, gate, date, class, words, cluster and status.
func TestEveryReadThatADocumentNames(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	w.says("ann", long)
	w.says("bob", long)
	p := w.pending()
	active := w.activate(rule("Name the owner"))
	w.says("ann", "alone in the world")

	f, err := w.Feedback(ctx, "d1") // get_feedback
	require.NoError(t, err)
	assert.Equal(t, "d1", f.ID)
	similar, err := w.Similar(ctx, w.correction("cleo", long), 0) // find_similar
	require.NoError(t, err)
	assert.Len(t, similar, 2)
	// get_feedback_for_agent, edge cases by their words
	for name, l := range map[string]feedback.Listing{
		"agent":   {Agent: f.Agent, Class: feedback.EdgeCase},
		"gate":    {Gate: f.Gate, Words: "alone"},
		"date":    {Since: start.Add(-day), Until: w.clock.Now().Add(day), Words: "World"},
		"cluster": {Cluster: "d1", Limit: 1},
	} {
		found, total, err := w.List(ctx, l)
		require.NoError(t, err)
		assert.Len(t, found, 1, name)
		assert.Positive(t, total, name)
	}
	// get_pending_rules, and the proposal of an evaluation
	for name, q := range map[string]feedback.ProposalQuery{
		"status": {Status: feedback.StatePending}, "cluster": {Cluster: "d1"},
		"confidence": {MinConfidence: 0.5},
		"agent":      {Agent: f.Agent, Status: feedback.StatePending},
		"type":       {Type: p.Type, Status: feedback.StatePending},
	} {
		found, _, err := w.rules.Proposals(ctx, q, 0)
		require.NoError(t, err)
		require.Len(t, found, 1, name)
		assert.Equal(t, p.ID, found[0].ID, name)
	}
	// get_active_rules
	rules, err := w.rules.List(ctx, feedback.RuleQuery{Agent: f.Agent, Status: feedback.StateActive})
	require.NoError(t, err)
	require.Len(t, rules, 1)
	assert.Equal(t, active.ID, rules[0].ID)
	conflicts, err := w.rules.Conflicts(ctx, rule("Do not name the owner")) // check_rule_conflicts
	require.NoError(t, err)
	assert.NotEmpty(t, conflicts)
	// with insertion_point
	ranked, err := w.rules.List(ctx, feedback.RuleQuery{Agent: f.Agent, Status: feedback.StateActive,
		Ranked: true})
	require.NoError(t, err)
	assert.Len(t, ranked, 1)
}

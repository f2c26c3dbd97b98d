package loop_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/store/storetest"
)

// approved proposes a rule and has it approved.
func approved(t testing.TB, f *feedback.Service, text string) string {
	t.Helper()
	p, err := f.Rules().Propose(ctx, feedback.Submission{Draft: feedback.Draft{Text: text,
		AllAgents: true}, Actor: "ann", Reason: "r"})
	require.NoError(t, err)
	for _, actor := range []string{"bob", "cid"} {
		_, err := f.Rules().Review(ctx, feedback.Review{
			Proposal: p.ID, Decision: feedback.Approved, Actor: actor, Reason: "r", Hash: p.Hash(),
			Override: overrides(p),
		})
		require.NoError(t, err)
	}
	rules, err := f.Rules().List(ctx, feedback.RuleQuery{Status: feedback.StateActive})
	require.NoError(t, err)
	for _, r := range rules {
		if r.Text == text {
			return r.ID
		}
	}
	t.Fatalf("%q was not approved", text)
	return ""
}

// Prepare makes one call of the store, which reads all that it needs, and another one for a
// session's first choice.
func TestPrepareIsOneCallOfTheStore(t *testing.T) {
	counted := &storetest.Failing{Store: new(memstore.Store)}
	w := newWorld(t, loop.Config{Store: counted, Arms: []loop.Arm{{ID: "a"}, {ID: "b"}}})
	_, err := w.Teach(ctx, loop.Lessons{
		Heuristics: []learning.Heuristic{rotating},
		Notes: []loop.Note{{ID: "n", Topic: "the disk is full and its logs have grown",
			Text: "Logs are in /var/log."}},
	})
	require.NoError(t, err)
	approved(t, w.Feedback(), "Be brief.")
	for n := range 3 {
		_, err = w.Patterns().Record(ctx, patterns.Outcome{
			ID: fmt.Sprint("o", n), Task: fmt.Sprint("t", n), Description: full, Success: true,
			Patterns: []patterns.PatternID{"split"},
		})
		require.NoError(t, err)
	}
	for i, e := range []loop.Event{
		{Text: full, Domain: "ops"}, {Text: full, Domain: "ops", Session: "s", Person: "ann"},
		{Text: full, Domain: "ops", Session: "s", Person: "ann", Stream: "chat"},
		{Text: full, Domain: "ops", Task: "t"}, {Text: full, Domain: "ops", Session: "s",
			Stream: "chat", Task: "t"},
	} {
		first := e
		first.Session, first.Stream = "", "" // where nothing was answered
		w.answer(first)                      // now all is known that does not depend on the event
		finds, reads, commits := counted.Calls("Find"), counted.Calls("Read"), counted.Calls("Commit")
		all := counted.Calls()
		e.Item = fmt.Sprint("item-", i)
		p, err := w.Prepare(ctx, e)
		require.NoError(t, err)
		assert.NotEmpty(t, p.Candidates)
		assert.NotEmpty(t, p.Rules)
		assert.NotEmpty(t, p.Notes)
		assert.NotNil(t, p.Choice)
		assert.Equal(t, e.Task != "", strings.Contains(p.System, "Similar Past Tasks"))
		want := []int{0, 1, 0, 1}
		if e.Session != "" { // its first choice for the item
			want = []int{0, 1, 1, 2}
		}
		assert.Equal(t, want, []int{
			counted.Calls("Find") - finds, counted.Calls("Read") - reads,
			counted.Calls("Commit") - commits, counted.Calls() - all,
		}, "%+v", e)
	}
}

// TestPrepareKnowsWhatAnotherAgentHasDone a moment ago, on the same store: all that an agent keeps
// is known to be stale.
func TestPrepareKnowsWhatAnotherAgentHasDone(t *testing.T) {
	w := newWorld(t, loop.Config{})
	other := w.again()
	prepared := func() loop.Plan {
		p, err := other.Prepare(ctx, loop.Event{Text: full, Task: "t"})
		require.NoError(t, err)
		return p
	}
	prepared()

	h, err := w.Learning().Put(ctx, rotating) // past the agent
	require.NoError(t, err)
	require.Len(t, prepared().Candidates, 1)
	h.Action = "Buy a disk."
	h, err = w.Learning().Put(ctx, h)
	require.NoError(t, err)
	require.Equal(t, "Buy a disk.", prepared().Candidates[0].Action)
	require.NoError(t, w.Learning().Delete(ctx, h.ID))
	require.Empty(t, prepared().Candidates)

	note := loop.Note{ID: "n", Topic: full, Text: "Logs are in /var/log."}
	_, err = w.Teach(ctx, loop.Lessons{Notes: []loop.Note{note}})
	require.NoError(t, err)
	require.Equal(t, []loop.Note{note}, prepared().Notes)
	note.Text = "Logs are in /srv/log."
	_, err = w.Teach(ctx, loop.Lessons{Notes: []loop.Note{note}})
	require.NoError(t, err)
	require.Equal(t, []loop.Note{note}, prepared().Notes)

	rule := approved(t, w.Feedback(), "Be brief.")
	require.Equal(t, []string{rule}, prepared().Rules)
	_, err = w.Feedback().Rules().Move(ctx, feedback.Act{ID: rule, Actor: "ann", Reason: "r"},
		feedback.StateRevoked)
	require.NoError(t, err)
	require.Empty(t, prepared().Rules)

	require.NotContains(t, prepared().System, "Avoid big steps")
	_, err = w.Patterns().Define(ctx, patterns.Pattern{ID: "big", Content: "Avoid big steps",
		Anti: true})
	require.NoError(t, err)
	require.Contains(t, prepared().System, "Avoid big steps")
	_, err = w.Patterns().Record(ctx, patterns.Outcome{ID: "o", Task: "t1", Description: full,
		Success: true})
	require.NoError(t, err)
	require.Contains(t, prepared().System, "Similar Past Tasks")
}

// If the model agreed with a heuristic, and the process has not counted an outcome of the segment
// yet, one read fetches the cells of the arm and of the heuristic.
func TestAReactionIsTwoReads(t *testing.T) {
	counted, always := &storetest.Failing{Store: new(memstore.Store)}, 1.
	w := newWorld(t, loop.Config{
		Store: counted, Arms: []loop.Arm{{ID: "a"}, {ID: "b"}},
		Lessons: loop.Lessons{Heuristics: []learning.Heuristic{rotating}},
		Tuning:  loop.Tuning{Decision: decision.Config{Withhold: &always}},
	})
	w.model.says = rotate
	for range 2 {
		a := w.answer(loop.Event{Text: full, Person: "ann"})
		require.Len(t, a.Result.Compared, 1)
		other := w.again()
		reads := counted.Calls("Read")
		require.NoError(t, other.React(ctx, a.ID, loop.Reaction{Person: "ann", Value: 1}))
		assert.Equal(t, 2, counted.Calls("Read")-reads)
	}
}

// A message reads what it is about by one call, however many answers wait, and an undo reads what
// it takes back by another one.
func TestReadsOfAMessage(t *testing.T) {
	sea := &storetest.Failing{Store: new(memstore.Store)}
	w := newWorld(t, loop.Config{
		Store: sea, Arms: []loop.Arm{{ID: "only"}},
		Lessons: loop.Lessons{Heuristics: []learning.Heuristic{trusted(rotating)}},
	})
	for text, reads := range map[string]int{"Undo that": 2, "Thanks": 1, "And the other one?": 1} {
		for i := range 3 {
			w.answer(loop.Event{Text: full, Session: text, Person: "ann", Item: fmt.Sprint(i)})
		}
		w.Agent = w.again()
		before := sea.Calls("Read")
		require.NoError(t, second(w.Hear(ctx, learning.Message{
			Text: text, Session: text, Person: "ann", At: w.clock.Now(),
		})))
		assert.Equal(t, reads, sea.Calls("Read")-before, text)
	}
}

// How often a call reads does not depend on how many answers it is about, nor on whose they are.
func TestReadsOfCalls(t *testing.T) {
	sea := &storetest.Failing{Store: new(memstore.Store)}
	w := newWorld(t, loop.Config{
		Store: sea, Arms: []loop.Arm{{ID: "only"}},
		Lessons: loop.Lessons{Heuristics: []learning.Heuristic{trusted(rotating)}},
	})
	reads := func(call func() error) int {
		before := sea.Calls("Read")
		require.NoError(t, call())
		return sea.Calls("Read") - before
	}
	swept := func(n int) int {
		for i := range n {
			w.answer(loop.Event{Text: "Why?", Item: fmt.Sprint("item ", n, i)})
		}
		w.clock.Advance(time.Hour)
		agent := w.again()
		return reads(func() error { return agent.Sweep(ctx, time.Time{}) })
	}
	swept(1) // what a process reads once is read
	idle := swept(0)
	for _, n := range []int{1, 7} {
		assert.Equal(t, 3, swept(n)-idle, "%d answers", n)
	}
	acme, err := w.Tenant(ctx, "acme")
	require.NoError(t, err)
	for _, agent := range []*loop.Agent{w.Agent, acme} {
		require.NoError(t, second(agent.Prepare(ctx, loop.Event{Text: "Why?"})))
		assert.Equal(t, 1, reads(func() error {
			return second(agent.Prepare(ctx, loop.Event{Text: "Why?"}))
		}))
	}
}

package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/learning"
)

// Of what was rejected and came up again, rules show tells what was before it.
func TestWhatComesBeforeARule(t *testing.T) {
	t.Parallel()
	file := sqliteFile(t)
	w := host(t, file)
	w.now = time.Now()
	n := 0
	service, err := feedback.New(ctx, feedback.Config{
		Store: w.store, Now: w.clock, NewID: func() string { n++; return fmt.Sprint("made-", n) },
	})
	require.NoError(t, err)
	corrects := func(person string) {
		w.now = w.now.Add(time.Second)
		id := fmt.Sprint("correction ", w.now.UnixNano())
		_, err := service.Record(ctx, feedback.Feedback{
			ID: id, Gate: "review", Agent: "tester", Reviewer: person, At: w.now,
			Decision: feedback.Rejected,
			Summary:  "the tests were not run before the commit", OutputSHA: "a",
		})
		require.NoError(t, err)
		_, err = service.Evaluate(ctx, id)
		require.NoError(t, err)
	}
	of := func(args ...string) []string { return append([]string{"--db", file, "rules"}, args...) }
	corrects("ann")
	pending := func() feedback.Proposal {
		_, _, err := service.Flush(ctx)
		require.NoError(t, err)
		all, _, err := service.Rules().Proposals(ctx, feedback.ProposalQuery{Agent: "tester",
			Status: feedback.StatePending}, 0)
		require.NoError(t, err)
		require.Len(t, all, 1)
		return all[0]
	}
	corrects("bob")
	corrects("cleo")
	first := pending()
	shown := call{args: of("show", first.ID)}.run(t).out
	assert.Contains(t, shown, "approvals: 0 of 2; 2 more people must approve, and at least 1 "+
		"other than ann, bob or cleo (gave evidence)\n")
	_, err = service.Rules().Review(ctx, feedback.Review{
		Proposal: first.ID, Decision: feedback.Rejected, Actor: "maria", Reason: "a hook does it",
	})
	require.NoError(t, err)
	for _, person := range []string{"ann", "bob", "cleo", "dora"} {
		corrects(person)
	}
	second := pending()
	shown = call{args: of("show", second.ID)}.run(t).out
	assert.Regexp(t, `(?m)^before it: `+first.ID+`, rejected by maria on .*: a hook does it$`, shown)
	r := call{args: append([]string{"--json"}, of("show", second.ID)...)}.run(t)
	assert.Equal(t, 1, strings.Count(r.out, `"hash"`))
}

// TestAnApproverWithholdsAHeuristic that rules show names.
func TestAnApproverWithholdsAHeuristic(t *testing.T) {
	t.Parallel()
	file := sqliteFile(t)
	w := host(t, file)
	module, err := learning.New(ctx, learning.Config{Store: w.store, Now: w.clock})
	require.NoError(t, err)
	_, err = module.Put(ctx, learning.Heuristic{ID: "nightly", Condition: "a migration waits",
		Action: "Run the migration at night"})
	require.NoError(t, err)
	service, err := feedback.New(ctx, feedback.Config{Store: w.store})
	require.NoError(t, err)
	p, err := service.Rules().Propose(ctx, feedback.Submission{
		Draft: feedback.Draft{Text: "Ask the owner before a migration", Agents: []string{"tester"}},
		Actor: "eve", Reason: "it was said",
	})
	require.NoError(t, err)
	of := func(args ...string) []string { return append([]string{"--db", file, "rules"}, args...) }
	assert.Contains(t, call{args: of("show", p.ID)}.run(t).out, "heuristic nightly: Run the "+
		"migration at night: may break it, and --withhold keeps it from answering by itself\n")
	call{args: of("approve", p.ID, "--hash", p.Hash(), "--withhold", "nightly", "--yes", "--actor",
		"cleo", "--reason", "it asks nobody")}.run(t)
	p, err = service.Rules().Proposal(ctx, p.ID)
	require.NoError(t, err)
	require.Len(t, p.Approvals, 1)
	assert.Equal(t, []string{"nightly"}, p.Approvals[0].Withhold)
}

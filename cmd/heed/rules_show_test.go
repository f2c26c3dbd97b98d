package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/learning"
)

// A correction that nobody else has made waits, where heed rules list says so. Of what was rejected
// and came up again, rules show tells what was before it.
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
	waits := read[[]view.Rule](t, of("list", "--status", "waiting")...)
	require.Len(t, waits, 1)
	assert.Equal(t, []string{"waiting", "ann", "the tests were not run before the commit"},
		[]string{waits[0].Status, waits[0].Decider, waits[0].Text})

	assert.Contains(t, call{args: of("list")}.run(t).out,
		"\n1 correction waits for others that say the same: heed rules list --status waiting\n")

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
	assert.Empty(t, read[[]view.Rule](t, of("list", "--status", "waiting")...))
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

// TestRulesResolve settles a correction that contradicts another, which --status finds in any case.
func TestRulesResolve(t *testing.T) {
	t.Parallel()
	file := sqliteFile(t)
	w := host(t, file)
	service, err := feedback.New(ctx, feedback.Config{Store: w.store})
	require.NoError(t, err)
	for i, text := range []string{"Always add a test", "Never add a test"} {
		id := fmt.Sprint("correction-", i+1)
		_, err := service.Record(ctx, feedback.Feedback{
			ID: id, Gate: "review", Agent: "tester", Reviewer: id, At: time.Now(),
			Decision: feedback.Rejected, Summary: text, OutputSHA: "a",
		})
		require.NoError(t, err)
		_, err = service.Evaluate(ctx, id)
		require.NoError(t, err)
	}
	of := func(args ...string) []string { return append([]string{"--db", file, "rules"}, args...) }
	found := read[[]view.Rule](t, of("list", "--status", "ambiguous")...)
	require.Len(t, found, 1)
	assert.Equal(t, []string{"correction-2", "ambiguous"}, []string{found[0].ID, found[0].Status})
	screen := call{args: of("list", "--status", "ambiguous"),
		env: []string{"NO_COLOR=1"}}.onTerminal(t, 80).out
	assertFits(t, screen, 80)
	assert.Regexp(t, `\bwhy\b`, ansi.Strip(screen))
	assert.Contains(t, strings.Join(strings.Fields(screen), " "),
		"heed rules resolve ID --as archived (or edge_case, generalizable_low)")
	for _, status := range []string{"pending"} {
		for _, line := range read[[]view.Rule](t, of("list", "--status", status)...) {
			assert.Equal(t, "pending", line.Status)
		}
	}
	p, err := service.Rules().Propose(ctx, feedback.Submission{
		Draft: feedback.Draft{Text: "Always add a test", Agents: []string{"tester"}}, Actor: "eve",
		Reason: "it was said",
	})
	require.NoError(t, err)
	shown := call{args: of("show", p.ID)}.run(t).out
	assert.Regexp(t, `contradiction with correction-2: .*\n +it says: Never add a test\n`, shown)
	resolve := of("resolve", "correction-2", "--as", "edge_case", "--yes", "--reason",
		"one team only")
	assert.Equal(t, "Resolved as edge_case.\n", call{args: resolve}.run(t).out)
	assertFails(t, call{args: resolve}.run(t), failed, "it is not ambiguous")
	assert.Equal(t, "There are no corrections here with --status ambiguous.\n",
		call{args: of("list", "--status", "ambiguous")}.run(t).out)
}

// TestRulesUnanswered lists a correction to which the evaluator gave no answer.
func TestRulesUnanswered(t *testing.T) {
	t.Parallel()
	file := sqliteFile(t)
	w := host(t, file)
	var mute bool
	service, err := feedback.New(ctx, feedback.Config{Store: w.store, Evaluator: func(
		ctx context.Context, c feedback.Case,
	) (feedback.Assessment, error) {
		if mute {
			return feedback.Assessment{}, errors.New("out of order")
		}
		return feedback.Counting(ctx, c)
	}})
	require.NoError(t, err)
	says := func(id, person, text string) {
		_, err := service.Record(ctx, feedback.Feedback{
			ID: id, Gate: "review", Agent: "joiner", Reviewer: person, At: time.Now(),
			Decision: feedback.Rejected, Summary: text,
		})
		require.NoError(t, err)
		_, err = service.Evaluate(ctx, id)
		require.Equal(t, mute, err != nil, err)
	}
	of := func(args ...string) []string { return append([]string{"--db", file, "rules"}, args...) }
	mute = true
	says("c-3", "cleo", "Name the owner")
	waits := read[[]view.Rule](t, of("list", "--status", "unanswered")...)
	require.Len(t, waits, 1)
	assert.Equal(t, "c-3", waits[0].ID)
	assert.Contains(t, waits[0].Reason, "out of order")
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

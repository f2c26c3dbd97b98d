package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/store"
)

// TestPatternsReadAsTheirHostHasThem has the command say what an application says that is not
// configured by default.
func TestPatternsReadAsTheirHostHasThem(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		cfg                    patterns.Config
		command, without, with string
	}{
		"literal": {patterns.SpecConfig(), "patterns split-by-feature",
			"proven needs helpful observations", "proven needs a faded helpful mass"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := sqliteFile(t)
			args := strings.Fields(test.command)
			without := call{args: at(db, args...)}.run(t)
			assert.Contains(t, without.out, test.without)
			assert.NotContains(t, without.out, test.with)
			w := host(t, db)
			test.cfg.Store, test.cfg.Now = w.store, w.clock
			_, err := patterns.New(ctx, test.cfg)
			require.NoError(t, err)
			with := call{args: at(db, args...)}.run(t)
			require.Zero(t, with.code, with.err)
			assert.Contains(t, with.out, test.with)
			again := call{args: at(db, args...)}.run(t)
			assert.Equal(t, with, again, "looking changes nothing")
		})
	}
}

// TestTheGateIsTheApplications has a proposal that ann and bob have given the evidence for, and ann
// has approved.
func TestTheGateIsTheApplications(t *testing.T) {
	t.Parallel()
	reviewed := func(t *testing.T, gate feedback.Gate) (approve []string) {
		file := sqliteFile(t)
		w := host(t, file)
		w.now = time.Now()
		service, err := feedback.New(ctx, feedback.Config{Store: w.store, Gate: gate, Now: w.clock,
			NewID: func() string { return w.id().String() }})
		require.NoError(t, err)
		var ids []string
		for _, person := range []string{"ann", "bob"} {
			ids = append(ids, "feedback of "+person)
			_, err := service.Record(ctx, feedback.Feedback{
				ID: ids[len(ids)-1], Gate: "review", Agent: "coder", Reviewer: person, At: w.now,
				Decision: feedback.Rejected,
				Summary:  "the tests were not run before the commit", OutputSHA: "a",
			})
			require.NoError(t, err)
		}
		p, err := service.Rules().Propose(ctx, feedback.Submission{
			Draft: feedback.Draft{Text: "Run the tests.", Agents: []string{"coder"}}, Evidence: ids,
			Actor: "wendy", Reason: "it came up twice",
		})
		require.NoError(t, err)
		approver := "ann"
		if gate.Outsiders == 2 {
			approver = "maria"
		}
		_, err = service.Rules().Review(ctx, feedback.Review{
			Proposal: p.ID, Decision: feedback.Approved, Actor: approver, Reason: "yes", Hash: p.Hash(),
		})
		require.NoError(t, err)
		return []string{"--db", file, "rules", "approve", p.ID, "--hash", p.Hash(), "--yes", "--reason",
			"I saw it too"}
	}
	for _, test := range []struct {
		name, actor string
		gate        feedback.Gate
		says        string
	}{
		{"an author is one of two", "olga", feedback.Gate{}, "Approved. It is rule"},
		{"a greater quorum", "olga", feedback.Gate{Quorum: 3}, "2 of 3; one more person must approve"},
		{"two authors are not enough", "bob", feedback.Gate{},
			"2 approved; one more person must approve"},
		{"no author is enough", "bob", feedback.Gate{Outsiders: 2},
			"people cannot approve what their own feedback led to"},
	} {
		t.Run(test.name, func(t *testing.T) {
			approve := append(reviewed(t, test.gate), "--actor", test.actor)
			r := call{args: approve}.run(t)
			assert.Contains(t, r.out+r.err, test.says)
			for _, e := range read[[]store.AuditEntry](t, "--db", approve[1], "store", "audit", "--limit",
				"100") {
				assert.False(t, e.Action == "settings" && e.Actor == "" &&
					e.Details["gate.quorum"] == "3 -> 2", "the command changes no settings")
			}
		})
	}
}

package adaptertest

import (
	"testing"

	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/loop"
)

// Approve has people approve a rule with a check. It returns the rule's words.
func Approve(t *testing.T, agent *loop.Agent, check feedback.Check) string {
	t.Helper()
	const words = "Leave db-1 alone."
	rules := agent.Feedback().Rules()
	proposal, err := rules.Propose(t.Context(), feedback.Submission{
		Draft: feedback.Draft{Text: words, AllAgents: true, Check: check},
		Actor: "kim", Reason: "it bills",
	})
	for _, lead := range []string{"ann", "bob"} {
		must(t, err)
		_, err = rules.Review(t.Context(), feedback.Review{
			Proposal: proposal.ID, Decision: feedback.Approved, Actor: lead, Reason: "it does",
			Hash: proposal.Hash(),
		})
	}
	must(t, err)
	return words
}

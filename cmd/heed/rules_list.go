package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/internal/review"
)

// statuses are those of proposals and of rules.
var statuses = []string{"pending", "active", "retired", "revoked", "superseded", "rejected", "expired", "documented", unproposed, string(feedback.Ambiguous)}

// unproposed is the status of corrections without a proposal.
const unproposed = "waiting"

type rulesList struct {
	Status string `complete:"status" placeholder:"STATUS" help:"Only this status: ${statuses}. Without it: pending and active."`
	Agent  string `placeholder:"NAME" help:"Only rules for this agent."`
}

// A ruleLine is a proposal or a rule.
type ruleLine struct {
	ID        string           `json:"id"`
	Status    string           `json:"status"` // as --status takes it, of the proposal, or of the rule that it became
	Since     time.Time        `json:"since"`
	Agents    []string         `json:"agents,omitempty"` // none: all
	Approvals int              `json:"approvals"`
	Quorum    int              `json:"quorum,omitempty"` // of a pending proposal
	Effect    *feedback.Effect `json:"effect,omitempty"` // of a rule that was measured
	Text      string           `json:"text"`
	Pinned    bool             `json:"pinned,omitempty"`
	// Decider closed the proposal, and Reason says why.
	Decider string `json:"decided_by,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// Run lists proposals and rules.
func (cmd *rulesList) Run(s *session) error {
	cmd.Status = strings.ToLower(cmd.Status)
	if cmd.Status != "" && !slices.Contains(statuses, cmd.Status) {
		return &usageError{fmt.Sprintf("there is no status %q: it is one of %s", cmd.Status, strings.Join(statuses, ", "))}
	}
	var all []ruleLine
	note := ""
	err := withRules(s, func(f *feedback.Service) error {
		corrections, err := cmd.waiting(s, f)
		if err != nil {
			return err
		}
		if cmd.Status == unproposed || cmd.Status == string(feedback.Ambiguous) {
			all = slices.DeleteFunc(corrections, func(r ruleLine) bool { return cmd.Status != unproposed && r.Status != cmd.Status })
			if slices.ContainsFunc(all, func(r ruleLine) bool { return r.Status == string(feedback.Ambiguous) }) {
				note = "To decide about one that is ambiguous: heed rules resolve ID --as archived (or edge_case, generalizable_low)"
			}
			return nil
		}
		if cmd.Status == "" {
			note = outside(corrections)
		}
		all, err = cmd.read(s, f)
		return err
	})
	what := "rules or proposals"
	if cmd.Status == unproposed || cmd.Status == string(feedback.Ambiguous) {
		what = "corrections"
	}
	flags := []string{"status", cmp.Or(cmd.Status, "pending or active"), "agent", cmd.Agent}
	return answerList(s, all, err, what, flags, printRules, note)
}

// outside says how many corrections are in no proposal, and which of them a person has to decide about.
func outside(corrections []ruleLine) string {
	ambiguous := 0
	for _, c := range corrections {
		if c.Status == string(feedback.Ambiguous) {
			ambiguous++
		}
	}
	var notes []string
	if ambiguous > 0 {
		notes = append(notes, fmt.Sprintf("%s another, and a person decides: heed rules list --status %s",
			plural(ambiguous, "correction may contradict", "corrections may contradict"), feedback.Ambiguous))
	}
	if n := len(corrections) - ambiguous; n > 0 {
		notes = append(notes, fmt.Sprintf("%s for others that say the same: heed rules list --status %s", plural(n, "correction waits", "corrections wait"), unproposed))
	}
	return strings.Join(notes, "\n")
}

// waiting returns the corrections without a proposal, the newest first: nobody else has said the same, or not enough people.
func (cmd *rulesList) waiting(s *session, f *feedback.Service) (all []ruleLine, err error) {
	found, err := review.Waiting(s.ctx, f, cmd.Agent, 1000)
	for _, c := range found {
		status := unproposed
		if c.Class == feedback.Ambiguous {
			status = string(c.Class)
		}
		all = append(all, ruleLine{
			ID: c.ID, Status: status, Since: c.At, Agents: []string{c.Agent}, Text: strings.TrimSpace(c.Summary + " " + c.Comment), Decider: c.Reviewer,
			Reason: c.Rationale,
		})
	}
	return all, err
}

func (cmd *rulesList) read(s *session, f *feedback.Service) (all []ruleLine, err error) {
	proposals, _, err := f.Rules().Proposals(s.ctx, feedback.ProposalQuery{Agent: cmd.Agent}, 0)
	if err != nil {
		return nil, err
	}
	rules, err := f.Rules().List(s.ctx, feedback.RuleQuery{Agent: cmd.Agent})
	wanted := func(status string, usual bool) bool {
		return cmd.Status == "" && usual || strings.EqualFold(cmd.Status, status)
	}
	for _, p := range proposals {
		if p.Status != feedback.StateApproved && wanted(string(p.Status), p.Status == feedback.StatePending) {
			line := ruleLine{ID: p.ID, Status: strings.ToLower(string(p.Status)), Since: p.Created, Agents: p.Agents, Approvals: len(p.Approvals), Text: p.Text, Decider: p.Decider, Reason: p.Reason}
			if p.Status == feedback.StatePending {
				q := review.QuorumOf(&p, f.Config().Gate)
				line.Approvals, line.Quorum = q.Approvals, q.Of
			}
			all = append(all, line)
		}
	}
	for _, r := range rules {
		if wanted(string(r.Status), r.Status == feedback.StateActive) {
			line := ruleLine{ID: r.ID, Status: strings.ToLower(string(r.Status)), Since: r.Since, Agents: r.Agents, Approvals: len(r.Approvals), Text: r.Text, Pinned: r.Pinned}
			if r.Effect.Status != "" {
				line.Effect = &r.Effect
			}
			all = append(all, line)
		}
	}
	return all, err
}

func printRules(p *printer, all []ruleLine) {
	closed := slices.ContainsFunc(all, func(r ruleLine) bool { return r.Reason != "" })
	columns := []string{"id", "status", "~rule", "?~agents", "?>effect", "?since"}
	if closed {
		columns = append(columns, "?~by", "&~why")
	}
	if slices.ContainsFunc(all, func(r ruleLine) bool { return r.Status == unproposed || r.Status == string(feedback.Ambiguous) }) {
		printCorrections(p, all)
		return
	}
	t := newTable(columns...)
	for _, r := range all {
		effect := "-"
		if r.Effect != nil {
			effect = fmt.Sprintf("%+.0f %%", 100*r.Effect.Improvement)
		}
		status := r.Status
		if r.Pinned {
			status += ", pinned"
		}
		if r.Quorum > 0 {
			status += ", " + count(r.Approvals) + " of " + count(r.Quorum)
		}
		cells := []string{show(r.ID), status, show(r.Text), list(r.Agents, "all"), effect, moment(r.Since)}
		if closed {
			cells = append(cells, show(cmp.Or(r.Decider, "heed")), show(r.Reason))
		}
		t.add(cells...)
	}
	t.print(p)
}

// printCorrections prints corrections that are in no proposal.
func printCorrections(p *printer, all []ruleLine) {
	t := newTable("id", "?status", "~correction", "~why", "?~by", "?~agents", "?since")
	for _, r := range all {
		t.add(show(r.ID), r.Status, show(r.Text), show(cmp.Or(r.Reason, "-")), show(r.Decider), list(r.Agents, "all"), moment(r.Since))
	}
	t.print(p)
}

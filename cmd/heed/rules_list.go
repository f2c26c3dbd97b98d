package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed/feedback"
)

// statuses are those of proposals and of rules.
var statuses = []string{"pending", "active", "retired", "revoked", "superseded", "rejected", "expired", "documented"}

type rulesList struct {
	Status string `complete:"status" placeholder:"STATUS" help:"Only this status: ${statuses}. Without it: pending and active."`
	Agent  string `placeholder:"NAME" help:"Only rules for this agent."`
}

// A ruleLine is a proposal or a rule.
type ruleLine struct {
	ID        string           `json:"id"`
	Status    string           `json:"status"` // of the proposal, or of the rule that it became
	Since     time.Time        `json:"since"`
	Agents    []string         `json:"agents,omitempty"` // none: all
	Approvals int              `json:"approvals"`
	Effect    *feedback.Effect `json:"effect,omitempty"` // of a rule that was measured
	Text      string           `json:"text"`
	Pinned    bool             `json:"pinned,omitempty"`
	// Decider closed the proposal, and Reason says why.
	Decider string `json:"decided_by,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// Run lists proposals and rules.
func (cmd *rulesList) Run(s *session) error {
	if cmd.Status != "" && !slices.Contains(statuses, strings.ToLower(cmd.Status)) {
		return &usageError{fmt.Sprintf("there is no status %q: it is one of %s", cmd.Status, strings.Join(statuses, ", "))}
	}
	var all []ruleLine
	err := withRules(s, func(f *feedback.Service) (err error) {
		all, err = cmd.read(s, f)
		return err
	})
	flags := []string{"status", cmp.Or(cmd.Status, "pending or active"), "agent", cmd.Agent}
	return answerList(s, all, err, "rules or proposals", flags, printRules)
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
			all = append(all, ruleLine{ID: p.ID, Status: string(p.Status), Since: p.Created, Agents: p.Agents, Approvals: len(p.Approvals), Text: p.Text, Decider: p.Decider, Reason: p.Reason})
		}
	}
	for _, r := range rules {
		if wanted(string(r.Status), r.Status == feedback.StateActive) {
			line := ruleLine{r.ID, string(r.Status), r.Since, r.Agents, len(r.Approvals), nil, r.Text, r.Pinned, "", ""}
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
	columns := []string{"~id", "status", ">for", "?>effect", "?since", "~agents", "~rule"}
	if closed {
		columns = append(columns, "~by", "~why")
	}
	t := newTable(columns...)
	for _, r := range all {
		effect := "-"
		if r.Effect != nil {
			effect = fmt.Sprintf("%+.0f %%", 100*r.Effect.Improvement)
		}
		status := strings.ToLower(r.Status)
		if r.Pinned {
			status += ", pinned"
		}
		cells := []string{show(r.ID), status, count(r.Approvals), effect, moment(r.Since), list(r.Agents, "all"), show(r.Text)}
		if closed {
			cells = append(cells, cmp.Or(show(r.Decider), "heed"), show(r.Reason))
		}
		t.add(cells...)
	}
	t.print(p)
}

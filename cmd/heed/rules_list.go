package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed/feedback"
)

// statuses are those of proposals and of rules.
var statuses = []string{"pending", "active", "retired", "revoked", "superseded", "rejected", "expired", "documented"}

type rulesList struct {
	Status string `complete:"status" placeholder:"STATUS" help:"Those alone of this status: ${statuses}. Without it: pending and active."`
	Agent  string `placeholder:"NAME" help:"Those alone that affect this agent."`
}

func (rulesList) Help() string {
	return `Examples:

    heed --db agent.db rules list
    heed --db agent.db rules list --agent coder --status retired`
}

// A ruleLine is a proposal or a rule.
type ruleLine struct {
	ID        string           `json:"id"`
	Status    string           `json:"status"` // of the proposal, or of the rule that it became
	Since     time.Time        `json:"since"`
	Agents    []string         `json:"agents"` // empty: all
	Approvals int              `json:"approvals"`
	Effect    *feedback.Effect `json:"effect,omitempty"` // of a rule that was measured
	Text      string           `json:"text"`
	Pinned    bool             `json:"pinned,omitempty"`
}

// Run lists proposals and rules.
func (cmd *rulesList) Run(s *session, c *rulesCommands) error {
	err := c.at(s, func(d *desk) error { return cmd.list(s, d) })
	if errors.Is(err, errNoRules) {
		return cmd.answer(s, nil)
	}
	return err
}

func (cmd *rulesList) list(s *session, d *desk) error {
	proposals, _, err := d.Rules().Proposals(s.ctx, feedback.ProposalQuery{Agent: cmd.Agent}, 0)
	if err != nil {
		return err
	}
	rules, err := d.Rules().List(s.ctx, feedback.RuleQuery{Agent: cmd.Agent})
	if err != nil {
		return err
	}
	wanted := func(status string, usual bool) bool {
		return cmd.Status == "" && usual || strings.EqualFold(cmd.Status, status)
	}
	var all []ruleLine
	if cmd.Status != "" && !slices.Contains(statuses, strings.ToLower(cmd.Status)) {
		return &usageError{fmt.Sprintf("there is no status %q: it is one of %s", cmd.Status, strings.Join(statuses, ", "))}
	}
	for _, p := range proposals {
		if p.Status != feedback.StateApproved && wanted(string(p.Status), p.Status == feedback.StatePending) {
			all = append(all, ruleLine{p.ID, string(p.Status), p.Created, listed(p.Agents), len(p.Approvals), nil, p.Text, false})
		}
	}
	for _, r := range rules {
		if wanted(string(r.Status), r.Status == feedback.StateActive) {
			line := ruleLine{r.ID, string(r.Status), r.Since, listed(r.Agents), len(r.Approvals), nil, r.Text, r.Pinned}
			if r.Effect.Status != "" {
				line.Effect = &r.Effect
			}
			all = append(all, line)
		}
	}
	return cmd.answer(s, all)
}

func (cmd *rulesList) answer(s *session, all []ruleLine) error {
	return s.answer(listed(all), func(p *printer) {
		if len(all) == 0 {
			p.nothing("rules or proposals", "status", cmp.Or(cmd.Status, "pending or active"), "agent", cmd.Agent)
			return
		}
		printRules(p, all)
	})
}

func printRules(p *printer, all []ruleLine) {
	t := listing{columns: []column{
		{title: "id", soft: true}, {title: "status"}, {title: "for", right: true}, {title: "effect", right: true, extra: true},
		{title: "since", extra: true}, {title: "agents", soft: true}, {title: "rule", soft: true},
	}}
	for _, r := range all {
		effect := "-"
		if r.Effect != nil {
			effect = fmt.Sprintf("%+.0f %%", 100*r.Effect.Improvement)
		}
		status := strings.ToLower(r.Status)
		if r.Pinned {
			status += ", pinned"
		}
		t.add(show(r.ID), status, count(r.Approvals), effect, moment(r.Since), agents(r.Agents), show(r.Text))
	}
	t.print(p)
}

func agents(names []string) string {
	if len(names) == 0 {
		return "all"
	}
	return show(strings.Join(names, ", "))
}

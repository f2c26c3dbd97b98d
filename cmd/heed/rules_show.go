package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/feedback"
)

type rulesShow struct {
	ID string `arg:"" complete:"proposal or rule" help:"The proposal or rule, or the start of its id."`
}

func (rulesShow) Help() string {
	return `Examples:

    heed --db agent.db rules show 7d0c2b1a
    heed --db agent.db --json rules show 7d0c2b1a | jq -r .hash

The hash names the words: an approval is of these words alone.`
}

// A ruleReport is a proposal with the rule that it became.
type ruleReport struct {
	Proposal *feedback.Proposal  `json:"proposal,omitempty"`
	Rule     *feedback.Rule      `json:"rule,omitempty"`
	Hash     string              `json:"hash"`
	Now      []feedback.Conflict `json:"conflicts_now"` // what stands against it now
}

// Run shows a proposal or a rule.
func (cmd *rulesShow) Run(s *session, c *rulesCommands) error {
	return c.at(s, func(d *desk) error { return cmd.show(s, d) })
}

func (cmd *rulesShow) show(s *session, d *desk) error {
	var r ruleReport
	p, err := d.proposal(s, cmd.ID)
	switch {
	case err == nil:
		r.Proposal, r.Hash = &p, p.Draft.Hash()
		if r.Now, err = d.Rules().Conflicts(s.ctx, p.Draft); err != nil {
			return err
		}
		r.Now = slices.DeleteFunc(listed(r.Now), func(c feedback.Conflict) bool { return c.ID == p.ID })
		if rule, err := d.Rules().Rule(s.ctx, p.ID); err == nil {
			r.Rule = &rule
		} else if !errors.Is(err, heed.ErrNotFound) {
			return err
		}
	default:
		rule, ruleErr := d.rule(s, cmd.ID) // one that was imported has no proposal
		if ruleErr != nil {
			return err
		}
		r.Rule, r.Hash, r.Now = &rule, rule.Draft.Hash(), []feedback.Conflict{}
	}
	return s.answer(r, r.print)
}

func (r *ruleReport) print(p *printer) {
	if r.Proposal != nil {
		printProposal(p, r.Proposal, r.Now)
	}
	if r.Rule == nil {
		p.line("hash: %s", r.Hash)
		return
	}
	if r.Proposal == nil {
		p.heading("%s", show(r.Rule.Text))
	}
	pinned := ""
	if r.Rule.Pinned {
		pinned = ", pinned"
	}
	p.line("rule: %s since %s%s", strings.ToLower(string(r.Rule.Status)), moment(r.Rule.Since), pinned)
	if e := r.Rule.Effect; e.Status != "" {
		p.line("effect: %s, %+.0f %% by %s, certain to %s", e.Status, 100*e.Improvement, e.Basis, percent(certainty(e)))
	}
}

func certainty(e feedback.Effect) float64 {
	if e.Basis == "corrections" {
		return e.Corrections.Certainty
	}
	return e.Recurrence.Certainty
}

func printProposal(p *printer, of *feedback.Proposal, conflicts []feedback.Conflict) {
	p.heading("%s", show(of.Text))
	p.line("proposal: %s, %s, for %s", show(of.ID), strings.ToLower(string(of.Status)), agents(of.Agents))
	if of.Occurrences == 0 {
		p.line("evidence: none")
	} else {
		p.line("evidence: %s by %s, confidence %s: %s", plural(of.Occurrences, "occurrence", "occurrences"),
			plural(of.Reviewers, "reviewer", "reviewers"), share(of.Confidence), show(of.Summary))
	}
	p.line("proposed by: %s; evidence by: %s", people(of.Writers), people(of.Authors))
	p.line("created %s, expires %s", moment(of.Created), moment(of.Expires))
	for _, a := range of.Approvals {
		p.line("approved by %s on %s: %s", show(a.Actor), moment(a.At), show(a.Reason))
	}
	if of.Decider != "" {
		p.line("closed by %s on %s: %s", show(of.Decider), moment(of.Decided), show(of.Reason))
	}
	for _, w := range of.Warnings {
		p.line("warning: %s", show(w))
	}
	for _, conflict := range conflicts {
		p.line("%s with %s: %s", conflict.Kind, show(conflict.ID), show(conflict.Explanation))
	}
}

func people(names []string) string {
	if len(names) == 0 {
		return "nobody"
	}
	return show(strings.Join(names, ", "))
}

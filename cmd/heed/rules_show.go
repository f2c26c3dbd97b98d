package main

import (
	"cmp"
	"slices"
	"strings"

	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/internal/review"
)

type rulesShow struct {
	ID string `arg:"" complete:"proposal or rule" help:"The proposal or rule, or the start of its id."`
}

// A ruleReport is printed.
type ruleReport struct{ review.Report }

// Run shows a proposal or a rule.
func (cmd *rulesShow) Run(s *session) error {
	return withRules(s, func(f *feedback.Service) error {
		r, err := cmd.read(s, f)
		if err != nil {
			return err
		}
		return s.answer(r.Report, r.print)
	})
}

func (cmd *rulesShow) read(s *session, f *feedback.Service) (ruleReport, error) {
	p, err := proposal(s, f, cmd.ID)
	if err == nil {
		report, err := review.OfProposal(s.ctx, f, p)
		return ruleReport{report}, err
	}
	imported, ruleErr := rule(s, f, cmd.ID) // an imported rule has no proposal
	if ruleErr != nil {
		return ruleReport{}, err
	}
	report, err := review.OfRule(s.ctx, f, imported)
	return ruleReport{report}, err
}

// printHistory prints what was done that a proposal does not say by itself.
func (r *ruleReport) printHistory(p *printer) {
	for i := range r.Before {
		before := &r.Before[i]
		who := ""
		if before.Decider != "" {
			who = " by " + show(before.Decider)
		}
		if before.Status == feedback.StatePending {
			continue
		}
		p.line("before it: %s, %s%s on %s: %s", show(before.ID), strings.ToLower(string(before.Status)), who, moment(before.Decided), show(before.Reason))
	}
	for _, entry := range r.History {
		action := strings.TrimPrefix(entry.Action, "feedback.")
		if said := r.Proposal != nil && slices.Contains([]string{"propose", "approve", "reject"}, action); !said {
			what, refused := strings.CutSuffix(action, ".refused")
			if refused {
				what = "refused to " + what
			}
			by := show(cmp.Or(entry.Actor, "heed"))
			p.line("%s, by %s on %s: %s", what, by, moment(entry.At), show(cmp.Or(entry.Details["refusal"], entry.Reason)))
		}
	}
}

func (r *ruleReport) print(p *printer) {
	if r.Proposal != nil {
		printProposal(p, r)
	}
	r.printHistory(p)
	if r.Rule == nil {
		if hash := "hash: " + r.Hash; p.terminal && p.width < len(hash) {
			p.line("hash: %s (the start of it, which --hash takes)", r.Hash[:12])
		} else {
			p.line("%s", hash)
		}
		return
	}
	if r.Proposal == nil {
		p.heading("%s", show(r.Rule.Text))
	}
	pinned := ""
	if r.Rule.Pinned {
		pinned = ", pinned"
	}
	if r.Proposal == nil && r.Rule.Check != (feedback.Check{}) {
		p.line("check: %s", review.CheckWords(r.Rule.Check, show))
	}
	p.line("rule: %s since %s%s", strings.ToLower(string(r.Rule.Status)), moment(r.Rule.Since), pinned)
	if e := r.Rule.Effect; e.Status != "" {
		p.line("effect: %s, %+.0f %% by %s, certain to %s", e.Status, 100*e.Improvement, e.Basis, percent(certainty(e)))
		if c := e.Checks; c.Of > 0 {
			p.line("its check: %d of %s broke it", c.Hits, plural(c.Of, "text", "texts"))
		}
	}
}

func certainty(e feedback.Effect) float64 {
	if e.Basis == "corrections" {
		return e.Corrections.Certainty
	}
	return e.Recurrence.Certainty
}

func printProposal(p *printer, r *ruleReport) {
	of := r.Proposal
	p.heading("%s", show(of.Text))
	p.line("proposal: %s, %s, for %s", show(of.ID), strings.ToLower(string(of.Status)), list(of.Agents, "all"))
	now := review.Parts(&of.Draft, show)
	for _, part := range now[2:] {
		if part.Value != "" {
			p.line("%s: %s", part.Name, part.Value)
		}
	}
	if of.Was != nil {
		for i, was := range review.Parts(of.Was, show) {
			if was.Value != now[i].Value {
				p.line("before it was edited, %s: %s", was.Name, cmp.Or(was.Value, "none"))
			}
		}
	}
	if of.Occurrences == 0 {
		p.line("evidence: none")
	} else {
		p.line("evidence: %s by %s, confidence %s: %s", plural(of.Occurrences, "occurrence", "occurrences"),
			plural(of.Reviewers, "reviewer", "reviewers"), share(of.Confidence), show(of.Summary))
	}
	if of.Change != "" {
		p.line("change: %s %s", strings.ToLower(string(of.Change)), show(cmp.Or(of.Of, "the new rule")))
	}
	p.line("written by: %s; evidence by: %s", list(of.Writers, "nobody"), list(of.Authors, "nobody"))
	p.line("created %s, expires %s", moment(of.Created), moment(of.Expires))
	for _, a := range of.Approvals {
		p.line("approved by %s on %s: %s", show(a.Actor), moment(a.At), show(a.Reason))
	}
	if r.Quorum != nil {
		p.line("approvals: %s", r.Quorum.Words(show))
	}
	if of.Decider != "" {
		p.line("closed by %s on %s: %s", show(of.Decider), moment(of.Decided), show(of.Reason))
	}
	for _, w := range of.Warnings {
		p.line("warning: %s", show(w))
	}
	for _, source := range r.Sources {
		p.line("%s by %s: %s", show(source.ID), show(source.Reviewer), show(strings.TrimSpace(source.Summary+" "+source.Comment)))
	}
	for _, conflict := range r.Now {
		p.line("%s with %s: %s", conflict.Kind, show(conflict.ID), show(conflict.Explanation))
		if conflict.Text != "" {
			p.line("  it says: %s", show(conflict.Text))
		}
	}
}

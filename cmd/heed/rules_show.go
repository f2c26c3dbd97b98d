package main

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/store"
)

type rulesShow struct {
	ID string `arg:"" complete:"proposal or rule" help:"The proposal or rule, or the start of its id."`
}

// A ruleReport is a proposal with the rule that it became.
type ruleReport struct {
	Proposal *feedback.Proposal  `json:"proposal,omitempty"`
	Rule     *feedback.Rule      `json:"rule,omitempty"`
	Hash     string              `json:"hash"`              // of the words that are approved
	Quorum   *quorum             `json:"quorum,omitempty"`  // of a pending proposal
	Sources  []feedback.Feedback `json:"sources,omitempty"` // the evidence that is left
	Now      []feedback.Conflict `json:"conflicts_now"`     // what stands against it now
	Before   []feedback.Proposal `json:"before,omitempty"`  // the proposals that it follows, the latest first
	History  []store.AuditEntry  `json:"history,omitempty"` // who did what to it, the first first
}

// Run shows a proposal or a rule.
func (cmd *rulesShow) Run(s *session) error {
	return withRules(s, func(f *feedback.Service) error {
		r, err := cmd.read(s, f)
		if err == nil {
			err = r.readHistory(s, f)
		}
		if err != nil {
			return err
		}
		return s.answer(r, r.print)
	})
}

func (cmd *rulesShow) read(s *session, f *feedback.Service) (r ruleReport, err error) {
	r.Now = []feedback.Conflict{}
	p, err := proposal(s, f, cmd.ID)
	if err != nil { // an imported rule has no proposal
		imported, ruleErr := rule(s, f, cmd.ID)
		if ruleErr == nil {
			r.Rule, r.Hash = &imported, imported.Draft.Hash()
			return r, nil
		}
		return r, err
	}
	r.Proposal, r.Hash = &p, p.Draft.Hash()
	if p.Status == feedback.StatePending {
		q := quorumOf(&p, f.Config().Gate)
		r.Quorum = &q
	}
	if r.Sources, err = f.Rules().Sources(s.ctx, p.ID); err != nil {
		return r, err
	}
	conflicts, err := f.Rules().Conflicts(s.ctx, p.Draft)
	if err != nil {
		return r, err
	}
	r.Now = append(r.Now, slices.DeleteFunc(conflicts, func(c feedback.Conflict) bool { return c.ID == p.ID })...)
	switch made, err := f.Rules().Rule(s.ctx, p.ID); {
	case err == nil:
		r.Rule = &made
	case !errors.Is(err, heed.ErrNotFound):
		return r, damaged("rule", p.ID, err)
	}
	return r, nil
}

const mostBefore = 20

// readHistory reads what came before, and who did what.
func (r *ruleReport) readHistory(s *session, f *feedback.Service) error {
	id := ""
	if r.Rule != nil {
		id = r.Rule.ID
	}
	if r.Proposal != nil {
		id = r.Proposal.ID
		for previous := r.Proposal.Previous; previous != "" && len(r.Before) < mostBefore; {
			p, err := f.Rules().Proposal(s.ctx, previous)
			switch {
			case errors.Is(err, heed.ErrNotFound):
				previous = "" // the store has dropped it
				continue
			case err != nil:
				return damaged("proposal", previous, err)
			}
			r.Before, previous = append(r.Before, p), p.Previous
		}
	}
	for entry, err := range store.AuditEntries(s.ctx, f.Config().Store, store.AuditQuery{Name: id}) {
		if err != nil {
			return err
		}
		if entry.Subject == id {
			r.History = append(r.History, entry)
		}
	}
	slices.Reverse(r.History)
	return nil
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
			by := cmp.Or(show(entry.Actor), "heed")
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
	if r.Proposal == nil && r.Rule.Check != (feedback.Check{}) {
		p.line("check: %s", checkOf(r.Rule.Check))
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

// A draftPart is a field of a draft, in words. It is empty where it has its default.
type draftPart struct{ name, value string }

// partsOf are all fields of a draft that people approve, but for what it changes: the text and the agents first.
func partsOf(d *feedback.Draft) []draftPart {
	action, kind := "", ""
	if d.Action != feedback.CreateRule {
		action = strings.ToLower(string(d.Action))
	}
	if d.Type != feedback.Guideline {
		kind = strings.ToLower(string(d.Type))
	}
	return []draftPart{
		{"text", show(d.Text)}, {"agents", list(d.Agents, "all")}, {"action", action}, {"type", kind}, {"place", given(d.Place)},
		{"supersedes", list(d.Supersedes, "")}, {"check", checkOf(d.Check)},
	}
}

// given shows a text, if there is one.
func given(text string) string {
	if text == "" {
		return ""
	}
	return show(text)
}

// checkOf says what a check looks for.
func checkOf(c feedback.Check) string {
	where := "answers"
	switch c.Tool {
	case "":
	case "*":
		where = "calls of all tools"
	default:
		where = "calls of " + show(c.Tool)
	}
	switch {
	case c.Forbid != "":
		return where + " must not match " + show(c.Forbid)
	case c.Require != "":
		return where + " must match " + show(c.Require)
	case c.Function != "":
		return where + " must pass the function " + show(c.Function)
	default:
		return ""
	}
}

func printProposal(p *printer, r *ruleReport) {
	of := r.Proposal
	p.heading("%s", show(of.Text))
	p.line("proposal: %s, %s, for %s", show(of.ID), strings.ToLower(string(of.Status)), list(of.Agents, "all"))
	now := partsOf(&of.Draft)
	for _, part := range now[2:] {
		if part.value != "" {
			p.line("%s: %s", part.name, part.value)
		}
	}
	if of.Was != nil {
		for i, was := range partsOf(of.Was) {
			if was.value != now[i].value {
				p.line("before it was edited, %s: %s", was.name, cmp.Or(was.value, "none"))
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
		p.line("change: %s %s", strings.ToLower(string(of.Change)), cmp.Or(show(of.Of), "the new rule"))
	}
	p.line("written by: %s; evidence by: %s", list(of.Writers, "nobody"), list(of.Authors, "nobody"))
	p.line("created %s, expires %s", moment(of.Created), moment(of.Expires))
	for _, a := range of.Approvals {
		p.line("approved by %s on %s: %s", show(a.Actor), moment(a.At), show(a.Reason))
	}
	if r.Quorum != nil {
		p.line("approvals: %s", r.Quorum)
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
	}
}

package web

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/store"
)

// reviews registers the pages of what people decide.
func (h *Handler) reviews() {
	h.show("/inbox", "/inbox", "inbox", h.inbox)
	h.show("/proposal", "/inbox", "proposal", h.proposal)
	h.show("/correction", "/inbox", "correction", h.correction)
	h.show("/rules", "/rules", "rules", h.rules)
	h.show("/rule", "/rules", "rule", h.rule)
	h.decisions()
}

// An inboxData is what waits for people.
type inboxData struct {
	Proposals listing[waiting]
	Ambiguous []view.Disputed
	Unsettled int // ambiguous corrections in all
	Unfit     []feedback.Rule
	Alone     int // corrections that one person alone has made
}

// A waiting is a proposal with what a list says of it.
type waiting struct {
	feedback.Proposal
	Quorum string
	Yours  string // why your approval would not count, or does already; "" it would
}

const mostUnsettled = 50

func (h *Handler) inbox(ctx context.Context, r *http.Request) (_ string, _ any, err error) {
	const title = "Inbox"
	var d inboxData
	v := h.view()
	d.Proposals, err = list(r, func(p view.Page) (view.List[view.Proposal], error) {
		return v.Pending(ctx, p)
	}, func(p view.Proposal) waiting {
		return waiting{p.Proposal, p.Quorum.Words(say), h.yours(&p.Proposal, p.Quorum, personOf(r))}
	})
	if err != nil {
		return title, nil, err
	}
	if d.Ambiguous, d.Unsettled, err = v.Disputes(ctx, mostUnsettled); err != nil {
		return title, nil, err
	}
	if d.Unfit, err = v.Feedback.Rules().List(ctx, feedback.RuleQuery{Unfit: true}); err != nil {
		return title, nil, err
	}
	alone, err := v.Waiting(ctx, "")
	for i := range alone {
		if alone[i].Class != feedback.Ambiguous {
			d.Alone++
		}
	}
	return title, d, err
}

// yours says why a person's approval does not count, or "" if it would.
func (h *Handler) yours(p *feedback.Proposal, q view.Quorum, person string) string {
	me, err := h.cfg.Feedback.Config().Canonical(person)
	mine := func(a feedback.Approval) bool { return a.Actor == me && a.Hash == p.Hash() }
	switch {
	case err != nil:
		return "Your name can't be used for approvals."
	case slices.ContainsFunc(p.Approvals, mine):
		return "You have approved this."
	case slices.Contains(p.Writers, me):
		return "You proposed or edited this, so others approve it."
	case slices.Contains(q.Not, me):
		return "You gave evidence for this. Somebody who did not has to approve it."
	}
	return ""
}

// A proposalData is a proposal with all that a person needs to decide.
type proposalData struct {
	view.Report
	P         feedback.Proposal
	Against   []view.Against // what is against it now
	Quorum    string
	Yours     string
	Pending   bool
	Parts     []view.Part
	Was       []change         // what edits have changed
	Applies   int              // past corrections that it would have applied to
	Opposed   []feedback.Match // the ones among them that may contradict it
	Looked    int
	Successor *feedback.Proposal
	Since     []change // how the successor differs
	Types     []feedback.RuleType
}

// A change is a field of a draft before and after.
type change struct {
	Name   string
	Pieces []stretch
}

// changes compares two drafts, field by field.
func changes(before, after *feedback.Draft) (all []change) {
	was, is := view.Parts(before, say), view.Parts(after, say)
	for i := range was {
		if was[i].Value != is[i].Value {
			pieces := differences(cmp.Or(was[i].Value, "none"), cmp.Or(is[i].Value, "none"))
			all = append(all, change{was[i].Name, pieces})
		}
	}
	return all
}

// further are the fields of a draft without its text that have no default value.
func further(d *feedback.Draft) []view.Part {
	return slices.DeleteFunc(view.Parts(d, say)[1:], func(p view.Part) bool { return p.Value == "" })
}

func (h *Handler) proposal(ctx context.Context, r *http.Request) (string, any, error) {
	const title = "Proposal"
	v := h.view()
	report, err := byID(ctx, r, v.Report)
	if err == nil && report.Proposal == nil {
		err = heed.ErrNotFound
	}
	if err != nil {
		return title, nil, err
	}
	p := *report.Proposal
	d := proposalData{
		Report: report, P: p, Pending: p.Status == feedback.StatePending, Against: report.Now,
		Parts: further(&p.Draft), Types: []feedback.RuleType{
			feedback.Guideline, feedback.Constraint, feedback.PositiveExample, feedback.NegativeExample,
		},
	}
	if q := report.Quorum; q != nil {
		d.Quorum, d.Yours = q.Words(say), h.yours(&p, *q, personOf(r))
	}
	if p.Was != nil {
		d.Was = changes(p.Was, &p.Draft)
	}
	if d.Pending && p.Change == "" {
		if err := d.dryRun(ctx, v.Feedback); err != nil {
			return title, nil, err
		}
	}
	if p.Status == feedback.StateSuperseded {
		if d.Successor, err = successor(ctx, v.Feedback, &p); d.Successor != nil {
			d.Since = changes(&p.Draft, &d.Successor.Draft)
		}
	}
	return title, d, err
}

// dryRun counts the past corrections that the proposal would have applied to.
func (d *proposalData) dryRun(ctx context.Context, f *feedback.Service) error {
	applied, looked, err := f.Rules().DryRun(ctx, d.P.Draft)
	d.Applies, d.Looked = len(applied), looked
	for _, m := range applied {
		if m.Opposed != "" {
			d.Opposed = append(d.Opposed, m)
		}
	}
	return err
}

// successor returns the version that a proposal was edited to, or nil if it is no longer kept.
func successor(ctx context.Context, f *feedback.Service, p *feedback.Proposal) (
	*feedback.Proposal, error,
) {
	all, _, err := f.Rules().Proposals(ctx, feedback.ProposalQuery{}, 0)
	for i := range all {
		if all[i].Previous == p.ID {
			return &all[i], err
		}
	}
	return nil, err
}

// A correctionData is a correction with those that it is compared with.
type correctionData struct {
	feedback.Feedback
	Hash    string // of what is shown
	Open    bool   // it waits for a person
	Other   view.Rival
	About   view.Answer // the answer that it is about, if its agent is the one of the pages
	Similar []feedback.Match
}

const mostSimilar = 10

func (h *Handler) correction(ctx context.Context, r *http.Request) (string, any, error) {
	const title = "Correction"
	v := h.view()
	c, err := byID(ctx, r, v.Feedback.Feedback)
	if err != nil {
		return title, nil, err
	}
	d := correctionData{Feedback: c, Hash: hashOf(c), Open: c.Class == feedback.Ambiguous}
	if d.Other, err = v.Rival(ctx, &c); err != nil {
		return title, nil, err
	}
	if c.Task != "" && c.Agent == h.cfg.Name {
		if d.About, err = v.Answer(ctx, c.Task); err != nil && !errors.Is(err, heed.ErrNotFound) {
			return title, nil, err
		}
	}
	if c.Erased.IsZero() && strings.TrimSpace(c.Summary+c.Comment) != "" {
		if d.Similar, err = v.Feedback.Similar(ctx, c, 0); err != nil {
			return title, nil, err
		}
		itself := func(m feedback.Match) bool { return m.ID == c.ID }
		d.Similar = slices.DeleteFunc(d.Similar, itself)
		d.Similar = d.Similar[:min(len(d.Similar), mostSimilar)]
	}
	return title, d, nil
}

// A rulesData is the list of rules.
type rulesData struct {
	listing[view.Rule]
	State  string
	States []feedback.State
}

func (h *Handler) rules(ctx context.Context, r *http.Request) (_ string, _ any, err error) {
	const title = "Rules"
	d := rulesData{State: r.URL.Query().Get("state"), States: []feedback.State{
		feedback.StateActive, feedback.StateRetired, feedback.StateRevoked, feedback.StateSuperseded,
	}}
	if d.State != "" && !slices.Contains(d.States, feedback.State(d.State)) {
		return title, nil, &heed.InputError{Field: "state", Reason: "is not one of a rule's"}
	}
	v := h.view()
	d.listing, err = list(r, func(p view.Page) (view.List[view.Rule], error) {
		return v.Rules(ctx, view.RuleQuery{Status: d.State}, p)
	}, same)
	return title, d, err
}

// A ruleData is a rule with what became of it.
type ruleData struct {
	view.Report
	Of        feedback.Rule
	Parts     []view.Part
	Active    bool
	Restore   bool // it can be proposed to restore it
	Revocable bool
	Certainty float64 // that its effect is real
}

func (h *Handler) rule(ctx context.Context, r *http.Request) (string, any, error) {
	const title = "Rule"
	report, err := byID(ctx, r, h.view().Report)
	if err == nil && report.Rule == nil {
		err = heed.ErrNotFound
	}
	if err != nil {
		return title, nil, err
	}
	one := *report.Rule
	d := ruleData{
		Report: report, Of: one, Active: one.Status == feedback.StateActive,
		Restore: one.Status == feedback.StateRetired, Parts: further(&one.Draft),
		Certainty: view.Certainty(&one.Effect),
	}
	d.Revocable = d.Active || d.Restore
	return title, d, nil
}

// An auditData is a page of the audit log.
type auditData struct {
	Rows       []store.AuditEntry
	Name       string
	Page       int
	Prev, Next address
}

const mostAudited = 400 // pages

func (h *Handler) audit(ctx context.Context, r *http.Request) (string, any, error) {
	const title = "Audit"
	p, err := partOf(r)
	n := p.Number
	if err != nil || n > mostAudited {
		return title, nil, cmp.Or(err, heed.ErrNotFound)
	}
	d := auditData{Name: r.URL.Query().Get("q"), Page: n, Prev: turn(r, n-1)}
	skip := (n - 1) * perPage
	for entry, err := range store.AuditEntries(ctx, h.cfg.Store, store.AuditQuery{Name: d.Name, Limit: skip + perPage + 1}) {
		if err != nil {
			return title, nil, err
		}
		if skip--; skip < 0 {
			d.Rows = append(d.Rows, entry)
		}
	}
	if len(d.Rows) == 0 && n > 1 {
		return title, nil, heed.ErrNotFound
	}
	if len(d.Rows) > perPage {
		d.Rows, d.Next = d.Rows[:perPage], turn(r, n+1)
	}
	return title, d, nil
}

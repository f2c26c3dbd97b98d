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
	"github.com/heedhq/heed/internal/review"
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
	Ambiguous []disputed
	Unsettled int // ambiguous corrections in all
	Unfit     []feedback.Rule
	Alone     int // corrections that nobody else has made
}

// A waiting is a proposal with what a list says of it.
type waiting struct {
	feedback.Proposal
	Quorum string
	Yours  string // why your approval would not count, or does already; "" it would
}

// A disputed is an ambiguous correction.
type disputed struct {
	feedback.Feedback
	Other rival
}

// A rival is the correction that heed says another one may contradict. Without an ID there is none.
type rival struct{ ID, Text, Kind string }

// rivalOf returns what a correction may contradict.
func rivalOf(ctx context.Context, f *feedback.Service, c feedback.Feedback) (rival, error) {
	id, says := strings.CutPrefix(c.Rationale, "it contradicts ") // "(polarity)" or the like is after it
	if end := strings.LastIndex(id, " ("); says && end > 0 {
		other, err := f.Feedback(ctx, id[:end])
		if !errors.Is(err, heed.ErrNotFound) {
			return rival{other.ID, other.Summary, strings.TrimSuffix(id[end+2:], ")")}, err
		}
	}
	return rival{}, nil
}

const mostUnsettled = 50

func (h *Handler) inbox(ctx context.Context, r *http.Request) (string, any, error) {
	const title = "Inbox"
	f := h.cfg.Feedback
	var d inboxData
	pending, _, err := f.Rules().Proposals(ctx, feedback.ProposalQuery{Status: feedback.StatePending}, 0)
	if err != nil {
		return title, nil, err
	}
	pending = search(r, pending, func(p feedback.Proposal) []string { return append([]string{p.Text, p.ID}, p.Agents...) })
	var all []waiting
	for _, p := range pending {
		q := review.QuorumOf(&p, f.Config().Gate)
		all = append(all, waiting{p, q.Words(say), h.yours(&p, q, personOf(r))})
	}
	if d.Proposals, err = cutOut(r, all); err != nil {
		return title, nil, err
	}
	var ambiguous []feedback.Feedback
	if ambiguous, d.Unsettled, err = f.List(ctx, feedback.Listing{Class: feedback.Ambiguous, Limit: mostUnsettled}); err != nil {
		return title, nil, err
	}
	for _, c := range ambiguous {
		other, err := rivalOf(ctx, f, c)
		if err != nil {
			return title, nil, err
		}
		d.Ambiguous = append(d.Ambiguous, disputed{c, other})
	}
	if d.Unfit, err = f.Rules().List(ctx, feedback.RuleQuery{Unfit: true}); err != nil {
		return title, nil, err
	}
	alone, err := review.Waiting(ctx, f, "", 1000)
	for _, c := range alone {
		if c.Class != feedback.Ambiguous {
			d.Alone++
		}
	}
	return title, d, err
}

// yours says why a person's approval does not count, or nothing if it would.
func (h *Handler) yours(p *feedback.Proposal, q review.Quorum, person string) string {
	me, err := h.cfg.Feedback.Config().Canonical(person)
	switch {
	case err != nil:
		return "Your name can't be used for approvals."
	case slices.ContainsFunc(p.Approvals, func(a feedback.Approval) bool { return a.Actor == me && a.Hash == p.Hash() }):
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
	review.Report
	P         feedback.Proposal
	Against   []review.Against // what stands against it now
	Quorum    string
	Yours     string
	Pending   bool
	Parts     []review.Part
	Was       []change         // what edits have changed
	Applies   int              // past corrections that it would have applied to
	Opposed   []feedback.Match // of them, those that may contradict it
	Looked    int
	Successor *feedback.Proposal
	Since     []change // what the successor says otherwise
	Types     []feedback.RuleType
}

// A change is a field of a draft before and after.
type change struct {
	Name   string
	Pieces []stretch
}

// changes compares two drafts, field by field.
func changes(before, after *feedback.Draft) (all []change) {
	was, is := review.Parts(before, say), review.Parts(after, say)
	for i := range was {
		if was[i].Value != is[i].Value {
			all = append(all, change{was[i].Name, differences(cmp.Or(was[i].Value, "none"), cmp.Or(is[i].Value, "none"))})
		}
	}
	return all
}

func (h *Handler) proposal(ctx context.Context, r *http.Request) (title string, _ any, err error) {
	title = "Proposal"
	f := h.cfg.Feedback
	p, err := byID(ctx, r, f.Rules().Proposal)
	if err != nil {
		return title, nil, err
	}
	d := proposalData{P: p, Pending: p.Status == feedback.StatePending, Types: []feedback.RuleType{
		feedback.Guideline, feedback.Constraint, feedback.PositiveExample, feedback.NegativeExample,
	}}
	if d.Report, err = review.OfProposal(ctx, f, p); err != nil {
		return title, nil, err
	}
	d.Against = d.Now
	if q := d.Report.Quorum; q != nil {
		d.Quorum, d.Yours = q.Words(say), h.yours(&p, *q, personOf(r))
	}
	d.Parts = slices.DeleteFunc(review.Parts(&p.Draft, say)[1:], func(part review.Part) bool { return part.Value == "" })
	if p.Was != nil {
		d.Was = changes(p.Was, &p.Draft)
	}
	if d.Pending && p.Change == "" {
		applied, looked, err := f.Rules().DryRun(ctx, p.Draft)
		if err != nil {
			return title, nil, err
		}
		d.Applies, d.Looked = len(applied), looked
		for _, m := range applied {
			if m.Opposed != "" {
				d.Opposed = append(d.Opposed, m)
			}
		}
	}
	if p.Status == feedback.StateSuperseded {
		d.Successor, err = successor(ctx, f, p)
		if d.Successor != nil {
			d.Since = changes(&p.Draft, &d.Successor.Draft)
		}
	}
	return title, d, err
}

// successor returns the version that a proposal was edited to, or nil if it is not there any more.
func successor(ctx context.Context, f *feedback.Service, p feedback.Proposal) (*feedback.Proposal, error) {
	all, _, err := f.Rules().Proposals(ctx, feedback.ProposalQuery{}, 0)
	for _, next := range all {
		if next.Previous == p.ID {
			return &next, err
		}
	}
	return nil, err
}

// A correctionData is a correction with those that it is compared with.
type correctionData struct {
	feedback.Feedback
	Hash    string // of what is shown
	Open    bool   // it waits for a person
	Other   rival
	About   asked // the answer that it is about, where its agent is the one of the pages
	Similar []feedback.Match
}

const mostSimilar = 10

func (h *Handler) correction(ctx context.Context, r *http.Request) (string, any, error) {
	const title = "Correction"
	f := h.cfg.Feedback
	c, err := byID(ctx, r, f.Feedback)
	if err != nil {
		return title, nil, err
	}
	d := correctionData{Feedback: c, Hash: hashOf(c), Open: c.Class == feedback.Ambiguous}
	if d.Other, err = rivalOf(ctx, f, c); err != nil {
		return title, nil, err
	}
	if c.Task != "" && c.Agent == h.cfg.Name {
		if d.About, err = h.askedOf(ctx, c.Task); err != nil && !errors.Is(err, heed.ErrNotFound) {
			return title, nil, err
		}
	}
	if c.Erased.IsZero() && strings.TrimSpace(c.Summary+c.Comment) != "" {
		if d.Similar, err = f.Similar(ctx, c, 0); err != nil {
			return title, nil, err
		}
		d.Similar = slices.DeleteFunc(d.Similar, func(m feedback.Match) bool { return m.ID == c.ID })
		d.Similar = d.Similar[:min(len(d.Similar), mostSimilar)]
	}
	return title, d, nil
}

// A rulesData is the list of rules.
type rulesData struct {
	listing[feedback.Rule]
	State  string
	States []feedback.State
}

func (h *Handler) rules(ctx context.Context, r *http.Request) (string, any, error) {
	const title = "Rules"
	d := rulesData{States: []feedback.State{feedback.StateActive, feedback.StateRetired, feedback.StateRevoked, feedback.StateSuperseded}}
	d.State = r.URL.Query().Get("state")
	if d.State != "" && !slices.Contains(d.States, feedback.State(d.State)) {
		return title, nil, &heed.InputError{Field: "state", Reason: "is not one of a rule's"}
	}
	all, err := h.cfg.Feedback.Rules().List(ctx, feedback.RuleQuery{Status: feedback.State(d.State)})
	if err != nil {
		return title, nil, err
	}
	all = search(r, all, func(one feedback.Rule) []string { return append([]string{one.Text, one.ID}, one.Agents...) })
	d.listing, err = cutOut(r, all)
	return title, d, err
}

// A ruleData is a rule with what became of it.
type ruleData struct {
	review.Report
	Of        feedback.Rule
	Parts     []review.Part
	Active    bool
	Restore   bool // it can be proposed to restore it
	Revocable bool
	Certainty float64 // that its effect is real
}

func (h *Handler) rule(ctx context.Context, r *http.Request) (string, any, error) {
	const title = "Rule"
	f := h.cfg.Feedback
	one, err := byID(ctx, r, f.Rules().Rule)
	if err != nil {
		return title, nil, err
	}
	d := ruleData{
		Of: one, Active: one.Status == feedback.StateActive, Restore: one.Status == feedback.StateRetired,
		Parts: slices.DeleteFunc(review.Parts(&one.Draft, say)[1:], func(part review.Part) bool { return part.Value == "" }),
	}
	d.Revocable, d.Certainty = d.Active || d.Restore, one.Effect.Recurrence.Certainty
	if one.Effect.Basis == "corrections" {
		d.Certainty = one.Effect.Corrections.Certainty
	}
	p, err := f.Rules().Proposal(ctx, one.ID)
	switch {
	case err == nil:
		d.Report, err = review.OfProposal(ctx, f, p)
	case errors.Is(err, heed.ErrNotFound):
		d.Report, err = review.OfRule(ctx, f, one)
	}
	return title, d, err
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
	n, err := number(r)
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

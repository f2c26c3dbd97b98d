package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/internal/view"
)

// rulesCommands carry what was learned from reviewers through its review.
type rulesCommands struct {
	List    rulesList    `cmd:"" default:"withargs"`
	Show    rulesShow    `cmd:""`
	Approve rulesApprove `cmd:""`
	Reject  rulesReject  `cmd:""`
	Retire  ruleOrder    `cmd:""`
	Revoke  ruleOrder    `cmd:""`
	TakeOut rulesTakeOut `cmd:""`
	Resolve rulesResolve `cmd:""`
	Restore ruleOrder    `cmd:""`
	Pin     ruleOrder    `cmd:""`
	Unpin   ruleOrder    `cmd:""`
}

// withRules calls a function with the rules of the store, and says what to do about a refusal.
func withRules(s *session, do func(*view.Source) error) error {
	return services.with(s, "", func(st *opened, f *feedback.Service) error {
		return refused(do(&view.Source{Store: st.store, Feedback: f, Now: s.now}))
	})
}

// refused says why a gate has refused something, and what to do.
func refused(err error) error {
	why := (*feedback.RefusedError)(nil)
	switch {
	case !errors.As(err, &why):
		return err
	case why.State != "":
		return fmt.Errorf("%s: %s", strings.ToLower(why.Reason), nextOf[strings.ToLower(why.State)])
	case len(why.Conflicts) > 0:
		return fmt.Errorf("%w: retire those, or have it approved with --override", why)
	case why.Err == nil:
		return fmt.Errorf("%w: have somebody else approve it", why)
	}
	return err
}

// nextOf says what to do with a proposal or rule in the wrong state.
var nextOf = map[string]string{
	"edge_case":          "it is not ambiguous, and counts by who agrees with it",
	"generalizable_low":  "it is not ambiguous, and counts by who agrees with it",
	"generalizable_high": "it is not ambiguous, and counts by who agrees with it",
	"archived":           "it is kept out of learning",
	"positive":           "it is an approval",
	"unclassified":       "the next sweep evaluates it",
	"pending":            "close it with heed rules approve or reject",
	"active":             "it is in prompts, and heed rules retire takes it out",
	"retired":            "heed rules restore proposes to bring it back",
	"revoked":            "that is for good, and it has to be proposed anew",
	"superseded":         "another rule has taken its place, which heed rules lists",
	"documented":         "it is written down elsewhere, and in no prompt any more",
	"approved":           "it is a rule now, and heed rules show shows it",
	"rejected":           "that is for good, and it has to be proposed anew",
	"expired":            "nobody has decided in time, and it has to be proposed anew",
}

// stands says why something can't be decided about in its state, before the user is asked.
func stands(what string, now feedback.State, needed ...feedback.State) error {
	if slices.Contains(needed, now) {
		return nil
	}
	state := strings.ToLower(string(now))
	return fmt.Errorf("the %s is %s: %s", what, state, nextOf[state])
}

// proposal finds a proposal by its id, or by the start of the id if no other begins so.
func proposal(s *session, v *view.Source, id string) (one feedback.Proposal, err error) {
	if err := given("proposal or rule", id); err != nil {
		return one, err
	}
	rules := v.Feedback.Rules()
	if one, err = rules.Proposal(s.ctx, id); !errors.Is(err, heed.ErrNotFound) {
		return one, damaged("proposal", id, err)
	}
	all, _, err := rules.Proposals(s.ctx, feedback.ProposalQuery{}, 0)
	if err != nil {
		return one, err
	}
	return pick("proposal", id, all, idOfProposal, seeRules)
}

// rule finds a rule in the same way.
func rule(s *session, v *view.Source, id string) (one feedback.Rule, err error) {
	if err := given("rule", id); err != nil {
		return one, err
	}
	rules := v.Feedback.Rules()
	if one, err = rules.Rule(s.ctx, id); !errors.Is(err, heed.ErrNotFound) {
		return one, damaged("rule", id, err)
	}
	all, err := rules.List(s.ctx, feedback.RuleQuery{})
	if err != nil {
		return one, err
	}
	found, err := pick("rule", id, all, idOfRule, seeRules)
	if err == nil {
		return found, nil
	}
	q := feedback.ProposalQuery{Status: feedback.StatePending}
	pending, _, failure := rules.Proposals(s.ctx, q, 0)
	p, none := pick("proposal", id, pending, idOfProposal, seeRules)
	if failure == nil && none == nil {
		return one, fmt.Errorf("%s is a proposal and no rule yet: decide about it with "+
			"heed rules approve or heed rules reject", show(p.ID))
	}
	return one, err
}

func idOfProposal(p feedback.Proposal) string { return p.ID }

func idOfRule(r feedback.Rule) string { return r.ID }

const seeRules = "heed rules list names them"

// pick returns the one whose id begins with a text.
func pick[T any](what, id string, all []T, idOf func(T) string, see string) (meant T, err error) {
	begun := slices.DeleteFunc(slices.Clone(all), func(one T) bool {
		return id == "" || !strings.HasPrefix(idOf(one), id)
	})
	switch len(begun) {
	case 0:
		return meant, unknown(what, id, texts(all, idOf), see)
	case 1:
		return begun[0], nil
	}
	return meant, fmt.Errorf("%d ids begin with %q: give more of it (%s)", len(begun), id,
		few(texts(begun, idOf)))
}

const (
	unproposed = "waiting" // the status of corrections without a proposal
	ambiguous  = string(feedback.Ambiguous)
)

// statuses are the statuses of proposals, rules and corrections.
var statuses = []string{
	"pending", "active", "retired", "revoked", "superseded", "rejected", "expired", "documented",
	unproposed, ambiguous,
}

type rulesList struct {
	Status string `complete:"status" placeholder:"STATUS"`
	Agent  string `placeholder:"NAME"`
}

// Run lists proposals and rules, or corrections that are in no proposal.
func (cmd *rulesList) Run(s *session) error {
	cmd.Status = strings.ToLower(cmd.Status)
	if cmd.Status != "" && !slices.Contains(statuses, cmd.Status) {
		return &usageError{fmt.Sprintf("there is no status %q: it is one of %s", cmd.Status,
			strings.Join(statuses, ", "))}
	}
	var all []view.Rule
	var note string
	what, print := "rules or proposals", printRules
	alone := cmd.Status == unproposed || cmd.Status == ambiguous
	if alone {
		what, print = "corrections", printCorrections
	}
	err := withRules(s, func(v *view.Source) (err error) {
		var corrections []view.Rule
		if alone || cmd.Status == "" {
			if corrections, err = cmd.corrections(s, v); err != nil {
				return err
			}
		}
		if !alone {
			note = outside(corrections)
			all, err = cmd.read(s, v)
			return err
		}
		for _, r := range corrections {
			if r.Status == ambiguous || cmd.Status == unproposed {
				all = append(all, r)
			}
			if r.Status == ambiguous {
				note = "To decide about one that is ambiguous: heed rules resolve ID --as archived " +
					"(or edge_case, generalizable_low)"
			}
		}
		return nil
	})
	flags := []string{"status", cmp.Or(cmd.Status, "pending or active"), "agent", cmd.Agent}
	return answerList(s, all, err, what, flags, print, note)
}

// outside says how many corrections are in no proposal, and which of them a person has to decide
// about.
func outside(corrections []view.Rule) string {
	open := 0
	for _, c := range corrections {
		if c.Status == ambiguous {
			open++
		}
	}
	var notes []string
	if open > 0 {
		notes = append(notes, plural(open, "correction may contradict", "corrections may contradict")+
			" another, and a person decides: heed rules list --status "+ambiguous)
	}
	if n := len(corrections) - open; n > 0 {
		notes = append(notes, plural(n, "correction waits", "corrections wait")+
			" for others that say the same: heed rules list --status "+unproposed)
	}
	return strings.Join(notes, "\n")
}

// corrections returns the corrections that are in no proposal, the newest first.
func (cmd *rulesList) corrections(s *session, v *view.Source) (all []view.Rule, err error) {
	found, err := v.Waiting(s.ctx, cmd.Agent)
	for i := range found {
		c := &found[i]
		status := unproposed
		if c.Class == feedback.Ambiguous {
			status = ambiguous
		}
		all = append(all, view.Rule{
			ID: c.ID, Status: status, Since: c.At, Agents: []string{c.Agent}, Text: view.Said(c),
			Decider: c.Reviewer, Reason: c.Rationale,
		})
	}
	return all, err
}

// read returns the proposals and rules of the status: pending and active ones without it.
func (cmd *rulesList) read(s *session, v *view.Source) ([]view.Rule, error) {
	q := view.RuleQuery{Agent: cmd.Agent, Status: cmp.Or(cmd.Status, "pending")}
	latest := view.Page{Number: 1}
	proposals, err := v.Proposals(s.ctx, q, latest)
	if err != nil {
		return nil, err
	}
	q.Status = cmp.Or(cmd.Status, "active")
	rules, err := v.Rules(s.ctx, q, latest)
	return slices.Concat(proposals.Items, rules.Items), err
}

func printRules(p *printer, all []view.Rule) {
	closed := slices.ContainsFunc(all, func(r view.Rule) bool { return r.Reason != "" })
	columns := []string{"id", "status", "~rule", "?~agents", "?>effect", "?since"}
	if closed {
		columns = append(columns, "?~by", "&~why")
	}
	t := newTable(columns...)
	for _, r := range all {
		effect, status := "-", r.Status
		if r.Effect != "" {
			effect = fmt.Sprintf("%+.0f %%", 100*r.Improved)
		}
		if r.Pinned {
			status += ", pinned"
		}
		if r.Quorum > 0 {
			status += ", " + count(r.Approvals) + " of " + count(r.Quorum)
		}
		cells := []string{
			show(r.ID), status, show(r.Text), list(r.Agents, "all"), effect, moment(r.Since),
		}
		if closed {
			cells = append(cells, show(cmp.Or(r.Decider, "heed")), show(r.Reason))
		}
		t.add(cells...)
	}
	t.print(p)
}

// printCorrections prints corrections that are in no proposal.
func printCorrections(p *printer, all []view.Rule) {
	t := newTable("id", "?status", "~correction", "~why", "?~by", "?~agents", "?since")
	for _, r := range all {
		t.add(show(r.ID), r.Status, show(r.Text), show(cmp.Or(r.Reason, "-")), show(r.Decider),
			list(r.Agents, "all"), moment(r.Since))
	}
	t.print(p)
}

type rulesShow struct {
	ID string `arg:"" complete:"proposal or rule"`
}

// Run shows a proposal or a rule.
func (cmd *rulesShow) Run(s *session) error {
	return withRules(s, func(v *view.Source) error {
		id := ""
		if p, err := proposal(s, v, cmd.ID); err == nil {
			id = p.ID
		} else if r, none := rule(s, v, cmd.ID); none == nil {
			id = r.ID // an imported rule has no proposal
		} else {
			return err
		}
		r, err := v.Report(s.ctx, id)
		if err != nil {
			return err
		}
		return s.answer(r, func(p *printer) { printReport(p, &r) })
	})
}

// printEvents prints what was done that a proposal does not say by itself.
func printEvents(p *printer, r *view.Report) {
	for i := range r.Before {
		before := &r.Before[i]
		who := ""
		if before.Decider != "" {
			who = " by " + show(before.Decider)
		}
		if before.Status == feedback.StatePending {
			continue
		}
		p.line("before it: %s, %s%s on %s: %s", show(before.ID),
			strings.ToLower(string(before.Status)), who, moment(before.Decided), show(before.Reason))
	}
	for _, entry := range r.History {
		action := strings.TrimPrefix(entry.Action, "feedback.")
		if r.Proposal != nil && slices.Contains([]string{"propose", "approve", "reject"}, action) {
			continue
		}
		what, refused := strings.CutSuffix(action, ".refused")
		if refused {
			what = "refused to " + what
		}
		p.line("%s, by %s on %s: %s", what, show(cmp.Or(entry.Actor, "heed")), moment(entry.At),
			show(cmp.Or(entry.Details["refusal"], entry.Reason)))
	}
}

func printReport(p *printer, r *view.Report) {
	if r.Proposal != nil {
		printProposal(p, r)
	}
	printEvents(p, r)
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
		if check := view.CheckWords(r.Rule.Check, show); check != "" {
			p.line("check: %s", check)
		}
	}
	pinned := ""
	if r.Rule.Pinned {
		pinned = ", pinned"
	}
	status := strings.ToLower(string(r.Rule.Status))
	p.line("rule: %s since %s%s", status, moment(r.Rule.Since), pinned)
	if e := r.Rule.Effect; e.Status != "" {
		p.line("effect: %s, %+.0f %% by %s, certain to %s", e.Status, 100*e.Improvement, e.Basis,
			percent(view.Certainty(&e)))
		if c := e.Checks; c.Of > 0 {
			p.line("its check: %d of %s broke it", c.Hits, plural(c.Of, "text", "texts"))
		}
	}
}

func printProposal(p *printer, r *view.Report) {
	of := r.Proposal
	p.heading("%s", show(of.Text))
	p.line("proposal: %s, %s, for %s", show(of.ID), strings.ToLower(string(of.Status)),
		list(of.Agents, "all"))
	now := view.Parts(&of.Draft, show)
	for _, part := range now[2:] {
		if part.Value != "" {
			p.line("%s: %s", part.Name, part.Value)
		}
	}
	if of.Was != nil {
		for i, was := range view.Parts(of.Was, show) {
			if was.Value != now[i].Value {
				p.line("before it was edited, %s: %s", was.Name, cmp.Or(was.Value, "none"))
			}
		}
	}
	if of.Occurrences == 0 {
		p.line("evidence: none")
	} else {
		p.line("evidence: %s by %s, confidence %s: %s",
			plural(of.Occurrences, "occurrence", "occurrences"),
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
	for i := range r.Sources {
		source := &r.Sources[i]
		p.line("%s by %s: %s", show(source.ID), show(source.Reviewer), show(view.Said(source)))
	}
	for _, conflict := range r.Now {
		p.line("%s with %s: %s", conflict.Kind, show(conflict.ID), show(conflict.Explanation))
		if conflict.Text != "" {
			p.line("  it says: %s", show(conflict.Text))
		}
	}
}

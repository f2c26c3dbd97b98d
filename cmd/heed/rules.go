package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

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
	Near    rulesNear    `cmd:""`
	Join    rulesJoin    `cmd:""`
	Split   rulesSplit   `cmd:""`
	Restore ruleOrder    `cmd:""`
	Pin     ruleOrder    `cmd:""`
	Unpin   ruleOrder    `cmd:""`
}

// withRules calls a function with the rules of the store, and says what to do about a refusal.
func withRules(s *session, do func(*view.Source) error) error {
	return services.with(s, "", func(v *view.Source) error {
		names, err := modules.names(s.ctx, v.Store)
		if err == nil && len(names) == 1 { // the heuristics that rules govern
			_, err = modules.open(s.ctx, v, names[0])
		}
		if err != nil {
			return err
		}
		return refused(do(v))
	})
}

// refused says why a gate has refused something, and what to do.
func refused(err error) error {
	why := (*feedback.RefusedError)(nil)
	switch {
	case !errors.As(err, &why):
		return err
	case why.State != "":
		return fmt.Errorf("%s: %s", strings.ToLower(why.Reason), nextOf[lower(why.State)])
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
	return fmt.Errorf("the %s is %s: %s", what, lower(now), nextOf[lower(now)])
}

// proposal finds a proposal by its id, or by the start of the id if no other begins so.
func proposal(s *session, v *view.Source, id string) (feedback.Proposal, error) {
	rules := v.Feedback.Rules()
	return found("proposal", id, seeRules,
		func(id string) (feedback.Proposal, error) { return rules.Proposal(s.ctx, id) },
		func() ([]feedback.Proposal, error) {
			all, _, err := rules.Proposals(s.ctx, feedback.ProposalQuery{}, 0)
			return all, err
		},
		func(p feedback.Proposal) string { return p.ID })
}

// rule finds a rule in the same way.
func rule(s *session, v *view.Source, id string) (feedback.Rule, error) {
	rules := v.Feedback.Rules()
	one, err := found("rule", id, seeRules,
		func(id string) (feedback.Rule, error) { return rules.Rule(s.ctx, id) },
		func() ([]feedback.Rule, error) { return rules.List(s.ctx, feedback.RuleQuery{}) },
		func(r feedback.Rule) string { return r.ID })
	if err == nil {
		return one, nil
	}
	if p, none := proposal(s, v, id); none == nil && p.Status == feedback.StatePending {
		err = fmt.Errorf("%s is a proposal and no rule yet: decide about it with "+
			"heed rules approve or heed rules reject", show(p.ID))
	}
	return one, err
}

const seeRules = "heed rules list names them"

const (
	unproposed = "waiting"    // the status of corrections without a proposal
	unanswered = "unanswered" // of corrections that the evaluator gave no usable answer to
	ambiguous  = string("ambiguous")
)

// statuses are the statuses of proposals, rules and corrections, with the empty one.
const statuses = ",pending,active,retired,revoked,superseded,rejected,expired,documented," +
	unproposed + "," + unanswered + "," + ambiguous

type rulesList struct {
	Status string `default:"" enum:"${statuses}" placeholder:"STATUS"`
	Agent  string `placeholder:"NAME"`
}

// Run lists proposals and rules, or corrections that are in no proposal.
func (cmd *rulesList) Run(s *session) error {
	var all []view.Rule
	open := 0 // ambiguous corrections
	what, print := "rules or proposals", printRules
	if cmd.Status == unproposed || cmd.Status == unanswered || cmd.Status == ambiguous {
		what, print = "corrections", printCorrections
	}
	err := withRules(s, func(v *view.Source) (err error) {
		switch cmd.Status {
		case unproposed, unanswered, ambiguous:
			all, err = cmd.corrections(s, v)
			return err
		case "":
			_, open, err = v.Feedback.List(s.ctx,
				feedback.Listing{Agent: cmd.Agent, Class: "ambiguous", Limit: 1})
		}
		if err == nil {
			all, err = cmd.read(s, v)
		}
		return err
	})
	flags := []string{"status", cmp.Or(cmd.Status, "pending or active"), "agent", cmd.Agent}
	err = answerList(s, all, err, what, flags, print)
	switch {
	case err != nil || s.JSON:
	case cmd.Status == ambiguous && len(all) > 0:
		s.out.note("To decide about one that is ambiguous: heed rules resolve ID --as archived " +
			"(or edge_case, generalizable_low)")
	case open > 0:
		s.out.note(plural(open, "correction may contradict", "corrections may contradict") +
			" another, and a person decides: heed rules list --status " + plain(ambiguous))
	}
	return err
}

// corrections returns the corrections that are in no proposal, the newest first.
func (cmd *rulesList) corrections(s *session, v *view.Source) (all []view.Rule, err error) {
	found, err := v.Waiting(s.ctx, cmd.Agent)
	for i := range found {
		c := &found[i]
		status, reason := unproposed, c.Rationale
		switch c.Class {
		case "ambiguous":
			status = ambiguous
		case "":
			status, reason = unanswered, c.Unanswered.Reason
		}
		if cmd.Status == unproposed || cmd.Status == status {
			all = append(all, view.Rule{
				ID: c.ID, Status: status, Since: c.At, Agents: []string{c.Agent}, Text: view.Said(c),
				Decider: c.Reviewer, Reason: reason,
			})
		}
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
	columns := []string{"id", "status", "~rule", "?~agents", "?>effect", "?since", "?~by", "?~why"}
	closed := slices.ContainsFunc(all, func(r view.Rule) bool { return r.Reason != "" })
	if !closed {
		columns = columns[:6]
	}
	t := newTable(columns...)
	for _, r := range all {
		effect, status := plain("-"), say("%v", r.Status)
		if r.Effect != "" {
			effect = plain(fmt.Sprintf("%+.0f %%", 100*r.Improved))
		}
		if r.Pinned {
			status += ", pinned"
		}
		if r.Quorum > 0 {
			status += say(", %v of %v", r.Approvals, r.Quorum)
		}
		cells := []any{r.ID, status, r.Text, list(r.Agents, "all"), effect, r.Since,
			or(r.Decider, "heed"), r.Reason}
		t.add(cells[:len(columns)]...)
	}
	t.print(p)
}

// printCorrections prints corrections that are in no proposal.
func printCorrections(p *printer, all []view.Rule) {
	t := newTable("id", "?status", "~correction", "~why", "?~by", "?~agents", "?since")
	for _, r := range all {
		t.add(r.ID, r.Status, r.Text, or(r.Reason, "-"), r.Decider, list(r.Agents, "all"), r.Since)
	}
	t.print(p)
}

type rulesShow struct {
	ID string `arg:""`
}

// Run shows a proposal or a rule.
func (cmd *rulesShow) Run(s *session) error {
	return withRules(s, func(v *view.Source) error {
		p, err := proposal(s, v, cmd.ID)
		id := p.ID
		if err != nil {
			r, none := rule(s, v, cmd.ID) // an imported rule has no proposal
			if none != nil {
				return err
			}
			id = r.ID
		}
		r, err := v.Report(s.ctx, id)
		if err != nil {
			return err
		}
		return s.answer(r, func(p *printer) { printReport(p, &r) })
	})
}

func lower[T ~string](state T) string { return strings.ToLower(string(state)) }

// printEvents prints what was done that a proposal does not say by itself.
func printEvents(p *printer, r *view.Report) {
	for i := range r.Before {
		before := &r.Before[i]
		who := plain("")
		if before.Decider != "" {
			who = say(" by %v", before.Decider)
		}
		if before.Status != feedback.StatePending {
			p.line("before it: %v, %v%v on %v: %v", before.ID, lower(before.Status), who,
				before.Decided, before.Reason)
		}
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
		p.line("%v, by %v on %v: %v", what, or(entry.Actor, "heed"), entry.At,
			cmp.Or(entry.Details["refusal"], entry.Reason))
	}
}

func printReport(p *printer, r *view.Report) {
	if r.Proposal != nil {
		printProposal(p, r)
	}
	printEvents(p, r)
	if r.Rule == nil {
		if hash := "hash: " + r.Hash; p.terminal && p.width < len(hash) {
			p.line("hash: %v (the start of it, which --hash takes)", r.Hash[:12])
		} else {
			p.line("%v", hash)
		}
		return
	}
	if r.Proposal == nil {
		p.heading("%v", r.Rule.Text)
		if check := view.CheckWords(r.Rule.Check, show); check != "" {
			p.line("check: %v", plain(check))
		}
	}
	pinned := plain("")
	if r.Rule.Pinned {
		pinned = ", pinned"
	}
	p.line("rule: %v since %v%v", lower(r.Rule.Status), r.Rule.Since, pinned)
	if e := r.Rule.Effect; e.Status != "" {
		p.line("effect: %v, %v by %v, certain to %v", e.Status,
			plain(fmt.Sprintf("%+.0f %%", 100*e.Improvement)), e.Basis, percent(view.Certainty(&e)))
		if c := e.Checks; c.Of > 0 {
			p.line("its check: %v of %v broke it", c.Hits, plural(c.Of, "text", "texts"))
		}
	}
}

func printProposal(p *printer, r *view.Report) {
	of := r.Proposal
	p.heading("%v", of.Text)
	p.line("proposal: %v, %v, for %v", of.ID, lower(of.Status), list(of.Agents, "all"))
	now := view.Parts(&of.Draft, show)
	for _, part := range now[2:] {
		if part.Value != "" {
			p.line("%v: %v", part.Name, plain(part.Value))
		}
	}
	if of.Was != nil {
		for i, was := range view.Parts(of.Was, show) {
			if was.Value != now[i].Value {
				p.line("before it was edited, %v: %v", was.Name, plain(cmp.Or(was.Value, "none")))
			}
		}
	}
	if of.Occurrences == 0 {
		p.line("evidence: none")
	} else {
		p.line("evidence: %v by %v, confidence %v: %v",
			plural(of.Occurrences, "occurrence", "occurrences"),
			plural(of.Reviewers, "reviewer", "reviewers"), of.Confidence, of.Summary)
	}
	if of.Change != "" {
		p.line("change: %v %v", lower(of.Change), cmp.Or(of.Of, "the new rule"))
	}
	p.line("written by: %v; evidence by: %v", list(of.Writers, "nobody"), list(of.Authors, "nobody"))
	p.line("created %v, expires %v", of.Created, of.Expires)
	for _, a := range of.Approvals {
		p.line("approved by %v on %v: %v", a.Actor, a.At, a.Reason)
	}
	if r.Quorum != nil {
		p.line("approvals: %v", show(r.Quorum.String()))
	}
	if of.Decider != "" {
		p.line("closed by %v on %v: %v", of.Decider, of.Decided, of.Reason)
	}
	for _, w := range of.Warnings {
		p.line("warning: %v", w)
	}
	for i := range r.Sources {
		source := &r.Sources[i]
		p.line("%v by %v: %v", source.ID, source.Reviewer, view.Said(source))
	}
	for _, h := range r.Reaches {
		p.line("heuristic %v: %v: %v", h.ID, h.Action,
			cmp.Or(h.Reason, "may break it, and --withhold keeps it from answering by itself"))
	}
	for _, conflict := range r.Now {
		p.line("%v with %v: %v", conflict.Kind, conflict.ID, conflict.Explanation)
		if conflict.Text != "" {
			p.line("  it says: %v", conflict.Text)
		}
	}
}

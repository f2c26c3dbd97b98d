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
	Resolve rulesResolve `cmd:""`
}

// withRules calls a function with the rules of the store, and explains what to do about a refusal.
func withRules(s *session, do func(*view.Source) error) error {
	return services.with(s, "", func(v *view.Source) error {
		if _, err := modules.one(s, v, ""); err != nil { // the heuristics that rules govern
			v.Learning = nil
		}
		return refused(do(v))
	})
}

// refused explains why a gate refused a decision, and what to do.
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

// nextOf explains what to do with a proposal or rule in the wrong state.
var nextOf = map[string]string{
	"edge_case":          "it is not ambiguous, and counts by who agrees with it",
	"generalizable_low":  "it is not ambiguous, and counts by who agrees with it",
	"generalizable_high": "it is not ambiguous, and counts by who agrees with it",
	"archived":           "it is kept out of learning",
	"positive":           "it is an approval",
	"unclassified":       "the next sweep evaluates it",
	"pending":            "close it with heed rules approve or reject",
	"active":             "it is in prompts, and heed rules retire takes it out",
	"retired":            "the pages of heed serve propose to restore it",
	"revoked":            "that is for good, and it has to be proposed again",
	"superseded":         "another rule has taken its place, which heed rules lists",
	"documented":         "it is written down elsewhere, and in no prompt any more",
	"approved":           "it is a rule now, and heed rules show shows it",
	"rejected":           "that is for good, and it has to be proposed again",
	"expired":            "it was not decided in time, and it has to be proposed again",
}

// stands explains why a proposal or rule can't be decided about in its state, before the user is
// asked.
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
	ambiguous  = string(feedback.Ambiguous)
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
	waiting := map[string]int{} // corrections without a proposal, by status
	what, name := "rules or proposals", "rules"
	if cmd.Status == unproposed || cmd.Status == unanswered || cmd.Status == ambiguous {
		what, name = "corrections", "corrections"
	}
	err := withRules(s, func(v *view.Source) (err error) {
		switch cmd.Status {
		case unproposed, unanswered, ambiguous:
			all, err = cmd.corrections(s, v)
			return err
		case "":
			var corrections []view.Rule
			corrections, err = cmd.corrections(s, v)
			for i := range corrections {
				waiting[corrections[i].Status]++
			}
		}
		if err == nil {
			all, err = cmd.read(s, v)
		}
		return err
	})
	err = answerList(s, all, err, what, name, "status", cmp.Or(cmd.Status, "pending or active"),
		"agent", cmd.Agent)
	switch {
	case err != nil || s.JSON:
	case cmd.Status == ambiguous && len(all) > 0:
		s.out.line("\nTo decide about one that is ambiguous: heed rules resolve ID --as archived " +
			"(or edge_case, generalizable_low)")
	case cmd.Status == "":
		s.waits(all, waiting)
	}
	return err
}

// waits prints what waits, and for whom.
func (s *session) waits(all []view.Rule, corrections map[string]int) {
	began := false
	tell := func(format string, args ...any) {
		if !began {
			began, format = true, "\n"+format
		}
		s.out.line(format, args...)
	}
	for i := range all {
		if r := &all[i]; r.Missing != "" {
			tell("%v waits for approval: %v", r.ID, r.Missing)
		}
	}
	for _, of := range [...][2]string{
		{ambiguous, "for a person, because of what may be a contradiction"},
		{unanswered, "for an answer of the evaluator that can be used"},
		{unproposed, "for others that say the same"},
	} {
		if n := corrections[of[0]]; n > 0 {
			tell("%v %v: heed rules list --status %v",
				plural(n, "correction waits", "corrections wait"), plain(of[1]), plain(of[0]))
		}
	}
}

// corrections returns the corrections that are in no proposal, the newest first.
func (cmd *rulesList) corrections(s *session, v *view.Source) (all []view.Rule, err error) {
	found, err := v.Waiting(s.ctx, cmd.Agent)
	for i := range found {
		c := &found[i]
		status, reason := unproposed, c.Rationale
		if c.Class == feedback.Ambiguous {
			status = ambiguous
		} else if c.Class == "" {
			status, reason = unanswered, c.Unanswered.Reason
		}
		if cmd.Status == "" || cmd.Status == unproposed || cmd.Status == status {
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
		return s.answer(&r, "rule")
	})
}

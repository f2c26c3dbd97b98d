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
}

// withRules calls a function with the rules of the store, and explains what to do about a refusal.
func withRules(s *session, do func(*view.Source) error) error {
	return services.with(s, func(v *view.Source) error {
		if err := modules.some(s, v); err != nil { // the heuristics that rules govern
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
		return fmt.Errorf("%s: %s", strings.ToLower(why.Reason),
			view.NextOf[feedback.State(strings.ToUpper(why.State))])
	case len(why.Conflicts) > 0:
		return fmt.Errorf("%w: retire those, or have it approved with --override", why)
	case why.Err == nil:
		return fmt.Errorf("%w: have somebody else approve it", why)
	}
	return err
}

// proposal finds a proposal by its id.
func proposal(s *session, v *view.Source, id string) (feedback.Proposal, error) {
	return found("proposal", id, seeRules,
		func(id string) (feedback.Proposal, error) { return v.Feedback.Rules().Proposal(s.ctx, id) })
}

// rule finds a rule by its id.
func rule(s *session, v *view.Source, id string) (feedback.Rule, error) {
	one, err := found("rule", id, seeRules,
		func(id string) (feedback.Rule, error) { return v.Feedback.Rules().Rule(s.ctx, id) })
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

// statuses are the statuses of proposals and rules, with the empty one.
const statuses = ",pending,active,retired,revoked,superseded,rejected,expired,documented"

type rulesList struct {
	Status string `default:"" enum:"${statuses}" placeholder:"STATUS"`
}

// Run lists the proposals and rules of a status: pending and active ones without it.
func (cmd *rulesList) Run(s *session) error {
	read := func(v *view.Source) ([]view.Rule, error) {
		proposals, err := v.Proposals(s.ctx,
			view.RuleQuery{Agent: s.Agent, Status: cmp.Or(cmd.Status, "pending")})
		if err != nil {
			return nil, err
		}
		rules, err := v.Rules(s.ctx,
			view.RuleQuery{Agent: s.Agent, Status: cmp.Or(cmd.Status, "active")})
		return slices.Concat(proposals.Items, rules.Items), err
	}
	return listed(s, withRules, "rules or proposals", "rules", read)
}

type rulesShow struct {
	ID string `arg:""`
}

// Run shows a proposal or a rule.
func (cmd *rulesShow) Run(s *session) error {
	return withRules(s, func(v *view.Source) error {
		r, err := found("proposal", cmd.ID, seeRules,
			func(id string) (view.Report, error) { return v.Report(s.ctx, id) })
		if err != nil {
			return err
		}
		return s.answer(&r, "rule")
	})
}

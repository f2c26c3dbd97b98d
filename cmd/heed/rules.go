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

// notIn returns the error about a proposal or a rule whose state does not allow the action.
func notIn(id string, state feedback.State) error {
	return fmt.Errorf("%s is %s: %s", show(id), lower(state), view.NextOf[state])
}

const seeRules = "heed rules list names them"

type rulesList struct{ view.RuleQuery }

// Run lists the proposals and rules of a status: pending and active ones without it.
func (cmd *rulesList) Run(s *session) error {
	read := func(v *view.Source) ([]view.Rule, error) {
		pending := view.RuleQuery{Agent: s.Agent, Status: cmp.Or(cmd.Status, "pending")}
		all, err := v.Proposals(s.ctx, pending)
		active := view.RuleQuery{Agent: s.Agent, Status: cmp.Or(cmd.Status, "active")}
		rules, failure := v.Rules(s.ctx, active)
		all.Items = append(all.Items, rules.Items...)
		all.Damaged = append(all.Damaged, rules.Damaged...)
		return items(all, cmp.Or(err, failure))
	}
	return listed(s, withRules, "rules or proposals", "rules", read)
}

type rulesShow struct {
	ID string `arg:""`
}

// Run shows a proposal or a rule.
func (cmd *rulesShow) Run(s *session) error {
	return showOne(s, withRules, "rule", func(v *view.Source) (view.Report, error) {
		return found("proposal", cmd.ID, seeRules,
			func(id string) (view.Report, error) { return v.Report(s.ctx, id) })
	})
}

// A ruleDecision is what every decision about a proposal or a rule takes.
type ruleDecision struct {
	ID string `arg:""`
	change
}

type rulesApprove struct {
	ruleDecision
	Hash     string   `required:"" placeholder:"HASH"`
	Override []string `placeholder:"ID"`
	Withhold []string `placeholder:"ID"`
}

// Run approves a proposal.
func (cmd *rulesApprove) Run(s *session) error {
	return cmd.review(s, "approves", feedback.Review{Decision: feedback.Approved, Hash: cmd.Hash,
		Override: cmd.Override, Withhold: cmd.Withhold})
}

type rulesReject struct{ ruleDecision }

// Run rejects a proposal.
func (cmd *rulesReject) Run(s *session) error {
	return cmd.review(s, "rejects", feedback.Review{Decision: feedback.Rejected})
}

// review makes a review of the proposal, if that is confirmed. The start of the hash is enough.
func (cmd *ruleDecision) review(s *session, verb string, vote feedback.Review) error {
	return withRules(s, func(v *view.Source) error {
		rules := v.Feedback.Rules()
		p, err := found("proposal", cmd.ID, seeRules,
			func(id string) (feedback.Proposal, error) { return rules.Proposal(s.ctx, id) })
		if err == nil && p.Status != feedback.StatePending {
			err = notIn(p.ID, p.Status)
		}
		if err != nil {
			return err
		}
		if hash := p.Draft.Hash(); vote.Decision == feedback.Approved {
			if len(vote.Hash) < 8 || !strings.HasPrefix(hash, vote.Hash) {
				return fmt.Errorf("the words do not match the hash %s: see heed rules show %s", vote.Hash,
					p.ID)
			}
			vote.Hash = hash
			if err := cmd.foresee(s, v, &p, vote.Override); err != nil {
				return err
			}
		}
		if p.Change != "" {
			verb += " to " + lower(p.Change)
		}
		words := say("This %v %q for %v", verb, show(p.Text), list(p.Agents, "all"))
		if check := view.CheckWords(p.Check, show); check != "" {
			words += plain(", with a check: " + check)
		}
		if err := cmd.confirm(s, "%v", words); err != nil {
			return err
		}
		vote.Proposal, vote.Actor, vote.Reason = p.ID, cmd.Actor, cmd.Reason
		after, err := rules.Review(s.ctx, vote)
		if err != nil {
			return err
		}
		return s.answer(after, "reviewed")
	})
}

// foresee returns why an approval would be refused, if it is not made yet.
func (cmd *ruleDecision) foresee(
	s *session, v *view.Source, p *feedback.Proposal, override []string,
) error {
	if cmd.Yes {
		return nil
	}
	who := actor(cmd.Actor)
	if why := view.Yours(p, who); why != "" {
		return fmt.Errorf("an approval by %s would not count: %s", show(who), why)
	}
	found, err := v.Feedback.Rules().Conflicts(s.ctx, p.Draft)
	silent := p.Of != "" && p.Change != "RESTORE" // it puts no words into prompts
	found = slices.DeleteFunc(found, func(c feedback.Conflict) bool {
		return silent || c.Kind != "contradiction" || c.Pending || c.Correction ||
			slices.Contains(override, c.ID)
	})
	if err != nil || len(found) == 0 {
		return err
	}
	ids := texts(found, func(c feedback.Conflict) string { return show(c.ID) })
	return &feedback.RefusedError{Conflicts: found,
		Reason: "an approval would not count: it contradicts active rules: " + strings.Join(ids, ", ")}
}

// A ruleOrder takes a rule out of prompts, as the command is named. One person is enough.
type ruleOrder struct{ ruleDecision }

// Run retires or revokes a rule, if that is confirmed.
func (cmd *ruleOrder) Run(s *session) error {
	asks, to, done := "This retires %q for %v", feedback.StateRetired, "Retired."
	if s.command == "revoke" {
		asks, to, done = "This revokes %q for %v, for good", feedback.StateRevoked, "Revoked."
	}
	return withRules(s, func(v *view.Source) error {
		rules := v.Feedback.Rules()
		r, err := found("rule", cmd.ID, seeRules,
			func(id string) (feedback.Rule, error) { return rules.Rule(s.ctx, id) })
		moves := r.Status == feedback.StateActive ||
			to == feedback.StateRevoked && r.Status == feedback.StateRetired
		switch {
		case err != nil:
		case moves, cmd.Yes && r.Status == to: // somebody may repeat a call whose answer got lost
			err = cmd.confirm(s, asks, show(r.Text), list(r.Agents, "all"))
		default:
			err = notIn(r.ID, r.Status)
		}
		if err != nil {
			return err
		}
		after, err := rules.Move(s.ctx,
			feedback.Act{ID: r.ID, Actor: cmd.Actor, Reason: cmd.Reason}, to)
		if err != nil {
			return err
		}
		return s.told(after, "%v It is in no prompt that is built from now on.", plain(done))
	})
}

package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
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

type rulesList struct{ view.RuleQuery }

// Run lists the proposals and rules of a status: pending and active ones without it.
func (cmd *rulesList) Run(s *session) error {
	read := func(v *view.Source) ([]view.Rule, error) {
		pending := view.RuleQuery{Agent: s.Agent, Status: cmp.Or(cmd.Status, "pending")}
		proposals, err := v.Proposals(s.ctx, pending)
		if err != nil {
			return nil, err
		}
		active := view.RuleQuery{Agent: s.Agent, Status: cmp.Or(cmd.Status, "active")}
		rules, err := v.Rules(s.ctx, active)
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

// A ruleDecision is what every decision about a proposal or a rule takes.
type ruleDecision struct {
	ID string `arg:""`
	change
}

type rulesApprove struct {
	ruleDecision
	Hash     string   `placeholder:"HASH"`
	Override []string `placeholder:"ID"`
	Withhold []string `placeholder:"ID"`
}

// Run approves a proposal.
func (cmd *rulesApprove) Run(s *session) error {
	return cmd.review(s, "approves", func(p *feedback.Proposal) (vote feedback.Review, err error) {
		hash := p.Draft.Hash()
		switch {
		case !cmd.Yes && slices.Contains(p.Writers, actor(cmd.Actor)):
			err = errors.New("people cannot approve what they proposed or edited: have somebody else " +
				"approve it")
		case cmd.Hash != "" && (len(cmd.Hash) < 8 || !strings.HasPrefix(hash, cmd.Hash)):
			err = fmt.Errorf("the words do not match the hash %s: see heed rules show %s", cmd.Hash, p.ID)
		case cmd.Hash == "" && cmd.Yes:
			err = &usageError{"the words were not shown: give their --hash, which heed rules " +
				"show prints"}
		}
		return feedback.Review{Decision: feedback.Approved, Hash: hash, Override: cmd.Override,
			Withhold: cmd.Withhold}, err
	})
}

type rulesReject struct{ ruleDecision }

// Run rejects a proposal.
func (cmd *rulesReject) Run(s *session) error {
	return cmd.review(s, "rejects", func(*feedback.Proposal) (feedback.Review, error) {
		return feedback.Review{Decision: feedback.Rejected}, nil
	})
}

// review makes a review of the proposal, if that is confirmed.
func (cmd *ruleDecision) review(
	s *session, verb string, voteOn func(*feedback.Proposal) (feedback.Review, error),
) error {
	return withRules(s, func(v *view.Source) error {
		p, err := proposal(s, v, cmd.ID)
		if err == nil {
			err = decidable(s, v, &p)
		}
		if err != nil {
			return err
		}
		vote, err := voteOn(&p)
		if err != nil {
			return err
		}
		if !cmd.Yes && !s.JSON {
			report, err := v.Report(s.ctx, p.ID)
			if err != nil {
				return err
			}
			to := &printer{w: os.Stderr}
			if err := to.render("rule", &report); err != nil {
				return err
			}
			to.write("\n")
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
		after, err := v.Feedback.Rules().Review(s.ctx, vote)
		if err != nil {
			return err
		}
		return s.told(after, "%v", reviewed(&p, &after))
	})
}

// decidable refuses a proposal that is decided, before anybody is asked about it.
func decidable(s *session, v *view.Source, p *feedback.Proposal) error {
	state := p.Status
	if state == feedback.StatePending {
		return nil
	}
	if r, err := v.Feedback.Rules().Rule(s.ctx, p.ID); err == nil {
		state = r.Status
	}
	return notNow(p.ID, state)
}

// notNow refuses to decide about what is in a state that does not fit.
func notNow(id string, state feedback.State) error {
	return fmt.Errorf("%s is %s: %s", show(id), lower(state), view.NextOf[state])
}

// reviewed describes the result of a review.
func reviewed(before, after *feedback.Proposal) plain {
	switch {
	case after.Status == feedback.StateRejected:
		return "Rejected."
	case after.Status == feedback.StateApproved && after.Change != "" && after.Of != "":
		return say("Approved. To %v rule %v holds from the next prompts on.", lower(after.Change),
			after.Of)
	case after.Status == feedback.StateApproved:
		return say("Approved. It is rule %v now, and in the next prompts of %v.", after.ID,
			list(after.Agents, "all"))
	}
	again := plain("")
	if len(before.Approvals) == len(after.Approvals) {
		again = "You had approved it before. "
	}
	names := texts(after.Approvals, func(a feedback.Review) string { return a.Actor })
	return say("%vApproved by %v. Approvals: %v.", again, list(names, "none"),
		show(after.Quorum.String()))
}

// A ruleOrder takes a rule out of prompts, as the command is named. One person is enough.
type ruleOrder struct{ ruleDecision }

// Run retires or revokes a rule, if that is confirmed.
func (cmd *ruleOrder) Run(s *session) error {
	asks, to, done := "This retires %q for %v", feedback.StateRetired, "Retired."
	from := []feedback.State{feedback.StateActive}
	if s.command == "revoke" {
		from = append(from, feedback.StateRetired)
		asks, to, done = "This revokes %q for %v, for good", feedback.StateRevoked, "Revoked."
	}
	return withRules(s, func(v *view.Source) error {
		r, err := rule(s, v, cmd.ID)
		if err == nil && !slices.Contains(from, r.Status) {
			err = notNow(r.ID, r.Status)
		}
		if err != nil {
			return err
		}
		if err := cmd.confirm(s, asks, show(r.Text), list(r.Agents, "all")); err != nil {
			return err
		}
		after, err := v.Feedback.Rules().Move(s.ctx,
			feedback.Act{ID: r.ID, Actor: cmd.Actor, Reason: cmd.Reason}, to)
		if err != nil {
			return err
		}
		return s.told(after, "%v It is in no prompt that is built from now on.", plain(done))
	})
}

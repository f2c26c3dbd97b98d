package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/internal/view"
)

// A proposalDecision is what every decision about a proposal takes.
type proposalDecision struct {
	ID string `arg:""`
	change
}

type rulesApprove struct {
	proposalDecision
	Hash     string   `placeholder:"HASH"`
	Override []string `complete:"rule" placeholder:"ID"`
	Withhold []string `complete:"heuristic" placeholder:"ID"`
}

// Run approves a proposal.
func (cmd *rulesApprove) Run(s *session) error {
	return cmd.decide(s, "approves", func(p *feedback.Proposal) (vote feedback.Review, err error) {
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

type rulesReject struct{ proposalDecision }

// Run rejects a proposal.
func (cmd *rulesReject) Run(s *session) error {
	return cmd.decide(s, "rejects", func(*feedback.Proposal) (feedback.Review, error) {
		return feedback.Review{Decision: feedback.Rejected}, nil
	})
}

// decide makes a review of the proposal, if that is confirmed.
func (cmd *proposalDecision) decide(
	s *session, verb string, voteOn func(*feedback.Proposal) (feedback.Review, error),
) error {
	return withRules(s, func(v *view.Source) error {
		p, err := proposal(s, v, cmd.ID)
		if err == nil && !cmd.Yes {
			err = stands("proposal", p.Status, feedback.StatePending)
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
			to := newPrinter(os.Stderr, os.Environ())
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

// reviewed describes the result of a review.
func reviewed(before, after *feedback.Proposal) plain {
	done := map[feedback.RuleChange]plain{
		feedback.Restore: "restored", feedback.Pin: "pinned", feedback.Unpin: "no longer pinned",
	}[after.Change]
	switch {
	case after.Status == feedback.StateRejected:
		return "Rejected."
	case after.Status == feedback.StateApproved && done != "" && after.Of != "":
		return say("Approved. Rule %v is %v from the next prompts on.", after.Of, done)
	case after.Status == feedback.StateApproved:
		return say("Approved. It is rule %v now, and in the next prompts of %v.", after.ID,
			list(after.Agents, "all"))
	}
	again := plain("")
	if len(before.Approvals) == len(after.Approvals) {
		again = "You had approved it before. "
	}
	names := texts(after.Approvals, func(a feedback.Approval) string { return a.Actor })
	return say("%vApproved by %v. Approvals: %v.", again, list(names, "none"),
		show(after.Quorum.String()))
}

type rulesTakeOut struct {
	ID       string `arg:""`
	Feedback string `arg:""`
	change
}

// Run takes a feedback out of a proposal.
func (cmd *rulesTakeOut) Run(s *session) error {
	return withRules(s, func(v *view.Source) error {
		p, err := proposal(s, v, cmd.ID)
		if err != nil {
			return err
		}
		if err := cmd.confirm(s, "This takes %v out of %q for %v", cmd.Feedback, show(p.Text),
			list(p.Agents, "all")); err != nil {
			return err
		}
		order := feedback.Order{ID: p.ID, Actor: cmd.Actor, Reason: cmd.Reason}
		after, err := v.Feedback.Rules().TakeOut(s.ctx, order, cmd.Feedback)
		if err != nil {
			return err
		}
		return s.told(after, "Taken out. It is in its own cluster now. The proposal has %v left, and "+
			"no approvals.", plural(after.Occurrences, "occurrence", "occurrences"))
	})
}

type rulesNear struct {
	Agent string `placeholder:"NAME"`
}

// Run lists corrections with others that may mean the same.
func (cmd *rulesNear) Run(s *session) error {
	const most = 50
	var all []view.Similar
	err := withRules(s, func(v *view.Source) error {
		waiting, err := v.Waiting(s.ctx, cmd.Agent)
		if err == nil {
			all, err = v.Similar(s.ctx, waiting, most)
		}
		return err
	})
	return answerList(s, all, err, "corrections that may mean the same as another", "near", "agent",
		cmd.Agent)
}

// correction finds a correction by its id.
func correction(s *session, v *view.Source, id string) (feedback.Feedback, error) {
	c, err := v.Feedback.Feedback(s.ctx, id)
	if errors.Is(err, heed.ErrNotFound) {
		err = fmt.Errorf("there is no correction %s: heed rules near names some", show(id))
	}
	return c, err
}

type rulesJoin struct {
	ID   string `arg:""`
	With string `arg:""`
	change
}

// Run records that two corrections mean the same.
func (cmd *rulesJoin) Run(s *session) error {
	return withRules(s, func(v *view.Source) error {
		c, err := correction(s, v, cmd.ID)
		if err != nil {
			return err
		}
		other, err := correction(s, v, cmd.With)
		if err != nil {
			return err
		}
		if err := cmd.confirm(s, "This joins %q with %q: both mean the same", show(view.Said(&c)),
			show(view.Said(&other))); err != nil {
			return err
		}
		after, err := v.Feedback.Join(s.ctx,
			feedback.Order{ID: c.ID, Actor: cmd.Actor, Reason: cmd.Reason}, other.ID)
		if err != nil {
			return err
		}
		return s.told(after, "Joined. Both count for their reviewers, and are %v.", after.Class)
	})
}

type rulesSplit struct {
	ID string `arg:""`
	change
}

// Run puts a correction alone into a cluster.
func (cmd *rulesSplit) Run(s *session) error {
	return withRules(s, func(v *view.Source) error {
		c, err := correction(s, v, cmd.ID)
		if err != nil {
			return err
		}
		others, err := v.Together(s.ctx, &c)
		if err != nil {
			return err
		}
		if err := cmd.confirm(s, "This takes %q away from %v", show(view.Said(&c)),
			plural(len(others), "correction that means the same",
				"corrections that mean the same")); err != nil {
			return err
		}
		after, err := v.Feedback.Split(s.ctx,
			feedback.Order{ID: c.ID, Actor: cmd.Actor, Reason: cmd.Reason})
		if err != nil {
			return err
		}
		return s.told(after, "Split. It is in its own cluster now.")
	})
}

type rulesResolve struct {
	ID string `arg:""`
	As string `required:"" enum:"generalizable_low,edge_case,archived" placeholder:"CLASS"`
	change
}

// Run resolves a correction.
func (cmd *rulesResolve) Run(s *session) error {
	return withRules(s, func(v *view.Source) error {
		c, err := found("correction", cmd.ID, "heed rules list --status ambiguous names them",
			func(id string) (feedback.Feedback, error) { return v.Feedback.Feedback(s.ctx, id) },
			func() ([]feedback.Feedback, error) {
				all, _, err := v.Feedback.List(s.ctx,
					feedback.Listing{Class: feedback.Ambiguous, Limit: 1000})
				return all, err
			},
			func(c feedback.Feedback) string { return c.ID })
		if err != nil {
			return err
		}
		if err := cmd.confirm(s, "This resolves %q, which is ambiguous (%v), as %v",
			show(view.Said(&c)), c.Rationale, cmd.As); err != nil {
			return err
		}
		order := feedback.Order{ID: c.ID, Actor: cmd.Actor, Reason: cmd.Reason}
		after, err := v.Feedback.Resolve(s.ctx, order, feedback.Classification(cmd.As))
		if err != nil {
			return err
		}
		if after.Proposal != "" {
			return s.told(after, "Resolved. It is in the proposal %v.", after.Proposal)
		}
		return s.told(after, "Resolved as %v.", after.Class)
	})
}

// A ruleOrder changes a rule as the command is named. One person is enough to take it out of
// prompts, and all else is a proposal, which others approve.
type ruleOrder struct {
	ID string `arg:""`
	change
}

// ruleOrders lists what each command asks, and to what state it brings a rule or what it proposes.
var ruleOrders = map[string]struct {
	asks     string
	to       feedback.State
	said     string
	proposes feedback.RuleChange
}{
	"retire": {asks: "This retires %q for %v", to: feedback.StateRetired,
		said: "Retired. It is in no prompt that is built from now on."},
	"revoke": {asks: "This revokes %q for %v, for good", to: feedback.StateRevoked,
		said: "Revoked. It is in no prompt that is built from now on, and can't be restored."},
	"restore": {asks: "This proposes to restore %q for %v", proposes: feedback.Restore},
	"pin":     {asks: "This proposes to pin %q for %v", proposes: feedback.Pin},
	"unpin":   {asks: "This proposes to unpin %q for %v", proposes: feedback.Unpin},
}

// Run changes a rule or proposes that, if it is confirmed.
func (cmd *ruleOrder) Run(s *session) error {
	order := ruleOrders[s.command]
	from := []feedback.State{feedback.StateActive}
	switch {
	case order.proposes == feedback.Restore:
		from[0] = feedback.StateRetired
	case order.to == feedback.StateRevoked:
		from = append(from, feedback.StateRetired)
	}
	return withRules(s, func(v *view.Source) error {
		r, err := rule(s, v, cmd.ID)
		if err == nil && !cmd.Yes {
			err = stands("rule", r.Status, from...)
		}
		if err != nil {
			return err
		}
		if err := cmd.confirm(s, order.asks, show(r.Text), list(r.Agents, "all")); err != nil {
			return err
		}
		rules := v.Feedback.Rules()
		if order.proposes == "" {
			after, err := rules.Move(s.ctx,
				feedback.Order{ID: r.ID, Actor: cmd.Actor, Reason: cmd.Reason}, order.to)
			if err != nil {
				return err
			}
			return s.told(after, "%v", order.said)
		}
		d := r.Draft
		d.Change, d.Of = order.proposes, r.ID
		p, err := rules.Propose(s.ctx,
			feedback.Submission{Draft: d, Actor: cmd.Actor, Reason: cmd.Reason})
		if err != nil {
			return err
		}
		return s.told(p, "Proposed as %v. It needs %v by others: heed rules approve %v", p.ID,
			plural(v.Feedback.Config().Gate.Quorum, "approval", "approvals"), p.ID)
	})
}

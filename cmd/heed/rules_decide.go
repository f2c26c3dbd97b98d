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
	ID string `arg:"" complete:"proposal"`
	change
}

type rulesApprove struct {
	proposalDecision
	Hash     string   `placeholder:"HASH"`
	Override []string `complete:"rule" placeholder:"ID"`
}

// Run approves a proposal.
func (cmd *rulesApprove) Run(s *session) error {
	return cmd.decide(s, "approves", func(p *feedback.Proposal) (vote feedback.Review, err error) {
		hash := p.Draft.Hash()
		switch {
		case !cmd.Yes && slices.Contains(p.Writers, actor(cmd.Actor)):
			err = errors.New("nobody approves what they proposed or edited: have somebody else " +
				"approve it")
		case cmd.Hash != "" && (len(cmd.Hash) < 8 || !strings.HasPrefix(hash, cmd.Hash)):
			err = fmt.Errorf("the words are not those of hash %s: see heed rules show %s", cmd.Hash, p.ID)
		case cmd.Hash == "" && cmd.Yes:
			err = &usageError{"nobody has been shown the words: give their --hash, which heed rules " +
				"show prints"}
		}
		return feedback.Review{Decision: feedback.Approved, Hash: hash, Override: cmd.Override}, err
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
			printReport(newPrinter(os.Stderr, os.Environ()), &report)
			fmt.Fprintln(os.Stderr)
		}
		if p.Change != "" {
			verb += " to " + strings.ToLower(string(p.Change))
		}
		words := fmt.Sprintf("This %s %q for %s", verb, show(p.Text), list(p.Agents, "all"))
		if check := view.CheckWords(p.Check, show); check != "" {
			words += ", with a check: " + check
		}
		if err := cmd.confirm(s, words); err != nil {
			return err
		}
		vote.Proposal, vote.Actor, vote.Reason = p.ID, cmd.Actor, cmd.Reason
		after, err := v.Feedback.Rules().Review(s.ctx, vote)
		if err != nil {
			return err
		}
		return s.answer(after, func(out *printer) {
			out.line("%s", reviewed(v.Feedback.Config().Gate, &p, &after))
		})
	})
}

// reviewed says what came of a review.
func reviewed(gate feedback.Gate, before, after *feedback.Proposal) string {
	switch after.Status {
	case feedback.StateApproved:
		if done := changed[after.Change]; done != "" && after.Of != "" {
			return fmt.Sprintf("Approved. Rule %s is %s from the next prompts on.", show(after.Of), done)
		}
		return fmt.Sprintf("Approved. It is rule %s now, and in the next prompts of %s.",
			show(after.ID), list(after.Agents, "all"))
	case feedback.StateRejected:
		return "Rejected."
	default:
	}
	still := "Somebody who is no reviewer of the evidence has to approve it"
	if missing := gate.Quorum - len(after.Approvals); missing > 0 {
		still = plural(missing, "more approval is", "more approvals are") + " needed"
	}
	again := ""
	if len(before.Approvals) == len(after.Approvals) {
		again = "You had approved it before. "
	}
	names := texts(after.Approvals, func(a feedback.Approval) string { return a.Actor })
	return fmt.Sprintf("%sApproved by %s. %s.", again, list(names, "nobody"), still)
}

// changed says what a change makes of a rule.
var changed = map[feedback.RuleChange]string{
	feedback.Restore: "restored", feedback.Pin: "pinned", feedback.Unpin: "no longer pinned",
}

type rulesTakeOut struct {
	ID       string `arg:"" complete:"proposal"`
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
		question := fmt.Sprintf("This takes %s out of %q for %s", show(cmd.Feedback), show(p.Text),
			list(p.Agents, "all"))
		if err := cmd.confirm(s, question); err != nil {
			return err
		}
		order := feedback.Order{ID: p.ID, Actor: cmd.Actor, Reason: cmd.Reason}
		after, err := v.Feedback.Rules().TakeOut(s.ctx, order, cmd.Feedback)
		if err != nil {
			return err
		}
		return s.answer(after, func(out *printer) {
			out.line("Taken out. It stands alone from now on. The proposal has %s left, and no "+
				"approvals.", plural(after.Occurrences, "occurrence", "occurrences"))
		})
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
		c, err := cmd.find(s, v.Feedback)
		if err != nil {
			return err
		}
		question := fmt.Sprintf("This resolves %q, which is ambiguous (%s), as %s", show(view.Said(&c)),
			show(c.Rationale), cmd.As)
		if err := cmd.confirm(s, question); err != nil {
			return err
		}
		order := feedback.Order{ID: c.ID, Actor: cmd.Actor, Reason: cmd.Reason}
		after, err := v.Feedback.Resolve(s.ctx, order, feedback.Classification(cmd.As))
		if err != nil {
			return err
		}
		return s.answer(after, func(out *printer) {
			if after.Proposal != "" {
				out.line("Resolved. It is in the proposal %s.", show(after.Proposal))
				return
			}
			out.line("Resolved as %s.", after.Class)
		})
	})
}

// find finds the correction by its id, or by the start of its id among ambiguous ones.
func (cmd *rulesResolve) find(s *session, f *feedback.Service) (c feedback.Feedback, err error) {
	if err := given("correction", cmd.ID); err != nil {
		return c, err
	}
	if c, err = f.Feedback(s.ctx, cmd.ID); !errors.Is(err, heed.ErrNotFound) {
		return c, err
	}
	all, _, err := f.List(s.ctx, feedback.Listing{Class: feedback.Ambiguous, Limit: 1000})
	if err != nil {
		return c, err
	}
	idOf := func(c feedback.Feedback) string { return c.ID }
	return pick("correction", cmd.ID, all, idOf, "heed rules list --status ambiguous names them")
}

// A ruleOrder changes a rule as the command is named. One person is enough to take it out of
// prompts, and all else is a proposal, which others approve.
type ruleOrder struct {
	ID string `arg:"" complete:"rule"`
	change
}

// ruleOrders say what each command asks, which states a rule must be in, and to what state it
// brings the rule or what it proposes.
var ruleOrders = map[string]struct {
	asks     string
	from     []feedback.State
	to       feedback.State
	said     string
	proposes feedback.RuleChange
}{
	"retire": {
		asks: "This retires %q for %s", from: []feedback.State{feedback.StateActive},
		to: feedback.StateRetired, said: "Retired. It is in no prompt that is built from now on.",
	},
	"revoke": {
		asks: "This revokes %q for %s, for good", to: feedback.StateRevoked,
		from: []feedback.State{feedback.StateActive, feedback.StateRetired},
		said: "Revoked. It is in no prompt that is built from now on, and can't be restored.",
	},
	"restore": {
		asks: "This proposes to restore %q for %s", from: []feedback.State{feedback.StateRetired},
		proposes: feedback.Restore,
	},
	"pin": {
		asks: "This proposes to pin %q for %s", from: []feedback.State{feedback.StateActive},
		proposes: feedback.Pin,
	},
	"unpin": {
		asks: "This proposes to unpin %q for %s", from: []feedback.State{feedback.StateActive},
		proposes: feedback.Unpin,
	},
}

// Run changes a rule or proposes that, if it is confirmed.
func (cmd *ruleOrder) Run(s *session) error {
	order := ruleOrders[s.command]
	return withRules(s, func(v *view.Source) error {
		before, err := rule(s, v, cmd.ID)
		if err == nil && !cmd.Yes {
			err = stands("rule", before.Status, order.from...)
		}
		if err != nil {
			return err
		}
		question := fmt.Sprintf(order.asks, show(before.Text), list(before.Agents, "all"))
		if err := cmd.confirm(s, question); err != nil {
			return err
		}
		if order.proposes != "" {
			return cmd.propose(s, v.Feedback, &before, order.proposes)
		}
		after, err := v.Feedback.Rules().Move(s.ctx,
			feedback.Order{ID: before.ID, Actor: cmd.Actor, Reason: cmd.Reason}, order.to)
		if err != nil {
			return err
		}
		return s.answer(after, func(p *printer) { p.line("%s", order.said) })
	})
}

func (cmd *ruleOrder) propose(
	s *session, f *feedback.Service, r *feedback.Rule, change feedback.RuleChange,
) error {
	d := r.Draft
	d.Change, d.Of = change, r.ID
	p, err := f.Rules().Propose(s.ctx, feedback.Submission{
		Draft: d, Actor: cmd.Actor, Reason: cmd.Reason,
	})
	if err != nil {
		return err
	}
	return s.answer(p, func(out *printer) {
		out.line("Proposed as %s. It needs %s by others: heed rules approve %s", show(p.ID),
			plural(f.Config().Gate.Quorum, "approval", "approvals"), show(p.ID))
	})
}

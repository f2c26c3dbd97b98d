package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/internal/review"
)

// A proposalDecision is what every decision about a proposal takes.
type proposalDecision struct {
	ID string `arg:"" complete:"proposal" help:"The proposal, or the start of its id."`
	change
}

type rulesApprove struct {
	proposalDecision
	Hash     string   `placeholder:"HASH" help:"The hash of the approved words, or the start of it. Needed if there is no terminal to show the words on."`
	Override []string `complete:"rule" placeholder:"ID" help:"An active rule that it may contradict. Repeat the flag for several rules."`
}

// Run approves a proposal.
func (cmd *rulesApprove) Run(s *session) error {
	return cmd.decide(s, "approves", func(p feedback.Proposal) (feedback.Review, error) {
		hash := p.Draft.Hash()
		switch {
		case !cmd.Yes && slices.Contains(p.Writers, actor(cmd.Actor)):
			return feedback.Review{}, errors.New("nobody approves what they proposed or edited: have somebody else approve it")
		case cmd.Hash != "" && (len(cmd.Hash) < 8 || !strings.HasPrefix(hash, cmd.Hash)):
			return feedback.Review{}, fmt.Errorf("the words are not those of hash %s: see heed rules show %s", cmd.Hash, p.ID)
		case cmd.Hash == "" && cmd.Yes:
			return feedback.Review{}, &usageError{"nobody has been shown the words: give their --hash, which heed rules show prints"}
		}
		return feedback.Review{Decision: feedback.Approved, Hash: hash, Override: cmd.Override}, nil
	})
}

type rulesReject struct{ proposalDecision }

// Run rejects a proposal.
func (cmd *rulesReject) Run(s *session) error {
	return cmd.decide(s, "rejects", func(feedback.Proposal) (feedback.Review, error) {
		return feedback.Review{Decision: feedback.Rejected}, nil
	})
}

// decide makes a review of the proposal, if that is confirmed.
func (cmd *proposalDecision) decide(s *session, verb string, reviewOf func(feedback.Proposal) (feedback.Review, error)) error {
	return withRules(s, func(f *feedback.Service) error {
		p, err := proposal(s, f, cmd.ID)
		if err != nil {
			return err
		}
		if !cmd.Yes {
			if err := stands("proposal", p.Status, feedback.StatePending); err != nil {
				return err
			}
		}
		vote, err := reviewOf(p)
		if err != nil {
			return err
		}
		if p.Change != "" {
			verb += " to " + strings.ToLower(string(p.Change))
		}
		if !cmd.Yes && !s.JSON {
			report, err := review.OfProposal(s.ctx, f, p)
			if err != nil {
				return err
			}
			(&ruleReport{report}).print(newPrinter(os.Stderr, os.Environ()))
			fmt.Fprintln(os.Stderr)
		}
		words := fmt.Sprintf("This %s %q for %s", verb, show(p.Text), list(p.Agents, "all"))
		if check := review.CheckWords(p.Check, show); check != "" {
			words += ", with a check: " + check
		}
		if err := cmd.confirm(s, words); err != nil {
			return err
		}
		vote.Proposal, vote.Actor, vote.Reason = p.ID, cmd.Actor, cmd.Reason
		after, err := f.Rules().Review(s.ctx, vote)
		if err != nil {
			return err
		}
		return s.answer(after, func(out *printer) { out.line("%s", reviewed(f, p, after)) })
	})
}

// reviewed says what came of a review.
func reviewed(f *feedback.Service, before, after feedback.Proposal) string {
	switch after.Status {
	case feedback.StateApproved:
		if done := changed[after.Change]; done != "" && after.Of != "" {
			return fmt.Sprintf("Approved. Rule %s is %s from the next prompts on.", show(after.Of), done)
		}
		return fmt.Sprintf("Approved. It is rule %s now, and in the next prompts of %s.", show(after.ID), list(after.Agents, "all"))
	case feedback.StateRejected:
		return "Rejected."
	default:
		still := "Somebody who is no reviewer of the evidence has to approve it"
		if missing := f.Config().Gate.Quorum - len(after.Approvals); missing > 0 {
			still = plural(missing, "more approval is", "more approvals are") + " needed"
		}
		names := texts(after.Approvals, func(a feedback.Approval) string { return a.Actor })
		if len(before.Approvals) == len(after.Approvals) {
			return fmt.Sprintf("You had approved it before. Approved by %s. %s.", list(names, "nobody"), still)
		}
		return fmt.Sprintf("Approved by %s. %s.", list(names, "nobody"), still)
	}
}

// changed says what a change makes of a rule.
var changed = map[feedback.RuleChange]string{feedback.Restore: "restored", feedback.Pin: "pinned", feedback.Unpin: "no longer pinned"}

type rulesTakeOut struct {
	ID       string `arg:"" complete:"proposal" help:"The proposal, or the start of its id."`
	Feedback string `arg:"" help:"The feedback, which heed rules show lists."`
	change
}

// Run takes a feedback out of a proposal.
func (cmd *rulesTakeOut) Run(s *session) error {
	return withRules(s, func(f *feedback.Service) error {
		p, err := proposal(s, f, cmd.ID)
		if err != nil {
			return err
		}
		if err := cmd.confirm(s, fmt.Sprintf("This takes %s out of %q for %s", show(cmd.Feedback), show(p.Text), list(p.Agents, "all"))); err != nil {
			return err
		}
		after, err := f.Rules().TakeOut(s.ctx, feedback.Order{ID: p.ID, Actor: cmd.Actor, Reason: cmd.Reason}, cmd.Feedback)
		if err != nil {
			return err
		}
		return s.answer(after, func(out *printer) {
			out.line("Taken out. It stands alone from now on. The proposal has %s left, and no approvals.", plural(after.Occurrences, "occurrence", "occurrences"))
		})
	})
}

type rulesResolve struct {
	ID string `arg:"" help:"The correction, which heed rules list --status ambiguous names, or the start of its id."`
	As string `required:"" enum:"generalizable_low,edge_case,archived" placeholder:"CLASS" help:"One of generalizable_low (it counts for a rule), edge_case (it stands alone) and archived (it is ignored)."`
	change
}

// Run resolves a correction.
func (cmd *rulesResolve) Run(s *session) error {
	return withRules(s, func(f *feedback.Service) error {
		if err := given("correction", cmd.ID); err != nil {
			return err
		}
		c, err := f.Feedback(s.ctx, cmd.ID)
		if errors.Is(err, heed.ErrNotFound) {
			var all []feedback.Feedback
			if all, _, err = f.List(s.ctx, feedback.Listing{Class: feedback.Ambiguous, Limit: 1000}); err == nil {
				c, err = pick("correction", cmd.ID, all, func(c feedback.Feedback) string { return c.ID }, "heed rules list --status ambiguous names them")
			}
		}
		if err != nil {
			return err
		}
		text := strings.TrimSpace(c.Summary + " " + c.Comment)
		if err := cmd.confirm(s, fmt.Sprintf("This resolves %q, which is ambiguous (%s), as %s", show(text), show(c.Rationale), cmd.As)); err != nil {
			return err
		}
		after, err := f.Resolve(s.ctx, feedback.Order{ID: c.ID, Actor: cmd.Actor, Reason: cmd.Reason}, feedback.Classification(cmd.As))
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

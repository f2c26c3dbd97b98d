package main

import (
	"fmt"
	"strings"

	"github.com/heedhq/heed/feedback"
)

// A proposalDecision is what every decision about a proposal takes.
type proposalDecision struct {
	ID string `arg:"" complete:"proposal" help:"The proposal, or the start of its id."`
	change
}

type rulesApprove struct {
	proposalDecision
	Hash     string   `placeholder:"HASH" help:"The hash of the words that are approved, or the start of it. Needed where there is no terminal to show them on."`
	Override []string `complete:"rule" placeholder:"ID" help:"An active rule that it may contradict. Can be given more than once."`
}

func (rulesApprove) Help() string {
	return `Examples:

    heed --db agent.db rules approve 7d0c2b1a
    heed --db agent.db rules approve 7d0c2b1a --hash 5b1f0c22 --yes --reason "seen it three times"`
}

// Run approves a proposal.
func (cmd *rulesApprove) Run(s *session, c *rulesCommands) error {
	return cmd.decide(s, c, "approves", func(p feedback.Proposal) (feedback.Review, error) {
		hash := p.Draft.Hash()
		switch {
		case cmd.Hash != "" && (len(cmd.Hash) < 8 || !strings.HasPrefix(hash, cmd.Hash)):
			return feedback.Review{}, fmt.Errorf("the words are not those of hash %s: see heed rules show %s", cmd.Hash, p.ID)
		case cmd.Hash == "" && cmd.Yes:
			return feedback.Review{}, &usageError{"nobody has been shown the words: give their --hash, which heed rules show prints"}
		}
		return feedback.Review{Hash: hash, Override: cmd.Override}, nil
	})
}

type rulesReject struct{ proposalDecision }

func (rulesReject) Help() string {
	return `Examples:

    heed --db agent.db rules reject 7d0c2b1a --reason "the style guide says otherwise"`
}

// Run rejects a proposal.
func (cmd *rulesReject) Run(s *session, c *rulesCommands) error {
	return cmd.decide(s, c, "rejects", func(feedback.Proposal) (feedback.Review, error) {
		return feedback.Review{Reject: true}, nil
	})
}

// decide makes a review of the proposal, if that is confirmed.
func (cmd *proposalDecision) decide(s *session, c *rulesCommands, verb string, reviewOf func(feedback.Proposal) (feedback.Review, error)) error {
	return c.at(s, func(d *desk) error {
		p, err := d.proposal(s, cmd.ID)
		if err != nil {
			return err
		}
		review, err := reviewOf(p)
		if err != nil {
			return err
		}
		if err := cmd.confirm(s, fmt.Sprintf("This %s %q for %s", verb, show(p.Text), agents(p.Agents))); err != nil {
			return err
		}
		review.Proposal, review.Actor, review.Reason = p.ID, cmd.Actor, cmd.Reason
		after, err := d.Rules().Review(s.ctx, review)
		if err != nil {
			return err
		}
		return s.answer(after, func(out *printer) { out.line("%s", d.reviewed(after)) })
	})
}

// reviewed says what came of a review.
func (d *desk) reviewed(after feedback.Proposal) string {
	switch after.Status {
	case feedback.StateApproved:
		return fmt.Sprintf("Approved. It is rule %s now, and in the next prompts of %s.", show(after.ID), agents(after.Agents))
	case feedback.StateRejected:
		return "Rejected."
	default:
		still := "It takes somebody who is no reviewer of the evidence"
		if missing := d.Config().Gate.Quorum - len(after.Approvals); missing > 0 {
			still = plural(missing, "more approval is", "more approvals are") + " needed"
		}
		return fmt.Sprintf("Approved by %s. %s.", people(approvers(after)), still)
	}
}

func approvers(p feedback.Proposal) (names []string) {
	for _, a := range p.Approvals {
		names = append(names, a.Actor)
	}
	return names
}

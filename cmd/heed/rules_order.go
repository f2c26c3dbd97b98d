package main

import (
	"fmt"

	"github.com/heedhq/heed/feedback"
)

// A ruleOrder takes a rule out of prompts, for which one person is enough: [ruleOrders] has the commands by name.
type ruleOrder struct {
	ID string `arg:"" complete:"rule" help:"The rule, or the start of its id."`
	change
}

// ruleOrders say what each command asks about the text and the agents of a rule, to what state it brings it, and what it says
// then.
var ruleOrders = map[string]struct {
	asks string
	to   feedback.State
	from []feedback.State
	said string
}{
	"retire": {
		"This retires %q for %s", feedback.StateRetired, []feedback.State{feedback.StateActive},
		"Retired. It is in no prompt that is built from now on.",
	},
	"revoke": {
		"This revokes %q for %s, for good", feedback.StateRevoked, []feedback.State{feedback.StateActive, feedback.StateRetired},
		"Revoked. It is in no prompt that is built from now on, and can't be restored.",
	},
}

// Run takes a rule out of prompts, if that is confirmed.
func (cmd *ruleOrder) Run(s *session) error {
	order := ruleOrders[s.command]
	return withRules(s, func(f *feedback.Service) error {
		before, err := rule(s, f, cmd.ID)
		if err != nil {
			return err
		}
		if !cmd.Yes {
			if err := stands("rule", before.Status, order.from...); err != nil {
				return err
			}
		}
		if err := cmd.confirm(s, fmt.Sprintf(order.asks, show(before.Text), list(before.Agents, "all"))); err != nil {
			return err
		}
		after, err := f.Rules().Move(s.ctx, feedback.Order{ID: before.ID, Actor: cmd.Actor, Reason: cmd.Reason}, order.to)
		if err != nil {
			return err
		}
		return s.answer(after, func(p *printer) { p.line("%s", order.said) })
	})
}

// A ruleChange proposes the change of a rule, which others approve.
type ruleChange struct {
	ID string `arg:"" complete:"rule" help:"The rule, or the start of its id."`
	change
}

// ruleChanges are what the commands propose, by name.
var ruleChanges = map[string]feedback.RuleChange{"pin": feedback.Pin, "unpin": feedback.Unpin, "restore": feedback.Restore}

// Run proposes the change of a rule, if that is confirmed.
func (cmd *ruleChange) Run(s *session) error {
	return withRules(s, func(f *feedback.Service) error {
		before, err := rule(s, f, cmd.ID)
		if err != nil {
			return err
		}
		needed := feedback.StateActive
		if s.command == "restore" {
			needed = feedback.StateRetired
		}
		if !cmd.Yes {
			if err := stands("rule", before.Status, needed); err != nil {
				return err
			}
		}
		if err := cmd.confirm(s, fmt.Sprintf("This proposes to %s %q for %s", s.command, show(before.Text), list(before.Agents, "all"))); err != nil {
			return err
		}
		d := before.Draft
		d.Change, d.Of = ruleChanges[s.command], before.ID
		p, err := f.Rules().Propose(s.ctx, feedback.Submission{Draft: d, Actor: cmd.Actor, Reason: cmd.Reason})
		if err != nil {
			return err
		}
		return s.answer(p, func(out *printer) {
			out.line("Proposed as %s. It needs %s by others: heed rules approve %s", show(p.ID),
				plural(f.Config().Gate.Quorum, "approval", "approvals"), show(p.ID))
		})
	})
}

package main

import (
	"context"
	"fmt"

	"github.com/heedhq/heed/feedback"
)

// A ruleOrder is what every order about a rule takes.
type ruleOrder struct {
	ID string `arg:"" complete:"rule" help:"The rule, or the start of its id."`
	change
}

// carryOut has an order carried out, if that is confirmed when it asks about the rule's text and agents.
func (cmd *ruleOrder) carryOut(
	s *session, asks string, order ruleChange, said string,
) error {
	return withRules(s, func(f *feedback.Service) error {
		before, err := rule(s, f, cmd.ID)
		if err != nil {
			return err
		}
		if err := cmd.confirm(s, fmt.Sprintf(asks, show(before.Text), list(before.Agents, "all"))); err != nil {
			return err
		}
		after, err := order(s.ctx, f.Rules(), feedback.Order{ID: before.ID, Actor: cmd.Actor, Reason: cmd.Reason})
		if err != nil {
			return err
		}
		return s.answer(after, func(p *printer) { p.line("%s", said) })
	})
}

type ruleChange func(context.Context, *feedback.Rules, feedback.Order) (feedback.Rule, error)

func pin(pinned bool) ruleChange {
	return func(ctx context.Context, r *feedback.Rules, o feedback.Order) (feedback.Rule, error) {
		return r.Pin(ctx, o, pinned)
	}
}

func move(to feedback.State) ruleChange {
	return func(ctx context.Context, r *feedback.Rules, o feedback.Order) (feedback.Rule, error) {
		return r.Move(ctx, o, to)
	}
}

type rulesPin struct{ ruleOrder }

// Run pins a rule.
func (cmd *rulesPin) Run(s *session) error {
	return cmd.carryOut(s, "This pins %q for %s", pin(true), "Pinned. It goes before all rules that are not.")
}

type rulesUnpin struct{ ruleOrder }

// Run unpins a rule.
func (cmd *rulesUnpin) Run(s *session) error {
	return cmd.carryOut(s, "This unpins %q for %s", pin(false), "Unpinned. It is back in its place among the others.")
}

type rulesRetire struct{ ruleOrder }

// Run retires a rule.
func (cmd *rulesRetire) Run(s *session) error {
	return cmd.carryOut(s, "This retires %q for %s", move(feedback.StateRetired), "Retired. It is in no prompt that is built from now on.")
}

type rulesRestore struct{ ruleOrder }

// Run restores a rule.
func (cmd *rulesRestore) Run(s *session) error {
	return cmd.carryOut(s, "This restores %q for %s", move(feedback.StateActive), "Restored. It is in the prompts that are built from now on.")
}

type rulesRevoke struct{ ruleOrder }

// Run revokes a rule.
func (cmd *rulesRevoke) Run(s *session) error {
	return cmd.carryOut(s, "This revokes %q for %s, for good", move(feedback.StateRevoked), "Revoked. It is in no prompt that is built from now on, and can't be restored.")
}

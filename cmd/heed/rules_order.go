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
	s *session, c *rulesCommands, asks string, order ruleChange, said string,
) error {
	return c.at(s, func(d *desk) error {
		rule, err := d.rule(s, cmd.ID)
		if err != nil {
			return err
		}
		if err := cmd.confirm(s, fmt.Sprintf(asks, show(rule.Text), agents(rule.Agents))); err != nil {
			return err
		}
		after, err := order(s.ctx, d.Rules(), feedback.Order{ID: rule.ID, Actor: cmd.Actor, Reason: cmd.Reason})
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

func (rulesPin) Help() string {
	return `Examples:

    heed --db agent.db rules pin 7d0c2b1a --reason "it must not be left out"

A prompt has room for so many rules: those that are pinned are the first to be in it.`
}

// Run pins a rule.
func (cmd *rulesPin) Run(s *session, c *rulesCommands) error {
	return cmd.carryOut(s, c, "This pins %q for %s", pin(true), "Pinned. It goes before all rules that are not.")
}

type rulesUnpin struct{ ruleOrder }

func (rulesUnpin) Help() string {
	return `Examples:

    heed --db agent.db rules unpin 7d0c2b1a --reason "the migration is over"`
}

// Run unpins a rule.
func (cmd *rulesUnpin) Run(s *session, c *rulesCommands) error {
	return cmd.carryOut(s, c, "This unpins %q for %s", pin(false), "Unpinned. It takes its turn among the others.")
}

type rulesRetire struct{ ruleOrder }

func (rulesRetire) Help() string {
	return `Examples:

    heed --db agent.db rules retire 7d0c2b1a --reason "nobody makes that mistake any more"

A retired rule can be restored. One that does harm is better revoked.`
}

// Run retires a rule.
func (cmd *rulesRetire) Run(s *session, c *rulesCommands) error {
	return cmd.carryOut(s, c, "This retires %q for %s", move(feedback.StateRetired), "Retired. It is in no prompt that is built from now on.")
}

type rulesRestore struct{ ruleOrder }

func (rulesRestore) Help() string {
	return `Examples:

    heed --db agent.db rules list --status retired
    heed --db agent.db rules restore 7d0c2b1a --reason "the mistake is back"

It comes back in the words that were approved, and its effect is measured anew. It is refused where the rule contradicts one that
became active since, unless its approvals override that one.`
}

// Run restores a rule.
func (cmd *rulesRestore) Run(s *session, c *rulesCommands) error {
	return cmd.carryOut(s, c, "This restores %q for %s", move(feedback.StateActive), "Restored. It is in the prompts that are built from now on.")
}

type rulesRevoke struct{ ruleOrder }

func (rulesRevoke) Help() string {
	return `Examples:

    heed --db agent.db rules revoke 7d0c2b1a --reason "it has the agent leak addresses"

Active and retired rules can be revoked. A revoked rule is never restored: it would have to be proposed and approved anew.`
}

// Run revokes a rule.
func (cmd *rulesRevoke) Run(s *session, c *rulesCommands) error {
	return cmd.carryOut(s, c, "This revokes %q for %s, for good", move(feedback.StateRevoked), "Revoked. It is in no prompt that is built from now on, and can't be restored.")
}

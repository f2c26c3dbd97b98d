package main

import (
	"context"
	"fmt"

	"github.com/heedhq/heed/feedback"
)

// A ruleOrder is one of the commands that change a rule: [ruleOrders] has them by name.
type ruleOrder struct {
	ID string `arg:"" complete:"rule" help:"The rule, or the start of its id."`
	change
}

// ruleOrders say what each command asks about the text and the agents of a rule, what it does, and what it says then.
var ruleOrders = map[string]struct {
	asks string
	do   func(context.Context, *feedback.Rules, feedback.Order) (feedback.Rule, error)
	said string
}{
	"pin":     {"This pins %q for %s", pin(true), "Pinned. It goes before all rules that are not."},
	"unpin":   {"This unpins %q for %s", pin(false), "Unpinned. It is back in its place among the others."},
	"retire":  {"This retires %q for %s", move(feedback.StateRetired), "Retired. It is in no prompt that is built from now on."},
	"restore": {"This restores %q for %s", move(feedback.StateActive), "Restored. It is in the prompts that are built from now on."},
	"revoke": {
		"This revokes %q for %s, for good", move(feedback.StateRevoked), "Revoked. It is in no prompt that is built from now on, and can't be restored.",
	},
}

func pin(pinned bool) func(context.Context, *feedback.Rules, feedback.Order) (feedback.Rule, error) {
	return func(ctx context.Context, r *feedback.Rules, o feedback.Order) (feedback.Rule, error) {
		return r.Pin(ctx, o, pinned)
	}
}

func move(to feedback.State) func(context.Context, *feedback.Rules, feedback.Order) (feedback.Rule, error) {
	return func(ctx context.Context, r *feedback.Rules, o feedback.Order) (feedback.Rule, error) {
		return r.Move(ctx, o, to)
	}
}

// Run changes a rule, if that is confirmed.
func (cmd *ruleOrder) Run(s *session) error {
	order := ruleOrders[s.command]
	return withRules(s, func(f *feedback.Service) error {
		before, err := rule(s, f, cmd.ID)
		if err != nil {
			return err
		}
		if err := cmd.confirm(s, fmt.Sprintf(order.asks, show(before.Text), list(before.Agents, "all"))); err != nil {
			return err
		}
		after, err := order.do(s.ctx, f.Rules(), feedback.Order{ID: before.ID, Actor: cmd.Actor, Reason: cmd.Reason})
		if err != nil {
			return err
		}
		return s.answer(after, func(p *printer) { p.line("%s", order.said) })
	})
}

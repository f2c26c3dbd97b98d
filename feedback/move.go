package feedback

import (
	"context"
	"slices"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/store"
)

// Move takes a rule out of use, and returns it. One person is enough for that. It holds from the
// next prompt on.
//
//   - [StateRetired] takes an active rule out of use. To bring it back, propose to [Restore] it.
//   - [StateRevoked] withdraws an active or retired rule for good. Its words can be proposed again.
//
// A refusal is a [*RefusedError]: see [Rules.Review].
func (r *Rules) Move(ctx context.Context, o Order, to State) (Rule, error) {
	switch to {
	case StateRetired:
		return r.takeOut(ctx, "retire", o, to, StateActive)
	case StateRevoked:
		return r.takeOut(ctx, "revoke", o, to, StateActive, StateRetired)
	default:
		return Rule{}, wrap("move", invalid("to",
			"must be RETIRED or REVOKED; all else has to be proposed"))
	}
}

// takeOut takes a rule out of use, from one of these states.
func (r *Rules) takeOut(ctx context.Context, kind string, o Order, to State,
	from ...State) (rule Rule, err error) {
	if err := checkName("ID", o.ID); err != nil {
		return Rule{}, wrap(kind, err)
	}
	s := r.s
	seen, err := ruleKind.get(ctx, s.cfg.Store, o.ID)
	if err != nil {
		return Rule{}, wrap(kind, err)
	}
	revision, err := s.act(ctx, kind, o.ID, o.Actor, o.Reason, &seen.Draft,
		func(c *change, now time.Time, _ string) (err error) {
			c.Want(store.Wants{Refs: append(marks(), ruleKind.Ref(o.ID))})
			if rule, err = ruleKind.in(c.Tx, o.ID); err != nil {
				return err
			}
			if !slices.Contains(from, rule.Status) {
				return notNow("rule", rule.Status)
			}
			rule.Status, rule.Left, rule.RetireProposed = to, now, time.Time{}
			c.write(ruleKind.record(rule))
			c.notice(heed.Retired{Component: component, At: now, Subject: rule.ID, Reason: kind +
				"d"})
			return c.governs(now)
		})
	if err != nil {
		return Rule{}, wrap(kind, err)
	}
	rule.Revision = max(rule.Revision, revision)
	return rule, nil
}

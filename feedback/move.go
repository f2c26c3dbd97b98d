package feedback

import (
	"context"
	"slices"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/valid"
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
		return Rule{}, wrap("move", valid.Input("to",
			"must be RETIRED or REVOKED; all else has to be proposed"))
	}
}

// takeOut takes a rule out of use, from one of these states. Authorize sees the rule's draft as it
// was before the step; the step then decides by the state at that moment.
func (r *Rules) takeOut(
	ctx context.Context, kind string, o Order, to State, from ...State,
) (Rule, error) {
	if err := valid.Names(evidence.MaxText, "ID", o.ID); err != nil {
		return Rule{}, wrap(kind, err)
	}
	seen, err := ruleKind.in(r.s.reading(ctx), o.ID)
	if err != nil {
		return Rule{}, wrap(kind, err)
	}
	a := Act{Actor: o.Actor, Kind: kind, Subject: o.ID, Draft: &seen.Draft}
	return act(ctx, r.s, a, o.Reason, func(c *change) (Rule, error) {
		c.Want(store.Wants{Refs: append(marks(), ruleKind.Ref(o.ID))})
		rule, err := ruleKind.in(c.Tx, o.ID)
		if err != nil {
			return rule, err
		}
		if !slices.Contains(from, rule.Status) {
			return rule, notNow("rule", rule.Status)
		}
		rule.leave(c, to, kind+"d")
		return rule, c.governs()
	})
}

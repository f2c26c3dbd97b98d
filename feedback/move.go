package feedback

import (
	"context"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/store"
)

// Move takes a rule out of use, and returns it. One person is enough for that. It holds from the
// next prompt on.
//
//   - [StateRetired] takes an active rule out of use. To bring it back, propose to "RESTORE" it.
//   - [StateRevoked] withdraws an active or retired rule for good. Its words can be proposed again.
//
// It has no effect on a rule that has this state already. A refusal is a [*RefusedError]: see
// [Rules.Review].
func (r *Rules) Move(ctx context.Context, o Act, to State) (Rule, error) {
	kind := map[State]string{StateRetired: "retire", StateRevoked: "revoke"}[to]
	if kind == "" {
		return Rule{}, wrap("move", valid.Input("to",
			"must be RETIRED or REVOKED; all else has to be proposed"))
	}
	err := valid.Names(evidence.MaxText, "ID", o.ID)
	var seen Rule // as it was before the step, for Authorize
	if err == nil {
		seen, err = ruleKind.in(r.s.reading(ctx), o.ID)
	}
	if err != nil {
		return Rule{}, wrap(kind, err)
	}
	a := Act{ID: o.ID, Actor: o.Actor, Reason: o.Reason, Kind: kind, Draft: &seen.Draft}
	return act(ctx, r.s, a, func(c *change) (Rule, error) {
		c.Want(store.Wants{Refs: []store.Ref{rulesRef(), ruleKind.Ref(o.ID)}})
		rule, err := ruleKind.in(c.Tx, o.ID)
		if err != nil {
			return rule, err
		}
		if rule.Status == to { // somebody may repeat a call whose answer got lost
			return rule, nil
		}
		if rule.Status != StateActive && (to != StateRevoked || rule.Status != StateRetired) {
			return rule, notNow("rule", rule.Status)
		}
		rule.leave(c, to, kind+"d")
		return rule, c.raise(rulesMark)
	})
}

package feedback

import (
	"context"
	"slices"
	"time"

	"github.com/heedhq/heed"
)

// Move brings a rule into another state, and returns it.
//
//   - [StateRetired] takes an active rule out of use. It can be restored.
//   - [StateRevoked] withdraws an active or retired rule for good. It can be proposed anew.
//   - [StateActive] restores a retired rule as it was approved. Its effect is measured from now on. A rule that contradicts one
//     that became active since, and whose approvals do not override it, is refused.
//
// It holds from the next prompt on. A refusal is a [*RefusedError]: see [Rules.Review].
func (r *Rules) Move(ctx context.Context, o Order, to State) (Rule, error) {
	switch to {
	case StateRetired:
		return r.alter(ctx, "retire", o, func(rule *Rule, now time.Time) (bool, error) {
			return true, rule.leave(to, now, StateActive)
		})
	case StateRevoked:
		return r.alter(ctx, "revoke", o, func(rule *Rule, now time.Time) (bool, error) {
			return true, rule.leave(to, now, StateActive, StateRetired)
		})
	case StateActive:
		return r.alter(ctx, "restore", o, func(rule *Rule, now time.Time) (bool, error) {
			return true, r.restore(ctx, rule, now)
		})
	default:
		return Rule{}, wrap("move", invalid("to", "must be RETIRED, REVOKED or ACTIVE"))
	}
}

func (r *Rules) restore(ctx context.Context, rule *Rule, now time.Time) error {
	if rule.Status != StateRetired {
		return notNow("rule", rule.Status)
	}
	conflicts, err := r.s.conflicts(ctx, &rule.Draft, nil, "")
	if err != nil {
		return err
	}
	against := contradictions(conflicts)
	if len(against) > 0 && !r.s.cfg.Gate.met(rule.Approvals, &rule.Draft, rule.Authors, against) {
		return contradicted(against)
	}
	rule.Status, rule.Since, rule.Effect = StateActive, now, Effect{}
	return nil
}

// Pin ranks an active rule before all rules that are not pinned, or ends that. A repeated call changes nothing.
func (r *Rules) Pin(ctx context.Context, o Order, pinned bool) (Rule, error) {
	kind := "unpin"
	if pinned {
		kind = "pin"
	}
	return r.alter(ctx, kind, o, func(rule *Rule, _ time.Time) (bool, error) {
		if rule.Status != StateActive {
			return false, notNow("rule", rule.Status)
		}
		changed := rule.Pinned != pinned
		rule.Pinned = pinned
		return changed, nil
	})
}

// leave takes a rule out of use, from one of these statuses.
func (r *Rule) leave(as State, now time.Time, from ...State) error {
	if !slices.Contains(from, r.Status) {
		return notNow("rule", r.Status)
	}
	r.Status, r.Left, r.RetireProposed = as, now, time.Time{}
	return nil
}

// alter changes one rule. apply reports whether there is something to change.
func (r *Rules) alter(ctx context.Context, kind string, o Order, apply func(*Rule, time.Time) (bool, error)) (rule Rule, err error) {
	if err := checkName("ID", o.ID); err != nil {
		return Rule{}, wrap(kind, err)
	}
	s := r.s
	seen, err := ruleKind.get(ctx, s.cfg.Store, o.ID)
	if err != nil {
		return Rule{}, wrap(kind, err)
	}
	revision, err := s.act(ctx, kind, o.ID, o.Actor, o.Reason, &seen.Draft, func(now time.Time, _ string) (c change, err error) {
		at, err := s.board(ctx)
		if err != nil {
			return c, err
		}
		if rule, err = ruleKind.get(ctx, s.cfg.Store, o.ID); err != nil {
			return c, err
		}
		if changed, err := apply(&rule, now); err != nil || !changed {
			return c, err
		}
		c = at.governs(now)
		c.write(ruleKind.record(rule))
		switch kind {
		case "restore":
			c.notice(heed.Activated{Component: component, At: now, Subject: rule.ID})
		case "retire", "revoke":
			c.notice(heed.Retired{Component: component, At: now, Subject: rule.ID, Reason: kind + "d"})
		}
		return c, nil
	})
	if err != nil {
		return Rule{}, wrap(kind, err)
	}
	rule.Revision = max(rule.Revision, revision)
	return rule, nil
}

package feedback

import (
	"context"
	"slices"
	"time"
)

// An Order is what a person wants to be done with a rule.
type Order struct {
	Rule   string
	Actor  string
	Reason string // never empty
}

// Retire takes an active rule out of use. It can be restored.
func (r *Rules) Retire(ctx context.Context, o Order) (Rule, error) {
	return r.move(ctx, ActRetire, o, func(rule *Rule, now time.Time) (bool, error) {
		return true, rule.leave(RuleRetired, now, RuleActive)
	})
}

// Revoke withdraws a rule for good, be it active or retired: the next prompt that is built is without it. It can't be
// restored, but proposed anew.
func (r *Rules) Revoke(ctx context.Context, o Order) (Rule, error) {
	return r.move(ctx, ActRevoke, o, func(rule *Rule, now time.Time) (bool, error) {
		return true, rule.leave(RuleRevoked, now, RuleActive, RuleRetired)
	})
}

// Restore brings a retired rule back, as it was approved. Its effect is measured from now on. Where it contradicts a rule
// that became active since, which its approvals do not override, that is a [*ConflictError].
func (r *Rules) Restore(ctx context.Context, o Order) (Rule, error) {
	return r.move(ctx, ActRestore, o, func(rule *Rule, now time.Time) (bool, error) {
		if rule.Status != RuleRetired {
			return false, &StateError{What: "rule", State: string(rule.Status)}
		}
		conflicts, err := r.s.conflicts(ctx, &rule.Draft, nil, "")
		if err != nil {
			return false, err
		}
		against := contradictions(conflicts)
		if len(against) > 0 && !r.s.cfg.Gate.met(rule.Approvals, &rule.Draft, rule.Authors, against) {
			return false, &ConflictError{against}
		}
		rule.Status, rule.Since, rule.Effect = RuleActive, now, Effect{}
		return true, nil
	})
}

// Pin ranks an active rule before all that are not pinned. To pin it again changes nothing.
func (r *Rules) Pin(ctx context.Context, o Order) (Rule, error) { return r.pin(ctx, ActPin, o, true) }

// Unpin takes that back.
func (r *Rules) Unpin(ctx context.Context, o Order) (Rule, error) {
	return r.pin(ctx, ActUnpin, o, false)
}

func (r *Rules) pin(ctx context.Context, kind ActKind, o Order, pinned bool) (Rule, error) {
	return r.move(ctx, kind, o, func(rule *Rule, _ time.Time) (bool, error) {
		if rule.Status != RuleActive {
			return false, &StateError{What: "rule", State: string(rule.Status)}
		}
		changed := rule.Pinned != pinned
		rule.Pinned = pinned
		return changed, nil
	})
}

// leave takes a rule out of use, from one of these statuses.
func (r *Rule) leave(as RuleStatus, now time.Time, from ...RuleStatus) error {
	if !slices.Contains(from, r.Status) {
		return &StateError{What: "rule", State: string(r.Status)}
	}
	r.Status, r.Left, r.RetireProposed = as, now, time.Time{}
	return nil
}

// move changes one rule. alter reports whether there is something to change.
func (r *Rules) move(ctx context.Context, kind ActKind, o Order, alter func(*Rule, time.Time) (bool, error)) (rule Rule, err error) {
	if err := checkName("Rule", o.Rule); err != nil {
		return Rule{}, wrap(string(kind), err)
	}
	s := r.s
	seen, err := ruleKind.get(ctx, s.cfg.Store, o.Rule)
	if err != nil {
		return Rule{}, wrap(string(kind), err)
	}
	revision, err := s.act(ctx, kind, o.Rule, o.Actor, o.Reason, &seen.Draft, func(now time.Time, _ string) (c change, err error) {
		at, err := s.board(ctx)
		if err != nil {
			return c, err
		}
		if rule, err = ruleKind.get(ctx, s.cfg.Store, o.Rule); err != nil {
			return c, err
		}
		if changed, err := alter(&rule, now); err != nil || !changed {
			return c, err
		}
		c = at.governs(now)
		c.write(ruleKind.record(rule))
		return c, nil
	})
	if err != nil {
		return Rule{}, wrap(string(kind), err)
	}
	rule.Revision = max(rule.Revision, revision)
	return rule, nil
}

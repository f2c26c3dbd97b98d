package feedback

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/store"
)

var _ heed.Sweeper = (*Service)(nil)

// How often [Service.Sweep] calls [Service.Flush], and measures the rules.
const (
	flushEvery   = time.Hour
	measureEvery = 24 * time.Hour
)

// Sweep implements [heed.Sweeper]: it does what is due at now, or by the service's clock if that is earlier or now is zero.
//
//   - Each time it closes expired proposals.
//   - Every hour it evaluates all unclassified feedback and calls [Service.Flush].
//   - Every day it measures the active rules and stores their [Effect]. Harmful rules get [Rule].RetireProposed first, then
//     ineffective ones by their improvement, at most [Measuring].PerSweep; or they are retired, if [Measuring].Retire is set.
//     [RuleQuery].Unfit finds them.
//
// It goes on where a part fails, and returns the errors, joined. The part is due again at the next call.
func (s *Service) Sweep(ctx context.Context, now time.Time) error {
	at := s.now()
	if !now.IsZero() && now.Before(at) {
		at = now.UTC().Truncate(time.Microsecond)
	}
	changed := 0
	err := errors.Join(
		s.expireAll(ctx, at, &changed),
		s.every(ctx, flushEvery, flushedMark, at, func() error {
			done, evaluated := s.evaluateAll(ctx)
			proposed, _, flushed := s.Flush(ctx)
			changed += done + len(proposed)
			return errors.Join(evaluated, flushed)
		}),
		s.every(ctx, measureEvery, measuredMark, at, func() error { return s.measureAll(ctx, at, &changed) }),
	)
	if changed > 0 && s.watch != nil {
		s.watch.Tell(ctx, heed.Swept{Component: component, At: at, Count: changed})
	}
	return wrap("sweep", err)
}

// every does something unless a service over the store did it within the period.
func (s *Service) every(ctx context.Context, period time.Duration, name string, now time.Time, do func() error) error {
	last, err := markKind.Get(ctx, s.cfg.Store, name)
	switch {
	case errors.Is(err, heed.ErrNotFound):
	case err != nil:
		return err
	case now.Sub(last.Value.At) < period:
		return nil
	}
	if err := do(); err != nil {
		return err
	}
	_, err = s.apply(ctx, change{records: []store.Record{markKind.Record(mark{name, now}, last.Revision)}})
	if errors.As(err, new(*raceError)) { // somebody else has done it too
		return nil
	}
	return err
}

func (s *Service) expireAll(ctx context.Context, now time.Time, changed *int) error {
	pending, err := s.waiting(ctx)
	failures := []error{err}
	for _, p := range pending {
		if now.Before(p.Expires) {
			continue
		}
		switch err := s.expire(ctx, p, now); {
		case err == nil:
			*changed++
		case !errors.As(err, new(*raceError)): // another one may have decided it meanwhile
			failures = append(failures, err)
		}
	}
	return errors.Join(failures...)
}

func (s *Service) measureAll(ctx context.Context, now time.Time, changed *int) error {
	var failures []error
	var unfit []Rule
	rules, err := s.Rules().List(ctx, RuleQuery{Status: StateActive})
	if err != nil {
		return err
	}
	for i := range rules {
		rule := &rules[i]
		effect, err := s.measure(ctx, rule, now)
		if err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", rule.ID, err))
			continue
		}
		rule.Effect = effect
		if effect.unfit() {
			unfit = append(unfit, *rule)
		}
	}
	slices.SortFunc(unfit, compareUnfit)
	retire := map[string]bool{}
	for _, rule := range unfit[:min(len(unfit), s.cfg.Measuring.PerSweep)] {
		retire[rule.ID] = true
	}
	for i := range rules {
		if rules[i].Effect.Measured.Equal(now) {
			if err := s.keepEffect(ctx, rules[i], now, retire[rules[i].ID]); err != nil {
				failures = append(failures, fmt.Errorf("%s: %w", rules[i].ID, err))
				continue
			}
			*changed++
		}
	}
	return errors.Join(failures...)
}

// compareUnfit orders rules by who should be retired first.
func compareUnfit(a, b Rule) int {
	return cmp.Or(compareBool(b.Effect.Status == harmful, a.Effect.Status == harmful),
		cmp.Compare(a.Effect.Improvement, b.Effect.Improvement), cmp.Compare(a.ID, b.ID))
}

// keepEffect stores what was measured, and what follows from it, on a rule that is still as it was when it was measured.
func (s *Service) keepEffect(ctx context.Context, measured Rule, now time.Time, retire bool) error {
	_, err := s.commit(ctx, s.governing, func() (change, error) {
		at, err := s.board(ctx)
		if err != nil {
			return change{}, err
		}
		rule, err := ruleKind.get(ctx, s.cfg.Store, measured.ID)
		if err != nil || rule.Status != StateActive || !rule.Since.Equal(measured.Since) {
			return change{}, err
		}
		c := at.governs(now)
		e := &measured.Effect
		why := fmt.Sprintf("%s: improvement %.3f", e.Status, e.Improvement)
		if e.Status == harmful && rule.Effect.Status != harmful {
			c.notice(heed.Harmful{Component: component, At: now, Subject: rule.ID, Reason: why})
		}
		rule.Effect = *e
		switch {
		case retire && s.cfg.Measuring.Retire:
			rule.Status, rule.Left, rule.RetireProposed = StateRetired, now, time.Time{}
			c.tell(s.entry(now, "", "retire", rule.ID, why))
			c.notice(heed.Retired{Component: component, At: now, Subject: rule.ID, Reason: why})
		case retire && rule.RetireProposed.IsZero():
			rule.RetireProposed = now
			c.tell(s.entry(now, "", "propose-retirement", rule.ID, why))
		case !e.unfit():
			rule.RetireProposed = time.Time{}
		}
		c.write(ruleKind.record(rule))
		return c, nil
	})
	return err
}

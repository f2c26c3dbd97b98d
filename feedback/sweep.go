package feedback

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// A SweepReport says what a sweep has done.
type SweepReport struct {
	Expired  []string // proposals whose time was over
	Measured int      // active rules
	// Retire are the active rules whose effect speaks for retiring them, the worst first: harmful ones, then those with the
	// least improvement, at most Measuring.PerSweep. They carry Rule.RetireProposed, or, where Measuring.Retire is set, are
	// retired.
	Retire []string
}

// Sweep closes proposals whose time is over, measures the active rules, keeps what it measured with them, and says which
// should be retired. Call it now and then, such as once a day. It goes on where one fails, and returns the errors, joined.
func (s *Service) Sweep(ctx context.Context) (SweepReport, error) {
	var report SweepReport
	now := s.now()
	err := errors.Join(s.expireAll(ctx, now, &report), s.measureAll(ctx, now, &report))
	return report, wrap("sweep", err)
}

func (s *Service) expireAll(ctx context.Context, now time.Time, report *SweepReport) error {
	var failures []error
	for p, err := range s.cfg.Store.Proposals(ctx, ProposalQuery{Status: StatusPending}) {
		if err != nil {
			return err
		}
		if now.Before(p.Expires) {
			continue
		}
		var c Change
		s.expire(&c, p, now)
		switch err := s.apply(ctx, c); {
		case err == nil:
			report.Expired = append(report.Expired, p.ID)
		case !errors.As(err, new(*raceError)): // who was quicker has decided it
			failures = append(failures, err)
		}
	}
	slices.Sort(report.Expired)
	return errors.Join(failures...)
}

func (s *Service) measureAll(ctx context.Context, now time.Time, report *SweepReport) error {
	var failures []error
	var unfit []Rule
	rules, err := s.Rules().List(ctx, RuleQuery{Status: RuleActive})
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
		report.Measured++
		if effect.Status == Harmful || effect.Status == Ineffective {
			unfit = append(unfit, *rule)
		}
	}
	slices.SortFunc(unfit, func(a, b Rule) int {
		return cmp.Or(compareBool(b.Effect.Status == Harmful, a.Effect.Status == Harmful),
			cmp.Compare(a.Effect.Improvement, b.Effect.Improvement), cmp.Compare(a.ID, b.ID))
	})
	for _, rule := range unfit[:min(len(unfit), s.cfg.Measuring.PerSweep)] {
		report.Retire = append(report.Retire, rule.ID)
	}
	for i := range rules {
		if rules[i].Effect.Measured.Equal(now) {
			if err := s.keepEffect(ctx, rules[i], now, slices.Contains(report.Retire, rules[i].ID)); err != nil {
				failures = append(failures, fmt.Errorf("%s: %w", rules[i].ID, err))
			}
		}
	}
	return errors.Join(failures...)
}

// keepEffect stores what was measured, and what follows from it, on a rule that is still as it was when it was measured.
func (s *Service) keepEffect(ctx context.Context, measured Rule, now time.Time, retire bool) error {
	return s.governing.take(ctx, func() error {
		return again(ctx, func() error {
			revisions, err := s.cfg.Store.Revisions(ctx, board)
			if err != nil {
				return err
			}
			rule, err := s.cfg.Store.Rule(ctx, measured.ID)
			if err != nil || rule.Status != RuleActive || !rule.Since.Equal(measured.Since) {
				return err
			}
			c := Change{Expect: map[string]uint64{board: revisions[0]}}
			why := fmt.Sprintf("%s: improvement %.3f", measured.Effect.Status, measured.Effect.Improvement)
			rule.Effect = measured.Effect
			switch {
			case retire && s.cfg.Measuring.Retire:
				rule.Status, rule.Left, rule.RetireProposed = RuleRetired, now, time.Time{}
				c.Audit = append(c.Audit, s.entry(now, "", string(ActRetire), rule.ID, why))
			case retire && rule.RetireProposed.IsZero():
				rule.RetireProposed = now
				c.Audit = append(c.Audit, s.entry(now, "", "propose-retirement", rule.ID, why))
			case measured.Effect.Status != Harmful && measured.Effect.Status != Ineffective:
				rule.RetireProposed = time.Time{}
			}
			c.Rules = []Rule{rule}
			return s.apply(ctx, c)
		})
	})
}

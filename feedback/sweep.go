package feedback

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/internal/winner"
	"github.com/heedhq/heed/store"
)

var _ heed.Sweeper = (*Service)(nil)

const (
	flushEvery   = time.Hour      // [Service.Sweep] calls [Service.Flush]
	measureEvery = 24 * time.Hour // and measures the rules

	// A rule is compared with the time before it. While it stabilises no decision counts, because
	// work that began earlier is still being reviewed. After the review a rule without an effect is
	// ineffective.
	compared  = 30 * 24 * time.Hour
	stabilise = 7 * 24 * time.Hour
	review    = 30 * 24 * time.Hour

	floor    = 8   // decisions on either side, below which a rate is not evidence
	improved = 0.1 // the relative drop of the rate from which on a rule is effective
)

// Sweep implements [heed.Sweeper]: it does what is due at now, or by the service's clock if that is
// earlier or now is zero.
//
//   - Each time it closes expired proposals.
//   - Every hour it calls [Service.EvaluateAll] and [Service.Flush].
//   - Every day it measures the active rules and stores their [Effect]. [RuleQuery].Unfit finds
//     those that are harmful or ineffective, for a person who may retire them ([Rules.Move]).
//
// If a part fails, it goes on with the others, and returns the errors, joined. The part is due
// again at the next call. If it fails again, it pauses for a minute, and for twice as long after
// each further failure, up to its period.
func (s *Service) Sweep(ctx context.Context, now time.Time) error {
	at := valid.Due(now, s.now()).UTC().Truncate(time.Microsecond)
	changed := 0
	err := errors.Join(
		valid.Wrap("expire", s.expireAll(ctx, at, &changed)),
		valid.Wrap("flush", s.every(ctx, flushEvery, flushedMark, at, func() error {
			done, failed := s.EvaluateAll(ctx)
			proposed, _, flushed := s.Flush(ctx)
			changed += len(done) + len(proposed)
			return errors.Join(failed, flushed)
		})),
		valid.Wrap("measure", s.every(ctx, measureEvery, measuredMark, at,
			func() error { return s.measureAll(ctx, at, &changed) })),
	)
	s.watch.Swept(ctx, at, changed)
	s.watch.Failed(ctx, "sweep", err)
	return wrap("sweep", err)
}

// every runs a task unless a service over the store did it within the period. A mark too far ahead
// is ignored, because the clock that made it was wrong. After the second failure in a row every
// waits for a minute, then for twice as long each time, up to the period. The mark is shared by all
// processes, so one of them does the task in each period.
func (s *Service) every(
	ctx context.Context, period time.Duration, name string, now time.Time, do func() error,
) error {
	last, err := markKind.In(s.reading(ctx), name)
	if err != nil {
		return err
	}
	if ago := now.Sub(last.Value.At); ago < period && ago >= -evidence.MaxSkew {
		return nil
	}
	before, _ := s.failures.Get(name)
	pause := min(period, time.Minute<<min(max(before.row-2, 0), 20))
	if ago := now.Sub(before.at); before.row > 1 && ago >= 0 && ago < pause {
		return nil
	}
	if err := do(); err != nil {
		if ctx.Err() == nil {
			s.failures.Put(name, failure{now, before.row + 1})
		}
		return err
	}
	s.failures.Put(name, failure{})
	return store.Do(ctx, s.cfg.Store, func(tx *store.Tx) error {
		row, err := markKind.In(tx, name)
		markKind.Put(tx, mark{name, now}, row.Revision)
		return err
	})
}

// A failure is when a part of a sweep failed last, and how many failures came in a row.
type failure struct {
	at  time.Time
	row int
}

// expireAll closes the proposals whose time is over. Each is a step by itself, so that one that
// fails does not keep the others open.
func (s *Service) expireAll(ctx context.Context, now time.Time, changed *int) error {
	due, err := proposalKind.union(s.reading(ctx), pendingKeys,
		func(p *Proposal) bool { return !now.Before(p.Expires) })
	failures := []error{err}
	for _, p := range due {
		revision, err := s.step(ctx, s.governing, func(c *change) error {
			p, err := proposalKind.in(c.Tx, p.ID)
			if c.now = now; err == nil && p.Status == StatePending {
				p.expired(c)
			}
			return err
		})
		if err == nil && revision > 0 {
			*changed++
		}
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}

// measureAll measures the active rules. One that fails does not keep the others from it.
func (s *Service) measureAll(ctx context.Context, now time.Time, changed *int) error {
	rules, err := s.Rules().List(ctx, RuleQuery{Status: StateActive})
	failures := []error{err}
	for i := range rules {
		effect, err := s.measure(ctx, &rules[i], now)
		if err == nil {
			err = s.keepEffect(ctx, &rules[i], effect)
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", rules[i].ID, err))
			continue
		}
		*changed++
	}
	return errors.Join(failures...)
}

// compareUnfit orders rules by who should be retired first.
func compareUnfit(a, b Rule) int {
	return cmp.Or(compareBool(b.Effect.Status == statusHarmful, a.Effect.Status == statusHarmful),
		cmp.Compare(a.Effect.Improvement, b.Effect.Improvement), cmp.Compare(a.ID, b.ID))
}

// keepEffect stores what was measured, on a rule that is still as it was when it was measured.
func (s *Service) keepEffect(ctx context.Context, measured *Rule, e Effect) error {
	_, err := s.step(ctx, s.governing, func(c *change) error {
		c.Want(store.Wants{Refs: []store.Ref{rulesRef(), ruleKind.Ref(measured.ID)}})
		rule, err := ruleKind.in(c.Tx, measured.ID)
		if rule.Status != StateActive || !rule.Since.Equal(measured.Since) {
			return err
		}
		c.now = e.Measured
		why := fmt.Sprintf("%s: improvement %.3f", e.Status, e.Improvement)
		if e.Status == statusHarmful && rule.Effect.Status != statusHarmful {
			c.notice(heed.Changed{What: "harmful",
				Component: component, At: c.now, Subject: rule.ID, Reason: why})
		}
		if e.unfit() && !rule.Effect.unfit() {
			c.logAudit("propose-retirement", rule.ID, why, nil)
		}
		rule.Effect = e
		c.write(ruleKind.record(rule))
		return c.raise(rulesMark)
	})
	return err
}

// Effect is what a rule changed. It compares how often the corrections that the rule was made of
// recur or, if it was not made of corrections, how often its agents are corrected: in the decisions
// of 30 days before the rule came into effect, and from 7 days after.
type Effect struct {
	// Status is the verdict, "" until it was measured. The first that holds counts:
	//
	//   - "stabilising": the rule came into effect less than 7 days ago.
	//   - "insufficient_data": there are fewer than eight decisions on either side, or no correction
	//     to avoid.
	//   - "harmful": even the lower bound of the rate after is above the rate before (Wilson score
	//     interval of 95 %, Wilson 1927).
	//   - "ineffective": its [Check] looked at eight texts or more, and even the lower bound of the
	//     share that broke the rule is above a half, 7 days after it came into effect. Or it did not
	//     improve, 30 days after it came into effect.
	//   - "effective": it improved by a tenth or more.
	//   - "under_review": it improved by less, or not yet.
	Status string `json:"status,omitempty"`
	Before Rate   `json:"before"`
	After  Rate   `json:"after"`
	// Improvement is 1 − After/Before: 0.5 if the rate halved, negative if it rose. It is 0 if there
	// was no correction before, or fewer than eight decisions on either side.
	Improvement float64 `json:"improvement"`
	// Certainty is the probability, in [0, 1], that the true rate fell at all, with an even prior on
	// both.
	Certainty float64 `json:"certainty"`
	// Checks counts the answers and the calls of tools that its [Check] has looked at since the rule
	// came into effect. The hits broke the rule.
	Checks Rate `json:"checks,omitzero"`
	// Violations counts the hits of Checks, and the corrections of the rule's clusters that came
	// although the prompt had the rule: see Feedback.Rules.
	Violations int       `json:"violations"`
	Measured   time.Time `json:"measured,omitzero"`
}

// The statuses of an effect.
const (
	statusStabilising = "stabilising"
	statusUnknown     = "insufficient_data"
	statusHarmful     = "harmful"
	statusIneffective = "ineffective"
	statusEffective   = "effective"
	statusUnderReview = "under_review"
)

// A Rate is the share of decisions that were corrections.
type Rate struct {
	// Hits counts what was found, and Of all that was looked at.
	Hits int `json:"hits"`
	Of   int `json:"of"`
	// Mean is Hits/Of, or 0 without hits.
	Mean float64 `json:"mean"`
}

// unfit reports whether the effect speaks for retiring the rule.
func (e *Effect) unfit() bool { return e.Status == statusHarmful || e.Status == statusIneffective }

// wilsonLower returns the lower bound of the Wilson score interval of 95 % of hits in n (Wilson
// 1927), and 0 if n is 0.
func wilsonLower(hits, n int) float64 {
	if n <= 0 {
		return 0
	}
	const z = 1.959963984540054
	p, m := float64(hits)/float64(n), float64(n)
	root := z * math.Sqrt((p*(1-p)+z*z/(4*m))/m)
	return max((p+z*z/(2*m)-root)/(1+z*z/m), 0)
}

// add counts a decision.
func (r *Rate) add(hit bool) {
	r.Of++
	if hit {
		r.Hits++
	}
	r.Mean = float64(r.Hits) / float64(r.Of)
}

// measure reads the decisions about the rule's agents, before and after. Decisions while the rule
// settles count for neither, because work that began without the rule is still being reviewed.
func (s *Service) measure(ctx context.Context, rule *Rule, now time.Time) (Effect, error) {
	e := Effect{Measured: now}
	settled := rule.Since.Add(stabilise)
	q := Listing{Since: rule.Since.Add(-compared), Until: now.Add(time.Microsecond)}
	if len(rule.Agents) == 1 {
		q.Agent = rule.Agents[0]
	}
	for r, err := range s.records(ctx, q) {
		if err != nil {
			return Effect{}, err
		}
		before := r.At.Before(rule.Since)
		recurs := r.corrects() && r.Cluster != "" && slices.Contains(rule.Clusters, r.Cluster)
		if recurs && !before && slices.Contains(r.Rules, rule.ID) {
			e.Violations++
		}
		hit := recurs || len(rule.Clusters) == 0 && r.corrects()
		switch {
		case !rule.affects(r.Agent):
		case before:
			e.Before.add(hit)
		case !r.At.Before(settled):
			e.After.add(hit)
		}
	}
	e.compare()
	e.Status = e.status(now.Sub(rule.Since))
	err := s.countChecks(ctx, rule, &e)
	broken := e.Checks.Of >= floor && wilsonLower(e.Checks.Hits, e.Checks.Of) > 0.5
	if broken && e.Status != statusHarmful && now.Sub(rule.Since) >= stabilise {
		e.Status = statusIneffective
	}
	return e, err
}

// countChecks counts how often the rule was broken where its check looked.
func (s *Service) countChecks(ctx context.Context, rule *Rule, e *Effect) error {
	if rule.Check == (Check{}) {
		return nil
	}
	var read store.Snapshot
	if err := s.cfg.Store.Read(ctx, &read, []evidence.Cell{checks(rule.ID)}, nil); err != nil {
		return err
	}
	for _, part := range read.Parts {
		e.Checks.Hits += int(part.Tally.Negative.N)
		e.Checks.Of += int(part.Tally.N())
	}
	if e.Checks.Of > 0 {
		e.Checks.Mean = float64(e.Checks.Hits) / float64(e.Checks.Of)
	}
	e.Violations += e.Checks.Hits
	return nil
}

// compare fills in what follows from both rates.
func (e *Effect) compare() {
	belief := func(r Rate) evidence.Beta {
		return evidence.Beta{Alpha: 1 + float64(r.Hits), Beta: 1 + float64(r.Of-r.Hits)}
	}
	e.Certainty = winner.ProbBest([]evidence.Beta{belief(e.Before), belief(e.After)})[0]
	if e.Before.Hits > 0 && e.enough() {
		e.Improvement = 1 - e.After.Mean/e.Before.Mean
	}
}

// enough reports whether both sides have decisions enough to compare them.
func (e *Effect) enough() bool { return e.Before.Of >= floor && e.After.Of >= floor }

// status returns the first status that holds: see [Effect].Status. Harm is found before the review
// is due, because a harmful rule should not stay for a month.
func (e *Effect) status(age time.Duration) string {
	switch {
	case age < stabilise:
		return statusStabilising
	case !e.enough():
		return statusUnknown
	case wilsonLower(e.After.Hits, e.After.Of) > e.Before.Mean:
		return statusHarmful
	case e.Before.Hits == 0:
		return statusUnknown
	case e.Improvement >= improved-1e-12:
		return statusEffective
	case e.Improvement > 0 || age < review:
		return statusUnderReview
	default:
		return statusIneffective
	}
}

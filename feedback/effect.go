package feedback

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/heedhq/heed/evidence"
)

// An Effect is what a rule has changed, measured in the decisions about the agents that it is for: from Measuring.Before
// before it came into effect, and from Measuring.Stabilise after.
type Effect struct {
	Status EffectStatus `json:"status,omitempty"` // "" until it was measured
	// Basis says which of the two changes it is judged by: "recurrence" of what the rule should end, where it was made of
	// feedback, and else "corrections". Improvement is that change's.
	Basis       string  `json:"basis,omitempty"`
	Improvement float64 `json:"improvement"`
	// Recurrence counts the corrections that stand with the rule's clusters, and Corrections all.
	Recurrence  Shift `json:"recurrence"`
	Corrections Shift `json:"corrections"`
	// Violations are how many corrections of its clusters came although the agent's prompt had the rule: see Feedback.Rules.
	Violations int       `json:"violations"`
	Measured   time.Time `json:"measured,omitzero"`
}

// A Shift compares a rate before and after.
type Shift struct {
	Before Rate `json:"before"`
	After  Rate `json:"after"`
	// Improvement is by how much of itself the rate fell, 1 − after/before: 0.5 where it halved, negative where it rose. 0
	// where there was nothing before, or too little is known on either side.
	Improvement float64 `json:"improvement"`
	// Certainty is how probable it is, in [0, 1], that the true rate fell at all, from an even prior on both.
	Certainty float64 `json:"certainty"`
}

// A Rate is how many of a number of decisions were corrections.
type Rate struct {
	Hits int     `json:"hits"`
	Of   int     `json:"of"`
	Mean float64 `json:"mean"` // Hits/Of, and 0 where there are none
}

// An EffectStatus is what is thought of a rule.
type EffectStatus string

// The statuses of an effect, in the order in which they are tried.
const (
	Stabilising  EffectStatus = "stabilising"       // it came into effect less than Measuring.Stabilise ago
	Insufficient EffectStatus = "insufficient_data" // fewer than Measuring.Floor decisions on either side, or nothing to improve
	Harmful      EffectStatus = "harmful"           // even the lower bound of the rate after is above the rate before
	Effective    EffectStatus = "effective"         // it improved by Measuring.Improvement or more
	UnderReview  EffectStatus = "under_review"      // it improved by less, or not yet
	Ineffective  EffectStatus = "ineffective"       // it did not improve, Measuring.Review after it came into effect
)

// WilsonLower returns the lower bound of the Wilson score interval, of 95 %, of a rate of which hits of n were seen (Wilson
// 1927), and 0 where n is 0.
func WilsonLower(hits, n int) float64 {
	if n <= 0 {
		return 0
	}
	const z = 1.959963984540054
	p, m := float64(hits)/float64(n), float64(n)
	root := z * math.Sqrt((p*(1-p)+z*z/(4*m))/m)
	return max((p+z*z/(2*m)-root)/(1+z*z/m), 0)
}

// Measure returns the effect of a rule as it is now. Nothing is stored: see [Service.Sweep].
func (r *Rules) Measure(ctx context.Context, id string) (Effect, error) {
	rule, err := r.s.cfg.Store.Rule(ctx, id)
	if err != nil {
		return Effect{}, wrap("measure", err)
	}
	effect, err := r.s.measure(ctx, &rule, r.s.now())
	return effect, wrap("measure", err)
}

// sides are what is counted before a rule and after it.
type sides struct{ before, after evidence.Tally }

func (t *sides) add(before bool, hit bool, at time.Time) {
	side, reward := &t.after, 0.
	if before {
		side = &t.before
	}
	if hit {
		reward = 1
	}
	side.Add(1, reward, evidence.InstantOf(at))
}

func (s *Service) measure(ctx context.Context, rule *Rule, now time.Time) (Effect, error) {
	m := s.cfg.Measuring
	e := Effect{Measured: now, Basis: "corrections"}
	if len(rule.Clusters) > 0 {
		e.Basis = "recurrence"
	}
	var recurrence, corrections sides
	settled := rule.Since.Add(m.Stabilise)
	for r, err := range s.cfg.Store.Records(ctx, Query{Since: rule.Since.Add(-m.Before), Until: now.Add(time.Microsecond)}) {
		if err != nil {
			return Effect{}, err
		}
		before := r.At.Before(rule.Since)
		recurs := r.Corrects() && r.Cluster != "" && slices.Contains(rule.Clusters, r.Cluster)
		if recurs && !before && slices.Contains(r.Rules, rule.ID) {
			e.Violations++
		}
		if rule.Affects(r.Agent) && (before || !r.At.Before(settled)) {
			recurrence.add(before, recurs, r.At)
			corrections.add(before, r.Corrects(), r.At)
		}
	}
	e.Recurrence, e.Corrections = recurrence.shift(m.Floor), corrections.shift(m.Floor)
	judged := e.Corrections
	if e.Basis == "recurrence" {
		judged = e.Recurrence
	}
	e.Improvement = judged.Improvement
	e.Status = m.status(judged, now.Sub(rule.Since))
	return e, nil
}

func (t *sides) shift(floor int) Shift {
	s := Shift{Before: rate(t.before), After: rate(t.after)}
	even := evidence.Beta{Alpha: 1, Beta: 1}
	fell := evidence.ProbBest([]evidence.Beta{t.before.At(0).Posterior(even), t.after.At(0).Posterior(even)})
	s.Certainty = fell[0]
	if s.Before.Hits > 0 && s.enough(floor) {
		s.Improvement = 1 - s.After.Mean/s.Before.Mean
	}
	return s
}

func rate(t evidence.Tally) Rate {
	r := Rate{Hits: int(t.Positive.N), Of: int(t.N())}
	if r.Of > 0 {
		r.Mean = t.At(0).Mean()
	}
	return r
}

func (s *Shift) enough(floor int) bool { return s.Before.Of >= floor && s.After.Of >= floor }

func (m *Measuring) status(s Shift, age time.Duration) EffectStatus {
	switch {
	case age < m.Stabilise:
		return Stabilising
	case !s.enough(m.Floor):
		return Insufficient
	case WilsonLower(s.After.Hits, s.After.Of) > s.Before.Mean:
		return Harmful
	case s.Before.Hits == 0:
		return Insufficient
	case s.Improvement >= m.Improvement-1e-12:
		return Effective
	case s.Improvement > 0 || age < m.Review:
		return UnderReview
	default:
		return Ineffective
	}
}

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

// A DryRun says which past corrections a draft would have applied to.
type DryRun struct {
	Corrections int     // of the agents that it is for, the latest Config.Window of each
	Applied     []Match // those whose text is like it, the most alike first; Opposed says which of them contradict it
}

// DryRun says to which past corrections a draft would have applied. It changes nothing.
func (r *Rules) DryRun(ctx context.Context, d Draft) (DryRun, error) {
	s := r.s
	d = d.normal()
	if err := s.validateDraft(&d); err != nil {
		return DryRun{}, wrap("dry run", err)
	}
	agents := d.Agents
	if d.AllAgents {
		agents = []string{""}
	}
	var run DryRun
	for _, agent := range agents {
		known, err := s.recent(ctx, &Feedback{Agent: agent})
		if err != nil {
			return DryRun{}, wrap("dry run", err)
		}
		known = slices.DeleteFunc(known, func(r Record) bool { return !r.Corrects() })
		run.Corrections += len(known)
		matches, err := s.compare(ctx, d.Text, known)
		if err != nil {
			return DryRun{}, wrap("dry run", err)
		}
		for _, m := range matches {
			if m.Score >= s.cfg.Similarity.Traits().Threshold {
				run.Applied = append(run.Applied, m)
			}
		}
	}
	slices.SortStableFunc(run.Applied, func(a, b Match) int { return cmp.Compare(b.Score, a.Score) })
	return run, nil
}

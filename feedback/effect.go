package feedback

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/heedhq/heed/evidence"
)

// Effect is what a rule has changed. It is measured in the decisions about the rule's agents, from Measuring.Before before the
// rule came into effect, and from Measuring.Stabilise after.
type Effect struct {
	// Status is the first of these that holds, and "" until it was measured:
	//   - "stabilising": the rule came into effect less than Measuring.Stabilise ago;
	//   - "insufficient_data": fewer than Measuring.Floor decisions on either side, or nothing to improve;
	//   - "harmful": even the lower bound of the rate after is above the rate before (Wilson score interval of 95 %, Wilson 1927);
	//   - "effective": it improved by Measuring.Improvement or more;
	//   - "under_review": it improved by less, or not yet;
	//   - "ineffective": it did not improve, Measuring.Review after it came into effect.
	Status string `json:"status,omitempty"`
	// Basis is the change that the rule is judged by: "recurrence" if it was made of feedback, and else "corrections".
	// Improvement is that of the basis.
	Basis       string  `json:"basis,omitempty"`
	Improvement float64 `json:"improvement"`
	// Recurrence counts the corrections that stand with the rule's clusters, and Corrections all.
	Recurrence  Shift `json:"recurrence"`
	Corrections Shift `json:"corrections"`
	// Violations counts corrections of its clusters although the agent's prompt had the rule: see Feedback.Rules.
	Violations int       `json:"violations"`
	Measured   time.Time `json:"measured,omitzero"`
}

// A Shift compares a rate before and after.
type Shift struct {
	Before Rate `json:"before"`
	After  Rate `json:"after"`
	// Improvement is 1 − after/before: 0.5 if the rate halved, negative if it rose. It is 0 if there was nothing before, or
	// fewer decisions than Measuring.Floor on either side.
	Improvement float64 `json:"improvement"`
	// Certainty is the probability, in [0, 1], that the true rate fell at all, with an even prior on both.
	Certainty float64 `json:"certainty"`
}

// A Rate is the share of decisions that were corrections.
type Rate struct {
	Hits int     `json:"hits"`
	Of   int     `json:"of"`
	Mean float64 `json:"mean"` // Hits/Of, and 0 where there are none
}

const (
	harmful     = "harmful"
	ineffective = "ineffective"
)

// unfit reports whether the effect speaks for retiring the rule.
func (e *Effect) unfit() bool { return e.Status == harmful || e.Status == ineffective }

// wilsonLower returns the lower bound of the Wilson score interval of 95 % of hits in n (Wilson 1927), and 0 if n is 0.
func wilsonLower(hits, n int) float64 {
	if n <= 0 {
		return 0
	}
	const z = 1.959963984540054
	p, m := float64(hits)/float64(n), float64(n)
	root := z * math.Sqrt((p*(1-p)+z*z/(4*m))/m)
	return max((p+z*z/(2*m)-root)/(1+z*z/m), 0)
}

func (r *Rate) add(hit bool) {
	r.Of++
	if hit {
		r.Hits++
	}
	r.Mean = float64(r.Hits) / float64(r.Of)
}

func (s *Service) measure(ctx context.Context, rule *Rule, now time.Time) (Effect, error) {
	m := s.cfg.Measuring
	e := Effect{Measured: now, Basis: "corrections"}
	if len(rule.Clusters) > 0 {
		e.Basis = "recurrence"
	}
	settled := rule.Since.Add(m.Stabilise)
	q := Listing{Since: rule.Since.Add(-m.Before), Until: now.Add(time.Microsecond)}
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
		if rule.affects(r.Agent) && (before || !r.At.Before(settled)) {
			e.Recurrence.side(before).add(recurs)
			e.Corrections.side(before).add(r.corrects())
		}
	}
	e.Recurrence.compare(m.Floor)
	e.Corrections.compare(m.Floor)
	judged := e.Corrections
	if e.Basis == "recurrence" {
		judged = e.Recurrence
	}
	e.Improvement = judged.Improvement
	e.Status = m.status(judged, now.Sub(rule.Since))
	return e, nil
}

func (s *Shift) side(before bool) *Rate {
	if before {
		return &s.Before
	}
	return &s.After
}

// compare fills in the rest, once both sides were counted.
func (s *Shift) compare(floor int) {
	belief := func(r Rate) evidence.Beta {
		return evidence.Beta{Alpha: 1 + float64(r.Hits), Beta: 1 + float64(r.Of-r.Hits)}
	}
	s.Certainty = evidence.ProbBest([]evidence.Beta{belief(s.Before), belief(s.After)})[0]
	if s.Before.Hits > 0 && s.enough(floor) {
		s.Improvement = 1 - s.After.Mean/s.Before.Mean
	}
}

func (s *Shift) enough(floor int) bool { return s.Before.Of >= floor && s.After.Of >= floor }

func (m *Measuring) status(s Shift, age time.Duration) string {
	switch {
	case age < m.Stabilise:
		return "stabilising"
	case !s.enough(m.Floor):
		return "insufficient_data"
	case wilsonLower(s.After.Hits, s.After.Of) > s.Before.Mean:
		return harmful
	case s.Before.Hits == 0:
		return "insufficient_data"
	case s.Improvement >= m.Improvement-1e-12:
		return "effective"
	case s.Improvement > 0 || age < m.Review:
		return "under_review"
	default:
		return ineffective
	}
}

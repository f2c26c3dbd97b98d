package feedback

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/heedhq/heed/evidence"
)

// An Effect is what a rule has changed, measured in the decisions about the agents that it is for: from Measuring.Before
// before it came into effect, and from Measuring.Stabilise after.
type Effect struct {
	// Status is the first of these that holds, and "" until it was measured:
	//   - "stabilising": the rule came into effect less than Measuring.Stabilise ago;
	//   - "insufficient_data": fewer than Measuring.Floor decisions on either side, or nothing to improve;
	//   - "harmful": even the lower bound of the rate after is above the rate before (Wilson score interval of 95 %, Wilson 1927);
	//   - "effective": it improved by Measuring.Improvement or more;
	//   - "under_review": it improved by less, or not yet;
	//   - "ineffective": it did not improve, Measuring.Review after it came into effect.
	Status string `json:"status,omitempty"`
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

const (
	harmful     = "harmful"
	ineffective = "ineffective"
)

// unfit reports whether the effect speaks for retiring the rule.
func (e *Effect) unfit() bool { return e.Status == harmful || e.Status == ineffective }

// wilsonLower returns the lower bound of the Wilson score interval, of 95 %, of a rate of which hits of n were seen (Wilson
// 1927), and 0 where n is 0.
func wilsonLower(hits, n int) float64 {
	if n <= 0 {
		return 0
	}
	const z = 1.959963984540054
	p, m := float64(hits)/float64(n), float64(n)
	root := z * math.Sqrt((p*(1-p)+z*z/(4*m))/m)
	return max((p+z*z/(2*m)-root)/(1+z*z/m), 0)
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
			recurrence.add(before, recurs, r.At)
			corrections.add(before, r.corrects(), r.At)
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

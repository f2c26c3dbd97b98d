package patterns

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// An Explanation says why a pattern stands where it does: what it has earned, and each gate with what is missing.
type Explanation struct {
	Standing
	Gates []Gate
	// Transitions are what became of it, as far as it is still kept, the last first.
	Transitions []Transition
}

// Explain tells why a pattern is proven or not, deprecated, or inverted. Of an anti-pattern that was made of a pattern, it
// explains the pattern.
func (r *Recorder) Explain(ctx context.Context, id PatternID) (Explanation, error) {
	e, err := r.explain(ctx, id)
	if err != nil {
		return Explanation{}, fmt.Errorf("patterns: explain: %w", err)
	}
	return e, nil
}

func (r *Recorder) explain(ctx context.Context, id PatternID) (Explanation, error) {
	found, err := r.find(ctx, id)
	if err != nil {
		return Explanation{}, err
	}
	p := found.patterns[id].Value
	if _, known := found.patterns[p.root()]; known {
		id = p.root()
	}
	s := r.stand(found, id, r.cfg.Now())
	transitions, err := collect(r.Transitions(ctx, TransitionQuery{Pattern: id}))
	if err != nil {
		return Explanation{}, err
	}
	return Explanation{Standing: s, Gates: append(s.gates, r.inversionGates(&s)...), Transitions: transitions}, nil
}

// inversionGates are the conditions under which a pattern is inverted, and under which an inverted one is rehabilitated.
func (r *Recorder) inversionGates(s *Standing) []Gate {
	v, p := &r.cfg.Inversion, &s.Pattern
	counts := s.Counts.minus(p.Base)
	ratio := 0.
	if n := counts.Total(); n > 0 {
		ratio = float64(counts.Failures) / float64(n)
	}
	gates := []Gate{
		newGate(Inverted, Observations, float64(counts.Total()), AtLeast, float64(v.MinObservations)),
		newGate(Inverted, FailureRate, ratio, AtLeast, v.FailureRatio),
	}
	if s.State != Inverted || r.cfg.Literal {
		return gates
	}
	return append(gates,
		newGate("rehabilitated", NewSuccesses, float64(s.Counts.minus(p.Inverted).Successes), AtLeast, float64(v.Rehabilitation)),
		newGate("rehabilitated", HarmfulPart, s.HarmfulShare, AtMost, r.cfg.Maturity.Deprecation))
}

func (e Explanation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%q is %s, with a multiplier of %g\n", e.Pattern.ID, e.State, e.Multiplier)
	if o := e.Pattern.Override; o != nil {
		fmt.Fprintf(&b, "by hand: %s wanted it %s, %q\n", o.Decision.Actor, o.State, o.Decision.Reason)
	}
	fmt.Fprintf(&b, "%d helpful and %d harmful observations, of which %.3f and %.3f have not faded\n",
		e.Counts.Successes, e.Counts.Failures, e.Helpful, e.Harmful)
	fmt.Fprintf(&b, "last validated %s, last feedback %s\n", moment(e.LastValidated), moment(e.LastFeedback))
	for _, g := range e.Gates {
		fmt.Fprintln(&b, g)
	}
	return b.String()
}

// CriterionExplanation says why a criterion weighs what it does.
type CriterionExplanation struct {
	Criterion
	Gates []Gate
	text  string
}

// ExplainCriterion tells why a criterion weighs so little, or so much.
func (r *Recorder) ExplainCriterion(ctx context.Context, name string) (CriterionExplanation, error) {
	c, err := r.Criterion(ctx, name)
	if err != nil {
		return CriterionExplanation{}, fmt.Errorf("patterns: explain: %w", err)
	}
	cfg := &r.cfg.Criteria
	n, ratio := c.HelpfulCount+c.HarmfulCount, c.HarmfulShare
	if r.cfg.Literal && n > 0 {
		ratio = float64(c.HarmfulCount) / float64(n)
	}
	e := CriterionExplanation{Criterion: c, Gates: []Gate{
		newGate(Deprecated, Observations, float64(n), AtLeast, float64(cfg.MinFeedback)),
		newGate(Deprecated, HarmfulPart, ratio, MoreThan, cfg.MaxHarmful),
	}}
	switch {
	case r.cfg.Literal:
		e.text = fmt.Sprintf("helpful/(helpful+harmful), and never below the floor of %g", cfg.Floor)
	case n < uint64(cfg.MinFeedback):
		e.text = fmt.Sprintf("the prior's, as there are fewer than %d observations", cfg.MinFeedback)
	default:
		e.text = fmt.Sprintf("(%g+helpful)/(%g+helpful+harmful), and never below the floor of %g", cfg.Prior.Alpha, cfg.Prior.Alpha+cfg.Prior.Beta, cfg.Floor)
	}
	return e, nil
}

func (e CriterionExplanation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%q weighs %.3f: %s\n", e.Name, e.Effective(), e.text)
	fmt.Fprintf(&b, "%d helpful and %d harmful observations, of which %.3f and %.3f have not faded\n",
		e.HelpfulCount, e.HarmfulCount, e.Helpful, e.Harmful)
	fmt.Fprintf(&b, "last validated %s, last feedback %s\n", moment(e.LastValidated), moment(e.LastFeedback))
	for _, g := range e.Gates {
		fmt.Fprintln(&b, g)
	}
	return b.String()
}

func moment(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format(timeLayout)
}

package agent

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/lab/agent/world"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/strategy"
)

// A result is what a person wants to see of the lives.
type result struct {
	Seed       uint64
	Before     int // of runs before, on the same database
	Events     int
	Days       float64
	Ways       []wayResult
	Heuristics []heuristicResult
	Sorts      []strategy.Distribution
	Patterns   []patternResult
	Rules      []ruleResult
	Refused    []feedback.Proposal

	learner *life
}

// A wayResult is the score of one way, whole and by tenths of the stream.
type wayResult struct {
	Way    way
	Whole  score
	First  score
	Last   score
	Tenths []score
}

// A heuristicResult says what became of a heuristic.
type heuristicResult struct {
	ID         string
	Action     string
	Confidence float64
	Fires      int
	LastFires  int
	Good       rate // in truth, of its fires
	LastFire   time.Time
}

// A patternResult says where a way of cutting tasks stands, and since when.
type patternResult struct {
	Name  string
	State patterns.State
	Since time.Time
	patterns.Observations
}

// A ruleResult is an approved rule with its effect: as the assistant measured it, and in truth.
type ruleResult struct {
	Text      string
	Approvals []string
	Since     time.Time
	Mistake   string
	Before    rate
	After     rate
	Measured  feedback.Effect
}

func sumUp(ctx context.Context, in stream, lives []*life) (*result, error) {
	r := &result{Seed: in.seed, Before: in.span.First}
	for _, l := range lives {
		w := wayResult{Way: l.Way, Whole: scoreOf(l.Answers), First: scoreOf(l.part(0, 4)), Last: scoreOf(l.last())}
		for i := range 10 {
			w.Tenths = append(w.Tenths, scoreOf(l.part(i, 10)))
		}
		r.Ways = append(r.Ways, w)
		if l.Way == learns {
			r.learner = l
		}
	}
	l := r.learner
	r.Events = len(l.Answers)
	r.Days = l.Answers[r.Events-1].Event.At.Sub(l.Answers[0].Event.At).Hours() / 24
	for _, add := range []func(context.Context) error{r.addHeuristics, r.addNotes, r.addPatterns, r.addRules} {
		if err := add(ctx); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// addHeuristics lists those that have answered.
func (r *result) addHeuristics(ctx context.Context) error {
	for h, err := range r.learner.Agent.Learning().Heuristics(ctx) {
		if err != nil {
			return err
		}
		standing, err := r.learner.Agent.Learning().Standing(ctx, h.ID)
		if err != nil {
			return err
		}
		row := heuristicResult{
			ID: h.ID, Action: h.Action, Confidence: standing.Confidence,
			Fires: fires(r.learner.Answers, h.ID), LastFires: fires(r.learner.last(), h.ID),
		}
		for _, a := range r.learner.Answers {
			if a.Result.CreditID == h.ID {
				row.LastFire = a.Event.At
				row.Good.Of++
				if a.Good {
					row.Good.Hits++
				}
			}
		}
		if row.Fires > 0 || !strings.HasPrefix(h.ID, "learned") {
			r.Heuristics = append(r.Heuristics, row)
		}
	}
	return nil
}

func (r *result) addNotes(ctx context.Context) error {
	for d, err := range r.learner.Agent.Strategy().Distributions(ctx) {
		if err != nil {
			return err
		}
		r.Sorts = append(r.Sorts, d)
	}
	return nil
}

func (r *result) addPatterns(ctx context.Context) error {
	standings, err := r.learner.Agent.Patterns().Standings(ctx, patterns.PatternQuery{Positive: true})
	if err != nil {
		return err
	}
	for _, s := range standings {
		row := patternResult{Name: s.Pattern.Content, State: s.State, Observations: s.Counts}
		for last, err := range r.learner.Agent.Patterns().Transitions(ctx, patterns.HistoryQuery{About: string(s.Pattern.ID), Limit: 1}) {
			if err != nil {
				return err
			}
			row.Since = last.At
		}
		r.Patterns = append(r.Patterns, row)
	}
	return nil
}

func (r *result) addRules(ctx context.Context) error {
	rules, err := r.learner.Agent.Feedback().Rules().List(ctx, feedback.RuleQuery{})
	if err != nil {
		return err
	}
	for _, rule := range slices.Backward(rules) {
		row := ruleResult{Text: rule.Text, Since: rule.Activated, Measured: rule.Effect}
		for _, a := range rule.Approvals {
			row.Approvals = append(row.Approvals, a.Actor)
		}
		if m := mistakeOf(rule.Draft); m != nil {
			row.Mistake = m.Name
			row.Before, row.After = r.learner.mistakes(m, rule.Activated)
		}
		r.Rules = append(r.Rules, row)
	}
	r.Refused, _, err = r.learner.Agent.Feedback().Rules().Proposals(ctx, feedback.ProposalQuery{Status: feedback.StateRejected}, 0)
	return err
}

// mistakeOf returns the mistake that a rule is about, as far as the world knows.
func mistakeOf(d feedback.Draft) *world.Mistake {
	for _, m := range world.Mistakes() {
		if strings.Contains(d.Text, m.Word) {
			return m
		}
	}
	return nil
}

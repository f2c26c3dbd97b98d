package view

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/strategy"
)

// An Inbox is what waits for people, and which rules are in use.
type Inbox struct {
	Proposals []feedback.Proposal // pending, the newest first, not all
	Pending   int
	Disputed  []feedback.Feedback // corrections that may contradict others, not all
	Unsettled int
	Active    []feedback.Rule
}

// Inbox reads at most a number of proposals and of corrections.
func (s *Source) Inbox(ctx context.Context, most int) (in Inbox, err error) {
	rules := s.Feedback.Rules()
	pending := feedback.ProposalQuery{Status: feedback.StatePending}
	if in.Proposals, in.Pending, err = rules.Proposals(ctx, pending, most); err != nil {
		return in, err
	}
	disputed := feedback.Listing{Class: feedback.Ambiguous, Limit: most}
	if in.Disputed, in.Unsettled, err = s.Feedback.List(ctx, disputed); err != nil {
		return in, err
	}
	in.Active, err = rules.List(ctx, feedback.RuleQuery{Status: feedback.StateActive})
	return in, err
}

// A Trusted is a heuristic whose confidence has changed.
type Trusted struct {
	ID          string
	Before, Now float64
}

// leastChange is the smallest change of a confidence that is reported.
const leastChange = 0.05

// Trusts returns the heuristics that earned or lost trust since a moment, the greatest change
// first, and the time of the newest evidence. It leaves out those with a pin, and those whose
// observations the store no longer keeps.
func (s *Source) Trusts(ctx context.Context, since time.Time) (
	all []Trusted, last time.Time, err error,
) {
	for h, err := range s.Learning.Heuristics(ctx) {
		if err != nil {
			return nil, last, err
		}
		e, err := s.Learning.Explain(ctx, h.ID)
		if errors.Is(err, heed.ErrNotFound) {
			continue // it was deleted since
		}
		if err != nil {
			return nil, last, err
		}
		if len(e.History) > 0 && e.History[0].At.After(last) {
			last = e.History[0].At
		}
		before, ok := trustAt(&e, s.Learning.Config(), since, s.Now())
		if ok && math.Abs(e.Standing.Confidence-before) >= leastChange {
			all = append(all, Trusted{h.ID, before, e.Standing.Confidence})
		}
	}
	slices.SortFunc(all, func(a, b Trusted) int {
		return cmp.Or(cmp.Compare(math.Abs(b.Now-b.Before), math.Abs(a.Now-a.Before)),
			cmp.Compare(a.ID, b.ID))
	})
	return all, last, nil
}

// trustAt returns how far a heuristic was trusted at a moment.
func trustAt(e *learning.Explanation, cfg learning.Config, at, now time.Time) (float64, bool) {
	points := curve(e, cfg, now)
	if len(points) < 2 || e.Standing.Pin != (learning.Pin{}) {
		return 0, false
	}
	then := held(e, e.Prior.Mean())
	for _, p := range points[:len(points)-1] {
		if p.At.Before(at) {
			then = p.Trust
		}
	}
	if points[0].At.After(at) && len(e.History) >= mostPoints {
		return 0, false // what was before is not kept
	}
	counted := points[len(points)-2].Trust - then // without caps on persons
	return then, counted*(e.Standing.Confidence-then) > 0
}

// A Changed is a way of working whose state has changed.
type Changed struct {
	ID       patterns.PatternID
	From, To patterns.State
}

// Changes returns the ways of working that have another state than at a moment, the last change
// first, and the time of that change.
func (s *Source) Changes(ctx context.Context, since time.Time) (
	all []Changed, last time.Time, err error,
) {
	q := patterns.HistoryQuery{Since: since}
	for t, err := range s.Patterns.Transitions(ctx, q) { // the last first
		if err != nil {
			return nil, last, err
		}
		if t.At.After(last) {
			last = t.At
		}
		known := func(c Changed) bool { return c.ID == t.Pattern }
		if i := slices.IndexFunc(all, known); i >= 0 {
			all[i].From = t.From
		} else {
			all = append(all, Changed{t.Pattern, t.From, t.To})
		}
	}
	same := func(c Changed) bool { return c.From == c.To }
	return slices.DeleteFunc(all, same), last, nil
}

// A Learned is what a time has taught about a segment.
type Learned struct {
	Segment
	Reports int // in this time
	Moved   []Moved
}

// A Moved is an arm that got better or worse: its mean reward before and in this time.
type Moved struct {
	Arm         strategy.ArmID
	Before, Now float64
}

// mostChoices is how many choices of a learner are read on each side of the moment, and mostItems
// how many items of a segment if the learner keeps no records of choices.
const mostChoices, mostItems = 500, 50

type segmentKey struct{ category, context string }

// Learned returns the segments with reports since a moment, those with the most first, and the time
// of the newest report. An arm has moved if its rewards since then and before differ by more than
// chance explains: at least ten of each, and a Welch statistic of 2.6 or more. It compares the
// latest 500 choices of either side.
func (s *Source) Learned(ctx context.Context, since time.Time) (
	all []Learned, last time.Time, err error,
) {
	found := samples{}
	for i, f := range []strategy.ChoiceFilter{{Until: since}, {Since: since}} {
		f.Stage, f.Limit = strategy.Observed, mostChoices
		for r, err := range s.Strategy.History(ctx, f) {
			if errors.Is(err, heed.ErrNotFound) {
				break // it keeps no records
			}
			if err != nil {
				return nil, last, err
			}
			found.add(segmentKey{r.Choice.Category, r.Choice.Context}, r.Choice.Arm, i, r.Mean)
		}
	}
	for d, err := range s.Strategy.Distributions(ctx) {
		if err != nil {
			return nil, last, err
		}
		if d.Updated.After(last) {
			last = d.Updated
		}
		if d.Updated.Before(since) {
			continue
		}
		if s.Strategy.Config().Unrecorded {
			if err := s.sample(ctx, &d, since, found); err != nil {
				return nil, last, err
			}
		}
		all = append(all, learnedOf(segmentOf(&d), found[segmentKey{d.Category, d.Context}]))
	}
	slices.SortStableFunc(all, func(a, b Learned) int { return cmp.Compare(b.Reports, a.Reports) })
	return all, last, nil
}

// sample reads the outcomes of some items of a segment.
func (s *Source) sample(
	ctx context.Context, d *strategy.Distribution, since time.Time, into samples,
) error {
	for _, standing := range d.Standings[:min(len(d.Standings), mostItems)] {
		f := strategy.ChoiceFilter{
			Evidence: true, Item: standing.Item, Category: d.Category, Context: d.Context,
			Limit: mostChoices,
		}
		for r, err := range s.Strategy.History(ctx, f) {
			if err != nil {
				return err
			}
			recent := 0
			if !r.Result.At.Before(since) {
				recent = 1
			}
			into.add(segmentKey{d.Category, d.Context}, r.Choice.Arm, recent, r.Mean)
		}
	}
	return nil
}

func learnedOf(s Segment, arms map[strategy.ArmID]*[2]sample) Learned {
	l := Learned{Segment: s}
	for _, arm := range s.Arms {
		if of := arms[arm.Arm]; of != nil {
			l.Reports += int(of[1].n)
			if of[0].differs(&of[1]) {
				l.Moved = append(l.Moved, Moved{arm.Arm, of[0].mean, of[1].mean})
			}
		}
	}
	return l
}

// samples are the rewards of arms before a moment and since.
type samples map[segmentKey]map[strategy.ArmID]*[2]sample

func (s samples) add(at segmentKey, arm strategy.ArmID, recent int, value float64) {
	if s[at] == nil {
		s[at] = make(map[strategy.ArmID]*[2]sample)
	}
	if s[at][arm] == nil {
		s[at][arm] = &[2]sample{}
	}
	s[at][arm][recent].add((value + 1) / 2)
}

// A sample has the mean and the sum of squares of rewards (Welford 1962).
type sample struct{ n, mean, squares float64 }

func (s *sample) add(x float64) {
	s.n++
	d := x - s.mean
	s.mean += d / s.n
	s.squares += d * (x - s.mean)
}

// differs reports whether the means of two samples differ by more than chance explains.
func (s *sample) differs(t *sample) bool {
	const least, width, floor = 10, 2.6, 1e-4 // the last for rewards that hardly vary
	if s.n < least || t.n < least {
		return false
	}
	of := func(s *sample) float64 { return max(s.squares/(s.n-1), floor) / s.n }
	return math.Abs(s.mean-t.mean) >= width*math.Sqrt(of(s)+of(t))
}

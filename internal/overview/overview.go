package overview

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
	"github.com/heedhq/heed/strategy"
)

// Rules is what waits for people, and which rules are in use.
type Rules struct {
	Proposals []feedback.Proposal // pending, the newest first, not all
	Pending   int
	Disputed  []feedback.Feedback // corrections that may contradict others, not all
	Unsettled int
	Active    []feedback.Rule
}

// OfRules reads at most a number of proposals and of corrections.
func OfRules(ctx context.Context, f *feedback.Service, most int) (r Rules, err error) {
	if r.Proposals, r.Pending, err = f.Rules().Proposals(ctx, feedback.ProposalQuery{Status: feedback.StatePending}, most); err != nil {
		return r, err
	}
	if r.Disputed, r.Unsettled, err = f.List(ctx, feedback.Listing{Class: feedback.Ambiguous, Limit: most}); err != nil {
		return r, err
	}
	r.Active, err = f.Rules().List(ctx, feedback.RuleQuery{Status: feedback.StateActive})
	return r, err
}

// A Trusted is a heuristic whose trust has changed.
type Trusted struct {
	ID          string
	Before, Now float64
}

// leastChange is the change of a confidence that is worth telling.
const leastChange = 0.05

// Trusts returns the heuristics that earned or lost trust since a moment, the greatest change first, and the time of the newest evidence. Those
// with a pin, or whose observations the store no longer keeps, are left out.
func Trusts(ctx context.Context, m *learning.Module, since, now time.Time) (all []Trusted, last time.Time, err error) {
	for h, err := range m.Heuristics(ctx) {
		if err != nil {
			return nil, last, err
		}
		e, err := m.Explain(ctx, h.ID)
		if errors.Is(err, heed.ErrNotFound) {
			continue // deleted meanwhile
		} else if err != nil {
			return nil, last, err
		}
		if len(e.History) > 0 && e.History[0].At.After(last) {
			last = e.History[0].At
		}
		if before, ok := trustAt(&e, m.Config(), since, now); ok && math.Abs(e.Standing.Confidence-before) >= leastChange {
			all = append(all, Trusted{h.ID, before, e.Standing.Confidence})
		}
	}
	slices.SortFunc(all, func(a, b Trusted) int {
		return cmp.Or(cmp.Compare(math.Abs(b.Now-b.Before), math.Abs(a.Now-a.Before)), cmp.Compare(a.ID, b.ID))
	})
	return all, last, nil
}

// trustAt returns how far a heuristic was trusted at a moment.
func trustAt(e *learning.Explanation, cfg learning.Config, at, now time.Time) (float64, bool) {
	points := Trust(e, cfg, now)
	if len(points) < 2 || e.Standing.Pin != (learning.Pin{}) {
		return 0, false
	}
	then := held(e, e.Prior.Mean())
	for _, p := range points[:len(points)-1] {
		if p.At.Before(at) {
			then = p.Trust
		}
	}
	if points[0].At.After(at) && len(e.History) >= MostPoints {
		return 0, false // what was before is not kept
	}
	counted := points[len(points)-2].Trust - then // without caps on persons
	return then, counted*(e.Standing.Confidence-then) > 0
}

// A Segment is what a time has taught about a segment.
type Segment struct {
	strategy.Distribution
	Sure    float64 // that the leading arm is the best
	Reports int     // in this time
	Moved   []Moved
}

// A Moved is an arm that got better or worse: its mean reward before and in this time.
type Moved struct {
	Arm         strategy.ArmID
	Before, Now float64
}

// mostChoices is how many choices of a learner are read, the newest, and mostItems how many items of a segment without records of choices.
const mostChoices, mostItems = 10_000, 50

// Segments returns the segments of a learner with reports since a moment, those with the most first, and the time of the newest report. An arm has
// moved if its rewards since then and before differ by more than chance explains: at least ten of each, and a Welch statistic of 2.6 or more.
func Segments(ctx context.Context, l *strategy.Learner, since time.Time) (all []Segment, last time.Time, err error) {
	type key struct{ category, context string }
	found := make(map[key]map[strategy.ArmID]*[2]sample)
	add := func(category, context string, arm strategy.ArmID, at time.Time, value float64) {
		of := found[key{category, context}]
		if of == nil {
			of = make(map[strategy.ArmID]*[2]sample)
			found[key{category, context}] = of
		}
		if of[arm] == nil {
			of[arm] = &[2]sample{}
		}
		recent := 0
		if !at.Before(since) {
			recent = 1
		}
		of[arm][recent].add((value + 1) / 2)
	}
	for r, err := range l.History(ctx, strategy.ChoiceFilter{Stage: strategy.Observed, Limit: mostChoices}) {
		if errors.Is(err, heed.ErrNotFound) {
			break // it keeps no records
		} else if err != nil {
			return nil, last, err
		}
		add(r.Choice.Category, r.Choice.Context, r.Choice.Arm, r.Result.At, r.Mean)
	}
	for d, err := range l.Distributions(ctx) {
		if err != nil {
			return nil, last, err
		}
		if d.Updated.After(last) {
			last = d.Updated
		}
		if d.Updated.Before(since) {
			continue
		}
		if l.Config().Unrecorded {
			for _, standing := range d.Standings[:min(len(d.Standings), mostItems)] {
				outcomes, err := l.Outcomes(ctx, strategy.Query{Item: standing.Item, Category: d.Category, Context: d.Context}, mostChoices)
				if err != nil {
					return nil, last, err
				}
				for _, o := range outcomes {
					add(d.Category, d.Context, o.Arm, o.At, o.Value)
				}
			}
		}
		if d, err = OfOneItem(ctx, l, d); err != nil {
			return nil, last, err
		}
		all = append(all, segmentOf(d, found[key{d.Category, d.Context}]))
	}
	slices.SortStableFunc(all, func(a, b Segment) int { return cmp.Compare(b.Reports, a.Reports) })
	return all, last, nil
}

// OfOneItem gives a segment that has one item alone, as of a host without items, the beliefs about that item. Those about the segment say what a further
// item would begin with.
func OfOneItem(ctx context.Context, l *strategy.Learner, d strategy.Distribution) (strategy.Distribution, error) {
	if len(d.Standings) != 1 {
		return d, nil
	}
	only, err := l.Item(ctx, strategy.Query{Category: d.Category, Context: d.Context, Item: d.Standings[0].Item})
	if err != nil {
		return d, err
	}
	d.Arms, d.Leading = only.Arms, only.Leading
	return d, nil
}

func segmentOf(d strategy.Distribution, arms map[strategy.ArmID]*[2]sample) Segment {
	s := Segment{Distribution: d}
	for i, sure := range Sure(d.Arms) {
		arm := d.Arms[i].Arm
		if arm == d.Leading {
			s.Sure = sure
		}
		if of := arms[arm]; of != nil {
			s.Reports += int(of[1].n)
			if of[0].differs(&of[1]) {
				s.Moved = append(s.Moved, Moved{arm, of[0].mean, of[1].mean})
			}
		}
	}
	return s
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

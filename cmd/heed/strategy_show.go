package main

import (
	"cmp"
	"errors"
	"slices"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/overview"
	"github.com/heedhq/heed/strategy"
)

type strategyShow struct {
	Category *string `arg:"" optional:"" complete:"category" help:"The category. Without one, the only one is shown, or all are listed."`
	Context  *string `complete:"context" placeholder:"NAME" help:"In this context only."`
	Items    int     `default:"10" help:"The number of items to show, those nearest to specialising first."`
}

// A shown segment is a distribution with how its items stand.
type shownSegment struct {
	strategy.Distribution
	SpecializesAt int                 `json:"specializes_at,omitempty"` // sessions, where items take a copy
	Shares        []armShare          `json:"shares"`                   // of the arms, in their order
	Standings     []strategy.Standing `json:"standings"`                // the nearest to specialising first
}

// An armShare is how probable it is that an arm is the best, and how often it was chosen of late.
type armShare struct {
	Arm    strategy.ArmID `json:"arm"`
	Best   float64        `json:"best"`
	Chosen *float64       `json:"chosen,omitempty"` // of the latest recorded choices of the segment, 200 at most
}

const lateChoices = 200

// shares reads how often the arms of a segment were chosen of late.
func shares(s *session, l *strategy.Learner, d *strategy.Distribution) (all []armShare, err error) {
	counts, of := make(map[strategy.ArmID]int), 0
	for r, err := range l.History(s.ctx, strategy.ChoiceFilter{Category: d.Category, Context: d.Context, Until: s.Now.Time}) {
		if errors.Is(err, heed.ErrNotFound) {
			break // there are no records
		} else if err != nil {
			return nil, err
		}
		if r.Choice.Category != d.Category || r.Choice.Context != d.Context {
			continue // an empty name is every name to a filter
		}
		counts[r.Choice.Arm]++
		if of++; of == lateChoices {
			break
		}
	}
	for i, best := range overview.Sure(d.Arms) {
		share := armShare{Arm: d.Arms[i].Arm, Best: best}
		if of > 0 {
			chosen := float64(counts[share.Arm]) / float64(of)
			share.Chosen = &chosen
		}
		all = append(all, share)
	}
	return all, nil
}

// Run shows a category.
func (cmd *strategyShow) Run(s *session, c *strategyCommands) error {
	if cmd.Items < 0 {
		return &usageError{"--items must not be negative"}
	}
	if cmd.Category == nil {
		only, err := c.only(s)
		if err != nil {
			return err
		}
		if only == nil {
			return strategyDistributions{}.Run(s, c)
		}
		cmd.Category = only
	}
	return learners.with(s, c.Learner, func(st *opened, l *strategy.Learner) error {
		found, err := segments(s, l, *cmd.Category, cmd.Context)
		if err != nil {
			return err
		}
		var all []shownSegment
		for _, d := range found {
			shown := shownSegment{Distribution: d, Standings: d.Standings}
			slices.SortStableFunc(shown.Standings, func(a, b strategy.Standing) int {
				return cmp.Or(cmp.Compare(b.Independence, a.Independence), cmp.Compare(b.Sessions, a.Sessions))
			})
			shown.Standings = shown.Standings[:min(len(shown.Standings), cmd.Items)]
			if pooling, ok := l.Config().Pooling.(strategy.Specializer); ok {
				shown.SpecializesAt = pooling.SpecializeAt()
			}
			if shown.Shares, err = shares(s, l, &d); err != nil {
				return err
			}
			all = append(all, shown)
		}
		own, err := ownPooling(s, st, l)
		if err != nil {
			return err
		}
		return s.answer(all, func(p *printer) {
			p.each(len(all), func(i int) { all[i].print(p) })
			p.note(own)
		})
	})
}

// only returns the category of a learner that has one alone, and else nil.
func (c *strategyCommands) only(s *session) (name *string, err error) {
	err = learners.with(s, c.Learner, func(_ *opened, l *strategy.Learner) error {
		all, err := collect(l.Distributions(s.ctx))
		for i := range all {
			if all[i].Category != all[0].Category {
				return err
			}
		}
		if len(all) > 0 {
			name = &all[0].Category
		}
		return err
	})
	return name, err
}

func (d *shownSegment) print(p *printer) {
	p.heading("%s: %s of %s, last %s", segmentName(d.Category, d.Context),
		plural(d.Outcomes, "report", "reports"), plural(d.Items, "item", "items"), moment(d.Updated))
	t := newTable("arm", ">mean", ">low", ">high", ">best", "?>chosen", "?>reports")
	t.arms(d.Arms, d.Leading, func(i int) []string {
		chosen := "-"
		if x := d.Shares[i].Chosen; x != nil {
			chosen = percent(*x)
		}
		return []string{percent(d.Shares[i].Best), chosen, count(d.Arms[i].Outcomes)}
	})
	t.print(p)
	if len(d.Parameters) > 0 {
		p.printf("\n")
		t := newTable("arm", "parameter", "value", ">mean", ">low", ">high", "?>reports")
		for _, r := range d.Parameters {
			low, high := r.Belief.Interval(0.9)
			t.add(show(string(r.Arm)), show(r.Name), show(r.Value), share(r.Belief.Mean()), share(low), share(high), count(r.Outcomes))
			t.draw(interval{low, r.Belief.Mean(), high})
		}
		t.print(p)
	}
	p.printf("\n")
	t = newTable("item", "leading", ">mean", ">reports", "?>own way", "specialised")
	for _, st := range d.Standings {
		t.add(show(st.Item), show(string(st.Leading)), share(st.Mean), count(st.Outcomes),
			percent(st.Independence), specialised(st.Specialized, st.Sessions, d.SpecializesAt))
	}
	t.print(p)
}

// arms adds a row for each arm, with more cells behind its interval.
func (l *listing) arms(arms []strategy.ArmReport, leading strategy.ArmID, more func(i int) []string) {
	for i, arm := range arms {
		l.add(append([]string{show(string(arm.Arm)), share(arm.Mean), share(arm.Low), share(arm.High)}, more(i)...)...)
		l.draw(interval{arm.Low, arm.Mean, arm.High})
		if arm.Arm == leading {
			l.leading = i + 1
		}
	}
}

// specialised says whether an item goes its own way, and how near it is.
func specialised(is bool, sessions uint64, at int) string {
	switch missing := at - int(min(sessions, uint64(at))); {
	case is:
		return "yes"
	case at == 0:
		return "no"
	case missing > 0:
		return "in " + plural(missing, "session", "sessions")
	default:
		return "when surer"
	}
}

type strategyItem struct {
	ID string `arg:"" complete:"item" help:"The item."`
	itemFilter
}

// Run shows an item.
func (cmd *strategyItem) Run(s *session, c *strategyCommands) error {
	return learners.with(s, c.Learner, func(_ *opened, l *strategy.Learner) error {
		all, err := cmd.reports(s, l, cmd.ID)
		if err != nil {
			return err
		}
		return s.answer(all, func(p *printer) {
			p.each(len(all), func(i int) {
				r := all[i]
				p.heading("%s in %s: %s its own way, specialised: %s", show(r.Item), segmentName(r.Category, r.Context), percent(r.Independence),
					specialised(r.Specialized, r.Sessions, r.SpecializesAt))
				best := overview.Sure(r.Arms)
				t := newTable("arm", ">mean", ">low", ">high", ">best", "?>reports", "?>segment")
				t.arms(r.Arms, r.Leading, func(i int) []string {
					return []string{percent(best[i]), count(r.Arms[i].Outcomes), share(r.Segment[i].Mean)}
				})
				t.print(p)
			})
		})
	})
}

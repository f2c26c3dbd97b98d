package main

import (
	"cmp"
	"slices"

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
	Standings     []strategy.Standing `json:"standings"`                // the nearest to specialising first
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
	return learners.with(s, c.Learner, func(_ *opened, l *strategy.Learner) error {
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
			all = append(all, shown)
		}
		return s.answer(all, func(p *printer) { p.each(len(all), func(i int) { all[i].print(p) }) })
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
	t := newTable("arm", ">mean", ">low", ">high", "?>reports")
	t.arms(d.Arms, d.Leading, nil)
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
	t = newTable("item", "leading", ">mean", ">sessions", "?>reports", "?>own way", "specialised")
	for _, st := range d.Standings {
		t.add(show(st.Item), show(string(st.Leading)), share(st.Mean), count(st.Sessions), count(st.Outcomes),
			percent(st.Independence), specialised(st.Specialized, st.Sessions, d.SpecializesAt))
	}
	t.print(p)
}

// arms adds a row for each arm, with the mean of the arm in the segment if there is a segment beside it.
func (l *listing) arms(arms []strategy.ArmReport, leading strategy.ArmID, segment []strategy.ArmReport) {
	for i, arm := range arms {
		cells := []string{show(string(arm.Arm)), share(arm.Mean), share(arm.Low), share(arm.High), count(arm.Outcomes)}
		if segment != nil {
			cells = append(cells, share(segment[i].Mean))
		}
		l.add(cells...)
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
				p.heading("%s in %s: seen in %s, %s its own way, specialised: %s", show(r.Item), segmentName(r.Category, r.Context),
					plural(r.Sessions, "session", "sessions"), percent(r.Independence), specialised(r.Specialized, r.Sessions, r.SpecializesAt))
				t := newTable("arm", ">mean", ">low", ">high", "?>reports", "?>segment")
				t.arms(r.Arms, r.Leading, r.Segment)
				t.print(p)
			})
		})
	})
}

package main

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/heedhq/heed/strategy"
)

type strategyShow struct {
	Category string  `arg:"" complete:"category" help:"The category."`
	Context  *string `complete:"context" placeholder:"NAME" help:"In this context alone."`
	Items    int     `default:"10" help:"How many items to show, those nearest to specialising first."`
}

func (strategyShow) Help() string {
	return `Examples:

    heed --db agent.db strategy show correction
    heed --db agent.db strategy show correction --context interactive --items 50

A bar is where an arm's reward lies with a probability of 90 %, with its mean, on a scale from 0 to 1: for an item of which
nothing is known. "own way" is how far an item goes its own way, in percent: 0, it is as its segment; from 50 on it is called
specialised. Where items specialise by a copy of their segment, it is told how many sessions are missing.`
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
	v, err := c.view(s)
	if err != nil {
		return err
	}
	defer v.close()
	segments, err := v.segments(s, cmd.Category, cmd.Context)
	if err != nil {
		return err
	}
	var all []shownSegment
	for _, d := range segments {
		shown := shownSegment{Distribution: d, Standings: d.Standings}
		slices.SortStableFunc(shown.Standings, func(a, b strategy.Standing) int {
			return cmp.Or(cmp.Compare(b.Independence, a.Independence), cmp.Compare(b.Sessions, a.Sessions))
		})
		shown.Standings = shown.Standings[:min(len(shown.Standings), cmd.Items)]
		if pooling, ok := v.Config().Pooling.(strategy.Specializer); ok {
			shown.SpecializesAt = pooling.SpecializeAt()
		}
		all = append(all, shown)
	}
	return s.answer(all, func(p *printer) {
		for i, d := range all {
			if i > 0 {
				p.printf("\n")
			}
			d.print(p)
		}
	})
}

func (d *shownSegment) print(p *printer) {
	p.heading("%s: %s of %s, last %s", segmentName(d.Category, d.Context),
		plural(d.Outcomes, "outcome", "outcomes"), plural(d.Items, "item", "items"), moment(d.Updated))
	printArms(p, d.Arms, d.Leading)
	if len(d.Parameters) > 0 {
		p.printf("\n")
		t := listing{columns: []column{
			{title: "arm", soft: true}, {title: "parameter", soft: true}, {title: "value", soft: true},
			{title: "mean", right: true}, {title: "low", right: true}, {title: "high", right: true}, {title: "outcomes", right: true},
		}}
		for _, r := range d.Parameters {
			low, high := r.Belief.Interval(0.9)
			t.add(show(string(r.Arm)), show(r.Name), show(r.Value), share(r.Belief.Mean()), share(low), share(high), count(r.Outcomes))
			t.draw(interval{low, r.Belief.Mean(), high})
		}
		t.print(p)
	}
	p.printf("\n")
	t := listing{columns: []column{
		{title: "item", soft: true}, {title: "leading", soft: true}, {title: "mean", right: true}, {title: "sessions", right: true},
		{title: "outcomes", right: true}, {title: "own way", right: true}, {title: "specialised"},
	}}
	for _, st := range d.Standings {
		t.add(show(st.Item), show(string(st.Leading)), share(st.Mean), count(st.Sessions), count(st.Outcomes),
			percent(st.Independence), specialised(st.Specialized, st.Sessions, d.SpecializesAt))
	}
	t.print(p)
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

func percent(x float64) string { return fmt.Sprintf("%.0f %%", 100*x) }

func printArms(p *printer, arms []strategy.ArmReport, leading strategy.ArmID) {
	t := listing{columns: []column{
		{title: "arm", soft: true}, {title: "mean", right: true}, {title: "low", right: true}, {title: "high", right: true},
		{title: "outcomes", right: true},
	}}
	for i, arm := range arms {
		t.add(show(string(arm.Arm)), share(arm.Mean), share(arm.Low), share(arm.High), count(arm.Outcomes))
		t.draw(interval{arm.Low, arm.Mean, arm.High})
		if arm.Arm == leading {
			t.leading = i + 1
		}
	}
	t.print(p)
}

type strategyItem struct {
	ID string `arg:"" complete:"item" help:"The item."`
	itemFilter
}

func (strategyItem) Help() string {
	return `Examples:

    heed --db agent.db strategy item prefer-tabs
    heed --db agent.db strategy learning prefer-tabs --category correction

It shows the item in each segment in which it has outcomes, and how far its arms are from those of the segment. "own way" says
how far it goes its own way; from 50 % on it is called specialised.`
}

// Run shows an item.
func (cmd *strategyItem) Run(s *session, c *strategyCommands) error {
	v, err := c.view(s)
	if err != nil {
		return err
	}
	defer v.close()
	found, err := cmd.find(s, v, cmd.ID)
	if err != nil {
		return err
	}
	var all []strategy.ItemReport
	for _, at := range found {
		r, err := v.Item(s.ctx, strategy.Query{Item: cmd.ID, Category: at.category, Context: at.context})
		if err != nil {
			return v.explain(err)
		}
		all = append(all, r)
	}
	return s.answer(all, func(p *printer) {
		for i, r := range all {
			if i > 0 {
				p.printf("\n")
			}
			p.heading("%s in %s: seen in %s, %s its own way, specialised: %s", show(r.Item), segmentName(r.Category, r.Context),
				plural(r.Sessions, "session", "sessions"), percent(r.Independence), specialised(r.Specialized, r.Sessions, r.SpecializesAt))
			printItem(p, r)
		}
	})
}

func printItem(p *printer, r strategy.ItemReport) {
	t := listing{columns: []column{
		{title: "arm", soft: true}, {title: "mean", right: true}, {title: "low", right: true}, {title: "high", right: true},
		{title: "outcomes", right: true}, {title: "segment", right: true},
	}}
	for i, arm := range r.Arms {
		t.add(show(string(arm.Arm)), share(arm.Mean), share(arm.Low), share(arm.High), count(arm.Outcomes), share(r.Segment[i].Mean))
		t.draw(interval{arm.Low, arm.Mean, arm.High})
		if arm.Arm == r.Leading {
			t.leading = i + 1
		}
	}
	t.print(p)
}

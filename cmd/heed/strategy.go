package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/guptarohit/asciigraph"

	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

// strategyCommands look at what learners of package strategy believe.
type strategyCommands struct {
	Learner string `complete:"learner" placeholder:"NAME"`

	Status        strategyStatus    `cmd:"" default:"1"`
	Distributions strategyList      `cmd:"" aliases:"list"`
	Show          strategyShow      `cmd:""`
	Learning      strategyItem      `cmd:"" aliases:"item"`
	History       strategyHistory   `cmd:""`
	Winners       strategyWinners   `cmd:""`
	Saved         strategySaved     `cmd:""`
	Replay        replayCommand     `cmd:""`
	Reset         strategyReset     `cmd:""`
	ResetLearning strategyResetItem `cmd:"" aliases:"reset-item"`
}

// with calls a function with the learner.
func (c *strategyCommands) with(s *session, do func(*opened, *view.Source) error) error {
	return learners.with(s, c.Learner, func(st *opened, l *strategy.Learner) error {
		return do(st, &view.Source{Store: st.store, Strategy: l, Now: s.now})
	})
}

// ownPooling says that the application pools evidence by its own code. Its beliefs are then other
// ones than are shown.
func ownPooling(s *session, v *view.Source) (string, error) {
	id := "strategy/" + v.Strategy.Config().Name
	for r, err := range v.Store.Find(s.ctx, store.Query{Kind: settingsKind}) {
		if err != nil {
			return "", err
		}
		if r.ID != id {
			continue
		}
		var kept struct {
			Fields struct {
				Pooling struct {
					Value struct{ Type string }
				}
			}
		}
		body, err := r.Body.JSON()
		if err == nil {
			err = json.Unmarshal(body, &kept)
		}
		if err != nil {
			return "", err
		}
		known := []string{
			"", fmt.Sprintf("%T", strategy.TwoLevel{}), fmt.Sprintf("%T", strategy.Copy{}),
			fmt.Sprintf("%T", strategy.Alone{}),
		}
		if of := kept.Fields.Pooling.Value.Type; !slices.Contains(known, of) {
			return "The application pools evidence with " + show(of) + ", which heed does not have. " +
				"Here it is pooled by default: the application may choose another arm.", nil
		}
	}
	return "", nil
}

const settingsKind = "heed.settings"

// categoryNames returns the segments of a category, in one context or in all.
func categoryNames(s *session, v *view.Source, category string, context *string) (
	found []view.SegmentName, err error,
) {
	all, err := v.SegmentNames(s.ctx)
	if err != nil {
		return nil, err
	}
	var categories, contexts []string
	for _, n := range all {
		categories = append(categories, n.Category)
		if n.Category != category {
			continue
		}
		contexts = append(contexts, n.Context)
		if context == nil || n.Context == *context {
			found = append(found, n)
		}
	}
	if len(found) > 0 {
		return found, nil
	}
	if len(contexts) > 0 {
		see := fmt.Sprintf("category %q has %s", category, strings.Join(quoted(contexts), ", "))
		return nil, unknown("context", *context, contexts, see)
	}
	if items, err := v.Items(s.ctx, category, all); err == nil && len(items) > 0 {
		return nil, fmt.Errorf("there is no category %q, but an item of that name: "+
			"see heed strategy learning %s", category, show(category))
	}
	return nil, unknown("category", category, categories, "heed strategy distributions lists them")
}

// An itemFilter says where an item is looked for.
type itemFilter struct {
	Category *string `complete:"category" placeholder:"NAME"`
	Context  *string `complete:"context" placeholder:"NAME"`
}

// names returns the segments that the filter lets pass.
func (f *itemFilter) names(s *session, v *view.Source) ([]view.SegmentName, error) {
	all, err := v.SegmentNames(s.ctx)
	return slices.DeleteFunc(all, func(n view.SegmentName) bool {
		return f.Category != nil && n.Category != *f.Category ||
			f.Context != nil && n.Context != *f.Context
	}), err
}

// find returns an item in each segment where it has outcomes.
func (f *itemFilter) find(s *session, v *view.Source, item string) ([]view.Item, error) {
	names, err := f.names(s, v)
	if err != nil {
		return nil, err
	}
	found, err := v.Items(s.ctx, item, names)
	if err != nil || len(found) > 0 {
		return found, err
	}
	var items []string
	for _, n := range names {
		d, err := v.Distribution(s.ctx, n.Query())
		if err != nil {
			return nil, err
		}
		items = append(items, texts(d.Standings, itemOf)...)
	}
	return nil, unknown("item", item, items, "no item of that name has outcomes; "+
		"heed strategy show lists the items of a category")
}

func itemOf(s strategy.Standing) string { return s.Item }

type strategyStatus struct{}

// Run prints the status of each learner.
func (strategyStatus) Run(s *session, c *strategyCommands) error {
	var all []view.Status
	err := s.with(func(st *opened) error {
		names := []string{c.Learner}
		var err error
		if c.Learner == "" {
			names, err = strategy.Names(s.ctx, st.store)
		}
		for _, name := range names {
			l, err := learners.one(s, st, name)
			if err != nil {
				return err
			}
			status, err := (&view.Source{Store: st.store, Strategy: l, Now: s.now}).Status(s.ctx)
			if err != nil {
				return err
			}
			all = append(all, status)
		}
		return err
	})
	return answerList(s, all, err, "learners", nil, printStatus)
}

func printStatus(p *printer, all []view.Status) {
	t := newTable("learner", ">segments", "?>items", "?>specialised", "?>reports", "?>pending",
		"?>expired", "?>events 24h")
	best := newTable("category", "context", "leading", ">mean", "?learner")
	for _, s := range all {
		pending, expired, events := "-", "-", "-" // if choices are not recorded
		if c := s.Choices; c != nil {
			pending, expired, events = count(c.Pending), count(c.Expired), count(c.Events)
		}
		t.add(show(s.Learner), count(s.Segments), count(s.Items), count(s.Specialized),
			count(s.Outcomes), pending, expired, events)
		for _, l := range s.Leading {
			best.add(show(l.Category), show(l.Context), show(string(l.Leading)), share(l.Lead().Mean),
				show(s.Learner))
		}
	}
	t.print(p)
	p.printf("\n")
	best.print(p)
}

type strategyList struct{}

// Run lists the segments.
func (strategyList) Run(s *session, c *strategyCommands) error {
	var all view.List[view.Segment]
	var own string
	err := c.with(s, func(_ *opened, v *view.Source) (err error) {
		if all, err = v.Segments(s.ctx, view.Page{}); err == nil {
			own, err = ownPooling(s, v)
		}
		return err
	})
	return answerList(s, all.Items, err, "segments", nil, func(p *printer, all []view.Segment) {
		t := newTable("category", "context", "leading", ">mean", ">low", ">high", "?>reports",
			"?>items", "?>specialised", "?updated")
		for _, d := range all {
			arm := d.Lead()
			t.add(show(d.Category), show(d.Context), show(string(d.Leading)), share(arm.Mean),
				share(arm.Low), share(arm.High), count(d.Outcomes), count(d.Items),
				count(d.Specialized), moment(d.Updated))
			t.draw(interval{arm.Low, arm.Mean, arm.High})
		}
		t.print(p)
	}, own)
}

type strategyShow struct {
	Category *string `arg:"" optional:"" complete:"category"`
	Context  *string `complete:"context" placeholder:"NAME"`
	Items    int     `default:"10"`
}

// lateChoices is how many choices are read for the shares of the arms.
const lateChoices = 200

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
			return strategyList{}.Run(s, c)
		}
		cmd.Category = only
	}
	return c.with(s, func(_ *opened, v *view.Source) error {
		names, err := categoryNames(s, v, *cmd.Category, cmd.Context)
		if err != nil {
			return err
		}
		var all []view.SegmentDetail
		for _, n := range names {
			one, err := v.Segment(s.ctx, n.Category, n.Context, lateChoices)
			if err != nil {
				return err
			}
			one.Standings = one.Standings[:min(len(one.Standings), cmd.Items)]
			all = append(all, one)
		}
		own, err := ownPooling(s, v)
		if err != nil {
			return err
		}
		return s.answer(all, func(p *printer) {
			p.each(len(all), func(i int) { printSegment(p, &all[i]) })
			p.note(own)
		})
	})
}

// only returns the category of a learner that has only one, and else nil.
func (c *strategyCommands) only(s *session) (name *string, err error) {
	err = c.with(s, func(_ *opened, v *view.Source) error {
		all, err := v.SegmentNames(s.ctx)
		other := func(n view.SegmentName) bool { return n.Category != all[0].Category }
		if len(all) > 0 && !slices.ContainsFunc(all, other) {
			name = &all[0].Category
		}
		return err
	})
	return name, err
}

func printSegment(p *printer, d *view.SegmentDetail) {
	p.heading("%s: %s of %s, last %s", segmentName(d.Category, d.Context),
		plural(d.Outcomes, "report", "reports"), plural(d.Items, "item", "items"), moment(d.Updated))
	t := newTable("arm", ">mean", ">low", ">high", ">best", "?>chosen", "?>reports")
	t.arms(d.Arms, d.Leading, func(i int) []string {
		chosen := "-"
		if x := d.Arms[i].Chosen; x != nil {
			chosen = percent(*x)
		}
		return []string{chosen, count(d.Arms[i].Outcomes)}
	})
	t.print(p)
	if len(d.Parameters) > 0 {
		p.printf("\n")
		t := newTable("arm", "parameter", "value", ">mean", ">low", ">high", "?>reports")
		for _, r := range d.Parameters {
			low, high := r.Belief.Interval(0.9)
			t.add(show(string(r.Arm)), show(r.Name), show(r.Value), share(r.Belief.Mean()), share(low),
				share(high), count(r.Outcomes))
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

// arms adds a row for each arm, with more cells behind how probable it is that it is the best.
func (l *listing) arms(arms []view.Arm, leading strategy.ArmID, more func(i int) []string) {
	for i, arm := range arms {
		l.add(append([]string{
			show(string(arm.Arm)), share(arm.Mean), share(arm.Low), share(arm.High), percent(arm.Best),
		}, more(i)...)...)
		l.draw(interval{arm.Low, arm.Mean, arm.High})
		if arm.Arm == leading {
			l.leading = i + 1
		}
	}
}

// specialised says whether an item is specialised, and how near it is.
func specialised(is bool, sessions uint64, at int) string {
	switch missing := at - int(min(sessions, uint64(at))); {
	case is:
		return "yes"
	case at == 0:
		return "no"
	case missing > 0:
		return "in " + plural(missing, "session", "sessions")
	}
	return "when surer"
}

type strategyItem struct {
	ID string `arg:"" complete:"item"`
	itemFilter
}

// Run shows an item.
func (cmd *strategyItem) Run(s *session, c *strategyCommands) error {
	return c.with(s, func(_ *opened, v *view.Source) error {
		all, err := cmd.find(s, v, cmd.ID)
		if err != nil {
			return err
		}
		return s.answer(all, func(p *printer) {
			p.each(len(all), func(i int) {
				r := &all[i]
				p.heading("%s in %s: %s its own way, specialised: %s", show(r.Item),
					segmentName(r.Category, r.Context), percent(r.Independence),
					specialised(r.Specialized, r.Sessions, r.SpecializesAt))
				t := newTable("arm", ">mean", ">low", ">high", ">best", "?>reports", "?>segment")
				t.arms(r.Arms, r.Leading, func(i int) []string {
					return []string{count(r.Arms[i].Outcomes), share(r.Segment[i].Mean)}
				})
				t.print(p)
			})
		})
	})
}

type strategyHistory struct {
	Item  string        `arg:"" complete:"item"`
	Limit int           `default:"20"`
	Stage string        `enum:",pending,observed,expired" default:"" placeholder:"STAGE"`
	Since time.Duration `placeholder:"TIME"`
}

// Run shows a history.
func (cmd *strategyHistory) Run(s *session, c *strategyCommands) error {
	if cmd.Limit < 1 || cmd.Since < 0 {
		return &usageError{"--limit must be 1 or more, and --since positive"}
	}
	var all []view.Choice
	err := c.with(s, func(_ *opened, v *view.Source) (err error) {
		f := strategy.ChoiceFilter{
			Item: cmd.Item, Stage: strategy.Stage(cmd.Stage), Until: s.Now.Time, Limit: cmd.Limit,
		}
		if cmd.Since > 0 {
			f.Since = s.now().Add(-cmd.Since)
		}
		all, err = v.Choices(s.ctx, f, func() (where []view.Item, err error) {
			return (&itemFilter{}).find(s, v, cmd.Item)
		})
		return err
	})
	flags := []string{"stage", cmd.Stage, "since", span(cmd.Since)}
	return answerList(s, all, err, "choices", flags, printHistory)
}

func printHistory(p *printer, all []view.Choice) {
	if p.terminal {
		printValues(p, all)
	}
	t := newTable("chosen", "arm", "stage", ">mean", "?>reports", "?~segment", "?>confidence", "?how",
		"?who", "?session", "?~parameters")
	for _, c := range all {
		value, confidence, how, who := "-", "-", "-", "-"
		if c.Mean != nil {
			value, confidence = signed(*c.Mean), share(c.Confidence)
		}
		if c.Result != nil {
			how, who = show(cmp.Or(c.Result.Channel, how)), show(cmp.Or(c.Result.Source, who))
		}
		t.add(moment(c.At), show(string(c.Arm)), string(c.Stage), value, count(c.Reports),
			segmentName(c.Category, c.Context), confidence, how, who, show(c.Session),
			settings(c.Parameters))
	}
	t.print(p)
}

// printValues draws the values of outcomes, from the oldest to the newest.
func printValues(p *printer, all []view.Choice) {
	var values []float64
	for _, c := range slices.Backward(all) {
		if c.Mean != nil {
			values = append(values, *c.Mean)
		}
	}
	if room := p.width - 8; len(values) > 1 && room >= 20 {
		p.printf("%s\n\n", asciigraph.Plot(values, asciigraph.Height(6),
			asciigraph.Width(min(room, 2*len(values))), asciigraph.LowerBound(-1),
			asciigraph.UpperBound(1), asciigraph.Precision(1),
			asciigraph.Caption("mean value, oldest to newest")))
	}
}

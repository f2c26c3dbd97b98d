package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/best"
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
	Reset         strategyReset     `cmd:""`
	ResetLearning strategyResetItem `cmd:"" aliases:"reset-item"`
}

func (c *strategyCommands) with(s *session, do func(*view.Source) error) error {
	return learners.with(s, c.Learner, do)
}

// ownPooling says that the application pools evidence by its own code. Its beliefs are then other
// ones than are shown.
func ownPooling(s *session, v *view.Source) (plain, error) {
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
			return say("The application pools evidence with %v, which heed does not have. Here it is "+
				"pooled by default: the application may choose another arm.", of), nil
		}
	}
	return "", nil
}

const settingsKind = "heed.settings"

// segments returns the segments of a category, in one context or in all.
func segments(s *session, v *view.Source, category string, context *string) (
	in []view.SegmentName, err error,
) {
	all, err := v.SegmentNames(s.ctx)
	if err != nil {
		return nil, err
	}
	var categories, contexts []string
	for _, n := range all {
		categories = append(categories, n.Category)
		if n.Category == category {
			contexts = append(contexts, n.Context)
			if context == nil || n.Context == *context {
				in = append(in, n)
			}
		}
	}
	if len(in) > 0 {
		return in, nil
	}
	if len(contexts) > 0 {
		see := fmt.Sprintf("category %q has %q", category, contexts)
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

// find returns an item in each segment where it has outcomes.
func (f *itemFilter) find(s *session, v *view.Source, item string) ([]view.Item, error) {
	names, err := v.SegmentNames(s.ctx)
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(n view.SegmentName) bool {
		return f.Category != nil && n.Category != *f.Category ||
			f.Context != nil && n.Context != *f.Context
	})
	in, err := v.Items(s.ctx, item, names)
	if err != nil || len(in) > 0 {
		return in, err
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
	read := func(v *view.Source) error {
		status, err := v.Status(s.ctx)
		all = append(all, status)
		return err
	}
	if c.Learner != "" {
		err := c.with(s, read)
		return answerList(s, all, err, "learners", nil, printStatus)
	}
	err := s.with(func() error {
		return learners.each(s, func(_ checked, v *view.Source, _ []string) error { return read(v) })
	})
	return answerList(s, all, err, "learners", nil, printStatus)
}

func printStatus(p *printer, all []view.Status) {
	t := newTable("learner", ">segments", "?>items", "?>specialised", "?>reports", "?>pending",
		"?>expired", "?>events 24h")
	best := newTable("category", "context", "leading", ">mean", "?learner")
	for _, s := range all {
		row := []any{s.Learner, s.Segments, s.Items, s.Specialized, s.Outcomes}
		if c := s.Choices; c != nil {
			t.add(append(row, c.Pending, c.Expired, c.Events)...)
		} else { // choices are not recorded
			t.add(append(row, plain("-"), plain("-"), plain("-"))...)
		}
		for _, l := range s.Leading {
			best.add(l.Category, l.Context, l.Leading, l.Lead().Mean, s.Learner)
		}
	}
	t.print(p)
	p.blank()
	best.print(p)
}

type strategyList struct{}

// Run lists the segments.
func (strategyList) Run(s *session, c *strategyCommands) error {
	var all view.List[view.Segment]
	var own plain
	err := c.with(s, func(v *view.Source) (err error) {
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
			t.add(d.Category, d.Context, d.Leading, arm.Mean, arm.Low, arm.High, d.Outcomes, d.Items,
				d.Specialized, d.Updated)
			t.draw(arm.Low, arm.Mean, arm.High)
		}
		t.print(p)
		p.note(own)
	})
}

type strategyShow struct {
	Category *string `arg:"" optional:""`
	Context  *string `complete:"context" placeholder:"NAME"`
	Items    uint    `default:"10"`
}

// lateChoices is how many choices are read for the shares of the arms.
const lateChoices = 200

// Run shows a category: the only one, or a list of all, if none is named.
func (cmd *strategyShow) Run(s *session, c *strategyCommands) error {
	var all []view.SegmentDetail
	var own plain
	several := false
	err := c.with(s, func(v *view.Source) (err error) {
		if cmd.Category == nil {
			names, err := v.SegmentNames(s.ctx)
			if err != nil {
				return err
			}
			other := func(n view.SegmentName) bool { return n.Category != names[0].Category }
			if several = len(names) == 0 || slices.ContainsFunc(names, other); several {
				return nil
			}
			cmd.Category = &names[0].Category
		}
		names, err := segments(s, v, *cmd.Category, cmd.Context)
		for _, n := range names {
			one, err := v.Segment(s.ctx, n.Category, n.Context, lateChoices)
			if err != nil {
				return err
			}
			one.Standings = one.Standings[:min(len(one.Standings), int(cmd.Items))]
			all = append(all, one)
		}
		if err == nil {
			own, err = ownPooling(s, v)
		}
		return err
	})
	if err != nil {
		return err
	}
	if several {
		return strategyList{}.Run(s, c)
	}
	return s.answer(all, func(p *printer) {
		p.each(len(all), func(i int) { printSegment(p, &all[i]) })
		p.note(own)
	})
}

func printSegment(p *printer, d *view.SegmentDetail) {
	p.heading("%v: %v of %v, last %v", segmentName(d.Category, d.Context),
		plural(d.Outcomes, "report", "reports"), plural(d.Items, "item", "items"), d.Updated)
	t := newTable("arm", ">mean", ">low", ">high", ">best", "?>chosen", "?>reports")
	t.arms(d.Arms, d.Leading, func(i int) []any {
		chosen := plain("-")
		if x := d.Arms[i].Chosen; x != nil {
			chosen = percent(*x)
		}
		return []any{chosen, d.Arms[i].Outcomes}
	})
	t.print(p)
	if len(d.Parameters) > 0 {
		p.blank()
		t := newTable("arm", "parameter", "value", ">mean", ">low", ">high", "?>reports")
		for _, r := range d.Parameters {
			low, high := r.Belief.Interval(0.9)
			t.add(r.Arm, r.Name, r.Value, r.Belief.Mean(), low, high, r.Outcomes)
			t.draw(low, r.Belief.Mean(), high)
		}
		t.print(p)
	}
	p.blank()
	t = newTable("item", "leading", ">mean", ">reports", "?>own way", "specialised")
	for _, st := range d.Standings {
		t.add(st.Item, st.Leading, st.Mean, st.Outcomes, percent(st.Independence),
			specialised(st.Specialized, st.Sessions, d.SpecializesAt))
	}
	t.print(p)
}

// arms adds a row for each arm, with more cells behind how probable it is that it is the best.
func (l *listing) arms(arms []view.Arm, leading strategy.ArmID, more func(i int) []any) {
	for i, arm := range arms {
		row := []any{arm.Arm, arm.Mean, arm.Low, arm.High, percent(arm.Best)}
		l.add(append(row, more(i)...)...)
		l.draw(arm.Low, arm.Mean, arm.High)
		if arm.Arm == leading {
			l.leading = i + 1
		}
	}
}

// specialised says whether an item is specialised, and how near it is.
func specialised(is bool, sessions uint64, at int) plain {
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
	ID string `arg:""`
	itemFilter
}

// Run shows an item.
func (cmd *strategyItem) Run(s *session, c *strategyCommands) error {
	return c.with(s, func(v *view.Source) error {
		all, err := cmd.find(s, v, cmd.ID)
		if err != nil {
			return err
		}
		return s.answer(all, func(p *printer) {
			p.each(len(all), func(i int) {
				r := &all[i]
				p.heading("%v in %v: %v its own way, specialised: %v", r.Item,
					segmentName(r.Category, r.Context), percent(r.Independence),
					specialised(r.Specialized, r.Sessions, r.SpecializesAt))
				t := newTable("arm", ">mean", ">low", ">high", ">best", "?>reports", "?>segment")
				t.arms(r.Arms, r.Leading, func(i int) []any {
					return []any{r.Arms[i].Outcomes, r.Segment[i].Mean}
				})
				t.print(p)
			})
		})
	})
}

type strategyHistory struct {
	Item  string        `arg:""`
	Limit atMost        `default:"20"`
	Stage string        `enum:",pending,observed,expired" default:"" placeholder:"STAGE"`
	Since time.Duration `placeholder:"TIME"`
}

// Run shows a history.
func (cmd *strategyHistory) Run(s *session, c *strategyCommands) error {
	if cmd.Since < 0 {
		return &usageError{"--since must be positive"}
	}
	var all []view.Choice
	err := c.with(s, func(v *view.Source) (err error) {
		f := strategy.ChoiceFilter{
			Item: cmd.Item, Stage: string(cmd.Stage), Until: s.Now.Time, Limit: int(cmd.Limit),
		}
		if cmd.Since > 0 {
			f.Since = s.now().Add(-cmd.Since)
		}
		all, err = v.Choices(s.ctx, f, func() (where []view.Item, err error) {
			return (&itemFilter{}).find(s, v, cmd.Item)
		})
		return err
	})
	flags := []string{"stage", cmd.Stage, "since", ""}
	if cmd.Since > 0 {
		flags[3] = cmd.Since.String()
	}
	return answerList(s, all, err, "choices", flags, printHistory)
}

func printHistory(p *printer, all []view.Choice) {
	t := newTable("chosen", "arm", "stage", ">mean", "?>reports", "?~segment", "?>confidence", "?how",
		"?who", "?session", "?~parameters")
	for _, c := range all {
		mean, confidence, r := plain("-"), plain("-"), strategy.Result{}
		if c.Mean != nil {
			mean, confidence = plain(fmt.Sprintf("%+.2f", *c.Mean)), say("%v", c.Confidence)
		}
		if c.Result != nil {
			r = *c.Result
		}
		t.add(c.At, c.Arm, c.Stage, mean, c.Reports, segmentName(c.Category, c.Context), confidence,
			or(r.Channel, "-"), or(r.Source, "-"), c.Session, c.Parameters)
	}
	t.print(p)
}

type strategyWinners struct{}

// Run lists the races that have ended.
func (strategyWinners) Run(s *session, c *strategyCommands) error {
	var all []best.Standing
	err := c.with(s, func(v *view.Source) (err error) {
		all, err = best.Winners(s.ctx, v.Strategy)
		return err
	})
	return answerList(s, all, err, "winners", nil, func(p *printer, all []best.Standing) {
		p.each(len(all), func(i int) {
			r := all[i]
			name := segmentName(r.Category, r.Context)
			if r.Item != "" {
				name = say("%v in %v", r.Item, name)
			}
			p.heading("%v, since %v: %v", name, r.At, r.String())
			t := newTable("arm", ">mean", "?>outcomes", ">worse by", ">to")
			for _, arm := range r.Arms {
				low, high := say("%v", arm.Low), say("%v", arm.High)
				if arm.Arm == r.Leader {
					low, high = "-", "-"
				}
				t.add(arm.Arm, arm.Mean, arm.Outcomes, low, high)
			}
			t.print(p)
		})
	})
}

type strategyReset struct {
	Category string  `arg:""`
	Context  *string `complete:"context" placeholder:"NAME"`
	resetting
}

type strategyResetItem struct {
	ID string `arg:""`
	itemFilter
	resetting
}

// A resetting is what both resets take.
type resetting struct {
	Topic string `placeholder:"TOPIC"`
	change
}

// A wiped is what was forgotten.
type wiped struct {
	Category string `json:"category"`
	Context  string `json:"context"`
	Item     string `json:"item,omitempty"`
	Outcomes uint64 `json:"outcomes"`
}

// Run resets a category.
func (cmd *strategyReset) Run(s *session, c *strategyCommands) error {
	return c.with(s, func(v *view.Source) error {
		names, err := segments(s, v, cmd.Category, cmd.Context)
		var targets []wiped
		for _, n := range names {
			d, err := v.Distribution(s.ctx, n.Query())
			if err != nil {
				return err
			}
			targets = append(targets, wiped{n.Category, n.Context, "", d.Outcomes})
		}
		if err != nil {
			return err
		}
		return cmd.wipe(s, v, "", targets)
	})
}

// Run resets an item.
func (cmd *strategyResetItem) Run(s *session, c *strategyCommands) error {
	return c.with(s, func(v *view.Source) error {
		items, err := cmd.find(s, v, cmd.ID)
		if err != nil {
			return err
		}
		var targets []wiped
		for _, r := range items {
			target := wiped{r.Category, r.Context, r.Item, 0}
			for _, arm := range r.Arms {
				target.Outcomes += arm.Outcomes
			}
			targets = append(targets, target)
		}
		return cmd.wipe(s, v, say(" of item %v", cmd.ID), targets)
	})
}

// wipe resets the targets, if that is confirmed.
func (c *resetting) wipe(s *session, v *view.Source, of plain, targets []wiped) error {
	var outcomes uint64
	var names []string
	for _, t := range targets {
		outcomes += t.Outcomes
		names = append(names, string(segmentName(t.Category, t.Context)))
	}
	err := c.confirm(s, "This forgets %v%v in %v", plural(outcomes, "report", "reports"), of,
		plain(strings.Join(names, ", ")))
	if err != nil {
		return err
	}
	l, err := strategy.Open(s.ctx, strategy.Config{
		Store: v.Store, Name: v.Strategy.Config().Name, Now: s.now, Topic: c.Topic,
	})
	if err != nil {
		return err
	}
	for i, t := range targets {
		err := l.Reset(s.ctx, strategy.Reset{
			Category: t.Category, Context: t.Context, Item: t.Item, Actor: c.Actor, Reason: c.Reason,
		})
		if err != nil {
			return fmt.Errorf("%d of %d are forgotten, and then: %w", i, len(targets), s.at.explain(err))
		}
	}
	return s.answer(targets, func(p *printer) {
		for _, t := range targets {
			p.line("Forgot %v%v in %v.", plural(t.Outcomes, "report", "reports"), of,
				segmentName(t.Category, t.Context))
		}
	})
}

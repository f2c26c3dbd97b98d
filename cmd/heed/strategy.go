package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/strategy"
)

// strategyCommands look at what learners of package strategy believe.
type strategyCommands struct {
	Status        strategyStatus    `cmd:"" default:"1"`
	Distributions strategyList      `cmd:""`
	Show          strategyShow      `cmd:""`
	Learning      strategyItem      `cmd:""`
	History       strategyHistory   `cmd:""`
	Reset         strategyReset     `cmd:""`
	ResetLearning strategyResetItem `cmd:""`
}

// segments returns the segments of a category or of all, in one context or in all.
func segments(s *session, v *view.Source, category, context *string) ([]strategy.Query, error) {
	all, err := v.SegmentNames(s.ctx)
	all = slices.DeleteFunc(all, func(q strategy.Query) bool {
		return category != nil && q.Category != *category || context != nil && q.Context != *context
	})
	if err != nil || len(all) > 0 || category == nil {
		return all, err
	}
	what := "category"
	if context != nil {
		what = fmt.Sprintf("context %q in the category", *context)
	}
	return nil, unknown(what, *category, "heed strategy distributions lists them, and heed strategy "+
		"learning shows an item of that name")
}

// An itemFilter selects where an item is looked for.
type itemFilter struct {
	Category *string `placeholder:"NAME"`
	Context  *string `placeholder:"NAME"`
}

// find returns an item in each segment where it has outcomes.
func (f *itemFilter) find(s *session, v *view.Source, item string) ([]view.Item, error) {
	names, err := segments(s, v, f.Category, f.Context)
	if err != nil {
		return nil, err
	}
	in, err := v.Items(s.ctx, item, names)
	if err == nil && len(in) == 0 {
		err = unknown("item", item, "no item of that name has outcomes; "+
			"heed strategy show lists the items of a category")
	}
	return in, err
}

type strategyStatus struct{}

// Run prints the status of each learner.
func (strategyStatus) Run(s *session) error {
	with := func(s *session, do func(*view.Source) error) error {
		return s.with(func() error { return learners.each(s, do) })
	}
	var all []view.Status
	return listed(s, with, "learners", "status", func(v *view.Source) ([]view.Status, error) {
		status, err := v.Status(s.ctx)
		if status.Learner != "" { // the segments can be read
			all = append(all, status)
		}
		return all, err
	})
}

type strategyList struct{}

// Run lists the segments.
func (strategyList) Run(s *session) error {
	return listed(s, learners.with, "segments", "distributions",
		func(v *view.Source) ([]view.Segment, error) {
			return items(v.Segments(s.ctx, view.Page{}))
		})
}

type strategyShow struct {
	Category string  `arg:""`
	Context  *string `placeholder:"NAME"`
	Items    uint    `default:"10"`
}

// Run shows a category.
func (cmd *strategyShow) Run(s *session) error {
	read := func(v *view.Source) (all []view.SegmentDetail, _ error) {
		names, err := segments(s, v, &cmd.Category, cmd.Context)
		for _, q := range names {
			one, failure := v.Segment(s.ctx, q, int(cmd.Items))
			if err = cmp.Or(err, failure); one.Arms != nil {
				all = append(all, one)
			}
		}
		return all, err
	}
	return showOne(s, learners.with, "show", read)
}

type strategyItem struct {
	ID string `arg:""`
	itemFilter
}

// Run shows an item.
func (cmd *strategyItem) Run(s *session) error {
	return showOne(s, learners.with, "items", func(v *view.Source) ([]view.Item, error) {
		return cmd.find(s, v, cmd.ID)
	})
}

type strategyHistory struct {
	view.ChoiceQuery
	Limit atMost `default:"20"`
}

// Run shows a history.
func (cmd *strategyHistory) Run(s *session) error {
	return listed(s, learners.with, "choices", "history",
		func(v *view.Source) (all []view.Choice, err error) {
			all, err = v.Choices(s.ctx, cmd.ChoiceQuery, int(cmd.Limit))
			if err == nil && len(all) == 0 && cmd.Since+string(cmd.Stage) == "" && cmd.Item != "" {
				err = unknown("item", cmd.Item, "no choice for it is recorded; heed strategy show lists "+
					"the items of a category")
			}
			return all, err
		})
}

type strategyReset struct {
	Category string  `arg:""`
	Context  *string `placeholder:"NAME"`
	change
}

type strategyResetItem struct {
	ID string `arg:""`
	itemFilter
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
func (cmd *strategyReset) Run(s *session) error {
	return wipe(s, &cmd.change, "", func(v *view.Source) (all []wiped, _ error) {
		names, err := segments(s, v, &cmd.Category, cmd.Context)
		for _, q := range names {
			d, err := v.Distribution(s.ctx, q)
			if err != nil {
				return nil, err
			}
			all = append(all, wiped{q.Category, q.Context, "", d.Outcomes})
		}
		return all, err
	})
}

// Run resets an item.
func (cmd *strategyResetItem) Run(s *session) error {
	of := say(" of item %v", cmd.ID)
	return wipe(s, &cmd.change, of, func(v *view.Source) (all []wiped, _ error) {
		items, err := cmd.find(s, v, cmd.ID)
		for _, r := range items {
			all = append(all, wiped{r.Category, r.Context, r.Item, r.Outcomes})
		}
		return all, err
	})
}

// wipe resets what a function finds, if that is confirmed.
func wipe(s *session, c *change, of plain, find func(*view.Source) ([]wiped, error)) error {
	return learners.with(s, func(v *view.Source) error {
		targets, err := find(v)
		if err != nil {
			return err
		}
		var outcomes uint64
		names := texts(targets, func(t wiped) string {
			outcomes += t.Outcomes
			return string(segmentName(t.Category, t.Context))
		})
		what := say("%v%v in %v", plural(outcomes, "report", "reports"), of,
			plain(strings.Join(names, ", ")))
		if err := c.confirm(s, "This forgets %v", what); err != nil {
			return err
		}
		for i, t := range targets {
			err := v.Strategy.Reset(s.ctx, strategy.Reset{
				Category: t.Category, Context: t.Context, Item: t.Item, Actor: c.Actor, Reason: c.Reason,
			})
			if err != nil {
				return fmt.Errorf("%d of %d are forgotten, and then: %w", i, len(targets),
					s.at.explain(err))
			}
		}
		return s.told(targets, "Forgot %v.", what)
	})
}

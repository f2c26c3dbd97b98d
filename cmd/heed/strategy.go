package main

import (
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

// segments selects segments.
type segments struct {
	Category *string `placeholder:"NAME"`
	Context  *string `placeholder:"NAME"`
}

// names returns the segments that are selected.
func (in *segments) names(s *session, v *view.Source) ([]strategy.Query, error) {
	all, err := v.SegmentNames(s.ctx)
	return slices.DeleteFunc(all, func(q strategy.Query) bool {
		return in.Category != nil && q.Category != *in.Category ||
			in.Context != nil && q.Context != *in.Context
	}), err
}

// items returns an item in each segment where it has outcomes.
func (in *segments) items(s *session, v *view.Source, item string) ([]view.Item, error) {
	names, err := in.names(s, v)
	if err != nil {
		return nil, err
	}
	all, err := v.Items(s.ctx, item, names)
	if err == nil && len(all) == 0 {
		err = unknown("item", item, "no item of that name has outcomes; "+
			"heed strategy show lists the items of a category")
	}
	return all, err
}

// A category selects a category, in one context or in all.
type category struct {
	Category string  `arg:""`
	Context  *string `placeholder:"NAME"`
}

// names returns the segments of the category.
func (c *category) names(s *session, v *view.Source) ([]strategy.Query, error) {
	in := segments{&c.Category, c.Context}
	names, err := in.names(s, v)
	if err == nil && len(names) == 0 {
		what := "category"
		if c.Context != nil {
			what = fmt.Sprintf("context %q in the category", *c.Context)
		}
		err = unknown(what, c.Category, "heed strategy distributions lists them, and heed strategy "+
			"learning shows an item of that name")
	}
	return names, err
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
		all = append(all, status)
		return all, err
	})
}

type strategyList struct{}

// Run lists the segments.
func (strategyList) Run(s *session) error {
	return listed(s, learners.with, "segments", "distributions",
		func(v *view.Source) ([]view.Segment, error) {
			all, err := v.Segments(s.ctx, view.Page{})
			return all.Items, err
		})
}

type strategyShow struct {
	category
	Items uint `default:"10"`
}

// Run shows a category.
func (cmd *strategyShow) Run(s *session) error {
	return learners.with(s, func(v *view.Source) error {
		var all []view.SegmentDetail
		names, err := cmd.names(s, v)
		for _, q := range names {
			one, err := v.Segment(s.ctx, q, int(cmd.Items))
			if err != nil {
				return err
			}
			all = append(all, one)
		}
		if err != nil {
			return err
		}
		return s.answer(all, "show")
	})
}

type strategyItem struct {
	ID string `arg:""`
	segments
}

// Run shows an item.
func (cmd *strategyItem) Run(s *session) error {
	return learners.with(s, func(v *view.Source) error {
		all, err := cmd.items(s, v, cmd.ID)
		if err != nil {
			return err
		}
		return s.answer(all, "items")
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
	category
	change
}

type strategyResetItem struct {
	ID string `arg:""`
	segments
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
	return learners.with(s, func(v *view.Source) error {
		names, err := cmd.names(s, v)
		var targets []wiped
		for _, q := range names {
			d, err := v.Distribution(s.ctx, q)
			if err != nil {
				return err
			}
			targets = append(targets, wiped{q.Category, q.Context, "", d.Outcomes})
		}
		if err != nil {
			return err
		}
		return wipe(s, v, &cmd.change, "", targets)
	})
}

// Run resets an item.
func (cmd *strategyResetItem) Run(s *session) error {
	return learners.with(s, func(v *view.Source) error {
		items, err := cmd.items(s, v, cmd.ID)
		if err != nil {
			return err
		}
		var targets []wiped
		for _, r := range items {
			targets = append(targets, wiped{r.Category, r.Context, r.Item, r.Outcomes})
		}
		return wipe(s, v, &cmd.change, say(" of item %v", cmd.ID), targets)
	})
}

// wipe resets the targets, if that is confirmed.
func wipe(s *session, v *view.Source, c *change, of plain, targets []wiped) error {
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
			return fmt.Errorf("%d of %d are forgotten, and then: %w", i, len(targets), s.at.explain(err))
		}
	}
	return s.told(targets, "Forgot %v.", what)
}

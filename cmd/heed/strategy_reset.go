package main

import (
	"fmt"
	"strings"

	"github.com/heedhq/heed/strategy"
)

type strategyReset struct {
	Category string  `arg:"" complete:"category" help:"The category."`
	Context  *string `complete:"context" placeholder:"NAME" help:"In this context only. Without it: in all."`
	Topic    string  `placeholder:"TOPIC" help:"Put an event of the reset into the outbox, under this topic."`
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
	return learners.with(s, c.Learner, func(st *opened, l *strategy.Learner) error {
		found, err := segments(s, l, cmd.Category, cmd.Context)
		if err != nil {
			return err
		}
		var targets []wiped
		for _, d := range found {
			targets = append(targets, wiped{Category: d.Category, Context: d.Context, Outcomes: d.Outcomes})
		}
		return cmd.wipe(s, st, l, targets, cmd.Topic)
	})
}

type strategyResetItem struct {
	ID string `arg:"" complete:"item" help:"The item."`
	itemFilter
	Topic string `placeholder:"TOPIC" help:"Put an event of the reset into the outbox, under this topic."`
	change
}

// Run resets an item.
func (cmd *strategyResetItem) Run(s *session, c *strategyCommands) error {
	return learners.with(s, c.Learner, func(st *opened, l *strategy.Learner) error {
		reports, err := cmd.reports(s, l, cmd.ID)
		if err != nil {
			return err
		}
		var targets []wiped
		for _, r := range reports {
			target := wiped{Category: r.Category, Context: r.Context, Item: cmd.ID}
			for _, arm := range r.Arms {
				target.Outcomes += arm.Outcomes
			}
			targets = append(targets, target)
		}
		return cmd.wipe(s, st, l, targets, cmd.Topic)
	})
}

// wipe resets the targets, if that is confirmed.
func (c *change) wipe(s *session, st *opened, l *strategy.Learner, targets []wiped, topic string) error {
	var outcomes uint64
	var names []string
	for _, t := range targets {
		outcomes += t.Outcomes
		names = append(names, segmentName(t.Category, t.Context))
	}
	of := ""
	if targets[0].Item != "" {
		of = " of item " + show(targets[0].Item)
	}
	if err := c.confirm(s, fmt.Sprintf("This forgets %s%s in %s", plural(outcomes, "report", "reports"), of, strings.Join(names, ", "))); err != nil {
		return err
	}
	l, err := strategy.Open(s.ctx, strategy.Config{Store: st.store, Name: l.Config().Name, Now: s.now, Topic: topic})
	if err != nil {
		return err
	}
	for i, t := range targets {
		if err := l.Reset(s.ctx, strategy.Reset{
			Category: t.Category, Context: t.Context, Item: t.Item, Actor: c.Actor, Reason: c.Reason,
		}); err != nil {
			return fmt.Errorf("%d of %d are forgotten, and then: %w", i, len(targets), st.explain(err))
		}
	}
	return s.answer(targets, func(p *printer) {
		for _, t := range targets {
			p.line("Forgot %s%s in %s.", plural(t.Outcomes, "report", "reports"), of, segmentName(t.Category, t.Context))
		}
	})
}

package main

import (
	"fmt"
	"strings"

	"github.com/heedhq/heed/strategy"
)

const resetHelp = `What is forgotten begins anew; outcomes that had been counted do not count again. The audit says who wanted it and why. A host
that runs sees it when it next reads the segment anew: within the Refresh of its learner, which is 10 minutes by default. Its
choices in running sessions stay as they are. A host whose learner writes events (Config.Topic) needs --topic with the same
topic, so that its log can be replayed.`

type strategyReset struct {
	Category string  `arg:"" complete:"category" help:"The category."`
	Context  *string `complete:"context" placeholder:"NAME" help:"In this context alone. Without it: in all."`
	Topic    string  `placeholder:"TOPIC" help:"Put an event of it into the outbox, under this topic."`
	change
}

func (strategyReset) Help() string {
	return `Examples:

    heed --db agent.db strategy reset correction --context interactive
    heed --db agent.db strategy reset correction --yes --reason "the model behind it was exchanged"

` + resetHelp
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
	v, err := c.view(s)
	if err != nil {
		return err
	}
	defer v.close()
	segments, err := v.segments(s, cmd.Category, cmd.Context)
	if err != nil {
		return err
	}
	var targets []wiped
	for _, d := range segments {
		targets = append(targets, wiped{Category: d.Category, Context: d.Context, Outcomes: d.Outcomes})
	}
	return cmd.wipe(s, v, targets, cmd.Topic)
}

type strategyResetItem struct {
	ID string `arg:"" complete:"item" help:"The item."`
	itemFilter
	Topic string `placeholder:"TOPIC" help:"Put an event of it into the outbox, under this topic."`
	change
}

func (strategyResetItem) Help() string {
	return `Examples:

    heed --db agent.db strategy reset-item prefer-tabs
    heed --db agent.db strategy reset-learning prefer-tabs --yes --reason "its text was rewritten"

` + resetHelp
}

// Run resets an item.
func (cmd *strategyResetItem) Run(s *session, c *strategyCommands) error {
	v, err := c.view(s)
	if err != nil {
		return err
	}
	defer v.close()
	found, err := cmd.find(s, v, cmd.ID)
	if err != nil {
		return err
	}
	var targets []wiped
	for _, at := range found {
		r, err := v.Item(s.ctx, strategy.Query{Item: cmd.ID, Category: at.category, Context: at.context})
		if err != nil {
			return v.explain(err)
		}
		target := wiped{Category: at.category, Context: at.context, Item: cmd.ID}
		for _, arm := range r.Arms {
			target.Outcomes += arm.Outcomes
		}
		targets = append(targets, target)
	}
	return cmd.wipe(s, v, targets, cmd.Topic)
}

// wipe resets the targets, if that is confirmed.
func (c *change) wipe(s *session, v *view, targets []wiped, topic string) error {
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
	about := fmt.Sprintf("This forgets %s%s in %s", plural(outcomes, "outcome", "outcomes"), of, strings.Join(names, ", "))
	if err := c.confirm(s, about); err != nil {
		return err
	}
	learner, err := strategy.Open(s.ctx, strategy.Config{Store: v.store, Name: v.name, Now: s.now, Topic: topic})
	if err != nil {
		return v.explain(err)
	}
	for i, t := range targets {
		if err := learner.Reset(s.ctx, strategy.Reset{
			Category: t.Category, Context: t.Context, Item: t.Item, Actor: c.Actor, Reason: c.Reason,
		}); err != nil {
			if i > 0 {
				return fmt.Errorf("%d of %d are forgotten, and then: %w", i, len(targets), v.explain(err))
			}
			return v.explain(err)
		}
	}
	return s.answer(targets, func(p *printer) {
		for _, t := range targets {
			p.line("Forgot %s%s in %s.", plural(t.Outcomes, "outcome", "outcomes"), of, segmentName(t.Category, t.Context))
		}
	})
}

package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/best"
	"github.com/heedhq/heed/strategy/money"
)

type strategyWinners struct{}

// Run lists the races that have ended.
func (strategyWinners) Run(s *session, c *strategyCommands) error {
	var all []best.Standing
	err := c.with(s, func(_ *opened, v *view.Source) (err error) {
		all, err = best.Winners(s.ctx, v.Strategy)
		return err
	})
	return answerList(s, all, err, "winners", nil, func(p *printer, all []best.Standing) {
		p.each(len(all), func(i int) {
			r := all[i]
			name := segmentName(r.Category, r.Context)
			if r.Item != "" {
				name = show(r.Item) + " in " + name
			}
			p.heading("%s, since %s: %s", name, moment(r.At), show(r.String()))
			t := newTable("arm", ">mean", "?>outcomes", ">worse by", ">to")
			for _, arm := range r.Arms {
				low, high := share(arm.Low), share(arm.High)
				if arm.Arm == r.Leader {
					low, high = "-", "-"
				}
				t.add(show(string(arm.Arm)), share(arm.Mean), count(arm.Outcomes), low, high)
			}
			t.print(p)
		})
	})
}

type strategySaved struct {
	Category string `complete:"category" placeholder:"NAME"`
	Item     string `complete:"item" placeholder:"NAME"`
	Limit    int    `default:"1000"`
}

// Run says what choices have saved.
func (cmd *strategySaved) Run(s *session, c *strategyCommands) error {
	if cmd.Limit < 1 {
		return errLimit
	}
	var r money.Savings
	err := c.with(s, func(_ *opened, v *view.Source) (err error) {
		if v.Strategy.Config().Unrecorded {
			return errors.New("the learner keeps no records of its choices, so it is not known what " +
				"they cost")
		}
		f := strategy.ChoiceFilter{Category: cmd.Category, Item: cmd.Item, Limit: cmd.Limit}
		r, err = v.Saved(s.ctx, f, false)
		return err
	})
	if err != nil && !errors.Is(err, errNone) { // without a learner there are no choices
		return err
	}
	return s.answer(r, func(p *printer) {
		if r.Choices+r.LeftOut == 0 {
			p.nothing("choices", "category", cmd.Category, "item", cmd.Item)
			return
		}
		printSaved(p, &r)
	})
}

func printSaved(p *printer, r *money.Savings) {
	p.line("%s cost %.4g and earned a mean reward of %s, in %s on average.",
		plural(r.Choices, "choice", "choices"), r.Cost, share(r.Quality),
		r.Latency.Round(time.Microsecond))
	if r.Cost == 0 {
		p.line("No outcome of these has a cost, so nothing is known of what they saved.")
	}
	if r.LeftOut > 0 {
		p.line("%s without a known propensity left out.", plural(r.LeftOut, "choice is", "choices are"))
	}
	if len(r.Arms) == 0 {
		p.line("These are too few to compare with always choosing one arm.")
		return
	}
	p.line("Beside always choosing one arm, with intervals of %.0f %%:", 100*r.Level)
	p.printf("\n")
	t := newTable("always", "?>chosen", ">saved", ">low", ">high", "?>reward", "&>low", "&>high")
	gain := func(x float64) string { return fmt.Sprintf("%+.3f", x) }
	for _, in := range r.Arms {
		if in.Chosen == 0 {
			t.add(show(string(in.Arm)), "0", "not known", "-", "-", "not known", "-", "-")
			continue
		}
		t.add(show(string(in.Arm)), count(in.Chosen), amount(in.Saved.Value), amount(in.Saved.Low),
			amount(in.Saved.High), gain(in.Gained.Value), gain(in.Gained.Low), gain(in.Gained.High))
	}
	t.print(p)
	for _, in := range r.Arms {
		if in.Unsteady {
			p.line("%s changed meanwhile: its widest intervals say nothing.", show(string(in.Arm)))
		}
	}
}

type strategyReset struct {
	Category string  `arg:"" complete:"category"`
	Context  *string `complete:"context" placeholder:"NAME"`
	Topic    string  `placeholder:"TOPIC"`
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
	return c.with(s, func(st *opened, v *view.Source) error {
		names, err := categoryNames(s, v, cmd.Category, cmd.Context)
		if err != nil {
			return err
		}
		var targets []wiped
		for _, n := range names {
			d, err := v.Distribution(s.ctx, n.Query())
			if err != nil {
				return err
			}
			targets = append(targets, wiped{n.Category, n.Context, "", d.Outcomes})
		}
		return cmd.wipe(s, st, v.Strategy, targets, cmd.Topic)
	})
}

type strategyResetItem struct {
	ID string `arg:"" complete:"item"`
	itemFilter
	Topic string `placeholder:"TOPIC"`
	change
}

// Run resets an item.
func (cmd *strategyResetItem) Run(s *session, c *strategyCommands) error {
	return c.with(s, func(st *opened, v *view.Source) error {
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
		return cmd.wipe(s, st, v.Strategy, targets, cmd.Topic)
	})
}

// wipe resets the targets, if that is confirmed.
func (c *change) wipe(
	s *session, st *opened, l *strategy.Learner, targets []wiped, topic string,
) error {
	var outcomes uint64
	var names []string
	for _, t := range targets {
		outcomes += t.Outcomes
		names = append(names, segmentName(t.Category, t.Context))
	}
	of := ""
	if item := targets[0].Item; item != "" {
		of = " of item " + show(item)
	}
	question := fmt.Sprintf("This forgets %s%s in %s", plural(outcomes, "report", "reports"), of,
		strings.Join(names, ", "))
	if err := c.confirm(s, question); err != nil {
		return err
	}
	cfg := strategy.Config{Store: st.store, Name: l.Config().Name, Now: s.now, Topic: topic}
	l, err := strategy.Open(s.ctx, cfg)
	if err != nil {
		return err
	}
	for i, t := range targets {
		err := l.Reset(s.ctx, strategy.Reset{
			Category: t.Category, Context: t.Context, Item: t.Item, Actor: c.Actor, Reason: c.Reason,
		})
		if err != nil {
			return fmt.Errorf("%d of %d are forgotten, and then: %w", i, len(targets), st.explain(err))
		}
	}
	return s.answer(targets, func(p *printer) {
		for _, t := range targets {
			p.line("Forgot %s%s in %s.", plural(t.Outcomes, "report", "reports"), of,
				segmentName(t.Category, t.Context))
		}
	})
}

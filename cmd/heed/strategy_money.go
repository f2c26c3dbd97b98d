package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/best"
	"github.com/heedhq/heed/strategy/money"
)

type strategyWinners struct{}

// Run lists the races that have ended.
func (strategyWinners) Run(s *session, c *strategyCommands) error {
	var all []best.Standing
	err := learners.with(s, c.Learner, func(_ *opened, l *strategy.Learner) (err error) {
		all, err = best.Winners(s.ctx, l)
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
	Category string `complete:"category" placeholder:"NAME" help:"Choices of this category only."`
	Item     string `complete:"item" placeholder:"NAME" help:"Choices for this item only."`
	Limit    int    `default:"1000" help:"The number of choices, the newest."`
}

// Run says what choices have saved.
func (cmd *strategySaved) Run(s *session, c *strategyCommands) error {
	if cmd.Limit < 1 {
		return errLimit
	}
	err := learners.with(s, c.Learner, func(_ *opened, l *strategy.Learner) error {
		if l.Config().Unrecorded {
			return fmt.Errorf("the learner keeps no records of its choices, so it is not known what they cost")
		}
		r, err := money.Saved(s.ctx, l, strategy.ChoiceFilter{Category: cmd.Category, Item: cmd.Item, Limit: cmd.Limit}, 0)
		if err != nil {
			return err
		}
		return s.answer(r, func(p *printer) {
			if r.Choices+r.LeftOut == 0 {
				p.nothing("choices", "category", cmd.Category, "item", cmd.Item)
				return
			}
			p.line("%s cost %.4g and earned a mean reward of %s, in %s on average.", plural(uint64(r.Choices), "choice", "choices"), r.Cost, share(r.Quality), r.Latency.Round(time.Microsecond))
			if r.Cost == 0 {
				p.line("No outcome of these has a cost, so nothing is known of what they saved.")
			}
			if r.LeftOut > 0 {
				p.line("%s without a known propensity left out.", plural(uint64(r.LeftOut), "choice is", "choices are"))
			}
			if len(r.Arms) == 0 {
				p.line("These are too few to compare with always choosing one arm.")
				return
			}
			p.line("Beside always choosing one arm, with intervals of %.0f %%:", 100*r.Level)
			p.printf("\n")
			t := newTable("always", "?>chosen", ">saved", ">low", ">high", "?>reward", "&>low", "&>high")
			amount := func(x float64) string { return fmt.Sprintf("%.4g", x) }
			gain := func(x float64) string { return fmt.Sprintf("%+.3f", x) }
			for _, in := range r.Arms {
				if in.Chosen == 0 {
					t.add(show(string(in.Arm)), "0", "not known", "-", "-", "not known", "-", "-")
					continue
				}
				t.add(show(string(in.Arm)), count(in.Chosen), amount(in.Saved.Value), amount(in.Saved.Low), amount(in.Saved.High),
					gain(in.Gained.Value), gain(in.Gained.Low), gain(in.Gained.High))
			}
			t.print(p)
			for _, in := range r.Arms {
				if in.Unsteady {
					p.line("%s changed meanwhile: its widest intervals say nothing.", show(string(in.Arm)))
				}
			}
		})
	})
	if errors.Is(err, errNone) { // nor choices
		return s.answer(money.Savings{}, func(p *printer) { p.nothing("choices") })
	}
	return err
}

package main

import (
	"github.com/heedhq/heed/strategy"
)

type strategyStatus struct{}

func (strategyStatus) Help() string {
	return `Examples:

    heed --db agent.db strategy status
    heed --db agent.db --json strategy status

"leading" is the arm with the greatest mean in its segment; the five segments that do best are shown. "events 24h" counts the
choices that were made in the last 24 hours and the results that came in them, each on its own.`
}

// Run prints the status of each learner.
func (strategyStatus) Run(s *session, c *strategyCommands) error {
	st, err := s.open()
	if err != nil {
		return err
	}
	defer st.close()
	names := []string{c.Learner}
	if c.Learner == "" {
		if names, err = s.learners(st); err != nil {
			return err
		}
	} else if _, err := c.viewOf(s, st); err != nil {
		return err
	}
	var all []strategy.Status
	for _, name := range names {
		v, err := c.named(s, st, name)
		if err != nil {
			return err
		}
		status, err := v.Status(s.ctx)
		if err != nil {
			return st.explain(err)
		}
		all = append(all, status)
	}
	return s.answer(listed(all), func(p *printer) { printStatus(p, all) })
}

func printStatus(p *printer, all []strategy.Status) {
	if len(all) == 0 {
		p.line("No learner has outcomes here yet.")
		return
	}
	t := listing{columns: []column{
		{title: "learner", soft: true}, {title: "segments", right: true}, {title: "items", right: true},
		{title: "specialised", right: true, extra: true}, {title: "outcomes", right: true}, {title: "pending", right: true, extra: true},
		{title: "expired", right: true, extra: true}, {title: "events 24h", right: true, extra: true},
	}}
	for _, s := range all {
		pending, expired, events := "-", "-", "-" // where choices are not recorded
		if c := s.Choices; c != nil {
			pending, expired, events = count(c.Pending), count(c.Expired), count(c.Events)
		}
		t.add(show(s.Learner), count(s.Segments), count(s.Items), count(s.Specialized), count(s.Outcomes), pending, expired, events)
	}
	t.print(p)
	best := listing{columns: []column{
		{title: "learner", soft: true}, {title: "category", soft: true}, {title: "context", soft: true}, {title: "leading", soft: true},
		{title: "mean", right: true},
	}}
	for _, s := range all {
		for _, l := range s.Leading {
			best.add(show(s.Learner), show(l.Category), show(l.Context), show(string(l.Arm)), share(l.Mean))
		}
	}
	p.printf("\n")
	best.print(p)
}

type strategyDistributions struct{}

func (strategyDistributions) Help() string {
	return `Examples:

    heed --db agent.db strategy distributions
    heed --db agent.db --json strategy distributions | jq '.[] | select(.outcomes < 50)'

A bar is where the leading arm's reward lies with a probability of 90 %, with its mean, on a scale from 0 to 1.`
}

// Run lists the segments.
func (strategyDistributions) Run(s *session, c *strategyCommands) error {
	v, err := c.view(s)
	if err != nil {
		return err
	}
	defer v.close()
	all, err := v.distributions(s)
	if err != nil {
		return err
	}
	return s.answer(listed(all), func(p *printer) {
		t := listing{columns: []column{
			{title: "category", soft: true}, {title: "context", soft: true}, {title: "leading", soft: true}, {title: "mean", right: true},
			{title: "items", right: true}, {title: "specialised", right: true, extra: true}, {title: "outcomes", right: true},
			{title: "updated", extra: true},
		}}
		for _, d := range all {
			for _, arm := range d.Arms {
				if arm.Arm == d.Leading {
					t.add(show(d.Category), show(d.Context), show(string(d.Leading)), share(arm.Mean),
						count(d.Items), count(len(d.Specialized)), count(d.Outcomes), moment(d.Updated))
					t.draw(interval{arm.Low, arm.Mean, arm.High})
				}
			}
		}
		t.print(p)
	})
}

package main

import (
	"github.com/heedhq/heed/strategy"
)

type strategyStatus struct{}

// Run prints the status of each learner.
func (strategyStatus) Run(s *session, c *strategyCommands) error {
	var all []strategy.Status
	err := s.with(func(st *opened) error {
		names := []string{c.Learner}
		var err error
		if c.Learner == "" {
			if names, err = strategy.Names(s.ctx, st.store); err != nil {
				return err
			}
		}
		for _, name := range names {
			l, err := learners.one(s, st, name)
			if err != nil {
				return err
			}
			status, err := l.Status(s.ctx)
			if err != nil {
				return err
			}
			all = append(all, status)
		}
		return nil
	})
	return answerList(s, all, err, "learners", nil, printStatus)
}

func printStatus(p *printer, all []strategy.Status) {
	t := newTable("learner", ">segments", "?>items", "?>specialised", "?>reports", "?>pending", "?>expired", "?>events 24h")
	best := newTable("category", "context", "leading", ">mean", "?learner")
	for _, s := range all {
		pending, expired, events := "-", "-", "-" // where choices are not recorded
		if c := s.Choices; c != nil {
			pending, expired, events = count(c.Pending), count(c.Expired), count(c.Events)
		}
		t.add(show(s.Learner), count(s.Segments), count(s.Items), count(s.Specialized), count(s.Outcomes), pending, expired, events)
		for _, l := range s.Leading {
			best.add(show(l.Category), show(l.Context), show(string(l.Arm)), share(l.Mean), show(s.Learner))
		}
	}
	t.print(p)
	p.printf("\n")
	best.print(p)
}

type strategyDistributions struct{}

// Run lists the segments.
func (strategyDistributions) Run(s *session, c *strategyCommands) error {
	var all []strategy.Distribution
	var own string
	err := learners.with(s, c.Learner, func(st *opened, l *strategy.Learner) (err error) {
		if all, err = collect(l.Distributions(s.ctx)); err == nil {
			own, err = ownPooling(s, st, l)
		}
		return err
	})
	return answerList(s, all, err, "segments", nil, func(p *printer, all []strategy.Distribution) {
		t := newTable("category", "context", "leading", ">mean", ">low", ">high", "?>reports", "?>items", "?>specialised", "?updated")
		for _, d := range all {
			for _, arm := range d.Arms {
				if arm.Arm == d.Leading {
					t.add(show(d.Category), show(d.Context), show(string(d.Leading)), share(arm.Mean), share(arm.Low), share(arm.High),
						count(d.Outcomes), count(d.Items), count(len(d.Specialized)), moment(d.Updated))
					t.draw(interval{arm.Low, arm.Mean, arm.High})
				}
			}
		}
		t.print(p)
	}, own)
}

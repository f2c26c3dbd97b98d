package main

import (
	"errors"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/sqlstore"
)

type confidenceCommand struct {
	ID       string  `arg:"" optional:"" help:"A heuristic, to see what made its confidence. Without it: all are listed."`
	Domain   string  `placeholder:"NAME" help:"Those of this domain alone."`
	Module   string  `default:"learning" placeholder:"NAME" help:"The name of the module, where the host has given it one."`
	Initial  float64 `default:"0.3" help:"The confidence before any evidence of heuristics that have none of their own, as the host has it."`
	Strength float64 `default:"2" help:"How many observations the initial confidence is worth, as the host has it."`
	Limit    int     `default:"20" help:"How many observations of a heuristic to show, the newest."`
}

func (confidenceCommand) Help() string {
	return `Examples:

    heed --db agent.db confidence
    heed --db agent.db confidence greet-by-name

The confidence is worked out with --initial and --strength, and without constraints of packs and the system, which only the
host knows. A bar is where the rate lies with a probability of 90 %, before bounds, with the confidence.`
}

// A confidence is how far a heuristic is trusted.
type confidence struct {
	Heuristic  string                 `json:"heuristic"`
	Domain     string                 `json:"domain"`
	Confidence float64                `json:"confidence"`
	Low        float64                `json:"low"`
	High       float64                `json:"high"`
	Fires      uint64                 `json:"fires"`
	Successes  uint64                 `json:"successes"`
	Failures   uint64                 `json:"failures"`
	Prior      *evidence.Beta         `json:"prior,omitempty"`
	Limits     []learning.Limit       `json:"limits,omitempty"`
	History    []evidence.Observation `json:"history,omitempty"`
}

// Run lists confidences, or explains one.
func (cmd *confidenceCommand) Run(s *session) error {
	st, err := s.open()
	if err != nil {
		return err
	}
	defer st.close()
	heuristics := sqlstore.NewHeuristics(st.db)
	module, err := learning.New(learning.Config{
		Heuristics: heuristics, Evidence: st.evidence, Name: cmd.Module, Initial: cmd.Initial, Strength: cmd.Strength, Now: s.now,
	})
	if err != nil {
		return err
	}
	var all []confidence
	var names []string
	for h, err := range heuristics.All(s.ctx) {
		if err != nil {
			return st.explain(err)
		}
		names = append(names, h.ID)
		if cmd.Domain != "" && h.Domain != cmd.Domain || cmd.ID != "" && h.ID != cmd.ID {
			continue
		}
		e, err := module.Explain(s.ctx, h.ID)
		if errors.Is(err, heed.ErrNotFound) {
			continue // deleted meanwhile
		}
		if err != nil {
			return st.explain(err)
		}
		all = append(all, confidenceOf(&e, cmd.ID != "", cmd.Limit))
	}
	if cmd.ID == "" {
		return s.answer(listed(all), func(p *printer) { printConfidences(p, all) })
	}
	if len(all) == 0 {
		return unknown("heuristic", cmd.ID, names, "heed confidence lists them")
	}
	return s.answer(all[0], func(p *printer) { printConfidence(p, &all[0]) })
}

func confidenceOf(e *learning.Explanation, full bool, limit int) confidence {
	standing := &e.Standing
	posterior := e.Prior
	for _, share := range e.Shares {
		posterior.Alpha += share.For
		posterior.Beta += share.Against
	}
	c := confidence{
		Heuristic: standing.Heuristic.ID, Domain: standing.Heuristic.Domain, Confidence: standing.Confidence,
		Fires: standing.Fires, Successes: standing.Successes, Failures: standing.Failures,
	}
	c.Low, c.High = posterior.Interval(0.9)
	if full {
		c.Prior, c.Limits, c.History = &e.Prior, e.Limits, e.History[:min(len(e.History), max(limit, 0))]
	}
	return c
}

func printConfidences(p *printer, all []confidence) {
	if len(all) == 0 {
		p.line("There are no heuristics here.")
		return
	}
	t := listing{columns: []column{
		{title: "heuristic", soft: true}, {title: "domain", soft: true}, {title: "confidence", right: true}, {title: "low", right: true, extra: true},
		{title: "high", right: true, extra: true}, {title: "fires", right: true}, {title: "right", right: true}, {title: "wrong", right: true},
	}}
	for _, c := range all {
		t.add(show(c.Heuristic), show(c.Domain), share(c.Confidence), share(c.Low), share(c.High), count(c.Fires), count(c.Successes), count(c.Failures))
		t.draw(interval{c.Low, c.Confidence, c.High})
	}
	t.print(p)
}

func printConfidence(p *printer, c *confidence) {
	printConfidences(p, []confidence{*c})
	p.printf("\n")
	p.line("It began with %s, worth %s observations.", share(c.Prior.Mean()), share(c.Prior.Alpha+c.Prior.Beta))
	for _, limit := range c.Limits {
		p.line("Held by: %s.", limit)
	}
	if len(c.History) == 0 {
		return
	}
	p.printf("\n")
	t := listing{columns: []column{
		{title: "when"}, {title: "how", soft: true}, {title: "reward", right: true}, {title: "weight", right: true},
		{title: "who", soft: true, extra: true}, {title: "session", soft: true, extra: true},
	}}
	for _, o := range c.History {
		t.add(moment(o.At), show(o.Channel), share(o.Reward), share(o.Weight), show(o.Source), show(o.Session))
	}
	t.print(p)
}

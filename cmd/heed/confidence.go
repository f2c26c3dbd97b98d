package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/learning"
)

// confidenceCommands look at how far heuristics of package learning are trusted.
type confidenceCommands struct {
	Module string `complete:"module" placeholder:"NAME" help:"The name of the module, where the host has given it one."`

	Show    confidenceShow    `cmd:"" default:"withargs" help:"List confidences, or show what made one. It is what heed confidence does by itself."`
	Pin     confidencePin     `cmd:"" help:"Hold a confidence, whatever users say."`
	Unpin   confidenceUnpin   `cmd:"" help:"Let users decide again."`
	Rebuild confidenceRebuild `cmd:"" help:"Keep what was learned with another half-life, or with sources apart."`
}

func (confidenceCommands) Help() string {
	return `Examples:

    heed --db agent.db confidence
    heed --db agent.db confidence greet-by-name
    heed --db agent.db confidence pin greet-by-name --at 0.2 --reason "it upsets visitors"

The host keeps the settings of its module in the store, so that the command says what the application says.`
}

// An appraisal is a module over an open store, made to look at what one of this name has learned there.
type appraisal struct {
	*learning.Module
	*opened
}

// at does something with the heuristics of a store.
func (c *confidenceCommands) at(s *session, do func(*appraisal) error) error {
	st, err := s.open()
	if err != nil {
		return err
	}
	defer st.close()
	name, err := c.name(s, st)
	if err != nil {
		return st.explain(err)
	}
	module, err := learning.Open(s.ctx, learning.Config{Store: st.store, Name: name, Now: s.now})
	if err != nil {
		return st.explain(err)
	}
	return st.explain(do(&appraisal{module, st}))
}

var errNoModule = errors.New("no host has opened a module of package learning")

// name returns the name of the module that is meant, which a host must have opened.
func (c *confidenceCommands) name(s *session, st *opened) (string, error) {
	names, err := learning.Names(s.ctx, st.store)
	name := cmp.Or(c.Module, "learning")
	switch {
	case err != nil || slices.Contains(names, name):
		return name, err
	case len(names) == 0:
		return "", fmt.Errorf("%w in %s: check --db or HEED_DB", errNoModule, st.place)
	default:
		return "", unknown("module", name, names, fmt.Sprintf("%s has %s: choose with --module", st.place, strings.Join(quoted(names), ", ")))
	}
}

type confidenceShow struct {
	ID     string `arg:"" optional:"" complete:"heuristic" help:"A heuristic, to see what made its confidence. Without it: all are listed."`
	Domain string `placeholder:"NAME" help:"Those of this domain alone."`
	Limit  int    `default:"20" help:"How many observations of a heuristic to show, the newest."`
}

func (confidenceShow) Help() string {
	return `Examples:

    heed --db agent.db confidence
    heed --db agent.db confidence greet-by-name
    heed --db agent.db confidence --domain chat

A bar is where the rate lies with a probability of 90 %, before caps and bounds, with the confidence.`
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
	Held       held                   `json:"held"`
	Limits     []learning.Limit       `json:"limits,omitempty"`
	History    []evidence.Observation `json:"history,omitempty"`
}

// held is what a confidence is held by, whatever is heard: the constraints of all layers that are in force.
type held struct {
	Locked  bool    `json:"locked"` // no signal counts
	Floor   float64 `json:"floor"`
	Ceiling float64 `json:"ceiling"`
	Weight  float64 `json:"feedback_weight"` // what signals are multiplied with
}

// String names what somebody has pinned.
func (h held) String() string {
	switch {
	case h.Floor == h.Ceiling && h.Locked:
		return "at " + share(h.Floor) + ", locked"
	case h.Floor == h.Ceiling:
		return "at " + share(h.Floor)
	case h.Locked:
		return "locked"
	}
	return "-"
}

// heldBy says what holds a confidence: what somebody has pinned, or a limit that puts it outside of where the rate lies.
func (c *confidence) heldBy() string {
	by := c.Held.String()
	switch {
	case by != "-" || c.Low <= c.Confidence && c.Confidence <= c.High:
	case c.Confidence <= c.Held.Floor:
		by = "by its floor"
	case c.Confidence >= c.Held.Ceiling:
		by = "by its ceiling"
	default:
		by = "by caps"
	}
	return by
}

// Run lists confidences, or explains one.
func (cmd *confidenceShow) Run(s *session, c *confidenceCommands) error {
	err := c.at(s, func(a *appraisal) error {
		if cmd.ID != "" {
			return cmd.explain(s, a)
		}
		return cmd.list(s, a)
	})
	if errors.Is(err, errNoModule) && cmd.ID == "" && c.Module == "" {
		return s.answer([]confidence{}, func(p *printer) { p.nothing("heuristics", "domain", cmd.Domain) })
	}
	return err
}

func (cmd *confidenceShow) list(s *session, a *appraisal) error {
	var all []confidence
	for h, err := range a.Heuristics(s.ctx) {
		if err != nil {
			return err
		}
		if cmd.Domain != "" && h.Domain != cmd.Domain {
			continue
		}
		e, err := a.Explain(s.ctx, h.ID)
		if errors.Is(err, heed.ErrNotFound) {
			continue // deleted meanwhile
		}
		if err != nil {
			return err
		}
		all = append(all, confidenceOf(&e))
	}
	faded, err := a.faded(s)
	if err != nil {
		return err
	}
	return s.answer(listed(all), func(p *printer) {
		if len(all) == 0 {
			p.nothing("heuristics", "domain", cmd.Domain)
			return
		}
		printConfidences(p, all)
		p.note(faded)
	})
}

func (cmd *confidenceShow) explain(s *session, a *appraisal) error {
	h, err := a.heuristic(s, cmd.ID)
	if err != nil {
		return err
	}
	e, err := a.Explain(s.ctx, h.ID)
	if err != nil {
		return err
	}
	one := confidenceOf(&e)
	faded, err := a.faded(s)
	if err != nil {
		return err
	}
	one.Prior, one.Limits, one.History = &e.Prior, e.Limits, e.History[:min(len(e.History), max(cmd.Limit, 0))]
	return s.answer(one, func(p *printer) {
		printConfidence(p, &one)
		p.note(faded)
	})
}

// faded tells how old the newest evidence of a module is, where that is most of what there is to tell: after three half-lives
// an eighth of it counts.
func (a *appraisal) faded(s *session) (string, error) {
	var newest evidence.Tally
	for part, err := range a.store.List(s.ctx, a.Config().Name+".heuristic", "") {
		if err != nil {
			return "", err
		}
		if part.Tally.HalfLife > 0 && part.Tally.Last() >= newest.Last() {
			newest = part.Tally
		}
	}
	last := newest.Last().Time()
	age := s.now().Sub(last)
	if newest.HalfLife == 0 || age <= 3*newest.HalfLife {
		return "", nil
	}
	return fmt.Sprintf("The newest evidence is of %s, %.0f half-lives ago, and has faded: --now %s shows what it said then.", moment(last),
		float64(age)/float64(newest.HalfLife), last.Add(time.Second).UTC().Format(time.RFC3339)), nil
}

// heuristic finds a heuristic.
func (a *appraisal) heuristic(s *session, id string) (learning.Heuristic, error) {
	var names []string
	for h, err := range a.Heuristics(s.ctx) {
		if err != nil {
			return learning.Heuristic{}, err
		}
		if h.ID == id {
			return h, nil
		}
		names = append(names, h.ID)
	}
	return learning.Heuristic{}, unknown("heuristic", id, names, "heed confidence lists them")
}

func confidenceOf(e *learning.Explanation) confidence {
	standing := &e.Standing
	posterior := e.Prior
	for _, share := range e.Shares {
		posterior.Alpha += share.For
		posterior.Beta += share.Against
	}
	c := confidence{
		Heuristic: standing.Heuristic.ID, Domain: standing.Heuristic.Domain, Confidence: standing.Confidence,
		Fires: standing.Fires, Successes: standing.Successes, Failures: standing.Failures, Held: held{
			e.Constraints.Lock == learning.Locked, e.Constraints.Range.Floor, e.Constraints.Range.Ceiling, e.Constraints.FeedbackWeight,
		},
	}
	c.Low, c.High = posterior.Interval(0.9)
	return c
}

func printConfidences(p *printer, all []confidence) {
	t := listing{columns: []column{
		{title: "heuristic", soft: true}, {title: "domain", soft: true}, {title: "confidence", right: true}, {title: "low", right: true, extra: true},
		{title: "high", right: true, extra: true}, {title: "fires", right: true}, {title: "right", right: true}, {title: "wrong", right: true},
		{title: "held", soft: true},
	}}
	some := false
	for _, c := range all {
		held := c.heldBy()
		some = some || held != "-"
		t.add(show(c.Heuristic), show(c.Domain), share(c.Confidence), share(c.Low), share(c.High), count(c.Fires), count(c.Successes), count(c.Failures),
			held)
		t.draw(interval{c.Low, c.Confidence, c.High})
	}
	if !some {
		t.leaveOut(len(t.columns) - 1)
	}
	t.print(p)
}

func printConfidence(p *printer, c *confidence) {
	printConfidences(p, []confidence{*c})
	p.printf("\n")
	p.line("It began with %s, worth %s observations.", share(c.Prior.Mean()), share(c.Prior.Alpha+c.Prior.Beta))
	if c.Held.Locked {
		p.line("It is locked: nothing that is heard of it counts.")
	} else if c.Held.Weight != 1 {
		p.line("What is heard of it counts %s times.", share(c.Held.Weight))
	}
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

package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/overview"
	"github.com/heedhq/heed/learning"
)

// confidenceCommands look at how far heuristics of package learning are trusted.
type confidenceCommands struct {
	Module string `complete:"module" placeholder:"NAME" help:"The name of the module. Needed if the store has more than one."`

	Show  confidenceShow  `cmd:"" default:"withargs" help:"List confidences, or explain one. heed confidence does the same."`
	Pin   confidencePin   `cmd:"" help:"Hold a confidence, whatever users say."`
	Unpin confidenceUnpin `cmd:"" help:"Let users decide again."`
}

type confidenceShow struct {
	ID     string `arg:"" optional:"" complete:"heuristic" help:"A heuristic, to explain its confidence. Without it, all are listed."`
	Domain string `placeholder:"NAME" help:"Only heuristics of this domain."`
	Limit  int    `default:"20" help:"The number of observations of a heuristic to show, the newest."`
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

// held are the constraints of all layers that are in force.
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

// heldBy says what holds a confidence: a pin, a limit, or caps that put it outside of the range of the rate.
func (c *confidence) heldBy() string {
	by := c.Held.String()
	switch {
	case by != "-":
	case len(c.Limits) > 0 && (c.Limits[0] == "floor" || c.Limits[0] == "ceiling"):
		by = "by its " + string(c.Limits[0])
	case len(c.Limits) > 0 && c.Limits[0] != "cap":
		by = "by " + string(c.Limits[0])
	case len(c.Limits) > 0, c.Confidence < c.Low, c.Confidence > c.High:
		by = "by caps"
	}
	return by
}

// unknownThreshold says what of an application's configuration is not in the store.
const unknownThreshold = "A heuristic answers by itself from a confidence of 0.700 on, unless the application sets another decision.Config.Threshold, which the store does not have."

// Run lists confidences, or explains one.
func (cmd *confidenceShow) Run(s *session, c *confidenceCommands) error {
	if cmd.ID != "" {
		return modules.with(s, c.Module, func(st *opened, m *learning.Module) error { return cmd.explain(s, st, m) })
	}
	var all []confidence
	var old string
	err := modules.with(s, c.Module, func(st *opened, m *learning.Module) (err error) {
		if all, err = cmd.read(s, m); err == nil {
			old, err = faded(s, st, m)
		}
		return err
	})
	return answerList(s, all, err, "heuristics", []string{"domain", cmd.Domain}, func(p *printer, all []confidence) {
		printConfidences(p, all)
		p.note(unknownThreshold)
		p.note(old)
	})
}

func (cmd *confidenceShow) read(s *session, m *learning.Module) (all []confidence, err error) {
	for h, err := range m.Heuristics(s.ctx) {
		if err != nil {
			return nil, err
		}
		if cmd.Domain != "" && h.Domain != cmd.Domain {
			continue
		}
		e, err := m.Explain(s.ctx, h.ID)
		if errors.Is(err, heed.ErrNotFound) {
			continue // deleted meanwhile
		}
		if err != nil {
			return nil, err
		}
		all = append(all, confidenceOf(&e, m.Config()))
	}
	return all, nil
}

func (cmd *confidenceShow) explain(s *session, st *opened, m *learning.Module) error {
	e, err := explanation(s, m, cmd.ID)
	if err != nil {
		return err
	}
	one := confidenceOf(&e, m.Config())
	one.Prior, one.History = &e.Prior, e.History[:min(len(e.History), max(cmd.Limit, 0))]
	old, err := faded(s, st, m)
	if err != nil {
		return err
	}
	return s.answer(one, func(p *printer) {
		one.print(p)
		p.note(unknownThreshold)
		p.note(old)
	})
}

// faded says how old the newest evidence of a module is, if less than an eighth of it still counts, after three half-lives.
func faded(s *session, st *opened, m *learning.Module) (string, error) {
	var newest evidence.Tally
	for part, err := range st.store.List(s.ctx, m.Config().Name+".heuristic", "") {
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
	return fmt.Sprintf("The newest evidence is of %s, %.0f half-lives ago, and has faded. --now %s shows what it said then.", moment(last),
		float64(age)/float64(newest.HalfLife), last.Add(time.Second).UTC().Format(time.RFC3339)), nil
}

// explanation explains a heuristic.
func explanation(s *session, m *learning.Module, id string) (learning.Explanation, error) {
	if err := given("heuristic", id); err != nil {
		return learning.Explanation{}, err
	}
	e, err := m.Explain(s.ctx, id)
	if !errors.Is(err, heed.ErrNotFound) {
		return e, damaged("heuristic", id, err)
	}
	all, err := collect(m.Heuristics(s.ctx))
	if err != nil {
		return e, err
	}
	return e, unknown("heuristic", id, texts(all, idOfHeuristic), "heed confidence lists them")
}

func idOfHeuristic(h learning.Heuristic) string { return h.ID }

func confidenceOf(e *learning.Explanation, cfg learning.Config) confidence {
	standing := &e.Standing
	c := confidence{
		Heuristic: standing.Heuristic.ID, Domain: standing.Heuristic.Domain, Confidence: standing.Confidence,
		Fires: standing.Fires, Successes: standing.Successes, Failures: standing.Failures, Held: held{
			e.Constraints.Lock == learning.Locked, e.Constraints.Range.Floor, e.Constraints.Range.Ceiling, e.Constraints.FeedbackWeight,
		},
	}
	c.Low, c.High = overview.Interval(e)
	c.Limits = e.Limits
	return c
}

func printConfidences(p *printer, all []confidence) {
	t := newTable("heuristic", "?domain", ">confidence", ">low", ">high", "?>fires", "?>right", "?>wrong", "~held")
	some := false
	for _, c := range all {
		held := c.heldBy()
		some = some || held != "-"
		t.add(show(c.Heuristic), show(c.Domain), atLeast(c.Confidence), share(c.Low), share(c.High), count(c.Fires), count(c.Successes), count(c.Failures),
			held)
		t.draw(interval{c.Low, c.Confidence, c.High})
	}
	if !some {
		t.leaveOut(len(t.columns) - 1)
	}
	t.print(p)
}

func (c *confidence) print(p *printer) {
	printConfidences(p, []confidence{*c})
	p.printf("\n")
	p.line("It began with %s, worth %s observations.", share(c.Prior.Mean()), share(c.Prior.Alpha+c.Prior.Beta))
	if c.Held.Locked {
		p.line("It is locked. No feedback counts.")
	} else if c.Held.Weight != 1 {
		p.line("Feedback counts %s times.", share(c.Held.Weight))
	}
	for _, limit := range c.Limits {
		p.line("Held by: %s.", limit)
	}
	if len(c.History) == 0 {
		return
	}
	p.printf("\n")
	t := newTable("when", "how", ">reward", ">weight", "?who", "?session")
	for _, o := range c.History {
		t.add(moment(o.At), show(o.Channel), share(o.Reward), share(o.Weight), show(o.Source), show(o.Session))
	}
	t.print(p)
}

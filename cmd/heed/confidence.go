package main

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/learning"
)

// confidenceCommands look at how far heuristics of package learning are trusted.
type confidenceCommands struct {
	Module string `complete:"module" placeholder:"NAME"`

	Show  confidenceShow  `cmd:"" default:"withargs"`
	Pin   confidencePin   `cmd:""`
	Unpin confidenceUnpin `cmd:""`
}

// with calls a function with the module.
func (c *confidenceCommands) with(s *session, do func(*view.Source) error) error {
	return modules.with(s, c.Module, func(st *opened, m *learning.Module) error {
		return do(&view.Source{Store: st.store, Learning: m, Now: s.now})
	})
}

type confidenceShow struct {
	ID     string `arg:"" optional:"" complete:"heuristic"`
	Domain string `placeholder:"NAME"`
	Limit  int    `default:"20"`
}

// unknownThreshold says what of an application's configuration is not in the store.
const unknownThreshold = "A heuristic answers by itself from a confidence of 0.700 on, unless " +
	"the application sets another decision.Config.Threshold, which the store does not have."

// Run lists confidences, or explains one.
func (cmd *confidenceShow) Run(s *session, c *confidenceCommands) error {
	if cmd.ID != "" {
		return c.with(s, func(v *view.Source) error { return cmd.explain(s, v) })
	}
	var all view.List[view.Heuristic]
	var old string
	err := c.with(s, func(v *view.Source) (err error) {
		if all, err = v.Heuristics(s.ctx, cmd.Domain, view.Page{}); err == nil {
			old, err = faded(s, v)
		}
		return err
	})
	flags := []string{"domain", cmd.Domain}
	return answerList(s, all.Items, err, "heuristics", flags, func(p *printer, all []view.Heuristic) {
		printConfidences(p, all)
		p.note(unknownThreshold)
		p.note(old)
	})
}

func (cmd *confidenceShow) explain(s *session, v *view.Source) error {
	one, err := heuristic(s, v, cmd.ID)
	if err != nil {
		return err
	}
	one.History = one.History[:min(len(one.History), max(cmd.Limit, 0))]
	old, err := faded(s, v)
	if err != nil {
		return err
	}
	return s.answer(one, func(p *printer) {
		printHeuristic(p, &one)
		p.note(unknownThreshold)
		p.note(old)
	})
}

// faded says how old the newest evidence of a module is, if less than an eighth of it still counts,
// after three half-lives.
func faded(s *session, v *view.Source) (string, error) {
	var newest evidence.Tally
	for part, err := range v.Store.List(s.ctx, v.Learning.Config().Name+".heuristic", "") {
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
	return fmt.Sprintf("The newest evidence is of %s, %.0f half-lives ago, and has faded. "+
		"--now %s shows what it said then.", moment(last), float64(age)/float64(newest.HalfLife),
		last.Add(time.Second).UTC().Format(time.RFC3339)), nil
}

// heuristic explains a heuristic.
func heuristic(s *session, v *view.Source, id string) (one view.HeuristicDetail, err error) {
	if err := given("heuristic", id); err != nil {
		return one, err
	}
	one, err = v.Heuristic(s.ctx, id)
	if !errors.Is(err, heed.ErrNotFound) {
		return one, damaged("heuristic", id, err)
	}
	all, err := collect(v.Learning.Heuristics(s.ctx))
	if err != nil {
		return one, err
	}
	return one, unknown("heuristic", id, texts(all, idOfHeuristic), "heed confidence lists them")
}

func idOfHeuristic(h learning.Heuristic) string { return h.ID }

func printConfidences(p *printer, all []view.Heuristic) {
	t := newTable("heuristic", "?domain", ">confidence", ">low", ">high", "?>fires", "?>right",
		"?>wrong", "~held")
	some := false
	for i := range all {
		h := &all[i]
		held := h.By()
		some = some || held != ""
		t.add(show(h.ID), show(h.Domain), atLeast(h.Confidence), share(h.Low), share(h.High),
			count(h.Fires), count(h.Successes), count(h.Failures), cmp.Or(held, "-"))
		t.draw(interval{h.Low, h.Confidence, h.High})
	}
	if !some {
		t.leaveOut(len(t.columns) - 1)
	}
	t.print(p)
}

func printHeuristic(p *printer, h *view.HeuristicDetail) {
	printConfidences(p, []view.Heuristic{h.Heuristic})
	p.printf("\n")
	p.line("It began with %s, worth %s observations.", share(h.Prior.Mean()),
		share(h.Prior.Alpha+h.Prior.Beta))
	if h.Held.Locked {
		p.line("It is locked. No feedback counts.")
	} else if h.Held.Weight != 1 {
		p.line("Feedback counts %s times.", share(h.Held.Weight))
	}
	for _, limit := range h.Limits {
		p.line("Held by: %s.", limit)
	}
	if len(h.History) == 0 {
		return
	}
	p.printf("\n")
	t := newTable("when", "how", ">reward", ">weight", "?who", "?session")
	for _, o := range h.History {
		t.add(moment(o.At), show(o.Channel), share(o.Reward), share(o.Weight), show(o.Source),
			show(o.Session))
	}
	t.print(p)
}

type confidencePin struct {
	ID string   `arg:"" complete:"heuristic"`
	At *float64 `placeholder:"SHARE"`
	change
}

// Run pins a confidence.
func (cmd *confidencePin) Run(s *session, c *confidenceCommands) error {
	if cmd.At != nil && !(*cmd.At > 0 && *cmd.At <= 1) {
		return &usageError{"--at must be above 0 and at most 1"}
	}
	return c.with(s, func(v *view.Source) error {
		one, err := heuristic(s, v, cmd.ID)
		if err != nil {
			return err
		}
		at := one.Confidence
		if cmd.At != nil {
			at = *cmd.At
		}
		if at == 0 {
			return fmt.Errorf("the confidence of %s is 0, which can't be held: give another with --at",
				show(cmd.ID))
		}
		question := fmt.Sprintf("This holds the confidence of %s at %s, whatever users say",
			show(cmd.ID), share(at))
		if err := cmd.confirm(s, question); err != nil {
			return err
		}
		held := learning.Constraints{Range: learning.Range{Floor: at, Ceiling: at}}
		err = v.Learning.Pin(s.ctx, learning.Pin{
			HeuristicID: cmd.ID, Constraints: held, Actor: cmd.Actor, Reason: cmd.Reason,
		})
		return tell(s, v, cmd.ID, err)
	})
}

type confidenceUnpin struct {
	ID string `arg:"" complete:"pinned heuristic"`
	change
}

// Run unpins a confidence.
func (cmd *confidenceUnpin) Run(s *session, c *confidenceCommands) error {
	return c.with(s, func(v *view.Source) error {
		one, err := heuristic(s, v, cmd.ID)
		if err != nil {
			return err
		}
		if !one.Pinned {
			return fmt.Errorf("%s is not pinned: heed confidence lists what is", show(cmd.ID))
		}
		question := fmt.Sprintf("This lets users decide about %s again", show(cmd.ID))
		if err := cmd.confirm(s, question); err != nil {
			return err
		}
		return tell(s, v, cmd.ID, v.Learning.Unpin(s.ctx, cmd.ID, cmd.Actor, cmd.Reason))
	})
}

// tell says what holds a heuristic after a change.
func tell(s *session, v *view.Source, id string, err error) error {
	if err != nil {
		return err
	}
	after, err := v.Heuristic(s.ctx, id)
	if err != nil {
		return err
	}
	return s.answer(after.Heuristic, func(p *printer) {
		state := "is not pinned any more"
		if after.Pinned {
			state = "is held now: " + after.By()
		}
		p.line("%s %s. Its confidence is %s.", show(id), state, atLeast(after.Confidence))
	})
}

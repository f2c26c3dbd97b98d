package main

import (
	"fmt"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/store"
)

// confidenceCommands look at how far heuristics of package learning are trusted.
type confidenceCommands struct {
	Module string `complete:"module" placeholder:"NAME"`

	Show  confidenceShow  `cmd:"" default:"withargs"`
	Pin   confidencePin   `cmd:""`
	Unpin confidenceUnpin `cmd:""`
}

type confidenceShow struct {
	ID     string `arg:"" optional:""`
	Domain string `placeholder:"NAME"`
	Limit  atMost `default:"20"`
}

// unknownThreshold says what of an application's configuration is not in the store.
const unknownThreshold = "A heuristic answers by itself from a confidence of 0.700 on, unless " +
	"the application sets another decision.Config.Threshold, which the store does not have."

// Run lists confidences, or explains one.
func (cmd *confidenceShow) Run(s *session, c *confidenceCommands) error {
	var one view.HeuristicDetail
	var all view.List[view.Heuristic]
	var old plain
	err := modules.with(s, c.Module, func(v *view.Source) (err error) {
		if cmd.ID != "" {
			one, err = heuristic(s, v, cmd.ID)
		} else {
			all, err = v.Heuristics(s.ctx, cmd.Domain, view.Page{})
		}
		if err == nil {
			old, err = faded(s, v)
		}
		return err
	})
	notes := func(p *printer) {
		p.note(unknownThreshold)
		p.note(old)
	}
	if cmd.ID == "" {
		flags := []string{"domain", cmd.Domain}
		return answerList(s, all.Items, err, "heuristics", flags,
			func(p *printer, all []view.Heuristic) {
				printConfidences(p, all)
				notes(p)
			})
	}
	if err != nil {
		return err
	}
	one.History = one.History[:min(len(one.History), int(cmd.Limit))]
	return s.answer(one, func(p *printer) {
		printHeuristic(p, &one)
		notes(p)
	})
}

// faded says how old the newest evidence of a module is, if less than an eighth of it still counts,
// after three half-lives.
func faded(s *session, v *view.Source) (plain, error) {
	var newest evidence.Tally
	for part, err := range v.Store.List(s.ctx, store.CellQuery{
		Kind: v.Learning.Config().Name + ".heuristic"}) {
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
	return say("The newest evidence is of %v, %v half-lives ago, and has faded. --now %v shows what "+
		"it said then.", last, int(age/newest.HalfLife),
		last.Add(time.Second).UTC().Format(time.RFC3339)), nil
}

// heuristic explains a heuristic.
func heuristic(s *session, v *view.Source, id string) (view.HeuristicDetail, error) {
	return found("heuristic", id, "heed confidence lists them",
		func(id string) (view.HeuristicDetail, error) { return v.Heuristic(s.ctx, id) },
		func() ([]learning.Heuristic, error) { return collect(v.Learning.Heuristics(s.ctx)) },
		func(h learning.Heuristic) string { return h.ID })
}

func printConfidences(p *printer, all []view.Heuristic) {
	t := newTable("heuristic", "?domain", ">confidence", ">low", ">high", "?>fires", "?>right",
		"?>wrong", "?~held")
	for i := range all {
		h := &all[i]
		t.add(h.ID, h.Domain, atLeast(h.Confidence), h.Low, h.High, h.Fires, h.Successes, h.Failures,
			or(h.By(), "-"))
		t.draw(h.Low, h.Confidence, h.High)
	}
	t.print(p)
}

func printHeuristic(p *printer, h *view.HeuristicDetail) {
	printConfidences(p, []view.Heuristic{h.Heuristic})
	p.blank()
	p.line("It began with %v, worth %v observations.", h.Prior.Mean(), h.Prior.Alpha+h.Prior.Beta)
	if h.Held.Locked {
		p.line("It is locked. No feedback counts.")
	} else if h.Held.Weight != 1 {
		p.line("Feedback counts %v times.", h.Held.Weight)
	}
	for _, limit := range h.Limits {
		p.line("Held by: %v.", limit)
	}
	if len(h.History) == 0 {
		return
	}
	p.blank()
	t := newTable("when", "how", ">reward", ">weight", "?who", "?session")
	for _, o := range h.History {
		t.add(o.At, o.Channel, o.Reward, o.Weight, o.Source, o.Session)
	}
	t.print(p)
}

type confidencePin struct {
	ID string   `arg:""`
	At *float64 `placeholder:"SHARE"`
	change
}

// Run pins a confidence.
func (cmd *confidencePin) Run(s *session, c *confidenceCommands) error {
	if cmd.At != nil && !(*cmd.At > 0 && *cmd.At <= 1) {
		return &usageError{"--at must be above 0 and at most 1"}
	}
	return modules.with(s, c.Module, func(v *view.Source) error {
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
				show(one.ID))
		}
		err = cmd.confirm(s, "This holds the confidence of %v at %v, whatever users say", one.ID, at)
		if err != nil {
			return err
		}
		return decided(s, v, one.ID, v.Learning.Pin(s.ctx, learning.Pin{
			HeuristicID: one.ID, Actor: cmd.Actor, Reason: cmd.Reason,
			Constraints: learning.Constraints{Range: learning.Range{Floor: at, Ceiling: at}},
		}))
	})
}

type confidenceUnpin struct {
	ID string `arg:""`
	change
}

// Run unpins a confidence.
func (cmd *confidenceUnpin) Run(s *session, c *confidenceCommands) error {
	return modules.with(s, c.Module, func(v *view.Source) error {
		one, err := heuristic(s, v, cmd.ID)
		if err != nil {
			return err
		}
		if !one.Pinned {
			return fmt.Errorf("%s is not pinned: heed confidence lists what is", show(one.ID))
		}
		if err := cmd.confirm(s, "This lets users decide about %v again", one.ID); err != nil {
			return err
		}
		return decided(s, v, one.ID, v.Learning.Unpin(s.ctx, one.ID, cmd.Actor, cmd.Reason))
	})
}

// decided says what holds a heuristic after a change.
func decided(s *session, v *view.Source, id string, err error) error {
	if err != nil {
		return err
	}
	after, err := v.Heuristic(s.ctx, id)
	if err != nil {
		return err
	}
	state := "is not pinned any more"
	if after.Pinned {
		state = "is held now: " + after.By()
	}
	return s.told(after.Heuristic, "%v %v. Its confidence is %v.", id, state,
		atLeast(after.Confidence))
}

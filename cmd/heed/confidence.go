package main

import (
	"fmt"

	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/learning"
)

// confidenceCommands look at how far heuristics of package learning are trusted.
type confidenceCommands struct {
	Show  confidenceShow  `cmd:"" default:"withargs"`
	Pin   confidencePin   `cmd:""`
	Unpin confidenceUnpin `cmd:""`
}

type confidenceShow struct {
	ID string `arg:"" optional:""`
	view.HeuristicQuery
	Limit atMost `default:"20"`
}

// Run lists confidences, or explains one.
func (cmd *confidenceShow) Run(s *session) error {
	if cmd.ID == "" {
		return listed(s, modules.with, "heuristics", "confidences",
			func(v *view.Source) ([]view.Heuristic, error) {
				return items(v.Heuristics(s.ctx, cmd.HeuristicQuery))
			})
	}
	return showOne(s, modules.with, "confidence", func(v *view.Source) (view.HeuristicDetail, error) {
		return heuristic(s, v, cmd.ID, int(cmd.Limit))
	})
}

// heuristic explains a heuristic with at most a number of observations.
func heuristic(s *session, v *view.Source, id string, most int) (view.HeuristicDetail, error) {
	return found("heuristic", id, "heed confidence lists them",
		func(id string) (view.HeuristicDetail, error) { return v.Heuristic(s.ctx, id, most) })
}

type confidencePin struct {
	ID string   `arg:""`
	At *float64 `placeholder:"SHARE"`
	change
}

// Run pins a confidence.
func (cmd *confidencePin) Run(s *session) error {
	if cmd.At != nil && !(*cmd.At > 0 && *cmd.At <= 1) {
		return &usageError{"--at must be above 0 and at most 1"}
	}
	return decide(s, cmd.ID, &cmd.change, func(one *view.HeuristicDetail) (none held, _ error) {
		at := one.Confidence
		if cmd.At != nil {
			at = *cmd.At
		}
		if at == 0 {
			return none, fmt.Errorf(
				"the confidence of %s is 0, which can't be held: give another with --at", show(one.ID))
		}
		return held{Floor: at, Ceiling: at},
			cmd.confirm(s, "This holds the confidence of %v at %v, whatever users say", one.ID, at)
	})
}

type confidenceUnpin struct {
	ID string `arg:""`
	change
}

// Run unpins a confidence.
func (cmd *confidenceUnpin) Run(s *session) error {
	return decide(s, cmd.ID, &cmd.change, func(one *view.HeuristicDetail) (none held, _ error) {
		if !one.Pinned {
			return none, fmt.Errorf("%s is not pinned: heed confidence lists what is", show(one.ID))
		}
		return none, cmd.confirm(s, "This lets users decide about %v again", one.ID)
	})
}

// held is what a person wants to hold of a heuristic.
type held = learning.Constraints

// decide pins a heuristic, or ends its pin, and describes that.
func decide(s *session, id string, by *change,
	limits func(*view.HeuristicDetail) (held, error)) error {
	return modules.with(s, func(v *view.Source) error {
		one, err := heuristic(s, v, id, 0)
		p := learning.Pin{HeuristicID: one.ID}
		if err == nil {
			p.Constraints, err = limits(&one)
		}
		if p.Actor, p.Reason = by.Actor, by.Reason; err == nil { // confirmed
			err = v.Learning.Pin(s.ctx, p)
		}
		if err == nil {
			one, err = v.Heuristic(s.ctx, one.ID, 0)
		}
		if err != nil {
			return err
		}
		state := "is not pinned any more"
		if one.Pinned {
			state = "is held now: " + one.By()
		}
		return s.told(one.Heuristic, "%v %v. Its confidence is %v.", one.ID, state,
			atLeast(one.Confidence))
	})
}

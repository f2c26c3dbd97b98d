package main

import (
	"fmt"

	"github.com/heedhq/heed/learning"
)

type confidencePin struct {
	ID string   `arg:"" complete:"heuristic" help:"The heuristic."`
	At *float64 `placeholder:"SHARE" help:"The confidence to hold, above 0 and at most 1. Without it, the present one."`
	change
}

// Run pins a confidence.
func (cmd *confidencePin) Run(s *session, c *confidenceCommands) error {
	if cmd.At != nil && !(*cmd.At > 0 && *cmd.At <= 1) {
		return &usageError{"--at must be above 0 and at most 1"}
	}
	return modules.with(s, c.Module, func(_ *opened, m *learning.Module) error {
		e, err := explanation(s, m, cmd.ID)
		if err != nil {
			return err
		}
		at := e.Standing.Confidence
		if cmd.At != nil {
			at = *cmd.At
		}
		if at == 0 {
			return fmt.Errorf("the confidence of %s is 0, which can't be held: give another with --at", show(cmd.ID))
		}
		if err := cmd.confirm(s, fmt.Sprintf("This holds the confidence of %s at %s, whatever users say", show(cmd.ID), share(at))); err != nil {
			return err
		}
		held := learning.Constraints{Range: learning.Range{Floor: at, Ceiling: at}}
		if err := m.Pin(s.ctx, learning.Pin{HeuristicID: cmd.ID, Constraints: held, Actor: cmd.Actor, Reason: cmd.Reason}); err != nil {
			return err
		}
		return tell(s, m, cmd.ID)
	})
}

type confidenceUnpin struct {
	ID string `arg:"" complete:"pinned heuristic" help:"The heuristic."`
	change
}

// Run unpins a confidence.
func (cmd *confidenceUnpin) Run(s *session, c *confidenceCommands) error {
	return modules.with(s, c.Module, func(_ *opened, m *learning.Module) error {
		e, err := explanation(s, m, cmd.ID)
		if err != nil {
			return err
		}
		if e.Standing.Pin == (learning.Pin{}) {
			return fmt.Errorf("%s is not pinned: heed confidence lists what is", show(cmd.ID))
		}
		if err := cmd.confirm(s, fmt.Sprintf("This lets users decide about %s again", show(cmd.ID))); err != nil {
			return err
		}
		if err := m.Unpin(s.ctx, cmd.ID, cmd.Actor, cmd.Reason); err != nil {
			return err
		}
		return tell(s, m, cmd.ID)
	})
}

// tell says what holds a heuristic now.
func tell(s *session, m *learning.Module, id string) error {
	e, err := m.Explain(s.ctx, id)
	if err != nil {
		return err
	}
	after := confidenceOf(&e, m.Config())
	return s.answer(after, func(p *printer) {
		state := "is not pinned any more"
		if held := after.Held.String(); held != "-" {
			state = "is held now: " + held
		}
		p.line("%s %s. Its confidence is %s.", show(id), state, atLeast(after.Confidence))
	})
}

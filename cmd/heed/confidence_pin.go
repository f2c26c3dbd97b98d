package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/learning"
)

type confidencePin struct {
	ID string   `arg:"" complete:"heuristic" help:"The heuristic."`
	At *float64 `placeholder:"SHARE" help:"The confidence that it is to have, above 0 and at most 1. Without it: the one that it has."`
	change
}

func (confidencePin) Help() string {
	return `Examples:

    heed --db agent.db confidence pin greet-by-name --reason "it is right as it is"
    heed --db agent.db confidence pin greet-by-name --at 0.2 --yes --reason "it upsets visitors"

It holds the confidence at what it is now, or at what --at says, within the bounds of the host. What is heard and what fades counts
meanwhile, to be seen when it is unpinned. A range that the host has given this heuristic gives way for good: the audit has it.
Hosts that run see it at once.`
}

// Run pins a confidence.
func (cmd *confidencePin) Run(s *session, c *confidenceCommands) error {
	if cmd.At != nil && !(*cmd.At > 0 && *cmd.At <= 1) {
		return &usageError{"--at must be above 0 and at most 1"}
	}
	return c.at(s, func(a *appraisal) error {
		h, err := a.heuristic(s, cmd.ID)
		if err != nil {
			return err
		}
		at, err := cmd.share(s, a)
		if err != nil {
			return err
		}
		about := fmt.Sprintf("This holds the confidence of %s at %s, whatever users say", show(cmd.ID), share(at))
		if r := h.Constraints.Range; r != (learning.Range{}) && !isPin(r) {
			about += fmt.Sprintf(", in place of its range from %g to %g", r.Floor, r.Ceiling)
		}
		return cmd.constrain(s, a, h, "pin", about, func(now learning.Constraints) (learning.Constraints, error) {
			now.Range = learning.Range{Floor: at, Ceiling: at}
			return now, nil
		})
	})
}

// share returns the confidence that the heuristic is to have.
func (cmd *confidencePin) share(s *session, a *appraisal) (float64, error) {
	if cmd.At != nil {
		return *cmd.At, nil
	}
	e, err := a.Explain(s.ctx, cmd.ID)
	if err == nil && e.Standing.Confidence == 0 {
		err = fmt.Errorf("the confidence of %s is 0, which can't be held: give another with --at", show(cmd.ID))
	}
	return e.Standing.Confidence, err
}

// pinned reports whether somebody has pinned what has these constraints, or locked it.
func pinned(c learning.Constraints) bool { return c.Lock == learning.Locked || isPin(c.Range) }

// isPin reports whether a range is that of a pin.
func isPin(r learning.Range) bool { return r.Floor == r.Ceiling && r != learning.Range{} }

type confidenceUnpin struct {
	ID string `arg:"" complete:"pinned heuristic" help:"The heuristic."`
	change
}

func (confidenceUnpin) Help() string {
	return `Examples:

    heed --db agent.db confidence unpin greet-by-name --reason "its text was rewritten"

It takes back what pin has set, and a lock. Constraints that its host has set otherwise stay, as do those of its pack and of the
system.`
}

// Run unpins a confidence.
func (cmd *confidenceUnpin) Run(s *session, c *confidenceCommands) error {
	return c.at(s, func(a *appraisal) error {
		h, err := a.heuristic(s, cmd.ID)
		if err != nil {
			return err
		}
		about := fmt.Sprintf("This lets users decide about %s again", show(cmd.ID))
		return cmd.constrain(s, a, h, "unpin", about, func(now learning.Constraints) (learning.Constraints, error) {
			if !pinned(now) {
				return now, fmt.Errorf("%s is not pinned: heed confidence lists what is", show(cmd.ID))
			}
			if now.Lock == learning.Locked {
				now.Lock = learning.Inherit
			}
			if isPin(now.Range) {
				now.Range = learning.Range{}
			}
			return now, nil
		})
	})
}

// constrain changes the constraints of a heuristic, if that is confirmed. The audit has it before it is so: nothing is changed
// that nobody can find.
func (c *change) constrain(
	s *session, a *appraisal, h learning.Heuristic, action, about string, to func(now learning.Constraints) (learning.Constraints, error),
) error {
	wanted, err := to(h.Constraints)
	if err != nil {
		return err
	}
	if err := c.confirm(s, about); err != nil {
		return err
	}
	err = a.record(s, c, a.Config().Name+"."+action, h.ID, map[string]string{"before": written(h.Constraints), "after": written(wanted)})
	if err != nil {
		return err
	}
	if err := a.put(s, h, to); err != nil {
		return fmt.Errorf("nothing was changed, though the audit has it: %w", a.opened.explain(err))
	}
	e, err := a.Explain(s.ctx, h.ID)
	if err != nil {
		return err
	}
	after := confidenceOf(&e)
	return s.answer(after, func(p *printer) {
		state := "is not pinned any more"
		if held := after.Held.String(); held != "-" {
			state = "is held now: " + held
		}
		p.line("%s %s. Its confidence is %s.", show(h.ID), state, share(after.Confidence))
	})
}

// put stores a heuristic with other constraints. Where its host has stored it meanwhile, it begins anew.
func (a *appraisal) put(s *session, h learning.Heuristic, to func(now learning.Constraints) (learning.Constraints, error)) error {
	const tries = 10
	for n := 1; ; n++ {
		constraints, err := to(h.Constraints)
		if err != nil {
			return err
		}
		h.Constraints = constraints
		_, err = a.heuristics.Put(s.ctx, h)
		if !errors.Is(err, heed.ErrConflict) || n == tries {
			return err
		}
		if h, err = a.heuristics.Get(s.ctx, h.ID); err != nil {
			return err
		}
	}
}

// written writes for the audit what constraints say.
func written(c learning.Constraints) string {
	var says []string
	if c.Lock != learning.Inherit {
		says = append(says, string(c.Lock))
	}
	if c.Range != (learning.Range{}) {
		says = append(says, fmt.Sprintf("%g to %g", c.Range.Floor, c.Range.Ceiling))
	}
	if c.FeedbackWeight != 0 {
		says = append(says, fmt.Sprintf("weight %g", c.FeedbackWeight))
	}
	if says == nil {
		return "nothing"
	}
	return strings.Join(says, ", ")
}

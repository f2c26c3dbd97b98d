package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/heedhq/heed/evidence"
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
meanwhile, to be seen when it is unpinned. What the host has set for this heuristic holds again then. Hosts that run see it at once.`
}

// Run pins a confidence.
func (cmd *confidencePin) Run(s *session, c *confidenceCommands) error {
	if cmd.At != nil && !(*cmd.At > 0 && *cmd.At <= 1) {
		return &usageError{"--at must be above 0 and at most 1"}
	}
	return c.at(s, func(a *appraisal) error {
		if _, err := a.heuristic(s, cmd.ID); err != nil {
			return err
		}
		at, err := cmd.share(s, a)
		if err != nil {
			return err
		}
		if err := cmd.confirm(s, fmt.Sprintf("This holds the confidence of %s at %s, whatever users say", show(cmd.ID), share(at))); err != nil {
			return err
		}
		held := learning.Constraints{Range: learning.Range{Floor: at, Ceiling: at}}
		if err := a.Pin(s.ctx, learning.Pin{HeuristicID: cmd.ID, Constraints: held, Actor: cmd.Actor, Reason: cmd.Reason}); err != nil {
			return err
		}
		return a.tell(s, cmd.ID)
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

type confidenceUnpin struct {
	ID string `arg:"" complete:"pinned heuristic" help:"The heuristic."`
	change
}

func (confidenceUnpin) Help() string {
	return `Examples:

    heed --db agent.db confidence unpin greet-by-name --reason "its text was rewritten"

It takes back what pin has set. What its host has set for this heuristic holds again, with what its pack and the system say.`
}

// Run unpins a confidence.
func (cmd *confidenceUnpin) Run(s *session, c *confidenceCommands) error {
	return c.at(s, func(a *appraisal) error {
		if _, err := a.heuristic(s, cmd.ID); err != nil {
			return err
		}
		standing, err := a.Standing(s.ctx, cmd.ID)
		if err == nil && standing.Pin == (learning.Pin{}) {
			err = fmt.Errorf("%s is not pinned: heed confidence lists what is", show(cmd.ID))
		}
		if err != nil {
			return err
		}
		if err := cmd.confirm(s, fmt.Sprintf("This lets users decide about %s again", show(cmd.ID))); err != nil {
			return err
		}
		if err := a.Unpin(s.ctx, cmd.ID, cmd.Actor, cmd.Reason); err != nil {
			return err
		}
		return a.tell(s, cmd.ID)
	})
}

// tell says what a heuristic is held by now.
func (a *appraisal) tell(s *session, id string) error {
	e, err := a.Explain(s.ctx, id)
	if err != nil {
		return err
	}
	after := confidenceOf(&e)
	return s.answer(after, func(p *printer) {
		state := "is not pinned any more"
		if held := after.Held.String(); held != "-" {
			state = "is held now: " + held
		}
		p.line("%s %s. Its confidence is %s.", show(id), state, share(after.Confidence))
	})
}

type confidenceRebuild struct {
	HalfLife *time.Duration `placeholder:"TIME" help:"The time after which evidence counts half, as 720h; 0s: it counts for ever."`
	BySource *bool          `negatable:"" help:"Keep apart what each person has caused. Caps do so by themselves."`
	change
}

func (confidenceRebuild) Help() string {
	return `Examples:

    heed --db agent.db confidence rebuild --half-life 720h --reason "last year is long ago"
    heed --db agent.db confidence rebuild --by-source --yes --reason "for forgetting"

It makes what was learned anew from its history, in one commit with the settings. That works as long as the store still has the
whole history. Hosts that run have to be started again, with the same settings or with none.`
}

// Run rebuilds what a module has learned.
func (cmd *confidenceRebuild) Run(s *session, c *confidenceCommands) error {
	if cmd.HalfLife == nil && cmd.BySource == nil {
		return &usageError{"what is to change? Say --half-life or --by-source"}
	}
	return c.at(s, func(a *appraisal) error {
		cfg := a.Config()
		if cmd.HalfLife != nil {
			cfg.HalfLife = *cmd.HalfLife
		}
		if cmd.BySource != nil {
			cfg.BySource = *cmd.BySource
		}
		if err := cmd.confirm(s, fmt.Sprintf("This makes anew what module %s has learned", show(cfg.Name))); err != nil {
			return err
		}
		module, err := learning.Rebuild(s.ctx, cfg, cmd.Actor, cmd.Reason)
		if errors.Is(err, evidence.ErrForgotten) {
			return fmt.Errorf("the store has forgotten some of the history, so what was learned can't be made anew: keep the settings, or begin anew")
		}
		if err != nil {
			return err
		}
		now := module.Config()
		done := rebuilt{cfg.Name, now.HalfLife.String(), now.BySource}
		return s.answer(done, func(p *printer) {
			p.line("Made anew: the half-life is %s, sources are apart: %t.", now.HalfLife, now.BySource)
		})
	})
}

// rebuilt says how a module's evidence is kept.
type rebuilt struct {
	Module   string `json:"module"`
	HalfLife string `json:"half_life"`
	BySource bool   `json:"by_source"`
}

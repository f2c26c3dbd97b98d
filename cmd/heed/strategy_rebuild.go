package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/strategy"
)

type strategyRebuild struct {
	HalfLife *time.Duration `placeholder:"TIME" help:"The time after which an outcome counts half, such as 720h. 0: outcomes count for ever."`
	BySource *bool          `negatable:"" help:"Keep sources apart, as caps need it."`
	change
}

func (strategyRebuild) Help() string {
	return `Examples:

    heed --db agent.db strategy rebuild --half-life 720h
    heed --db agent.db strategy rebuild --by-source --yes --reason "caps on single sources"

All sums of the learner are made anew from their history, which the store must still have as a whole: if not, nothing changes. Then
reset its categories, and rebuild what is left. Hosts that run with the old settings are refused from then on, until they are
configured with the new ones.`
}

// Run rebuilds a learner.
func (cmd *strategyRebuild) Run(s *session, c *strategyCommands) error {
	if cmd.HalfLife == nil && cmd.BySource == nil {
		return &usageError{"name what is to be kept otherwise: --half-life or --by-source"}
	}
	v, err := c.view(s)
	if err != nil {
		return err
	}
	defer v.close()
	cfg := v.Config()
	if cmd.HalfLife != nil {
		cfg.HalfLife = *cmd.HalfLife
	}
	if cmd.BySource != nil {
		cfg.BySource = *cmd.BySource
	}
	about := fmt.Sprintf("This makes all that %s has learned anew, with half-life %v and sources apart: %v", show(v.name), cfg.HalfLife, cfg.BySource)
	if err := cmd.confirm(s, about); err != nil {
		return err
	}
	switch _, err := strategy.Rebuild(s.ctx, cfg, cmd.Actor, cmd.Reason); {
	case errors.Is(err, evidence.ErrForgotten):
		return fmt.Errorf("the history of %s is no longer whole, so nothing was changed: reset its categories first", show(v.name))
	case err != nil:
		return v.explain(err)
	}
	return s.answer(struct {
		Learner  string        `json:"learner"`
		HalfLife time.Duration `json:"half_life"`
		BySource bool          `json:"by_source"`
	}{v.name, cfg.HalfLife, cfg.BySource}, func(p *printer) { p.line("Rebuilt %s.", show(v.name)) })
}

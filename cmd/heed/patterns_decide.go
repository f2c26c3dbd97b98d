package main

import (
	"context"
	"fmt"

	"github.com/heedhq/heed/patterns"
)

// A patternDecision is what every decision about a pattern takes.
type patternDecision struct {
	ID string `arg:"" complete:"pattern" help:"The pattern."`
	change
}

// decide makes a decision about the pattern, if that is confirmed.
func (cmd *patternDecision) decide(
	s *session, c *patternsCommands, about func(patterns.Standing) (string, error),
	make func(*patterns.Recorder, context.Context, patterns.PatternID, patterns.By) (patterns.Transition, error),
) error {
	return recorders.with(s, c.Recorder, func(_ *opened, r *patterns.Recorder) error {
		before, err := standing(s, r, cmd.ID)
		if err != nil {
			return err
		}
		if before.Pattern.Anti {
			return fmt.Errorf("%s is an anti-pattern: decide about the pattern that it warns of", show(cmd.ID))
		}
		question, err := about(before)
		if err != nil {
			return err
		}
		if err := cmd.confirm(s, question); err != nil {
			return err
		}
		if _, err := make(r, s.ctx, before.Pattern.ID, patterns.By{Actor: cmd.Actor, Reason: cmd.Reason}); err != nil {
			return err
		}
		after, err := r.Standing(s.ctx, before.Pattern.ID)
		if err != nil {
			return err
		}
		report := reportOf(&after)
		return s.answer(report, func(p *printer) { p.line("The state of %s: %s.", show(cmd.ID), report.standing()) })
	})
}

// by asks whether a pattern is to have a state by hand.
func (cmd *patternDecision) by(state patterns.State) func(patterns.Standing) (string, error) {
	return func(before patterns.Standing) (string, error) {
		if p := before.Pattern; p.Override == state {
			return "", fmt.Errorf("%s is %s by hand already: %s wanted it, %q", show(cmd.ID), state, show(p.By.Actor), show(p.By.Reason))
		}
		if state == patterns.Proven && (before.State == patterns.Deprecated || before.State == patterns.Inverted) {
			return "", fmt.Errorf("%s is %s, and can't be promoted: begin anew with heed patterns reset %s", show(cmd.ID), before.State, show(cmd.ID))
		}
		return fmt.Sprintf("This makes %s %s by hand, from %s", show(cmd.ID), state, before.State), nil
	}
}

type patternsPromote struct{ patternDecision }

// Run promotes a pattern.
func (cmd *patternsPromote) Run(s *session, c *patternsCommands) error {
	return cmd.decide(s, c, cmd.by(patterns.Proven), (*patterns.Recorder).Promote)
}

type patternsDeprecate struct{ patternDecision }

// Run deprecates a pattern.
func (cmd *patternsDeprecate) Run(s *session, c *patternsCommands) error {
	return cmd.decide(s, c, cmd.by(patterns.Deprecated), (*patterns.Recorder).Deprecate)
}

type patternsRestore struct{ patternDecision }

// Run restores a pattern.
func (cmd *patternsRestore) Run(s *session, c *patternsCommands) error {
	return cmd.decide(s, c, func(before patterns.Standing) (string, error) {
		switch p := before.Pattern; {
		case p.Override != "":
			return fmt.Sprintf("This lets evidence decide about %s, which %s made %s", show(cmd.ID), show(p.By.Actor), p.Override), nil
		case !p.ArchivedAt.IsZero():
			return fmt.Sprintf("This brings %s back from the archive", show(cmd.ID)), nil
		}
		return "", fmt.Errorf("nobody has decided about %s by hand, and it is not archived: there is nothing to restore", show(cmd.ID))
	}, reset(true))
}

type patternsReset struct{ patternDecision }

// Run resets a pattern.
func (cmd *patternsReset) Run(s *session, c *patternsCommands) error {
	return cmd.decide(s, c, func(before patterns.Standing) (string, error) {
		return fmt.Sprintf("This forgets %s of %s, which is %s", plural(before.Counts.Successes+before.Counts.Failures, "observation", "observations"),
			show(cmd.ID), before.State), nil
	}, reset(false))
}

func reset(keep bool) func(*patterns.Recorder, context.Context, patterns.PatternID, patterns.By) (patterns.Transition, error) {
	return func(r *patterns.Recorder, ctx context.Context, id patterns.PatternID, by patterns.By) (patterns.Transition, error) {
		return r.Reset(ctx, patterns.Reset{Pattern: id, By: by, KeepEvidence: keep})
	}
}

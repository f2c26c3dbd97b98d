package main

import (
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
	s *session, c *patternsCommands, about func(*patterns.Standing) (string, error), make func(*patterns.Recorder, patterns.PatternID, patterns.By) error,
) error {
	return recorders.with(s, c.Recorder, func(_ *opened, b *patterns.Recorder) error {
		before, err := standing(s, b, cmd.ID)
		if err != nil {
			return err
		}
		if before.Pattern.Anti {
			return fmt.Errorf("%s is an anti-pattern: decide about the pattern that it warns of", show(cmd.ID))
		}
		question, err := about(&before)
		if err != nil {
			return err
		}
		if err := cmd.confirm(s, question); err != nil {
			return err
		}
		if err := make(b, before.Pattern.ID, patterns.By{Actor: cmd.Actor, Reason: cmd.Reason}); err != nil {
			return err
		}
		after, err := b.Standing(s.ctx, before.Pattern.ID)
		if err != nil {
			return err
		}
		r := reportOf(&after)
		return s.answer(r, func(p *printer) { p.line("The state of %s: %s.", show(cmd.ID), r.standing()) })
	})
}

// give gives the pattern a state by hand.
func (cmd *patternDecision) give(
	s *session, c *patternsCommands, state patterns.State, make func(*patterns.Recorder, patterns.PatternID, patterns.By) error,
) error {
	return cmd.decide(s, c, func(before *patterns.Standing) (string, error) {
		if p := before.Pattern; p.Override == state {
			return "", fmt.Errorf("%s is %s by hand already: %s wanted it, %q", show(cmd.ID), state, show(p.By.Actor), show(p.By.Reason))
		}
		return fmt.Sprintf("This makes %s %s by hand, from %s", show(cmd.ID), state, before.State), nil
	}, make)
}

type patternsPromote struct{ patternDecision }

// Run promotes a pattern.
func (cmd *patternsPromote) Run(s *session, c *patternsCommands) error {
	return cmd.give(s, c, patterns.Proven, func(b *patterns.Recorder, id patterns.PatternID, d patterns.By) error {
		_, err := b.Promote(s.ctx, id, d)
		return err
	})
}

type patternsDeprecate struct{ patternDecision }

// Run deprecates a pattern.
func (cmd *patternsDeprecate) Run(s *session, c *patternsCommands) error {
	return cmd.give(s, c, patterns.Deprecated, func(b *patterns.Recorder, id patterns.PatternID, d patterns.By) error {
		_, err := b.Deprecate(s.ctx, id, d)
		return err
	})
}

type patternsRestore struct{ patternDecision }

// Run restores a pattern.
func (cmd *patternsRestore) Run(s *session, c *patternsCommands) error {
	return cmd.decide(s, c, func(before *patterns.Standing) (string, error) {
		switch p := before.Pattern; {
		case p.Override != "":
			return fmt.Sprintf("This lets evidence decide about %s, which %s made %s", show(cmd.ID), show(p.By.Actor), p.Override), nil
		case !p.ArchivedAt.IsZero():
			return fmt.Sprintf("This brings %s back from the archive", show(cmd.ID)), nil
		}
		return "", fmt.Errorf("nobody has decided about %s by hand, nor is it archived: there is nothing to restore", show(cmd.ID))
	}, func(b *patterns.Recorder, id patterns.PatternID, d patterns.By) error {
		_, err := b.Reset(s.ctx, patterns.Reset{Pattern: id, By: d, KeepEvidence: true})
		return err
	})
}

type patternsReset struct{ patternDecision }

// Run resets a pattern.
func (cmd *patternsReset) Run(s *session, c *patternsCommands) error {
	return cmd.decide(s, c, func(before *patterns.Standing) (string, error) {
		return fmt.Sprintf("This forgets %s of %s, which is %s", plural(before.Counts.Successes+before.Counts.Failures, "observation", "observations"),
			show(cmd.ID), before.State), nil
	}, func(b *patterns.Recorder, id patterns.PatternID, d patterns.By) error {
		_, err := b.Reset(s.ctx, patterns.Reset{Pattern: id, By: d})
		return err
	})
}

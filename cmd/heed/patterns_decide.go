package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/patterns"
)

// A patternDecision is what every decision about a pattern takes.
type patternDecision struct {
	ID string `arg:"" complete:"pattern" help:"The pattern."`
	change
}

// decide makes a decision about the pattern, if that is confirmed.
func (cmd *patternDecision) decide(
	s *session, c *patternsCommands, about func(*patterns.Standing) (string, error), make func(*casebook, patterns.PatternID, patterns.By) error,
) error {
	return c.at(s, func(b *casebook) error {
		before, err := b.find(s, cmd.ID)
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
	s *session, c *patternsCommands, state patterns.State, make func(*casebook, patterns.PatternID, patterns.By) error,
) error {
	return cmd.decide(s, c, func(before *patterns.Standing) (string, error) {
		if p := before.Pattern; p.Override == state {
			return "", fmt.Errorf("%s is %s by hand already: %s wanted it, %q", show(cmd.ID), state, show(p.By.Actor), show(p.By.Reason))
		}
		return fmt.Sprintf("This makes %s %s by hand, from %s", show(cmd.ID), state, before.State), nil
	}, make)
}

const stickyHelp = `What is decided by hand holds, whatever comes, until heed patterns restore or reset. It is in the transitions of the pattern, which
heed patterns shows, and in heed audit.`

type patternsPromote struct{ patternDecision }

func (patternsPromote) Help() string {
	return `Examples:

    heed --db agent.db patterns promote tests-first --reason "agreed on in the team"

It comes back from the archive, too. What is deprecated or inverted has to be reset first. ` + stickyHelp
}

// Run promotes a pattern.
func (cmd *patternsPromote) Run(s *session, c *patternsCommands) error {
	return cmd.give(s, c, patterns.Proven, func(b *casebook, id patterns.PatternID, d patterns.By) error {
		_, err := b.Promote(s.ctx, id, d)
		return err
	})
}

type patternsDeprecate struct{ patternDecision }

func (patternsDeprecate) Help() string {
	return `Examples:

    heed --db agent.db patterns deprecate split-by-file --reason "the files are too small now"

What is deprecated weighs nothing, and no prompt recommends it. ` + stickyHelp
}

// Run deprecates a pattern.
func (cmd *patternsDeprecate) Run(s *session, c *patternsCommands) error {
	return cmd.give(s, c, patterns.Deprecated, func(b *casebook, id patterns.PatternID, d patterns.By) error {
		_, err := b.Deprecate(s.ctx, id, d)
		return err
	})
}

type patternsRestore struct{ patternDecision }

func (patternsRestore) Help() string {
	return `Examples:

    heed --db agent.db patterns restore tests-first --reason "the team has changed"

It ends a promotion or deprecation by hand, and the pattern is what its evidence makes of it. One that is archived is in prompts
again; where nothing is heard of it, the host's next sweep archives it anew, unless it is promoted.`
}

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
	}, func(b *casebook, id patterns.PatternID, d patterns.By) error {
		_, err := b.Reset(s.ctx, patterns.Reset{Pattern: id, By: d, KeepEvidence: true})
		return err
	})
}

type patternsReset struct{ patternDecision }

func (patternsReset) Help() string {
	return `Examples:

    heed --db agent.db patterns reset split-by-file --reason "the tool was replaced"

The pattern is a candidate again: decisions by hand, an inversion, and the evidence are gone. Outcomes that had been counted do not
count again.`
}

// Run resets a pattern.
func (cmd *patternsReset) Run(s *session, c *patternsCommands) error {
	return cmd.decide(s, c, func(before *patterns.Standing) (string, error) {
		return fmt.Sprintf("This forgets %s of %s, which is %s", plural(before.Counts.Successes+before.Counts.Failures, "observation", "observations"),
			show(cmd.ID), before.State), nil
	}, func(b *casebook, id patterns.PatternID, d patterns.By) error {
		_, err := b.Reset(s.ctx, patterns.Reset{Pattern: id, By: d})
		return err
	})
}

type patternsRebuild struct {
	HalfLife         time.Duration `placeholder:"TIME" help:"The time after which evidence on a pattern counts half, as 720h."`
	CriteriaHalfLife time.Duration `placeholder:"TIME" help:"The time after which evidence on a criterion counts half, as 720h."`
	change
}

func (patternsRebuild) Help() string {
	return `Examples:

    heed --db agent.db patterns rebuild --half-life 720h --reason "we change our ways often"

It makes what was learned anew from its history, in one commit with the settings. The store must still have the whole history: else
nothing changes, and the patterns have to be reset first. Hosts that run have to be started again, with the same half-lives or with
none in their configuration.`
}

// A rebuiltRecorder has these half-lives now.
type rebuiltRecorder struct {
	Recorder         string `json:"recorder"`
	HalfLife         string `json:"half_life"`
	CriteriaHalfLife string `json:"criteria_half_life"`
}

// Run rebuilds what a recorder has learned.
func (cmd *patternsRebuild) Run(s *session, c *patternsCommands) error {
	if cmd.HalfLife == 0 && cmd.CriteriaHalfLife == 0 {
		return &usageError{"what is to change? Say --half-life or --criteria-half-life"}
	}
	return c.at(s, func(b *casebook) error {
		cfg := patterns.Config{
			Store: b.store, Name: b.Config().Name, Now: s.now,
			Maturity: patterns.Maturity{HalfLife: cmd.HalfLife}, Criteria: patterns.Criteria{HalfLife: cmd.CriteriaHalfLife},
		}
		if err := cmd.confirm(s, fmt.Sprintf("This makes anew what recorder %s has learned", show(cfg.Name))); err != nil {
			return err
		}
		after, err := patterns.Rebuild(s.ctx, cfg, cmd.Actor, cmd.Reason)
		if errors.Is(err, evidence.ErrForgotten) {
			return errors.New("the store has forgotten some of the history, so nothing can be made anew: keep the half-lives, or reset the patterns first")
		}
		if err != nil {
			return err
		}
		now := after.Config()
		done := rebuiltRecorder{now.Name, now.Maturity.HalfLife.String(), now.Criteria.HalfLife.String()}
		return s.answer(done, func(p *printer) {
			p.line("Made anew: evidence on a pattern counts half after %s, on a criterion after %s.", done.HalfLife, done.CriteriaHalfLife)
		})
	})
}

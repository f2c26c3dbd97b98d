package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/patterns"
)

// patternsCommands look at ways of working that package patterns follows or avoids.
type patternsCommands struct {
	Recorder string `complete:"recorder" placeholder:"NAME"`

	Show      patternsShow   `cmd:"" default:"withargs"`
	Promote   patternsDecide `cmd:""`
	Deprecate patternsDecide `cmd:""`
	Restore   patternsDecide `cmd:""`
	Reset     patternsDecide `cmd:""`
}

// with calls a function with the recorder.
func (c *patternsCommands) with(s *session, do func(*view.Source) error) error {
	return recorders.with(s, c.Recorder, func(st *opened, r *patterns.Recorder) error {
		return do(&view.Source{Store: st.store, Patterns: r, Now: s.now})
	})
}

type patternsShow struct {
	ID    string `arg:"" optional:"" complete:"pattern"`
	State string `default:"" enum:"${states}" placeholder:"STATE"`
	Tag   string `placeholder:"TAG"`
}

// states are the states of patterns, with the empty one.
const states = ",candidate,established,proven,deprecated,inverted"

// stateOf writes the state of a way of working.
func stateOf(w *view.Way) string {
	state := string(w.State)
	if w.ByHand {
		state += ", by hand"
	}
	if w.Archived {
		state += ", archived"
	}
	return state
}

// Run lists patterns, or explains one.
func (cmd *patternsShow) Run(s *session, c *patternsCommands) error {
	if cmd.ID != "" {
		return c.with(s, func(v *view.Source) error {
			found, err := way(s, v, cmd.ID)
			if err != nil {
				return err
			}
			return s.answer(found, func(p *printer) { printWay(p, &found) })
		})
	}
	var all view.List[view.Way]
	err := c.with(s, func(v *view.Source) (err error) {
		q := view.WayQuery{State: patterns.State(cmd.State), Tag: cmd.Tag}
		all, err = v.Ways(s.ctx, q, view.Page{})
		return err
	})
	flags := []string{"state", cmd.State, "tag", cmd.Tag}
	return answerList(s, all.Items, err, "patterns", flags, printWays)
}

// way finds a way of working.
func way(s *session, v *view.Source, id string) (found view.WayDetail, err error) {
	if err := given("pattern", id); err != nil {
		return found, err
	}
	found, err = v.Way(s.ctx, id)
	if !errors.Is(err, heed.ErrNotFound) {
		return found, damaged("pattern", id, err)
	}
	all, err := v.Ways(s.ctx, view.WayQuery{}, view.Page{})
	if err != nil {
		return found, err
	}
	return found, unknown("pattern", id, texts(all.Items, idOfWay), "heed patterns lists them")
}

func idOfWay(w view.Way) string { return string(w.ID) }

func printWay(p *printer, w *view.WayDetail) {
	printWays(p, []view.Way{w.Way})
	p.printf("\n")
	p.line("%s", show(w.Content))
	for _, gate := range w.Gates {
		p.line("%s", gate)
	}
	if len(w.Transitions) == 0 {
		return
	}
	p.printf("\n")
	t := newTable("when", "from", "to", "?who", "~why")
	for _, change := range w.Transitions {
		t.add(moment(change.At), show(string(change.From)), show(string(change.To)),
			show(change.Actor), show(change.Cause))
	}
	t.print(p)
}

func printWays(p *printer, all []view.Way) {
	t := newTable("pattern", "state", ">rate", "?>weighs", "?>helpful", "&>harmful", "?last heard",
		"?~content")
	for i := range all {
		w := &all[i]
		t.add(show(string(w.ID)), show(stateOf(w)), share(w.Rate), share(w.Multiplier),
			count(w.Successes), count(w.Failures), moment(w.Heard), show(w.Content))
	}
	t.print(p)
}

// A patternsDecide makes the decision about a pattern that the command is named for.
type patternsDecide struct {
	ID string `arg:"" complete:"pattern"`
	change
}

// Run decides about the pattern, if that is confirmed.
func (cmd *patternsDecide) Run(s *session, c *patternsCommands) error {
	return c.with(s, func(v *view.Source) error {
		before, err := way(s, v, cmd.ID)
		if err != nil {
			return err
		}
		if before.Anti {
			return fmt.Errorf("%s is an anti-pattern: decide about the pattern that it warns of",
				show(cmd.ID))
		}
		question, err := cmd.question(s.command, &before)
		if err != nil {
			return err
		}
		if err := cmd.confirm(s, question); err != nil {
			return err
		}
		if err := cmd.decide(s.ctx, s.command, v.Patterns, before.ID); err != nil {
			return err
		}
		after, err := v.Way(s.ctx, cmd.ID)
		if err != nil {
			return err
		}
		return s.answer(after, func(p *printer) {
			p.line("The state of %s: %s.", show(cmd.ID), stateOf(&after.Way))
		})
	})
}

// question says what the decision does, or why it can't be made.
func (cmd *patternsDecide) question(decision string, w *view.WayDetail) (string, error) {
	id, p := show(cmd.ID), &w.Standing.Pattern
	switch decision {
	case "restore":
		switch {
		case p.Override != "":
			return fmt.Sprintf("This lets evidence decide about %s, which %s made %s", id,
				show(p.By.Actor), p.Override), nil
		case w.Archived:
			return fmt.Sprintf("This brings %s back from the archive", id), nil
		}
		return "", fmt.Errorf("nobody has decided about %s by hand, and it is not archived: "+
			"there is nothing to restore", id)
	case "reset":
		return fmt.Sprintf("This forgets %s of %s, which is %s",
			plural(w.Successes+w.Failures, "observation", "observations"), id, w.State), nil
	}
	state := patterns.Proven
	if decision == "deprecate" {
		state = patterns.Deprecated
	}
	if p.Override == state {
		return "", fmt.Errorf("%s is %s by hand already: %s wanted it, %q", id, state,
			show(p.By.Actor), show(p.By.Reason))
	}
	if state == patterns.Proven && (w.State == patterns.Deprecated || w.State == patterns.Inverted) {
		return "", fmt.Errorf("%s is %s, and can't be promoted: begin with heed patterns reset %s",
			id, w.State, id)
	}
	return fmt.Sprintf("This makes %s %s by hand, from %s", id, state, w.State), nil
}

func (cmd *patternsDecide) decide(
	ctx context.Context, decision string, r *patterns.Recorder, id patterns.PatternID,
) (err error) {
	by := patterns.By{Actor: cmd.Actor, Reason: cmd.Reason}
	switch decision {
	case "promote":
		_, err = r.Promote(ctx, id, by)
	case "deprecate":
		_, err = r.Deprecate(ctx, id, by)
	default:
		_, err = r.Reset(ctx, patterns.Reset{Pattern: id, By: by, KeepEvidence: decision == "restore"})
	}
	return err
}

package main

import (
	"fmt"

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

type patternsShow struct {
	ID    string `arg:"" optional:""`
	State string `default:"" enum:"${states}" placeholder:"STATE"`
	Tag   string `placeholder:"TAG"`
}

// states are the states of patterns, with the empty one.
const states = ",candidate,established,proven,deprecated,inverted"

// stateOf writes the state of a way of working.
func stateOf(w view.Way) string {
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
	var all view.List[view.Way]
	err := recorders.with(s, c.Recorder, func(v *view.Source) (err error) {
		if cmd.ID != "" {
			found, err := way(s, v, cmd.ID)
			if err != nil {
				return err
			}
			return s.answer(found, "way")
		}
		q := view.WayQuery{State: patterns.State(cmd.State), Tag: cmd.Tag}
		all, err = v.Ways(s.ctx, q, view.Page{})
		return err
	})
	if cmd.ID != "" {
		return err
	}
	return answerList(s, all.Items, err, "patterns", "ways", "state", cmd.State, "tag", cmd.Tag)
}

// way finds a way of working.
func way(s *session, v *view.Source, id string) (view.WayDetail, error) {
	return found("pattern", id, "heed patterns lists them",
		func(id string) (view.WayDetail, error) { return v.Way(s.ctx, id) },
		func() ([]view.Way, error) {
			all, err := v.Ways(s.ctx, view.WayQuery{}, view.Page{})
			return all.Items, err
		},
		func(w view.Way) string { return string(w.ID) })
}

// A patternsDecide makes the decision about a pattern that the command is named for.
type patternsDecide struct {
	ID string `arg:""`
	change
}

// Run decides about the pattern, if that is confirmed.
func (cmd *patternsDecide) Run(s *session, c *patternsCommands) error {
	return recorders.with(s, c.Recorder, func(v *view.Source) error {
		before, err := way(s, v, cmd.ID)
		if err != nil {
			return err
		}
		question, err := question(s.command, &before)
		if err != nil {
			return err
		}
		if err := cmd.confirm(s, "%v", question); err != nil {
			return err
		}
		by := patterns.By{Actor: cmd.Actor, Reason: cmd.Reason}
		switch s.command {
		case "promote":
			_, err = v.Patterns.Promote(s.ctx, before.ID, by)
		case "deprecate":
			_, err = v.Patterns.Deprecate(s.ctx, before.ID, by)
		default:
			_, err = v.Patterns.Reset(s.ctx, patterns.Reset{
				Pattern: before.ID, By: by, KeepEvidence: s.command == "restore",
			})
		}
		if err != nil {
			return err
		}
		after, err := v.Way(s.ctx, string(before.ID))
		if err != nil {
			return err
		}
		return s.told(after, "The state of %v: %v.", after.ID, stateOf(after.Way))
	})
}

// question describes what a decision does, or why it can't be made.
func question(decision string, w *view.WayDetail) (plain, error) {
	p, id := &w.Standing.Pattern, show(string(w.ID))
	state := patterns.Proven
	if decision == "deprecate" {
		state = patterns.Deprecated
	}
	down := w.State == patterns.Deprecated || w.State == patterns.Inverted
	switch {
	case w.Anti:
		return "", fmt.Errorf("%s is an anti-pattern: decide about the pattern that it warns of", id)
	case decision == "reset":
		return say("This forgets %v of %v, which is %v",
			plural(w.Successes+w.Failures, "observation", "observations"), w.ID, w.State), nil
	case decision == "restore" && p.Override != "":
		return say("This lets evidence decide about %v, which %v made %v", w.ID, p.By.Actor,
			p.Override), nil
	case decision == "restore" && w.Archived:
		return say("This brings %v back from the archive", w.ID), nil
	case decision == "restore":
		return "", fmt.Errorf("no person has decided about %s, and it is not archived: "+
			"there is nothing to restore", id)
	case p.Override == state:
		return "", fmt.Errorf("%s is %s by hand already: %s wanted it, %q", id, state,
			show(p.By.Actor), show(p.By.Reason))
	case state == patterns.Proven && down:
		return "", fmt.Errorf("%s is %s, and can't be promoted: begin with heed patterns reset %s",
			id, w.State, id)
	}
	return say("This makes %v %v by hand, from %v", w.ID, state, w.State), nil
}

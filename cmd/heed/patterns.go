package main

import (
	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/patterns"
)

// A patternsCommand shows ways of working that package patterns follows or avoids.
type patternsCommand struct {
	ID       string `arg:"" optional:""`
	Recorder string `placeholder:"NAME"`
	State    string `default:"" enum:"${states}" placeholder:"STATE"`
	Tag      string `placeholder:"TAG"`
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
func (cmd *patternsCommand) Run(s *session) error {
	var all view.List[view.Way]
	err := recorders.with(s, cmd.Recorder, func(v *view.Source) (err error) {
		q := view.WayQuery{State: patterns.State(cmd.State), Tag: cmd.Tag}
		if cmd.ID == "" {
			all, err = v.Ways(s.ctx, q, view.Page{})
			return err
		}
		one, err := found("pattern", cmd.ID, "heed patterns lists them",
			func(id string) (view.WayDetail, error) { return v.Way(s.ctx, id) },
			func() ([]view.Way, error) {
				all, err := v.Ways(s.ctx, view.WayQuery{}, view.Page{})
				return all.Items, err
			},
			func(w view.Way) string { return string(w.ID) })
		if err != nil {
			return err
		}
		return s.answer(one, "way")
	})
	if cmd.ID != "" {
		return err
	}
	return answerList(s, all.Items, err, "patterns", "ways", "state", cmd.State, "tag", cmd.Tag)
}

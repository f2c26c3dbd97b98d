package main

import "github.com/heedhq/heed/internal/view"

// A patternsCommand shows ways of working that package patterns follows or avoids.
type patternsCommand struct {
	ID string `arg:"" optional:""`
	view.WayQuery
}

// Run lists patterns, or explains one.
func (cmd *patternsCommand) Run(s *session) error {
	if cmd.ID == "" {
		return listed(s, recorders.with, "patterns", "ways",
			func(v *view.Source) ([]view.Way, error) {
				found, err := v.Ways(s.ctx, cmd.WayQuery)
				return found.Items, err
			})
	}
	return recorders.with(s, func(v *view.Source) error {
		one, err := found("pattern", cmd.ID, "heed patterns lists them",
			func(id string) (view.WayDetail, error) { return v.Way(s.ctx, id) })
		if err != nil {
			return err
		}
		return s.answer(one, "way")
	})
}

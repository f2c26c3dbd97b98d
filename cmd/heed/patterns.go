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
				return items(v.Ways(s.ctx, cmd.WayQuery))
			})
	}
	return showOne(s, recorders.with, "way", func(v *view.Source) (view.WayDetail, error) {
		return found("pattern", cmd.ID, "heed patterns lists them",
			func(id string) (view.WayDetail, error) { return v.Way(s.ctx, id) })
	})
}

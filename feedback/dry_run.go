package feedback

import (
	"cmp"
	"context"
	"slices"
)

// A DryRun says which past corrections a draft would have applied to.
type DryRun struct {
	Corrections int     // of the agents that it is for, the latest Config.Window of each
	Applied     []Match // those whose text is like it, the most alike first; Opposed says which of them contradict it
}

// DryRun says to which past corrections a draft would have applied. It changes nothing.
func (r *Rules) DryRun(ctx context.Context, d Draft) (DryRun, error) {
	s := r.s
	d = d.normal()
	if err := s.validateDraft(&d); err != nil {
		return DryRun{}, wrap("dry run", err)
	}
	agents := d.Agents
	if d.AllAgents {
		agents = []string{""}
	}
	var run DryRun
	for _, agent := range agents {
		known, err := s.recent(ctx, &Feedback{Agent: agent})
		if err != nil {
			return DryRun{}, wrap("dry run", err)
		}
		known = slices.DeleteFunc(known, func(r Record) bool { return !r.Corrects() })
		run.Corrections += len(known)
		matches, err := s.compare(ctx, d.Text, known)
		if err != nil {
			return DryRun{}, wrap("dry run", err)
		}
		for _, m := range matches {
			if m.Score >= s.cfg.Threshold {
				run.Applied = append(run.Applied, m)
			}
		}
	}
	slices.SortStableFunc(run.Applied, func(a, b Match) int { return cmp.Compare(b.Score, a.Score) })
	return run, nil
}

package web

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/internal/overview"
	"github.com/heedhq/heed/patterns"
)

// A homeData says in short what waits and what was learned.
type homeData struct {
	Has struct{ Rules, Arms, Heuristics, Ways bool }
	// Waiting are proposals, and Unsettled corrections that a person has to resolve.
	Waiting, Unsettled, Active int
	Segments                   int
	Leaders                    []segmentRow
	Heuristics                 int
	Ways, Warned               int
}

const mostLeaders = 3

// home is the first page.
func (h *Handler) home(ctx context.Context, r *http.Request) (string, any, error) {
	const title = "Overview"
	var d homeData
	if err := d.readRules(ctx, h.cfg.Feedback); err != nil {
		return title, nil, err
	}
	if h.learner() != nil {
		_, arms, err := h.arms(ctx, r)
		if err != nil {
			return title, nil, err
		}
		page := arms.(listing[segmentRow])
		slices.SortStableFunc(page.Rows, func(a, b segmentRow) int { return cmp.Compare(b.Outcomes, a.Outcomes) })
		d.Has.Arms, d.Segments, d.Leaders = true, page.Total, page.Rows[:min(len(page.Rows), mostLeaders)]
	}
	if h.cfg.Learning != nil {
		d.Has.Heuristics = true
		for _, err := range h.cfg.Learning.Heuristics(ctx) {
			if err != nil {
				return title, nil, err
			}
			d.Heuristics++
		}
	}
	if h.cfg.Patterns != nil {
		d.Has.Ways = true
		all, err := h.cfg.Patterns.Standings(ctx, patterns.PatternQuery{})
		if err != nil {
			return title, nil, err
		}
		for i := range all {
			if warned(&all[i]) {
				d.Warned++
			} else {
				d.Ways++
			}
		}
	}
	return title, d, nil
}

func (d *homeData) readRules(ctx context.Context, f *feedback.Service) error {
	if f == nil {
		return nil
	}
	d.Has.Rules = true
	of, err := overview.OfRules(ctx, f, 1)
	d.Waiting, d.Unsettled, d.Active = of.Pending, of.Unsettled, len(of.Active)
	return err
}

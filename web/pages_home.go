package web

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"github.com/heedhq/heed/internal/view"
)

// A homeData says in short what waits and what was learned.
type homeData struct {
	Has                        struct{ Rules, Arms, Heuristics, Ways bool }
	Waiting, Unsettled, Active int // proposals, corrections to resolve, rules in use
	Segments                   int
	Leaders                    []segmentRow
	Heuristics                 int
	Ways, Warned               int
}

const mostLeaders = 3

// home is the first page.
func (h *Handler) home(ctx context.Context, r *http.Request) (string, any, error) {
	d, v := homeData{}, h.view()
	d.Has.Rules, d.Has.Arms = v.Feedback != nil, v.Strategy != nil
	d.Has.Heuristics, d.Has.Ways = v.Learning != nil, v.Patterns != nil
	for _, part := range []struct {
		there bool
		read  func(context.Context, *view.Source) error
	}{
		{d.Has.Rules, d.readRules}, {d.Has.Arms, d.readArms}, {d.Has.Heuristics, d.readHeuristics},
		{d.Has.Ways, d.readWays},
	} {
		if !part.there {
			continue
		}
		if err := part.read(ctx, v); err != nil {
			return "Overview", nil, err
		}
	}
	return "Overview", d, nil
}

func (d *homeData) readRules(ctx context.Context, v *view.Source) error {
	in, err := v.Inbox(ctx, 1)
	d.Waiting, d.Unsettled, d.Active = in.Pending, in.Unsettled, len(in.Active)
	return err
}

func (d *homeData) readArms(ctx context.Context, v *view.Source) error {
	found, err := v.Segments(ctx, view.Page{Number: 1, Limit: perPage})
	slices.SortStableFunc(found.Items, func(a, b view.Segment) int {
		return cmp.Compare(b.Outcomes, a.Outcomes)
	})
	d.Segments = found.Total
	for _, s := range found.Items[:min(len(found.Items), mostLeaders)] {
		d.Leaders = append(d.Leaders, rowOf(s))
	}
	return err
}

func (d *homeData) readHeuristics(ctx context.Context, v *view.Source) error {
	for _, err := range v.Learning.Heuristics(ctx) {
		if err != nil {
			return err
		}
		d.Heuristics++
	}
	return nil
}

func (d *homeData) readWays(ctx context.Context, v *view.Source) (err error) {
	d.Ways, d.Warned, err = v.CountWays(ctx)
	return err
}

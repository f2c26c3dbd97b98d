package web

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/learning"
)

// A trust is a heuristic with the interval of its confidence.
type trust struct {
	view.Heuristic
	Bar  bar
	Held string // what holds the confidence; "" nothing does
	Line int    // where the confidence that it needs is drawn
}

func trustOf(h view.Heuristic) trust {
	t := trust{
		Heuristic: h, Bar: newBar(h.ID, h.Low, h.Confidence, h.High), Line: int(scaleWidth * h.Needed),
	}
	switch {
	case h.Held.Locked:
		t.Held = "locked"
	case h.Held.Floor == h.Held.Ceiling && h.Held.Ceiling > 0:
		t.Held = "pinned"
	case len(h.Limits) > 0:
		t.Held = holding(h.Limits[0])
	}
	return t
}

// holding says what a limit does to a confidence.
func holding(limit learning.Limit) string {
	switch limit {
	case "cap":
		return "part of the evidence is over a cap"
	case "floor":
		return "it may not fall below its floor"
	case "ceiling":
		return "it may not rise above its ceiling"
	case view.DisagreementChannel:
		return "the model said something else more often than the same, and that counts for at most " +
			"as much as its agreement"
	default:
		return words(limit)
	}
}

// Alone says whether the heuristic answers by itself.
func (t trust) Alone() string {
	if t.Confidence >= t.Needed {
		return "yes, as its confidence is at least " + three(t.Needed)
	}
	return "no, from " + three(t.Needed) + " on"
}

// Depth is where the line of the confidence that it needs is in a chart.
func (t trust) Depth() float64 { return chartHeight * (1 - t.Needed) }

func (h *Handler) heuristics(ctx context.Context, r *http.Request) (string, any, error) {
	d, err := list(r, func(p view.Page) (view.List[view.Heuristic], error) {
		return h.view().Heuristics(ctx, "", p)
	}, trustOf)
	return "Heuristics", d, err
}

// A heuristicData is a heuristic with its rise and fall.
type heuristicData struct {
	trust
	Pin     learning.Pin
	Prior   evidence.Beta
	Shares  []learning.Share
	Curve   curve
	History listing[evidence.Observation]
	Kept    int
	Reasons []string // what its limits do
}

func (h *Handler) heuristic(ctx context.Context, r *http.Request) (string, any, error) {
	const title = "Heuristic"
	found, err := byID(ctx, r, h.view().Heuristic)
	if err != nil {
		return title, nil, err
	}
	d := heuristicData{
		trust: trustOf(found.Heuristic), Pin: found.Pin, Prior: found.Prior, Shares: found.Shares,
		Curve: curveOf(found.Curve), Kept: len(found.History),
	}
	for _, limit := range found.Limits {
		d.Reasons = append(d.Reasons, holding(limit))
	}
	d.History, err = cut(r, found.History, nil)
	return title, d, err
}

// A curve is how far a heuristic was trusted over time.
type curve struct {
	Points      string // of a polyline
	First, Last time.Time
}

func curveOf(points []view.Point) (c curve) {
	if len(points) == 0 {
		return c
	}
	c.First, c.Last = points[0].At, points[len(points)-1].At
	span := max(float64(c.Last.Sub(c.First)), 1)
	var drawn []string
	for _, at := range points {
		x := scaleWidth * float64(at.At.Sub(c.First)) / span
		drawn = append(drawn, fmt.Sprintf("%.0f,%.0f", x, chartHeight*(1-at.Trust)))
	}
	c.Points = strings.Join(drawn, " ")
	return c
}

// A waysData lists ways of working.
type waysData struct {
	listing[view.Way]
	Warned bool // prompts warn of them
	Other  int  // how many of the others there are
}

func (h *Handler) ways(ctx context.Context, r *http.Request) (_ string, _ any, err error) {
	d, v := waysData{Warned: r.URL.Query().Get("warned") != ""}, h.view()
	title, q := "Ways of working", view.WayQuery{Warned: d.Warned, Followed: !d.Warned}
	if d.Warned {
		title = "Warnings"
	}
	d.listing, err = list(r, func(p view.Page) (view.List[view.Way], error) {
		return v.Ways(ctx, q, p)
	}, same)
	if err != nil {
		return title, nil, err
	}
	followed, warned, err := v.CountWays(ctx)
	if d.Other = warned; d.Warned {
		d.Other = followed
	}
	return title, d, err
}

// A wayData is a way of working with its interval.
type wayData struct {
	view.WayDetail
	Bar bar
}

func (h *Handler) way(ctx context.Context, r *http.Request) (string, any, error) {
	found, err := byID(ctx, r, h.view().Way)
	bar := newBar(string(found.ID), found.Low, found.Rate, found.High)
	return "Way of working", wayData{found, bar}, err
}

// An answersData is a page of answers.
type answersData struct {
	Rows []view.Answer
	Next address
	Late bool // it is not the first page
}

func (h *Handler) answers(ctx context.Context, r *http.Request) (string, any, error) {
	after := r.URL.Query().Get("after")
	rows, next, err := h.view().Answers(ctx, after, perPage)
	d := answersData{Rows: rows, Late: after != ""}
	if next != "" {
		d.Next = address(h.link("/answers", "after", next))
	}
	return "Answers", d, err
}

func (h *Handler) answer(ctx context.Context, r *http.Request) (string, any, error) {
	found, err := byID(ctx, r, h.view().Explain)
	return "Answer", found, err
}

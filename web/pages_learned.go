package web

import (
	"cmp"
	"context"
	"net/http"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/money"
)

// choosing registers the pages of what arms have earned.
func (h *Handler) choosing() {
	h.show("/arms", "/arms", "arms", h.arms)
	h.show("/segment", "/arms", "segment", h.segment)
	h.calculate("/saved", "/arms", "saved", h.saved)
	h.show("/item", "/arms", "item", h.item)
}

var errNoArms = &heed.InputError{
	Field: "arms", Reason: "are not chosen here. " + view.Lacks("arms").Detail,
}

// withArms returns the view, or an error if it has no arms.
func (h *Handler) withArms() (*view.Source, error) {
	if v := h.view(); v.Strategy != nil {
		return v, nil
	}
	return nil, errNoArms
}

// A segmentRow is a segment in a list.
type segmentRow struct {
	view.Segment
	Name string
	Bars []bar
}

func rowOf(s view.Segment) segmentRow {
	return segmentRow{s, segmentName(s.Category, s.Context), bars(s.Arms, s.Leading)}
}

func (h *Handler) arms(ctx context.Context, r *http.Request) (string, any, error) {
	const title = "Arms"
	v, err := h.withArms()
	if err != nil {
		return title, nil, err
	}
	d, err := list(r, func(p view.Page) (view.List[view.Segment], error) {
		return v.Segments(ctx, p)
	}, rowOf)
	return title, d, err
}

// segmentName names a segment.
func segmentName(category, context string) string {
	switch {
	case category == "" && context == "":
		return "without a category"
	case context == "":
		return say(category)
	case category == "":
		return "without a category, " + say(context)
	}
	return say(category) + ", " + say(context)
}

// A segmentData is a segment with its items, and what was chosen in it.
type segmentData struct {
	segmentRow
	Standings listing[strategy.Standing]
	Columns   []column
	Recent    int  // choices that the columns are made of
	Costs     bool // they are recorded
}

const mostChoices = 2000

func (h *Handler) segment(ctx context.Context, r *http.Request) (string, any, error) {
	const title = "Segment"
	v, err := h.withArms()
	if err != nil {
		return title, nil, err
	}
	q := r.URL.Query()
	found, err := v.Segment(ctx, q.Get("category"), q.Get("context"), mostChoices)
	if err != nil {
		return title, nil, err
	}
	d := segmentData{segmentRow: rowOf(found.Segment), Recent: len(found.Recent)}
	var choices []strategy.Choice
	for _, c := range found.Recent {
		choices = append(choices, c.Choice)
		d.Costs = d.Costs || c.Result != nil && c.Result.Cost > 0
	}
	d.Columns = columns(choices, d.Arms)
	d.Standings, err = cut(r, found.Standings, func(s strategy.Standing) []string {
		return []string{s.Item, string(s.Leading)}
	})
	return "Segment: " + d.Name, d, err
}

// A savedData says what the choices of a segment have saved.
type savedData struct {
	money.Savings
	Category, Context, Segment string
}

// mostCharges is how many choices are compared: the propensity of each is integrated, which takes
// about a millisecond.
const mostCharges = 1000

func (h *Handler) saved(ctx context.Context, r *http.Request) (string, any, error) {
	const title = "What it saved"
	v, err := h.withArms()
	if err != nil {
		return title, nil, err
	}
	q := r.URL.Query()
	d := savedData{Category: q.Get("category"), Context: q.Get("context")}
	d.Segment = segmentName(d.Category, d.Context)
	d.Savings, err = v.Saved(ctx, strategy.ChoiceFilter{
		Category: d.Category, Context: d.Context, Limit: mostCharges,
	}, true)
	return title, d, err
}

// An itemData is an item of a segment.
type itemData struct {
	view.Item
	Name     string // of the segment
	Bars     []bar
	InAll    []bar
	Outcomes []strategy.ChoiceRecord
}

const mostOutcomes = 50

func (h *Handler) item(ctx context.Context, r *http.Request) (string, any, error) {
	const title = "Item"
	v, err := h.withArms()
	if err != nil {
		return title, nil, err
	}
	u := r.URL.Query()
	q := strategy.Query{Item: u.Get("item"), Category: u.Get("category"), Context: u.Get("context")}
	found, err := v.Item(ctx, q)
	if err != nil {
		return title, nil, err
	}
	d := itemData{
		Item: found, Name: segmentName(q.Category, q.Context), Bars: bars(found.Arms, found.Leading),
		InAll: bars(found.Segment, ""),
	}
	for r, err := range v.Strategy.History(ctx, strategy.ChoiceFilter{
		Evidence: true, Item: q.Item, Category: q.Category, Context: q.Context, Limit: mostOutcomes,
	}) {
		if err != nil {
			return title, nil, err
		}
		d.Outcomes = append(d.Outcomes, r)
	}
	return "Item: " + cmp.Or(say(q.Item), "none"), d, nil
}

package web

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/cells"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/money"
)

// choosing registers the pages of what arms have earned.
func (h *Handler) choosing() {
	h.show("/arms", "/arms", "arms", h.arms)
	h.show("/segment", "/arms", "segment", h.segment)
	h.show("/item", "/arms", "item", h.item)
}

// learner returns what chooses arms, or nil. Lessons may bring an agent another one.
func (h *Handler) learner() *strategy.Learner {
	if a := h.cfg.Agent; a != nil {
		return cmp.Or(a.Strategy(), h.cfg.Strategy)
	}
	return h.cfg.Strategy
}

var errNoArms = &heed.InputError{Field: "arms", Reason: "are not chosen here"}

// A segmentRow is a segment with its arms, in a list.
type segmentRow struct {
	strategy.Distribution
	Name string
	Bars []bar
	Sure float64 // that the leading arm is the best
}

func (h *Handler) arms(ctx context.Context, r *http.Request) (string, any, error) {
	const title = "Arms"
	learner := h.learner()
	if learner == nil {
		return title, nil, errNoArms
	}
	var scopes []string
	for scope, err := range learner.Config().Store.Scopes(ctx, cells.ArmKind(learner.Config().Name)) {
		if err != nil {
			return title, nil, err
		}
		scopes = append(scopes, scope)
	}
	scopes = search(r, scopes, func(scope string) []string { return []string{scope} })
	page, err := cutOut(r, scopes)
	if err != nil {
		return title, nil, err
	}
	rows := make([]segmentRow, 0, len(page.Rows))
	for _, scope := range page.Rows {
		row, err := rowOf(ctx, learner, scope)
		switch {
		case err == nil:
			rows = append(rows, row)
		case !errors.Is(err, heed.ErrNotFound): // else it was reset meanwhile
			return title, nil, err
		}
	}
	return title, listing[segmentRow]{rows, page.From, page.Total, page.Page, page.Pages, page.Prev, page.Next, page.Search}, nil
}

func rowOf(ctx context.Context, learner *strategy.Learner, scope string) (segmentRow, error) {
	category, context, ok := cells.ParseScope(scope)
	if !ok {
		return segmentRow{}, heed.ErrNotFound
	}
	d, err := learner.Distribution(ctx, category, context)
	if err != nil {
		return segmentRow{}, err
	}
	row := segmentRow{Distribution: d, Name: segmentName(category, context), Bars: bars(d.Arms, d.Leading, sureOf(d.Arms))}
	for _, b := range row.Bars {
		if b.Leads {
			row.Sure = b.Sure
		}
	}
	return row, nil
}

// segmentName names a segment.
func segmentName(category, context string) string {
	switch {
	case category == "" && context == "":
		return "all"
	case context == "":
		return say(category)
	case category == "":
		return "any, " + say(context)
	}
	return say(category) + ", " + say(context)
}

// A segmentData is a segment with its items, what was chosen in it, and what that saved.
type segmentData struct {
	segmentRow
	Items   listing[strategy.Standing]
	Columns []column
	Recent  int // choices that the columns are made of
	Saved   *money.Savings
}

const mostChoices = 2000

func (h *Handler) segment(ctx context.Context, r *http.Request) (string, any, error) {
	const title = "Segment"
	learner := h.learner()
	if learner == nil {
		return title, nil, errNoArms
	}
	q := r.URL.Query()
	category, context := q.Get("category"), q.Get("context")
	row, err := rowOf(ctx, learner, cells.Scope(category, context))
	if err != nil {
		return title, nil, err
	}
	d := segmentData{segmentRow: row}
	items := slices.Clone(row.Standings)
	slices.SortStableFunc(items, func(a, b strategy.Standing) int {
		return cmp.Or(cmp.Compare(b.Independence, a.Independence), cmp.Compare(b.Outcomes, a.Outcomes), strings.Compare(a.Item, b.Item))
	})
	items = search(r, items, func(s strategy.Standing) []string { return []string{s.Item, string(s.Leading)} })
	if d.Items, err = cutOut(r, items); err != nil {
		return title, nil, err
	}
	return "Segment: " + row.Name, d, d.look(ctx, learner, strategy.ChoiceFilter{Category: category, Context: context, Limit: mostChoices})
}

// look reads the latest choices, and what they cost.
func (d *segmentData) look(ctx context.Context, learner *strategy.Learner, f strategy.ChoiceFilter) error {
	if learner.Config().Unrecorded {
		return nil
	}
	var choices []strategy.Choice
	costs := false
	for record, err := range learner.History(ctx, f) {
		if err != nil {
			return err
		}
		if record.Choice.Category == f.Category && record.Choice.Context == f.Context { // an empty name in a filter means all
			choices = append(choices, record.Choice)
			costs = costs || record.Result != nil && record.Result.Cost > 0
		}
	}
	d.Recent, d.Columns = len(choices), columns(choices, d.Arms)
	if costs && f.Category != "" && f.Context != "" || costs && len(choices) < f.Limit && d.alone(ctx, learner) {
		saved, err := money.Saved(ctx, learner, f, 0)
		if err != nil {
			return err
		}
		d.Saved = &saved
	}
	return nil
}

// alone reports whether the learner has no other segment, so that a filter without names means this one.
func (d *segmentData) alone(ctx context.Context, learner *strategy.Learner) bool {
	for scope, err := range learner.Config().Store.Scopes(ctx, cells.ArmKind(learner.Config().Name)) {
		if err != nil || scope != cells.Scope(d.Category, d.Context) {
			return false
		}
	}
	return true
}

// An itemData is an item of a segment.
type itemData struct {
	strategy.ItemReport
	Segment  string
	Bars     []bar
	InAll    []bar
	Outcomes []strategy.HistoryEntry
}

const mostOutcomes = 50

func (h *Handler) item(ctx context.Context, r *http.Request) (string, any, error) {
	const title = "Item"
	learner := h.learner()
	if learner == nil {
		return title, nil, errNoArms
	}
	v := r.URL.Query()
	q := strategy.Query{Item: v.Get("item"), Category: v.Get("category"), Context: v.Get("context")}
	report, err := learner.Item(ctx, q)
	if err != nil {
		return title, nil, err
	}
	d := itemData{
		ItemReport: report, Segment: segmentName(q.Category, q.Context), Bars: bars(report.Arms, report.Leading, sureOf(report.Arms)),
		InAll: bars(report.Segment, "", sureOf(report.Segment)),
	}
	d.Outcomes, err = learner.Outcomes(ctx, q, mostOutcomes)
	return "Item: " + cmp.Or(say(q.Item), "none"), d, err
}

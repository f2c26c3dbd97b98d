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
	"github.com/heedhq/heed/internal/overview"
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

// learner returns what chooses arms, or nil. Lessons may bring an agent another one.
func (h *Handler) learner() *strategy.Learner {
	if a := h.cfg.Agent; a != nil {
		return cmp.Or(a.Strategy(), h.cfg.Strategy)
	}
	return h.cfg.Strategy
}

var errNoArms = &heed.InputError{Field: "arms", Reason: "are not chosen here. " + nextFor["arms"]}

// A segmentRow is a segment with its arms, in a list. Where the segment has one item alone, the arms are those of the item.
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
	if d, err = overview.OfOneItem(ctx, learner, d); err != nil {
		return segmentRow{}, err
	}
	row := segmentRow{Distribution: d, Name: segmentName(category, context)}
	row.Bars = bars(row.Arms, row.Leading, overview.Sure(row.Arms))
	for _, b := range row.Bars {
		if b.Leads {
			row.Sure = b.Sure
		}
	}
	return row, nil
}

// Clear reports whether an arm leads clearly: it is the best with a probability of a half or more.
func (s segmentRow) Clear() bool { return s.Sure >= 0.5 }

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
	Items   listing[strategy.Standing]
	Columns []column
	Recent  int  // choices that the columns are made of
	Costs   bool // they are recorded
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
	return "Segment: " + row.Name, d, d.look(ctx, learner)
}

// look reads the latest choices.
func (d *segmentData) look(ctx context.Context, learner *strategy.Learner) error {
	records, err := recordsOf(ctx, learner, d.Category, d.Context, mostChoices)
	choices := make([]strategy.Choice, len(records))
	for i, r := range records {
		choices[i] = r.Choice
		d.Costs = d.Costs || r.Result != nil && r.Result.Cost > 0
	}
	d.Recent, d.Columns = len(choices), columns(choices, d.Arms)
	return err
}

// recordsOf returns the latest choices of a segment, the newest first.
func recordsOf(ctx context.Context, learner *strategy.Learner, category, context string, limit int) (all []strategy.ChoiceRecord, err error) {
	if learner.Config().Unrecorded {
		return nil, nil
	}
	f := strategy.ChoiceFilter{Category: category, Context: context}
	if category != "" && context != "" {
		f.Limit = limit
	}
	for r, err := range learner.History(ctx, f) {
		if err != nil {
			return nil, err
		}
		if r.Choice.Category != category || r.Choice.Context != context { // an empty name in a filter means all
			continue
		}
		if all = append(all, r); len(all) == limit {
			break
		}
	}
	return all, nil
}

// A savedData says what the choices of a segment have saved.
type savedData struct {
	money.Savings
	Category, Context, Segment string
}

// mostCharges is how many choices are compared: the propensity of each is integrated, which takes a millisecond or so.
const mostCharges = 1000

func (h *Handler) saved(ctx context.Context, r *http.Request) (string, any, error) {
	const title = "What it saved"
	learner := h.learner()
	if learner == nil {
		return title, nil, errNoArms
	}
	q := r.URL.Query()
	d := savedData{Category: q.Get("category"), Context: q.Get("context")}
	d.Segment = segmentName(d.Category, d.Context)
	records, err := recordsOf(ctx, learner, d.Category, d.Context, mostCharges)
	if err != nil {
		return title, nil, err
	}
	var log []money.Charge
	left := 0
	for _, r := range slices.Backward(records) {
		if r.Result == nil {
			continue
		}
		p := r.Choice.Propensity()
		switch {
		case ctx.Err() != nil:
			return title, nil, ctx.Err()
		case !(p > 0):
			left++
		default:
			log = append(log, money.Charge{Arm: r.Choice.Arm, Propensity: p, Quality: (r.Mean + 1) / 2, Cost: r.Result.Cost, Latency: r.Result.Latency})
		}
	}
	var arms []strategy.ArmID
	for _, arm := range learner.Config().Arms {
		arms = append(arms, arm.ID)
	}
	d.Savings, err = money.Compare(log, arms, 0)
	d.LeftOut = left
	return title, d, err
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
		ItemReport: report, Segment: segmentName(q.Category, q.Context), Bars: bars(report.Arms, report.Leading, overview.Sure(report.Arms)),
		InAll: bars(report.Segment, "", overview.Sure(report.Segment)),
	}
	d.Outcomes, err = learner.Outcomes(ctx, q, mostOutcomes)
	return "Item: " + cmp.Or(say(q.Item), "none"), d, err
}

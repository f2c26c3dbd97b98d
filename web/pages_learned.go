package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/strategy"
)

// A homeData summarises what waits and what was learned.
type homeData struct {
	*view.Source
	Waiting, Unsettled int // proposals, corrections to resolve
	Segments           int
	Leaders            []view.Segment
	Damaged            view.Names
	Down               []view.Unavailable
	Gain               gainData
	Freeze             answers.Frozen
	FrozenIn           string // the tenant; "" if all are frozen
}

// The pages show at most so many. A form opens another item.
const mostLeaders, mostItems, mostOutcomes, mostObserved = 3, 100, 50, 100

// home is the first page.
func home(r *http.Request, v *view.Source) (_ any, err error) {
	ctx, d, errs := r.Context(), homeData{Source: v}, make([]error, 4)
	if d.Gain, err = gainOf(r, v); err != nil {
		return nil, err
	}
	d.Down, errs[0] = v.Unavailable(ctx, v.Name)
	d.Freeze, d.FrozenIn, errs[1] = v.Frozen(ctx)
	if v.Has(ofRules) {
		var in view.Inbox
		in, errs[2] = v.Inbox(ctx, 1)
		d.Waiting, d.Unsettled = in.Pending, in.Unsettled
	}
	found, err := v.Segments(ctx, view.Page{Limit: perPage})
	errs[3] = err
	slices.SortStableFunc(found.Items, func(a, b view.Segment) int {
		return cmp.Compare(b.Outcomes, a.Outcomes)
	})
	d.Segments, d.Leaders = found.Total, found.Items[:min(len(found.Items), mostLeaders)]
	d.Damaged, err = view.DamagedIn(errors.Join(errs...))
	d.Damaged = append(d.Damaged, found.Damaged...)
	return d, err
}

// segmentName names a segment.
func segmentName(category, context string) string {
	switch {
	case category == "" && context == "":
		return "without a category"
	case context == "":
		return say(category)
	}
	return cmp.Or(say(category), "without a category") + ", " + say(context)
}

// queryOf returns which segment or item a request asks for.
func queryOf(r *http.Request) strategy.Query {
	u := r.URL.Query()
	return strategy.Query{Item: u.Get("item"), Category: u.Get("category"), Context: u.Get("context")}
}

// A segmentData is a segment with a title.
type segmentData struct{ view.SegmentDetail }

func (d segmentData) title() string { return "Segment: " + segmentName(d.Category, d.Context) }

func segment(r *http.Request, v *view.Source) (any, error) {
	found, err := v.Segment(r.Context(), queryOf(r), mostItems)
	return segmentData{found}, err
}

// An itemData is an item of a segment.
type itemData struct {
	view.Item
	Outcomes []strategy.ChoiceRecord
}

func (d itemData) title() string { return "Item: " + cmp.Or(say(d.Item.Item), "none") }

func item(r *http.Request, v *view.Source) (any, error) {
	q := queryOf(r)
	found, err := v.Item(r.Context(), q)
	if err != nil {
		return nil, err
	}
	all, err := v.History(r.Context(), strategy.ChoiceFilter{
		Evidence: true, Item: q.Item, Category: q.Category, Context: q.Context,
	}, mostOutcomes, func(*strategy.Choice) bool { return true })
	return itemData{found, all}, err
}

func heuristic(r *http.Request, v *view.Source) (any, error) {
	return byID(r, func(ctx context.Context, id string) (view.HeuristicDetail, error) {
		return v.Heuristic(ctx, id, mostObserved)
	})
}

func way(r *http.Request, v *view.Source) (any, error) { return byID(r, v.Way) }

// An answerData is an answer with what a person can do about it.
type answerData struct {
	view.Explanation
	Open bool // to what a person does about it
}

func explained(r *http.Request, v *view.Source) (any, error) {
	e, err := byID(r, v.Explain)
	return answerData{e, v.Agent != nil}, err
}

// A gainData is what learning gains, with its course.
type gainData struct {
	view.Gain
	By     string // the span of a point
	Course []loop.GainPart
	Lines  []line
}

// A line is the course of one side, which has a colour in the style sheet. Last is the success at
// its end.
type line struct {
	Side         int
	Name, Points string
	Last         float64
}

const (
	mostSpans = 60
	smoothed  = 7 // days that a point by day is the mean of
)

func gain(r *http.Request, v *view.Source) (any, error) { return gainOf(r, v) }

// gainOf reads what learning gains, for the span that a request asks for.
func gainOf(r *http.Request, v *view.Source) (d gainData, err error) {
	if d.By = r.URL.Query().Get("by"); d.By != "" && d.By != view.ByDay && d.By != view.ByWeek {
		return d, &heed.InputError{Field: "by", Reason: "must be day or week"}
	}
	if d.Gain, err = v.Gain(r.Context()); err != nil {
		return d, err
	}
	if d.By == "" && len(d.Days) > mostSpans {
		d.By = view.ByWeek
	}
	d.By = cmp.Or(d.By, view.ByDay)
	d.Course = d.Gain.Course(d.By, mostSpans)
	for i, side := range [...]struct {
		name string
		of   func(*loop.GainPart) *loop.Measured
	}{
		{"with learning", func(p *loop.GainPart) *loop.Measured { return &p.Learned }},
		{"without", func(p *loop.GainPart) *loop.Measured { return &p.Control }},
		{"all answers", func(p *loop.GainPart) *loop.Measured { return &p.Alone }},
	} {
		l := line{Side: i, Name: side.name}
		if l.Points, l.Last = d.points(side.of); l.Points != "" {
			d.Lines = append(d.Lines, l)
		}
	}
	return d, nil
}

// points returns the points of the course of a side, and the success at the last one.
func (d *gainData) points(of func(*loop.GainPart) *loop.Measured) (points string, last float64) {
	var all []string
	width := scaleWidth / float64(max(len(d.Course)-1, 1))
	for i := range d.Course {
		if of(&d.Course[i]).Outcomes < 0.5 {
			continue
		}
		var n, success float64
		for k := i; k >= 0 && (k == i || d.By == view.ByDay && i-k < smoothed); k-- {
			m := of(&d.Course[k])
			n, success = n+m.Outcomes, success+m.Outcomes*m.Success
		}
		last = success / n
		all = append(all, fmt.Sprintf("%.0f,%.0f", width*float64(i), chartHeight*(1-last)))
	}
	if len(all) == 1 { // a line needs two ends
		_, y, _ := strings.Cut(all[0], ",")
		all = append(all, fmt.Sprintf("%d,%s", scaleWidth, y))
	}
	return strings.Join(all, " "), last
}

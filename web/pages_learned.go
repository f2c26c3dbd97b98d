package web

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/strategy"
)

// A homeData summarises what waits and what was learned.
type homeData struct {
	Rules, Arms, Heuristics, Ways bool // which of them there are

	Waiting, Unsettled int // proposals, corrections to resolve
	Segments           int
	Leaders            []view.Segment
	Gain               gainData
}

const mostLeaders = 3

// home is the first page.
func home(r *http.Request, v *view.Source) (any, error) {
	ctx, d := r.Context(), homeData{
		Rules: v.Feedback != nil, Arms: v.Strategy != nil, Heuristics: v.Learning != nil,
		Ways: v.Patterns != nil,
	}
	var err error
	if d.Gain, err = gainOf(r, v); err != nil {
		return nil, err
	}
	if d.Rules {
		in, err := v.Inbox(ctx, 1)
		if err != nil {
			return nil, err
		}
		d.Waiting, d.Unsettled = in.Pending, in.Unsettled
	}
	if d.Arms {
		found, err := v.Segments(ctx, view.Page{Limit: perPage})
		if err != nil {
			return nil, err
		}
		slices.SortStableFunc(found.Items, func(a, b view.Segment) int {
			return cmp.Compare(b.Outcomes, a.Outcomes)
		})
		d.Segments, d.Leaders = found.Total, found.Items[:min(len(found.Items), mostLeaders)]
	}
	return d, nil
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

// A segmentData is a segment with its items.
type segmentData struct {
	view.Segment
	Standings listing[strategy.Standing]
	Traffic   *traffic // nil if no choice is kept
}

func (d segmentData) title() string { return "Segment: " + segmentName(d.Category, d.Context) }

// A traffic is what the latest choices of a segment got. Success is the mean of those whose outcome
// is known.
type traffic struct {
	Arm            strategy.ArmID // that was chosen most often
	Share, Success float64
	Choices, Known int
}

func trafficOf(latest []strategy.ChoiceRecord) *traffic {
	if len(latest) == 0 {
		return nil
	}
	t, chosen := traffic{Choices: len(latest)}, make(map[strategy.ArmID]int)
	for i := range latest {
		c := &latest[i]
		chosen[c.Choice.Arm]++
		if n := chosen[c.Choice.Arm]; n > chosen[t.Arm] || t.Arm == "" {
			t.Arm = c.Choice.Arm
		}
		if c.Result != nil {
			t.Known, t.Success = t.Known+1, t.Success+success(c.Mean)
		}
	}
	t.Share = float64(chosen[t.Arm]) / float64(t.Choices)
	t.Success /= float64(max(t.Known, 1))
	return &t
}

func segment(r *http.Request, v *view.Source) (any, error) {
	q := queryOf(r)
	found, err := v.Segment(r.Context(), q.Category, q.Context)
	if err != nil {
		return nil, err
	}
	d := segmentData{Segment: found.Segment, Traffic: trafficOf(found.Recent)}
	d.Standings, err = list(r, view.Page{}, view.Cut(found.Standings,
		func(s *strategy.Standing) string { return s.Item }))
	return d, err
}

// An itemData is an item of a segment.
type itemData struct {
	view.Item
	Outcomes []strategy.ChoiceRecord
}

func (d itemData) title() string { return "Item: " + cmp.Or(say(d.Item.Item), "none") }

const mostOutcomes = 50

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

// A heuristicData is a heuristic with its rise and fall.
type heuristicData struct {
	view.HeuristicDetail
	Observed listing[evidence.Observation]
}

func heuristic(r *http.Request, v *view.Source) (any, error) {
	found, err := byID(r, v.Heuristic)
	if err != nil {
		return nil, err
	}
	d := heuristicData{HeuristicDetail: found}
	d.Observed, err = list(r, view.Page{}, view.Cut(found.History,
		func(o *evidence.Observation) string { return o.Cell.Name + "/" + o.ID }))
	return d, err
}

// A waysData lists ways of working.
type waysData struct{ listing[view.Way] }

func (d waysData) title() string {
	if q, _ := d.Query.(view.WayQuery); q.Warned {
		return "Warnings"
	}
	return "Ways of working"
}

func ways(r *http.Request, v *view.Source) (any, error) {
	l, err := list(r, view.WayQuery{Followed: true}, v.Ways)
	return waysData{l}, err
}

func way(r *http.Request, v *view.Source) (any, error) { return byID(r, v.Way) }

// An answerData is an answer with what a person can do about it.
type answerData struct {
	view.Explanation
	Corrects, Undoes bool
}

func explained(r *http.Request, v *view.Source) (any, error) {
	e, err := byID(r, v.Explain)
	return answerData{e, v.Agent != nil && v.Feedback != nil, v.Agent != nil}, err
}

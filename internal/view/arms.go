package view

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/internal/winner"
	"github.com/heedhq/heed/strategy"
)

// An Arm is what is believed of an arm in a segment or for an item.
type Arm struct {
	Arm      strategy.ArmID `json:"arm"`
	Mean     float64        `json:"mean"` // the expected reward, in [0, 1]
	Low      float64        `json:"low"`  // of the interval of 90 %
	High     float64        `json:"high"`
	Best     float64        `json:"best"`     // the probability that it is the best arm
	Outcomes uint64         `json:"outcomes"` // that count
	// Chosen is its share of the latest 200 recorded choices; nil if it was not asked for, or if no
	// choice is recorded.
	Chosen *float64 `json:"chosen,omitempty"`
}

// A Segment is what is believed in one category and context. The arms have the beliefs about an
// item without outcomes. If the segment has only one item, like in a host without items, they have
// the beliefs about that item.
type Segment struct {
	Category string         `json:"category"`
	Context  string         `json:"context"`
	Leading  strategy.ArmID `json:"leading"` // the arm with the greatest mean
	Best     float64        `json:"best"`    // the probability that it is the best
	Arms     []Arm          `json:"arms"`
	Items    int            `json:"items"`
	// Sampled is how many items were read, if that is not all: the counts are then estimates.
	Sampled     int       `json:"sampled,omitempty"`
	Specialized int       `json:"specialized"`
	Outcomes    uint64    `json:"outcomes"`
	Updated     time.Time `json:"updated"`
}

// Lead returns the leading arm.
func (s *Segment) Lead() (lead Arm) {
	for _, arm := range s.Arms {
		if arm.Arm == s.Leading {
			lead = arm
		}
	}
	return lead
}

// Clear reports whether an arm leads clearly: it is the best with a probability of a half or more.
func (s Segment) Clear() bool { return s.Best >= 0.5 }

// A SegmentDetail is a segment with its items.
type SegmentDetail struct {
	Segment
	Parameters []strategy.ParameterReport `json:"parameters,omitempty"`
	// SpecializesAt is the number of sessions at which an item takes a copy; 0: items take no copy.
	SpecializesAt int `json:"specializes_at,omitempty"`
	// Standings are items, the most independent first.
	Standings []strategy.Standing `json:"standings"`
	Traffic   *Traffic            `json:"-"` // nil if no choice is kept
}

// A Traffic is what the latest choices of a segment got. Success is the mean, in [0, 1], of those
// whose outcome is known.
type Traffic struct {
	Arm            strategy.ArmID // that was chosen most often
	Share, Success float64
	Choices, Known int
}

// An Item is what is believed of an item in a segment.
type Item struct {
	strategy.Standing
	Category      string `json:"category"`
	Context       string `json:"context"`
	Arms          []Arm  `json:"arms"`
	Segment       []Arm  `json:"segment"` // about an item without outcomes
	SpecializesAt int    `json:"specializes_at,omitempty"`
}

// Segments lists the segments that have outcomes, by their names.
func (s *Source) Segments(ctx context.Context, p Page) (l List[Segment], err error) {
	names, err := s.SegmentNames(ctx)
	name := func(q *strategy.Query) string { return answers.Scope(q.Category, q.Context) }
	texts := func(q *strategy.Query) []string { return []string{q.Category, q.Context} }
	return listed(p, names, err, name, texts, func(q *strategy.Query) (Segment, error) {
		d, err := s.Distribution(ctx, *q)
		return segmentOf(&d), err
	})
}

// latest is how many of the latest choices are read of a segment, and make the shares of its arms.
const latest = 200

// Segment reads a segment with its latest choices and at most a number of items, or returns
// [heed.ErrNotFound].
func (s *Source) Segment(ctx context.Context, q strategy.Query, most int) (SegmentDetail, error) {
	found, err := s.Distribution(ctx, q)
	if err != nil {
		return SegmentDetail{}, err
	}
	d := SegmentDetail{
		Segment: segmentOf(&found), Parameters: found.Parameters,
		SpecializesAt: found.SpecializesAt, Standings: found.Standings}
	slices.SortStableFunc(d.Standings, func(a, b strategy.Standing) int {
		return cmp.Or(cmp.Compare(b.Independence, a.Independence), cmp.Compare(b.Sessions, a.Sessions),
			cmp.Compare(b.Outcomes, a.Outcomes), strings.Compare(a.Item, b.Item))
	})
	d.Standings = d.Standings[:min(len(d.Standings), most)]
	f := strategy.ChoiceFilter{Until: s.Now().Add(time.Microsecond), Limit: latest + mostSought}
	recent, err := s.History(ctx, f, latest, func(c *strategy.Choice) bool {
		return c.Category == q.Category && c.Context == q.Context
	})
	if len(recent) > 0 {
		d.count(recent)
	}
	return d, err
}

// Distribution returns what is believed in the segment of a query, or [heed.ErrNotFound].
func (s *Source) Distribution(ctx context.Context, q strategy.Query) (
	strategy.Distribution, error,
) {
	for d, err := range s.Strategy.Distributions(ctx, q) {
		return d, err
	}
	return strategy.Distribution{}, heed.ErrNotFound
}

func segmentOf(d *strategy.Distribution) Segment {
	one := Segment{
		Category: d.Category, Context: d.Context, Leading: d.Leading, Items: d.Items,
		Sampled: d.Sampled, Specialized: len(d.Specialized), Outcomes: d.Outcomes, Updated: d.Updated,
	}
	if d.Sampled > 0 {
		one.Specialized = one.Specialized * d.Items / d.Sampled
	}
	arms := d.Arms
	if len(d.Standings) == 1 {
		only, _ := d.Item(d.Standings[0].Item)
		arms, one.Leading = only.Arms, only.Leading
	}
	one.Arms = armsOf(arms)
	one.Best = one.Lead().Best
	return one
}

// armsOf adds to each arm how probable it is that it is the best.
func armsOf(reports []strategy.ArmReport) (all []Arm) {
	beliefs := make([]evidence.Beta, len(reports))
	for i, r := range reports {
		beliefs[i] = likeBeta(r)
	}
	for i, best := range winner.ProbBest(beliefs) {
		r := &reports[i]
		all = append(all, Arm{
			Arm: r.Arm, Mean: r.Mean, Low: r.Low, High: r.High, Best: best, Outcomes: r.Outcomes})
	}
	return all
}

// likeBeta returns the belief about an arm. A belief that is no Beta distribution is replaced by
// the Beta distribution that has its mean and the width of its interval.
func likeBeta(arm strategy.ArmReport) evidence.Beta {
	if arm.Belief.Strength == 0 {
		return arm.Belief.Level
	}
	mean := min(max(arm.Mean, 1e-6), 1-1e-6)
	const ninety = 2 * 1.6449 // standard deviations that a normal's interval of 90 % is wide
	deviation := max((arm.High-arm.Low)/ninety, 1e-6)
	strength := max(mean*(1-mean)/(deviation*deviation)-1, 1e-3)
	return evidence.Beta{Alpha: strength * mean, Beta: strength * (1 - mean)}
}

// count sums up the latest choices.
func (d *SegmentDetail) count(recent []strategy.ChoiceRecord) {
	t, chosen := &Traffic{Choices: len(recent)}, make(map[strategy.ArmID]float64)
	for i := range recent {
		c := &recent[i]
		chosen[c.Choice.Arm]++
		if t.Arm == "" || chosen[c.Choice.Arm] > chosen[t.Arm] {
			t.Arm = c.Choice.Arm
		}
		if c.Result != nil {
			t.Known, t.Success = t.Known+1, t.Success+(c.Mean+1)/2
		}
	}
	n := float64(len(recent))
	t.Share, t.Success = chosen[t.Arm]/n, t.Success/float64(max(t.Known, 1))
	for i := range d.Arms {
		share := chosen[d.Arms[i].Arm] / n
		d.Arms[i].Chosen = &share
	}
	d.Traffic = t
}

// mostSought bounds how many choices in other segments are passed over, because no index of the
// store has the segment.
const mostSought = 2000

// History returns the choices that a filter selects and that are wanted, the newest first. A
// learner that keeps no records has no choices.
func (s *Source) History(
	ctx context.Context, f strategy.ChoiceFilter, most int, want func(*strategy.Choice) bool,
) (all []strategy.ChoiceRecord, err error) {
	var failures []error
	for r, err := range s.Strategy.History(ctx, f) {
		if errors.Is(err, heed.ErrNotFound) {
			return nil, nil
		}
		if err != nil {
			failures = append(failures, err)
			continue
		}
		if !want(&r.Choice) {
			continue
		}
		if all = append(all, r); len(all) == most {
			break
		}
	}
	return all, errors.Join(failures...)
}

// Item reads an item of a segment, or returns [heed.ErrNotFound].
func (s *Source) Item(ctx context.Context, q strategy.Query) (Item, error) {
	d, err := s.Distribution(ctx, q)
	r, ok := d.Item(q.Item)
	if err == nil && !ok {
		err = heed.ErrNotFound
	}
	arms := armsOf(r.Arms)
	r.Arms = nil
	return Item{r, d.Category, d.Context, arms, armsOf(d.Arms), d.SpecializesAt}, err
}

// A Choice is a recorded choice with the sums of its reports.
type Choice struct {
	strategy.ChoiceRecord
	Mean       *float64 `json:"mean,omitempty"` // of all reports, by their confidences
	Confidence float64  `json:"confidence"`     // of all reports together
	Reports    int      `json:"reports"`
}

// A ChoiceQuery selects the choices for an item.
type ChoiceQuery struct {
	Item  string         `arg:""`
	Stage strategy.Stage `placeholder:"STAGE"`
	Since string         `placeholder:"TIME"`
}

// Validate refuses a query with a fault.
func (q *ChoiceQuery) Validate() error {
	return cmp.Or(aTime("since", q.Since),
		oneOf("stage", q.Stage, strategy.Pending, strategy.Observed, strategy.Expired))
}

// Choices returns the choices that a query selects, the newest first.
func (s *Source) Choices(ctx context.Context, q ChoiceQuery, most int) (all []Choice, err error) {
	if err := q.Validate(); err != nil {
		return nil, err
	}
	f := strategy.ChoiceFilter{
		Item: q.Item, Stage: q.Stage, Since: s.moment(q.Since, 0),
		Until: s.Now().Add(time.Microsecond)}
	found, err := s.History(ctx, f, most, func(c *strategy.Choice) bool {
		return c.Item == q.Item // a filter's empty item selects every item
	})
	for _, r := range found {
		one := Choice{ChoiceRecord: r, Confidence: r.Mass, Reports: r.Reports}
		if r.Result != nil {
			one.Mean = &r.Mean
		}
		all = append(all, one)
	}
	return all, err
}

// SegmentNames returns queries of the segments that have outcomes, in order.
func (s *Source) SegmentNames(ctx context.Context) (all []strategy.Query, err error) {
	if s.Strategy == nil {
		return nil, nil
	}
	kind := answers.ArmKind(s.Strategy.Config().Name)
	for scope, err := range s.Store.Scopes(ctx, kind) {
		if err != nil {
			return nil, err
		}
		if category, context, ok := answers.ParseScope(scope); ok { // ignore another package's scope
			all = append(all, strategy.Query{Category: category, Context: context})
		}
	}
	return all, nil
}

// Items returns an item in each of some segments where it has outcomes.
func (s *Source) Items(ctx context.Context, item string, in []strategy.Query) ([]Item, error) {
	var all []Item
	for _, q := range in {
		q.Item = item
		one, err := s.Item(ctx, q)
		if errors.Is(err, heed.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// A Status describes how a learner is doing.
type Status struct {
	Learner     string    `json:"learner"`
	Enabled     bool      `json:"enabled"`
	Segments    int       `json:"segments"` // that have outcomes
	Items       int       `json:"items"`
	Specialized int       `json:"specialized"`       // items
	Outcomes    uint64    `json:"outcomes"`          // that count
	Leading     []Segment `json:"leading,omitempty"` // the five with the greatest means
	// Choices counts the latest ones, by their stage and in all ("latest"), and those and the results
	// of the last 24 hours ("events_24h"). nil: no choice is recorded, or one is damaged.
	Choices map[string]int `json:"choices,omitempty"`
}

// mostCounted is how many choices a status counts, and mostLeading how many segments it names.
const mostCounted, mostLeading = 400, 5

// Status sums up the segments of the learner, and counts its latest choices. If only a choice can't
// be read, it returns the error with the rest, and otherwise with the zero Status.
func (s *Source) Status(ctx context.Context) (Status, error) {
	cfg := s.Strategy.Config()
	sum := Status{Learner: cfg.Name, Enabled: !cfg.Disabled}
	all, err := s.Segments(ctx, Page{})
	if err = cmp.Or(err, all.Damaged.Err()); err != nil {
		return Status{}, err
	}
	for _, one := range all.Items {
		sum.Segments++
		sum.Items += one.Items
		sum.Specialized += one.Specialized
		sum.Outcomes += one.Outcomes
	}
	slices.SortStableFunc(all.Items, func(a, b Segment) int {
		return cmp.Compare(b.Lead().Mean, a.Lead().Mean)
	})
	sum.Leading = all.Items[:min(len(all.Items), mostLeading)]
	if cfg.Unrecorded {
		return sum, nil
	}
	sum.Choices = map[string]int{
		"latest": 0, "pending": 0, "observed": 0, "expired": 0, "events_24h": 0,
	}
	for r, err := range s.Strategy.History(ctx, strategy.ChoiceFilter{Limit: mostCounted}) {
		if err != nil {
			sum.Choices = nil
			return sum, err
		}
		sum.count(&r, s.Now())
	}
	return sum, nil
}

// count counts a choice.
func (s *Status) count(r *strategy.ChoiceRecord, now time.Time) {
	s.Choices["latest"]++
	s.Choices[string(r.Stage)]++
	events := []time.Time{r.Choice.At}
	if r.Result != nil {
		events = append(events, r.Result.At)
	}
	for _, at := range events {
		if !at.Before(now.Add(-24*time.Hour)) && !at.After(now) {
			s.Choices["events_24h"]++
		}
	}
}

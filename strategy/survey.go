package strategy

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/cells"
	"github.com/heedhq/heed/internal/stores"
)

// A Distribution is what a learner believes in one segment, by the store at that moment.
type Distribution struct {
	Category string `json:"category"`
	Context  string `json:"context"`
	// Arms are those of an item without evidence, in the learner's order.
	Arms       []ArmReport       `json:"arms"`
	Leading    ArmID             `json:"leading"` // the arm with the greatest mean; of equals the first
	Parameters []ParameterReport `json:"parameters,omitempty"`
	Items      int               `json:"items"` // that have outcomes
	// Sampled is how many items were read, of a segment with more than 4,000: a random sample, where
	// the store can draw one and the pooling learns from each only how items spread. Items, Outcomes
	// and the outcomes of arms are then estimates, Specialized and Standings are of the sample, and
	// Updated is the last outcome in it. 0: all items were read.
	Sampled  int       `json:"sampled,omitempty"`
	Sessions uint64    `json:"sessions,omitempty"` // of all items, each item's counted for itself; 0 unless the pooling is a [Specializer]
	Outcomes uint64    `json:"outcomes"`           // that count
	Updated  time.Time `json:"updated"`            // when the last of them came about
	// Specialized are the items that go their own way, from an independence of ½ on: see [Model].
	Specialized []string `json:"specialized,omitempty"`
	// Standings say in short how each item stands, by the items' names. [Learner.Item] says more of
	// one.
	Standings []Standing `json:"-"`
}

// A Standing says in short how an item of a segment stands.
type Standing struct {
	Item         string  `json:"item"`
	Leading      ArmID   `json:"leading"` // the arm with the greatest mean; of equals the first
	Mean         float64 `json:"mean"`    // of that arm, the reward that is expected
	Independence float64 `json:"independence"`
	Specialized  bool    `json:"specialized"`
	Sessions     uint64  `json:"sessions,omitempty"` // in which it was seen; 0 unless the pooling is a [Specializer]
	Outcomes     uint64  `json:"outcomes"`           // that count
}

// An ArmReport is what is believed of an arm.
type ArmReport struct {
	Arm      ArmID   `json:"arm"`
	Belief   Belief  `json:"belief"`
	Mean     float64 `json:"mean"` // the reward that is expected, in [0, 1]
	Low      float64 `json:"low"`  // between low and high it lies with a probability of 90 %
	High     float64 `json:"high"`
	Outcomes uint64  `json:"outcomes"`
}

// A ParameterReport is what is believed of one value of an arm's parameter.
type ParameterReport struct {
	Arm      ArmID         `json:"arm"`
	Name     string        `json:"name"`
	Value    string        `json:"value"`
	Belief   evidence.Beta `json:"belief"`
	Outcomes uint64        `json:"outcomes"`
}

// reportLevel is the probability of the intervals in reports.
const reportLevel = 0.9

func (l *Learner) armReports(m Model, item Item, counts []uint64) (reports []ArmReport, leading ArmID) {
	beliefs, best := make([]Belief, len(l.cfg.Arms)), 0
	m.Believe(item, beliefs)
	for i, b := range beliefs {
		low, high := b.Interval(reportLevel)
		reports = append(reports, ArmReport{l.cfg.Arms[i].ID, b, b.Mean(), low, high, counts[i]})
		if reports[i].Mean > reports[best].Mean {
			best = i
		}
	}
	return reports, reports[best].Arm
}

// Distributions returns what is believed in each segment that has outcomes, in the order of their
// names in the store. The loop may end early. After an error it ends.
func (l *Learner) Distributions(ctx context.Context) iter.Seq2[Distribution, error] {
	return func(yield func(Distribution, error) bool) {
		for scope, err := range l.cfg.Store.Scopes(ctx, l.kinds.arm) {
			var d Distribution
			if err == nil {
				category, context, ok := cells.ParseScope(scope)
				if !ok {
					continue // of something else
				}
				d, err = l.distribution(ctx, Query{Category: category, Context: context})
			}
			if errors.Is(err, heed.ErrNotFound) {
				continue // reset meanwhile
			}
			because(&err, "distributions")
			if !yield(d, err) || err != nil {
				return
			}
		}
	}
}

// Distribution returns what is believed in one segment, or [heed.ErrNotFound] if it has no
// outcomes.
func (l *Learner) Distribution(ctx context.Context, category, context string) (d Distribution, err error) {
	defer because(&err, "distribution")
	return l.distribution(ctx, Query{Category: category, Context: context})
}

func (l *Learner) distribution(ctx context.Context, q Query) (d Distribution, err error) {
	f, err := l.survey(ctx, q)
	if err != nil {
		return d, err
	}
	d = Distribution{Category: q.Category, Context: q.Context, Items: len(f.items), Updated: f.last.Time(), Standings: make([]Standing, len(f.items))}
	if f.sampled {
		d.Sampled, d.Items = len(f.items), f.all
	}
	d.Arms, d.Leading = l.armReports(f.model, Item{Arms: make([]evidence.Sums, len(l.cfg.Arms))}, f.samples)
	beliefs := make([]Belief, len(l.cfg.Arms))
	for i, item := range f.items {
		s := Standing{Item: f.names[i], Independence: f.model.Independence(item)}
		if s.Specialized = s.Independence >= 0.5; s.Specialized {
			d.Specialized = append(d.Specialized, s.Item)
		}
		f.model.Believe(item, beliefs)
		for arm, b := range beliefs {
			s.Outcomes += f.counts[i][arm]
			if mean := b.Mean(); arm == 0 || mean > s.Mean {
				s.Leading, s.Mean = l.cfg.Arms[arm].ID, mean
			}
		}
		d.Outcomes += s.Outcomes
		d.Standings[i] = s
	}
	if f.sampled {
		d.Outcomes = 0
		for _, n := range f.samples {
			d.Outcomes += n
		}
	}
	if err := l.countSessions(ctx, &f, &d); err != nil {
		return d, err
	}
	d.Parameters, err = l.parameterReports(ctx, &f)
	return d, err
}

// countSessions reads how many sessions items were seen in, if the pooling counts them.
func (l *Learner) countSessions(ctx context.Context, f *found, d *Distribution) error {
	if _, ok := l.cfg.Pooling.(Specializer); !ok {
		return nil
	}
	for part, err := range l.cfg.Store.List(ctx, l.kinds.sessions, f.space.scope) {
		if err != nil {
			return err
		}
		d.Sessions += part.Tally.N()
		if i, ok := slices.BinarySearch(f.names, part.Cell.Item); ok {
			d.Standings[i].Sessions += part.Tally.N()
		}
	}
	return nil
}

// surveyItems is how many items of a segment a report reads. Of more, it reads a sample if the
// store can draw one.
const surveyItems = 4000

// survey reads what the items of the query's segment have shown, or returns [heed.ErrNotFound] if
// that is nothing.
func (l *Learner) survey(ctx context.Context, q Query) (f found, err error) {
	if err := q.validate(); err != nil {
		return f, err
	}
	now := evidence.InstantOf(l.cfg.Now())
	sample, list := &stores.Sample{Most: surveyItems}, ctx
	switch l.cfg.Pooling.(type) {
	case TwoLevel, Alone:
		list = stores.WithSample(ctx, sample)
	}
	f, err = l.loadItems(list, space{l.kinds, cells.Scope(q.Category, q.Context)}, now)
	if err != nil {
		return f, err
	}
	if f.sampled, f.all = sample.All > 0, sample.All; f.sampled {
		for i := range f.samples {
			f.samples[i] = uint64(float64(f.samples[i]) / sample.Share())
		}
	}
	if len(f.items) == 0 {
		return f, heed.ErrNotFound
	}
	err = l.loadGiven(ctx, &f)
	f.model = l.model(f.items)
	return f, err
}

// loadGiven reads what the items were given, if the pooling gives.
func (l *Learner) loadGiven(ctx context.Context, f *found) error {
	if _, ok := l.cfg.Pooling.(Specializer); !ok {
		return nil
	}
	for part, err := range l.cfg.Store.List(ctx, l.kinds.given, f.space.scope) {
		if err != nil {
			return err
		}
		i, known := slices.BinarySearch(f.names, part.Cell.Item)
		arm, ok := l.index[ArmID(part.Cell.Name)]
		if !known || !ok {
			continue
		}
		item := &f.items[i]
		if item.Given == nil {
			item.Given = make([]evidence.Sums, len(l.cfg.Arms))
		}
		item.Given[arm] = item.Given[arm].Plus(part.Tally.At(f.now))
	}
	return nil
}

func (l *Learner) parameterReports(ctx context.Context, f *found) (reports []ParameterReport, err error) {
	if len(l.values) == 0 {
		return nil, nil
	}
	parts, err := l.readCells(ctx, l.parameterCells(f.space)...)
	scale := scaleOf(totalOf(f.items), l.cfg.MinConfidence)
	for _, v := range l.values {
		of := partsOf(parts, f.space.parameter(v.arm, v.Setting))
		reports = append(reports, ParameterReport{v.arm, v.Name, v.Value, l.parameterBelief(of, f.now, scale), countOf(of)})
	}
	return reports, err
}

// An ItemReport is what a learner believes of one item.
type ItemReport struct {
	Category string `json:"category"`
	Context  string `json:"context"`
	Item     string `json:"item"`
	// Arms are those of the item. Segment are those of an item without evidence.
	Arms    []ArmReport `json:"arms"`
	Segment []ArmReport `json:"segment"`
	Leading ArmID       `json:"leading"`
	// Independence is how far the item goes its own way: see [Model]. From ½ on it is specialised.
	Independence float64 `json:"independence"`
	Specialized  bool    `json:"specialized"`
	Sessions     uint64  `json:"sessions,omitempty"` // in which it was seen; 0 unless the pooling is a [Specializer]
	// SpecializesAt is the number of sessions at which the pooling gives the item a copy. 0: it
	// gives none.
	SpecializesAt int `json:"specializes_at,omitempty"`
}

// Item returns what is believed of one item, or [heed.ErrNotFound] if it has no outcomes. The
// query's session and permitted arms are ignored.
func (l *Learner) Item(ctx context.Context, q Query) (r ItemReport, err error) {
	defer because(&err, "item")
	f, err := l.survey(ctx, q)
	if err != nil {
		return ItemReport{}, err
	}
	i, err := l.surveyed(ctx, &f, q.Item)
	if err != nil {
		return ItemReport{}, err
	}
	r = ItemReport{Category: q.Category, Context: q.Context, Item: q.Item, Independence: f.model.Independence(f.items[i])}
	r.Segment, _ = l.armReports(f.model, Item{Arms: make([]evidence.Sums, len(l.cfg.Arms))}, f.samples)
	r.Arms, r.Leading = l.armReports(f.model, f.items[i], f.counts[i])
	r.Specialized = r.Independence >= 0.5
	if pooling, ok := l.cfg.Pooling.(Specializer); ok {
		sessions, err := l.readCells(ctx, f.space.sessions(q.Item))
		if err != nil {
			return ItemReport{}, err
		}
		r.Sessions, r.SpecializesAt = countOf(sessions), pooling.SpecializeAt()
	}
	return r, nil
}

// surveyed returns the place of an item, which it reads if the others are a sample without it. An
// item without outcomes is [heed.ErrNotFound].
func (l *Learner) surveyed(ctx context.Context, f *found, item string) (int, error) {
	if i, ok := slices.BinarySearch(f.names, item); ok {
		return i, nil
	}
	if !f.sampled {
		return 0, heed.ErrNotFound
	}
	var cells []evidence.Cell
	for _, arm := range l.cfg.Arms {
		cells = append(cells, f.space.arm(item, arm.ID))
	}
	if err := l.reread(ctx, f, cells); err != nil {
		return 0, err
	}
	i := f.at(item)
	for _, n := range f.counts[i] {
		if n > 0 {
			return i, nil
		}
	}
	return 0, heed.ErrNotFound
}

// Status says how a learner is doing.
type Status struct {
	Learner     string        `json:"learner"`
	Enabled     bool          `json:"enabled"`
	Segments    int           `json:"segments"` // that have outcomes
	Items       int           `json:"items"`
	Specialized int           `json:"specialized"`       // items
	Outcomes    uint64        `json:"outcomes"`          // that count
	Leading     []Leading     `json:"leading,omitempty"` // of the segments, at most five, those with the greatest means first
	Choices     *ChoiceStatus `json:"choices,omitempty"`
}

// Leading is the arm that leads in a segment.
type Leading struct {
	Category string  `json:"category"`
	Context  string  `json:"context"`
	Arm      ArmID   `json:"arm"`
	Mean     float64 `json:"mean"`
}

// ChoiceStatus counts the recorded choices.
type ChoiceStatus struct {
	Pending  int `json:"pending"`
	Observed int `json:"observed"`
	Expired  int `json:"expired"`
	// Events is the number of choices made plus the number of results in the last 24 hours.
	Events int `json:"events_24h"`
}

// Status sums up what is believed in all segments, and counts the records of choices. It reads all
// of them.
func (l *Learner) Status(ctx context.Context) (Status, error) {
	s := Status{Learner: l.cfg.Name, Enabled: !l.cfg.Disabled}
	for d, err := range l.Distributions(ctx) {
		if err != nil {
			return Status{}, err
		}
		s.Segments++
		s.Items += d.Items
		s.Specialized += len(d.Specialized)
		s.Outcomes += d.Outcomes
		best := d.Arms[l.index[d.Leading]]
		s.Leading = append(s.Leading, Leading{d.Category, d.Context, d.Leading, best.Mean})
	}
	slices.SortStableFunc(s.Leading, func(a, b Leading) int { return cmp.Compare(b.Mean, a.Mean) })
	s.Leading = s.Leading[:min(len(s.Leading), 5)]
	if l.cfg.Unrecorded {
		return s, nil
	}
	s.Choices = &ChoiceStatus{}
	now := l.cfg.Now()
	for record, err := range l.History(ctx, ChoiceFilter{}) {
		if err != nil {
			return Status{}, err
		}
		s.Choices.count(record, now)
	}
	return s, nil
}

func (s *ChoiceStatus) count(r ChoiceRecord, now time.Time) {
	*map[Stage]*int{Pending: &s.Pending, Observed: &s.Observed, Expired: &s.Expired}[r.Stage]++
	times := []time.Time{r.Choice.At}
	if r.Result != nil {
		times = append(times, r.Result.At)
	}
	for _, at := range times {
		if !at.Before(now.Add(-24*time.Hour)) && !at.After(now) {
			s.Events++
		}
	}
}

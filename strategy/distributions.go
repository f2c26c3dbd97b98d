package strategy

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/internal/fair"
	"github.com/heedhq/heed/store"
)

// A Distribution is what a learner believes in one segment, by the store at that moment. It is
// immutable.
type Distribution struct {
	Category string `json:"category"`
	Context  string `json:"context"`
	// Arms are the arms of an item without evidence, in the learner's order. They show what the
	// segment as a whole has learned.
	Arms []ArmReport `json:"arms"`
	// Leading is the arm with the greatest mean; of equals the first.
	Leading    ArmID             `json:"leading"`
	Parameters []ParameterReport `json:"parameters,omitempty"`
	Items      int               `json:"items"` // that have outcomes
	// Sampled is how many items were read, of a segment with more than 4,000: a random sample, where
	// the store can draw one and the pooling learns from each only how items spread. Items, Outcomes
	// and the outcomes of arms are then estimates, Specialized and Standings are of the sample, and
	// Updated is the last outcome in it. 0: all items were read.
	Sampled int `json:"sampled,omitempty"`
	// Sessions adds up the sessions of the items, which are counted only if the pooling is a [Copy].
	Sessions uint64    `json:"sessions,omitempty"`
	Outcomes uint64    `json:"outcomes"` // that count
	Updated  time.Time `json:"updated"`  // when the last of them came about
	// Specialized are the items that go their own way, from an independence of ½ on: see [Model].
	Specialized []string `json:"specialized,omitempty"`
	// SpecializesAt is the number of sessions at which the pooling gives an item a copy. 0: no
	// copies.
	SpecializesAt int `json:"specializes_at,omitempty"`
	// Standings summarises each item, by the items' names. [Distribution.Item] returns more about
	// one.
	Standings []Standing `json:"-"`

	found *found // nil if it was read from JSON
}

// A Standing summarises an item of a segment.
//
// Compare Mean between items with care: an item with few outcomes has the mean of its segment.
type Standing struct {
	Item    string  `json:"item"`
	Leading ArmID   `json:"leading"` // the arm with the greatest mean; of equals the first
	Mean    float64 `json:"mean"`    // of that arm, the reward that is expected
	// Independence is how far the item goes its own way: see [Model]. From ½ on it is specialised.
	Independence float64 `json:"independence"`
	Specialized  bool    `json:"specialized"`
	// Sessions are those in which it was seen; 0 unless the pooling is a [Copy].
	Sessions uint64 `json:"sessions,omitempty"`
	Outcomes uint64 `json:"outcomes"` // that count
	// Arms are what is believed of each arm. Only [Distribution.Item] reports them.
	Arms []ArmReport `json:"arms,omitempty"`
}

// An ArmReport is what is believed of an arm, in a segment or for one of its items.
type ArmReport struct {
	Arm      ArmID           `json:"arm"`
	Belief   evidence.Belief `json:"belief"`
	Mean     float64         `json:"mean"` // the reward that is expected, in [0, 1]
	Low      float64         `json:"low"`  // between low and high it lies with a probability of 90 %
	High     float64         `json:"high"`
	Outcomes uint64          `json:"outcomes"`
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

// reports returns what is believed of the arms of an item, and the arm that leads. counts are the
// outcomes of each arm, which the sums no longer have. An item without evidence gives what the
// segment would start it with.
func (f *found) reports(item Item, counts []uint64) (all []ArmReport, best ArmID) {
	beliefs := make([]evidence.Belief, len(f.arms))
	f.model.Believe(item, beliefs)
	most := -1.
	for i, b := range beliefs {
		low, high := b.Interval(reportLevel)
		all = append(all, ArmReport{f.arms[i].ID, b, b.Mean(), low, high, counts[i]})
		if all[i].Mean > most {
			best, most = all[i].Arm, all[i].Mean
		}
	}
	return all, best
}

// Distributions yields what is believed in each segment that has outcomes, in the order of their
// names in the store. With queries, it yields what is believed in their segments, if these have
// outcomes, and of their items also if a sample of the segment lacks them. The loop may end early.
// After an error it ends.
func (l *Learner) Distributions(ctx context.Context, of ...Query) iter.Seq2[Distribution, error] {
	return func(yield func(Distribution, error) bool) {
		for q, err := range l.surveyed(ctx, of) {
			var d Distribution
			if err == nil {
				d, err = l.distribution(ctx, q)
			}
			if errors.Is(err, heed.ErrNotFound) {
				continue // it may have been reset since it was listed
			}
			because(&err, "distributions")
			if !yield(d, err) || err != nil {
				return
			}
		}
	}
}

// surveyed yields the queries of segments, and of all segments if there are no queries. Scopes that
// can't be parsed are of other packages that use the same kinds of cells.
func (l *Learner) surveyed(ctx context.Context, of []Query) iter.Seq2[Query, error] {
	return func(yield func(Query, error) bool) {
		for _, q := range of {
			if !yield(q, q.validate()) {
				return
			}
		}
		if len(of) > 0 {
			return
		}
		for scope, err := range l.cfg.Store.Scopes(ctx, l.kinds.arm) {
			category, context, ok := answers.ParseScope(scope)
			if err == nil && !ok {
				continue // of something else
			}
			if !yield(Query{Category: category, Context: context}, err) {
				return
			}
		}
	}
}

// distribution reads one segment and reports it, with the query's item also if the sample lacks it.
func (l *Learner) distribution(ctx context.Context, q Query) (d Distribution, err error) {
	f, err := l.survey(ctx, q)
	if err != nil {
		return d, err
	}
	d = Distribution{
		Category: q.Category, Context: q.Context, Items: len(f.items), Updated: f.last.Time(),
		found: f,
	}
	cold := Item{Arms: make([]evidence.Sums, len(l.cfg.Arms))}
	d.Arms, d.Leading = f.reports(cold, f.samples)
	for i, name := range f.names {
		s := f.standing(name, i)
		if s.Specialized {
			d.Specialized = append(d.Specialized, s.Item)
		}
		d.Standings = append(d.Standings, s)
	}
	for _, n := range f.samples {
		d.Outcomes += n
	}
	if err := l.countSessions(ctx, &d); err != nil {
		return d, err
	}
	if d.Parameters, err = l.parameterReports(ctx, f); err != nil || !f.sampled {
		return d, err
	}
	d.Sampled, d.Items = len(f.names), f.all
	if _, ok := slices.BinarySearch(f.names, q.Item); !ok {
		err = l.surveyItem(ctx, f, q.Item)
	}
	return d, err
}

// surveyItem reads an item that the sample lacks. It does not change the model, which was made of
// the sample.
func (l *Learner) surveyItem(ctx context.Context, f *found, item string) error {
	cells := l.armCells(f.space, item)
	parts, err := l.readCells(ctx, cells...)
	if err != nil {
		return err
	}
	at, arms := f.at(item), make([][]evidence.Part, len(cells))
	for i, cell := range cells {
		arms[i] = partsOf(parts, cell)
		f.counts[at][i] = countOf(arms[i])
	}
	f.items[at].Arms = fair.Pool(l.cfg.Trust, arms, f.now)
	return nil
}

// standing summarises an item.
func (f *found) standing(name string, i int) Standing {
	s := Standing{Item: name, Independence: f.model.Independence(f.items[i])}
	s.Specialized = s.Independence >= 0.5
	beliefs := make([]evidence.Belief, len(f.arms))
	f.model.Believe(f.items[i], beliefs)
	for arm, b := range beliefs {
		s.Outcomes += f.counts[i][arm]
		if mean := b.Mean(); arm == 0 || mean > s.Mean {
			s.Leading, s.Mean = f.arms[arm].ID, mean
		}
	}
	return s
}

// Item returns what is believed of one item, or false if it has no outcomes. For a sampled segment
// it has the items of the sample, and the item of the query.
func (d *Distribution) Item(item string) (r Standing, ok bool) {
	f := d.found
	if f == nil {
		return r, false
	}
	i, ok := slices.BinarySearch(f.names, item)
	if !ok {
		i, ok = f.late[item]
	}
	if !ok {
		return r, false
	}
	r = f.standing(item, i)
	r.Arms, _ = f.reports(f.items[i], f.counts[i])
	at := slices.IndexFunc(d.Standings, func(s Standing) bool { return s.Item == item })
	if at >= 0 {
		r.Sessions = d.Standings[at].Sessions
	}
	return r, r.Outcomes > 0
}

// countSessions reads how many sessions items were seen in, if the pooling counts them. These are
// cells of a separate kind, because a session counts once for an item, whatever its outcomes.
func (l *Learner) countSessions(ctx context.Context, d *Distribution) error {
	pooling, ok := l.cfg.Pooling.(Copy)
	if !ok {
		return nil
	}
	d.SpecializesAt = int(pooling.sessions()) //nolint:gosec // it was an int
	for part, err := range l.cfg.Store.List(ctx,
		store.CellQuery{Kind: l.kinds.sessions, Scope: d.found.space.scope}) {
		if err != nil {
			return err
		}
		d.Sessions += part.Tally.N()
		if i, ok := slices.BinarySearch(d.found.names, part.Cell.Item); ok {
			d.Standings[i].Sessions += part.Tally.N()
		}
	}
	return nil
}

// surveyItems is how many items of a segment a report reads. Of more, it reads a sample if the
// store can draw one.
const surveyItems = 4000

// survey reads what the items of the query's segment have shown, or returns [heed.ErrNotFound]
// without outcomes. It makes a model for the report alone: the learner's memory may be older than a
// report should be, and must not depend on who looks. The model sees the items as shares of their
// segment; each item is then reported within the limits that hold for the item itself.
func (l *Learner) survey(ctx context.Context, q Query) (f *found, err error) {
	now := evidence.InstantOf(l.cfg.Now())
	f, err = l.loadSample(ctx, space{l.kinds, answers.Scope(q.Category, q.Context)}, now, surveyItems)
	if err != nil {
		return f, err
	}
	if len(f.items) == 0 {
		return f, heed.ErrNotFound
	}
	if err = l.loadGiven(ctx, f); err != nil {
		return f, err
	}
	f.settle()
	priors, err := l.start(ctx, f, false)
	if err != nil {
		return f, err
	}
	f.arms, f.model = l.cfg.Arms, l.model(priors, f.items)
	for i := range f.items { // the model does not keep them
		f.items[i].Arms = fair.PoolVoices(f.voices[i])
	}
	f.voices = nil
	return f, nil
}

// loadGiven reads what the items were given, if the pooling gives.
func (l *Learner) loadGiven(ctx context.Context, f *found) error {
	if !l.specializes() {
		return nil
	}
	for part, err := range l.cfg.Store.List(ctx,
		store.CellQuery{Kind: l.kinds.given, Scope: f.space.scope}) {
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

// parameterReports reads the values of all parameters of all arms, in their order. All cells are
// read in one round trip.
func (l *Learner) parameterReports(
	ctx context.Context, f *found,
) (reports []ParameterReport, err error) {
	if len(l.values) == 0 {
		return nil, nil
	}
	parts, err := l.readCells(ctx, l.parameterCells(f.space)...)
	scale := scaleOf(f.total, l.cfg.MinConfidence)
	for _, v := range l.values {
		of := partsOf(parts, f.space.parameter(v.arm, v.Setting))
		reports = append(reports, ParameterReport{v.arm, v.Name, v.Value,
			parameterBelief(f.crowd.Pool(of, f.now), scale), countOf(of)})
	}
	return reports, err
}

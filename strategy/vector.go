package strategy

import (
	"context"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/internal/chance"
	"github.com/heedhq/heed/internal/fair"
	"github.com/heedhq/heed/store"
)

// directionOf returns the direction of a query's vector, or nil if the linear level does not apply.
// The first vector of a segment has the segment loaded, with the linear level. Segments whose
// queries have no vector never read records for one. A choice without a record has no vector that
// could be learned from, so the level needs records.
func (l *Learner) directionOf(s *segment, q *Query) []float32 {
	if l.cfg.Unrecorded {
		return nil
	}
	x := direction(q.Vector)
	if n := int32(len(x)); x != nil && s.numbers.Swap(n) == 0 { //nolint:gosec // at most mostNumbers
		s.expire()
	}
	return x
}

// drawLinear replaces the choice of the tables by one of the linear level, with the probability
// that the level's predictions have earned. The caller holds the lock. Its prediction and deviation
// are noted in every draw, whichever of both chose, because the propensity is a mixture of both.
// The random numbers are drawn after the draws of the tables, so a segment without vectors draws as
// if there were no linear level.
func (l *Learner) drawLinear(
	s *segment, m *making, read *reading, c *answer.Choice, rng *chance.Rand,
) {
	if !s.found.linear.takes(m.direction) {
		return
	}
	above := l.above(s, read)
	for i := range c.Draws {
		d := &c.Draws[i]
		arm := l.index[d.Arm]
		d.Mean, d.Deviation, _ = s.found.linear.predict(arm, m.direction, above[arm])
	}
	c.Linear = &answer.Linear{Weight: s.found.linear.weight()}
	if rng.Float64() >= c.Linear.Weight {
		return
	}
	best := 0
	for i := range c.Draws {
		d := &c.Draws[i]
		d.Sample = d.Mean + d.Bonus + d.Deviation*distuv.UnitNormal.Quantile(rng.Float64())
		if d.Sample > c.Draws[best].Sample {
			best = i
		}
	}
	c.Arm = c.Draws[best].Arm
}

// predict notes in a choice what the tables and the linear level expect of its arm, by which an
// outcome compares the two. These are predictions from before the outcome, so comparing them does
// not reward a fit to the outcome. It runs also for choices that the host made by itself, because
// their outcomes teach the level as well.
func (l *Learner) predict(s *segment, m *making, read *reading, c *answer.Choice) {
	arm, ok := l.index[c.Arm]
	if m.direction == nil || !ok {
		return
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if c.Linear == nil {
		c.Linear = &answer.Linear{}
	}
	beliefs := make([]evidence.Belief, len(l.cfg.Arms))
	s.found.model.Believe(read.Item, beliefs)
	n := c.Linear
	n.Vector, n.Tables, n.Above = packed(m.direction), beliefs[arm].Mean(), l.above(s, read)[arm]
	if n.Level = n.Tables; s.found.linear.takes(m.direction) {
		_, _, n.Level = s.found.linear.predict(arm, m.direction, n.Above)
		n.Common = s.found.linear.alike(m.direction)
	}
}

// above returns by how much the mean of an item lies above its segment, by arm. It is 0 if the item
// has no evidence, or all evidence of the segment. The caller holds the lock. The linear level
// describes requests and not items, so an item that does better than others for any request is
// taken out of what the vector has to explain. Both means come from the model of the tables, so
// what the item has shown is pooled as it is there.
func (l *Learner) above(s *segment, read *reading) []float64 {
	above, mass := make([]float64, len(l.cfg.Arms)), 0.
	for _, sums := range read.Arms {
		mass += sums.Mass
	}
	if mass <= 0 || mass >= s.found.total.Mass*allButAll {
		return above
	}
	item, level := make([]evidence.Belief, len(above)), make([]evidence.Belief, len(above))
	s.found.model.Believe(read.Item, item)
	s.found.model.Believe(Item{Arms: make([]evidence.Sums, len(above))}, level)
	for i := range above {
		above[i] = item[i].Mean() - level[i].Mean()
	}
	return above
}

// byVector reports whether the linear level mostly chose then. An arm's rewards then depend on
// which requests it gets, which is no change of the arm.
func byVector(c *Choice) bool {
	f := c.facts()
	return f.Linear != nil && f.Linear.Weight > 0.5
}

// takes reports whether the level can predict for a vector.
func (m *linear) takes(x []float32) bool { return m != nil && x != nil && len(x) == m.numbers }

// sampleOf returns what the linear level learns from an outcome, or nil: its choice needs a vector,
// and neither the segment nor the item may have been reset since. After a reset, the requests
// before it must not teach any more, although their records stay.
func (l *Learner) sampleOf(o *Outcome, reset resets) *sample {
	f := o.Choice.facts()
	arm, ok := l.index[o.Choice.Arm]
	if !ok || f.Linear == nil || resets(f.Resets) != reset.atLeast(f.Resets) {
		return nil
	}
	return &sample{
		id: l.evidenceID(o), source: o.Source, at: o.At, arm: arm, x: unpacked(f.Linear.Vector),
		reward: (o.worth + 1) / 2, above: f.Linear.Above, weight: o.weight(),
		tables: f.Linear.Tables, common: f.Linear.Common, linear: f.Linear.Level,
	}
}

// loadLinear makes the linear level of a segment from the newest records that have a vector. It
// returns nil if no query had one. Records are found by a key of their segment, the newest first,
// and twice as many as are kept: some may be without an outcome or from before a reset. Records
// stay as they are when a source is expunged, so of each source only the newest outcomes count, as
// many as its cell has.
func (l *Learner) loadLinear(
	ctx context.Context, s *segment, f *found, priors []evidence.Beta,
) (*linear, error) {
	numbers := int(s.numbers.Load())
	if numbers == 0 {
		return nil, nil
	}
	reset, err := l.allResets(ctx, s)
	if err != nil {
		return nil, err
	}
	m := newLinear(numbers, priors, f.now.Time(), l.cfg.HalfLife)
	m.instruments = l.cfg.Trust.Instruments
	q := store.Query{
		Keys: []string{answers.Vectors(l.cfg.Name, s.space.scope)}, Limit: 2 * mostSamples,
	}
	var all []recorded
	for row, err := range l.answers.Find(ctx, l.cfg.Store, q) {
		if err != nil {
			return nil, err
		}
		for _, o := range l.creditedIn(&row.Value) {
			if l.judge(&o) != nil {
				continue
			}
			if one := l.sampleOf(&o, reset(o.Choice.Item)); one != nil {
				all = append(all, recorded{one, s.space.arm(o.Choice.Item, o.Choice.Arm)})
			}
		}
	}
	samples, err := l.counted(ctx, all)
	if err != nil {
		return nil, err
	}
	for _, one := range samples {
		m.remember(one)
	}
	m.weigh(m.limits(l.cfg.Trust, f.crowd))
	return m, nil
}

// recorded is a sample with the cell that has its evidence.
type recorded struct {
	*sample
	cell evidence.Cell
}

// cellsAtOnce is how many cells counted reads at once, because each may have 5,120 parts.
const cellsAtOnce = 64

// counted returns the samples that count, the earliest first: of each source in a cell the newest,
// as many as the cell has outcomes of it.
func (l *Learner) counted(ctx context.Context, all []recorded) ([]*sample, error) {
	type voice struct {
		cell   evidence.Cell
		source string
	}
	left, wanted := make(map[voice]uint64), make(map[evidence.Cell]bool)
	for i := range all {
		left[voice{all[i].cell, all[i].source}] = 0
		wanted[all[i].cell] = true
	}
	cells := slices.SortedFunc(maps.Keys(wanted), evidence.Cell.Compare)
	for some := range slices.Chunk(cells, cellsAtOnce) {
		parts, err := l.readCells(ctx, some...)
		if err != nil {
			return nil, err
		}
		for i := range parts {
			of := voice{parts[i].Cell, parts[i].Source}
			if n, ok := left[of]; ok {
				left[of] = n + parts[i].Tally.N() // of each channel
			}
		}
	}
	slices.SortFunc(all, func(a, b recorded) int { return earlier(a.sample, b.sample) })
	var samples []*sample
	for i := range slices.Backward(all) {
		of := voice{all[i].cell, all[i].source}
		if left[of] > 0 {
			left[of]--
			samples = append(samples, all[i].sample)
		}
	}
	slices.Reverse(samples)
	return samples, nil
}

// allResets reads how often the items of a segment were reset. One listing serves all records, and
// they may be of many items.
func (l *Learner) allResets(ctx context.Context, s *segment) (func(item string) resets, error) {
	counts := make(map[string]uint64)
	q := store.CellQuery{Kind: l.kinds.resets, Scope: s.space.scope}
	for part, err := range l.cfg.Store.List(ctx, q) {
		if err != nil {
			return nil, err
		}
		counts[part.Cell.Item] += part.Tally.N()
	}
	return func(item string) resets {
		r := resets{counts[""]}
		if item != "" {
			r[1] = counts[item]
		}
		return r
	}, nil
}

// limits returns the part of a source's evidence on an arm that counts: the lesser of what counts
// in the segment and among the outcomes that the level remembers. Without the second, a person with
// few outcomes in the segment could have most of the ones that are remembered.
func (m *linear) limits(trust evidence.Trust, crowd *fair.Crowd) func(int, string) float64 {
	now, given := evidence.InstantOf(m.now), fair.NewGiven(len(m.fits))
	for _, s := range m.samples {
		given.Add(s.arm, s.source, s.weight, s.reward, now)
	}
	kept := fair.Kept(trust, given.Arms, now)
	return func(arm int, source string) float64 {
		part, _ := crowd.Kept(arm, source)
		if kept != nil {
			part = min(part, kept(arm, source))
		}
		return part
	}
}

// greatestNormal returns the probability that the linear level's sample of an arm is the greatest
// among independent normal ones: the integral of its density times the distribution functions of
// the others, between the places where any of them bends. Beyond eight standard deviations of the
// arm its density adds less than 1e-15. Between two cuts the integrand is smooth, and a few points
// of a Gauss-Legendre rule suffice. The propensity needs this, because samples of two levels are
// mixed.
func greatestNormal(draws []answer.Draw, arm ArmID) (p float64) {
	at := slices.IndexFunc(draws, func(d answer.Draw) bool { return d.Arm == arm })
	one := &draws[at]
	score := func(d *answer.Draw, x float64) float64 { return (x - d.Mean - d.Bonus) / d.Deviation }
	var cuts []float64
	for i := range draws {
		for z := -8.; z <= 8; z += 2 {
			x := draws[i].Mean + draws[i].Bonus + z*draws[i].Deviation
			if math.Abs(score(one, x)) <= 8 {
				cuts = append(cuts, x)
			}
		}
	}
	slices.Sort(cuts)
	rule := chance.Legendre()
	for n := 1; n < len(cuts); n++ {
		half := (cuts[n] - cuts[n-1]) / 2
		for j, u := range rule.At {
			x := cuts[n-1] + half*(1+u)
			product := rule.Weight[j] * half * distuv.UnitNormal.Prob(score(one, x)) / one.Deviation
			for i := range draws {
				if i != at && product > 1e-15 {
					product *= distuv.UnitNormal.CDF(score(&draws[i], x))
				}
			}
			p += product
		}
	}
	return min(p, 1)
}

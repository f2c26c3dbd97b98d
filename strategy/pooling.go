package strategy

import (
	"github.com/heedhq/heed/evidence"
)

// A Pooling defines how much items share. It works out the beliefs about an item's arms from the
// evidence of the item and of the other items of its segment. [TwoLevel], [Copy] and [Alone] come
// with the package. Package strategytest provides the suite for others. A Pooling must be safe for
// concurrent use by multiple goroutines, and is best a plain value.
type Pooling interface {
	// Model returns the model of a segment with these items. It must not depend on their order, nor
	// keep them.
	Model(segment Segment, items []Item) Model
}

// A Segment describes a model's arms before any evidence. A model must not change it.
type Segment struct {
	Priors []evidence.Beta // the cold start of each arm
	// LeastWeight is the least weight of an outcome that the learner accepts. The scale of the
	// weights is at least that.
	LeastWeight float64
}

// An Item is what is known of one item in one segment.
type Item struct {
	Arms []evidence.Sums // the sums of the item's outcomes, by arm
	// Given is the copy of the segment's evidence that it took, by arm. nil: it has none. See [Copy].
	Given []evidence.Sums
}

// seen reports whether the item itself has any evidence.
func (i Item) seen() bool {
	for _, arm := range i.Arms {
		if arm.Mass > 0 {
			return true
		}
	}
	return false
}

// A Model is what a pooling holds of one segment in memory. The learner computes it from the
// items' evidence now and then, and updates it in between. Update is called by one goroutine at a
// time, and never while another method is running. Many goroutines may call the other methods at
// the same time.
type Model interface {
	// Update reports to the model that an item's evidence on an arm changed. It should cost the same
	// however many items there are. It reports whether the model drifted from what it would be if it
	// were computed from all evidence. The learner then does that.
	Update(arm int, before, after evidence.Sums) (drifted bool)
	// Believe sets the belief about each arm of an item. The slice has one element for each arm.
	Believe(item Item, beliefs []evidence.Belief)
	// Independence returns how far an item goes its own way, in [0, 1]. At 0 the beliefs about it
	// come from its segment, and at 1 from its own evidence. From ½ on it is called specialised.
	Independence(item Item) float64
}

// counts are effective numbers of successes and failures. They need not be whole, because outcomes
// fade and have weights.
type counts struct{ successes, failures float64 }

// countsOf returns the numbers of outcomes, each counted by its weight on this scale, and by how
// much more evidence it is than a yes or no.
func countsOf(s evidence.Sums, scale, dispersion float64) counts {
	n, mean := max(s.Mass, 0)/scale*dispersion, s.Mean()
	return counts{n * mean, n * (1 - mean)}
}

// scaleOf returns the scale of the weights in some sums, Σw²/Σw: the weight of a mean unit of
// evidence. Where all weights are equal it is that weight, and each outcome counts as one.
// leastWeight is the least weight that is accepted.
func scaleOf(s evidence.Sums, leastWeight float64) float64 {
	if s.Mass <= 0 || s.Squares <= 0 {
		return 1
	}
	return max(s.Squares/s.Mass, leastWeight)
}

// totalOf adds up the evidence of all items and arms.
func totalOf(items []Item) (total evidence.Sums) {
	for _, item := range items {
		for _, arm := range item.Arms {
			total = total.Plus(arm)
		}
	}
	return total
}

func (c counts) total() float64 { return c.successes + c.failures }

// posterior returns the belief that counts make of a prior.
func (c counts) posterior(prior evidence.Beta) evidence.Beta {
	return evidence.Beta{Alpha: prior.Alpha + c.successes, Beta: prior.Beta + c.failures}
}

// Alone is the [Pooling] in which each item learns on its own, from the cold start. Only the
// measure of how much evidence a reward is, is shared. It is right for bandits without items. It is
// immutable.
type Alone struct{}

// Model implements [Pooling].
func (Alone) Model(segment Segment, items []Item) Model {
	return &alone{segment, spreadOf(items, segment.LeastWeight), totalOf(items)}
}

type alone struct {
	segment Segment
	spread  spread
	total   evidence.Sums // of all items and arms
}

// Update implements [Model].
func (m *alone) Update(_ int, before, after evidence.Sums) bool {
	m.spread = m.spread.plus(newSpread(after, m.segment.LeastWeight)).minus(newSpread(before,
		m.segment.LeastWeight))
	m.total = sumsWithout(m.total.Plus(after), before)
	return false
}

// Believe implements [Model].
func (m *alone) Believe(item Item, beliefs []evidence.Belief) {
	dispersion, scale := m.spread.dispersion(), scaleOf(m.total, m.segment.LeastWeight)
	for i, prior := range m.segment.Priors {
		beliefs[i] = evidence.Belief{Level: countsOf(item.Arms[i], scale, dispersion).posterior(prior)}
	}
}

// Independence implements [Model]: it is complete from the first outcome on.
func (m *alone) Independence(item Item) float64 {
	if item.seen() {
		return 1
	}
	return 0
}

// spreadOf adds up the spread of all items' rewards, each arm's around its own mean.
func spreadOf(items []Item, leastWeight float64) (all spread) {
	for _, item := range items {
		for _, arm := range item.Arms {
			all = all.plus(newSpread(arm, leastWeight))
		}
	}
	return all
}

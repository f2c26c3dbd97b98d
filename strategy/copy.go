package strategy

import (
	"cmp"
	"math"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/valid"
)

// Copy is the [Pooling] of the Adaptive Strategies design. An item follows its segment for a number
// of sessions. Then it takes a copy of the segment's evidence, without its own outcomes, and goes
// its own way. Weights count as they are.
//
// The item goes its own way while the confidence in its own evidence, √n/(1+√n) for n effective
// outcomes, is at least MinConfidence. If the segment has no evidence by then, the item goes its
// own way without a copy, for good. If its evidence fades, it returns to the segment. A copy has no
// source: expunging a source from the store does not undo it, but [Learner.Reset] does. Sessions
// are counted only while the pooling is a Copy, because each outcome then writes twice as much. If
// a learner had another pooling before, each item begins with no sessions. Where items differ, Copy
// learns late, because thousands of copied observations outweigh an item's own. All items of a
// segment stay in memory, and not a sample. [TwoLevel] is the default.
//
// The zero Copy is ready to use. It is immutable.
type Copy struct {
	// Sessions is how many distinct sessions an item needs before it specialises. 0 means 20.
	Sessions int
	// MinConfidence is the least confidence in the item's own evidence for using it, in [0, 1). 0
	// means 0.6.
	MinConfidence float64
}

// validate reports all faults, joined.
func (p Copy) validate() error {
	var found valid.Faults
	found.Check(p.Sessions >= 0, "Sessions", p.Sessions, "must be positive, or 0 for the default")
	found.Check(p.MinConfidence >= 0 && p.MinConfidence < 1, "MinConfidence", p.MinConfidence,
		"must be in (0, 1), or 0 for the default")
	return found.Err()
}

// sessions returns the number of sessions after which an item takes its copy.
func (p Copy) sessions() uint64 {
	return uint64(cmp.Or(p.Sessions, 20)) //nolint:gosec // not negative
}

// Model implements [Pooling].
func (p Copy) Model(segment Segment, items []Item) Model {
	m := &copied{
		segment: segment, minConfidence: cmp.Or(p.MinConfidence, 0.6),
		total:  sumsOf(items, len(segment.Priors)),
		levels: make([]evidence.Belief, len(segment.Priors)),
	}
	for i := range m.levels {
		m.refresh(i)
	}
	return m
}

type copied struct {
	segment       Segment
	minConfidence float64
	total         []evidence.Sums // of all items, by arm
	levels        []evidence.Belief
}

// Update implements [Model].
func (m *copied) Update(arm int, before, after evidence.Sums) bool {
	m.total[arm] = sumsWithout(m.total[arm].Plus(after), before)
	m.refresh(arm)
	return false
}

func (m *copied) refresh(arm int) {
	m.levels[arm] = evidence.Belief{Level: m.total[arm].Posterior(m.segment.Priors[arm])}
}

// Believe implements [Model].
func (m *copied) Believe(item Item, beliefs []evidence.Belief) {
	if !m.specialized(item) {
		copy(beliefs, m.levels)
		return
	}
	for i, prior := range m.segment.Priors {
		beliefs[i] = evidence.Belief{Level: item.Arms[i].Plus(item.Given[i]).Posterior(prior)}
	}
}

// specialized reports whether an item goes its own way.
func (m *copied) specialized(item Item) bool {
	return item.Given != nil && m.confidence(item) >= m.minConfidence
}

// Independence implements [Model]. It is 0 or 1, because an item with a copy learns no more from
// its segment.
func (m *copied) Independence(item Item) float64 {
	if m.specialized(item) {
		return 1
	}
	return 0
}

// give returns what the segment's other items have shown, by arm.
func (m *copied) give(item Item) []evidence.Sums {
	given := make([]evidence.Sums, len(m.total))
	for i, total := range m.total {
		if given[i] = sumsWithout(total, item.Arms[i]); given[i].Mass <= rounding*total.Mass {
			given[i] = evidence.Sums{}
		}
	}
	return given
}

// rounding bounds the remainder that rounding leaves of a sum from which all its parts were taken,
// in proportion to the sum.
const rounding = 1e-9

// confidence is the confidence in an item's own evidence, in [0, 1): one minus an uncertainty of
// 1/(1+√n) after n outcomes.
func (m *copied) confidence(item Item) float64 {
	var own evidence.Sums
	for _, arm := range item.Arms {
		own = own.Plus(arm)
	}
	root := math.Sqrt(own.Effective(m.segment.LeastWeight))
	return root / (1 + root)
}

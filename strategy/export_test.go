package strategy

import (
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/internal/chance"
)

// Remembered returns how many choices the learner's cache holds.
func (l *Learner) Remembered() int { return l.sessions.Len() }

// Len returns how many choices are kept.
func (c *memo) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.recent.Len()
}

// Segments returns how many segments are in memory, and how many may be.
func Segments(l *Learner) (n, most int) { return len(l.segments.All()), 2 * maxSegments }

// SampleItems sets about how many items of a segment are read where the store can draw a sample.
func SampleItems(l *Learner, n int) { l.sampleItems = n }

// Counted returns the propensity of an arm that is counted by draws, for what can't be integrated.
func Counted(draws []answer.Draw, chosen int) float64 { return new(Choice).count(draws, chosen) }

// DrawArms draws every arm as Select does, and returns which has the greatest sample.
func DrawArms(draws []answer.Draw, rng *chance.Rand) int { return drawArms(draws, rng) }

// GivenTo returns the copy that a model of a [Copy] gives to an item.
func GivenTo(m Model, item Item) []evidence.Sums { return m.(*copied).give(item) }

// ScaleOf returns the scale of the weights in some sums.
func ScaleOf(s evidence.Sums, leastWeight float64) float64 { return scaleOf(s, leastWeight) }

// FindChange tests outcomes for a change that the items share.
func FindChange(alarms float64, outcomes []evidence.Observation) (at int, found bool) {
	all := make([]recent, len(outcomes))
	for i, o := range outcomes {
		all[i] = recent{item: o.Cell.Item, mass: o.Weight, reward: o.Reward}
	}
	return changeTest{alarms: alarms}.find(all, func(*recent) float64 { return 1 })
}

// LastOf returns the arm that shares give for a random number close to 1.
func LastOf(l *Learner, shares []float64) ArmID {
	var rng chance.Rand
	for next := rng; next.Float64() < 1-8e-7; rng = next {
	}
	r := &remembered{}
	l.share(&Query{Shares: shares}, &rng, r)
	return r.made.Arm
}

// Cells returns the cells that an outcome of the choice is evidence on: the arm's, and one for each
// of its parameters.
func (c Choice) Cells() []evidence.Cell {
	space := space{kindsOf(c.Record().Learner), answers.Scope(c.Category, c.Context)}
	all := []evidence.Cell{space.arm(c.Item, c.Arm)}
	for name, value := range c.Parameters() {
		all = append(all, space.parameter(c.Arm, answer.Setting{Name: name, Value: value}))
	}
	return all
}

// BestOf integrates the probability that one of the draws has the greatest sample, or reports that
// it can't.
func BestOf(draws []answer.Draw, chosen int) (p float64, ok bool) { return bestOf(draws, chosen) }

// DrawsFor returns how often each arm is drawn to count a propensity, and how many draws of arms
// that may come to.
func DrawsFor(arms int) (n, most int) { return drawsFor(arms), propensityWork }

// Count counts it over draws.
func Count(c Choice, draws []answer.Draw, chosen int) float64 { return c.count(draws, chosen) }

// Eager returns a configuration that tests after each n outcomes for changes, with this probability
// of a false alarm.
func Eager(c Config, alarms float64, n int) Config {
	c.change = changeTest{alarms, n}
	return c
}

// GreatestNormal integrates the probability that a normal sample is the greatest.
func GreatestNormal(draws []answer.Draw, arm ArmID) float64 { return greatestNormal(draws, arm) }

// Packed and Unpacked write a vector into a record, and read it.
var (
	Packed   = packed
	Unpacked = unpacked
)

// Direction reduces a vector.
func Direction(vector []float32) []float32 { return direction(vector) }

// ItemsOf returns how many items of the segment without a name are in memory.
func ItemsOf(l *Learner) int {
	s, _ := l.segment("", "")
	return len(s.found.items)
}

// BulkParts returns how many parts the next step in bulk takes over.
func BulkParts(l *Learner) int {
	b := l.bulk.Load()
	if b == nil {
		return 0
	}
	return b.parts
}

// ResetItems returns how many items of a segment have a count of resets in memory.
func ResetItems(l *Learner, q Query) int {
	s, _ := l.segment(q.Category, q.Context)
	return len(s.resets)
}

// Window adds outcomes, and returns how many are kept at the most, and how many a test looks at.
func Window(n int) (kept, looked int) {
	s := &segment{}
	for range n {
		s.latest.add(&evidence.Observation{Weight: 1}, "", 0, 1)
		kept = max(kept, len(s.latest.outcomes))
	}
	return kept, len(s.due(changeTest{every: 1}, 0))
}

// Notes returns how many changes of a segment wait for a load that is under way.
func Notes(l *Learner, q Query) int {
	s, _ := l.segment(q.Category, q.Context)
	return len(s.changes)
}

package strategytest_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/strategytest"
)

func TestPoolings(t *testing.T) {
	for _, pooling := range []strategy.Pooling{
		strategy.TwoLevel{}, strategy.Copy{}, strategy.Alone{},
	} {
		t.Run(fmt.Sprint(pooling), func(t *testing.T) { strategytest.RunPooling(t, pooling) })
	}
}

// broken is a good pooling with one thing spoilt.
type broken struct {
	model   func(strategy.Segment, []strategy.Item) strategy.Model
	believe func(good strategy.Model, item strategy.Item, beliefs []evidence.Belief)
	update  func(good strategy.Model, arm int, before, after evidence.Sums)
	// independent is asked for the independence of an item with so much evidence.
	independent func(good, mass float64) float64
}

func (b broken) Model(s strategy.Segment, items []strategy.Item) strategy.Model {
	if b.model != nil {
		return b.model(s, items)
	}
	return brokenModel{strategy.Copy{}.Model(s, items), b}
}

type brokenModel struct {
	strategy.Model
	broken broken
}

func (m brokenModel) Believe(item strategy.Item, beliefs []evidence.Belief) {
	if m.broken.believe == nil {
		m.Model.Believe(item, beliefs)
		return
	}
	m.broken.believe(m.Model, item, beliefs)
}

func (m brokenModel) Update(arm int, before, after evidence.Sums) bool {
	if m.broken.update == nil {
		return m.Model.Update(arm, before, after)
	}
	m.broken.update(m.Model, arm, before, after)
	return false
}

func (m brokenModel) Independence(item strategy.Item) float64 {
	good := m.Model.Independence(item)
	if m.broken.independent == nil {
		return good
	}
	var mass float64
	for _, arm := range item.Arms {
		mass += arm.Mass
	}
	return m.broken.independent(good, mass)
}

// TestSuiteBites runs the suite against poolings that each break one rule, and expects it to say
// so.
func TestSuiteBites(t *testing.T) {
	var shared strategy.Model
	for _, test := range []struct {
		fault    string
		pooling  broken
		caughtBy string
	}{
		{"it starts warm", broken{believe: func(good strategy.Model, item strategy.Item,
			beliefs []evidence.Belief) {
			good.Believe(item, beliefs)
			beliefs[0].Level.Alpha++
		}}, "an item that nothing is known of starts cold"},
		{"it divides by nothing", broken{believe: func(good strategy.Model, item strategy.Item,
			beliefs []evidence.Belief) {
			good.Believe(item, beliefs)
			if item.Arms[0].Mass == 1e6 {
				beliefs[0].Level.Alpha = math.NaN()
			}
		}}, "every belief can be drawn"},
		{"the first item decides", broken{model: func(s strategy.Segment,
			items []strategy.Item) strategy.Model {
			return strategy.Copy{}.Model(s, items[:min(1, len(items))])
		}}, "a model does not depend on the order"},
		{"good is bad", broken{update: func(good strategy.Model, arm int, before, after evidence.Sums) {
			before.Reward, after.Reward = before.Mass-before.Reward, after.Mass-after.Reward
			good.Update(arm, before, after)
		}}, "a reward raises an arm"},
		{"every update counts", broken{update: func(good strategy.Model, arm int, _,
			after evidence.Sums) {
			good.Update(arm, evidence.Sums{}, after)
		}}, "an update that changes nothing"},
		{"updates are left for later", broken{update: func(strategy.Model, int, evidence.Sums,
			evidence.Sums) {
		}},
			"updates come to what a model made again does"},
		{"it is independent before it was seen", broken{independent: func(good,
			_ float64) float64 {
			return max(good, 0.1)
		}},
			"independence is of an item's own evidence"},
		{"it is more than independent", broken{independent: func(_,
			mass float64) float64 {
			return mass / 10
		}},
			"independence is of an item's own evidence"},
		{"it grows dependent", broken{independent: func(_,
			mass float64) float64 {
			return min(mass, 1/(1+mass))
		}},
			"independence is of an item's own evidence"},
		{"independence is not a number", broken{independent: func(float64,
			float64) float64 {
			return math.NaN()
		}},
			"independence is of an item's own evidence"},
		{"there is one model", broken{model: func(s strategy.Segment,
			items []strategy.Item) strategy.Model {
			if shared == nil || len(items) > 0 {
				shared = strategy.Copy{}.Model(s, items)
			}
			return shared
		}}, "models share nothing"},
		{"it believes something else each time", broken{believe: func(good strategy.Model,
			item strategy.Item, beliefs []evidence.Belief) {
			good.Believe(item, beliefs)
			if item.Arms[0].Mass > 0 {
				beliefs[0].Level.Alpha += rand.Float64()
			}
		}}, "believing changes nothing"},
	} {
		t.Run(test.fault, func(t *testing.T) {
			err := strategytest.CheckPooling(test.pooling)
			require.Error(t, err)
			caught := false
			for line := range strings.Lines(err.Error()) {
				caught = caught || strings.HasPrefix(line, test.caughtBy)
			}
			assert.True(t, caught, "the fault should be caught by %q, but was by:\n%s", test.caughtBy,
				err)
		})
	}
}

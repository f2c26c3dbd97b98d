//go:build !race

package strategy_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/injection"
)

// TestColdStartSharesAreTheWeights counts first choices, each for an item and in a session that are
// new. The bound of 4.5 standard errors is passed by chance once in 150,000 shares.
func TestColdStartSharesAreTheWeights(t *testing.T) {
	weighted := func(weights ...float64) []strategy.Arm {
		arms := make([]strategy.Arm, len(weights))
		for i, w := range weights {
			arms[i] = strategy.Arm{ID: strategy.ArmID(strconv.Itoa(i)), Weight: w}
		}
		return arms
	}
	catalogue, reweighted := injection.Arms(), injection.Arms()
	for i, weight := range []float64{5, 2, 2, 1} {
		reweighted[i].Weight = weight
	}
	for _, test := range []struct {
		name    string
		arms    []strategy.Arm
		pooling strategy.Pooling
		n       int
		want    []float64
	}{
		{"injection, by default", catalogue, nil, long(6_000, 200_000), []float64{0.3, 0.2, 0.1, 0.4}},
		{"injection, copy", catalogue, strategy.Copy{}, long(3_000, 20_000),
			[]float64{0.3, 0.2, 0.1, 0.4}},
		{"injection, alone", catalogue, strategy.Alone{}, long(3_000, 20_000),
			[]float64{0.3, 0.2, 0.1, 0.4}},
		{
			"injection with other weights",
			reweighted,
			nil, long(3_000, 20_000), []float64{0.5, 0.2, 0.2, 0.1},
		},
		{"lopsided", weighted(100, 1, 9), nil, long(3_000, 20_000),
			[]float64{100. / 110, 1. / 110, 9. / 110}},
		{"lopsided, copy", weighted(100, 1, 9), strategy.Copy{}, long(3_000, 20_000),
			[]float64{100. / 110, 1. / 110, 9. / 110}},
		{"lopsided, alone", weighted(100, 1, 9), strategy.Alone{}, long(3_000, 20_000),
			[]float64{100. / 110, 1. / 110, 9. / 110}},
		{"equal", weighted(7, 7, 7), nil, long(3_000, 20_000), []float64{1. / 3, 1. / 3, 1. / 3}},
		{"none", weighted(0, 0, 0, 0, 0), strategy.Alone{}, long(3_000, 20_000),
			[]float64{0.2, 0.2, 0.2, 0.2, 0.2}},
		{"one arm", weighted(0.5), nil, 100, []float64{1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			l := newLearner(t, strategy.Config{Arms: test.arms, Pooling: test.pooling})
			count := make(map[strategy.ArmID]int)
			for i := range test.n {
				name := strconv.Itoa(i)
				count[choose(t, l, strategy.Query{Session: name, Item: name, Category: "preference",
					Context: "planning"}).Arm]++
			}
			for i, arm := range test.arms {
				assertShare(t, test.want[i], float64(count[arm.ID])/float64(test.n), test.n, 4.5, arm.ID)
			}
		})
	}
}

func TestColdStartSharesOfPermittedArmsAreTheirWeights(t *testing.T) {
	n := long(4000, 20_000)
	l := newLearner(t, strategy.Config{Arms: injection.Arms()})
	share := shares(t, l, strategy.Query{Arms: []strategy.ArmID{injection.Deferred,
		injection.BackgroundSubagent}}, n)
	assertShare(t, 0.8, share[injection.Deferred], n, 4.5)
	assertShare(t, 0.2, share[injection.BackgroundSubagent], n, 4.5)
}

func TestColdStartIsWorthTwoOutcomesOfTheAverageArm(t *testing.T) {
	l := newLearner(t, strategy.Config{Arms: injection.Arms(),
		Pooling: strategy.Alone{}})
	for i, want := range []float64{1.2, 0.8, 0.4, 1.6} {
		level := beliefs(t, l, strategy.Query{})[i].Level
		assert.InEpsilon(t, want, level.Alpha, 1e-12)
		assert.Equal(t, 1., level.Beta)
	}
	l = newLearner(t, strategy.Config{Prior: evidence.Beta{Alpha: 3, Beta: 2}})
	for _, b := range beliefs(t, l, strategy.Query{}) {
		assert.Equal(t, evidence.Beta{Alpha: 3, Beta: 2}, b.Level)
	}
}

// TestOnlyGoodOutcomesRaiseANeutralArm checks an arm that is expected to be neither good nor bad.
// An outcome that is neither leaves it where it is, and every bad one lowers it.
func TestOnlyGoodOutcomesRaiseANeutralArm(t *testing.T) {
	for _, pooling := range poolings {
		for value, sign := range map[float64]int{-1: -1, -0.3: -1, -0.01: -1, 0: 0, 0.01: 1, 1: 1} {
			t.Run(fmt.Sprint(pooling, value), func(t *testing.T) {
				l := newLearner(t, strategy.Config{Pooling: pooling})
				q := strategy.Query{Item: "item"}
				for n := range 25 {
					try(t, l, q, "b", value)
					mean := means(t, l, q)
					switch {
					case sign < 0:
						assert.Less(t, mean[1], 0.5, "after %d", n+1)
					case sign == 0:
						assert.InDelta(t, 0.5, mean[1], 1e-12, "after %d", n+1)
					default:
						assert.Greater(t, mean[1], 0.5, "after %d", n+1)
					}
					for _, other := range []int{0, 2, 3} {
						assert.Equal(t, 0.5, mean[other], "after %d", n+1)
					}
				}
			})
		}
	}
}

// Weights count relative to each other, whatever their sum.
func TestTheBeliefsOfWeightedArms(t *testing.T) {
	for _, scale := range []float64{0.1, 1, 50} {
		l := newLearner(t, strategy.Config{
			Arms: []strategy.Arm{{ID: "a", Weight: scale}, {ID: "b", Weight: 3 * scale}},
		})
		for i, alpha := range []float64{0.5, 1.5} {
			assert.InDelta(t, alpha, beliefs(t, l, strategy.Query{})[i].Level.Alpha, 1e-12)
		}
	}
}

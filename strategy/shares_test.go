package strategy_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/strategy"
)

// TestSharesTakeThePlaceOfBeliefs counts how often each arm is chosen, and asks each choice for its
// propensity.
func TestSharesTakeThePlaceOfBeliefs(t *testing.T) {
	l, _ := sharing(t, nil)
	counts := make(map[strategy.ArmID]int)
	for range 2000 {
		c, err := l.Select(context.Background(), strategy.Query{Arms: []strategy.ArmID{"c", "a"},
			Shares: []float64{0.25, 0.75}})
		require.NoError(t, err)
		counts[c.Arm]++
		assert.InDelta(t, map[strategy.ArmID]float64{"a": 0.75, "c": 0.25}[c.Arm], c.Propensity(), 0)
	}
	assert.Zero(t, counts["b"])
	assert.InDelta(t, 0.25, float64(counts["c"])/2000, 0.04)
}

// A session keeps its arm under other shares, also in another process.
func TestASessionKeepsItsArmUnderOtherShares(t *testing.T) {
	l, st := sharing(t, nil)
	q := strategy.Query{Session: "s", Shares: []float64{0, 1, 0}}
	first, err := l.Select(context.Background(), q)
	require.NoError(t, err)
	other, err := strategy.New(context.Background(),
		strategy.Config{Store: st, Arms: l.Config().Arms})
	require.NoError(t, err)
	q.Shares = []float64{1, 0, 0}
	for _, learner := range []*strategy.Learner{l, other} {
		again, err := learner.Select(context.Background(), q)
		require.NoError(t, err)
		assert.Equal(t, first.ID, again.ID)
		assert.Equal(t, strategy.ArmID("b"), again.Arm)
		assert.InDelta(t, 1, again.Propensity(), 0)
	}
}

func TestSharesThatAreNone(t *testing.T) {
	l, _ := sharing(t, nil)
	for _, shares := range [][]float64{{1}, {0.5, 0.5}, {0.5, 0.5, 0.5}, {-1, 1, 1},
		{math.NaN(), 0, 1}} {
		_, err := l.Select(context.Background(), strategy.Query{Shares: shares})
		var fault *heed.InputError
		require.ErrorAs(t, err, &fault, "%v", shares)
		assert.Equal(t, "Shares", fault.Field)
	}
}

// Shares may be rounded, so that they leave a little of 1. The last arm with a share gets it.
func TestSharesThatLeaveALittle(t *testing.T) {
	for _, shares := range [][]float64{{0.5, 0.5 - 9e-7, 0}, {0, 1 - 9e-7, 0}} {
		l, _ := sharing(t, nil)
		assert.Equal(t, strategy.ArmID("b"), strategy.LastOf(l, shares))
	}
}

// The belief follows Config.Reward, and the record has value, cost, latency and tokens.
func TestARewardIsLearnedAndTheValueKept(t *testing.T) {
	l, _ := sharing(t, func(o strategy.Outcome) float64 { return o.Value - o.Cost })
	c, err := l.Select(context.Background(), strategy.Query{})
	require.NoError(t, err)
	_, err = l.Observe(context.Background(), strategy.Outcome{
		Choice: c, Value: 1, Confidence: 1, Cost: 1.5, Latency: 2 * time.Second, Tokens: 700,
	})
	require.NoError(t, err)
	past, err := outcomes(l, strategy.Query{}, 0)
	require.NoError(t, err)
	require.Len(t, past, 1)
	assert.InDelta(t, -0.5, past[0].Mean, 1e-12)
	for r, err := range l.History(context.Background(), strategy.ChoiceFilter{}) {
		require.NoError(t, err)
		assert.InDelta(t, 1, r.Result.Value, 0)
		assert.InDelta(t, 1.5, r.Result.Cost, 0)
		assert.Equal(t, 2*time.Second, r.Result.Latency)
		assert.Equal(t, 700, r.Result.Tokens)
	}
}

func TestCostsAndRewardsThatAreNone(t *testing.T) {
	reward := 0.
	l, _ := sharing(t, func(strategy.Outcome) float64 { return reward })
	c, err := l.Select(context.Background(), strategy.Query{})
	require.NoError(t, err)
	for _, test := range []struct {
		field string
		strategy.Outcome
	}{
		{"Cost", strategy.Outcome{Cost: math.NaN()}}, {"Cost", strategy.Outcome{Cost: -0.01}},
		{"Cost", strategy.Outcome{Cost: 2e15}},
		{"Latency", strategy.Outcome{Latency: -1}}, {"Tokens", strategy.Outcome{Tokens: -1}},
		{"Reward", strategy.Outcome{Value: 1}},
	} {
		field, o := test.field, test.Outcome
		if field == "Reward" {
			reward = math.NaN()
		}
		o.Choice, o.Confidence = c, 1
		_, err := l.Observe(context.Background(), o)
		var fault *heed.InputError
		require.ErrorAs(t, err, &fault, field)
		assert.Equal(t, field, fault.Field)
		reward = 0
	}
}

// sharing returns a learner of three arms, and its store.
func sharing(
	t *testing.T, reward func(strategy.Outcome) float64,
) (*strategy.Learner, *memstore.Store) {
	st := &memstore.Store{}
	l, err := strategy.New(context.Background(), strategy.Config{
		Store: st, Arms: []strategy.Arm{{ID: "a"}, {ID: "b"}, {ID: "c"}}, Pooling: strategy.Alone{},
		Reward: reward, Seed: rand.NewPCG(1, 2),
	})
	require.NoError(t, err)
	return l, st
}

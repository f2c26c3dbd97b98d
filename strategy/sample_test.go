//go:build !race

package strategy_test

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/chance"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

// A whole store always lists everything.
type whole struct{ store.Store }

func (s whole) List(_ context.Context, q store.CellQuery) iter.Seq2[evidence.Part, error] {
	return s.Store.List(ctx, store.CellQuery{Kind: q.Kind, Scope: q.Scope})
}

// populate commits 1 to 8 outcomes of each item and arm. The first half of the keys do better with
// the first arm, and the other half with the second.
func populate(t testing.TB, st store.Store, items int, strength float64, arms ...strategy.ArmID) {
	rng, draws := rand.New(rand.NewPCG(3, 4)), chance.Key{A: 3, B: 4}.Rand(0)
	var b store.Batch
	for i := range items {
		for a, arm := range arms {
			level := 0.3
			if (2*i < items) == (a == 0) {
				level = 0.6
			}
			sampler := chance.Beta(strength*level, strength*(1-level))
			rate := sampler.Draw(&draws)
			cell := strategy.Choice{Item: fmt.Sprintf("%06d", i), Arm: arm}.Cells()[0]
			cell.Kind = "strategy.arm"
			for n := range 1 + rng.IntN(8) {
				o := evidence.Observation{ID: fmt.Sprint(i, arm, n), Cell: cell, Weight: 1, At: start}
				if rng.Float64() < rate {
					o.Reward = 1
				}
				b.Observations = append(b.Observations, o)
			}
		}
		if len(b.Observations) >= 1000 || i == items-1 {
			_, err := st.Commit(ctx, b)
			require.NoError(t, err)
			b.Observations = nil
		}
	}
}

// Beliefs come close to those of all items, though the rates depend on the keys' order. An item's
// own outcomes are all there. Poolings that copy what a segment has shown read all of it.
func TestASampleSpeaksForItsSegment(t *testing.T) {
	const items = 2000
	st := newStore(t, (&clock{}).Now)
	populate(t, st, items, 10, "a", "b")
	for _, pooling := range poolings {
		cfg := strategy.Config{Store: st, Pooling: pooling, Arms: plain("a", "b"), Unrecorded: true}
		some := newLearner(t, cfg)
		strategy.SampleItems(some, 700)
		cfg.Store = whole{st}
		all := newLearner(t, cfg)
		for _, item := range []string{"new", "000007", "001800"} {
			q := strategy.Query{Item: item}
			got, want := beliefs(t, some, q), beliefs(t, all, q)
			for i := range want {
				assert.InDelta(t, want[i].Mean(), got[i].Mean(), 0.05, "%v %s %d", pooling, item, i)
				if pooling == (strategy.TwoLevel{}) {
					assert.InEpsilon(t, want[i].Strength, got[i].Strength, 0.3)
					assert.InDelta(t, want[i].Successes+want[i].Failures, got[i].Successes+got[i].Failures,
						1e-9)
					assert.Less(t, got[i].Level.Alpha, want[i].Level.Alpha/2)
				}
			}
			if pooling == (strategy.Copy{}) {
				assert.Equal(t, want, got)
			}
		}
	}
}

// Outcomes of a new arm come for items outside of the sample, too, and the next load still knows of
// them.
func TestASampleKeepsWhatItsLearnerSaw(t *testing.T) {
	st := newStore(t, (&clock{}).Now)
	populate(t, st, 1000, 10, "a", "b")
	l := newLearner(t, strategy.Config{Store: st, Arms: plain("a", "b", "c"), Unrecorded: true,
		Exploration: strategy.Exploration{Bonus: 0.1, MinSamples: 1200}})
	strategy.SampleItems(l, 250)
	choose(t, l, strategy.Query{Item: "new"})
	for n := range 250 {
		try(t, l, strategy.Query{Item: fmt.Sprintf("%06d", n)}, "c", 1)
	}
	before := means(t, l, strategy.Query{Item: "new"})[2]
	require.Greater(t, before, 0.9)
	for range 2 {
		require.NoError(t, l.Refresh(ctx))
		assert.InDelta(t, before, means(t, l, strategy.Query{Item: "new"})[2], 0.02)
	}
	assert.Equal(t, []float64{0, 0, 0.1}, bonuses(choose(t, l, strategy.Query{Item: "new"})),
		"what is counted in the sample speaks for all")
}

// regret plays rounds for each item, in any order, and returns what the choices cost against the
// best arms. The world and the luck depend on the seed alone. The segment is read again ten times.
func regret(t testing.TB, st store.Store, c *clock, sample, items, rounds int, strength float64,
	seed uint64) (cost float64) {
	arms := plain("a", "b", "c", "d")
	l := newLearner(t, strategy.Config{Store: st, Arms: arms, Unrecorded: true, Now: c.Now,
		Seed: rand.NewPCG(seed, 1)})
	strategy.SampleItems(l, sample)
	rng, draws := rand.New(rand.NewPCG(seed, 2)), chance.Key{A: seed, B: 3}.Rand(0)
	rates := make([][4]float64, items)
	for arm := range arms {
		level := 0.2 + 0.6*rng.Float64()
		around := chance.Beta(strength*level, strength*(1-level))
		for i := range rates {
			rates[i][arm] = around.Draw(&draws)
		}
	}
	names := map[strategy.ArmID]int{"a": 0, "b": 1, "c": 2, "d": 3}
	for n := range items * rounds {
		if (n+1)%(items*rounds/10) == 0 {
			c.Advance(11 * time.Minute)
		}
		i := rng.IntN(items)
		made := choose(t, l, strategy.Query{Item: fmt.Sprintf("%06d", i)})
		rate := rates[i][names[made.Arm]]
		cost += max(rates[i][0], rates[i][1], rates[i][2], rates[i][3]) - rate
		value := -1.
		if rng.Float64() < rate {
			value = 1
		}
		credit(t, l, made, value)
	}
	return cost / float64(items)
}

// With paired seeds, the regret over all strengths is at most 5 % above that of a learner that
// reads all items. The short form has too few rounds to tell more than 30 %.
func TestASampleCostsNoRegret(t *testing.T) {
	items, sample, seeds, off, strengths := 400, 150, 1, 0.3, []float64{5}
	if long(0, 1) == 1 {
		items, sample, seeds, off, strengths = 20_000, 1_000, 1, 0.05, []float64{2, 10, 100}
	}
	var some, all float64
	for _, strength := range strengths {
		for seed := range seeds {
			c := &clock{}
			one := regret(t, newStore(t, c.Now), c, sample, items, 5, strength, uint64(seed))
			c = &clock{}
			other := regret(t, whole{newStore(t, c.Now)}, c, sample, items, 5, strength, uint64(seed))
			t.Logf("strength %v: regret %.4f for each item with a sample, %.4f with all items: %.3f",
				strength, one, other, one/other)
			some, all = some+one, all+other
		}
	}
	assert.LessOrEqual(t, some, all*(1+off))
}

//go:build !race

// The race detector makes this ten times slower, and it starts no goroutine.

package strategytest_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/partition"
)

// No lies that are found by climbing move what a learner believes further than the rule allows,
// under each pooling, with evidence that fades, and with a partition's cells as items. The controls
// leave out who speaks.
func TestLiesThatClimb(t *testing.T) {
	for _, pooling := range []strategy.Pooling{
		strategy.TwoLevel{}, strategy.Alone{}, strategy.Copy{}, strategy.Copy{Sessions: 1},
	} {
		t.Run(fmt.Sprintf("%T %+v", pooling, pooling), func(t *testing.T) {
			crowd{config: strategy.Config{Pooling: pooling}}.climb(t)
		})
	}
	t.Run("fading", func(t *testing.T) {
		crowd{config: strategy.Config{HalfLife: 24 * time.Hour}}.climb(t)
	})
	t.Run("a partition", func(t *testing.T) {
		crowd{item: cells(t)}.climb(t)
	})
	for _, pooling := range []strategy.Pooling{strategy.TwoLevel{}, strategy.Alone{}} {
		t.Run(fmt.Sprintf("control of %T", pooling), func(t *testing.T) {
			cfg := strategy.Config{Pooling: pooling}
			crowd{unnamed: true, config: cfg}.climb(t)
		})
	}
}

// Liars move what is expected for a vector as little as what is expected of an item: also if they
// make up vectors, or report what the linear level predicted.
func TestNobodyOwnsTheLinearLevel(t *testing.T) {
	vectors := make([][]float32, 23)
	for n := range vectors {
		vectors[n] = direction(rand.New(rand.NewPCG(uint64(n), 9)))
	}
	for _, unnamed := range []bool{false, true} {
		crowd{
			vector: func(n int) []float32 { return vectors[n] }, unnamed: unnamed,
		}.climb(t)
	}
}

// People who praise an arm on items of their own, alone or together, move what an item without
// evidence is believed to be no further than the rule allows, also if a crowd rated few items that
// differ.
func TestItemsOfOnesOwn(t *testing.T) {
	few, differ := []float64{0.2, 0.2, 0.2}, []float64{0.02, 0.5, 0.05}
	one := []float64{0, 0, 0, 1}
	for _, c := range []struct {
		people, liars, own int
		rates              []float64
	}{
		{40, 2, 5, few}, {40, 2, 20, few}, {40, 2, 100, few},
		{40, 2, 5, differ}, {40, 2, 20, differ}, {40, 2, 100, differ},
		{150, 5, 4, differ}, {150, 5, 1, one}, {150, 2, 1, one},
	} {
		st, err := memstore.New(memstore.Config{})
		require.NoError(t, err)
		l, err := strategy.New(t.Context(), strategy.Config{
			Store: st, Seed: rand.NewPCG(3, 4), Unrecorded: true,
			Arms: []strategy.Arm{{ID: "good"}, {ID: "bad"}},
		})
		require.NoError(t, err)
		report := func(who, item string, good bool) {
			c, err := l.Record(t.Context(), strategy.Query{Item: item}, "bad", 0)
			require.NoError(t, err)
			o := strategy.Outcome{Choice: c, Value: -1, Confidence: 1, Source: who}
			if good {
				o.Value = 1
			}
			_, err = l.Observe(t.Context(), o)
			require.NoError(t, err)
		}
		believed := func() float64 {
			beliefs, err := l.Beliefs(t.Context(), strategy.Query{Item: "new"})
			require.NoError(t, err)
			return beliefs[1].Mean()
		}
		luck := rand.New(rand.NewPCG(9, 9))
		for person := range c.people {
			for i, rate := range c.rates {
				report(fmt.Sprint("person ", person), fmt.Sprint("item ", i), luck.Float64() < rate)
			}
		}
		require.NoError(t, l.Refresh(t.Context()))
		before := believed()
		for n := range 100 * c.liars {
			report(fmt.Sprint("liar ", n%c.liars), fmt.Sprint("own ", n/c.liars%c.own), true)
		}
		k, n := float64(c.liars), float64(c.people)
		most := 2*k/(n+k) + k/n
		assert.LessOrEqual(t, believed()-before, 1.3*most, "%+v, until a refresh", c)
		require.NoError(t, l.Refresh(t.Context()))
		assert.LessOrEqual(t, believed()-before, most, "%+v", c)
	}
}

// direction draws a direction in 16 dimensions.
func direction(rng *rand.Rand) []float32 {
	x, sum := make([]float32, 16), 0.
	for i := range x {
		x[i] = float32(rng.NormFloat64())
		sum += float64(x[i]) * float64(x[i])
	}
	for i := range x {
		x[i] /= float32(math.Sqrt(sum))
	}
	return x
}

// cells names items by the cells of a partition, into which liars' texts fall, too.
func cells(t *testing.T) func(n int) string {
	p, err := partition.New(t.Context(), partition.Config{Store: &memstore.Store{}, Clusters: 3})
	require.NoError(t, err)
	vector := func(n int) []float32 {
		at := 2*math.Pi*float64(n%3)/3 + float64(n/3)/50
		return []float32{float32(math.Cos(at)), float32(math.Sin(at))}
	}
	for n := range 60 {
		_, err := p.Of(vector(n))
		require.NoError(t, err)
	}
	require.NoError(t, p.Sweep(t.Context(), time.Time{}))
	return func(n int) string {
		item, err := p.Of(vector(n))
		require.NoError(t, err)
		return item
	}
}

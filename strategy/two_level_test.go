//go:build !race

package strategy_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/chance"
	"github.com/heedhq/heed/internal/winner"
	"github.com/heedhq/heed/strategy"
)

// believeNew returns what a model believes of an item without evidence.
func believeNew(model strategy.Model, arms int) []evidence.Belief {
	beliefs := make([]evidence.Belief, arms)
	model.Believe(strategy.Item{Arms: make([]evidence.Sums, arms)}, beliefs)
	return beliefs
}

// coins adds up tosses of weight 1.
func coins(successes, failures int) evidence.Sums {
	n, s := float64(successes+failures), float64(successes)
	return evidence.Sums{Mass: n, Squares: n, Reward: s, RewardSquares: s}
}

func TestTwoLevelLearnsHowAlikeItemsAre(t *testing.T) {
	var alike, different, same, pairs []strategy.Item
	for i := range 60 {
		alike = append(alike, strategy.Item{Arms: []evidence.Sums{coins(28+i%5, 12-i%5)}})
		different = append(different, strategy.Item{Arms: []evidence.Sums{coins(39*(i%2), 39*(1-i%2))}})
		pairs = append(pairs, strategy.Item{Arms: []evidence.Sums{coins(2*(i%2), 2*(1-i%2))}})
		same = append(same, strategy.Item{Arms: []evidence.Sums{coins(1, 0)}})
	}
	segment := evenSegment(1)
	strength := func(items []strategy.Item) float64 {
		return believeNew(strategy.TwoLevel{}.Model(segment, items), 1)[0].Strength
	}
	nothing := strength(nil)
	assert.Greater(t, strength(alike), 300.)
	assert.Less(t, strength(different), 1.5)
	assert.Less(t, strength(pairs), nothing/2, "two outcomes of an item do")
	assert.Equal(t, nothing, strength(same), "single outcomes say nothing of how alike items are")

	beliefs := make([]evidence.Belief, 1)
	strategy.TwoLevel{}.Model(segment, alike).Believe(
		strategy.Item{Arms: []evidence.Sums{coins(0, 5)}}, beliefs)
	assert.InDelta(t, 0.75, beliefs[0].Mean(), 0.03, "five outcomes say little where items are alike")
	strategy.TwoLevel{}.Model(segment, different).Believe(
		strategy.Item{Arms: []evidence.Sums{coins(0, 5)}}, beliefs)
	assert.Less(t, beliefs[0].Mean(), 0.15, "and nearly all where they are not")
}

// Limits on people keep a part of what each says. The strength is learned as if all of it counted,
// and what a liar has left moves it no more than so many outcomes can.
func TestTwoLevelLearnsStrengthsWithinLimits(t *testing.T) {
	strength := func(items []strategy.Item) float64 {
		return believeNew(strategy.TwoLevel{}.Model(evenSegment(1), items), 1)[0].Strength
	}
	limited := func(s evidence.Sums, kept float64) evidence.Sums {
		return evidence.Sums{Mass: s.Mass * kept, Squares: s.Squares * kept, Reward: s.Reward * kept,
			RewardSquares: s.RewardSquares * kept, Limited: s.Mass * kept * (1 - kept)}
	}
	var items, some, fewer, lies, unlimited, honest []strategy.Item
	for i := range 200 {
		all := coins(2+8*(i%2), 10-8*(i%2))
		some = append(some, strategy.Item{Arms: []evidence.Sums{limited(all, 0.3)}})
		items = append(items, strategy.Item{Arms: []evidence.Sums{all}})
		all = limited(all, 0.3)
		all.Limited = 0
		fewer = append(fewer, strategy.Item{Arms: []evidence.Sums{all}})
	}
	assert.InDelta(t, 1, strength(some)/strength(items), 0.05)
	assert.Greater(t, strength(fewer), 1.2*strength(items), "a control")

	for i := range 60 {
		honest = append(honest, strategy.Item{Arms: []evidence.Sums{coins(28+i%5, 12-i%5)}})
	}
	lies, unlimited = append(lies, honest...), append(unlimited, honest...)
	for i := range 100 { // made up, and each with a hundred outcomes that are all alike
		lie := coins(100*(i%2), 100*(1-i%2))
		lies = append(lies, strategy.Item{Arms: []evidence.Sums{limited(lie, 0.0003)}})
		unlimited = append(unlimited, strategy.Item{Arms: []evidence.Sums{lie}})
	}
	assert.Greater(t, strength(lies), strength(honest)/4, "a mass of 3 in all")
	assert.Less(t, strength(unlimited), 3., "a control")
}

// One arm does equally well everywhere, and the other for half of the items. Where all arms are
// alike, they have one strength.
func TestTwoLevelLetsArmsDifferInHowAlikeItemsAre(t *testing.T) {
	var mixed, alike []strategy.Item
	for i := range 30 {
		mixed = append(mixed, strategy.Item{Arms: []evidence.Sums{coins(36+i%3, 4-i%3),
			coins(8+28*(i%2), 32-28*(i%2))}})
		alike = append(alike, strategy.Item{Arms: []evidence.Sums{coins(36+i%3, 4-i%3),
			coins(19+i%3, 21-i%3)}})
	}
	b := believeNew(strategy.TwoLevel{}.Model(evenSegment(2), mixed), 2)
	assert.Greater(t, b[0].Strength, 100.)
	assert.Less(t, b[1].Strength, 6.)
	b = believeNew(strategy.TwoLevel{}.Model(evenSegment(2), alike), 2)
	assert.InDelta(t, 1, b[0].Strength/b[1].Strength, 0.1)
}

// TestTwoLevelStartsANewItemWhereItsSegmentIs, through the learner: from the first choice on.
func TestTwoLevelStartsANewItemWhereItsSegmentIs(t *testing.T) {
	l := newLearner(t, strategy.Config{})
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range 40 {
		for range 15 {
			for arm, rate := range map[strategy.ArmID]float64{"a": 0.8, "b": 0.3} {
				value := -1.
				if rng.Float64() < rate {
					value = 1
				}
				try(t, l, strategy.Query{Item: fmt.Sprint(i)}, arm, value)
			}
		}
	}
	q := strategy.Query{Item: "new"}
	mean := means(t, l, q)
	assert.InDelta(t, 0.8, mean[0], 0.05)
	assert.InDelta(t, 0.3, mean[1], 0.05)
	assert.Equal(t, 0.5, mean[2])
	for _, b := range beliefs(t, l, q)[:2] {
		assert.Greater(t, b.Strength, 30.)
	}
	try(t, l, q, "a", -1)
	assert.InDelta(t, 0.8, means(t, l, q)[0], 0.07,
		"one failure does not undo what the others have shown")
}

// TestTwoLevelLetsItemsGoTheirOwnWay where they differ: half the items need the other arm.
func TestTwoLevelLetsItemsGoTheirOwnWay(t *testing.T) {
	l := newLearner(t, strategy.Config{Arms: plain("a", "b")})
	value := func(item int, arm strategy.ArmID) float64 {
		if (item%2 == 0) == (arm == "a") {
			return 1
		}
		return -1
	}
	right := 0
	for round := range 30 {
		for item := range 20 {
			c := choose(t, l, strategy.Query{Item: fmt.Sprint(item)})
			v := value(item, c.Arm)
			credit(t, l, c, v)
			if round >= 20 && v > 0 {
				right++
			}
		}
	}
	assert.Greater(t, right, 190, "of 200")
	assert.Less(t, beliefs(t, l, strategy.Query{Item: "new"})[0].Strength, 3.)
}

// sumsOf draws what an item may have shown on an arm: outcomes of any weight that the learner
// accepts.
func sumsOf(t *rapid.T) (s evidence.Sums) {
	for range rapid.IntRange(0, 12).Draw(t, "outcomes") {
		w, r := rapid.Float64Range(0.3, 1).Draw(t, "weight"), rapid.Float64Range(0, 1).Draw(t, "reward")
		s = s.Plus(evidence.Sums{Mass: w, Squares: w * w, Reward: w * r, RewardSquares: w * r * r})
	}
	return s
}

// TestModelsDoNotDependOnTheOrderOfItems, but for rounding.
func TestModelsDoNotDependOnTheOrderOfItems(t *testing.T) {
	const arms = 3
	rapid.Check(t, func(t *rapid.T) {
		items := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) strategy.Item {
			return strategy.Item{Arms: []evidence.Sums{sumsOf(t), sumsOf(t), sumsOf(t)}}
		}), 0, 12).Draw(t, "items")
		shuffled := rapid.Permutation(items).Draw(t, "shuffled")
		for _, pooling := range poolings {
			one, two := pooling.Model(evenSegment(arms), items),
				pooling.Model(evenSegment(arms), shuffled)
			for _, item := range append(items, strategy.Item{Arms: make([]evidence.Sums, arms)}) {
				a, b := make([]evidence.Belief, arms), make([]evidence.Belief, arms)
				one.Believe(item, a)
				two.Believe(item, b)
				for i := range a {
					for _, x := range [][2]float64{
						{a[i].Level.Alpha, b[i].Level.Alpha}, {a[i].Level.Beta, b[i].Level.Beta},
						{a[i].Strength, b[i].Strength}, {a[i].Mean(), b[i].Mean()},
					} {
						if math.Abs(x[0]-x[1]) > 1e-9*(1+math.Abs(x[0])) {
							t.Fatalf("%v: %+v and %+v", pooling, a[i], b[i])
						}
					}
				}
			}
		}
	})
}

// Updated models of Copy and Alone agree with new ones to within rounding. TwoLevel's levels agree
// to within 0.02, as its strength comes of predictions that were made when less was known.
func TestModelsUpdatedAreModelsMadeAnew(t *testing.T) {
	const arms = 4
	for _, pooling := range poolings {
		for _, strength := range []float64{1, 2, 10, 100} {
			for seed := range uint64(5) {
				t.Run(fmt.Sprintf("%v/strength=%v/%d", pooling, strength, seed), func(t *testing.T) {
					rng := rand.New(rand.NewPCG(seed, 9))
					w := newWorld(pooling, 50, arms, seed)
					rates := itemRates(50, arms, strength, rng)
					for range 1500 {
						item, arm := rng.IntN(50), rng.IntN(arms)
						reward := 0.
						if rng.Float64() < rates[item][arm] {
							reward = 1
						}
						w.observe(item, arm, reward, 1)
					}
					tolerance := 1e-9
					if pooling == (strategy.TwoLevel{}) {
						tolerance = 0.02
					}
					kept := believeNew(w.model, arms)
					anew := believeNew(pooling.Model(evenSegment(arms), w.items), arms)
					for i := range kept {
						assert.InDelta(t, anew[i].Level.Mean(), kept[i].Level.Mean(), tolerance)
					}
				})
			}
		}
	}
}

// concentrated is the concentration of the draws of an item that follows its level and lies around
// it, by the variances of both. The level's evidence counts up to crowded times, and the item's own
// sharpness times. Draws of a level without outcomes are not sharpened.
func concentrated(b evidence.Belief, n, crowded, sharpness float64) float64 {
	level, total := b.Level.Mean(), b.Level.Alpha+b.Level.Beta
	if n < 1 {
		return 0
	}
	total *= 1 + (crowded-1)*n/(n+30)
	own := b.Strength + b.Successes + b.Failures
	if b.Successes+b.Failures == 0 && sharpness == 0 {
		return total
	}
	mean := (b.Strength*level + b.Successes) / own
	variance := math.Pow(b.Strength/own, 2)*level*(1-level)/(total+1) +
		mean*(1-mean)/(sharpness*own+1)
	return mean*(1-mean)/variance - 1
}

// TestTwoLevelDrawsTheLevelAloneOfANewItem, and the item's own rate once it has any evidence, on
// whichever arm.
func TestTwoLevelDrawsTheLevelAloneOfANewItem(t *testing.T) {
	l := newLearner(t, strategy.Config{})
	q := strategy.Query{Item: "i"}
	teach(t, l, q, 5)
	for _, b := range beliefs(t, l, q) {
		assert.Equal(t, b.Level.Mean(), b.Mean())
		assert.InDelta(t, concentrated(b, b.Level.Alpha+b.Level.Beta-2, 1.5, 0), b.Concentration, 1e-9)
	}
	try(t, l, q, "c", 1)
	for i, b := range beliefs(t, l, q) {
		want := concentrated(b, b.Level.Alpha+b.Level.Beta-2, 1.5, 8*1.5)
		assert.InDelta(t, want, b.Concentration, 1e-9, "there are four arms")
		assert.Equal(t, []float64{0, 0, 1, 0}[i], b.Successes)
		assert.Zero(t, b.Failures)
	}
}

// TestTwoLevelIsSharperForAnItem, however much of the evidence is its own, until it has almost all.
func TestTwoLevelIsSharperForAnItem(t *testing.T) {
	for _, test := range []struct{ own, others int }{{10, 10}, {10, 990}, {89, 11}, {1, 999_999}} {
		all := []strategy.Item{{Arms: []evidence.Sums{coins(test.own, 0), {}}},
			{Arms: []evidence.Sums{coins(0, test.others), {}}}}
		b := make([]evidence.Belief, 2)
		strategy.TwoLevel{}.Model(evenSegment(2), all).Believe(all[0], b)
		want := concentrated(b[0], b[0].Level.Alpha+b[0].Level.Beta-2, 1, 8)
		assert.InEpsilon(t, want, b[0].Concentration, 1e-4, test)
	}
}

// TestTwoLevelOfOneItemIsThompsonSampling: its draws follow from the prior and the outcomes, and
// are sharper if there are many arms, but not of an arm with few outcomes.
func TestTwoLevelOfOneItemIsThompsonSampling(t *testing.T) {
	for _, arms := range []int{2, 8, 32} {
		item := strategy.Item{Arms: make([]evidence.Sums, arms)}
		item.Arms[0], item.Arms[1] = coins(60, 30), coins(1, 0)
		b := make([]evidence.Belief, arms)
		strategy.TwoLevel{}.Model(evenSegment(arms), []strategy.Item{item}).Believe(item, b)
		for i, posterior := range []evidence.Beta{{Alpha: 61, Beta: 31}, {Alpha: 2, Beta: 1}} {
			assert.InDelta(t, posterior.Mean(), b[i].Mean(), 1e-9)
			low, high := posterior.Interval(0.9)
			gotLow, gotHigh := b[i].Interval(0.9)
			assert.InDelta(t, low, gotLow, 0.02)
			assert.InDelta(t, high, gotHigh, 0.02)
		}
		more := math.Log2(float64(arms)/2) / 2
		for i, part := range []float64{90. / 120, 1. / 31, 0} {
			if i < arms {
				total := b[i].Level.Alpha + b[i].Level.Beta
				assert.InDelta(t, total*(1+more*part), cmp.Or(b[i].Concentration, total), 1e-9)
			}
		}
		rng := chance.Rand{State: 1}
		for range 100 {
			assert.GreaterOrEqual(t, winner.Draw(&b[0], &rng), b[0].Mean()-1e-3)
		}
	}
}

// Limits on people leave the only item and its segment sums that differ a little.
func TestTheOnlyItemIsAloneWithinLimitsOnPeople(t *testing.T) {
	l := newLearner(t, strategy.Config{Arms: plain("a", "b")})
	rng := rand.New(rand.NewPCG(4, 4))
	for i := range 400 {
		u := rng.Float64()
		c := choose(t, l, strategy.Query{})
		_, err := l.Observe(ctx, strategy.Outcome{Choice: c, Value: 1 - 2*float64(i%2), Confidence: 1,
			Source: fmt.Sprint("user ", int(100*u*u))})
		require.NoError(t, err)
		for _, b := range beliefs(t, l, strategy.Query{}) {
			require.Zero(t, b.Strength, "outcome %d: the item has a level and a rate", i)
		}
	}
}

// TestTwoLevelIntervalsHold where little is known of the strength: of 240 true rates, 480 in the
// long form, 90 % should be in their 90 % intervals. Rates of one segment share their level, so the
// bound is lower. With the strength treated as known, 77 % were.
func TestTwoLevelIntervalsHold(t *testing.T) {
	const items, arms = 20, 4
	runs := long(20, 40)
	held, asked := 0., 0.
	for run := range uint64(runs) {
		rng := rand.New(rand.NewPCG(run, items))
		w := newWorld(strategy.TwoLevel{}, items, arms, run)
		rates := itemRates(items, arms, 10, rng)
		for range 10 * items {
			item, arm := rng.IntN(items), rng.IntN(arms)
			w.observe(item, arm, coin(rates[item][arm], rng), 1)
		}
		for item := range 3 {
			w.model.Believe(w.items[item], w.beliefs)
			for arm, b := range w.beliefs {
				low, high := b.Interval(0.9)
				if asked++; low <= rates[item][arm] && rates[item][arm] <= high {
					held++
				}
			}
		}
	}
	t.Logf("%.3f", held/asked)
	assert.Greater(t, held/asked, 0.85)
	assert.Less(t, held/asked, 0.95)
}

// TestTwoLevelFindsAStrengthBetweenItsCandidates, which are 1, 3, 10 and so on, and says how sure
// it is.
func TestTwoLevelFindsAStrengthBetweenItsCandidates(t *testing.T) {
	var last float64
	for _, items := range []int{20, 100, 1000} {
		rng := rand.New(rand.NewPCG(5, 5))
		all := make([]strategy.Item, items)
		for i := range all {
			for range 4 {
				n, rate := 20, draw(evidence.Beta{Alpha: 3, Beta: 3}, rng)
				good := 0
				for range n {
					good += int(coin(rate, rng))
				}
				all[i].Arms = append(all[i].Arms, coins(good, n-good))
			}
		}
		b := believeNew(strategy.TwoLevel{}.Model(evenSegment(4), all), 4)[0]
		assert.Less(t, math.Abs(math.Log(b.Strength/6)), 3*b.Doubt, "%d items: %v, and its doubt is %v",
			items, b.Strength, b.Doubt)
		last = b.Doubt
	}
	assert.Less(t, last, 0.2, "of a thousand items")
}

// The first outcome of an item says nothing of how alike items are, also if it comes later.
func TestAFirstOutcomeLeavesTheStrength(t *testing.T) {
	segment := evenSegment(1)
	model := strategy.TwoLevel{}.Model(segment, nil)
	before := believeNew(model, 1)[0].Strength
	for i := range 5 {
		model.Update(0, evidence.Sums{}, coins(1-i%2, i%2))
		assert.InEpsilon(t, before, believeNew(model, 1)[0].Strength, 1e-9)
	}
	model.Update(0, coins(1, 0), coins(2, 0))
	assert.Less(t, believeNew(model, 1)[0].Strength, before, "a second one does")
}

// It does not where other items have many outcomes, either.
func TestAFirstOutcomeOfOneMoreItemLeavesTheStrength(t *testing.T) {
	var items []strategy.Item
	for i := range 9 {
		items = append(items, strategy.Item{Arms: []evidence.Sums{coins(i, 2*i)}})
	}
	model := strategy.TwoLevel{}.Model(evenSegment(1), items)
	before := believeNew(model, 1)[0].Strength
	model.Update(0, evidence.Sums{}, coins(1, 0))
	assert.InEpsilon(t, before, believeNew(model, 1)[0].Strength, 1e-12)
}

// With good and bad exchanged in all outcomes, all beliefs are the mirror images, also those that
// follow from outcomes one by one.
func TestTwoLevelHasNoBias(t *testing.T) {
	cfg := strategy.Config{Arms: plain("a", "b"), Refresh: 1000 * time.Hour}
	one, mirror := newLearner(t, cfg), newLearner(t, cfg)
	rng := rand.New(rand.NewPCG(3, 5))
	for n := range 120 {
		q, arm, value := strategy.Query{Item: fmt.Sprint(n % 6)}, cfg.Arms[n%2].ID, 1.
		if rng.IntN(7) <= n%6 {
			value = -1
		}
		try(t, one, q, arm, value)
		try(t, mirror, q, arm, -value)
	}
	for _, item := range []string{"0", "3", "5", "new"} {
		got := means(t, mirror, strategy.Query{Item: item})
		for i, mean := range means(t, one, strategy.Query{Item: item}) {
			assert.InDelta(t, 1-mean, got[i], 1e-9, item)
		}
	}
}

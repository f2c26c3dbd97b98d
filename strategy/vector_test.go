//go:build !race

package strategy_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
	"github.com/heedhq/heed/strategy"
)

// unitVector draws a direction.
func unitVector(rng *rand.Rand, numbers int) []float32 {
	v, squares := make([]float32, numbers), 0.
	for i := range v {
		v[i] = float32(rng.NormFloat64())
		squares += float64(v[i]) * float64(v[i])
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(squares))
	}
	return v
}

// A vectorWorld has requests with vectors. The rate of each arm is its level, and more along its
// direction.
type vectorWorld struct {
	rng        *rand.Rand
	levels     []float64
	directions [][]float32
	slope      float64
}

func newVectorWorld(seed uint64, slope float64) *vectorWorld {
	w := &vectorWorld{rng: rand.New(rand.NewPCG(seed, 7)), slope: slope}
	for range 4 {
		level := 0.5
		if slope == 0 {
			level = 0.3 + 0.6*w.rng.Float64()
		}
		w.levels = append(w.levels, level)
		w.directions = append(w.directions, unitVector(w.rng, 16))
	}
	return w
}

func (w *vectorWorld) rate(arm int, x []float32) float64 {
	along := 0.
	for i, v := range x {
		along += float64(v) * float64(w.directions[arm][i])
	}
	return min(max(w.levels[arm]+w.slope*along, 0.02), 0.98)
}

// play lets a learner choose for requests, and returns its regret. Without sight the learner gets
// no vectors.
func (w *vectorWorld) play(
	t testing.TB, l *strategy.Learner, requests int, sight bool,
) (regret float64) {
	for range requests {
		x, luck := unitVector(w.rng, 16), w.rng.Float64()
		var q strategy.Query
		if sight {
			q.Vector = x
		}
		c := choose(t, l, q)
		best := 0.
		for arm := range w.levels {
			best = max(best, w.rate(arm, x))
		}
		rate := w.rate(int(c.Arm[0]-'a'), x)
		regret += best - rate
		value := -1.
		if luck < rate {
			value = 1
		}
		credit(t, l, c, value)
	}
	return regret
}

// newLight returns a learner over a store without history.
func newLight(t testing.TB, seed uint64) *strategy.Learner {
	c := &clock{}
	st, err := memstore.New(memstore.Config{Now: c.Now, Retention: store.Retention{NoHistory: true}})
	require.NoError(t, err)
	return newLearner(t, strategy.Config{Now: c.Now, Store: st, Seed: rand.NewPCG(seed, 2)})
}

// Where the best arm is linear in the vector, the regret is less than half of the regret without
// it. Where it does not depend on the vector, the vector costs little: here on the average of few
// runs, in docs/studies/board.md of many.
func TestAVectorIsUsedAsFarAsItHelps(t *testing.T) {
	for _, of := range []struct {
		slope, most float64
	}{{1, 0.55}, {0, 1.35}} {
		blind, sighted := 0., 0.
		for seed := range uint64(4) {
			blind += newVectorWorld(seed, of.slope).play(t, newLight(t, seed), 600, false)
			sighted += newVectorWorld(seed, of.slope).play(t, newLight(t, seed), 600, true)
		}
		t.Logf("slope %v: %.1f without the vector, %.1f with it", of.slope, blind, sighted)
		assert.Less(t, sighted/blind, of.most, "slope %v", of.slope)
	}
}

// Outcomes of an arm that is no longer configured teach the linear level nothing about others.
func TestAnArmThatIsGoneTeachesNoOther(t *testing.T) {
	cfg := withFixtures(t, strategy.Config{Arms: plain("a", "b"), Seed: rand.NewPCG(3, 4)})
	l, rng := newLearner(t, cfg), rand.New(rand.NewPCG(5, 6))
	for range 60 {
		c := choose(t, l, strategy.Query{Vector: unitVector(rng, 4)})
		credit(t, l, c, map[strategy.ArmID]float64{"a": 0.5, "b": -1}[c.Arm])
	}
	before := linearOf(t, l, unitVector(rng, 4))
	cfg.Arms = plain("a", "c")
	after := linearOf(t, newLearner(t, cfg), unitVector(rng, 4))
	assert.InDelta(t, before[0], after[0], 0.005)
}

// The propensity is the frequency with which an arm is chosen, and the propensities of all arms sum
// to 1.
func TestPropensitiesWithAVector(t *testing.T) {
	l := newLight(t, 1)
	w := newVectorWorld(1, 1)
	w.play(t, l, 60, true)
	x := unitVector(w.rng, 16)
	for _, arms := range [][]strategy.ArmID{nil, {"c", "a"}} {
		propensities, shares := make(map[strategy.ArmID]float64), make(map[strategy.ArmID]float64)
		const n = 4000
		for range n {
			c := choose(t, l, strategy.Query{Vector: x, Arms: arms, Frozen: true})
			shares[c.Arm] += 1. / n
			if propensities[c.Arm] == 0 {
				propensities[c.Arm] = c.Propensity()
			}
		}
		weight := linearOf(t, l, x)[8]
		assert.Greater(t, weight, 0.05)
		assert.Less(t, weight, 0.95, "the test needs both levels")
		sum := 0.
		for arm, p := range propensities {
			sum += p
			assert.InDelta(t, p, shares[arm], 4*math.Sqrt(p*(1-p)/n)+1e-9, arm)
		}
		assert.InDelta(t, 1, sum, 0.003) // an arm may never have been chosen
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for range 50 {
		draws, sum := make([]answer.Draw, 2+rng.IntN(6)), 0.
		for i := range draws {
			draws[i].Arm = strategy.ArmID(fmt.Sprint(i))
			draws[i].Mean, draws[i].Bonus = rng.NormFloat64()/3, float64(rng.IntN(2))/10
			draws[i].Deviation = math.Exp(-9 * rng.Float64())
		}
		for _, d := range draws {
			sum += strategy.GreatestNormal(draws, d.Arm)
		}
		assert.InDelta(t, 1, sum, 1e-6)
	}
}

// Another process finds the same linear level in the records, whatever the order of outcomes.
func TestProcessesAgreeOnVectors(t *testing.T) {
	for _, half := range []time.Duration{0, time.Hour} {
		c := &clock{}
		cfg := withFixtures(t, strategy.Config{Now: c.Now, HalfLife: half})
		one, other := newLearner(t, cfg), newLearner(t, cfg)
		w := newVectorWorld(3, 1)
		for range 10 {
			w.play(t, one, 6, true)
			w.play(t, other, 6, true)
			c.Advance(2 * time.Minute)
		}
		require.NoError(t, one.Refresh(ctx))
		require.NoError(t, other.Refresh(ctx))
		x := unitVector(w.rng, 16)
		assert.InDeltaSlice(t, linearOf(t, one, x), linearOf(t, other, x), 1e-6)
		assert.InDeltaSlice(t, linearOf(t, one, x), linearOf(t, newLearner(t, cfg), x), 1e-6)
	}
}

// What is learned at once is what a later look at the records gives. An outcome that is taken back,
// of a source that is expunged or of a segment that is reset leaves no trace.
func TestVectorsForget(t *testing.T) {
	x := unitVector(rand.New(rand.NewPCG(1, 9)), 16)
	for name, undo := range map[string]func(l *strategy.Learner, c strategy.Choice) error{
		"retract": func(l *strategy.Learner, c strategy.Choice) error {
			return l.Retract(ctx, c, []string{""}, "", "wrong")
		},
		"expunge": func(l *strategy.Learner, _ strategy.Choice) error {
			err := store.Run(ctx, l.Config().Store, store.Job{Expunge: []string{"eve"}, At: start})
			return cmp.Or(err, l.Refresh(ctx))
		},
	} {
		l := newLearner(t, strategy.Config{})
		w := newVectorWorld(5, 1)
		w.play(t, l, 40, true)
		require.NoError(t, l.Refresh(ctx))
		before := linearOf(t, l, x)
		c := choose(t, l, strategy.Query{Vector: x})
		_, err := l.Observe(ctx, strategy.Outcome{Choice: c, Value: 1, Confidence: 1, Source: "eve"})
		require.NoError(t, err)
		with := linearOf(t, l, x)
		assert.NotEqual(t, before, with, name)
		require.NoError(t, l.Refresh(ctx))
		assert.InDeltaSlice(t, with, linearOf(t, l, x), 0.02, name)
		require.NoError(t, undo(l, c), name)
		assert.InDeltaSlice(t, before, linearOf(t, l, x), 1e-6, name)
		require.NoError(t, l.Reset(ctx, strategy.Reset{Reason: "another model"}), name)
		after := linearOf(t, l, x)
		assert.InDelta(t, 0.5, after[0], 1e-9, name)
		assert.InDelta(t, 0.1, after[8], 1e-9, name)
	}
}

// Expunged outcomes of a person or an instrument do not count again if the source reports another
// outcome.
func TestExpungedOutcomesStayAway(t *testing.T) {
	x := unitVector(rand.New(rand.NewPCG(1, 9)), 16)
	learned := func(source string, lies int, expunge store.Job) []float64 {
		c := &clock{}
		st := newStore(t, c.Now)
		l := newLearner(t, strategy.Config{
			Now: c.Now, Store: st, IgnoreChanges: true,
			Trust: evidence.Trust{Instruments: []string{"ci"}},
		})
		newVectorWorld(5, 1).play(t, l, 40, true)
		say := func(arm strategy.ArmID, id string) {
			q := strategy.Query{Vector: x, Arms: []strategy.ArmID{arm}}
			_, err := l.Observe(ctx, strategy.Outcome{
				Choice: choose(t, l, q), Value: 1, Confidence: 1, Source: source, ID: id,
			})
			require.NoError(t, err)
		}
		for n := range lies {
			say("b", fmt.Sprint(n))
		}
		if lies > 0 {
			require.NoError(t, store.Run(ctx, st, expunge))
		}
		require.NoError(t, l.Refresh(ctx))
		say("a", "again")
		require.NoError(t, l.Refresh(ctx))
		return linearOf(t, l, x)
	}
	for _, source := range []string{"eve", "ci"} {
		without := learned(source, 0, store.Job{})
		for name, job := range map[string]store.Job{
			"expunge": {Expunge: []string{source}}, "forget": {Forget: []string{source}},
		} {
			assert.InDeltaSlice(t, without, learned(source, 50, job), 1e-6, "%s %s", name, source)
		}
	}
}

// Vectors longer than the level's are reduced, and angles stay about the same. Unrecorded choices
// use no vector, and neither do vectors of another length, or without a direction.
func TestVectorsAreReduced(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		a, b := unitVector(rng, 768), unitVector(rng, 768)
		for i := range b {
			b[i] = (a[i] + b[i]) / 2
		}
		cos := func(a, b []float32) (c float64) {
			aa, bb := 0., 0.
			for i := range a {
				c += float64(a[i]) * float64(b[i])
				aa, bb = aa+float64(a[i])*float64(a[i]), bb+float64(b[i])*float64(b[i])
			}
			return c / math.Sqrt(aa*bb)
		}
		short, other := strategy.Direction(a), strategy.Direction(b)
		assert.Len(t, short, 32)
		assert.Equal(t, short, strategy.Direction(a))
		assert.InDelta(t, cos(a, b), cos(short, other), 0.35)
	}
	// Stored vectors were made with these signs, so they must never change.
	var signs string
	for _, d := range strategy.Direction(append(make([]float32, 40), 1)) {
		signs += strconv.Itoa(int(math.Copysign(1, float64(d))))
		assert.InDelta(t, 1/math.Sqrt(32), math.Abs(float64(d)), 1e-6)
	}
	assert.Equal(t, "111-1-111-11-1-111-1-111-11-1-11-1-111-1111-1-1", signs)
	l := newLearner(t, strategy.Config{})
	linearOf(t, l, unitVector(rng, 16))
	assert.Nil(t, choose(t, l, strategy.Query{Vector: make([]float32, 16)}).Record().Linear)
	assert.Zero(t, choose(t, l, strategy.Query{Vector: unitVector(rng, 8)}).Record().Linear.Weight)
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, v := range [][]float32{{nan}, {inf}, make([]float32, 1<<17)} {
		_, err := l.Select(ctx, strategy.Query{Vector: v})
		assert.ErrorContains(t, err, "Vector")
	}
	unrecorded := newLearner(t, strategy.Config{Unrecorded: true})
	assert.Nil(t, choose(t, unrecorded, strategy.Query{Vector: unitVector(rng, 16)}).Record().Linear)
}

// A store that fails at any call of a load costs no outcome: the next load finds all.
func TestVectorsSurviveTheStore(t *testing.T) {
	c := &clock{}
	failing := &storetest.Failing{Store: newStore(t, c.Now)}
	cfg := withFixtures(t, strategy.Config{Now: c.Now, Store: failing})
	w := newVectorWorld(3, 1)
	first := newLearner(t, cfg)
	w.play(t, first, 30, true)
	require.NoError(t, first.Reset(ctx, strategy.Reset{Reason: "another model"}))
	w.play(t, first, 30, true)
	x := unitVector(w.rng, 16)
	want := linearOf(t, newLearner(t, cfg), x)
	failed := 0
	storetest.FailEach(func(at int, after bool) bool {
		l := newLearner(t, cfg)
		failing.Fail(at, after)
		_, err := l.Select(ctx, strategy.Query{Vector: x, Frozen: true})
		did := failing.Failed()
		failing.Fail(0, false)
		if err != nil {
			failed++
		}
		assert.InDeltaSlice(t, want, linearOf(t, l, x), 1e-6, "call %d", at)
		return did
	})
	assert.GreaterOrEqual(t, failed, 3, "the cells, the resets and the records are read")
}

// The greatest and the smallest numbers have a direction, too.
func TestVectorsOfAnySize(t *testing.T) {
	for _, numbers := range []int{1, 3, 32, 33, 1000} {
		for _, v := range []float32{math.MaxFloat32, math.SmallestNonzeroFloat32} {
			x, squares := make([]float32, numbers), 0.
			for i := range x {
				x[i] = v
			}
			for _, d := range strategy.Direction(x) {
				squares += float64(d) * float64(d)
			}
			assert.InDelta(t, 1, squares, 1e-6, "%d times %v", numbers, v)
		}
	}
}

// An outcome of a clock that was ahead counts as one, for this process and for others, also if the
// outcome came before the clock's jump was seen by a load.
func TestVectorsWithAClockThatJumps(t *testing.T) {
	for _, jump := range []time.Duration{24 * time.Hour, 365 * 24 * time.Hour} {
		c := &clock{}
		cfg := withFixtures(t, strategy.Config{Now: c.Now, HalfLife: time.Hour})
		l := newLearner(t, cfg)
		w := newVectorWorld(3, 1)
		w.play(t, l, 20, true)
		x := unitVector(w.rng, 16)
		before := linearOf(t, l, x)
		ahead := choose(t, l, strategy.Query{Vector: x, Arms: []strategy.ArmID{"c"}})
		c.Advance(jump)
		credit(t, l, ahead, 1)
		c.Advance(-jump)
		for _, l := range []*strategy.Learner{l, newLearner(t, cfg)} {
			after := linearOf(t, l, x)
			assert.InDelta(t, before[0], after[0], 0.05, "another arm, after %v", jump)
			assert.Greater(t, after[4], before[4])
			assert.Greater(t, after[8], 0.)
		}
	}
}

// Outcomes from before the reset of an item do not count, also if the item has others since that
// have no vector.
func TestVectorsFromBeforeAReset(t *testing.T) {
	cfg, x := withFixtures(t, strategy.Config{Arms: plain("a", "b")}), []float32{1, 2}
	l := newLearner(t, cfg)
	try(t, l, strategy.Query{}, "a", 1)
	require.NoError(t, l.Reset(ctx, strategy.Reset{Reason: "of all items"}))
	for range 5 {
		try(t, l, strategy.Query{Item: "i", Vector: x}, "a", 1)
		try(t, l, strategy.Query{Item: "j", Vector: x}, "b", 1)
	}
	require.NoError(t, l.Reset(ctx, strategy.Reset{Item: "i", Reason: "another model"}))
	for range 5 {
		try(t, l, strategy.Query{Item: "i"}, "a", 1)
	}
	of := linearOf(t, newLearner(t, cfg), x)
	assert.InDelta(t, 0.5, of[0], 1e-9)
	assert.Greater(t, of[2], 0.6, "the other item was not reset")
}

// A number that is not finite would spread to all sums, so a record that has one has no vector.
func TestAStoredVectorMustBeFinite(t *testing.T) {
	x := []float32{1, -0.5}
	assert.Equal(t, x, strategy.Unpacked(strategy.Packed(x)))
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		assert.Nil(t, strategy.Unpacked(strategy.Packed([]float32{1, float32(v)})), v)
	}
}

// What an item earns more than its segment, whatever the request, is left out of what the vector
// has to explain.
func TestAnItemsOwnPartIsNotTheVectors(t *testing.T) {
	l := newLearner(t, strategy.Config{Arms: plain("a", "b")})
	for n := range 60 {
		try(t, l, strategy.Query{Item: fmt.Sprint(n % 6)}, "a", float64(1-2*(n%6/3)))
	}
	x := unitVector(rand.New(rand.NewPCG(1, 9)), 4)
	for _, item := range []string{"0", "5", "new"} {
		q := strategy.Query{Item: item, Arms: []strategy.ArmID{"a"}, Vector: x}
		above := choose(t, l, q).Record().Linear.Above
		own, level := means(t, l, q)[0], means(t, l, strategy.Query{Item: "new"})[0]
		assert.InDelta(t, own-level, above, 1e-9, item)
	}
}

// Silence about a request with a vector is the worst outcome, whatever Config.Reward makes of
// outcomes: for the process that counts it, and for another process, which reads it later.
func TestSilenceAboutAVector(t *testing.T) {
	for name, reward := range map[string]func(strategy.Outcome) float64{
		"values": nil, "all is well": func(strategy.Outcome) float64 { return 1 },
	} {
		cfg, c := recording(t, strategy.Config{
			Silence: strategy.Silence{Confidence: 0.5}, Reward: reward, Arms: plain("a", "b"),
			Refresh: 1000 * time.Hour,
		})
		l, x := newLearner(t, cfg), []float32{1, 2}
		for range 5 {
			choose(t, l, strategy.Query{Vector: x, Arms: []strategy.ArmID{"a"}})
		}
		c.Advance(25 * time.Hour)
		require.Equal(t, 5, sweep(t, l))
		counted := linearOf(t, l, x)
		assert.Less(t, counted[0], 0.4, name)
		assert.InDeltaSlice(t, counted, linearOf(t, newLearner(t, cfg), x), 0.02, name)
	}
}

// After resets of a segment and of its items, later requests teach again, also another process.
func TestVectorsLearnAfterResets(t *testing.T) {
	cfg, x := withFixtures(t, strategy.Config{Arms: plain("a", "b")}), []float32{1, 2}
	l, q := newLearner(t, cfg), strategy.Query{Item: "i", Vector: x}
	for _, item := range []string{"", "i", ""} {
		for range 5 {
			try(t, l, q, "a", 1)
		}
		learned := linearOf(t, l, x)
		assert.Greater(t, learned[0], 0.6, item)
		assert.InDeltaSlice(t, learned, linearOf(t, newLearner(t, cfg), x), 0.02, item)
		require.NoError(t, l.Reset(ctx, strategy.Reset{Item: item, Reason: "another model"}), item)
		assert.InDelta(t, 0.5, linearOf(t, newLearner(t, cfg), x)[0], 1e-9, item)
	}
}

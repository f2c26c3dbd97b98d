package board

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/lab/internal/kit"
	"github.com/heedhq/heed/strategy"
)

// easy is a world with a good arm and a bad one.
func easy(price float64) world {
	return world{"easy", price, []float64{0, 1}, func(rng *rand.Rand, requests int) ([]request,
		[][]float32) {
		all := make([]request, requests)
		for i := range all {
			all[i].item, all[i].rates, all[i].vector = "task", []float64{0.1, 0.9}, direction(rng,
				numbers)
		}
		return all, nil
	}}
}

// Each has less than two thirds of the regret of chance, although its process restarts nine times.
func TestPoliciesLearn(t *testing.T) {
	s := study{requests: 160, runs: 1, seed: 7, worlds: []world{easy(0.1)}, troubles: troubles()[6:7],
		policies: func(w *world) []policy { return append(routers(w), yardsticks(w)...) }}
	cells := s.play(context.Background())
	require.Len(t, cells, 22)
	assert.Equal(t, "heed", cells[0].policy)
	assert.Equal(t, "by chance", cells[19].policy)
	chance := cells[19].regret.Mean
	assert.InDelta(t, 51, chance, 10)
	for _, c := range cells[:18] {
		assert.Less(t, c.regret.Mean, chance*2/3, c.policy)
		assert.Positive(t, c.state.Mean)
	}
}

// TestPeersKeepWhatTheyPublish: LiteLLM's beliefs end at 200 outcomes with the prior's ten, by kind
// of request; semantic-router's are for all, for users and for kinds.
func TestPeersKeepWhatTheyPublish(t *testing.T) {
	w := easy(0.1)
	one := w.trial(&troubles()[0], 400, 0, 7)
	names := [][]string{{"task"}, {"", "user 7", "kind task"}}
	for i, p := range peers(func(r *request) string { return r.item }) {
		began := p.begin(one, func() time.Time { return one.requests[0].at }, nil)
		for range 300 {
			r := one.requests[0]
			r.source = "7"
			began.learn(&outcome{request: &r, arm: 1, quality: 1})
		}
		of, ok := began.(*published)
		require.True(t, ok)
		require.Len(t, of.Beliefs, len(names[i]))
		for _, name := range names[i] {
			want := []evidence.Beta{{Alpha: 195, Beta: 5}, {Alpha: 301, Beta: 1}}[i]
			assert.Equal(t, want, of.Beliefs[name][1], "%s: %q", p.name, name)
		}
		arm, _ := began.choose(&one.requests[0])
		assert.Equal(t, 1, arm)
	}
}

func heedsOwn(w *world) []policy {
	return slices.DeleteFunc(routers(w), func(p policy) bool { return p.kind != heeds })
}

// heed's policies fail under no trouble, and an outcome that comes again changes nothing.
func TestHeedUnderTroubles(t *testing.T) {
	all, regrets := troubles(), make(map[string]kit.Estimate)
	s := study{requests: 60, runs: 1, seed: 7, worlds: routerWorlds()[1:2],
		troubles: []trouble{all[0], all[3], all[7]}, policies: heedsOwn}
	cells := s.play(context.Background())
	for _, c := range cells {
		regrets[c.policy+", "+c.trouble] = c.regret
	}
	for _, p := range heedsOwn(&s.worlds[0]) {
		assert.Equal(t, regrets[p.name+", plain"], regrets[p.name+", repeated"], p.name)
	}
}

// TestLinUCBRestarts as if nothing had been: it draws nothing.
func TestLinUCBRestarts(t *testing.T) {
	w, all := routerWorlds()[1], troubles()
	through := w.trial(&all[0], 100, 0, 7).play(linear("LinUCB", 1, false))
	again := w.trial(&all[6], 100, 0, 7).play(linear("LinUCB", 1, false))
	assert.Equal(t, through, again)
}

// TestCellsAreMade of vectors, and used, where requests have no item.
func TestCellsAreMade(t *testing.T) {
	w, all := routerWorlds()[2], troubles()
	trial := w.trial(&all[0], sweepEvery+20, 0, 7)
	made := routers(&w)[1].begin(trial, func() time.Time { return trial.requests[0].at }, nil)
	items := make(map[string]bool)
	for i := range trial.requests {
		_, ticket := made.choose(&trial.requests[i])
		item := ticket.(strategy.Choice).Item
		assert.Equal(t, i < sweepEvery-1, item == "", "request %d has the item %q", i, item)
		items[item] = true
	}
	assert.Greater(t, len(items), 3)
}

func TestFormulas(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	few := []tally{{Pulls: 10, Reward: 6}, {Pulls: 2, Reward: 1}, {Pulls: 50, Reward: 40}}
	assert.Equal(t, 1, ucb1(few, rng), "0.5 + √ln 62 is the greatest bound")
	taken := make([]int, 3)
	for range 3000 {
		taken[greedy(few, rng)]++
	}
	assert.InDelta(t, 2800, taken[2], 60)
	assert.InDelta(t, 100, taken[0], 40)
	assert.Equal(t, 1, ucb1([]tally{{Pulls: 1, Reward: 1}, {}}, rng),
		"what was never tried comes first")

	even := []tally{{}, {}}
	prefer(even, 0, 1) // the first outcome is the baseline itself
	assert.Equal(t, []float64{0.5, 0.5}, shares(even))
	prefer(even, 1, 0) // 0.5 below the baseline: steps of 0.1 · 0.5 · 0.5
	assert.InDelta(t, 0.025, even[0].Preference, 1e-12)
	assert.InDelta(t, -0.025, even[1].Preference, 1e-12)
	assert.InDelta(t, 1/(1+math.Exp(-0.05)), shares(even)[0], 1e-12)
	chosen := 0
	for range 2000 {
		chosen += softmax([]tally{{}, {Preference: math.Log(3)}}, rng)
	}
	assert.InDelta(t, 1500, chosen, 80)
}

// The inverse and the sum are those of the textbook, and the bound is the formula's.
func TestLinUCBIsARidge(t *testing.T) {
	w := easy(0)
	trial := &trial{world: &w, requests: []request{{vector: make([]float32, numbers)}}}
	const features = 1 + numbers + hashed
	made := linear("LinUCB", 1, false).begin(trial, func() time.Time { return beginning }, nil)
	l := made.(*linearRouter)
	rng := rand.New(rand.NewPCG(1, 2))
	gram, sum := mat.NewSymDense(features, nil), mat.NewVecDense(features, nil)
	for i := range features {
		gram.SetSym(i, i, 1)
	}
	for i := range 30 {
		r := &request{item: fmt.Sprint(i % 3), vector: direction(rng, numbers)}
		reward := rng.Float64()
		l.learn(&outcome{request: r, arm: 1, reward: reward})
		l.look(r)
		gram.SymRankOne(gram, 1, l.x)
		sum.AddScaledVec(sum, reward, l.x)
	}
	var product mat.Dense
	product.Mul(gram, mat.NewSymDense(features, l.arms[1].Inverse))
	for i := range features {
		for j := range features {
			one := 0.
			if i == j {
				one = 1
			}
			assert.InDelta(t, one, product.At(i, j), 1e-9)
		}
	}
	assert.InDeltaSlice(t, sum.RawVector().Data, l.arms[1].Sum, 1e-12)

	var inverse, mean mat.Dense
	require.NoError(t, inverse.Inverse(gram))
	mean.Mul(&inverse, sum)
	chosen := make([]int, 2)
	for i := range 200 {
		r := &request{item: fmt.Sprint(i % 5), vector: direction(rng, numbers)}
		arm, _ := l.choose(r)
		known := mat.Dot(l.x, mean.ColView(0)) + math.Sqrt(mat.Inner(l.x, &inverse, l.x))
		unknown := math.Sqrt(mat.Dot(l.x, l.x)) // of the arm without outcomes
		assert.Equal(t, known > unknown, arm == 1)
		chosen[arm]++
	}
	assert.Positive(t, chosen[0])
	assert.Positive(t, chosen[1])
}

// With six topics, cells of vectors lose at most four fifths of what is lost without the context,
// and a linear learner where arms differ linearly less than seven tenths. Where arms do not differ,
// cells lose about the same.
func TestContextHelps(t *testing.T) {
	worlds := contextWorlds(6)
	s := study{requests: 600, runs: 2, seed: 7, worlds: append(worlds[:1:1], worlds[2:]...),
		troubles: troubles()[:1], policies: contexts}
	cells := s.play(context.Background())
	ratios := make(map[string]float64)
	for _, c := range cells {
		ratios[c.world+": "+c.policy] = c.ratio.Mean
	}
	t.Log(ratios)
	assert.Less(t, ratios["arms differ by topic: cells"], 0.8)
	assert.Less(t, ratios["linearly: linear Thompson, v=0.25"], 0.7)
	assert.Less(t, ratios["not at all: cells"], 1.4)
}

// By default heed follows a world whose arms change places, which costs next to nothing in one that
// stays.
func TestChangesAreFollowed(t *testing.T) {
	four := poolingWorlds()[3]
	two := func(w *world) []policy { return []policy{poolings(w)[0], poolings(w)[4]} }
	all := troubles()
	s := study{requests: 3000, runs: 1, seed: 7, worlds: []world{four}, troubles: []trouble{all[0],
		all[5]}, policies: two}
	cells := s.play(context.Background())
	require.Equal(t, "no change test", cells[1].policy)
	assert.Greater(t, cells[1].ratio.Mean, 0.9)
	assert.Greater(t, cells[3].ratio.Mean, 3.3, "under %s", cells[3].trouble)
}

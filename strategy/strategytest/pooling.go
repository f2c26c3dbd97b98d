// Package strategytest is the contract of [strategy.Pooling] in executable form. Run it from a test
// of yours:
//
//	func TestPooling(t *testing.T) { strategytest.RunPooling(t, mypooling.Pooling{}) }
//
// It needs the standard library only. Later versions of the suite may test more of the contract.
package strategytest

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/conformance"
	"github.com/heedhq/heed/strategy"
)

// RunPooling runs the suite, a subtest a rule.
func RunPooling(t *testing.T, pooling strategy.Pooling) {
	conformance.Run(t, poolingRules, pooling)
}

type checker = conformance.Checker

var poolingRules = []conformance.Rule[strategy.Pooling]{
	conformance.Checked("an item that nothing is known of starts cold", startsCold),
	conformance.Checked("every belief can be drawn", canBeDrawn),
	conformance.Checked("a model does not depend on the order of its items", anyOrder),
	conformance.Checked("a reward raises an arm, and its lack lowers it", follows),
	conformance.Checked("an update that changes nothing changes nothing", idleUpdate),
	conformance.Checked("updates come to what a model made again does", updatesKeepUp),
	conformance.Checked("independence is of an item's own evidence", independence),
	conformance.Checked("models share nothing", modelsApart),
	conformance.Checked("believing changes nothing, and is concurrent", believesOnly),
}

const arms = 3

// segment has arms of unequal weight.
func segment() strategy.Segment {
	return strategy.Segment{
		Priors: []evidence.Beta{{Alpha: 1.2, Beta: 1}, {Alpha: 0.6, Beta: 1},
			{Alpha: 1.2, Beta: 1}},
		LeastWeight: 0.3,
	}
}

func believe(m strategy.Model, item strategy.Item) []evidence.Belief {
	beliefs := make([]evidence.Belief, arms)
	m.Believe(item, beliefs)
	return beliefs
}

func means(m strategy.Model, item strategy.Item) []float64 {
	var all []float64
	for _, b := range believe(m, item) {
		all = append(all, b.Mean())
	}
	return all
}

func blank() strategy.Item { return strategy.Item{Arms: make([]evidence.Sums, arms)} }

// rewarded returns sums with some rewards of 1 and of 0 added.
func rewarded(s evidence.Sums, successes, failures float64) evidence.Sums {
	n := successes + failures
	return s.Plus(evidence.Sums{Mass: n, Squares: n, Reward: successes, RewardSquares: successes})
}

// random returns items that have been seen now and then.
func random(rng *rand.Rand, n int) []strategy.Item {
	items := make([]strategy.Item, n)
	for i := range items {
		items[i] = blank()
		for arm := range arms {
			if rng.IntN(3) > 0 {
				items[i].Arms[arm] = rewarded(evidence.Sums{}, float64(rng.IntN(9)), float64(rng.IntN(9)))
			}
		}
	}
	return items
}

func near(a, b []float64, tolerance float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool { return math.Abs(x-y) <= tolerance })
}

func startsCold(t *checker, p strategy.Pooling) {
	for i, b := range believe(p.Model(segment(), nil), blank()) {
		prior := segment().Priors[i]
		t.Check(b.Level == prior && b.Successes == 0 && b.Failures == 0,
			"arm %d of an empty segment is believed to be %+v, and not its prior %+v", i, b, prior)
	}
}

func canBeDrawn(t *checker, p strategy.Pooling) {
	check := func(what string, m strategy.Model, item strategy.Item) {
		for i, b := range believe(m, item) {
			ok := !math.IsNaN(b.Level.Mean())
			for _, x := range []float64{b.Strength, b.Successes, b.Failures, b.Concentration} {
				ok = ok && x >= 0 && x <= math.MaxFloat64
			}
			mean := b.Mean()
			t.Check(ok && mean >= 0 && mean <= 1, "%s: arm %d: %+v, of mean %v", what, i, b, mean)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for _, mass := range []float64{1e-300, 1e-9, 0.1, 1, 1e6, 1e12} {
		m := p.Model(segment(), random(rng, 5))
		item := blank()
		for _, share := range []float64{0, 0.5, 1} {
			for arm := range arms {
				after := evidence.Sums{Mass: mass, Squares: mass, Reward: mass * share,
					RewardSquares: mass * share}
				m.Update(arm, item.Arms[arm], after)
				item.Arms[arm] = after
			}
			check("an extreme item", m, item)
			check("beside an extreme item", m, blank())
			check("a model of an extreme item", p.Model(segment(), []strategy.Item{item}), item)
		}
		for arm := range arms {
			m.Update(arm, item.Arms[arm], evidence.Sums{})
		}
		check("after all was taken back", m, blank())
	}
}

func anyOrder(t *checker, p strategy.Pooling) {
	rng := rand.New(rand.NewPCG(3, 4))
	items := random(rng, 40)
	asked := append(random(rng, 3), blank())
	var want [][]float64
	for round := range 5 {
		m := p.Model(segment(), items)
		for i, item := range asked {
			got := means(m, item)
			if round == 0 {
				want = append(want, got)
			}
			t.Check(near(got, want[i], 1e-9), "in another order: %v, and before %v", got, want[i])
		}
		rng.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
	}
}

func follows(t *checker, p strategy.Pooling) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, reward := range []float64{1, 0} {
		items := random(rng, 20)
		m := p.Model(segment(), items)
		item := blank()
		for range 30 {
			for arm := range arms {
				before := means(m, item)[arm]
				after := rewarded(item.Arms[arm], reward, 1-reward)
				m.Update(arm, item.Arms[arm], after)
				item.Arms[arm] = after
				// A pooling may take a while to heed one item, but must not go the other way.
				if now := means(m, item)[arm]; (now-before)*(2*reward-1) < -1e-6 {
					t.Fatalf("a reward of %v moved arm %d from %v to %v", reward, arm, before, now)
				}
			}
		}
	}
}

func idleUpdate(t *checker, p strategy.Pooling) {
	rng := rand.New(rand.NewPCG(7, 8))
	items := random(rng, 10)
	m := p.Model(segment(), items)
	before := means(m, items[0])
	for arm := range arms {
		m.Update(arm, items[1].Arms[arm], items[1].Arms[arm])
	}
	after := means(m, items[0])
	t.Check(near(before, after, 1e-9), "updates without a change: %v to %v", before, after)
}

// updatesKeepUp adds outcome by outcome to a model, and compares it with one that is made of all of
// them. Estimates on the way may differ a little: the means by up to 0.05.
func updatesKeepUp(t *checker, p strategy.Pooling) {
	rng := rand.New(rand.NewPCG(9, 10))
	items := make([]strategy.Item, 30)
	for i := range items {
		items[i] = blank()
	}
	m := p.Model(segment(), items)
	for range 3000 {
		item, arm := &items[rng.IntN(len(items))], rng.IntN(arms)
		reward := 0.
		if rng.Float64() < 0.2+0.3*float64(arm) {
			reward = 1
		}
		after := rewarded(item.Arms[arm], reward, 1-reward)
		m.Update(arm, item.Arms[arm], after)
		item.Arms[arm] = after
	}
	anew := p.Model(segment(), items)
	for _, item := range append(items[:5:5], blank()) {
		got, want := means(m, item), means(anew, item)
		t.Check(near(got, want, 0.05), "after updates: %v, and of a new model %v", got, want)
	}
}

// independence asks one model for items with more and more evidence.
func independence(t *checker, p strategy.Pooling) {
	rng := rand.New(rand.NewPCG(13, 14))
	m := p.Model(segment(), random(rng, 20))
	t.Equal("the independence of an item that was never seen", m.Independence(blank()), 0)
	for range 20 {
		item := blank()
		if rng.IntN(2) == 0 { // it has a copy, which poolings other than Copy pass over
			item.Given = random(rng, 1)[0].Arms
		}
		last := 0.
		for range 40 {
			arm := rng.IntN(arms)
			item.Arms[arm] = rewarded(item.Arms[arm], float64(rng.IntN(3)), float64(rng.IntN(3)))
			now := m.Independence(item)
			if !(now >= last-1e-9 && now <= 1) {
				t.Fatalf("with more evidence, an item's independence goes from %v to %v", last, now)
			}
			last = now
		}
	}
}

func modelsApart(t *checker, p strategy.Pooling) {
	one, other := p.Model(segment(), nil), p.Model(segment(), nil)
	before := means(other, blank())
	for arm := range arms {
		one.Update(arm, evidence.Sums{}, rewarded(evidence.Sums{}, 500, 0))
	}
	after := means(other, blank())
	t.Check(near(before, after, 0), "an update of another model: %v to %v", before, after)
}

func believesOnly(t *checker, p strategy.Pooling) {
	items := random(rand.New(rand.NewPCG(11, 12)), 10)
	m := p.Model(segment(), items)
	asked := items[0]
	kept := slices.Clone(asked.Arms)
	want := means(m, asked)
	t.AtOnce(8, func(int) {
		for range 50 {
			got := means(m, asked)
			t.Check(near(got, want, 0), "asked again, it believes %v, and before %v", got, want)
		}
	})
	t.Equal("an item after believing", asked.Arms, kept)
}

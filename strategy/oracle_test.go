package strategy

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/chance"
	"github.com/heedhq/heed/internal/winner"
)

// The tests in this file compute by the definition, without regard to time, what the package
// computes in fewer steps.

// mostLikelyCut returns the cut at which the likelihood ratio of outcomes is the greatest, and the
// ratio, in proportion to the one that is needed.
func mostLikelyCut(
	all []recent, part func(*recent) float64, alarms float64,
) (at int, most float64) {
	var mass, reward, squares, weights float64
	weight := func(o *recent) float64 { return o.mass * part(o) }
	items := make(map[string][]*recent)
	for i := range all {
		o := &all[i]
		if part(o) > 0 {
			mass, reward, weights = mass+weight(o), reward+weight(o)*o.reward, weights+weight(o)*o.mass
			squares += weight(o) * o.reward * o.reward
			items[o.item] = append(items[o.item], o)
		}
	}
	n := mass * mass / weights
	if !(n > 1) {
		return 0, 0
	}
	mean := make(map[string]float64)
	for item, of := range items {
		var sum, w float64
		for _, o := range of {
			sum, w = sum+weight(o)*o.reward, w+weight(o)
		}
		mean[item] = sum / w
		squares -= sum * sum / w
	}
	scale, rate := n/mass, reward/mass
	if rest := n - float64(len(items)); rest > 20 { // rewards that hardly differ within an item
		seen := squares*scale + 0.25
		scale *= min(max(rate*(1-rate)*(rest+1)/seen, 1), 10)
	}
	for cut := 1; cut < len(all); cut++ {
		if part(&all[cut-1]) <= 0 {
			continue
		}
		var w, is, expected [2]float64
		own := make(map[string]*[2]float64)
		for i := range all {
			o, side := &all[i], 0
			if i >= cut {
				side = 1
			}
			if own[o.item] == nil {
				own[o.item] = new([2]float64)
			}
			own[o.item][side] += weight(o)
			w[side] += weight(o)
			is[side] += weight(o) * o.reward
			expected[side] += weight(o) * mean[o.item]
		}
		information := 0.
		for _, of := range own {
			if of[0]+of[1] > 0 {
				information += of[0] * of[1] / (of[0] + of[1])
			}
		}
		if information < 1e-6 || w[1] < 1e-9 {
			continue
		}
		ratio := 0.
		for side := range w {
			ratio += w[side] * divergence(is[side]/w[side], expected[side]/w[side])
		}
		ratio *= scale * w[0] * w[1] / mass / information / math.Log(3*math.Pow(n, 1.5)/alarms)
		if ratio > most {
			at, most = cut, ratio
		}
	}
	return at, most
}

// A change is found at the most likely cut, if it is more likely than a false alarm.
func TestAChangeIsAtTheMostLikelyCut(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	few := make([]recent, 50)
	for i := range few {
		few[i] = recent{item: "i", mass: 1, reward: float64(i / 25)}
	}
	_, found := changeTest{alarms: 1}.find(few, func(*recent) float64 { return 0.01 })
	assert.False(t, found, "limits leave half an outcome in all")
	changes := 0
	for run := range 300 {
		all := make([]recent, 2+rng.IntN(80))
		kept := make(map[string]float64)
		for i := range all {
			o := &all[i]
			o.item, o.source = fmt.Sprint(rng.IntN(1+run%4)), fmt.Sprint(rng.IntN(5))
			o.mass, o.reward = 0.3+0.7*rng.Float64(), float64(min(rng.IntN(8), 1))
			if run%3 == 0 {
				o.reward = 0.4 + 0.2*rng.Float64()
			}
			if run%2 == 0 && i > len(all)/2 {
				o.reward *= 0.2
			}
			kept[o.source] = float64(rng.IntN(3)) / 2
		}
		part := func(o *recent) float64 { return kept[o.source] }
		at, ratio := mostLikelyCut(all, part, 0.5)
		if math.Abs(ratio-1) < 1e-9 {
			continue // rounding decides
		}
		got, found := changeTest{alarms: 0.5}.find(all, part)
		assert.Equal(t, ratio > 1, found, "run %d: %v", run, ratio)
		if found {
			changes++
			assert.Equal(t, at, got, "run %d", run)
		}
	}
	assert.Greater(t, changes, 20)
	assert.Less(t, changes, 250)
}

// Three of ten and then seven of ten are no change, however many of little weight there are
// between them.
func TestOutcomesOfLittleWeightMakeNoChange(t *testing.T) {
	var all []recent
	for _, reward := range []float64{1, 0, 0, 0, 1, 0, 0, 1, 0, 0, 1, 1, 0, 1, 1, 0, 1, 0, 1, 1} {
		all = append(all, recent{mass: 1, reward: reward})
		for range 40 {
			all = append(all, recent{mass: 0.001, reward: 0.5})
		}
	}
	_, found := changeTest{alarms: 1}.find(all, func(*recent) float64 { return 1 })
	assert.False(t, found)
}

// The divergence of two rates is the expected logarithm of the ratio of their probabilities.
func TestTheDivergenceOfRates(t *testing.T) {
	assert.InDelta(t, 0.3*math.Log(0.3/0.6)+0.7*math.Log(0.7/0.4), divergence(0.3, 0.6), 1e-12)
	assert.InDelta(t, math.Log(2), divergence(1, 0.5), 1e-12)
	assert.InDelta(t, math.Log(4), divergence(0, 0.75), 1e-12)
	assert.Zero(t, divergence(0.4, 0.4))
	for _, q := range []float64{0, 1} { // a rate that can't be is off by 1e-9
		assert.InDelta(t, math.Log(0.5)-math.Log(1e-9)/2, divergence(0.5, q), 1e-6)
	}
	assert.InDelta(t, divergence(1, 0.9), divergence(1+1e-15, 0.9), 1e-12, "rounding")
	assert.InDelta(t, divergence(0, 0.9), divergence(-1e-15, 0.9), 1e-12, "rounding")
}

// Logarithms that are a cubic of the candidate's number are interpolated exactly, and each strength
// between two candidates belongs to both in proportion.
func TestStrengthsBetweenCandidates(t *testing.T) {
	for _, c := range [][4]float64{{0, 0, 0, 0}, {1, 0.5, -0.2, 0.01}, {-3, 2, 0.1, -0.05}} {
		cubic := func(x float64) float64 { return c[0] + x*(c[1]+x*(c[2]+x*c[3])) }
		var at, weights [len(strengths)]float64
		for j := range at {
			at[j] = cubic(float64(j))
		}
		const last = len(strengths) - 1
		var total, mean, squares float64
		for n := range last*finer + 1 {
			x := float64(n) / finer
			j := min(int(x), last-1)
			part := x - float64(j)
			w := math.Exp(cubic(x))
			log := math.Log(strengths[j])*(1-part) + math.Log(strengths[j+1])*part
			total, mean, squares = total+w, mean+w*log, squares+w*log*log
			weights[j] += w * (1 - part)
			weights[j+1] += w * part
		}
		got := weigh(&at)
		for j := range weights {
			assert.InDelta(t, weights[j]/total, got.weights[j], 1e-9)
		}
		assert.InDelta(t, mean/total, got.mean, 1e-9)
		assert.InDelta(t, squares/total, got.squares, 1e-9)
		assert.InDelta(t, math.Log(total/float64(last*finer+1)), got.log, 1e-9)
	}
}

// The greater of two normal samples is known in closed form.
func TestTheGreaterOfTwoNormalSamples(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 1))
	for range 60 {
		draws := []answer.Draw{{Arm: "a"}, {Arm: "b"}}
		for i := range draws {
			d := &draws[i]
			d.Mean, d.Bonus = rng.NormFloat64()/4, float64(rng.IntN(3))/10
			d.Deviation = math.Exp(-4 * rng.Float64())
		}
		apart := draws[0].Mean + draws[0].Bonus - draws[1].Mean - draws[1].Bonus
		z := apart / math.Hypot(draws[0].Deviation, draws[1].Deviation)
		want := math.Erfc(-z/math.Sqrt2) / 2
		assert.InDelta(t, want, greatestNormal(draws, "a"), 1e-9)
		assert.InDelta(t, 1-want, greatestNormal(draws, "b"), 1e-9)
	}
}

// Of uniform samples, raised to a half or not, with a bonus or not, the probabilities are areas.
func TestTheGreatestOfUniformSamples(t *testing.T) {
	plain := evidence.Belief{Level: evidence.Beta{Alpha: 1, Beta: 1}}
	raised := plain
	raised.Concentration = 2
	for name, test := range map[string]struct {
		first, second evidence.Belief
		bonus, want   float64
	}{
		"plain":                          {plain, plain, 0, 0.5},
		"plain, a small bonus":           {plain, plain, 0.1, 1 - 0.9*0.9/2},
		"plain, a bonus that decides":    {plain, plain, 1, 1},
		"raised":                         {raised, raised, 0, 0.5},
		"raised, with a bonus":           {raised, raised, 0.1, 1 - (0.5*0.4 + 0.4*0.4/2)},
		"the first is raised":            {raised, plain, 0, 0.5*0.5 + (1-0.25)/2},
		"the second is raised":           {plain, raised, 0, 0.5 * 0.5 * 1.5},
		"the second is raised, a bonus":  {plain, raised, 0.1, 1 - (0.5*0.4 + 0.375 - 0.05)},
		"the first is raised, and bonus": {raised, plain, 0.5, 1},
	} {
		draws := []answer.Draw{
			{Arm: "a", Bonus: test.bonus, Belief: test.first}, {Arm: "b", Belief: test.second},
		}
		counted := 0.
		random := chance.Rand{State: 4}
		for range 20_000 {
			counted += float64(1-drawArms(draws, &random)) / 20_000
		}
		assert.InDelta(t, test.want, counted, 0.015, "%s, counted", name)
		p, ok := bestOf(draws, 0)
		assert.True(t, ok)
		assert.InDelta(t, test.want, p, 1e-6, name)
		p, ok = bestOf(draws, 1)
		assert.True(t, ok)
		assert.InDelta(t, 1-test.want, p, 1e-6, name)
	}
}

// Two arms may be raised to the same sample by other floors and other bonuses. The one whose draw
// is the least far below its floor wins then.
func TestTheGreatestOfSamplesThatAreRaisedAlike(t *testing.T) {
	draws := []answer.Draw{
		{Arm: "a", Belief: evidence.Belief{
			Level: evidence.Beta{Alpha: 1, Beta: 1}, Concentration: 2,
		}},
		{Arm: "b", Bonus: 0.25, Belief: evidence.Belief{
			Level: evidence.Beta{Alpha: 1, Beta: 3}, Concentration: 4,
		}},
	}
	counted, random := 0., chance.Rand{State: 4}
	for range 40_000 {
		counted += float64(1-drawArms(draws, &random)) / 40_000
	}
	sum := 0.
	for i, want := range []float64{counted, 1 - counted} {
		p, ok := bestOf(draws, i)
		assert.True(t, ok)
		assert.InDelta(t, want, p, 0.01) // four standard errors
		sum += p
	}
	assert.InDelta(t, 1, sum, 1e-6)
}

// Without bonuses and floors, the integral is the one of package winner.
func TestTheGreatestOfPlainSamples(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 9))
	for range 30 {
		draws, beliefs := make([]answer.Draw, 2+rng.IntN(3)), []evidence.Beta(nil)
		for i := range draws {
			b := evidence.Beta{Alpha: 0.3 + 20*rng.Float64(), Beta: 0.3 + 20*rng.Float64()}
			draws[i].Belief.Level, beliefs = b, append(beliefs, b)
		}
		for i, want := range winner.ProbBest(beliefs) {
			p, ok := bestOf(draws, i)
			assert.True(t, ok)
			assert.InDelta(t, want, p, 1e-6)
		}
	}
}

// A single outcome can't decide between the levels, because its loss is bounded.
func TestTheLossOfAPrediction(t *testing.T) {
	for _, p := range []float64{-1, 0, 0.01} {
		assert.InDelta(t, -math.Log(0.02), loss(p, 1), 1e-12)
		assert.InDelta(t, -math.Log(0.98), loss(p, 0), 1e-12)
		assert.InDelta(t, loss(p, 1), loss(1-p, 0), 1e-12)
	}
	assert.InDelta(t, -0.3*math.Log(0.6)-0.7*math.Log(0.4), loss(0.6, 0.3), 1e-12)
}

// Rewards that differ less within an item than yes and no would are more evidence: by the ratio of
// both variances, at most ten times. Of few outcomes the ratio is not known.
func TestHowMuchMoreEvidenceAnOutcomeIs(t *testing.T) {
	for name, test := range map[string]struct {
		items                         []stratum
		n, mean, squares, scale, want float64
	}{
		"twenty degrees of freedom": {[]stratum{{n: 21, reward: 10.5}}, 21, 0.5, 5.3, 1, 1},
		"one more": {
			[]stratum{{n: 22, reward: 11}}, 22, 0.5, 7.5, 1, 0.25 * 22 / (7.5 - 121./22 + 0.25),
		},
		"yes and no": {[]stratum{{n: 40, reward: 20}}, 40, 0.5, 20, 1, 1},
		"all alike":  {[]stratum{{n: 400, reward: 200}}, 400, 0.5, 100, 1, 10},
		"two items": {
			[]stratum{{n: 20, reward: 4}, {n: 20, reward: 12}}, 40, 0.4, 12, 1,
			0.24 * 39 / (12 - 16./20 - 144./20 + 0.25),
		},
		"weights of a half": {
			[]stratum{{n: 15, reward: 6}}, 30, 0.4, 6, 2, 0.24 * 30 / (6 - 2*36./15 + 0.25),
		},
	} {
		items := make(map[string]*stratum)
		for i := range test.items {
			items[fmt.Sprint(i)] = &test.items[i]
		}
		got := sharper(items, test.n, test.mean, test.squares, test.scale)
		assert.InDelta(t, test.want, got, 1e-9, name)
	}
}

// An arm is tested after every so many outcomes of that arm, and seldom if there are many outcomes.
// Silence does not count.
func TestWhenAnArmIsDue(t *testing.T) {
	for _, every := range []int{1, 5, 7} {
		s, tested := &segment{}, 0
		for n := 1; n <= 10*every; n++ {
			s.latest.add(&evidence.Observation{Weight: 1}, "", 0, 2)
			s.latest.add(&evidence.Observation{Weight: 1, Channel: silenceChannel}, "", 1, 2)
			due := s.due(changeTest{every: every}, 0)
			if assert.Equal(t, n%every == 0, due != nil, "outcome %d, every %d", n, every); due != nil {
				assert.Len(t, due, n)
				tested++
			}
		}
		assert.Equal(t, 10, tested)
		assert.Nil(t, s.due(changeTest{every: 1}, 1), "there is silence alone")
	}
	s := &segment{}
	s.latest.outcomes, s.latest.untested = make([]recent, 320), []int{9}
	assert.Nil(t, s.due(changeTest{every: 1}, 0))
	s.latest.untested[0] = 10
	assert.Len(t, s.due(changeTest{every: 1}, 0), 320)
}

// An arm that wins each draw, or loses each, has a propensity half a draw from 1 and 0.
func TestThePropensityOfACountedArm(t *testing.T) {
	draws := []answer.Draw{
		{Arm: "a", Belief: evidence.Belief{Level: evidence.Beta{Alpha: 1, Beta: 1}}, Bonus: 2},
		{Arm: "b", Belief: evidence.Belief{Level: evidence.Beta{Alpha: 1, Beta: 1}}},
	}
	const half = 0.5 / (1 << 15)
	assert.Equal(t, 1-half, new(Choice).count(draws, 0))
	assert.Equal(t, half, new(Choice).count(draws, 1))
	assert.Equal(t, 1<<15, drawsFor(64))
	assert.Equal(t, 1<<21/65, drawsFor(65))
}

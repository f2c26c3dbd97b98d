package strategy

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/evidence"
)

// A linear level counts each outcome once, by its age, and forgets all of what is taken out.
func TestALinearLevelCounts(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	even := evidence.Beta{Alpha: 1, Beta: 1}
	for half, late := range map[time.Duration]float64{0: 1, 10 * time.Hour: 0.5} {
		m := newLinear(2, []evidence.Beta{even, even}, now, half)
		assert.InDelta(t, 0.1, m.odds/(1+m.odds), 1e-9, "one choice of ten")
		add := func(id string, age time.Duration, x ...float32) {
			m.add(&sample{id: id, source: "of " + id, at: now.Add(-age), x: x, reward: 1, weight: 1,
				tables: 0.5, linear: 0.5})
		}
		for range 2 {
			add("a", -time.Hour, 1, 0)
			add("b", 10*time.Hour, 0, 1)
			add("of another length", 0, 1)
			assert.InDelta(t, 1+late, m.mass, 1e-12)
			m.remove("a")
			assert.InDelta(t, late, m.mass, 1e-12)
			m.remove("b")
			m.remove("b")
			assert.InDelta(t, 0, m.mass, 1e-12)
			assert.Empty(t, m.samples)
			assert.Empty(t, m.known)
			assert.Empty(t, m.sources)
			assert.Empty(t, m.leads[0])
		}
		assert.InDelta(t, 1, m.variance(), 0, "of few")
		for i := range 40 {
			add(fmt.Sprint(i), 0, 0.6, float32(i%2)-0.5)
		}
		assert.InDelta(t, 0.25, m.variance(), 1e-9, "of the second number alone")
	}
}

// What each of many people may add to a lead is twice a fair share of what all add, or the third of
// the leads, or a quarter of a nat.
func TestTheLeadOfEachPersonIsLimited(t *testing.T) {
	for _, test := range []struct {
		leads []float64
		want  float64
	}{
		{[]float64{1, 1, 1, 1, 1, 1, 1, 1, 1, 100}, 2.25}, // x = 2/10·(9+x)
		{[]float64{-5, -5, -5, 100}, 0.25},
		{[]float64{0, 0, 0, 0, 0, 0, 3, 3, 100, 100}, 3},
		{[]float64{1, 100, 100}, 134}, // no lead is above two thirds of all
		{[]float64{2, 2, 2, 2, 2}, 4},
	} {
		assert.InDelta(t, test.want, mostLead(test.leads), 1e-9, "%v", test.leads)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		leads := make([]float64, 3+rng.IntN(30))
		for i := range leads {
			leads[i] = 3 * rng.NormFloat64()
		}
		slices.Sort(leads)
		most, least, all := mostLead(leads), max(leads[len(leads)-3], leastLead), 0.
		for _, lead := range leads {
			all += min(max(lead, 0), most)
		}
		assert.GreaterOrEqual(t, most, least)
		if most > least {
			assert.InDelta(t, 2*all/float64(len(leads)), most, 1e-9)
		}
	}
}

// What is expected for a vector is linear in it. A draw deviates by |y| for the y that the root of
// the precision maps to the vector behind a 1.
func TestALinearLevelPredicts(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for n := range 6 {
		f := fit{spread: 0.5, bold: []float64{0.1}, careful: []float64{-0.1}}
		y := []float64{rng.NormFloat64()}
		f.root = []float32{float32(1 / y[0])}
		var x []float32
		squares, bold, careful := y[0]*y[0], 0.3+0.2+0.1, 0.3+0.2-0.1
		for range n {
			y = append(y, rng.NormFloat64())
			last := y[len(y)-1]
			squares += last * last
			sum := 0.
			for _, of := range y {
				f.root = append(f.root, float32(0.5+rng.Float64()))
				sum += float64(f.root[len(f.root)-1]) * of
			}
			x = append(x, float32(sum))
			f.bold, f.careful = append(f.bold, rng.Float64()), append(f.careful, rng.Float64())
			bold += f.bold[len(x)] * float64(x[len(x)-1])
			careful += f.careful[len(x)] * float64(x[len(x)-1])
		}
		m := &linear{cold: []float64{9, 0.3}, fits: []fit{{}, f}}
		gotBold, deviation, gotCareful := m.predict(1, x, 0.2)
		assert.InDelta(t, bold, gotBold, 1e-9)
		assert.InDelta(t, careful, gotCareful, 1e-9)
		assert.InDelta(t, 0.5*math.Sqrt(squares), deviation, 1e-3)
	}
}

// The coefficients of an arm solve its normal equations, (Σ x xᵀ + P) c = Σ x y. The sums are made
// here from the samples. Careful and common coefficients have a narrow prior, bold ones a prior
// with twice the standard deviation.
func TestALinearLevelIsARegression(t *testing.T) {
	rng, even := rand.New(rand.NewPCG(5, 6)), evidence.Beta{Alpha: 1, Beta: 1}
	for _, weight := range []float64{1, 0.4} {
		m := newLinear(3, []evidence.Beta{even, {Alpha: 3, Beta: 1}}, time.Time{}, 0)
		for i := range 40 {
			x := direction([]float32{rng.Float32(), rng.Float32() - 0.5, rng.Float32()})
			m.add(&sample{id: fmt.Sprint(i), arm: i % 2, x: x, reward: rng.Float64(), weight: weight,
				above: 0.1, tables: 0.2 + 0.6*rng.Float64(), common: 0.1 * rng.Float64(), linear: 0.5})
		}
		leads := [2]float64{}
		for _, s := range m.samples {
			leads[0] += weight * (loss(s.tables, s.reward) - loss(s.linear, s.reward))
			leads[1] += weight * (loss(s.tables+s.common, s.reward) - loss(s.linear, s.reward))
		}
		assert.InDelta(t, leads[0], m.leads[0][""], 1e-9)
		assert.InDelta(t, leads[1], m.leads[1][""], 1e-9)
		noise, variance := m.noise(), m.variance()
		m.solve(1)
		level := noise / (0.25 * 0.25) * weight
		narrow := noise / (0.25 * 0.25) * variance * weight
		for name, c := range map[string]struct {
			got   []float64
			slope float64
			of    func(*sample) (y float64, ok bool)
		}{
			"careful": {m.fits[1].careful, narrow,
				func(s *sample) (float64, bool) { return s.reward - 0.1 - 0.75, s.arm == 1 }},
			"bold": {m.fits[1].bold, narrow / 4,
				func(s *sample) (float64, bool) { return s.reward - 0.1 - 0.75, s.arm == 1 }},
			"common": {m.common.careful, narrow,
				func(s *sample) (float64, bool) { return s.reward - s.tables, true }},
		} {
			left := []float64{level * c.got[0]}
			for _, coefficient := range c.got[1:] {
				left = append(left, c.slope*coefficient)
			}
			right := make([]float64, 4)
			for _, s := range m.samples {
				if y, ok := c.of(s); ok {
					for i := range right {
						right[i] += weight * s.number(i) * y
						for j := range left {
							left[i] += weight * s.number(i) * s.number(j) * c.got[j]
						}
					}
				}
			}
			assert.InDeltaSlice(t, right, left, 1e-9, name)
		}
		before, odds := slices.Clone(m.fits[1].bold), m.odds
		m.remove("1")
		assert.NotEqual(t, before, m.fits[1].bold, "what is taken out is unlearned at once")
		assert.NotEqual(t, odds, m.odds, "and predicted nothing")
	}
}

// How alike tenants are is the mean over what their strength may be, whose logarithm is normal. A
// tenant without outcomes begins with that, or with 2 at odds of 0.3.
func TestATenantBeginsByTheMeanStrength(t *testing.T) {
	level := evidence.Beta{Alpha: 7e5, Beta: 3e5}
	for _, doubt := range []float64{0, 0.3, 0.6} {
		apart, mass := 0., 0.
		for z := -8.; z <= 8; z += 0.01 {
			density := math.Exp(-z * z / 2)
			apart, mass = apart+density/(1+4*math.Exp(z*doubt)), mass+density
		}
		b := begin(evidence.Belief{Level: level, Strength: 4, Doubt: doubt}, counts{})
		most := math.Exp(1.3*math.Log(b.Alpha+b.Beta) - 0.3*math.Log(2))
		assert.InEpsilon(t, mass/apart-1, most, 0.005, "%v", doubt)
	}
}

// The more alike tenants are, the more a new one begins with what they know, up to all of that.
func TestATenantBeginsByWhatIsAlike(t *testing.T) {
	for _, doubt := range []float64{0, 0.5, 1.5} {
		level, before := evidence.Beta{Alpha: 70, Beta: 30}, 0.
		for _, strength := range []float64{0.3, 3, 30, 300, 3e4, 3e8} {
			b := begin(evidence.Belief{Level: level, Strength: strength, Doubt: doubt}, counts{})
			assert.InDelta(t, 0.7, b.Mean(), 1e-9)
			assert.GreaterOrEqual(t, b.Alpha+b.Beta, before)
			if before = b.Alpha + b.Beta; strength > 3 {
				assert.Greater(t, before, 2.5, strength)
			}
		}
		assert.LessOrEqual(t, before, 100.)
		assert.Greater(t, before, 20.)
	}
}

// A full linear level drops the oldest outcome of the source that has the most.
func TestAFullLinearLevelDropsTheLoudest(t *testing.T) {
	m := newLinear(1, []evidence.Beta{{Alpha: 1, Beta: 1}}, time.Unix(0, 0), 0)
	remember := func(id, source string) *sample {
		added, removed := m.remember(&sample{id: id, source: source, x: []float32{1}})
		require.True(t, added)
		return removed
	}
	for i := range mostSamples {
		source := "ann"
		if i >= 10 {
			source = "bob"
		}
		require.Nil(t, remember(fmt.Sprint(i), source))
	}
	for i := range 5 {
		removed := remember(fmt.Sprint("new ", i), "ann")
		require.NotNil(t, removed)
		assert.Equal(t, fmt.Sprint(10+i), removed.id)
	}
	assert.Len(t, m.samples, mostSamples)
	assert.Len(t, m.known, mostSamples)
	assert.Equal(t, map[string]int{"ann": 15, "bob": mostSamples - 15}, m.sources)
	added, _ := m.remember(&sample{id: "new 0", x: []float32{1}})
	assert.False(t, added, "it is known")
	added, _ = m.remember(&sample{id: "other", x: []float32{1, 2}})
	assert.False(t, added, "it has another number of numbers")
}

// What a tenant begins with is even-handed: with good and bad exchanged, it is the mirror image.
func TestATenantBeginsWithoutABias(t *testing.T) {
	mirrored := func(b evidence.Beta) evidence.Beta {
		return evidence.Beta{Alpha: b.Beta, Beta: b.Alpha}
	}
	for _, own := range []counts{{}, {1, 0}, {3, 20}, {0, 40}, {7, 7}} {
		level := evidence.Belief{Level: evidence.Beta{Alpha: 90, Beta: 30}, Strength: 20, Doubt: 0.4}
		got := begin(level, own)
		level.Level = mirrored(level.Level)
		other := mirrored(begin(level, counts{own.failures, own.successes}))
		assert.InDelta(t, got.Alpha, other.Alpha, 1e-9, "%v", own)
		assert.InDelta(t, got.Beta, other.Beta, 1e-9, "%v", own)
	}
}

// The more a tenant's own outcomes differ from the outcomes of other tenants, the less the tenant
// begins with the evidence of the others.
func TestATenantsOwnOutcomesDecideHowItBegins(t *testing.T) {
	level, before := evidence.Belief{Level: evidence.Beta{Alpha: 80, Beta: 20}, Strength: 30}, 0.
	for good := range 17 { // of 20
		b := begin(level, counts{float64(good), float64(20 - good)})
		assert.Greater(t, b.Alpha+b.Beta, before, "%d of 20", good)
		before = b.Alpha + b.Beta
	}
	for good := 17; good <= 20; good++ {
		assert.Less(t, begin(level, counts{float64(good), float64(20 - good)}).Alpha, 80.)
	}
}

// The variance of an outcome is a quarter at first, which counts as four outcomes.
func TestTheNoiseOfALinearLevel(t *testing.T) {
	m := newLinear(1, []evidence.Beta{{Alpha: 1, Beta: 1}}, time.Time{}, 0)
	assert.InDelta(t, 0.25, m.noise(), 1e-12)
	for n := range 4 { // they are as was expected
		m.add(&sample{id: fmt.Sprint(n), x: []float32{1}, reward: 0.5, weight: 1, tables: 0.5,
			linear: 0.5})
	}
	assert.InDelta(t, 0.125, m.noise(), 1e-12)
}

// The more outcomes are as the coefficients explain, the less noise is left. What four outcomes of
// the variance a quarter have always stays, also where the coefficients are of an outcome that was
// taken out.
func TestTheNoiseOfOutcomesThatFit(t *testing.T) {
	m := newLinear(1, []evidence.Beta{{Alpha: 1, Beta: 1}}, time.Time{}, 0)
	for n := range 200 {
		m.add(&sample{id: fmt.Sprint(n), x: []float32{0.7}, reward: 1, weight: 1, tables: 0.5,
			linear: 0.5})
	}
	assert.InDelta(t, 1./204, m.noise(), 1e-4)
	for range 100 {
		m.remove(fmt.Sprint(len(m.samples) - 1))
	}
	assert.InDelta(t, 1./104, m.noise(), 1e-4)

	m = newLinear(1, []evidence.Beta{{Alpha: 1, Beta: 1}}, time.Time{}, 0)
	for n := range 101 {
		s := &sample{id: fmt.Sprint(n), x: []float32{0.7}, reward: 0.7, weight: 0.01, tables: 0.5}
		if n == 100 {
			s.reward, s.weight = 1, 1
		}
		m.add(s)
	}
	m.uncount(m.known["100"])
	assert.InDelta(t, 0.01/(0.04+1), m.noise(), 1e-9)
}

// A draw deviates a little, however sure the level is.
func TestTheLeastDeviationOfALinearLevel(t *testing.T) {
	m := newLinear(1, []evidence.Beta{{Alpha: 1, Beta: 1}}, time.Time{}, 0)
	m.fits[0].spread = 0
	_, deviation, _ := m.predict(0, []float32{1}, 0)
	assert.Equal(t, 1e-6, deviation)
}

// Instruments add all of their lead. Of more than two people, each adds or takes twice a fair share
// at most. A lead of 500 nats is beyond doubt.
func TestTheLeadOfALinearLevel(t *testing.T) {
	for name, test := range map[string]struct {
		leads map[string]float64
		want  float64
	}{
		"an instrument":            {map[string]float64{"ci": 300}, 300},
		"an instrument that loses": {map[string]float64{"ci": -30}, -30},
		"two people":               {map[string]float64{"ann": 100, "bob": -3}, 97},
		"three people":             {map[string]float64{"ann": 100, "bob": 1, "eve": 1}, 4 + 1 + 1},
		"people and instruments": {
			map[string]float64{"ann": 0.3, "bob": -5, "eve": 0.1, "ci": 7, "suite": 8},
			0.25 + -0.25 + 0.1 + 7 + 8,
		},
		"three people who lose": {map[string]float64{"ann": -5, "bob": -4, "eve": -6}, -15},
	} {
		m := newLinear(1, []evidence.Beta{{Alpha: 1, Beta: 1}}, time.Time{}, 0)
		m.instruments = []string{"ci", "suite"}
		assert.InDelta(t, test.want, m.total(test.leads), 1e-9, name)
		more := maps.Clone(test.leads)
		more["ci"] += 2
		for _, of := range [][2]map[string]float64{{test.leads, more}, {more, test.leads}} {
			m.leads = of
			m.compare()
			assert.InEpsilon(t, math.Exp(test.want)/9, m.odds, 1e-9, "%s: the smaller lead", name)
		}
		m.mass, m.squares = 1, 0.5
		assert.InDelta(t, 2, m.total(map[string]float64{"ci": 1}), 1e-9, "of half a weight each")
	}
	m := newLinear(1, []evidence.Beta{{Alpha: 1, Beta: 1}}, time.Time{}, 0)
	for lead, nats := range map[float64]float64{499: 499, 501: 500, -499: -499, -501: -500} {
		m.leads = [2]map[string]float64{{"ann": lead}, {"ann": lead}}
		m.compare()
		assert.InEpsilon(t, math.Exp(nats)/9, m.odds, 1e-9, "%v", lead)
	}
}

// Vectors of fewer than ten outcomes have the variance 1, and those that are all alike hardly any.
func TestTheVarianceOfVectors(t *testing.T) {
	m := newLinear(2, []evidence.Beta{{Alpha: 1, Beta: 1}, {Alpha: 1, Beta: 1}}, time.Time{}, 0)
	for n := range 12 {
		m.add(&sample{
			id: fmt.Sprint(n), arm: n % 2, x: []float32{0.6, 0.8}, reward: 1, weight: 0.5,
			tables: 0.5, linear: 0.5,
		})
		want := 1.
		if n >= 9 {
			want = 1e-3
		}
		assert.InDelta(t, want, m.variance(), 1e-9, "%d outcomes", n+1)
	}
}

// A diagonal that rounding has brought to 0 has a root.
func TestTheRootOfZero(t *testing.T) {
	f, root := newFit(2), make([]float64, 3)
	f.decompose(root, 0, 0)
	assert.InDeltaSlice(t, []float64{math.Sqrt(1e-9), 0, math.Sqrt(1e-9)}, root, 1e-15)
	f.decompose(root, 4, 9)
	assert.InDeltaSlice(t, []float64{2, 0, 3}, root, 1e-15)
}

// A load counts each sample by what the limits on people leave, and solves twice, because the noise
// follows from what was solved.
func TestALoadWeighsSamples(t *testing.T) {
	loaded, added := newLinear(1, []evidence.Beta{{Alpha: 1, Beta: 1}}, time.Time{}, 0),
		newLinear(1, []evidence.Beta{{Alpha: 1, Beta: 1}}, time.Time{}, 0)
	for n := range 30 {
		s := sample{
			id: fmt.Sprint(n), source: fmt.Sprint("person ", n%2), x: []float32{1 - float32(n%3)},
			reward: float64(n%3) / 2, weight: 1, tables: 0.5, linear: 0.5,
		}
		loaded.remember(&s)
		half := s
		half.weight = float64(1+n%2) / 2
		added.add(&half)
	}
	assert.Zero(t, loaded.mass)
	loaded.weigh(func(_ int, source string) float64 {
		return map[string]float64{"person 0": 0.5, "person 1": 1}[source]
	})
	assert.InDelta(t, 22.5, loaded.mass, 1e-9)
	assert.InDeltaSlice(t, added.fits[0].products, loaded.fits[0].products, 1e-9)
	assert.InDelta(t, added.leads[0]["person 1"], loaded.leads[0]["person 1"], 1e-9)
	added.solve(0)
	assert.InDeltaSlice(t, added.fits[0].bold, loaded.fits[0].bold, 1e-3)
}

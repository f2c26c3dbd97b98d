//go:build !race

package strategy

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
)

var update = flag.Bool("update", false, "write testdata/numbers.json")

// numbers are what the models make of made-up outcomes, by name.
type numbers map[string][]float64

func (n numbers) add(value float64, name string, of ...any) {
	name = fmt.Sprintf(name, of...)
	n[name] = append(n[name], value)
}

func (n numbers) beliefs(all []evidence.Belief, name string, of ...any) {
	for _, b := range all {
		for _, value := range []float64{b.Level.Alpha, b.Level.Beta, b.Strength, b.Doubt,
			b.Successes, b.Failures, b.Concentration} {
			n.add(value, name, of...)
		}
	}
}

// TestNumbersStay compares what the models compute with what they computed before. Who changes a
// constant or a formula on purpose writes the numbers again with -update. Platforms agree on them
// to within rounding.
func TestNumbersStay(t *testing.T) {
	is := numbers{}
	is.ofPoolings()
	is.ofTenants()
	is.ofVectors()
	is.ofPropensities()
	const file = "testdata/numbers.json"
	if *update {
		var lines []string
		for _, name := range slices.Sorted(maps.Keys(is)) {
			values, err := json.Marshal(is[name])
			require.NoError(t, err)
			lines = append(lines, fmt.Sprintf("%q: %s", name, values))
		}
		text := "{\n" + strings.Join(lines, ",\n") + "\n}\n"
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	want := numbers{}
	require.NoError(t, json.Unmarshal(text, &want))
	assert.Len(t, is, len(want))
	for name, values := range want {
		require.Len(t, is[name], len(values), name)
		for i, value := range values {
			tolerance := 1e-9
			if strings.HasPrefix(name, "vectors") { // whose directions are float32
				tolerance = 1e-6
			}
			assert.InDelta(t, value, is[name][i], tolerance*max(1, math.Abs(value)), "%s, %d", name, i)
		}
	}
}

// sumsOfOutcomes adds up outcomes of some weights, coins or graded rewards, within a limit.
func sumsOfOutcomes(rng *rand.Rand, n int, rate, least float64, graded bool) (s evidence.Sums) {
	for range n {
		w, r := least+(1-least)*rng.Float64(), 0.
		if rng.Float64() < rate {
			r = 1
		}
		if graded {
			r = 0.8*rate + 0.2*rng.Float64()
		}
		s = s.Plus(evidence.Sums{Mass: w, Squares: w * w, Reward: w * r, RewardSquares: w * r * r})
	}
	return s
}

func (n numbers) ofPoolings() {
	for name, pooling := range map[string]Pooling{
		"two levels": TwoLevel{}, "copy": Copy{MinConfidence: 0.7}, "alone": Alone{},
	} {
		for _, arms := range []int{1, 2, 5} {
			rng := rand.New(rand.NewPCG(1, uint64(arms)))
			segment := Segment{Priors: make([]evidence.Beta, arms), LeastWeight: 0.3}
			for i := range segment.Priors {
				segment.Priors[i] = evidence.Beta{Alpha: 1 + float64(i)/4, Beta: 1}
			}
			items := make([]Item, 12)
			for i := range items {
				items[i].Arms = make([]evidence.Sums, arms)
				for arm := range arms {
					count, rate := rng.IntN(9)*(i+1)/4, 0.2+0.6*rng.Float64()
					items[i].Arms[arm] = sumsOfOutcomes(rng, count, rate, 0.5, arm == 1 && arms > 2)
				}
			}
			items[3].Given = items[4].Arms
			items[5].Arms[0].Limited = items[5].Arms[0].Mass / 3
			model, beliefs := pooling.Model(segment, items), make([]evidence.Belief, arms)
			look := func(item Item, when string) {
				model.Believe(item, beliefs)
				n.beliefs(beliefs, "%s of %d arms, %s", name, arms, when)
				n.add(model.Independence(item), "%s of %d arms, %s", name, arms, when)
			}
			cold := Item{Arms: make([]evidence.Sums, arms)}
			look(cold, "cold")
			for _, i := range []int{0, 3, 5, 11} {
				look(items[i], "an item")
			}
			update := func(arm int, before, after evidence.Sums) {
				drifted := 0.
				if model.Update(arm, before, after) {
					drifted = 1
				}
				n.add(drifted, "%s of %d arms, drifted", name, arms)
			}
			for step := range 60 {
				item, arm := &items[rng.IntN(len(items))], rng.IntN(arms)
				before := item.Arms[arm]
				item.Arms[arm] = before.Plus(sumsOfOutcomes(rng, 1, 0.9, 0.1+0.013*float64(step), false))
				update(arm, before, item.Arms[arm])
				if step%20 == 0 {
					look(*item, "updated")
				}
			}
			look(cold, "updated, cold")
			model = pooling.Model(segment, nil)
			item := Item{Arms: make([]evidence.Sums, arms)}
			for step := range 8 {
				arm := step % min(arms, 2)
				before := item.Arms[arm]
				item.Arms[arm] = before.Plus(sumsOfOutcomes(rng, 1, 0.5, 0.3+0.1*float64(step), false))
				update(arm, before, item.Arms[arm])
				look(item, "from the first outcome on")
				look(cold, "from the first outcome on")
			}
			only := Item{Arms: items[11].Arms}
			model = pooling.Model(segment, []Item{only})
			look(only, "the only item")
		}
	}
}

// ofTenants has what a tenant begins with.
func (n numbers) ofTenants() {
	for _, strength := range []float64{0.5, 8, 900} {
		for _, doubt := range []float64{0, 0.8} {
			level := evidence.Belief{
				Level: evidence.Beta{Alpha: 40, Beta: 25}, Strength: strength, Doubt: doubt,
			}
			for _, own := range []counts{{}, {1, 0}, {2, 9}, {30, 20}} {
				b := begin(level, own)
				n.add(b.Alpha, "a tenant of strength %v and doubt %v", strength, doubt)
				n.add(b.Beta, "a tenant of strength %v and doubt %v", strength, doubt)
			}
		}
	}
}

// ofVectors has what a linear level expects, and by how much it was better than the tables.
func (n numbers) ofVectors() {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, half := range []time.Duration{0, 30 * time.Hour} {
		rng := rand.New(rand.NewPCG(4, 2))
		m := newLinear(3, []evidence.Beta{{Alpha: 1, Beta: 1}, {Alpha: 2, Beta: 1}}, now, half)
		m.instruments = []string{"ci"}
		name := fmt.Sprintf("vectors with a half-life of %v", half)
		look := func() {
			for arm := range m.fits {
				for _, x := range [][]float32{{1, 0, 0}, {0.6, 0, -0.8}, {-0.48, 0.64, 0.6}} {
					bold, deviation, careful := m.predict(arm, x, 0.05)
					for _, value := range []float64{bold, careful, m.alike(x)} {
						n.add(value, "%s", name)
					}
					n.add(math.Round(deviation*1e6)/1e6, "%s, deviations", name) // it has a float32
				}
			}
			for _, value := range []float64{
				m.odds, m.weight(), m.noise(), m.variance(), m.scale(), m.mass,
			} {
				n.add(value, "%s", name)
			}
		}
		look()
		for i := range 80 {
			x := direction([]float32{float32(rng.NormFloat64()), float32(rng.NormFloat64()) / 2, 0.5})
			s := &sample{
				id: fmt.Sprint(i), source: []string{"ann", "bob", "ci", "eve", "kim"}[rng.IntN(5)],
				at: now.Add(time.Duration(i-78) * time.Hour), arm: i % 2, x: x,
				weight: 0.4 + 0.6*rng.Float64(), above: 0.02 * float64(i%3),
				reward: min(max(0.5+float64(x[0])/2+0.1*rng.NormFloat64(), 0), 1),
				tables: 0.5, common: 0.1 * rng.Float64(), linear: 0.5 + float64(x[0])/3,
			}
			if s.source == "kim" {
				s.linear = 1 - s.linear
			}
			if m.add(s); i%20 == 3 {
				look()
			}
		}
		for i := range 20 {
			m.remove(fmt.Sprint(3 * i))
		}
		look()
		for _, s := range m.samples {
			m.put(s, -1)
		}
		m.weigh(func(arm int, source string) float64 { return float64(arm+len(source)) / 4 })
		look()
	}
}

// ofPropensities has the probabilities that each of some samples is the greatest.
func (n numbers) ofPropensities() {
	rng := rand.New(rand.NewPCG(6, 3))
	for run := range 40 {
		draws := make([]answer.Draw, 2+run%4)
		for i := range draws {
			d := &draws[i]
			d.Arm = ArmID(fmt.Sprint(i))
			d.Belief.Level = evidence.Beta{
				Alpha: math.Exp(5*rng.Float64() - 2), Beta: math.Exp(5*rng.Float64() - 2),
			}
			if rng.IntN(2) == 0 {
				d.Belief.Concentration = math.Exp(6 * rng.Float64())
			}
			if rng.IntN(3) == 0 {
				d.Bonus = float64(rng.IntN(4)) / 10
			}
			if i > 0 && rng.IntN(3) == 0 {
				d.Belief = draws[i-1].Belief
			}
			d.Mean, d.Deviation = rng.NormFloat64()/4, math.Exp(-4*rng.Float64())
		}
		for i := range draws {
			if p, ok := bestOf(draws, i); ok {
				n.add(p, "propensities of the tables, %d", run)
			}
			n.add(greatestNormal(draws, draws[i].Arm), "propensities of vectors, %d", run)
		}
	}
}

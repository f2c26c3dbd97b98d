package board

import (
	"bytes"
	"encoding/gob"
	"math"
	"math/rand/v2"
	"time"

	"github.com/heedhq/heed/lab/internal/kit"
)

// A tally is what a table keeps of an arm.
type tally struct {
	Pulls, Reward float64
	Preference    float64 // of softmax alone
}

// tables is a router with a tally of each arm: for each item by itself, or for all.
type tables struct {
	Items  map[string][]tally
	byItem bool
	arms   int
	rng    *rand.Rand
	pick   func(arms []tally, rng *rand.Rand) int
	credit func(arms []tally, arm int, reward float64)
}

// ofTables returns the classic rules, each with one table, and with a table for each item. Like in
// the papers, they don't see the ids of outcomes, nor their sources.
func ofTables() (all []policy) {
	for _, r := range []struct {
		name   string
		pick   func(arms []tally, rng *rand.Rand) int
		credit func(arms []tally, arm int, reward float64)
	}{
		{"ε-greedy", greedy, count},
		{"UCB1", ucb1, count},
		{"softmax", softmax, prefer},
	} {
		for _, byItem := range []bool{false, true} {
			name := r.name
			if byItem {
				name += " by item"
			}
			all = append(all, policy{name, rule, func(t *trial, now func() time.Time,
				state []byte) router {
				all := &tables{Items: make(map[string][]tally), byItem: byItem, arms: len(t.world.costs),
					rng: draws(t, now), pick: r.pick, credit: r.credit}
				return resumed(all, &all.Items, state)
			}})
		}
	}
	return all
}

func (t *tables) of(r *request) []tally {
	item := ""
	if t.byItem {
		item = r.item
	}
	if t.Items[item] == nil {
		t.Items[item] = make([]tally, t.arms)
	}
	return t.Items[item]
}

func (t *tables) choose(r *request) (int, any) { return t.pick(t.of(r), t.rng), nil }

func (t *tables) learn(o *outcome) { t.credit(t.of(o.request), o.arm, o.reward) }

func (t *tables) save() []byte { return encode(t.Items) }

// resumed returns a router that goes on from the state of another process, if there was one.
func resumed(r router, into any, state []byte) router {
	if state != nil {
		kit.Check(gob.NewDecoder(bytes.NewReader(state)).Decode(into))
	}
	return r
}

func encode(state any) []byte {
	var b bytes.Buffer
	kit.Check(gob.NewEncoder(&b).Encode(state))
	return b.Bytes()
}

func count(arms []tally, arm int, reward float64) {
	arms[arm].Pulls++
	arms[arm].Reward += reward
}

// greedy takes an arm by chance for one request of ten, and otherwise that with the greatest mean.
// Arms without outcomes come first.
func greedy(arms []tally, rng *rand.Rand) int {
	if rng.Float64() < 0.1 {
		return rng.IntN(len(arms))
	}
	return greatest(arms, rng, func(a tally) float64 { return a.Reward / a.Pulls })
}

// ucb1 is the rule of Auer, Cesa-Bianchi and Fischer (2002).
func ucb1(arms []tally, rng *rand.Rand) int {
	total := 0.
	for _, a := range arms {
		total += a.Pulls
	}
	return greatest(arms, rng, func(a tally) float64 {
		return a.Reward/a.Pulls + math.Sqrt(2*math.Log(total)/a.Pulls)
	})
}

// greatest returns the arm with the greatest value. Of equals, and of those without outcomes, it is
// one by chance.
func greatest(arms []tally, rng *rand.Rand, value func(a tally) float64) int {
	best, most := 0, math.Inf(-1)
	for _, arm := range rng.Perm(len(arms)) {
		x := math.Inf(1)
		if arms[arm].Pulls > 0 {
			x = value(arms[arm])
		}
		if x > most {
			best, most = arm, x
		}
	}
	return best
}

// softmax is the gradient bandit of Sutton and Barto (2018, section 2.8), with the mean reward as
// its baseline.
func softmax(arms []tally, rng *rand.Rand) int {
	u := rng.Float64()
	for arm, share := range shares(arms) {
		if u -= share; u < 0 {
			return arm
		}
	}
	return len(arms) - 1
}

// prefer takes a step of 0.1.
func prefer(arms []tally, arm int, reward float64) {
	pulls, sum := 1., reward
	for _, a := range arms {
		pulls, sum = pulls+a.Pulls, sum+a.Reward
	}
	for i, share := range shares(arms) {
		if i == arm {
			share--
		}
		arms[i].Preference -= 0.1 * (reward - sum/pulls) * share
	}
	count(arms, arm, reward)
}

func shares(arms []tally) []float64 {
	all, sum, most := make([]float64, len(arms)), 0., math.Inf(-1)
	for _, a := range arms {
		most = max(most, a.Preference)
	}
	for i, a := range arms {
		all[i] = math.Exp(a.Preference - most)
		sum += all[i]
	}
	for i := range all {
		all[i] /= sum
	}
	return all
}

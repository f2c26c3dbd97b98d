package regret

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/heedhq/heed/evidence"
)

// A world is a problem to choose in: how often each arm succeeds, for each item, round by round.
type world struct {
	name   string
	items  int
	arms   int
	rounds int // for each item
	runs   int
	// rates returns the arms' rates for each item. It is drawn anew for every run.
	rates func(rng *rand.Rand) [][]float64
	// later returns the rates that hold in the second half of the rounds. nil: they stay as they are.
	later func(rates []float64) []float64
	// graded tells that rewards are not 0 or 1 but lie around the rate: Beta distributed, with a strength of 10.
	graded bool
}

// alike is a world whose items lie around a level that is the same for all: the greater the strength, the closer.
func alike(rounds, runs int, strength float64) world {
	const items, arms = 200, 4
	return world{
		name: fmt.Sprintf("%d rounds, s=%v", rounds, strength), items: items, arms: arms, rounds: rounds, runs: runs,
		rates: func(rng *rand.Rand) [][]float64 {
			levels := make([]float64, arms)
			for arm := range levels {
				levels[arm] = 0.2 + 0.6*rng.Float64()
			}
			rates := make([][]float64, items)
			for item := range rates {
				rates[item] = make([]float64, arms)
				for arm, level := range levels {
					rates[item][arm] = draw(evidence.Beta{Alpha: strength * level, Beta: strength * (1 - level)}, rng)
				}
			}
			return rates
		},
	}
}

// flat is a world of one item.
func flat(name string, runs int, rates ...float64) world {
	return world{
		name: name, items: 1, arms: len(rates), rounds: 10_000, runs: runs,
		rates: func(*rand.Rand) [][]float64 { return [][]float64{rates} },
	}
}

// changing is the world with other rates in its second half.
func (w world) changing(name string, later func(rates []float64) []float64) world {
	w.name, w.later = name, later
	return w
}

// grading is the world with graded rewards.
func (w world) grading(name string) world {
	w.name, w.graded = name, true
	return w
}

// worlds returns what is played: in the quick way, or to the digits that the documentation quotes.
func worlds(quick bool) []world {
	short, middle, long, still := 100, 20, 6, 200
	if quick {
		short, middle, long, still = 6, 1, 0, 5
	}
	var all []world
	for _, strength := range []float64{2, 5, 10, 30, 100} {
		all = append(all, alike(30, short, strength))
	}
	for _, strength := range []float64{2, 10, 100} {
		all = append(all, alike(300, middle, strength))
	}
	for _, strength := range []float64{2, 10, 100} {
		if long > 0 {
			all = append(all, alike(1000, long, strength))
		}
	}
	four := flat("flat .9/.8/.5/.1", still, 0.9, 0.8, 0.5, 0.1)
	ten := flat("flat .6 of ten", still, 0.6, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5)
	return append(all,
		four,
		ten,
		flat("flat .10 to .02", still, 0.10, 0.05, 0.05, 0.02),
		four.grading("graded .9/.8/.5/.1"),
		ten.grading("graded .6 of ten"),
		four.changing("best and worst swap", swapped),
		flat("", still, 0.6, 0.5, 0.3, 0.1).changing("idle arm becomes best", risen),
	)
}

// play lets a rule choose through one run and returns its regret for each item: the sum, over the rounds, of how much
// more often the best arm would have succeeded.
func (w world) play(run int, seed uint64, begin func(w world, seed uint64, now func() time.Time) (player, error)) (regret float64, err error) {
	rng := rand.New(rand.NewPCG(seed, uint64(run)))
	rates := w.rates(rng)
	order := make([]int, 0, w.items*w.rounds)
	for item := range w.items {
		for range w.rounds {
			order = append(order, item)
		}
	}
	rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	var clock time.Duration // which goes on by a second a round
	p, err := begin(w, rng.Uint64(), func() time.Time { return beginning.Add(clock) })
	if err != nil {
		return 0, err
	}
	for round, item := range order {
		now := rates[item]
		if w.later != nil && round >= len(order)/2 {
			now = w.later(now)
		}
		clock += time.Second
		arm, learn, err := p(item)
		if err != nil {
			return 0, err
		}
		best := 0.
		for _, rate := range now {
			best = max(best, rate)
		}
		regret += (best - now[arm]) / float64(w.items)
		if err := learn(w.reward(now[arm], rng)); err != nil {
			return 0, err
		}
	}
	return regret, nil
}

// beginning is when a world begins.
var beginning = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// reward draws what an arm with this rate earns.
func (w world) reward(rate float64, rng *rand.Rand) float64 {
	if w.graded {
		return draw(evidence.Beta{Alpha: 10 * rate, Beta: 10 * (1 - rate)}, rng)
	}
	if rng.Float64() < rate {
		return 1
	}
	return 0
}

// risen returns the rates with the last, which is the worst, become the best.
func risen(rates []float64) []float64 {
	other := append([]float64(nil), rates...)
	other[len(other)-1] = 0.9
	return other
}

// swapped returns the rates with the first, which is the best, and the last, which is the worst, in each other's place.
func swapped(rates []float64) []float64 {
	other := append([]float64(nil), rates...)
	last := len(other) - 1
	other[0], other[last] = other[last], other[0]
	return other
}

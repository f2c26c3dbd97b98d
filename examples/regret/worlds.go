package main

import (
	"fmt"
	"math/rand/v2"

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
	// swaps tells that the best and the worst arm change places after half of the rounds.
	swaps bool
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
					rates[item][arm] = evidence.Beta{Alpha: strength * level, Beta: strength * (1 - level)}.Sample(rng)
				}
			}
			return rates
		},
	}
}

// flat is a world of one item.
func flat(name string, runs int, swaps bool, rates ...float64) world {
	return world{
		name: name, items: 1, arms: len(rates), rounds: 10_000, runs: runs, swaps: swaps,
		rates: func(*rand.Rand) [][]float64 { return [][]float64{rates} },
	}
}

// worlds returns what is played: in the quick way, or to the digits that the documentation quotes.
func worlds(quick bool) []world {
	short, middle, long, still := 100, 20, 6, 200
	if quick {
		short, middle, long, still = 12, 1, 0, 20
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
	return append(all,
		flat("flat .9/.8/.5/.1", still, false, 0.9, 0.8, 0.5, 0.1),
		flat("flat .6 of ten", still, false, 0.6, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5),
		flat("flat .10 to .02", still, false, 0.10, 0.05, 0.05, 0.02),
		flat("best and worst swap", still, true, 0.9, 0.8, 0.5, 0.1),
	)
}

// play lets a rule choose through one run and returns its regret for each item: the sum, over the rounds, of how much
// more often the best arm would have succeeded.
func (w world) play(run int, seed uint64, begin func(w world, seed uint64) (player, error)) (regret float64, err error) {
	rng := rand.New(rand.NewPCG(seed, uint64(run)))
	rates := w.rates(rng)
	order := make([]int, 0, w.items*w.rounds)
	for item := range w.items {
		for range w.rounds {
			order = append(order, item)
		}
	}
	rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	p, err := begin(w, rng.Uint64())
	if err != nil {
		return 0, err
	}
	for round, item := range order {
		now := rates[item]
		if w.swaps && round >= len(order)/2 {
			now = swapped(now)
		}
		arm, learn, err := p(item)
		if err != nil {
			return 0, err
		}
		best := 0.
		for _, rate := range now {
			best = max(best, rate)
		}
		regret += (best - now[arm]) / float64(w.items)
		reward := 0.
		if rng.Float64() < now[arm] {
			reward = 1
		}
		if err := learn(reward); err != nil {
			return 0, err
		}
	}
	return regret, nil
}

// swapped returns the rates with the first, which is the best, and the last, which is the worst, in each other's place.
func swapped(rates []float64) []float64 {
	other := append([]float64(nil), rates...)
	last := len(other) - 1
	other[0], other[last] = other[last], other[0]
	return other
}

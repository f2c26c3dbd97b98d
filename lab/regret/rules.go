package regret

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/strategy"
)

// A player chooses an arm for an item, and returns a function that takes the reward.
type player func(item int) (arm int, learn func(reward float64) error, err error)

// A rule is a way of choosing.
type rule struct {
	name  string
	begin func(w world, seed uint64, now func() time.Time) (player, error)
}

func rules() []rule {
	return []rule{
		heed("copy", strategy.Config{Pooling: strategy.Copy{}}),
		heed("two-level", strategy.Config{}),
		heed("two-level, sharpness 1", strategy.Config{Pooling: strategy.TwoLevel{Sharpness: 1}}),
		heed("two-level, sharpness 3", strategy.Config{Pooling: strategy.TwoLevel{Sharpness: 3}}),
		heed("two-level, change test", strategy.Config{Change: change}),
		heed("two-level, half-life", strategy.Config{HalfLife: slowly}),
		heed("two-level, both", strategy.Config{Change: change, HalfLife: slowly}),
		heed("alone", strategy.Config{Pooling: strategy.Alone{}}),
		heed("alone, bonus", strategy.Config{Pooling: strategy.Alone{}, Exploration: strategy.Exploration{Bonus: 0.1}}),
		{"plain Thompson", plainThompson},
		{"UCB1", ucb1},
	}
}

// Two settings for worlds that change: a test for changes, and a half-life of 6,900 rounds.
var change = strategy.ChangeTest{FalseAlarms: 0.001}

const slowly = 6900 * time.Second

// heed is the learner of package strategy, as a host uses it.
func heed(name string, cfg strategy.Config) rule {
	return rule{name, func(w world, seed uint64, now func() time.Time) (player, error) {
		st, err := memstore.New(memstore.Config{Now: now, NoHistory: cfg.Change.FalseAlarms == 0})
		if err != nil {
			return nil, err
		}
		cfg := cfg // each run has its own
		cfg.Store, cfg.Unrecorded, cfg.Now, cfg.Seed = st, true, now, rand.NewPCG(seed, 1)
		index := make(map[strategy.ArmID]int)
		for arm := range w.arms {
			id := strategy.ArmID(strconv.Itoa(arm))
			cfg.Arms = append(cfg.Arms, strategy.Arm{ID: id})
			index[id] = arm
		}
		ctx := context.Background()
		learner, err := strategy.New(ctx, cfg)
		if err != nil {
			return nil, err
		}
		return func(item int) (int, func(float64) error, error) {
			choice, err := learner.Select(ctx, strategy.Query{Item: fmt.Sprint("item", item)})
			return index[choice.Arm], func(reward float64) error {
				_, err := learner.Observe(ctx, strategy.Outcome{Choice: choice, Value: 2*reward - 1, Confidence: 1})
				return err
			}, err
		}, nil
	}}
}

// plainThompson keeps a Beta posterior for each item and arm and nothing else: what Alone must come to.
func plainThompson(w world, seed uint64, _ func() time.Time) (player, error) {
	beliefs := make([][]evidence.Beta, w.items)
	for item := range beliefs {
		for range w.arms {
			beliefs[item] = append(beliefs[item], evidence.Beta{Alpha: 1, Beta: 1})
		}
	}
	rng := rand.New(rand.NewPCG(seed, 2))
	return func(item int) (int, func(float64) error, error) {
		best, most := 0, -1.
		for arm, belief := range beliefs[item] {
			if x := draw(belief, rng); x > most {
				best, most = arm, x
			}
		}
		return best, func(reward float64) error {
			beliefs[item][best].Alpha += reward
			beliefs[item][best].Beta += 1 - reward
			return nil
		}, nil
	}, nil
}

// ucb1 is the rule of Auer, Cesa-Bianchi and Fischer (2002), for each item.
func ucb1(w world, _ uint64, _ func() time.Time) (player, error) {
	type arm struct{ pulls, reward float64 }
	items := make([][]arm, w.items)
	for item := range items {
		items[item] = make([]arm, w.arms)
	}
	return func(item int) (int, func(float64) error, error) {
		total := 0.
		for _, a := range items[item] {
			total += a.pulls
		}
		best, most := 0, -1.
		for i, a := range items[item] {
			bound := math.Inf(1)
			if a.pulls > 0 {
				bound = a.reward/a.pulls + math.Sqrt(2*math.Log(total)/a.pulls)
			}
			if bound > most {
				best, most = i, bound
			}
		}
		return best, func(reward float64) error {
			items[item][best].pulls++
			items[item][best].reward += reward
			return nil
		}, nil
	}, nil
}

// draw draws a rate from a belief.
func draw(b evidence.Beta, rng *rand.Rand) float64 {
	s, r := b.Sampler(), evidence.Rand{State: rng.Uint64()}
	return s.Draw(&r)
}

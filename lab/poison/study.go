package poison

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/lab/internal/kit"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/strategy"
)

// worlds are how often each arm goes well. The last one is the worst.
var worlds = [][]float64{{0.75, 0.6, 0.5, 0.4}, {0.95, 0.9, 0.85, 0.8}}

// A setting is how a learner is guarded.
type setting struct {
	name string
	cfg  strategy.Config
}

func settings() []setting {
	return []setting{
		{"no limits", strategy.Config{}},
		{"SourceMass 1", strategy.Config{Caps: evidence.Caps{SourceMass: 1}}},
		{"SourceMass 1, SourceShare 0.05", strategy.Config{Caps: evidence.Caps{SourceMass: 1, SourceShare: 0.05}}},
		{"Guarded", strategy.Config{Guarded: true}},
	}
}

// An attack is a number of false accounts, each with a number of outcomes.
type attack struct{ accounts, outcomes int }

func (a attack) String() string {
	switch {
	case a.accounts == 0:
		return "nobody lies"
	case a.accounts == 1:
		return fmt.Sprintf("1 account, %d outcomes", a.outcomes)
	}
	return fmt.Sprintf("%d accounts, %d outcomes each", a.accounts, a.outcomes)
}

func attacks() []attack { return []attack{{}, {1, 50}, {3, 20}, {10, 20}} }

// honestAccounts say how it went: one in ten says three of ten outcomes.
const honestAccounts = 100

type study struct {
	runs     int
	seed     uint64
	honest   []int
	rates    []float64
	settings []setting
	attacks  []attack
}

// A result is what one setting came to after a number of honest outcomes.
type result struct {
	Setting string
	Honest  int
	Lost    float64 // by then, against the best arm, in good outcomes
	LostCI  float64 // half the width of the 95 % confidence interval
	Worst   []share // for each attack
}

// A share is the part of the choices that go to the worst arm.
type share struct {
	Attack string
	Mean   float64
	CI95   float64
}

// Worst returns the share of choices that go to the worst arm of the first world after 200 honest
// outcomes, while one false account praises it and while three do, as the report has them.
func Worst(ctx context.Context, guarded bool, runs int, seed uint64) (one, three float64,
	err error) {
	s := study{
		runs: runs, seed: seed, honest: []int{200}, rates: worlds[0],
		settings: []setting{{"", strategy.Config{Guarded: guarded}}}, attacks: attacks()[1:3],
	}
	results, err := s.play(ctx, func(int, int) {})
	if err != nil {
		return 0, 0, err
	}
	return results[0].Worst[0].Mean, results[0].Worst[1].Mean, nil
}

// A played run is what came of it after each number of honest outcomes.
type played struct {
	lost  []float64
	worst [][]float64 // by attack
}

// run lets one learner live through the honest outcomes, and looks at each attack in between.
func (s *study) run(ctx context.Context, cfg strategy.Config, seed uint64) (p played, err error) {
	w, err := newWorld(ctx, s.rates, cfg, seed)
	if err != nil {
		return p, err
	}
	lost := 0.
	for n := 1; n <= s.honest[len(s.honest)-1]; n++ {
		arm, err := w.honest(ctx)
		if err != nil {
			return p, err
		}
		if lost += s.rates[0] - s.rates[arm]; n != s.honest[len(p.lost)] {
			continue
		}
		worst := make([]float64, len(s.attacks))
		for a, attack := range s.attacks {
			if worst[a], err = w.under(ctx, attack); err != nil {
				return p, err
			}
		}
		p.lost, p.worst = append(p.lost, lost), append(p.worst, worst)
	}
	return p, nil
}

func (s *study) play(ctx context.Context, progress func(done, of int)) (results []result, err error) {
	all := make([][]played, len(s.settings))
	for i := range all {
		all[i] = make([]played, s.runs)
	}
	err = kit.Parallel(ctx, len(s.settings)*s.runs, progress, func(job int) (err error) {
		i, run := job%len(s.settings), job/len(s.settings)
		all[i][run], err = s.run(ctx, s.settings[i].cfg, s.seed+uint64(run))
		return err
	})
	if err != nil {
		return nil, err
	}
	of := func(runs []played, what func(played) float64) (mean, ci95 float64) {
		values := make([]float64, len(runs))
		for i, p := range runs {
			values[i] = what(p)
		}
		return kit.Mean(values)
	}
	for h, n := range s.honest {
		for i, setting := range s.settings {
			r := result{Setting: setting.name, Honest: n}
			r.Lost, r.LostCI = of(all[i], func(p played) float64 { return p.lost[h] })
			for a, attack := range s.attacks {
				mean, ci := of(all[i], func(p played) float64 { return p.worst[h][a] })
				r.Worst = append(r.Worst, share{attack.String(), mean, ci})
			}
			results = append(results, r)
		}
	}
	return results, nil
}

// A world is a learner with its accounts.
type world struct {
	learner *strategy.Learner
	rates   []float64
	index   map[strategy.ArmID]int
	rng     *rand.Rand
}

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func newWorld(ctx context.Context, rates []float64, cfg strategy.Config, seed uint64) (*world, error) {
	clock := func() time.Time { return now }
	st, err := memstore.New(memstore.Config{Now: clock})
	if err != nil {
		return nil, err
	}
	w := &world{rates: rates, index: make(map[strategy.ArmID]int), rng: rand.New(rand.NewPCG(seed, 2))}
	cfg.Store, cfg.Now, cfg.Seed, cfg.Unrecorded, cfg.BySource = st, clock, rand.NewPCG(seed, 1), true, true
	for arm := range rates {
		id := strategy.ArmID(fmt.Sprint("arm", arm))
		cfg.Arms = append(cfg.Arms, strategy.Arm{ID: id})
		w.index[id] = arm
	}
	w.learner, err = strategy.New(ctx, cfg)
	return w, err
}

// honest lets an account try what the learner chooses, and say how it went.
func (w *world) honest(ctx context.Context) (arm int, err error) {
	c, err := w.learner.Select(ctx, strategy.Query{})
	if err != nil {
		return 0, err
	}
	arm, value := w.index[c.Arm], -1.
	if w.rng.Float64() < w.rates[arm] {
		value = 1
	}
	u := w.rng.Float64()
	account := fmt.Sprint("honest", int(honestAccounts*u*u))
	_, err = w.learner.Observe(ctx, strategy.Outcome{Choice: c, Value: value, Confidence: 1, Source: account})
	return arm, err
}

// under returns the share of choices that go to the worst arm while an attack lasts, and takes back what the attackers did.
func (w *world) under(ctx context.Context, a attack) (float64, error) {
	worst := strategy.ArmID(fmt.Sprint("arm", len(w.rates)-1))
	for account := range a.accounts {
		c, err := w.learner.Select(ctx, strategy.Query{Arms: []strategy.ArmID{worst}})
		if err != nil {
			return 0, err
		}
		var outcomes []strategy.Outcome
		for n := range a.outcomes {
			outcomes = append(outcomes, strategy.Outcome{Choice: c, ID: fmt.Sprint(n), Value: 1, Confidence: 1, Source: fmt.Sprint("false", account)})
		}
		if _, err := w.learner.ObserveAll(ctx, outcomes, "", ""); err != nil {
			return 0, err
		}
	}
	c, err := w.learner.Select(ctx, strategy.Query{})
	if err != nil {
		return 0, err
	}
	c.Arm = worst // had it been chosen, with which probability?
	for account := range a.accounts {
		if err := w.learner.Reset(ctx, strategy.Reset{Source: fmt.Sprint("false", account), Actor: "operator", Reason: "a false account"}); err != nil {
			return 0, err
		}
	}
	return c.Propensity(), nil
}

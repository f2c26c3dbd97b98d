// Package poison measures what false accounts do to a learner: how often it chooses the worst arm
// after they have praised it, with and without limits on sources, and what the limits cost if all
// accounts are honest.
//
//	go run ./lab poison [-long] [-runs N] [-seed S]
//
// Honest accounts try what the learner chooses and say how it went. Then false accounts say of the
// worst arm that it went well. They choose the arm by themselves, so that nothing but the limits
// stands in their way.
package poison

import (
	"context"
	"fmt"
	"io"
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

var settings = []setting{
	{"no limits", strategy.Config{}},
	{"SourceMass 1", strategy.Config{Caps: evidence.Caps{SourceMass: 1}}},
	{"SourceMass 1, SourceShare 0.05", strategy.Config{Caps: evidence.Caps{SourceMass: 1,
		SourceShare: 0.05}}},
	{"Guarded", strategy.Config{Guarded: true}},
}

// An attack is a number of false accounts, each with a number of outcomes.
type attack struct{ accounts, outcomes int }

func (a attack) String() string { return fmt.Sprintf("%d × %d praise", a.accounts, a.outcomes) }

var attacks = []attack{{}, {1, 50}, {3, 20}, {10, 20}}

// honestAccounts say how it went: one in ten says three of ten outcomes.
const honestAccounts = 100

// Run runs the study: 10 runs of 200 honest outcomes, and in the long form 100 of 1,000.
func Run(ctx context.Context, call *kit.Call) error {
	runs := call.Count("runs", 10, 100, "how often each is done")
	seed := call.Uint64("seed", 2026, "the seed of the worlds and choices")
	if err := call.Parse(); err != nil {
		return err
	}
	fmt.Fprintf(call.Out, "`%s`: share of the choices that go to the worst arm while accounts praise it.\n", call.Command())
	for i, rates := range worlds {
		s := study{runs: *runs, seed: *seed, honest: []int{200, 1000}[:call.Pick(1, 2)], rates: rates,
			attacks: attacks}
		each, err := s.play(ctx, func(done, of int) { call.Progress(i*of+done, len(worlds)*of) })
		if err != nil {
			return err
		}
		if err := s.report(call.Out, each); err != nil {
			return err
		}
	}
	return nil
}

type study struct {
	runs    int
	seed    uint64
	honest  []int // after how many honest outcomes an attack is tried
	rates   []float64
	attacks []attack
}

// A played run is what came of it after each number of honest outcomes.
type played struct {
	lost  []float64   // by then, against the best arm, in good outcomes
	worst [][]float64 // the worst arm's share of the choices, by attack
}

// play returns the runs of each setting.
func (s *study) play(ctx context.Context, progress func(done, of int)) ([][]played, error) {
	all := make([][]played, len(settings))
	for i := range all {
		all[i] = make([]played, s.runs)
	}
	return all, kit.Parallel(ctx, len(settings)*s.runs, progress, func(job int) (err error) {
		i, run := job%len(settings), job/len(settings)
		all[i][run], err = s.run(ctx, settings[i].cfg, s.seed+uint64(run))
		return err
	})
}

// run lets one learner live through the honest outcomes, and tries each attack in between.
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

// report writes a table for each number of honest outcomes.
func (s *study) report(w io.Writer, each [][]played) error {
	fmt.Fprintf(w, "\nThe arms' rates are %v; %d runs, ± half of a 95 %% interval.\n", s.rates,
		s.runs)
	table := kit.NewTable(w)
	for h, honest := range s.honest {
		fmt.Fprintf(table, "\nafter %d honest outcomes\tlost by then\t", honest)
		for _, a := range s.attacks {
			fmt.Fprintf(table, "%s\t", a)
		}
		fmt.Fprintln(table)
		for i, runs := range each {
			fmt.Fprintf(table, "%s\t%s\t", settings[i].name, kit.MeanOf(runs,
				func(p *played) float64 { return p.lost[h] }))
			for a := range s.attacks {
				share := kit.MeanOf(runs, func(p *played) float64 { return p.worst[h][a] })
				fmt.Fprintf(table, "%s\t", share.Percent())
			}
			fmt.Fprintln(table)
		}
	}
	return table.Flush()
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

// Package tenants measures what a new tenant gains by beginning with what the arms have shown for
// other tenants: see strategy.Config.Shared.
//
//	go run ./lab tenants [-long] [-runs N] [-seed S]
//
// In each run, other tenants learn first. Then a new one makes 100 choices twice in the same world,
// sharing and alone.
package tenants

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/heedhq/heed/internal/chance"
	"github.com/heedhq/heed/lab/internal/kit"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

const (
	arms    = 4
	choices = 100 // of the new tenant
	busy    = 60  // of each other tenant
)

// A world is how tenants differ.
type world struct {
	name   string
	others int
	// the rate of a tenant is drawn from Beta(strength·m, strength·(1-m)) around an arm's mean m
	// in all tenants. Infinite: all are alike. 0: each tenant has separate rates
	strength float64
	odd      bool // the new tenant has separate rates, and the others are alike
	liars    int  // other tenants that praise the worst arm and blame the others, 1,000 times each
	rush     bool // all choices of the new tenant fall into one minute, before it is read again
}

var worlds = []world{
	{name: "alike", others: 10, strength: math.Inf(1)},
	{name: "alike, 5 others", others: 5, strength: math.Inf(1)},
	{name: "alike, in one minute", others: 10, strength: math.Inf(1), rush: true},
	{name: "nearly alike", others: 10, strength: 50},
	{name: "not alike", others: 10},
	{name: "not alike, in one minute", others: 10, rush: true},
	{name: "others alike, the new one not", others: 10, strength: math.Inf(1), odd: true},
	{name: "alike, 1 of 10 lies", others: 10, strength: math.Inf(1), liars: 1},
	{name: "alike, 3 of 10 lie", others: 10, strength: math.Inf(1), liars: 3},
}

// Run runs the study: 100 runs of each world, and in the long form 1,000.
func Run(ctx context.Context, call *kit.Call) (err error) {
	defer kit.Catch(&err)
	runs := call.Count("runs", 100, 1000, "how often each world is played")
	seed := call.Uint64("seed", 2026, "the seed of the worlds and choices")
	kit.Check(call.Parse())
	results := make([][2]float64, len(worlds)**runs)
	kit.Parallel(ctx, len(results), func(job int) {
		w := worlds[job / *runs]
		results[job] = play(ctx, &w, *seed+uint64(job%*runs)) //nolint:gosec // not negative
	})
	fmt.Fprintf(call.Out, "`%s`: regret of a new tenant in its first %d choices among %d arms, "+
		"in good outcomes. Each other tenant made %d choices before. %d paired runs, "+
		"± half of a 95 %% interval.\n\n",
		call.Command(), choices, arms, busy, *runs)
	table := kit.NewTable(call.Out)
	fmt.Fprintln(table, "| tenants | alone | shared | part |\n|---|---|---|---|")
	for i, w := range worlds {
		of := results[i**runs : (i+1)**runs]
		alone := kit.MeanOf(of, func(r *[2]float64) float64 { return r[0] })
		shared := kit.MeanOf(of, func(r *[2]float64) float64 { return r[1] })
		fmt.Fprintf(table, "| %s | %s | %s | %.0f %% |\n", w.name, alone, shared,
			100*shared.Mean/alone.Mean)
	}
	return table.Flush()
}

// A game is a store with its tenants.
type game struct {
	ctx   context.Context //nolint:containedctx // of the one run that it is for
	world *world
	store store.Store
	now   time.Time
	means [arms]float64
	luck  *rand.Rand
	seed  uint64
}

// play returns the regrets of the new tenant alone and with what others share.
func play(ctx context.Context, w *world, seed uint64) (regrets [2]float64) {
	g := &game{ctx: ctx, world: w, luck: rand.New(rand.NewPCG(seed, 1)), seed: seed,
		now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	g.store = kit.Must(memstore.New(memstore.Config{Now: func() time.Time { return g.now }}))
	g.means = g.own()
	for i := range w.others {
		g.learn(fmt.Sprint("tenant ", i), i < w.liars)
	}
	rates := g.rates()
	if w.odd {
		rates = g.own()
	}
	for i, shared := range []bool{false, true} {
		luck := rand.New(rand.NewPCG(seed, 2))
		l := g.learner(fmt.Sprint("new ", i), shared)
		for range choices {
			regrets[i] += best(rates) - rates[g.choose(l, rates, luck)]
		}
	}
	return regrets
}

// own draws rates that have nothing to do with the rates of other tenants.
func (g *game) own() (rates [arms]float64) {
	for i := range rates {
		rates[i] = 0.2 + 0.6*g.luck.Float64()
	}
	return rates
}

// rates draws the rates of one more tenant.
func (g *game) rates() (rates [arms]float64) {
	switch s := g.world.strength; {
	case s == 0:
		return g.own()
	case math.IsInf(s, 1):
		return g.means
	default:
		rng := chance.Key{A: g.luck.Uint64()}.Rand(0)
		for i, m := range g.means {
			sampler := chance.Beta(s*m, s*(1-m))
			rates[i] = sampler.Draw(&rng)
		}
		return rates
	}
}

func best(rates [arms]float64) float64 { return max(rates[0], rates[1], rates[2], rates[3]) }

func (g *game) learner(tenant string, shared bool) *strategy.Learner {
	cfg := strategy.Config{
		Store: kit.Must(store.Tenant(g.store, tenant)), Now: func() time.Time { return g.now },
		Seed: rand.NewPCG(g.seed, 3), Unrecorded: true, Shared: shared,
	}
	for arm := range arms {
		cfg.Arms = append(cfg.Arms, strategy.Arm{ID: id(arm)})
	}
	return kit.Must(strategy.New(g.ctx, cfg))
}

func id(arm int) strategy.ArmID { return strategy.ArmID(fmt.Sprint("arm ", arm)) }

// learn has another tenant choose, or lie.
func (g *game) learn(tenant string, lies bool) {
	l, rates := g.learner(tenant, true), g.rates()
	if lies {
		worst := min(rates[0], rates[1], rates[2], rates[3])
		for i := range rates {
			if rates[i] = 0; g.means[i] == worst {
				rates[i] = 1
			}
		}
		for i := range 1000 {
			c := kit.Must(l.Record(g.ctx, strategy.Query{}, id(i%arms), 0))
			g.observe(l, c, 2*rates[i%arms]-1)
		}
	} else {
		for range busy {
			g.choose(l, rates, g.luck)
		}
	}
	kit.Check(l.Refresh(g.ctx))
}

// choose makes a choice, and observes how it went.
func (g *game) choose(l *strategy.Learner, rates [arms]float64, luck *rand.Rand) (arm int) {
	if !g.world.rush {
		g.now = g.now.Add(time.Minute)
	}
	c := kit.Must(l.Select(g.ctx, strategy.Query{}))
	for c.Arm != id(arm) {
		arm++
	}
	value := -1.
	if luck.Float64() < rates[arm] {
		value = 1
	}
	g.observe(l, c, value)
	return arm
}

func (g *game) observe(l *strategy.Learner, c strategy.Choice, value float64) {
	kit.Must(l.Observe(g.ctx, strategy.Outcome{Choice: c, Value: value, Confidence: 1}))
}

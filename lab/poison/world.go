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

// A setting is how a learner is configured, and whether it gets the sources.
type setting struct {
	name    string
	cfg     strategy.Config
	unnamed bool
}

var settings = []setting{
	{name: "default"},
	{name: "strict", cfg: strategy.Config{
		Prior:       evidence.Beta{Alpha: 2, Beta: 4},
		Exploration: strategy.Exploration{Bonus: 1, MinSamples: 12},
	}},
	{name: "no limits", unnamed: true},
}

const ci = "ci"

// A world is a learner with its people.
type world struct {
	ctx     context.Context
	learner *strategy.Learner
	setting setting
	trial   trial
	luck    *rand.Rand // how the next events go, the same with and without false accounts
	lies    *rand.Rand

	number int // of outcomes
	choice strategy.Choice
	arm    int
	value  float64 // how the last choice went
}

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func armID(arm int) strategy.ArmID { return strategy.ArmID(fmt.Sprint("arm", arm)) }

func newWorld(ctx context.Context, s setting, t trial, seed uint64) *world {
	clock := func() time.Time { return now }
	cfg := s.cfg
	cfg.Store = kit.Must(memstore.New(memstore.Config{Now: clock}))
	cfg.Now, cfg.Seed, cfg.Unrecorded = clock, rand.NewPCG(seed, 1), true
	cfg.Trust.Instruments = []string{ci}
	for arm := range rates {
		cfg.Arms = append(cfg.Arms, strategy.Arm{ID: armID(arm)})
	}
	return &world{
		ctx: ctx, learner: kit.Must(strategy.New(ctx, cfg)), setting: s, trial: t,
		luck: rand.New(rand.NewPCG(seed, 2)), lies: rand.New(rand.NewPCG(seed+1, 2)),
	}
}

func (w *world) item(n int) string { return fmt.Sprint("item", n%w.trial.items) }

// choose makes the next choice, for an item at random.
func (w *world) choose() { w.choice, w.arm, w.value = w.try(w.luck) }

// try makes a choice, and returns which arm it is and how it went.
func (w *world) try(luck *rand.Rand) (c strategy.Choice, arm int, value float64) {
	item, u := w.item(luck.IntN(w.trial.items)), luck.Float64()
	c = kit.Must(w.learner.Select(w.ctx, strategy.Query{Item: item}))
	if arm = index(c.Arm); u < rates[arm] {
		return c, arm, 1
	}
	return c, arm, -1
}

func index(arm strategy.ArmID) (i int) {
	for armID(i) != arm {
		i++
	}
	return i
}

// react reports on the last choice.
func (w *world) react(value float64, source string) { w.observe(w.choice, value, source) }

func (w *world) observe(c strategy.Choice, value float64, source string) {
	o := strategy.Outcome{Choice: c, ID: fmt.Sprint(w.number), Value: value, Confidence: 1}
	if !w.setting.unnamed {
		o.Source = source
	}
	w.number++
	kit.Must(w.learner.Observe(w.ctx, o))
}

// say reports on an arm of an item that it chose by itself.
func (w *world) say(item string, arm int, source string, value float64) {
	c := kit.Must(w.learner.Record(w.ctx, strategy.Query{Item: item}, armID(arm), 0))
	w.observe(c, value, source)
}

// praise praises the worst arm on the items in turn.
func (w *world) praise(account, number int) {
	w.say(w.item(number+account), worstArm, name(account), 1)
}

// truth returns how one more choice went.
func (w *world) truth(source string) {
	c, _, value := w.try(w.lies)
	w.observe(c, value, source)
}

// looks is how many choices are drawn to see what a learner would choose next.
const looks = 400

// shares returns the share of the worst and of the best arm in the next choices, over all items.
func (w *world) shares() (worst, best float64) {
	for n := range looks {
		c := kit.Must(w.learner.Select(w.ctx, strategy.Query{Item: w.item(n), Frozen: true}))
		switch index(c.Arm) {
		case worstArm:
			worst++
		case bestArm:
			best++
		}
	}
	return worst / looks, best / looks
}

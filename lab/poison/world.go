package poison

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/heedhq/heed/evidence"
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
	went   []float64 // how each arm would have gone at the last choice
}

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func armID(arm int) strategy.ArmID { return strategy.ArmID(fmt.Sprint("arm", arm)) }

func newWorld(ctx context.Context, s setting, t trial, seed uint64) (*world, error) {
	clock := func() time.Time { return now }
	st, err := memstore.New(memstore.Config{Now: clock})
	if err != nil {
		return nil, err
	}
	cfg := s.cfg
	cfg.Store, cfg.Now, cfg.Seed, cfg.Unrecorded = st, clock, rand.NewPCG(seed, 1), true
	cfg.Trust.Instruments = []string{ci}
	for arm := range rates {
		cfg.Arms = append(cfg.Arms, strategy.Arm{ID: armID(arm)})
	}
	w := &world{ctx: ctx, setting: s, trial: t, luck: rngOf(seed), lies: rngOf(seed + 1)}
	w.learner, err = strategy.New(ctx, cfg)
	return w, err
}

func (w *world) item(n int) string { return fmt.Sprint("item", n%w.trial.items) }

// choose makes the next choice, for an item at random.
func (w *world) choose() (err error) {
	item := w.item(w.luck.IntN(w.trial.items))
	w.went = w.went[:0]
	u := w.luck.Float64()
	for _, rate := range rates {
		value := -1.
		if u < rate {
			value = 1
		}
		w.went = append(w.went, value)
	}
	if w.choice, err = w.learner.Select(w.ctx, strategy.Query{Item: item}); err != nil {
		return err
	}
	w.arm = index(w.choice.Arm)
	return nil
}

func index(arm strategy.ArmID) (i int) {
	for armID(i) != arm {
		i++
	}
	return i
}

// value is how the last choice went.
func (w *world) value() float64 { return w.went[w.arm] }

// react reports on the last choice.
func (w *world) react(value float64, source string) error {
	return w.observe(w.choice, value, source)
}

func (w *world) observe(c strategy.Choice, value float64, source string) error {
	o := strategy.Outcome{Choice: c, ID: fmt.Sprint(w.number), Value: value, Confidence: 1}
	if !w.setting.unnamed {
		o.Source = source
	}
	w.number++
	_, err := w.learner.Observe(w.ctx, o)
	return err
}

// say reports on an arm of an item that it chose by itself.
func (w *world) say(item string, arm int, source string, value float64) error {
	c, err := w.learner.Record(w.ctx, strategy.Query{Item: item}, armID(arm), 0)
	if err != nil {
		return err
	}
	return w.observe(c, value, source)
}

// praise praises the worst arm on the items in turn.
func (w *world) praise(account, number int) error {
	return w.say(w.item(number+account), worstArm, name(account), 1)
}

// truth returns how one more choice went.
func (w *world) truth(source string) error {
	item, u := w.item(w.lies.IntN(w.trial.items)), w.lies.Float64()
	c, err := w.learner.Select(w.ctx, strategy.Query{Item: item})
	if err != nil {
		return err
	}
	value := -1.
	if u < rates[index(c.Arm)] {
		value = 1
	}
	return w.observe(c, value, source)
}

// looks is how many choices are drawn to see what a learner would choose next.
const looks = 400

// shares returns the share of the worst and of the best arm in the next choices, over all items.
func (w *world) shares() (worst, best float64, err error) {
	for n := range looks {
		c, err := w.learner.Select(w.ctx, strategy.Query{Item: w.item(n), Frozen: true})
		if err != nil {
			return 0, 0, err
		}
		switch index(c.Arm) {
		case worstArm:
			worst++
		case bestArm:
			best++
		}
	}
	return worst / looks, best / looks, nil
}

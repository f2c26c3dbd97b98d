package board

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/money"
	"github.com/heedhq/heed/strategy/partition"
)

// sweepEvery is after how many requests a partition is swept.
const sweepEvery = 100

// An option changes how heed is set up.
type option struct {
	cfg     strategy.Config
	cells   bool // requests without an item get the cell of their vector
	priced  bool // the value is that of a [money.Reward]
	frugal  bool // a [money.Frugal] chooses
	history bool // the store keeps the single outcomes
}

// ofHeed returns heed's policies: first the learner with its defaults.
func ofHeed(w *world) []policy {
	all := []policy{
		heeding("heed", option{}),
		heeding("heed, cells", option{cells: true}),
		heeding("heed, Alone", option{cfg: strategy.Config{Pooling: strategy.Alone{}}}),
		heeding("heed, half-life", option{cfg: strategy.Config{HalfLife: 500 * time.Minute}}),
		heeding("heed, change test", option{cfg: strategy.Config{Change: strategy.ChangeTest{FalseAlarms: 0.001}}, history: true}),
		heeding("heed, Guarded", option{cfg: strategy.Config{Guarded: true}}),
	}
	if w.price > 0 {
		all = append(all, heeding("heed, money.Reward", option{priced: true}), heeding("heed, Frugal", option{frugal: true}))
	}
	return all
}

// A learner is heed in one process.
type learner struct {
	store   *memstore.Store
	learner *strategy.Learner
	part    *partition.Partition // nil: items are those of the requests
	pick    func(ctx context.Context, q strategy.Query) (strategy.Choice, error)
	seen    int
}

func heeding(name string, o option) policy {
	return policy{name, heeds, func(t *trial, now func() time.Time, state []byte) (router, error) {
		ctx := context.Background()
		st, err := memstore.New(memstore.Config{Now: now, NoHistory: !o.history})
		if err == nil && state != nil {
			err = st.Load(ctx, bytes.NewReader(state))
		}
		if err != nil {
			return nil, err
		}
		l := &learner{store: st}
		cfg := o.cfg
		cfg.Store, cfg.Now, cfg.Unrecorded, cfg.Seed = st, now, true, rand.NewPCG(t.seed+1, uint64(now().Unix()))
		cfg.Cache.Size = 100 // no request has a session
		if cfg.HalfLife == 0 {
			cfg.Refresh = 24 * time.Hour // no other process writes at the same time
		}
		costs := make(map[strategy.ArmID]float64)
		for arm, cost := range t.world.costs {
			cfg.Arms = append(cfg.Arms, strategy.Arm{ID: strategy.ArmID(strconv.Itoa(arm))})
			costs[cfg.Arms[arm].ID] = cost
		}
		switch {
		case o.priced:
			cfg.Reward = money.Reward{Cost: 2 * t.world.price}.Value
		case !o.frugal:
			cfg.Reward = func(o strategy.Outcome) float64 { return 2*t.world.reward((o.Value+1)/2, o.Cost) - 1 }
		}
		if l.learner, err = strategy.New(ctx, cfg); err != nil {
			return nil, err
		}
		l.pick = l.learner.Select
		if o.frugal {
			frugal, err := money.New(ctx, money.Config{Learner: l.learner, Costs: costs})
			if err != nil {
				return nil, err
			}
			l.pick = frugal.Select
		}
		if o.cells {
			l.part, err = partition.New(ctx, partition.Config{Store: st, Now: now, Seed: rand.NewPCG(t.seed+2, 0)})
		}
		return l, err
	}}
}

func (l *learner) choose(r *request) (int, any, error) {
	ctx, item := context.Background(), r.item
	if l.part != nil && item == "" {
		if l.seen++; l.seen%sweepEvery == 0 {
			if err := l.part.Sweep(ctx, r.at); err != nil {
				return 0, nil, err
			}
		}
		var err error
		if item, err = l.part.Of(r.vector); err != nil {
			return 0, nil, err
		}
	}
	choice, err := l.pick(ctx, strategy.Query{Item: item})
	if err != nil {
		return 0, nil, err
	}
	arm, err := strconv.Atoi(string(choice.Arm))
	return arm, choice, err
}

func (l *learner) learn(o *outcome) error {
	choice, ok := o.ticket.(strategy.Choice)
	if text, isText := o.ticket.(json.RawMessage); !ok && isText {
		if err := json.Unmarshal(text, &choice); err != nil {
			return err
		}
	}
	_, err := l.learner.Observe(context.Background(), strategy.Outcome{
		Choice: choice, Value: 2*o.quality - 1, Confidence: 1, Source: o.request.source, Cost: o.cost,
	})
	return err
}

func (l *learner) save() ([]byte, error) {
	var b bytes.Buffer
	err := l.store.Dump(context.Background(), &b)
	return b.Bytes(), err
}

package board

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/heedhq/heed/lab/internal/kit"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/money"
	"github.com/heedhq/heed/strategy/partition"
)

const sweepEvery = 100 // requests, for a partition

// An option changes how heed is set up.
type option struct {
	cfg    strategy.Config
	item   func(r *request) string // names a request; nil: by its own item
	cells  bool                    // a request without a name has the cell of its vector
	fitted bool                    // cells are of the vectors seen before, and stay as they are
	priced bool                    // a [money.Reward] makes the value
	frugal bool                    // a [money.Frugal] chooses
	vector bool                    // queries have the request's vector
}

// heeding is heed in a process.
func heeding(name string, o option) policy {
	return policy{name, heeds, func(t *trial, now func() time.Time, state []byte) router {
		ctx := context.Background()
		l := &learner{option: o, store: kit.Must(memstore.New(memstore.Config{Now: now}))}
		if state != nil {
			kit.Check(l.store.Load(ctx, bytes.NewReader(state)))
		}
		cfg := o.cfg
		cfg.Store, cfg.Now, cfg.Unrecorded = l.store, now, !o.vector
		cfg.Seed = rand.NewPCG(t.seed+1, uint64(now().Unix()))
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
			cfg.Reward = func(o strategy.Outcome) float64 {
				return 2*t.world.reward((o.Value+1)/2, o.Cost) - 1
			}
		}
		l.learner = kit.Must(strategy.New(ctx, cfg))
		if l.pick = l.learner.Select; o.frugal {
			l.pick = kit.Must(money.New(ctx, money.Config{Learner: l.learner, Costs: costs})).Select
		}
		if o.cells {
			cfg := partition.Config{Store: l.store, Now: now, Seed: rand.NewPCG(t.seed+2, 0)}
			l.part = kit.Must(partition.New(ctx, cfg))
		}
		if o.fitted {
			for _, vector := range t.before {
				kit.Must(l.part.Of(vector))
			}
			kit.Check(l.part.Sweep(ctx, now()))
		}
		return l
	}}
}

// routers are heed's policies: first the learner with its defaults.
func routers(w *world) []policy {
	all := []policy{
		heeding("heed", option{vector: true}),
		heeding("heed, cells", option{cells: true, vector: true}),
		heeding("heed, Alone", option{cfg: strategy.Config{Pooling: strategy.Alone{}}, vector: true}),
		heeding("heed, half-life", option{
			cfg: strategy.Config{HalfLife: 500 * time.Minute}, vector: true,
		}),
		heeding("heed, no change test", option{cfg: ignoring, vector: true}),
		heeding("heed, no vector", option{}),
	}
	if w.price > 0 {
		all = append(all, heeding("heed, money.Reward", option{priced: true}),
			heeding("heed, Frugal", option{frugal: true}))
	}
	all = append(append(all, ofTables()...), peers(func(r *request) string { return r.item })...)
	return append(all, linear("LinUCB, α=0.25", 0.25, false), linear("LinUCB, α=1", 1, false))
}

var (
	ignoring  = strategy.Config{IgnoreChanges: true}
	noItem    = heeding("no item", option{item: untold})
	trueTopic = heeding("true topic", option{item: topic})
)

func untold(*request) string  { return "" }
func topic(r *request) string { return r.topic }

// contexts are policies with more or less information on what a request is about.
func contexts(*world) []policy {
	return []policy{
		noItem, trueTopic, heeding("cells", option{cells: true, fitted: true}),
		heeding("cells, online", option{cells: true}),
		linear("linear Thompson, v=0.25", 0.25, true),
	}
}

// poolings are ways of sharing what is learned, and of forgetting.
func poolings(*world) []policy {
	pooled := func(name string, p strategy.Pooling) policy {
		return heeding(name, option{cfg: strategy.Config{Pooling: p}})
	}
	both := strategy.Config{HalfLife: 6900 * time.Minute}
	half := both
	half.IgnoreChanges = true
	bonus := strategy.Config{Pooling: strategy.Alone{}, Exploration: strategy.Exploration{Bonus: 0.1}}
	return append([]policy{
		heeding("heed", option{}), pooled("copy", strategy.Copy{}), pooled("alone", strategy.Alone{}),
		heeding("alone, bonus", option{cfg: bonus}), heeding("no change test", option{cfg: ignoring}),
		heeding("half-life, no test", option{cfg: half}), heeding("half-life", option{cfg: both}),
	}, ofTables()...)
}

// A learner is heed in one process.
type learner struct {
	option
	store   *memstore.Store
	learner *strategy.Learner
	part    *partition.Partition // nil: requests without a name have none
	seen    int                  // requests without a name
	pick    func(ctx context.Context, q strategy.Query) (strategy.Choice, error)
}

// name returns the item of a request. A partition of what comes in begins without cells, and is
// swept after every hundred requests.
func (l *learner) name(r *request) string {
	item := r.item
	if l.item != nil {
		item = l.item(r)
	}
	if item != "" || l.part == nil {
		return item
	}
	if l.seen++; !l.fitted && l.seen%sweepEvery == 0 {
		kit.Check(l.part.Sweep(context.Background(), r.at))
	}
	return kit.Must(l.part.Of(r.vector))
}

func (l *learner) choose(r *request) (int, any) {
	q := strategy.Query{Item: l.name(r)}
	if l.vector {
		q.Vector = r.vector
	}
	choice := kit.Must(l.pick(context.Background(), q))
	return kit.Must(strconv.Atoi(string(choice.Arm))), choice
}

func (l *learner) learn(o *outcome) {
	choice, ok := o.ticket.(strategy.Choice)
	if text, isText := o.ticket.(json.RawMessage); !ok && isText {
		kit.Check(json.Unmarshal(text, &choice))
	}
	kit.Must(l.learner.Observe(context.Background(), strategy.Outcome{
		Choice: choice, Value: 2*o.quality - 1, Confidence: 1, Source: o.request.source, Cost: o.cost,
	}))
}

func (l *learner) save() []byte {
	var b bytes.Buffer
	kit.Check(l.store.Dump(context.Background(), &b))
	return b.Bytes()
}

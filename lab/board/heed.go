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
	cfg    strategy.Config
	item   naming // nil: a request's own
	priced bool   // a [money.Reward] makes the value
	frugal bool   // a [money.Frugal] chooses
	vector bool   // queries have the request's vector
}

// A naming makes the function that returns a request's item.
type naming func(t *trial, st *memstore.Store, now func() time.Time) (func(r *request) (string,
	error), error)

// heeding is heed in a process.
func heeding(name string, o option) policy {
	return policy{name, heeds, func(t *trial, now func() time.Time, state []byte) (router, error) {
		ctx := context.Background()
		st, err := memstore.New(memstore.Config{Now: now})
		if err == nil && state != nil {
			err = st.Load(ctx, bytes.NewReader(state))
		}
		if err != nil {
			return nil, err
		}
		l := &learner{store: st, item: func(r *request) (string, error) { return r.item, nil },
			vector: o.vector}
		cfg := o.cfg
		cfg.Store, cfg.Now, cfg.Unrecorded = st, now, !o.vector
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
				return 2*t.world.reward((o.Value+1)/2,
					o.Cost) - 1
			}
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
		if o.item != nil {
			l.item, err = o.item(t, st, now)
		}
		return l, err
	}}
}

// named names each request by a function of the request alone.
func named(item func(r *request) string) naming {
	return func(*trial, *memstore.Store, func() time.Time) (func(*request) (string, error), error) {
		return func(r *request) (string, error) { return item(r), nil }, nil
	}
}

// online gives requests without an item the cell of their vector. The partition begins without
// cells, and is swept after every hundred requests.
func online(t *trial, st *memstore.Store, now func() time.Time) (func(*request) (string, error),
	error) {
	ctx, seen := context.Background(), 0
	part, err := partition.New(ctx, partition.Config{Store: st, Now: now, Seed: rand.NewPCG(t.seed+2,
		0)})
	return func(r *request) (string, error) {
		if r.item != "" {
			return r.item, nil
		}
		if seen++; seen%sweepEvery == 0 {
			if err := part.Sweep(ctx, r.at); err != nil {
				return "", err
			}
		}
		return part.Of(r.vector)
	}, err
}

// cells names requests by cells of the vectors that were seen before, which stay as they are.
func cells(t *trial, _ *memstore.Store, _ func() time.Time) (func(*request) (string, error),
	error) {
	part, err := partition.New(context.Background(),
		partition.Config{Seed: rand.NewPCG(t.seed+2, 0)})
	if err == nil {
		err = part.FitVectors(context.Background(), t.before)
	}
	return func(r *request) (string, error) { return part.Of(r.vector) }, err
}

// routers are heed's policies: first the learner with its defaults.
func routers(w *world) []policy {
	all := []policy{
		heeding("heed", option{vector: true}),
		heeding("heed, cells", option{item: online, vector: true}),
		heeding("heed, Alone", option{cfg: strategy.Config{Pooling: strategy.Alone{}}, vector: true}),
		heeding("heed, half-life", option{
			cfg: strategy.Config{HalfLife: 500 * time.Minute}, vector: true,
		}),
		heeding("heed, no change test", option{cfg: ignoring, vector: true}),
	}
	all = append(all, heeding("heed, no vector", option{}))
	if w.price > 0 {
		all = append(all, heeding("heed, money.Reward", option{priced: true}),
			heeding("heed, Frugal", option{frugal: true}))
	}
	all = append(append(all, ofTables()...), peers()...)
	return append(all, linear("LinUCB, α=0.25", 0.25, false), linear("LinUCB, α=1", 1, false))
}

var ignoring = strategy.Config{IgnoreChanges: true}

var (
	untold      = named(func(*request) string { return "" })
	byTrueTopic = named(func(r *request) string { return r.topic })
	noItem      = heeding("no item", option{item: untold})
	trueTopic   = heeding("true topic", option{item: byTrueTopic})
)

// contexts are policies with more or less information on what a request is about.
func contexts(*world) []policy {
	return []policy{
		noItem, trueTopic, heeding("cells", option{item: cells}),
		heeding("cells, online", option{item: online}),
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
	store   *memstore.Store
	learner *strategy.Learner
	item    func(r *request) (string, error)
	vector  bool
	pick    func(ctx context.Context, q strategy.Query) (strategy.Choice, error)
}

func (l *learner) choose(r *request) (int, any, error) {
	item, err := l.item(r)
	if err != nil {
		return 0, nil, err
	}
	q := strategy.Query{Item: item}
	if l.vector {
		q.Vector = r.vector
	}
	choice, err := l.pick(context.Background(), q)
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

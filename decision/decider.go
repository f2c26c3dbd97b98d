package decision

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/host"
	"github.com/heedhq/heed/internal/watch"
	"github.com/heedhq/heed/store"
)

// A Decider is a [Strategy] that answers with a heuristic, with the model, or not at all: see
// [Config].Strategy. Make one with [New]. A Decider is safe for concurrent use by multiple
// goroutines.
type Decider struct {
	cfg      Config
	key      evidence.Key
	models   *host.Gate
	similar  *host.Gate
	watch    *watch.Watch
	nameless atomic.Uint64 // requests without an EventID
}

var _ Strategy = (*Decider)(nil)

// New returns a Decider, or all faults of its configuration, joined; each is a [*heed.ConfigError].
// It declares its kinds of records to the store.
func New(ctx context.Context, cfg Config) (*Decider, error) {
	cfg = cfg.withDefaults()
	err := cfg.validate()
	if err == nil && cfg.Store != nil {
		err = declare(ctx, cfg.Store)
	}
	if err != nil {
		return nil, fmt.Errorf("decision: %w", err)
	}
	seed := cfg.Seed
	if seed == nil {
		seed = rand.NewPCG(rand.Uint64(), rand.Uint64()) //nolint:forbidigo // a host without a seed gets a random key
	}
	return &Decider{
		cfg: cfg, key: evidence.Key{A: seed.Uint64(), B: seed.Uint64()},
		models: host.NewGate(cfg.MaxInFlight), similar: host.NewGate(cfg.MaxInFlight),
		watch: watch.New(cfg.Observer, "decision", cfg.Now),
	}, nil
}

// Config returns the configuration in force, defaults filled in.
func (d *Decider) Config() Config { return d.cfg.withDefaults() }

// Decide implements [Strategy]: it returns what [Decider.Trusted] returns, or asks [Config].LLM
// with [Decider.Ask] and [Decider.Reply], and stores the trace. An answer whose trace cannot be
// stored comes with the store's error and without an id.
func (d *Decider) Decide(ctx context.Context, r Request) (Result, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	if err := r.prepare(); err != nil {
		return Result{}, fmt.Errorf("decision: decide: %w", err)
	}
	if r.EventID == "" {
		r.nth = d.nameless.Add(1)
	}
	var began time.Time
	if d.watch != nil {
		began = d.cfg.Now()
	}
	res := d.decide(ctx, &r)
	if err := d.keep(ctx, &r, &res); err != nil {
		d.notifyFailures(ctx, &res)
		return res, fmt.Errorf("decision: decide: the answer has no trace: %w", err)
	}
	d.Notify(ctx, res, began)
	return res, nil
}

func (d *Decider) decide(ctx context.Context, r *Request) Result {
	if res, ok := d.trusted(r); ok {
		return res
	}
	if res := d.begin(r); res.rejects(r, d.cfg.LLM) {
		return res
	}
	ask := d.ask(r)
	return d.reply(ctx, r, &ask, d.cfg.LLM)
}

// begin returns a result with what follows from the request alone.
func (d *Decider) begin(r *Request) Result {
	res := Result{Strategy: d.cfg.Strategy, Variant: r.Variant, Urgency: d.cfg.Urgency.of(r)}
	if r.AskModel {
		res.Strategy = AlwaysLLM
	}
	if res.Strategy == HeuristicFirst {
		u := &d.cfg.Urgency
		res.Tier = u.tier(res.Urgency)
		res.Threshold = u.threshold(d.cfg.Threshold, r.Biases[BiasThreshold], res.Urgency)
	}
	return res
}

// Tier returns the tier of a request, so that a host can choose where to fetch its candidates. Only
// the request's urgency and salience count.
func (d *Decider) Tier(r Request) Tier { return d.cfg.Urgency.tier(d.cfg.Urgency.of(&r)) }

// rng returns the generator of a request, for one purpose. Requests without an EventID differ by
// their number.
func (d *Decider) rng(r *Request, purpose uint64) evidence.Rand {
	if r.EventID != "" {
		return d.key.Rand(purpose, r.EventID)
	}
	return d.key.Rand(purpose, "", r.Source, r.Text, strconv.FormatUint(r.nth, 10))
}

// The purposes of randomness.
const (
	forOrder uint64 = iota
	forChoice
	forWithholding
)

// keepTimeout bounds the commit of a trace. The caller's context does not end it, as the answer is
// there and needs its trace.
const keepTimeout = 5 * time.Second

// keep stores the trace of an answer.
func (d *Decider) keep(ctx context.Context, r *Request, res *Result) error {
	if d.cfg.Store == nil {
		d.name(res)
		return nil
	}
	if ctx.Done() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), keepTimeout)
		defer cancel()
	}
	return store.Do(ctx, d.cfg.Store, func(tx *store.Tx) error { return d.traceIn(tx, r, res) })
}

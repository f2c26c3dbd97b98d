package decision

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/heedhq/heed/internal/chance"
	"github.com/heedhq/heed/internal/host"
	"github.com/heedhq/heed/internal/watch"
	"github.com/heedhq/heed/store"
)

// A Decider is a [Strategy] that answers with a heuristic, with the model, or not at all: see
// [Config].Strategy. Make one with [New]. A Decider is safe for concurrent use by multiple
// goroutines.
type Decider struct {
	cfg        Config
	key        chance.Key
	models     *host.Gate
	similar    *host.Gate
	extracting *host.Gate
	watch      *watch.Watch
	nameless   atomic.Uint64 // requests without an EventID
}

var _ Strategy = (*Decider)(nil)

// New returns a Decider, or all faults of its configuration, joined; each is a [*heed.ConfigError].
// It declares its kinds of records to the store.
func New(ctx context.Context, cfg Config) (*Decider, error) {
	cfg = cfg.withDefaults()
	err := cfg.validate()
	if err == nil && cfg.Store != nil {
		err = cfg.Store.Declare(ctx, traceKind.Kind)
	}
	if err != nil {
		return nil, fmt.Errorf("decision: %w", err)
	}
	seed := cfg.Seed
	if seed == nil {
		seed = rand.NewPCG(rand.Uint64(), rand.Uint64()) //nolint:forbidigo // a host without a seed gets a random key
	}
	return &Decider{
		cfg: cfg, key: chance.Key{A: seed.Uint64(), B: seed.Uint64()},
		models: host.NewGate(cfg.MaxInFlight), similar: host.NewGate(cfg.MaxInFlight),
		extracting: host.NewGate(extractions),
		watch:      watch.New(cfg.Observer, "decision", cfg.Now),
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
	res := Result{Strategy: d.cfg.Strategy, Variant: r.Variant, Urgency: r.urgency()}
	if r.AskModel {
		res.Strategy = alwaysLLM
	}
	if res.Strategy == heuristicFirst {
		res.Tier, res.Threshold = d.cfg.tier(res.Urgency), d.cfg.threshold(r)
	}
	return res
}

// rng returns the generator of a request, for one purpose. Requests without an EventID differ by
// their number.
func (d *Decider) rng(r *Request, purpose uint64) chance.Rand {
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

// keepTimeout bounds the commit of a trace. The caller's context does not end it, because the
// answer exists and needs its trace.
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

// The safe range of the threshold. Bias and urgency move it no further.
const (
	minThreshold = 0.30
	maxThreshold = 0.95
)

// threshold returns the confidence that a heuristic needs. It is rounded to 12 places, so that 0.8
// with a bias of -0.1 is reached by 0.7.
func (c *Config) threshold(r *Request) float64 {
	t := c.Threshold + r.Biases[biasThreshold] - r.urgency()*c.UrgencyReduction
	t = math.Round(t*1e12) / 1e12
	return min(max(t, minThreshold), maxThreshold)
}

// Trusted returns the answer of a trusted heuristic and true, or false if no heuristic answers. The
// path is [Heuristic]. Trusted does not write to the store or call the host's code, and the same
// request always gives the same result. An invalid request gives false, and [Decider.Ask] returns
// the error.
//
// To keep a heuristic from answering, call Trusted again without this candidate.
func (d *Decider) Trusted(r Request) (Result, bool) {
	if r.prepare() != nil {
		return Result{}, false
	}
	return d.trusted(&r)
}

func (d *Decider) trusted(r *Request) (Result, bool) {
	res := d.begin(r)
	if res.Strategy == alwaysLLM {
		return Result{}, false
	}
	c := d.pick(r, &res)
	if c == nil {
		return Result{}, false
	}
	res.Path, res.Text = Heuristic, c.Action
	res.MatchedID, res.CreditID = c.HeuristicID, c.HeuristicID
	res.Prediction = &Prediction{c.Confidence, c.Confidence}
	return res, true
}

// pick returns the candidate that answers, or nil. Without tiers only the first candidate that may
// answer can.
func (d *Decider) pick(r *Request, res *Result) *Candidate {
	from := r.Candidates
	if showOnly := func(c Candidate) bool { return c.ShowOnly }; slices.ContainsFunc(from, showOnly) {
		from = slices.DeleteFunc(slices.Clone(from), showOnly)
	}
	switch res.Tier {
	case soon:
		return d.draw(r, from, res.Threshold)
	case notUrgent:
		return singular(from, res.Threshold)
	case immediately:
	default:
		from = from[:min(len(from), 1)]
	}
	for i := range from {
		if from[i].Confidence >= res.Threshold {
			return &from[i]
		}
	}
	return nil
}

// draw draws one of the candidates that reach the threshold, by similarity, or by confidence if
// similarities are missing.
func (d *Decider) draw(r *Request, from []Candidate, threshold float64) *Candidate {
	similar := slices.ContainsFunc(from, func(c Candidate) bool { return c.Similarity > 0 })
	weights, total := make([]float64, len(from)), 0.
	for i, c := range from {
		if c.Confidence >= threshold {
			weights[i] = c.Confidence
			if similar {
				weights[i] = max(c.Similarity, 0)
			}
			total += weights[i]
		}
	}
	rng := d.rng(r, forChoice)
	left := rng.Float64() * total
	var drawn *Candidate
	for i, weight := range weights {
		if weight == 0 {
			continue
		}
		drawn = &from[i]
		if left -= weight; left < 0 {
			break
		}
	}
	return drawn
}

// singular returns the candidate that has both similarity and confidence, if exactly one has.
func singular(from []Candidate, threshold float64) *Candidate {
	var only *Candidate
	for i := range from {
		c := &from[i]
		if c.Similarity < singularFit || c.Confidence < max(singularFit, threshold) {
			continue
		}
		if only != nil {
			return nil
		}
		only = c
	}
	return only
}

// The least urgencies of two tiers. Less urgent events are notUrgent.
const (
	immediateFrom = 0.8
	soonFrom      = 0.4
)

// singularFit is the least similarity and the least confidence of the one candidate that may answer
// an event that is not urgent. The design calls both high and gives no value.
const singularFit = 0.9

// The tiers. In each of them a candidate must reach the threshold.
const (
	// immediately is from an urgency of 0.8 on, and is for speed. The first candidate that reaches
	// the threshold answers. Fetch candidates from a cache.
	immediately = "immediate"
	// soon is from 0.4 on, and is for variety. One of the candidates that reach the threshold is
	// drawn, weighted by similarity, or by confidence where no candidate has a similarity.
	soon = "soon"
	// notUrgent is for the model. A candidate answers only if its similarity and its confidence are
	// at least 0.9, and no other candidate has both.
	notUrgent = "not_urgent"
)

// urgency returns the urgency of a request.
func (r *Request) urgency() float64 {
	if r.Urgency > 0 {
		return r.Urgency
	}
	return min(max(r.Salience["urgency"], 0), 1)
}

func (c *Config) tier(urgency float64) string {
	switch {
	case !c.UrgencyTiers:
		return ""
	case urgency >= immediateFrom:
		return immediately
	case urgency >= soonFrom:
		return soon
	default:
		return notUrgent
	}
}

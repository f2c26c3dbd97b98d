package decision

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/faults"
	"github.com/heedhq/heed/internal/host"
	"github.com/heedhq/heed/internal/settings"
	"github.com/heedhq/heed/internal/watch"
	"github.com/heedhq/heed/store"
)

// A Variant is one of the strategies of an experiment.
type Variant struct {
	Name     string
	Strategy Strategy
	// Share is its share of the requests, relative to the others'. All 0 mean equal shares.
	Share float64
}

// ExperimentConfig configures an [Experiment].
type ExperimentConfig struct {
	// Name tells experiments apart: each splits in its own way, and counts its own outcomes. ""
	// means "experiment".
	Name string
	// Variants are at least two. The first one is the control.
	Variants []Variant
	// Shadow has the control answer every request. The others decide about it afterwards, and only
	// the report shows it. Give them no store, so that there are no traces of answers that are
	// not seen.
	Shadow bool
	// MaxShadows is how many decisions in shadow run at a time. Further ones are skipped, and
	// counted. 0 means 4.
	MaxShadows int
	// ShadowTimeout bounds a decision in shadow. 0 means a minute.
	ShadowTimeout time.Duration
	// Key splits requests: requests of one key go to one variant. nil means by EventID. Return
	// the user or the session if one person must not meet several variants. A request whose key is
	// empty is a [*heed.InputError] of the field EventID, or Key, as all of them would meet one
	// variant. In shadow there is no split.
	Key func(Request) string
	// Store keeps the outcomes, in cells of the kind "experiment.outcome" with the name of the
	// experiment as scope, and a record of each, of the kind "decision.outcome", so that it can be
	// replaced. The default limits of the records are 30 days and 1,000,000. It must be set.
	Store store.Store
	// Cost is what a decision cost, in a unit of the host's. nil means the number of calls of the
	// model. A cost that is not finite counts as an error and as 0.
	Cost func(Result) float64
	// There is enough to decide by when each variant has MinOutcomes, by weight, and either the
	// best variant is the best with at least Probability, in (½, 1), or choosing it costs at most
	// Loss, in (0, 1), of success on average. 0 means 100, 0.95 and 0.005.
	MinOutcomes, Probability, Loss float64
	// Error, if it is not 0, makes a race of the experiment: requests go to the variant that seems
	// best, and to the one that may yet be better, in place of the Shares. There is enough to
	// decide by when every other variant is surely worse, or better by at most Indifference of
	// success. From then on all requests go to the winner. Error is the probability with which that
	// is ever wrong, in (0, ½), however often one looks. A key may move to another variant as the
	// shares change. While the store can't be read, the Shares hold, and the Observer is told. It
	// can't be had in Shadow. Indifference 0 means 0.01.
	Error, Indifference float64
	// Now is the clock. nil means time.Now.
	Now func() time.Time
	// Observer is told of each outcome ([heed.Counted], with the variant as its subject), of
	// repeated ones ([heed.Duplicate]), and of failures in shadow and of reading the race
	// ([heed.Failed]).
	Observer heed.Observer
}

func (c ExperimentConfig) withDefaults() ExperimentConfig {
	c.Name = cmp.Or(c.Name, "experiment")
	c.Variants = slices.Clone(c.Variants)
	equal := !slices.ContainsFunc(c.Variants, func(v Variant) bool { return v.Share != 0 })
	for i := range c.Variants {
		if equal {
			c.Variants[i].Share = 1
		}
	}
	c.MaxShadows = cmp.Or(c.MaxShadows, 4)
	c.ShadowTimeout = cmp.Or(c.ShadowTimeout, time.Minute)
	if c.Cost == nil {
		c.Cost = func(r Result) float64 { return float64(r.Calls) }
	}
	c.MinOutcomes = cmp.Or(c.MinOutcomes, 100)
	c.Probability = cmp.Or(c.Probability, 0.95)
	c.Loss = cmp.Or(c.Loss, 0.005)
	if c.Error > 0 {
		c.Indifference = cmp.Or(c.Indifference, 0.01)
	}
	if c.Now == nil {
		c.Now = time.Now //nolint:forbidigo // the default clock of a host that gives none
	}
	return c
}

// open keeps the settings.
func (c *ExperimentConfig) open(ctx context.Context) error {
	shares := make(map[string]float64, len(c.Variants))
	for _, v := range c.Variants {
		shares[v.Name] = v.Share
	}
	return settings.Open(ctx, c.Store, c.Now(), settings.Component{Name: "experiment/" + c.Name, Fields: []settings.Field{
		{Name: "Control", Value: &c.Variants[0].Name, Set: true}, {Name: "Shares", Value: &shares, Set: true},
		{Name: "Shadow", Value: &c.Shadow, Set: c.Shadow}, {Name: "MinOutcomes", Value: &c.MinOutcomes, Set: true}, {Name: "Probability", Value: &c.Probability, Set: true},
		{Name: "Loss", Value: &c.Loss, Set: true}, {Name: "Error", Value: &c.Error, Set: true}, {Name: "Indifference", Value: &c.Indifference, Set: true},
	}})
}

func (c ExperimentConfig) validate() error {
	var found faults.List
	found.Check(evidence.CheckText("", c.Name) == nil && len(c.Name) < evidence.MaxText/2, "Name", c.Name, fmt.Sprintf("must be text of less than %d bytes", evidence.MaxText/2))
	found.Check(len(c.Variants) >= 2, "Variants", len(c.Variants), "must be two or more")
	seen := make(map[string]bool)
	for i, v := range c.Variants {
		field := fmt.Sprintf("Variants[%d]", i)
		found.Check(v.Name != "" && evidence.CheckText("", v.Name) == nil && !seen[v.Name], field+".Name", v.Name, "must be a text, and another one for each variant")
		found.Check(v.Strategy != nil, field+".Strategy", nil, "must be set")
		found.Check(v.Share > 0 && v.Share <= 1e6, field+".Share", v.Share, "must be in (0, 1e6], or 0 for all")
		seen[v.Name] = true
	}
	found.Check(c.MaxShadows > 0, "MaxShadows", c.MaxShadows, "must not be negative")
	found.Check(c.ShadowTimeout > 0, "ShadowTimeout", c.ShadowTimeout, "must not be negative")
	found.Check(c.Store != nil, "Store", nil, "must be set")
	found.Check(c.MinOutcomes > 0, "MinOutcomes", c.MinOutcomes, "must not be negative")
	found.Check(c.Probability > 0.5 && c.Probability < 1, "Probability", c.Probability, "must be in (0.5, 1), or 0 for the default")
	found.Check(c.Loss > 0 && c.Loss < 1, "Loss", c.Loss, "must be in (0, 1), or 0 for the default")
	found.Check(c.Error >= 0 && c.Error < 0.5 && (c.Error == 0 || !c.Shadow), "Error", c.Error, "must be in (0, 0.5), and not in shadow, or 0")
	found.Check(c.Indifference >= 0 && c.Indifference <= 1 && (c.Error > 0 || c.Indifference == 0), "Indifference", c.Indifference, "must be in (0, 1], with an Error, or 0")
	return found.Err()
}

// An Experiment is a [Strategy] that runs strategies on the same traffic and tells which one is
// better. Make one with [NewExperiment]. The store has the outcomes. Decisions, latencies and costs
// are counted in memory.
//
// An Experiment is safe for concurrent use by multiple goroutines.
type Experiment struct {
	cfg     ExperimentConfig
	total   float64 // of the shares
	race    race
	split   evidence.Key
	counts  []counts // by variant
	shadows *host.Gate
	places  chan struct{} // taken by each decision in shadow
	waiting chan struct{} // taken by a caller of Wait
	watch   *watch.Watch
}

var _ Strategy = (*Experiment)(nil)

// NewExperiment returns an experiment, or all faults of its configuration, joined; each is a
// [*heed.ConfigError]. The store keeps the variants, their shares and the rule for enough outcomes.
// Its audit log tells when they change.
func NewExperiment(ctx context.Context, cfg ExperimentConfig) (*Experiment, error) {
	cfg = cfg.withDefaults()
	err := cfg.validate()
	if err == nil {
		err = cfg.Store.Declare(ctx, outcomeKind.Kind)
	}
	if err == nil {
		err = cfg.open(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("decision: %w", err)
	}
	e := &Experiment{
		cfg: cfg, counts: make([]counts, len(cfg.Variants)), shadows: host.NewGate(cfg.MaxShadows),
		places: make(chan struct{}, cfg.MaxShadows), waiting: make(chan struct{}, 1),
		watch: watch.New(cfg.Observer, "experiment/"+cfg.Name, cfg.Now),
		split: evidence.Key{A: 0x9e3779b97f4a7c15, B: 0xbf58476d1ce4e5b9}, // the same everywhere and for ever
	}
	for _, v := range cfg.Variants {
		e.total += v.Share
	}
	return e, nil
}

// variant returns the variant of a request, by a hash of its key: the same in every process. In
// shadow it is the control.
func (e *Experiment) variant(ctx context.Context, r *Request) (int, error) {
	if e.cfg.Shadow {
		return 0, nil
	}
	key, field := r.EventID, "EventID"
	if e.cfg.Key != nil {
		key, field = e.cfg.Key(*r), "Key"
	}
	if key == "" {
		return 0, &heed.InputError{Field: field, Reason: "must not be empty: the experiment splits requests by it"}
	}
	rng := e.split.Rand(0, e.cfg.Name, key)
	left := rng.Float64() * e.total
	var raced []float64
	if e.cfg.Error > 0 {
		var err error
		raced, err = e.shares(ctx)
		e.watch.Failed(ctx, "read the race", err)
	}
	if raced != nil {
		left /= e.total
	}
	for i := range e.cfg.Variants {
		share := e.cfg.Variants[i].Share
		if raced != nil {
			share = raced[i]
		}
		if left -= share; left < 0 {
			return i, nil
		}
	}
	return len(e.cfg.Variants) - 1, nil
}

// Decide implements [Strategy]: the request's variant decides. A variant that panics gives a
// [*heed.PanicError].
func (e *Experiment) Decide(ctx context.Context, r Request) (Result, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	if err := r.Validate(); err != nil {
		return Result{}, fmt.Errorf("decision: decide: %w", err)
	}
	var i int
	if err := host.Call("Key", func() (err error) { i, err = e.variant(ctx, &r); return err }); err != nil {
		return Result{}, fmt.Errorf("decision: decide: %w", err)
	}
	d := e.decide(ctx, i, r)
	e.counts[i].add(&d, nil)
	if e.cfg.Shadow {
		for i := 1; i < len(e.cfg.Variants); i++ {
			e.shadow(context.WithoutCancel(ctx), i, r, d.result)
		}
	}
	return d.result, d.err
}

// decided is a decision of a variant, with its time and cost.
type decided struct {
	result  Result
	err     error
	elapsed time.Duration
	cost    float64
}

// decide has a variant decide.
func (e *Experiment) decide(ctx context.Context, i int, r Request) (d decided) {
	v := &e.cfg.Variants[i]
	r.Variant = v.Name
	began := e.cfg.Now()
	d.err = host.Call("the strategy", func() (err error) {
		d.result, err = v.Strategy.Decide(ctx, r)
		return err
	})
	d.elapsed = e.cfg.Now().Sub(began)
	d.result.Variant = v.Name
	if d.result.Path == "" {
		return d
	}
	if err := host.Call("Cost", func() error { d.cost = e.cfg.Cost(d.result); return nil }); err != nil {
		d.err = errors.Join(d.err, err)
	} else if math.IsNaN(d.cost) || math.IsInf(d.cost, 0) {
		d.cost, d.err = 0, errors.Join(d.err, fmt.Errorf("decision: decide: a cost of %v", d.cost))
	}
	return d
}

// shadow has another variant decide about a request that the control has answered, if a place is
// free.
func (e *Experiment) shadow(ctx context.Context, i int, r Request, control Result) {
	select {
	case e.places <- struct{}{}:
	default:
		e.counts[i].add(nil, nil)
		return
	}
	r.Candidates, r.Goals = slices.Clone(r.Candidates), slices.Clone(r.Goals)
	r.Salience, r.Biases = maps.Clone(r.Salience), maps.Clone(r.Biases)
	go func() {
		defer func() { <-e.places }()
		ctx, cancel := context.WithTimeout(ctx, e.cfg.ShadowTimeout)
		defer cancel()
		d, err := host.Pass(ctx, e.shadows, "the strategy", func(ctx context.Context) (decided, error) { return e.decide(ctx, i, r), nil })
		if errors.Is(err, host.ErrBusy) || ctx.Err() != nil { // a later decision is dropped
			e.counts[i].add(nil, nil)
			e.watch.Failed(ctx, "shadow", cmp.Or(err, ctx.Err()))
			return
		}
		d.err = errors.Join(d.err, err)
		e.watch.Failed(ctx, "shadow", d.err)
		e.counts[i].add(&d, &control)
	}()
}

// Wait waits until no decision in shadow runs, or returns the context's error. Call it before a
// program ends. A decision that does not heed its context holds Wait up until ShadowTimeout is
// over.
func (e *Experiment) Wait(ctx context.Context) error {
	select {
	case e.waiting <- struct{}{}:
		defer func() { <-e.waiting }()
	case <-ctx.Done():
		return ctx.Err()
	}
	for range cap(e.places) {
		select {
		case e.places <- struct{}{}:
			defer func() { <-e.places }()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// counts counts the decisions of a variant. It is safe for concurrent use.
type counts struct {
	mu        sync.Mutex
	report    VariantReport // with the sums of Cost and Latency
	latencies latencies
}

// add counts a decision, or a skipped one, which is nil.
func (c *counts) add(d *decided, control *Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d == nil {
		c.report.Skipped++
		return
	}
	c.report.Decisions++
	if d.err != nil {
		c.report.Errors++
	}
	r := &d.result
	if r.Path != "" {
		if c.report.Paths == nil {
			c.report.Paths = make(map[Path]int)
		}
		c.report.Paths[r.Path]++
	}
	if control != nil && r.Path == control.Path && strings.TrimSpace(r.Text) == strings.TrimSpace(control.Text) {
		c.report.Agreed++
	}
	c.report.Cost += d.cost
	c.report.Latency += d.elapsed
	c.latencies.add(d.elapsed)
}

// read returns the counts so far.
func (c *counts) read() VariantReport {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.report
	r.Paths, r.Latency95 = maps.Clone(r.Paths), c.latencies.quantile(0.95*float64(r.Decisions))
	n := max(r.Decisions, 1)
	r.Cost, r.Latency = r.Cost/float64(n), r.Latency/time.Duration(n)
	return r
}

package decision

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/host"
	"github.com/heedhq/heed/internal/records"
	"github.com/heedhq/heed/internal/watch"
	"github.com/heedhq/heed/store"
)

// A Decider is a [Strategy] that answers with a heuristic, with the model, or not at all: see [Config].Strategy. Make one with
// [New]. A Decider is safe for concurrent use by multiple goroutines.
type Decider struct {
	cfg      Config
	key      evidence.Key
	models   *host.Gate
	similar  *host.Gate
	watch    *watch.Watch
	nameless atomic.Uint64 // requests without an EventID
}

var _ Strategy = (*Decider)(nil)

// New returns a Decider, or all faults of its configuration, joined; each is a [*heed.ConfigError]. It declares its kinds of
// records to the store.
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

// Decide implements [Strategy]. An answer whose trace cannot be stored comes with the store's error and without an id.
func (d *Decider) Decide(ctx context.Context, r Request) (Result, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	if err := r.Validate(); err != nil {
		return Result{}, fmt.Errorf("decision: decide: %w", err)
	}
	r.Candidates = distinct(r.Candidates)
	if r.EventID == "" {
		r.nth = d.nameless.Add(1)
	}
	if d.watch == nil {
		return d.decide(ctx, &r)
	}
	began := d.cfg.Now()
	res, err := d.decide(ctx, &r)
	if err == nil {
		now := d.cfg.Now()
		d.watch.Tell(ctx, heed.Decided{
			Component: d.watch.Name(), At: now, ID: res.ResponseID, Path: string(res.Path), Reason: string(res.Reason),
			Heuristic: res.CreditID, Took: now.Sub(began),
		})
	}
	return res, err
}

func (d *Decider) decide(ctx context.Context, r *Request) (Result, error) {
	urgency := d.cfg.Urgency.of(r)
	res := Result{Strategy: d.cfg.Strategy, Variant: r.Variant, Urgency: urgency}
	if d.cfg.Strategy == AlwaysLLM {
		return d.askModel(ctx, r, res)
	}
	res.Tier = d.cfg.Urgency.tier(urgency)
	res.Threshold = d.cfg.Urgency.threshold(d.cfg.Threshold, r.Biases[BiasThreshold], urgency)
	if c := d.pick(r, &res); c != nil {
		return d.answerWith(ctx, r, c, res)
	}
	return d.askModel(ctx, r, res)
}

// Tier returns the tier of a request, so that a host can choose where to fetch its candidates. Only the request's urgency
// and salience count.
func (d *Decider) Tier(r Request) Tier { return d.cfg.Urgency.tier(d.cfg.Urgency.of(&r)) }

// rng returns the generator of a request, for one purpose. Requests without an EventID differ by their number.
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

// answerWith answers with a heuristic.
func (d *Decider) answerWith(ctx context.Context, r *Request, c *Candidate, res Result) (Result, error) {
	res.Path, res.Text = Heuristic, c.Action
	res.MatchedID, res.CreditID = c.HeuristicID, c.HeuristicID
	res.Prediction = &Prediction{c.Confidence, c.Confidence}
	return d.keep(ctx, r, res)
}

// askModel answers with the model, or says why it does not. The threshold and the urgency in res stay.
func (d *Decider) askModel(ctx context.Context, r *Request, res Result) (Result, error) {
	switch {
	case d.cfg.LLM == nil:
		res.Path, res.Reason = Rejected, LLMUnavailable
		return res, nil
	case r.CanWait:
		res.Path, res.Reason = Rejected, NotImmediate
		return res, nil
	}
	shown, withheld := d.shown(r)
	goals := d.cfg.goals(r)
	res.System, res.Prompt = d.cfg.system(r, goals), d.cfg.ask(r, shown)
	for _, c := range shown {
		res.ShownIDs = append(res.ShownIDs, c.HeuristicID)
	}
	limited, cancel := context.WithTimeout(ctx, d.cfg.Timeout)
	defer cancel()
	reply, err := d.generate(limited, &res, LLMRequest{System: res.System, Prompt: res.Prompt})
	res.Text, res.Thoughts = strings.TrimSpace(reply.Text), reply.Thoughts
	if d.cfg.Prediction == SameCall {
		d.cfg.takePrediction(&res)
	}
	if err != nil || res.Text == "" {
		res.Path, res.Text, res.Reason, res.Err = Fallback, "", reasonOf(ctx, err), err
		res.Prediction, res.PredictionFault = nil, ""
		d.watch.Failed(ctx, "model", cmp.Or(err, errNoResponse))
		return res, nil
	}
	res.Path, res.LLM, res.Cut = Model, reply.Model, reply.Cut
	if len(r.Candidates) > 0 {
		res.MatchedID = r.Candidates[0].HeuristicID
	}
	if d.cfg.Prediction == SecondCall {
		d.predict(limited, r, goals, &res)
	}
	if !res.Cut { // a part of an answer may say something else than the whole
		d.compare(ctx, r, shown, withheld, &res)
	}
	return d.keep(ctx, r, res)
}

// generate calls the model, and takes its thoughts out of the text.
func (d *Decider) generate(ctx context.Context, res *Result, r LLMRequest) (LLMResponse, error) {
	r.MaxTokens = d.cfg.MaxTokens
	if t := d.cfg.Temperature; t != nil {
		temperature := *t
		r.Temperature = &temperature
	}
	var called atomic.Bool
	reply, err := host.Pass(ctx, d.models, "the model", func(ctx context.Context) (LLMResponse, error) {
		called.Store(true)
		return d.cfg.LLM.Generate(ctx, r)
	})
	if called.Load() {
		res.Calls++
	}
	res.InputTokens += max(reply.InputTokens, 0)
	res.OutputTokens += max(reply.OutputTokens, 0)
	return spoken(reply), cmp.Or(err, wholeReply(r, reply))
}

var (
	errNoResponse = errors.New("the answer was empty")
	errCut        = errors.New("the answer was cut off")
)

// wholeReply returns an error where JSON was asked for and ends too early.
func wholeReply(r LLMRequest, reply LLMResponse) error {
	if r.JSON && reply.Cut {
		return errCut
	}
	return nil
}

// reasonOf returns why there is no answer. ctx is the caller's.
func reasonOf(ctx context.Context, err error) Reason {
	switch {
	case err == nil:
		return LLMNoResponse
	case errors.Is(err, context.Canceled) && errors.Is(ctx.Err(), context.Canceled):
		return LLMStopped
	case errors.Is(err, host.ErrBusy):
		return LLMBusy
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return LLMTimeout
	default:
		return LLMError
	}
}

// predict asks the model how probable it is that its answer succeeds. A failure costs only the prediction.
func (d *Decider) predict(ctx context.Context, r *Request, goals []string, res *Result) {
	reply, err := d.generate(ctx, res, LLMRequest{Prompt: d.cfg.predict(r.Text, res.Text, goals), JSON: true})
	p := prediction{unknown, unknown}
	if err == nil {
		p, err = parsePrediction(reply.Text)
	} else {
		res.Err = err
	}
	if err != nil {
		res.PredictionFault = strings.ReplaceAll(err.Error(), "\n", ", ")
		d.watch.Failed(ctx, "prediction", err)
	}
	res.Prediction = p.capped(d.cfg.Ceiling)
}

// keepTimeout bounds the commit of a trace. The caller's context does not end it, as the answer is there and needs its trace.
const keepTimeout = 5 * time.Second

// keep gives an answer its id and commits its trace.
func (d *Decider) keep(ctx context.Context, r *Request, res Result) (Result, error) {
	res.ResponseID = d.cfg.NewID()
	commit := r.Commit
	if commit == nil {
		commit = d.commit
	}
	if ctx.Done() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), keepTimeout)
		defer cancel()
	}
	var b store.Batch
	err := host.Call("Config.Redact", func() error { b = d.trace(r, &res); return nil })
	if err == nil {
		err = records.Retry(ctx, func() error {
			return host.Call("Request.Commit", func() error { return commit(ctx, res, b) })
		})
	}
	if err != nil {
		res.ResponseID = ""
		return res, fmt.Errorf("decision: decide: the answer has no trace: %w", err)
	}
	return res, nil
}

// commit commits a trace alone.
func (d *Decider) commit(ctx context.Context, _ Result, b store.Batch) error {
	if d.cfg.Store == nil {
		return nil
	}
	_, err := d.cfg.Store.Commit(ctx, b)
	return err
}

// trace returns the batch that stores the trace of an answer.
func (d *Decider) trace(r *Request, res *Result) store.Batch {
	if d.cfg.Store == nil {
		return store.Batch{}
	}
	turns := 0
	if res.Path == Model {
		turns = len(r.Told)
	}
	return store.Batch{Records: []store.Record{traceKind.Record(traceRow{Trace: Trace{
		ResponseID: res.ResponseID, EventID: r.EventID, Source: r.Source, Domain: r.Domain, Path: res.Path,
		Text: d.cfg.traced(r.Text, maxTraced), Response: d.cfg.traced(res.Text, maxTraced), Hashed: d.cfg.HashTexts,
		System: d.cfg.traced(res.System, maxPrompt), Prompt: d.cfg.traced(res.Prompt, maxPrompt),
		MatchedID: res.MatchedID, CreditID: res.CreditID, Prediction: res.Prediction, ShownIDs: res.ShownIDs, Compared: res.Compared,
		Variant: r.Variant, Cut: res.Cut, Turns: turns, At: evidence.InstantOf(d.cfg.Now()).Time(),
	}}, 0)}}
}

package decision

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/records"
	"github.com/heedhq/heed/store"
)

// A decider is what the strategies of this package share: the model, the prompt, the traces. It is safe for concurrent use.
type decider struct {
	name    string
	cfg     Config
	key     evidence.Key
	models  *gate
	similar *gate
}

func newDecider(ctx context.Context, name string, cfg Config) (*decider, error) {
	cfg = cfg.withDefaults()
	err := cfg.validate()
	if err == nil && cfg.Store != nil {
		err = declare(ctx, cfg.Store)
	}
	if err != nil {
		return nil, fmt.Errorf("decision: %w", err)
	}
	source := cfg.Source
	if source == nil {
		source = rand.NewPCG(rand.Uint64(), rand.Uint64()) //nolint:forbidigo // the random key of a host that gives no source
	}
	return &decider{
		name: name, cfg: cfg, key: evidence.NewKey(source.Uint64(), source.Uint64()),
		models: newGate(cfg.MaxInFlight), similar: newGate(cfg.MaxInFlight),
	}, nil
}

// Config returns the configuration in force, defaults filled in.
func (d *decider) Config() Config { return d.cfg.withDefaults() }

// LogValue implements [slog.LogValuer]: the strategy's name and the settings that decide.
func (d *decider) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("strategy", d.name),
		slog.Float64("confidence_threshold", d.cfg.Threshold),
		slog.Int("max_candidates", d.cfg.MaxCandidates),
		slog.Float64("llm_confidence_ceiling", d.cfg.Ceiling),
	)
}

// GivenUp returns how many calls of the model, and of the similarity, were given up and have not returned since.
func (d *decider) GivenUp() int { return int(d.models.givenUp.Load() + d.similar.givenUp.Load()) }

// begin checks a request.
func (d *decider) begin(ctx context.Context, r *Request) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := r.Validate(); err != nil {
		return fmt.Errorf("decision: decide: %w", err)
	}
	return nil
}

// rng returns the generator of a request, for one purpose.
func (d *decider) rng(r *Request, purpose uint64) evidence.Rand {
	return d.key.Rand(purpose, r.EventID, r.Source, r.Text)
}

// The purposes of randomness.
const (
	forOrder uint64 = iota
	forChoice
)

// askModel answers with the model, or says why it does not. What res has of the threshold and the urgency stays.
func (d *decider) askModel(ctx context.Context, r *Request, res Result) (Result, error) {
	switch {
	case d.cfg.LLM == nil:
		res.Path, res.Reason = Rejected, LLMUnavailable
		return res, nil
	case !r.Immediate:
		res.Path, res.Reason = Rejected, NotImmediate
		return res, nil
	}
	shown := d.shown(r)
	goals := d.cfg.goals(r)
	res.Prompt = d.cfg.ask(r, shown)
	for _, c := range shown {
		res.ShownIDs = append(res.ShownIDs, c.HeuristicID)
	}
	limited, cancel := context.WithTimeout(ctx, d.cfg.Timeout)
	defer cancel()
	reply, err := d.generate(limited, &res.Usage, LLMRequest{System: d.cfg.system(r.Briefing, goals), Prompt: res.Prompt})
	res.Text = strings.TrimSpace(reply.Text)
	if err != nil || res.Text == "" {
		res.Path, res.Text, res.Reason, res.Err = Fallback, "", reasonOf(err), err
		return res, nil
	}
	res.Path, res.LLM = Model, reply.Model
	if len(r.Candidates) > 0 {
		res.MatchedID = r.Candidates[0].HeuristicID
	}
	d.predict(limited, r, goals, &res)
	d.converge(ctx, r, &res)
	return d.keep(ctx, r, res)
}

// shown returns the candidates that the prompt shows, in random order.
func (d *decider) shown(r *Request) []Candidate {
	if d.cfg.NoCandidates {
		return nil
	}
	shown := slices.Clone(r.Candidates[:min(len(r.Candidates), d.cfg.MaxCandidates)])
	source := d.rng(r, forOrder)
	rand.New(&source).Shuffle(len(shown), func(i, j int) { shown[i], shown[j] = shown[j], shown[i] })
	return shown
}

// generate calls the model.
func (d *decider) generate(ctx context.Context, usage *Usage, r LLMRequest) (LLMResponse, error) {
	r.MaxTokens = d.cfg.MaxTokens
	if t := d.cfg.Temperature; t != nil {
		temperature := *t
		r.Temperature = &temperature
	}
	var called atomic.Bool
	reply, err := pass(ctx, d.models, func(ctx context.Context) (LLMResponse, error) {
		called.Store(true)
		return d.cfg.LLM.Generate(ctx, r)
	})
	if called.Load() {
		usage.Calls++
	}
	usage.InputTokens += max(reply.InputTokens, 0)
	usage.OutputTokens += max(reply.OutputTokens, 0)
	return reply, err
}

func reasonOf(err error) Reason {
	switch {
	case err == nil:
		return LLMNoResponse
	case errors.Is(err, errBusy):
		return LLMBusy
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return LLMTimeout
	default:
		return LLMError
	}
}

// predict asks the model what is to be expected of its answer. If that fails, only the prediction is lost.
func (d *decider) predict(ctx context.Context, r *Request, goals []string, res *Result) {
	reply, err := d.generate(ctx, &res.Usage, LLMRequest{Prompt: d.cfg.predict(r.Text, res.Text, goals), JSON: true})
	p := Prediction{unknown, unknown}
	if err == nil {
		p, err = parsePrediction(reply.Text, d.cfg.ClampPrediction)
	} else {
		res.Err = err
	}
	if err != nil {
		res.PredictionFault = strings.ReplaceAll(err.Error(), "\n", ", ")
	}
	res.Success, res.Confidence = min(p.Success, d.cfg.Ceiling), min(p.Confidence, d.cfg.Ceiling)
}

// converge records which candidates say what the model said. If that can't be found out, nothing is recorded.
func (d *decider) converge(ctx context.Context, r *Request, res *Result) {
	c := d.cfg.Converge
	if c.Similarity == nil || len(r.Candidates) == 0 {
		return
	}
	actions := make([]string, len(r.Candidates))
	for i := range r.Candidates {
		actions[i] = r.Candidates[i].Action
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	similarities, err := compare(ctx, d.similar, c.Similarity, res.Text, actions)
	if err != nil {
		res.Err = errors.Join(res.Err, err)
		return
	}
	for i, s := range similarities {
		if id := r.Candidates[i].HeuristicID; s >= c.Threshold {
			res.Convergence = append(res.Convergence, Convergence{id, s, slices.Contains(res.ShownIDs, id)})
		}
	}
	slices.SortStableFunc(res.Convergence, func(a, b Convergence) int { return cmp.Compare(b.Similarity, a.Similarity) })
}

// answerWith answers with a heuristic.
func (d *decider) answerWith(ctx context.Context, r *Request, c *Candidate, res Result) (Result, error) {
	res.Path, res.Text = Heuristic, c.Action
	res.MatchedID, res.CreditID = c.HeuristicID, c.HeuristicID
	res.Success, res.Confidence = c.Confidence, c.Confidence
	return d.keep(ctx, r, res)
}

// keepTimeout bounds the commit of a trace where the caller's context can end. That context itself does not: the answer is
// there, and shall have its trace.
const keepTimeout = 5 * time.Second

// keep gives an answer its id and commits its trace.
func (d *decider) keep(ctx context.Context, r *Request, res Result) (Result, error) {
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
	once := func() error { return call(func() error { return commit(ctx, res, d.trace(r, &res)) }) }
	if err := records.Retry(ctx, once); err != nil {
		res.ResponseID = ""
		return res, fmt.Errorf("decision: decide: the answer has no trace: %w", err)
	}
	return res, nil
}

// commit commits what is kept of an answer, alone.
func (d *decider) commit(ctx context.Context, _ Result, b store.Batch) error {
	if d.cfg.Store == nil {
		return nil
	}
	_, err := d.cfg.Store.Commit(ctx, b)
	return err
}

// trace returns what is kept of an answer.
func (d *decider) trace(r *Request, res *Result) store.Batch {
	if d.cfg.Store == nil {
		return store.Batch{}
	}
	return store.Batch{Records: []store.Record{traceKind.Record(traceRow{Trace: Trace{
		ResponseID: res.ResponseID, EventID: r.EventID, Source: r.Source, Domain: r.Domain, Path: res.Path,
		Text: traced(r.Text, d.cfg.HashTexts), Response: traced(res.Text, d.cfg.HashTexts), Hashed: d.cfg.HashTexts,
		MatchedID: res.MatchedID, CreditID: res.CreditID, Success: res.Success, Confidence: res.Confidence,
		Variant: r.Variant, At: evidence.InstantOf(d.cfg.Now()).Time(),
	}}, 0)}}
}

package otel

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdklog "go.opentelemetry.io/otel/sdk/log"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/loop"
)

// resultName is the event of an evaluation's result, by the conventions for GenAI.
const resultName = "gen_ai.evaluation.result"

// A Meaning maps the values of an evaluation to what they are worth. The zero Meaning belongs to
// one from 0 to 1 whose best value is 1.
type Meaning struct {
	// Worst and Best are the values that are worth -1 and 1. Worst may be the greater one, for
	// example for toxicity. Both 0 mean 0 and 1.
	Worst, Best float64
	// Labels are what labels are worth, in [-1, 1].
	Labels map[string]float64
}

// worth returns what a result is worth, in [-1, 1].
func (m *Meaning) worth(r *result) (float64, error) {
	worst, best := m.Worst, m.Best
	if worst == best {
		worst, best = 0, 1
	}
	worth, known := m.Labels[r.label]
	switch {
	case known:
		return worth, nil
	case r.value == nil:
		return 0, &heed.InputError{Field: "Label", Reason: fmt.Sprintf(
			"%q is not one of the Labels of %q", r.label, r.name)}
	case !(*r.value >= min(worst, best) && *r.value <= max(worst, best)):
		return 0, &heed.InputError{Field: "Value", Reason: fmt.Sprintf(
			"%v of %q must be between %v and %v", *r.value, r.name, worst, best)}
	}
	return 2*(*r.value-worst)/(best-worst) - 1, nil
}

// ResultsConfig configures [Results].
type ResultsConfig struct {
	Agent *loop.Agent // whose answers are evaluated. It must be set
	// Meanings are the evaluations that count, by "gen_ai.evaluation.name". Others are ignored,
	// because heed cannot decide which of their values are good.
	Meanings map[string]Meaning
	// Observer receives a [heed.Failed] for a result that the processor could not take. A panic of it
	// is dropped. nil: dropped results are not reported.
	Observer heed.Observer
	// Now is the clock: no result is later. nil means time.Now.
	Now func() time.Time
}

// Results takes results of evaluations: log records with the event name "gen_ai.evaluation.result".
// Each is an outcome of its answer, with the evaluation's name as its source, so that the latest of
// each name counts, once. Name them in Config.Instruments of package loop. The answer's id is the
// attribute "heed.answer.id"; without one, "gen_ai.response.id" or else the id of the trace,
// whichever is the id of an answer. A result with an "error.type" is ignored, and so are the events
// of a [Telemetry].
//
// It is a processor for the SDK's LoggerProvider. OnEmit does not wait: a goroutine takes the
// results, and ends when there are no more.
//
// It is safe for concurrent use by multiple goroutines.
type Results struct {
	cfg  ResultsConfig
	ctx  context.Context // of the goroutine; it ends with Shutdown
	stop context.CancelFunc

	mu      sync.Mutex
	waiting []result
	idle    chan struct{} // closed when all results are taken; nil without results
	closed  bool
}

const (
	mostWaiting = 2_048
	tries       = 3
	firstWait   = 100 * time.Millisecond
	takeTime    = 30 * time.Second // for one result
)

var _ sdklog.Processor = (*Results)(nil)

// NewResults returns results; or a [*heed.ConfigError].
func NewResults(cfg ResultsConfig) (*Results, error) {
	if cfg.Agent == nil {
		return nil, &heed.ConfigError{Field: "Agent", Reason: "must be set"}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now //nolint:forbidigo // the default clock
	}
	r := &Results{cfg: cfg}
	r.ctx, r.stop = context.WithCancel(context.Background())
	return r, nil
}

// A result is of an evaluation, with the ids that its answer may have.
type result struct {
	answers     []string
	name, label string
	value       *float64
	at          time.Time
}

// read returns the result that a record has, or false.
func (r *Results) read(record *sdklog.Record) (found result, is bool) {
	texts := make(map[string]string) // the attributes that are strings
	if found.at = record.Timestamp(); found.at.IsZero() {
		found.at = record.ObservedTimestamp()
	}
	record.WalkAttributes(func(a attribute.KeyValue) bool {
		score := a.Key == "gen_ai.evaluation.score.value"
		switch kind := a.Value.Type(); {
		case kind == attribute.STRING:
			texts[string(a.Key)] = a.Value.AsString()
		case score && kind == attribute.FLOAT64:
			value := a.Value.AsFloat64()
			found.value = &value
		case score && kind == attribute.INT64:
			value := float64(a.Value.AsInt64())
			found.value = &value
		}
		return true
	})
	found.name = texts["gen_ai.evaluation.name"]
	found.label = texts["gen_ai.evaluation.score.label"]
	if own := texts["heed.answer.id"]; own != "" {
		found.answers = []string{own}
	} else {
		found.answers = []string{texts["gen_ai.response.id"], record.TraceID().String()}
	}
	_, known := r.cfg.Meanings[found.name]
	return found, known && texts["error.type"] == ""
}

// take takes a result, for the first id that an answer has.
func (r *Results) take(ctx context.Context, of result) error {
	meaning := r.cfg.Meanings[of.name]
	worth, err := meaning.worth(&of)
	if err != nil {
		return err
	}
	if now := r.cfg.Now(); of.at.After(now) { // the evaluator's clock is ahead
		of.at = now
	}
	for _, id := range of.answers {
		if id == "" {
			continue
		}
		err := r.cfg.Agent.Outcome(ctx, id, loop.Outcome{Reward: &worth, Source: of.name, At: of.at})
		if !errors.Is(err, loop.ErrNoAnswer) {
			return err
		}
	}
	return nil
}

// Enabled reports whether a record may be a result.
func (r *Results) Enabled(_ context.Context, p sdklog.EnabledParameters) bool {
	return (p.EventName == "" || p.EventName == resultName) && p.InstrumentationScope.Name != scope
}

// errFull reports that results come faster than they are taken.
var errFull = fmt.Errorf("heed: %d results of evaluations wait already, so this one is lost",
	mostWaiting)

// OnEmit has a record taken, if it is a result.
func (r *Results) OnEmit(_ context.Context, record *sdklog.Record) error {
	if record.EventName() != resultName || record.InstrumentationScope().Name == scope {
		return nil
	}
	found, is := r.read(record)
	if !is {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed:
		return nil
	case len(r.waiting) >= mostWaiting:
		return errFull
	}
	r.waiting = append(r.waiting, found)
	if r.idle == nil {
		r.idle = make(chan struct{})
		go r.work(r.idle)
	}
	return nil
}

// work takes what waits, until no result is left.
func (r *Results) work(idle chan struct{}) {
	defer close(idle)
	for {
		r.mu.Lock()
		if len(r.waiting) == 0 {
			r.waiting, r.idle = nil, nil
			r.mu.Unlock()
			return
		}
		next := r.waiting[0]
		r.waiting = r.waiting[1:]
		r.mu.Unlock()
		if err := r.persist(next); err != nil && r.cfg.Observer != nil {
			r.tell(err)
		}
	}
}

// tell reports a failure to the observer. The observer's panic ends here, and not the process.
func (r *Results) tell(err error) {
	defer func() { _ = recover() }()
	r.cfg.Observer(r.ctx, heed.Failed{Component: "adapter/otel", At: r.cfg.Now(), What: "evaluation",
		Err: err})
}

// persist takes a result, and tries again where that may help.
func (r *Results) persist(of result) error {
	ctx, cancel := context.WithTimeout(r.ctx, takeTime)
	defer cancel()
	wait := firstWait
	for try := 1; ; try++ {
		err := r.take(ctx, of)
		if err == nil || try == tries || errors.As(err, new(*heed.InputError)) {
			return err
		}
		select {
		case <-time.After(wait):
			wait *= 2
		case <-ctx.Done():
			return err
		}
	}
}

// ForceFlush waits until all results that came before were taken.
func (r *Results) ForceFlush(ctx context.Context) error {
	r.mu.Lock()
	idle := r.idle
	r.mu.Unlock()
	if idle == nil {
		return nil
	}
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Shutdown waits as ForceFlush does. If the context ends first, it gives up what is left. Later
// results are ignored.
func (r *Results) Shutdown(ctx context.Context) error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	err := r.ForceFlush(ctx)
	if err != nil {
		r.mu.Lock()
		r.waiting = nil
		r.mu.Unlock()
	}
	r.stop()
	return err
}

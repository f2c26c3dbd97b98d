package otel

import (
	"context"
	"errors"
	"fmt"
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
// It is a processor for the SDK's LoggerProvider. OnEmit does not wait: results are taken in
// batches, as by the SDK's BatchProcessor, which drops the oldest of more than 2,048 that wait.
// Call Shutdown in the end: those that wait are lost otherwise, and its goroutines stay.
//
// It is safe for concurrent use by multiple goroutines.
type Results struct {
	*sdklog.BatchProcessor // of the results alone

	cfg ResultsConfig
}

const (
	tries     = 3
	firstWait = 100 * time.Millisecond
	mostTaken = 64 // in a batch, whose results may all be tried three times in the SDK's 30 s
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
	r.BatchProcessor = sdklog.NewBatchProcessor(taker{r}, sdklog.WithExportMaxBatchSize(mostTaken))
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

// OnEmit has a record taken, if it is a result.
func (r *Results) OnEmit(ctx context.Context, record *sdklog.Record) error {
	if record.EventName() != resultName || record.InstrumentationScope().Name == scope {
		return nil
	}
	return r.BatchProcessor.OnEmit(ctx, record)
}

// A taker takes the results in batches of records.
type taker struct{ *Results }

// Export takes results, and reports those that fail to the observer.
func (t taker) Export(ctx context.Context, records []sdklog.Record) error {
	for i := range records {
		if of, is := t.read(&records[i]); is {
			if err := t.persist(ctx, of); err != nil && t.cfg.Observer != nil {
				t.tell(ctx, err)
			}
		}
	}
	return nil
}

func (taker) ForceFlush(context.Context) error { return nil }
func (taker) Shutdown(context.Context) error   { return nil }

// tell reports a failure to the observer. The observer's panic ends here, and not the process.
func (r *Results) tell(ctx context.Context, err error) {
	defer func() { _ = recover() }()
	r.cfg.Observer(ctx, heed.Failed{Component: "adapter/otel", At: r.cfg.Now(), What: "evaluation",
		Err: err})
}

// persist takes a result, and tries again where that may help.
func (r *Results) persist(ctx context.Context, of result) error {
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

// Package otel connects heed with OpenTelemetry, both ways: what heed does becomes metrics and
// events, and results of evaluations become outcomes of an agent's answers.
//
//	telemetry, err := otel.New(otel.Config{Meters: meters, Logs: logs})
//	agent, err := loop.New(ctx,
//		loop.Config{Store: telemetry.Store(st), Observer: telemetry.Observe})
//
// A [Telemetry] reports what heed does. [Results] takes the log records called
// "gen_ai.evaluation.result", as a processor of logs.
package otel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/log"
	lognoop "go.opentelemetry.io/otel/log/noop"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/store"
)

// scope names the instrumentation.
const scope = "github.com/heedhq/heed/adapter/otel"

// Config configures a [Telemetry]. The zero Config sends no data.
type Config struct {
	Meters metric.MeterProvider // for the metrics. nil: no metrics
	Logs   log.LoggerProvider   // for the events. nil: no events
	// MaxValues bounds how many values an attribute of a metric takes, such as the ids of arms or the
	// names of tenants. Later values are counted under "other". 0 means 100. Raise it if there are
	// more arms or tenants.
	MaxValues int
}

// Telemetry reports to OpenTelemetry what heed does. It is safe for concurrent use by multiple
// goroutines.
type Telemetry struct {
	logs  log.Logger
	meter metric.Meter

	choices, answers, evidence, duplicates, changes, failures, commits metric.Int64Counter
	rewards, confidence, answering, committing                         metric.Float64Histogram
	success, bounds                                                    metric.Float64Gauge

	most   int
	mu     sync.Mutex
	values map[attribute.Key]map[string]bool // that attributes have taken
}

// New returns a telemetry, or a [*heed.ConfigError].
func New(cfg Config) (*Telemetry, error) {
	if cfg.MaxValues < 0 {
		return nil, &heed.ConfigError{Field: "MaxValues", Value: cfg.MaxValues,
			Reason: "must not be negative"}
	}
	if cfg.Meters == nil {
		cfg.Meters = noop.NewMeterProvider()
	}
	if cfg.Logs == nil {
		cfg.Logs = lognoop.NewLoggerProvider()
	}
	t := &Telemetry{
		logs: cfg.Logs.Logger(scope), meter: cfg.Meters.Meter(scope), most: cmp.Or(cfg.MaxValues, 100),
		values: make(map[attribute.Key]map[string]bool),
	}
	if err := t.instruments(); err != nil {
		return nil, fmt.Errorf("otel: %w", err)
	}
	return t, nil
}

// instruments makes the metrics.
func (t *Telemetry) instruments() (failed error) {
	seconds := []float64{0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30}
	tenths := []float64{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1}
	for _, i := range []struct {
		to               any
		name, unit, what string
		bounds           []float64
	}{
		{&t.choices, "heed.choices", "{choice}", "Arms that were chosen.", nil},
		{&t.answers, "heed.answers", "{answer}",
			"Events that were answered, or were not, by path.", nil},
		{&t.evidence, "heed.evidence", "{observation}",
			"Evidence that was counted about heuristics, patterns and rules, by channel.", nil},
		{&t.duplicates, "heed.duplicates", "{delivery}",
			"Deliveries of something that had been counted before.", nil},
		{&t.changes, "heed.changes", "{change}", "Changes of rules, patterns and beliefs.", nil},
		{&t.failures, "heed.errors", "{error}",
			"Failures that no caller receives, and events that were given up.", nil},
		{&t.commits, "heed.commits", "{commit}", "Commits of the store, by result.", nil},
		{&t.rewards, "heed.rewards", "1", "Rewards of arms, from 0 to 1.", tenths},
		{&t.confidence, "heed.confidence", "1",
			"What is believed of heuristics, patterns and rules after evidence, from 0 to 1.", tenths},
		{&t.answering, "heed.answer.duration", "s", "How long decisions took.", seconds},
		{&t.committing, "heed.commit.duration", "s", "How long commits of the store took.", seconds},
		{&t.success, "heed.success", "1",
			"Mean success of answers with learning and without, from 0 to 1.", nil},
		{&t.bounds, "heed.gain", "1",
			"The lower and the upper bound of the difference of success.", nil},
	} {
		var err error
		unit, what := metric.WithUnit(i.unit), metric.WithDescription(i.what)
		switch to := i.to.(type) {
		case *metric.Int64Counter:
			*to, err = t.meter.Int64Counter(i.name, unit, what)
		case *metric.Float64Histogram:
			*to, err = t.meter.Float64Histogram(i.name, unit, what,
				metric.WithExplicitBucketBoundaries(i.bounds...))
		case *metric.Float64Gauge:
			*to, err = t.meter.Float64Gauge(i.name, unit, what)
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

// with returns attributes of a metric, among them the tenant of the context. Empty ones are left
// out, and of too many values the later ones are "other".
func (t *Telemetry) with(ctx context.Context, all ...attribute.KeyValue) metric.MeasurementOption {
	t.mu.Lock()
	defer t.mu.Unlock()
	var attributes []attribute.KeyValue
	for _, a := range append(all, byTenant.String(heed.TenantOf(ctx))) {
		value := a.Value.AsString()
		if value == "" {
			continue
		}
		known := t.values[a.Key]
		if known == nil {
			known = make(map[string]bool)
			t.values[a.Key] = known
		}
		if !known[value] && len(known) >= t.most {
			value = "other"
		} else {
			known[value] = true
		}
		attributes = append(attributes, a.Key.String(value))
	}
	return metric.WithAttributes(attributes...)
}

// The attributes.
const (
	byComponent attribute.Key = "heed.component"
	byArm       attribute.Key = "heed.arm"
	byChannel   attribute.Key = "heed.channel"
	byPath      attribute.Key = "heed.path"
	byReason    attribute.Key = "heed.reason"
	byWhat      attribute.Key = "heed.what"
	byChange    attribute.Key = "heed.change"
	byResult    attribute.Key = "heed.result"
	byTenant    attribute.Key = "heed.tenant"
)

// Observe is a [heed.Observer]. It counts a notice. Of a few it also emits an event: a reward as
// "gen_ai.evaluation.result", and changes of rules, patterns and beliefs and failures as
// "heed.<notice>". Metrics have no ids except names of arms. The text of an error is left out,
// because it may quote people.
func (t *Telemetry) Observe(ctx context.Context, n heed.Notice) {
	by := func(component string, more ...attribute.KeyValue) metric.MeasurementOption {
		return t.with(ctx, append(more, byComponent.String(component))...)
	}
	switch n := n.(type) {
	case heed.Selected:
		t.choices.Add(ctx, 1, by(n.Component, byArm.String(n.Arm)))
	case heed.Observed:
		of := by(n.Component, byArm.String(n.Arm), byChannel.String(n.Channel))
		t.rewards.Record(ctx, n.Reward, of)
		t.reward(ctx, &n)
	case heed.Decided:
		of := by(n.Component, byPath.String(n.Path), byReason.String(n.Reason))
		t.answers.Add(ctx, 1, of)
		t.answering.Record(ctx, n.Took.Seconds(), of)
	case heed.Counted:
		of := by(n.Component, byChannel.String(n.Channel))
		t.evidence.Add(ctx, 1, of)
		if n.Before != 0 || n.After != 0 {
			t.confidence.Record(ctx, n.After, of)
		}
	case heed.Compared:
		t.compared(ctx, &n)
	case heed.Duplicate:
		t.duplicates.Add(ctx, 1, by(n.Component, byWhat.String(n.What)))
	case heed.DeadLettered:
		t.failures.Add(ctx, 1, by(n.Component, byWhat.String("dead letter")))
		t.event(ctx, log.SeverityWarn, "heed.dead_lettered", n.Component, n.ID, n.At,
			byReason.String(n.Reason))
	case heed.Outage:
		t.failures.Add(ctx, 1, by(n.Component, byWhat.String("outage")))
		t.event(ctx, log.SeverityError, "heed.outage", n.Component, "", n.At, byWhat.String(n.What),
			attribute.String("error.type", kindOf(n.Err)))
	case heed.Restored:
		t.event(ctx, log.SeverityInfo, "heed.restored", n.Component, "", n.At, byWhat.String(n.What))
	case heed.Failed:
		t.failures.Add(ctx, 1, by(n.Component, byWhat.String(n.What)))
		t.event(ctx, log.SeverityError, "heed.failed", n.Component, "", n.At, byWhat.String(n.What),
			attribute.String("error.type", kindOf(n.Err)))
	case heed.Changed:
		t.change(ctx, &n)
	}
}

// compared records what learning gains.
func (t *Telemetry) compared(ctx context.Context, n *heed.Compared) {
	record := func(g metric.Float64Gauge, x float64, what string) {
		g.Record(ctx, x, t.with(ctx, byComponent.String(n.Component), byWhat.String(what)))
	}
	record(t.success, n.Learned, "learned")
	record(t.success, n.Control, "control")
	record(t.bounds, n.Low, "low")
	record(t.bounds, n.High, "high")
}

// change reports a change of a rule, a pattern or a belief.
func (t *Telemetry) change(ctx context.Context, n *heed.Changed) {
	t.changes.Add(ctx, 1, t.with(ctx, byComponent.String(n.Component), byChange.String(n.What)))
	severity := log.SeverityInfo
	if n.What == "harmful" || n.What == "inverted" {
		severity = log.SeverityWarn
	}
	var more []attribute.KeyValue
	if n.Reason != "" {
		more = append(more, byReason.String(n.Reason))
	}
	if n.Quorum > 0 {
		more = append(more, attribute.Int("heed.approvals", n.Approvals),
			attribute.Int("heed.quorum", n.Quorum))
	}
	t.event(ctx, severity, "heed."+n.What, n.Component, n.Subject, n.At, more...)
}

// reward emits a reward as the result of an evaluation.
func (t *Telemetry) reward(ctx context.Context, n *heed.Observed) {
	t.event(ctx, log.SeverityInfo, resultName, n.Component, "", n.At,
		attribute.String("gen_ai.evaluation.name", "heed.reward"),
		attribute.Float64("gen_ai.evaluation.score.value", n.Reward),
		attribute.String("heed.choice.id", n.ID), attribute.String("heed.arm", n.Arm),
		attribute.String("heed.channel", n.Channel))
}

// event emits an event.
func (t *Telemetry) event(ctx context.Context, severity log.Severity, name, component,
	subject string, at time.Time, more ...attribute.KeyValue) {
	if !t.logs.Enabled(ctx, log.EnabledParameters{Severity: severity, EventName: name}) {
		return
	}
	var r log.Record
	r.SetEventName(name)
	r.SetTimestamp(at)
	r.SetSeverity(severity)
	r.AddAttributes(attribute.String("heed.component", component))
	if tenant := heed.TenantOf(ctx); tenant != "" {
		r.AddAttributes(byTenant.String(tenant))
	}
	if subject != "" {
		r.AddAttributes(attribute.String("heed.subject", subject))
	}
	r.AddAttributes(more...)
	t.logs.Emit(ctx, r)
}

// kindOf names the type of the error below those that only wrap it.
func kindOf(err error) string {
	for below := errors.Unwrap(err); below != nil; below = errors.Unwrap(err) {
		err = below
	}
	return fmt.Sprintf("%T", err)
}

// Store returns a store that counts the commits of another one, and how long they take.
func (t *Telemetry) Store(st store.Store) store.Store { return &counting{st, t} }

type counting struct {
	store.Store
	to *Telemetry
}

// Commit commits, and counts that.
func (c *counting) Commit(ctx context.Context, batches ...store.Batch) ([]store.Receipt, error) {
	began := time.Now() //nolint:forbidigo // how long it takes is of real time
	receipts, err := c.Store.Commit(ctx, batches...)
	result := "ok"
	switch {
	case errors.Is(err, heed.ErrConflict):
		result = "conflict" // somebody else was quicker, and the caller tries again
	case err != nil:
		result = "error"
	}
	by := c.to.with(ctx, byResult.String(result))
	c.to.commits.Add(ctx, 1, by)
	c.to.committing.Record(ctx, time.Since(began).Seconds(), by) //nolint:forbidigo // the same
	return receipts, err
}

// Package otel makes metrics of OpenTelemetry of what heed does.
//
//	telemetry, err := otel.New(meters)
//	agent, err := loop.New(ctx,
//		loop.Config{Store: telemetry.Store(st), Observer: telemetry.Observe})
//
// For log records, give [heed.LogTo] a logger of OpenTelemetry's bridge for log/slog.
package otel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/store"
)

// scope names the instrumentation.
const scope = "github.com/heedhq/heed/adapter/otel"

// Telemetry reports to OpenTelemetry what heed does. It is safe for concurrent use by multiple
// goroutines.
type Telemetry struct {
	choices, answers, evidence, duplicates, changes, failures, commits metric.Int64Counter
	rewards, confidence, answering, committing                         metric.Float64Histogram
	success, bounds                                                    metric.Float64Gauge
}

// New returns a telemetry that makes its metrics by the provider, which must not be nil: else the
// error is a [*heed.ConfigError]. The provider bounds how many arms and tenants a metric has. By
// default the SDK counts more than 2,000 sets of attributes together; see its WithCardinalityLimit.
func New(meters metric.MeterProvider) (*Telemetry, error) {
	if meters == nil {
		return nil, &heed.ConfigError{Field: "Meters", Reason: "must be set"}
	}
	t := &Telemetry{}
	if err := t.instruments(meters.Meter(scope)); err != nil {
		return nil, fmt.Errorf("otel: %w", err)
	}
	return t, nil
}

// instruments makes the metrics.
func (t *Telemetry) instruments(meter metric.Meter) (failed error) {
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
			*to, err = meter.Int64Counter(i.name, unit, what)
		case *metric.Float64Histogram:
			*to, err = meter.Float64Histogram(i.name, unit, what,
				metric.WithExplicitBucketBoundaries(i.bounds...))
		case *metric.Float64Gauge:
			*to, err = meter.Float64Gauge(i.name, unit, what)
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

// with returns attributes of a metric, among them the tenant of the context. Empty ones are left
// out.
func with(ctx context.Context, all ...attribute.KeyValue) metric.MeasurementOption {
	all = append(all, byTenant.String(heed.TenantOf(ctx)))
	return metric.WithAttributes(slices.DeleteFunc(all, func(a attribute.KeyValue) bool {
		return a.Value.AsString() == ""
	})...)
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

// Observe is a [heed.Observer]. It counts a notice. No metric has an id, except names of arms and
// tenants, and none has the text of an error, because it may quote people.
func (t *Telemetry) Observe(ctx context.Context, n heed.Notice) {
	by := func(component string, more ...attribute.KeyValue) metric.MeasurementOption {
		return with(ctx, append(more, byComponent.String(component))...)
	}
	switch n := n.(type) {
	case heed.Selected:
		t.choices.Add(ctx, 1, by(n.Component, byArm.String(n.Arm)))
	case heed.Observed:
		t.rewards.Record(ctx, n.Reward,
			by(n.Component, byArm.String(n.Arm), byChannel.String(n.Channel)))
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
		t.success.Record(ctx, n.Learned, by(n.Component, byWhat.String("learned")))
		t.success.Record(ctx, n.Control, by(n.Component, byWhat.String("control")))
		t.bounds.Record(ctx, n.Low, by(n.Component, byWhat.String("low")))
		t.bounds.Record(ctx, n.High, by(n.Component, byWhat.String("high")))
	case heed.Duplicate:
		t.duplicates.Add(ctx, 1, by(n.Component, byWhat.String(n.What)))
	case heed.DeadLettered:
		t.failures.Add(ctx, 1, by(n.Component, byWhat.String("dead letter")))
	case heed.Outage:
		t.failures.Add(ctx, 1, by(n.Component, byWhat.String("outage")))
	case heed.Failed:
		t.failures.Add(ctx, 1, by(n.Component, byWhat.String(n.What)))
	case heed.Changed:
		t.changes.Add(ctx, 1, by(n.Component, byChange.String(n.What)))
	}
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
	by := with(ctx, byResult.String(result))
	c.to.commits.Add(ctx, 1, by)
	c.to.committing.Record(ctx, time.Since(began).Seconds(), by) //nolint:forbidigo // the same
	return receipts, err
}

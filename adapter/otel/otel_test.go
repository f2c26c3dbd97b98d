package otel_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/adapter/internal/adaptertest"
	"github.com/heedhq/heed/adapter/otel"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
)

var start = time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)

// told has a telemetry with the SDK's provider.
func told(t *testing.T) (*otel.Telemetry, func() map[string]float64) {
	t.Helper()
	reader := sdkmetric.NewManualReader()
	telemetry, err := otel.New(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
	require.NoError(t, err)
	return telemetry, func() map[string]float64 { return measured(t, reader) }
}

// measured returns all points of metrics, by name and attributes: counts and gauges, and of
// histograms the sums.
func measured(t *testing.T, reader sdkmetric.Reader) map[string]float64 {
	t.Helper()
	var read metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &read))
	points := make(map[string]float64)
	name := func(m metricdata.Metrics, s attribute.Set) string {
		return m.Name + " " + s.Encoded(attribute.DefaultEncoder())
	}
	for _, scope := range read.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					points[name(m, p.Attributes)] = float64(p.Value)
				}
			case metricdata.Gauge[int64]:
				for _, p := range data.DataPoints {
					points[name(m, p.Attributes)] = float64(p.Value)
				}
			case metricdata.Gauge[float64]:
				for _, p := range data.DataPoints {
					points[name(m, p.Attributes)] = p.Value
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					points[name(m, p.Attributes)] = p.Sum
				}
			}
		}
	}
	return points
}

func TestNotices(t *testing.T) {
	const item = "customer-4711"
	for name, tt := range map[string]struct {
		notice  heed.Notice
		metrics map[string]float64
	}{
		"selected": {heed.Selected{Component: "c", ID: "i", Item: item, Arm: "a"},
			map[string]float64{"heed.choices heed.arm=a,heed.component=c": 1}},
		"observed": {
			heed.Observed{Component: "c", ID: "i", Item: item, Arm: "a", Channel: "outcome", Reward: 0.75,
				Confidence: 1},
			map[string]float64{"heed.rewards heed.arm=a,heed.channel=outcome,heed.component=c": 0.75},
		},
		"decided": {
			heed.Decided{Component: "c", ID: "i", Path: "model", Reason: "none fits",
				Took: 2 * time.Second},
			map[string]float64{
				"heed.answers heed.component=c,heed.path=model,heed.reason=none fits":         1,
				"heed.answer.duration heed.component=c,heed.path=model,heed.reason=none fits": 2,
			},
		},
		"counted": {
			heed.Counted{Component: "c", Subject: item, Channel: "undo", Before: 0.5, After: 0.25},
			map[string]float64{"heed.evidence heed.channel=undo,heed.component=c": 1,
				"heed.confidence heed.channel=undo,heed.component=c": 0.25},
		},
		"nothing computed": {heed.Counted{Component: "c", Channel: "undo"},
			map[string]float64{"heed.evidence heed.channel=undo,heed.component=c": 1}},
		"compared": {
			heed.Compared{Component: "c", Learned: 0.75, Control: 0.5, Low: 0.125, High: 0.375},
			map[string]float64{
				"heed.success heed.component=c,heed.what=learned": 0.75,
				"heed.success heed.component=c,heed.what=control": 0.5,
				"heed.gain heed.component=c,heed.what=low":        0.125,
				"heed.gain heed.component=c,heed.what=high":       0.375,
			},
		},
		"duplicate": {heed.Duplicate{Component: "c", What: "outcome", ID: item},
			map[string]float64{"heed.duplicates heed.component=c,heed.what=outcome": 1}},
		"failed": {
			heed.Failed{Component: "c", What: "model",
				Err: fmt.Errorf("ann said: %w", errors.ErrUnsupported)},
			map[string]float64{"heed.errors heed.component=c,heed.what=model": 1},
		},
		"outage": {
			heed.Outage{Component: "c", What: "store", Err: errors.ErrUnsupported},
			map[string]float64{"heed.errors heed.component=c,heed.what=outage": 1},
		},
		"restored": {
			heed.Restored{Component: "c", What: "store"}, map[string]float64{},
		},
		"dead letter": {
			heed.DeadLettered{Component: "c", ID: "i", Reason: "no JSON"},
			map[string]float64{"heed.errors heed.component=c,heed.what=dead letter": 1},
		},
		"needs approval": {
			heed.Changed{What: "needs_approval", Component: "c", Subject: "s", Approvals: 1, Quorum: 2},
			map[string]float64{"heed.changes heed.change=needs_approval,heed.component=c": 1},
		},
		"inverted": {heed.Changed{What: "inverted", Component: "c", Subject: "s", Reason: "r"},
			map[string]float64{"heed.changes heed.change=inverted,heed.component=c": 1}},
		"swept": {heed.Swept{Component: "c", Count: 3}, map[string]float64{}},
	} {
		t.Run(name, func(t *testing.T) {
			telemetry, metrics := told(t)
			telemetry.Observe(t.Context(), tt.notice)
			assert.Equal(t, tt.metrics, metrics())
		})
	}
}

// newAgent returns an agent that has answered the events.
func newAgent(t *testing.T, st store.Store, observer heed.Observer, events ...string) *loop.Agent {
	t.Helper()
	agent, err := loop.New(t.Context(), loop.Config{
		Store: st, Arms: []loop.Arm{{ID: "brief"}}, Choosing: loop.Choosing{ArmsIgnoreSilence: true},
		Observer: observer, Testing: loop.Testing{Now: func() time.Time { return start }},
		Model: decision.LLMFunc(func(context.Context, decision.LLMRequest) (decision.LLMResponse,
			error) {
			return decision.LLMResponse{Text: "Rotate its logs."}, nil
		}),
		Tuning: loop.Tuning{Feedback: feedback.Config{Gate: feedback.Gate{Quorum: 1}}},
	})
	require.NoError(t, err)
	for _, id := range events {
		_, err := agent.Answer(t.Context(), loop.Event{ID: id, Text: "The disk of db-1 is full.",
			At: start.Add(-2 * time.Hour)})
		require.NoError(t, err)
	}
	return agent
}

// TestAnAgent runs with the telemetry in its place.
func TestAnAgent(t *testing.T) {
	telemetry, metrics := told(t)
	agent := newAgent(t, telemetry.Store(&memstore.Store{}), telemetry.Observe, "one")
	require.NoError(t, agent.React(t.Context(), "one", loop.Reaction{Person: "ann", Value: 1}))
	got := metrics()
	assert.InDelta(t, 1, got["heed.choices heed.arm=brief,heed.component=strategy/strategy"], 0)
	assert.InDelta(t, 1,
		got["heed.rewards heed.arm=brief,heed.channel=user_explicit,heed.component=strategy/strategy"],
		0)
	assert.Positive(t, got["heed.commits heed.result=ok"])

	rules := agent.Feedback().Rules()
	p, err := rules.Propose(t.Context(), feedback.Submission{
		Draft: feedback.Draft{Text: "Name the server.", Agents: []string{"loop"}}, Actor: "kim",
		Reason: "It helps."})
	require.NoError(t, err)
	_, err = rules.Review(t.Context(), feedback.Review{
		Proposal: p.ID, Decision: feedback.Approved, Actor: "ann", Reason: "Yes.", Hash: p.Hash(),
	})
	require.NoError(t, err)
	got = metrics()
	assert.InDelta(t, 1, got["heed.changes heed.change=activated,heed.component=feedback"], 0)
}

// Metrics have the name of the tenant.
func TestTenants(t *testing.T) {
	telemetry, metrics := told(t)
	root := newAgent(t, &memstore.Store{}, telemetry.Observe, "one")
	for _, tenant := range []string{"acme", "bravo"} {
		agent, err := root.Tenant(t.Context(), tenant)
		require.NoError(t, err)
		_, err = agent.Answer(t.Context(), loop.Event{ID: "one", Text: "The disk is full."})
		require.NoError(t, err)
		require.NoError(t, agent.React(t.Context(), "one", loop.Reaction{Person: "ann", Value: 1}))
	}
	got := metrics()
	for tenant, n := range map[string]float64{
		"": 1, ",heed.tenant=acme": 1, ",heed.tenant=bravo": 1,
	} {
		assert.InDelta(t, n, got["heed.choices heed.arm=brief,heed.component=strategy/strategy"+tenant],
			0, tenant)
	}
}

func TestCommits(t *testing.T) {
	telemetry, metrics := told(t)
	st := telemetry.Store(&memstore.Store{})
	require.NoError(t, st.Declare(t.Context(), store.Kind{Name: "k"}))
	batch := store.Batch{Records: []store.Record{{Ref: store.Ref{Kind: "k", ID: "1"}, At: start,
		Body: store.Of(1)}}}
	_, err := st.Commit(t.Context(), batch)
	require.NoError(t, err)
	_, err = st.Commit(t.Context(), batch)
	require.ErrorIs(t, err, heed.ErrConflict)
	_, err = st.Commit(t.Context(), store.Batch{
		Records: []store.Record{{Ref: store.Ref{Kind: "none", ID: "1"}, At: start}}})
	require.Error(t, err)
	got := metrics()
	for _, result := range []string{"ok", "conflict", "error"} {
		assert.InDelta(t, 1, got["heed.commits heed.result="+result], 0, result)
	}
}

// The bounds of durations do not change, because dashboards add up the counts of many versions.
func TestBoundsStayTheSame(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	telemetry, err := otel.New(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
	require.NoError(t, err)
	telemetry.Observe(t.Context(), heed.Decided{Component: "c", Path: "model", Took: time.Second})
	var read metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &read))
	found := false
	for _, m := range read.ScopeMetrics[0].Metrics {
		if data, ok := m.Data.(metricdata.Histogram[float64]); ok && m.Name == "heed.answer.duration" {
			found = true
			assert.Equal(t, []float64{0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30},
				data.DataPoints[0].Bounds)
		}
	}
	assert.True(t, found)
}

// A failingMeter makes no counters.
type failingMeter struct{ noop.MeterProvider }

func (f failingMeter) Meter(string, ...metric.MeterOption) metric.Meter { return refusing{} }

type refusing struct{ noop.Meter }

func (refusing) Int64Counter(string, ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return nil, errors.New("no")
}

// Without one of its metrics there is no telemetry.
func TestAMeterThatFails(t *testing.T) {
	_, err := otel.New(failingMeter{})
	require.Error(t, err)
}

// A provider must be there.
func TestNoProvider(t *testing.T) {
	_, err := otel.New(nil)
	adaptertest.Faults(t, err, "Meters")
}

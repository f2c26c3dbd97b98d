package otel_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/adapter/otel"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
)

var start = time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)

// kept keeps log records, as an exporter.
type kept struct {
	mu      sync.Mutex
	records []sdklog.Record
}

func (k *kept) Export(_ context.Context, records []sdklog.Record) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range records {
		k.records = append(k.records, records[i].Clone())
	}
	return nil
}
func (k *kept) Shutdown(context.Context) error   { return nil }
func (k *kept) ForceFlush(context.Context) error { return nil }

// said returns an event with its attributes, as text.
func said(r *sdklog.Record) string {
	text := fmt.Sprint(r.Severity(), " ", r.EventName())
	r.WalkAttributes(func(a attribute.KeyValue) bool {
		text += fmt.Sprintf(" %s=%s", a.Key, a.Value.String())
		return true
	})
	return text
}

// told has a telemetry with the SDK's providers.
func told(t *testing.T, most int) (*otel.Telemetry, func() map[string]float64, *kept) {
	t.Helper()
	reader, logs := sdkmetric.NewManualReader(), &kept{}
	telemetry, err := otel.New(otel.Config{
		Meters: sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)), MaxValues: most,
		Logs: sdklog.NewLoggerProvider(sdklog.WithProcessor(sdklog.NewSimpleProcessor(logs))),
	})
	require.NoError(t, err)
	return telemetry, func() map[string]float64 { return measured(t, reader) }, logs
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
		event   string
	}{
		"selected": {heed.Selected{Component: "c", ID: "i", Item: item, Arm: "a"},
			map[string]float64{"heed.choices heed.arm=a,heed.component=c": 1}, ""},
		"observed": {
			heed.Observed{Component: "c", ID: "i", Item: item, Arm: "a", Channel: "outcome", Reward: 0.75,
				Confidence: 1},
			map[string]float64{"heed.rewards heed.arm=a,heed.channel=outcome,heed.component=c": 0.75},
			"INFO gen_ai.evaluation.result heed.component=c gen_ai.evaluation.name=heed.reward " +
				"gen_ai.evaluation.score.value=0.75 heed.choice.id=i heed.arm=a heed.channel=outcome",
		},
		"decided": {
			heed.Decided{Component: "c", ID: "i", Path: "model", Reason: "none fits",
				Took: 2 * time.Second},
			map[string]float64{
				"heed.answers heed.component=c,heed.path=model,heed.reason=none fits":         1,
				"heed.answer.duration heed.component=c,heed.path=model,heed.reason=none fits": 2,
			}, "",
		},
		"counted": {
			heed.Counted{Component: "c", Subject: item, Channel: "undo", Before: 0.5, After: 0.25},
			map[string]float64{"heed.evidence heed.channel=undo,heed.component=c": 1,
				"heed.confidence heed.channel=undo,heed.component=c": 0.25}, "",
		},
		"nothing computed": {heed.Counted{Component: "c", Channel: "undo"},
			map[string]float64{"heed.evidence heed.channel=undo,heed.component=c": 1}, ""},
		"compared": {
			heed.Compared{Component: "c", Learned: 0.75, Control: 0.5, Low: 0.125, High: 0.375},
			map[string]float64{
				"heed.success heed.component=c,heed.what=learned": 0.75,
				"heed.success heed.component=c,heed.what=control": 0.5,
				"heed.gain heed.component=c,heed.what=low":        0.125,
				"heed.gain heed.component=c,heed.what=high":       0.375,
			}, "",
		},
		"duplicate": {heed.Duplicate{Component: "c", What: "outcome", ID: item},
			map[string]float64{"heed.duplicates heed.component=c,heed.what=outcome": 1}, ""},
		"failed": {
			heed.Failed{Component: "c", What: "model",
				Err: fmt.Errorf("ann said: %w", errors.ErrUnsupported)},
			map[string]float64{"heed.errors heed.component=c,heed.what=model": 1},
			"ERROR heed.failed heed.component=c heed.what=model error.type=*errors.errorString",
		},
		"outage": {
			heed.Outage{Component: "c", What: "store", Err: errors.ErrUnsupported},
			map[string]float64{"heed.errors heed.component=c,heed.what=outage": 1},
			"ERROR heed.outage heed.component=c heed.what=store error.type=*errors.errorString",
		},
		"restored": {
			heed.Restored{Component: "c", What: "store"}, map[string]float64{},
			"INFO heed.restored heed.component=c heed.what=store",
		},
		"dead letter": {
			heed.DeadLettered{Component: "c", ID: "i", Reason: "no JSON"},
			map[string]float64{"heed.errors heed.component=c,heed.what=dead letter": 1},
			"WARN heed.dead_lettered heed.component=c heed.subject=i heed.reason=no JSON",
		},
		"proposed": {heed.Changed{What: "proposed", Component: "c", Subject: "s"},
			map[string]float64{"heed.changes heed.change=proposed,heed.component=c": 1},
			"INFO heed.proposed heed.component=c heed.subject=s"},
		"needs approval": {
			heed.Changed{What: "needs_approval", Component: "c", Subject: "s", Approvals: 1, Quorum: 2},
			map[string]float64{"heed.changes heed.change=needs_approval,heed.component=c": 1},
			"INFO heed.needs_approval heed.component=c heed.subject=s heed.approvals=1 heed.quorum=2",
		},
		"needs one": {
			heed.Changed{What: "needs_approval", Component: "c", Subject: "s", Quorum: 1},
			map[string]float64{"heed.changes heed.change=needs_approval,heed.component=c": 1},
			"INFO heed.needs_approval heed.component=c heed.subject=s heed.approvals=0 heed.quorum=1",
		},
		"ambiguous": {heed.Changed{What: "ambiguous", Component: "c", Subject: "s"},
			map[string]float64{"heed.changes heed.change=ambiguous,heed.component=c": 1},
			"INFO heed.ambiguous heed.component=c heed.subject=s"},
		"activated": {heed.Changed{What: "activated", Component: "c", Subject: "s"},
			map[string]float64{"heed.changes heed.change=activated,heed.component=c": 1},
			"INFO heed.activated heed.component=c heed.subject=s"},
		"retired": {heed.Changed{What: "retired", Component: "c", Subject: "s", Reason: "r"},
			map[string]float64{"heed.changes heed.change=retired,heed.component=c": 1},
			"INFO heed.retired heed.component=c heed.subject=s heed.reason=r"},
		"harmful": {heed.Changed{What: "harmful", Component: "c", Subject: "s", Reason: "r"},
			map[string]float64{"heed.changes heed.change=harmful,heed.component=c": 1},
			"WARN heed.harmful heed.component=c heed.subject=s heed.reason=r"},
		"inverted": {heed.Changed{What: "inverted", Component: "c", Subject: "s", Reason: "r"},
			map[string]float64{"heed.changes heed.change=inverted,heed.component=c": 1},
			"WARN heed.inverted heed.component=c heed.subject=s heed.reason=r"},
		"swept": {heed.Swept{Component: "c", Count: 3}, map[string]float64{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			telemetry, metrics, logs := told(t, 0)
			telemetry.Observe(t.Context(), tt.notice)
			assert.Equal(t, tt.metrics, metrics())
			if tt.event == "" {
				assert.Empty(t, logs.records)
				return
			}
			require.Len(t, logs.records, 1)
			assert.Equal(t, tt.event, said(&logs.records[0]))
		})
	}
}

func TestBoundedAttributes(t *testing.T) {
	telemetry, metrics, _ := told(t, 2)
	for _, arm := range []string{"a", "b", "c", "d", "a"} {
		telemetry.Observe(t.Context(), heed.Selected{Component: "c", Arm: arm})
	}
	assert.Equal(t, map[string]float64{
		"heed.choices heed.arm=a,heed.component=c": 2, "heed.choices heed.arm=b,heed.component=c": 1,
		"heed.choices heed.arm=other,heed.component=c": 2,
	}, metrics())
	_, err := otel.New(otel.Config{MaxValues: -1})
	assert.ErrorContains(t, err, "MaxValues")
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
	telemetry, metrics, _ := told(t, 0)
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

// TestTenants are told apart, and of too many the later ones are counted together.
func TestTenants(t *testing.T) {
	telemetry, metrics, logs := told(t, 2)
	root := newAgent(t, &memstore.Store{}, telemetry.Observe, "one")
	for _, tenant := range []string{"acme", "bravo", "cargo", "delta"} {
		agent, err := root.Tenant(t.Context(), tenant)
		require.NoError(t, err)
		_, err = agent.Answer(t.Context(), loop.Event{ID: "one", Text: "The disk is full."})
		require.NoError(t, err)
		require.NoError(t, agent.React(t.Context(), "one", loop.Reaction{Person: "ann", Value: 1}))
	}
	got := metrics()
	for tenant, n := range map[string]float64{
		"": 1, ",heed.tenant=acme": 1, ",heed.tenant=bravo": 1, ",heed.tenant=other": 2,
	} {
		assert.InDelta(t, n, got["heed.choices heed.arm=brief,heed.component=strategy/strategy"+tenant],
			0, tenant)
	}
	require.Len(t, logs.records, 4)
	assert.Contains(t, said(&logs.records[3]), "heed.tenant=delta")
}

func TestCommits(t *testing.T) {
	telemetry, metrics, _ := told(t, 0)
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
	telemetry, err := otel.New(otel.Config{
		Meters: sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))})
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
	_, err := otel.New(otel.Config{Meters: failingMeter{}})
	require.Error(t, err)
}

// The zero Config tells nobody.
func TestNoProviders(t *testing.T) {
	telemetry, err := otel.New(otel.Config{})
	require.NoError(t, err)
	telemetry.Observe(t.Context(), heed.Observed{Arm: "a"})
}

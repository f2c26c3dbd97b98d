package otel_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/trace"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/adapter/otel"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
)

const traceID = "5b8efff798038103d269b633813fc60c"

// A shaky store fails commits while fails is above 0.
type shaky struct {
	store.Store
	fails atomic.Int64
}

var errShaky = errors.New("the store is down")

func (s *shaky) Commit(ctx context.Context, batches ...store.Batch) ([]store.Receipt, error) {
	if s.fails.Add(-1) >= 0 {
		return nil, errShaky
	}
	return s.Store.Commit(ctx, batches...)
}

// newResults returns results for an agent that has answered the events.
func newResults(
	t *testing.T, observer heed.Observer, events ...string,
) (*otel.Results, *loop.Agent, *shaky) {
	t.Helper()
	own := &shaky{Store: &memstore.Store{}}
	agent := newAgent(t, own, nil, events...)
	results, err := otel.NewResults(otel.ResultsConfig{
		Agent: agent, Observer: observer, Now: func() time.Time { return start },
		Meanings: map[string]otel.Meaning{"Relevance": {Worst: 1, Best: 5},
			"verdict": {Labels: map[string]float64{"fail": -1}}},
	})
	require.NoError(t, err)
	return results, agent, own
}

func worth(t *testing.T, agent *loop.Agent, id string) float64 {
	t.Helper()
	account, err := agent.Explain(t.Context(), id)
	require.NoError(t, err)
	return account.Worth
}

func outcomes(t *testing.T, agent *loop.Agent) (n int) {
	t.Helper()
	for d, err := range agent.Strategy().Distributions(t.Context()) {
		require.NoError(t, err)
		n += int(d.Outcomes)
	}
	return n
}

// event makes a log record of an evaluation.
func event(at time.Time, attributes ...attribute.KeyValue) log.Record {
	var r log.Record
	r.SetEventName("gen_ai.evaluation.result")
	r.SetTimestamp(at)
	r.AddAttributes(attributes...)
	return r
}

// seen has a record that was seen at a time, for a program that sets no other.
func seen(at time.Time, r log.Record) log.Record {
	r.SetObservedTimestamp(at)
	return r
}

var (
	relevance = attribute.String("gen_ai.evaluation.name", "Relevance")
	five      = attribute.Float64("gen_ai.evaluation.score.value", 5)
	of        = func(id string) attribute.KeyValue {
		return attribute.String("gen_ai.response.id",
			id)
	}
)

func TestProcessor(t *testing.T) {
	evaluator := trace.ContextWithSpanContext(t.Context(),
		trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: must(trace.TraceIDFromHex(traceID)), SpanID: trace.SpanID{1},
		}))
	for name, tt := range map[string]struct {
		scope   string
		records []log.Record
		id      string
		worth   float64
		fault   string
	}{
		"by the response's id": {"e", []log.Record{event(start, relevance, five, of("one"))}, "one",
			1, ""},
		"by heed's own attribute": {"e", []log.Record{event(start, relevance, five, of("chatcmpl-1"),
			attribute.String("heed.answer.id", "one"))}, "one", 1, ""},
		"by the trace": {"e", []log.Record{event(start, relevance, five, of("chatcmpl-1"))},
			traceID, 1, ""},
		"by the trace alone": {"e", []log.Record{event(start, relevance, five)}, traceID, 1, ""},
		"the time it was seen at": {"e", []log.Record{
			seen(start.Add(-time.Hour), event(time.Time{}, relevance, five, of("one"))),
			event(start.Add(-time.Minute), relevance,
				attribute.Int("gen_ai.evaluation.score.value", 1), of("one"))}, "one", -1, ""},
		"an integer": {"e", []log.Record{event(start, relevance,
			attribute.Int("gen_ai.evaluation.score.value", 2), of("one"))}, "one", -0.5, ""},
		"a label": {"e", []log.Record{event(start,
			attribute.String("gen_ai.evaluation.name", "verdict"),
			attribute.String("gen_ai.evaluation.score.label", "fail"), of("one"))}, "one", -1, ""},
		"the same again": {"e", []log.Record{event(start, relevance, five, of("one")),
			event(start, relevance, five, of("one"))}, "one", 1, ""},
		"a later one": {"e", []log.Record{event(start, relevance, five, of("one")),
			event(start.Add(-time.Second), relevance, attribute.Int("gen_ai.evaluation.score.value", 1),
				of("one"))}, "one", 1, ""},
		"no time": {"e", []log.Record{event(time.Time{}, relevance, five, of("one"))},
			"one", 1, ""},
		"an evaluation that failed": {
			"e", []log.Record{event(start, relevance, five, of("one"),
				attribute.String("error.type", "timeout"))}, "one", 0, "",
		},
		"heed's own rewards": {"github.com/heedhq/heed/adapter/otel",
			[]log.Record{event(start, relevance, five, of("one"))}, "one", 0, ""},
		"out of its range": {"e", []log.Record{event(start, relevance,
			attribute.Int("gen_ai.evaluation.score.value", 6), of("one"))}, "one", 0, "Value"},
		"no name":       {"e", []log.Record{event(start, five, of("one"))}, "one", 0, ""},
		"another event": {"e", []log.Record{{}}, "one", 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var failed error
			results, agent, _ := newResults(t, func(_ context.Context, n heed.Notice) {
				failed = n.(heed.Failed).Err
				panic("an observer's panic ends nothing")
			}, tt.id)
			provider := sdklog.NewLoggerProvider(sdklog.WithProcessor(results))
			for _, r := range tt.records {
				provider.Logger(tt.scope).Emit(evaluator, r)
			}
			require.NoError(t, provider.Shutdown(t.Context()))
			assert.InDelta(t, tt.worth, worth(t, agent, tt.id), 1e-9)
			if tt.fault == "" {
				assert.NoError(t, failed)
			} else {
				assert.ErrorContains(t, failed, tt.fault)
			}
			if tt.worth != 0 {
				assert.Equal(t, 1, outcomes(t, agent))
			}
		})
	}
}

// Other events, and heed's own, need not be made.
func TestEnabled(t *testing.T) {
	results, _, _ := newResults(t, nil)
	const result, own = "gen_ai.evaluation.result", "github.com/heedhq/heed/adapter/otel"
	for of, want := range map[[2]string]bool{
		{result, "e"}: true, {"", "e"}: true, {"other", "e"}: false, {result, own}: false,
	} {
		assert.Equal(t, want, results.Enabled(t.Context(), sdklog.EnabledParameters{
			EventName: of[0], InstrumentationScope: instrumentation.Scope{Name: of[1]},
		}), of)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestAStoreThatIsDown(t *testing.T) {
	var failed []error
	results, agent, st := newResults(t, func(_ context.Context,
		n heed.Notice) {
		failed = append(failed, n.(heed.Failed).Err)
	}, "one", traceID)
	provider := sdklog.NewLoggerProvider(sdklog.WithProcessor(results))
	st.fails.Store(1)
	provider.Logger("e").Emit(t.Context(), event(start, relevance, five, of("one")))
	require.NoError(t, provider.ForceFlush(t.Context()))
	assert.Empty(t, failed, "it tried again")
	assert.InDelta(t, 1, worth(t, agent, "one"), 1e-9)
	st.fails.Store(3)
	provider.Logger("e").Emit(t.Context(), event(start, relevance, five, of(traceID)))
	require.NoError(t, provider.Shutdown(t.Context()))
	require.Len(t, failed, 1)
	require.ErrorIs(t, failed[0], errShaky)
}

// It waits no longer than its context, and takes no result after it.
func TestShutdown(t *testing.T) {
	results, agent, st := newResults(t, nil, "one")
	st.fails.Store(1000)
	logs := &kept{}
	sdklog.NewLoggerProvider(sdklog.WithProcessor(sdklog.NewSimpleProcessor(logs))).Logger("e").Emit(
		t.Context(), event(start, relevance, five, of("one")))
	record := &logs.records[0]
	require.NoError(t, results.OnEmit(t.Context(), record))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, results.Shutdown(ended), context.Canceled)
	st.fails.Store(0)
	require.NoError(t, results.OnEmit(t.Context(), record))
	require.NoError(t, results.ForceFlush(t.Context()))
	assert.Zero(t, worth(t, agent, "one"))
	_, err := otel.NewResults(otel.ResultsConfig{})
	require.ErrorContains(t, err, "Agent")
}

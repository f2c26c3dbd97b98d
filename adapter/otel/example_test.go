package otel_test

import (
	"context"
	"fmt"
	"log"

	"go.opentelemetry.io/otel/attribute"
	otellog "go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/log/global"
	"go.opentelemetry.io/otel/metric"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/heedhq/heed/adapter/otel"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
)

var (
	meanings = map[string]otel.Meaning{"Relevance": {Worst: 1, Best: 5}}

	arms  = []loop.Arm{{ID: "brief", System: "Answer in one sentence."}}
	model = decision.LLMFunc(func(context.Context, decision.LLMRequest) (decision.LLMResponse,
		error) {
		return decision.LLMResponse{Text: "Rotate its logs."}, nil
	})
)

func wire(
	ctx context.Context, st store.Store, meters metric.MeterProvider,
) (*loop.Agent, *otel.Results, error) {
	telemetry, err := otel.New(otel.Config{Meters: meters, Logs: global.GetLoggerProvider()})
	if err != nil {
		return nil, nil, err
	}
	agent, err := loop.New(ctx, loop.Config{Store: telemetry.Store(st), Model: model, Arms: arms,
		Observer: telemetry.Observe})
	if err != nil {
		return nil, nil, err
	}
	results, err := otel.NewResults(otel.ResultsConfig{Agent: agent, Meanings: meanings})
	return agent, results, err
}

// Example is the program of README.md.
func Example() {
	ctx := context.Background()
	reader := sdkmetric.NewManualReader()
	agent, results, err := wire(ctx, &memstore.Store{},
		sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
	if err != nil {
		log.Fatal(err)
	}
	// next to the processor of your exporter
	logs := sdklog.NewLoggerProvider(sdklog.WithProcessor(results))
	global.SetLoggerProvider(logs)

	if _, err := agent.Answer(ctx, loop.Event{ID: "chatcmpl-123",
		Text: "The disk of db-1 is full."}); err != nil {
		log.Fatal(err)
	}
	var evaluation otellog.Record // by any evaluator
	evaluation.SetEventName("gen_ai.evaluation.result")
	evaluation.AddAttributes(attribute.String("gen_ai.response.id", "chatcmpl-123"),
		attribute.String("gen_ai.evaluation.name", "Relevance"),
		attribute.Float64("gen_ai.evaluation.score.value", 4))
	logs.Logger("evaluator").Emit(ctx, evaluation)
	if err := logs.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}

	account, err := agent.Explain(ctx, "chatcmpl-123")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("worth", account.Worth)
	var metrics metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &metrics); err != nil {
		log.Fatal(err)
	}
	for _, m := range metrics.ScopeMetrics[0].Metrics {
		if data, ok := m.Data.(metricdata.Histogram[float64]); ok && m.Name == "heed.rewards" {
			arm, _ := data.DataPoints[0].Attributes.Value("heed.arm")
			fmt.Println(m.Name, arm.AsString(), data.DataPoints[0].Sum)
		}
	}
	// Output:
	// worth 0.5
	// heed.rewards brief 0.75
}

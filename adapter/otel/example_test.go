package otel_test

import (
	"context"
	"fmt"
	"log"

	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/heedhq/heed/adapter/otel"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
)

var (
	arms  = []loop.Arm{{ID: "brief", System: "Answer in one sentence."}}
	model = decision.LLMFunc(func(context.Context, decision.LLMRequest) (decision.LLMResponse,
		error) {
		return decision.LLMResponse{Text: "Rotate its logs."}, nil
	})
)

func wire(ctx context.Context, st store.Store, meters metric.MeterProvider) (*loop.Agent, error) {
	telemetry, err := otel.New(meters)
	if err != nil {
		return nil, err
	}
	return loop.New(ctx, loop.Config{Store: telemetry.Store(st), Model: model, Arms: arms,
		Observer: telemetry.Observe})
}

// Example is the program of README.md.
func Example() {
	ctx := context.Background()
	reader := sdkmetric.NewManualReader()
	agent, err := wire(ctx, &memstore.Store{},
		sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
	if err != nil {
		log.Fatal(err)
	}
	event := loop.Event{ID: "m1", Text: "The disk of db-1 is full."}
	if _, err := agent.Answer(ctx, event); err != nil {
		log.Fatal(err)
	}
	worth := 0.5
	outcome := loop.Outcome{Reward: &worth, Source: "evaluator"}
	if err := agent.Outcome(ctx, "m1", outcome); err != nil {
		log.Fatal(err)
	}
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
	// heed.rewards brief 0.75
}

package otel_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/heedhq/heed/adapter/internal/adaptertest"
	"github.com/heedhq/heed/adapter/otel"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
)

func TestDocs(t *testing.T) { adaptertest.Page(t, "README.md") }

// metered is as the page has it.
func metered(
	ctx context.Context, st store.Store, meters metric.MeterProvider,
) (*loop.Agent, error) {
	telemetry, err := otel.New(otel.Config{Meters: meters})
	if err != nil {
		return nil, err
	}
	return loop.New(ctx, loop.Config{Store: telemetry.Store(st), Observer: telemetry.Observe})
}

func TestMetricsAlone(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	_, err := metered(t.Context(), &memstore.Store{},
		sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
	require.NoError(t, err)
	var metrics metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &metrics))
	assert.NotEmpty(t, metrics.ScopeMetrics)
}

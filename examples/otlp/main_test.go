package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
)

// The exporter sends again what is answered by 503, also where the first delivery counted, and the
// result counts once.
func TestExporter(t *testing.T) {
	var calls atomic.Int64
	var out strings.Builder
	require.NoError(t, run(t.Context(), &out, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if calls.Add(1) > 1 {
				h.ServeHTTP(w, r)
				return
			}
			taken := httptest.NewRecorder()
			h.ServeHTTP(taken, r)
			assert.Equal(t, http.StatusOK, taken.Code)
			w.WriteHeader(http.StatusServiceUnavailable) // as if the answer were lost
		})
	}, otlploghttp.WithRetry(otlploghttp.RetryConfig{Enabled: true, InitialInterval: time.Millisecond,
		MaxInterval: time.Second, MaxElapsedTime: time.Minute})))
	assert.Equal(t, "worth 0.5\n", out.String())
	assert.EqualValues(t, 2, calls.Load())
}

package enginetest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/sqlstore"
)

func TestAllTracesThatAreKept(t *testing.T) {
	onEach(t, func(t *testing.T, at place) {
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		traces, err := sqlstore.NewTraces(at.db(t), sqlstore.TracesConfig{Now: func() time.Time { return now }, TTL: 2 * time.Hour})
		require.NoError(t, err)
		for _, id := range []string{"b", "a", "c", "d"} {
			require.NoError(t, traces.Put(ctx, decision.Trace{ResponseID: id, Path: decision.Model, At: now}))
			now = now.Add(time.Hour)
		}
		var ids []string
		for trace, err := range traces.All(ctx) {
			require.NoError(t, err)
			ids = append(ids, trace.ResponseID)
		}
		assert.Equal(t, []string{"d", "c"}, ids, "the newest first, and none that is past its time")
	})
}

package view_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/patterns"
)

// newRecorder returns a recorder and its store. Their clock is a variable of the test.
func newRecorder(t *testing.T, now *time.Time) (*memstore.Store, *patterns.Recorder) {
	t.Helper()
	clock := func() time.Time { return *now }
	st, err := memstore.New(memstore.Config{Now: clock})
	require.NoError(t, err)
	recorder, err := patterns.New(t.Context(), patterns.Config{Store: st, Now: clock})
	require.NoError(t, err)
	return st, recorder
}

// A list of ways looks at the last 1,000, however many there are.
func TestWaysAreTheLast(t *testing.T) {
	now := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	st, recorder := newRecorder(t, &now)
	for i := range 1003 {
		now = now.Add(time.Second)
		_, err := recorder.Record(t.Context(), patterns.Outcome{
			ID: fmt.Sprint(i), Task: fmt.Sprint(i), Success: true, At: now,
			Strategy: patterns.PatternID(fmt.Sprintf("way %04d", i)),
		})
		require.NoError(t, err)
	}
	source := &view.Source{Store: st, Patterns: recorder, Now: func() time.Time { return now }}
	found, err := source.Ways(t.Context(), view.WayQuery{})
	require.NoError(t, err)
	require.Len(t, found.Items, 1000)
	assert.Equal(t, patterns.PatternID("way 0003"), found.Items[0].ID)
	last, err := recorder.Standings(t.Context(), patterns.PatternQuery{Limit: 2})
	require.NoError(t, err)
	require.Len(t, last, 2)
	assert.Equal(t, patterns.PatternID("way 1001"), last[0].Pattern.ID, "in the order of definition")
}

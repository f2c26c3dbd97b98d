package view_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/strategy"
)

// An arm that fails since yesterday got worse, and one that is as good as before did not move, with
// records of choices and without.
func TestSegmentsTellWhichArmsMoved(t *testing.T) {
	for _, unrecorded := range []bool{false, true} {
		now := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
		clock := func() time.Time { return now }
		st, err := memstore.New(memstore.Config{Now: clock})
		require.NoError(t, err)
		learner, err := strategy.New(t.Context(), strategy.Config{
			Store: st, Now: clock, Seed: rand.NewPCG(1, 2), Unrecorded: unrecorded,
			Arms: []strategy.Arm{{ID: "steady"}, {ID: "fading"}},
		})
		require.NoError(t, err)
		luck := rand.New(rand.NewPCG(3, 4))
		var since time.Time
		for n := range 80 {
			now = now.Add(time.Hour)
			arm := []strategy.ArmID{"steady", "fading"}[n%2]
			if n == 40 {
				since = now
			}
			value := 0.6
			if n >= 40 && arm == "fading" {
				value = -0.6
			}
			choice, err := learner.Record(t.Context(),
				strategy.Query{Session: fmt.Sprint(n), Item: "i", Category: "c"}, arm, 0.5)
			require.NoError(t, err)
			_, err = learner.Observe(t.Context(), strategy.Outcome{Choice: choice,
				Value: value + 0.4*(luck.Float64()-0.5), Confidence: 1})
			require.NoError(t, err)
		}
		source := &view.Source{Store: st, Strategy: learner, Now: clock}
		all, last, err := source.Learned(t.Context(), since)
		require.NoError(t, err)
		require.Len(t, all, 1)
		assert.Equal(t, now, last.UTC())
		require.Len(t, all[0].Moved, 1)
		assert.Equal(t, strategy.ArmID("fading"), all[0].Moved[0].Arm)
		assert.InDelta(t, 0.8, all[0].Moved[0].Before, 0.05)
		assert.InDelta(t, 0.2, all[0].Moved[0].Now, 0.05)
		assert.Equal(t, 40, all[0].Reports)
		item, err := source.Item(t.Context(), strategy.Query{Item: "i", Category: "c"})
		require.NoError(t, err)
		assert.Equal(t, item.Arms, all[0].Arms, "of the only item, as the pages show it")
		assert.Greater(t, all[0].Best, 0.5)
		none, _, err := source.Learned(t.Context(), now.Add(time.Second))
		require.NoError(t, err)
		assert.Empty(t, none, "nothing was learned since")
	}
}

// A status counts the choices and results of the last 24 hours, and none that lie ahead.
func TestAStatusCountsTheEventsOfADay(t *testing.T) {
	start := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	now := start
	clock := func() time.Time { return now }
	st, err := memstore.New(memstore.Config{Now: clock})
	require.NoError(t, err)
	learner, err := strategy.New(t.Context(), strategy.Config{
		Store: st, Now: clock, Arms: []strategy.Arm{{ID: "a"}},
	})
	require.NoError(t, err)
	for n := range 3 {
		choice, err := learner.Select(t.Context(), strategy.Query{Item: fmt.Sprint(n)})
		require.NoError(t, err)
		if n > 0 {
			_, err = learner.Observe(t.Context(), strategy.Outcome{
				Choice: choice, Value: 1, Confidence: 1,
			})
			require.NoError(t, err)
		}
		now = now.Add(time.Hour)
	}
	source := &view.Source{Store: st, Strategy: learner, Now: clock}
	for at, events := range map[time.Duration]int{
		2 * time.Hour: 5, time.Hour: 3, 24 * time.Hour: 5, 24*time.Hour + 1: 4, 27 * time.Hour: 0,
	} {
		now = start.Add(at)
		status, err := source.Status(t.Context())
		require.NoError(t, err)
		assert.Equal(t, events, status.Choices.Events, at)
		assert.Equal(t, []int{1, 2}, []int{status.Choices.Pending, status.Choices.Observed})
		assert.Equal(t, []uint64{1, 2, 2}, []uint64{
			uint64(status.Segments), uint64(status.Items), status.Outcomes,
		})
	}
}

package learning_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/learning"
)

// Fate tells the signals that any process saw of an answer.
func TestFate(t *testing.T) {
	f := newFixture(t, learning.Config{Expectations: []learning.Expectation{{Trigger: "oven", Outcome: "smoke", Failure: true}}})
	f.put(learning.Heuristic{ID: "h", Condition: "oven"})
	for _, event := range []string{"undone", "failed"} {
		require.NoError(t, f.Fire(ctx, learning.Fire{HeuristicID: "h", EventID: event, Session: event}))
	}
	require.NoError(t, f.Fire(ctx, learning.Fire{EventID: "silent"}))
	_, err := f.Undo(ctx, learning.Undo{EventID: "undone"})
	require.NoError(t, err)
	_, err = f.Hear(ctx, learning.Message{Session: "failed", Text: "there is smoke"})
	require.NoError(t, err)
	f.clock.Advance(time.Hour)
	_, err = f.Timeouts(ctx, time.Time{})
	require.NoError(t, err)

	undone, err := f.Fate(ctx, "h", "undone")
	require.NoError(t, err)
	assert.False(t, undone.Undone.IsZero())
	failed, err := f.Fate(ctx, "h", "failed")
	require.NoError(t, err)
	assert.False(t, failed.Outcome.IsZero())
	assert.False(t, failed.Success)
	assert.True(t, failed.Undone.IsZero())
	silent, err := f.Fate(ctx, "", "silent")
	require.NoError(t, err)
	assert.False(t, silent.Silent.IsZero())
	_, err = f.Fate(ctx, "h", "nobody knows it")
	assert.ErrorIs(t, err, heed.ErrNotFound)
}

package learning_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/learning"
)

// A heuristic that says something else has none of the trust that its old text earned, and none of what is said of it later.
func TestARestartForgetsWhatTheOldTextEarned(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h", "other")
	for _, event := range []string{"a", "b", "c"} {
		f.fire("h", event, "s-"+event)
	}
	f.say(thumb("h", "a", true))
	f.say(thumb("h", "b", true))
	f.fire("other", "a", "s-o")
	f.say(thumb("other", "a", true))
	before, err := f.Standing(ctx, "h")
	require.NoError(t, err)
	require.Greater(t, before.Confidence, 0.6)
	other, err := f.Standing(ctx, "other")
	require.NoError(t, err)

	h := before.Heuristic
	h.Action = "Something else."
	h, err = f.Restart(ctx, h, "ann", "it says something else")
	require.NoError(t, err)
	anew := func(why string) {
		t.Helper()
		now, err := f.Standing(ctx, "h")
		require.NoError(t, err)
		assert.InDelta(t, 0.5, now.Confidence, 1e-12, why)
		assert.Equal(t, [3]uint64{}, [3]uint64{now.Fires, now.Successes, now.Failures}, why)
		assert.Equal(t, h, now.Heuristic)
	}
	anew("the evidence is gone")
	f.clock.Advance(time.Second)
	assert.Equal(t, []learning.Limit{"restarted"}, f.say(thumb("h", "c", true)).Limits)
	f.say(thumb("h", "a", false))
	_, err = f.Undo(ctx, learning.Undo{EventID: "b"})
	require.NoError(t, err)
	f.clock.Advance(time.Hour)
	f.sweep()
	assert.Empty(t, f.sweep())
	anew("old answers count nothing")

	f.fire("h", "new", "s-new")
	assert.Positive(t, f.say(thumb("h", "new", true)).Delta)
	same, err := f.Standing(ctx, "other")
	require.NoError(t, err)
	assert.Equal(t, other.Confidence, same.Confidence)

	_, err = f.Restart(ctx, before.Heuristic, "ann", "")
	require.ErrorIs(t, err, heed.ErrConflict, "the revision is an old one")
	_, err = f.Restart(ctx, learning.Heuristic{ID: "nobody"}, "", "")
	require.ErrorIs(t, err, heed.ErrNotFound)
}

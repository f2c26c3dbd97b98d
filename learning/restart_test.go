package learning_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/learning"
)

// A heuristic that says something else has none of the trust that its old text earned, and none of
// what is said of it later.
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
	assert.Equal(t, []string{"restarted"}, f.say(thumb("h", "c", true)).Limits)
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

// A restart ends a row of ignores, also a row of one.
func TestARestartEndsARowOfIgnores(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	f.fire("h", "a", "s")
	f.event("s", "next")
	states, err := learning.States(ctx, f.Module)
	require.NoError(t, err)
	require.Contains(t, states, "h: ignored 1")
	h := f.standing("h").Heuristic
	h.Action = "Something else."
	_, err = f.Restart(ctx, h, "ann", "")
	require.NoError(t, err)
	states, err = learning.States(ctx, f.Module)
	require.NoError(t, err)
	assert.NotContains(t, states, "h: ignored 1")
}

// Each wording has evidence of its own, and goes on with it when it comes back. With the ninth
// wording after it, it is forgotten.
func TestAWordingThatComesBackGoesOn(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	turn := func(action string) learning.Standing {
		t.Helper()
		now, err := f.Standing(ctx, "h")
		require.NoError(t, err)
		now.Heuristic.Action = action
		_, err = f.Restart(ctx, now.Heuristic, "ann", "")
		require.NoError(t, err)
		other, err := learning.New(ctx, learning.Config{Store: f.store, Now: f.clock.Now, Initial: 0.5})
		require.NoError(t, err)
		after, err := f.Standing(ctx, "h")
		require.NoError(t, err)
		elsewhere, err := other.Standing(ctx, "h")
		require.NoError(t, err)
		require.Equal(t, after, elsewhere, "another process sees the same")
		return after
	}
	first := turn("one")
	f.fire("h", "a", "s")
	praised := f.say(thumb("h", "a", true)).New
	require.Greater(t, praised, first.Confidence)

	two := turn("two")
	assert.InDelta(t, first.Confidence, two.Confidence, 1e-12)
	f.fire("h", "b", "s")
	blamed := f.say(thumb("h", "b", false)).New
	assert.Equal(t, []string{"restarted"}, f.say(thumb("h", "a", false)).Limits)

	back := turn("one")
	assert.InDelta(t, praised, back.Confidence, 1e-12)
	assert.Equal(t, [2]uint64{1, 1}, [2]uint64{back.Fires, back.Successes})
	assert.Equal(t, []string{"restarted"}, f.say(thumb("h", "b", true)).Limits)
	assert.InDelta(t, blamed, turn("two").Confidence, 1e-12)
	assert.InDelta(t, praised, turn("one").Confidence, 1e-12)
	e, err := f.Explain(ctx, "h")
	require.NoError(t, err)
	assert.Len(t, e.History, 1)
	f.clock.Advance(time.Second)
	assert.Less(t, f.say(thumb("h", "a", false)).New, first.Confidence,
		"the click from before is replaced")
	f.clock.Advance(time.Second)
	f.say(thumb("h", "a", true))

	assert.InDelta(t, first.Confidence, turn("one").Confidence, 1e-12,
		"a restart with the same words forgets")
	f.fire("h", "c", "s")
	f.say(thumb("h", "c", true))
	for i := range 8 {
		turn(fmt.Sprint("other ", i))
	}
	assert.Greater(t, turn("one").Confidence, first.Confidence, "the eighth before")
	assert.InDelta(t, first.Confidence, turn("two").Confidence, 1e-12, "the tenth before")
	now, err := f.Standing(ctx, "h")
	require.NoError(t, err)
	require.NoError(t, f.Delete(ctx, "h"))
	f.put(learning.Heuristic{ID: "h", Action: "ten", Initial: 0.5})
	f.fire("h", "d", "s")
	praised = f.say(thumb("h", "d", true)).New
	for i := range 7 {
		turn(fmt.Sprint("last ", i))
	}
	assert.InDelta(t, praised, turn("ten").Confidence, 1e-12,
		"no other wording has taken its evidence along")
	assert.NotZero(t, now.Heuristic.Edition)
}

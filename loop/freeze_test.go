package loop_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/strategy"
)

// What one agent freezes is frozen for the others on the store, for those that are made later, and
// while the store is away.
func TestFrozenEverywhere(t *testing.T) {
	w := newWorkshop(t)
	other := w.again()
	require.NoError(t, w.Freeze(ctx, true))
	before := w.state()
	w.clock.Advance(time.Minute)
	yes, later := true, w.again()
	for name, err := range map[string]error{
		"React":     other.React(ctx, "h", loop.Reaction{Person: "ann", Value: -1}),
		"Undo":      other.Undo(ctx, "m", "ann"),
		"Hear":      second(other.Hear(ctx, learning.Message{Session: "s", Text: "undo"})),
		"Tool":      second(other.Tool(ctx, "m", loop.ToolResult{Err: errors.New("broken")})),
		"Outcome":   later.Outcome(ctx, "m", loop.Outcome{Success: &yes}),
		"Attribute": second(later.Attribute(ctx, "h", "", strategy.Outcome{Value: 1, Confidence: 1})),
		"Correct":   second(later.Correct(ctx, "m", loop.Correction{Reviewer: "ann", Text: "No."})),
		"Sweep":     later.Sweep(ctx, time.Time{}),
	} {
		assert.NoError(t, err, name)
	}
	assert.Equal(t, before, w.state())
	_, err := other.Feedback().Record(ctx, feedback.Feedback{ID: "f", Agent: "loop", Gate: "x",
		Reviewer: "bob", Decision: feedback.Approved, At: w.clock.Now()})
	require.NoError(t, err, "people go on")

	w.cfg.RequireStore = false
	degraded := w.again()
	_, err = degraded.Prepare(ctx, loop.Event{Text: "undo that", Session: "u", Person: "cid"})
	require.NoError(t, err)
	w.fails.SetAway(true)
	plan, err := degraded.Prepare(ctx, loop.Event{Text: "undo that", Session: "u", Person: "cid"})
	require.NoError(t, err)
	assert.NotNil(t, plan.Degraded)
	assert.False(t, plan.Command, "it is frozen as far as it knows")
	w.fails.SetAway(false)

	require.NoError(t, other.Freeze(ctx, false))
	require.NoError(t, w.React(ctx, "h", loop.Reaction{Person: "ann", Value: -1}))
	assert.NotEqual(t, before, w.state())
}

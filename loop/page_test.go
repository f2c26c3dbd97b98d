package loop_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/loop"
)

// The lessons of the page fit the event of the page.
func TestTheLessonsOfThePageFit(t *testing.T) {
	page, err := os.ReadFile("../docs/start.md")
	require.NoError(t, err)
	_, text, found := strings.Cut(string(page), "```json\n")
	require.True(t, found)
	text, _, _ = strings.Cut(text, "```")
	lessons, err := loop.ReadLessonsFrom(strings.NewReader(text))
	require.NoError(t, err)
	w := newWorld(t, loop.Config{Lessons: lessons})
	plan, err := w.Prepare(ctx, loop.Event{Text: "The disk of db-1 is full.", Session: "s1",
		Person: "ann"})
	require.NoError(t, err)
	require.Len(t, plan.Candidates, 1)
	assert.Equal(t, "rotate", plan.Candidates[0].HeuristicID)
	require.Len(t, plan.Notes, 1)
	assert.Equal(t, "db-1", plan.Notes[0].ID)
	assert.Equal(t, "brief", plan.Arm.ID)
}

// A command that finds nothing to take back is told apart from a text that is no command.
func TestACommandWithNothingToTakeBack(t *testing.T) {
	w := newWorld(t, loop.Config{})
	w.answer(loop.Event{Text: "Why?", Session: "s", Person: "ann"})
	type told struct {
		command bool
		undone  int
	}
	addStatement := func(e loop.Event) told {
		w.clock.Advance(time.Second)
		plan := w.answer(e).Plan
		return told{plan.Command, len(plan.Undone)}
	}
	in := func(text, id string) loop.Event {
		return loop.Event{ID: id, Text: text, Session: "s",
			Person: "ann"}
	}
	assert.Equal(t, told{}, addStatement(in("Please explain git revert.", "")))
	assert.Equal(t, told{true, 1}, addStatement(in("undo that", "first")))
	assert.Equal(t, told{true, 1}, addStatement(in("undo that", "first")), "the same event again")
	w.clock.Advance(time.Hour)
	assert.Equal(t, told{true, 0}, addStatement(in("undo that", "late")))
	assert.Equal(t, told{true, 0}, addStatement(in("undo that", "late")))
	assert.Equal(t, told{true, 0}, addStatement(loop.Event{Text: "undo that"}), "of nobody, nowhere")
	require.NoError(t, w.Freeze(ctx, true))
	assert.Equal(t, told{}, addStatement(in("undo that", "")), "nothing is heard")
}

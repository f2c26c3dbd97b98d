package loop_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/loop"
)

// The lessons of the page fit the event of the page.
func TestTheLessonsOfThePageFit(t *testing.T) {
	page, err := os.ReadFile("../docs/loop.md")
	require.NoError(t, err)
	_, text, found := strings.Cut(string(page), "```toml\n")
	require.True(t, found)
	text, _, _ = strings.Cut(text, "```")
	lessons, err := loop.ReadLessons(strings.NewReader(text))
	require.NoError(t, err)
	w := newWorld(t, loop.Config{Lessons: lessons})
	plan, err := w.Prepare(ctx, loop.Event{Text: "The disk of db-1 is full.", Session: "s1", Person: "ann"})
	require.NoError(t, err)
	require.Len(t, plan.Candidates, 1)
	assert.Equal(t, "rotate", plan.Candidates[0].HeuristicID)
	require.Len(t, plan.Notes, 1)
	assert.Equal(t, "db-1", plan.Notes[0].ID)
	assert.Equal(t, "brief", plan.Arm.ID)
}

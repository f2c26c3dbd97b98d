package loop

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/learning"
)

// What has not changed keeps its index: nothing, the notes, or the heuristics.
func TestALibraryKeepsWhatHasNotChanged(t *testing.T) {
	ctx := t.Context()
	heuristic := func(id string) learning.Heuristic {
		return learning.Heuristic{ID: id, Condition: "the disk is full", Action: "Rotate."}
	}
	a, err := New(ctx, Config{Lessons: Lessons{
		Heuristics: []learning.Heuristic{heuristic("a"), heuristic("b")},
		Notes:      []Note{{ID: "n", Text: "Room 3."}},
	}})
	require.NoError(t, err)
	plan := func() (*library, int, int) {
		p, err := a.Prepare(ctx, Event{Text: "the disk is full"})
		require.NoError(t, err)
		b := a.library.Load()
		return b, len(p.Candidates), len(b.notes[""].all)
	}
	first, heuristics, notes := plan()
	assert.Equal(t, []int{2, 1}, []int{heuristics, notes})
	again, _, _ := plan()
	assert.Same(t, first, again)

	_, err = a.Teach(ctx, Lessons{Notes: []Note{{ID: "m", Text: "Room 4."}}})
	require.NoError(t, err)
	second, _, notes := plan()
	assert.Equal(t, 2, notes)
	assert.Same(t, first.heuristics[""], second.heuristics[""])

	_, err = a.Teach(ctx, Lessons{Heuristics: []learning.Heuristic{heuristic("c")}})
	require.NoError(t, err)
	third, heuristics, _ := plan()
	assert.Equal(t, 3, heuristics)
	assert.Same(t, second.notes[""], third.notes[""])
	assert.NotSame(t, second.heuristics[""], third.heuristics[""])

	changed := heuristic("b")
	changed.Condition = "no paper"
	_, err = a.Teach(ctx, Lessons{Heuristics: []learning.Heuristic{changed}})
	require.NoError(t, err)
	_, heuristics, _ = plan()
	assert.Equal(t, 2, heuristics)
}

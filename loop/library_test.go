package loop

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/store"
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

// An agent limits its records of availability, plans, notes and lessons. It keeps imports and
// tenants for good.
func TestWhatIsKeptForHowLong(t *testing.T) {
	taught := store.Limits{Most: 100_000, Refuse: true}
	for name, test := range map[string]struct {
		is, want store.Limits
	}{
		"notes":        {notesOf("n").Limits, taught},
		"lessons":      {lessonsOf("n").Limits, taught},
		"availability": {healthOf("n").Limits, store.Limits{For: time.Hour, Most: 1000}},
		"plans":        {plansOf("n").Limits, store.Limits{For: time.Hour, Most: 10_000}},
		"imports":      {importsOf("n").Limits, store.Limits{}},
		"tenants":      {tenantsOf("n").Limits, store.Limits{}},
	} {
		assert.Equal(t, test.want, test.is, name)
	}
	assert.True(t, notesOf("n").Versioned)
}

// To ask for a key that was never kept does not make it known.
func TestWhatWasNotKeptIsNotKnown(t *testing.T) {
	var r recent[string, int]
	r.put("a", 1, 1)
	for range 3 {
		_, known := r.get("b")
		assert.False(t, known)
		value, known := r.get("a")
		assert.True(t, known)
		assert.Equal(t, 1, value)
	}
	assert.Len(t, r.now, 1)
}

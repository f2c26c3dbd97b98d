package memstore_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/patterns/patternstest"
)

func TestPatternsContract(t *testing.T) {
	patternstest.RunStore(t, func() (patterns.Store, error) { return memstore.NewPatterns(memstore.PatternsConfig{}) })
	t.Run("zero value", func(t *testing.T) {
		patternstest.RunStore(t, func() (patterns.Store, error) { return &memstore.Patterns{}, nil })
	})
}

func TestErrorsContract(t *testing.T) {
	patternstest.RunErrorStore(t, func() (patterns.ErrorStore, error) { return memstore.NewErrors(memstore.ErrorsConfig{}) })
	t.Run("zero value", func(t *testing.T) {
		patternstest.RunErrorStore(t, func() (patterns.ErrorStore, error) { return &memstore.Errors{}, nil })
	})
}

func TestPatternsAreBounded(t *testing.T) {
	ctx := context.Background()
	s, err := memstore.NewPatterns(memstore.PatternsConfig{MaxPatterns: 2, MaxTransitions: 3, MaxEntries: 4})
	require.NoError(t, err)
	assert.Equal(t, memstore.PatternsConfig{MaxPatterns: 2, MaxTransitions: 3, MaxEntries: 4}, s.Config())
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	one := func(id patterns.PatternID) patterns.Changes {
		return patterns.Changes{Patterns: []patterns.Pattern{{ID: id, Kind: patterns.Positive, Content: "c", State: patterns.Candidate}}}
	}
	require.NoError(t, s.Commit(ctx, one("a")))
	require.NoError(t, s.Commit(ctx, one("b")))
	assert.ErrorIs(t, s.Commit(ctx, one("c")), evidence.ErrFull)
	b, err := s.Pattern(ctx, "b")
	require.NoError(t, err)
	require.NoError(t, s.Commit(ctx, patterns.Changes{Patterns: []patterns.Pattern{b}}), "what is there can be changed")
	for i := range 10 {
		require.NoError(t, s.Commit(ctx, patterns.Changes{
			Transitions: []patterns.Transition{{ID: fmt.Sprint(i), Pattern: "a", At: at}},
			Entries:     []patterns.Entry{{Outcome: patterns.Outcome{ID: fmt.Sprint(i), Task: fmt.Sprint(i % 2), At: at}}},
		}))
	}
	var transitions, all, even []string
	for x, err := range s.Transitions(ctx, "a") {
		require.NoError(t, err)
		transitions = append(transitions, x.ID)
	}
	for x, err := range s.Entries(ctx, patterns.EntryQuery{}) {
		require.NoError(t, err)
		all = append(all, x.ID())
	}
	for x, err := range s.Entries(ctx, patterns.EntryQuery{Task: "0"}) {
		require.NoError(t, err)
		even = append(even, x.ID())
	}
	assert.Equal(t, []string{"9", "8", "7"}, transitions)
	assert.Equal(t, []string{"9", "8", "7", "6"}, all)
	assert.Equal(t, []string{"8", "6"}, even)

	_, err = memstore.NewPatterns(memstore.PatternsConfig{MaxPatterns: -1, MaxTransitions: -1, MaxEntries: -1})
	assert.Len(t, faults(err), 3)
}

func TestErrorsAreBounded(t *testing.T) {
	ctx := context.Background()
	s, err := memstore.NewErrors(memstore.ErrorsConfig{PerTask: 2, MaxTasks: 2})
	require.NoError(t, err)
	add := func(id, task string) {
		require.NoError(t, s.Add(ctx, patterns.ErrorEntry{ID: id, Task: task, Type: patterns.Timeout, Message: "m", At: time.Unix(1, 0)}))
	}
	list := func() (ids []string) {
		for e, err := range s.Errors(ctx, "") {
			require.NoError(t, err)
			ids = append(ids, e.ID)
		}
		return ids
	}
	for i := range 4 {
		add(fmt.Sprint("a", i), "a")
	}
	assert.Equal(t, []string{"a2", "a3"}, list())
	add("b0", "b")
	add("a4", "a")
	add("c0", "c") // b had its last error before a
	assert.Equal(t, []string{"a3", "a4", "c0"}, list())

	_, err = memstore.NewErrors(memstore.ErrorsConfig{PerTask: -1, MaxTasks: -1})
	assert.Len(t, faults(err), 2)
}

// faults returns the fields of all faults of a configuration, in order.
func faults(err error) (fields []string) {
	for fault := range heed.ConfigErrors(err) {
		fields = append(fields, fault.Field)
	}
	return fields
}

package patterns_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/store"
)

// TestReads has each read that the learning-systems design names, and shows that it finds what it
// is for.
func TestReads(t *testing.T) {
	w := newWorld(t, patterns.Config{})
	_, err := w.Define(ctx, patterns.Pattern{ID: "p", Content: "Split by file type",
		Tags: []string{"go"}})
	require.NoError(t, err)
	for _, id := range []string{"1", "2", "3"} {
		o := bad("p")
		o.ID, o.Task, o.Criteria = id, "bead-"+id, []string{"type_safe"}
		w.record(o)
	}
	_, err = w.RecordError(ctx, patterns.TaskError{ID: "e1", Task: "bead-1", Message: "no"})
	require.NoError(t, err)
	_, err = w.RecordError(ctx, patterns.TaskError{ID: "e2", Task: "bead-1", Message: "done"})
	require.NoError(t, err)
	require.NoError(t, w.ResolveError(ctx, "e2"))

	standings := func(q patterns.PatternQuery) int {
		all, err := w.Standings(ctx, q)
		require.NoError(t, err)
		return len(all)
	}
	outcomes := func(q patterns.HistoryQuery) int {
		all, err := drain(w.Entries(ctx, q))
		require.NoError(t, err)
		return len(all)
	}
	errorsOf := func(q patterns.HistoryQuery) patterns.ErrorReport {
		all, err := w.Errors(ctx, q)
		require.NoError(t, err)
		return all
	}
	for read, want := range map[string]struct{ want, got int }{
		"FeedbackStorage.getByBead":      {1, outcomes(patterns.HistoryQuery{About: "bead-2"})},
		"FeedbackStorage.getAll":         {3, outcomes(patterns.HistoryQuery{})},
		"FeedbackStorage, by id":         {1, outcomes(patterns.HistoryQuery{ID: "2"})},
		"PatternStorage.getAll":          {2, standings(patterns.PatternQuery{})},
		"PatternStorage.getAntiPatterns": {1, standings(patterns.PatternQuery{Anti: true})},
		"PatternStorage, positive":       {1, standings(patterns.PatternQuery{Positive: true})},
		"PatternStorage.getByTag":        {2, standings(patterns.PatternQuery{Tag: "go"})},
		"PatternStorage.findByContent":   {2, standings(patterns.PatternQuery{Content: "FILE type"})},
		"MaturityStorage.getByState": {2, standings(
			patterns.PatternQuery{State: patterns.Inverted})},
		"ErrorStorage.getByBead": {2, len(
			errorsOf(patterns.HistoryQuery{About: "bead-1"}).Errors)},
		"ErrorStorage.getAll": {2, len(errorsOf(patterns.HistoryQuery{}).Errors)},
		"ErrorStorage.getUnresolved": {1, errorsOf(
			patterns.HistoryQuery{About: "bead-1"}).Unresolved},
		"errorAccumulator.getErrorStats": {2, errorsOf(
			patterns.HistoryQuery{About: "bead-1"}).ByType["unknown"]},
		"the transitions of a pattern": {1, len(w.transitions("p"))},
	} {
		assert.Equal(t, want.want, want.got, read)
	}
	assert.Equal(t, patterns.Inverted, w.standing("p").State,
		"PatternStorage.get and MaturityStorage.get")

	kinds := map[string]evidenceOf{"FeedbackStorage.getByCriterion": {"patterns.criterion",
		"type_safe"}, "MaturityStorage.getFeedback": {"patterns.pattern", "p"}}
	for read, of := range kinds {
		seen := 0
		for part, err := range w.store.List(ctx, store.CellQuery{Kind: of.kind}) {
			require.NoError(t, err)
			for _, err := range w.store.History(ctx, part.Cell) {
				require.NoError(t, err)
				seen++
			}
			assert.Equal(t, of.item, part.Cell.Item)
		}
		assert.Equal(t, 3, seen, read)
	}
	all, err := w.Criteria(ctx)
	require.NoError(t, err)
	assert.Len(t, all, 1)
	assert.Contains(t, w.standing("p").String(), "inverted needs a failure rate",
		"why was the pattern inverted?")
	assert.NotEmpty(t, w.criterion("type_safe").Reason, "why is the weight low?")
}

var _ heed.Sweeper = (*patterns.Recorder)(nil)

// evidenceOf names cells.
type evidenceOf struct{ kind, item string }

package view_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/strategy"
)

// A program that reads a list part by part sees each element, also one that overtakes others in
// the order for people.
func TestPartsOfAListMissNothing(t *testing.T) {
	now := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	st, recorder := newRecorder(t, &now)
	source := &view.Source{Store: st, Patterns: recorder, Now: func() time.Time { return now }}
	events := 0
	uses := func(id patterns.PatternID, n int) {
		for range n {
			events++
			_, err := recorder.Record(t.Context(), patterns.Outcome{
				ID: fmt.Sprint(events), Task: fmt.Sprint(events), Success: true, At: now, Strategy: id,
			})
			require.NoError(t, err)
		}
	}
	for n, id := range []patterns.PatternID{"d", "c", "b", "a"} {
		_, err := recorder.Define(t.Context(), patterns.Pattern{
			ID: id, Content: "Avoid " + string(id), Anti: true, Reason: "it failed",
		})
		require.NoError(t, err)
		uses(id, n+1)
	}
	var warnings view.Operation
	for _, o := range view.Operations() {
		if o.Path == "/v1/warnings" {
			warnings = o
		}
	}
	caller := &view.Caller{View: source}
	var seen []string
	for after := ""; ; {
		got, err := warnings.Query(t.Context(), caller, "limit=2&after="+after)
		require.NoError(t, err)
		part := got.(view.List[view.Way])
		for i := range part.Items {
			seen = append(seen, string(part.Items[i].ID))
		}
		if after = part.Next; after == "" {
			break
		}
		uses("d", 10)
	}
	assert.Equal(t, []string{"a", "b", "c", "d"}, seen)
	for _, after := range []string{"+0", "+0.a", "-1.a", "0", ".a", "x.a"} {
		_, err := source.Ways(t.Context(), view.WayQuery{Page: view.Page{After: after}})
		var wrong *heed.InputError
		require.ErrorAs(t, err, &wrong, after)
		assert.Equal(t, "After", wrong.Field)
	}
}

// The choices for an item are found behind any number of choices for others.
func TestChoicesAreFoundBehindOthers(t *testing.T) {
	now := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	st, err := memstore.New(memstore.Config{Now: func() time.Time { return now }})
	require.NoError(t, err)
	learner, err := strategy.New(t.Context(), strategy.Config{
		Store: st, Arms: []strategy.Arm{{ID: "a"}}, Now: func() time.Time { return now },
	})
	require.NoError(t, err)
	for i := range 2110 {
		now = now.Add(time.Second)
		q := strategy.Query{Session: fmt.Sprint(i), Item: "i"}
		if i < 10 {
			q.Item = ""
		}
		_, err := learner.Select(t.Context(), q)
		require.NoError(t, err)
	}
	source := &view.Source{Store: st, Strategy: learner, Now: func() time.Time { return now }}
	found, err := source.Choices(t.Context(), view.ChoiceQuery{}, 20)
	require.NoError(t, err)
	assert.Len(t, found, 10)
}

// A segment has its latest 200 choices, behind at most 2,000 of others, and a status the five
// segments with the greatest means.
func TestTheLatestChoicesOfASegment(t *testing.T) {
	now := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	st, err := memstore.New(memstore.Config{Now: clock})
	require.NoError(t, err)
	learner, err := strategy.New(t.Context(), strategy.Config{
		Store: st, Arms: []strategy.Arm{{ID: "a"}}, Now: clock,
	})
	require.NoError(t, err)
	chooses := func(in string, n int) (c strategy.Choice) {
		for range n {
			now = now.Add(time.Millisecond)
			c, err = learner.Select(t.Context(), strategy.Query{
				Context: in, Session: fmt.Sprint(now.UnixNano()),
			})
			require.NoError(t, err)
		}
		return c
	}
	for i, value := range []float64{-1, 1, 0.5, 0, -0.5, 0.75} {
		c := chooses(fmt.Sprint(i), 1)
		_, err := learner.Observe(t.Context(), strategy.Outcome{Choice: c, Value: value, Confidence: 1})
		require.NoError(t, err)
	}
	source := &view.Source{Store: st, Strategy: learner, Now: clock}
	status, err := source.Status(t.Context())
	require.NoError(t, err)
	var leading []string
	for i := range status.Leading {
		leading = append(leading, status.Leading[i].Context)
	}
	assert.Equal(t, []string{"1", "5", "2", "3", "4"}, leading)
	assert.Equal(t, []int{6, 6, 6}, []int{status.Segments, status.Items, int(status.Outcomes)})
	recent := func(in string) (choices int) {
		d, err := source.Segment(t.Context(), strategy.Query{Context: in}, 100)
		require.NoError(t, err)
		if d.Traffic == nil {
			return 0
		}
		return d.Traffic.Choices
	}
	assert.Equal(t, 1, recent("0"))
	chooses("0", 205)
	assert.Equal(t, 200, recent("0"))
	chooses("1", 2199)
	assert.Equal(t, 1, recent("0"), "one of 2,200")
	chooses("1", 1)
	assert.Zero(t, recent("0"))
	_, err = source.Answer(t.Context(), chooses("2", 1).ID.String())
	assert.ErrorIs(t, err, heed.ErrNotFound, "it is no answer of an agent")
}

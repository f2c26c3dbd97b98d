package patterns_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/store"
)

func TestStandingsByTagAndContent(t *testing.T) {
	w := newWorld(t, patterns.Config{})
	for _, p := range []patterns.Pattern{
		{ID: "no-globals", Anti: true, Content: "AVOID: globals"},
		{ID: "tagged", Content: "Split by FILE type 100%", Tags: []string{"go", "x"}},
		{ID: "other", Content: "splitting by layer", Tags: []string{"Go"}},
	} {
		_, err := w.Define(ctx, p)
		require.NoError(t, err)
	}
	w.feedPattern("other", patterns.Helpful, 5, 0)
	for _, test := range []struct {
		query patterns.PatternQuery
		want  string
	}{
		{patterns.PatternQuery{}, "[no-globals tagged other]"},
		{patterns.PatternQuery{Anti: true}, "[no-globals]"},
		{patterns.PatternQuery{Positive: true}, "[tagged other]"},
		{patterns.PatternQuery{State: patterns.Proven}, "[other]"},
		{patterns.PatternQuery{Tag: "go"}, "[tagged]"},
		{patterns.PatternQuery{Tag: "g"}, "[]"},
		{patterns.PatternQuery{Content: "SPLIT"}, "[tagged other]"},
		{patterns.PatternQuery{Content: "file type"}, "[tagged]"},
		{patterns.PatternQuery{Content: "0%"}, "[tagged]"},
		{patterns.PatternQuery{Content: "s_lit"}, "[]"},
		{patterns.PatternQuery{Positive: true, Content: "split", Tag: "Go"}, "[other]"},
	} {
		standings, err := w.Standings(ctx, test.query)
		require.NoError(t, err)
		var ids []patterns.PatternID
		for _, s := range standings {
			ids = append(ids, s.Pattern.ID)
		}
		assert.Equal(t, test.want, fmt.Sprint(ids), "%+v", test.query)
	}
}

func TestTransitionsOfAllPatterns(t *testing.T) {
	w := newWorld(t, patterns.Config{})
	for i := range 4 {
		w.clock.Advance(time.Hour)
		id := patterns.PatternID(fmt.Sprint("p", i%2))
		w.feed(patterns.Rating{Pattern: id, Class: patterns.Helpful}, 0)
		_, err := w.Promote(ctx, id, by)
		require.NoError(t, err)
		_, err = w.Reset(ctx, patterns.Reset{Pattern: id, By: by, KeepEvidence: true})
		require.NoError(t, err)
	}
	list := func(q patterns.HistoryQuery) (all []string) {
		found, err := drain(w.Transitions(ctx, q))
		require.NoError(t, err)
		for _, one := range found {
			all = append(all, fmt.Sprint(one.Pattern, " ", one.To))
		}
		return all
	}
	assert.Equal(t, []string{
		"p1 candidate", "p1 proven", "p0 candidate", "p0 proven", "p1 candidate", "p1 proven",
		"p0 candidate", "p0 proven",
	}, list(patterns.HistoryQuery{}), "the last first")
	assert.Equal(t, []string{"p1 candidate", "p1 proven", "p0 candidate"},
		list(patterns.HistoryQuery{Limit: 3}))
	assert.Equal(t, []string{"p0 candidate", "p0 proven", "p0 candidate", "p0 proven"},
		list(patterns.HistoryQuery{About: "p0"}))
	assert.Equal(t, []string{"p0 candidate", "p0 proven"}, list(patterns.HistoryQuery{
		Since: start.Add(3 * time.Hour), Until: start.Add(4 * time.Hour),
	}))
	assert.Len(t, audited(t, w.store), 8, "what people decide is in the audit, in the same commit")
	for range w.Transitions(ctx, patterns.HistoryQuery{}) {
		break // a loop may end early
	}
}

func TestEntries(t *testing.T) {
	w := newWorld(t, patterns.Config{})
	for i := range 6 {
		o := good()
		o.ID, o.Task, o.At = fmt.Sprint("e", i), fmt.Sprint("task-", i%2),
			start.Add(-time.Duration(i)*time.Hour)
		w.record(o)
	}
	list := func(q patterns.HistoryQuery) (ids []string) {
		found, err := drain(w.Entries(ctx, q))
		require.NoError(t, err)
		for _, e := range found {
			ids = append(ids, e.Outcome.ID)
		}
		return ids
	}
	assert.Equal(t, []string{"e5", "e4", "e3", "e2", "e1", "e0"}, list(patterns.HistoryQuery{}),
		"the last recorded first, whenever it happened")
	assert.Equal(t, []string{"e4", "e2", "e0"}, list(patterns.HistoryQuery{About: "task-0"}))
	assert.Equal(t, []string{"e5", "e3"}, list(patterns.HistoryQuery{About: "task-1", Limit: 2}))
	_, err := w.entry("none")
	assert.ErrorIs(t, err, heed.ErrNotFound)
}

// A damaged pattern is an error of what reads it, and is not left out.
func TestADamagedPatternIsAnError(t *testing.T) {
	w := newWorld(t, patterns.Config{})
	w.record(good("p"))
	n := 0
	for record, err := range w.store.Find(ctx, store.Query{Kind: "patterns.pattern"}) {
		require.NoError(t, err)
		record.Body = store.Raw([]byte(`{"id":1}`))
		_, err = w.store.Commit(ctx, store.Batch{Records: []store.Record{record}})
		require.NoError(t, err)
		n++
	}
	require.Equal(t, 1, n)
	_, err := w.Standings(ctx, patterns.PatternQuery{})
	require.Error(t, err)
	require.Error(t, w.Sweep(ctx, w.clock.Now()))
}

// A caller who changes an answer changes nothing that is stored.
func TestWhatIsHandedOutIsACopy(t *testing.T) {
	w := newWorld(t, patterns.Config{})
	tags, names := []string{"go"}, []patterns.PatternID{"p", "q"}
	_, err := w.Define(ctx, patterns.Pattern{ID: "p", Content: "c", Tags: tags})
	require.NoError(t, err)
	o := bad(names...)
	o.ID, o.Task, o.Criteria, o.Files = "o", "t", []string{"c"}, []string{"f"}
	w.record(o)
	_, err = w.Promote(ctx, "p", by)
	require.NoError(t, err)
	before := fmt.Sprintf("%+v %+v", w.standing("p").Pattern.Tags, w.standing("p").Pattern.Override)

	tags[0], names[0], o.Criteria[0], o.Files[0] = "spoilt", "spoilt", "spoilt", "spoilt"
	for range 2 {
		p := w.standing("p").Pattern
		p.Tags[0], p.Examples[0] = "spoilt", "spoilt"
		listed, err := w.Standings(ctx, patterns.PatternQuery{})
		require.NoError(t, err)
		listed[0].Pattern.Tags[0] = "spoilt"
		defined, err := w.Define(ctx, patterns.Pattern{ID: "p", Content: "c"})
		require.NoError(t, err)
		defined.Tags[0] = "spoilt"
		e, err := w.entry("o")
		require.NoError(t, err)
		assert.Equal(t, patterns.PatternID("p"), e.Outcome.Patterns[0])
		assert.Equal(t, []string{"c", "f"}, []string{e.Outcome.Criteria[0], e.Outcome.Files[0]})
		e.Outcome.Patterns[0], e.Outcome.Criteria[0], e.Outcome.Files[0] = "spoilt", "spoilt", "spoilt"
		entries, err := drain(w.Entries(ctx, patterns.HistoryQuery{}))
		require.NoError(t, err)
		entries[0].Outcome.Files[0] = "spoilt"
	}
	after := w.standing("p").Pattern
	assert.Equal(t, before, fmt.Sprintf("%+v %+v", after.Tags, after.Override))
	assert.Equal(t, []string{"t"}, after.Examples)
}

// Patterns are never dropped, and of the rest the oldest go, as far as the store's configuration
// says.
func TestLimits(t *testing.T) {
	c := &clock{}
	st, err := memstore.New(memstore.Config{Now: c.Now,
		Retention: store.Retention{Limits: map[string]store.Limits{
			"patterns.pattern": {Most: 2, Refuse: true}, "patterns.entry": {Most: 2},
			"patterns.error": {Most: 2},
		}}})
	require.NoError(t, err)
	w := newWorld(t, patterns.Config{Store: st, Now: c.Now})
	for i := range 3 {
		c.Advance(time.Second)
		o := good("p", "q")
		o.ID, o.Task = fmt.Sprint(i), "t"
		w.record(o)
		_, err := w.RecordError(ctx, patterns.TaskError{ID: fmt.Sprint(i), Task: "t", Message: "m"})
		require.NoError(t, err)
	}
	o := good("r")
	o.ID, o.Task = "full", "t"
	_, err = w.Record(ctx, o)
	require.ErrorIs(t, err, evidence.ErrFull)
	_, err = w.entry("full")
	require.ErrorIs(t, err, heed.ErrNotFound, "all of it is refused")
	_, err = w.Define(ctx, patterns.Pattern{ID: "r", Content: "c"})
	require.ErrorIs(t, err, evidence.ErrFull)

	require.NoError(t, st.Sweep(ctx, time.Time{}))
	entries, err := drain(w.Entries(ctx, patterns.HistoryQuery{}))
	require.NoError(t, err)
	assert.Len(t, entries, 2)
	stats, err := w.Errors(ctx, patterns.HistoryQuery{About: "t"})
	require.NoError(t, err)
	assert.Len(t, stats.Errors, 2)
	again := good("p", "q")
	again.ID, again.Task = "0", "t"
	dropped := w.record(again)
	assert.True(t, dropped.Duplicate, "its entry is gone, and its id is known")
	assert.Equal(t, patterns.Helpful, dropped.Score.Class)
	assert.EqualValues(t, 3, w.standing("p").Counts.Successes)
}

func TestErrorsOfManyTasks(t *testing.T) {
	w := newWorld(t, patterns.Config{})
	for i := range 4 {
		_, err := w.RecordError(ctx, patterns.TaskError{ID: fmt.Sprint("e", i),
			Task: fmt.Sprint("t", i%2), Message: "m"})
		require.NoError(t, err)
	}
	list := func(task string) (ids []string) {
		found, err := w.Errors(ctx, patterns.HistoryQuery{About: task})
		require.NoError(t, err)
		for _, e := range found.Errors {
			ids = append(ids, e.ID)
		}
		return ids
	}
	assert.Equal(t, []string{"e0", "e1", "e2", "e3"}, list(""),
		"in the order in which they were recorded")
	assert.Equal(t, []string{"e1", "e3"}, list("t1"))
	require.NoError(t, w.ResolveError(ctx, "e0"))
	require.NoError(t, w.ResolveError(ctx, "e0"))
	found, err := w.Errors(ctx, patterns.HistoryQuery{ID: "e0"})
	require.NoError(t, err)
	require.Len(t, found.Errors, 1)
	assert.True(t, found.Errors[0].Resolved)
	assertInputError(t, w.ResolveError(ctx, ""), "ID")

	for i := range 1000 + 1 {
		_, err := w.RecordError(ctx, patterns.TaskError{Task: "many", Message: fmt.Sprint("m", i)})
		require.NoError(t, err)
	}
	stats, err := w.Errors(ctx, patterns.HistoryQuery{About: "many"})
	require.NoError(t, err)
	assert.Len(t, stats.Errors, 1000)
	stats, err = w.Errors(ctx, patterns.HistoryQuery{About: "many", Limit: 2000})
	require.NoError(t, err)
	assert.Len(t, stats.Errors, 1001, "more, where more are asked for")
	text, err := w.prompt("many", patterns.SectionSize{Items: 1})
	require.NoError(t, err)
	assert.Contains(t, text, fmt.Sprint("**m", 1000, "**"), "the newest are written")
}

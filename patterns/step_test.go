package patterns_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
)

// notes are records of a host.
var notes = store.View[string]{
	Kind: store.Kind{Name: "host.note"},
	Place: func(text string) (string, time.Time, []string) {
		return "note", time.Unix(1e9, 0),
			nil
	},
}

// An outcome and a host's record are one read and one commit.
func TestRecordInAStepOfTheHost(t *testing.T) {
	st := &storetest.Failing{Store: newStore(t, nil)}
	require.NoError(t, st.Declare(ctx, notes.Kind))
	w := newWorld(t, patterns.Config{Store: st})
	o := bad("p")
	o.ID, o.Task, o.Errors = "o", "t", 0
	w.feedPattern("p", patterns.Harmful, 2, 0)
	_, err := w.RecordError(ctx, patterns.TaskError{ID: "e", Task: "t", Message: "no"})
	require.NoError(t, err)
	record := func() (recorded *patterns.Recorded) {
		st.Fail(0, false)
		require.NoError(t, store.Do(ctx, st, func(tx *store.Tx) (err error) {
			tx.Want(patterns.OutcomeWants(w.Recorder, o))
			row, err := notes.In(tx, "note")
			if err != nil {
				return err
			}
			notes.Put(tx, row.Value+"x", row.Revision)
			recorded, err = w.RecordIn(tx, o)
			return err
		}))
		return recorded
	}
	first := record()
	assert.Equal(t, []int{1, 1}, []int{st.Calls("Read"), st.Calls("Commit")})
	assert.Equal(t, 2, st.Calls())
	assert.False(t, first.Duplicate)
	require.Len(t, first.Inversions, 1)
	assert.Equal(t, patterns.Inverted, w.standing("p").State)
	report, err := w.Errors(ctx, patterns.HistoryQuery{About: "t"})
	require.NoError(t, err)
	assert.Len(t, report.Errors, 1)

	again := record()
	assert.True(t, again.Duplicate)
	assert.Equal(t, first.Score, again.Score)
	assert.Empty(t, again.Inversions)
	row, err := notes.Get(ctx, st, "note")
	require.NoError(t, err)
	assert.Equal(t, "xx", row.Value, "what the host adds counts, also if the outcome is known")
	assert.EqualValues(t, 3, w.standing("p").Counts.Failures)
}

// Two outcomes in one step count as in two steps.
func TestTwoOutcomesInAStep(t *testing.T) {
	w, alone := newWorld(t, patterns.Config{}), newWorld(t, patterns.Config{})
	var both []*patterns.Recorded
	err := store.Do(ctx, w.store, func(tx *store.Tx) error {
		for _, id := range []string{"a", "b", "c", "a"} {
			o := bad("p", "q")
			o.ID, o.Task = id, "t"+id
			recorded, err := w.RecordIn(tx, o)
			if err != nil {
				return err
			}
			both = append(both, recorded)
		}
		return nil
	})
	require.NoError(t, err)
	assert.True(t, both[3].Duplicate, "the step has it already")
	assert.Len(t, both[2].Inversions, 2)
	for _, id := range []string{"a", "b", "c"} {
		o := bad("p", "q")
		o.ID, o.Task = id, "t"+id
		alone.record(o)
	}
	for _, id := range []patterns.PatternID{"p", "q", "anti-p"} {
		got, want := w.standing(id), alone.standing(id)
		assert.Equal(t, want.Counts, got.Counts)
		assert.Equal(t, want.State, got.State)
		assert.Equal(t, want.Pattern.Content, got.Pattern.Content)
		assert.Equal(t, want.Pattern.Examples, got.Pattern.Examples)
	}
}

// A conflict runs the whole step again, and its evidence counts once.
func TestAConflictRunsTheStepAgain(t *testing.T) {
	c := &clock{}
	sound := newStore(t, c.Now)
	require.NoError(t, sound.Declare(ctx, notes.Kind))
	other := newWorld(t, patterns.Config{Store: sound, Now: c.Now})
	quick := &rival{Store: sound}
	w := newWorld(t, patterns.Config{Store: quick, Now: c.Now})
	quick.times, quick.before = 2, func() { other.record(bad("p")) }
	runs := 0
	var recorded *patterns.Recorded
	err := store.Do(ctx, quick, func(tx *store.Tx) (err error) {
		runs++
		notes.Put(tx, fmt.Sprint(runs), store.Once)
		recorded, err = w.RecordIn(tx, patterns.Outcome{ID: "mine", Task: "t", Strategy: "p",
			Duration: time.Hour, Errors: 3})
		return err
	})
	require.NoError(t, err)
	assert.Equal(t, 3, runs)
	require.Len(t, recorded.Inversions, 1, "it is the third")
	assert.EqualValues(t, 3, w.standing("p").Counts.Failures)
	row, err := notes.Get(ctx, sound, "note")
	require.NoError(t, err)
	assert.Equal(t, "3", row.Value)
	plan, err := w.Plan(ctx, "")
	require.NoError(t, err)
	assert.Len(t, plan.AntiPatterns, 1)
}

// A plan and the errors of a task are read together with what the host reads.
func TestPlanInReadsWithTheHost(t *testing.T) {
	st := &storetest.Failing{Store: newStore(t, nil)}
	require.NoError(t, st.Declare(ctx, notes.Kind))
	w := newWorld(t, patterns.Config{Store: st})
	w.feedPattern("p", patterns.Helpful, 5, 0)
	_, err := w.RecordError(ctx, patterns.TaskError{ID: "e", Task: "t", Message: "no"})
	require.NoError(t, err)
	want, err := w.Plan(ctx, "task")
	require.NoError(t, err)
	st.Fail(0, false)
	tx, q := store.Reading(ctx, st), patterns.HistoryQuery{About: "t"}
	tx.Want(w.Steps().PlanWants(), w.Steps().ErrorsWants(q))
	_, err = notes.In(tx, "note")
	require.NoError(t, err)
	got, err := w.Steps().PlanIn(tx, "task")
	require.NoError(t, err)
	assert.Equal(t, want, got)
	report, err := w.Steps().ErrorsIn(tx, q)
	require.NoError(t, err)
	assert.Len(t, report.Errors, 1)
	assert.Equal(t, 1, st.Calls())
}

// A plan in a step that has read a pattern before somebody changed it does not spoil later plans.
func TestAPlanInAnOldStep(t *testing.T) {
	w := newWorld(t, patterns.Config{})
	other := newWorld(t, patterns.Config{Store: w.store, Now: w.clock.Now, NewID: w.Config().NewID})
	other.next = w.next
	w.feedPattern("p", patterns.Helpful, 5, 0)
	_, err := w.Plan(ctx, "")
	require.NoError(t, err)
	for _, writer := range []*world{w, other} {
		tx := store.Reading(ctx, w.store)
		o := good("p")
		o.ID, o.Task = "never", "t"
		_, err = w.RecordIn(tx, o)
		require.NoError(t, err)
		writer.feedPattern("p", patterns.Harmful, 1, 0)
		_, err = w.Steps().PlanIn(tx, "")
		require.NoError(t, err)
		fresh, err := patterns.New(ctx, patterns.Config{Store: w.store, Now: w.clock.Now})
		require.NoError(t, err)
		want, err := fresh.Plan(ctx, "")
		require.NoError(t, err)
		got, err := w.Plan(ctx, "")
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
}

// The text of a plan has just the patterns whose ids are returned with it.
func TestPromptReturnsWhatItShows(t *testing.T) {
	w := newWorld(t, patterns.SpecConfig())
	for i := range 6 {
		w.feedPattern(patterns.PatternID(fmt.Sprint("good", i)), patterns.Helpful, 5, 0)
		w.feedPattern(patterns.PatternID(fmt.Sprint("bad", i)), patterns.Harmful, 3, 0)
		w.feedPattern(patterns.PatternID(fmt.Sprint("poor", i)), patterns.Helpful, 2, 0)
		w.feedPattern(patterns.PatternID(fmt.Sprint("poor", i)), patterns.Harmful, 1, 0)
	}
	plan, err := w.Plan(ctx, "")
	require.NoError(t, err)
	for items := range 15 {
		plan.Size = patterns.SectionSize{Items: items + 1}
		text, recommended, warned := plan.Prompt()
		for _, s := range slices.Concat(plan.Patterns, plan.Deprecated, plan.AntiPatterns) {
			shown := strings.Contains(text, "- "+s.Pattern.Content+" [") ||
				strings.Contains(text, "- "+s.Pattern.Content+"\n")
			isWay := !s.Pattern.Anti && s.State != patterns.Deprecated
			assert.Equal(t, shown && isWay, slices.Contains(recommended, s.Pattern.ID), "%s of %s",
				s.Pattern.ID, text)
			assert.Equal(t, shown && !isWay, slices.Contains(warned, s.Pattern.ID), "%s of %s",
				s.Pattern.ID, text)
		}
		assert.Equal(t, strings.Count(text, "\n- "), len(recommended)+len(warned))
	}
	var empty patterns.Plan
	text, recommended, warned := empty.Prompt()
	assert.Empty(t, text)
	assert.Empty(t, append(recommended, warned...))
}

// The text of errors has just the errors whose ids are returned with it.
func TestErrorPromptReturnsWhatItShows(t *testing.T) {
	w := newWorld(t, patterns.Config{})
	for i := range 5 {
		_, err := w.RecordError(ctx, patterns.TaskError{ID: fmt.Sprint("e", i), Task: "t",
			Message: fmt.Sprint("\n  - Time: number ", i)})
		require.NoError(t, err)
	}
	require.NoError(t, w.ResolveError(ctx, "e3"))
	report, err := w.Errors(ctx, patterns.HistoryQuery{About: "t"})
	require.NoError(t, err)
	text, ids := report.Prompt(patterns.SectionSize{Items: 3}, false)
	assert.Equal(t, []string{"e1", "e2", "e4"}, ids)
	assert.NotContains(t, text, "number 3")
	_, ids = report.Prompt(patterns.SectionSize{Items: 3}, true)
	assert.Equal(t, []string{"e2", "e3", "e4"}, ids)
	_, ids = report.Prompt(patterns.SectionSize{Items: -1}, true)
	assert.Empty(t, ids)
}

// fullStore has room for so many patterns.
func fullStore(t *testing.T, most int) (*clock, *memstore.Store) {
	c := &clock{}
	st, err := memstore.New(memstore.Config{Now: c.Now,
		Retention: store.Retention{Limits: map[string]store.Limits{"patterns.pattern": {Most: most,
			Refuse: true}}}})
	require.NoError(t, err)
	return c, st
}

// If there is no room for another pattern, an outcome counts for the patterns that are known.
func TestNoRoomForAPattern(t *testing.T) {
	c, st := fullStore(t, 2)
	w := newWorld(t, patterns.Config{Store: st, Now: c.Now})
	w.record(good("q"))
	w.record(bad("p"))
	w.record(bad("p"))
	o := bad("p", "unknown")
	o.ID, o.Task, o.Criteria = "third", "t", []string{"c"}
	recorded := w.record(o)
	require.Len(t, recorded.Transitions, 1)
	assert.Equal(t, patterns.Inverted, recorded.Transitions[0].To)
	require.Len(t, recorded.Inversions, 1)
	s := w.standing("p")
	assert.Equal(t, patterns.Inverted, s.State)
	assert.Equal(t, 3, int(s.Counts.Failures))
	plan, err := w.Plan(ctx, "")
	require.NoError(t, err)
	assert.Len(t, plan.AntiPatterns, 1, "a warning needs no room")
	assert.EqualValues(t, 1, w.criterion("c").HarmfulCount)
	assert.True(t, w.record(o).Duplicate)

	fourth := bad("p", "unknown")
	fourth.ID, fourth.Task = "fourth", "t"
	step := func() error {
		return store.Do(ctx, st, func(tx *store.Tx) error {
			_, err := w.RecordIn(tx, fourth)
			return err
		})
	}
	require.NoError(t, step(), "a step of the host runs again by itself")
	assert.Equal(t, 4, int(w.standing("p").Counts.Failures))
}

// If the host's own kind of record is full, patterns are still added afterwards.
func TestNoRoomForTheHost(t *testing.T) {
	c := &clock{}
	st, err := memstore.New(memstore.Config{Now: c.Now,
		Retention: store.Retention{Limits: map[string]store.Limits{
			"host.note": {Most: 1, Refuse: true},
		}}})
	require.NoError(t, err)
	require.NoError(t, st.Declare(ctx, notes.Kind))
	w := newWorld(t, patterns.Config{Store: st, Now: c.Now})
	w.feedPattern("known", patterns.Helpful, 1, 0)
	o := good("known")
	o.ID, o.Task = "o", "t"
	step := func(id string) error {
		return store.Do(ctx, st, func(tx *store.Tx) error {
			tx.Put(store.Record{Ref: notes.Ref(id), At: time.Unix(1e9, 0), Body: store.Of("x")})
			_, err := w.RecordIn(tx, o)
			return err
		})
	}
	_, err = st.Commit(ctx, store.Batch{Records: []store.Record{notes.Record("x", 0)}})
	require.NoError(t, err)
	require.ErrorIs(t, step("another"), evidence.ErrFull)
	o.Patterns = append(o.Patterns, "new")
	w.record(o)
	assert.EqualValues(t, 1, w.standing("new").Counts.Successes)
}

// The time of matching grows with the number of words, and not with the ways through a text.
func TestLongPhrases(t *testing.T) {
	phrase := strings.Repeat("a ... ", 12) + "b ... c ... end"
	w := newWorld(t,
		patterns.Config{Approaches: []patterns.Approach{{Name: "one",
			Phrases: []string{phrase, strings.Repeat("x|y ", 30) + "end"}}}})
	begun := time.Now()
	_, err := w.Extract(ctx, strings.Repeat("a ", 300)+strings.Repeat("x y ",
		150)+strings.Repeat("the ", 2000))
	require.NoError(t, err)
	assert.Less(t, time.Since(begun), time.Minute)
	ids, err := w.Extract(ctx, strings.Repeat("a ", 20)+"b c end")
	require.NoError(t, err)
	assert.Len(t, ids, 1)
}

func TestExtractChecksItsContext(t *testing.T) {
	w := newWorld(t, patterns.Config{})
	ended, cancel := context.WithCancel(ctx)
	cancel()
	_, err := w.Extract(ended, "We split by layer.")
	require.ErrorIs(t, err, context.Canceled)
}

func ExampleRecorder_RecordIn() {
	ctx := context.Background()
	st, err := memstore.New(memstore.Config{})
	if err != nil {
		panic(err)
	}
	recorder, err := patterns.New(ctx, patterns.Config{Store: st})
	if err != nil {
		panic(err)
	}
	type ticket struct{ ID, State string }
	tickets := store.View[ticket]{
		Kind:  store.Kind{Name: "host.ticket"},
		Place: func(t ticket) (string, time.Time, []string) { return t.ID, time.Unix(1e9, 0), nil },
	}
	if err := st.Declare(ctx, tickets.Kind); err != nil {
		panic(err)
	}
	outcome := patterns.Outcome{ID: "run-1", Task: "t-7", Strategy: patterns.IDOf("Split by layer"),
		Success: true}
	var recorded *patterns.Recorded
	err = store.Do(ctx, st, func(tx *store.Tx) error {
		row, err := tickets.In(tx, "t-7")
		if err != nil {
			return err
		}
		tickets.Put(tx, ticket{"t-7", "done"}, row.Revision)
		recorded, err = recorder.RecordIn(tx, outcome)
		return err
	})
	fmt.Println(err, recorded.Score.Class)
	// Output: <nil> helpful
}

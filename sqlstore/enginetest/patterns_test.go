package enginetest_test

import (
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
)

// A workshop is a recorder over a store, which can be opened again.
type workshop struct {
	*patterns.Recorder
	ids  int
	now  time.Time
	open func() store.Store
}

func (w *workshop) reopen(t *testing.T) {
	st := w.open()
	clock := func() time.Time { return w.now }
	newID := func() string { w.ids++; return fmt.Sprint("id-", w.ids) }
	var err error
	w.Recorder, err = patterns.New(ctx, patterns.Config{Store: st, Now: clock, NewID: newID})
	require.NoError(t, err)
}

// works lives through some weeks: patterns are proven, inverted, promoted, reset and archived.
func (w *workshop) works(t *testing.T) (said []any) {
	by := patterns.By{Actor: "ann", Reason: "seen it"}
	say := func(one any, err error) {
		said = append(said, one, err)
	}
	for i := range 24 {
		if i%5 == 0 {
			w.reopen(t)
		}
		w.now = w.now.Add(100 * time.Hour)
		task := fmt.Sprint("task ", i%4)
		_, err := w.RecordError(ctx, patterns.TaskError{ID: fmt.Sprint("e", i), Task: task,
			Message: "no"})
		require.NoError(t, err)
		o := patterns.Outcome{
			ID: fmt.Sprint("o", i), Task: task, Description: "a \"page\" é", Strategy: "good",
			Patterns: []patterns.PatternID{"new"},
			Criteria: []string{"c"}, Duration: time.Minute + time.Nanosecond, Errors: 1, Success: true,
			Source: "bob",
		}
		if i%3 == 0 {
			o.Strategy, o.Patterns, o.Duration, o.Success, o.FailureMode = "bad", nil, time.Hour, false,
				"timeout"
			o.Errors = 4
		}
		say(w.Record(ctx, o))
		say(w.Record(ctx, o))
		say(w.Rate(ctx, patterns.Rating{ID: fmt.Sprint("f", i), Pattern: "said",
			Class: "helpful", Strength: 0.3, Source: "bob"}))
		switch i {
		case 6:
			say(w.Promote(ctx, "new", by))
		case 12:
			say(w.Reset(ctx, patterns.Reset{Pattern: "bad", By: by}))
		case 18:
			say(nil, w.ResolveError(ctx, "e6"))
		}
	}
	w.now = w.now.Add(200 * 24 * time.Hour)
	say(nil, w.Sweep(ctx, w.now))
	return said
}

// seen is all that can be read of a workshop.
func (w *workshop) seen(t *testing.T) (all []any) {
	add := func(one any, err error) {
		require.NoError(t, err)
		all = append(all, one)
	}
	add(w.Standings(ctx, patterns.PatternQuery{}))
	add(w.Criteria(ctx))
	add(gathered(w.Transitions(ctx, patterns.HistoryQuery{})))
	add(gathered(w.Transitions(ctx, patterns.HistoryQuery{About: "bad", Limit: 2})))
	add(gathered(w.Entries(ctx, patterns.HistoryQuery{About: "task 2"})))
	add(w.Errors(ctx, patterns.HistoryQuery{}))
	plan, err := w.Plan(ctx, "the page")
	require.NoError(t, err)
	text, recommended, warned := plan.Prompt()
	return append(all, text, recommended, warned)
}

func gathered[T any](all iter.Seq2[T, error]) (found []T, err error) {
	for one, err := range all {
		if err != nil {
			return nil, err
		}
		found = append(found, one)
	}
	return found, nil
}

// TestPatternsAgreeWithMemory has a recorder over each database do what one in memory does, with
// the database opened again in between.
func TestPatternsAgreeWithMemory(t *testing.T) {
	skipRaced(t)
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	memory := &workshop{now: start}
	kept, err := memstore.New(memstore.Config{Now: func() time.Time { return memory.now }})
	require.NoError(t, err)
	memory.open = func() store.Store { return kept }
	wantSaid := memory.works(t)
	want := memory.seen(t)
	onEach(t, func(t *testing.T, at place) {
		w := &workshop{now: start}
		w.open = func() store.Store {
			return at.store(t,
				sqlstore.Config{Now: func() time.Time { return w.now }})
		}
		assert.Equal(t, wantSaid, w.works(t))
		assert.Equal(t, want, w.seen(t))
		w.reopen(t)
		assert.Equal(t, want, w.seen(t))
	})
}

// TestSettingsOfTwoPrograms has a program go on beside one that was started later, with other
// settings, over one database.
func TestSettingsOfTwoPrograms(t *testing.T) {
	skipRaced(t)
	onEach(t, func(t *testing.T, at place) {
		old, err := patterns.New(ctx, patterns.Config{Store: at.store(t, sqlstore.Config{})})
		require.NoError(t, err)
		record := func(r *patterns.Recorder, id string) error {
			_, err := r.Record(ctx, patterns.Outcome{ID: id, Task: "t", Strategy: "p",
				Duration: time.Minute, Success: true})
			return err
		}
		require.NoError(t, record(old, "1"))

		// Settings that apply to reads may differ while programs are restarted one by one.
		strict, err := patterns.New(ctx, patterns.Config{Store: at.store(t, sqlstore.Config{}),
			Instruments: []string{"ci"}})
		require.NoError(t, err)
		require.NoError(t, record(strict, "2"))
		require.NoError(t, record(old, "3"))
		_, err = patterns.Open(ctx, patterns.Config{Store: at.store(t, sqlstore.Config{})})
		require.NoError(t, err, "a tool takes the settings of the program that was started last")

		// Settings of stored evidence may not.
		month := patterns.Config{Store: at.store(t, sqlstore.Config{}), HalfLife: 30 * 24 * time.Hour}
		_, err = patterns.New(ctx, month)
		require.ErrorAs(t, err, new(*heed.SettingsError))
		changed, err := patterns.Rebuild(ctx, month, "ann", "we change often")
		require.NoError(t, err)
		require.NoError(t, record(changed, "4"))
		require.ErrorAs(t, record(old, "5"), new(*heed.SettingsError),
			"a program that runs on does not mix two half-lives")
		again, err := patterns.New(ctx, patterns.Config{Store: at.store(t, sqlstore.Config{})})
		require.NoError(t, err, "a program that says nothing takes what is stored")
		require.NoError(t, record(again, "5"))
		s, err := again.Standing(ctx, "p")
		require.NoError(t, err)
		assert.EqualValues(t, 5, s.Counts.Successes)
	})
}

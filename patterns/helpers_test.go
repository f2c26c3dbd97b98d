package patterns_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/store"
)

var (
	ctx   = context.Background()
	start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
)

const day = 24 * time.Hour

// A clock stands still until it is told to go on.
type clock struct{ since atomic.Int64 }

func (c *clock) Now() time.Time          { return start.Add(time.Duration(c.since.Load())) }
func (c *clock) Advance(d time.Duration) { c.since.Add(int64(d)) }

// A world is a recorder with its stores and its clock.
type world struct {
	*patterns.Recorder
	t     testing.TB
	clock *clock
	store store.Store
	next  *atomic.Int64
}

// newStore returns a store whose history is whole.
func newStore(t testing.TB, now func() time.Time) *memstore.Store {
	st, err := memstore.New(memstore.Config{Now: now,
		Retention: store.Retention{HistoryPerCell: 10_000, HistoryFor: 3650 * day}})
	require.NoError(t, err)
	return st
}

// newWorld fills in what a configuration leaves open: a store of its own, a clock that stands, ids
// that count.
func newWorld(t testing.TB, cfg patterns.Config) *world {
	w := &world{t: t, clock: &clock{}, next: &atomic.Int64{}}
	if cfg.Now == nil {
		cfg.Now = w.clock.Now
	}
	if cfg.Store == nil {
		cfg.Store = newStore(t, cfg.Now)
	}
	w.store = cfg.Store
	if cfg.NewID == nil {
		cfg.NewID = func() string { return fmt.Sprint("id-", w.next.Add(1)) }
	}
	var err error
	w.Recorder, err = patterns.New(ctx, cfg)
	require.NoError(t, err)
	return w
}

// both runs a test with heed's arithmetic and with that of the design.
func both(t *testing.T, test func(t *testing.T, cfg patterns.Config)) {
	t.Run("default", func(t *testing.T) { test(t, patterns.Config{}) })
	t.Run("literal", func(t *testing.T) { test(t, patterns.SpecConfig()) })
}

// record records an outcome under an id of its own.
func (w *world) record(o patterns.Outcome) patterns.Recorded {
	w.t.Helper()
	if o.ID == "" {
		o.ID = fmt.Sprint("outcome-", w.next.Add(1))
	}
	if o.Task == "" {
		o.Task = "task-" + o.ID
	}
	recorded, err := w.Record(ctx, o)
	require.NoError(w.t, err)
	return recorded
}

// Outcomes that are as good and as bad as can be.
func good(ids ...patterns.PatternID) patterns.Outcome {
	return patterns.Outcome{Patterns: ids, Duration: time.Minute, Success: true}
}

func bad(ids ...patterns.PatternID) patterns.Outcome {
	return patterns.Outcome{Patterns: ids, Duration: time.Hour, Errors: 5, Retries: 3}
}

// rate gives a rating under an id of its own, some days ago.
func (w *world) feed(f patterns.Rating, daysAgo float64) patterns.Recorded {
	w.t.Helper()
	f.ID = fmt.Sprint("feedback-", w.next.Add(1))
	if f.Strength == 0 {
		f.Strength = 1
	}
	f.At = w.Config().Now().Add(-time.Duration(daysAgo * float64(day)))
	fed, err := w.Rate(ctx, f)
	require.NoError(w.t, err)
	return fed
}

func (w *world) standing(id patterns.PatternID) patterns.Standing {
	w.t.Helper()
	s, err := w.Standing(ctx, id)
	require.NoError(w.t, err)
	return s
}

// feedPattern adds n observations of a pattern from daysAgo days ago.
func (w *world) feedPattern(id patterns.PatternID, class string, n int, daysAgo float64) {
	w.t.Helper()
	for range n {
		w.feed(patterns.Rating{Pattern: id, Class: class}, daysAgo)
	}
}

// entry returns what is kept of an outcome.
func (w *world) entry(id string) (patterns.Entry, error) {
	found, err := drain(w.Entries(ctx, patterns.HistoryQuery{ID: id}))
	if err != nil || len(found) == 0 {
		return patterns.Entry{}, errors.Join(err, heed.ErrNotFound)
	}
	return found[0], nil
}

// prompt writes the errors of a task that are not resolved.
func (w *world) prompt(task string, size patterns.SectionSize) (string, error) {
	known, err := w.Errors(ctx, patterns.HistoryQuery{About: task})
	text, _ := known.Prompt(size, false)
	return text, err
}

// textOf returns the text of a plan for a prompt.
func textOf(p *patterns.Plan) string {
	text, _, _ := p.Prompt()
	return text
}

// reset is the error of a reset that is about no pattern.
func reset(_ patterns.Transition, err error) error { return err }

// A vectorEvent is some observations of a class, one full observation each unless it says
// otherwise.
type vectorEvent struct {
	Class string  `json:"class"`
	N     int     `json:"n"`
	Age   float64 `json:"age"` // in days
	Raw   float64 `json:"raw"`
}

func readJSON[T any](t testing.TB, file string) (value T) {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &value))
	return value
}

func assertInputError(t testing.TB, err error, field string) {
	t.Helper()
	var fault *heed.InputError
	if assert.ErrorAs(t, err, &fault) {
		assert.Equal(t, field, fault.Field)
	}
}

// fields returns the fields of all faults of a configuration, in order.
func fields(err error) (names []string) {
	for fault := range heed.ConfigErrors(err) {
		names = append(names, fault.Field)
	}
	return names
}

var by = patterns.By{Actor: "ada", Reason: "seen it work"}

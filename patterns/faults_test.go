package patterns_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"reflect"
	"regexp"
	"slices"
	"sort"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
)

// A shaky is a world whose store fails when it is told to.
type shaky struct {
	*world
	failing *storetest.Failing
	sound   *memstore.Store
}

// newShaky has four patterns: one failure before its inversion, promoted, inverted, and without an
// outcome for long. It also has a task that failed, and an error.
func newShaky(t testing.TB) *shaky {
	c := &clock{}
	sound := newStore(t, c.Now)
	require.NoError(t, sound.Declare(ctx, notes.Kind))
	fails := &storetest.Failing{Store: sound}
	w := newWorld(t, patterns.Config{Store: fails, Now: c.Now})
	w.clock = c
	_, err := w.Define(ctx, patterns.Pattern{ID: "unused", Content: "nobody has tried it"})
	require.NoError(t, err)
	c.Advance(80 * day)
	w.feedPattern("failing", patterns.Harmful, 2, 0)
	w.feedPattern("inverted", patterns.Harmful, 3, 0)
	w.feedPattern("promoted", patterns.Helpful, 1, 0)
	_, err = w.Promote(ctx, "promoted", by)
	require.NoError(t, err)
	for i := range 3 {
		w.record(patterns.Outcome{ID: fmt.Sprint("failed-", i), Task: "fails", Criteria: []string{"c"},
			Duration: time.Hour, Errors: 3})
	}
	_, err = w.RecordError(ctx, patterns.TaskError{ID: "e", Task: "t", Message: "no"})
	require.NoError(t, err)
	c.Advance(20 * day)
	return &shaky{w, fails, sound}
}

// step runs a step that also writes a record of the host.
func (s *shaky) step(do func(tx *store.Tx) error) error {
	return store.Do(ctx, s.failing, func(tx *store.Tx) error {
		notes.Put(tx, "noted", store.Once)
		return do(tx)
	})
}

var madeID = regexp.MustCompile(`id-\d+`)

// state returns all that the store has, but for ids that are made again with each call.
func (s *shaky) state() (all []string) {
	for _, kind := range []string{"patterns.pattern", "patterns.transition", "patterns.entry",
		"patterns.error", "heed.audit", "heed.settings", notes.Name} {
		for r, err := range s.sound.Find(ctx, store.Query{Kind: kind}) {
			require.NoError(s.t, err)
			text, err := r.Body.JSON()
			require.NoError(s.t, err)
			if kind == "heed.audit" {
				text = regexp.MustCompile(`"id":"[^"]*",`).ReplaceAll(text, nil) // a hash of such an id
			}
			all = append(all, kind+" "+madeID.ReplaceAllString(string(text), "id"))
		}
	}
	for _, kind := range []string{"patterns.pattern", "patterns.criterion", "other.pattern"} {
		for part, err := range s.sound.List(ctx, store.CellQuery{Kind: kind}) {
			require.NoError(s.t, err)
			all = append(all, fmt.Sprintf("%+v", part))
		}
	}
	sort.Strings(all)
	return all
}

func drain[T any](all iter.Seq2[T, error]) (found []T, err error) {
	for one, err := range all {
		if err != nil {
			return nil, err
		}
		found = append(found, one)
	}
	return found, nil
}

// A call is a call of a method. It returns the answer.
type call func(s *shaky) (any, error)

// does makes a call of a method that answers nothing.
func does(method func(s *shaky) error) call {
	return func(s *shaky) (any, error) { return nil, method(s) }
}

// answers makes a call of a method that answers something.
func answers[T any](method func(s *shaky) (T, error)) call {
	return func(s *shaky) (any, error) { return method(s) }
}

var recorderCalls = map[string]call{
	"Record": answers(func(s *shaky) (patterns.Recorded, error) {
		o := bad("failing", "new", "anti-inverted")
		o.ID, o.Task, o.Criteria, o.Errors = "x", "t", []string{"c", "d"}, 0
		return s.Record(ctx, o)
	}),
	"Record, again": answers(func(s *shaky) (patterns.Recorded, error) {
		return s.Record(ctx, patterns.Outcome{ID: "failed-0", Task: "fails"})
	}),
	"Rate": answers(func(s *shaky) (patterns.Recorded, error) {
		return s.Rate(ctx, patterns.Rating{ID: "x", Pattern: "failing", Class: patterns.Harmful,
			Strength: 1})
	}),
	"Rate, a criterion": answers(func(s *shaky) (patterns.Recorded, error) {
		return s.Rate(ctx, patterns.Rating{ID: "x", Criterion: "c", Class: patterns.Helpful,
			Strength: 0.5})
	}),
	"Define": answers(func(s *shaky) (patterns.Pattern, error) {
		return s.Define(ctx, patterns.Pattern{ID: "new", Content: "c"})
	}),
	"Promote": answers(func(s *shaky) (patterns.Transition, error) {
		return s.Promote(ctx, "failing",
			by)
	}),
	"Deprecate": answers(func(s *shaky) (patterns.Transition, error) {
		return s.Deprecate(ctx, "promoted", by)
	}),
	"Reset": answers(func(s *shaky) (patterns.Transition, error) {
		return s.Reset(ctx, patterns.Reset{Pattern: "inverted", By: by})
	}),
	"Reset, keeping the evidence": answers(func(s *shaky) (patterns.Transition, error) {
		return s.Reset(ctx, patterns.Reset{Pattern: "promoted", By: by, KeepEvidence: true})
	}),
	"Reset, a criterion": does(func(s *shaky) error {
		return reset(s.Reset(ctx,
			patterns.Reset{Criterion: "c", By: by}))
	}),
	"Sweep": does(func(s *shaky) error { return s.Sweep(ctx, time.Time{}) }),
	"Standing": answers(func(s *shaky) (patterns.Standing, error) {
		return s.Standing(ctx,
			"anti-inverted")
	}),
	"Standings": answers(func(s *shaky) ([]patterns.Standing, error) {
		return s.Standings(ctx, patterns.PatternQuery{})
	}),
	"Rank": answers(func(s *shaky) ([]patterns.Standing, error) {
		ranked, warnings, err := s.Rank(ctx, map[patterns.PatternID]float64{"failing": 1, "inverted": 1,
			"unknown": 1})
		return append(ranked, warnings...), err
	}),
	"Criteria": answers(func(s *shaky) ([]patterns.Criterion, error) { return s.Criteria(ctx) }),
	"Criteria, by name": answers(func(s *shaky) ([]patterns.Criterion, error) {
		return s.Criteria(ctx, "c", "d")
	}),
	"Plan": answers(func(s *shaky) (patterns.Plan, error) {
		return s.Plan(ctx,
			"anything")
	}),
	"Entries, by id": answers(func(s *shaky) (patterns.Entry, error) { return s.entry("failed-1") }),
	"Entries": answers(func(s *shaky) ([]patterns.Entry, error) {
		return drain(s.Entries(ctx, patterns.HistoryQuery{About: "fails"}))
	}),
	"Transitions": answers(func(s *shaky) ([]patterns.Transition, error) {
		return drain(s.Transitions(ctx, patterns.HistoryQuery{}))
	}),
	"RecordError": answers(func(s *shaky) (string, error) {
		return s.RecordError(ctx, patterns.TaskError{ID: "f", Task: "t", Message: "no"})
	}),
	"RecordError, again": answers(func(s *shaky) (string, error) {
		return s.RecordError(ctx, patterns.TaskError{ID: "e", Task: "t", Message: "other"})
	}),
	"ResolveError": does(func(s *shaky) error { return s.ResolveError(ctx, "e") }),
	"RecordIn": answers(func(s *shaky) (*patterns.Recorded, error) {
		var recorded *patterns.Recorded
		err := s.step(func(tx *store.Tx) (err error) {
			o := bad("failing", "new", "anti-inverted")
			o.ID, o.Task, o.Criteria, o.Errors = "x", "t", []string{"c", "d"}, 0
			recorded, err = s.RecordIn(tx, o)
			return err
		})
		return recorded, err
	}),
	"PlanIn": answers(func(s *shaky) (patterns.Plan, error) {
		return s.Steps().PlanIn(store.Reading(ctx, s.failing), "anything")
	}),
	"ErrorsIn": answers(func(s *shaky) (patterns.ErrorReport, error) {
		return s.Steps().ErrorsIn(store.Reading(ctx, s.failing), patterns.HistoryQuery{About: "t"})
	}),
	"Errors": answers(func(s *shaky) (patterns.ErrorReport, error) {
		return s.Errors(ctx, patterns.HistoryQuery{About: "t"})
	}),
}

// configured returns the configuration that the world's recorder was opened with, changed.
func (s *shaky) configured(change func(*patterns.Config)) patterns.Config {
	cfg := patterns.Config{Store: s.failing, Now: s.clock.Now, NewID: s.Config().NewID}
	change(&cfg)
	return cfg
}

var functionCalls = map[string]call{
	"New": does(func(s *shaky) error {
		_, err := patterns.New(ctx, s.configured(func(c *patterns.Config) { c.Name = "other" }))
		return err
	}),
	"New, with another setting": does(func(s *shaky) error {
		_, err := patterns.New(ctx, s.configured(func(c *patterns.Config) {
			c.Instruments = []string{"ci"}
		}))
		return err
	}),
	"Open": does(func(s *shaky) error {
		_, err := patterns.Open(ctx, s.configured(func(*patterns.Config) {}))
		return err
	}),
	"Rebuild": does(func(s *shaky) error {
		_, err := patterns.Rebuild(ctx,
			s.configured(func(c *patterns.Config) { c.HalfLife = 30 * day }), by.Actor,
			by.Reason)
		return err
	}),
}

// inSteps are the methods that commit more than once: each commit is whole by itself.
var inSteps = map[string]string{
	"Sweep":   "settles each pattern by itself, so that others need not wait",
	"Rebuild": "is a job, which a sweep finishes",
}

// TestRecordingAgainMendsWhatFailed lets each call of the store fail once in each method, before
// its effect and after it. The method returns that error, or its result after a commit that took
// effect; the store is as it was before, or as
// after the method; and the method, called again, ends as if nothing had failed.
func TestRecordingAgainMendsWhatFailed(t *testing.T) {
	for _, table := range []map[string]call{recorderCalls, functionCalls} {
		for name, call := range table {
			t.Run(name, func(t *testing.T) { sweepFaults(t, name, call) })
		}
	}
}

func sweepFaults(t *testing.T, name string, call call) {
	sound := newShaky(t)
	before := sound.state()
	want, err := call(sound)
	require.NoError(t, err)
	after := sound.state()
	reads := reflect.DeepEqual(before, after)
	runs := 0
	storetest.FailEach(func(at int, effect bool) bool {
		s := newShaky(t)
		s.failing.Fail(at, effect)
		got, err := call(s)
		if !s.failing.Failed() {
			return false
		}
		runs++
		s.failing.Fail(0, false)
		state := s.state()
		if effect && err == nil { // a commit, whose result the caller gets
			require.Equal(t, after, state, "call %d", at)
			require.Equal(t, written(t, want), written(t, got), "call %d", at)
			return true
		}
		require.ErrorIs(t, err, storetest.ErrFailed, "call %d, with its effect: %t, answered %v", at,
			effect, got)
		if inSteps[name] == "" && !slices.Equal(state, before) {
			require.Equal(t, after, state, "call %d, with its effect: %t", at, effect)
		}
		got, err = call(s)
		require.NoError(t, err)
		assert.Equal(t, after, s.state(), "call %d, with its effect: %t, made again", at, effect)
		if reads {
			assert.Equal(t, written(t, want), written(t, got))
		}
		return true
	})
	assert.Positive(t, runs, "it calls the store")
}

// written writes an answer, but for ids that are made again.
func written(t testing.TB, answer any) string {
	text, err := json.Marshal(answer)
	require.NoError(t, err)
	return madeID.ReplaceAllString(string(text), "id")
}

// TestEveryMethodIsSwept enumerates the methods, so that a new one is tried with faults or has a
// reason.
func TestEveryMethodIsSwept(t *testing.T) {
	without := map[string]string{
		"Config": "asks no store", "Extract": "asks no store", "PlanWants": "asks no store",
		"ErrorsWants": "asks no store", "Steps": "asks no store",
	}
	methods := reflect.TypeOf((*patterns.Recorder)(nil).Steps())
	for i := range methods.NumMethod() {
		name := methods.Method(i).Name
		assert.True(t, recorderCalls[name] != nil || without[name] != "", "%s is not swept", name)
	}
}

// An outcome, a rating or a decision is one commit with all that follows from it.
func TestOneCommit(t *testing.T) {
	for _, name := range []string{
		"Record", "RecordIn", "Rate", "Rate, a criterion", "Define", "Promote",
		"Deprecate", "Reset", "Reset, keeping the evidence",
		"Reset, a criterion",
	} {
		s := newShaky(t)
		s.failing.Fail(0, false)
		_, err := recorderCalls[name](s)
		require.NoError(t, err)
		assert.Equal(t, 1, s.failing.Calls("Commit"), name)
		assert.LessOrEqual(t, s.failing.Calls(), 2, name)
	}
}

// A rival commits something just before each of the first commits of another.
type rival struct {
	store.Store
	before func()
	times  int
}

func (r *rival) Commit(ctx context.Context, batches ...store.Batch) ([]store.Receipt, error) {
	if r.times != 0 {
		r.times--
		r.before()
	}
	return r.Store.Commit(ctx, batches...)
}

// An outcome that is recorded between the reading and the commit of another is seen by that.
func TestRivals(t *testing.T) {
	c := &clock{}
	sound := newStore(t, c.Now)
	other := newWorld(t, patterns.Config{Store: sound, Now: c.Now})
	quick := &rival{Store: sound}
	w := newWorld(t, patterns.Config{Store: quick, Now: c.Now})
	quick.times, quick.before = 2, func() { other.record(bad("p")) }
	recorded := w.record(patterns.Outcome{ID: "mine", Task: "t", Strategy: "p", Duration: time.Hour,
		Errors: 3})
	assert.Zero(t, quick.times)
	require.Len(t, recorded.Inversions, 1, "it is the third")
	assert.Equal(t, "Failed 3/3 times (100% failure rate)", recorded.Inversions[0].Reason)
	assert.Len(t, w.transitions("p"), 1)

	harmful := patterns.Rating{Pattern: "said", Class: patterns.Harmful}
	quick.times, quick.before = 2, func() { other.feed(harmful, 0) }
	fed := w.feed(harmful, 0)
	require.Len(t, fed.Transitions, 1,
		"it is the third, though nothing of the pattern changes but its evidence")
	assert.Equal(t, patterns.Inverted, fed.Transitions[0].To)

	quick.times, quick.before = 1, func() {
		_, err := other.Record(ctx, patterns.Outcome{ID: "twice", Task: "t", Strategy: "q",
			Success: true})
		require.NoError(t, err)
	}
	twice := w.record(patterns.Outcome{ID: "twice", Task: "t", Strategy: "q", Duration: time.Hour,
		Errors: 3})
	assert.True(t, twice.Duplicate)
	assert.Equal(t, patterns.Helpful, twice.Score.Class, "the score is that of the first")
	assert.Equal(t, patterns.Observations{Successes: 1}, w.standing("q").Counts)
}

// A refusing store has every commit lose, once it is told to.
type refusing struct {
	store.Store
	now bool
}

func (r *refusing) Commit(ctx context.Context, batches ...store.Batch) ([]store.Receipt, error) {
	if r.now {
		return nil, fmt.Errorf("always: %w", heed.ErrConflict)
	}
	return r.Store.Commit(ctx, batches...)
}

func TestConflictsEnd(t *testing.T) {
	c := &clock{}
	st := &refusing{Store: newStore(t, c.Now)}
	w := newWorld(t, patterns.Config{Store: st, Now: c.Now})
	st.now = true
	_, err := w.Record(ctx, patterns.Outcome{ID: "1", Task: "t", Strategy: "p"})
	require.ErrorIs(t, err, heed.ErrConflict)
}

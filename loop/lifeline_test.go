package loop

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// What a store answers is no outage: input that it refuses, a conflict, a record that it can't
// find or decode.
func TestWhichErrorsAreOutages(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	slow, stop := context.WithTimeoutCause(t.Context(), 0, errStoreSlow)
	defer stop()
	<-slow.Done()
	unknown := errors.New("connection refused")
	for _, test := range []struct {
		ctx    context.Context
		err    error
		outage bool
	}{
		{t.Context(), unknown, true},
		{t.Context(), heed.ErrOutcomeUnknown, true},
		{t.Context(), context.DeadlineExceeded, true},
		{ended, unknown, false},
		{slow, context.DeadlineExceeded, true},
		{t.Context(), heed.ErrNotFound, false},
		{t.Context(), heed.ErrConflict, false},
		{t.Context(), heed.ErrDamaged, false},
		{t.Context(), evidence.ErrForgotten, false},
		{t.Context(), evidence.ErrFull, false},
		{t.Context(), &heed.InputError{}, false},
		{t.Context(), &heed.ConfigError{}, false},
		{t.Context(), &heed.SizeError{}, false},
		{t.Context(), &heed.PanicError{}, false},
	} {
		err := fmt.Errorf("read: %w", test.err)
		assert.Equal(t, test.outage, isOutage(test.ctx, err), "%T %v", test.err, test.err)
	}
}

// newLifeline returns a lifeline that tells of outages. now is its clock.
func newLifeline(now *time.Time) (l *lifeline, told func() []string) {
	var all []string
	l = &lifeline{
		now: func() time.Time { return *now },
		report: func(_ context.Context, what string, since time.Time, cause error) {
			all = append(all, fmt.Sprint(what, since.Unix(), cause))
		},
	}
	return l, func() []string {
		defer func() { all = nil }()
		return all
	}
}

// An outage begins with the first failure. A commit ends it, and a read only if no commit failed.
func TestWhenAnOutageIsOver(t *testing.T) {
	refused := errors.New("refused")
	fails, works := func() error { return refused }, func() error { return nil }
	now := noon
	l, told := newLifeline(&now)
	began := fmt.Sprint("store", time.Time{}.Unix(), refused)
	over := fmt.Sprint("store", noon.Unix(), error(nil))
	for _, failed := range []int{reading, committing} {
		now = noon
		for range 2 {
			require.ErrorIs(t, l.try(t.Context(), failed, fails), heed.ErrUnavailable)
		}
		assert.Equal(t, []string{began}, told())
		now = noon.Add(time.Minute)
		require.NoError(t, l.try(t.Context(), reading, works))
		if failed == committing {
			assert.Empty(t, told(), "a standby may allow reads")
			require.ErrorIs(t, l.try(t.Context(), reading, fails), heed.ErrUnavailable)
			assert.Empty(t, told())
			require.NoError(t, l.try(t.Context(), committing, works))
		}
		assert.Equal(t, []string{over}, told())
		require.NoError(t, l.try(t.Context(), committing, works))
		assert.Empty(t, told())
	}
	err := l.try(t.Context(), reading, func() error { return heed.ErrConflict })
	assert.Equal(t, heed.ErrConflict, err)
	assert.Empty(t, told())
}

// A time that touches an outage may have reports that were lost.
func TestWhetherTheStoreWasAway(t *testing.T) {
	now := noon
	l, _ := newLifeline(&now)
	until := noon.Add(time.Minute)
	assert.False(t, l.away(noon, until))
	_ = l.try(t.Context(), reading, func() error { return errors.New("x") })
	for after, away := range map[time.Duration]bool{-1: false, 0: true, time.Hour: true} {
		assert.Equal(t, away, l.away(noon.Add(-time.Hour), noon.Add(after)), after)
	}
	now = until
	_ = l.try(t.Context(), reading, func() error { return nil })
	for after, away := range map[time.Duration]bool{-1: true, 0: false, time.Hour: false} {
		assert.Equal(t, away, l.away(until.Add(after), until.Add(2*time.Hour)), after)
	}
	for n := range mostOutages {
		now = noon.Add(time.Duration(n+1) * time.Hour)
		_ = l.try(t.Context(), reading, func() error { return errors.New("x") })
		_ = l.try(t.Context(), reading, func() error { return nil })
		assert.Equal(t, n < mostOutages-1, l.away(noon, noon), "the oldest go first")
	}
	assert.Len(t, l.outages, mostOutages)
}

// After a try that hung, calls fail at once for as long as it took, but not for hours after a sweep
// that failed at last. A quick failure holds up none.
func TestCallsAfterOneThatHung(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := noon
		for took, held := range map[time.Duration]time.Duration{
			slow - 1: 0, slow: slow, 10 * slow: 10 * slow, time.Hour: storeTimeout,
		} {
			l, _ := newLifeline(&now)
			try := func() (called bool) {
				_ = l.try(t.Context(), reading, func() error { called = true; return nil })
				return called
			}
			err := l.try(t.Context(), reading, func() error {
				time.Sleep(took)
				return errors.New("x")
			})
			require.ErrorIs(t, err, heed.ErrUnavailable)
			if held > 0 {
				time.Sleep(held - 1)
				assert.ErrorIs(t, l.try(t.Context(), reading, nil), heed.ErrUnavailable)
				ended, cancel := context.WithCancel(t.Context())
				cancel()
				_ = l.try(ended, committing, func() error { return ended.Err() })
				time.Sleep(time.Nanosecond)
			}
			assert.True(t, try(), took)
			assert.True(t, try(), took)
		}
	})
}

// A step waits for the store for at most half of the time that the caller has left.
func TestAStepHasHalfOfTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for left, want := range map[time.Duration]time.Duration{
			0: 5 * time.Second, time.Hour: 5 * time.Second, 4 * time.Second: 2 * time.Second,
		} {
			caller, cancel := context.WithCancel(t.Context())
			if left > 0 {
				caller, cancel = context.WithTimeout(t.Context(), left)
			}
			step, stop := patient(caller, storeTimeout)
			end, _ := step.Deadline()
			assert.Equal(t, want, time.Until(end))
			<-step.Done()
			assert.Equal(t, errStoreSlow, context.Cause(step))
			stop()
			cancel()
		}
	})
}

// What was got lately stays, and of what was not only the latest.
func TestRecentKeepsWhatIsAskedFor(t *testing.T) {
	var r recent[int, string]
	_, ok := r.get(1)
	assert.False(t, ok)
	r.put(-1, "old", 1)
	r.put(-2, "old", 1)
	for n := range 2 * mostRecent {
		r.put(n, "x", 1)
		value, ok := r.get(-1)
		assert.True(t, ok)
		require.Equal(t, "old", value)
		assert.LessOrEqual(t, len(r.now), mostRecent)
	}
	_, ok = r.get(-2)
	assert.False(t, ok, "it was not asked for")
	r.put(-1, "new", 1)
	value, _ := r.get(-1)
	assert.Equal(t, "new", value)

	r = recent[int, string]{}
	for range 3 {
		r.put(1, "a", mostSize) // in the place of what is there
		assert.Equal(t, mostSize, r.size)
		assert.Empty(t, r.before)
	}
	r.put(2, "b", 1)
	assert.Len(t, r.before, 1, "the generation was full")
	assert.Equal(t, 1, r.size)
	value, ok = r.get(1)
	assert.True(t, ok)
	assert.Equal(t, "a", value)
	assert.Equal(t, mostSize, r.size, "it has its size again")
}

// A memory returns the records and parts as they were read last, but no answers. Without the
// version of a kind, a whole part is missing.
func TestAMemoryRecalls(t *testing.T) {
	m := &memory{answers: "answer"}
	note, version := store.Ref{Kind: "note", ID: "n"}, store.Ref{Kind: "note"}
	none, given := store.Ref{Kind: "note", ID: "none"}, store.Ref{Kind: "answer", ID: "a"}
	x, y := evidence.Cell{Name: "x"}, evidence.Cell{Name: "y"}
	parts := []evidence.Part{{Cell: x, Source: "1"}, {Cell: x, Source: "2"}, {Cell: y, Source: "3"}}
	recall := func(cells []evidence.Cell, refs ...store.Ref) (s store.Snapshot, ok bool) {
		s.Records = []store.Record{{Revision: 99}}
		ok = m.recall(&s, cells, refs)
		return s, ok
	}
	_, ok := recall(nil, version)
	assert.False(t, ok)
	m.keep([]store.Ref{note, version, none, given}, []store.Record{
		{Ref: note, Revision: 3}, {Ref: version, Revision: 4}, {Ref: none}, {Ref: given, Revision: 5},
	}, []evidence.Cell{x, y}, parts)
	parts[0].Source = "changed by the caller"
	s, ok := recall([]evidence.Cell{y, x, {Name: "z"}}, note, version, none, given)
	require.True(t, ok)
	assert.Equal(t, []store.Record{{Revision: 99}, {Ref: note, Revision: 3},
		{Ref: version, Revision: 4}, {Ref: none}, {Ref: given}}, s.Records)
	assert.Equal(t, []evidence.Part{{Cell: y, Source: "3"}, {Cell: x, Source: "1"},
		{Cell: x, Source: "2"}}, s.Parts)
	m.keep([]store.Ref{version}, []store.Record{{Ref: version}}, []evidence.Cell{x},
		[]evidence.Part{{Cell: x, Source: "4"}})
	s, ok = recall([]evidence.Cell{x, y}, version)
	require.True(t, ok, "a kind without records has version 0")
	assert.Equal(t, []store.Record{{Revision: 99}, {Ref: version}}, s.Records)
	assert.Equal(t, []evidence.Part{{Cell: x, Source: "4"}, {Cell: y, Source: "3"}}, s.Parts)
}

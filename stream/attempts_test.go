package stream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/stream"
	"github.com/heedhq/heed/stream/streamtest"
)

type after = func(context.Context)

// start publishes events and has a runner deal with them until stop is called or, if they are to be
// all, until they were dealt with. end waits for the runner, and returns its error.
func start(t *testing.T, r *stream.Runner, all bool, ids ...string) (
	stop context.CancelFunc, end func() error,
) {
	t.Helper()
	events := &streamtest.Stream{}
	for _, id := range ids {
		require.NoError(t, events.Publish(t.Context(), stream.Event{ID: id, Topic: "t"}))
	}
	if all {
		events.Close()
	}
	if r.Stream == nil {
		r.Stream = events
	}
	if r.DeadLetters == nil {
		r.DeadLetters = &streamtest.Stream{}
	}
	r.Topic = "dead"
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	return stop, func() error { return <-ended }
}

// The waits double up to ten seconds. The context ends a wait at once, and the event is given back.
func TestTheLongestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		began := time.Now()
		r := &stream.Runner{Attempts: 11, Apply: func(context.Context, stream.Event) (after, error) {
			at = append(at, time.Since(began))
			return nil, errDown
		}}
		_, end := start(t, r, true, "e")
		require.NoError(t, end())
		const ms = time.Millisecond
		assert.Equal(t, []time.Duration{0, 100 * ms, 300 * ms, 700 * ms, 1500 * ms, 3100 * ms,
			6300 * ms, 12_700 * ms, 22_700 * ms, 32_700 * ms, 42_700 * ms}, at)
		assert.Equal(t, stream.RunnerCounts{Received: 1, Dead: 1, Retries: 10}, r.Counts())
	})
	synctest.Test(t, func(t *testing.T) {
		r := &stream.Runner{Apply: func(context.Context, stream.Event) (after, error) {
			return nil, errDown
		}}
		stop, end := start(t, r, false, "e")
		time.Sleep(250 * time.Millisecond)
		stop()
		synctest.Wait()
		began := time.Now()
		require.NoError(t, end())
		assert.Zero(t, time.Since(began))
		assert.Equal(t, stream.RunnerCounts{Received: 1, Retries: 1}, r.Counts())
		d, err := r.Stream.Receive(t.Context())
		require.NoError(t, err)
		assert.Equal(t, "e", d.Event().ID)
	})
}

// Events in hand at the end are finished, or given back after ten seconds. What follows an event is
// called when it is out of hand, with a context that goes on.
func TestTheEndOfARun(t *testing.T) {
	for takes, want := range map[time.Duration]stream.RunnerCounts{
		9 * time.Second:  {Received: 1, Applied: 1},
		11 * time.Second: {Received: 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			followed := 0
			r := &stream.Runner{Apply: func(ctx context.Context, _ stream.Event) (after, error) {
				select {
				case <-ctx.Done():
					return nil, ctx.Err()
				case <-time.After(takes):
				}
				return func(ctx context.Context) {
					followed++
					assert.NoError(t, ctx.Err())
				}, nil
			}}
			stop, end := start(t, r, false, "e", "not received")
			synctest.Wait()
			stop()
			began := time.Now()
			require.NoError(t, end())
			assert.Equal(t, min(takes, 10*time.Second), time.Since(began))
			assert.Equal(t, want, r.Counts())
			assert.Equal(t, int(want.Applied), followed)
			left := map[bool][]string{true: {"not received"}, false: {"not received", "e"}}
			for _, id := range left[want.Applied == 1] {
				d, err := r.Stream.Receive(t.Context())
				require.NoError(t, err)
				assert.Equal(t, id, d.Event().ID)
			}
		})
	}
}

// A run that ends while it waits for an event returns nil. An event that it received in the end is
// not lost.
func TestTheEndOfAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		applied := 0
		r := &stream.Runner{Apply: func(context.Context, stream.Event) (after, error) {
			applied++
			return nil, nil
		}}
		stop, end := start(t, r, false)
		synctest.Wait()
		stop()
		require.NoError(t, end())
		assert.Equal(t, stream.RunnerCounts{}, r.Counts())

		events := &streamtest.Stream{}
		require.NoError(t, events.Publish(t.Context(), stream.Event{ID: "e", Topic: "t"}))
		ctx, stop := context.WithCancel(t.Context())
		r.Stream = source{events, func(d stream.Delivery) stream.Delivery { stop(); return d }}
		require.NoError(t, r.Run(ctx))
		assert.Equal(t, stream.RunnerCounts{Received: 1, Applied: 1}, r.Counts())
		assert.Equal(t, 1, applied)
		assert.Zero(t, events.Len())
	})
}

// An attempt ends after the timeout, each by itself.
func TestTheTimeoutOfAnAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var took []time.Duration
		r := &stream.Runner{Timeout: 3 * time.Second, Attempts: 2,
			Apply: func(ctx context.Context, _ stream.Event) (after, error) {
				began := time.Now()
				<-ctx.Done()
				took = append(took, time.Since(began))
				return nil, ctx.Err()
			}}
		_, end := start(t, r, true, "e")
		require.NoError(t, end())
		assert.Equal(t, []time.Duration{3 * time.Second, 3 * time.Second}, took)
		assert.Equal(t, stream.RunnerCounts{Received: 1, Dead: 1, Retries: 1}, r.Counts())
	})
}

// As many events are worked on at a time as there are workers, in their order if there is one.
func TestWorkers(t *testing.T) {
	for workers, most := range map[int]int{0: 1, 1: 1, 3: 3} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			busy, busiest := 0, 0
			var order []string
			r := &stream.Runner{Workers: workers,
				Apply: func(_ context.Context, e stream.Event) (after, error) {
					mu.Lock()
					busy++
					busiest = max(busiest, busy)
					order = append(order, e.ID)
					mu.Unlock()
					time.Sleep(time.Second)
					mu.Lock()
					defer mu.Unlock()
					busy--
					return nil, nil
				}}
			_, end := start(t, r, true, "a", "b", "c", "d", "e", "f")
			require.NoError(t, end())
			assert.Equal(t, most, busiest)
			assert.Equal(t, stream.RunnerCounts{Received: 6, Applied: 6}, r.Counts())
			if most == 1 {
				assert.Equal(t, []string{"a", "b", "c", "d", "e", "f"}, order)
			}
		})
	}
}

// A broken source fails, or panics, at each of its calls.
type broken struct {
	calls  int
	panics bool
}

func (s *broken) Receive(context.Context) (stream.Delivery, error) {
	if s.calls++; s.panics {
		panic("it broke")
	}
	return nil, errDown
}

// A source that fails for good ends the run, after as many attempts as there are, or after one if
// the runner is strict. A panic is a failure that the observer receives.
func TestABrokenSource(t *testing.T) {
	for _, tt := range []struct {
		r       *stream.Runner
		panics  bool
		calls   int
		noticed int
	}{
		{&stream.Runner{}, false, 5, 0}, {&stream.Runner{Attempts: 2}, true, 2, 2},
		{&stream.Runner{Strict: true}, false, 1, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			from := &broken{panics: tt.panics}
			noticed := 0
			r := tt.r
			r.Stream, r.Observer = from, func(context.Context, heed.Notice) { noticed++ }
			r.Apply = func(context.Context, stream.Event) (after, error) { return nil, nil }
			_, end := start(t, r, false)
			err := end()
			require.ErrorContains(t, err, "receive: ")
			assert.Equal(t, tt.panics, errors.As(err, new(*heed.PanicError)))
			assert.Equal(t, tt.calls, from.calls)
			assert.Equal(t, tt.noticed, noticed)
			assert.Equal(t, stream.RunnerCounts{Retries: uint64(tt.calls - 1)}, r.Counts())
		})
	}
}

// A worker whose goroutine ends from within ends the run, with an error, and the other workers.
func TestAGoroutineThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &stream.Runner{Workers: 2, Apply: func(context.Context, stream.Event) (after, error) {
			runtime.Goexit()
			return nil, nil
		}}
		_, end := start(t, r, false, "e")
		require.ErrorContains(t, end(), "a worker's goroutine was ended from within")
	})
}

// The dead letter has the event, the reason and the runner's time. A year that JSON can't express
// is left out. Faults of settings are final, and the observer receives their words.
func TestTheDeadLetter(t *testing.T) {
	now := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	for _, at := range []time.Time{
		now.Add(-time.Hour), time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC),
	} {
		dead := &lettersAway{}
		r := &stream.Runner{DeadLetters: dead, Now: func() time.Time { return now },
			Apply: func(context.Context, stream.Event) (after, error) {
				return nil, fmt.Errorf("Ann: %w", &heed.SettingsError{})
			}}
		e := stream.Event{ID: "e", Topic: "t", At: at, Payload: []byte("x")}
		seen, err := run(t, r, e)
		require.NoError(t, err)
		if at.Year() == 10_000 {
			e.At = time.Time{}
		}
		reason := (&heed.SettingsError{}).Error()
		payload, err := json.Marshal(stream.DeadLetter{Event: e, Reason: "Ann: " + reason, Attempts: 1})
		require.NoError(t, err)
		got, _ := letter(t, dead)
		assert.Equal(t, stream.Event{ID: "e", Topic: "dead", At: now, Payload: payload}, got)
		assert.Equal(t, []heed.Notice{
			heed.DeadLettered{Component: "test", At: now, ID: "e", Reason: reason},
		}, seen)
	}
}

// An event whose dead letter can't be written before the run is given up is given back, without an
// error.
func TestAnEndWhileALetterIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &stream.Runner{Attempts: 8, DeadLetters: &lettersAway{fails: 100},
			Apply: func(context.Context, stream.Event) (after, error) {
				return func(context.Context) {}, &heed.InputError{Field: "ID", Reason: "is odd"}
			}}
		stop, end := start(t, r, false, "e")
		synctest.Wait()
		stop()
		began := time.Now()
		require.NoError(t, end())
		assert.Equal(t, 10*time.Second, time.Since(began))
		d, err := r.Stream.Receive(t.Context())
		require.NoError(t, err)
		assert.Equal(t, "e", d.Event().ID)
	})
}

// A runner keeps its counts from one run to the next, and uses the host's clock if Runner.Now is
// nil.
func TestARunnerRunsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dead := &lettersAway{}
		r := &stream.Runner{DeadLetters: dead, Apply: func(_ context.Context, e stream.Event) (after,
			error) {
			return nil, stream.Refuse(errDown, "no")
		}}
		for i := range 2 {
			_, err := run(t, r, stream.Event{ID: fmt.Sprint(i), Topic: "t"})
			require.NoError(t, err)
			e, _ := letter(t, dead)
			assert.Equal(t, time.Now().UTC(), e.At.UTC())
			time.Sleep(time.Second)
		}
		assert.Equal(t, stream.RunnerCounts{Received: 2, Dead: 2}, r.Counts())
	})
}

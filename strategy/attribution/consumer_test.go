package attribution_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/attribution"
	"github.com/heedhq/heed/stream"
	"github.com/heedhq/heed/stream/streamtest"
)

func TestConsumerConfigFaults(t *testing.T) {
	_, err := attribution.New(attribution.Config{
		HookTimeout: -1, Workers: -1, Attempts: -1,
	})
	assert.Equal(t, []string{
		"Learner", "HookTimeout", "Stream", "DeadLetters", "Workers", "Attempts",
	}, fields(err))

	_, err = attribution.New(attribution.Config{
		Learner: newLearner(t, strategy.Config{Unrecorded: true}), Stream: &tape{},
		DeadLetters: &letterbox{},
	})
	assert.Equal(t, []string{"Learner"}, fields(err), "a learner without records finds no choice")
}

// A worth that belongs to no known choice is no error, and no event comes of it.
func TestConsumerUnknown(t *testing.T) {
	d := newDesk(t, strategy.Config{Topic: "heed.strategy"})
	d.choose(t, 1)
	before := outbox(t, d.store)
	d.tape.events = []stream.Event{
		d.worth(t, "unknown session", "elsewhere", 1),
		d.report(t, "unknown item", attribution.Report{
			Session: "s0", Items: []attribution.Worth{{Item: "other", Activated: true, Value: 1}},
		}),
	}
	c := d.consumer(t, attribution.Config{Hook: attribution.Hook{Outcome: func(context.Context,
		strategy.Outcome) error {
		t.Error("the hook is told of an outcome that is none")
		return nil
	}}})
	require.NoError(t, c.Run(ctx))
	assert.Equal(t, attribution.Counts{
		RunnerCounts: stream.RunnerCounts{Received: 2, Applied: 2},
		Unmatched:    2,
	}, c.Counts())
	assert.Equal(t, before, outbox(t, d.store))
	assert.Empty(t, d.dead.events)
	assert.Zero(t, d.mass(t))
}

func outbox(t testing.TB, st store.Store) (events []stream.Event) {
	for e, err := range stream.Waiting(ctx, st) {
		require.NoError(t, err)
		events = append(events, e)
	}
	return events
}

// An attempt that fails afterwards does not count it.
func TestConsumerUnmatchedCountsOnce(t *testing.T) {
	d := newDesk(t, strategy.Config{})
	d.choose(t, 1)
	failures := 3
	d.store.before = func(context.Context, store.Batch) error {
		if failures--; failures >= 0 {
			return errFlaky
		}
		return nil
	}
	d.tape.events = []stream.Event{d.report(t, "e", attribution.Report{
		Session: "s0", Items: []attribution.Worth{{Item: "other", Activated: true, Value: 1},
			{Item: "i", Activated: true, Value: 1}},
	})}
	c := d.consumer(t, attribution.Config{})
	require.NoError(t, c.Run(ctx))
	assert.Equal(t, attribution.Counts{
		RunnerCounts: stream.RunnerCounts{Received: 1, Applied: 1, Retries: 3},
		Outcomes:     1, Unmatched: 1,
	}, c.Counts())
}

// poisons are payloads that no attempt can make right.
var poisons = map[string]string{
	"not JSON":          `{"session":`,
	"empty":             ``,
	"two values":        `{"session":"s0"} {}`,
	"another type":      `{"session":7}`,
	"nothing":           `null`,
	"of something else": `{"user":"u"}`,
	"no session":        `{"attribution_records":[{"item":"i","was_activated":true,"attributed_value":1}]}`,
	"end of no session": `{"session_ended":true,"attribution_records":[{"session":"s0","item":"i"}]}`,
	"infinite":          `{"session":"s0","attribution_records":[{"item":"i","was_activated":true,"attributed_value":1e999}]}`,
	"beyond the range":  `{"session":"s0","attribution_records":[{"item":"i","was_activated":true,"attributed_value":1.5}]}`,
	"a NUL":             `{"session":"s0","attribution_records":[{"item":"i\u0000","was_activated":true,"attributed_value":1}]}`,
	"a long item":       `{"session":"s0","attribution_records":[{"item":"` + strings.Repeat("i", 2000) + `","was_activated":true}]}`,
	"a long source":     `{"session":"s0","source":"` + strings.Repeat("i", 2000) + `"}`,
	"an unknown signal": `{"session":"s0","attribution_records":[{"item":"i"}],"signals":[{"Kind":"applause"}]}`,
	"a good record, then a bad one": `{"session":"s0","attribution_records":[{"item":"i","was_activated":true,"attributed_value":1},` +
		`{"item":"i\u0000","was_activated":true,"attributed_value":1}]}`,
}

// An event that can't be right is a dead letter at once. It has all that is needed to look into it,
// and changes nothing.
func TestConsumerPoison(t *testing.T) {
	d := newDesk(t, strategy.Config{})
	d.choose(t, 1)
	for name, payload := range poisons {
		d.tape.events = append(d.tape.events, stream.Event{ID: name, Topic: attribution.Topic,
			At: start, Payload: []byte(payload)})
	}
	good := d.worth(t, "good", "s0", 1)
	for name, spoil := range map[string]func(*stream.Event){
		"without id":      func(e *stream.Event) { e.ID = "" },
		"without time":    func(e *stream.Event) { e.At = time.Time{} },
		"from the future": func(e *stream.Event) { e.At = start.Add(time.Hour) },
		"year 20000": func(e *stream.Event) {
			e.At = time.Date(20000, 1, 1, 0, 0, 0, 0,
				time.UTC)
		},
		"heed:reserved":       func(e *stream.Event) { e.ID = "heed:silence" },
		"an id with a NUL":    func(e *stream.Event) { e.ID = "\x00" },
		"an id without end":   func(e *stream.Event) { e.ID = strings.Repeat("x", 2000) },
		"an id of no charset": func(e *stream.Event) { e.ID = "\xff" },
	} {
		e := good
		e.ID = name
		spoil(&e)
		d.tape.events = append(d.tape.events, e)
	}
	events := d.tape.events
	c := d.consumer(t, attribution.Config{}) // which nothing may wait for
	require.NoError(t, c.Run(ctx))
	n := uint64(len(events))
	assert.Equal(t, attribution.Counts{
		RunnerCounts: stream.RunnerCounts{Received: n, Dead: n},
	}, c.Counts())
	assert.Zero(t, d.mass(t))
	assert.Len(t, d.tape.acked, len(events))
	letters := d.dead.letters(t)
	require.Len(t, letters, len(events))
	for i, letter := range letters {
		assert.NotEmpty(t, letter.Reason)
		assert.Equal(t, 1, letter.Attempts)
		assert.Equal(t, string(events[i].Payload), string(letter.Event.Payload))
		if events[i].ID != "\xff" { // JSON has no such text
			assert.Equal(t, events[i].ID, letter.Event.ID)
		}
	}
	record, err := d.learner.Find(ctx, "s0", "i", start)
	require.NoError(t, err)
	assert.Equal(t, strategy.Pending, record.Stage)
}

// A store that is down is asked again after waits that double, and then the event is dead.
func TestConsumerBacksOff(t *testing.T) {
	for _, test := range []struct {
		attempts int
		waits    []int // in backoffs
	}{
		{1, nil},
		{5, []int{1, 2, 4, 8}},
		{10, []int{1, 2, 4, 8, 16, 32, 64, 100, 100}},
	} {
		t.Run(fmt.Sprint(test.attempts), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDesk(t, strategy.Config{})
				d.choose(t, 1)
				var tried []time.Time
				d.store.before = func(context.Context, store.Batch) error {
					tried = append(tried, time.Now())
					return errFlaky
				}
				d.tape.events = []stream.Event{d.worth(t, "e", "s0", 1)}
				c := d.consumer(t, attribution.Config{Attempts: test.attempts})
				require.NoError(t, c.Run(ctx))
				var waits []int
				for i := range tried[1:] {
					waits = append(waits, int(tried[i+1].Sub(tried[i])/(100*time.Millisecond)))
				}
				assert.Equal(t, test.waits, waits)
				letters := d.dead.letters(t)
				require.Len(t, letters, 1)
				assert.Equal(t, test.attempts, letters[0].Attempts)
				assert.Contains(t, letters[0].Reason, "flaky")
				assert.Equal(t, attribution.Counts{
					RunnerCounts: stream.RunnerCounts{
						Received: 1, Dead: 1, Retries: uint64(test.attempts - 1),
					},
				}, c.Counts())
			})
		})
	}
}

// A store that holds the evidence under another half-life will not change its mind.
func TestConsumerPolicyConflict(t *testing.T) {
	d := newDesk(t, strategy.Config{})
	d.choose(t, 1)
	for id, err := range map[string]error{"policy": &heed.SettingsError{},
		"conflict": heed.ErrConflict} {
		d.dead = &letterbox{}
		d.store.before = func(context.Context, store.Batch) error { return err }
		d.tape.events = []stream.Event{d.worth(t, id, "s0", 1)}
		require.NoError(t, d.consumer(t, attribution.Config{Attempts: 3}).Run(ctx))
		assert.Equal(t, map[string]int{"policy": 1, "conflict": 3}[id], d.dead.letters(t)[0].Attempts,
			id)
	}
}

// A dead letter's event can be published again, and counts once however often it is.
func TestConsumerRedrive(t *testing.T) {
	d := newDesk(t, strategy.Config{})
	d.choose(t, 1)
	source := &streamtest.Stream{}
	down := true
	d.store.before = func(_ context.Context, b store.Batch) error {
		second := func(o evidence.Observation) bool { return strings.HasSuffix(o.ID, "/1") }
		if down && slices.ContainsFunc(b.Observations, second) { // and with it the first
			return errFlaky
		}
		return nil
	}
	two := []attribution.Worth{{Item: "i", Activated: true, Value: 1},
		{Item: "i", Activated: true, Value: 1}}
	e := d.report(t, "e", attribution.Report{Session: "s0", Items: two})
	require.NoError(t, source.Publish(ctx, e))
	c := d.consumer(t, attribution.Config{Stream: source, Attempts: 2})
	running, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- c.Run(running) }()
	dealt := func(n uint64) {
		require.Eventually(t, func() bool {
			return c.Counts().Dead+c.Counts().Applied == n && source.Len() == 0
		}, 5*time.Second, time.Millisecond)
	}
	dealt(1)
	assert.Zero(t, d.mass(t), "the event is one commit")
	down = false
	letters := d.dead.letters(t)
	require.Len(t, letters, 1)
	for i := range 3 {
		require.NoError(t, source.Publish(ctx, letters[0].Event))
		dealt(uint64(i) + 2)
		assert.Equal(t, 1., d.mass(t))
	}
	stop()
	require.NoError(t, <-done)
}

// An event is acknowledged after its dead letter is written, and not if it can't be.
func TestConsumerDeadLetterFirst(t *testing.T) {
	d := newDesk(t, strategy.Config{})
	poison := func(id string) stream.Event {
		return stream.Event{ID: id, At: start,
			Payload: []byte("?")}
	}
	d.tape.events = []stream.Event{poison("1")}
	d.tape.ack = func(context.Context, string) error {
		assert.Equal(t, []string{"1"}, d.dead.ids(), "acknowledged before the dead letter was written")
		return nil
	}
	require.NoError(t, d.consumer(t, attribution.Config{}).Run(ctx))
	assert.Equal(t, []string{"1"}, d.tape.acked)

	tried := 0
	d.dead.publish = func(context.Context, stream.Event) error {
		tried++
		return errFlaky
	}
	d.tape.events = []stream.Event{poison("2"), poison("3")}
	c := d.consumer(t, attribution.Config{Attempts: 3})
	require.ErrorIs(t, c.Run(ctx), errFlaky)
	assert.Equal(t, 3, tried)
	assert.Equal(t, []string{"1"}, d.tape.acked)
	assert.Equal(t, []string{"2"}, d.tape.rejected, "it is given back")
	assert.Equal(t, attribution.Counts{
		RunnerCounts: stream.RunnerCounts{Received: 1, Retries: 2},
	}, c.Counts())
}

// That the run was to end anyway does not hide a dead letter that can't be written.
func TestConsumerReportsFailureWhileEnding(t *testing.T) {
	d := newDesk(t, strategy.Config{})
	running, stop := context.WithCancel(ctx)
	d.tape.events = []stream.Event{{ID: "1", At: start, Payload: []byte("?")}}
	d.dead.publish = func(context.Context, stream.Event) error {
		stop()
		return errFlaky
	}
	require.ErrorIs(t, d.consumer(t, attribution.Config{Attempts: 1}).Run(running), errFlaky)
}

// An event that could not be acknowledged comes again, and counts once.
func TestConsumerAckFails(t *testing.T) {
	d := newDesk(t, strategy.Config{})
	d.choose(t, 1)
	e := d.worth(t, "e", "s0", 1)
	d.tape.events = []stream.Event{e, e}
	tried := 0
	d.tape.ack = func(context.Context, string) error {
		if tried++; tried <= 3 {
			return errFlaky
		}
		return nil
	}
	c := d.consumer(t, attribution.Config{Attempts: 3})
	require.NoError(t, c.Run(ctx))
	assert.Equal(t, attribution.Counts{
		RunnerCounts: stream.RunnerCounts{Received: 2, Applied: 2, Retries: 2, NotAcked: 1},
		Outcomes:     1, Duplicates: 1,
	}, c.Counts())
	assert.Equal(t, 0.5, d.mass(t))
	assert.Equal(t, []string{"e"}, d.tape.acked)
}

// A choice that is made after an event, within what clocks may differ, does not take
// what is delivered again.
func TestConsumerFindsTheSameChoiceAgain(t *testing.T) {
	d := newDesk(t, strategy.Config{Cache: strategy.Cache{TTL: time.Minute}})
	d.choose(t, 1)
	d.clock.Advance(time.Hour)
	e := d.worth(t, "e", "s0", 1)
	for range 3 {
		d.tape.events = []stream.Event{e}
		require.NoError(t, d.consumer(t, attribution.Config{}).Run(ctx))
		d.clock.Advance(2 * time.Minute)
		d.choose(t, 1)
	}
	assert.Equal(t, 0.5, d.mass(t))
}

// A panic of the host's code is an error like any other.
func TestConsumerPanics(t *testing.T) {
	d := newDesk(t, strategy.Config{})
	d.choose(t, 1)
	var panics atomic.Int64
	once := func(what string) func() {
		done := false
		return func() {
			if !done {
				done = true
				panics.Add(1)
				panic(what)
			}
		}
	}
	receive, event, ack, commit, publish := once("receive"), once("event"), once("ack"),
		once("commit"), once("publish")
	d.store.before = func(_ context.Context, b store.Batch) error {
		if b.ID != "" {
			commit()
		}
		return nil
	}
	d.tape.ack = func(context.Context, string) error {
		ack()
		return nil
	}
	d.dead.publish = func(context.Context, stream.Event) error {
		publish()
		return nil
	}
	good := d.worth(t, "good", "s0", 1)
	d.tape.events = []stream.Event{good, good, {ID: "bad", At: start}}
	var w witness
	c := d.consumer(t, attribution.Config{
		Stream: panicking{d.tape, receive, event}, Observer: w.observe,
	})
	require.NoError(t, c.Run(ctx))
	assert.EqualValues(t, 5, panics.Load())
	assert.Equal(t, 0.5, d.mass(t))
	assert.Equal(t, []string{"bad"}, d.dead.ids())

	d.store.before = func(context.Context, store.Batch) error { panic("for ever") }
	d.choose(t, 0)
	d.tape.events = []stream.Event{d.worth(t, "unlucky", "s0", 1)}
	require.NoError(t, d.consumer(t, attribution.Config{Observer: w.observe}).Run(ctx))
	assert.Contains(t, d.dead.letters(t)[1].Reason, "panicked: for ever")
	_, stacks := w.failures()
	assert.Contains(t, stacks, "consumer_test.go")
}

// panicking is a source that may panic in each method.
type panicking struct {
	stream.Source
	receive, event func()
}

type panickingDelivery struct {
	stream.Delivery
	event func()
}

func (s panicking) Receive(ctx context.Context) (stream.Delivery, error) {
	s.receive()
	d, err := s.Source.Receive(ctx)
	return panickingDelivery{d, s.event}, err
}

func (d panickingDelivery) Event() stream.Event {
	d.event()
	return d.Delivery.Event()
}

// Code that ends the worker's goroutine ends the run, with an error and the event unacknowledged.
func TestConsumerWorkerEnds(t *testing.T) {
	d := newDesk(t, strategy.Config{})
	d.choose(t, 1)
	d.store.before = func(context.Context, store.Batch) error {
		runtime.Goexit()
		return nil
	}
	d.tape.events = []stream.Event{d.worth(t, "e", "s0", 1)}
	require.ErrorContains(t, d.consumer(t, attribution.Config{Workers: 3}).Run(ctx),
		"goroutine was ended")
	assert.Empty(t, d.tape.acked)
}

// failings is a source that fails.
type failings struct{ err error }

func (s failings) Receive(context.Context) (stream.Delivery, error) { return nil, s.err }

// A source is asked as often as anything, and then the run ends with its error.
func TestConsumerSourceFails(t *testing.T) {
	d := newDesk(t, strategy.Config{})
	c := d.consumer(t, attribution.Config{Stream: failings{errFlaky}, Attempts: 4})
	require.ErrorIs(t, c.Run(ctx), errFlaky)
	assert.Equal(t, attribution.Counts{RunnerCounts: stream.RunnerCounts{Retries: 3}}, c.Counts())
	require.NoError(t, d.consumer(t, attribution.Config{Stream: failings{stream.ErrClosed}}).Run(ctx))
}

// An attempt that takes too long is given up.
func TestConsumerTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, strategy.Config{Topic: "heed.strategy"})
		d.choose(t, 1)
		hang := func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}
		d.store.before = func(ctx context.Context, _ store.Batch) error { return hang(ctx) }
		d.tape.ack = func(ctx context.Context, _ string) error { return hang(ctx) }
		d.tape.events = []stream.Event{d.worth(t, "e", "s0", 1)}
		c := d.consumer(t, attribution.Config{Attempts: 1})
		began := time.Now()
		require.NoError(t, c.Run(ctx))
		assert.Equal(t, time.Minute, time.Since(began), "the event and its acknowledgement")
		assert.Equal(t, attribution.Counts{
			RunnerCounts: stream.RunnerCounts{Received: 1, Dead: 1, NotAcked: 1},
		}, c.Counts())
	})
}

// A run that is to end finishes the event in hand if it can in time, and else gives it back.
func TestConsumerDrains(t *testing.T) {
	for _, test := range []struct {
		name  string
		takes time.Duration
		err   error
		want  attribution.Counts
	}{
		{"in time", 5 * time.Second, nil, attribution.Counts{
			RunnerCounts: stream.RunnerCounts{Received: 1, Applied: 1},
			Outcomes:     1,
		}},
		{"too late", 20 * time.Second, nil, attribution.Counts{
			RunnerCounts: stream.RunnerCounts{Received: 1},
		}},
		{"fails meanwhile", 5 * time.Second, errFlaky, attribution.Counts{
			RunnerCounts: stream.RunnerCounts{Received: 1},
		}},
	} {
		for _, attempts := range []int{1, 5} {
			if test.err != nil && attempts == 1 {
				continue // it was the last attempt, and the event is dead
			}
			t.Run(fmt.Sprint(test.name, ", attempts ", attempts), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					d := newDesk(t, strategy.Config{})
					d.choose(t, 1)
					running, stop := context.WithCancel(ctx)
					d.store.before = func(ctx context.Context, _ store.Batch) error {
						stop()
						select {
						case <-ctx.Done():
							return ctx.Err()
						case <-time.After(test.takes):
							return test.err
						}
					}
					d.tape.events = []stream.Event{d.worth(t, "1", "s0", 1), d.worth(t, "2", "s0", 1)}
					c := d.consumer(t, attribution.Config{Attempts: attempts})
					began := time.Now()
					require.NoError(t, c.Run(running))
					assert.Equal(t, min(test.takes, 10*time.Second), time.Since(began))
					assert.Equal(t, test.want, c.Counts())
					assert.Len(t, d.tape.acked, int(test.want.Applied))
					assert.Len(t, d.tape.rejected, 1-int(test.want.Applied))
					assert.Empty(t, d.dead.events, "nothing is dead because the process ends")
				})
			})
		}
	}
}

// An event that can't even be given back comes again by itself, and is counted.
func TestConsumerCannotGiveBack(t *testing.T) {
	d := newDesk(t, strategy.Config{})
	d.choose(t, 1)
	running, stop := context.WithCancel(ctx)
	d.store.before = func(context.Context, store.Batch) error {
		stop()
		return errFlaky
	}
	d.tape.reject = func(context.Context, string) error { panic("no") }
	d.tape.events = []stream.Event{d.worth(t, "1", "s0", 1)}
	c := d.consumer(t, attribution.Config{})
	require.NoError(t, c.Run(running))
	assert.Equal(t, attribution.Counts{
		RunnerCounts: stream.RunnerCounts{Received: 1, NotAcked: 1},
	}, c.Counts())
}

// A run whose source has nothing ends as soon as it is told to.
func TestConsumerWaitsForEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, strategy.Config{})
		d.choose(t, 1)
		source := &streamtest.Stream{}
		c := d.consumer(t, attribution.Config{Stream: source, Workers: 4})
		running, stop := context.WithCancel(ctx)
		done := make(chan error, 1)
		go func() { done <- c.Run(running) }()
		synctest.Wait()
		require.NoError(t, source.Publish(ctx, d.worth(t, "e", "s0", 1)))
		synctest.Wait()
		assert.Equal(t, attribution.Counts{
			RunnerCounts: stream.RunnerCounts{Received: 1, Applied: 1},
			Outcomes:     1,
		}, c.Counts())
		began := time.Now()
		stop()
		require.NoError(t, <-done)
		assert.Zero(t, time.Since(began))
	})
}

// TestConsumerWorkers checks that Workers events are handled at a time, and that one worker keeps
// their order.
func TestConsumerWorkers(t *testing.T) {
	for _, workers := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			d := newDesk(t, strategy.Config{})
			d.choose(t, 6)
			var now, most atomic.Int64
			var mu sync.Mutex
			var order []string
			h := attribution.Hook{Outcome: func(_ context.Context, o strategy.Outcome) error {
				most.Store(max(most.Load(), now.Add(1)))
				time.Sleep(time.Second)
				now.Add(-1)
				mu.Lock()
				defer mu.Unlock()
				order = append(order, o.Choice.Session)
				return nil
			}}
			for i := range 6 {
				d.tape.events = append(d.tape.events, d.worth(t, fmt.Sprint("e", i), fmt.Sprint("s", i), 1))
			}
			c := d.consumer(t, attribution.Config{Workers: workers, Hook: h, HookTimeout: time.Minute})
			require.NoError(t, c.Run(ctx))
			assert.EqualValues(t, workers, most.Load())
			assert.Equal(t, uint64(6), c.Counts().Applied)
			if workers == 1 {
				assert.Equal(t, []string{"s0", "s1", "s2", "s3", "s4", "s5"}, order)
			}
		})
	}
}

// Outcomes are those of the router; the default one drops what the learner would.
func TestConsumerRouter(t *testing.T) {
	for _, test := range []struct {
		name     string
		least    float64
		router   attribution.Router
		outcomes uint64
		mass     float64
	}{
		{"default", 0.3, attribution.Router{}, 2, 0.8 + 0.9},
		{"default, only sure ones", 0.85, attribution.Router{}, 1, 0.9},
		{"one's own", 0.3, attribution.Router{ConfidenceBoth: 0.25, ConfidenceAttribution: 0.5,
			ConfidenceDirect: 0.5}, 1, 0.5},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := newDesk(t, strategy.Config{MinConfidence: test.least})
			d.choose(t, 2)
			cfg := attribution.Config{Learner: d.learner, Stream: d.tape, DeadLetters: d.dead,
				Router: test.router}
			d.tape.events = []stream.Event{
				d.worth(t, "1", "s0", 1),
				d.report(t, "2", attribution.Report{
					Session: "s1", Items: []attribution.Worth{{Item: "i", Activated: true, Value: 1}},
					Signals: []attribution.DirectSignal{{Kind: attribution.Positive, Confidence: 1}},
				}),
			}
			c, err := attribution.New(cfg)
			require.NoError(t, err)
			require.NoError(t, c.Run(ctx))
			assert.Equal(t, test.outcomes, c.Counts().Outcomes)
			assert.InDelta(t, test.mass, d.mass(t), 1e-9)
		})
	}
}

// Signals of another session are left out, and records of another session are credited there.
func TestConsumerSignalsOfAnotherSession(t *testing.T) {
	d := newDesk(t, strategy.Config{})
	d.choose(t, 2)
	d.tape.events = []stream.Event{d.report(t, "1", attribution.Report{
		Session: "s0", Source: "somebody",
		Items: []attribution.Worth{{Item: "i"}, {Item: "i", Session: "s1"}},
		Signals: []attribution.DirectSignal{
			{Kind: attribution.Positive, Confidence: 1},
			{Kind: attribution.Negative, Confidence: 1, Session: "s1"},
		},
	})}
	require.NoError(t, d.consumer(t, attribution.Config{}).Run(ctx))
	for session, value := range map[string]float64{"s0": 1, "s1": -1} {
		record, err := d.learner.Find(ctx, session, "i", start)
		require.NoError(t, err)
		require.NotNil(t, record.Result)
		assert.Equal(t, value, record.Result.Value)
		assert.Equal(t, "somebody", record.Result.Source)
		assert.Equal(t, "direct", record.Result.Channel)
	}
}

// TestConsumerTellsItsObserver of dead letters, and of failures that nobody else sees.
func TestConsumerTellsItsObserver(t *testing.T) {
	d := newDesk(t, strategy.Config{})
	d.choose(t, 1)
	d.tape.ack = func(context.Context, string) error { return errFlaky }
	d.tape.events = []stream.Event{d.worth(t, "good", "s0", 1), {ID: "bad", At: start}}
	var w witness
	novel := errors.New("no novelty")
	c := d.consumer(t, attribution.Config{
		Attempts: 1, Observer: w.observe,
		Hook: attribution.Hook{Outcome: func(context.Context, strategy.Outcome) error { return novel }},
	})
	require.NoError(t, c.Run(ctx))
	const component = "attribution/strategy"
	assert.Equal(t, []heed.Notice{
		heed.Failed{Component: component, At: start, What: "acknowledge", Err: errFlaky},
		heed.Failed{Component: component, At: start, What: "hook", Err: novel},
		heed.DeadLettered{Component: component, At: start, ID: "bad",
			Reason: d.dead.letters(t)[0].Reason},
		heed.Failed{Component: component, At: start, What: "acknowledge", Err: errFlaky},
	}, w.told)
}

// An error of the host's store is in the dead letter, and in no notice.
func TestADeadLettersNoticeQuotesNobody(t *testing.T) {
	d := newDesk(t, strategy.Config{})
	d.choose(t, 1)
	d.store.before = func(context.Context, store.Batch) error {
		return errors.New(
			"ann may not write")
	}
	d.tape.events = []stream.Event{d.worth(t, "e", "s0", 1)}
	var w witness
	require.NoError(t, d.consumer(t, attribution.Config{Attempts: 2, Observer: w.observe}).Run(ctx))
	assert.Contains(t, d.dead.letters(t)[0].Reason, "ann may not write")
	assert.Equal(t, []heed.Notice{
		heed.DeadLettered{Component: "attribution/strategy", At: start, ID: "e",
			Reason: "failed in 2 attempts"},
	}, w.told)
}

// A learner that is disabled learns nothing from events either.
func TestConsumerDisabled(t *testing.T) {
	d := newDesk(t, strategy.Config{})
	d.choose(t, 1)
	off, err := strategy.New(ctx, strategy.Config{Store: d.store,
		Arms: []strategy.Arm{{ID: "a"}, {ID: "b"}, {ID: "c"}, {ID: "d"}}, Now: d.clock.Now,
		Disabled: true})
	require.NoError(t, err)
	d.learner = off
	d.tape.events = []stream.Event{d.worth(t, "e", "s0", 1)}
	c := d.consumer(t, attribution.Config{})
	require.NoError(t, c.Run(ctx))
	assert.Equal(t, attribution.Counts{
		RunnerCounts: stream.RunnerCounts{Received: 1, Applied: 1},
	}, c.Counts())
	assert.Zero(t, d.mass(t))
}

// bar is the number of events of the tests that show what the consumer promises.
var bar = long(400, 10_000)

// One event in a hundred can't be right, and one commit in twenty fails, among 400 events and
// 10,000 in the long form. Each event is applied or dead, the evidence is exact, and a replay of
// all events changes nothing.
func TestConsumerDeadOrApplied(t *testing.T) {
	for _, workers := range []int{1, 4} {
		t.Run(fmt.Sprint(workers, " workers"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDesk(t, strategy.Config{})
				d.choose(t, 100)
				var mu sync.Mutex
				rng := rand.New(rand.NewPCG(1, 2))
				flaky := func() error {
					mu.Lock()
					defer mu.Unlock()
					if rng.Float64() < 0.05 {
						return errFlaky
					}
					return nil
				}
				d.store.before = func(context.Context, store.Batch) error { return flaky() }
				var events []stream.Event
				for i := range bar {
					e := d.worth(t, fmt.Sprint("e", i), fmt.Sprint("s", i%100), float64(i%3-1))
					if i%100 == 7 {
						e.Payload = e.Payload[1:]
					}
					events = append(events, e)
				}
				var hooked atomic.Int64
				// An attempt fails with a probability of 0.0975; that any event does so twelve times, with
				// one of 1e-8.
				c := d.consumer(t, attribution.Config{Workers: workers, Attempts: 12,
					Hook: attribution.Hook{Outcome: func(context.Context, strategy.Outcome) error {
						hooked.Add(1)
						return nil
					}}})
				d.tape.events = events
				require.NoError(t, c.Run(ctx))
				counts := c.Counts()
				assert.Equal(t, uint64(bar), counts.Applied+counts.Dead)
				assert.Equal(t, uint64(bar/100), counts.Dead)
				assert.Equal(t, uint64(bar-bar/100), counts.Outcomes)
				assert.EqualValues(t, counts.Outcomes, hooked.Load(),
					"the hook is told of each, though its record failed at first")
				assert.Greater(t, counts.Retries, uint64(bar/40))
				assert.Equal(t, float64(bar-bar/100)/2, d.mass(t))
				assert.Len(t, d.tape.acked, bar)

				before := everything(t, d.store)
				again := d.consumer(t, attribution.Config{Workers: workers, Attempts: 12})
				d.tape.events = events
				require.NoError(t, again.Run(ctx))
				assert.Equal(t, before, everything(t, d.store))
				assert.Zero(t, again.Counts().Outcomes)
				assert.Equal(t, counts.Outcomes, again.Counts().Duplicates)
			})
		})
	}
}

// Each of 400 ids, ten thousand in the long form, is delivered four times, in any order, by
// consumers that come and go, and counts once.
func TestConsumerCountsOnce(t *testing.T) {
	const deliveries = 4
	d := newDesk(t, strategy.Config{})
	d.choose(t, 100)
	var events []stream.Event
	for i := range bar {
		e := d.worth(t, fmt.Sprint("e", i), fmt.Sprint("s", i%100), float64(i%3-1))
		for range deliveries {
			events = append(events, e)
		}
	}
	rand.New(rand.NewPCG(3, 4)).Shuffle(len(events),
		func(i, j int) { events[i], events[j] = events[j], events[i] })
	var outcomes, duplicates uint64
	const restarts = 20
	for range restarts {
		d.tape.events, events = events[:bar*deliveries/restarts], events[bar*deliveries/restarts:]
		learner, err := strategy.New(ctx, d.learner.Config())
		require.NoError(t, err)
		d.learner = learner
		c := d.consumer(t, attribution.Config{Workers: 2})
		require.NoError(t, c.Run(ctx))
		outcomes += c.Counts().Outcomes
		duplicates += c.Counts().Duplicates
	}
	assert.Equal(t, uint64(bar), outcomes)
	assert.Equal(t, uint64((deliveries-1)*bar), duplicates)
	assert.Equal(t, float64(bar)/2, d.mass(t))
}

// Handle panics on no payload. A refused one changes nothing.
func FuzzReport(f *testing.F) {
	for _, payload := range poisons {
		f.Add([]byte(payload))
	}
	f.Add([]byte(`{"session":"s0","attribution_records":[{"item":"i","was_activated":true,"attributed_value":0.5}],"session_ended":true}`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		d := newDesk(t, strategy.Config{})
		d.choose(t, 1)
		c := d.consumer(t, attribution.Config{})
		err := c.Handle(ctx, stream.Event{ID: "e", At: start, Payload: payload})
		if err == nil {
			return
		}
		var fault *heed.InputError
		require.ErrorAs(t, err, &fault)
		assert.Empty(t, everything(t, d.store))
		record, err := d.learner.Find(ctx, "s0", "i", start)
		require.NoError(t, err)
		assert.Equal(t, strategy.Pending, record.Stage)
	})
}

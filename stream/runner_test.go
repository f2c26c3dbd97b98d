package stream_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/stream"
	"github.com/heedhq/heed/stream/streamtest"
)

var errDown = errors.New("it is down, says Ann")

// A lettersAway takes dead letters, and fails while fails is above 0.
type lettersAway struct {
	streamtest.Stream

	fails int
}

func (s *lettersAway) Publish(ctx context.Context, e stream.Event) error {
	if s.fails--; s.fails >= 0 {
		return errDown
	}
	return s.Stream.Publish(ctx, e)
}

// A source whose deliveries are others.
type source struct {
	*streamtest.Stream

	other func(stream.Delivery) stream.Delivery
}

func (s source) Receive(ctx context.Context) (stream.Delivery, error) {
	d, err := s.Stream.Receive(ctx)
	return s.other(d), err
}

// A noAck acknowledges the event, and returns an error all the same.
type noAck struct{ stream.Delivery }

func (d noAck) Ack(ctx context.Context) error { return errors.Join(errDown, d.Delivery.Ack(ctx)) }

// A nameless delivery has an event without an id.
type nameless struct{ stream.Delivery }

func (d nameless) Event() stream.Event {
	e := d.Delivery.Event()
	e.ID = ""
	return e
}

// run has a runner deal with an event, and returns what the observer got.
func run(t *testing.T, r *stream.Runner, e stream.Event) (seen []heed.Notice, _ error) {
	t.Helper()
	events := &streamtest.Stream{}
	require.NoError(t, events.Publish(t.Context(), e))
	events.Close()
	if from, is := r.Stream.(source); is {
		r.Stream = source{events, from.other}
	} else {
		r.Stream = events
	}
	r.Topic, r.Name = "dead", "test"
	r.Observer = func(_ context.Context, n heed.Notice) { seen = append(seen, n) }
	err := r.Run(t.Context())
	return seen, err
}

// letter returns the dead letter in a sink.
func letter(t *testing.T, dead *lettersAway) (stream.Event, stream.DeadLetter) {
	t.Helper()
	d, err := dead.Receive(t.Context())
	require.NoError(t, err)
	var of stream.DeadLetter
	require.NoError(t, json.Unmarshal(d.Event().Payload, &of))
	return d.Event(), of
}

// An event is tried as often as the runner may, with longer and longer waits, before it is dead.
// The observer gets no words of the host's, and a sink that is away is tried as often.
func TestAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dead := &lettersAway{fails: 4}
		var at []time.Duration
		began := time.Now()
		from := source{other: func(d stream.Delivery) stream.Delivery { return nameless{d} }}
		r := &stream.Runner{Stream: from, DeadLetters: dead, Apply: func(context.Context,
			stream.Event) (func(context.Context), error) {
			at = append(at, time.Since(began))
			return nil, errDown
		}}
		seen, err := run(t, r, stream.Event{ID: "e", Topic: "t", Payload: []byte("x")})
		require.NoError(t, err)
		const ms = time.Millisecond
		assert.Equal(t, []time.Duration{0, 100 * ms, 300 * ms, 700 * ms, 1500 * ms}, at)
		e, of := letter(t, dead)
		assert.Regexp(t, "^nameless:[0-9a-f]{64}$", e.ID)
		assert.Equal(t, "dead", e.Topic)
		assert.Equal(t, 5, of.Attempts)
		assert.Equal(t, errDown.Error(), of.Reason)
		counts := r.Counts()
		assert.Equal(t, stream.RunnerCounts{Received: 1, Dead: 1, Retries: 8}, counts)
		require.Len(t, seen, 1)
		assert.Equal(t, "failed in 5 attempts", seen[0].(heed.DeadLettered).Reason)
	})
}

// A fault of the event is final, and the observer gets its words. The letter has the event's id.
func TestFinalFault(t *testing.T) {
	dead, tried := &lettersAway{}, 0
	seen, err := run(t, &stream.Runner{DeadLetters: dead, Apply: func(context.Context,
		stream.Event) (func(context.Context), error) {
		tried++
		return nil, &heed.InputError{Field: "At", Reason: "must be set"}
	}}, stream.Event{ID: "e", Topic: "t"})
	require.NoError(t, err)
	assert.Equal(t, 1, tried)
	e, _ := letter(t, dead)
	assert.Equal(t, "e", e.ID)
	require.Len(t, seen, 1)
	assert.Contains(t, seen[0].(heed.DeadLettered).Reason, "At: must be set")
}

// A dead letter that can't be written ends the runner, and the event is given back.
func TestLetterThatCannotBeWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &stream.Runner{DeadLetters: &lettersAway{fails: 100}, Attempts: 2}
		r.Apply = func(context.Context, stream.Event) (func(context.Context), error) {
			return nil, errDown
		}
		_, err := run(t, r, stream.Event{ID: "e", Topic: "t"})
		require.ErrorIs(t, err, errDown)
		assert.Zero(t, r.Counts().Dead)
		d, err := r.Stream.Receive(t.Context())
		require.NoError(t, err)
		assert.Equal(t, "e", d.Event().ID)
	})
}

// A strict runner ends at the first failure, also of an acknowledgement. Another one counts that.
func TestAcknowledgements(t *testing.T) {
	from := source{other: func(d stream.Delivery) stream.Delivery { return noAck{d} }}
	synctest.Test(t, func(t *testing.T) {
		for _, strict := range []bool{true, false} {
			r := &stream.Runner{Stream: from, DeadLetters: &lettersAway{}, Strict: strict,
				Apply: func(context.Context, stream.Event) (func(context.Context), error) {
					return nil, nil
				}}
			seen, err := run(t, r, stream.Event{ID: "e", Topic: "t"})
			assert.Equal(t, uint64(1), r.Counts().NotAcked)
			require.Len(t, seen, 1)
			assert.Equal(t, "acknowledge", seen[0].(heed.Failed).What)
			if strict {
				require.ErrorIs(t, err, errDown)
			} else {
				require.NoError(t, err)
			}
		}
	})
}

// A noReject can't be given back.
type noReject struct{ stream.Delivery }

func (noReject) Reject(context.Context) error { return errDown }

// What is refused is dead at once, and the observer gets only the words that are for it.
func TestRefusedEvents(t *testing.T) {
	dead := &lettersAway{}
	r := &stream.Runner{DeadLetters: dead, Apply: func(context.Context,
		stream.Event) (func(context.Context), error) {
		err := stream.Refuse(errDown, "its answer is gone")
		assert.ErrorIs(t, err, errDown)
		return nil, err
	}}
	seen, err := run(t, r, stream.Event{ID: "e", Topic: "t"})
	require.NoError(t, err)
	_, of := letter(t, dead)
	assert.Equal(t, stream.DeadLetter{Event: of.Event, Reason: errDown.Error(), Attempts: 1}, of)
	require.Len(t, seen, 1)
	assert.Equal(t, "its answer is gone", seen[0].(heed.DeadLettered).Reason)
}

// An event that can be neither applied nor given back is counted, and the observer learns of it.
func TestEventsThatCannotBeGivenBack(t *testing.T) {
	from := source{other: func(d stream.Delivery) stream.Delivery { return noReject{d} }}
	r := &stream.Runner{Stream: from, DeadLetters: &lettersAway{}, Strict: true,
		Apply: func(context.Context, stream.Event) (func(context.Context), error) {
			return nil, errDown
		}}
	seen, err := run(t, r, stream.Event{ID: "e", Topic: "t"})
	require.ErrorIs(t, err, errDown)
	assert.Equal(t, stream.RunnerCounts{Received: 1, NotAcked: 1}, r.Counts())
	require.Len(t, seen, 1)
	assert.Equal(t, "give back", seen[0].(heed.Failed).What)
}

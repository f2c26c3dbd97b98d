package streamtest_test

import (
	"context"
	"fmt"
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

func TestStreamConforms(t *testing.T) {
	streamtest.Run(t, func() (streamtest.Harness, error) {
		stream := &streamtest.Stream{}
		return streamtest.Harness{Source: stream, Sink: stream, Close: stream.Close}, nil
	})
}

func publish(t testing.TB, s *streamtest.Stream, ids ...string) {
	for _, id := range ids {
		require.NoError(t, s.Publish(context.Background(), stream.Event{ID: id, Topic: "topic"}))
	}
}

// next returns the next delivery, and how long it took to come.
func next(t testing.TB, s *streamtest.Stream) (stream.Delivery, time.Duration) {
	began := time.Now()
	d, err := s.Receive(context.Background())
	require.NoError(t, err)
	return d, time.Since(began)
}

func nextIs(t testing.TB, s *streamtest.Stream, id string, after time.Duration) stream.Delivery {
	t.Helper()
	d, took := next(t, s)
	assert.Equal(t, id, d.Event().ID)
	assert.Equal(t, after, took)
	return d
}

func ack(t testing.TB, d stream.Delivery) { require.NoError(t, d.Ack(context.Background())) }

func reject(t testing.TB, d stream.Delivery) { require.NoError(t, d.Reject(context.Background())) }

// A delivery ends once: what comes after it has no effect on the event.
func TestStreamEndsADeliveryOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &streamtest.Stream{}
		publish(t, s, "1", "2")
		first := nextIs(t, s, "1", 0)
		reject(t, first)
		ack(t, nextIs(t, s, "2", 0)) // a rejected event is behind the others
		second := nextIs(t, s, "1", 0)
		reject(t, first)
		ack(t, first)
		assertNothing(t, s, time.Hour) // it is in the hands of the second
		ack(t, second)
		reject(t, second)
		assert.Zero(t, s.Len())
		publish(t, s, "1") // a new event of the same name
		ack(t, second)     // the new event stays, because this delivery was of the old one
		ack(t, nextIs(t, s, "1", 0))
	})
}

func assertNothing(t testing.TB, s *streamtest.Stream, within time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	_, err := s.Receive(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// A receiver that waits gets what is published or given back in between.
func TestStreamWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &streamtest.Stream{}
		publish(t, s, "1")
		one := nextIs(t, s, "1", 0)
		time.AfterFunc(10*time.Second, func() { publish(t, s, "2") })
		time.AfterFunc(30*time.Second, func() { reject(t, one) })
		ack(t, nextIs(t, s, "2", 10*time.Second))
		ack(t, nextIs(t, s, "1", 20*time.Second))
	})
}

// A refused event changes nothing.
func TestStreamRefuses(t *testing.T) {
	s := &streamtest.Stream{}
	var fault *heed.InputError
	require.ErrorAs(t, s.Publish(context.Background(), stream.Event{}), &fault)
	assert.Equal(t, "ID", fault.Field)
	done, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, s.Publish(done, stream.Event{ID: "1"}), context.Canceled)
	assert.Zero(t, s.Len())
	publish(t, s, "1")
	d, _ := next(t, s)
	require.ErrorIs(t, d.Ack(done), context.Canceled)
	require.ErrorIs(t, d.Reject(done), context.Canceled)
	assert.Equal(t, 1, s.Len())
}

// It takes no more, delivers what it has, and ends when all is acknowledged, for all who wait.
func TestStreamCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &streamtest.Stream{}
		publish(t, s, "1")
		s.Close()
		s.Close()
		require.ErrorIs(t, s.Publish(context.Background(), stream.Event{ID: "2"}), stream.ErrClosed)
		one := nextIs(t, s, "1", 0)
		const waiting = 3
		ended := make(chan error, waiting)
		for range waiting {
			go func() {
				_, err := s.Receive(context.Background())
				ended <- err
			}()
		}
		synctest.Wait()
		assert.Empty(t, ended)
		ack(t, one)
		for range waiting {
			require.ErrorIs(t, <-ended, stream.ErrClosed)
		}
	})
}

// Publishers and receivers in any number, of whom some give back, lose nothing and share all.
func TestStreamConcurrently(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	s := &streamtest.Stream{}
	const publishers, receivers, each = 4, 4, 500
	var publishing, receiving sync.WaitGroup
	for p := range publishers {
		publishing.Go(func() {
			for i := range each {
				publish(t, s, fmt.Sprint(p, "-", i))
			}
		})
	}
	var mu sync.Mutex
	seen, acked := make(map[string]int), make(map[string]int)
	for range receivers {
		receiving.Go(func() {
			for {
				d, err := s.Receive(ctx)
				if err != nil {
					assert.ErrorIs(t, err, stream.ErrClosed)
					return
				}
				id := d.Event().ID
				mu.Lock()
				seen[id]++
				again := seen[id] < 3
				mu.Unlock()
				if again {
					assert.NoError(t, d.Reject(ctx))
					continue
				}
				mu.Lock()
				acked[id]++
				mu.Unlock()
				assert.NoError(t, d.Ack(ctx))
			}
		})
	}
	publishing.Wait()
	s.Close()
	receiving.Wait()
	assert.Len(t, acked, publishers*each)
	for id, n := range acked {
		assert.Equal(t, 1, n, id)
		assert.Equal(t, 3, seen[id], id)
	}
	assert.Zero(t, s.Len())
}

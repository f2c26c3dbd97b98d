package streamtest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/stream"
	"github.com/heedhq/heed/stream/streamtest"
)

// A queue is a simple source that keeps the contract, but for what a fault of it spoils.
type queue struct {
	mu     sync.Mutex
	events []*queued // in the order in which they are delivered
	closed bool
	fault  fault
}

// A fault is what is wrong with a queue. Its zero value is nothing.
type fault struct {
	deliver  func(*stream.Event) // changes what is delivered
	grabs    bool                // whether what is in hand is delivered to others
	lost     string              // the id of an event that is not taken
	ack      func(one *queued, again bool) error
	reject   func(*queued)
	empty    error // what Receive gives instead of waiting
	deaf     bool  // whether it does not look at its context before it delivers
	shared   bool  // whether payloads are not copied
	inHand   bool  // whether what was in hand is lost by a crash
	noEnd    bool  // whether it goes on after the end
	earlyEnd bool  // whether it ends while events are in hand
}

type queued struct {
	event stream.Event
	due   time.Time
	acked bool
	taken int
}

func (q *queue) Publish(_ context.Context, e stream.Event) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.fault.shared {
		e.Payload = slices.Clone(e.Payload)
	}
	if e.ID != q.fault.lost {
		q.events = append(q.events, &queued{event: e})
	}
	return nil
}

func (q *queue) Receive(ctx context.Context) (stream.Delivery, error) {
	for {
		if err := ctx.Err(); err != nil && !q.fault.deaf {
			return nil, err
		}
		if d, err := q.next(); d != nil || err != nil {
			return d, err
		}
		if q.fault.empty != nil {
			return nil, q.fault.empty
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
}

func (q *queue) next() (stream.Delivery, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	waiting := 0
	for _, one := range q.events {
		if one.acked {
			continue
		}
		waiting++
		if now := time.Now(); !one.due.After(now) {
			if one.taken++; !q.fault.grabs {
				one.due = now.Add(time.Minute)
			}
			return q.deliver(one), nil
		}
	}
	if q.closed && !q.fault.noEnd && (waiting == 0 || q.fault.earlyEnd) {
		return nil, stream.ErrClosed
	}
	return nil, nil
}

func (q *queue) deliver(one *queued) stream.Delivery {
	e := one.event
	if !q.fault.shared {
		e.Payload = slices.Clone(e.Payload)
	}
	if q.fault.deliver != nil {
		q.fault.deliver(&e)
	}
	return &delivery{q, one, e}
}

type delivery struct {
	queue *queue
	of    *queued
	event stream.Event
}

func (d *delivery) Event() stream.Event { return d.event }

func (d *delivery) Ack(context.Context) error {
	d.queue.mu.Lock()
	defer d.queue.mu.Unlock()
	again := d.of.acked
	d.of.acked = true
	if d.queue.fault.ack != nil {
		return d.queue.fault.ack(d.of, again)
	}
	return nil
}

func (d *delivery) Reject(context.Context) error {
	d.queue.mu.Lock()
	defer d.queue.mu.Unlock()
	if d.queue.fault.reject != nil {
		d.queue.fault.reject(d.of)
	}
	d.of.due = time.Now()
	return nil
}

// reopen returns the queue as it is after a crash.
func (q *queue) reopen() (stream.Source, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	again := &queue{fault: q.fault}
	for _, one := range q.events {
		if !one.acked && !(q.fault.inHand && one.taken > 0) {
			again.events = append(again.events, &queued{event: one.event})
		}
	}
	return again, nil
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
}

func harness(f fault) streamtest.NewHarness {
	return func() (streamtest.Harness, error) {
		q := &queue{fault: f}
		return streamtest.Harness{Source: q, Sink: q, Reopen: q.reopen, Close: q.close}, nil
	}
}

// forget takes an acknowledgement back.
func forget(one *queued, _ bool) error {
	// so that time goes on in the bubble
	one.acked, one.due = false, time.Now().Add(20*time.Millisecond)
	return nil
}

// TestSuiteBites runs the suite against sources that each break one rule, and expects it to say so.
func TestSuiteBites(t *testing.T) {
	for _, test := range []struct {
		name     string
		fault    fault
		caughtBy string
	}{
		{"topics are lost", fault{deliver: func(e *stream.Event) { e.Topic = "" }},
			"what is published is delivered as it was"},
		{"payloads are text", fault{deliver: func(e *stream.Event) {
			e.Payload = []byte(strings.ToValidUTF8(string(e.Payload), "?"))
		}}, "what is published is delivered as it was"},
		{"times are whole seconds", fault{deliver: func(
			e *stream.Event) {
			e.At = e.At.Truncate(time.Second)
		}},
			"what is published is delivered as it was"},
		{"acknowledgements are lost", fault{ack: forget},
			"what is acknowledged, once or twice, is not delivered again"},
		{"the second acknowledgement fails", fault{ack: func(_ *queued, again bool) error {
			if again {
				return errors.New("it is gone")
			}
			return nil
		}}, "what is acknowledged, once or twice, is not delivered again"},
		{"what is rejected is gone", fault{reject: func(one *queued) { one.acked = true }},
			"what is rejected is delivered again"},
		{"what is rejected thrice is gone", fault{reject: func(one *queued) {
			one.acked = one.taken == 3
		}}, "what is rejected is delivered again"},
		{"nothing is held back", fault{grabs: true}, "what is in hand is held back from others"},
		{"one of many is lost", fault{lost: "50"}, "receivers share the work"},
		{"one of many comes twice", fault{ack: func(one *queued, _ bool) error {
			if one.event.ID == "50" && one.taken == 1 {
				one.acked, one.due = false, time.Time{}
			}
			return nil
		}}, "receivers share the work"},
		{"it does not wait", fault{empty: stream.ErrClosed}, "a receiver waits for what comes"},
		{"it says that the time is over when it is not", fault{empty: context.DeadlineExceeded},
			"a receiver waits for what comes"},
		{"it looks at no context", fault{deaf: true}, "a context that is done ends the wait"},
		{"payloads are shared", fault{shared: true}, "what is published is delivered as it was"},
		{"a crash loses what is in hand", fault{inHand: true},
			"what was in hand is delivered again after a crash"},
		{"it ends with something in hand", fault{earlyEnd: true},
			"the end comes after all is acknowledged"},
		{"it has no end", fault{noEnd: true}, "the end comes after all is acknowledged"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				err := streamtest.Check(harness(test.fault))
				require.Error(t, err)
				caught := false
				for line := range strings.Lines(err.Error()) {
					caught = caught || strings.HasPrefix(line, test.caughtBy)
				}
				assert.True(t, caught, "the fault should be caught by %q, but was by:\n%s", test.caughtBy,
					err)
			})
		})
	}
}

// TestGoodSourcePasses is the other half: what is not broken is not called so.
func TestGoodSourcePasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { require.NoError(t, streamtest.Check(harness(fault{}))) })
	streamtest.Run(t, harness(fault{}))
}

// A source that can't be made is said to be so by every rule.
func TestHarnessThatFails(t *testing.T) {
	err := streamtest.Check(func() (streamtest.Harness, error) {
		return streamtest.Harness{},
			errors.New("no broker")
	})
	require.ErrorContains(t, err, "no broker")
}

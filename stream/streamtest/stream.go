package streamtest

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/stream"
)

// Stream is a [stream.Source] and a [stream.Sink] in memory, for tests of what reads and publishes
// events. It delivers events in the order in which they came, and rejected ones behind the others.
// The zero value is ready to use. It must not be copied after first use. It is safe for concurrent
// use.
type Stream struct {
	mu     sync.Mutex
	held   []*held       // all that is not acknowledged
	wake   chan struct{} // closed when a Receive that waits is to look again
	closed bool
}

// A held event is in the hand of one receiver, or waits.
type held struct {
	event stream.Event
	hand  *delivery // nil: it waits
}

var (
	_ stream.Source = (*Stream)(nil)
	_ stream.Sink   = (*Stream)(nil)
)

// Publish implements [stream.Sink]. An event whose id the stream holds already is left out.
func (s *Stream) Publish(ctx context.Context, e stream.Event) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case e.ID == "":
		fault := &heed.InputError{Field: "ID", Reason: "must not be empty"}
		return fmt.Errorf("streamtest: publish: %w", fault)
	case s.closed:
		return fmt.Errorf("streamtest: publish: %w", stream.ErrClosed)
	case slices.ContainsFunc(s.held, func(h *held) bool { return h.event.ID == e.ID }):
		return nil
	}
	e.Payload = slices.Clone(e.Payload)
	s.held = append(s.held, &held{event: e})
	s.notify()
	return nil
}

func (s *Stream) notify() {
	if s.wake != nil {
		close(s.wake)
		s.wake = nil
	}
}

// Close makes the stream take no more events. Those that it holds are still delivered; then Receive
// returns [stream.ErrClosed].
func (s *Stream) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.notify()
}

// Len returns how many events are not acknowledged, those in hand among them.
func (s *Stream) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.held)
}

// Receive implements [stream.Source].
func (s *Stream) Receive(ctx context.Context) (stream.Delivery, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		d, wake, err := s.next()
		if d != nil || err != nil {
			return d, err
		}
		select {
		case <-ctx.Done():
		case <-wake:
		}
	}
}

// next returns a delivery, or what is closed when there may be one.
func (s *Stream) next() (d stream.Delivery, wake <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.held) == 0 && s.closed {
		return nil, nil, stream.ErrClosed
	}
	for _, h := range s.held {
		if h.hand == nil {
			event := h.event
			event.Payload = slices.Clone(event.Payload)
			h.hand = &delivery{s, h, event}
			return h.hand, nil, nil
		}
	}
	if s.wake == nil {
		s.wake = make(chan struct{})
	}
	return nil, s.wake, nil
}

// A delivery is an event of a stream in hand.
type delivery struct {
	stream *Stream
	of     *held
	event  stream.Event
}

// Event implements [stream.Delivery].
func (d *delivery) Event() stream.Event { return d.event }

// Ack implements [stream.Delivery].
func (d *delivery) Ack(ctx context.Context) error { return d.end(ctx) }

// Reject implements [stream.Delivery].
func (d *delivery) Reject(ctx context.Context) error { return d.end(ctx, &held{event: d.of.event}) }

// end takes the event from the stream, unless this delivery has ended before, and adds another one.
func (d *delivery) end(ctx context.Context, again ...*held) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	d.stream.mu.Lock()
	defer d.stream.mu.Unlock()
	if i := slices.Index(d.stream.held, d.of); i >= 0 {
		d.stream.held = append(slices.Delete(d.stream.held, i, i+1), again...)
		d.stream.notify()
	}
	return nil
}

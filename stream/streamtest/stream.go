package streamtest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/stream"
)

// Lease is how long a [Stream] holds a delivery back before it delivers the event again.
const Lease = time.Minute

// Stream is a [stream.Source] and a [stream.Sink] in memory, for tests of what reads and publishes
// events. It delivers events in the order in which they came, and again after their [Lease]. The
// zero value is ready to use. It must not be copied after first use. It is safe for concurrent use.
type Stream struct {
	mu     sync.Mutex
	held   []*held       // all that is not acknowledged
	wake   chan struct{} // closed when a Receive that waits is to look again
	closed bool
}

// A held event is delivered when it is due. Turn counts its deliveries and rejections, because only
// the last delivery can be rejected, and once.
type held struct {
	event stream.Event
	due   time.Time
	turn  int
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
	due := time.Now() //nolint:forbidigo // tests that wait for it run in a bubble
	s.held = append(s.held, &held{event: e, due: due})
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

// Receive implements [stream.Source]. It waits by the wall clock.
func (s *Stream) Receive(ctx context.Context) (stream.Delivery, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		d, wait, wake, err := s.next()
		if d != nil || err != nil {
			return d, err
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// next returns a delivery, or how long to wait for one.
func (s *Stream) next() (d stream.Delivery, wait time.Duration, wake <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.held) == 0 && s.closed {
		return nil, 0, nil, stream.ErrClosed
	}
	now := time.Now() //nolint:forbidigo // as in Publish
	wait = Lease
	if len(s.held) > 0 {
		first := slices.MinFunc(s.held, func(a, b *held) int { return a.due.Compare(b.due) })
		if wait = first.due.Sub(now); wait <= 0 {
			first.due = now.Add(Lease)
			first.turn++
			event := first.event
			event.Payload = slices.Clone(event.Payload)
			return &delivery{s, first, first.turn, event}, 0, nil, nil
		}
	}
	if s.wake == nil {
		s.wake = make(chan struct{})
	}
	return nil, wait, s.wake, nil
}

// A delivery is an event of a stream in hand.
type delivery struct {
	stream *Stream
	of     *held
	turn   int
	event  stream.Event
}

// Event implements [stream.Delivery].
func (d *delivery) Event() stream.Event { return d.event }

// Ack implements [stream.Delivery].
func (d *delivery) Ack(ctx context.Context) error {
	return d.end(ctx, func(s *Stream, i int) { s.held = slices.Delete(s.held, i, i+1) })
}

// Reject implements [stream.Delivery].
func (d *delivery) Reject(ctx context.Context) error {
	return d.end(ctx, func(*Stream, int) {
		if d.of.turn == d.turn { // else it was rejected, or another receiver has it
			d.of.turn++
			d.of.due = time.Now() //nolint:forbidigo // as in Publish
		}
	})
}

// end calls a function with the place of the event, if the stream still holds it.
func (d *delivery) end(ctx context.Context, do func(s *Stream, i int)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	d.stream.mu.Lock()
	defer d.stream.mu.Unlock()
	if i := slices.Index(d.stream.held, d.of); i >= 0 {
		do(d.stream, i)
		d.stream.notify()
	}
	return nil
}

package memstore

import (
	"cmp"
	"container/heap"
	"container/list"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/faults"
	"github.com/heedhq/heed/stream"
)

// StreamConfig bounds a [Stream]. The zero value means the defaults.
type StreamConfig struct {
	// Lease is how long a delivery is held back from others before the event is delivered again. 0 means a minute.
	Lease time.Duration
	// Max is how many events the stream holds that are not acknowledged; one more is refused with [evidence.ErrFull]. 0
	// means 100,000.
	Max int
}

func (c StreamConfig) withDefaults() StreamConfig {
	c.Lease = cmp.Or(c.Lease, time.Minute)
	c.Max = cmp.Or(c.Max, 100_000)
	return c
}

// Stream takes events and delivers them within the process, in the order in which they came: both ends of what a broker
// does elsewhere. The zero value is ready to use, with the defaults of [StreamConfig]; it must not be copied after first
// use. It is safe for concurrent use.
type Stream struct {
	cfg     StreamConfig
	started sync.Once

	mu     sync.Mutex
	held   map[string]*streamed // all that is not acknowledged, by id
	ready  list.List            // of *streamed, to be delivered next
	later  laterHeap            // those in hand, and those that wait for a delay to be over
	wake   chan struct{}        // closed, and made anew, when a waiting Receive is to look again
	closed bool
}

type streamed struct {
	event stream.Event
	due   time.Time // when it is delivered again
	index int       // in the heap; -1 while it is not
	turn  int       // counts its deliveries and rejections: only the last delivery can be rejected, and once
}

var (
	_ stream.Source = (*Stream)(nil)
	_ stream.Sink   = (*Stream)(nil)
)

// NewStream returns an empty stream.
func NewStream(cfg StreamConfig) (*Stream, error) {
	full := cfg.withDefaults()
	var found faults.List
	found.Check(full.Lease > 0, "Lease", full.Lease, "must not be negative")
	found.Check(full.Max > 0, "Max", full.Max, "must not be negative")
	if err := found.Err(); err != nil {
		return nil, fmt.Errorf("memstore: %w", err)
	}
	return &Stream{cfg: cfg}, nil
}

func (s *Stream) start() {
	s.started.Do(func() {
		s.cfg = s.cfg.withDefaults()
		s.held = make(map[string]*streamed)
		s.wake = make(chan struct{})
	})
}

// Publish implements [stream.Sink]. An event whose id the stream holds already is left out.
func (s *Stream) Publish(ctx context.Context, e stream.Event) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.start()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case e.ID == "":
		return fmt.Errorf("memstore: publish: %w", &heed.InputError{Field: "ID", Reason: "must not be empty"})
	case s.closed:
		return fmt.Errorf("memstore: publish: %w", stream.ErrClosed)
	case s.held[e.ID] != nil:
		return nil
	case len(s.held) >= s.cfg.Max:
		return fmt.Errorf("memstore: publish: %w", evidence.ErrFull)
	}
	e.Payload = slices.Clone(e.Payload)
	s.hold(e)
	s.notify()
	return nil
}

// hold takes an event, to be delivered after those that are ready.
func (s *Stream) hold(e stream.Event) {
	one := &streamed{event: e, index: -1}
	s.held[e.ID] = one
	s.ready.PushBack(one)
}

// notify wakes whoever waits.
func (s *Stream) notify() {
	close(s.wake)
	s.wake = make(chan struct{})
}

// Close has the stream take no more events. Those that it holds are still delivered; then Receive returns
// [stream.ErrClosed].
func (s *Stream) Close() {
	s.start()
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
	s.start()
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		one, wait, wake, err := s.next()
		if one != nil || err != nil {
			return one, err
		}
		if err := sleep(ctx, wait, wake); err != nil {
			return nil, err
		}
	}
}

// sleep waits for as long, where that is positive, or until it is woken or the context is done.
func sleep(ctx context.Context, wait time.Duration, wake <-chan struct{}) error {
	var over <-chan time.Time
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-wake:
	case <-over:
	}
	return nil
}

// next returns a delivery, or how long to wait for one: 0 where only news can bring one.
func (s *Stream) next() (d stream.Delivery, wait time.Duration, wake <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now() //nolint:forbidigo // leases are for consumers that hang in real time; tests have a bubble of their own
	for len(s.later) > 0 && !s.later[0].due.After(now) {
		s.ready.PushBack(heap.Pop(&s.later))
	}
	for front := s.ready.Front(); front != nil; front = s.ready.Front() {
		one := s.ready.Remove(front).(*streamed)
		if s.held[one.event.ID] != one {
			continue // it was acknowledged meanwhile, by whoever had it before
		}
		one.due = now.Add(s.cfg.Lease)
		one.turn++
		heap.Push(&s.later, one)
		event := one.event
		event.Payload = slices.Clone(event.Payload)
		return &delivery{s, one, one.turn, event}, 0, nil, nil
	}
	switch {
	case s.closed && len(s.held) == 0:
		return nil, 0, nil, stream.ErrClosed
	case len(s.later) > 0:
		return nil, s.later[0].due.Sub(now), s.wake, nil
	}
	return nil, 0, s.wake, nil
}

// delivery is an event of a stream in hand.
type delivery struct {
	stream *Stream
	of     *streamed
	turn   int
	event  stream.Event
}

// Event implements [stream.Delivery].
func (d *delivery) Event() stream.Event { return d.event }

// Ack implements [stream.Delivery].
func (d *delivery) Ack(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s := d.stream
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[d.event.ID] != d.of {
		return nil
	}
	delete(s.held, d.event.ID)
	if d.of.index >= 0 {
		heap.Remove(&s.later, d.of.index)
	}
	if s.closed {
		s.notify()
	}
	return nil
}

// Reject implements [stream.Delivery].
func (d *delivery) Reject(ctx context.Context, delay time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s := d.stream
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[d.event.ID] != d.of || d.of.index < 0 || d.of.turn != d.turn {
		return nil // it is acknowledged, to be delivered next already, or in the hands of another
	}
	d.of.turn++
	d.of.due = time.Now().Add(delay) //nolint:forbidigo // as in next
	heap.Fix(&s.later, d.of.index)
	s.notify()
	return nil
}

// laterHeap has the event first that is due first.
type laterHeap []*streamed

func (h laterHeap) Len() int           { return len(h) }
func (h laterHeap) Less(i, j int) bool { return h[i].due.Before(h[j].due) }
func (h laterHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements [heap.Interface].
func (h *laterHeap) Push(x any) {
	one := x.(*streamed)
	one.index = len(*h)
	*h = append(*h, one)
}

// Pop implements [heap.Interface].
func (h *laterHeap) Pop() any {
	last := len(*h) - 1
	one := (*h)[last]
	one.index = -1
	(*h)[last] = nil
	*h = (*h)[:last]
	return one
}

// Package stream is the seam to where events come from and go to: a broker, a queue, a table.
//
// A [Source] delivers events, a [Sink] takes them. A broker is adapted once, and then serves every
// package that reads or publishes. Package streamtest has the suite that judges an implementation,
// and a stream in memory for tests.
//
// To publish a change, a package puts an [Event] into the outbox of its store, in the same commit
// as the change: see [Outbox]. [Relay] publishes what waits there. To stream an answer in pieces,
// see Event.OnChunk of package loop.
package stream

import (
	"context"
	"errors"
	"time"
)

// An Event is a message. It is a plain value.
type Event struct {
	ID      string    `json:"id"`    // counts once
	Topic   string    `json:"topic"` // never empty
	At      time.Time `json:"at"`    // when it happened
	Payload []byte    `json:"payload,omitempty"`
}

// ErrClosed reports that a [Source] has no more events to deliver and never will.
var ErrClosed = errors.New("closed")

// A Source delivers events, each at least once. An implementation must be safe for concurrent use
// by multiple goroutines.
type Source interface {
	// Receive waits for the next event. A delivered event is held back from others until it is
	// acknowledged or rejected, or until its lease ends, which is the source's to choose. Receive
	// returns the context's error when the context ends first, and [ErrClosed] if no more events will
	// come.
	Receive(ctx context.Context) (Delivery, error)
}

// A Delivery is an event in hand.
type Delivery interface {
	// Event returns the event.
	Event() Event
	// Ack reports that the event was handled and must not come again. A second Ack has no effect.
	Ack(ctx context.Context) error
	// Reject gives the event back, to be delivered again.
	Reject(ctx context.Context) error
}

// A Sink takes events. An implementation must be safe for concurrent use by multiple goroutines.
type Sink interface {
	// Publish returns nil when the event will not be lost. The same event may be published more than
	// once, under one id.
	Publish(ctx context.Context, e Event) error
}

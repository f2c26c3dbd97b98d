package strategy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/heedhq/heed/evidence"
)

// ErrClosed says that a [Source] has nothing more to deliver, and will not have.
var ErrClosed = errors.New("closed")

// A Source delivers events, each at least once: a topic of a broker, a table, [memstore.Stream]. Package consumertest has
// the suite that says whether an implementation keeps this contract. It must be safe for concurrent use by multiple
// goroutines.
//
// [memstore.Stream]: https://pkg.go.dev/github.com/heedhq/heed/memstore#Stream
type Source interface {
	// Receive waits for the next event. One that is delivered is held back from others until it is acknowledged, rejected,
	// or given up after a time that is the source's. When the context is done first, it returns its error; when there is
	// nothing more to come, [ErrClosed].
	Receive(ctx context.Context) (Delivery, error)
}

// A Delivery is an event in hand.
type Delivery interface {
	// Event is what was delivered.
	Event() evidence.Event
	// Ack says that the event is dealt with, and not to be delivered again. To acknowledge again changes nothing.
	Ack(ctx context.Context) error
	// Reject gives the event back, to be delivered again when the delay is over.
	Reject(ctx context.Context, delay time.Duration) error
}

// A Sink takes events. It must be safe for concurrent use by multiple goroutines.
type Sink interface {
	// Publish returns when the event will not be lost. The same event may be published more than once, under one id.
	Publish(ctx context.Context, e evidence.Event) error
}

// Relay publishes what a store has in its outbox, in order, marks it as sent, and returns how much it was. Where it fails
// in between, some may be published again. Several relays over one store may publish twice, and lose nothing.
func Relay(ctx context.Context, store evidence.Store, sink Sink) (sent int, err error) {
	var ids []string
	mark := func() error {
		if len(ids) == 0 {
			return nil
		}
		_, err := store.Commit(ctx, evidence.Batch{Sent: ids})
		if err == nil {
			sent += len(ids)
		}
		ids = nil
		return err
	}
	for e, err := range store.Outbox(ctx) {
		if err == nil {
			err = sink.Publish(ctx, e)
		}
		if err == nil {
			if ids = append(ids, e.ID); len(ids) == relayBatch {
				err = mark()
			}
		}
		if err != nil {
			return sent, fmt.Errorf("strategy: relay: %w", errors.Join(err, mark()))
		}
	}
	if err := mark(); err != nil {
		return sent, fmt.Errorf("strategy: relay: %w", err)
	}
	return sent, nil
}

// relayBatch is after how many published events they are marked as sent.
const relayBatch = 100

// Package watermill is heed's streams on Watermill, and so on each broker that Watermill has a
// Pub/Sub for, such as Kafka.
//
//	source, err := watermill.NewSource(ctx,
//		watermill.SourceConfig{Subscriber: subscriber, Topic: attribution.Topic})
//	sink, err := watermill.NewSink(publisher)
//
// The Pub/Subs are the host's. An event that they lose after a crash is lost here too.
package watermill

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/adapter/internal/broker"
	"github.com/heedhq/heed/stream"
)

var (
	_ stream.Source = (*Source)(nil)
	_ stream.Sink   = (*Sink)(nil)
)

// metaAt is in the metadata of a message. It is the time of the event by RFC 3339.
const metaAt = "heed-at"

// A Sink publishes events to the topics that they have. It is safe for concurrent use by multiple
// goroutines.
type Sink struct{ publisher message.Publisher }

// NewSink returns a sink, or a [*heed.ConfigError].
func NewSink(publisher message.Publisher) (*Sink, error) {
	if publisher == nil {
		return nil, &heed.ConfigError{Field: "Publisher", Reason: "must be set"}
	}
	return &Sink{publisher}, nil
}

// Publish implements [stream.Sink]. The id of the event is the UUID of the message. An event
// without a topic, and a time that RFC 3339 has no text for, are a [*heed.InputError]. An event is
// safe when Publish returns if the publisher waits for its broker.
func (s *Sink) Publish(ctx context.Context, e stream.Event) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	at, err := broker.TimeText(&e)
	if err != nil {
		return err
	}
	m := message.NewMessageWithContext(ctx, e.ID, slices.Clone(e.Payload))
	m.Metadata.Set(metaAt, at)
	return broker.Wrap("watermill: publish", s.publisher.Publish(e.Topic, m))
}

// SourceConfig configures a [Source]. Subscriber and Topic must be set.
type SourceConfig struct {
	Subscriber message.Subscriber
	Topic      string
}

// A Source reads the events of a topic. It is safe for concurrent use by multiple goroutines.
type Source struct {
	topic    string
	messages <-chan *message.Message
}

// NewSource subscribes to the topic until the context ends, and returns a source. It returns all
// faults of the configuration, joined: each is a [*heed.ConfigError].
func NewSource(ctx context.Context, cfg SourceConfig) (*Source, error) {
	var found broker.Faults
	found.Check(cfg.Subscriber != nil, "Subscriber", nil, "must be set")
	found.Check(cfg.Topic != "", "Topic", cfg.Topic, "must be set")
	if err := found.Err(); err != nil {
		return nil, fmt.Errorf("watermill: %w", err)
	}
	messages, err := cfg.Subscriber.Subscribe(ctx, cfg.Topic)
	if err != nil {
		return nil, fmt.Errorf("watermill: subscribe to %q: %w", cfg.Topic, err)
	}
	return &Source{cfg.Topic, messages}, nil
}

// Receive implements [stream.Source]. It returns [stream.ErrClosed] when the subscriber is closed
// or the context of [NewSource] ended. The lease is the broker's.
func (s *Source) Receive(ctx context.Context) (stream.Delivery, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case m, ok := <-s.messages:
		if !ok {
			return nil, stream.ErrClosed
		}
		return &delivery{message: m, topic: s.topic}, nil
	}
}

type delivery struct {
	message *message.Message
	topic   string
}

// Event returns the event. Its time is zero if the metadata contains no time, for example in
// messages of other publishers.
func (d *delivery) Event() stream.Event {
	return stream.Event{
		ID: d.message.UUID, Topic: d.topic, Payload: slices.Clone(d.message.Payload),
		At: broker.ParseTime(d.message.Metadata.Get(metaAt), time.Time{}),
	}
}

// errRejected reports that an event was given back before.
var errRejected = errors.New("watermill: the event has been rejected")

func (d *delivery) Ack(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !d.message.Ack() {
		return errRejected
	}
	return nil
}

func (d *delivery) Reject(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	d.message.Nack() // which has no effect after an Ack
	return nil
}

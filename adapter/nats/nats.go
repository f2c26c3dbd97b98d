// Package nats is heed's streams on NATS JetStream.
//
//	source, err := nats.NewSource(ctx, nats.SourceConfig{
//		JetStream: js, Stream: "HEED", Consumer: "learner", Subject: attribution.Topic,
//	})
//	sink, err := nats.NewSink(js)
//
// The JetStream stream is the host's, with its subjects, its storage and its limits. A connection
// with natsgo.MaxReconnects(-1) survives any outage of the server.
package nats

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/adapter/internal/broker"
	"github.com/heedhq/heed/stream"
)

var (
	_ stream.Source = (*Source)(nil)
	_ stream.Sink   = (*Sink)(nil)
)

// The headers of a message. An id is escaped like in a URL, because a header can't hold each text.
const (
	headerID = "Heed-Id"
	headerAt = "Heed-At" // RFC 3339
)

// A Sink publishes events. The topic of an event is the subject, so a stream of JetStream must have
// it. It is safe for concurrent use by multiple goroutines.
type Sink struct{ js jetstream.JetStream }

// NewSink returns a sink, or a [*heed.ConfigError].
func NewSink(js jetstream.JetStream) (*Sink, error) {
	if js == nil {
		return nil, &heed.ConfigError{Field: "JetStream", Reason: "must be set"}
	}
	return &Sink{js}, nil
}

// Publish implements [stream.Sink]. It returns nil when the server confirmed that it has the event.
// A topic that can't be a subject, and a time that RFC 3339 has no text for, are a
// [*heed.InputError].
func (s *Sink) Publish(ctx context.Context, e stream.Event) error {
	if !isSubject(e.Topic) {
		return &heed.InputError{Field: "Topic", Reason: "must be a subject of NATS, without wildcards"}
	}
	at, err := broker.TimeText(&e)
	if err != nil {
		return err
	}
	// Without Nats-Msg-Id: the server would drop a dead letter that is published again within its
	// window of duplicates.
	header := natsgo.Header{headerID: {url.QueryEscape(e.ID)}, headerAt: {at}}
	m := &natsgo.Msg{Subject: e.Topic, Data: e.Payload, Header: header}
	_, err = s.js.PublishMsg(ctx, m)
	return broker.Wrap("nats: publish", err)
}

// isSubject reports whether a text is a subject that one can publish to.
func isSubject(topic string) bool {
	return topic != "" && !strings.ContainsAny(topic, " \t\r\n\x00*>") &&
		!strings.Contains("."+topic+".", "..")
}

// SourceConfig configures a [Source]. JetStream, Stream and Consumer must be set.
type SourceConfig struct {
	JetStream jetstream.JetStream
	Stream    string // the name of the stream in JetStream, which must be there
	// Consumer is the name of the durable consumer. It is made where it is not there. Sources with
	// one name share the work, and each name gets all events.
	Consumer string
	Subject  string // which subjects of the stream are read, with wildcards. "" means all
	// Lease is how long a delivery is held back from others before the event is delivered again. 0
	// means a minute. Raise it if an event takes longer.
	Lease time.Duration
}

// A Source reads the events of a stream. It is safe for concurrent use by multiple goroutines.
//
// A message that no [Sink] has published is an event too. Its id is its Nats-Msg-Id, or the names
// of the stream and its place there.
type Source struct {
	cfg      SourceConfig
	consumer jetstream.Consumer
}

// NewSource makes the durable consumer, or sets up the one that is there, and returns a source. It
// returns all faults of the configuration, joined: each is a [*heed.ConfigError].
func NewSource(ctx context.Context, cfg SourceConfig) (*Source, error) {
	var found broker.Faults
	found.Check(cfg.JetStream != nil, "JetStream", nil, "must be set")
	found.Check(cfg.Stream != "", "Stream", cfg.Stream, "must be set")
	found.Check(cfg.Consumer != "", "Consumer", cfg.Consumer, "must be set")
	found.Check(cfg.Lease >= 0, "Lease", cfg.Lease, "must not be negative")
	if err := found.Err(); err != nil {
		return nil, fmt.Errorf("nats: %w", err)
	}
	consumer, err := cfg.JetStream.CreateOrUpdateConsumer(ctx, cfg.Stream, jetstream.ConsumerConfig{
		Durable: cfg.Consumer, FilterSubject: cfg.Subject, AckPolicy: jetstream.AckExplicitPolicy,
		AckWait:    cmp.Or(cfg.Lease, time.Minute),
		MaxDeliver: -1, MaxAckPending: -1, // an event that takes long does not stop others
	})
	if err != nil {
		return nil, fmt.Errorf("nats: consumer %q of stream %q: %w", cfg.Consumer, cfg.Stream, err)
	}
	return &Source{cfg, consumer}, nil
}

// pause is the wait before the next attempt after a failure.
const pause = 200 * time.Millisecond

// Receive implements [stream.Source]. While the server is away it waits for it. It returns an error
// when the connection is closed, or the stream or its consumer was deleted. It never returns
// [stream.ErrClosed], because others may publish at any time.
func (s *Source) Receive(ctx context.Context) (stream.Delivery, error) {
	return broker.Poll(ctx, pause, s.fetch, s.gone)
}

// gone returns why the next attempt would fail as well, if it would.
func (s *Source) gone(ctx context.Context, _ error) error {
	if s.cfg.JetStream.Conn().IsClosed() {
		return fmt.Errorf("nats: receive: %w", natsgo.ErrConnectionClosed)
	}
	_, err := s.cfg.JetStream.Consumer(ctx, s.cfg.Stream, s.cfg.Consumer)
	if errors.Is(err, jetstream.ErrConsumerNotFound) || errors.Is(err, jetstream.ErrStreamNotFound) {
		return fmt.Errorf("nats: consumer %q of stream %q: %w", s.cfg.Consumer, s.cfg.Stream, err)
	}
	return nil
}

// fetch returns a message, or nil if no message comes for a while.
func (s *Source) fetch(ctx context.Context) (stream.Delivery, error) {
	// Without a deadline, which nats.go would turn into its own error.
	waiting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	batch, err := s.consumer.Fetch(1, jetstream.FetchContext(waiting),
		jetstream.FetchHeartbeat(time.Second))
	if err != nil {
		return nil, err
	}
	if message, ok := <-batch.Messages(); ok {
		return &delivery{message, eventOf(message)}, nil
	}
	return nil, batch.Error()
}

// eventOf returns the event in a message. A header of another publisher that can't be read counts
// as missing.
func eventOf(m jetstream.Msg) stream.Event {
	e := stream.Event{Topic: m.Subject(), Payload: m.Data()}
	meta, metaErr := m.Metadata()
	if metaErr == nil {
		e.At = meta.Timestamp
	}
	e.At = broker.ParseTime(m.Headers().Get(headerAt), e.At)
	if _, ours := m.Headers()[headerID]; ours {
		if id, err := url.QueryUnescape(m.Headers().Get(headerID)); err == nil {
			e.ID = id
			return e
		}
	}
	e.ID = m.Headers().Get(natsgo.MsgIdHdr)
	if e.ID == "" && metaErr == nil {
		e.ID = fmt.Sprintf("%s/%d", meta.Stream, meta.Sequence.Stream)
	}
	return e
}

type delivery struct {
	message jetstream.Msg
	event   stream.Event
}

func (d *delivery) Event() stream.Event { return d.event }

// confirmed is how long Ack waits for the server. A confirmation that a killed server owes never
// comes.
const confirmed = time.Second

// Ack waits until the server confirmed it.
func (d *delivery) Ack(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, confirmed)
	defer cancel()
	return settled("acknowledge", d.message.DoubleAck(ctx))
}

func (d *delivery) Reject(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return settled("reject", d.message.Nak())
}

// settled leaves out that a message has been acknowledged before.
func settled(what string, err error) error {
	if errors.Is(err, jetstream.ErrMsgAlreadyAckd) {
		return nil
	}
	return broker.Wrap("nats: "+what, err)
}

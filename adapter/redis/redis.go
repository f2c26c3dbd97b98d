// Package redis is heed's streams on Redis Streams, from Redis 6.2 on.
//
//	source, err := redis.NewSource(ctx, redis.SourceConfig{
//		Client: client, Stream: attribution.Topic, Group: "learner", Consumer: hostname,
//	})
//	sink, err := redis.NewSink(client)
//
// How much survives a crash of the server is up to its configuration: with appendonly and
// appendfsync always, no event is lost.
package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/adapter/internal/broker"
	"github.com/heedhq/heed/stream"
)

var (
	_ stream.Source = (*Source)(nil)
	_ stream.Sink   = (*Sink)(nil)
)

// The fields of an entry.
const (
	fieldID      = "id"
	fieldAt      = "at" // RFC 3339
	fieldPayload = "payload"
)

// A Sink adds events to streams. The topic of an event is the key of the stream. It is safe for
// concurrent use by multiple goroutines.
type Sink struct{ client goredis.UniversalClient }

// NewSink returns a sink, or a [*heed.ConfigError].
func NewSink(client goredis.UniversalClient) (*Sink, error) {
	if client == nil {
		return nil, &heed.ConfigError{Field: "Client", Reason: "must be set"}
	}
	return &Sink{client}, nil
}

// Publish implements [stream.Sink]. An event without a topic, and a time that RFC 3339 has no text
// for, are a [*heed.InputError].
func (s *Sink) Publish(ctx context.Context, e stream.Event) error {
	at, err := broker.TimeText(&e)
	if err != nil {
		return err
	}
	values := []any{fieldID, e.ID, fieldAt, at, fieldPayload, e.Payload}
	err = s.client.XAdd(ctx, &goredis.XAddArgs{Stream: e.Topic, Values: values}).Err()
	return broker.Wrap("redis: publish", err)
}

// SourceConfig configures a [Source]. Client, Stream, Group and Consumer must be set.
type SourceConfig struct {
	Client goredis.UniversalClient
	Stream string // the key of the stream. It is made where it is not there
	// Group is the name of the consumer group. It is made where it is not there, and then reads from
	// the beginning. Sources of one group share the work, and each group gets all events.
	Group string
	// Consumer names this process within the group. No two that run at a time may share it.
	Consumer string
	// Lease is how long a delivery is held back from others before the event is delivered again. 0
	// means a minute. Raise it if an event takes longer.
	Lease time.Duration
	// Delete deletes events that are acknowledged, so that the stream does not grow. No other group
	// may read it.
	Delete bool
}

// A Source reads the events of a stream. It is safe for concurrent use by multiple goroutines.
//
// An entry that no [Sink] added is an event too, if it has its payload in the field "payload". Its
// id is in the field "id", or else is the entry's id.
type Source struct {
	cfg SourceConfig

	mu   sync.Mutex
	from string // where the search for ended leases goes on
}

// NewSource makes the group, and returns a source. It returns all faults of the configuration,
// joined: each is a [*heed.ConfigError].
func NewSource(ctx context.Context, cfg SourceConfig) (*Source, error) {
	var found broker.Faults
	found.Check(cfg.Client != nil, "Client", nil, "must be set")
	found.Check(cfg.Stream != "", "Stream", cfg.Stream, "must be set")
	found.Check(cfg.Group != "", "Group", cfg.Group, "must be set")
	found.Check(cfg.Consumer != "", "Consumer", cfg.Consumer, "must be set")
	found.Check(cfg.Lease == 0 || cfg.Lease >= time.Millisecond, "Lease", cfg.Lease,
		"must be a millisecond or more")
	if err := found.Err(); err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}
	cfg.Lease = cmp.Or(cfg.Lease, time.Minute)
	s := &Source{cfg: cfg, from: start}
	if err := s.makeGroup(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Source) makeGroup(ctx context.Context) error {
	err := s.cfg.Client.XGroupCreateMkStream(ctx, s.cfg.Stream, s.cfg.Group, "0").Err()
	if err != nil && !strings.HasPrefix(err.Error(), "BUSYGROUP") {
		return fmt.Errorf("redis: group %q of stream %q: %w", s.cfg.Group, s.cfg.Stream, err)
	}
	return nil
}

const (
	start = "0-0"
	// block is how long Redis waits for an entry. A context that is done, and an ended lease, are
	// seen that much later.
	block = 100 * time.Millisecond
	// pause is the wait before the next attempt after a failure.
	pause = 100 * time.Millisecond
)

// Receive implements [stream.Source]. While the server is away it waits for it. It returns an error
// when the client is closed, and when Redis refuses. It never returns [stream.ErrClosed], because
// others may publish at any time.
func (s *Source) Receive(ctx context.Context) (stream.Delivery, error) {
	return broker.Poll(ctx, pause, s.next, s.gone)
}

// gone returns why the next attempt would fail as well, if it would.
func (s *Source) gone(ctx context.Context, err error) error {
	if strings.HasPrefix(err.Error(), "NOGROUP") { // the stream was deleted or lost
		err = s.makeGroup(ctx)
	}
	if err == nil || passes(err) {
		return nil
	}
	return fmt.Errorf("redis: receive: %w", err)
}

// passes reports whether an error may be over soon: the server is away, is starting or became a
// replica, or the stream was deleted while Redis waited for an entry.
func passes(err error) bool {
	if errors.Is(err, goredis.ErrClosed) {
		return false
	}
	var refused goredis.Error
	return !errors.As(err, &refused) || slices.ContainsFunc([]string{"LOADING", "READONLY",
		"MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "UNBLOCKED"}, func(code string) bool {
		return strings.HasPrefix(refused.Error(), code)
	})
}

// next returns an entry whose lease ended, or else a new one, or nil if no entry comes for a while.
func (s *Source) next(ctx context.Context) (stream.Delivery, error) {
	if m, err := s.claim(ctx); m != nil || err != nil {
		return s.delivery(m), err
	}
	entries, err := s.cfg.Client.XReadGroup(ctx, &goredis.XReadGroupArgs{
		Group: s.cfg.Group, Consumer: s.cfg.Consumer, Streams: []string{s.cfg.Stream, ">"}, Count: 1,
		Block: block,
	}).Result()
	if errors.Is(err, goredis.Nil) {
		return nil, nil
	}
	if err != nil || len(entries) == 0 || len(entries[0].Messages) == 0 {
		return nil, err
	}
	return s.delivery(&entries[0].Messages[0]), nil
}

// claim looks at some of the entries in hand, and takes one whose lease ended. The next call looks
// at those behind.
func (s *Source) claim(ctx context.Context) (*goredis.XMessage, error) {
	s.mu.Lock()
	from := s.from
	s.mu.Unlock()
	found, next, err := s.cfg.Client.XAutoClaim(ctx, &goredis.XAutoClaimArgs{
		Stream: s.cfg.Stream, Group: s.cfg.Group, Consumer: s.cfg.Consumer, MinIdle: s.cfg.Lease,
		Start: from, Count: 1,
	}).Result()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.from = next
	s.mu.Unlock()
	if len(found) == 0 || found[0].Values == nil { // Redis 6.2 also gives entries that were deleted
		return nil, nil
	}
	return &found[0], nil
}

// eventOf returns the event in an entry. A field of another publisher that can't be read counts as
// missing: the time is then the entry's time.
func (s *Source) eventOf(m *goredis.XMessage) stream.Event {
	text := func(field string) string {
		value, _ := m.Values[field].(string)
		return value
	}
	e := stream.Event{ID: m.ID, Topic: s.cfg.Stream, Payload: []byte(text(fieldPayload))}
	if _, ours := m.Values[fieldID]; ours {
		e.ID = text(fieldID)
	}
	ms, _, _ := strings.Cut(m.ID, "-")
	if parsed, err := strconv.ParseInt(ms, 10, 64); err == nil {
		e.At = time.UnixMilli(parsed).UTC()
	}
	e.At = broker.ParseTime(text(fieldAt), e.At)
	return e
}

type delivery struct {
	source *Source
	id     string
	event  stream.Event
}

func (s *Source) delivery(m *goredis.XMessage) stream.Delivery {
	if m == nil {
		return nil
	}
	return &delivery{source: s, id: m.ID, event: s.eventOf(m)}
}

func (d *delivery) Event() stream.Event { return d.event }

func (d *delivery) Ack(ctx context.Context) error {
	cfg := d.source.cfg
	_, err := cfg.Client.TxPipelined(ctx, func(p goredis.Pipeliner) error {
		p.XAck(ctx, cfg.Stream, cfg.Group, d.id)
		if cfg.Delete {
			p.XDel(ctx, cfg.Stream, d.id)
		}
		return nil
	})
	return broker.Wrap("redis: acknowledge", err)
}

// rejectScript ends the lease of an entry, if the consumer has it in hand. JUSTID leaves the count
// of its deliveries alone.
var rejectScript = goredis.NewScript(`
local held = redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[3], ARGV[3], 1, ARGV[2])
if #held > 0 then
	redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, ARGV[3], 'IDLE', ARGV[4], 'JUSTID')
end
return #held`)

func (d *delivery) Reject(ctx context.Context) error {
	cfg := d.source.cfg
	return broker.Wrap("redis: reject", rejectScript.Run(ctx, cfg.Client, []string{cfg.Stream},
		cfg.Group, cfg.Consumer, d.id, cfg.Lease.Milliseconds()).Err())
}

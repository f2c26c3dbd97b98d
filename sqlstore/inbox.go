package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/stream"
)

// How long a delivery is held back from others before the event is delivered again.
const inboxLease = time.Minute

// How often an inbox looks for events of other processes. Events of its Store are received at once.
const inboxPoll = 100 * time.Millisecond

// How many events of an inbox may wait for their acknowledgement. In PostgreSQL, events that are
// published at the same moment do not see each other.
const inboxRoom = 1_000_000

// Inbox is a queue of events in the database of a store, for applications without a broker. It
// delivers events in the order in which they were published, to any number of receivers in any
// number of processes. Its time is the database's. It needs no sweep, because an acknowledged event
// is deleted. It is safe for concurrent use.
type Inbox struct {
	store  *Store
	name   string
	holder string
	closed atomic.Bool
}

var (
	_ stream.Source = (*Inbox)(nil)
	_ stream.Sink   = (*Inbox)(nil)
)

// NewInbox returns an inbox in the database of a store. All inboxes of one name share its events,
// also in other processes. The holder names this receiver among them: events that the same holder
// had in hand before it was opened again are delivered at once. Without a holder they are delivered
// again a minute after they were received.
func NewInbox(ctx context.Context, st *Store, name, holder string) (*Inbox, error) {
	var found valid.Faults
	found.Check(name != "" && evidence.CheckText("", name) == nil, "name", name,
		"must be set, and be a text that can be stored")
	found.Check(evidence.CheckText("", holder) == nil, "holder", holder,
		"must be a text that can be stored")
	if err := found.Err(); err != nil {
		return nil, fmt.Errorf("sqlstore: %w", err)
	}
	s := &Inbox{store: st, name: name, holder: holder}
	if holder == "" {
		return s, nil
	}
	return s, s.exec(ctx, "open stream", false, inboxGiveBack, name, holder)
}

func (s *Inbox) write(ctx context.Context, what string, do func(*tx) error) error {
	err := ctx.Err()
	if err == nil {
		err = s.store.write(ctx, do)
	}
	return wrap(what, err)
}

// exec runs a statement, and then wakes those that wait for an event if the statement may matter to
// them.
func (s *Inbox) exec(ctx context.Context, what string, wakes bool, q *query, args ...any) error {
	err := s.write(ctx, what, func(t *tx) error {
		_, err := t.exec(q, args...)
		return err
	})
	if err == nil && wakes {
		s.store.db.wake(s.name)
	}
	return err
}

// deliveries counts them, and is below zero once the last was given back, so that only that can be
// rejected, and once.
var (
	inboxGiveBack = timed(`UPDATE heed_inbox SET holder = '', deliveries = -abs(deliveries), due = `,
		` WHERE stream = $1 AND holder = $2`)
	inboxPublish = timed(`INSERT INTO heed_inbox
		(stream, id, topic, happened, payload, due, deliveries, holder)
		VALUES ($1, $2, $3, $4, $5, `, `, 0, '')
		ON CONFLICT DO NOTHING`)
	inboxStreamSpan = both(`SELECT coalesce(max(seq) - min(seq) + 1, 0) FROM heed_inbox`)
	inboxStreamSize = both(`SELECT count(*) FROM heed_inbox WHERE stream = $1`)

	// How long until the next event of a stream is due, in microseconds, and whether there is one.
	inboxNextDue = timed(`SELECT due - `, ` FROM heed_inbox WHERE stream = $1 ORDER BY due LIMIT 1`)
	inboxReceive = either(`UPDATE heed_inbox SET deliveries = abs(deliveries) + 1, holder = $1, due = $2 + `+sqliteNow+`
		WHERE seq = (SELECT seq FROM heed_inbox WHERE stream = $3 AND due <= `+sqliteNow+` ORDER BY due, seq LIMIT 1)
		RETURNING seq, deliveries, id, topic, happened, payload`,
		`UPDATE heed_inbox SET deliveries = abs(deliveries) + 1, holder = $1, due = $2 + `+postgresNow+`
		WHERE seq = (SELECT seq FROM heed_inbox WHERE stream = $3 AND due <= `+postgresNow+` ORDER BY due, seq LIMIT 1
			FOR UPDATE SKIP LOCKED)
		RETURNING seq, deliveries, id, topic, happened, payload`)
	inboxAcknowledge = both(`DELETE FROM heed_inbox WHERE seq = $1`)
	inboxReject      = timed(
		`UPDATE heed_inbox SET holder = '', deliveries = -deliveries, due = $1 + `,
		` WHERE seq = $2 AND deliveries = $3`)
)

// Publish implements [stream.Sink]. An event whose id the inbox holds already is left out. Once an
// event is acknowledged, the inbox forgets it, so an event of the same id is delivered again. An
// inbox that holds a million events returns [evidence.ErrFull], and one that was closed
// [stream.ErrClosed]. An id or topic that can't be stored is a [*heed.InputError].
func (s *Inbox) Publish(ctx context.Context, e stream.Event) error {
	switch err := cmp.Or(evidence.CheckText("ID", e.ID), evidence.CheckText("Topic", e.Topic)); {
	case e.ID == "":
		return wrap("publish", &heed.InputError{Field: "ID", Reason: "must not be empty"})
	case err != nil:
		return wrap("publish", err)
	case s.closed.Load():
		return wrap("publish", stream.ErrClosed)
	}
	err := s.write(ctx, "publish", func(t *tx) error {
		at := e.At.UTC().Format(time.RFC3339Nano)
		n, err := t.exec(inboxPublish, s.name, e.ID, e.Topic, at, e.Payload)
		if err != nil || n == 0 {
			return err
		}
		return s.checkRoom(t)
	})
	if err == nil {
		s.store.db.wake(s.name)
	}
	return err
}

// checkRoom refuses what is too much. The stream is only counted where its numbers don't show that
// there is room.
func (s *Inbox) checkRoom(t *tx) error {
	var held int64
	err := t.one(inboxStreamSpan, nil, &held)
	if err == nil && held > inboxRoom {
		err = t.one(inboxStreamSize, []any{s.name}, &held)
	}
	if err == nil && held > inboxRoom {
		err = evidence.ErrFull
	}
	return err
}

// Close makes this Inbox refuse further events. The events that it holds are still delivered; then
// Receive returns [stream.ErrClosed]. Other inboxes of its name go on.
func (s *Inbox) Close() {
	s.closed.Store(true)
	s.store.db.wake(s.name)
}

// Receive implements [stream.Source].
func (s *Inbox) Receive(ctx context.Context) (stream.Delivery, error) {
	for {
		news := s.store.db.news(s.name)
		wait, err := s.wait(ctx)
		switch {
		case errors.Is(err, heed.ErrNotFound) && s.closed.Load():
			return nil, stream.ErrClosed
		case errors.Is(err, heed.ErrNotFound):
			wait = inboxPoll
		case err != nil:
			return nil, fmt.Errorf("sqlstore: receive: %w", err)
		}
		if wait <= 0 {
			d, err := s.next(ctx)
			if d != nil || err != nil {
				return d, err
			}
			continue // somebody else was quicker
		}
		timer := time.NewTimer(min(wait, inboxPoll))
		select {
		case <-ctx.Done():
		case <-news:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// wait returns how long it is until an event is due, or [heed.ErrNotFound].
func (s *Inbox) wait(ctx context.Context) (wait time.Duration, err error) {
	err = s.store.db.read(ctx, func(t *tx) error {
		var micros int64
		err := t.one(inboxNextDue, []any{s.name}, &micros)
		wait = time.Duration(micros) * time.Microsecond
		return err
	})
	return wait, err
}

// next takes the next event that is due, if there is one.
func (s *Inbox) next(ctx context.Context) (stream.Delivery, error) {
	d := &inboxDelivery{stream: s}
	var happened string
	err := s.write(ctx, "receive", func(t *tx) error {
		return t.one(inboxReceive, []any{s.holder, inboxLease.Microseconds(), s.name},
			&d.seq, &d.number, &d.event.ID, &d.event.Topic, &happened, &d.event.Payload)
	})
	switch {
	case errors.Is(err, heed.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	}
	// If this is not a time, the event has no time, and the consumer decides.
	d.event.At, _ = time.Parse(time.RFC3339Nano, happened)
	return d, nil
}

// An inboxDelivery is an event of a stream in hand.
type inboxDelivery struct {
	stream *Inbox
	event  stream.Event
	seq    int64
	number int64 // of the delivery
}

// Event implements [stream.Delivery].
func (d *inboxDelivery) Event() stream.Event { return d.event }

// Ack implements [stream.Delivery].
func (d *inboxDelivery) Ack(ctx context.Context) error {
	return d.stream.exec(ctx, "acknowledge", d.stream.closed.Load(), inboxAcknowledge, d.seq)
}

// Reject implements [stream.Delivery].
func (d *inboxDelivery) Reject(ctx context.Context, delay time.Duration) error {
	return d.stream.exec(ctx, "reject", true, inboxReject, delay.Microseconds(), d.seq, d.number)
}

// news returns a channel that is closed when there is news of a stream.
func (db *database) news(stream string) <-chan struct{} {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.wakes[stream] == nil {
		db.wakes[stream] = make(chan struct{})
	}
	return db.wakes[stream]
}

func (db *database) wake(stream string) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if wake := db.wakes[stream]; wake != nil {
		close(wake)
		delete(db.wakes, stream)
	}
}

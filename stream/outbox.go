package stream

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/stores"
	"github.com/heedhq/heed/store"
)

// Outbox is the kind of events that wait in a store to be published. A package that puts events
// there declares it, with the paths to the names of people in its payloads. A commit that finds the
// outbox full is refused with [evidence.ErrFull].
//
// [evidence.ErrFull]: https://pkg.go.dev/github.com/heedhq/heed/evidence#ErrFull
var Outbox = store.Kind{Name: "stream.outbox", Limits: store.Limits{Most: 100_000, Refuse: true}}

// Waiting returns the event as a record for a batch, so that it is published if and only if the
// batch is committed. An event whose ID waits already stays as it is. people are those whom the
// payload names: see [store.Batch].Forget.
func (e Event) Waiting(people ...string) store.Record {
	e.At = e.At.UTC().Truncate(time.Microsecond)
	e.Payload = slices.Clone(e.Payload)
	// Events leave in the order in which they were written, whenever they happened: all have one
	// moment.
	return store.Record{
		Ref: store.Ref{Kind: Outbox.Name, ID: e.ID}, Revision: store.Once, At: time.Unix(1, 0).UTC(),
		Keys: stores.PersonKeys(people...), Body: store.Of(e),
	}
}

// Waiting yields the events in the outbox of a store, the first written first. The rules of
// [store.Store].Find hold.
func Waiting(ctx context.Context, s store.Store) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for w, err := range waiting(ctx, s) {
			if !yield(w.event, err) {
				return
			}
		}
	}
}

// A waitingEvent is an event with the record that has to be removed after it was published.
type waitingEvent struct {
	event  Event
	record store.Record // without its body
	tenant string
}

// about returns the context of the event's tenant. Without one, a tenant of the caller's stays.
func (w *waitingEvent) about(ctx context.Context) context.Context {
	if w.tenant == "" {
		return ctx
	}
	return heed.WithTenant(ctx, w.tenant)
}

// waiting yields the events of a store, or of all its tenants, in the order in which they were
// written. The id of a tenant's event is a hash of the tenant and the id, because two tenants may
// use the same id.
func waiting(ctx context.Context, s store.Store) iter.Seq2[waitingEvent, error] {
	return func(yield func(waitingEvent, error) bool) {
		for r, err := range s.Find(ctx, store.Query{Kind: Outbox.Name, Oldest: true}) {
			var w waitingEvent
			if err == nil {
				row, failed := (&store.View[Event]{Kind: Outbox}).Of(r)
				w.event, err = row.Value, failed
				w.event.Payload = slices.Clone(w.event.Payload)
				w.record = store.Record{Ref: r.Ref, Revision: r.Revision}
				for _, key := range r.Keys {
					if tenant, ok := strings.CutPrefix(key, store.Key("tenant", "")); ok {
						w.tenant = tenant
						w.event.ID = store.IDOf(tenant, w.event.ID)
					}
				}
			}
			if !yield(w, err) {
				return
			}
		}
	}
}

// relayBatch is after how many published events they are taken out of the outbox.
const relayBatch = 100

// Relay publishes the events in the outbox of a store and of all its tenants, in order, takes them
// out, and returns how many. For a tenant's event, heed.TenantOf returns the tenant for the context
// of Publish, and the ID is a hash of tenant and ID. If Relay fails, some are published again, and
// several relays over one store may publish one twice, but lose none. An event that is damaged, or
// that the sink refuses for good (see [Runner].Apply), stays, is an error, and holds up no other.
func Relay(ctx context.Context, s store.Store, sink Sink) (sent int, err error) {
	var published []store.Record
	remove := func() error {
		n, err := removeSent(ctx, s, published)
		sent += n
		published = nil
		return err
	}
	for w, failed := range waiting(ctx, s) {
		if failed == nil {
			failed = sink.Publish(w.about(ctx), w.event)
		}
		if _, is := final(failed); is || errors.Is(failed, heed.ErrDamaged) {
			err = failed
			continue
		}
		if failed == nil {
			if published = append(published, w.record); len(published) == relayBatch {
				failed = remove()
			}
		}
		if failed != nil {
			return sent, fmt.Errorf("stream: relay: %w", errors.Join(failed, remove()))
		}
	}
	if err = errors.Join(err, remove()); err != nil {
		err = fmt.Errorf("stream: relay: %w", err)
	}
	return sent, err
}

// removeSent takes events out of the outbox, and returns how many it took out. If another relay was
// quicker with one of them, the commit of all is refused, and each is taken out by itself.
func removeSent(ctx context.Context, s store.Store, published []store.Record) (int, error) {
	if len(published) == 0 {
		return 0, nil
	}
	_, err := s.Commit(ctx, store.Batch{Records: published})
	if err == nil {
		return len(published), nil
	}
	if !errors.Is(err, heed.ErrConflict) {
		return 0, err
	}
	removed := 0
	for _, r := range published {
		switch _, err := s.Commit(ctx, store.Batch{Records: []store.Record{r}}); {
		case err == nil:
			removed++
		case !errors.Is(err, heed.ErrConflict):
			return removed, err
		}
	}
	return removed, nil
}

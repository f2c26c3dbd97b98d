package sqlstore

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/stream"
)

var (
	eventsOfInboxes = both(`SELECT seq, id, topic, payload FROM heed_inbox WHERE seq > $1
		ORDER BY seq LIMIT 100`)
	rewriteEvent = both(`UPDATE heed_inbox SET payload = $1 WHERE seq = $2`)
)

// forgetInInboxes takes people out of the events that wait in inboxes, at the places where those
// that leave name people. Each page is a transaction.
func (s *Store) forgetInInboxes(ctx context.Context, names []string) error {
	var kind store.Kind
	err := s.db.read(ctx, func(t *tx) (err error) {
		kind, _, err = s.declared(t, stream.Outbox.Name)
		return err
	})
	if err != nil {
		return err
	}
	key, err := store.PseudonymKeyIn(store.Reading(ctx, s))
	last, rows := -maxInt64, 1
	for err == nil && rows > 0 {
		err = s.write(ctx, func(t *tx) (err error) {
			last, rows, err = t.forgetInInboxes(last, kind, key, names)
			return err
		})
	}
	return err
}

// forgetInInboxes does a page of the events after a number. It returns the number of the last one,
// and how many events it has looked at.
func (t *tx) forgetInInboxes(
	after int64, kind store.Kind, key store.PseudonymKey, names []string,
) (last int64, rows int, err error) {
	changed := make(map[int64][]byte)
	err = t.each(eventsOfInboxes, []any{after}, func(scan func(...any) error) error {
		rows++
		var e stream.Event
		if err := scan(&last, &e.ID, &e.Topic, &e.Payload); err != nil {
			return err
		}
		text, err := json.Marshal(e)
		if err != nil {
			return err
		}
		without, err := kind.Without(text, key, names...)
		if err == nil && !bytes.Equal(text, without) {
			err = json.Unmarshal(without, &e)
			changed[last] = e.Payload
		}
		return err
	})
	for seq, payload := range changed {
		if err == nil {
			_, err = t.exec(rewriteEvent, payload, seq)
		}
	}
	return last, rows, err
}

// A database file of SQLite keeps copies of what was deleted: in free pages, in the gaps that a
// split leaves in a page, and as older versions of pages in the log. So the file is rewritten after
// people were forgotten, and the log emptied. The database notes how far that came, because it can
// be cut off, and a reader of the log must be waited for.
var (
	noteForgotten = either(`UPDATE heed_store SET forgotten = forgotten + 1`, ``)
	readErased    = either(`SELECT forgotten, rewritten, erased FROM heed_store`, ``)
	noteRewritten = either(`UPDATE heed_store SET rewritten = max(rewritten, $1)`, ``)
	noteErased    = either(`UPDATE heed_store SET erased = max(erased, $1)`, ``)
)

// erasure counts the forgotten people, and how many of them the file and the log no longer hold.
func (s *Store) erasure(ctx context.Context) (forgotten, rewritten, erased int64, err error) {
	if s.db.dialect.embedded() {
		err = s.db.read(ctx, func(t *tx) error {
			return t.one(readErased, nil, &forgotten, &rewritten,
				&erased)
		})
	}
	return forgotten, rewritten, erased, err
}

// erase removes forgotten names from the files, if it can.
func (s *Store) erase(ctx context.Context) error {
	forgotten, rewritten, erased, err := s.erasure(ctx)
	if err != nil || forgotten == erased {
		return err
	}
	if rewritten < forgotten {
		if err := s.db.alone(ctx, rewriteFile); err != nil {
			return err
		}
		if err := s.note(ctx, noteRewritten, forgotten); err != nil {
			return err
		}
	}
	empty := false
	const patience = time.Second / 2 // with those who read from the log
	for over := machineNow().Add(patience); err == nil && !empty &&
		machineNow().Before(over); time.Sleep(5 * time.Millisecond) {
		err = s.db.alone(ctx, func(ctx context.Context, conn *sql.Conn) (err error) {
			empty, err = emptyLog(ctx, conn)
			return err
		})
	}
	if err != nil || !empty {
		return err
	}
	return s.note(ctx, noteErased, forgotten)
}

func (s *Store) note(ctx context.Context, q *query, forgotten int64) error {
	return s.write(ctx, func(t *tx) error {
		_, err := t.exec(q, forgotten)
		return err
	})
}

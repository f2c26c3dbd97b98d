package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/stores"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/people"
	"github.com/heedhq/heed/stream"
)

var (
	recordsOfKey = both(`SELECT r.seq, r.at, r.keys, r.body, r.id FROM heed_key k
		JOIN heed_record r ON r.seq = k.seq
		WHERE k.hash = $1 AND (k.at, k.seq) > ($2, $3) ORDER BY k.at, k.seq LIMIT 100`)
	dropCellsOf = both(`DELETE FROM heed_cell WHERE (scope = $1 OR item = $1 OR name = $1)
		AND NOT EXISTS (SELECT 1 FROM heed_tally t WHERE t.cell = heed_cell.cell)
		AND NOT EXISTS (SELECT 1 FROM heed_observation h WHERE h.cell = heed_cell.cell)`)
)

// forgetPeople takes people out of all records, and drops the cells of their names that are empty.
// Their evidence is gone.
func (c *change) forgetPeople(names []string) error {
	if len(names) == 0 {
		return nil
	}
	kinds, err := c.store.allDeclared(c.t)
	if err != nil {
		return err
	}
	if c.t.db.dialect.embedded() {
		if _, err := c.t.exec(noteForgotten); err != nil {
			return err
		}
	}
	pseudonyms, err := c.pseudonymKey()
	if err != nil {
		return err
	}
	all := people.Of(pseudonyms, names)
	for _, name := range names {
		if _, err := c.t.exec(dropCellsOf, name); err != nil {
			return err
		}
		for _, kind := range kinds {
			if err := c.forgetIn(kind, store.PersonKey(name), all); err != nil {
				return fmt.Errorf("%s: %w", kind.Name, err)
			}
		}
	}
	for _, kind := range kinds {
		if kind.Name == stream.Outbox.Name {
			return c.forgetInInboxes(kind, all)
		}
	}
	return nil
}

var bodyOfRef = both(`SELECT body FROM heed_record WHERE ref = $1`)

// pseudonymKey returns the key of the store. If there is none, it makes one.
func (c *change) pseudonymKey() (key store.PseudonymKey, err error) {
	ref := store.PseudonymKeyRef()
	var body string
	switch err := c.t.one(bodyOfRef, []any{hashOfRef(ref)}, &body); {
	case err == nil:
		return store.Decode[store.PseudonymKey](store.Raw([]byte(body)))
	case !errors.Is(err, heed.ErrNotFound):
		return key, err
	}
	if err := keepDeclared(c.t, store.Pseudonyms.Kind); err != nil {
		return key, err
	}
	key = store.NewPseudonymKey(c.now.Time())
	r := store.Pseudonyms.Record(key, 0)
	text, err := r.Body.JSON()
	if err != nil {
		return key, err
	}
	row := []any{
		hashOfRef(ref), r.Kind, r.ID, int64(evidence.InstantOf(r.At)), "[]", string(text),
		int64(c.revision),
	}
	return key, c.t.insert(insertRecords, [][]any{row},
		func(scan func(...any) error) error { return scan(new(string), new(int64)) })
}

// A bodyRow is a record in which a person may be named.
type bodyRow struct {
	stores.Position
	id   string
	keys []string
	body string
}

// forgetIn takes people out of the records of a kind that have a key.
func (c *change) forgetIn(kind store.Kind, key string, all []people.Person) error {
	last := stores.Position{At: -1}
	for {
		var page []bodyRow
		args := []any{hashOf(kind.Name, key), int64(last.At), last.Seq}
		err := c.t.each(recordsOfKey, args, func(scan func(...any) error) error {
			var r bodyRow
			var keys string
			if err := scan(&r.Seq, &r.At, &keys, &r.body, &r.id); err != nil {
				return err
			}
			var err error
			r.keys, err = keysOf(store.Ref{Kind: kind.Name, ID: r.id}, keys)
			last, page = r.Position, append(page, r)
			return err
		})
		if err != nil || len(page) == 0 {
			return err
		}
		if err := c.rewrite(kind, page, all); err != nil {
			return err
		}
	}
}

// rewrite writes records without the people, or removes them.
func (c *change) rewrite(kind store.Kind, page []bodyRow, all []people.Person) error {
	var written, removed, keys, lost [][]any
	for _, r := range page {
		before := distinct(r.keys)
		result, err := people.Forget(kind, []byte(r.body), r.keys, all)
		if err != nil {
			return fmt.Errorf("record %q: %w", r.id, err)
		}
		if result.Gone {
			removed = append(removed, []any{r.Seq})
			lost = append(lost, keyRows(kind.Name, r.At, r.Seq, before, nil)...)
			continue
		}
		if !result.Changed {
			continue
		}
		text, err := textOfKeys(result.Keys)
		if err != nil {
			return err
		}
		after := distinct(result.Keys)
		written = append(written, []any{r.Seq, int64(r.At), string(text), string(result.JSON)})
		keys = append(keys, keyRows(kind.Name, r.At, r.Seq, after, before)...)
		lost = append(lost, keyRows(kind.Name, r.At, r.Seq, before, after)...)
	}
	return c.writeRows(written, removed, keys, lost)
}

var (
	eventsOfInboxes = both(`SELECT seq, id, topic, payload FROM heed_inbox WHERE seq > $1
		ORDER BY seq LIMIT 100`)
	rewriteEvent = both(`UPDATE heed_inbox SET payload = $1 WHERE seq = $2`)
)

// forgetInInboxes takes people out of the events that wait in inboxes, at the places where those
// that leave name people.
func (c *change) forgetInInboxes(kind store.Kind, all []people.Person) error {
	last, rows := -maxInt64, 1
	for rows > 0 {
		rows = 0
		changed := make(map[int64][]byte)
		err := c.t.each(eventsOfInboxes, []any{last}, func(scan func(...any) error) error {
			rows++
			var e stream.Event
			if err := scan(&last, &e.ID, &e.Topic, &e.Payload); err != nil {
				return err
			}
			text, err := json.Marshal(e)
			if err != nil {
				return err
			}
			result, err := people.Forget(kind, text, nil, all)
			if err == nil && result.Changed {
				err = json.Unmarshal(result.JSON, &e)
				changed[last] = e.Payload
			}
			return err
		})
		if err != nil {
			return err
		}
		for seq, payload := range changed {
			if _, err := c.t.exec(rewriteEvent, payload, seq); err != nil {
				return err
			}
		}
	}
	return nil
}

// A database file of SQLite keeps copies of what was deleted: in free pages, in the gaps that a
// split leaves in a page, and as older versions of pages in the log. So the file is rewritten after
// people were forgotten, and the log emptied. The database notes how far that has come, as it can
// be cut off, and a reader of the log has to be waited for.
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

// erase removes forgotten names from the files, as far as it can.
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

package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/people"
	"github.com/heedhq/heed/store"
)

var (
	recordsOfKey = both(`SELECT r.seq, r.at, r.keys, r.body FROM heed_key k JOIN heed_record r ON r.seq = k.seq
		WHERE k.hash = $1 AND (k.at, k.seq) > ($2, $3) ORDER BY k.at, k.seq LIMIT 100`)
	dropCellsOf = both(`DELETE FROM heed_cell WHERE (scope = $1 OR item = $1 OR name = $1)
		AND NOT EXISTS (SELECT 1 FROM heed_tally t WHERE t.cell = heed_cell.cell)
		AND NOT EXISTS (SELECT 1 FROM heed_observation h WHERE h.cell = heed_cell.cell)`)
)

// forgetPeople takes people out of all records, and drops the cells of their names that are empty. Their evidence is gone.
func (c *change) forgetPeople(names []string) error {
	if len(names) == 0 {
		return nil
	}
	if err := c.number(); err != nil {
		return err
	}
	kinds, err := c.store.allDeclared(c.t)
	if err != nil {
		return err
	}
	all := people.Of(names)
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
	return nil
}

// A bodyRow is a record in which a person may be named.
type bodyRow struct {
	position
	keys []string
	body string
}

// forgetIn takes people out of the records of a kind that have a key.
func (c *change) forgetIn(kind store.Kind, key string, all []people.Person) error {
	last := position{-1, 0}
	for {
		var page []bodyRow
		err := c.t.each(recordsOfKey, []any{hashOf(kind.Name, key), last.at, last.seq}, func(scan func(...any) error) error {
			var r bodyRow
			var keys string
			if err := scan(&r.seq, &r.at, &keys, &r.body); err != nil {
				return err
			}
			err := json.Unmarshal([]byte(keys), &r.keys)
			page = append(page, r)
			return err
		})
		if err != nil || len(page) == 0 {
			return err
		}
		if err := c.rewrite(kind, page, all); err != nil {
			return err
		}
		last = page[len(page)-1].position
	}
}

// rewrite writes records without the people, or removes them.
func (c *change) rewrite(kind store.Kind, page []bodyRow, all []people.Person) error {
	var written, removed, keys, lost [][]any
	for _, r := range page {
		at, before := evidence.Instant(r.at), distinct(r.keys)
		if kind.Whole {
			removed = append(removed, []any{r.seq})
			lost = append(lost, keyRows(kind.Name, at, r.seq, before, nil)...)
			continue
		}
		result, err := people.Forget(kind, []byte(r.body), r.keys, all)
		if err != nil {
			return err
		}
		if !result.Changed {
			continue
		}
		text, err := json.Marshal(result.Keys)
		if err != nil {
			return err
		}
		after := distinct(result.Keys)
		written = append(written, []any{r.seq, r.at, string(text), string(result.JSON)})
		keys = append(keys, keyRows(kind.Name, at, r.seq, after, before)...)
		lost = append(lost, keyRows(kind.Name, at, r.seq, before, after)...)
	}
	return c.writeRows(written, removed, keys, lost)
}

// erases reports whether what is taken away has to leave the files, too.
func (c *change) erases() bool {
	return slices.ContainsFunc(c.batches, func(b store.Batch) bool { return len(b.Expunge)+len(b.Forget) > 0 })
}

// patience is how long a commit that erases waits for others who read.
const patience = time.Second / 2

// eraseLog has SQLite bring its log into the database file and empty it, as older versions of pages are in there. It can't
// while somebody reads from the log: the next Sweep tries again.
func (s *Store) eraseLog(ctx context.Context, patience time.Duration) {
	if !s.db.dialect.embedded() {
		return
	}
	ctx = context.WithoutCancel(ctx)
	over := machineNow().Add(patience)
	for {
		erased := false
		_ = s.db.onWriter(ctx, func(conn *sql.Conn) (err error) { // the commit stands, whatever comes of this
			erased, err = emptyLog(ctx, conn)
			return errors.Join(err, alignFiles(ctx, conn))
		})
		if erased || !machineNow().Before(over) {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

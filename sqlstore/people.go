package sqlstore

import (
	"context"
	"database/sql"
	"time"
)

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
// They are counts of commits that forgot people, not of people. PostgreSQL manages its own files.
func (s *Store) erasure(ctx context.Context) (forgotten, rewritten, erased int64, err error) {
	if s.db.dialect.embedded() {
		err = s.db.read(ctx, func(t *tx) error {
			return t.one(readErased, nil, &forgotten, &rewritten, &erased)
		})
	}
	return forgotten, rewritten, erased, err
}

// erase removes forgotten names from the files, if it can. It does nothing if no one was forgotten
// since the last time. Otherwise it takes as long as a rewrite of the file.
func (s *Store) erase(ctx context.Context) error {
	forgotten, rewritten, erased, err := s.erasure(ctx)
	if err != nil || forgotten == erased {
		return err
	}
	// The file before the log, because to rewrite the file puts its pages into the log, which is
	// emptied afterwards.
	if rewritten < forgotten {
		if err := s.db.alone(ctx, rewriteFile); err != nil {
			return err
		}
		if err := s.note(ctx, noteRewritten, forgotten); err != nil {
			return err
		}
	}
	// Readers that are in the middle of the log keep it from being emptied. They are waited for a
	// little, and otherwise the next sweep tries again.
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
	// The number from the beginning, and not the present one: people who were forgotten in between
	// may still be in the files.
	return s.note(ctx, noteErased, forgotten)
}

// note writes how far an erasure came, so that the next sweep, in any process, goes on from there.
func (s *Store) note(ctx context.Context, q *query, forgotten int64) error {
	c := &change{store: s}
	return s.db.enter(ctx, c.enter, func(t *tx) error {
		_, err := t.exec(q, forgotten)
		return err
	})
}

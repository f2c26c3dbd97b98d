package sqlstore

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
)

// A document is a value that is kept as JSON.
type document[T any] struct {
	id       string
	class    string // by which it is listed
	moment   int64  // likewise
	revision uint64
	value    T
}

// A shelf has the documents of one sort.
type shelf[T any] struct {
	db   *DB
	sort string
}

var (
	getDocument = both(`SELECT moment, revision, body FROM heed_documents WHERE doc = $1`)
	addDocument = both(`INSERT INTO heed_documents (doc, sort, id, class, moment, revision, body)
		VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING`)
	replaceDocument = both(`UPDATE heed_documents SET class = $1, moment = $2, revision = $3, body = $4
		WHERE doc = $5 AND revision = $6`)
	dropDocument  = both(`DELETE FROM heed_documents WHERE doc = $1`)
	dropClass     = both(`DELETE FROM heed_documents WHERE sort = $1 AND class = $2`)
	dropOverMuch  = both(`DELETE FROM heed_documents WHERE sort = $1 AND seq <= (SELECT d.seq FROM heed_documents d WHERE d.sort = $1 ORDER BY d.seq DESC LIMIT 1 OFFSET $2)`)
	documentsByID = both(`SELECT seq, body FROM heed_documents WHERE sort = $1 ORDER BY id`)
	newestOfClass = both(`SELECT seq, body FROM heed_documents WHERE sort = $1 AND class = $2 ORDER BY moment DESC, id`)
	newestOfAll   = both(`SELECT seq, body FROM heed_documents WHERE sort = $1 ORDER BY moment DESC, id`)
	firstOfClass  = both(`SELECT seq, body FROM heed_documents WHERE sort = $1 AND class = $2 AND seq > $3 ORDER BY seq LIMIT 500`)
	firstOfAll    = both(`SELECT seq, body FROM heed_documents WHERE sort = $1 AND seq > $2 ORDER BY seq LIMIT 500`)
	lastOfClass   = both(`SELECT seq, body FROM heed_documents WHERE sort = $1 AND class = $2 AND seq < $3 ORDER BY seq DESC LIMIT 500`)
	lastOfAll     = both(`SELECT seq, body FROM heed_documents WHERE sort = $1 AND seq < $2 ORDER BY seq DESC LIMIT 500`)
)

// key names a document by a hash, so that it fits into any index.
func (s shelf[T]) key(id string) string {
	sum := sha256.Sum256([]byte(s.sort + "\x00" + id))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// get returns a document, or [heed.ErrNotFound].
func (s shelf[T]) get(t *tx, id string) (d document[T], err error) {
	var body string
	if err := t.one(getDocument, []any{s.key(id)}, &d.moment, &d.revision, &body); err != nil {
		return d, err
	}
	d.id = id
	if err := json.Unmarshal([]byte(body), &d.value); err != nil {
		s.db.damaged.Add(1)
		return d, fmt.Errorf("%w: %w", errDamaged, err)
	}
	return d, nil
}

// read is get outside of a transaction.
func (s shelf[T]) read(ctx context.Context, id string) (d document[T], err error) {
	err = s.db.read(ctx, func(t *tx) error {
		d, err = s.get(t, id)
		return err
	})
	if err != nil {
		return document[T]{}, fmt.Errorf("sqlstore: %s: %w", s.sort, err)
	}
	return d, nil
}

// add keeps a document, and reports whether there was none of its id.
func (s shelf[T]) add(t *tx, d document[T]) (bool, error) {
	body, err := json.Marshal(d.value)
	if err != nil {
		return false, err
	}
	n, err := t.exec(addDocument, s.key(d.id), s.sort, d.id, d.class, d.moment, int64(d.revision), string(body))
	return n > 0, err
}

// put keeps a document that was read with a revision, 0 where there was none, under the next. Where that is not the one that
// is stored, it is [heed.ErrConflict].
func (s shelf[T]) put(t *tx, d document[T], read uint64) error {
	d.revision = read + 1
	if read == 0 {
		switch added, err := s.add(t, d); {
		case err != nil:
			return err
		case !added:
			return fmt.Errorf("%s: %w", s.sort, heed.ErrConflict)
		}
		return nil
	}
	body, err := json.Marshal(d.value)
	if err != nil {
		return err
	}
	n, err := t.exec(replaceDocument, d.class, d.moment, int64(d.revision), string(body), s.key(d.id), int64(read))
	if err == nil && n == 0 {
		err = fmt.Errorf("%s: %w", s.sort, heed.ErrConflict)
	}
	return err
}

// write calls a function in a transaction whose first statement writes.
func (s shelf[T]) write(ctx context.Context, do func(*tx) error) error {
	err := ctx.Err()
	if err == nil {
		err = s.db.write(ctx, nil, do)
	}
	if err != nil {
		return fmt.Errorf("sqlstore: %s: %w", s.sort, err)
	}
	return nil
}

// drop forgets a document, or returns [heed.ErrNotFound].
func (s shelf[T]) drop(t *tx, id string) error {
	n, err := t.exec(dropDocument, s.key(id))
	if err == nil && n == 0 {
		err = heed.ErrNotFound
	}
	return err
}

// all reads what a query finds.
func (s shelf[T]) all(ctx context.Context, q *query, args ...any) (values []T, last int64, rows int, err error) {
	err = s.db.read(ctx, func(t *tx) error {
		return t.each(q, args, func(scan func(...any) error) error {
			var body string
			if err := scan(&last, &body); err != nil {
				return err
			}
			rows++
			values = decode(s.db, values, body)
			return nil
		})
	})
	return values, last, rows, err
}

// list yields what a query finds, all of which is read before the loop begins.
func (s shelf[T]) list(ctx context.Context, selects func(T) bool, q *query, args ...any) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		values, _, _, err := s.all(ctx, q, args...)
		yieldAll(ctx, values, err, func(value T, err error) bool { return err == nil && !selects(value) || yield(value, err) })
	}
}

// paged yields the documents of a class, or all where it is empty, page by page in the order of their numbers from one on.
func (s shelf[T]) paged(ctx context.Context, class string, from int64, ofClass, ofAll *query) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		seq := from
		pages(ctx, yield, func() ([]T, error) {
			q, args := ofAll, []any{s.sort, seq}
			if class != "" {
				q, args = ofClass, []any{s.sort, class, seq}
			}
			values, last, rows, err := s.all(ctx, q, args...)
			seq = last
			if err == nil {
				err = lastPage(rows)
			}
			return values, err
		})
	}
}

func (s shelf[T]) firstFirst(ctx context.Context, class string) iter.Seq2[T, error] {
	return s.paged(ctx, class, 0, firstOfClass, firstOfAll)
}

func (s shelf[T]) lastFirst(ctx context.Context, class string) iter.Seq2[T, error] {
	return s.paged(ctx, class, maxInt64, lastOfClass, lastOfAll)
}

// newest yields the documents of a class, or all where it is empty, the newest first and of one moment by id.
func (s shelf[T]) newest(ctx context.Context, class string, selects func(T) bool) iter.Seq2[T, error] {
	if class != "" {
		return s.list(ctx, selects, newestOfClass, s.sort, class)
	}
	return s.list(ctx, selects, newestOfAll, s.sort)
}

// shorten drops the documents over a number, those that came first.
func (s shelf[T]) shorten(ctx context.Context, most int) error {
	return s.write(ctx, func(t *tx) error {
		_, err := t.exec(dropOverMuch, s.sort, most)
		return err
	})
}

// checkKey refuses an id that can't be kept.
func checkKey(field, id string) error {
	if id == "" {
		return &heed.InputError{Field: field, Reason: "must not be empty"}
	}
	return evidence.CheckText(field, id)
}

package sqlstore

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/stores"
	"github.com/heedhq/heed/store"
)

// One statement reads records and tallies, so that both are of one moment: a record's hash, keys,
// body, moment and revision are in the columns of a tally's cell, channel, source, half-life and
// landmark. PostgreSQL looks each one up by itself: it would read whole tables otherwise as long as
// it has no statistics, and keep that plan while the tables grow.
const (
	// The first column is 1 for a tally and 0 for a record.
	tallyRows = `SELECT 1, t.cell, t.channel, t.source, c.half_life, ` + tallySums + `
		FROM `
	recordRows = `SELECT 0, r.ref, r.keys, r.body, r.at, r.revision,
			CAST(0 AS DOUBLE PRECISION), CAST(0 AS DOUBLE PRECISION),
			CAST(0 AS DOUBLE PRECISION), CAST(0 AS DOUBLE PRECISION), 0, 0, 0, 0, 0, 0
		FROM `
	// These are SQLite's: it uses the primary key of heed_tally and the unique index on ref by
	// itself.
	someTallies = tallyRows + `heed_tally t JOIN heed_cell c ON c.cell = t.cell
		WHERE t.cell IN (SELECT value->>0 FROM json_each($1))`
	someRecords = recordRows + `heed_record r WHERE r.ref IN (SELECT value->>0 FROM json_each($1))`
	// These are PostgreSQL's. OFFSET 0 keeps it from turning the lookups into a join.
	eachOfTally = tallyRows + `jsonb_array_elements($1) AS e CROSS JOIN LATERAL (SELECT *
		FROM heed_tally WHERE cell = e.value->>0 OFFSET 0) AS t` + cellOfTally
	eachOfRecord = recordRows + `jsonb_array_elements($1) AS e CROSS JOIN LATERAL (SELECT *
		FROM heed_record WHERE ref = e.value->>0 OFFSET 0) AS r`
	cellOfTally = ` CROSS JOIN LATERAL (SELECT * FROM heed_cell WHERE cell = t.cell OFFSET 0) AS c`
)

var (
	// readSome reads tallies alone, and readBoth records and tallies, in one statement. PostgreSQL
	// looks each cell up by the primary key of heed_tally, and each record by the unique index on
	// ref.
	readSome = either(someTallies, eachOfTally)
	readBoth = either(someRecords+` UNION ALL `+strings.Replace(someTallies, `($1)`, `($2)`, 1),
		eachOfRecord+` UNION ALL `+strings.Replace(eachOfTally, `($1)`, `($2)`, 1))
)

// Read implements [store.Store]. See Config.NoCache for how fresh the parts are where no records
// are asked for. Queries are run after the snapshot, each by itself, so they may see a commit that
// the snapshot does not.
func (s *Store) Read(ctx context.Context, into *store.Snapshot, cells []evidence.Cell,
	refs []store.Ref, finds ...store.Query) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	// Only a read of cells alone may be answered by the cache. With a record in it, the caller
	// relies on parts that are as new as the record.
	before := len(into.Parts)
	if s.cache != nil && len(refs)+len(finds) == 0 {
		// All of the cells or none come from the cache: if one is missing, the statement that reads
		// it reads the others at no cost, and all are of one moment.
		now, known := machineNow(), true
		for _, c := range cells {
			parts, ok := s.cache.get(c, now)
			if known = known && ok; !known {
				break
			}
			into.Parts = append(into.Parts, parts...)
		}
		if known {
			return nil
		}
		into.Parts = into.Parts[:before]
	}
	if err := s.readAll(ctx, into, cells, refs); err != nil {
		return fmt.Errorf("sqlstore: read: %w", err)
	}
	for _, q := range finds {
		var found []store.Record
		for r, err := range s.Find(ctx, q) {
			if err != nil {
				return err
			}
			found = append(found, r)
		}
		into.Found = append(into.Found, found)
	}
	return nil
}

// readAll reads from the database. The version of a kind is read as the record of the kind without
// an id, and only its revision is returned. Reads of several callers share a statement: see
// [readers].
func (s *Store) readAll(ctx context.Context, into *store.Snapshot, cells []evidence.Cell,
	refs []store.Ref) error {
	for _, ref := range refs {
		if kind := s.kinds.get(ref.Kind); ref.ID == "" && (kind == nil || !kind.Versioned) {
			return &heed.InputError{Field: "Refs", Reason: fmt.Sprintf(
				"asks for the version of %q, which is not declared with one", ref.Kind)}
		}
	}
	// A ticket is drawn before the read. If a commit changes the cell in the meantime, the ticket
	// is void, and what was read does not enter the cache.
	tickets := make([]uint64, len(cells))
	if s.cache != nil {
		for i, c := range cells {
			tickets[i] = s.cache.ticket(c)
		}
	}
	now := machineNow()
	all, err := s.reads.read(ctx, cells, refs)
	if err != nil {
		return err
	}
	for _, ref := range refs {
		// The map is shared with callers that read at the same time, so the record is copied.
		record := all.records[hashOfRef(ref)]
		record.Ref, record.Keys = ref, slices.Clone(record.Keys) // another caller may have it too
		if ref.ID == "" {
			record = store.Record{Ref: ref, Revision: record.Revision}
		}
		into.Records = append(into.Records, record)
	}
	for i, c := range cells {
		found := all.parts[hashOfCell(c)]
		if s.cache != nil {
			s.cache.put(tickets[i], c, found, now)
		}
		into.Parts = append(into.Parts, found...)
	}
	return nil
}

// snapshot reads cells and records, each by its hash. Cells without evidence and records that are
// not there have no entry. Parts of a cell are in the order of channel and source, on every engine.
// Parts are sorted here, since engines order text by different rules.
func (t *tx) snapshot(cells []evidence.Cell, refs []store.Ref, parts map[string][]evidence.Part,
	records map[string]store.Record) error {
	if len(cells)+len(refs) == 0 {
		return nil
	}
	hashes := make([]string, 0, len(refs)+len(cells))
	for _, ref := range refs {
		hashes = append(hashes, hashOfRef(ref))
	}
	byHash, byRef := make(map[string]evidence.Cell, len(cells)), make(map[string]store.Ref, len(refs))
	for i, ref := range refs {
		byRef[hashes[i]] = ref
	}
	for _, c := range cells {
		hash := hashOfCell(c)
		if _, again := byHash[hash]; !again {
			byHash[hash] = c
			hashes = append(hashes, hash)
		}
	}
	q, args, err := reading(hashes[:len(refs)], hashes[len(refs):])
	if err != nil {
		return err
	}
	err = t.each(q, args, func(scan func(...any) error) error {
		var what int
		var hash, text, more string
		var p evidence.Part
		var number int64 // of a cell, its half-life; of a record, its moment
		err := scanTally(scan, &p.Tally, &what, &hash, &text, &more, &number)
		if err != nil {
			return err
		}
		if what == 0 {
			at, revision := evidence.Instant(number), int64(p.Tally.Landmark)
			records[hash], err = recordOf(byRef[hash], at, revision, text, more)
			return err
		}
		p.Cell, p.Channel, p.Source = byHash[hash], text, more
		p.Tally = restated(p.Tally, time.Duration(number)*time.Microsecond)
		parts[hash] = append(parts[hash], p)
		return nil
	})
	for _, key := range hashes[len(refs):] {
		slices.SortFunc(parts[key], func(a, b evidence.Part) int {
			return cmp.Or(cmp.Compare(a.Channel, b.Channel), cmp.Compare(a.Source, b.Source))
		})
	}
	return err
}

// reading returns the query that reads records and cells by their hashes, and its arguments. A read
// of cells alone has a statement without records, which is shorter to plan.
func reading(refs, cells []string) (q *query, args []any, err error) {
	cellRows, err := column(cells)
	if len(refs) == 0 || err != nil {
		return readSome, []any{cellRows}, err
	}
	refRows, err := column(refs)
	return readBoth, []any{refRows, cellRows}, err
}

// recordOf makes a record of its stored row, or an error that names it. The body is not decoded
// until it is used.
func recordOf(ref store.Ref, at evidence.Instant, revision int64, keys, body string) (
	r store.Record, err error,
) {
	r = store.Record{Ref: ref, Revision: uint64(revision), At: at.Time()}
	r.Body = store.Raw([]byte(body))
	r.Keys, err = keysOf(ref, keys)
	return r, err
}

// keysOf returns the keys of a record, from the text that textOfKeys wrote. A record without keys
// has nil, as in memory.
func keysOf(ref store.Ref, text string) (keys []string, err error) {
	if json.Unmarshal([]byte(text), &keys) != nil {
		return nil, damaged("the keys of record %q of kind %q", ref.ID, ref.Kind)
	}
	if len(keys) == 0 {
		return nil, nil
	}
	return keys, nil
}

// The pages of Find go by moment and number, in the index of a kind or of a key. The bounds are
// exclusive. Where there are more keys, all of them are looked up.
const (
	foundColumns = `SELECT r.seq, r.at, r.id, r.revision, r.keys, r.body FROM `
	// ofKind reads a range of the index heed_record_at.
	ofKind = foundColumns + `heed_record r WHERE r.kind = $1 AND (r.at, r.seq) > ($2, $3)
		AND (r.at, r.seq) < ($4, $5) `
	// ofKey reads a range of the primary key of heed_key, which begins with the hash of the kind and
	// the key.
	ofKey = foundColumns + `heed_key k JOIN heed_record r ON r.seq = k.seq
		WHERE k.hash = $1 AND (k.at, k.seq) > ($2, $3) AND (k.at, k.seq) < ($4, $5) `
	// ofKeys reads the range of the first key, and looks up each further key of a record. So a caller
	// should give the rarest key first.
	ofKeys = ofKey + `AND NOT EXISTS (SELECT 1 FROM json_each($6) AS other WHERE NOT EXISTS (
			SELECT 1 FROM heed_key o WHERE o.hash = other.value->>0 AND o.at = k.at AND o.seq = k.seq)) `
)

// finds are the queries by the number of keys (0, 1 and more) and by the order, the newest and the
// oldest first. Each is a range of one index in its order, so a page costs the same anywhere in a
// list.
var finds = [3][2]*query{
	{both(ofKind + `ORDER BY r.at DESC, r.seq DESC LIMIT $6`), both(ofKind + `ORDER BY r.at, r.seq LIMIT $6`)},
	{both(ofKey + `ORDER BY k.at DESC, k.seq DESC LIMIT $6`), both(ofKey + `ORDER BY k.at, k.seq LIMIT $6`)},
	{both(ofKeys + `ORDER BY k.at DESC, k.seq DESC LIMIT $7`), both(ofKeys + `ORDER BY k.at, k.seq LIMIT $7`)},
}

// A search is a query on its way, and the range of what is left of it.
//
// It goes page by page and holds no transaction, so a loop may take long. A record that is written
// during the loop may move to another place, and is yielded at most once.
type search struct {
	store.Query
	stores.Range
	// key is the kind, or the hash of the first key, and others are the hashes of further keys as
	// JSON.
	query       *query
	key, others string
	had         map[int64]bool // the numbers of the records that were found
}

// newSearch checks a query and picks its statement: by kind, by one key, or by one key with others
// to check. The first key walks the index, so it decides how many rows are read.
func newSearch(q store.Query) (*search, error) {
	left, err := stores.RangeOf(q)
	if err != nil {
		return nil, err
	}
	order := 0
	if q.Oldest {
		order = 1
	}
	s := &search{Query: q, Range: left, key: q.Kind, had: make(map[int64]bool)}
	s.query = finds[min(len(q.Keys), 2)][order]
	if len(q.Keys) == 0 {
		return s, nil
	}
	hashes := make([]string, len(q.Keys))
	for i, key := range q.Keys {
		hashes[i] = hashOf(q.Kind, key)
	}
	s.key = hashes[0]
	s.others, err = column(hashes[1:])
	return s, err
}

// page reads the next records, at most n. It reports whether there may be more. It leaves out a
// record that moved since it was found. The range becomes shorter by each row that was read, so the
// next page begins behind it.
func (s *search) page(
	ctx context.Context, db *database, n int,
) (all []store.Record, more bool, err error) {
	after, before := s.Range.After, s.Before
	args := []any{s.key, int64(after.At), after.Seq, int64(before.At), before.Seq}
	if len(s.Keys) > 1 {
		args = append(args, s.others)
	}
	args = append(args, n)
	rows := 0
	err = db.read(ctx, func(t *tx) error {
		return t.each(s.query, args, func(scan func(...any) error) error {
			var p stores.Position
			var revision int64
			var id, keys, body string
			if err := scan(&p.Seq, &p.At, &id, &revision, &keys, &body); err != nil {
				return err
			}
			// A record that moved during the loop comes a second time, and counts as a row: or else a
			// full page would look like the last one.
			rows++
			s.Pass(p, s.Oldest)
			ref := store.Ref{Kind: s.Kind, ID: id}
			r, err := recordOf(ref, p.At, revision, keys, body)
			if err != nil || s.had[p.Seq] {
				return err
			}
			s.had[p.Seq] = true
			r.Place = p.String()
			all = append(all, r)
			return nil
		})
	})
	return all, rows == n, err
}

// Find implements [store.Store]. It reads a page at a time. No connection is held while the loop's
// body runs.
func (s *Store) Find(ctx context.Context, q store.Query) iter.Seq2[store.Record, error] {
	if q.Kind == store.Declarations {
		return s.declarations(ctx)
	}
	return func(yield func(store.Record, error) bool) {
		search, err := newSearch(q)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			yield(store.Record{}, fmt.Errorf("sqlstore: find: %w", err))
			return
		}
		left := cmp.Or(q.Limit, int(^uint(0)>>1))
		// Most loops end early, so the first page is small.
		for size := 100; left > 0; size = pageSize {
			all, more, err := search.page(ctx, s.db, min(size, left))
			stop := err != nil || !more
			yieldAll(ctx, all, err, func(r store.Record, err error) bool {
				left--
				goOn := yield(r, err) && err == nil
				stop = stop || !goOn
				return goOn
			})
			if stop {
				return
			}
		}
	}
}

var (
	// Each step finds the next scope by the index, however many cells there are of one. Only scopes
	// with sums count, as cells without evidence are not listed.
	findScopes = both(`WITH RECURSIVE scopes (scope) AS (
			SELECT (SELECT c.scope FROM heed_cell c JOIN heed_tally t ON t.cell = c.cell
				WHERE c.kind = $1 ORDER BY c.scope LIMIT 1)
			UNION ALL
			SELECT (SELECT c.scope FROM heed_cell c JOIN heed_tally t ON t.cell = c.cell
				WHERE c.kind = $1 AND c.scope > s.scope ORDER BY c.scope LIMIT 1) FROM scopes s
					WHERE s.scope IS NOT NULL
		)
		SELECT scope FROM scopes WHERE scope IS NOT NULL ORDER BY scope`)

	// findHistory reads a page of a cell's history, the newest first, by the index
	// heed_observation_cell.
	findHistory = both(`SELECT ` + observationColumns + ` FROM heed_observation
		WHERE cell = $1 AND (happened, seq) < ($2, $3) ORDER BY happened DESC, seq DESC LIMIT 500`)
)

// Scopes implements [store.Store]. Scopes are few, so they are read at once. They are as of one
// moment.
func (s *Store) Scopes(ctx context.Context, kind string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		var scopes []string
		err := s.db.read(ctx, func(t *tx) (err error) {
			scopes, err = t.texts(findScopes, kind)
			return err
		})
		yieldAll(ctx, scopes, err, yield)
	}
}

// History implements [store.Store]. It reads a page at a time, each after the last observation of
// the page before, so a commit during the loop neither repeats nor hides an observation that was
// there. An observation without a number before it comes last, so the walk begins at the greatest
// moment and number.
func (s *Store) History(
	ctx context.Context, c evidence.Cell,
) iter.Seq2[evidence.Observation, error] {
	return func(yield func(evidence.Observation, error) bool) {
		happened, seq, more := maxInt64, maxInt64, true
		for more {
			var page []evidence.Observation
			err := s.db.read(ctx, func(t *tx) error {
				args := []any{hashOfCell(c), happened, seq}
				return t.each(findHistory, args, func(scan func(...any) error) error {
					o, err := scanObservation(scan)
					seq, happened, o.Cell = o.seq, int64(o.happened), c
					page = append(page, o.Observation)
					return err
				})
			})
			more = err == nil && len(page) == pageSize
			yieldAll(ctx, page, err, func(o evidence.Observation, err error) bool {
				goOn := yield(o, err) && err == nil
				more = more && goOn
				return goOn
			})
		}
	}
}

// findKinds reads the kinds of cells that have evidence.
var findKinds = kindsIn("heed_cell", ` AND (SELECT 1 FROM heed_cell c
	JOIN heed_tally t ON t.cell = c.cell WHERE c.kind = k.kind ORDER BY c.scope LIMIT 1) = 1`)

var findRecordKinds = kindsIn("heed_record", "")

// kindsIn finds each next kind by the index of a table, however many rows there are of one.
func kindsIn(table, more string) *query {
	next := `SELECT min(kind) FROM ` + table
	return both(`WITH RECURSIVE k (kind) AS (` + next + `
		UNION ALL SELECT (` + next + ` WHERE kind > k.kind) FROM k WHERE k.kind IS NOT NULL)
		SELECT kind FROM k WHERE kind IS NOT NULL` + more + ` ORDER BY kind`)
}

package sqlstore

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// A recordRow is a stored record without its body.
type recordRow struct {
	store.Ref
	// seq is the number of the first writing, which is the primary key. keys are the ones that the
	// stored row has.
	seq      int64
	at       evidence.Instant
	revision uint64
	keys     []string
}

// A writing is a record to write, as the tables take it.
type writing struct {
	// The record is the caller's and is not changed.
	*store.Record
	// ref is the hash of the kind and the id, which finds the row. batch is the index of the batch,
	// for its receipt and for blame. body is the JSON, "" for a removal.
	ref   string
	batch int
	keys  []string // sorted, each once
	body  string
}

// isNew reports whether the record is inserted and not updated.
func (w *writing) isNew() bool { return w.Revision == 0 || w.Revision == store.Once }

// writings returns the records to write. Batches that are known are left out with all their
// records.
func (c *change) writings() (all []writing, err error) {
	for i := range c.batches {
		if c.known[i] {
			continue
		}
		for k := range c.batches[i].Records {
			w := writing{Record: &c.batches[i].Records[k], batch: i}
			if err := w.prepare(); err != nil {
				return nil, err
			}
			all = append(all, w)
		}
	}
	return all, nil
}

// putRecords checks the expected revisions, and writes the records: first those that must be there,
// under the lock of their rows, then those that are new. Evidence was added before, so a conflict
// here rolls the evidence back as well.
func (c *change) putRecords() error {
	var added, changed []writing
	all, err := c.writings()
	if err != nil {
		return err
	}
	for i := range all {
		if all[i].isNew() {
			added = append(added, all[i])
		} else {
			changed = append(changed, all[i])
		}
	}
	// What is expected is locked before anything is written, so that it holds until the commit. A
	// commit that only expects, and writes no record, ends here.
	if err := c.expect(); err != nil {
		return err
	}
	if len(added)+len(changed) == 0 {
		return nil
	}
	if err := c.changeRecords(changed); err != nil {
		return err
	}
	return c.addRecords(added)
}

// prepare encodes the record and checks its size. A text that is no UTF-8 is made valid, because
// PostgreSQL refuses it. The size is checked of the JSON, which alone shows it.
func (w *writing) prepare() error {
	w.ref = hashOfRef(w.Ref)
	if w.Body.IsZero() {
		return nil
	}
	text, err := w.Body.JSON()
	if err != nil {
		return err
	}
	if err := store.CheckBody(w.Ref, text); err != nil {
		return err
	}
	if !utf8.Valid(text) {
		text = bytes.ToValidUTF8(text, []byte("\uFFFD"))
	}
	w.body = string(text)
	w.keys = distinct(w.Keys)
	return nil
}

// distinct returns keys sorted, each once, because each is a row.
func distinct(keys []string) []string {
	keys = slices.Clone(keys)
	slices.Sort(keys)
	return slices.Compact(keys)
}

var (
	// expectRecords lets other commits rely on the same records, and has those wait that write them.
	expectRecords = locking(`FOR SHARE`)
	// lockRecords is for records that this commit writes.
	lockRecords = locking(`FOR UPDATE`)
	// While there is a row that is not committed, no other connection can write one of its id.
	// holdPlaces puts a row in the place of each, and freePlaces takes it out again.
	holdPlaces = both(`INSERT INTO heed_record (ref, kind, id, at, revision, keys, body)
		SELECT value->>0, '', '', 0, 0, '[]', '' FROM json_each($1) WHERE true ON CONFLICT DO NOTHING`)
	freePlaces = both(`DELETE FROM heed_record WHERE ref IN (SELECT value->>0 FROM json_each($1))`)
)

// locking finds rows of records, which PostgreSQL locks. SQLite has one writer, so there is no lock
// to take. The rows are locked in the order of their hashes, as everywhere. The unique index on ref
// serves both.
func locking(how string) *query {
	const find = `SELECT ref, seq, kind, id, at, revision, keys FROM heed_record WHERE ref `
	return either(find+`IN (SELECT value->>0 FROM json_each($1))`,
		find+`= ANY (ARRAY(SELECT value->>0 FROM jsonb_array_elements($1))) ORDER BY ref `+how)
}

// rowsOfRecords returns the rows of records that there are, by the hashes of their refs. Bodies are
// not read, since a writing replaces the whole body.
func (c *change) rowsOfRecords(q *query, refs []string) (map[string]*recordRow, error) {
	found := make(map[string]*recordRow, len(refs))
	rows, err := column(refs)
	if err != nil {
		return nil, err
	}
	err = c.t.each(q, []any{rows}, func(scan func(...any) error) error {
		r := &recordRow{}
		var ref, keys string
		err := scan(&ref, &r.seq, &r.Kind, &r.ID, &r.at, &r.revision, &keys)
		if err == nil {
			r.keys, err = keysOf(r.Ref, keys)
		}
		found[ref] = r
		return err
	})
	return found, err
}

// hold locks records before all else, in the order in which heed_commit does it: by their hashes.
// So two commits, in steps or by the function, do not wait for each other's records. A commit that
// has the store alone needs no locks of rows.
func (c *change) hold() error {
	if c.t.db.dialect.embedded() || c.alone {
		return nil
	}
	type row struct {
		ref  string
		lock *query
	}
	var rows []row
	for i := range c.batches {
		for _, e := range c.batches[i].Expect {
			rows = append(rows, row{hashOfRef(e.Ref), expectRecords})
		}
		for k := range c.batches[i].Records {
			rows = append(rows, row{hashOfRef(c.batches[i].Records[k].Ref), lockRecords})
		}
	}
	slices.SortFunc(rows, func(a, b row) int { return strings.Compare(a.ref, b.ref) })
	// One statement for each run of the same lock, so that the order by hash is kept across both
	// kinds of locks.
	for len(rows) > 0 { // the next rows that have the same sort of lock
		var refs []string
		lock := rows[0].lock
		for len(rows) > 0 && rows[0].lock == lock {
			refs, rows = append(refs, rows[0].ref), rows[1:]
		}
		if _, err := c.rowsOfRecords(lock, refs); err != nil {
			return err
		}
	}
	return nil
}

// conflict is the error of a batch that relies on a revision that is not current. The blamed batch
// is then committed apart from the others that were to be committed with it.
func (c *change) conflict(batch int, kind string) error {
	c.blamed = batch
	return fmt.Errorf("%s: %w", kind, heed.ErrConflict)
}

// leavingKind is the kind of the records of tenants that leave: see [store.Job]. A commit for a
// tenant expects that there is no such record. The writer of such a record has the store alone, so
// this can't change while another commit runs.
const leavingKind = "heed.leaving"

// leaves reports whether a tenant begins to leave with these batches.
func leaves(batches []store.Batch) bool {
	return slices.ContainsFunc(batches, func(b store.Batch) bool {
		return slices.ContainsFunc(b.Records, func(r store.Record) bool {
			return r.Kind == leavingKind && !r.Body.IsZero()
		})
	})
}

// expected returns the hashes of the records that are expected, and of those that must not be
// there, sorted, each once: first those that others may write, then the records of leavingKind. The
// function heed_commit treats the three lists differently: it locks rows, puts rows in place, and
// only looks.
func (c *change) expected() (refs, absent, leaving []string) {
	for i := range c.batches {
		for _, e := range c.batches[i].Expect {
			if c.known[i] {
				break
			}
			refs = append(refs, hashOfRef(e.Ref))
			switch {
			case e.Revision > 0:
			case e.Kind == leavingKind:
				leaving = append(leaving, hashOfRef(e.Ref))
			default:
				absent = append(absent, hashOfRef(e.Ref))
			}
		}
	}
	slices.Sort(absent)
	slices.Sort(leaving)
	return refs, slices.Compact(absent), slices.Compact(leaving)
}

// expect checks the revisions that are expected, which then stay as they are until the commit. A
// revision of 0 means that there must be no record. An error rolls back what was put in place.
func (c *change) expect() error {
	refs, absent, _ := c.expected()
	if len(refs) == 0 {
		return nil
	}
	found, err := c.rowsOfRecords(expectRecords, refs)
	if err != nil {
		return err
	}
	for i := range c.batches {
		for _, e := range c.batches[i].Expect {
			revision := uint64(0)
			if row := found[hashOfRef(e.Ref)]; row != nil {
				revision = row.revision
			}
			if !c.known[i] && revision != e.Revision {
				return c.conflict(i, e.Kind)
			}
		}
	}
	if c.t.db.dialect.embedded() || len(absent) == 0 {
		return nil
	}
	rows, err := column(absent)
	if err != nil {
		return err
	}
	// There is no row to lock for a record that must be absent. So the commit puts one in its
	// place, which makes a writer of that record wait, and removes it at once. If another writer
	// has put a row there before, the count is too small.
	switch held, err := c.t.exec(holdPlaces, rows); {
	case err != nil:
		return err
	case held < int64(len(absent)):
		return heed.ErrConflict
	}
	_, err = c.t.exec(freePlaces, rows)
	return err
}

var (
	// writeRecords updates records by their numbers, which is the primary key. PostgreSQL takes all
	// of them in one statement. The array keeps it from joining the whole table with the rows.
	writeRecords = either(`UPDATE heed_record SET revision = $1, at = $2, keys = $3, body = $4
		WHERE seq = $5`,
		`UPDATE heed_record SET revision = CAST($1 AS BIGINT), at = CAST(value->>1 AS BIGINT),
			keys = value->>2, body = value->>3
		FROM jsonb_array_elements($2)
		WHERE seq = ANY (ARRAY(SELECT CAST(one->>0 AS BIGINT) FROM jsonb_array_elements($2) AS one))
			AND seq = CAST(value->>0 AS BIGINT)`)
	// dropRecords removes records by their numbers.
	dropRecords = both(`DELETE FROM heed_record
		WHERE seq IN (SELECT CAST(value->>0 AS BIGINT) FROM json_each($1))`)
	// addKeys and dropKeys change what finds records by a key: the hash of the kind and the key, the
	// record's moment and its number, which together are the primary key. A key that is there already
	// is left as it is.
	addKeys  = inserting(`INSERT INTO heed_key (hash, at, seq)`, `tii`, ` ON CONFLICT DO NOTHING`)
	dropKeys = inserting(`DELETE FROM heed_key WHERE (hash, at, seq) IN (`, `tii`, `)`)
)

func init() { // PostgreSQL looks each key up by itself, whatever its statistics of the table
	dropKeys.json.texts[Postgres] = `DELETE FROM heed_key WHERE ctid = ANY (ARRAY(
		SELECT k.ctid FROM jsonb_array_elements($1) AS gone CROSS JOIN LATERAL (
			SELECT ctid FROM heed_key WHERE hash = gone->>0
				AND at = CAST(gone->>1 AS BIGINT) AND seq = CAST(gone->>2 AS BIGINT) OFFSET 0
		) AS k))`
}

// changeRecords writes and removes records that must be there. The rows were locked by hold; here
// they are read once more, because SQLite does not lock and a commit alone does not either. Keys
// are compared sorted, so another order of the same keys changes no row.
func (c *change) changeRecords(all []writing) error {
	if len(all) == 0 {
		return nil
	}
	refs := make([]string, len(all))
	for i := range all {
		refs[i] = all[i].ref
	}
	found, err := c.rowsOfRecords(lockRecords, refs)
	if err != nil {
		return err
	}
	var written, removed, keys, lost [][]any
	for i := range all {
		w := &all[i]
		row := found[w.ref]
		if row == nil || row.revision != w.Revision {
			return c.conflict(w.batch, w.Kind)
		}
		// The rows of keys have no reference to the record, so they are removed with it, by the keys
		// that the record had.
		if w.Body.IsZero() {
			removed = append(removed, []any{row.seq})
			lost = append(lost, keyRows(w.Kind, row.at, row.seq, row.keys, nil)...)
			continue
		}
		text, err := textOfKeys(w.Keys)
		if err != nil {
			return err
		}
		at := evidence.InstantOf(w.At)
		written = append(written, []any{row.seq, int64(at), string(text), w.body})
		c.receipts[w.batch].Revision = c.revision
		before, after := distinct(row.keys), w.keys
		// The index of keys has the moment in it. As long as that stays, only keys that came or went
		// are touched, which for most updates are none.
		if at == row.at {
			keys = append(keys, keyRows(w.Kind, at, row.seq, after, before)...)
			lost = append(lost, keyRows(w.Kind, at, row.seq, before, after)...)
		} else {
			keys = append(keys, keyRows(w.Kind, at, row.seq, after, nil)...)
			lost = append(lost, keyRows(w.Kind, row.at, row.seq, before, nil)...)
		}
	}
	return c.writeRows(written, removed, keys, lost)
}

// textOfKeys is how the row of a record has its keys: a list, so that SQL can take it apart.
func textOfKeys(keys []string) ([]byte, error) { return json.Marshal(append([]string{}, keys...)) }

// keyRows are the rows of some keys of a record, without others. A key is hashed together with its
// kind, so one index serves all kinds.
func keyRows(kind string, at evidence.Instant, seq int64, keys, without []string) (rows [][]any) {
	for _, key := range keys {
		if !slices.Contains(without, key) {
			rows = append(rows, []any{hashOf(kind, key), int64(at), seq})
		}
	}
	return rows
}

// writeRows updates and removes rows of records, and changes keys. No key is both lost and added. A
// row of written has the number of the record, the moment, the keys and the body. Removed records
// lose their keys by the list of lost ones.
func (c *change) writeRows(written, removed, keys, lost [][]any) error {
	if !c.t.db.dialect.embedded() {
		if err := c.t.execRows(writeRecords, written, int64(c.revision)); err != nil {
			return err
		}
		written = nil
	}
	// SQLite runs in this process, so a statement for each row costs no round trip. PostgreSQL had
	// all of them in one, above.
	for _, w := range written {
		if _, err := c.t.exec(writeRecords, int64(c.revision), w[1], w[2], w[3], w[0]); err != nil {
			return err
		}
	}
	if err := c.t.execRows(dropRecords, removed); err != nil {
		return err
	}
	if err := c.t.insert(dropKeys, lost, nil); err != nil {
		return err
	}
	return c.t.insert(addKeys, keys, nil)
}

// insertRecords returns the numbers of the records that were not there, by the unique index on ref.
var insertRecords = inserting(`INSERT INTO heed_record
	(ref, kind, id, at, keys, body, revision)`, `tttitti`, `
		ON CONFLICT DO NOTHING RETURNING ref, seq`)

// addRecords writes records that must not be there, or may be left. Limits of kinds are checked
// last, when the numbers of the new records are known.
func (c *change) addRecords(all []writing) error {
	if len(all) == 0 {
		return nil
	}
	rows := make([][]any, len(all))
	for i := range all {
		w := &all[i]
		text, err := textOfKeys(w.Keys)
		if err != nil {
			return err
		}
		rows[i] = []any{
			w.ref, w.Kind, w.ID, int64(evidence.InstantOf(w.At)), string(text), w.body, int64(c.revision),
		}
	}
	seqs := make(map[string]int64, len(rows)) // of the records that were not there
	// Records that are there return no row. So whether a record is new is decided by the insertion,
	// and not by a look before it, which another commit could overtake.
	err := c.t.insert(insertRecords, rows, func(scan func(...any) error) error {
		var ref string
		var seq int64
		err := scan(&ref, &seq)
		seqs[ref] = seq
		return err
	})
	if err != nil {
		return err
	}
	var keyed [][]any
	last := make(map[*keptKind]int64)
	for i := range all {
		w := &all[i]
		seq, added := seqs[w.ref]
		switch {
		case added:
			c.receipts[w.batch].Revision = c.revision
			keyed = append(keyed, keyRows(w.Kind, evidence.InstantOf(w.At), seq, w.keys, nil)...)
			kind := c.store.kinds.get(w.Kind)
			last[kind] = max(last[kind], seq)
		// It was there already, which is as well for a record that is written once.
		case w.Revision == store.Once:
			c.receipts[w.batch].Left = append(c.receipts[w.batch].Left, w.Ref)
		default:
			return c.conflict(w.batch, w.Kind)
		}
	}
	if err := c.t.insert(addKeys, keyed, nil); err != nil {
		return err
	}
	// Each kind is counted once for the whole commit, after its last record is in.
	for kind, seq := range last {
		if err := c.limit(kind, seq); err != nil {
			return err
		}
	}
	return nil
}

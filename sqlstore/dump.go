package sqlstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/dump"
	"github.com/heedhq/heed/internal/stores"
	"github.com/heedhq/heed/internal/text"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/store"
)

var (
	// lastRevision reads the number of the last commit that wrote records. A sequence is outside of
	// snapshots, so the number may be greater than those in the dump, and never less.
	lastRevision = either(`SELECT revision FROM heed_store`,
		`SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM heed_revision`)
	// The queries of a dump read each table in the order of an index, so that no engine sorts it, and
	// two dumps of one state are equal. For dumpCells that is the primary key of heed_cell.
	dumpCells = both(`SELECT ` + cellColumns + ` FROM heed_cell ORDER BY cell`)
	// dumpTallies reads in the order of the primary key of heed_tally. The half-life is the cell's:
	// the landmark is stored in steps of it.
	dumpTallies = both(`SELECT t.cell, t.channel, t.source,
			(SELECT c.half_life FROM heed_cell c WHERE c.cell = t.cell),
			t.lost_positive, t.lost_negative, t.lost_neutral, t.lost_source, ` + tallySums + `
		FROM heed_tally t ORDER BY t.cell, t.channel, t.source`)
	// dumpObservations, dumpLost and dumpIDs read in the order of the primary keys of their tables.
	dumpObservations = both(`SELECT ` + observationColumns + ` FROM heed_observation ORDER BY seq`)
	dumpLost         = both(`SELECT id, cell, recorded FROM heed_lost ORDER BY id, cell`)
	dumpIDs          = both(`SELECT id, recorded, traced, retracted FROM heed_id ORDER BY id`)
	// dumpRecords reads in the order of first writing, and leaves out versions, which a load raises
	// anyway.
	dumpRecords = both(`SELECT kind, id, revision, at, keys, body FROM heed_record
		WHERE kind <> '` + versionKind + `' ORDER BY seq`)
)

// Dump writes the whole content of the store at one moment as lines of JSON. Every store can
// [Store.Load] it. The host's own tables are not in it. Commits go on in the meantime.
//
// Forgotten people are not in a dump. It has the names of all others, so protect it like the
// database. An error of the writer is returned, and what was written until then is refused by Load,
// because its end is missing. It reads one snapshot, which SQLite keeps in the log and PostgreSQL
// in old rows until Dump returns.
func (s *Store) Dump(ctx context.Context, to io.Writer) error {
	return wrap("dump", s.db.snapshot(ctx, func(t *tx) error {
		// the first statement, so that the snapshot is no newer than the revision
		kinds, err := t.declaredKinds()
		if err != nil {
			return err
		}
		var revision uint64
		if err := t.one(lastRevision, nil, &revision); err != nil {
			return err
		}
		out, err := dump.NewWriter(to, max(revision, 1))
		if err != nil {
			return err
		}
		for i := range kinds {
			if err := out.Write(dump.Row{Kind: &kinds[i]}); err != nil {
				return err
			}
		}
		for _, part := range dumpParts {
			err := t.each(part.q, nil, func(scan func(...any) error) error {
				row, err := part.row(scan)
				if err == nil {
					err = out.Write(row)
				}
				return err
			})
			if err != nil {
				return err
			}
		}
		return out.Close()
	}))
}

// dumpParts are the tables in the order of a dump. Cells come before tallies and observations,
// which name their cell by its hash. Each has its query, and a function that makes a row of the
// dump from one row of the table.
var dumpParts = []struct {
	q   *query
	row func(scan func(...any) error) (dump.Row, error)
}{
	{dumpCells, func(scan func(...any) error) (dump.Row, error) {
		r, err := scanCell(scan)
		c := &dump.Cell{
			Kind: r.cell.Kind, Scope: r.cell.Scope, Item: r.cell.Item, Name: r.cell.Name,
			HalfLife: r.policy.HalfLife.Microseconds(), ByOrigin: r.policy.ByOrigin, Restart: r.restart,
		}
		return dump.Row{Cell: c}, hashes(err, r.key, &c.Hash)
	}},
	{dumpTallies, dumpedTally},
	{dumpObservations, func(scan func(...any) error) (dump.Row, error) {
		k, err := scanObservation(scan)
		d := &dump.Observation{
			At: k.happened, Recorded: k.recorded, Source: k.Source, ID: k.ID, Channel: k.Channel,
			Session: k.Session,
			Reward:  k.Reward, Weight: k.Weight, Share: k.Share,
		}
		return dump.Row{Observation: d}, hashes(err, k.key, &d.Cell)
	}},
	{dumpLost, func(scan func(...any) error) (dump.Row, error) {
		d := &dump.Lost{}
		var id, cell string
		err := scan(&id, &cell, &d.Recorded)
		return dump.Row{Lost: d}, hashes(hashes(err, id, &d.ID), cell, &d.Cell)
	}},
	{dumpIDs, func(scan func(...any) error) (dump.Row, error) {
		d := &dump.ID{}
		var id string
		var traced, retracted int64
		err := scan(&id, &d.Recorded, &traced, &retracted)
		d.Untraced, d.Retracted = traced == 0, retracted == 1
		return dump.Row{ID: d}, hashes(err, id, &d.ID)
	}},
	{dumpRecords, func(scan func(...any) error) (dump.Row, error) {
		d := &dump.Record{}
		var keys, body string
		err := scan(&d.Kind, &d.ID, &d.Revision, &d.At, &keys, &body)
		if err == nil {
			d.Keys, err = keysOf(store.Ref{Kind: d.Kind, ID: d.ID}, keys)
		}
		if d.Body = json.RawMessage(body); err == nil && !json.Valid(d.Body) {
			err = damaged("record %q of kind %q", d.ID, d.Kind)
		}
		return dump.Row{Record: d}, err
	}},
}

// hashes parses a hash that a row holds, unless there was an error before. So a row with two hashes
// needs one check of the error.
func hashes(err error, text string, into *text.Hash) error {
	if err == nil && into.UnmarshalText([]byte(text)) != nil {
		err = damaged("the hash %q of a row", text)
	}
	return err
}

// dumpedTally reads a row of dumpTallies. A landmark is stored as a number of steps, and written as
// a moment. So the dump does not depend on the length of a step. The columns are in the order of
// the query.
func dumpedTally(scan func(...any) error) (dump.Row, error) {
	d := &dump.Tally{}
	var cell string
	var halfLife, landmark, lostSource int64
	err := scan(&cell, &d.Channel, &d.Source, &halfLife, &d.Positive.Lost, &d.Negative.Lost,
		&d.Neutral.Lost, &lostSource,
		&landmark, &d.Mass, &d.Squares, &d.Reward, &d.RewardSquares,
		&d.Positive.N, &d.Negative.N, &d.Neutral.N, &d.Positive.Last, &d.Negative.Last, &d.Neutral.Last)
	d.Landmark, d.LostSource = evidence.Instant(landmark*valid.LandmarkStep*halfLife), lostSource == 1
	return dump.Row{Tally: d}, hashes(err, cell, &d.Cell)
}

var (
	// loadEmpty finds a row where there is anything but kinds. The rows of versions are no content of
	// a store.
	loadEmpty = both(`SELECT 1 FROM heed_cell UNION ALL SELECT 1 FROM heed_id UNION ALL SELECT 1
		FROM heed_record WHERE kind <> '` + versionKind + `' LIMIT 1`)
	// loadIDs returns the ids that it made known. The 0 is in the place of a record's number.
	loadIDs = inserting(`INSERT INTO heed_id (id, recorded, traced, retracted)`, `tiii`,
		` ON CONFLICT DO NOTHING RETURNING id, 0`)
	// unknownLoaded finds ids that came without a row of their own, and would count again.
	unknownLoaded = both(`SELECT id, max(recorded)
		FROM (SELECT id, recorded FROM heed_observation UNION ALL SELECT id, recorded
			FROM heed_lost) AS loaded
		WHERE NOT EXISTS (SELECT 1 FROM heed_id k WHERE k.id = loaded.id) GROUP BY id LIMIT 10000`)

	// raiseRevision has the next commit draw a number above all numbers in the dump.
	raiseRevision = either(`UPDATE heed_store SET revision = max(revision, $1)`,
		`SELECT setval('heed_revision', greatest(nextval('heed_revision'), CAST($1 AS BIGINT)))`)

	// analyze has PostgreSQL look at what was loaded, which it otherwise does a while later, and
	// guesses until then. SQLite finds its indexes without that. Having looked, it would scan tables
	// that are small as yet.
	analyzeAll = either(``,
		`ANALYZE heed_cell, heed_tally, heed_id, heed_observation, heed_lost, heed_record, heed_key`)
)

// Load reads what a store has dumped into this one: all of it, or it returns an error and leaves
// the store as it was. If the store is not empty, the error is [heed.ErrConflict]; kinds may be
// declared. Lines that are not lines of a dump, or of a newer one, or of one that was cut off or
// changed, are a [*heed.InputError]. Other writers wait until Load returned. Versions rise and the
// cache is emptied, so copies of earlier content are not used any more.
//
// [heed.ErrConflict]: https://pkg.go.dev/github.com/heedhq/heed#ErrConflict
func (s *Store) Load(ctx context.Context, from io.Reader) error {
	c := &change{store: s, alone: true}
	err := ctx.Err()
	if err == nil {
		err = s.db.writeOnce(ctx, c.enter, func(t *tx) error { // what was read can't be read again
			c.t = t
			return c.load(from)
		})
	}
	if s.cache != nil {
		s.cache.clear()
	}
	return wrap("load", err)
}

// load reads a dump in one transaction, so a dump that turns out to be cut off has no effect. The
// transaction has the store alone: no commit may count an id that the dump has, and is not loaded
// yet.
func (c *change) load(from io.Reader) error {
	switch found, err := c.t.finds(loadEmpty); {
	case err != nil:
		return err
	case found:
		return fmt.Errorf("the store is not empty: %w", heed.ErrConflict)
	}
	in, err := dump.NewLoader(from)
	if err != nil {
		return err
	}
	l := &loading{change: c, in: in, tenants: map[string]bool{"": true}}
	for {
		row, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = l.take(row)
		}
		if err != nil {
			return err
		}
	}
	if err := l.flush(); err != nil {
		return err
	}
	// Ids first, then versions: copies of the records from before the load must be seen to be
	// stale.
	if err := c.learnLoaded(); err != nil {
		return err
	}
	if err := c.raiseAll(l.tenants); err != nil {
		return err
	}
	// Revisions continue above the dump's, so that a loaded record's revision never comes again.
	_, err = c.t.exec(raiseRevision, int64(in.Revision))
	if err == nil && !c.t.db.dialect.embedded() {
		_, err = c.t.exec(analyzeAll)
	}
	return err
}

// learnLoaded makes known the ids that came without a row of their own.
func (c *change) learnLoaded() error {
	for {
		rows, err := collect(c.t, unknownLoaded, nil, func(scan func(...any) error) ([]any, error) {
			var id string
			var recorded int64
			err := scan(&id, &recorded)
			return []any{id, recorded, 1, 0}, err
		})
		if err != nil || len(rows) == 0 {
			return err
		}
		if err := c.t.insert(loadIDs, rows, nil); err != nil {
			return err
		}
	}
}

// A loading collects rows, to write many of them in one statement. Rows of a dump come sorted by
// their table, so there is one sort of rows at a time.
type loading struct {
	*change
	in      *dump.Reader
	bulk    *bulk // of the rows that wait to be written
	rows    [][]any
	lines   []int                  // of the rows
	records map[string]dump.Record // the same, without their bodies
	size    int                    // of their bodies
	tenants map[string]bool        // who has records
}

// take sorts a row of the dump into the statement that writes it. The reader of the dump has
// checked the row against those before it, for example that an observation's cell was there. The
// numbers of observations are given again in the order of the dump, so their order stays.
func (l *loading) take(row dump.Row) error {
	switch {
	case row.Kind != nil:
		return l.kind(*row.Kind)
	case row.Cell != nil:
		d := row.Cell
		return l.add(makeCells, d.Hash.String(), d.Kind, d.Scope, d.Item, d.Name, d.HalfLife,
			flag(d.ByOrigin), lotOf(d.Item), int64(d.Restart))
	case row.Tally != nil:
		return l.add(addSums, loadedTally(row.Tally, l.in.CellOf(row.Tally.Cell))...)
	case row.Observation != nil:
		d := row.Observation
		text, err := json.Marshal(keptObservation{d.ID, d.Channel, d.Session, d.Reward, d.Weight,
			d.Share})
		if err != nil {
			return err
		}
		return l.add(addToHistory, d.Cell.String(), hashOfID(d.ID), int64(d.At), d.Source, string(text),
			int64(d.Recorded))
	case row.Lost != nil:
		d := row.Lost
		return l.add(addLost, d.ID.String(), d.Cell.String(), int64(d.Recorded), "")
	case row.ID != nil:
		d := row.ID
		return l.add(loadIDs, d.ID.String(), int64(d.Recorded), flag(!d.Untraced), flag(d.Retracted))
	}
	return l.record(row.Record)
}

// errTwice is why a row is refused whose id or record was loaded before.
var errTwice = errors.New("the row comes twice")

// loadedTally returns the values of a row of heed_tally. They are in the order of tallyNames. The
// counts and sums are as in the dump, to the last bit.
func loadedTally(d *dump.Tally, cell *dump.Cell) []any {
	t := &delta{
		Tally: d.Evidence(time.Duration(cell.HalfLife) * time.Microsecond), lostSource: d.LostSource,
		lost: [3]evidence.Instant{d.Positive.Lost, d.Negative.Lost, d.Neutral.Lost},
	}
	return t.row(origin{d.Cell.String(), d.Channel, d.Source})
}

// kind joins a declaration of the dump with the one of this store, which wins. So a program that
// has declared a kind keeps its limits, and people are forgotten by the paths of both. Kinds come
// first in a dump, so the limits hold for the records that follow.
func (l *loading) kind(kind store.Kind) error {
	stored, found, err := l.store.declared(l.t, kind.Name)
	if err != nil {
		return err
	}
	if found {
		kind = stores.Join(kind, stored)
	}
	return keepDeclared(l.t, kind)
}

// record keeps a record to be written with its keys. Its keys can be written only when the database
// has given the record a number. Two records of one kind and id in one group are found here, and in
// different groups by the insertion.
func (l *loading) record(d *dump.Record) error {
	text, err := textOfKeys(d.Keys)
	if err != nil {
		return err
	}
	ref := hashOfRef(store.Ref{Kind: d.Kind, ID: d.ID})
	if l.bulk != insertRecords {
		if err := l.flush(); err != nil {
			return err
		}
	}
	if l.records == nil {
		l.records = make(map[string]dump.Record)
	}
	if _, twice := l.records[ref]; twice {
		return l.in.Fault(errTwice)
	}
	_, tenant := store.KindOf(d.Kind)
	l.tenants[tenant] = true
	l.records[ref] = dump.Record{Kind: d.Kind, At: d.At, Keys: slices.Clone(d.Keys)}
	l.size += len(d.Body)
	return l.add(insertRecords, ref, d.Kind, d.ID, int64(d.At), string(text), string(d.Body),
		int64(d.Revision))
}

const (
	// loadRows is how many rows are written at once, at most, and loadBytes how many bytes of
	// records.
	loadRows  = 500
	loadBytes = 1 << 20 // of records are
)

// add keeps a row to be written with others of its sort, and writes rows of another sort before.
func (l *loading) add(b *bulk, values ...any) error {
	if l.bulk != b {
		if err := l.flush(); err != nil {
			return err
		}
		l.bulk = b
	}
	l.rows, l.lines = append(l.rows, values), append(l.lines, l.in.Line())
	if len(l.rows) < loadRows && l.size < loadBytes {
		return nil
	}
	return l.flush()
}

// flush writes the rows that were kept. The lists are emptied first, so an error leaves no row that
// would be written twice.
func (l *loading) flush() error {
	if len(l.rows) == 0 {
		return nil // and the keys of the first record to come are kept
	}
	rows, lines, records := l.rows, l.lines, l.records
	l.rows, l.lines, l.records, l.size = nil, nil, nil, 0
	switch l.bulk {
	case loadIDs, insertRecords:
		return l.insert(rows, lines, records)
	}
	return l.t.insert(l.bulk, rows, nil)
}

// insert writes ids, or records with their keys. They must not exist yet. A row that does not come
// back was there before, and the error names its line in the dump. The numbers that come back are
// the ones by which the keys find the records.
func (l *loading) insert(rows [][]any, lines []int, records map[string]dump.Record) error {
	var keys [][]any
	added := make(map[string]bool)
	err := l.t.insert(l.bulk, rows, func(scan func(...any) error) error {
		var id string
		var seq int64
		err := scan(&id, &seq)
		added[id] = true
		keys = append(keys, keyRows(records[id].Kind, records[id].At, seq, distinct(records[id].Keys),
			nil)...)
		return err
	})
	if err != nil {
		return err
	}
	for i, row := range rows {
		id, _ := row[0].(string)
		if !added[id] {
			return dump.FaultAt(lines[i], errTwice)
		}
		delete(added, id) // the next one of it is too much
	}
	return l.t.insert(addKeys, keys, nil)
}

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
	"github.com/heedhq/heed/internal/ids"
	"github.com/heedhq/heed/internal/limits"
	"github.com/heedhq/heed/store"
)

var (
	lastRevision = either(`SELECT revision FROM heed_store`, `SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM heed_revision`)
	dumpCells    = both(`SELECT cell, kind, scope, item, name, half_life, by_origin, restart FROM heed_cell ORDER BY cell`)
	dumpTallies  = both(`SELECT t.cell, t.channel, t.source, (SELECT c.half_life FROM heed_cell c WHERE c.cell = t.cell), ` + tallySums + `,
			t.lost_positive, t.lost_negative, t.lost_neutral, t.lost_source
		FROM heed_tally t ORDER BY t.cell, t.channel, t.source`)
	dumpObservations = both(`SELECT cell, happened, recorded, source, observation FROM heed_observation ORDER BY seq`)
	dumpLost         = both(`SELECT id, cell, recorded FROM heed_lost ORDER BY id, cell`)
	dumpIDs          = both(`SELECT id, recorded, traced, retracted FROM heed_id ORDER BY id`)
	dumpRecords      = both(`SELECT kind, id, revision, at, keys, body FROM heed_record ORDER BY seq`)
	dumpInboxes      = both(`SELECT stream, id, topic, happened, payload, due FROM heed_inbox ORDER BY seq`)
)

// inboxed is the kind of record that an event in an inbox is in a dump. Its moment is when it is due.
const inboxed = "stream.inbox"

type inboxedEvent struct {
	Stream   string `json:"stream"`
	ID       string `json:"id"`
	Topic    string `json:"topic"`
	Happened string `json:"happened"`
	Payload  []byte `json:"payload,omitempty"`
}

// Dump writes all that the store has as lines of JSON, as it is at one moment, and all that waits in inboxes. Every store can
// [Store.Load] it. The host's own tables are not in it. Commits go on meanwhile.
func (s *Store) Dump(ctx context.Context, to io.Writer) error {
	err := s.db.snapshot(ctx, func(t *tx) error {
		kinds, err := t.texts(listDeclared) // the first statement, so that the snapshot is no newer than the revision
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
		if err := dumpKinds(out, kinds); err != nil {
			return err
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
	})
	if err != nil {
		return fmt.Errorf("sqlstore: dump: %w", err)
	}
	return nil
}

func dumpKinds(out *dump.Writer, kinds []string) error {
	for _, text := range kinds {
		var kind store.Kind
		if err := json.Unmarshal([]byte(text), &kind); err != nil {
			return fmt.Errorf("%w: %w", heed.ErrDamaged, err)
		}
		if kind.Name == inboxed {
			continue
		}
		if err := out.Write(dump.Row{Kind: &kind}); err != nil {
			return err
		}
	}
	return out.Write(dump.Row{Kind: &store.Kind{Name: inboxed}})
}

// dumpParts are the tables in the order of a dump.
var dumpParts = []struct {
	q   *query
	row func(scan func(...any) error) (dump.Row, error)
}{
	{dumpCells, func(scan func(...any) error) (dump.Row, error) {
		c := &dump.Cell{}
		var hash string
		var byOrigin int64
		err := scan(&hash, &c.Kind, &c.Scope, &c.Item, &c.Name, &c.HalfLife, &byOrigin, &c.Restart)
		c.ByOrigin = byOrigin == 1
		return dump.Row{Cell: c}, hashes(err, hash, &c.Hash)
	}},
	{dumpTallies, dumpedTally},
	{dumpObservations, func(scan func(...any) error) (dump.Row, error) {
		d := &dump.Observation{}
		var hash, text string
		err := scan(&hash, &d.At, &d.Recorded, &d.Source, &text)
		var k keptObservation
		if err == nil {
			err = json.Unmarshal([]byte(text), &k)
		}
		d.ID, d.Channel, d.Session, d.Reward, d.Weight = k.ID, k.Channel, k.Session, k.Reward, k.Weight
		return dump.Row{Observation: d}, hashes(err, hash, &d.Cell)
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
		d.Body = json.RawMessage(body)
		if err == nil {
			err = json.Unmarshal([]byte(keys), &d.Keys)
		}
		return dump.Row{Record: d}, err
	}},
	{dumpInboxes, func(scan func(...any) error) (dump.Row, error) {
		d := &dump.Record{Kind: inboxed, Revision: 1}
		var e inboxedEvent
		err := scan(&e.Stream, &e.ID, &e.Topic, &e.Happened, &e.Payload, &d.At)
		d.ID = hashOf(e.Stream, e.ID)
		if err == nil {
			d.Body, err = json.Marshal(e)
		}
		return dump.Row{Record: d}, err
	}},
}

func hashes(err error, text string, into *ids.Hash) error {
	if err == nil {
		err = into.UnmarshalText([]byte(text))
	}
	return err
}

func dumpedTally(scan func(...any) error) (dump.Row, error) {
	d := &dump.Tally{}
	var cell string
	var halfLife, landmark, lostSource int64
	err := scan(&cell, &d.Channel, &d.Source, &halfLife, &landmark, &d.Mass, &d.Squares, &d.Reward, &d.RewardSquares,
		&d.Positive.N, &d.Negative.N, &d.Neutral.N, &d.Positive.Last, &d.Negative.Last, &d.Neutral.Last,
		&d.Positive.Lost, &d.Negative.Lost, &d.Neutral.Lost, &lostSource)
	d.Landmark, d.LostSource = evidence.Instant(landmark*limits.LandmarkStep*halfLife), lostSource == 1
	return dump.Row{Tally: d}, hashes(err, cell, &d.Cell)
}

var (
	// loadEmpty finds a row where there is anything but kinds.
	loadEmpty = both(`SELECT 1 FROM heed_cell UNION ALL SELECT 1 FROM heed_id UNION ALL SELECT 1 FROM heed_record
		UNION ALL SELECT 1 FROM heed_inbox LIMIT 1`)
	loadCells = both(`INSERT INTO heed_cell (cell, kind, scope, item, name, half_life, by_origin, restart)
		SELECT value->>0, value->>1, value->>2, value->>3, value->>4,
			CAST(value->>5 AS BIGINT), CAST(value->>6 AS BIGINT), CAST(value->>7 AS BIGINT) FROM json_each($1)`)
	loadTallies      = either(insertTally, insertTallies)
	loadObservations = both(`INSERT INTO heed_observation (cell, id, happened, recorded, source, observation)
		SELECT value->>0, value->>1, CAST(value->>2 AS BIGINT), CAST(value->>3 AS BIGINT), value->>4, value->>5 FROM json_each($1)`)
	loadLost = both(`INSERT INTO heed_lost (id, cell, recorded, source)
		SELECT value->>0, value->>1, CAST(value->>2 AS BIGINT), value->>3 FROM json_each($1)`)
	loadIDs = both(`INSERT INTO heed_id (id, recorded, traced, retracted)
		SELECT value->>0, CAST(value->>1 AS BIGINT), CAST(value->>2 AS BIGINT), CAST(value->>3 AS BIGINT) FROM json_each($1)`)
	loadRecords = both(`INSERT INTO heed_record (ref, kind, id, at, revision, keys, body)
		SELECT value->>0, value->>1, value->>2, CAST(value->>3 AS BIGINT), CAST(value->>4 AS BIGINT), value->>5, value->>6 FROM json_each($1)
		RETURNING ref, seq`)
	loadInbox = both(`INSERT INTO heed_inbox (stream, id, topic, happened, payload, due, deliveries, holder) VALUES ($1, $2, $3, $4, $5, $6, 0, '')`)

	raiseRevision = either(`UPDATE heed_store SET revision = max(revision, $1)`,
		`SELECT setval('heed_revision', greatest(nextval('heed_revision'), CAST($1 AS BIGINT)))`)

	// analyze has PostgreSQL look at what was loaded, which it otherwise does a while later, and guesses until then. SQLite finds
	// its indexes without that. Having looked, it would scan tables that are small as yet.
	analyzeAll = either(``, `ANALYZE heed_cell, heed_tally, heed_id, heed_observation, heed_lost, heed_record, heed_key, heed_inbox`)
)

// Load reads what a store has dumped into this one: all of it, or nothing and an error. A store that has something is
// [heed.ErrConflict]; kinds may be declared. Lines that are not those of a dump, or of a newer one, or of one that was cut off or
// changed, are a [*heed.InputError]. Nobody else writes meanwhile.
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
	if err != nil {
		return fmt.Errorf("sqlstore: load: %w", err)
	}
	return nil
}

func (c *change) load(from io.Reader) error {
	switch found, err := c.t.finds(loadEmpty); {
	case err != nil:
		return err
	case found:
		return fmt.Errorf("the store is not empty: %w", heed.ErrConflict)
	}
	in, err := dump.NewReader(from)
	if err != nil {
		return err
	}
	l := &loading{change: c, cells: make(map[ids.Hash]*dump.Cell)}
	for {
		row, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		fault, err := l.take(row)
		switch {
		case fault != nil:
			return in.Fault(fault)
		case err != nil:
			return err
		}
	}
	if err := l.flush(); err != nil {
		return err
	}
	if c.t.db.dialect.embedded() {
		_, err = c.t.exec(raiseRevision, int64(in.Revision))
		return err
	}
	var revision int64
	if err := c.t.one(raiseRevision, []any{int64(in.Revision)}, &revision); err != nil {
		return err
	}
	_, err = c.t.exec(analyzeAll)
	return err
}

// A loading collects rows, to write many of them at once.
type loading struct {
	*change
	cells   map[ids.Hash]*dump.Cell
	query   *query // of the rows that wait to be written
	rows    [][]any
	records map[string]dump.Record // likewise, without their bodies
	size    int                    // of their bodies
}

// take takes a row. fault says that it does not fit to those before it.
func (l *loading) take(row dump.Row) (fault, err error) {
	switch {
	case row.Kind != nil:
		return nil, l.kind(*row.Kind)
	case row.Cell != nil:
		d := *row.Cell
		if l.cells[d.Hash] != nil {
			return errors.New("the cell comes twice"), nil
		}
		l.cells[d.Hash] = &dump.Cell{HalfLife: d.HalfLife, ByOrigin: d.ByOrigin}
		return nil, l.add(loadCells, d.Hash.String(), d.Kind, d.Scope, d.Item, d.Name, d.HalfLife, flag(d.ByOrigin), int64(d.Restart))
	case row.Tally != nil:
		cell := l.cells[row.Tally.Cell]
		if cell == nil {
			return errNoCell, nil
		}
		if fault := row.Tally.Fits(cell); fault != nil {
			return fault, nil
		}
		return nil, l.add(loadTallies, loadedTally(row.Tally, cell)...)
	case row.Observation != nil:
		d := row.Observation
		if l.cells[d.Cell] == nil {
			return errNoCell, nil
		}
		text, err := json.Marshal(keptObservation{d.ID, d.Channel, d.Session, d.Reward, d.Weight})
		if err != nil {
			return nil, err
		}
		return nil, l.add(loadObservations, d.Cell.String(), hashOf(d.ID), int64(d.At), int64(d.Recorded), d.Source, string(text))
	case row.Lost != nil:
		if l.cells[row.Lost.Cell] == nil {
			return errNoCell, nil
		}
		return nil, l.add(loadLost, row.Lost.ID.String(), row.Lost.Cell.String(), int64(row.Lost.Recorded), "")
	case row.ID != nil:
		return nil, l.add(loadIDs, row.ID.ID.String(), int64(row.ID.Recorded), flag(!row.ID.Untraced), flag(row.ID.Retracted))
	}
	return nil, l.record(row.Record)
}

var errNoCell = errors.New("the cell did not come before")

func loadedTally(d *dump.Tally, cell *dump.Cell) []any {
	t := &delta{
		Tally: d.Evidence(time.Duration(cell.HalfLife) * time.Microsecond), lostSource: d.LostSource,
		lost: [3]evidence.Instant{d.Positive.Lost, d.Negative.Lost, d.Neutral.Lost},
	}
	return t.row(origin{d.Cell.String(), d.Channel, d.Source})
}

func (l *loading) kind(kind store.Kind) error {
	stored, found, err := l.store.declared(l.t, kind.Name)
	if err != nil {
		return err
	}
	if found {
		kind = union(kind, stored)
	}
	return keepDeclared(l.t, kind)
}

func (l *loading) record(d *dump.Record) error {
	if d.Kind == inboxed {
		var e inboxedEvent
		if err := json.Unmarshal(d.Body, &e); err != nil {
			return err
		}
		_, err := l.t.exec(loadInbox, e.Stream, e.ID, e.Topic, e.Happened, e.Payload, int64(d.At))
		return err
	}
	text, err := json.Marshal(d.Keys)
	if err != nil {
		return err
	}
	ref := hashOfRef(store.Ref{Kind: d.Kind, ID: d.ID})
	if l.query != loadRecords {
		if err := l.flush(); err != nil {
			return err
		}
	}
	if l.records == nil {
		l.records = make(map[string]dump.Record)
	}
	l.records[ref] = dump.Record{Kind: d.Kind, At: d.At, Keys: slices.Clone(d.Keys)}
	l.size += len(d.Body)
	return l.add(loadRecords, ref, d.Kind, d.ID, int64(d.At), int64(d.Revision), string(text), string(d.Body))
}

const (
	loadRows  = 500     // are written at once, at most
	loadBytes = 1 << 20 // of records are
)

// add keeps a row to be written with others of its sort, and writes those of another sort before.
func (l *loading) add(q *query, values ...any) error {
	if l.query != q {
		if err := l.flush(); err != nil {
			return err
		}
		l.query = q
	}
	l.rows = append(l.rows, values)
	if len(l.rows) < loadRows && l.size < loadBytes {
		return nil
	}
	return l.flush()
}

// flush writes the rows that were kept.
func (l *loading) flush() error {
	if len(l.rows) == 0 {
		return nil // and the keys of the first record to come are kept
	}
	rows, records := l.rows, l.records
	l.rows, l.records, l.size = nil, nil, 0
	if l.query == loadTallies && l.t.db.dialect.embedded() {
		for _, row := range rows {
			if _, err := l.t.exec(loadTallies, row...); err != nil {
				return err
			}
		}
		return nil
	}
	text, err := rowsOf(rows)
	if err != nil {
		return err
	}
	if l.query != loadRecords {
		_, err = l.t.exec(l.query, text)
		return err
	}
	var keys [][]any
	err = l.t.each(loadRecords, []any{text}, func(scan func(...any) error) error {
		var ref string
		var seq int64
		err := scan(&ref, &seq)
		keys = append(keys, keyRows(records[ref].Kind, records[ref].At, seq, distinct(records[ref].Keys), nil)...)
		return err
	})
	if err != nil {
		return err
	}
	return l.writeRows(nil, nil, keys, nil)
}

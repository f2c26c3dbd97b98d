package sqlstore

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/export"
)

// A commit is one batch on its way into the database, in one transaction. What only adds goes through in step with others
// of its kind, as all it does to a cell is to add to its sums; what takes away has the store alone.
//
// Ids, cells and tallies are each written in order, so that no two commits wait for each other.
type commit struct {
	store *Evidence
	batch *evidence.Batch
	now   evidence.Instant

	t     *tx
	alone bool            // whether this has the store for itself
	fresh map[string]bool // the ids that were not known before this batch
}

var (
	errDuplicate = errors.New("the batch is known")
	errAlone     = errors.New("this can only be done alone")
)

func (c *commit) takesAway() bool {
	b := c.batch
	return len(b.Reset)+len(b.Rebuild)+len(b.Restart)+len(b.Retract)+len(b.Expunge) > 0
}

func (c *commit) run(t *tx, alone bool) (evidence.Receipt, error) {
	c.t, c.alone = t, alone
	if err := c.knowIDs(); err != nil {
		return evidence.Receipt{}, err
	}
	if err := c.takeAway(); err != nil {
		return evidence.Receipt{}, err
	}
	pending, receipt := c.pending()
	if err := c.observe(pending); err != nil {
		return evidence.Receipt{}, err
	}
	return receipt, c.addRecords()
}

// An id that another transaction is about to know is waited for.
var knowIDs = both(`INSERT INTO heed_ids (space, id, recorded, traced)
	SELECT CAST($1 AS BIGINT), value->>0, CAST($2 AS BIGINT), CAST($3 AS BIGINT) FROM json_each($4) WHERE true
	ON CONFLICT DO NOTHING RETURNING id`)

// know makes ids known and returns those that were not.
func (c *commit) know(space int, ids []string) (fresh map[string]bool, err error) {
	fresh = make(map[string]bool, len(ids))
	if len(ids) == 0 {
		return fresh, nil
	}
	slices.Sort(ids)
	rows, err := column(slices.Compact(ids))
	if err != nil {
		return nil, err
	}
	inserted, err := c.t.texts(knowIDs, space, int64(c.now), flag(!c.store.cfg.NoHistory), rows)
	for _, id := range inserted {
		fresh[id] = true
	}
	return fresh, err
}

func flag(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

func (c *commit) knowIDs() (err error) {
	b := c.batch
	ids := make([]string, 0, len(b.Observations)+1)
	for i := range b.Observations {
		ids = append(ids, b.Observations[i].ID)
	}
	if b.ID != "" {
		ids = append(ids, b.ID)
	}
	c.fresh, err = c.know(export.IDsOfObservations, ids)
	if err == nil && b.ID != "" && !c.fresh[b.ID] {
		err = errDuplicate
	}
	return err
}

// pending is an observation that is to count, with the key of its cell.
type pending struct {
	*evidence.Observation
	key string
}

// pending returns the observations whose ids are new, none twice, and the receipt that names the others.
func (c *commit) pending() (all []pending, receipt evidence.Receipt) {
	type once struct{ id, key string }
	seen := make(map[once]bool, len(c.batch.Observations))
	keys := make(map[evidence.Cell]string, 4)
	for i := range c.batch.Observations {
		o := &c.batch.Observations[i]
		if !c.fresh[o.ID] {
			if !slices.Contains(receipt.Duplicates, o.ID) {
				receipt.Duplicates = append(receipt.Duplicates, o.ID)
			}
			continue
		}
		key, ok := keys[o.Cell]
		if !ok {
			key = keyOf(o.Cell)
			keys[o.Cell] = key
		}
		if !seen[once{o.ID, key}] {
			seen[once{o.ID, key}] = true
			all = append(all, pending{o, key})
		}
	}
	return all, receipt
}

// observe adds observations to their cells and to the history.
func (c *commit) observe(all []pending) error {
	if len(all) == 0 {
		return nil
	}
	cells, err := c.openCells(all)
	if err != nil {
		return err
	}
	sums := make(deltas)
	for i := range all {
		o := all[i].Observation
		d := sums.add(cells[all[i].key], o)
		if d != nil && c.store.cfg.NoHistory {
			d.lose(o)
		}
	}
	if err := sums.write(c.t); err != nil {
		return err
	}
	if c.store.cfg.NoHistory {
		return nil
	}
	return c.record(all)
}

var (
	readCells = both(`SELECT cell, half_life, by_origin, restart, kind, scope, item, name FROM heed_cells
		WHERE cell IN (SELECT value->>0 FROM json_each($1))`)
	addCells = both(`INSERT INTO heed_cells (cell, kind, scope, item, name, half_life, by_origin, restart)
		SELECT value->>0, value->>1, value->>2, value->>3, value->>4, CAST(value->>5 AS BIGINT), CAST(value->>6 AS BIGINT), 0
		FROM json_each($1) WHERE true
		ON CONFLICT DO NOTHING`)
	isOpen   = both(`SELECT 1 FROM heed_tallies WHERE cell = $1 LIMIT 1`)
	keepCell = both(`UPDATE heed_cells SET half_life = $1, by_origin = $2, restart = $3 WHERE cell = $4`)
)

// readCells returns the cells of these keys that there are.
func (c *commit) readCells(keys []string) (map[string]*cellRow, error) {
	rows, err := column(keys)
	if err != nil {
		return nil, err
	}
	found := make(map[string]*cellRow, len(keys))
	err = c.t.each(readCells, []any{rows}, func(scan func(...any) error) error {
		r := &cellRow{}
		var halfLife, byOrigin int64
		err := scan(&r.key, &halfLife, &byOrigin, &r.restart, &r.cell.Kind, &r.cell.Scope, &r.cell.Item, &r.cell.Name)
		r.policy = evidence.Policy{HalfLife: time.Duration(halfLife) * time.Microsecond, ByOrigin: byOrigin == 1}
		found[r.key] = r
		return err
	})
	return found, err
}

// addCells adds those that are not there yet, with the batch's policy, and returns all.
func (c *commit) addCells(cells map[string]evidence.Cell) (map[string]*cellRow, error) {
	keys := slices.Sorted(maps.Keys(cells))
	found, err := c.readCells(keys)
	if err != nil || len(found) == len(keys) {
		return found, err
	}
	var missing [][]any
	for _, key := range keys {
		if cell := cells[key]; found[key] == nil {
			policy := c.batch.Policies[cell.Kind]
			missing = append(missing, []any{
				key, cell.Kind, cell.Scope, cell.Item, cell.Name, policy.HalfLife.Microseconds(), flag(policy.ByOrigin),
			})
		}
	}
	rows, err := rowsOf(missing)
	if err != nil {
		return nil, err
	}
	if _, err := c.t.exec(addCells, rows); err != nil {
		return nil, err
	}
	return c.readCells(keys) // somebody else may have added one meanwhile, with another policy
}

// openCells returns the cells of observations, each of which has the batch's policy.
func (c *commit) openCells(all []pending) (map[string]*cellRow, error) {
	cells := make(map[string]evidence.Cell, len(all))
	for i := range all {
		cells[all[i].key] = all[i].Cell
	}
	found, err := c.addCells(cells)
	if err != nil {
		return nil, err
	}
	for i := range all {
		row := found[all[i].key]
		wanted := c.batch.Policies[row.cell.Kind]
		if row.policy == wanted {
			continue
		}
		open, err := c.open(row)
		switch {
		case err != nil:
			return nil, err
		case open:
			return nil, &evidence.PolicyError{Cell: row.cell, Stored: row.policy, Wanted: wanted}
		case !c.alone: // somebody else may be about to open it
			return nil, errAlone
		}
		row.policy = wanted
		if err := c.keep(row); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// open reports whether a cell has evidence or a restart, so that its policy is settled.
func (c *commit) open(row *cellRow) (bool, error) {
	if row.restart > 0 {
		return true, nil
	}
	return c.t.finds(isOpen, row.key)
}

func (c *commit) keep(row *cellRow) error {
	_, err := c.t.exec(keepCell, row.policy.HalfLife.Microseconds(), flag(row.policy.ByOrigin), int64(row.restart), row.key)
	return err
}

var addHistory = both(`INSERT INTO heed_history (cell, id, happened, source, observation, recorded)
	SELECT value->>0, value->>1, CAST(value->>2 AS BIGINT), value->>3, value->>4, CAST($1 AS BIGINT) FROM json_each($2)`)

func (c *commit) record(all []pending) error {
	rows := make([][]any, len(all))
	for i := range all {
		kept := *all[i].Observation
		at := evidence.InstantOf(kept.At)
		kept.At = at.Time()
		text, err := json.Marshal(kept)
		if err != nil {
			return err
		}
		rows[i] = []any{all[i].key, kept.ID, int64(at), kept.Source, string(text)}
	}
	text, err := rowsOf(rows)
	if err != nil {
		return err
	}
	_, err = c.t.exec(addHistory, int64(c.now), text)
	return err
}

// addTallies adds to sums. PostgreSQL takes all of a commit as JSON, whose numbers it reads exactly; SQLite rounds when it
// reads numbers from text, and takes one after the other.
var addTallies = either(`INSERT INTO heed_tallies (`+tallyNames+`)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)`+onKnownTally("heed_tallies"),
	`INSERT INTO heed_tallies (`+tallyNames+`)
	SELECT value->>0, value->>1, value->>2, CAST(value->>3 AS BIGINT),
		CAST(value->>4 AS DOUBLE PRECISION), CAST(value->>5 AS DOUBLE PRECISION),
		CAST(value->>6 AS DOUBLE PRECISION), CAST(value->>7 AS DOUBLE PRECISION),
		CAST(value->>8 AS BIGINT), CAST(value->>9 AS BIGINT), CAST(value->>10 AS BIGINT),
		CAST(value->>11 AS BIGINT), CAST(value->>12 AS BIGINT), CAST(value->>13 AS BIGINT),
		CAST(value->>14 AS BIGINT), CAST(value->>15 AS BIGINT), CAST(value->>16 AS BIGINT), CAST(value->>17 AS BIGINT)
	FROM jsonb_array_elements($1)`+onKnownTally("heed_tallies"))

// write adds to the tallies.
func (ds deltas) write(t *tx) error {
	froms := slices.SortedFunc(maps.Keys(ds), func(a, b origin) int {
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.channel, b.channel), cmp.Compare(a.source, b.source))
	})
	rows := make([][]any, len(froms))
	for i, from := range froms {
		rows[i] = ds[from].row(from)
	}
	if t.db.dialect.embedded() {
		for _, row := range rows {
			if _, err := t.exec(addTallies, row...); err != nil {
				return err
			}
		}
		return nil
	}
	if len(rows) == 0 {
		return nil
	}
	text, err := rowsOf(rows)
	if err != nil {
		return err
	}
	_, err = t.exec(addTallies, text)
	return err
}

var (
	addAudit = both(`INSERT INTO heed_audit (entry) SELECT value->>0 FROM json_each($1)`)
	// What an event holds need not be text, so that each is a statement of its own.
	// One whose id is no longer known may still wait.
	addEvent   = both(`INSERT INTO heed_outbox (id, topic, happened, payload) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`)
	outboxSpan = both(`SELECT coalesce(max(seq) - min(seq) + 1, 0) FROM heed_outbox`)
	outboxSize = both(`SELECT count(*) FROM heed_outbox`)
	dropSent   = both(`DELETE FROM heed_outbox WHERE id IN (SELECT value->>0 FROM json_each($1))`)
)

// addRecords writes audit entries and outgoing events, and takes those out that were sent.
func (c *commit) addRecords() error {
	b := c.batch
	if err := c.addAudit(); err != nil {
		return err
	}
	if err := c.addEvents(); err != nil {
		return err
	}
	if len(b.Sent) > 0 {
		rows, err := column(b.Sent)
		if err != nil {
			return err
		}
		if _, err := c.t.exec(dropSent, rows); err != nil {
			return err
		}
	}
	if len(b.Events) == 0 {
		return nil
	}
	return c.checkOutbox()
}

func (c *commit) addAudit() error {
	ids := make([]string, len(c.batch.Audit))
	for i := range ids {
		ids[i] = c.batch.Audit[i].ID
	}
	fresh, err := c.know(export.IDsOfAudit, ids)
	if err != nil || len(fresh) == 0 {
		return err
	}
	var entries []string
	for _, entry := range c.batch.Audit {
		if !fresh[entry.ID] {
			continue
		}
		delete(fresh, entry.ID)
		entry.At = entry.At.UTC()
		text, err := json.Marshal(entry)
		if err != nil {
			return err
		}
		entries = append(entries, string(text))
	}
	rows, err := column(entries)
	if err != nil {
		return err
	}
	_, err = c.t.exec(addAudit, rows)
	return err
}

func (c *commit) addEvents() error {
	ids := make([]string, len(c.batch.Events))
	for i := range ids {
		ids[i] = c.batch.Events[i].ID
	}
	fresh, err := c.know(export.IDsOfEvents, ids)
	if err != nil {
		return err
	}
	for i := range c.batch.Events {
		event := &c.batch.Events[i]
		if !fresh[event.ID] {
			continue
		}
		delete(fresh, event.ID)
		if _, err := c.t.exec(addEvent, event.ID, event.Topic, event.At.UTC().Format(time.RFC3339Nano), event.Payload); err != nil {
			return err
		}
	}
	return nil
}

// checkOutbox refuses what is too much. The outbox is only counted where its numbers don't show that there is room.
func (c *commit) checkOutbox() error {
	var held int64
	for _, q := range []*query{outboxSpan, outboxSize} {
		if err := c.t.one(q, nil, &held); err != nil {
			return err
		}
		if held <= int64(c.store.cfg.MaxEvents) {
			return nil
		}
	}
	return evidence.ErrFull
}

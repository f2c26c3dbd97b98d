package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

var (
	oldHistories = both(`SELECT ` + observationColumns + ` FROM heed_observation WHERE recorded < $1 ORDER BY recorded LIMIT 500 OFFSET $2`)
	fullHistory  = both(`SELECT h.cell, c.kind, count(*) FROM heed_observation h JOIN heed_cell c ON c.cell = h.cell
		GROUP BY h.cell, c.kind HAVING count(*) > $1`)
	overHistory = both(`SELECT ` + observationColumns + ` FROM heed_observation WHERE cell = $1
		ORDER BY happened DESC, seq DESC LIMIT 500 OFFSET $2`)
	oldLost     = both(`DELETE FROM heed_lost WHERE recorded < $1`)
	oldKnown    = both(`DELETE FROM heed_id WHERE id IN (SELECT id FROM heed_id WHERE recorded < $1 LIMIT 10000)`)
	unusedCells = both(`DELETE FROM heed_cell WHERE restart = 0
		AND NOT EXISTS (SELECT 1 FROM heed_tally t WHERE t.cell = heed_cell.cell)
		AND NOT EXISTS (SELECT 1 FROM heed_observation h WHERE h.cell = heed_cell.cell)`)
	addLoss = updateTally(`cell = $5 AND channel = $6 AND source = $7`,
		setting{"lost_positive", `CASE WHEN lost_positive < $1 THEN $1 ELSE lost_positive END`},
		setting{"lost_negative", `CASE WHEN lost_negative < $2 THEN $2 ELSE lost_negative END`},
		setting{"lost_neutral", `CASE WHEN lost_neutral < $3 THEN $3 ELSE lost_neutral END`},
		setting{"lost_source", `CASE WHEN lost_source < $4 THEN $4 ELSE lost_source END`})
	addLost = both(`INSERT INTO heed_lost (id, cell, recorded, source, checksum)
		SELECT value->>0, value->>1, CAST($1 AS BIGINT), value->>2, CAST(value->>3 AS BIGINT) FROM json_each($2) WHERE true ON CONFLICT DO NOTHING`)
	oldRecords = leaving(`SELECT seq, at, keys FROM heed_record WHERE kind = $1 AND at < $2 ORDER BY at, seq LIMIT 500`)
)

// A sweep does its work in small transactions.
type sweep struct {
	*change
	ctx context.Context
	now evidence.Instant
}

// Sweep implements [store.Store]. Any number of processes may call it. Each of its steps has the history for itself for a
// moment; those for records leave others alone. Damaged rows stay, and the error names them after all else was done.
func (s *Store) Sweep(ctx context.Context, now time.Time) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.learnClock(ctx); err != nil {
		return fmt.Errorf("sqlstore: sweep: %w", err)
	}
	if clock := s.now(); now.IsZero() || now.After(clock) {
		now = clock
	}
	w := &sweep{change: &change{store: s, damage: &damage{}}, ctx: ctx, now: evidence.InstantOf(now)}
	for _, part := range []func() error{w.histories, w.ids, w.records, w.files} {
		if err := part(); err != nil && !w.passes(err) {
			return fmt.Errorf("sqlstore: sweep: %w", err)
		}
	}
	if err := w.damage.err(); err != nil {
		return fmt.Errorf("sqlstore: sweep: %w", err)
	}
	return nil
}

// files has the files of SQLite as they should be.
func (w *sweep) files() error {
	if !w.store.db.dialect.embedded() {
		return nil
	}
	err := w.store.erase(w.ctx)
	if err == nil {
		err = w.store.db.onConn(w.ctx, func(conn *sql.Conn) error { return alignFiles(w.ctx, conn) })
	}
	return err
}

// step calls a function in transactions until there is nothing left to do.
func (w *sweep) step(alone bool, do func() (again bool, err error)) error {
	w.alone = alone
	for again := true; again; {
		err := w.store.db.enter(w.ctx, w.enter, func(t *tx) (err error) {
			w.t = t
			again, err = do()
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *sweep) histories() error {
	cfg := &w.store.cfg
	left := 0 // the damaged rows of a query, which come first
	lose := func(q *query, of any, offset int) func() (bool, error) {
		left = 0
		return func() (bool, error) { return w.lose(&left, q, of, offset) }
	}
	err := w.step(true, lose(oldHistories, int64(w.now)-cfg.HistoryFor.Microseconds(), 0))
	if err != nil {
		return err
	}
	full, err := w.full(err)
	for cell, most := range full {
		if err == nil {
			err = w.step(true, lose(overHistory, cell, most))
		}
	}
	return err
}

// full returns the cells that have more history than is kept of them, and how much that is.
func (w *sweep) full(err error) (map[string]int, error) {
	if err != nil {
		return nil, err
	}
	cfg, full := &w.store.cfg, make(map[string]int)
	err = w.store.db.read(w.ctx, func(t *tx) error {
		declared, damaged := make(map[string]int), false
		if cfg.declared {
			kinds, err := w.store.allDeclared(t)
			if damaged = w.passes(err); err != nil && !damaged {
				return err
			}
			for _, k := range kinds {
				declared[k.Name] = k.History
			}
		}
		return t.each(fullHistory, []any{cfg.HistoryPerCell}, func(scan func(...any) error) error {
			var cell, kind string
			var n int
			err := scan(&cell, &kind, &n)
			most, known := declared[kind]
			if most = max(cfg.HistoryPerCell, most); n > most && (known || !damaged) { // a damaged kind may keep more
				full[cell] = most
			}
			return err
		})
	})
	return full, err
}

func (w *sweep) ids() error {
	before := int64(w.now) - w.store.cfg.IDsFor.Microseconds()
	err := w.step(true, func() (bool, error) {
		n, err := w.t.exec(oldKnown, before)
		return n > 0, err
	})
	if err != nil {
		return err
	}
	return w.step(true, func() (bool, error) {
		_, err := w.t.exec(oldLost, before)
		if err == nil {
			_, err = w.t.exec(unusedCells)
		}
		return false, err
	})
}

// records drops the records that are past their limits, of all kinds that any program has declared.
func (w *sweep) records() error {
	var kinds []store.Kind
	err := w.store.db.read(w.ctx, func(t *tx) (err error) {
		kinds, err = w.store.allDeclared(t)
		return err
	})
	if err != nil && !w.passes(err) {
		return err
	}
	for _, kind := range kinds {
		if kind.Limits.For > 0 {
			err := w.step(false, func() (bool, error) {
				n, err := w.dropRecords(kind.Name, oldRecords, kind.Name, int64(w.now)-kind.Limits.For.Microseconds())
				return n > 0, err
			})
			if err != nil {
				return err
			}
		}
		if most := int64(kind.Limits.Most); most > 0 && !kind.Limits.Refuse {
			err := w.step(false, func() (bool, error) {
				var count int64
				err := w.t.one(countRecords, []any{kind.Name}, &count)
				if err != nil || count <= most {
					return false, err
				}
				n, err := w.dropRecords(kind.Name, firstRecords, kind.Name, min(count-most, 500))
				return n > 0, err
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// lose removes a page of a query's finds from the history, and leaves it in the sums. It passes over the damaged rows that are left, and
// reports whether there was any row.
func (w *sweep) lose(left *int, q *query, of any, offset int) (bool, error) {
	page, cells, passed, err := w.remove(q, of, offset+*left)
	*left += passed
	if err != nil || len(page) == 0 {
		return passed > 0, err
	}
	sums := make(deltas)
	var lost [][]any
	for i := range page {
		o := &page[i].Observation
		if d := sums.add(cells[page[i].key], o); d != nil { // it counts
			d.lose(o)
			id := hashOf(o.ID)
			lost = append(lost, []any{id, page[i].key, o.Source, sumOfLost(id, page[i].key, o.Source, w.now)})
		}
	}
	for from, d := range sums {
		if _, err := w.t.exec(addLoss, int64(d.lost[0]), int64(d.lost[1]), int64(d.lost[2]), flag(d.lostSource),
			from.key, from.channel, from.source); err != nil {
			return false, err
		}
	}
	if len(lost) == 0 {
		return true, nil
	}
	rows, err := rowsOf(lost)
	if err != nil {
		return false, err
	}
	_, err = w.t.exec(addLost, int64(w.now), rows)
	return true, err
}

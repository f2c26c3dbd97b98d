package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/store"
)

var (
	// oldHistories reads a page of observations past their time, by the index
	// heed_observation_recorded.
	oldHistories = both(`SELECT ` + observationColumns + ` FROM heed_observation WHERE recorded < $1
		ORDER BY recorded LIMIT 500`)
	// fullHistory counts the history of every cell, which reads the whole index
	// heed_observation_cell. It is run once for each process: see whatIsNew.
	fullHistory = both(`SELECT h.cell, c.kind, count(*) FROM heed_observation h
		JOIN heed_cell c ON c.cell = h.cell
		GROUP BY h.cell, c.kind HAVING count(*) > $1`)
	// fullOfLate counts the history of the cells that got observations since a moment.
	fullOfLate = fullAmong(`cell FROM heed_observation WHERE recorded >= $1`)
	// overHistory reads a page of a cell's observations beyond those that are kept, which are the
	// last that happened.
	overHistory = both(`SELECT ` + observationColumns + ` FROM heed_observation WHERE cell = $1
		ORDER BY happened DESC, seq DESC LIMIT 500 OFFSET $2`)
	// oldLost removes marks of loss as late as ids, because a mark answers what became of an id.
	oldLost = both(`DELETE FROM heed_lost WHERE recorded < $1`)
	// oldKnown removes a page of ids past their time, by the index heed_id_recorded.
	oldKnown = deleteAmong("heed_id", "id", `SELECT id FROM heed_id WHERE recorded < $1
		ORDER BY recorded LIMIT 10000`, "")
	// pageOfCells finds where a page of cells ends.
	pageOfCells = both(`SELECT count(*), coalesce(max(cell), '') FROM (` + nextCells + `) AS page`)
	// unusedCells removes the cells of a page that have neither sums nor history nor a restart.
	unusedCells = deleteAmong("heed_cell", "cell", nextCells, ` AND restart = 0
		AND NOT EXISTS (SELECT 1 FROM heed_tally t WHERE t.cell = heed_cell.cell)
		AND NOT EXISTS (SELECT 1 FROM heed_observation h WHERE h.cell = heed_cell.cell)`)
	// addLoss notes in a tally when the last of its observations happened that left the history.
	addLoss = both(`UPDATE heed_tally SET
			lost_positive = CASE WHEN lost_positive < $1 THEN $1 ELSE lost_positive END,
			lost_negative = CASE WHEN lost_negative < $2 THEN $2 ELSE lost_negative END,
			lost_neutral = CASE WHEN lost_neutral < $3 THEN $3 ELSE lost_neutral END,
			lost_source = CASE WHEN lost_source < $4 THEN $4 ELSE lost_source END
		WHERE cell = $5 AND channel = $6 AND source = $7`)
	// addLost notes the ids whose observations left the history, because they can't be retracted any
	// more.
	addLost = inserting(`INSERT INTO heed_lost (id, cell, recorded, source)`, `ttit`,
		` ON CONFLICT DO NOTHING`)
	// oldRecords finds a page of records past their time, by the index heed_record_at.
	oldRecords = leaving(`SELECT seq, id, at, keys FROM heed_record WHERE kind = $1 AND at < $2
		ORDER BY at, seq LIMIT 500`)
)

// nextCells are the cells of a page, of which a sweep removes those that are not used any more.
const (
	cellsOfPage = 2000
	nextCells   = `SELECT cell FROM heed_cell WHERE cell > $1 ORDER BY cell LIMIT 2000`
)

// deleteAmong deletes the rows of a table whose key a query finds, and that fulfil a condition.
// PostgreSQL runs the query first, and looks up each key. By IN it might read the whole table.
func deleteAmong(table, key, found, condition string) *query {
	text := `DELETE FROM ` + table + ` WHERE ` + key
	return either(text+` IN (`+found+`)`+condition, text+` = ANY (ARRAY(`+found+`))`+condition)
}

// fullAmong counts the history of the cells that a query finds. With DISTINCT, SQLite would read
// all observations in the order of their cells.
func fullAmong(found string) *query {
	const before = `SELECT h.cell, c.kind, count(*) FROM heed_observation h
		JOIN heed_cell c ON c.cell = h.cell WHERE h.cell `
	const after = ` GROUP BY h.cell, c.kind HAVING count(*) > $2`
	return either(before+`IN (SELECT `+found+`)`+after,
		before+`= ANY (ARRAY(SELECT DISTINCT `+found+`))`+after)
}

// swept is what a process remembers of its sweeps, so that the next one looks at what is new.
type swept struct {
	// mu guards all of it. Two sweeps of one process may run at once.
	mu sync.Mutex
	// history is when the history of all cells was within its limits. 0: never.
	history evidence.Instant
	limits  map[string]int // the limits that were then declared, by kind
	// cell is the last cell that was looked at, because each sweep looks at one page of cells.
	cell string
	kind string // the last kind of records that was looked for tenants
}

// A sweep does its work in small transactions, so that commits wait for at most one of them at a
// time. What it has done stays done if it ends early.
type sweep struct {
	*change
	// ctx and now are the caller's: now is the moment that decides what is past its time.
	ctx      context.Context
	now      evidence.Instant
	began    evidence.Instant // by the store's clock
	declared map[string]int   // how much history kinds keep
}

// Sweep implements [store.Store]. Any number of processes may call it. Each of its steps has the
// history for itself for a moment; those for records leave others alone. If a row can't be read, or
// a job can't be finished, Sweep does all else first and then returns the error.
func (s *Store) Sweep(ctx context.Context, now time.Time) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.learnClock(ctx); err != nil {
		return fmt.Errorf("sqlstore: sweep: %w", err)
	}
	now = valid.Due(now, s.now())
	w := &sweep{change: &change{store: s}, ctx: ctx, now: evidence.InstantOf(now)}
	var unread error
	// Jobs come first, because they need history that the next part may drop. Ids come after the
	// observations that have them: an observation whose id was forgotten could be counted twice.
	jobs := func() error { return store.Resume(ctx, s) } // those that can't continue stay
	for _, part := range []func() error{jobs, w.histories, w.ids, w.records, w.files} {
		err := part()
		// What fails each time must not keep all other people's records past their time.
		undone := errors.Is(err, heed.ErrDamaged) || errors.Is(err, evidence.ErrForgotten) ||
			errors.As(err, new(*heed.SizeError))
		if err != nil && !undone {
			return fmt.Errorf("sqlstore: sweep: %w", err)
		}
		unread = errors.Join(unread, err)
	}
	return wrap("sweep", unread)
}

// files has the files of SQLite as they should be. It erases what forgotten people left in the
// file, and gives the log the rights of the file.
func (w *sweep) files() error {
	if !w.store.db.dialect.embedded() {
		return nil
	}
	if err := w.store.erase(w.ctx); err != nil {
		return err
	}
	return w.store.db.onConn(w.ctx, waiting, func(conn *sql.Conn) error {
		return alignFiles(w.ctx, conn)
	})
}

// step calls a function in transactions until no work is left. Each call is one transaction. The
// page of each call is bounded, so no transaction is long.
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

// histories removes observations that are past their time, and those that are too many for their
// cell. The sums still count them, and each leaves a mark that it can no longer be taken back.
func (w *sweep) histories() error {
	// The moment of the start is by the store's clock even if the caller gave another one, because
	// it is compared with moments of recording, which are by the store's.
	w.began = evidence.InstantOf(w.store.now())
	before := int64(w.now) - w.store.cfg.HistoryFor.Microseconds()
	err := w.step(true, func() (bool, error) { return w.lose(oldHistories, before) })
	if err != nil {
		return err
	}
	full, err := w.full()
	// One cell at a time, so that no transaction has the store alone for long.
	for cell, most := range full {
		if err == nil {
			err = w.step(true, func() (bool, error) { return w.lose(overHistory, cell, most) })
		}
	}
	// If none is damaged, the history of all cells was within its limits when the sweep began.
	if err = cmp.Or(err, w.unread); err == nil {
		done := &w.store.swept
		done.mu.Lock()
		defer done.mu.Unlock()
		done.history, done.limits = w.began, w.declared
	}
	return err
}

// full returns the cells that have more history than is kept of them, and how much that is. After
// the first sweep it looks only at cells that have got observations since, unless limits have
// changed. The query knows the least limit only; what a kind declares is compared here.
func (w *sweep) full() (map[string]int, error) {
	cfg, full := &w.store.cfg, make(map[string]int)
	err := w.store.db.read(w.ctx, func(t *tx) error {
		declared := make(map[string]int)
		if cfg.declared {
			kinds, err := w.store.allDeclared(t)
			if err != nil {
				return err
			}
			for _, k := range kinds {
				declared[k.Name] = k.History
			}
		}
		q, args := w.whatIsNew(declared)
		return t.each(q, append(args, cfg.HistoryPerCell), func(scan func(...any) error) error {
			var cell, kind string
			var n int
			err := scan(&cell, &kind, &n)
			kind, _ = store.KindOf(kind)
			if most := max(cfg.HistoryPerCell, declared[kind]); n > most {
				full[cell] = most
			}
			return err
		})
	})
	return full, err
}

// whatIsNew returns the query for cells that may have too much history, with its first arguments.
// It begins a minute before the last sweep did, because a commit may take a while.
func (w *sweep) whatIsNew(declared map[string]int) (*query, []any) {
	done := &w.store.swept
	done.mu.Lock()
	defer done.mu.Unlock()
	w.declared = declared
	// A sweep that began later had a wrong clock.
	if done.history == 0 || done.history > w.began || !maps.Equal(done.limits, declared) {
		return fullHistory, nil
	}
	return fullOfLate, []any{int64(done.history) - time.Minute.Microseconds()}
}

// ids removes the ids that are past their time, after their observations, and cells that are not
// used. An id that comes again afterwards counts again, so ids are kept for longer than any broker
// delivers.
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
			err = w.unused()
		}
		return false, err
	})
}

// unused removes the cells of the next page that are not used any more. After the last page comes
// the first one.
func (w *sweep) unused() error {
	done := &w.store.swept
	done.mu.Lock()
	defer done.mu.Unlock()
	var n int
	var last string
	err := w.t.one(pageOfCells, []any{done.cell}, &n, &last)
	if err == nil {
		_, err = w.t.exec(unusedCells, done.cell)
	}
	// A sweep looks at one page of cells only. A cell that is not used takes little room, and the
	// next sweeps come to it.
	if n < cellsOfPage {
		last = ""
	}
	if err == nil {
		done.cell = last
	}
	return err
}

// records drops the records that are past their limits, of all kinds that any program declared.
// First go the ones that are too old, and then the oldest of too many. Each step removes a page and
// asks again.
func (w *sweep) records() error {
	var kinds []store.Kind
	err := w.store.db.read(w.ctx, func(t *tx) (err error) {
		kinds, err = w.store.allDeclared(t)
		return err
	})
	if err == nil {
		kinds, err = w.withTenants(kinds)
	}
	for _, kind := range kinds {
		if kind.Limits.For > 0 && err == nil {
			err = w.step(false, func() (bool, error) {
				n, err := w.dropRecords(kind.Name, oldRecords, kind.Name,
					int64(w.now)-kind.Limits.For.Microseconds())
				return n > 0, err
			})
		}
		if most := int64(kind.Limits.Most); most > 0 && !kind.Limits.Refuse && err == nil {
			err = w.step(false, func() (bool, error) {
				var count int64
				err := w.t.one(countRecords, []any{kind.Name}, &count)
				if err != nil || count <= most {
					return false, err
				}
				n, err := w.dropRecords(kind.Name, firstRecords, kind.Name, min(count-most, 500))
				return n > 0, err
			})
		}
	}
	return err
}

// nextKind is the next kind that has records, in the order of names.
var nextKind = both(`SELECT kind FROM heed_record WHERE kind > $1 ORDER BY kind LIMIT 1`)

// withTenants returns declared kinds, and the kinds of the next tenants that have records. After
// the last tenant comes the first one. With ten thousand tenants of ten kinds, a hundred sweeps
// come round.
func (w *sweep) withTenants(declared []store.Kind) (all []store.Kind, err error) {
	const most = 1000 // kinds; each takes a lookup in an index
	done := &w.store.swept
	done.mu.Lock()
	name := done.kind
	done.mu.Unlock() // another sweep may wait for it with the connection that this one waits for
	byName := make(map[string]store.Kind, len(declared))
	for _, k := range declared {
		byName[k.Name] = k
	}
	all = declared
	err = w.store.db.read(w.ctx, func(t *tx) error {
		for range most {
			if err := t.one(nextKind, []any{name}, &name); err != nil {
				name = "" // the next sweep begins again
				return err
			}
			base, tenant := store.KindOf(name)
			if k, ok := byName[base]; ok && tenant != "" {
				k.Name = name
				all = append(all, k)
			}
		}
		return nil
	})
	if errors.Is(err, heed.ErrNotFound) {
		err = nil
	}
	done.mu.Lock()
	defer done.mu.Unlock()
	done.kind = name
	return all, err
}

// lose removes a page of a query's finds from the history, and leaves it in the sums. It reports
// whether there was any row. The marks are written in the same transaction: a retraction must find
// either the observation or the mark. The transaction has the store alone, so no commit adds to a
// tally in between.
func (w *sweep) lose(q *query, args ...any) (bool, error) {
	page, cells, err := w.remove(q, args...)
	if err != nil || len(page) == 0 {
		return false, err
	}
	sums := make(deltas)
	var lost [][]any
	for i := range page {
		o := &page[i].Observation
		// The deltas are made for what they note as lost. Their sums are not added, because the
		// tallies hold these observations already.
		if d := sums.add(cells[page[i].key], o); d != nil { // it counts
			d.lose(o)
			lost = append(lost, []any{hashOfID(o.ID), page[i].key, int64(w.now), o.Source})
		}
	}
	for from, d := range sums {
		if _, err := w.t.exec(addLoss, int64(d.lost[0]), int64(d.lost[1]), int64(d.lost[2]),
			flag(d.lostSource),
			from.key, from.channel, from.source); err != nil {
			return false, err
		}
	}
	return true, w.t.insert(addLost, lost, nil)
}

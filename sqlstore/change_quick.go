package sqlstore

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// A quick commit is one in SQLite that only adds, on three conditions: no id was known, each cell is as the observations want it, and all
// tallies are stated at the landmark of today. The statements tell if a condition does not hold. Then all is taken back, and the commit
// is made with care, which asks first.

// errCareful is why a quick commit is taken back.
var errCareful = errors.New("this commit has to be made with care")

// fitsQuick reports whether a commit may be tried quickly.
func (c *change) fitsQuick() bool {
	if c.careful || c.alone || !c.t.db.dialect.embedded() {
		return false
	}
	return !slices.ContainsFunc(c.batches, func(b store.Batch) bool {
		return slices.ContainsFunc(b.Observations, func(o evidence.Observation) bool { return o.Weight <= 0 })
	})
}

var (
	addIDs = bound(`INSERT INTO heed_id (id, recorded, traced) VALUES `, 3, `
		ON CONFLICT DO NOTHING`)
	addTallies = bound(boundTallies, tallyColumns, addingToKnown+returningTally+`, coalesce((
		SELECT c.half_life || ' ' || c.by_origin || ' ' || c.restart FROM heed_cell c
			WHERE c.cell = heed_tally.cell), '')`)
	addCells = bound(boundCells, cellsColumns, ``)
)

// addIDs makes all ids known. If one of them was, it returns errCareful.
func (c *change) addIDs(ids []string, rows [][]any) error {
	added, err := c.t.execAll(&addIDs, rows)
	switch {
	case err != nil:
		return err
	case added != int64(len(ids)):
		return errCareful
	}
	for _, id := range ids {
		c.fresh[id] = true
	}
	return c.checkBatches()
}

// observeQuickly is observe for a quick commit.
func (c *change) observeQuickly(all []addition) error {
	if len(all) == 0 {
		return nil
	}
	cells, sums := make(map[string]*cellRow, len(all)), make(deltas)
	first := make(map[string]evidence.Instant, len(all))
	for i := range all {
		a := &all[i]
		at, row := evidence.InstantOf(a.At), cells[a.key]
		switch {
		case row == nil:
			row = &cellRow{key: a.key, cell: a.Cell, policy: a.policy}
			cells[a.key], first[a.key] = row, at
		case row.policy != a.policy:
			return errCareful
		}
		first[a.key] = min(first[a.key], at)
		d := sums.add(row, a.Observation)
		a.counts, a.from = true, row.origin(a.Observation)
		if c.store.cfg.NoHistory {
			d.lose(a.Observation)
		}
	}
	began := machineNow()
	if err := c.addTallies(sums, cells, first); err != nil {
		return err
	}
	parts := c.parts
	c.t.committed = func() { c.cached = c.store.keepParts(cells, parts, began) }
	return c.addHistory(all)
}

// keepParts puts the parts of the cells of a commit into the cache. A cell whose parts are not all known leaves it.
func (s *Store) keepParts(cells map[string]*cellRow, parts map[string][]evidence.Part, began time.Time) bool {
	if s.cache == nil {
		return false
	}
	for key, row := range cells {
		s.cache.drop(row.cell)
		if known, ok := parts[key]; ok {
			s.cache.put(s.cache.ticket(row.cell), row.cell, known, began)
		}
	}
	return true
}

// addTallies adds to the tallies, and checks their cells. It makes those that are missing.
func (c *change) addTallies(sums deltas, cells map[string]*cellRow, first map[string]evidence.Instant) error {
	froms := sums.origins()
	rows := make([][]any, len(froms))
	for i, from := range froms {
		rows[i] = sums[from].row(from)
	}
	c.parts = make(map[string][]evidence.Part)
	added, missing := 0, make(map[string]bool)
	err := c.t.eachOfAll(&addTallies, rows, func(scan func(...any) error) error {
		var key, kept string
		var part evidence.Part
		err := scanTally(func(into ...any) error { return scan(append(into, &kept)...) }, &part.Tally,
			&key, &part.Channel, &part.Source)
		row := cells[key]
		switch added++; {
		case err != nil:
			return err
		case kept == "":
			missing[key] = true
		case !row.is(kept, first[key]):
			return errCareful
		}
		if !row.policy.ByOrigin { // or else there may be others
			part.Cell, part.Tally = row.cell, restated(part.Tally, row.policy.HalfLife)
			c.parts[key] = append(c.parts[key], part)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if added != len(froms) { // one is stated at another landmark
		return errCareful
	}
	var made [][]any
	for key := range missing {
		made = append(made, cells[key].row())
	}
	_, err = c.t.execAll(&addCells, made)
	return err
}

// is reports whether a cell is kept as the stored one, given as text, and the first observation
// that comes counts there.
func (r *cellRow) is(kept string, first evidence.Instant) bool {
	policy := fmt.Sprint(r.policy.HalfLife.Microseconds(), flag(r.policy.ByOrigin))
	restart, same := strings.CutPrefix(kept, policy+" ")
	at, err := strconv.ParseInt(restart, 10, 64)
	return same && err == nil && evidence.Instant(at) <= first
}

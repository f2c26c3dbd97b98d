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

// A quick commit is one in SQLite that only adds, on three conditions: no id was known, each cell
// has the policy of the observations, and all tallies are stated at the landmark of today. The
// statements report a condition that does not hold. Then all is taken back, and the commit is made
// with care, which asks first.

// errCareful is why a quick commit is taken back.
var errCareful = errors.New("this commit has to be made with care")

// fitsQuick reports whether a commit may be tried quickly. An observation without weight does not
// count, and would make a cell without a tally.
func (c *change) fitsQuick() bool {
	if c.careful || c.alone || !c.t.db.dialect.embedded() {
		return false
	}
	return !slices.ContainsFunc(c.batches, func(b store.Batch) bool {
		return slices.ContainsFunc(b.Observations,
			func(o evidence.Observation) bool { return o.Weight <= 0 })
	})
}

// addTallies is addSums that also returns how the cell is kept.
var addTallies = inserting(insertTallies, tallyTypes, addingToKnown+returningTally+`, coalesce((
	SELECT c.half_life || ' ' || c.by_origin || ' ' || c.restart FROM heed_cell c
		WHERE c.cell = heed_tally.cell), '')`)

// observeQuickly is observe for a quick commit.
func (c *change) observeQuickly(all []addition) error {
	if len(all) == 0 {
		return nil
	}
	cells, first, alike := wantedCells(all)
	if !alike {
		return errCareful
	}
	sums := c.sum(all, cells)
	began := machineNow()
	if err := c.addTallies(sums, cells, first); err != nil {
		return err
	}
	// The cache takes the parts after the commit, and before anybody else in this process can
	// write.
	parts := c.parts
	c.t.committed = func() { c.cached = c.store.keepParts(cells, parts, began) }
	return c.addHistory(all)
}

// keepParts puts the parts of the cells of a commit into the cache. A cell whose parts are not all
// known leaves it.
func (s *Store) keepParts(cells map[string]*cellRow, parts map[string][]evidence.Part,
	began time.Time) bool {
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

// addTallies adds to the tallies, and checks their cells. It makes those that are missing. The
// order is the reverse of observe: a tally may come before its cell, because the tables have no
// foreign keys. So the usual commit, to cells that are there, is one statement and not two.
func (c *change) addTallies(sums deltas, cells map[string]*cellRow,
	first map[string]evidence.Instant) error {
	c.parts = make(map[string][]evidence.Part)
	added, missing := 0, make(map[string]bool)
	err := c.t.insert(addTallies, sums.rows(), func(scan func(...any) error) error {
		var key, kept string
		var part evidence.Part
		err := scanTally(func(into ...any) error { return scan(append(into, &kept)...) }, &part.Tally,
			&key, &part.Channel, &part.Source)
		row := cells[key]
		// The cell is read by the statement that adds, so it costs nothing to look whether it is kept
		// as assumed. If not, the transaction is taken back with what was added.
		switch added++; {
		case err != nil:
			return err
		case kept == "":
			missing[key] = true
		case !row.is(kept, first[key]):
			return errCareful
		}
		c.keepPart(row, part)
		return nil
	})
	if err != nil {
		return err
	}
	if added != len(sums) { // one is stated at another landmark
		return errCareful
	}
	var made [][]any
	for key := range missing {
		made = append(made, cells[key].row())
	}
	return c.t.insert(makeCells, made, nil)
}

// is reports whether a cell is kept as the stored one, given as text, and the first observation
// that comes counts there.
func (r *cellRow) is(kept string, first evidence.Instant) bool {
	policy := fmt.Sprint(r.policy.HalfLife.Microseconds(), flag(r.policy.ByOrigin))
	restart, same := strings.CutPrefix(kept, policy+" ")
	at, err := strconv.ParseInt(restart, 10, 64)
	return same && err == nil && evidence.Instant(at) <= first
}

package sqlstore

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/stores"
	"github.com/heedhq/heed/store"
)

// takeAway does the part of a batch that comes before it adds anything, in the order of the batch's
// fields. The commit has the store alone, so what is read here stays as it is until the end.
func (c *change) takeAway(b *store.Batch, receipt *store.Receipt) error {
	if err := c.reset(b.Reset); err != nil {
		return err
	}
	for _, cell := range b.Rebuild {
		if err := c.rebuild(cell, b.Policies[cell.Kind]); err != nil {
			return err
		}
	}
	for _, r := range b.Restart {
		if err := c.restart(r, b.Policies[r.Cell.Kind]); err != nil {
			return err
		}
	}
	if err := c.retract(b.Retract); err != nil {
		return err
	}
	if err := c.withdraw(b.Withdraw, receipt); err != nil {
		return err
	}
	return c.expunge(b.Expunge)
}

// reset removes cells with all that they have. The ids of their observations stay in heed_id, so
// that an outcome that is delivered again does not count.
func (c *change) reset(cells []evidence.Cell) error {
	if len(cells) == 0 {
		return nil
	}
	rows, err := columnOfCells(cells)
	for _, q := range resetCells {
		if err == nil {
			_, err = c.t.exec(q, rows)
		}
	}
	return err
}

// columnOfCells names cells by their hashes, as rows of one text each. Hashes keep the argument
// short, whatever the names of the cells.
func columnOfCells(cells []evidence.Cell) (string, error) {
	hashes := make([]string, len(cells))
	for i, cell := range cells {
		hashes[i] = hashOfCell(cell)
	}
	return column(hashes)
}

// resetCells has the statements of a reset.
var resetCells = []*query{
	both(`DELETE FROM heed_tally WHERE ` + amongCells),
	both(`DELETE FROM heed_observation WHERE ` + amongCells),
	both(`DELETE FROM heed_lost WHERE ` + amongCells),
	both(`DELETE FROM heed_cell WHERE ` + amongCells),
}

// amongCells selects rows of some cells. Each of the four tables has an index that begins with the
// cell, or the cell is its primary key.
const amongCells = `cell IN (SELECT value->>0 FROM json_each($1))`

// whenLost reads when the last observations happened that a cell's tallies count and its history
// does not have any more.
var whenLost = both(`SELECT lost_positive, lost_negative, lost_neutral FROM heed_tally
	WHERE cell = $1`)

// whole returns an error if a cell's sums hold an observation of a moment or later that its history
// does not. It looks at the tallies alone, which note the latest loss of each sign.
func (c *change) whole(key string, since evidence.Instant) error {
	return c.t.each(whenLost, []any{key}, func(scan func(...any) error) error {
		var lost [3]evidence.Instant
		err := scan(&lost[0], &lost[1], &lost[2])
		if err == nil && slices.Max(lost[:]) >= since {
			err = evidence.ErrForgotten
		}
		return err
	})
}

// rebuild makes the sums of a cell again from its history, under another policy. Its history must
// be whole. A cell that is not there needs no rebuild.
func (c *change) rebuild(cell evidence.Cell, policy evidence.Policy) error {
	key := hashOfCell(cell)
	found, err := c.findCells([]string{key})
	if err != nil || found[key] == nil {
		return err
	}
	found[key].policy = policy
	// Any loss at all is too much here, because the history has to yield everything that the sums
	// hold. 1 is the first moment there is.
	if err := c.whole(key, 1); err != nil {
		return err
	}
	return c.recount(found[key])
}

// restart moves the restart of a cell forward, and makes its sums again without what was before. A
// cell that does not exist is made, because what comes late must not count there. The history keeps
// what was before, so that its observations can still be retracted or expunged.
func (c *change) restart(r store.Restart, policy evidence.Policy) error {
	key, at := hashOfCell(r.Cell), evidence.InstantOf(r.At)
	cells, err := c.makeCells(map[string]*cellRow{key: {key: key, cell: r.Cell, policy: policy}})
	if err != nil {
		return err
	}
	row := cells[key]
	// An earlier restart than the cell's has no effect. It is no error, so that a repeated commit
	// is none either.
	if at <= row.restart {
		return nil
	}
	// What was lost from before the restart is to go in any case. Only what counts afterwards has
	// to be in the history.
	if err := c.whole(key, at); err != nil {
		return err
	}
	// The policy of a cell with evidence stays. A new one, or one that lost all it had, takes the
	// policy of this batch, because a restart settles it.
	open, err := c.open(row)
	if err != nil {
		return err
	}
	if !open {
		row.policy = policy
	}
	row.restart = at
	return c.recount(row)
}

// recounts empties a cell's sums before they are made again. With them the marks of loss go,
// because the new sums hold what is in the history alone.
var recounts = []*query{both(`DELETE FROM heed_tally WHERE cell = $1`), both(`DELETE FROM heed_lost
	WHERE cell = $1`)}

// recount makes the tallies of a cell again from its history. The result is the same as if the
// history had been observed under the policy from the beginning.
func (c *change) recount(row *cellRow) error {
	if err := c.keep(row); err != nil {
		return err
	}
	for _, q := range recounts {
		if _, err := c.t.exec(q, row.key); err != nil {
			return err
		}
	}
	// The policy and the restart were stored first. What is added below is computed by them, and so
	// is all that comes later.
	sums := make(deltas)
	if err := c.eachOf(row, func(o *evidence.Observation) { sums.add(row, o) }); err != nil {
		return err
	}
	return c.addSums(sums, map[string]*cellRow{row.key: row})
}

// wholeHistory reads a cell's history from the oldest on, by the index heed_observation_cell.
var wholeHistory = both(`SELECT ` + observationColumns + ` FROM heed_observation WHERE cell = $1
	ORDER BY happened, seq`)

// eachOf calls a function with the history of a cell. The function must not keep the observation.
func (c *change) eachOf(row *cellRow, do func(*evidence.Observation)) error {
	return c.t.each(wholeHistory, []any{row.key}, func(scan func(...any) error) error {
		one, err := scanObservation(scan)
		if err == nil {
			one.Cell = row.cell
			do(&one.Observation)
		}
		return err
	})
}

var (
	// stateOfIDs reads what is known of ids, by their primary key.
	stateOfIDs = both(`SELECT id, traced, retracted FROM heed_id
		WHERE id IN (SELECT value->>0 FROM json_each($1))`)
	// lostOfIDs finds the ids whose observations have left the history of a cell that still counts
	// some of what it lost.
	lostOfIDs = both(`SELECT DISTINCT f.id FROM heed_lost f JOIN heed_tally t ON t.cell = f.cell
		WHERE f.id IN (SELECT value->>0 FROM json_each($1))
			AND (t.lost_positive > 0 OR t.lost_negative > 0 OR t.lost_neutral > 0)`)
	// setRetracted marks ids as taken back, so that taking them back again has no effect.
	setRetracted = both(`UPDATE heed_id SET retracted = 1
		WHERE id IN (SELECT value->>0 FROM json_each($1))`)
	// takenOfIDs reads a page of the observations of some ids, by the index heed_observation_id. What
	// was read is deleted before the next page is read.
	takenOfIDs = both(`SELECT ` + observationColumns + ` FROM heed_observation
		WHERE id IN (SELECT value->>0 FROM json_each($1)) ORDER BY seq LIMIT 500`)
	// takenOfSource reads a page of the observations of a source in some cells, by the index
	// heed_observation_cell or heed_observation_source.
	takenOfSource = both(`SELECT ` + observationColumns + ` FROM heed_observation
		WHERE ` + amongCells + ` AND source <> '' AND source = $2 ORDER BY seq LIMIT 500`)
)

// retractable returns, by the hash of an id, nil for one that can be retracted, and for every other
// the reason. An id that was retracted already is in neither.
func (c *change) retractable(ids []string) (gone []string, reasons map[string]error, err error) {
	reasons = make(map[string]error)
	hashes := make([]string, len(ids))
	for i, id := range ids {
		hashes[i] = hashOfID(id)
		reasons[hashes[i]] = heed.ErrNotFound
	}
	asked, err := column(hashes)
	if err != nil {
		return nil, nil, err
	}
	err = c.t.each(stateOfIDs, []any{asked}, func(scan func(...any) error) error {
		var id string
		var traced, retracted int64
		// An id that a later batch of this commit brings was made known before, and yet is not known
		// to this batch: it takes away what was there when the commit began.
		if err := scan(&id, &traced, &retracted); err != nil || c.fresh[id] {
			return err
		}
		delete(reasons, id)
		// Its reason to be kept, that it was never seen, does not hold any more. One that was
		// retracted before has nothing to take back, and no reason against it.
		switch {
		case retracted == 1:
		case traced == 0:
			reasons[id] = evidence.ErrForgotten
		default:
			gone = append(gone, id)
		}
		return nil
	})
	if err != nil || len(gone) == 0 {
		return nil, reasons, err
	}
	asked, err = column(gone)
	if err != nil {
		return nil, nil, err
	}
	// A mark of loss matters only while the tally may still hold what was lost. After a rebuild or
	// a restart the sums are of the history alone.
	forgotten, err := c.t.texts(lostOfIDs, asked)
	for _, id := range forgotten {
		reasons[id] = evidence.ErrForgotten
	}
	return slices.DeleteFunc(gone, func(id string) bool { return reasons[id] != nil }), reasons, err
}

// retract takes back all of the ids or returns why that is not possible: an id that was never seen
// goes before one whose history is gone.
func (c *change) retract(ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	gone, reasons, err := c.retractable(ids)
	if err != nil {
		return err
	}
	// Nothing is taken before all ids were looked at, because a refused commit has no effect. The
	// order of the reasons must not depend on the order of a map.
	unknown := false
	for _, reason := range reasons {
		unknown = unknown || errors.Is(reason, heed.ErrNotFound)
	}
	switch {
	case unknown:
		return heed.ErrNotFound
	case len(reasons) > 0:
		return evidence.ErrForgotten
	}
	return c.takeIDs(gone)
}

// withdraw takes back the ids for which it is possible, and has the receipt list the others.
func (c *change) withdraw(ids []string, receipt *store.Receipt) error {
	if len(ids) == 0 {
		return nil
	}
	gone, reasons, err := c.retractable(ids)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if reasons[hashOfID(id)] != nil && !slices.Contains(receipt.Kept, id) {
			receipt.Kept = append(receipt.Kept, id)
		}
	}
	return c.takeIDs(gone)
}

// takeIDs takes the observations of ids back. The ids stay known, so that they do not count again.
func (c *change) takeIDs(hashes []string) error {
	if len(hashes) == 0 {
		return nil
	}
	rows, err := column(hashes)
	if err != nil {
		return err
	}
	// The observations go first: the mark on the id means that all of them were taken.
	if err := c.take(takenOfIDs, rows); err != nil {
		return err
	}
	_, err = c.t.exec(setRetracted, rows)
	return err
}

var (
	// sourceLostOf finds a row if one of the cells counts an observation with a source that is no
	// longer in the history, in a tally that does not keep sources apart.
	sourceLostOf = both(`SELECT 1 FROM heed_tally
		WHERE ` + amongCells + ` AND lost_source = 1 LIMIT 1`)
	// dropSource removes what is left of a source after its observations were taken: its tallies, its
	// marks of loss, and cells that are named like the source and have become empty.
	dropSource = []*query{
		both(`DELETE FROM heed_tally WHERE ` + amongCells + ` AND source <> '' AND source = $2`),
		both(`DELETE FROM heed_lost WHERE ` + amongCells + ` AND source <> '' AND source = $2`),
		both(`DELETE FROM heed_cell WHERE ` + amongCells + ` AND (scope = $2 OR item = $2 OR name = $2)
			AND NOT EXISTS (SELECT 1 FROM heed_tally t WHERE t.cell = heed_cell.cell)
			AND NOT EXISTS (SELECT 1 FROM heed_observation h WHERE h.cell = heed_cell.cell)`),
	}
)

// expunge groups the cells by source, so that a source costs the same number of statements for one
// cell and for hundreds.
func (c *change) expunge(all []store.SourceOf) error {
	cells := make(map[string][]evidence.Cell)
	for _, e := range all {
		cells[e.Source] = append(cells[e.Source], e.Cell)
	}
	for _, source := range slices.Sorted(maps.Keys(cells)) {
		if err := c.expungeFrom(cells[source], source); err != nil {
			return err
		}
	}
	return nil
}

// expungeFrom takes a source out of cells. The source's observations are taken out of the history
// and the sums first; tallies that are of the source alone then go with whatever rounding left in
// them.
func (c *change) expungeFrom(cells []evidence.Cell, source string) error {
	rows, err := columnOfCells(cells)
	if err != nil {
		return err
	}
	// Where origins are together and one with a source was lost, it is unknown whose it was. Where
	// they are apart, the tally of the source goes as a whole, with what was lost in it.
	lost, err := c.t.finds(sourceLostOf, rows)
	if err == nil && lost {
		err = evidence.ErrForgotten
	}
	if err == nil {
		err = c.take(takenOfSource, rows, source)
	}
	for _, q := range dropSource {
		if err == nil {
			_, err = c.t.exec(q, rows, source)
		}
	}
	return err
}

var (
	// dropFromHistory removes observations by their numbers.
	dropFromHistory = both(`DELETE FROM heed_observation
		WHERE seq IN (SELECT CAST(value->>0 AS BIGINT) FROM json_each($1))`)
	// dropEmptied removes the tallies of a cell that count no observation any more.
	dropEmptied = both(`DELETE FROM heed_tally
		WHERE cell = $1 AND n_positive = 0 AND n_negative = 0 AND n_neutral = 0`)
	// setLast sets when the last observations of a tally happened: the later of what the history has
	// and what is known to be lost, and 0 if there is none left.
	setLast = both(`UPDATE heed_tally SET
			last_positive = CASE WHEN n_positive = 0 THEN 0
				WHEN lost_positive > $1 THEN lost_positive ELSE $1 END,
			last_negative = CASE WHEN n_negative = 0 THEN 0
				WHEN lost_negative > $2 THEN lost_negative ELSE $2 END,
			last_neutral = CASE WHEN n_neutral = 0 THEN 0
				WHEN lost_neutral > $3 THEN lost_neutral ELSE $3 END
		WHERE cell = $4 AND channel = $5 AND source = $6`)
)

// remove deletes a page of a query's finds from the history, and returns it with its cells. It
// leaves an observation that is damaged: see unread.
func (c *change) remove(q *query, args ...any) (page []kept, cells map[string]*cellRow, err error) {
	err = c.t.each(q, args, func(scan func(...any) error) error {
		one, err := scanObservation(scan)
		if err == nil {
			page = append(page, one)
		} else if errors.Is(err, heed.ErrDamaged) {
			c.unread, err = err, nil
		}
		return err
	})
	if err != nil || len(page) == 0 {
		return nil, nil, err
	}
	keys, seqs := make([]string, len(page)), make([][]any, len(page))
	for i := range page {
		keys[i], seqs[i] = page[i].key, []any{page[i].seq}
	}
	slices.Sort(keys)
	cells, err = c.findCells(slices.Compact(keys))
	if err != nil {
		return nil, nil, err
	}
	return page, cells, c.t.execRows(dropFromHistory, seqs)
}

// take removes a query's finds from the history and, as far as they counted, from the sums. Each
// page is deleted, so the query finds the next one without an offset.
func (c *change) take(q *query, args ...any) error {
	for {
		page, cells, err := c.remove(q, args...)
		if err = cmp.Or(err, c.unread); err != nil || len(page) == 0 {
			return err
		}
		sums := make(deltas)
		for i := range page {
			sums.add(cells[page[i].key], &page[i].Observation)
		}
		// To take away is to add what is negative, by the statement that adds. So a landmark that
		// moved is scaled in one place.
		for _, d := range sums {
			d.negate()
		}
		if err := c.addSums(sums, cells); err != nil {
			return err
		}
		// A page at a time, the sums and what follows from them are right. The memory is bounded by
		// the page, whatever a source has sent.
		if err := c.correctLast(sums, cells); err != nil {
			return err
		}
	}
}

// correctLast sets when the last observations of tallies happened to what is left: in the history,
// or known to be lost. A sum can be subtracted, but the latest moment can't: without the
// observation that was taken, another one is the last, and only the history knows which.
func (c *change) correctLast(touched deltas, cells map[string]*cellRow) error {
	last := make(map[origin][3]evidence.Instant)
	for from := range touched {
		last[from] = [3]evidence.Instant{}
	}
	for _, row := range cells {
		err := c.eachOf(row, func(o *evidence.Observation) {
			from := row.origin(o)
			if at, ok := last[from]; ok && row.counts(o) {
				s := stores.Sign(o.Reward)
				at[s] = max(at[s], evidence.InstantOf(o.At))
				last[from] = at
			}
		})
		if err != nil {
			return err
		}
	}
	for from, at := range last {
		_, err := c.t.exec(setLast, int64(at[0]), int64(at[1]), int64(at[2]), from.key, from.channel,
			from.source)
		if err != nil {
			return err
		}
	}
	// A tally of no observations is no part, though rounding may have left a little in its sums.
	for key := range cells {
		if _, err := c.t.exec(dropEmptied, key); err != nil {
			return err
		}
	}
	return nil
}

package sqlstore

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
)

// takeAway does what a batch does before it adds anything. It has the store alone.
func (c *commit) takeAway() error {
	for _, selection := range c.batch.Reset {
		if err := c.reset(selection); err != nil {
			return err
		}
	}
	for _, cell := range c.batch.Rebuild {
		if err := c.rebuild(cell); err != nil {
			return err
		}
	}
	for _, r := range c.batch.Restart {
		if err := c.restart(r); err != nil {
			return err
		}
	}
	if err := c.retract(); err != nil {
		return err
	}
	return c.expunge()
}

const selected = `kind = $1 AND scope = $2 AND ($3 = '' OR item = $3) AND ($4 = '' OR name = $4)`

// resets has the statements of a reset; the cells go last, as the others look them up.
var resets = []*query{
	both(`DELETE FROM heed_tallies WHERE cell IN (SELECT cell FROM heed_cells WHERE ` + selected + `)`),
	both(`DELETE FROM heed_history WHERE cell IN (SELECT cell FROM heed_cells WHERE ` + selected + `)`),
	both(`DELETE FROM heed_forgotten WHERE cell IN (SELECT cell FROM heed_cells WHERE ` + selected + `)`),
	both(`DELETE FROM heed_cells WHERE ` + selected),
}

func (c *commit) reset(s evidence.Selection) error {
	for _, q := range resets {
		if _, err := c.t.exec(q, s.Kind, s.Scope, s.Item, s.Name); err != nil {
			return err
		}
	}
	return nil
}

var readLost = both(`SELECT lost_positive, lost_negative, lost_neutral FROM heed_tallies WHERE cell = $1`)

// lost returns when the last happened of what a cell's sums hold and its history does not, and 0 where there is no such.
func (c *commit) lost(key string) (last evidence.Instant, err error) {
	err = c.t.each(readLost, []any{key}, func(scan func(...any) error) error {
		var lost [3]evidence.Instant
		err := scan(&lost[0], &lost[1], &lost[2])
		last = max(last, slices.Max(lost[:]))
		return err
	})
	return last, err
}

func (c *commit) cell(key string) (*cellRow, error) {
	found, err := c.readCells([]string{key})
	return found[key], err
}

func (c *commit) rebuild(cell evidence.Cell) error {
	row, err := c.cell(keyOf(cell))
	if err != nil || row == nil {
		return err
	}
	lost, err := c.lost(row.key)
	switch {
	case err != nil:
		return err
	case lost > 0:
		return evidence.ErrForgotten
	}
	row.policy = c.batch.Policies[cell.Kind]
	return c.recount(row)
}

func (c *commit) restart(r evidence.Restart) error {
	key, at := keyOf(r.Cell), evidence.InstantOf(r.At)
	cells, err := c.addCells(map[string]evidence.Cell{key: r.Cell})
	if err != nil {
		return err
	}
	row := cells[key]
	if at <= row.restart {
		return nil
	}
	lost, err := c.lost(key)
	switch {
	case err != nil:
		return err
	case lost >= at:
		return evidence.ErrForgotten
	}
	open, err := c.open(row)
	if err != nil {
		return err
	}
	if !open {
		row.policy = c.batch.Policies[r.Cell.Kind]
	}
	row.restart = at
	return c.recount(row)
}

var (
	dropTallies   = both(`DELETE FROM heed_tallies WHERE cell = $1`)
	dropForgotten = both(`DELETE FROM heed_forgotten WHERE cell = $1`)
)

// recount makes the tallies of a cell anew from its history.
func (c *commit) recount(row *cellRow) error {
	if err := c.keep(row); err != nil {
		return err
	}
	for _, q := range []*query{dropTallies, dropForgotten} {
		if _, err := c.t.exec(q, row.key); err != nil {
			return err
		}
	}
	sums := make(deltas)
	err := c.eachObservation(row.key, func(o *evidence.Observation) { sums.add(row, o) })
	if err != nil {
		return err
	}
	return sums.write(c.t)
}

var readHistory = both(`SELECT observation FROM heed_history WHERE cell = $1 ORDER BY happened, seq`)

// eachObservation calls a function with what the history holds of a cell. Here a row that can't be read is an error.
func (c *commit) eachObservation(key string, do func(*evidence.Observation)) error {
	return c.t.each(readHistory, []any{key}, func(scan func(...any) error) error {
		var text string
		if err := scan(&text); err != nil {
			return err
		}
		var o evidence.Observation
		if err := json.Unmarshal([]byte(text), &o); err != nil {
			return err
		}
		do(&o)
		return nil
	})
}

var (
	readIDs = both(`SELECT id, traced, retracted FROM heed_ids
		WHERE space = 0 AND id IN (SELECT value->>0 FROM json_each($1))`)
	isForgotten = both(`SELECT 1 FROM heed_forgotten f JOIN heed_tallies t ON t.cell = f.cell
		WHERE f.id IN (SELECT value->>0 FROM json_each($1))
			AND (t.lost_positive > 0 OR t.lost_negative > 0 OR t.lost_neutral > 0) LIMIT 1`)
	markRetracted = both(`UPDATE heed_ids SET retracted = 1
		WHERE space = 0 AND id IN (SELECT value->>0 FROM json_each($1))`)
	historyOfIDs = both(`SELECT seq, cell, observation FROM heed_history
		WHERE id IN (SELECT value->>0 FROM json_each($1)) ORDER BY seq LIMIT 500`)
	historyOfSources = both(`SELECT seq, cell, observation FROM heed_history
		WHERE source <> '' AND source IN (SELECT value->>0 FROM json_each($1)) ORDER BY seq LIMIT 500`)
)

func (c *commit) retract() error {
	if len(c.batch.Retract) == 0 {
		return nil
	}
	asked, err := column(c.batch.Retract)
	if err != nil {
		return err
	}
	known := make(map[string]bool)
	traced, gone := true, make([]string, 0, len(c.batch.Retract))
	err = c.t.each(readIDs, []any{asked}, func(scan func(...any) error) error {
		var id string
		var hasHistory, retracted bool
		if err := scan(&id, &hasHistory, &retracted); err != nil {
			return err
		}
		known[id] = id != c.batch.ID
		if !retracted {
			traced = traced && hasHistory
			gone = append(gone, id)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, id := range c.batch.Retract {
		if !known[id] {
			return heed.ErrNotFound
		}
	}
	rows, err := column(gone)
	if err != nil || len(gone) == 0 {
		return err
	}
	forgotten, err := c.t.finds(isForgotten, rows)
	switch {
	case err != nil:
		return err
	case forgotten || !traced:
		return evidence.ErrForgotten
	}
	if err := c.take(historyOfIDs, rows); err != nil {
		return err
	}
	_, err = c.t.exec(markRetracted, rows)
	return err
}

var (
	lostSource      = both(`SELECT c.kind, c.scope FROM heed_tallies t JOIN heed_cells c ON c.cell = t.cell WHERE t.lost_source = 1 LIMIT 1`)
	talliesOfSource = both(`DELETE FROM heed_tallies
		WHERE source <> '' AND source IN (SELECT value->>0 FROM json_each($1))`)
)

func (c *commit) expunge() error {
	if len(c.batch.Expunge) == 0 {
		return nil
	}
	var kind, scope string
	switch err := c.t.one(lostSource, nil, &kind, &scope); {
	case err == nil:
		return fmt.Errorf("in a cell of kind %q and scope %q: %w", kind, scope, evidence.ErrForgotten)
	case !errors.Is(err, heed.ErrNotFound):
		return err
	}
	rows, err := column(c.batch.Expunge)
	if err != nil {
		return err
	}
	if err := c.take(historyOfSources, rows); err != nil {
		return err
	}
	_, err = c.t.exec(talliesOfSource, rows)
	return err
}

// taken is an observation on its way out of the history.
type taken struct {
	seq int64
	key string
	evidence.Observation
}

var (
	dropHistory = both(`DELETE FROM heed_history WHERE seq IN (SELECT CAST(value->>0 AS BIGINT) FROM json_each($1))`)
	dropEmpty   = both(`DELETE FROM heed_tallies WHERE cell = $1 AND n_positive = 0 AND n_negative = 0 AND n_neutral = 0`)
	mendLast    = both(`UPDATE heed_tallies SET
		last_positive = CASE WHEN n_positive = 0 THEN 0 WHEN lost_positive > $1 THEN lost_positive ELSE $1 END,
		last_negative = CASE WHEN n_negative = 0 THEN 0 WHEN lost_negative > $2 THEN lost_negative ELSE $2 END,
		last_neutral = CASE WHEN n_neutral = 0 THEN 0 WHEN lost_neutral > $3 THEN lost_neutral ELSE $3 END
		WHERE cell = $4 AND channel = $5 AND source = $6`)
)

// page returns observations that a query finds in the history.
func (c *commit) page(q *query, args ...any) (page []taken, err error) {
	err = c.t.each(q, args, func(scan func(...any) error) error {
		var one taken
		var text string
		if err := scan(&one.seq, &one.key, &text); err != nil {
			return err
		}
		err := json.Unmarshal([]byte(text), &one.Observation)
		page = append(page, one)
		return err
	})
	return page, err
}

// remove deletes observations from the history, and returns their cells.
func (c *commit) remove(page []taken) (map[string]*cellRow, error) {
	seqs := make([][]any, len(page))
	keys := make(map[string]bool)
	for i := range page {
		seqs[i] = []any{page[i].seq}
		keys[page[i].key] = true
	}
	rows, err := rowsOf(seqs)
	if err != nil {
		return nil, err
	}
	if _, err := c.t.exec(dropHistory, rows); err != nil {
		return nil, err
	}
	return c.readCells(slices.Collect(maps.Keys(keys)))
}

// take takes out of the history what a query finds in it, and as far as it counted, out of the sums.
func (c *commit) take(q *query, rows string) error {
	for {
		page, err := c.page(q, rows)
		if err != nil || len(page) == 0 {
			return err
		}
		cells, err := c.remove(page)
		if err != nil {
			return err
		}
		sums := make(deltas)
		for i := range page {
			sums.add(cells[page[i].key], &page[i].Observation)
		}
		for _, d := range sums {
			d.negate()
		}
		if err := sums.write(c.t); err != nil {
			return err
		}
		if err := c.mend(sums, cells); err != nil {
			return err
		}
	}
}

// mend sets when the last observations of tallies happened to what is left: in the history, or known to be lost.
func (c *commit) mend(touched deltas, cells map[string]*cellRow) error {
	last := make(map[origin][3]evidence.Instant)
	for from := range touched {
		last[from] = [3]evidence.Instant{}
	}
	for key, row := range cells {
		err := c.eachObservation(key, func(o *evidence.Observation) {
			from := row.origin(o)
			if at, ok := last[from]; ok && row.counts(o) {
				s := sign(o.Reward)
				at[s] = max(at[s], evidence.InstantOf(o.At))
				last[from] = at
			}
		})
		if err != nil {
			return err
		}
	}
	for from, at := range last {
		_, err := c.t.exec(mendLast, int64(at[0]), int64(at[1]), int64(at[2]), from.key, from.channel, from.source)
		if err != nil {
			return err
		}
	}
	for key := range cells {
		if _, err := c.t.exec(dropEmpty, key); err != nil {
			return err
		}
	}
	return nil
}

package sqlstore

import (
	"context"
	"fmt"

	"github.com/heedhq/heed/evidence"
)

var (
	oldHistory = both(`SELECT seq, cell, observation FROM heed_history WHERE recorded < $1 ORDER BY recorded LIMIT 500`)
	fullCells  = both(`SELECT cell FROM heed_history GROUP BY cell HAVING count(*) > $1`)
	overMuch   = both(`SELECT seq, cell, observation FROM heed_history WHERE cell = $1
		ORDER BY happened DESC, seq DESC LIMIT 500 OFFSET $2`)
	oldForgotten = both(`DELETE FROM heed_forgotten WHERE recorded < $1`)
	oldIDs       = both(`DELETE FROM heed_ids WHERE (space, id) IN (SELECT space, id FROM heed_ids WHERE recorded < $1 LIMIT 10000)`)
	oldAudit     = both(`DELETE FROM heed_audit WHERE seq <= (SELECT seq FROM heed_audit ORDER BY seq DESC LIMIT 1 OFFSET $1)`)
	emptyCells   = both(`DELETE FROM heed_cells WHERE restart = 0
		AND NOT EXISTS (SELECT 1 FROM heed_tallies t WHERE t.cell = heed_cells.cell)
		AND NOT EXISTS (SELECT 1 FROM heed_history h WHERE h.cell = heed_cells.cell)`)
	loseTally = both(`UPDATE heed_tallies SET
		lost_positive = CASE WHEN lost_positive < $1 THEN $1 ELSE lost_positive END,
		lost_negative = CASE WHEN lost_negative < $2 THEN $2 ELSE lost_negative END,
		lost_neutral = CASE WHEN lost_neutral < $3 THEN $3 ELSE lost_neutral END,
		lost_source = CASE WHEN lost_source < $4 THEN $4 ELSE lost_source END
		WHERE cell = $5 AND channel = $6 AND source = $7`)
	addForgotten = both(`INSERT INTO heed_forgotten (id, cell, recorded)
		SELECT value->>0, value->>1, CAST($1 AS BIGINT) FROM json_each($2) WHERE true ON CONFLICT DO NOTHING`)
)

// Sweep removes history, ids and audit entries that are past their time or over their number. The sums stay as they are. It
// is for the host to call now and then, from as many processes as it likes; it works in small transactions, each of which has the
// store alone for a moment.
func (e *Evidence) Sweep(ctx context.Context) error {
	now := evidence.InstantOf(e.cfg.Now())
	c := &commit{store: e, batch: &evidence.Batch{}, now: now, alone: true}
	historyTo := int64(now) - e.cfg.HistoryFor.Microseconds()
	idsTo := int64(now) - e.cfg.IDsFor.Microseconds()
	var full []string
	steps := []func() (again bool, err error){
		func() (bool, error) { return c.lose(oldHistory, historyTo) },
		func() (bool, error) {
			if full == nil {
				found, err := c.t.texts(fullCells, e.cfg.HistoryPerCell)
				if err != nil || len(found) == 0 {
					return false, err
				}
				full = found
			}
			again, err := c.lose(overMuch, full[0], e.cfg.HistoryPerCell)
			if err == nil && !again {
				full = full[1:]
			}
			return len(full) > 0, err
		},
		func() (bool, error) {
			n, err := c.t.exec(oldIDs, idsTo)
			return n > 0, err
		},
		func() (bool, error) {
			_, err := c.t.exec(oldForgotten, idsTo)
			return false, err
		},
		func() (bool, error) {
			_, err := c.t.exec(oldAudit, e.cfg.MaxAudit)
			return false, err
		},
		func() (bool, error) {
			_, err := c.t.exec(emptyCells)
			return false, err
		},
	}
	for _, step := range steps {
		for again := true; again; {
			err := e.db.write(ctx, lockAlone, func(t *tx) (err error) {
				c.t = t
				again, err = step()
				return err
			})
			if err != nil {
				return fmt.Errorf("sqlstore: sweep: %w", err)
			}
		}
	}
	return nil
}

// lose takes a page of what a query finds out of the history, and leaves it in the sums. It reports whether there was any.
func (c *commit) lose(q *query, args ...any) (bool, error) {
	page, err := c.page(q, args...)
	if err != nil || len(page) == 0 {
		return false, err
	}
	cells, err := c.remove(page)
	if err != nil {
		return false, err
	}
	sums := make(deltas)
	gone := make([][]any, len(page))
	for i := range page {
		o := &page[i].Observation
		if d := sums.add(cells[page[i].key], o); d != nil {
			d.lose(o)
		}
		gone[i] = []any{o.ID, page[i].key}
	}
	for from, d := range sums {
		if _, err := c.t.exec(loseTally, int64(d.lost[0]), int64(d.lost[1]), int64(d.lost[2]), flag(d.lostSource),
			from.key, from.channel, from.source); err != nil {
			return false, err
		}
	}
	rows, err := rowsOf(gone)
	if err != nil {
		return false, err
	}
	_, err = c.t.exec(addForgotten, int64(c.now), rows)
	return true, err
}

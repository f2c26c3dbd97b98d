package sqlstore

import (
	"context"
	"fmt"
	"strings"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/mending"
	"github.com/heedhq/heed/store"
)

func init() {
	mending.Mend = func(ctx context.Context, st store.Store, cell mending.Cell) error {
		s, ok := st.(*Store)
		if !ok {
			return &heed.InputError{Field: "st", Reason: "must be a store of this package"}
		}
		return s.mend(ctx, cell)
	}
}

func (s *Store) mend(ctx context.Context, cell mending.Cell) error {
	c, err := s.begin(ctx, []store.Batch{{Records: []store.Record{cell.Why.Record()}}})
	if err == nil {
		c.alone, c.mending = true, &cell
		mend := func() error { return s.db.enter(ctx, c.enter, c.run) }
		if err = c.retry(mend); malformed(err) && cell.Reset {
			c.reindex = true
			err = c.retry(mend)
		}
	}
	if s.cache != nil {
		s.cache.clear()
	}
	if _, err = c.result(err); err != nil {
		return fmt.Errorf("sqlstore: mend: %w", because(ctx, err))
	}
	return nil
}

// malformed reports whether an error is SQLite's that a row and its entry in an index are not alike. Each driver has a type of its own for it.
func malformed(err error) bool { return err != nil && strings.Contains(err.Error(), "malformed") }

// reindexCells makes the indexes anew from the tables.
var reindexCells = []*query{
	either(`REINDEX heed_tally`, ``), either(`REINDEX heed_observation`, ``), either(`REINDEX heed_lost`, ``), either(`REINDEX heed_cell`, ``),
}

// dropCell has the statements that take away all rows that belong to a cell by its key.
var dropCell = []*query{
	both(`DELETE FROM heed_tally WHERE cell = $1`),
	both(`DELETE FROM heed_observation WHERE cell = $1`),
	both(`DELETE FROM heed_lost WHERE cell = $1`),
	both(`DELETE FROM heed_cell WHERE cell = $1`),
}

func (c *change) mendCell() error {
	key := c.mending.Key
	if c.reindex {
		for _, q := range reindexCells {
			if _, err := c.t.exec(q); err != nil {
				return err
			}
		}
	}
	if c.mending.Reset {
		var all int64
		for _, q := range dropCell {
			n, err := c.t.exec(q, key)
			if err != nil {
				return err
			}
			all += n
		}
		if all == 0 {
			return heed.ErrNotFound
		}
		return nil
	}
	found, err := c.findCells([]string{key})
	switch {
	case err != nil:
		return err
	case found[key] == nil:
		return c.withoutCell(key)
	}
	return c.recountWhole(found[key])
}

var anyOfCell = both(`SELECT 1 FROM heed_tally WHERE cell = $1 UNION ALL SELECT 1 FROM heed_observation WHERE cell = $1
	UNION ALL SELECT 1 FROM heed_lost WHERE cell = $1`)

// withoutCell returns the error for a key that no cell has. Rows that belong to it all the same can't be counted, as the half-life is lost.
func (c *change) withoutCell(key string) error {
	found, err := c.t.finds(anyOfCell, key)
	switch {
	case err != nil:
		return err
	case found:
		return c.t.db.damage("the cell of rows of %s, which is missing", key)
	}
	return heed.ErrNotFound
}

// recountWhole makes the sums of a cell anew if its history is whole.
func (c *change) recountWhole(row *cellRow) error {
	lost, err := c.lost(row.key)
	switch {
	case err != nil:
		return err
	case lost > 0:
		return evidence.ErrForgotten
	}
	return c.recount(row)
}

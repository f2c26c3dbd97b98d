package memstore

import (
	"maps"
	"slices"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/dump"
	"github.com/heedhq/heed/store"
)

// takeAway works out what the first batch takes away, in the order of the batch's fields. Only
// copies of cells change, so an error anywhere leaves the state as it was. What is not possible is
// an [evidence.ErrForgotten], except for ids to withdraw, which the receipt lists.
//
// The order matters: a cell that is reset and restarted in one batch has neither evidence nor a
// past, and what a batch retracts is taken out of the rebuilt sums.
func (t *txn) takeAway(b *store.Batch) error {
	t.copies = make(map[*cell]*cell)
	for _, of := range b.Reset {
		if found := t.find(of); found != nil {
			t.copies[found] = &cell{Cell: of}
		}
	}
	for _, of := range b.Rebuild {
		found := t.find(of)
		if found == nil {
			continue
		}
		c := t.edit(found)
		if c.lostAt() > 0 {
			return evidence.ErrForgotten
		}
		c.policy = b.Policies[of.Kind]
		c.rebuild()
	}
	for _, r := range b.Restart {
		if err := t.restart(r, b.Policies[r.Cell.Kind]); err != nil {
			return err
		}
	}
	for _, text := range b.Retract {
		if err := t.retract(text); err != nil {
			return err
		}
	}
	for _, text := range b.Withdraw {
		kept := &t.receipts[0].Kept
		if t.retract(text) != nil && !slices.Contains(*kept, text) {
			*kept = append(*kept, text)
		}
	}
	for _, e := range b.Expunge {
		if err := t.expunge(e); err != nil {
			return err
		}
	}
	return nil
}

// edit returns the copy of a cell that is to take its place. Observations that are past their time
// have become lost in it, so that the result does not depend on when the last sweep was. A cell
// that is edited twice in one batch has one copy.
func (t *txn) edit(c *cell) *cell {
	copied := t.copies[c]
	if copied == nil {
		copied = c.clone()
		copied.prune(t.oldestHistory(t.now))
		t.copies[c] = copied
	}
	return copied
}

// restart moves the restart of a cell forward. If the sums hold something lost from after the new
// restart, they can't be computed from the history.
func (t *txn) restart(r store.Restart, policy evidence.Policy) error {
	c, at := t.edit(t.cell(r.Cell)), evidence.InstantOf(r.At)
	if at <= c.restart {
		return nil
	}
	// What was lost from before the new restart need not be known, since it no longer counts.
	if c.lostAt() >= at {
		return evidence.ErrForgotten
	}
	if !c.open() {
		c.policy = policy
	}
	c.restart = at
	c.rebuild()
	return nil
}

// retract takes the observations of an id out of their cells, or returns why that is not possible.
// An id may have observations in several cells, and all of them are taken out together. Of an
// observation that does not count any more, the history need not be there.
func (t *txn) retract(text string) error {
	h := hashID(text)
	k := t.state.known[h]
	switch {
	case k == nil:
		return heed.ErrNotFound
	case k.retracted:
		return nil
	case k.untraced || t.cfg.NoHistory:
		return evidence.ErrForgotten
	}
	// All cells are asked before any changes, because Withdraw goes on after an id that is refused.
	for _, c := range k.cells {
		if t.edit(c).lacks(h) {
			return evidence.ErrForgotten
		}
	}
	for _, c := range k.cells {
		t.edit(c).take(func(e *entry) bool { return e.ID == text })
	}
	t.retracted = append(t.retracted, k)
	return nil
}

// expunge takes the observations of a source out of a cell. If the cell keeps origins apart, the
// sums of the source go with all that they hold, also what is lost. Otherwise the history must have
// all of the source's observations.
func (t *txn) expunge(of store.SourceOf) error {
	found := t.find(of.Cell)
	if found == nil {
		return nil
	}
	c := t.edit(found)
	if slices.ContainsFunc(c.tallies, func(t tally) bool { return t.lostSource }) {
		return evidence.ErrForgotten
	}
	// First the history, which corrects sums that hold several sources. Then, where origins are
	// apart, the tallies of the source, which may also hold what was lost.
	c.take(func(e *entry) bool { return e.Source == of.Source })
	c.tallies = slices.DeleteFunc(c.tallies, func(t tally) bool { return t.Source == of.Source })
	maps.DeleteFunc(c.lost, func(_ id, from *dump.Origin) bool {
		return from != nil && from.Source == of.Source
	})
	// Without its restart the cell is empty, and goes: its name would keep the source.
	if len(c.tallies)+len(c.history) == 0 && c.named(of.Source) {
		c.restart = 0
	}
	return nil
}

// named reports whether a source is in the name of the cell.
func (c *cell) named(source string) bool {
	return source == c.Scope || source == c.Item || source == c.Name
}

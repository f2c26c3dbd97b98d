package strategy

import (
	"context"
	"errors"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/fair"
	"github.com/heedhq/heed/store"
)

// Beliefs returns the belief about each arm of an item now, in the order of the arms. The query's
// session and permitted arms are ignored.
func (l *Learner) Beliefs(ctx context.Context, q Query) ([]evidence.Belief, error) {
	return l.BeliefsIn(store.Reading(ctx, l.cfg.Store), q)
}

// BeliefsIn does what [Learner.Beliefs] does as a part of a step. What it reads is among what
// [Learner.Wants] names, unless this process remembers the session's choice.
func (l *Learner) BeliefsIn(tx *store.Tx, q Query) (_ []evidence.Belief, err error) {
	defer because(&err, "beliefs")
	if err := q.validate(); err != nil {
		return nil, err
	}
	s, err := l.segment(q.Category, q.Context)
	if err != nil {
		return nil, err
	}
	read, err := l.read(tx, s, q.Item, l.cfg.Now())
	if err != nil {
		return nil, err
	}
	return l.believe(s, read), nil
}

// believe returns the beliefs that follow from what was read of an item.
func (l *Learner) believe(s *segment, read *reading) []evidence.Belief {
	beliefs := make([]evidence.Belief, len(l.cfg.Arms))
	s.mu.RLock()
	defer s.mu.RUnlock()
	s.found.model.Believe(read.Item, beliefs)
	return beliefs
}

// A reading is what was read of an item: the Item for the pooling, and what the learner itself
// needs of the same cells.
type reading struct {
	Item
	// arms are the parts of each arm's cell, by arm. They still name their sources, which Item.Arms
	// no longer does because the limits on people are applied there.
	arms [][]evidence.Part
	// resets are how often the segment and the item were reset, at the time of the reading.
	resets resets
	// records are in the order of the refs that were asked for.
	records []store.Record
}

// read reads what an item showed, and some records, in one round trip. It loads the segment if that
// is older than Config.Refresh. The load and the reading share the round trip: the cells are wanted
// before the load begins. The load runs under the lock s.loading, which l.stale takes if it reports
// true, so that only one goroutine of a process loads a segment.
func (l *Learner) read(
	tx *store.Tx, s *segment, item string, now time.Time, refs ...store.Ref,
) (*reading, error) {
	cells := l.itemCells(s, item)
	stale, err := l.stale(tx.Context(), s, now)
	if err != nil {
		return nil, err
	}
	if stale {
		defer s.loading.Unlock()
		tx.Want(store.Wants{Cells: cells, Refs: refs})
		err := l.load(tx, s, now)
		loaded, _ := s.state(now, 0)
		if err != nil && !(errors.Is(err, heed.ErrUnavailable) && loaded) {
			return nil, err
		} // without the store, the beliefs go on to be those that were read last
	}
	var read store.Snapshot
	if err := tx.Read(&read, cells, refs); err != nil {
		return nil, err
	}
	of := l.readingOf(cells, read.Parts, evidence.InstantOf(now))
	of.records = read.Records
	s.wasReset(item, of.resets)
	return of, nil
}

// itemCells names the cells of an item: its arms, what it was given if its pooling specialises, and
// how often it was reset. The order is what readingOf relies on.
func (l *Learner) itemCells(s *segment, item string) []evidence.Cell {
	cells := l.armCells(s.space, item)
	if l.specializes() {
		for i := range l.cfg.Arms {
			cells = append(cells, s.space.given(item, l.cfg.Arms[i].ID))
		}
	}
	cells = append(cells, s.space.resets(""))
	if item != "" {
		cells = append(cells, s.space.resets(item))
	}
	return cells
}

// armCells names the cells of an item's arms.
func (l *Learner) armCells(space space, item string) []evidence.Cell {
	cells := make([]evidence.Cell, 0, 2*len(l.cfg.Arms)+2) // with room for what else an item has
	for i := range l.cfg.Arms {
		cells = append(cells, space.arm(item, l.cfg.Arms[i].ID))
	}
	return cells
}

// specializes reports whether the pooling gives items copies.
func (l *Learner) specializes() bool {
	_, ok := l.cfg.Pooling.(Copy)
	return ok
}

// readingOf sorts the parts that were read by the cells of an item. Cells are as itemCells returns
// them, and parts are in the order of the cells. A cell without evidence has no parts, so the parts
// alone do not show which cell they belong to.
func (l *Learner) readingOf(
	cells []evidence.Cell, parts []evidence.Part, at evidence.Instant,
) *reading {
	n := len(l.cfg.Arms)
	r := &reading{arms: make([][]evidence.Part, n)}
	next := func() (of []evidence.Part) {
		of = leading(parts, cells[0])
		cells, parts = cells[1:], parts[len(of):]
		return of
	}
	// next moves through the arms first, then through the copies, then through the counts of resets.
	for i := range n {
		r.arms[i] = next()
	}
	r.Arms = fair.Pool(l.cfg.Trust, r.arms, at)
	if l.specializes() {
		// r.Given stays nil if no copy was made, because an item with an empty copy goes its own way.
		given := make([]evidence.Sums, n)
		for i := range n {
			for _, part := range next() {
				given[i], r.Given = given[i].Plus(part.Tally.At(at)), given
			}
		}
	}
	for i := range cells {
		r.resets[i] = countOf(next())
	}
	return r
}

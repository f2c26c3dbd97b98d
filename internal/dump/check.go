package dump

import (
	"errors"
	"io"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/stores"
	"github.com/heedhq/heed/internal/text"
	"github.com/heedhq/heed/store"
)

// NewLoader is [NewReader] for a store that takes the rows. It also refuses a row that does not fit
// to those before it: of a cell or a kind that did not come, a cell or a tally that comes twice,
// and an observation that is not in the sums of its cell. It needs memory for each cell and each
// tally. The store itself refuses an id or a record that comes twice.
func NewLoader(from io.Reader) (*Reader, error) {
	r, err := NewReader(from)
	if err == nil {
		r.check = &checker{kinds: make(map[string]bool), cells: make(map[text.Hash]*Cell),
			rooms: make(map[roomKey]*room)}
	}
	return r, err
}

// CellOf returns how a cell is kept that [NewLoader] has let in.
func (r *Reader) CellOf(hash text.Hash) *Cell { return r.check.cells[hash] }

// A checker keeps what later rows must fit to. It protects a store from a dump that another program
// wrote: sums that do not contain their observations would become negative when these are
// retracted.
type checker struct {
	// kinds has the kinds that came, without tenants. cells has the cells, without their texts.
	kinds map[string]bool
	cells map[text.Hash]*Cell // without their texts
	// rooms has each tally, by its cell and origin.
	rooms map[roomKey]*room
	late  bool // ids or records have come
}

// A roomKey names a tally: its cell, and its origin if the cell keeps origins apart.
type roomKey struct {
	cell text.Hash
	Origin
}

// A room is what a tally has for observations of each sign that are in the history.
type room struct {
	// n and last are by [stores.Sign]: how many observations may still come, and when the last
	// happened.
	n    [3]uint64
	last [3]evidence.Instant
}

// row checks a row against those before it, and remembers what later rows need. Evidence comes
// before ids and records, so that a loader knows all cells when it meets an id. Only the first
// fault of a row is reported, because a load ends with it.
func (c *checker) row(r *Row) error {
	switch {
	case r.Cell != nil || r.Tally != nil || r.Observation != nil:
		if c.late {
			return errors.New("evidence must come before ids and records")
		}
	case r.Kind == nil:
		c.late = true
	}
	switch {
	case r.Kind != nil:
		c.kinds[r.Kind.Name] = true
	case r.Cell != nil:
		if c.cells[r.Cell.Hash] != nil {
			return errors.New("the cell comes twice")
		}
		c.cells[r.Cell.Hash] = &Cell{HalfLife: r.Cell.HalfLife, ByOrigin: r.Cell.ByOrigin,
			Restart: r.Cell.Restart}
	case r.Tally != nil:
		return c.tally(r.Tally)
	case r.Observation != nil:
		return c.observation(r.Observation)
	case r.Lost != nil && c.cells[r.Lost.Cell] == nil:
		return errNoCell
	case r.Record != nil && !c.declares(r.Record.Kind):
		return errors.New("the kind did not come before")
	}
	return nil
}

// errNoCell refuses what belongs to a cell that has no row.
var errNoCell = errors.New("the cell did not come before")

// tally checks that the cell can have the tally, once for each origin. If something of a count was
// lost from the history, at least one of its observations can't come.
func (c *checker) tally(t *Tally) error {
	cell := c.cells[t.Cell]
	if cell == nil {
		return errNoCell
	}
	if err := t.fits(cell); err != nil {
		return err
	}
	key := roomKey{t.Cell, Origin{t.Channel, t.Source}}
	if c.rooms[key] != nil {
		return errors.New("the cell has this origin twice")
	}
	of := &room{}
	for i, count := range [...]Count{t.Positive, t.Negative, t.Neutral} {
		of.n[i], of.last[i] = count.N, count.Last
		if count.N > 0 && count.Lost > 0 {
			of.n[i]-- // at least one is not in the history
		}
	}
	c.rooms[key] = of
	return nil
}

// observation takes a place in the room of its tally. An observation that does not count needs
// none. An observation from before the restart of its cell is kept and is not in the sums.
func (c *checker) observation(o *Observation) error {
	cell := c.cells[o.Cell]
	if cell == nil {
		return errNoCell
	}
	if o.Weight == 0 || o.At < cell.Restart {
		return nil // it does not count
	}
	key := roomKey{cell: o.Cell}
	if cell.ByOrigin {
		key.Origin = Origin{o.Channel, o.Source}
	}
	sign := stores.Sign(o.Reward)
	of := c.rooms[key]
	if of == nil || of.n[sign] == 0 || of.last[sign] < o.At {
		return errors.New("the observation is not in the sums of its cell")
	}
	of.n[sign]--
	return nil
}

// declares reports whether the dump declared a kind. The kind may have the name of a tenant.
func (c *checker) declares(name string) bool {
	kind, _ := store.KindOf(name)
	return c.kinds[kind]
}

package memstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/dump"
	"github.com/heedhq/heed/internal/text"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/store"
)

// Load reads what [Store.Dump], or the Dump of another store, wrote. If it returns an error, the
// store is unchanged. The store must be empty except for declared kinds, else Load returns
// [heed.ErrConflict]. If the file is not a dump, was changed or cut off, or is of a newer version,
// the error is a [*heed.InputError], which names the line.
//
// The store keeps as much as its own configuration allows: for example less history, if that is
// shorter than in the store that was dumped. Others can use the store while Load reads, but what
// they commit makes Load fail.
//
// Kinds that were declared before stay as they were declared, joined with what the dump has.
func (s *Store) Load(ctx context.Context, from io.Reader) error {
	// A store that is not empty is refused before the dump is read, and again at the end, because
	// others may have committed while it was read.
	err := s.read(ctx, (*state).checkEmpty)
	var loaded *state
	if err == nil {
		loaded, err = load(ctx, s.cfg, from)
	}
	if err == nil {
		err = s.write(ctx, func(held *state) error {
			if err := held.checkEmpty(); err != nil {
				return err
			}
			for name, k := range held.kinds {
				loaded.declare(k.Kind)
				loaded.declared(name).version = k.version + 1 // copies of no records are stale
			}
			s.state = loaded
			return nil
		})
	}
	return valid.Wrap("memstore: load", err)
}

// checkEmpty returns [heed.ErrConflict] if there is anything but kinds.
func (s *state) checkEmpty() error {
	held := len(s.known) + len(s.spaces)
	for _, k := range s.kinds {
		held += len(k.rows)
	}
	if held > 0 {
		return fmt.Errorf("the store is not empty: %w", heed.ErrConflict)
	}
	return nil
}

// A loader fills a state that has no other user, so it needs no lock. It refuses what comes twice;
// that rows fit together is checked by the reader. It does not bound history or records by time:
// the next sweep does.
type loader struct {
	*state
	in *dump.Reader
	// loaded are the cells by their hashes, by which later rows name them.
	loaded map[id]*cell
	// guessed are the ids of observations whose own row has not come.
	guessed map[id]bool
}

// load reads a whole dump into a new state. Nothing of the store is touched until the last line
// has proved that the dump is whole.
func load(ctx context.Context, cfg Config, from io.Reader) (*state, error) {
	in, err := dump.NewLoader(from)
	if err != nil {
		return nil, err
	}
	l := &loader{newState(cfg), in, make(map[id]*cell), make(map[id]bool)}
	l.revision = in.Revision
	for n := 1; ; n++ {
		row, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = l.row(&row)
		}
		if err == nil && n%1000 == 0 {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
	}
	// Only now, because which records are the oldest is known when all are there.
	for _, k := range l.kinds {
		k.trim()
	}
	return l.state, nil
}

// row takes in a row, which is valid by itself and fits to those before it. An error names the line
// of the row.
func (l *loader) row(row *dump.Row) (err error) {
	switch {
	case row.Kind != nil:
		l.declare(*row.Kind)
	case row.Cell != nil:
		c := l.cell(row.Cell.EvidenceCell())
		c.policy, c.restart = row.Cell.Policy(), row.Cell.Restart
		l.loaded[row.Cell.Hash] = c
	case row.Tally != nil:
		l.tally(row.Tally)
	case row.Observation != nil:
		err = l.observation(*row.Observation)
	case row.ID != nil:
		err = l.id(row.ID)
	case row.Lost != nil:
		l.lost(row.Lost)
	default:
		err = l.load(row.Record)
	}
	if err != nil {
		return l.in.Fault(err)
	}
	return nil
}

// tally takes in the sums of an origin. The reader has checked that they fit to their cell.
func (l *loader) tally(d *dump.Tally) {
	c := l.loaded[d.Cell]
	t := c.tally(dump.Origin{Channel: d.Channel, Source: d.Source})
	t.Tally = d.Evidence(c.policy.HalfLife)
	t.lost = [3]evidence.Instant{d.Positive.Lost, d.Negative.Lost, d.Neutral.Lost}
	t.lostSource = d.LostSource
}

// observation takes an observation into the history. The sums count it already. If this store
// keeps less history than the other, the oldest become lost here.
func (l *loader) observation(e entry) error {
	c, k := l.loaded[e.Cell], l.guess(hashID(e.ID), e.Recorded)
	if slices.Contains(k.cells, c) {
		return errors.New("the observation comes twice")
	}
	k.cells = append(k.cells, c)
	e.Cell = text.Hash{}
	if !l.cfg.NoHistory {
		c.record(e, l.mostHistory(c.Kind))
	} else if c.counts(&e) {
		c.tally(c.origin(&e)).lose(&e)
	}
	return nil
}

// guess returns an id, which becomes known if its own row has not come: it would count again.
func (l *loader) guess(h id, recorded evidence.Instant) *known {
	if l.known[h] == nil {
		l.guessed[h] = true
	}
	return l.note(h, recorded)
}

// id takes in a known id. It may come after observations of it, which have made it known.
func (l *loader) id(d *dump.ID) error {
	if l.known[d.ID] != nil && !l.guessed[d.ID] {
		return errors.New("the id comes twice")
	}
	// Its own row knows better than what its observations made it.
	delete(l.guessed, d.ID)
	k := l.note(d.ID, d.Recorded)
	k.recorded, k.retracted, k.untraced = d.Recorded, d.Retracted, d.Untraced || l.cfg.NoHistory
	return nil
}

// lost takes in that a cell counts an observation that can no longer be taken back.
func (l *loader) lost(d *dump.Lost) {
	c, k := l.loaded[d.Cell], l.guess(d.ID, d.Recorded)
	if !slices.Contains(k.cells, c) {
		k.cells = append(k.cells, c)
	}
	from := d.Origin
	// Where origins are together, there is one tally, and the loss is its.
	if !c.policy.ByOrigin {
		from = &dump.Origin{}
	}
	if c.lost == nil {
		c.lost = make(map[id]*dump.Origin)
	}
	c.lost[d.ID] = from
}

// load takes in a record. Records come in the order of their first writing, so numbers follow from
// the order unless the dump has them.
func (l *loader) load(d *dump.Record) error {
	k := l.declared(d.Kind)
	if k.rows[d.ID] != nil {
		return errors.New("the record comes twice")
	}
	l.seq = max(l.seq+1, d.Seq)
	r := &row{id: d.ID, keys: d.Keys, revision: d.Revision, body: store.Raw(d.Body)}
	r.At, r.Seq = d.At, l.seq
	k.insert(r)
	l.revision = max(l.revision, d.Revision)
	return nil
}

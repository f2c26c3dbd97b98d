package memstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/dump"
	"github.com/heedhq/heed/internal/ids"
	"github.com/heedhq/heed/store"
)

// Load reads what [Store.Dump], or the Dump of another store, has written: all of it, or nothing and an error. The store
// must be empty but for declared kinds, else Load returns [heed.ErrConflict]. A file that is no dump, that was changed or
// cut off, or that is of a newer version is a [*heed.InputError], which names the line.
//
// The store keeps what its own configuration says: less history, where it is shorter than that of the store that was
// dumped. Others can use the store while Load reads, but what they commit makes Load fail.
func (s *Store) Load(ctx context.Context, from io.Reader) error {
	if err := s.load(ctx, from); err != nil {
		return fmt.Errorf("memstore: load: %w", err)
	}
	return nil
}

func (s *Store) load(ctx context.Context, from io.Reader) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	before := s.state()
	if !s.replace(before, before) {
		return errNotEmpty
	}
	in, err := dump.NewLoader(from)
	if err != nil {
		return err
	}
	l := loader{state: newState(before.cfg), cells: make(map[ids.Hash]*loadedCell), unknown: make(map[id]evidence.Instant), in: in}
	l.state.records.revision.Store(in.Revision)
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
			return err
		}
	}
	l.finish()
	if !s.replace(before, l.state) {
		return errNotEmpty
	}
	return nil
}

var errNotEmpty = fmt.Errorf("the store is not empty: %w", heed.ErrConflict)

// replace puts a state in the place of one that holds nothing but kinds, which it takes over. It reports whether the store
// still had that and it was empty.
func (s *Store) replace(before, next *state) bool {
	before.lockAll()
	defer before.unlockAll()
	before.records.declaring.Lock()
	defer before.records.declaring.Unlock()
	if before.left.Load() || !before.empty() {
		return false
	}
	if next != before {
		for _, k := range *before.records.kinds.Load() {
			next.records.declare([]store.Kind{*k.rule.Load()})
		}
		s.content.Store(next)
		before.left.Store(true)
	}
	return true
}

// empty reports whether nothing is in the store. The caller has all locks.
func (s *state) empty() bool {
	for i := range shardCount {
		known, cells := &s.known.shards[i], &s.cells.shards[i]
		if len(known.young.marks)+len(known.old.marks)+len(cells.groups)+len(cells.histories)+len(cells.restarts) > 0 {
			return false
		}
	}
	for _, k := range *s.records.kinds.Load() {
		if k.size.Load() > 0 {
			return false
		}
	}
	return true
}

// A loader fills a state that nobody else has yet.
type loader struct {
	state *state
	cells map[ids.Hash]*loadedCell
	// unknown are the ids of observations whose own row has not come, and when they were recorded.
	unknown map[id]evidence.Instant
	// held are the observations of each cell, of a store without a history.
	held map[heldID]bool
	in   *dump.Reader
}

type heldID struct {
	cell ids.Hash
	id   id
}

type loadedCell struct {
	*dump.Cell
	key    cellKey
	policy uint16
}

// row takes in a row, which is valid by itself.
func (l *loader) row(row *dump.Row) (err error) {
	switch {
	case row.Kind != nil:
		l.state.records.declare([]store.Kind{*row.Kind})
	case row.Cell != nil:
		err = l.cell(row.Cell)
	case row.Tally != nil:
		l.tally(row.Tally)
	case row.Observation != nil:
		err = l.observation(row.Observation)
	case row.ID != nil:
		err = l.id(row.ID)
	case row.Lost != nil:
		l.lost(row.Lost)
	default:
		err = l.record(row.Record)
	}
	if err != nil {
		return l.in.Fault(err)
	}
	return nil
}

func (l *loader) cell(c *dump.Cell) error {
	s := l.state
	policy := s.rules.number(c.Policy())
	if policy > math.MaxUint16 {
		return errors.New("there are too many policies")
	}
	at := &loadedCell{c, cellKey{s.spaces.number(space{c.Kind, c.Scope}), s.names.number(c.Name), c.Item}, uint16(policy)}
	l.cells[c.Hash] = at
	if c.Restart > 0 {
		s.cells.of(at.key.group()).keepRestart(at.key, restart{c.Restart, at.policy})
	}
	return nil
}

// of returns the cell of a row, with its shard.
func (l *loader) of(hash ids.Hash) (*loadedCell, *shard) {
	c := l.cells[hash]
	return c, l.state.cells.of(c.key.group())
}

func (l *loader) tally(t *dump.Tally) {
	c, shard := l.of(t.Cell)
	from := l.state.origins.number(origin{t.Channel, t.Source})
	slot := shard.open(c.key, from, c.policy, l.state.compareOrigins)
	slot.keep(t.Evidence(c.Policy().HalfLife))
	lost := [3]int64{int64(t.Positive.Lost), int64(t.Negative.Lost), int64(t.Neutral.Lost)}
	if lost != [3]int64{} {
		slot.lost |= lostSome
		if !l.state.cfg.NoHistory {
			shard.history(c.key).lose(from, lost)
		}
	}
	if t.LostSource {
		slot.lost |= lostSource
	}
}

func (l *loader) observation(o *dump.Observation) error {
	c, shard := l.of(o.Cell)
	s, h := l.state, hashID(o.ID)
	ids := s.known.of(h)
	twice := l.held[heldID{o.Cell, h}] || slices.ContainsFunc(ids.places(h), func(p place) bool { return p.cellKey == c.key })
	if twice {
		return errors.New("the cell has an observation of this id already")
	}
	l.unknown[h] = o.Recorded
	added := entry{o.ID, h, o.Channel, o.Source, o.Session, o.Reward, o.Weight, o.Share, o.At, o.Recorded}
	at := place{cellKey: c.key}
	counts := o.Weight > 0 && o.At >= c.Restart
	if counts && c.ByOrigin {
		at.origin = s.origins.number(origin{o.Channel, o.Source})
	}
	switch {
	case s.cfg.NoHistory:
		if l.held == nil {
			l.held = make(map[heldID]bool)
		}
		l.held[heldID{o.Cell, h}] = true
		if counts {
			slot := shard.slot(shard.find(c.key, at.origin))
			slot.lost |= lossOf(&added, slot.origin)
		}
		return nil
	case counts:
		shard.stamp++
		at.stamp = shard.stamp
	}
	ids.locate(h, at)
	s.record(shard, c.key, added)
	return nil
}

func (l *loader) id(one *dump.ID) error {
	h := id(one.ID)
	shard := l.state.known.of(h)
	if shard.knows(h) {
		return errors.New("the id stands twice")
	}
	m := newMark(one.Recorded)
	if one.Retracted {
		m |= retracted
	}
	if one.Untraced {
		m |= untraced
	}
	shard.note(h, m)
	delete(l.unknown, h)
	if shard.began == 0 || one.Recorded < shard.began {
		shard.began = max(one.Recorded, 1)
	}
	return nil
}

func (l *loader) lost(lost *dump.Lost) {
	c, shard := l.of(lost.Cell)
	h := id(lost.ID)
	if !l.state.known.of(h).knows(h) {
		l.unknown[h] = lost.Recorded
	}
	if l.state.cfg.NoHistory {
		return
	}
	shard.stamp++
	from := uint32(anyOrigin)
	switch of := lost.Origin; {
	case !c.ByOrigin:
		from = 0
	case of != nil:
		from = l.state.origins.number(origin{of.Channel, of.Source})
	}
	l.state.known.of(h).locate(h, place{c.key, from, shard.stamp})
}

func (l *loader) record(r *dump.Record) error {
	records := &l.state.records
	k := records.kind(r.Kind)
	shard := records.shard(r.ID)
	if k.rows[shard][r.ID] != nil {
		return errors.New("the record stands twice")
	}
	row := newRow(position{r.At, records.seq.Add(1)}, r.ID, r.Keys)
	row.revision, row.body = r.Revision, store.Raw(r.Body)
	k.insert(shard, row)
	k.size.Add(1)
	records.revision.Store(max(records.revision.Load(), r.Revision))
	return nil
}

// finish makes known the ids that came without a row of their own, or they would count again, and drops what the store's configuration
// does not keep.
func (l *loader) finish() {
	s := l.state
	for h, recorded := range l.unknown {
		s.known.of(h).note(h, newMark(recorded))
	}
	for _, k := range *s.records.kinds.Load() {
		s.records.trim(k)
	}
}

package memstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/heedhq/heed"
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
	in, err := dump.NewReader(from)
	if err != nil {
		return err
	}
	l := loader{state: newState(before.cfg), cells: make(map[ids.Hash]*loadedCell), in: in}
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
	if err := l.finish(); err != nil {
		return err
	}
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
	in    *dump.Reader
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
		err = l.tally(row.Tally)
	case row.Observation != nil:
		err = l.observation(row.Observation)
	case row.ID != nil:
		err = l.id(row.ID)
	case row.Lost != nil:
		err = l.lost(row.Lost)
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
	if l.cells[c.Hash] != nil {
		return errors.New("the cell stands twice")
	}
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
func (l *loader) of(hash ids.Hash) (*loadedCell, *shard, error) {
	c := l.cells[hash]
	if c == nil {
		return nil, nil, errors.New("the cell is not known")
	}
	return c, l.state.cells.of(c.key.group()), nil
}

func (l *loader) tally(t *dump.Tally) error {
	c, shard, err := l.of(t.Cell)
	if err != nil {
		return err
	}
	if err := t.Fits(c.Cell); err != nil {
		return err
	}
	from := l.state.origins.number(origin{t.Channel, t.Source})
	if shard.find(c.key, from) != 0 {
		return errors.New("the cell has this origin twice")
	}
	slot := shard.open(c.key, from, c.policy)
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
	return nil
}

func (l *loader) observation(o *dump.Observation) error {
	c, shard, err := l.of(o.Cell)
	if err != nil {
		return err
	}
	s, h := l.state, hashID(o.ID)
	added := entry{o.ID, h, o.Channel, o.Source, o.Session, o.Reward, o.Weight, o.At, o.Recorded}
	ids := s.known.of(h)
	for _, p := range ids.places(h) {
		if p.cellKey == c.key {
			return errors.New("the cell has an observation of this id already")
		}
	}
	at := place{cellKey: c.key}
	if o.Weight > 0 && o.At >= c.Restart {
		var from uint32
		if c.ByOrigin {
			from = s.origins.number(origin{o.Channel, o.Source})
		}
		number := shard.find(c.key, from)
		if number == 0 || shard.slot(number).last[sign(o.Reward)] < int64(o.At) {
			return errors.New("the observation is not in the sums of its cell")
		}
		if s.cfg.NoHistory {
			slot := shard.slot(number)
			slot.lost |= lossOf(&added, slot.origin)
			return nil
		}
		shard.stamp++
		at.origin, at.stamp = from, shard.stamp
	}
	if !s.cfg.NoHistory {
		ids.locate(h, at)
		s.record(shard, c.key, added)
	}
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
	if shard.began == 0 || one.Recorded < shard.began {
		shard.began = max(one.Recorded, 1)
	}
	return nil
}

func (l *loader) lost(lost *dump.Lost) error {
	c, shard, err := l.of(lost.Cell)
	if err != nil || l.state.cfg.NoHistory {
		return err
	}
	h := id(lost.ID)
	shard.stamp++
	from := uint32(anyOrigin)
	switch of := lost.Origin; {
	case !c.ByOrigin:
		from = 0
	case of != nil:
		from = l.state.origins.number(origin{of.Channel, of.Source})
	}
	l.state.known.of(h).locate(h, place{c.key, from, shard.stamp})
	return nil
}

func (l *loader) record(r *dump.Record) error {
	records := &l.state.records
	k := records.kind(r.Kind)
	if k == nil {
		return errors.New("the kind is not declared")
	}
	shard := records.shard(r.ID)
	if k.rows[shard][r.ID] != nil {
		return errors.New("the record stands twice")
	}
	k.put(shard, &row{}, row{
		position: position{r.At, records.seq.Add(1)}, id: r.ID, keys: r.Keys, revision: r.Revision, body: store.Raw(r.Body),
	})
	k.size.Add(1)
	records.revision.Store(max(records.revision.Load(), r.Revision))
	return nil
}

// finish looks whether histories agree with sums, and drops what the store's configuration does not keep.
func (l *loader) finish() error {
	s := l.state
	for i := range s.cells.shards {
		shard := &s.cells.shards[i]
		for key, h := range shard.histories {
			if !s.agrees(shard, key, h) {
				return &heed.InputError{Field: "history", Reason: "has more observations of a cell than its sums"}
			}
			for i := range h.entries { // the id is known, or it would count again
				if e := &h.entries[i]; !s.known.of(e.id).knows(e.id) {
					s.known.of(e.id).note(e.id, newMark(e.recorded))
				}
			}
		}
	}
	for _, k := range *s.records.kinds.Load() {
		s.records.trim(k)
	}
	return nil
}

// agrees reports whether the sums of a cell hold at least all that its history does, and what it says is lost.
func (s *state) agrees(shard *shard, key cellKey, h *history) bool {
	held := make(map[uint32][3]uint32)
	for i := range h.entries {
		o := &h.entries[i]
		if o.weight > 0 && o.at >= shard.restarts[key].at {
			n := held[s.originIn(shard, key, o)]
			n[sign(o.reward)]++
			held[s.originIn(shard, key, o)] = n
		}
	}
	for from, n := range held {
		at := shard.find(key, from)
		if at == 0 {
			return false
		}
		for sign, n := range n {
			room := shard.slot(at).n[sign]
			if last := h.lost[from]; last[sign] > 0 {
				room = cmp.Or(room, 1) - 1
			}
			if n > room {
				return false
			}
		}
	}
	return true
}

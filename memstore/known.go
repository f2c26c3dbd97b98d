package memstore

import (
	"encoding/binary"
	"math"
	"sync"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/ids"
)

// known holds the ids that a store has seen, as hashes. An id lives in the young generation of its shard. When that has
// lived for the time that ids are kept, it becomes the old one, and the old one is dropped.
type known struct{ shards [shardCount]knownShard }

type knownShard struct {
	mu         sync.Mutex
	young, old seen
	began      evidence.Instant // when the young generation did
}

// An id is the hash of one: see hashID.
type id [16]byte

func (h id) shard() int { return int(h[0] % shardCount) }

// rest returns half of the bits, which say nothing of the shard.
func (h id) rest() uint64 { return binary.LittleEndian.Uint64(h[8:]) }

// seen is one generation of ids.
type seen struct {
	marks map[id]mark
	// where has the cell in whose history an observation of the id is, or was, and more has the others where there are
	// several. They are kept with a history only.
	where map[id]place
	more  map[id][]place
}

// anyOrigin is the origin of a place if only its cell is known.
const anyOrigin = math.MaxUint32

// A place is an origin of a cell, with the stamp that its shard gave when an observation was recorded there. It is 0 where
// the observation does not count.
type place struct {
	cellKey
	origin uint32
	stamp  uint64
}

// A mark says when an id was recorded, in minutes since 1970, and what became of it.
type mark uint32

const (
	retracted mark = 1 << iota // its observations were taken back
	untraced                   // nobody knows in which cells it counts
	markBits  = 2
)

const minute = evidence.Instant(time.Minute / time.Microsecond)

// newMark rounds up, so that no id is forgotten too early.
func newMark(at evidence.Instant) mark { return mark(max(at+minute-1, 0)/minute) << markBits }

func (m mark) recorded() evidence.Instant { return evidence.Instant(m>>markBits) * minute }

// hashID returns how the store calls an id, which is the same in every store.
func hashID(text string) id { return id(ids.Of(text)) }

func (k *known) of(h id) *knownShard { return &k.shards[h.shard()] }

func (s *knownShard) mark(h id) (mark, bool) {
	if m, ok := s.young.marks[h]; ok {
		return m, true
	}
	m, ok := s.old.marks[h]
	return m, ok
}

func (s *knownShard) knows(h id) bool {
	_, ok := s.mark(h)
	return ok
}

// note makes an id known, and keeps what is known of it.
func (s *knownShard) note(h id, m mark) {
	if s.young.marks == nil {
		s.young.marks = make(map[id]mark)
	}
	before, _ := s.mark(h)
	s.young.marks[h] = m | before&(retracted|untraced)
}

// locate remembers in which cell's history an observation of the id is.
func (s *knownShard) locate(h id, p place) {
	g := &s.young
	if _, ok := g.where[h]; !ok {
		if g.where == nil {
			g.where = make(map[id]place)
		}
		g.where[h] = p
		return
	}
	if g.more == nil {
		g.more = make(map[id][]place)
	}
	g.more[h] = append(g.more[h], p)
}

// places lists the cells in whose history the observations of an id are, or were.
func (s *knownShard) places(h id) (all []place) {
	for _, g := range []*seen{&s.old, &s.young} {
		if p, ok := g.where[h]; ok {
			all = append(append(all, p), g.more[h]...)
		}
	}
	return all
}

// move changes the place of an id in a cell.
func (s *knownShard) move(h id, to place) {
	for _, g := range []*seen{&s.old, &s.young} {
		if g.where[h].cellKey == to.cellKey {
			g.where[h] = to
		}
		for i := range g.more[h] {
			if p := &g.more[h][i]; p.cellKey == to.cellKey {
				*p = to
			}
		}
	}
}

// age lets the generations grow older. A clock that goes back keeps ids for longer.
func (s *knownShard) age(now evidence.Instant, lifetime time.Duration) {
	if s.began == 0 {
		s.began = now
	}
	if int64(now-s.began) < lifetime.Microseconds() {
		return
	}
	s.young, s.old, s.began = seen{}, s.young, now
	oldest := newMark(now - evidence.Instant(lifetime.Microseconds()))
	for h, m := range s.old.marks {
		if m < oldest {
			delete(s.old.marks, h)
			delete(s.old.where, h)
			delete(s.old.more, h)
		}
	}
}

func (k *known) sweep(now evidence.Instant, lifetime time.Duration) {
	for i := range k.shards {
		shard := &k.shards[i]
		shard.mu.Lock()
		shard.age(now, lifetime)
		shard.mu.Unlock()
	}
}

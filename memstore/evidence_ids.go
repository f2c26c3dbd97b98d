package memstore

import (
	"encoding/binary"
	"hash/maphash"
	"sync"
	"time"

	"github.com/heedhq/heed/evidence"
)

// ids is what a store knows to have seen. An id lives in the young generation of its shard; when that has lived for the
// time that ids are kept, it becomes the old one, and the old one before it is dropped.
type ids struct {
	seeds  [2]maphash.Seed
	shards [shardCount]idShard
}

type idShard struct {
	mu         sync.Mutex
	young, old generation
	began      evidence.Instant // when the young generation did
}

type generation struct {
	known map[id]struct{}
	// where lists the cells in whose history an id's observations are. It is kept with a history only.
	where map[id][]evidence.Cell
}

// An id is the keyed hash of one: two of them are the same with a probability of 2⁻¹²⁸.
type id [16]byte

func (s *ids) start() { s.seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()} }

func (s *ids) hash(text string) (h id) {
	binary.LittleEndian.PutUint64(h[:8], maphash.String(s.seeds[0], text))
	binary.LittleEndian.PutUint64(h[8:], maphash.String(s.seeds[1], text))
	return h
}

func (h id) shard() int { return int(h[0] % shardCount) }

func (s *idShard) knows(h id) bool {
	if _, ok := s.young.known[h]; ok {
		return true
	}
	_, ok := s.old.known[h]
	return ok
}

func (s *idShard) where(h id) []evidence.Cell {
	return append(s.old.where[h], s.young.where[h]...)
}

// note makes an id known.
func (g *generation) note(h id) {
	if g.known == nil {
		g.known = make(map[id]struct{})
	}
	g.known[h] = struct{}{}
}

// locate remembers in which cell's history an observation of the id is.
func (g *generation) locate(h id, c evidence.Cell) {
	if g.where == nil {
		g.where = make(map[id][]evidence.Cell)
	}
	g.where[h] = append(g.where[h], c)
}

// noteOld makes the id of a text known that was recorded before now.
func (s *ids) noteOld(text string) {
	h := s.hash(text)
	s.shards[h.shard()].old.note(h)
}

func (s *ids) locateOld(text string, c evidence.Cell) {
	h := s.hash(text)
	s.shards[h.shard()].old.locate(h, c)
}

// age lets the generations grow older. A clock that goes back keeps ids for longer.
func (s *idShard) age(now evidence.Instant, lifetime time.Duration) {
	if s.began == 0 {
		s.began = now
		return
	}
	switch lived := int64(now - s.began); {
	case lived >= 2*lifetime.Microseconds():
		s.young, s.old, s.began = generation{}, generation{}, now
	case lived >= lifetime.Microseconds():
		s.young, s.old = generation{}, s.young
		s.began += evidence.Instant(lifetime.Microseconds())
	}
}

func (s *ids) sweep(now evidence.Instant, lifetime time.Duration) {
	for i := range s.shards {
		shard := &s.shards[i]
		shard.mu.Lock()
		shard.age(now, lifetime)
		shard.mu.Unlock()
	}
}

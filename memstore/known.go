package memstore

import (
	"crypto/sha256"
	"sync"
	"time"

	"github.com/heedhq/heed/evidence"
)

// known holds the ids that a store has seen, as hashes. An id lives in the young generation of its shard. When that has
// lived for the time that ids are kept, it becomes the old one, and the old one is dropped.
type known struct{ shards [shardCount]knownShard }

type knownShard struct {
	mu         sync.Mutex
	young, old seen
	began      evidence.Instant // when the young generation did
}

// seen is one generation of ids.
type seen struct {
	marks map[id]mark
	// where lists the cells in whose history the observations of an id are. It is kept with a history only.
	where map[id][]cellKey
}

// A mark says when an id was recorded, in minutes since 1970, and what became of it.
type mark uint32

const (
	retracted mark = 1 << iota // its observations were taken back
	untraced                   // nobody knows in which cells it counts
	markBits  = 2
)

func newMark(at evidence.Instant) mark {
	return mark(at/evidence.Instant(time.Minute.Microseconds())) << markBits
}

// hashID returns how the store calls an id: the first half of its SHA-256, the same in every store.
func hashID(text string) id {
	sum := sha256.Sum256([]byte(text))
	return id(sum[:16])
}

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
func (s *knownShard) locate(h id, key cellKey) {
	if s.young.where == nil {
		s.young.where = make(map[id][]cellKey)
	}
	s.young.where[h] = append(s.young.where[h], key)
}

// places lists the cells in whose history the observations of an id are, or were.
func (s *knownShard) places(h id) []cellKey {
	old, young := s.old.where[h], s.young.where[h]
	if len(old) == 0 {
		return young
	}
	return append(old[:len(old):len(old)], young...)
}

// age lets the generations grow older. A clock that goes back keeps ids for longer.
func (s *knownShard) age(now evidence.Instant, lifetime time.Duration) {
	if s.began == 0 {
		s.began = now
		return
	}
	switch lived := int64(now - s.began); {
	case lived >= 2*lifetime.Microseconds():
		s.young, s.old, s.began = seen{}, seen{}, now
	case lived >= lifetime.Microseconds():
		s.young, s.old = seen{}, s.young
		s.began += evidence.Instant(lifetime.Microseconds())
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

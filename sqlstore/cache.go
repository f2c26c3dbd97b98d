package sqlstore

import (
	"hash/maphash"
	"sync"
	"time"

	"github.com/heedhq/heed/evidence"
)

// A cache holds the parts of cells for a time. Parts that are dropped while they are being read
// from the database are not put in: each reader takes a ticket first.
//
// It serves reads of cells alone, which choices make for each request. A cell that other processes
// change is at most stale out of date; a cell that this store changes is dropped with the commit.
type cache struct {
	seed   maphash.Seed
	shards [cacheShards]cacheShard
}

// A cell that was read is read from memory for as long as stale.
const (
	stale       = time.Second
	cacheShards = 16
	shardRoom   = 400_000 / cacheShards // the most cells and parts of a shard, 200 bytes each
)

// A cacheShard has some of the cells, so that callers on many processors seldom wait for each
// other.
type cacheShard struct {
	mu      sync.RWMutex
	dropped uint64 // how often something was
	cells   map[evidence.Cell]cached
	parts   int // of all cells
}

// cached holds the parts of a cell as they were read. It does not change.
type cached struct {
	parts []evidence.Part
	read  time.Time
}

func newCache() *cache {
	c := &cache{seed: maphash.MakeSeed()}
	for i := range c.shards {
		c.shards[i].cells = make(map[evidence.Cell]cached)
	}
	return c
}

// shard returns the shard of a cell. The cells of an item are in several shards, because a few
// cells of thousands of people fill a shard. The seed is random, so that names can't be chosen to
// crowd one.
func (c *cache) shard(of evidence.Cell) *cacheShard {
	hash := maphash.String(c.seed, of.Item) + 31*maphash.String(c.seed, of.Name)
	return &c.shards[hash%cacheShards]
}

// get returns the parts of a cell, if they are known and not stale.
func (c *cache) get(of evidence.Cell, now time.Time) ([]evidence.Part, bool) {
	s := c.shard(of)
	s.mu.RLock()
	known, ok := s.cells[of]
	s.mu.RUnlock()
	age := now.Sub(known.read)
	return known.parts, ok && age >= 0 && age < stale
}

// ticket returns the number of drops that a read of a cell sees, which is about to begin. If it is
// another one afterwards, what was read may be from before a commit.
func (c *cache) ticket(of evidence.Cell) uint64 {
	s := c.shard(of)
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.dropped
}

// put keeps the parts that were read of a cell. A shard without room begins again, because most of
// what it has is stale.
func (c *cache) put(ticket uint64, of evidence.Cell, parts []evidence.Part, now time.Time) {
	s := c.shard(of)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dropped != ticket {
		return
	}
	s.parts += len(parts) - len(s.cells[of].parts)
	if len(s.cells)+s.parts >= shardRoom {
		s.cells, s.parts = make(map[evidence.Cell]cached), len(parts)
	}
	s.cells[of] = cached{parts, now}
}

// drop forgets a cell that a commit of this store changed, so that this store sees the commit at
// once.
func (c *cache) drop(of evidence.Cell) {
	s := c.shard(of)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropped++
	s.parts -= len(s.cells[of].parts)
	delete(s.cells, of)
}

// clear forgets all cells, because a commit that takes evidence away may change any of them.
func (c *cache) clear() {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		s.dropped++
		s.cells, s.parts = make(map[evidence.Cell]cached), 0
		s.mu.Unlock()
	}
}

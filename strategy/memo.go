package strategy

import (
	"context"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"
)

// A memo remembers values by group and name, each for a time to live and as many as it has room
// for, and those that are being made. When it is full, a new value takes the place of the one that
// was not asked for longest, among the values of the shard that it goes to. A value is made once,
// however many callers ask for it at the same time. A memo is safe for concurrent use.
//
// It is not a general cache: a group is a session, all of whose values can be dropped at once, and
// each value has a number that grows when it is made again, so that a session's second choice for
// an item draws other random numbers than its first.
type memo[V any] struct {
	seed maphash.Seed
	ttl  time.Duration
	// room is how many values may be kept in all shards together.
	room   int64
	kept   atomic.Int64
	shards []shard[V]
}

// A shard holds the values of some groups, so that a group can be dropped from one place.
type shard[V any] struct {
	mu      sync.Mutex
	cache   *memo[V]
	entries map[key]*entry[V]
	groups  map[string]*entry[V] // the first entry of each group's chain
	recent  entry[V]             // the ring of all entries, the last used next to it
}

type key struct{ group, name string }

// An entry is on the ring of its shard and on the chain of its group while it is kept. Its value
// does not change once it is made.
//
// Two lists run through the entries. newer and older are the ring of a shard by last use, whose
// head is shard.recent. before and behind are the chain of a group, in no order.
type entry[V any] struct {
	key            key
	value          V
	number         uint64 // how many values the key has had before
	expires        int64  // in nanoseconds of Unix time
	made           bool
	waiting        chan struct{} // made by the first who waits, closed when the value is made
	newer, older   *entry[V]
	before, behind *entry[V]
}

// shardCount is what large caches are spread over.
const shardCount = 16

// newMemo returns one with room for that many values. A small memo has one shard, so that it holds
// what it has room for exactly: with several shards, a full shard evicts although others have room.
func newMemo[V any](room int, ttl time.Duration) *memo[V] {
	n := 1
	if room >= 64*shardCount {
		n = shardCount
	}
	c := &memo[V]{seed: maphash.MakeSeed(), ttl: ttl, room: int64(room), shards: make([]shard[V], n)}
	for i := range c.shards {
		s := &c.shards[i]
		s.cache = c
		s.entries = make(map[key]*entry[V])
		s.groups = make(map[string]*entry[V])
		s.recent.newer, s.recent.older = &s.recent, &s.recent
	}
	return c
}

// shard returns where a group is. The seed is random, so that the names of sessions can't be chosen
// to all fall into one shard.
func (c *memo[V]) shard(group string) *shard[V] {
	return &c.shards[maphash.String(c.seed, group)%uint64(len(c.shards))]
}

// Do returns the value of a name in a group, and whether it was there. If it is not, or is past its
// time, or usable refuses it, make makes it, given how many values the key has had before; other
// callers wait for that, or until their context is done. A value that could not be made is not
// kept.
func (c *memo[V]) Do(ctx context.Context, group, name string, now time.Time,
	usable func(*V) bool, fill func(v *V, number uint64) error,
) (value *V, hit bool, err error) {
	s, k := c.shard(group), key{group, name}
	for {
		s.mu.Lock()
		e := s.entries[k]
		switch {
		case e != nil && !e.made:
			if err := s.wait(ctx, e); err != nil {
				return nil, false, err
			}
			continue
		case e != nil && now.UnixNano() < e.expires && usable(&e.value):
			s.touch(e)
			s.mu.Unlock()
			return &e.value, true, nil
		}
		// The entry is added before its value is made, so that other callers find it and wait. The
		// shard's lock is not held while the value is made.
		fresh := &entry[V]{key: k, expires: now.Add(c.ttl).UnixNano()}
		if e != nil {
			fresh.number = e.number + 1
			s.remove(e)
		}
		s.add(fresh)
		s.mu.Unlock()
		return c.fill(s, fresh, fill)
	}
}

// Get returns the value of a name in a group if it is kept and not past its time. It does not wait.
func (c *memo[V]) Get(group, name string, now time.Time) (value *V, ok bool) {
	s := c.shard(group)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[key{group, name}]
	if e == nil || !e.made || now.UnixNano() >= e.expires {
		return nil, false
	}
	s.touch(e)
	return &e.value, true
}

// Put keeps a value that was made elsewhere, and replaces the value of the same name. It has no
// effect if [memo.Do] is making a value of this name.
func (c *memo[V]) Put(group, name string, now time.Time, value V) {
	s, k := c.shard(group), key{group, name}
	s.mu.Lock()
	defer s.mu.Unlock()
	fresh := &entry[V]{key: k, value: value, expires: now.Add(c.ttl).UnixNano(), made: true}
	if e := s.entries[k]; e != nil {
		if !e.made {
			return
		}
		fresh.number = e.number + 1
		s.remove(e)
	}
	s.add(fresh)
}

// wait gives the shard's lock back and waits until the entry is made, or failed to be.
func (s *shard[V]) wait(ctx context.Context, e *entry[V]) error {
	if e.waiting == nil {
		e.waiting = make(chan struct{})
	}
	waiting := e.waiting
	s.mu.Unlock()
	select {
	case <-waiting:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// fill makes the value of an entry that others may wait for. If it fails, the entry is removed and
// those who waited look again, so one of them makes the value in its place.
func (c *memo[V]) fill(s *shard[V], e *entry[V], fill func(*V, uint64) error) (*V, bool, error) {
	failed := true // unless fill returns: it may panic
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		e.made = true
		if failed && s.entries[e.key] == e {
			s.remove(e)
		}
		if e.waiting != nil {
			close(e.waiting)
		}
	}()
	err := fill(&e.value, e.number)
	failed = err != nil
	return &e.value, false, err
}

// Drop forgets all values of a group.
func (c *memo[V]) Drop(group string) {
	s := c.shard(group)
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.groups[group] != nil {
		s.remove(s.groups[group])
	}
}

// Len returns how many values are kept, those past their time among them.
func (c *memo[V]) Len() int { return int(c.kept.Load()) }

// add puts an entry first, and makes room for it.
func (s *shard[V]) add(e *entry[V]) {
	if s.cache.kept.Add(1) > s.cache.room {
		s.evict()
	}
	s.entries[e.key] = e
	if e.behind = s.groups[e.key.group]; e.behind != nil {
		e.behind.before = e
	}
	s.groups[e.key.group] = e
	s.link(e)
}

// evict removes the entry that was not used longest. One that is being made stays, because others
// wait for it.
func (s *shard[V]) evict() {
	for e := s.recent.newer; e != &s.recent; e = e.newer {
		if e.made {
			s.remove(e)
			return
		}
	}
}

// link puts an entry into the ring as the one that was used last.
func (s *shard[V]) link(e *entry[V]) {
	e.newer, e.older = &s.recent, s.recent.older
	e.newer.older, e.older.newer = e, e
}

// touch moves an entry to the place of the one that was used last.
func (s *shard[V]) touch(e *entry[V]) {
	e.newer.older, e.older.newer = e.older, e.newer
	s.link(e)
}

// remove takes an entry off the map, the ring and the chain. Its value stays valid for those who
// have it.
func (s *shard[V]) remove(e *entry[V]) {
	s.cache.kept.Add(-1)
	delete(s.entries, e.key)
	e.newer.older, e.older.newer = e.older, e.newer
	switch {
	case e.before != nil:
		e.before.behind = e.behind
	case e.behind == nil:
		delete(s.groups, e.key.group)
	default:
		s.groups[e.key.group] = e.behind
	}
	if e.behind != nil {
		e.behind.before = e.before
	}
	e.newer, e.older, e.before, e.behind = nil, nil, nil, nil
}

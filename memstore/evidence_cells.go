package memstore

import (
	"hash/maphash"
	"sync"
	"time"

	"github.com/heedhq/heed/evidence"
)

// A space is what the cells of one listing share.
type space struct{ kind, scope string }

func (s space) cell(item, name string) evidence.Cell {
	return evidence.Cell{Kind: s.kind, Scope: s.scope, Item: item, Name: name}
}

// An origin is where evidence comes from. Cells that keep origins together have the zero origin.
type origin struct{ channel, source string }

// A groupKey names the cells of one item: they lie in one shard, chained from one entry of its map.
type groupKey struct {
	space uint32
	item  string
}

// A cellKey names a cell by the numbers of its texts.
type cellKey struct {
	space, name uint32
	item        string
}

func (k cellKey) group() groupKey { return groupKey{k.space, k.item} }

const shardCount = 64 // as many as a commit has bits to mark those that it locks

type cells struct {
	seed   maphash.Seed
	shards [shardCount]shard
}

func (c *cells) start() { c.seed = maphash.MakeSeed() }

func (c *cells) index(key groupKey) int {
	return int((maphash.String(c.seed, key.item) ^ uint64(key.space)*0x9e3779b97f4a7c15) >> 58)
}

func (c *cells) of(key groupKey) *shard { return &c.shards[c.index(key)] }

// A shard holds the cells of some groups: their tallies in slots, which hold no pointers, so that the collector has
// little to look at however many there are.
type shard struct {
	mu        sync.Mutex
	groups    map[groupKey]uint32 // the first slot of the group's chain
	chunks    [][]slot
	used      uint32 // slots taken so far, free ones among them; the slot of number 0 stays unused
	free      uint32 // the first slot of the chain of free ones
	histories map[cellKey]*history
	restarts  map[cellKey]restart
}

// A restart is what a cell remembers of its restarts. It has its policy, as it may have no slot that does.
type restart struct {
	at     evidence.Instant
	policy uint16
}

// A slot is the tally of one origin of one cell. The moments are microseconds.
type slot struct {
	mass, squares, reward, rewardSquares float64
	last                                 [3]int64  // positive, negative, neutral
	n                                    [3]uint32 // likewise
	landmark                             int32     // in steps of the policy's grid
	name, origin                         uint32
	next                                 uint32 // in the group's chain, or the chain of free slots
	policy                               uint16
	lost                                 loss
}

// A loss says what of a slot's observations the history does not hold.
type loss uint16

const (
	lostSome   loss = 1 << iota // at least one observation
	lostSource                  // at least one that had a source, which the slot does not tell apart
)

const chunkSize = 93 // of 88 bytes fill a size class of the allocator, 8 KiB

func (s *shard) slot(number uint32) *slot { return &s.chunks[number/chunkSize][number%chunkSize] }

// find returns the slot of an origin of a cell, or 0.
func (s *shard) find(key cellKey, origin uint32) uint32 {
	for at := s.groups[key.group()]; at != 0; at = s.slot(at).next {
		if slot := s.slot(at); slot.name == key.name && slot.origin == origin {
			return at
		}
	}
	return 0
}

// policy returns the policy under which a cell is open, if it is.
func (s *shard) policy(key cellKey) (uint16, bool) {
	for at := s.groups[key.group()]; at != 0; at = s.slot(at).next {
		if slot := s.slot(at); slot.name == key.name {
			return slot.policy, true
		}
	}
	r, ok := s.restarts[key]
	return r.policy, ok
}

// open returns the slot of an origin of a cell, a new one if there is none.
func (s *shard) open(key cellKey, origin uint32, policy uint16) *slot {
	if at := s.find(key, origin); at != 0 {
		return s.slot(at)
	}
	at := s.free
	switch {
	case at != 0:
		s.free = s.slot(at).next
	default:
		if s.used == 0 {
			s.used = 1
		}
		at = s.used
		if s.used++; int(at/chunkSize) >= len(s.chunks) {
			s.chunks = append(s.chunks, make([]slot, chunkSize))
		}
	}
	if s.groups == nil {
		s.groups = make(map[groupKey]uint32)
	}
	group := key.group()
	*s.slot(at) = slot{policy: policy, name: key.name, origin: origin, next: s.groups[group]}
	s.groups[group] = at
	return s.slot(at)
}

// remove takes out of a group the slots for which the function is true.
func (s *shard) remove(group groupKey, gone func(*slot) bool) {
	first := s.groups[group]
	link := &first
	for *link != 0 {
		at := *link
		slot := s.slot(at)
		if !gone(slot) {
			link = &slot.next
			continue
		}
		*link = slot.next
		slot.next, s.free = s.free, at
	}
	if first == 0 {
		delete(s.groups, group)
	} else {
		s.groups[group] = first
	}
}

// tally reads the slot. Landmarks lie on a grid of [evidence.LandmarkStep] half-lives, of which the slot keeps the number.
func (s *slot) tally(halfLife time.Duration) evidence.Tally {
	return evidence.Tally{
		HalfLife: halfLife, Landmark: evidence.Instant(int64(s.landmark) * grid(halfLife)),
		Mass: s.mass, Squares: s.squares, Reward: s.reward, RewardSquares: s.rewardSquares,
		Positive: evidence.Count{N: uint64(s.n[0]), Last: evidence.Instant(s.last[0])},
		Negative: evidence.Count{N: uint64(s.n[1]), Last: evidence.Instant(s.last[1])},
		Neutral:  evidence.Count{N: uint64(s.n[2]), Last: evidence.Instant(s.last[2])},
	}
}

func (s *slot) keep(t evidence.Tally) {
	if step := grid(t.HalfLife); step > 0 {
		s.landmark = int32(int64(t.Landmark) / step)
	}
	s.mass, s.squares, s.reward, s.rewardSquares = t.Mass, t.Squares, t.Reward, t.RewardSquares
	for i, count := range [...]evidence.Count{t.Positive, t.Negative, t.Neutral} {
		s.n[i], s.last[i] = uint32(count.N), int64(count.Last)
	}
}

func grid(halfLife time.Duration) int64 { return evidence.LandmarkStep * halfLife.Microseconds() }

func (s *slot) empty() bool { return s.n == [3]uint32{} }

// sign returns which of a slot's counts an observation of this reward is of.
func sign(reward float64) int {
	switch {
	case reward > 0.5:
		return 0
	case reward < 0.5:
		return 1
	default:
		return 2
	}
}

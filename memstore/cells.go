package memstore

import (
	"encoding/binary"
	"hash/maphash"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/limits"
	"github.com/heedhq/heed/internal/sampling"
)

// A space names the cells of one listing: they share it.
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
	seeds  [2]maphash.Seed
	shards [shardCount]shard
}

func (c *cells) start() {
	c.seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}
	for i := range c.shards {
		c.shards[i].seeds = &c.seeds
	}
}

// hashGroup names a group by 128 keyed bits: two groups have the same with a probability of 2⁻¹²⁸.
func hashGroup(seeds *[2]maphash.Seed, key groupKey) (h id) {
	space := uint64(key.space) * 0x9e3779b97f4a7c15
	binary.LittleEndian.PutUint64(h[:8], maphash.String(seeds[0], key.item)^space)
	binary.LittleEndian.PutUint64(h[8:], maphash.String(seeds[1], key.item)+space)
	return h
}

func (c *cells) index(key groupKey) int { return hashGroup(&c.seeds, key).shard() }

func (c *cells) of(key groupKey) *shard { return &c.shards[c.index(key)] }

// A shard holds the cells of some groups. Their tallies lie in slots, and their texts end to end: neither holds a pointer,
// so that the collector has next to nothing to look at however many there are.
type shard struct {
	mu        sync.Mutex
	seeds     *[2]maphash.Seed
	groups    map[id]group
	spaces    map[uint32][]uint32 // the first slots of all groups of a space, in any order
	chunks    [][]slot
	used      uint32 // slots taken so far, free ones among them; the slot of number 0 stays unused
	free      uint32 // the first slot of the chain of free ones
	items     texts
	stamp     uint64 // the last one that an observation got
	histories map[cellKey]*history
	restarts  map[cellKey]restart
}

// A group is the chain of one item's slots: the first, and where that stands among the groups of its space.
type group struct{ first, at uint32 }

// first returns the first slot of a group's chain, or 0.
func (s *shard) first(key groupKey) uint32 { return s.groups[hashGroup(s.seeds, key)].first }

// key returns the group that a slot is of.
func (s *shard) key(of *slot) groupKey { return groupKey{of.space, s.items.at(of.item)} }

// A restart is the memory of a cell's restarts. It has its policy, as it may have no slot that does.
type restart struct {
	at     evidence.Instant
	policy uint16
}

func (s *shard) keepRestart(key cellKey, r restart) {
	if s.restarts == nil {
		s.restarts = make(map[cellKey]restart)
	}
	s.restarts[key] = r
}

// A slot is the tally of one origin of one cell. The moments are microseconds.
type slot struct {
	mass, squares, reward, rewardSquares float64
	last                                 [3]int64  // positive, negative, neutral
	n                                    [3]uint32 // likewise
	landmark                             int32     // in steps of the policy's grid
	space, name, origin                  uint32
	item                                 uint32 // where its text is
	next                                 uint32 // in the group's chain, or the chain of free slots
	policy                               uint16
	lost                                 loss
}

// A loss counts the observations of a slot that the history does not hold.
type loss uint16

const (
	lostSome   loss = 1 << iota // at least one observation
	lostSource                  // at least one that had a source, which the slot does not tell apart
)

const chunkSize = 85 // of 96 bytes fill a size class of the allocator, 8 KiB

func (s *shard) slot(number uint32) *slot { return &s.chunks[number/chunkSize][number%chunkSize] }

// find returns the slot of an origin of a cell, or 0.
func (s *shard) find(key cellKey, origin uint32) uint32 {
	for at := s.first(key.group()); at != 0; at = s.slot(at).next {
		if slot := s.slot(at); slot.name == key.name && slot.origin == origin {
			return at
		}
	}
	return 0
}

// holds reports whether a cell has evidence.
func (s *shard) holds(key cellKey) bool {
	for at := s.first(key.group()); at != 0; at = s.slot(at).next {
		if s.slot(at).name == key.name {
			return true
		}
	}
	return false
}

// policy returns the policy under which a cell is open, if it is.
func (s *shard) policy(key cellKey) (uint16, bool) {
	for at := s.first(key.group()); at != 0; at = s.slot(at).next {
		if slot := s.slot(at); slot.name == key.name {
			return slot.policy, true
		}
	}
	r, ok := s.restarts[key]
	return r.policy, ok
}

// open returns the slot of an origin of a cell, a new one if there is none. A group's chain is in the order of the names' numbers, and of one
// name in that of the origins, which compare tells of their numbers.
func (s *shard) open(key cellKey, origin uint32, policy uint16, compare func(a, b uint32) int) *slot {
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
		s.groups, s.spaces = make(map[id]group), make(map[uint32][]uint32)
	}
	hash := hashGroup(s.seeds, key.group())
	g := s.groups[hash]
	var item uint32
	if g.first != 0 {
		item = s.slot(g.first).item
	} else {
		item = s.items.add(key.item)
		g.at = uint32(len(s.spaces[key.space]))
		s.spaces[key.space] = append(s.spaces[key.space], at)
	}
	link := &g.first
	for *link != 0 {
		other := s.slot(*link)
		if other.name > key.name || other.name == key.name && compare(other.origin, origin) > 0 {
			break
		}
		link = &other.next
	}
	*s.slot(at) = slot{policy: policy, space: key.space, name: key.name, origin: origin, item: item, next: *link}
	*link = at
	s.groups[hash], s.spaces[key.space][g.at] = g, g.first
	return s.slot(at)
}

// remove takes out of a group the slots for which the function is true.
func (s *shard) remove(hash id, gone func(*slot) bool) {
	g, ok := s.groups[hash]
	if !ok {
		return
	}
	link, space, item := &g.first, s.slot(g.first).space, s.slot(g.first).item
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
	if g.first != 0 {
		s.groups[hash], s.spaces[space][g.at] = g, g.first
		return
	}
	delete(s.groups, hash)
	s.leave(space, g.at)
	if s.items.drop(item) {
		s.compact()
	}
}

// leave takes a group out of those of its space. The last one gets its place: see [shard.list].
func (s *shard) leave(space, at uint32) {
	groups := s.spaces[space]
	last := groups[len(groups)-1]
	groups = groups[:len(groups)-1]
	switch {
	case len(groups) == 0:
		delete(s.spaces, space)
		return
	case int(at) < len(groups):
		groups[at] = last
		s.groups[hashGroup(s.seeds, s.key(s.slot(last)))] = group{last, at}
	}
	s.spaces[space] = groups
}

// list returns the items of a space in order, or a sample of them. Keys are spread over the shards, and ordered by hash within them, by
// seeds that nobody knows: so a sample is of some shards, and within these of the keys with the least hashes.
func (c *cells) list(space uint32, sample *sampling.Sample) (items []string) {
	shards, below := c.shards[:], uint64(math.MaxUint64)
	if sample != nil {
		all := 0
		for i := range shards {
			all += shards[i].count(space)
		}
		if all > sample.Most {
			share := float64(sample.Most) / float64(all)
			some := int(math.Ceil(share * shardCount))
			shards, below = shards[:some], uint64(share*shardCount/float64(some)*math.MaxUint32)<<32
			sample.All = all
		}
	}
	for i := range shards {
		items = shards[i].list(space, below, items)
	}
	slices.Sort(items)
	items = slices.Compact(items)
	if sample != nil && sample.All > 0 {
		sample.Given = len(items)
	}
	return items
}

func (s *shard) count(space uint32) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.spaces[space])
}

// list appends the items of a space whose hash is not above a limit, and holds the lock for some of them at a time. It goes backwards: a
// group that leaves meanwhile gets the last one in its place, so that an item may be listed twice, and none is left out.
func (s *shard) list(space uint32, limit uint64, items []string) []string {
	const some = 256
	for end := math.MaxInt; end > 0; {
		items = slices.Grow(items, some)
		s.mu.Lock()
		groups := s.spaces[space]
		end = min(end, len(groups))
		for range min(end, some) {
			end--
			key := s.key(s.slot(groups[end]))
			if limit == math.MaxUint64 || hashGroup(s.seeds, key).rest() <= limit {
				items = append(items, key.item)
			}
		}
		s.mu.Unlock()
	}
	return items
}

// compact writes the texts of all groups anew, without those that were dropped.
func (s *shard) compact() {
	var items texts
	for _, g := range s.groups {
		item := items.add(s.items.at(s.slot(g.first).item))
		for at := g.first; at != 0; at = s.slot(at).next {
			s.slot(at).item = item
		}
	}
	s.items = items
}

// texts holds texts of less than 64 KiB end to end, each after its length.
type texts struct {
	chunks     [][]byte
	used, dead int // bytes
}

const textChunk = 1 << 16

// add returns where a text is now. An empty one is at 0.
func (t *texts) add(text string) uint32 {
	if text == "" {
		return 0
	}
	need := 2 + len(text)
	if n := len(t.chunks); n == 0 || len(t.chunks[n-1])+need > textChunk {
		if n > 0 { // the first chunks of a small store grow as they fill
			t.chunks[n-1] = slices.Clip(t.chunks[n-1])
		}
		t.chunks = append(t.chunks, make([]byte, 1, 256<<min(len(t.chunks), 8)))
	}
	last := len(t.chunks) - 1
	at := uint32(last*textChunk + len(t.chunks[last]))
	t.chunks[last] = binary.LittleEndian.AppendUint16(t.chunks[last], uint16(len(text)))
	t.chunks[last] = append(t.chunks[last], text...)
	t.used += need
	return at
}

func (t *texts) at(at uint32) string {
	if at == 0 {
		return ""
	}
	chunk := t.chunks[at/textChunk][at%textChunk:]
	return string(chunk[2 : 2+binary.LittleEndian.Uint16(chunk)])
}

// drop gives up a text, and reports whether it is time to write the others anew.
func (t *texts) drop(at uint32) bool {
	if at != 0 {
		t.dead += 2 + len(t.at(at))
	}
	return t.dead > textChunk && t.dead > t.used/2
}

// tally reads the slot. Landmarks lie on a grid of [limits.LandmarkStep] half-lives. The slot keeps their number.
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

func grid(halfLife time.Duration) int64 { return limits.LandmarkStep * halfLife.Microseconds() }

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

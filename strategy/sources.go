package strategy

import (
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/fair"
	"github.com/heedhq/heed/store"
)

// sources notes whether this process saw a cell of the segment with as many sources as it keeps
// apart by name.
//
// A cell keeps fair.MostParts sources apart. Further sources share a part, and which source
// goes where depends on who is there, so such a cell is read before an outcome adds to it. Other
// cells are spared that reading. A process that has not seen the segment's cells reads as well.
type sources struct{ seen atomic.Uint32 }

const (
	fewSources  = 1
	manySources = 2
)

// mayBeMany reports whether a cell must be read before an outcome adds to it.
func (s *sources) mayBeMany() bool { return s.seen.Load() != fewSources }

// saw notes the parts of a cell. A cell that once had many keeps the segment at many, because parts
// only go when evidence is forgotten.
func (s *sources) saw(parts int) {
	if parts >= fair.MostParts {
		s.seen.Store(manySources)
		return
	}
	s.seen.CompareAndSwap(0, fewSources)
}

// A sourceCache remembers the sources of cells while one step after the other credits many answers,
// for example an import does. In a full cell, the name under which an outcome counts depends on
// all sources of the cell. Reading these for each commit would cost more than the commit: a cell
// has up to 5,120, and 2,000 answers may be about all cells.
//
// What is remembered is at most Config.Refresh old, like a segment in memory, and only for one step
// of many answers after the other: a step of fewer answers and a reset drop it. A process that
// knows less than another may keep a few sources more apart in a cell than [fair.MostParts].
type sourceCache struct {
	seed maphash.Seed

	mu    sync.Mutex
	since time.Time // when the first of the cells was read
	cells map[evidence.Cell]*cellSources
	size  int // of all cells
}

// maxCached bounds the hashes that a sourceCache remembers, which are about 40 MB. Beyond it, all
// are forgotten, and the cells are read again.
const maxCached = 1 << 21

// cellSources are the hashes of the sources of a cell, and of its parts, because a source has a
// part for each channel.
type cellSources struct {
	known map[uint64]struct{}
	parts int
}

// newSourceCache returns an empty cache.
func newSourceCache() *sourceCache {
	return &sourceCache{seed: maphash.MakeSeed(), cells: make(map[evidence.Cell]*cellSources)}
}

// apart does what [fair.Apart] does by what is remembered of a cell. It reports false if
// the cell must be read.
func (c *sourceCache) apart(
	trust *evidence.Trust, cell evidence.Cell, source string,
) (name string, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.cells[cell]
	if of == nil {
		return "", false
	}
	_, there := of.known[maphash.String(c.seed, source)]
	if source == "" || there || of.parts < fair.MostParts ||
		slices.Contains(trust.Instruments, source) {
		return source, true
	}
	return fair.Place(source), true
}

// unknown returns which of the cells must be read.
func (c *sourceCache) unknown(cells []evidence.Cell) (all []evidence.Cell) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, cell := range cells {
		if c.cells[cell] == nil {
			all = append(all, cell)
		}
	}
	return all
}

// expire forgets the cells if they were read too long ago, or are too many.
func (c *sourceCache) expire(now time.Time, refresh time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.since).Abs() >= refresh || c.size > maxCached {
		c.clear(now)
	}
}

// drop forgets all, because a commit may have taken place or not, or outcomes that come one by one
// are not counted here. These read the cells themselves.
func (c *sourceCache) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.cells) > 0 {
		c.clear(time.Time{})
	}
}

func (c *sourceCache) clear(since time.Time) {
	clear(c.cells)
	c.since, c.size = since, 0
}

// read remembers cells that were read, with their parts.
func (c *sourceCache) read(cells []evidence.Cell, parts []evidence.Part) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, cell := range cells { // also those without a part
		c.cells[cell] = &cellSources{known: make(map[uint64]struct{})}
	}
	for i := range parts {
		c.add(parts[i].Cell, parts[i].Channel, parts[i].Source)
	}
}

// count adds the source of an observation that was committed. It returns how many parts the cell
// has, or 0 if the cell is not remembered.
func (c *sourceCache) count(o *evidence.Observation) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.add(o.Cell, o.Channel, o.Source)
}

func (c *sourceCache) add(cell evidence.Cell, channel, source string) int {
	of := c.cells[cell]
	if of == nil {
		return 0
	}
	hashes := len(of.known)
	of.known[maphash.String(c.seed, source)] = struct{}{}
	sources := len(of.known)
	of.known[maphash.Comparable(c.seed, [2]string{channel, source})] = struct{}{}
	of.parts += len(of.known) - sources
	c.size += len(of.known) - hashes
	return of.parts
}

// sourceWants names the cells of a choice that are read before an outcome adds to them.
func (l *Learner) sourceWants(s *segment, c *Choice) (w store.Wants) {
	if s.sources.mayBeMany() {
		w.Cells = l.sources.unknown(l.creditedCells(s, c))
	}
	return w
}

// sourcesAtOnce is how many cells are read at once into a sourceCache, because each of them may
// have 5,120 parts of about 150 bytes.
const sourcesAtOnce = 16

// readSources reads the cells of plans whose sources are not remembered. The step does not keep
// their parts, which may be half a million.
func (l *Learner) readSources(tx *store.Tx, step *crediting) error {
	l.sources.expire(step.now, l.cfg.Refresh)
	var cells []evidence.Cell
	wanted := make(map[evidence.Cell]bool)
	for _, p := range step.plans {
		if len(p.counts) == 0 {
			continue
		}
		for _, cell := range l.sources.unknown(l.creditedCells(p.of.segment, &p.choice)) {
			if !wanted[cell] {
				wanted[cell] = true
				cells = append(cells, cell)
			}
		}
	}
	var read store.Snapshot
	for some := range slices.Chunk(cells, sourcesAtOnce) {
		read.Parts = read.Parts[:0]
		if err := tx.Peek(&read, some); err != nil {
			return err
		}
		l.sources.read(some, read.Parts)
	}
	return nil
}

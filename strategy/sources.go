package strategy

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/fair"
	"github.com/heedhq/heed/store"
)

// sources notes whether this process saw a cell of the segment with as many sources as it keeps
// apart by name, or a source with as many channels.
//
// A cell keeps fair.MostParts sources apart, and fair.MostChannels channels of each. Further ones
// share a part, and which of them goes where depends on who is there, so such a cell is read before
// an outcome adds to it. Other cells are spared that reading. A process that has not seen the
// segment's cells reads as well.
type sources struct{ seen atomic.Uint32 }

const (
	fewSources  = 1
	manySources = 2
)

// saw notes whether a cell is full. A cell that once was keeps the segment at many, because parts
// only go when evidence is forgotten.
func (s *sources) saw(full bool) {
	if full {
		s.seen.Store(manySources)
		return
	}
	s.seen.CompareAndSwap(0, fewSources)
}

// forget has cells be read again, because many outcomes came that were not counted one by one. A
// segment that is at many stays there.
func (s *sources) forget() { s.seen.CompareAndSwap(fewSources, 0) }

// sourceWants names the cells of a choice that are read before an outcome adds to them.
func (s *segment) sourceWants(c *Choice) (w store.Wants) {
	if s.sources.seen.Load() != fewSources {
		w.Cells = s.creditedCells(c)
	}
	return w
}

// A bulkStep has the sources of the cells that steps in bulk add to. The next such step takes them
// over, because reading full cells costs more than the rest of it. They are at most Config.Refresh
// old, and an outcome that is counted by itself ends them. A process that knows less than another
// may keep a few sources more apart than [fair.MostParts].
type bulkStep struct {
	since time.Time

	mu    sync.Mutex // of what follows
	cells map[evidence.Cell]*fair.Sources
	parts int // of all cells, and five more for each cell
}

const (
	// mostBulkParts bounds the names that the next step takes over, to about 20 MB.
	mostBulkParts = 1 << 19
	// fullAtOnce is how many cells are read at once: each may have 5,120 parts of about 150 bytes.
	fullAtOnce = 16
)

// apart returns the source under which a cell keeps an observation: see [fair.Apart]. Sources that
// the step itself adds to a cell are all kept apart, and so are all channels.
func (b *bulkStep) apart(t evidence.Trust, o *evidence.Observation) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.cells[o.Cell].Apart(t, o.Source)
}

// add notes observations that were counted.
func (b *bulkStep) add(all []evidence.Observation) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range all {
		if of := b.cells[all[i].Cell]; of != nil && of.Add(all[i].Source) {
			b.parts++
		}
	}
}

// inBulk returns the sources of all cells that a step in bulk adds to.
func (l *Learner) inBulk(ctx context.Context, step *crediting) (*bulkStep, error) {
	b := l.bulk.Load()
	if b == nil || step.now.Sub(b.since).Abs() >= l.cfg.Refresh {
		b = &bulkStep{since: step.now, cells: make(map[evidence.Cell]*fair.Sources)}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	wanted := make(map[evidence.Cell]bool)
	for _, p := range step.plans {
		if len(p.counts) > 0 {
			for _, cell := range p.segment.creditedCells(&p.choice) {
				if b.cells[cell] == nil {
					wanted[cell] = true
				}
			}
		}
	}
	cells := slices.SortedFunc(maps.Keys(wanted), evidence.Cell.Compare)
	for some := range slices.Chunk(cells, fullAtOnce) {
		parts, err := l.readCells(ctx, some...)
		if err != nil {
			return nil, err
		}
		for _, cell := range some {
			of := leading(parts, cell)
			parts, b.cells[cell] = parts[len(of):], fair.SourcesOf(of)
			b.parts += len(of) + 5 // a cell takes as much memory as five names
		}
	}
	if l.bulk.Store(nil); b.parts <= mostBulkParts {
		l.bulk.Store(b)
	}
	return b, nil
}

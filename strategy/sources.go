package strategy

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"

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

// forget has cells be read again, because many outcomes came that were not counted one by one. A
// segment that is at many stays there.
func (s *sources) forget() { s.seen.CompareAndSwap(fewSources, 0) }

// sourceWants names the cells of a choice that are read before an outcome adds to them.
func (s *segment) sourceWants(c *Choice) (w store.Wants) {
	if s.sources.mayBeMany() {
		w.Cells = s.creditedCells(c)
	}
	return w
}

// crowdedAtOnce is how many cells readCrowded reads at once, because each of them may have 5,120
// parts of about 150 bytes.
const crowdedAtOnce = 16

// readCrowded reads the cells of a step in bulk, and keeps the parts of those that have as many
// sources as are kept apart by name. All others need no look at who is there. Sources that the step
// itself adds to a cell are all kept apart.
func (l *Learner) readCrowded(ctx context.Context, step *crediting) error {
	wanted := make(map[evidence.Cell]bool)
	for _, p := range step.plans {
		if len(p.counts) > 0 {
			for _, cell := range p.segment.creditedCells(&p.choice) {
				wanted[cell] = true
			}
		}
	}
	step.crowded = make(map[evidence.Cell][]evidence.Part)
	cells := slices.SortedFunc(maps.Keys(wanted), evidence.Cell.Compare)
	for some := range slices.Chunk(cells, crowdedAtOnce) {
		parts, err := l.readCells(ctx, some...)
		if err != nil {
			return err
		}
		for _, cell := range some {
			of := leading(parts, cell)
			if parts = parts[len(of):]; len(of) >= fair.MostParts {
				step.crowded[cell] = slices.Clone(of)
			}
		}
	}
	return nil
}

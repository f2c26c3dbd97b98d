package strategy

import (
	"context"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/internal/host"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/store"
)

// A segment is the learner's memory of one segment. It is derived from the store, and read again
// now and then. Its beliefs about items are in its model: see [Model], and two_level.go for the
// default. A model gets its priors as a [Segment].
type segment struct {
	category, context string

	space space

	mu sync.RWMutex // of what follows; outcomes and loads write, choices read
	// found is what the store has of the items, with the model of it. It is nil until the segment was
	// loaded.
	found *found
	// loaded is when it was read. The zero time has the next use read it again, while other users go
	// on with the old one.
	loaded  time.Time
	resets  map[string]resets // of items that were reset, if they were read
	expired uint64            // how often it was expired
	// changes list what changed since a load began, and report whether the model drifted; nil without
	// a load.
	changes []func(*found) bool
	latest  latest // the outcomes that the test of a change reads

	loading host.Lock // of reading it again
	sources sources
	numbers atomic.Int32 // of the last query's vector; 0: there was none
}

// maxSegments is how many segments are in memory at least, those that were used last, and half of
// how many at most. A host has few, but a client may name each of its requests. A step must not
// have more, so that it keeps its own.
const maxSegments = 4096

// segment returns a segment, which may not be loaded. It is made with its first use. One that was
// not used for long leaves the memory, and is made and read again when it is used. So what is in
// memory alone, the latest outcomes that the test of a change reads, is lost only with it.
func (l *Learner) segment(category, context string) (*segment, error) {
	scope := answers.Scope(category, context)
	s, known := l.segments.Get(scope)
	if !known {
		if len(scope) > evidence.MaxText {
			return nil, valid.Input("Category",
				"with the context is more than %d bytes long", evidence.MaxText)
		}
		s = l.segments.Add(scope, &segment{
			category: category, context: context, space: space{l.kinds, scope}, loading: host.NewLock(),
		})
	}
	return s, nil
}

// stale reports whether the caller must load the segment. It then holds the lock for that.
func (l *Learner) stale(ctx context.Context, s *segment, now time.Time) (bool, error) {
	switch loaded, fresh := s.state(now, l.cfg.Refresh); {
	case fresh:
		return false, nil
	case loaded:
		// One makes it again; the others go on with what there is.
		if !s.loading.TryLock() {
			return false, nil
		}
	default:
		if err := s.loading.Lock(ctx); err != nil {
			return false, err
		}
	}
	// Another goroutine may have loaded it while this one waited for the lock.
	if _, fresh := s.state(now, l.cfg.Refresh); fresh {
		s.loading.Unlock()
		return false, nil
	}
	return true, nil
}

// state reports whether there is a model, and whether it is fresh. After the clock was put back it
// is not.
func (s *segment) state(now time.Time, refresh time.Duration) (loaded, fresh bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.found != nil, s.found != nil && now.Sub(s.loaded).Abs() < refresh
}

// wasReset remembers how often an item was reset. The count of the segment is kept under the empty
// item as well, for items that were not read.
func (s *segment) wasReset(item string, n resets) {
	if n == (resets{}) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.resets == nil {
		s.resets = make(map[string]resets)
	}
	if n[1] > 0 { // else the count of the segment is enough, whatever the number of items
		s.resets[item] = n.atLeast(s.resets[item])
	}
	s.resets[""] = resets{n[0]}.atLeast(s.resets[""])
}

// resetsOf returns how often an item was reset, if it was read.
func (s *segment) resetsOf(c *Choice) (n resets) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.resetCount(c)
}

// resetCount does what resetsOf does for a caller that holds the lock.
func (s *segment) resetCount(c *Choice) resets {
	n := resets(c.facts().Resets).atLeast(s.resets[c.Item])
	return n.atLeast(resets{s.resets[""][0]})
}

// model asks the pooling, which may be a host's, for a model of these items.
func (l *Learner) model(priors []evidence.Beta, items []Item) Model {
	return l.cfg.Pooling.Model(Segment{Priors: priors, LeastWeight: l.cfg.MinConfidence}, items)
}

// countOf returns how many outcomes the parts of a cell have together, each counted as one.
func countOf(parts []evidence.Part) (n uint64) {
	for i := range parts {
		n += parts[i].Tally.N()
	}
	return n
}

// partsOf returns the parts of a cell, which follow each other. One without evidence has no parts.
func partsOf(parts []evidence.Part, cell evidence.Cell) []evidence.Part {
	first := 0
	for first < len(parts) && parts[first].Cell != cell {
		first++
	}
	return leading(parts[first:], cell)
}

// leading returns the parts of a cell if they come first.
func leading(parts []evidence.Part, cell evidence.Cell) []evidence.Part {
	end := 0
	for end < len(parts) && parts[end].Cell == cell {
		end++
	}
	return parts[:end]
}

// listed yields the parts of each cell, which a store lists one after the other. It uses the slice
// again.
func listed(list iter.Seq2[evidence.Part, error]) iter.Seq2[[]evidence.Part, error] {
	return func(yield func([]evidence.Part, error) bool) {
		var parts []evidence.Part
		for part, err := range list {
			if err != nil {
				yield(nil, err)
				return
			}
			if len(parts) > 0 && parts[0].Cell != part.Cell {
				if !yield(parts, nil) {
					return
				}
				parts = parts[:0]
			}
			parts = append(parts, part)
		}
		if len(parts) > 0 {
			yield(parts, nil)
		}
	}
}

// parameterCells names the cells of all values of all parameters.
func (l *Learner) parameterCells(space space) (cells []evidence.Cell) {
	for _, v := range l.values {
		cells = append(cells, space.parameter(v.arm, v.Setting))
	}
	return cells
}

// parameterBelief is the belief about one value of a parameter. All values start at the even prior.
// The sums are within the limits on people, and the scale is the one of the weights in the segment.
func parameterBelief(sums evidence.Sums, scale float64) evidence.Beta {
	return countsOf(sums, scale, 1).posterior(evidence.Beta{Alpha: 1, Beta: 1})
}

// readCells reads cells.
func (l *Learner) readCells(ctx context.Context, cells ...evidence.Cell) ([]evidence.Part, error) {
	var read store.Snapshot
	err := l.cfg.Store.Read(ctx, &read, cells, nil)
	return read.Parts, err
}

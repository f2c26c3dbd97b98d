package strategy

import (
	"context"
	"fmt"
	"hash/maphash"
	"iter"
	"sync"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
)

// A segmentKey names a segment.
type segmentKey struct{ category, context string }

// A segment is what the learner holds in memory of one: derived from the store, and made anew from it now and then.
type segment struct {
	segmentKey
	space space

	mu         sync.RWMutex // of what follows; Update and its like write, choices read
	model      Model        // nil until loaded
	loaded     time.Time
	parameters []parameterSet // by arm
	samples    []uint64       // outcomes of each arm

	// items has locks for the items whose evidence is being added to: an item's observations go one after the other, so
	// that the model sees each of its changes once. A load takes them all.
	items [16]lock
	// loading is held by who makes the model anew.
	loading lock
}

func newSegment(key segmentKey, s space) *segment {
	segment := &segment{segmentKey: key, space: s, loading: newLock()}
	for i := range segment.items {
		segment.items[i] = newLock()
	}
	return segment
}

// A lock is a mutex that one waits for only as long as one's context lasts, as who holds it may be waiting for a store.
type lock chan struct{}

func newLock() lock { return make(lock, 1) }

func (l lock) acquire(ctx context.Context) error {
	select {
	case l <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// tryAcquire reports whether the lock was free, and takes it then.
func (l lock) tryAcquire() bool {
	select {
	case l <- struct{}{}:
		return true
	default:
		return false
	}
}

func (l lock) release() { <-l }

// A parameterSet holds the beliefs about the values of an arm's parameters.
type parameterSet [][]evidence.Sampler

var itemSeed = maphash.MakeSeed()

// item returns the lock of an item.
func (s *segment) item(item string) lock {
	return s.items[maphash.String(itemSeed, item)%uint64(len(s.items))]
}

// segment returns a segment that is loaded, and as fresh as Config.Refresh says.
func (l *Learner) segment(ctx context.Context, category, context string, now time.Time) (*segment, error) {
	key := segmentKey{category, context}
	l.mu.RLock()
	s := l.segments[key]
	l.mu.RUnlock()
	if s == nil {
		scope := segmentScope(category, context)
		if len(scope) > evidence.MaxText {
			return nil, &heed.InputError{Field: "Category", Reason: fmt.Sprintf("with the context is more than %d bytes long", evidence.MaxText)}
		}
		l.mu.Lock()
		if s = l.segments[key]; s == nil {
			s = newSegment(key, space{l.kinds, scope})
			l.segments[key] = s
		}
		l.mu.Unlock()
	}
	switch loaded, fresh := s.state(now, l.cfg.Refresh); {
	case fresh:
		return s, nil
	case loaded:
		// One makes it anew; the others go on with what there is.
		if !s.loading.tryAcquire() {
			return s, nil
		}
	default:
		if err := s.loading.acquire(ctx); err != nil {
			return nil, err
		}
	}
	defer s.loading.release()
	if _, fresh := s.state(now, l.cfg.Refresh); fresh {
		return s, nil
	}
	return s, l.load(ctx, s, now)
}

// state reports whether there is a model, and whether it is as fresh as it must be: by a clock that was put back, it is not.
func (s *segment) state(now time.Time, refresh time.Duration) (loaded, fresh bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.model != nil, s.model != nil && now.Sub(s.loaded).Abs() < refresh
}

// load makes the model anew from the store. The caller holds the segment's lock for it.
func (l *Learner) load(ctx context.Context, s *segment, now time.Time) error {
	for _, item := range s.items {
		if err := item.acquire(ctx); err != nil {
			return err
		}
		defer item.release()
	}
	found, err := l.loadItems(ctx, s.space, evidence.InstantOf(now))
	if err != nil {
		return err
	}
	parameters, err := l.loadParameters(ctx, s, evidence.InstantOf(now))
	if err != nil {
		return err
	}
	model := l.model(found.items)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.model, s.loaded, s.parameters, s.samples = model, now, parameters, found.samples
	return nil
}

func (l *Learner) model(items []Item) Model {
	return l.cfg.Pooling.Model(Segment{Priors: l.priors, LeastWeight: l.cfg.MinConfidence}, items)
}

// found is what a store has of the items of a segment.
type found struct {
	items   []Item
	names   []string // of the items
	counts  [][]uint64
	samples []uint64 // by arm, over all items
	last    evidence.Instant
}

// loadItems reads what the items of a segment have shown, in the order of the store.
func (l *Learner) loadItems(ctx context.Context, space space, now evidence.Instant) (f found, err error) {
	n := len(l.cfg.Arms)
	f.samples = make([]uint64, n)
	for parts, err := range byCell(l.cfg.Store.List(ctx, l.kinds.arm, space.scope)) {
		if err != nil {
			return found{}, err
		}
		cell := parts[0].Cell
		arm, ok := l.index[ArmID(cell.Name)]
		if !ok {
			continue // of an arm that this learner no longer has
		}
		if len(f.items) == 0 || cell.Item != f.names[len(f.names)-1] {
			f.items = append(f.items, Item{Arms: make([]evidence.Sums, n)})
			f.names = append(f.names, cell.Item)
			f.counts = append(f.counts, make([]uint64, n))
		}
		last := len(f.items) - 1
		f.items[last].Arms[arm] = l.cfg.Caps.Pool(parts, now)
		f.counts[last][arm] = countOf(parts)
		f.samples[arm] += f.counts[last][arm]
		for i := range parts {
			f.last = max(f.last, parts[i].Tally.Last())
		}
	}
	return f, nil
}

func countOf(parts []evidence.Part) (n uint64) {
	for i := range parts {
		n += parts[i].Tally.N()
	}
	return n
}

// byCell gathers the parts of each cell, which a store lists one after the other. The slice is used again.
func byCell(list iter.Seq2[evidence.Part, error]) iter.Seq2[[]evidence.Part, error] {
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

// loadParameters reads what is believed of the values of every parameter that has a choice of them.
func (l *Learner) loadParameters(ctx context.Context, s *segment, now evidence.Instant) ([]parameterSet, error) {
	sets := make([]parameterSet, len(l.cfg.Arms))
	var scratch []evidence.Part
	for i, arm := range l.cfg.Arms {
		sets[i] = make(parameterSet, len(arm.Parameters))
		for j, p := range arm.Parameters {
			sets[i][j] = make([]evidence.Sampler, len(p.Values))
			for k, value := range p.Values {
				var err error
				scratch, err = l.cfg.Store.Read(ctx, scratch[:0], s.space.parameter(arm.ID, Setting{p.Name, value}))
				if err != nil {
					return nil, err
				}
				sets[i][j][k] = l.parameterBelief(scratch, now).Sampler()
			}
		}
	}
	return sets, nil
}

// parameterBelief is what is believed of one value of a parameter. Values start alike, at the even prior.
func (l *Learner) parameterBelief(parts []evidence.Part, now evidence.Instant) evidence.Beta {
	return countsOf(l.cfg.Caps.Pool(parts, now), l.cfg.MinConfidence, 1).posterior(evidence.Beta{Alpha: 1, Beta: 1})
}

package memstore

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/stores"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/store"
)

// Config sets what a [Store] keeps, and for how long. The zero value means the defaults.
type Config struct {
	// Now is the clock: observations too far ahead of it are refused, and ids, history and records
	// age by it. nil means time.Now.
	Now func() time.Time
	store.Retention

	declared bool // HistoryPerCell is the default, so kinds may ask for more
}

// withDefaults returns the configuration with its zero fields set.
func (c Config) withDefaults() Config {
	c.declared = c.HistoryPerCell == 0
	if c.Now == nil {
		c.Now = time.Now //nolint:forbidigo // the default clock of a host that sets no clock
	}
	stores.Defaults(&c.Retention)
	return c
}

// Store is a [store.Store] in memory. The zero value is ready to use, with the defaults of
// [Config]. It must not be copied after first use.
//
// One lock guards all that it holds: a commit has the store alone, and reads see one moment. A loop
// over a list holds no lock while its body runs. Store starts no goroutine. Its content ends with
// the process, unless the host calls [Store.Dump]. It is safe for concurrent use.
type Store struct {
	cfg Config
	// started makes the state with the first call, so that the zero value is ready.
	started sync.Once
	mu      sync.RWMutex
	state   *state // Load puts another one in its place
}

var _ store.Store = (*Store)(nil)

// New returns an empty store, or all faults of its configuration, each a [*heed.ConfigError].
func New(cfg Config) (*Store, error) {
	if err := stores.Check(cfg.Retention); err != nil {
		return nil, fmt.Errorf("memstore: %w", err)
	}
	cfg.Limits = maps.Clone(cfg.Limits)
	return &Store{cfg: cfg}, nil
}

// start makes the zero value ready, at the first call.
func (s *Store) start() {
	s.started.Do(func() {
		s.cfg = s.cfg.withDefaults()
		s.state = newState(s.cfg)
	})
}

// read calls a function that reads the state. Others may read at the same time. The function must
// not call the store.
func (s *Store) read(ctx context.Context, do func(*state) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.start()
	s.mu.RLock()
	defer s.mu.RUnlock()
	return do(s.state)
}

// write calls a function that may change the state. It has the store alone. A function that returns
// an error must have changed nothing.
func (s *Store) write(ctx context.Context, do func(*state) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.start()
	s.mu.Lock()
	defer s.mu.Unlock()
	return do(s.state)
}

// Commit implements [store.Store]. Batches are checked and their ids are hashed before the lock is
// taken. It never returns [heed.ErrOutcomeUnknown], because no reply can get lost.
func (s *Store) Commit(ctx context.Context, batches ...store.Batch) ([]store.Receipt, error) {
	s.start()
	// One moment for the whole call: what was checked by it is recorded by it.
	now := s.cfg.Now()
	err := store.Validate(now, batches...)
	t := newTxn(batches, evidence.InstantOf(now))
	if err == nil {
		err = s.write(ctx, t.run)
	}
	if err != nil {
		return nil, fmt.Errorf("memstore: commit: %w", err)
	}
	return t.receipts, nil
}

// Declare implements [store.Store]. Declarations end with the process, as all else does, so each
// program declares its kinds when it starts.
func (s *Store) Declare(ctx context.Context, kinds ...store.Kind) error {
	for i := range kinds {
		if err := kinds[i].Validate(); err != nil {
			return fmt.Errorf("memstore: declare: %w", err)
		}
	}
	return s.write(ctx, func(held *state) error {
		for _, kind := range kinds {
			held.declare(kind)
		}
		return nil
	})
}

// Read implements [store.Store]. All that it returns is of one moment, which is more than the
// contract asks for.
func (s *Store) Read(
	ctx context.Context, into *store.Snapshot, cells []evidence.Cell, refs []store.Ref,
	finds ...store.Query,
) error {
	searches := make([]search, len(finds))
	for i, q := range finds {
		var err error
		if searches[i], err = newSearch(q); err != nil {
			return fmt.Errorf("memstore: read: %w", err)
		}
	}
	return s.read(ctx, func(held *state) error {
		// The caller's snapshot is as it was if a reference is refused.
		first := len(into.Records)
		for _, ref := range refs {
			record, err := held.record(ref)
			if err != nil {
				into.Records = into.Records[:first]
				return fmt.Errorf("memstore: read: %w", err)
			}
			into.Records = append(into.Records, record)
		}
		for _, c := range cells {
			into.Parts = held.find(c).parts(into.Parts)
		}
		for i := range searches {
			into.Found = append(into.Found, held.gather(&searches[i]))
		}
		return nil
	})
}

// Find implements [store.Store]. It notes the rows of a page at a time, each page twice as long as
// the one before, and copies a few rows when the loop comes to them. So a loop that ends early
// costs about what it has read. A record that moves during the loop is neither missed nor met
// twice. The loop's body may use the store, and even change the records that it loops over.
func (s *Store) Find(ctx context.Context, q store.Query) iter.Seq2[store.Record, error] {
	if q.Kind == store.Declarations {
		return listed(ctx, s, (*state).declarations)
	}
	return func(yield func(store.Record, error) bool) {
		w, err := newWalk(q)
		if err != nil {
			yield(store.Record{}, fmt.Errorf("memstore: find: %w", err))
			return
		}
		for {
			var found []store.Record
			err := s.read(ctx, func(held *state) error {
				found = held.next(w)
				return nil
			})
			if err != nil {
				yield(store.Record{}, err)
				return
			}
			if len(found) == 0 || !yieldAll(ctx, found, yield) {
				return
			}
		}
	}
}

// List implements [store.Store]. It notes the items first, and reads each when the loop comes to
// it. So each item is of one moment, and different items may be of different ones.
func (s *Store) List(ctx context.Context, q store.CellQuery) iter.Seq2[evidence.Part, error] {
	s.start()
	now := evidence.InstantOf(s.cfg.Now())
	if q.Naming != "" {
		return s.naming(ctx, &q, now)
	}
	if base, tenant := store.KindOf(q.Kind); base == "" && tenant != "" {
		return listed(ctx, s, func(held *state) (parts []evidence.Part, _ error) {
			for c := range held.cells() {
				if _, of := store.KindOf(c.Kind); of == tenant {
					parts = append(parts, evidence.Part{Cell: c.Cell})
				}
			}
			slices.SortFunc(parts, func(a, b evidence.Part) int { return a.Cell.Compare(b.Cell) })
			return parts, nil
		})
	}
	return func(yield func(evidence.Part, error) bool) {
		in := space{q.Kind, q.Scope}
		var items []string
		err := s.read(ctx, func(held *state) error {
			items = held.items(in, q.Sample)
			return nil
		})
		var parts []evidence.Part
		for i := 0; err == nil && i < len(items); i++ {
			err = s.read(ctx, func(held *state) error {
				parts = parts[:0]
				for _, c := range held.spaces[in][items[i]] {
					parts = c.selected(&q, held.oldestHistory(now), parts)
				}
				return nil
			})
			if err == nil && !yieldAll(ctx, parts, yield) {
				return
			}
		}
		if err != nil {
			yield(evidence.Part{}, err)
		}
	}
}

// naming lists the cells that name a source. It looks at every cell, because people are forgotten
// seldom.
func (s *Store) naming(
	ctx context.Context, q *store.CellQuery, now evidence.Instant,
) iter.Seq2[evidence.Part, error] {
	return listed(ctx, s, func(held *state) (parts []evidence.Part, err error) {
		_, tenant := store.KindOf(q.Kind)
		cells, err := held.naming(q.Naming, tenant, now)
		for _, c := range cells {
			parts = c.selected(q, 0, parts)
		}
		return parts, err
	})
}

// Scopes implements [store.Store]. It notes all scopes before the loop begins.
func (s *Store) Scopes(ctx context.Context, kind string) iter.Seq2[string, error] {
	return listed(ctx, s, func(held *state) ([]string, error) { return held.scopes(kind), nil })
}

// History implements [store.Store]. What is past its time is left out, also before a sweep drops
// it. The newest observation comes first.
func (s *Store) History(
	ctx context.Context, c evidence.Cell,
) iter.Seq2[evidence.Observation, error] {
	s.start()
	now := evidence.InstantOf(s.cfg.Now())
	return listed(ctx, s, func(held *state) (kept []evidence.Observation, _ error) {
		found := held.find(c)
		if found == nil {
			return nil, nil
		}
		for i := range slices.Backward(found.history) {
			if e := &found.history[i]; e.Recorded >= held.oldestHistory(now) {
				kept = append(kept, e.Of(c))
			}
		}
		return kept, nil
	})
}

// listed reads all that a function lists before it yields the first.
func listed[T any](
	ctx context.Context, s *Store, list func(*state) ([]T, error),
) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var all []T
		err := s.read(ctx, func(held *state) (err error) {
			all, err = list(held)
			return err
		})
		if err != nil {
			yield(*new(T), err)
			return
		}
		yieldAll(ctx, all, yield)
	}
}

// yieldAll yields until the loop ends or the context is done, and reports whether neither happened.
func yieldAll[T any](ctx context.Context, all []T, yield func(T, error) bool) bool {
	for _, one := range all {
		if err := ctx.Err(); err != nil {
			yield(*new(T), err)
			return false
		}
		if !yield(one, nil) {
			return false
		}
	}
	return true
}

// Sweep implements [store.Store]. It finishes jobs, and then drops what is past its time: first
// from histories, then ids, because an id may only go after its observations, and then records.
// Each step looks again whether the thing is still due, because others write between the steps.
//
// To find what is due it looks at all cells, ids and kinds, so a sweep of a store with ten thousand
// tenants takes some tenths of a second, and holds the lock for reading in the meantime.
func (s *Store) Sweep(ctx context.Context, now time.Time) error {
	s.start()
	at := evidence.InstantOf(valid.Due(now, s.cfg.Now()))
	return cmp.Or(
		store.Resume(ctx, s),
		inSteps(ctx, s, func(held *state) []*cell { return held.expiredCells(at) },
			func(held *state, c *cell) { held.prune(c, at) }),
		inSteps(ctx, s, func(held *state) []id { return held.expiredIDs(at) },
			func(held *state, h id) { held.forgetID(h, at) }),
		inSteps(ctx, s, func(held *state) []dueRow { return held.dueRows(at) },
			func(_ *state, due dueRow) { due.drop(at) }),
	)
}

// inSteps finds what is due under the lock for reading, and handles a thousand at a time under the
// lock for writing, so that others need not wait long.
func inSteps[T any](
	ctx context.Context, s *Store, find func(*state) []T, handle func(*state, T),
) error {
	var due []T
	err := s.read(ctx, func(held *state) error {
		due = find(held)
		return nil
	})
	// The lock is let go between the steps.
	for step := range slices.Chunk(due, 1000) {
		if err != nil {
			return err
		}
		err = s.write(ctx, func(held *state) error {
			for _, one := range step {
				handle(held, one)
			}
			return nil
		})
	}
	return err
}

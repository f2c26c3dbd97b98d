package memstore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/faults"
	"github.com/heedhq/heed/internal/retention"
	"github.com/heedhq/heed/store"
)

// Config says what a [Store] keeps, and for how long. The zero value means the defaults.
type Config struct {
	// Now is the clock: observations too far ahead of it are refused, and ids, history and records age by it. nil means
	// time.Now.
	Now func() time.Time
	// NoHistory keeps no history of observations. Nothing can be retracted then, and a source can be expunged only from
	// cells that keep origins apart.
	NoHistory bool
	// HistoryPerCell is the number of observations that are kept of each cell, those that happened last. 0 means 100, or as many as
	// the cell's kind was declared with ([store.Kind].History), if that is more.
	HistoryPerCell int
	// HistoryFor is how long an observation is kept after it was recorded. 0 means 30 days.
	HistoryFor time.Duration
	// IDsFor is how long an id is known at the least after it was recorded. It may be known for twice as long. It must not
	// be shorter than HistoryFor, nor than the longest time after which an event can be delivered again. 0 means 30 days,
	// or HistoryFor where that is longer.
	IDsFor time.Duration
	// Limits says by kind how long records are kept. It wins over what [Store.Declare] is given.
	Limits map[string]store.Limits

	declared bool // HistoryPerCell is the default, so kinds may ask for more
}

func (c Config) withDefaults() Config {
	c.declared = c.HistoryPerCell == 0
	if c.Now == nil {
		c.Now = time.Now //nolint:forbidigo // the default clock of a host that gives none
	}
	retention.Defaults(&c.HistoryPerCell, &c.HistoryFor, &c.IDsFor)
	return c
}

func (c Config) validate() error {
	c = c.withDefaults()
	var found faults.List
	retention.Check(&found, c.HistoryPerCell, c.HistoryFor, c.IDsFor, c.Limits)
	return found.Err()
}

// Store is a [store.Store] in memory. The zero value is ready to use, with the defaults of [Config]. It must not be copied
// after first use.
//
// It starts no goroutine. Its content ends with the process, unless the host calls [Store.Dump]. Store is safe for
// concurrent use.
type Store struct {
	cfg     Config
	started sync.Once
	content atomic.Pointer[state]
}

var _ store.Store = (*Store)(nil)

// A state is all that a store holds. Load makes another one.
type state struct {
	engine
	known   known
	records records
	// left says that the store has another state now. It is set under all locks of shards and that of declarations.
	left atomic.Bool
}

func newState(cfg Config) *state {
	s := &state{engine: engine{cfg: cfg}}
	s.declaredHistory = s.records.history
	s.cells.start()
	s.records.start(cfg.Limits)
	return s
}

// New returns an empty store, or all faults of its configuration, each a [*heed.ConfigError].
func New(cfg Config) (*Store, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("memstore: %w", err)
	}
	cfg.Limits = maps.Clone(cfg.Limits)
	return &Store{cfg: cfg}, nil
}

// state returns the current state of the store.
func (s *Store) state() *state {
	s.started.Do(func() { s.content.Store(newState(s.cfg.withDefaults())) })
	return s.content.Load()
}

// Commit implements [store.Store].
func (s *Store) Commit(ctx context.Context, batches ...store.Batch) ([]store.Receipt, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	now := s.state().cfg.Now()
	err := store.Validate(now, batches...)
	for err == nil {
		t := txn{state: s.state(), batches: batches, now: evidence.InstantOf(now), notes: pages.Get().(*notes)}
		err = t.run()
		t.giveBack()
		if err == nil {
			return t.receipts, nil
		}
		if errors.Is(err, errLeft) {
			err = nil
		}
	}
	return nil, fmt.Errorf("memstore: commit: %w", err)
}

// errLeft says that the store has got another state meanwhile.
var errLeft = errors.New("the store was loaded")

// Declare implements [store.Store].
func (s *Store) Declare(ctx context.Context, kinds ...store.Kind) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for i := range kinds {
		if err := kinds[i].Validate(); err != nil {
			return fmt.Errorf("memstore: declare: %w", err)
		}
	}
	for !s.state().declare(kinds) {
	}
	return nil
}

// Read implements [store.Store].
func (s *Store) Read(ctx context.Context, into *store.Snapshot, cells []evidence.Cell, refs []store.Ref, finds ...store.Query) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	now := s.state()
	first := len(into.Records)
	into.Records = slices.Grow(into.Records, len(refs))[:first+len(refs)]
	for _, versions := range []bool{true, false} { // which come first
		for i, ref := range refs {
			if versions != (ref.ID == "") {
				continue
			}
			record, err := now.records.read(ref)
			if err != nil {
				into.Records = into.Records[:first]
				return fmt.Errorf("memstore: read: %w", err)
			}
			into.Records[first+i] = record
		}
	}
	into.Parts = now.readCells(into.Parts, cells)
	for _, q := range finds {
		var found []store.Record
		err := now.records.find(ctx, q, func(r store.Record, _ error) bool {
			found = append(found, r)
			return true
		})
		if err != nil {
			return err
		}
		into.Found = append(into.Found, found)
	}
	return nil
}

// Find implements [store.Store].
func (s *Store) Find(ctx context.Context, q store.Query) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		err := ctx.Err()
		if err == nil {
			err = s.state().records.find(ctx, q, yield)
		}
		if err != nil {
			yield(store.Record{}, err)
		}
	}
}

// List implements [store.Store].
func (s *Store) List(ctx context.Context, kind, scope string) iter.Seq2[evidence.Part, error] {
	return func(yield func(evidence.Part, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(evidence.Part{}, err)
			return
		}
		s.state().list(ctx, space{kind, scope}, yield)
	}
}

// Scopes implements [store.Store].
func (s *Store) Scopes(ctx context.Context, kind string) iter.Seq2[string, error] {
	return listed(ctx, func() []string { return s.state().scopes(kind) })
}

// History implements [store.Store].
func (s *Store) History(ctx context.Context, c evidence.Cell) iter.Seq2[evidence.Observation, error] {
	return listed(ctx, func() []evidence.Observation { return s.state().history(c) })
}

// Sweep implements [store.Store].
func (s *Store) Sweep(ctx context.Context, now time.Time) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	held := s.state()
	clock := held.cfg.Now()
	if now.IsZero() || now.After(clock) {
		now = clock
	}
	at := evidence.InstantOf(now)
	if err := held.sweepHistories(ctx, at); err != nil {
		return err
	}
	held.known.sweep(at, held.cfg.IDsFor)
	for _, k := range *held.records.kinds.Load() {
		if err := held.records.sweep(ctx, k, at); err != nil {
			return err
		}
	}
	return nil
}

package memstore

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/faults"
)

// EvidenceConfig says how much an [Evidence] remembers besides the sums themselves. The zero value means the defaults.
type EvidenceConfig struct {
	// Now is the clock by which observations are refused that lie in the future, and by which ids and history age. nil
	// means time.Now.
	Now func() time.Time
	// NoHistory keeps no history: nothing can then be retracted, and a source be expunged only from cells that keep
	// origins apart.
	NoHistory bool
	// HistoryPerCell is how many observations of a cell are kept, those that happened last. 0 means 100.
	HistoryPerCell int
	// HistoryFor is how long an observation is kept from when it was recorded. 0 means 30 days.
	HistoryFor time.Duration
	// IDsFor is how long an id is known at the least, from when it was recorded; it may be known for twice as long. It
	// must not be shorter than HistoryFor, nor than the longest time after which an event can be delivered again. 0 means
	// 30 days, or HistoryFor where that is longer.
	IDsFor time.Duration
	// MaxEvents is how many outgoing events the outbox holds; a batch with more is refused with [evidence.ErrFull]. 0
	// means 100,000.
	MaxEvents int
	// MaxAudit is how many audit entries are kept, those recorded last. 0 means 100,000.
	MaxAudit int
}

func (c EvidenceConfig) withDefaults() EvidenceConfig {
	if c.Now == nil {
		c.Now = time.Now //nolint:forbidigo // the default clock of a host that gives none
	}
	const month = 30 * 24 * time.Hour
	c.HistoryPerCell = cmp.Or(c.HistoryPerCell, 100)
	c.HistoryFor = cmp.Or(c.HistoryFor, month)
	c.IDsFor = cmp.Or(c.IDsFor, max(c.HistoryFor, month))
	c.MaxEvents = cmp.Or(c.MaxEvents, 100_000)
	c.MaxAudit = cmp.Or(c.MaxAudit, 100_000)
	return c
}

// Validate reports all faults, joined.
func (c EvidenceConfig) Validate() error {
	c = c.withDefaults()
	var found faults.List
	found.Check(c.HistoryPerCell > 0, "HistoryPerCell", c.HistoryPerCell, "must not be negative")
	found.Check(c.HistoryFor > 0, "HistoryFor", c.HistoryFor, "must not be negative")
	found.Check(c.IDsFor >= c.HistoryFor, "IDsFor", c.IDsFor, "must not be shorter than HistoryFor")
	found.Check(c.MaxEvents > 0, "MaxEvents", c.MaxEvents, "must not be negative")
	found.Check(c.MaxAudit > 0, "MaxAudit", c.MaxAudit, "must not be negative")
	return found.Err()
}

// Evidence is an [evidence.Store] in memory. The zero value is ready to use, with the defaults of [EvidenceConfig]; it
// must not be copied after first use.
//
// Cells and ids are spread over shards with a lock each, so that commits to different items seldom wait for each other.
// An id is kept as a keyed hash of 128 bits. Evidence is safe for concurrent use.
type Evidence struct {
	cfg     EvidenceConfig
	started sync.Once
	engine
	ids     ids
	records evidenceRecords
}

var _ evidence.Store = (*Evidence)(nil)

// NewEvidence returns an empty store.
func NewEvidence(cfg EvidenceConfig) (*Evidence, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("memstore: %w", err)
	}
	return &Evidence{cfg: cfg}, nil
}

// Config returns the configuration in force.
func (e *Evidence) Config() EvidenceConfig {
	e.start()
	return e.cfg
}

func (e *Evidence) start() {
	e.started.Do(func() {
		e.cfg = e.cfg.withDefaults()
		e.engine.cfg = Config{
			Now: e.cfg.Now, NoHistory: e.cfg.NoHistory, HistoryPerCell: e.cfg.HistoryPerCell,
			HistoryFor: e.cfg.HistoryFor, IDsFor: e.cfg.IDsFor,
		}
		e.ids.start()
		e.cells.start()
	})
}

// Commit implements [evidence.Store].
func (e *Evidence) Commit(ctx context.Context, b evidence.Batch) (evidence.Receipt, error) {
	if err := ctx.Err(); err != nil {
		return evidence.Receipt{}, err
	}
	e.start()
	now := e.cfg.Now()
	if err := b.Validate(now); err != nil {
		return evidence.Receipt{}, fmt.Errorf("memstore: commit: %w", err)
	}
	c := commit{store: e, batch: &b, now: evidence.InstantOf(now)}
	receipt, err := c.run()
	if err != nil {
		return evidence.Receipt{}, fmt.Errorf("memstore: commit: %w", err)
	}
	return receipt, nil
}

// Read implements [evidence.Store].
func (e *Evidence) Read(ctx context.Context, dst []evidence.Part, cells ...evidence.Cell) ([]evidence.Part, error) {
	if err := ctx.Err(); err != nil {
		return dst, err
	}
	e.start()
	return e.readCells(dst, cells), nil
}

// List implements [evidence.Store]. It holds one shard's lock at a time, and none while the loop runs.
func (e *Evidence) List(ctx context.Context, kind, scope string) iter.Seq2[evidence.Part, error] {
	return func(yield func(evidence.Part, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(evidence.Part{}, err)
			return
		}
		e.start()
		yieldAll(ctx, e.parts(space{kind, scope}), yield)
	}
}

// Scopes implements [evidence.Store].
func (e *Evidence) Scopes(ctx context.Context, kind string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if err := ctx.Err(); err != nil {
			yield("", err)
			return
		}
		e.start()
		yieldAll(ctx, e.scopes(kind), yield)
	}
}

// History implements [evidence.Store].
func (e *Evidence) History(ctx context.Context, c evidence.Cell) iter.Seq2[evidence.Observation, error] {
	return func(yield func(evidence.Observation, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(evidence.Observation{}, err)
			return
		}
		e.start()
		yieldAll(ctx, e.history(c), yield)
	}
}

// Audit implements [evidence.Store].
func (e *Evidence) Audit(ctx context.Context) iter.Seq2[evidence.AuditEntry, error] {
	return func(yield func(evidence.AuditEntry, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(evidence.AuditEntry{}, err)
			return
		}
		yieldAll(ctx, e.records.auditEntries(), yield)
	}
}

// Outbox implements [evidence.Store].
func (e *Evidence) Outbox(ctx context.Context) iter.Seq2[evidence.Event, error] {
	return func(yield func(evidence.Event, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(evidence.Event{}, err)
			return
		}
		yieldAll(ctx, e.records.unsent(), yield)
	}
}

// Sweep gives back the memory of history and ids that are past their time. Reading never shows them, swept or not. It is
// for the host to call now and then, and holds one shard's lock at a time.
func (e *Evidence) Sweep(ctx context.Context) error {
	e.start()
	now := evidence.InstantOf(e.cfg.Now())
	if err := e.sweepHistories(ctx, now); err != nil {
		return err
	}
	e.ids.sweep(now, e.cfg.IDsFor)
	return nil
}

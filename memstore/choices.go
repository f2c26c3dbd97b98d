package memstore

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/faults"
	"github.com/heedhq/heed/strategy"
)

// ChoicesConfig bounds a [Choices]. The zero value means the defaults.
type ChoicesConfig struct {
	// Now is the clock by which records age. nil means time.Now.
	Now func() time.Time
	// Max is how many records are kept; a new one takes the place of the one that was added first. 0 means 100,000.
	Max int
	// For is how long a record is kept from when its choice was made. 0 means 30 days.
	For time.Duration
}

func (c ChoicesConfig) withDefaults() ChoicesConfig {
	if c.Now == nil {
		c.Now = time.Now //nolint:forbidigo // the default clock of a host that gives none
	}
	c.Max = cmp.Or(c.Max, 100_000)
	c.For = cmp.Or(c.For, 30*24*time.Hour)
	return c
}

// Choices is a [strategy.Choices] in memory. The zero value is ready to use, with the defaults of [ChoicesConfig]; it must
// not be copied after first use. It is safe for concurrent use.
type Choices struct {
	cfg     ChoicesConfig
	started sync.Once

	mu       sync.Mutex
	byID     map[strategy.ChoiceID]*strategy.Record
	sessions map[sessionKey][]*strategy.Record // in the order in which they were added, as the following
	items    map[string][]*strategy.Record
	all      []*strategy.Record
}

type sessionKey struct{ learner, session string }

var _ strategy.Choices = (*Choices)(nil)

// NewChoices returns an empty store.
func NewChoices(cfg ChoicesConfig) (*Choices, error) {
	full := cfg.withDefaults()
	var found faults.List
	found.Check(full.Max > 0, "Max", full.Max, "must not be negative")
	found.Check(full.For > 0, "For", full.For, "must not be negative")
	if err := found.Err(); err != nil {
		return nil, fmt.Errorf("memstore: %w", err)
	}
	return &Choices{cfg: cfg}, nil
}

// Config returns the configuration in force.
func (c *Choices) Config() ChoicesConfig {
	c.start()
	return c.cfg
}

func (c *Choices) start() {
	c.started.Do(func() {
		c.cfg = c.cfg.withDefaults()
		c.byID = make(map[strategy.ChoiceID]*strategy.Record)
		c.sessions = make(map[sessionKey][]*strategy.Record)
		c.items = make(map[string][]*strategy.Record)
	})
}

// locked runs a function under the lock, on what is not past its time, unless the context is done.
func (c *Choices) locked(ctx context.Context, do func()) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.start()
	oldest := c.oldest()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expire(oldest)
	do()
	return nil
}

// oldest is the moment before which records are past their time.
func (c *Choices) oldest() time.Time { return c.cfg.Now().Add(-c.cfg.For) }

func (c *Choices) expire(oldest time.Time) {
	for len(c.all) > 0 && c.all[0].Choice.At.Before(oldest) {
		c.drop()
	}
}

// drop forgets the record that was added first.
func (c *Choices) drop() {
	r := c.all[0]
	c.all[0] = nil
	c.all = c.all[1:]
	delete(c.byID, r.Choice.ID)
	key := sessionKey{r.Choice.Learner(), r.Choice.Session}
	removeFirst(c.sessions, key)
	removeFirst(c.items, r.Choice.Item)
}

// removeFirst takes the first of those that are kept under a key.
func removeFirst[K comparable, V any](in map[K][]*V, key K) {
	rest := in[key]
	rest[0] = nil
	if in[key] = rest[1:]; len(rest) == 1 {
		delete(in, key)
	}
}

// Add implements [strategy.Choices].
func (c *Choices) Add(ctx context.Context, choice strategy.Choice) error {
	return c.locked(ctx, func() {
		if c.byID[choice.ID] == nil {
			c.add(&strategy.Record{Choice: choice, Stage: strategy.Pending})
		}
	})
}

// add keeps a record of a choice that is not known.
func (c *Choices) add(r *strategy.Record) {
	if len(c.all) == c.cfg.Max {
		c.drop()
	}
	key := sessionKey{r.Choice.Learner(), r.Choice.Session}
	c.byID[r.Choice.ID] = r
	c.sessions[key] = append(c.sessions[key], r)
	c.items[r.Choice.Item] = append(c.items[r.Choice.Item], r)
	c.all = append(c.all, r)
}

// Get implements [strategy.Choices].
func (c *Choices) Get(ctx context.Context, id strategy.ChoiceID) (record strategy.Record, err error) {
	err = c.change(ctx, id, func(r *strategy.Record) { record = copyRecord(r) })
	return record, err
}

// change calls a function with the record of a choice, or returns [heed.ErrNotFound].
func (c *Choices) change(ctx context.Context, id strategy.ChoiceID, do func(*strategy.Record)) error {
	found := false
	err := c.locked(ctx, func() {
		if r := c.byID[id]; r != nil {
			found = true
			do(r)
		}
	})
	if err == nil && !found {
		err = fmt.Errorf("memstore: choice %v: %w", id, heed.ErrNotFound)
	}
	return err
}

func copyRecord(r *strategy.Record) strategy.Record {
	record := *r
	if r.Result != nil {
		result := *r.Result
		record.Result = &result
	}
	return record
}

// List implements [strategy.Choices]. It holds no lock while the loop runs.
func (c *Choices) List(ctx context.Context, f strategy.ChoiceFilter) iter.Seq2[strategy.Record, error] {
	return func(yield func(strategy.Record, error) bool) {
		var records []strategy.Record
		err := c.locked(ctx, func() {
			for _, r := range c.among(f) {
				if f.Passes(*r) {
					records = append(records, copyRecord(r))
				}
			}
		})
		if err != nil {
			yield(strategy.Record{}, err)
			return
		}
		slices.SortFunc(records, strategy.Record.Compare)
		if f.Limit > 0 && len(records) > f.Limit {
			records = records[:f.Limit]
		}
		yieldAll(ctx, records, yield)
	}
}

// among returns the records that a filter may let pass: of a long session or of a common item, whichever are fewer.
func (c *Choices) among(f strategy.ChoiceFilter) []*strategy.Record {
	records := c.all
	if f.Item != "" {
		records = c.items[f.Item]
	}
	if f.Session != "" && f.Learner != "" {
		if ofSession := c.sessions[sessionKey{f.Learner, f.Session}]; len(ofSession) < len(records) {
			records = ofSession
		}
	}
	return records
}

// Settle implements [strategy.Choices].
func (c *Choices) Settle(ctx context.Context, id strategy.ChoiceID, result strategy.Result) (before strategy.Stage, err error) {
	err = c.change(ctx, id, func(r *strategy.Record) {
		before = r.Stage
		if r.Stage = strategy.Observed; r.Result == nil || r.Result.Before(result) {
			r.Result = &result
		}
	})
	return before, err
}

// Expire implements [strategy.Choices].
func (c *Choices) Expire(ctx context.Context, id strategy.ChoiceID) (expired bool, err error) {
	err = c.change(ctx, id, func(r *strategy.Record) {
		if expired = r.Stage == strategy.Pending; expired {
			r.Stage = strategy.Expired
		}
	})
	return expired, err
}

// EndSession implements [strategy.Choices].
func (c *Choices) EndSession(ctx context.Context, learner, session string) error {
	return c.locked(ctx, func() {
		for _, r := range c.sessions[sessionKey{learner, session}] {
			r.Ended = true
		}
	})
}

package memstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/faults"
	"github.com/heedhq/heed/patterns"
)

// PatternsConfig says how much a [Patterns] keeps. The zero value means the defaults.
type PatternsConfig struct {
	MaxPatterns    int // more are refused with [evidence.ErrFull]. 0 means 100,000
	MaxTransitions int // of all patterns, those recorded last. 0 means 100,000
	MaxEntries     int // those recorded last. 0 means 100,000
}

func (c PatternsConfig) withDefaults() PatternsConfig {
	c.MaxPatterns = cmp.Or(c.MaxPatterns, 100_000)
	c.MaxTransitions = cmp.Or(c.MaxTransitions, 100_000)
	c.MaxEntries = cmp.Or(c.MaxEntries, 100_000)
	return c
}

// Patterns is a [patterns.Store] in memory. The zero value is ready to use, with the defaults of [PatternsConfig]; it must
// not be copied after first use. Patterns is safe for concurrent use.
type Patterns struct {
	cfg PatternsConfig

	mu          sync.RWMutex
	patterns    map[patterns.PatternID]*patterns.Pattern
	order       []patterns.PatternID // in which they were first stored
	transitions log[patterns.Transition]
	entries     log[patterns.Entry]
}

var _ patterns.Store = (*Patterns)(nil)

// NewPatterns returns an empty store.
func NewPatterns(cfg PatternsConfig) (*Patterns, error) {
	cfg = cfg.withDefaults()
	var found faults.List
	found.Check(cfg.MaxPatterns > 0, "MaxPatterns", cfg.MaxPatterns, "must not be negative")
	found.Check(cfg.MaxTransitions > 0, "MaxTransitions", cfg.MaxTransitions, "must not be negative")
	found.Check(cfg.MaxEntries > 0, "MaxEntries", cfg.MaxEntries, "must not be negative")
	if err := found.Err(); err != nil {
		return nil, fmt.Errorf("memstore: %w", err)
	}
	return &Patterns{cfg: cfg}, nil
}

// Config returns the configuration in force.
func (s *Patterns) Config() PatternsConfig { return s.cfg.withDefaults() }

// Commit implements [patterns.Store].
func (s *Patterns) Commit(ctx context.Context, c patterns.Changes) error {
	if err := errors.Join(ctx.Err(), c.Validate()); err != nil {
		return fmt.Errorf("memstore: commit patterns: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	fresh := 0
	for i := range c.Patterns {
		stored, ok := s.patterns[c.Patterns[i].ID]
		switch {
		case !ok && c.Patterns[i].Revision == 0:
			fresh++
		case !ok || stored.Revision != c.Patterns[i].Revision:
			return fmt.Errorf("memstore: commit patterns: %w", heed.ErrConflict)
		}
	}
	if fresh > 0 && len(s.order)+fresh > s.Config().MaxPatterns {
		return fmt.Errorf("memstore: commit patterns: %w", evidence.ErrFull)
	}
	for i := range c.Patterns {
		p := kept(&c.Patterns[i])
		p.Revision++
		s.put(&p)
	}
	s.record(&c)
	return nil
}

// put keeps a pattern, behind the others if it is new.
func (s *Patterns) put(p *patterns.Pattern) {
	if s.patterns == nil {
		s.patterns = make(map[patterns.PatternID]*patterns.Pattern)
	}
	if s.patterns[p.ID] == nil {
		s.order = append(s.order, p.ID)
	}
	s.patterns[p.ID] = p
}

// record keeps transitions and entries.
func (s *Patterns) record(c *patterns.Changes) {
	cfg := s.Config()
	for _, t := range c.Transitions {
		t.At = micro(t.At)
		s.transitions.add(t.ID, string(t.Pattern), t, cfg.MaxTransitions)
	}
	for i := range c.Entries {
		e := c.Entries[i].Clone()
		e.Outcome.At = micro(e.Outcome.At)
		s.entries.add(e.ID(), e.Outcome.Task, e, cfg.MaxEntries)
	}
}

func kept(p *patterns.Pattern) patterns.Pattern {
	c := p.Clone()
	c.CreatedAt, c.UpdatedAt, c.ArchivedAt = micro(c.CreatedAt), micro(c.UpdatedAt), micro(c.ArchivedAt)
	if c.Override != nil {
		c.Override.At = micro(c.Override.At)
	}
	return c
}

// micro is a time as stores keep it.
func micro(t time.Time) time.Time { return evidence.InstantOf(t).Time() }

// Pattern implements [patterns.Store].
func (s *Patterns) Pattern(ctx context.Context, id patterns.PatternID) (patterns.Pattern, error) {
	if err := ctx.Err(); err != nil {
		return patterns.Pattern{}, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if p, ok := s.patterns[id]; ok {
		return p.Clone(), nil
	}
	return patterns.Pattern{}, fmt.Errorf("memstore: pattern: %w", heed.ErrNotFound)
}

// Patterns implements [patterns.Store].
func (s *Patterns) Patterns(ctx context.Context, q patterns.PatternQuery) iter.Seq2[patterns.Pattern, error] {
	return listing(ctx, func() (all []patterns.Pattern) {
		s.mu.RLock()
		defer s.mu.RUnlock()
		for _, id := range s.order {
			if p := s.patterns[id]; q.Selects(p) {
				all = append(all, p.Clone())
			}
		}
		return all
	})
}

// Transitions implements [patterns.Store].
func (s *Patterns) Transitions(ctx context.Context, id patterns.PatternID) iter.Seq2[patterns.Transition, error] {
	return listing(ctx, func() []patterns.Transition {
		s.mu.RLock()
		defer s.mu.RUnlock()
		return s.transitions.newestFirst(string(id), 0)
	})
}

// Entry implements [patterns.Store].
func (s *Patterns) Entry(ctx context.Context, id string) (patterns.Entry, error) {
	if err := ctx.Err(); err != nil {
		return patterns.Entry{}, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if e, ok := s.entries.byID[id]; ok {
		return e.value.Clone(), nil
	}
	return patterns.Entry{}, fmt.Errorf("memstore: entry: %w", heed.ErrNotFound)
}

// Entries implements [patterns.Store].
func (s *Patterns) Entries(ctx context.Context, q patterns.EntryQuery) iter.Seq2[patterns.Entry, error] {
	return listing(ctx, func() []patterns.Entry {
		s.mu.RLock()
		defer s.mu.RUnlock()
		all := s.entries.newestFirst(q.Task, q.Limit)
		for i := range all {
			all[i] = all[i].Clone()
		}
		return all
	})
}

// listing yields what is there when the loop begins. No lock is held while it runs.
func listing[T any](ctx context.Context, read func() []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(*new(T), err)
			return
		}
		yieldAll(ctx, read(), yield)
	}
}

// A log keeps the values recorded last, each once by its id, and lists them by group. The zero log is empty; it must not be
// used concurrently.
type log[T any] struct {
	byID   map[string]*logged[T]
	groups map[string][]*logged[T] // the first recorded first
	all    []*logged[T]            // likewise
	gone   int                     // how many at the front of all were dropped
}

type logged[T any] struct {
	id, group string
	value     T
}

func (l *log[T]) add(id, group string, value T, limit int) {
	if _, known := l.byID[id]; known {
		return
	}
	if l.byID == nil {
		l.byID, l.groups = make(map[string]*logged[T]), make(map[string][]*logged[T])
	}
	one := &logged[T]{id, group, value}
	l.byID[id] = one
	l.groups[group] = append(l.groups[group], one)
	l.all = append(l.all, one)
	if len(l.byID) > limit {
		l.drop(l.all[l.gone])
	}
}

// drop forgets the value that was recorded first, which is also the first of its group.
func (l *log[T]) drop(first *logged[T]) {
	delete(l.byID, first.id)
	if rest := l.groups[first.group][1:]; len(rest) > 0 {
		l.groups[first.group] = rest
	} else {
		delete(l.groups, first.group)
	}
	l.all[l.gone] = nil
	if l.gone++; l.gone > len(l.all)/2 {
		l.all, l.gone = slices.Clone(l.all[l.gone:]), 0
	}
}

// newestFirst returns the values of a group, or all where it is empty, at most limit of them where there is one.
func (l *log[T]) newestFirst(group string, limit int) []T {
	from := l.groups[group]
	if group == "" {
		from = l.all[l.gone:]
	}
	if limit > 0 {
		from = from[max(len(from)-limit, 0):]
	}
	values := make([]T, 0, len(from))
	for _, one := range slices.Backward(from) {
		values = append(values, one.value)
	}
	return values
}

package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/export"
	"github.com/heedhq/heed/internal/faults"
	"github.com/heedhq/heed/patterns"
)

// PatternsConfig says how much a [Patterns] keeps. The zero value means the defaults. What is over a number stays until the
// next [Patterns.Sweep].
type PatternsConfig struct {
	MaxTransitions int // of all patterns, those recorded last. 0 means a million
	MaxEntries     int // those recorded last. 0 means a million
}

// Patterns is a [patterns.Store] in a database. It is safe for concurrent use.
type Patterns struct {
	cfg         PatternsConfig
	patterns    shelf[patterns.Pattern]
	transitions shelf[patterns.Transition]
	entries     shelf[patterns.Entry]
}

var _ patterns.Store = (*Patterns)(nil)

// NewPatterns returns the store of patterns in a database.
func NewPatterns(db *DB, cfg PatternsConfig) (*Patterns, error) {
	cfg.MaxTransitions = cmp.Or(cfg.MaxTransitions, 1_000_000)
	cfg.MaxEntries = cmp.Or(cfg.MaxEntries, 1_000_000)
	var found faults.List
	found.Check(cfg.MaxTransitions > 0, "MaxTransitions", cfg.MaxTransitions, "must not be negative")
	found.Check(cfg.MaxEntries > 0, "MaxEntries", cfg.MaxEntries, "must not be negative")
	if err := found.Err(); err != nil {
		return nil, fmt.Errorf("sqlstore: %w", err)
	}
	return &Patterns{
		cfg, shelf[patterns.Pattern]{db, export.Pattern}, shelf[patterns.Transition]{db, export.Transition},
		shelf[patterns.Entry]{db, export.Entry},
	}, nil
}

// Config returns the configuration in force.
func (s *Patterns) Config() PatternsConfig { return s.cfg }

// Commit implements [patterns.Store].
func (s *Patterns) Commit(ctx context.Context, c patterns.Changes) error {
	if err := errors.Join(ctx.Err(), c.Validate()); err != nil {
		return fmt.Errorf("sqlstore: pattern: %w", err)
	}
	all := slices.Clone(c.Patterns)
	slices.SortStableFunc(all, func(a, b patterns.Pattern) int {
		// New ones stay in their order, as that is the order in which they are listed.
		if a.Revision == 0 || b.Revision == 0 {
			return cmp.Compare(a.Revision, b.Revision)
		}
		return cmp.Compare(a.ID, b.ID)
	})
	return s.patterns.write(ctx, func(t *tx) error {
		for i := range all {
			p := kept(all[i])
			p.Revision++
			d := document[patterns.Pattern]{id: string(p.ID), class: string(p.Kind), value: p}
			if err := s.patterns.put(t, d, p.Revision-1); err != nil {
				return err
			}
		}
		for _, one := range c.Transitions {
			one.At = micro(one.At)
			if _, err := s.transitions.add(t, document[patterns.Transition]{id: one.ID, class: string(one.Pattern), value: one}); err != nil {
				return err
			}
		}
		for _, e := range c.Entries {
			e.Outcome.At = micro(e.Outcome.At)
			if _, err := s.entries.add(t, document[patterns.Entry]{id: e.ID(), class: e.Outcome.Task, value: e}); err != nil {
				return err
			}
		}
		return nil
	})
}

// kept returns a pattern with its times as they are kept.
func kept(p patterns.Pattern) patterns.Pattern {
	p = p.Clone()
	p.CreatedAt, p.UpdatedAt, p.ArchivedAt = micro(p.CreatedAt), micro(p.UpdatedAt), micro(p.ArchivedAt)
	if p.Override != nil {
		p.Override.At = micro(p.Override.At)
	}
	return p
}

// micro is a time in UTC, to the microsecond.
func micro(t time.Time) time.Time { return evidence.InstantOf(t).Time() }

// Pattern implements [patterns.Store].
func (s *Patterns) Pattern(ctx context.Context, id patterns.PatternID) (patterns.Pattern, error) {
	d, err := s.patterns.read(ctx, string(id))
	return d.value, err
}

// Patterns implements [patterns.Store].
func (s *Patterns) Patterns(ctx context.Context, q patterns.PatternQuery) iter.Seq2[patterns.Pattern, error] {
	return func(yield func(patterns.Pattern, error) bool) {
		for p, err := range s.patterns.firstFirst(ctx, string(q.Kind)) {
			if (err != nil || q.Selects(&p)) && !yield(p, err) {
				return
			}
		}
	}
}

// Transitions implements [patterns.Store].
func (s *Patterns) Transitions(ctx context.Context, id patterns.PatternID) iter.Seq2[patterns.Transition, error] {
	return s.transitions.lastFirst(ctx, string(id))
}

// Entry implements [patterns.Store].
func (s *Patterns) Entry(ctx context.Context, id string) (patterns.Entry, error) {
	d, err := s.entries.read(ctx, id)
	return d.value, err
}

// Entries implements [patterns.Store].
func (s *Patterns) Entries(ctx context.Context, q patterns.EntryQuery) iter.Seq2[patterns.Entry, error] {
	return func(yield func(patterns.Entry, error) bool) {
		n := 0
		for e, err := range s.entries.lastFirst(ctx, q.Task) {
			if !yield(e, err) {
				return
			}
			if n++; n == q.Limit {
				return
			}
		}
	}
}

// Sweep removes the transitions and entries over their number. It is for the host to call now and then.
func (s *Patterns) Sweep(ctx context.Context) error {
	return errors.Join(s.transitions.shorten(ctx, s.cfg.MaxTransitions), s.entries.shorten(ctx, s.cfg.MaxEntries))
}

// ErrorsConfig says how much an [Errors] keeps. The zero value means the defaults. What is over the number stays until the
// next [Errors.Sweep].
type ErrorsConfig struct {
	Max int // errors of all tasks, those added last. 0 means a million
}

// Errors is a [patterns.ErrorStore] in a database. It is safe for concurrent use.
type Errors struct {
	cfg   ErrorsConfig
	shelf shelf[patterns.ErrorEntry]
}

var _ patterns.ErrorStore = (*Errors)(nil)

// NewErrors returns the store of errors in a database.
func NewErrors(db *DB, cfg ErrorsConfig) (*Errors, error) {
	cfg.Max = cmp.Or(cfg.Max, 1_000_000)
	var found faults.List
	found.Check(cfg.Max > 0, "Max", cfg.Max, "must not be negative")
	if err := found.Err(); err != nil {
		return nil, fmt.Errorf("sqlstore: %w", err)
	}
	return &Errors{cfg, shelf[patterns.ErrorEntry]{db, export.Error}}, nil
}

// Config returns the configuration in force.
func (s *Errors) Config() ErrorsConfig { return s.cfg }

// Add implements [patterns.ErrorStore].
func (s *Errors) Add(ctx context.Context, e patterns.ErrorEntry) error {
	if err := e.Validate(); err != nil {
		return fmt.Errorf("sqlstore: error: %w", err)
	}
	e.At = micro(e.At)
	return s.shelf.write(ctx, func(t *tx) error {
		_, err := s.shelf.add(t, document[patterns.ErrorEntry]{id: e.ID, class: e.Task, value: e})
		return err
	})
}

var touchDocument = both(`UPDATE heed_documents SET revision = revision + 1 WHERE doc = $1`)

// Resolve implements [patterns.ErrorStore].
func (s *Errors) Resolve(ctx context.Context, id string) error {
	return s.shelf.write(ctx, func(t *tx) error {
		if _, err := t.exec(touchDocument, s.shelf.key(id)); err != nil { // others wait
			return err
		}
		d, err := s.shelf.get(t, id)
		if err != nil {
			return err
		}
		d.value.Resolved, d.class = true, d.value.Task
		return s.shelf.put(t, d, d.revision)
	})
}

// Errors implements [patterns.ErrorStore].
func (s *Errors) Errors(ctx context.Context, task string) iter.Seq2[patterns.ErrorEntry, error] {
	return s.shelf.firstFirst(ctx, task)
}

// Forget implements [patterns.ErrorStore].
func (s *Errors) Forget(ctx context.Context, task string) error {
	return s.shelf.write(ctx, func(t *tx) error {
		_, err := t.exec(dropClass, s.shelf.sort, task)
		return err
	})
}

// Sweep removes the errors over their number. It is for the host to call now and then.
func (s *Errors) Sweep(ctx context.Context) error { return s.shelf.shorten(ctx, s.cfg.Max) }

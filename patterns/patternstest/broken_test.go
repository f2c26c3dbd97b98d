package patternstest_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/patterns/patternstest"
)

var background = context.Background()

// broken is a good store with some of its methods replaced. A nil function leaves the method as it is.
type broken struct {
	patterns.Store
	commit      func(patterns.Store, context.Context, patterns.Changes) error
	pattern     func(patterns.Store, patterns.PatternID) (patterns.Pattern, error)
	patterns    func(patterns.Store, patterns.PatternQuery) iter.Seq2[patterns.Pattern, error]
	transitions func(patterns.Store, patterns.PatternID) iter.Seq2[patterns.Transition, error]
	entry       func(patterns.Store, string) (patterns.Entry, error)
	entries     func(patterns.Store, patterns.EntryQuery) iter.Seq2[patterns.Entry, error]
}

func (b *broken) Commit(ctx context.Context, c patterns.Changes) error {
	if b.commit == nil {
		return b.Store.Commit(ctx, c)
	}
	return b.commit(b.Store, ctx, c)
}

func (b *broken) Pattern(ctx context.Context, id patterns.PatternID) (patterns.Pattern, error) {
	if b.pattern == nil || ctx.Err() != nil {
		return b.Store.Pattern(ctx, id)
	}
	return b.pattern(b.Store, id)
}

func (b *broken) Patterns(ctx context.Context, q patterns.PatternQuery) iter.Seq2[patterns.Pattern, error] {
	if b.patterns == nil || ctx.Err() != nil {
		return b.Store.Patterns(ctx, q)
	}
	return b.patterns(b.Store, q)
}

func (b *broken) Transitions(ctx context.Context, id patterns.PatternID) iter.Seq2[patterns.Transition, error] {
	if b.transitions == nil || ctx.Err() != nil {
		return b.Store.Transitions(ctx, id)
	}
	return b.transitions(b.Store, id)
}

func (b *broken) Entry(ctx context.Context, id string) (patterns.Entry, error) {
	if b.entry == nil || ctx.Err() != nil {
		return b.Store.Entry(ctx, id)
	}
	return b.entry(b.Store, id)
}

func (b *broken) Entries(ctx context.Context, q patterns.EntryQuery) iter.Seq2[patterns.Entry, error] {
	if b.entries == nil {
		return b.Store.Entries(ctx, q)
	}
	return b.entries(b.Store, q)
}

// changing breaks a store by changing each commit on its way in.
func changing(change func(patterns.Store, *patterns.Changes)) broken {
	return broken{commit: func(s patterns.Store, ctx context.Context, c patterns.Changes) error {
		c.Patterns, c.Transitions, c.Entries = slices.Clone(c.Patterns), slices.Clone(c.Transitions), slices.Clone(c.Entries)
		if c.Validate() == nil {
			change(s, &c)
		}
		return s.Commit(ctx, c)
	}}
}

// lastWins gives each pattern the revision that is stored.
func lastWins(s patterns.Store, c *patterns.Changes) {
	for i := range c.Patterns {
		stored, err := s.Pattern(background, c.Patterns[i].ID)
		if err == nil {
			c.Patterns[i].Revision = stored.Revision
		}
	}
}

func turned[T any](seq iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var all []T
		for one, err := range seq {
			if err != nil {
				yield(one, err)
				return
			}
			all = append(all, one)
		}
		for _, one := range slices.Backward(all) {
			if !yield(one, nil) {
				return
			}
		}
	}
}

// TestStoreSuiteBites runs the suite against stores that each break one rule, and expects it to say so.
func TestStoreSuiteBites(t *testing.T) {
	var names atomic.Int64
	first := make(map[patterns.Store]*patterns.Pattern)
	for _, test := range []struct {
		fault    string
		store    broken
		caughtBy string
	}{
		{"times keep their zone", broken{pattern: func(s patterns.Store, id patterns.PatternID) (patterns.Pattern, error) {
			p, err := s.Pattern(background, id)
			p.CreatedAt = p.CreatedAt.In(time.FixedZone("", 3600))
			return p, err
		}}, "what is committed is read back"},
		{"kinds are a closed set", changing(func(_ patterns.Store, c *patterns.Changes) {
			for i := range c.Patterns {
				if c.Patterns[i].Kind != patterns.Anti {
					c.Patterns[i].Kind = patterns.Positive
				}
			}
		}), "what is committed is read back"},
		{"reviews are not kept", changing(func(_ patterns.Store, c *patterns.Changes) {
			for i := range c.Entries {
				c.Entries[i].Review = nil
			}
		}), "what is committed is read back"},
		{"what is missing is nothing", broken{pattern: func(s patterns.Store, id patterns.PatternID) (patterns.Pattern, error) {
			p, err := s.Pattern(background, id)
			if errors.Is(err, heed.ErrNotFound) {
				err = nil
			}
			return p, err
		}}, "what is missing is ErrNotFound"},
		{"an entry that is missing is nothing", broken{entry: func(s patterns.Store, id string) (patterns.Entry, error) {
			e, err := s.Entry(background, id)
			if errors.Is(err, heed.ErrNotFound) {
				err = nil
			}
			return e, err
		}}, "what is missing is ErrNotFound"},
		{"revisions stand still", broken{pattern: func(s patterns.Store, id patterns.PatternID) (patterns.Pattern, error) {
			p, err := s.Pattern(background, id)
			p.Revision = min(p.Revision, 1)
			return p, err
		}}, "a pattern is stored with the next revision"},
		{"the last writer wins", changing(lastWins), "a stale revision is a conflict"},
		{"one log line in ten is lost", changing(func(_ patterns.Store, c *patterns.Changes) {
			if names.Add(1)%10 == 0 {
				c.Transitions = nil
			}
		}), "concurrent changes are not lost"},
		{"parts are committed one by one", broken{commit: func(s patterns.Store, ctx context.Context, c patterns.Changes) error {
			for _, p := range c.Patterns {
				if err := s.Commit(ctx, patterns.Changes{Patterns: []patterns.Pattern{p}}); err != nil {
					return err
				}
			}
			return s.Commit(ctx, patterns.Changes{Transitions: c.Transitions, Entries: c.Entries})
		}}, "a refused commit changes nothing"},
		{"logs are written first", broken{commit: func(s patterns.Store, ctx context.Context, c patterns.Changes) error {
			if err := s.Commit(ctx, patterns.Changes{Transitions: c.Transitions, Entries: c.Entries}); err != nil {
				return err
			}
			return s.Commit(ctx, patterns.Changes{Patterns: c.Patterns})
		}}, "a refused commit changes nothing"},
		{"everything is taken", broken{commit: func(s patterns.Store, ctx context.Context, c patterns.Changes) error {
			err := s.Commit(ctx, c)
			if fault := (*heed.InputError)(nil); errors.As(err, &fault) {
				return nil
			}
			return err
		}}, "input that is not valid is refused"},
		{"the last changed comes last", broken{patterns: func(s patterns.Store, q patterns.PatternQuery) iter.Seq2[patterns.Pattern, error] {
			return func(yield func(patterns.Pattern, error) bool) {
				var all []patterns.Pattern
				for p, err := range s.Patterns(background, q) {
					if err == nil {
						all = append(all, p)
					}
				}
				slices.SortStableFunc(all, func(a, b patterns.Pattern) int { return int(a.Revision) - int(b.Revision) })
				for _, p := range all {
					if !yield(p, nil) {
						return
					}
				}
			}
		}}, "patterns come in the order in which they were first stored"},
		{"tags are of any case", broken{patterns: func(s patterns.Store, q patterns.PatternQuery) iter.Seq2[patterns.Pattern, error] {
			tag := q.Tag
			q.Tag = ""
			return func(yield func(patterns.Pattern, error) bool) {
				for p, err := range s.Patterns(background, q) {
					has := tag == "" || slices.ContainsFunc(p.Tags, func(t string) bool { return strings.EqualFold(t, tag) })
					if has && !yield(p, err) {
						return
					}
				}
			}
		}}, "a query selects patterns"},
		{"transitions come oldest first", broken{transitions: func(s patterns.Store, id patterns.PatternID) iter.Seq2[patterns.Transition, error] {
			return turned(s.Transitions(background, id))
		}}, "transitions come newest first, each once"},
		{"transitions count each time", changing(func(_ patterns.Store, c *patterns.Changes) {
			for i := range c.Transitions {
				c.Transitions[i].ID += fmt.Sprint("-", names.Add(1))
			}
		}), "transitions come newest first, each once"},
		{"limits are not kept", broken{entries: func(s patterns.Store, q patterns.EntryQuery) iter.Seq2[patterns.Entry, error] {
			q.Limit = 0
			return s.Entries(background, q)
		}}, "entries come newest first, each once"},
		{"ids are of any case", changing(func(_ patterns.Store, c *patterns.Changes) {
			for i := range c.Patterns {
				c.Patterns[i].ID = patterns.PatternID(strings.ToLower(string(c.Patterns[i].ID)))
			}
		}), "names are told apart to the byte"},
		{"what comes out is shared", broken{pattern: func(s patterns.Store, id patterns.PatternID) (patterns.Pattern, error) {
			p, err := s.Pattern(background, id)
			if err == nil && p.Tags != nil {
				if first[s] == nil {
					first[s] = &p
				}
				p.Tags = first[s].Tags
			}
			return p, err
		}}, "copies go in and come out"},
		{"it works without a context", broken{commit: func(s patterns.Store, _ context.Context, c patterns.Changes) error {
			return s.Commit(background, c)
		}}, "a context that is over changes nothing"},
		{"a listing does not look at its context", broken{entries: func(s patterns.Store, q patterns.EntryQuery) iter.Seq2[patterns.Entry, error] {
			return s.Entries(background, q)
		}}, "a loop may end early and may call the store"},
	} {
		t.Run(test.fault, func(t *testing.T) {
			assertCaught(t, test.caughtBy, patternstest.CheckStore(func() (patterns.Store, error) {
				b := test.store
				b.Store = &memstore.Patterns{}
				return &b, nil
			}))
		})
	}
}

func assertCaught(t *testing.T, rule string, err error) {
	t.Helper()
	require.Error(t, err)
	caught := false
	for line := range strings.Lines(err.Error()) {
		caught = caught || strings.HasPrefix(line, rule)
	}
	assert.True(t, caught, "the fault should be caught by %q, but was by:\n%s", rule, err)
}

// brokenErrors is a good store of errors with some of its methods replaced.
type brokenErrors struct {
	patterns.ErrorStore
	add     func(patterns.ErrorStore, context.Context, patterns.ErrorEntry) error
	resolve func(patterns.ErrorStore, string) error
	errors  func(patterns.ErrorStore, string) iter.Seq2[patterns.ErrorEntry, error]
	forget  func(patterns.ErrorStore, string) error
}

func (b *brokenErrors) Add(ctx context.Context, e patterns.ErrorEntry) error {
	if b.add == nil {
		return b.ErrorStore.Add(ctx, e)
	}
	return b.add(b.ErrorStore, ctx, e)
}

func (b *brokenErrors) Resolve(ctx context.Context, id string) error {
	if b.resolve == nil || ctx.Err() != nil {
		return b.ErrorStore.Resolve(ctx, id)
	}
	return b.resolve(b.ErrorStore, id)
}

func (b *brokenErrors) Errors(ctx context.Context, task string) iter.Seq2[patterns.ErrorEntry, error] {
	if b.errors == nil {
		return b.ErrorStore.Errors(ctx, task)
	}
	return b.errors(b.ErrorStore, task)
}

func (b *brokenErrors) Forget(ctx context.Context, task string) error {
	if b.forget == nil || ctx.Err() != nil {
		return b.ErrorStore.Forget(ctx, task)
	}
	return b.forget(b.ErrorStore, task)
}

// TestErrorSuiteBites runs the suite against stores of errors that each break one rule, and expects it to say so.
func TestErrorSuiteBites(t *testing.T) {
	var names atomic.Int64
	editing := func(edit func(*patterns.ErrorEntry)) brokenErrors {
		return brokenErrors{add: func(s patterns.ErrorStore, ctx context.Context, e patterns.ErrorEntry) error {
			if e.Validate() == nil {
				edit(&e)
			}
			return s.Add(ctx, e)
		}}
	}
	for _, test := range []struct {
		fault    string
		store    brokenErrors
		caughtBy string
	}{
		{"the stack is lost", editing(func(e *patterns.ErrorEntry) { e.Stack = "" }), "an error is read back"},
		{"the newest comes first", brokenErrors{errors: func(s patterns.ErrorStore, task string) iter.Seq2[patterns.ErrorEntry, error] {
			return turned(s.Errors(background, task))
		}}, "errors come in the order in which they were added"},
		{"every report counts", editing(func(e *patterns.ErrorEntry) { e.ID += fmt.Sprint("-", names.Add(1)) }), "an id counts once"},
		{"the first that looks alike is resolved", brokenErrors{resolve: func(s patterns.ErrorStore, id string) error {
			for e, err := range s.Errors(background, "task") {
				if id != "" && err == nil && e.Type == patterns.Timeout {
					return s.Resolve(background, e.ID)
				}
			}
			return s.Resolve(background, id)
		}}, "each error is resolved by its id"},
		{"what is not there is resolved", brokenErrors{resolve: func(s patterns.ErrorStore, id string) error {
			_ = s.Resolve(background, id)
			return nil
		}}, "an error that is missing is ErrNotFound"},
		{"nothing is forgotten", brokenErrors{forget: func(patterns.ErrorStore, string) error { return nil }}, "a task is forgotten, and no other"},
		{"any type is a type", brokenErrors{add: func(s patterns.ErrorStore, ctx context.Context, e patterns.ErrorEntry) error {
			if !e.Type.Valid() {
				e.Type = patterns.Unclassified
			}
			return s.Add(ctx, e)
		}}, "an error that is not valid is refused"},
		{"one of a moment is kept", editing(func(e *patterns.ErrorEntry) { e.ID = e.Task + e.At.String() }), "concurrent errors are not lost"},
		{"it adds without a context", brokenErrors{add: func(s patterns.ErrorStore, _ context.Context, e patterns.ErrorEntry) error {
			return s.Add(background, e)
		}}, "a context that is over adds no error"},
		{"a listing does not look at its context", brokenErrors{errors: func(s patterns.ErrorStore, task string) iter.Seq2[patterns.ErrorEntry, error] {
			return s.Errors(background, task)
		}}, "a loop over errors may end early and may call the store"},
	} {
		t.Run(test.fault, func(t *testing.T) {
			assertCaught(t, test.caughtBy, patternstest.CheckErrorStore(func() (patterns.ErrorStore, error) {
				b := test.store
				b.ErrorStore = &memstore.Errors{}
				return &b, nil
			}))
		})
	}
}

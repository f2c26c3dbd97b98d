// Package ahead reads from a store in one round trip what several steps are going to read. First each step is rehearsed: it is
// called, and its first call of the store is noted and fails with [ErrRehearsed]. Then the steps are called for real. The first of
// their reads reads all that was noted, and the others are served from it.
//
// A rehearsal is a guess and never decides anything. A read that was not foreseen goes to the store. All that was read is served
// once, so that a step that reads again sees what is new, and a commit drops the rest.
package ahead

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// ErrRehearsed is what each call of the store gives in a rehearsal.
var ErrRehearsed = errors.New("this is a rehearsal")

// A Store is a store that reads ahead for contexts of [Store.Begin]. For others it is the store that it has.
type Store struct{ store.Store }

type (
	planKey      struct{}
	rehearsalKey struct{}
)

// A plan is what one context reads ahead.
type plan struct {
	of *Store

	mu      sync.Mutex
	cells   []evidence.Cell
	refs    []store.Ref
	queries []store.Query
	asked   bool // the store was

	records map[store.Ref]store.Record
	parts   map[evidence.Cell][]evidence.Part
	found   map[queryKey][]store.Record
	told    map[any]any // by the host's functions
}

// A queryKey is a query that can be compared.
type queryKey struct {
	kind, keys, after string
	since, until      time.Time
	oldest            bool
	limit             int
}

func keyOf(q store.Query) queryKey {
	return queryKey{q.Kind, strings.Join(q.Keys, "\x00"), q.After, q.Since, q.Until, q.Oldest, q.Limit}
}

// Begin returns a context that reads ahead from this store, and a function that ends that.
func (s *Store) Begin(ctx context.Context) (_ context.Context, end func()) {
	p := &plan{of: s}
	return context.WithValue(ctx, planKey{}, p), p.drop
}

// Rehearse calls a step of a context of Begin. Its error says nothing: the step is called again.
func Rehearse(ctx context.Context, step func(context.Context) error) {
	_ = step(context.WithValue(ctx, rehearsalKey{}, true))
}

// Once calls a function of the host's once for a key, in a context of Begin: what it says in a rehearsal holds for the step. An error is
// not kept.
func Once[T any](ctx context.Context, key any, f func() (T, error)) (T, error) {
	p, ok := ctx.Value(planKey{}).(*plan)
	if !ok {
		return f()
	}
	if before, known := p.recall(key).(T); known {
		return before, nil
	}
	said, err := f()
	if err == nil {
		p.remember(key, said)
	}
	return said, err
}

// IsUndo is the key of [Once] for the question whether a text is an undo, by the strategy of a module of package learning.
type IsUndo struct {
	Of   any
	Text string
}

func (p *plan) recall(key any) any {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.told[key]
}

func (p *plan) remember(key, said any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.told == nil {
		p.told = make(map[any]any)
	}
	p.told[key] = said
}

// Rehearsed reports whether this is a rehearsal.
func Rehearsed(ctx context.Context) bool { return ctx.Value(rehearsalKey{}) != nil }

func (s *Store) plan(ctx context.Context) *plan {
	if p, ok := ctx.Value(planKey{}).(*plan); ok && p.of == s {
		return p
	}
	return nil
}

// drop forgets all that was noted and read.
func (p *plan) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked, p.cells, p.refs, p.queries = true, nil, nil, nil
	p.records, p.parts, p.found = nil, nil, nil
}

func (p *plan) note(cells []evidence.Cell, refs []store.Ref, queries ...store.Query) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cells, p.refs, p.queries = append(p.cells, cells...), append(p.refs, refs...), append(p.queries, queries...)
}

// ask reads all that was noted, and what is asked for now, unless that was done before.
func (p *plan) ask(ctx context.Context, cells []evidence.Cell, refs []store.Ref, queries []store.Query) error {
	if p.asked || len(p.cells)+len(p.refs)+len(p.queries) == 0 {
		return nil
	}
	p.asked = true
	cells, refs = distinct(append(p.cells, cells...)), distinct(append(p.refs, refs...))
	queries = slices.Concat(p.queries, queries)
	var s store.Snapshot
	if err := p.of.Store.Read(ctx, &s, cells, refs, queries...); err != nil {
		return err
	}
	p.records = make(map[store.Ref]store.Record, len(refs))
	for i, ref := range refs {
		p.records[ref] = s.Records[i]
	}
	p.parts = make(map[evidence.Cell][]evidence.Part, len(cells))
	for _, c := range cells {
		p.parts[c] = nil
	}
	for i := 0; i < len(s.Parts); {
		end := i + 1
		for end < len(s.Parts) && s.Parts[end].Cell == s.Parts[i].Cell {
			end++
		}
		p.parts[s.Parts[i].Cell] = s.Parts[i:end:end]
		i = end
	}
	p.found = make(map[queryKey][]store.Record, len(queries))
	for i, q := range queries {
		p.found[keyOf(q)] = s.Found[i]
	}
	return nil
}

func distinct[T comparable](all []T) []T {
	seen := make(map[T]bool, len(all))
	return slices.DeleteFunc(all, func(one T) bool {
		before := seen[one]
		seen[one] = true
		return before
	})
}

// serve answers a read if all of it was read ahead.
func (p *plan) serve(ctx context.Context, into *store.Snapshot, cells []evidence.Cell, refs []store.Ref, queries []store.Query) (served bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.ask(ctx, cells, refs, queries); err != nil {
		return false, err
	}
	missing := slices.ContainsFunc(refs, func(ref store.Ref) bool { return absent(p.records, ref) }) ||
		slices.ContainsFunc(cells, func(c evidence.Cell) bool { return absent(p.parts, c) }) ||
		slices.ContainsFunc(queries, func(q store.Query) bool { return absent(p.found, keyOf(q)) })
	if missing {
		return false, nil
	}
	for _, ref := range refs {
		into.Records = append(into.Records, p.records[ref])
	}
	for _, c := range cells {
		into.Parts = append(into.Parts, p.parts[c]...)
	}
	for _, q := range queries {
		into.Found = append(into.Found, p.found[keyOf(q)])
	}
	for _, ref := range refs {
		delete(p.records, ref)
	}
	for _, c := range cells {
		delete(p.parts, c)
	}
	for _, q := range queries {
		delete(p.found, keyOf(q))
	}
	return true, nil
}

func absent[K comparable, V any](all map[K]V, key K) bool {
	_, ok := all[key]
	return !ok
}

// Read implements [store.Store].
func (s *Store) Read(ctx context.Context, into *store.Snapshot, cells []evidence.Cell, refs []store.Ref, finds ...store.Query) error {
	if p := s.plan(ctx); p != nil && ctx.Err() == nil {
		if Rehearsed(ctx) {
			p.note(cells, refs, finds...)
			return ErrRehearsed
		}
		if served, err := p.serve(ctx, into, cells, refs, finds); served || err != nil {
			return err
		}
	}
	return s.Store.Read(ctx, into, cells, refs, finds...)
}

// Find implements [store.Store].
func (s *Store) Find(ctx context.Context, q store.Query) iter.Seq2[store.Record, error] {
	p := s.plan(ctx)
	switch {
	case p == nil || ctx.Err() != nil || q.Validate() != nil:
		return s.Store.Find(ctx, q)
	case Rehearsed(ctx):
		return func(yield func(store.Record, error) bool) {
			p.note(nil, nil, q)
			yield(store.Record{}, ErrRehearsed)
		}
	}
	return func(yield func(store.Record, error) bool) {
		var ahead store.Snapshot
		switch served, err := p.serve(ctx, &ahead, nil, nil, []store.Query{q}); {
		case err != nil:
			yield(store.Record{}, err)
		case served:
			for _, r := range ahead.Found[0] {
				if !yield(r, nil) {
					return
				}
			}
		default:
			s.Store.Find(ctx, q)(yield)
		}
	}
}

// Commit implements [store.Store].
func (s *Store) Commit(ctx context.Context, batches ...store.Batch) ([]store.Receipt, error) {
	if p := s.plan(ctx); p != nil {
		if Rehearsed(ctx) {
			return nil, ErrRehearsed
		}
		defer p.drop()
	}
	return s.Store.Commit(ctx, batches...)
}

// List implements [store.Store].
func (s *Store) List(ctx context.Context, kind, scope string) iter.Seq2[evidence.Part, error] {
	return unless(s, ctx, s.Store.List(ctx, kind, scope))
}

// Scopes implements [store.Store].
func (s *Store) Scopes(ctx context.Context, kind string) iter.Seq2[string, error] {
	return unless(s, ctx, s.Store.Scopes(ctx, kind))
}

// History implements [store.Store].
func (s *Store) History(ctx context.Context, c evidence.Cell) iter.Seq2[evidence.Observation, error] {
	return unless(s, ctx, s.Store.History(ctx, c))
}

// unless is the sequence, unless this is a rehearsal.
func unless[T any](s *Store, ctx context.Context, all iter.Seq2[T, error]) iter.Seq2[T, error] {
	if s.plan(ctx) == nil || !Rehearsed(ctx) {
		return all
	}
	return func(yield func(T, error) bool) {
		var none T
		yield(none, ErrRehearsed)
	}
}

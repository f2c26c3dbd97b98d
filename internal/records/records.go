// Package records gives a kind of record the Go type of its value: what the typed views of the packages are made of.
package records

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/host"
	"github.com/heedhq/heed/internal/ids"
	"github.com/heedhq/heed/store"
)

// A Kind is a kind of record whose bodies are values of type T.
type Kind[T any] struct {
	store.Kind
	// Place says how a value is found: its id, the moment that orders it, and its keys.
	Place func(value T) (id string, at time.Time, keys []string)
}

// A Kept is a value as a store has it. Nobody may change what the value refers to.
type Kept[T any] struct {
	Value    T
	ID       string
	Revision uint64 // 0: there is none
	Place    string // where Find found it
}

// Ref names the record of an id.
func (k *Kind[T]) Ref(id string) store.Ref { return store.Ref{Kind: k.Name, ID: id} }

// Record returns a value as a record to write, with the revision that was read: 0 for a new one, [store.Once] to leave
// alone one that is there.
func (k *Kind[T]) Record(value T, revision uint64) store.Record {
	id, at, keys := k.Place(value)
	return store.Record{Ref: k.Ref(id), Revision: revision, At: at, Keys: keys, Body: store.Of(value)}
}

// Removal returns the record that removes one.
func (k *Kind[T]) Removal(id string, revision uint64) store.Record {
	return store.Record{Ref: k.Ref(id), Revision: revision}
}

// Expect says that a record must still be as it was read.
func (k *Kind[T]) Expect(id string, revision uint64) store.Precondition {
	return store.Precondition{Ref: k.Ref(id), Revision: revision}
}

// Of returns the value of a record that was read. One that is not there has Revision 0 and the zero value.
func (k *Kind[T]) Of(r store.Record) (Kept[T], error) {
	kept := Kept[T]{ID: r.ID, Revision: r.Revision, Place: r.Place}
	if r.Revision == 0 {
		return kept, nil
	}
	value, err := store.Decode[T](r.Body)
	if err != nil {
		return kept, fmt.Errorf("%s %q: %w", k.Name, r.ID, err)
	}
	kept.Value = value
	return kept, nil
}

// Get reads one value, or returns [heed.ErrNotFound].
func (k *Kind[T]) Get(ctx context.Context, st store.Store, id string) (Kept[T], error) {
	var s store.Snapshot
	if err := st.Read(ctx, &s, nil, []store.Ref{k.Ref(id)}); err != nil {
		return Kept[T]{}, err
	}
	kept, err := k.Of(s.Records[0])
	if err == nil && kept.Revision == 0 {
		err = fmt.Errorf("%s: %w", k.Name, heed.ErrNotFound)
	}
	return kept, err
}

// Find yields the values that a query selects. The query's Kind is set here. The rules of [store.Store].Find hold.
func (k *Kind[T]) Find(ctx context.Context, st store.Store, q store.Query) iter.Seq2[Kept[T], error] {
	q.Kind = k.Name
	return func(yield func(Kept[T], error) bool) {
		for r, err := range st.Find(ctx, q) {
			var kept Kept[T]
			if err == nil {
				kept, err = k.Of(r)
			}
			if !yield(kept, err) || err != nil {
				return
			}
		}
	}
}

// ID derives the id of a record from texts: see [ids.Of].
func ID(parts ...string) string { return ids.Of(parts...).String() }

// Damaged returns the records of the kind that hold no value of its type.
func (k *Kind[T]) Damaged(ctx context.Context, st store.Store) (refs []store.Ref, err error) {
	for r, err := range st.Find(ctx, store.Query{Kind: k.Name}) {
		if err != nil {
			return nil, err
		}
		id := ""
		if host.Call(k.Name, func() error {
			kept, err := k.Of(r)
			if err == nil {
				id, _, _ = k.Place(kept.Value)
			}
			return err
		}) != nil || id == "" {
			refs = append(refs, r.Ref)
		}
	}
	return refs, nil
}

// Damaged returns the damaged records of several kinds.
func Damaged(ctx context.Context, st store.Store, kinds ...interface {
	Damaged(context.Context, store.Store) ([]store.Ref, error)
}) (refs []store.Ref, err error) {
	for _, k := range kinds {
		found, err := k.Damaged(ctx, st)
		if err != nil {
			return nil, err
		}
		refs = append(refs, found...)
	}
	return refs, nil
}

// Tries is how often [Retry] calls.
const Tries = 10

// Retry calls do until somebody else was no longer quicker: again after a [heed.ErrConflict], at most [Tries] times. do
// reads anew each time. A [*heed.SettingsError] is no race, and is returned at once.
func Retry(ctx context.Context, do func() error) error {
	for try := 1; ; try++ {
		err := do()
		if err == nil || try == Tries || !raced(err) || ctx.Err() != nil {
			return err
		}
	}
}

func raced(err error) bool {
	return errors.Is(err, heed.ErrConflict) && !errors.As(err, new(*heed.SettingsError))
}

// CompareCells orders cells by kind, scope, item and name.
func CompareCells(a, b evidence.Cell) int {
	n := strings.Compare(a.Kind, b.Kind)
	if n == 0 {
		n = strings.Compare(a.Scope, b.Scope)
	}
	if n == 0 {
		n = strings.Compare(a.Item, b.Item)
	}
	if n == 0 {
		n = strings.Compare(a.Name, b.Name)
	}
	return n
}

package store

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/text"
)

// A View is a typed view of one kind of record: its bodies are values of type T. Packages and hosts
// declare one View for each kind that they keep, in a package variable or a field, and declare its
// Kind to the store. A step reads by In and writes by Put; Get and Find read without a step. A View
// is immutable after it is declared, and safe for concurrent use by multiple goroutines.
type View[T any] struct {
	Kind
	// Place returns where a value is kept: its id, the moment that orders it, and its keys. The
	// result must depend on the value alone. (The Place of a [Row] is another thing: where a query
	// found it.)
	Place func(value T) (id string, at time.Time, keys []string)
}

// A Row is a value as a store holds it. What the value refers to must not be changed: clone before
// you write.
type Row[T any] struct {
	Value    T
	ID       string
	Revision uint64 // 0 if there is no such record; see [Tx.Get] for a record that a step adds
	Place    string // where Find found it, for Query.After
}

// Ref names the record of an id.
func (v *View[T]) Ref(id string) Ref { return Ref{Kind: v.Name, ID: id} }

// Record returns a value as a record to write. The revision is the one that was read: 0 for a new
// record, [Once] to leave an existing record alone.
func (v *View[T]) Record(value T, revision uint64) Record {
	id, at, keys := v.Place(value)
	return Record{Ref: v.Ref(id), Revision: revision, At: at, Keys: keys, Body: Of(value)}
}

// Removal returns the record that removes the record of an id.
func (v *View[T]) Removal(id string, revision uint64) Record {
	return Record{Ref: v.Ref(id), Revision: revision}
}

// Expect returns the precondition that a record still has the revision that was read.
func (v *View[T]) Expect(id string, revision uint64) Precondition {
	return Precondition{Ref: v.Ref(id), Revision: revision}
}

// Of returns the value of a record that was read. If there was no record, the row has Revision 0
// and the zero value.
func (v *View[T]) Of(r Record) (Row[T], error) {
	row := Row[T]{ID: r.ID, Revision: r.Revision, Place: r.Place}
	if r.Revision == 0 {
		return row, nil
	}
	value, err := Decode[T](r.Body)
	if err != nil {
		return row, &damaged{r.Ref, err}
	}
	row.Value = value
	return row, nil
}

// damaged is the [heed.ErrDamaged] of a record that can't be decoded.
type damaged struct {
	ref Ref
	err error
}

func (e *damaged) Error() string { return fmt.Sprintf("%s %q: %v", e.ref.Kind, e.ref.ID, e.err) }
func (e *damaged) Unwrap() error { return e.err }

// Damaged names the record, for lists that leave it out.
func (e *damaged) Damaged() Ref { return e.ref }

// Get reads one value, or returns [heed.ErrNotFound].
func (v *View[T]) Get(ctx context.Context, st Store, id string) (Row[T], error) {
	var s Snapshot
	if err := st.Read(ctx, &s, nil, []Ref{v.Ref(id)}); err != nil {
		return Row[T]{}, err
	}
	row, err := v.Of(s.Records[0])
	if err == nil && row.Revision == 0 {
		err = fmt.Errorf("%s: %w", v.Name, heed.ErrNotFound)
	}
	return row, err
}

// Find yields the values that a query selects. Find sets the query's Kind. The rules of
// [Store].Find hold, except that the loop continues after a value that can't be decoded.
func (v *View[T]) Find(ctx context.Context, st Store, q Query) iter.Seq2[Row[T], error] {
	q.Kind = v.Name
	return func(yield func(Row[T], error) bool) {
		for r, err := range st.Find(ctx, q) {
			var row Row[T]
			if err == nil {
				row, err = v.Of(r)
			}
			if !yield(row, err) { // after an error of the store, its Find ends
				return
			}
		}
	}
}

// In returns the value of an id as a step sees it: as the step wrote it, or else as the store has
// it. It reads the store if the record was not read before. If there is no record, or the step
// removes it, the row has Revision 0 and the zero value.
func (v *View[T]) In(tx *Tx, id string) (Row[T], error) {
	r, err := tx.Get(v.Ref(id))
	if err != nil {
		return Row[T]{ID: id}, err
	}
	return v.Of(r)
}

// Put adds a value to what a step writes, with the revision that was read. A later Put of the same
// id replaces the value.
func (v *View[T]) Put(tx *Tx, value T, revision uint64) { tx.Put(v.Record(value, revision)) }

// IDOf derives the id of a record from texts. The same texts always give the same id, other texts
// another one. The id is 22 characters long and does not reveal the texts, unless they can be
// guessed.
func IDOf(parts ...string) string { return text.HashOf(parts...).String() }

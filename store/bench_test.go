package store_test

import (
	"fmt"
	"testing"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// BenchmarkDo compares a step with the Read and the Commit that it makes: a record is read with a
// cell, and written with an observation.
func BenchmarkDo(b *testing.B) {
	cells, refs := []evidence.Cell{cell}, []store.Ref{numbers.Ref("a")}
	b.Run("read and commit", func(b *testing.B) {
		st := newScripted(b).Store
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			i++
			var s store.Snapshot
			if err := st.Read(ctx, &s, cells, refs); err != nil {
				b.Fatal(err)
			}
			row, err := numbers.Of(s.Records[0])
			if err != nil {
				b.Fatal(err)
			}
			if _, err := st.Commit(ctx, store.Batch{
				Observations: []evidence.Observation{observed(fmt.Sprint(i))},
				Records:      []store.Record{numbers.Record(number{"a", row.Value.N + 1}, row.Revision)},
			}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("do", func(b *testing.B) {
		st := newScripted(b).Store
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			i++
			if err := store.Do(ctx, st, func(tx *store.Tx) error {
				tx.Want(store.Wants{Cells: cells})
				row, err := numbers.In(tx, "a")
				if err != nil {
					return err
				}
				numbers.Put(tx, number{"a", row.Value.N + 1}, row.Revision)
				tx.Observe(observed(fmt.Sprint(i)))
				return nil
			}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("do nothing", func(b *testing.B) {
		st := newScripted(b).Store
		b.ReportAllocs()
		for b.Loop() {
			if err := store.Do(ctx, st, func(*store.Tx) error { return nil }); err != nil {
				b.Fatal(err)
			}
		}
	})
}

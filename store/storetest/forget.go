package storetest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/text"
	"github.com/heedhq/heed/store"
)

func (f *fixture) forget(names ...string) {
	f.after("forgetting %.20q", names)
	f.run(store.Job{Forget: names})
}

var annKey, bobKey = store.PersonKey("ann"), store.PersonKey("bob")

// people are records that name ann, and some that name bob alone.
func people() records {
	return records{
		record(cases, "by", value{By: "ann", Text: "as ann says", N: 1<<62 + 1, X: 0.1}, "k=1", annKey),
		record(cases, "of", value{Of: "ann", By: "bob"}, annKey, bobKey, "k=2"),
		record(cases, "bob", value{Of: "bob", By: "bob", Text: "ann"}, bobKey, "k=1"),
		record(wholes, "ann", value{Of: "ann"}, annKey, "k"),
		record(wholes, "both", value{Of: "ann", Text: "to bob"}, annKey, bobKey, "k"),
		record(wholes, "bob", value{Of: "bob"}, bobKey, "k"),
	}
}

// forgetRecords looks at what a store needs for a job that forgets: package store takes the names
// out of the records.
func forgetRecords(f *fixture) {
	f.write(people()...)
	before := make(map[string]uint64)
	for _, r := range f.find(by(cases)) {
		before[r.ID] = r.Revision
	}
	f.Must("Do", store.Do(ctx, f.store, func(tx *store.Tx) error {
		tx.Put(once(record(cases, "entry", value{By: "ann", Text: "of the same step"}, annKey)))
		tx.Start(store.Job{Forget: []string{"ann", "nobody"}})
		return nil
	}))

	name := f.decode(f.get(cases, "by")).By
	f.Check(name != "" && name != "ann", "the pseudonym is %q", name)
	f.has(cases, "by", value{By: name, Text: "as ann says", N: 1<<62 + 1, X: 0.1})
	f.has(cases, "entry", value{By: name, Text: "of the same step"})
	f.has(cases, "of", value{By: "bob"})
	f.has(cases, "bob", value{Of: "bob", By: "bob", Text: "ann"})
	for id, revision := range before {
		now := f.get(cases, id).Revision
		f.Check((now > revision) == (id != "bob"), "the revision of %q is %d, and was %d", id, now,
			revision)
	}
	f.finds(by(cases, annKey))
	f.both(by(cases, store.PersonKey(name)), "by", "entry")
	f.both(by(cases, bobKey), "of", "bob")
	f.both(by(cases, "k=1"), "by", "bob")
	f.both(by(cases), "by", "of", "bob", "entry")
	f.Equal("the keys of what she caused", f.get(cases, "of").Keys, []string{bobKey, "k=2"})
	f.gone(wholes, "ann", "both")
	for _, q := range []store.Query{by(wholes), by(wholes, "k"), by(wholes, bobKey)} {
		f.both(q, "bob")
	}
}

// pseudonymsStay forgets somebody who comes back, on each handle.
func pseudonymsStay(f *fixture) {
	ref := store.Pseudonyms.Ref("key")
	key := func(f *fixture) text.PseudonymKey {
		row, err := store.Pseudonyms.Of(f.get(ref.Kind, ref.ID))
		f.Check(err == nil && row.Revision > 0, "the key of pseudonyms: %+v, error %v", row, err)
		return row.Value
	}
	f.gone(ref.Kind, ref.ID)
	f.forget("nobody")
	first := key(f)
	other := f.fresh()
	other.forget("nobody")
	f.Check(!slices.Equal(key(other).Secret, first.Secret), "two stores have the same key")
	for i, st := range f.handles() {
		f.store = st
		id := fmt.Sprint(i)
		f.write(record(cases, id, value{By: "ann", Text: "and Ann"}, annKey))
		f.forget("ann")
		f.has(cases, id, value{By: first.Of("ann"), Text: "and Ann"})
		f.Equal("the key of pseudonyms", key(f), first)
	}
	revision := f.get(ref.Kind, ref.ID).Revision
	for _, r := range []store.Record{
		store.Pseudonyms.Record(text.PseudonymKey{Since: start}, revision),
		removal(ref.Kind, ref.ID, revision),
	} {
		err := f.refused(store.Batch{Records: records{r}})
		f.Check(faultOf(err) == "Records[0].Kind", "to change the key of pseudonyms: %v", err)
	}
}

// forgetRefused forgets a person when sums hold more sources than a bounded history can name.
func forgetRefused(f *fixture) {
	f.write(people()...)
	all := crowd("bob", plainCell, 0)
	for i := range 3 {
		all[i].Source = "ann"
	}
	f.add(all...)
	f.sweep(time.Time{})
	err := store.Run(ctx, f.store, store.Job{Forget: []string{"ann"}})
	switch {
	case err == nil:
		f.expect(all[3:], plainCell)
	case errors.Is(err, evidence.ErrForgotten):
		f.expect(all, plainCell)
		f.has(cases, "of", value{Of: "ann", By: "bob"})
		f.commit(store.Batch{Reset: []evidence.Cell{plainCell}})
		f.forget("ann")
		f.expect(nil, plainCell)
	default:
		f.Fatalf("Run: %v, want success or ErrForgotten", err)
	}
	f.has(cases, "of", value{By: "bob"})
}

package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/text"
	"github.com/heedhq/heed/store"
)

func (f *fixture) forget(names ...string) {
	f.after("forgetting %.20q", names)
	f.run(store.Job{Forget: names})
}

func payload(v value) []byte {
	text, _ := json.Marshal(v) //nolint:errchkjson // a value always can be
	return text
}

var annKey, bobKey = store.PersonKey("ann"), store.PersonKey("bob")

// people are records that name ann, and some that name bob alone.
func people() records {
	approvals := []approval{{"bob", "ann"}, {"ann", ""}}
	inside := payload(value{By: "ann", Text: "ann", N: 7})
	return records{
		record(cases, "by", value{By: "ann", Text: "as ann says", N: 1<<62 + 1, X: 0.1}, "k=1", annKey),
		record(cases, "of", value{Of: "ann", By: "bob"}, annKey, bobKey, "k=2"),
		record(cases, "lists", value{Sources: []string{"ann", "bob", "ann"}, Approvals: approvals},
			annKey, bobKey),
		record(cases, "payload", value{Payload: inside}, annKey),
		record(cases, "bob", value{Of: "bob", By: "bob", Text: "ann"}, bobKey, "k=1"),
		record(wholes, "ann", value{Of: "ann"}, annKey, "k"),
		record(wholes, "both", value{Of: "ann", Text: "to bob"}, annKey, bobKey, "k"),
		record(wholes, "bob", value{Of: "bob"}, bobKey, "k"),
	}
}

func forgetRecords(f *fixture) {
	f.write(people()...)
	moved := at(time.Second, people()[2]) // the one with lists
	f.write(note("text", value{Text: "ann"}), over(f.get(cases, "lists").Revision, moved))
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
	f.has(cases, "entry", value{By: name, Text: "of the same step"})
	f.Check(name != "" && !strings.EqualFold(name, "ann"), "the pseudonym is %q", name)
	f.has(cases, "by", value{By: name, Text: "as ann says", N: 1<<62 + 1, X: 0.1})
	f.has(cases, "of", value{By: "bob"})
	f.has(cases, "lists", value{
		Sources: []string{"bob"}, Approvals: []approval{{"bob", "ann"}, {name, ""}},
	})
	var inside value
	err := json.Unmarshal(f.decode(f.get(cases, "payload")).Payload, &inside)
	f.Check(err == nil && sameJSON(inside, value{By: name, Text: "ann", N: 7}),
		"a payload: %+v (error %v), want the pseudonym %q", inside, err, name)
	f.has(cases, "bob", value{Of: "bob", By: "bob", Text: "ann"})
	f.has(notes, "text", value{Text: "ann"})
	for id, revision := range before {
		now := f.get(cases, id).Revision
		f.Check((now > revision) == (id != "bob"), "the revision of %q is %d, and was %d", id, now,
			revision)
		if id != "bob" {
			f.conflicts(over(revision, record(cases, id, value{By: "ann"})))
		}
	}

	f.finds(by(cases, annKey))
	f.both(by(cases, store.PersonKey(name)), "by", "payload", "entry", "lists")
	f.both(by(cases, bobKey), "of", "bob", "lists")
	f.both(by(cases, "k=1"), "by", "bob")
	f.both(by(cases), "by", "of", "payload", "bob", "entry", "lists")
	for _, r := range f.find(by(cases)) {
		f.Check(!slices.Contains(r.Keys, annKey), "record %q has the keys %q", r.ID, r.Keys)
	}
	whole := f.get(wholes, "bob").Revision // as old as what went
	f.gone(wholes, "ann", "both")
	for _, q := range []store.Query{by(wholes), by(wholes, "k"), by(wholes, bobKey)} {
		f.both(q, "bob")
	}
	again := f.write(record(wholes, "ann", value{}))
	f.Check(again > whole, "a record made again has revision %d after %d", again, whole)
	f.Equal("the keys of what she caused", f.get(cases, "of").Keys, []string{bobKey, "k=2"})
}

// forgetCase forgets one of two people whose names differ in case alone.
func forgetCase(f *fixture) {
	others := records{
		record(cases, "by", value{By: "Ann"}, annKey),
		record(cases, "of", value{Of: "ANN"}, annKey),
		record(wholes, "of", value{Of: "ANN"}, annKey),
		record(cases, "payload", value{Payload: payload(value{By: "aNN"})}, annKey),
		record(cases, "lists",
			value{Sources: []string{"Ann"}, Approvals: []approval{{"Ann", ""}}}, annKey),
	}
	revision := f.write(others...)
	both := value{Of: "ann", By: "Ann", Sources: []string{"Ann", "ann"}}
	f.write(record(cases, "both", both, annKey), record(wholes, "gone", both, annKey))
	f.forget("ann")
	for _, r := range others {
		got := f.has(r.Kind, r.ID, f.decode(r))
		f.Check(got.Revision == revision && slices.Equal(got.Keys, r.Keys),
			"record %q, of another person, has revision %d and the keys %q", r.ID, got.Revision, got.Keys)
	}
	got := f.has(cases, "both", value{By: "Ann", Sources: []string{"Ann"}})
	f.Equal("the keys of a record of both", got.Keys, []string{annKey})
	f.gone(wholes, "gone")
	f.forget("Ann", "ANN")
	v := f.decode(f.get(cases, "both"))
	f.Check(v.By != "Ann" && v.By != "" && len(v.Sources) == 0, "a record names %+v", v)
	f.finds(by(cases, annKey), "payload")

	long := strings.Repeat("Ⱥ", evidence.MaxText/2) // which is longer in lower case
	f.write(record(cases, "long", value{By: long}, store.PersonKey(long)))
	f.forget(long)
	got = f.get(cases, "long")
	f.Check(f.decode(got).By != long && !slices.Contains(got.Keys, store.PersonKey(long)),
		"a person with a long name is there")
}

// forgetAgain forgets people who came back.
func forgetAgain(f *fixture) {
	ref := store.Pseudonyms.Ref("key")
	key := func(f *fixture) text.PseudonymKey {
		row, err := store.Pseudonyms.Of(f.get(ref.Kind, ref.ID))
		f.Check(err == nil && row.Revision > 0, "the key of pseudonyms: %+v, error %v", row, err)
		return row.Value
	}
	f.gone(ref.Kind, ref.ID)
	f.forget("nobody")
	first := key(f)
	f.Check(len(first.Secret) >= 16, "the key of pseudonyms has %d bytes", len(first.Secret))
	other := f.fresh()
	other.forget("nobody")
	f.Check(!slices.Equal(key(other).Secret, first.Secret), "two stores have the same key")

	f.write(people()...)
	f.forget("ann", "bob")
	ann, bob := first.Of("ann"), first.Of("bob")
	f.has(cases, "lists", value{Approvals: []approval{{bob, "ann"}, {ann, ""}}})
	f.has(cases, "of", value{By: bob})
	f.has(cases, "bob", value{By: bob, Text: "ann"})
	f.both(by(cases, store.PersonKey(bob)), "of", "lists", "bob")
	handles := f.handles()
	for i := range 3 {
		id := fmt.Sprint(i)
		f.write(record(cases, id, value{By: "ann", Text: "and Ann"}, annKey),
			record(cases, id+"of Ann", value{By: "Ann"}, annKey))
		f.store = handles[i%len(handles)]
		f.forget("ann")
		f.has(cases, id, value{By: ann, Text: "and Ann"})
		f.has(cases, id+"of Ann", value{By: "Ann"})
		f.forget("Ann", ann)
		f.has(cases, id+"of Ann", value{By: first.Of("Ann")})
		f.has(cases, id, value{By: ann, Text: "and Ann"})
		f.Equal("the key of pseudonyms", key(f), first)
	}
	f.store = handles[0]
	f.finds(by(cases, store.PersonKey(ann)), "2", "1", "0", "payload", "lists", "by")
	another := text.PseudonymKey{Secret: make([]byte, 32), Since: start}
	write := store.Pseudonyms.Record(another, f.get(ref.Kind, ref.ID).Revision)
	remove := write
	remove.Body = store.Body{}
	for i, r := range []store.Record{write, remove} {
		_, err := f.store.Commit(ctx, store.Batch{Records: records{r}})
		f.Check(faultOf(err) == "Records[0].Kind", "to change the key of pseudonyms (%d): %v", i, err)
	}
	f.Equal("the key of pseudonyms", key(f), first)
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

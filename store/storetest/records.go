package storetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// full is a value with something in every field.
var full = value{
	Text: "täxt \"quoted\" <b>\n\u2028\\ 🦉", N: 1<<62 + 1, X: 0.1 + 0.2, Flag: true, When: start.Truncate(time.Microsecond),
	Of: "of", By: "by", Sources: []string{"a", ""}, Approvals: []approval{{"x", "y"}, {}}, Payload: []byte{0, 255, '"'},
	Details: map[string]string{"k": "v", "": "é"},
}

func recordReadBack(t tb, s Subject) {
	f := newFixture(t, s)
	text, err := json.Marshal(full)
	if err != nil {
		t.Fatalf("%v", err)
	}
	for id, body := range map[string]store.Body{
		"of": store.Of(full), "pointer": store.Of(&full), "raw": store.Raw(text), "spaced": store.Raw([]byte(" {\n\"text\" : \"x\" } ")),
		"null": store.Raw([]byte("null")), "number": store.Raw([]byte("12345678901234567890")), "empty": store.Raw([]byte(`""`)),
		"large": store.Of(value{Text: strings.Repeat("long ", 50_000)}),
	} {
		r := store.Record{Ref: ref(notes, id), At: start, Keys: []string{"b=2", "a=1", "b=1"}, Body: body}
		want, err := body.JSON()
		if err != nil {
			t.Fatalf("%v", err)
		}
		revision := f.write(r)
		got := f.get(notes, id)
		found := slices.Collect(f.find(store.Query{Kind: notes, Keys: []string{"a=1"}, Limit: 1}))
		f.same("read", got, r, revision, want)
		if len(found) != 1 {
			t.Fatalf("Find yields %d records with limit 1", len(found))
		}
		if found[0].Place == "" {
			t.Errorf("a record that is found has no place")
		}
		f.same("found", found[0], r, revision, want)
		f.remove(notes, id, revision)
		f.gone("after its removal", notes, id)
	}
}

// same compares a record with the one that was written, and with the JSON of its body.
func (f *fixture) same(what string, got, want store.Record, revision uint64, text []byte) {
	f.Helper()
	if got.Ref != want.Ref || got.Revision != revision || !slices.Equal(got.Keys, want.Keys) {
		f.Errorf("%s, a record is %v at %d with the keys %q, want %v at %d with %q", what, got.Ref, got.Revision, got.Keys, want.Ref, revision, want.Keys)
	}
	if at := want.At.UTC().Truncate(time.Microsecond); got.At != at {
		f.Errorf("%s, a record is of %v, want %v", what, got.At, at)
	}
	after, err := got.Body.JSON()
	if err != nil || !reflect.DeepEqual(plainJSON(after), plainJSON(text)) {
		f.Errorf("%s, a record has the body %.200s (error %v), want %.200s", what, after, err, text)
	}
}

// plainJSON decodes JSON with numbers as they are written.
func plainJSON(text []byte) (v any) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return err
	}
	return v
}

func readInOrder(t tb, s Subject) {
	f := newFixture(t, s)
	c, d := cell(plain, "i", "n"), cell(plain, "i", "m")
	f.add(observation("1", c, 1), observation("2", d, 1))
	f.write(record(notes, "a", value{N: 1}), record(notes, "b", value{N: 2}), record(cases, "a", value{N: 3}))
	before := store.Record{Place: "already there"}
	read := store.Snapshot{Records: []store.Record{before}}
	refs := []store.Ref{ref(notes, "b"), ref(notes, "missing"), ref(cases, "a"), ref(notes, "a"), ref(notes, "b"), ref(cases, "b")}
	if err := f.store.Read(ctx, &read, []evidence.Cell{d, cell(plain, "i", "none"), c}, refs); err != nil {
		t.Fatalf("Read: %v", err)
	}
	if len(read.Records) != 1+len(refs) || read.Records[0].Place != before.Place {
		t.Fatalf("Read of %d records appends to one: %+v", len(refs), read.Records)
	}
	for i, n := range []int64{2, 0, 3, 1, 2, 0} {
		r := read.Records[1+i]
		if r.Ref != refs[i] || (r.Revision == 0) != (n == 0) || r.Body.IsZero() != (n == 0) {
			t.Errorf("record %d is %+v, want %v", i, r, refs[i])
		}
		if n != 0 && f.decode(r).N != n {
			t.Errorf("record %d is %+v, want %d", i, f.decode(r), n)
		}
	}
	if len(read.Parts) != 2 || read.Parts[0].Cell != d || read.Parts[1].Cell != c {
		t.Errorf("Read beside records gives the parts %+v", read.Parts)
	}
	if empty := f.snapshot(nil, nil); len(empty.Records)+len(empty.Parts) > 0 {
		t.Errorf("Read of nothing gives %+v", empty)
	}
}

func revisionHolds(t tb, s Subject) {
	f := newFixture(t, s)
	r := record(notes, "r", value{N: 1})
	f.refusedBy(heed.ErrConflict, store.Batch{Records: []store.Record{over(r, 1)}})
	f.refusedBy(heed.ErrConflict, store.Batch{Records: []store.Record{removal(notes, "r", 1)}})
	f.gone("after writing over nothing", notes, "r")
	first := f.write(r)
	second := f.write(over(record(notes, "r", value{N: 2}), first))
	if second <= first {
		t.Errorf("revision %d follows %d", second, first)
	}
	for _, stale := range []uint64{0, first, second + 1} {
		f.refusedBy(heed.ErrConflict, store.Batch{Records: []store.Record{over(record(notes, "r", value{N: 3}), stale)}})
	}
	f.refusedBy(heed.ErrConflict, store.Batch{Records: []store.Record{removal(notes, "r", first)}})
	if got := f.has("after conflicts", notes, "r", value{N: 2}); got.Revision != second {
		t.Errorf("after conflicts the revision is %d, want %d", got.Revision, second)
	}
	// Records of one batch get one revision, and each is compared with its own.
	other := f.write(record(notes, "other", value{N: 4}), over(record(notes, "r", value{N: 5}), second))
	for _, id := range []string{"other", "r"} {
		if got := f.get(notes, id); got.Revision != other {
			t.Errorf("record %q has the revision %d, and its receipt says %d", id, got.Revision, other)
		}
	}
	f.has("beside another", notes, "r", value{N: 5})
	f.commit(store.Batch{Records: []store.Record{removal(notes, "other", other)}})
	f.gone("after its removal", notes, "other")
	f.has("beside a removal", notes, "r", value{N: 5})
	if receipt := f.commit(store.Batch{}); receipt.Revision != 0 {
		t.Errorf("a batch that writes nothing has the revision %d", receipt.Revision)
	}
}

func revisionNever(t tb, s Subject) {
	f := newFixture(t, s)
	seen := map[uint64]bool{}
	var last uint64
	for i := range 5 {
		revision := f.write(record(notes, "r", value{N: int64(i)}))
		if seen[revision] || revision <= last {
			t.Errorf("a record that is made again has the revision %d after %d", revision, last)
		}
		seen[revision], last = true, revision
		if i%2 == 0 {
			last = f.write(over(record(notes, "r", value{}), last))
			seen[last] = true
		}
		f.commit(store.Batch{Records: []store.Record{removal(notes, "r", last)}})
		f.gone("after its removal", notes, "r")
		f.refusedBy(heed.ErrConflict, store.Batch{Records: []store.Record{over(record(notes, "r", value{}), last)}})
		if i == 2 { // other records, and a sweep, do not bring it back
			f.write(record(notes, fmt.Sprint("other", i), value{}))
			f.setTime(f.time().Add(time.Minute))
			if err := f.store.Sweep(ctx, time.Time{}); err != nil {
				t.Fatalf("Sweep: %v", err)
			}
		}
	}
}

// conflictLeaves refuses commits for a revision, with all that a batch can have beside it, and looks at what they left.
func conflictLeaves(t tb, s Subject) {
	f := newFixture(t, s)
	c := cell(plain, "i", "n")
	known := observation("known", c, 1)
	known.Source = "ann"
	f.add(known)
	revision := f.write(record(notes, "there", value{N: 1}), record(cases, "of ann", value{By: "ann"}, store.PersonKey("ann")))
	rest := store.Batch{
		ID: "batch", Observations: []evidence.Observation{observation("new", c, 1)},
		Records: []store.Record{record(notes, "new", value{}), once(record(notes, "once", value{}))},
	}
	take := store.Batch{Retract: []string{"known"}, Forget: []string{"ann"}}
	stale := store.Batch{Records: []store.Record{over(record(notes, "there", value{N: 2}), revision+1)}}
	missing := store.Batch{Expect: []store.Precondition{expect(notes, "not there", 1)}}
	both := rest
	both.Records = slices.Concat(rest.Records, stale.Records)
	for what, batches := range map[string][]store.Batch{
		"in one batch": {both}, "in the first batch": {stale, rest}, "in the last batch": {take, rest, stale},
		"by an expectation first": {missing, rest}, "by an expectation last": {take, rest, missing},
	} {
		f.refusedBy(heed.ErrConflict, batches...)
		f.expect("after a conflict "+what, []evidence.Observation{known}, c)
		if got := f.has("after a conflict "+what, notes, "there", value{N: 1}); got.Revision != revision {
			t.Errorf("a conflict %s left the revision %d, and it was %d", what, got.Revision, revision)
		}
		f.has("after a conflict "+what, cases, "of ann", value{By: "ann"})
		f.gone("after a conflict "+what, notes, "new")
		f.gone("after a conflict "+what, notes, "once")
	}
	if receipt := f.commit(rest); receipt.Duplicate || len(receipt.Duplicates)+len(receipt.Left) > 0 {
		t.Errorf("after conflicts their batch is known: %+v", receipt)
	}
	f.expect("after the batch", []evidence.Observation{known, observation("new", c, 1)}, c)
}

func knownFirst(t tb, s Subject) {
	f := newFixture(t, s)
	c := cell(plain, "i", "n")
	b := store.Batch{
		ID: "settle", Observations: []evidence.Observation{observation("1", c, 1)},
		Records: []store.Record{record(notes, "r", value{N: 1})},
	}
	first := f.commit(b)
	again := func(what string, b store.Batch) {
		receipts, err := f.store.Commit(ctx, b)
		if err != nil || len(receipts) != 1 || !receipts[0].Duplicate || receipts[0].Revision != 0 {
			t.Errorf("a batch that is delivered again, %s, gives %+v and the error %v", what, receipts, err)
		}
	}
	again("though its revision is stale", b)
	revision := f.write(over(record(notes, "r", value{N: 2}), first.Revision))
	again("though its record has gone on", b)
	again("with a stale expectation", store.Batch{ID: "settle", Expect: []store.Precondition{expect(notes, "r", first.Revision)}})
	again("with what is unknown", store.Batch{ID: "settle", Retract: []string{"never seen"}})
	again("with another policy", store.Batch{
		ID: "settle", Policies: map[string]evidence.Policy{plain: {ByOrigin: true}}, Observations: []evidence.Observation{observation("2", c, 1)},
	})
	other := store.Batch{ID: "other", Records: []store.Record{record(notes, "other", value{N: 3})}}
	receipts := f.commits(b, other)
	if !receipts[0].Duplicate || receipts[1].Duplicate || receipts[1].Revision == 0 {
		t.Errorf("a known batch beside a new one gives %+v", receipts)
	}
	f.has("beside a known batch", notes, "other", value{N: 3})
	if got := f.has("after batches again", notes, "r", value{N: 2}); got.Revision != revision {
		t.Errorf("a known batch raised the revision %d to %d", revision, got.Revision)
	}
	f.expect("after batches again", []evidence.Observation{observation("1", c, 1)}, c)
}

func expectation(t tb, s Subject) {
	f := newFixture(t, s)
	first := f.write(record(notes, "seen", value{N: 1}))
	now := expect(notes, "seen", first)
	for i := range 3 {
		f.commit(store.Batch{Expect: []store.Precondition{now, expect(notes, "none", 0), now}, Records: []store.Record{record(notes, fmt.Sprint(i), value{})}})
		if got := f.has("after an expectation", notes, "seen", value{N: 1}); got.Revision != first {
			t.Errorf("an expectation changed the revision %d to %d", first, got.Revision)
		}
		f.gone("after an expectation", notes, "none")
	}
	f.commits(store.Batch{}, store.Batch{Expect: []store.Precondition{now}})
	second := f.write(over(record(notes, "seen", value{N: 2}), first))
	for what, wrong := range map[string]store.Precondition{
		"an old revision": now, "none, and there is one": expect(notes, "seen", 0), "one, and there is none": expect(notes, "none", second),
		"a later revision": expect(notes, "seen", second+1),
	} {
		f.refusedBy(heed.ErrConflict, store.Batch{Expect: []store.Precondition{wrong}, Records: []store.Record{record(notes, "new", value{})}})
		f.gone("after expecting "+what, notes, "new")
	}
	f.commit(store.Batch{Records: []store.Record{removal(notes, "seen", second)}})
	f.refusedBy(heed.ErrConflict, store.Batch{Expect: []store.Precondition{expect(notes, "seen", second)}})
	f.commit(store.Batch{Expect: []store.Precondition{expect(notes, "seen", 0)}})
}

func writtenOnce(t tb, s Subject) {
	f := newFixture(t, s)
	first := f.write(once(record(notes, "a", value{N: 1}, "k=1")))
	if receipt := f.commit(store.Batch{Records: []store.Record{once(record(notes, "fresh", value{}))}}); len(receipt.Left) > 0 {
		t.Errorf("a record written once is called left: %+v", receipt.Left)
	}
	receipt := f.commit(store.Batch{Records: []store.Record{once(record(notes, "a", value{N: 2}, "k=2"))}})
	if !slices.Equal(receipt.Left, []store.Ref{ref(notes, "a")}) || receipt.Revision != 0 {
		t.Errorf("a batch of a record that is there already gives %+v", receipt)
	}
	c := cell(plain, "i", "n")
	receipt = f.commit(store.Batch{
		Observations: []evidence.Observation{observation("1", c, 1)},
		Records:      []store.Record{once(record(notes, "a", value{N: 3})), once(record(notes, "b", value{N: 4})), record(notes, "c", value{N: 5})},
	})
	if !slices.Equal(receipt.Left, []store.Ref{ref(notes, "a")}) || receipt.Revision == 0 {
		t.Errorf("a batch with a record that is there already gives %+v", receipt)
	}
	got := f.has("written once more", notes, "a", value{N: 1})
	if got.Revision != first || !slices.Equal(got.Keys, []string{"k=1"}) {
		t.Errorf("writing once more changed a record of revision %d to %+v", first, got)
	}
	f.finds("by the keys that were left", store.Query{Kind: notes, Keys: []string{"k=2"}})
	f.has("beside what was left", notes, "b", value{N: 4})
	f.has("beside what was left", notes, "c", value{N: 5})
	f.expect("beside what was left", []evidence.Observation{observation("1", c, 1)}, c)
	f.write(over(record(notes, "a", value{N: 6}), first))
	f.commit(store.Batch{Records: []store.Record{once(record(notes, "a", value{N: 7}))}})
	last := f.has("written once after a change", notes, "a", value{N: 6})
	f.commit(store.Batch{Records: []store.Record{removal(notes, "a", last.Revision)}})
	if again := f.write(once(record(notes, "a", value{N: 8}))); again <= last.Revision {
		t.Errorf("a record written once after its removal has the revision %d, and had %d", again, last.Revision)
	}
	f.has("written once after its removal", notes, "a", value{N: 8})
	f.add(observation("a", c, 1))
	f.expect("an observation with the id of a record", []evidence.Observation{observation("1", c, 1), observation("a", c, 1)}, c)
}

func batchesInOrder(t tb, s Subject) {
	f := newFixture(t, s)
	c, d := cell(fading, "i", "n"), cell(plain, "i", "n")
	f.add(observation("old", c, 1))
	receipts := f.commits(
		store.Batch{ID: "1", Reset: []store.Selection{{Kind: fading, Scope: "scope"}}, Records: []store.Record{record(notes, "1", value{N: 1})}},
		store.Batch{ID: "2", Observations: []evidence.Observation{observation("new", c, 1)}}, // under no policy, as the cell was reset
		store.Batch{ID: "2", Observations: []evidence.Observation{observation("again", c, 1)}},
		store.Batch{ID: "new", Records: []store.Record{record(notes, "2", value{N: 2})}},
		store.Batch{ID: "3", Observations: []evidence.Observation{observation("new", d, 1), observation("old", d, 1), observation("last", d, 1)},
			Records: []store.Record{record(notes, "3", value{N: 3})}},
		store.Batch{},
	)
	for i, want := range []bool{false, false, true, true, false, false} {
		if receipts[i].Duplicate != want {
			t.Errorf("batch %d of a commit is a duplicate: %v, want %v", i, receipts[i].Duplicate, want)
		}
	}
	slices.Sort(receipts[4].Duplicates)
	if !slices.Equal(receipts[4].Duplicates, []string{"new", "old"}) {
		t.Errorf("of a commit's last batch the duplicates are %q, want those before and in the commit", receipts[4].Duplicates)
	}
	f.has("of the first batch", notes, "1", value{N: 1})
	f.gone("of a duplicate batch", notes, "2")
	f.has("of the last batch", notes, "3", value{N: 3})
	f.setTime(start.Add(halfLife))
	for _, c := range []evidence.Cell{c, d} {
		if got := f.sums(c).Mass; got != 1 {
			t.Errorf("after a commit of several batches %v counts %v, want 1", c, got)
		}
	}
	f.setTime(start)
	// A batch that can't be applied takes the ones before it with it.
	err := f.refused(
		store.Batch{ID: "x", Observations: []evidence.Observation{observation("x", cell(plain, "x", ""), 1)}, Records: []store.Record{record(notes, "x", value{})}},
		store.Batch{Policies: map[string]evidence.Policy{plain: {ByOrigin: true}}, Observations: []evidence.Observation{observation("y", cell(plain, "x", ""), 1)}},
	)
	if conflict := (*heed.SettingsError)(nil); !errors.As(err, &conflict) {
		t.Errorf("a batch with another policy than the batch before it is refused with %v", err)
	}
	f.gone("after a refused commit", notes, "x")
	f.expect("after a refused commit", nil, cell(plain, "x", ""))
	if receipt := f.commit(store.Batch{ID: "x"}); receipt.Duplicate {
		t.Errorf("a refused commit made its first batch known")
	}
	if receipts, err := f.store.Commit(ctx); err != nil || len(receipts) != 0 {
		t.Errorf("Commit of no batch: %v, %v", receipts, err)
	}
}

func invalidCommit(t tb, s Subject) {
	f := newFixture(t, s)
	good := record(notes, "good", value{})
	revision := f.write(record(notes, "there", value{N: 1}))
	spoilt := func(spoil func(*store.Record)) []store.Batch {
		r := record(notes, "bad", value{})
		spoil(&r)
		return []store.Batch{{Records: []store.Record{good, r}}}
	}
	for field, batches := range map[string][]store.Batch{
		"Records[1].Kind":          spoilt(func(r *store.Record) { r.Kind = "" }),
		"Records[1].ID":            spoilt(func(r *store.Record) { r.ID = strings.Repeat("x", evidence.MaxText+1) }),
		"Records[1].At":            spoilt(func(r *store.Record) { r.At = time.Time{} }),
		"Records[1].Keys[1]":       spoilt(func(r *store.Record) { r.Keys = []string{"a", ""} }),
		"Records[1].Keys[0]":       spoilt(func(r *store.Record) { r.Keys = []string{strings.Repeat("k", store.MaxKey+1)} }),
		"Records[1].Keys":          spoilt(func(r *store.Record) { r.Keys = make([]string, store.MaxKeys+1) }),
		"Records[1].Revision":      spoilt(func(r *store.Record) { r.Body = store.Body{} }),
		"Batches[1].Records[0].ID": {{Records: []store.Record{good}}, {Records: []store.Record{good}}},
		"Batches[1].Observations":  {{Records: []store.Record{good}}, {Forget: []string{"ann"}}},
		"Expect[0]":                {{Records: []store.Record{good}}, {Expect: []store.Precondition{expect(notes, "good", 0)}}},
		"Expect[0].ID":             {{Records: []store.Record{good}, Expect: []store.Precondition{{Ref: ref(notes, "a\x00b")}}}},
		"Forget[0]":                {{Records: []store.Record{good}, Forget: []string{""}}},
		"Withdraw[0]":              {{Records: []store.Record{good}, Withdraw: []string{"\xff"}}},
		"ID":                       {{ID: "\x00", Records: []store.Record{good}}},
	} {
		err := f.refused(batches...)
		if fault := (*heed.InputError)(nil); !errors.As(err, &fault) || fault.Field != field {
			t.Errorf("a fault of %s is refused with %q", field, err)
		}
		f.gone("after a fault of "+field, notes, "good")
	}
	f.refusedBy(heed.ErrConflict, store.Batch{Records: []store.Record{removal(notes, "there", revision+1)}})
	f.has("after faults", notes, "there", value{N: 1})
}

func tooLarge(t tb, s Subject) {
	f := newFixture(t, s)
	c := cell(plain, "i", "n")
	text := func(size int) []byte { return []byte(`{"text":"` + strings.Repeat("x", size-11) + `"}`) }
	large := func(body store.Body) store.Batch {
		return store.Batch{
			Observations: []evidence.Observation{observation("1", c, 1)},
			Records: []store.Record{record(notes, "small", value{}), {
				Ref: ref(notes, "large"), At: start, Body: body,
			}},
		}
	}
	for what, batch := range map[string]store.Batch{
		"a body": large(store.Raw(text(store.MaxBody + 1))),
		"many changes": {
			Records: []store.Record{record(notes, "small", value{})},
			Retract: make([]string, store.MaxChanges),
		},
	} {
		if size := (*heed.SizeError)(nil); !errors.As(f.refused(batch), &size) ||
			size.Size != size.Most+1 {
			t.Errorf("%s of one more than the most is not refused by its size: %v",
				what, f.refused(batch))
		}
		f.gone("after "+what+" was refused", notes, "small")
		f.expect("after "+what+" was refused", nil, c)
	}
	// A store that keeps values as they are need not know how long they are as JSON.
	whole := value{Text: strings.Repeat("x", store.MaxBody)}
	if _, err := f.store.Commit(ctx, large(store.Of(whole))); err == nil {
		f.has("a large value", notes, "large", whole)
		f.remove(notes, "large", f.get(notes, "large").Revision)
		f.remove(notes, "small", f.get(notes, "small").Revision)
	} else if size := (*heed.SizeError)(nil); !errors.As(err, &size) {
		t.Errorf("a large value is refused with %v", err)
	} else {
		f.gone("after a large value was refused", notes, "small")
	}
	most := text(store.MaxBody)
	f.commit(large(store.Raw(most)))
	if got, err := f.get(notes, "large").Body.JSON(); err != nil || !bytes.Equal(got, most) {
		t.Errorf("a body of the most bytes is read back with %d of %d bytes (error %v)",
			len(got), len(most), err)
	}
}

func declared(t tb, s Subject) {
	f := newFixture(t, s)
	c := cell(plain, "i", "n")
	for _, r := range []store.Record{record("suite.undeclared", "r", value{}), once(record("suite.undeclared", "r", value{}))} {
		err := f.refused(store.Batch{Observations: []evidence.Observation{observation("1", c, 1)}, Records: []store.Record{record(notes, "r", value{}), r}})
		if fault := (*heed.InputError)(nil); !errors.As(err, &fault) {
			t.Errorf("a record of an undeclared kind is refused with %q, which is no InputError", err)
		}
	}
	f.gone("after an undeclared kind", notes, "r")
	f.expect("after an undeclared kind", nil, c)
	f.write(record(notes, "a", value{N: 1}))
	kind := store.Kind{Name: "suite.late", Limits: store.Limits{Most: 2}}
	f.declare(kind, kind)
	f.declare(slices.Concat(kinds, []store.Kind{kind})...)
	f.write(record("suite.late", "r", value{N: 2}))
	f.has("after declaring it again", notes, "a", value{N: 1})
	f.has("declared later", "suite.late", "r", value{N: 2})
	for _, wrong := range []store.Kind{{}, {Name: "a\x00"}, {Name: "k", Limits: store.Limits{For: -1}}, {Name: "k", Limits: store.Limits{Most: -1}}, {Name: "k", Caused: []string{"a..b"}}} {
		err := f.store.Declare(ctx, store.Kind{Name: "suite.never"}, wrong)
		if fault := (*heed.InputError)(nil); !errors.As(err, &fault) {
			t.Errorf("a kind that is not valid is refused with %v", err)
		}
	}
	// Paths of several declarations add up.
	f.declare(store.Kind{Name: "suite.late", Caused: []string{"of"}})
	f.declare(store.Kind{Name: "suite.late", Decided: []string{"by"}})
	f.write(record("suite.late", "named", value{Of: "ann", By: "ann"}, store.PersonKey("ann")))
	f.commit(store.Batch{Forget: []string{"ann"}})
	if got := f.decode(f.get("suite.late", "named")); got.Of == "ann" || got.By == "ann" {
		t.Errorf("with paths of two declarations a forgotten person is in %+v", got)
	}
}

func timesKept(t tb, s Subject) {
	f := newFixture(t, s)
	zone := time.FixedZone("somewhere", 5*3600+1800)
	for i, at := range []time.Time{
		start, start.In(zone), start.Add(999 * time.Nanosecond), time.Unix(0, 0), time.Unix(0, 1000), time.Date(1999, 12, 31, 23, 59, 59, 999999999, zone),
		time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
	} {
		id := fmt.Sprint(i)
		f.write(store.Record{Ref: ref(notes, id), At: at, Body: store.Of(value{})})
		want := at.UTC().Truncate(time.Microsecond)
		if got := f.get(notes, id).At; got != want && want.Unix() != 0 {
			t.Errorf("a record of %v is of %v, want %v", at, got, want)
		} else if got.Sub(want).Abs() > time.Microsecond { // the epoch itself may be the microsecond after it
			t.Errorf("a record of %v is of %v", at, got)
		}
	}
	f.finds("newest first", store.Query{Kind: notes}, "6", "2", "1", "0", "5", "4", "3")
}

// textsApart writes records, keys and persons with texts that look alike or mean something to databases.
func textsApart(t tb, s Subject) {
	f := newFixture(t, s)
	texts := []string{
		"a", "A", "a ", " a", "ä", "a\u0308", "a:b", "a|b", "a/b", "a'b", `a"b`, `a\b`, "a\nb", "%", "_", "a%", "',$1);--", "名前", "🙂", "\ufeffa",
		"null", "0", "a=b", strings.Repeat("x", evidence.MaxText), strings.Repeat("x", evidence.MaxText-1) + "y",
	}
	var records []store.Record
	for i, text := range texts {
		records = append(records, record(notes, text, value{Text: text, N: int64(i)}, store.Key("k", text), store.Key("all", "")))
		kind := "suite." + text[:min(len(text), 1000)]
		if !slices.ContainsFunc(records, func(r store.Record) bool { return r.Kind == kind }) {
			f.declare(store.Kind{Name: kind})
			records = append(records, record(kind, "same", value{Text: kind}))
		}
	}
	f.write(records...)
	for _, r := range records {
		want, _ := store.Decode[value](r.Body)
		f.has("of many texts", r.Kind, r.ID, want)
	}
	for _, text := range texts {
		f.finds("by a key of many", store.Query{Kind: notes, Keys: []string{store.Key("k", text)}}, text)
		f.finds("by two keys of many", store.Query{Kind: notes, Keys: []string{store.Key("all", ""), store.Key("k", text)}}, text)
		f.finds("of a kind of many", store.Query{Kind: "suite." + text[:min(len(text), 1000)]}, "same")
	}
	f.finds("all", store.Query{Kind: notes, Oldest: true, Keys: []string{"all="}}, texts...)
	long := strings.Repeat("k", store.MaxKey)
	f.write(record(notes, "long keys", value{}, long, long[:store.MaxKey-1]+"l"))
	f.finds("by a long key", store.Query{Kind: notes, Keys: []string{long}}, "long keys")
	f.finds("by no such key", store.Query{Kind: notes, Keys: []string{long[:store.MaxKey-1]}})
	many := make([]string, store.MaxKeys)
	for i := range many {
		many[i] = fmt.Sprint("many=", i)
	}
	f.write(record(notes, "many keys", value{}, many...))
	f.finds("by many keys", store.Query{Kind: notes, Keys: many}, "many keys")
	f.write(record(notes, "the same key twice", value{}, "twice=1", "twice=1"))
	f.finds("by a key given twice", store.Query{Kind: notes, Keys: []string{"twice=1", "twice=1"}}, "the same key twice")
}

func copied(t tb, s Subject) {
	f := newFixture(t, s)
	c := cell(plain, "i", "n")
	b := store.Batch{
		Policies:     map[string]evidence.Policy{plain: {}},
		Observations: []evidence.Observation{observation("1", c, 1)},
		Records:      []store.Record{record(notes, "r", value{N: 1}, "k=1", "k=2")},
	}
	f.commit(b)
	b.Records[0].Keys[0], b.Records[0].ID = "spoilt", "spoilt"
	b.Observations[0] = observation("spoilt", cell(plain, "spoilt", ""), 0)
	b.Policies[plain] = evidence.Policy{ByOrigin: true}
	cased := store.Kind{Name: "suite.spoilt", Caused: []string{"of"}}
	f.declare(cased)
	cased.Caused[0] = "spoilt"
	f.write(record("suite.spoilt", "r", value{Of: "ann"}, store.PersonKey("ann")))
	for range 2 {
		r := f.has("after spoiling what went in and out", notes, "r", value{N: 1})
		if !slices.Equal(r.Keys, []string{"k=1", "k=2"}) {
			t.Fatalf("keys that went in or came out are shared: %q", r.Keys)
		}
		r.Keys[0] = "spoilt"
		for r := range f.find(store.Query{Kind: notes}) {
			r.Keys[1] = "spoilt"
		}
		f.finds("by the keys that it was written with", store.Query{Kind: notes, Keys: []string{"k=1", "k=2"}}, "r")
	}
	if got := all(f, f.store.History(ctx, c)); len(got) != 1 || got[0].ID != "1" {
		t.Errorf("observations that went in are shared: %+v", got)
	}
	f.add(observation("2", c, 1))
	f.commit(store.Batch{Forget: []string{"ann"}})
	if got := f.decode(f.get("suite.spoilt", "r")); got.Of != "" {
		t.Errorf("paths that were declared are shared")
	}
}

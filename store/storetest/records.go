package storetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
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
	Text: "täxt \"quoted\" <b>\n\u2028\\ 🦉", N: 1<<62 + 1, X: 0.1 + 0.2, Flag: true,
	When: start, Of: "of", By: "by", Sources: []string{"a", ""}, Payload: []byte{0, 255, '"'},
	Details: map[string]string{"k": "v", "": "é"},
}

func recordReadBack(f *fixture) {
	text, err := json.Marshal(full)
	f.Must("Marshal", err)
	for id, body := range map[string]store.Body{
		"of": store.Of(full), "pointer": store.Of(&full), "raw": store.Raw(text),
		"spaced": store.Raw([]byte(" {\n\"text\" : \"x\" } ")), "null": store.Raw([]byte("null")),
		"number": store.Raw([]byte("12345678901234567890")), "empty": store.Raw([]byte(`""`)),
		"large": store.Of(value{Text: strings.Repeat("long ", 50_000)}),
	} {
		want := store.Record{Ref: ref(notes, id), At: start, Keys: []string{"b=2", "a=1", "b=1"}}
		written := want
		written.Body = body
		want.Revision = f.write(written)
		found := f.find(store.Query{Kind: notes, Keys: []string{"a=1"}, Limit: 1})
		if len(found) != 1 || found[0].Place == "" {
			f.Fatalf("Find yields %d records with limit 1, or one without a place", len(found))
		}
		for _, got := range append(found, f.get(notes, id)) {
			f.Check(reflect.DeepEqual(f.plainJSON(got.Body), f.plainJSON(body)),
				"the body of %q is another one", id)
			got.Body, got.Place = store.Body{}, ""
			f.Equal("all else of the record", got, want)
		}
		f.remove(notes, id)
		f.gone(notes, id)
	}
	zone := time.FixedZone("somewhere", 5*3600+1800)
	for _, at := range []time.Time{
		start.In(zone), start.Add(999 * time.Nanosecond), time.Unix(0, 0), time.Unix(0, 1000),
		time.Date(1999, 12, 31, 23, 59, 59, 999999999, zone),
		time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
	} {
		id := at.String()
		f.write(store.Record{Ref: ref(notes, id), At: at, Body: store.Of(value{})})
		got, want := f.get(notes, id).At, at.UTC().Truncate(time.Microsecond)
		// The epoch may be the microsecond after it.
		f.Check(got == want || want.Unix() == 0 && got.Sub(want).Abs() <= time.Microsecond,
			"a record of %v is of %v, want %v", at, got, want)
	}
}

// plainJSON decodes a body, with numbers as they are written.
func (f *fixture) plainJSON(b store.Body) (v any) {
	text, err := b.JSON()
	f.Must("JSON", err)
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	f.Must("decode a body", d.Decode(&v))
	return v
}

// readInOrder reads into a snapshot that has something already.
func readInOrder(f *fixture) {
	sibling := cell(origin, "i", "m")
	for i, key := range [][2]string{{"b", "x"}, {"a", "y"}, {"", ""}, {"a", "x"}, {"b", ""}} {
		o := from(key[1], seen(fmt.Sprint(i), originCell, 1))
		o.Channel = key[0]
		f.add(o)
	}
	f.add(seen("sibling", sibling, 1))
	f.write(note("a", value{N: 1}, "k"), at(time.Second, note("b", value{N: 2}, "k", "l")),
		record(cases, "a", value{N: 3}, "k"))
	there := records{{Place: "there"}}
	read := store.Snapshot{
		Parts: []evidence.Part{{Channel: "there"}}, Records: there, Found: []records{there},
	}
	f.Must("Read", f.store.Read(ctx, &read,
		[]evidence.Cell{sibling, cell(origin, "i", "none"), originCell, sibling},
		[]store.Ref{ref(notes, "b"), ref(notes, "missing"), ref(cases, "a"), ref(notes, "b")},
		by(notes, "k"), by(notes, "none"), store.Query{Kind: notes, Oldest: true, Limit: 1},
		by(notes, "l", "k"), by(cases)))
	text := func(r store.Record) string {
		if r.Revision == 0 && r.Body.IsZero() {
			return r.ID + r.Place
		}
		return fmt.Sprint(r.Kind, " ", r.ID, " ", f.decode(r).N)
	}
	texts := func(all records) []string {
		return repeat(len(all), func(i int) string { return text(all[i]) })
	}
	f.Equal("the parts", repeat(len(read.Parts), func(i int) string {
		return read.Parts[i].Cell.Name + read.Parts[i].Channel + read.Parts[i].Source
	}), []string{"there", "m", "n", "nax", "nay", "nb", "nbx", "m"})
	f.Equal("the records", texts(read.Records), []string{
		"there", "suite.note b 2", "missing", "suite.case a 3", "suite.note b 2",
	})
	f.Equal("what is found", repeat(len(read.Found), func(i int) []string {
		return texts(read.Found[i])
	}), [][]string{
		{"there"}, {"suite.note b 2", "suite.note a 1"}, {}, {"suite.note a 1"}, {"suite.note b 2"},
		{"suite.case a 3"},
	})
	empty := f.snapshot(nil, nil)
	f.Check(len(empty.Records)+len(empty.Parts) == 0, "Read of nothing returns %+v", empty)
	err := f.store.Read(ctx, &read, nil, nil, store.Query{})
	f.Check(faultOf(err) != "", "a query that is not valid: %v", err)
}

// conflicts commits records that must be refused because a revision is not current.
func (f *fixture) conflicts(records ...store.Record) {
	f.refusedBy(heed.ErrConflict, store.Batch{Records: records})
}

func revisionHolds(f *fixture) {
	f.conflicts(over(1, note("r", value{})))
	f.conflicts(removal(notes, "r", 1))
	f.gone(notes, "r")
	first := f.write(note("r", value{N: 1}))
	second := f.write(over(first, note("r", value{N: 2})))
	f.Check(second > first, "revision %d follows %d", second, first)
	for _, stale := range []uint64{0, first, second + 1} {
		f.conflicts(over(stale, note("r", value{N: 3})))
	}
	f.conflicts(removal(notes, "r", first))
	f.Equal("the revision", f.has(notes, "r", value{N: 2}).Revision, second)
	// Records of one batch get one revision, and each is compared with its own.
	third := f.write(note("other", value{N: 4}), over(second, note("r", value{N: 5})))
	f.Equal("the revision of one", f.has(notes, "other", value{N: 4}).Revision, third)
	f.Equal("the revision of the other", f.has(notes, "r", value{N: 5}).Revision, third)
	f.Equal("the revision of a batch that writes nothing", f.commit(store.Batch{}).Revision, 0)
	// A revision never comes again.
	last := third
	for i := range 3 {
		f.remove(notes, "r")
		f.gone(notes, "r")
		f.has(notes, "other", value{N: 4})
		f.conflicts(over(last, note("r", value{})))
		if i == 2 { // nor by other records and a sweep
			f.write(note("another", value{}))
			f.setTime(time.Minute)
			f.sweep(time.Time{})
		}
		again := f.write(note("r", value{}))
		f.Check(again > last, "made again, a record has the revision %d after %d", again, last)
		last = f.write(over(again, note("r", value{N: int64(i)})))
	}
}

// otherPolicy returns a batch that would keep a plain cell under another policy.
func otherPolicy(id string, c evidence.Cell) store.Batch {
	return store.Batch{
		Policies:     map[string]evidence.Policy{plain: {ByOrigin: true}},
		Observations: observations{seen(id, c, 1)},
	}
}

// refusedLeavesNothing commits what is right together with something wrong: in one batch, and in
// batches before and after it.
func refusedLeavesNothing(f *fixture) {
	known := from("ann", seen("known", plainCell, 1))
	f.add(known)
	revision := f.write(note("there", value{N: 1}),
		record(cases, "of ann", value{By: "ann"}, store.PersonKey("ann")),
		record(filled, "1", value{}), record(filled, "2", value{}), record(filled, "3", value{}))
	good := store.Batch{
		ID: "batch", Observations: observations{seen("new", otherCell, 1), seen("more", plainCell, 1)},
		Records: records{note("new", value{}), once(note("once", value{}))},
	}
	take := store.Batch{Retract: []string{"known"},
		Expunge: []store.SourceOf{{Cell: plainCell, Source: "ann"}}}
	tooLong := store.Record{Ref: ref(notes, "long"), At: start, Body: textOf(store.MaxBody + 1)}
	for what, bad := range map[string]store.Batch{
		"a stale revision":     {Records: records{over(revision+1, note("there", value{N: 2}))}},
		"a failed expectation": {Expect: []store.Precondition{expect("not there", 1)}},
		"another policy":       otherPolicy("other", otherCell),
		"an unknown id":        {Retract: []string{"known", "never seen"}},
		"an id of its own": {
			Retract: []string{"ahead"}, Observations: observations{seen("ahead", otherCell, 1)},
		},
		"an invalid reward":  {Observations: observations{seen("invalid", otherCell, 2)}},
		"a nameless record":  {Records: records{note("", value{})}},
		"an undeclared kind": {Records: records{record("suite.undeclared", "r", value{})}},
		"a full kind":        {Records: records{record(filled, "4", value{})}},
		"a body too large":   {Records: records{tooLong}},
	} {
		f.after("a commit was refused for %s", what)
		whole := good
		whole.Policies, whole.Retract, whole.Expect = bad.Policies, bad.Retract, bad.Expect
		whole.Observations = slices.Concat(good.Observations, bad.Observations)
		whole.Records = slices.Concat(good.Records, bad.Records)
		for _, batches := range [][]store.Batch{{whole}, {bad, good}, {take, good, bad}} {
			_ = f.refused(batches...)
			f.expect(observations{known}, plainCell, otherCell)
			f.Equal("the revision", f.has(notes, "there", value{N: 1}).Revision, revision)
			f.has(cases, "of ann", value{By: "ann"})
			f.gone(notes, "new", "once")
		}
	}
	f.after("commits were refused")
	f.refusedBy(heed.ErrNotFound, store.Batch{Retract: []string{"known", "never seen"}})
	receipt := f.commit(good)
	f.Check(!receipt.Duplicate && len(receipt.Duplicates)+len(receipt.Left) == 0,
		"the batch or a part of it is known: %+v", receipt)
	f.expect(append(observations{known}, good.Observations...), plainCell, otherCell)
}

func expectation(f *fixture) {
	expecting := func(all ...store.Precondition) store.Batch {
		return store.Batch{Expect: all, Records: records{once(note("new", value{}))}}
	}
	first := f.write(note("seen", value{N: 1}))
	now := expect("seen", first)
	for range 3 {
		f.commits(store.Batch{}, expecting(now, expect("none", 0), now))
		f.Equal("the revision", f.has(notes, "seen", value{N: 1}).Revision, first)
		f.gone(notes, "none")
		f.remove(notes, "new")
	}
	second := f.write(over(first, note("seen", value{N: 2})))
	for _, wrong := range []store.Precondition{
		now, expect("seen", second+1), expect("seen", 0), expect("none", second),
	} {
		f.refusedBy(heed.ErrConflict, expecting(wrong))
		f.gone(notes, "new")
	}
	f.remove(notes, "seen")
	f.refusedBy(heed.ErrConflict, expecting(expect("seen", second)))
	f.commit(expecting(expect("seen", 0)))
}

func writtenOnce(f *fixture) {
	first := f.write(once(note("a", value{N: 1}, "k=1")))
	left := []store.Ref{ref(notes, "a")}
	receipt := f.commit(store.Batch{Records: records{once(note("a", value{N: 2}, "k=2"))}})
	f.Check(slices.Equal(receipt.Left, left) && receipt.Revision == 0, "the receipt: %+v", receipt)
	batch := under(seen("1", plainCell, 1))
	batch.Records = records{
		once(note("a", value{N: 3})), once(note("b", value{N: 4})), note("c", value{N: 5}),
	}
	receipt = f.commit(batch)
	f.Check(slices.Equal(receipt.Left, left) && receipt.Revision > 0, "the receipt: %+v", receipt)
	got := f.has(notes, "a", value{N: 1})
	f.Check(got.Revision == first && slices.Equal(got.Keys, []string{"k=1"}), "it is %+v", got)
	f.finds(by(notes, "k=2"))
	f.has(notes, "b", value{N: 4})
	f.has(notes, "c", value{N: 5})
	f.expect(batch.Observations, plainCell)
	// Nor is a later value lost.
	f.write(over(first, note("a", value{N: 6})))
	f.commit(store.Batch{Records: records{once(note("a", value{N: 7}))}})
	last := f.has(notes, "a", value{N: 6}).Revision
	// After a removal, the record is new.
	f.remove(notes, "a")
	again := f.write(once(note("a", value{N: 8})))
	f.Check(again > last, "revision %d follows %d", again, last)
	f.has(notes, "a", value{N: 8})
	f.Equal("an observation with a record's id", f.add(seen("a", plainCell, 1)).Duplicates, nil)
}

func batchesInOrder(f *fixture) {
	f.add(seen("old", fadingCell, 1))
	receipts := f.commits(
		store.Batch{
			ID: "1", Reset: []evidence.Cell{fadingCell},
			Records: records{note("1", value{N: 1})},
		},
		// The second one is under no policy, because the cell was reset.
		store.Batch{ID: "2", Observations: observations{seen("new", fadingCell, 1)}},
		store.Batch{ID: "2", Observations: observations{seen("again", fadingCell, 1)}},
		store.Batch{ID: "new", Records: records{note("2", value{N: 2})}},
		store.Batch{
			ID: "3", Records: records{note("3", value{N: 3})},
			Observations: observations{
				seen("new", plainCell, 1), seen("old", plainCell, 1), seen("last", plainCell, 1),
			},
		},
		store.Batch{},
	)
	known := repeat(len(receipts), func(i int) bool { return receipts[i].Duplicate })
	f.Equal("the batches that are known", known, []bool{false, false, true, true, false, false})
	ids := slices.Sorted(slices.Values(receipts[4].Duplicates))
	f.Equal("the ids that are known", ids, []string{"new", "old"})
	f.has(notes, "1", value{N: 1})
	f.gone(notes, "2")
	f.has(notes, "3", value{N: 3})
	f.setTime(halfLife)
	f.Equal("the sum of one", f.sums(fadingCell).Mass, 1)
	f.Equal("the sum of the other", f.sums(plainCell).Mass, 1)
	receipts, err := f.store.Commit(ctx)
	f.Check(err == nil && len(receipts) == 0, "Commit of no batch: %v, %v", receipts, err)
}

// invalid commits faults of each sort that [store.Validate] finds.
func invalid(f *fixture) {
	good := note("good", value{})
	spoilt := func(spoil func(*observation)) []store.Batch {
		b := under(seen("id", plainCell, 1))
		spoil(&b.Observations[0])
		b.Records = records{good}
		return []store.Batch{b}
	}
	with := func(r store.Record) []store.Batch { return []store.Batch{{Records: records{good, r}}} }
	behind := func(b store.Batch) []store.Batch { return []store.Batch{{Records: records{good}}, b} }
	for field, batches := range map[string][]store.Batch{
		"Observations[0].ID":        spoilt(func(o *observation) { o.ID = "" }),
		"Observations[0].Cell":      spoilt(func(o *observation) { o.Cell.Item, o.Cell.Name = "", "" }),
		"Observations[0].Cell.Item": spoilt(func(o *observation) { o.Cell.Item = "not \xff UTF-8" }),
		"Observations[0].Source":    spoilt(func(o *observation) { o.Source = "a\x00b" }),
		"Observations[0].Reward":    spoilt(func(o *observation) { o.Reward = math.NaN() }),
		"Observations[0].Weight":    spoilt(func(o *observation) { o.Weight = -1 }),
		"Observations[0].Share":     spoilt(func(o *observation) { o.Share = math.Inf(1) }),
		"Observations[0].At": spoilt(func(o *observation) {
			o.At = start.Add(evidence.MaxSkew + time.Second)
		}),
		"Records[1].Kind":          with(record("", "bad", value{})),
		"Records[1].ID":            with(note(strings.Repeat("x", evidence.MaxText+1), value{})),
		"Records[1].At":            with(store.Record{Ref: ref(notes, "bad"), Body: store.Of(1)}),
		"Records[1].Keys[1]":       with(note("bad", value{}, "a", "")),
		"Records[1].Revision":      with(removal(notes, "bad", 0)),
		"Batches[1].Records[0].ID": behind(store.Batch{Records: records{good}}),
		"Batches[1].Observations":  behind(store.Batch{Reset: []evidence.Cell{plainCell}}),
		"Expect[0]": behind(store.Batch{
			Expect: []store.Precondition{expect("good", 0)},
		}),
		"Expunge[0].Source": {{Expunge: []store.SourceOf{{Cell: plainCell}}}},
		"Withdraw[0]":       {{Withdraw: []string{"\xff"}}},
		"ID":                {{ID: "\x00"}},
	} {
		err := f.refused(batches...)
		f.Check(faultOf(err) == field, "a fault of %s is refused with %q", field, err)
		f.gone(notes, "good")
	}
	for field, q := range map[string]store.Query{
		"Kind": {}, "Limit": {Kind: notes, Limit: -1}, "Keys[0]": by(notes, "\x00"),
		"After": {Kind: notes, After: "no such place"},
	} {
		var faults []string
		for _, err := range f.store.Find(ctx, q) {
			faults = append(faults, faultOf(err))
		}
		f.Equal("the fields at fault, by round", faults, []string{field})
	}
	f.expect(nil, plainCell)
	f.add(dated(evidence.MaxSkew, seen("ahead", fadingCell, 1)))
	mass := f.sums(fadingCell).Mass
	f.Check(math.Abs(mass-1) <= 1e-9, "an observation ahead of the clock counts %v, want 1", mass)
}

// textOf returns a body of a number of bytes.
func textOf(size int) store.Body {
	return store.Raw([]byte(`{"text":"` + strings.Repeat("x", size-11) + `"}`))
}

func tooLarge(f *fixture) {
	large := func(body store.Body) store.Batch {
		return store.Batch{Records: records{{Ref: ref(notes, "large"), At: start, Body: body}}}
	}
	for what, batch := range map[string]store.Batch{
		"a body":  large(textOf(store.MaxBody + 1)),
		"changes": {Retract: make([]string, store.MaxChanges+1)},
	} {
		var size *heed.SizeError
		err := f.refused(batch)
		f.Check(errors.As(err, &size) && size.Size == size.Most+1, "too many %s: %v", what, err)
	}
	// A store that keeps values as they are need not compute their length in JSON.
	whole := value{Text: strings.Repeat("x", store.MaxBody)}
	if _, err := f.store.Commit(ctx, large(store.Of(whole))); err == nil {
		f.has(notes, "large", whole)
		f.remove(notes, "large")
	} else {
		f.Check(errors.As(err, new(*heed.SizeError)), "a large value: %v", err)
		f.gone(notes, "large")
	}
	f.commit(large(textOf(store.MaxBody)))
	got, err := f.get(notes, "large").Body.JSON()
	want, _ := textOf(store.MaxBody).JSON() // which is there already
	f.Check(err == nil && bytes.Equal(got, want), "%d of %d bytes: %v", len(got), len(want), err)
}

func declared(f *fixture) {
	stranger := record("suite.undeclared", "r", value{})
	for _, r := range []store.Record{stranger, once(stranger)} {
		err := f.refused(store.Batch{Records: records{note("r", value{}), r}})
		f.Check(faultOf(err) != "", "an undeclared kind: %v, want an InputError", err)
	}
	f.gone(notes, "r")
	kind := store.Kind{Name: "suite.late", Limits: store.Limits{Most: 2}}
	f.declare(kind, kind)
	f.declare(append(slices.Clone(kinds), kind)...)
	f.write(record(kind.Name, "r", value{N: 2}))
	f.has(kind.Name, "r", value{N: 2})
	for _, wrong := range []store.Kind{{}, {Name: "k", Caused: []string{"a..b"}}} {
		err := f.store.Declare(ctx, store.Kind{Name: "suite.never"}, wrong)
		f.Check(faultOf(err) != "", "kind %+v: %v, want an InputError", wrong, err)
	}
	// Paths of several declarations add up, and limits that are left out stay.
	f.declare(store.Kind{Name: kind.Name, Caused: []string{"of"}})
	f.declare(store.Kind{Name: kind.Name, Decided: []string{"by"}})
	kind.Caused, kind.Decided = []string{"of"}, []string{"by"}
	f.Equal("a kind that was declared in parts", f.declarations()[kind.Name], kind)
}

// lookalikes are texts that look alike or mean something to databases.
var lookalikes = []string{
	"a", "A", "a ", " a", "ä", "a\u0308", "a:b", "a|b", "a/b", "a'b", `a"b`, `a\b`, "a\nb", "%", "_",
	"a%", "',$1);--", "名前", "🙂", "\ufeffa", "null", "0", "a=b",
}

// textsApart writes evidence, records, keys and kinds with texts that look alike or mean something
// to databases.
func textsApart(f *fixture) {
	var written records
	for i, text := range lookalikes {
		kind := "suite." + text
		f.declare(store.Kind{Name: kind})
		written = append(written, record(kind, "same", value{Text: text}),
			note(text, value{N: int64(i)}, store.Key("k", text), store.Key("all", "")))
		for place, c := range []evidence.Cell{
			{Kind: plain, Scope: text, Item: "x"}, {Kind: plain, Scope: "x", Item: text},
			{Kind: plain, Scope: "x", Name: text}, {Kind: plain + text, Item: text},
		} {
			o := seen(fmt.Sprint(place, text), c, 1)
			o.Weight = float64(i + 1)
			f.Equal("the known ids", f.add(o).Duplicates, nil)
			f.Equal(fmt.Sprintf("the sum of cell %q", c), f.sums(c).Mass, i+1)
		}
	}
	f.write(written...)
	for _, r := range written {
		f.has(r.Kind, r.ID, f.decode(r))
	}
	for _, text := range lookalikes {
		f.finds(by(notes, store.Key("k", text)), text)
		f.finds(by(notes, store.Key("all", ""), store.Key("k", text)), text)
		f.finds(by("suite."+text), "same")
	}
	f.both(by(notes, "all="), lookalikes...)
	long, longID := strings.Repeat("k", 1600), strings.Repeat("x", evidence.MaxText)
	f.write(note(longID, value{}, long, long[1:]+"l"), note(longID[1:]+"y", value{}))
	f.finds(by(notes, long), longID)
	f.finds(by(notes, long[1:]))
	many := repeat(192, func(i int) string { return fmt.Sprint("many=", i) })
	f.write(note("many keys", value{}, many...), note("a key twice", value{}, "twice=1", "twice=1"))
	f.finds(by(notes, many...), "many keys")
	f.finds(by(notes, "twice=1", "twice=1"), "a key twice")
}

// copied changes what went in and what came out, and looks at what the store has.
func copied(f *fixture) {
	batch := under(seen("1", plainCell, 1))
	batch.Policies = map[string]evidence.Policy{plain: {}}
	batch.Records = records{note("r", value{N: 1}, "k=1", "k=2")}
	f.commit(batch)
	batch.Records[0].Keys[0], batch.Records[0].ID = "spoilt", "spoilt"
	batch.Observations[0] = seen("spoilt", cell(plain, "spoilt", ""), 0)
	batch.Policies[plain] = evidence.Policy{ByOrigin: true}
	kind := store.Kind{Name: "suite.spoilt", Caused: []string{"of"}}
	f.declare(kind)
	kind.Caused[0] = "spoilt"
	f.write(record(kind.Name, "r", value{Of: "ann"}, store.PersonKey("ann")))
	for range 2 {
		r := f.has(notes, "r", value{N: 1})
		f.Equal("the keys", r.Keys, []string{"k=1", "k=2"})
		r.Keys[0] = "spoilt"
		for _, r := range f.find(by(notes)) {
			r.Keys[1] = "spoilt"
		}
		f.finds(by(notes, "k=1", "k=2"), "r")
	}
	f.Equal("the history", f.history(plainCell), observations{seen("1", plainCell, 1)})
	f.add(seen("2", plainCell, 1))
	f.forget("ann")
	f.Equal("the person forgotten", f.decode(f.get(kind.Name, "r")).Of, "")
}

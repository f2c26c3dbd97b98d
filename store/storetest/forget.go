package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

func forgetEvidence(t tb, s Subject) {
	f := newFixture(t, s)
	cells := []evidence.Cell{cell(plain, "i", "n"), cell(fading, "i", "n"), cell(origin, "i", "n")}
	var observations, kept []evidence.Observation
	for i, source := range []string{"ann", "bob", "", "Ann", "ann", "anna"} {
		for _, c := range cells {
			o := observation(fmt.Sprint(i, c.Kind), c, 1)
			o.Source = source
			observations = append(observations, o)
			if source != "ann" {
				kept = append(kept, o)
			}
		}
	}
	f.add(observations...)
	f.commit(store.Batch{Forget: []string{"ann", "nobody"}, Observations: []evidence.Observation{observation("beside", cells[0], 1)}})
	kept = append(kept, observation("beside", cells[0], 1))
	f.expect("after forgetting a source", kept, cells...)
	for _, c := range cells {
		for _, o := range all(f, f.store.History(ctx, c)) {
			if o.Source == "ann" {
				t.Fatalf("a forgotten person is still in the history: %+v", o)
			}
		}
	}
	f.add(observations...)
	f.expect("after delivering all again", kept, cells...)
}

func payload(v value) []byte {
	text, _ := json.Marshal(v) //nolint:errchkjson // a value always can be
	return text
}

// people are records that name ann, and one that names bob alone.
func people() []store.Record {
	ann, bob := store.PersonKey("ann"), store.PersonKey("bob")
	return []store.Record{
		record(cases, "by", value{By: "ann", Text: "as ann says", N: 1<<62 + 1, X: 0.1}, "k=1", ann),
		record(cases, "of", value{Of: "ann", By: "bob"}, ann, bob, "k=2"),
		record(cases, "lists", value{Sources: []string{"ann", "bob", "ann"}, Approvals: []approval{{"bob", "ann"}, {"ann", ""}}}, ann, bob),
		record(cases, "payload", value{Payload: payload(value{By: "ann", Text: "ann", N: 7})}, ann),
		record(cases, "bob", value{Of: "bob", By: "bob", Text: "ann"}, bob, "k=1"),
	}
}

func forgetRecords(t tb, s Subject) {
	f := newFixture(t, s)
	f.write(people()...)
	f.write(record(notes, "text", value{Text: "ann"}))
	untouched := f.get(cases, "bob")
	entry := once(record(cases, "entry", value{By: "ann", Text: "of the same commit"}, store.PersonKey("ann")))
	f.commit(store.Batch{Forget: []string{"ann", "nobody"}, Records: []store.Record{entry}})
	f.has("written after forgetting", cases, "entry", value{By: "ann", Text: "of the same commit"})
	f.commit(store.Batch{Forget: []string{"ann"}})

	by := f.decode(f.get(cases, "by"))
	name := by.By
	if name == "" || strings.EqualFold(name, "ann") {
		t.Errorf("a forgotten person decided as %q, want a pseudonym", name)
	}
	f.has("forgotten", cases, "by", value{By: name, Text: "as ann says", N: 1<<62 + 1, X: 0.1})
	f.has("forgotten", cases, "of", value{By: "bob"})
	f.has("forgotten", cases, "lists", value{Sources: []string{"bob"}, Approvals: []approval{{"bob", "ann"}, {name, ""}}})
	inside := value{}
	if err := json.Unmarshal(f.decode(f.get(cases, "payload")).Payload, &inside); err != nil || !sameJSON(inside, value{By: name, Text: "ann", N: 7}) {
		t.Errorf("in a payload a forgotten person is %+v (error %v), want the pseudonym %q", inside, err, name)
	}
	if got := f.get(cases, "bob"); got.Revision != untouched.Revision || !sameJSON(f.decode(got), f.decode(untouched)) {
		t.Errorf("forgetting somebody else changed %+v to %+v", untouched, got)
	}
	f.has("forgotten", notes, "text", value{Text: "ann"})

	pseudonym := store.PersonKey(name)
	f.finds("by the key of a forgotten person", store.Query{Kind: cases, Keys: []string{store.PersonKey("ann")}})
	f.finds("by the key of the pseudonym", store.Query{Kind: cases, Keys: []string{pseudonym}, Oldest: true}, "by", "lists", "payload")
	f.finds("by the keys of others", store.Query{Kind: cases, Keys: []string{store.PersonKey("bob")}, Oldest: true}, "of", "lists", "bob")
	f.both("by other keys", store.Query{Kind: cases, Keys: []string{"k=1"}}, "by", "bob")
	f.both("all of them", store.Query{Kind: cases}, "by", "of", "lists", "payload", "bob", "entry")
	for r := range f.find(store.Query{Kind: cases}) {
		if slices.Contains(r.Keys, store.PersonKey("ann")) {
			t.Errorf("record %q has the key of a forgotten person: %q", r.ID, r.Keys)
		}
	}
	if got := f.get(cases, "of").Keys; !slices.Equal(got, []string{store.PersonKey("bob"), "k=2"}) {
		t.Errorf("a record that a forgotten person caused has the keys %q", got)
	}
}

// forgetCase forgets one of two people whose names differ in case alone.
func forgetCase(t tb, s Subject) {
	f := newFixture(t, s)
	key := store.PersonKey("ann")
	others := map[string]value{
		"by": {By: "Ann"}, "of": {Of: "ANN"}, "lists": {Sources: []string{"Ann"}, Approvals: []approval{{"Ann", ""}}},
		"payload": {Payload: payload(value{By: "aNN"})},
	}
	for id, v := range others {
		f.write(record(cases, id, v, key))
	}
	f.write(record(wholes, "of", others["of"], key))
	revision := f.write(record(cases, "both", value{Of: "ann", By: "Ann", Sources: []string{"Ann", "ann"}}, key),
		record(wholes, "gone", value{Of: "ann", By: "Ann"}, key))
	f.commit(store.Batch{Forget: []string{"ann"}})
	for id, v := range others {
		for _, kind := range []string{cases, wholes} {
			if kind == wholes && id != "of" {
				continue
			}
			f.has("after somebody with the name in another case was forgotten", kind, id, v)
			if got := f.get(kind, id); got.Revision >= revision || !slices.Equal(got.Keys, []string{key}) {
				t.Errorf("forgetting a name in another case changed record %q to revision %d and the keys %q", id, got.Revision, got.Keys)
			}
		}
	}
	f.has("after one of two was forgotten", cases, "both", value{By: "Ann", Sources: []string{"Ann"}})
	f.gone("caused by the one of two who was forgotten", wholes, "gone")
	if got := f.get(cases, "both").Keys; !slices.Equal(got, []string{key}) {
		t.Errorf("a record that names somebody in another case than who was forgotten has the keys %q", got)
	}
	f.commit(store.Batch{Forget: []string{"Ann", "ANN"}})
	v := f.decode(f.get(cases, "both"))
	if v.By == "Ann" || v.By == "" || len(v.Sources) > 0 {
		t.Errorf("after both were forgotten, a record names %+v", v)
	}
	f.finds("after both were forgotten", store.Query{Kind: cases, Keys: []string{key}}, "payload")

	long := strings.Repeat("Ⱥ", evidence.MaxText/2) // which is longer in lower case
	f.write(record(cases, "long", value{By: long}, store.PersonKey(long)))
	f.commit(store.Batch{Forget: []string{long}})
	if got := f.get(cases, "long"); f.decode(got).By == long || slices.Contains(got.Keys, store.PersonKey(long)) {
		t.Errorf("a person with a long name is not forgotten")
	}
}

func forgetWhole(t tb, s Subject) {
	f := newFixture(t, s)
	ann, bob := store.PersonKey("ann"), store.PersonKey("bob")
	f.write(record(wholes, "ann", value{Of: "ann"}, ann, "k"), record(wholes, "both", value{Of: "ann", Text: "to bob"}, ann, bob, "k"),
		record(wholes, "bob", value{Of: "bob"}, bob, "k"))
	revision := f.get(wholes, "ann").Revision
	f.commit(store.Batch{Forget: []string{"ann"}})
	f.gone("forgotten", wholes, "ann")
	f.gone("forgotten", wholes, "both")
	for _, keys := range [][]string{nil, {"k"}, {bob}} {
		f.both("forgotten", store.Query{Kind: wholes, Keys: keys}, "bob")
	}
	if again := f.write(record(wholes, "ann", value{})); again <= revision {
		t.Errorf("made again after forgetting, a record has the revision %d, and had %d", again, revision)
	}
}

func forgetSeveral(t tb, s Subject) {
	f := newFixture(t, s)
	f.write(people()...)
	f.commit(store.Batch{Forget: []string{"ann", "bob"}})
	ann, bob := f.decode(f.get(cases, "by")).By, f.decode(f.get(cases, "bob")).By
	if ann == bob || ann == "" || bob == "" {
		t.Errorf("two people are %q and %q", ann, bob)
	}
	f.has("two forgotten", cases, "lists", value{Approvals: []approval{{bob, "ann"}, {ann, ""}}})
	f.has("two forgotten", cases, "of", value{By: bob})
	f.has("two forgotten", cases, "bob", value{By: bob, Text: "ann"})
	f.finds("by a pseudonym", store.Query{Kind: cases, Keys: []string{store.PersonKey(bob)}, Oldest: true}, "of", "lists", "bob")
	g := newFixture(t, s)
	g.write(people()...)
	g.commit(store.Batch{Forget: []string{"ann"}})
	if again := g.decode(g.get(cases, "by")).By; again == ann {
		t.Errorf("a pseudonym is not random: twice %q", again)
	}
}

func forgetRevisions(t tb, s Subject) {
	f := newFixture(t, s)
	revision := f.write(people()...)
	moved := f.write(over(at(people()[2], 5), revision))
	f.commit(store.Batch{Forget: []string{"ann"}})
	for id, before := range map[string]uint64{"by": revision, "of": revision, "lists": moved, "payload": revision} {
		if got := f.get(cases, id).Revision; got <= before {
			t.Errorf("record %q is changed by forgetting, and its revision stays %d", id, got)
		}
		f.refusedBy(heed.ErrConflict, store.Batch{Records: []store.Record{over(record(cases, id, value{By: "ann"}), before)}})
	}
	f.both("forgotten", store.Query{Kind: cases}, "by", "of", "payload", "bob", "lists")
	f.both("forgotten", store.Query{Kind: cases, Since: start.Add(time.Second)}, "lists")
}

// forgetRefused forgets a person when sums hold more sources than a bounded history can tell.
func forgetRefused(t tb, s Subject) {
	f := newFixture(t, s)
	f.write(people()...)
	c := cell(plain, "i", "n")
	var observations []evidence.Observation
	for i := range 300 {
		o := observation(fmt.Sprint(i), c, 1)
		if o.Source = "bob"; i < 3 {
			o.Source = "ann"
		}
		o.At = start.Add(time.Duration(i) * time.Millisecond)
		observations = append(observations, o)
	}
	others := observations[3:]
	f.add(observations...)
	f.sweep(time.Time{})
	_, err := f.store.Commit(ctx, store.Batch{Forget: []string{"ann"}})
	switch {
	case err == nil:
		f.expect("after forgetting", others, c)
		f.has("after forgetting", cases, "of", value{By: "bob"})
	case errors.Is(err, evidence.ErrForgotten):
		f.expect("after forgetting was refused", observations, c)
		f.has("after forgetting was refused", cases, "of", value{Of: "ann", By: "bob"})
		f.commit(store.Batch{Reset: []store.Selection{{Kind: plain, Scope: "scope"}}, Forget: []string{"ann"}})
		f.expect("after a reset and forgetting", nil, c)
		f.has("after a reset and forgetting", cases, "of", value{By: "bob"})
	default:
		t.Errorf("forgetting who may no longer be told apart: %v, want success or ErrForgotten", err)
	}
}

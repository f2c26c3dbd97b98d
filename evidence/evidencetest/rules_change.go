package evidencetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
)

// policyKept: see the comments of [evidence.Policy].
func policyKept(t tb, newStore NewStore) {
	f := newFixture(t, newStore)
	c := cell(fading, "i", "n")
	first := observation("1", c, 1)
	f.add(first)
	for _, other := range []evidence.Policy{{}, {HalfLife: 2 * halfLife}, {HalfLife: halfLife, ByOrigin: true}} {
		batch := evidence.Batch{
			Policies:     map[string]evidence.Policy{fading: other},
			Observations: []evidence.Observation{observation("2", c, 1)},
		}
		err := f.refused(batch)
		var conflict *evidence.PolicyError
		if !errors.As(err, &conflict) || !errors.Is(err, heed.ErrConflict) {
			t.Errorf("another policy is refused with %q, which is no PolicyError", err)
		} else if conflict.Stored != policies[fading] || conflict.Wanted != other {
			t.Errorf("the error tells of %+v and %+v, want %+v and %+v", conflict.Stored, conflict.Wanted, policies[fading], other)
		}
	}
	_ = f.refused(evidence.Batch{Policies: map[string]evidence.Policy{fading: {HalfLife: time.Nanosecond}}})
	f.expect("after other policies", []evidence.Observation{first}, c)
	f.commit(evidence.Batch{
		Reset:        []evidence.Selection{{Kind: fading, Scope: "scope"}},
		Observations: []evidence.Observation{observation("3", c, 1)}, // now with no policy
	})
	f.setTime(start.Add(10 * halfLife))
	if got := f.sums(c).Mass; got != 1 {
		t.Errorf("a cell that was reset and opened with another policy counts %v, want 1", got)
	}
	// A batch that takes back all evidence of a cell may open it with another policy.
	fourth := observation("4", c, 1)
	fourth.Source = "ann"
	f.commit(evidence.Batch{Policies: policies, Retract: []string{"3"}, Observations: []evidence.Observation{fourth}})
	f.commit(evidence.Batch{Expunge: []string{"ann"}, Observations: []evidence.Observation{observation("5", c, 1)}})
	if got := f.sums(c).Mass; got != 1 {
		t.Errorf("a cell that was emptied and opened with another policy counts %v, want 1", got)
	}
}

func rebuildCounts(t tb, newStore NewStore) {
	f := newFixture(t, newStore)
	observations, _ := some(rand.New(rand.NewPCG(3, 4)), 100)
	c := cell(plain, "item", "a")
	for _, o := range observations {
		o.Cell = c
		f.commit(evidence.Batch{Observations: []evidence.Observation{o}})
	}
	// From now on the kind fades and keeps origins apart: as the other kind does, of which the same is then expected.
	f.commit(evidence.Batch{Policies: map[string]evidence.Policy{plain: policies[origin]}, Rebuild: []evidence.Cell{c}})
	twin := cell(origin, "item", "a")
	for i := range observations {
		observations[i].Cell = twin
	}
	want := naive(observations, twin, f.time())
	parts := f.read(c)
	if len(parts) != len(want) {
		t.Errorf("a cell made anew has %d parts, want %d", len(parts), len(want))
	}
	for _, part := range parts {
		if w := want[[2]string{part.Channel, part.Source}]; w == nil || !near(part.Tally.At(evidence.InstantOf(start)), w.sums) {
			t.Errorf("a cell made anew reads %+v, want %+v", part, w)
		}
	}
}

func restartLeavesOut(t tb, newStore NewStore) {
	f := newFixture(t, newStore)
	c, untouched := cell(fading, "i", "n"), cell(fading, "i", "other")
	at := func(id string, hours int) evidence.Observation {
		o := observation(id, c, 1)
		o.At = start.Add(time.Duration(hours) * time.Hour)
		return o
	}
	still := observation("still", untouched, 1)
	f.add(at("1", -5), at("2", -3), at("3", -1), still)
	// A restart before some of what was seen: the rest counts on, and the restart's own batch may add to it.
	f.commit(evidence.Batch{
		Policies:     policies,
		Restart:      []evidence.Restart{{Cell: c, At: start.Add(-3 * time.Hour)}},
		Observations: []evidence.Observation{at("4", -2)},
	})
	f.add(at("too late", -4))
	want := []evidence.Observation{at("2", -3), at("3", -1), at("4", -2), still}
	f.expect("after a restart", want, c, untouched)
	f.commit(evidence.Batch{Retract: []string{"1", "too late", "3"}})
	f.expect("after retracting from before and after it", slices.Delete(want, 1, 2), c, untouched)
	f.commit(evidence.Batch{Restart: []evidence.Restart{{Cell: c, At: start.Add(time.Second)}}})
	f.expect("after a restart behind all", []evidence.Observation{still}, c, untouched)
	f.setTime(start.Add(time.Hour))
	f.add(at("5", 1))
	f.expect("going on after it", []evidence.Observation{at("5", 1), still}, c, untouched)
}

func restartForward(t tb, newStore NewStore) {
	f := newFixture(t, newStore)
	c := cell(plain, "i", "n")
	f.commit(evidence.Batch{Restart: []evidence.Restart{{Cell: c, At: start}}})
	f.commit(evidence.Batch{Restart: []evidence.Restart{{Cell: c, At: start.Add(-time.Hour)}}})
	before := observation("before", c, 1)
	before.At = start.Add(-time.Minute)
	f.add(before, observation("after", c, 1))
	f.expect("after a restart that would go back", []evidence.Observation{observation("after", c, 1)}, c)
}

func retractNeverSeen(t tb, newStore NewStore) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 5 {
		observations, cells := some(rng, 120)
		f := newFixture(t, newStore)
		f.add(observations...)
		var kept []evidence.Observation
		var gone []string
		for _, o := range observations {
			if rng.IntN(3) == 0 {
				gone = append(gone, o.ID)
			} else {
				kept = append(kept, o)
			}
		}
		f.commit(evidence.Batch{Retract: gone})
		f.expect("after retracting a third", kept, cells...)
		f.commit(evidence.Batch{Retract: gone})
		f.add(observations...)
		f.expect("after retracting it again and delivering all again", kept, cells...)
	}
}

// retractBesideMany adds so many observations in the batch of a retraction that a bounded history forgets older ones.
func retractBesideMany(t tb, newStore NewStore) {
	for _, take := range []func(*evidence.Batch){
		func(b *evidence.Batch) { b.Retract = []string{"old"} },
		func(b *evidence.Batch) { b.Expunge = []string{"ann"} },
	} {
		f := newFixture(t, newStore)
		c := cell(plain, "i", "n")
		old := observation("old", c, 1)
		old.At, old.Source = start.Add(-time.Hour), "ann"
		f.add(old)
		var b evidence.Batch
		for i := range 300 {
			b.Observations = append(b.Observations, observation(fmt.Sprint(i), c, 0))
		}
		take(&b)
		f.commit(b)
		f.expect("after taking back one observation beside 300 new ones", b.Observations, c)
	}
}

func retractUnknown(t tb, newStore NewStore) {
	f := newFixture(t, newStore)
	c := cell(plain, "i", "n")
	f.add(observation("known", c, 1))
	if err := f.refused(evidence.Batch{Retract: []string{"known", "unknown"}}); !errors.Is(err, heed.ErrNotFound) {
		t.Errorf("retracting an unknown id: %v, want ErrNotFound", err)
	}
	f.expect("after a retraction that was refused", []evidence.Observation{observation("known", c, 1)}, c)
	_ = f.refused(evidence.Batch{Retract: []string{"new"}, Observations: []evidence.Observation{observation("new", c, 1)}})
}

// retractForgotten lets so much time and so many observations pass that a store may have forgotten the first.
func retractForgotten(t tb, newStore NewStore) {
	f := newFixture(t, newStore)
	c := cell(plain, "i", "n")
	first := observation("first", c, 1)
	f.add(first)
	f.setTime(start.Add(1000 * 24 * time.Hour))
	observations := []evidence.Observation{first}
	for i := range 300 {
		o := observation(fmt.Sprint(i), c, 0)
		o.At = start.Add(time.Duration(i+1) * time.Second)
		observations = append(observations, o)
	}
	f.add(observations[1:]...)
	_, err := f.store.Commit(ctx, evidence.Batch{Retract: []string{"first"}})
	switch {
	case err == nil:
		observations = observations[1:]
	case !errors.Is(err, evidence.ErrForgotten) && !errors.Is(err, heed.ErrNotFound):
		t.Errorf("retracting what may be forgotten: %v, want success, ErrForgotten or ErrNotFound", err)
	}
	f.expect("after retracting what may be forgotten", observations, c)
}

func expungeNeverSeen(t tb, newStore NewStore) {
	rng := rand.New(rand.NewPCG(7, 8))
	for range 5 {
		observations, cells := some(rng, 120)
		f := newFixture(t, newStore)
		f.add(observations...)
		kept := slices.DeleteFunc(slices.Clone(observations), func(o evidence.Observation) bool {
			return o.Source == "ann" || o.Source == "bob"
		})
		f.commit(evidence.Batch{Expunge: []string{"ann", "bob", "nobody"}})
		f.expect("after expunging two sources", kept, cells...)
		for _, c := range cells {
			for _, o := range all(f, f.store.History(ctx, c)) {
				if o.Source == "ann" || o.Source == "bob" {
					t.Fatalf("an expunged source is still in the history: %+v", o)
				}
			}
		}
		f.add(observations...)
		f.expect("after delivering all again", kept, cells...)
		_ = f.refused(evidence.Batch{Expunge: []string{""}})
	}
}

func resetSelects(t tb, newStore NewStore) {
	cells := []evidence.Cell{
		{Kind: plain, Scope: "s", Item: "i", Name: "n"}, {Kind: plain, Scope: "s", Item: "i", Name: "m"},
		{Kind: plain, Scope: "s", Item: "j", Name: "n"}, {Kind: plain, Scope: "t", Item: "i", Name: "n"},
		{Kind: fading, Scope: "s", Item: "i", Name: "n"},
	}
	for _, selection := range []evidence.Selection{
		{Kind: plain, Scope: "s"}, {Kind: plain, Scope: "s", Item: "i"}, {Kind: plain, Scope: "s", Name: "n"},
		{Kind: plain, Scope: "s", Item: "i", Name: "m"}, {Kind: plain, Scope: "nowhere"},
	} {
		f := newFixture(t, newStore)
		var observations, kept []evidence.Observation
		for i, c := range cells {
			observations = append(observations, observation(fmt.Sprint(i), c, 1))
			if !selection.Covers(c) {
				kept = append(kept, observations[i])
			}
		}
		f.add(observations...)
		f.commit(evidence.Batch{Reset: []evidence.Selection{selection}})
		f.expect(fmt.Sprintf("after a reset of %+v", selection), kept, cells...)
		for _, c := range cells {
			if got := len(all(f, f.store.History(ctx, c))); selection.Covers(c) && got > 0 {
				t.Errorf("after a reset of %+v, %v still has a history", selection, c)
			}
		}
		f.add(observations...)
		f.expect("after delivering again what was reset", kept, cells...)
	}
}

func historyNewestFirst(t tb, newStore NewStore) {
	f := newFixture(t, newStore)
	c := cell(origin, "i", "n")
	var observations []evidence.Observation
	for i, minutes := range []int{3, 1, 4, 1, 5} {
		o := observation(fmt.Sprint(i), c, 0.25)
		o.Weight, o.Channel, o.Source, o.Session = 2.5, "channel", "source", "session"
		o.At = start.Add(-time.Duration(minutes) * time.Minute)
		observations = append(observations, o)
	}
	precise := observation("precise", c, 1)
	precise.At = start.Add(-2*time.Minute + 1234567*time.Nanosecond).In(time.FixedZone("", 3600))
	f.add(append(observations, precise)...)
	f.commit(evidence.Batch{Retract: []string{"2"}})
	precise.At = precise.At.UTC().Truncate(time.Microsecond)
	want := []evidence.Observation{observations[3], observations[1], precise, observations[0], observations[4]}
	got := all(f, f.store.History(ctx, c))
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the history is\n%+v\nwant\n%+v", got, want)
	}
	if got := all(f, f.store.History(ctx, cell(origin, "i", "none"))); len(got) > 0 {
		t.Errorf("a cell without evidence has the history %+v", got)
	}
}

func listInOrder(t tb, newStore NewStore) {
	f := newFixture(t, newStore)
	var want []evidence.Cell
	for i, item := range []string{"", "a", "b"} {
		for j, name := range []string{"m", "n"} {
			want = append(want, cell(plain, item, name))
			f.add(observation(fmt.Sprint(10*i+j), want[len(want)-1], 1))
		}
	}
	f.add(observation("elsewhere", evidence.Cell{Kind: plain, Scope: "scope2", Item: "a"}, 1),
		observation("otherwise", cell(fading, "a", "n"), 1))
	var got []evidence.Cell
	for _, part := range all(f, f.store.List(ctx, plain, "scope")) {
		got = append(got, part.Cell)
		if part.Tally.Mass != 1 {
			t.Errorf("%v is listed with %+v", part.Cell, part.Tally)
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("listed %v, want %v", got, want)
	}
	if got := all(f, f.store.List(ctx, plain, "")); len(got) > 0 {
		t.Errorf("an empty scope lists %v", got)
	}
}

func scopesInOrder(t tb, newStore NewStore) {
	f := newFixture(t, newStore)
	for i, scope := range []string{"b", "", "a/c", "gone"} {
		c := evidence.Cell{Kind: plain, Scope: scope, Item: "i"}
		f.add(observation(fmt.Sprint(i), c, 1), observation(fmt.Sprint("again", i), c, 1))
	}
	f.add(observation("otherwise", evidence.Cell{Kind: fading, Scope: "c", Item: "i"}, 1))
	f.commit(evidence.Batch{Reset: []evidence.Selection{{Kind: plain, Scope: "gone"}}})
	if got, want := all(f, f.store.Scopes(ctx, plain)), []string{"", "a/c", "b"}; !slices.Equal(got, want) {
		t.Errorf("the scopes are %q, want %q", got, want)
	}
	if got := all(f, f.store.Scopes(ctx, "unheard")); len(got) > 0 {
		t.Errorf("a kind without evidence has the scopes %q", got)
	}
}

func loopsAreFree(t tb, newStore NewStore) {
	f := newFixture(t, newStore)
	c := cell(plain, "i", "a")
	for i, name := range []string{"a", "b", "c"} {
		f.commit(evidence.Batch{
			Observations: []evidence.Observation{observation(fmt.Sprint(i), cell(plain, "i", name), 1), observation(fmt.Sprint("again", i), c, 1)},
			Audit:        []evidence.AuditEntry{{ID: name, Action: "did", At: start}},
			Events:       []evidence.Event{{ID: name, Topic: "t", At: start}},
		})
	}
	rounds := 0
	inside := func() {
		f.read(c)
		f.add(observation(fmt.Sprint("inside", rounds), c, 1))
		rounds++
	}
	for range f.store.List(ctx, plain, "scope") {
		inside()
		break
	}
	for range f.store.Scopes(ctx, plain) {
		inside()
		break
	}
	for range f.store.History(ctx, c) {
		inside()
		break
	}
	for range f.store.Audit(ctx) {
		inside()
		break
	}
	for range f.store.Outbox(ctx) {
		inside()
		break
	}
	if rounds != 5 {
		t.Errorf("%d of 5 loops had something to show", rounds)
	}
}

func auditKept(t tb, newStore NewStore) {
	f := newFixture(t, newStore)
	entries := []evidence.AuditEntry{
		{ID: "1", At: start, Actor: "ann", Action: "reset", Subject: "x", Reason: "it was wrong", Details: map[string]string{"k": "v"}},
		{ID: "2", At: start.Add(-time.Hour), Action: "approve"},
	}
	f.commit(evidence.Batch{Audit: entries})
	f.commit(evidence.Batch{Audit: append([]evidence.AuditEntry{{ID: "3", At: start, Action: "third"}}, entries...)})
	slices.Reverse(entries)
	want := append([]evidence.AuditEntry{{ID: "3", At: start, Action: "third"}}, entries...)
	if got := all(f, f.store.Audit(ctx)); !reflect.DeepEqual(got, want) {
		t.Errorf("the audit log is\n%+v\nwant\n%+v", got, want)
	}
	_ = f.refused(evidence.Batch{Audit: []evidence.AuditEntry{{ID: "4", At: start}}})
}

func outboxKept(t tb, newStore NewStore) {
	f := newFixture(t, newStore)
	events := []evidence.Event{
		{ID: "1", Topic: "t", At: start, Payload: []byte("one")}, {ID: "2", Topic: "u", At: start}, {ID: "3", Topic: "t", At: start},
	}
	f.commit(evidence.Batch{Events: events[:2]})
	f.commit(evidence.Batch{Events: events})
	if got := all(f, f.store.Outbox(ctx)); !reflect.DeepEqual(got, events) {
		t.Errorf("the outbox holds\n%+v\nwant\n%+v", got, events)
	}
	f.commit(evidence.Batch{Sent: []string{"1", "3", "unknown"}})
	f.commit(evidence.Batch{Events: events})
	if got := all(f, f.store.Outbox(ctx)); !reflect.DeepEqual(got, events[1:2]) {
		t.Errorf("after two were sent the outbox holds\n%+v\nwant\n%+v", got, events[1:2])
	}
	f.add(observation("2", cell(plain, "i", "n"), 1))
	if got := f.sums(cell(plain, "i", "n")).Mass; got != 1 {
		t.Errorf("an observation with the id of an event counts %v, want 1", got)
	}
}

func copied(t tb, newStore NewStore) {
	f := newFixture(t, newStore)
	details, payload := map[string]string{"k": "v"}, []byte("payload")
	f.commit(evidence.Batch{
		Audit:  []evidence.AuditEntry{{ID: "1", Action: "did", At: start, Details: details}},
		Events: []evidence.Event{{ID: "1", Topic: "t", At: start, Payload: payload}},
	})
	details["k"], payload[0] = "spoilt", '!'
	for range 2 {
		entry, event := all(f, f.store.Audit(ctx))[0], all(f, f.store.Outbox(ctx))[0]
		if entry.Details["k"] != "v" || string(event.Payload) != "payload" {
			t.Fatalf("what was handed in or out is shared: %v, %q", entry.Details, event.Payload)
		}
		entry.Details["k"], event.Payload[0] = "spoilt", '!'
	}
}

func contextDone(t tb, newStore NewStore) {
	f := newFixture(t, newStore)
	c := cell(plain, "i", "n")
	f.commit(evidence.Batch{
		Observations: []evidence.Observation{observation("1", c, 1)},
		Audit:        []evidence.AuditEntry{{ID: "1", Action: "did", At: start}},
		Events:       []evidence.Event{{ID: "1", Topic: "t", At: start}},
	})
	done, cancel := context.WithCancel(ctx)
	cancel()
	var failures []error
	_, err := f.store.Commit(done, evidence.Batch{Observations: []evidence.Observation{observation("2", c, 1)}})
	failures = append(failures, err)
	_, err = f.store.Read(done, nil, c)
	failures = append(failures, err)
	for _, err := range f.store.List(done, plain, "scope") {
		failures = append(failures, err)
	}
	for _, err := range f.store.Scopes(done, plain) {
		failures = append(failures, err)
	}
	for _, err := range f.store.History(done, c) {
		failures = append(failures, err)
	}
	for _, err := range f.store.Audit(done) {
		failures = append(failures, err)
	}
	for _, err := range f.store.Outbox(done) {
		failures = append(failures, err)
	}
	if len(failures) != 7 || slices.ContainsFunc(failures, func(err error) bool { return !errors.Is(err, context.Canceled) }) {
		t.Errorf("with a context that is done the seven methods gave %v", failures)
	}
	f.expect("after a commit whose context was done", []evidence.Observation{observation("1", c, 1)}, c)
}

package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/sampling"
	"github.com/heedhq/heed/store"
)

// policyKept: see the comments of [evidence.Policy].
func policyKept(t tb, s Subject) {
	f := newFixture(t, s)
	c := cell(fading, "i", "n")
	first := observation("1", c, 1)
	f.add(first)
	for _, other := range []evidence.Policy{{}, {HalfLife: 2 * halfLife}, {HalfLife: halfLife, ByOrigin: true}} {
		batch := store.Batch{
			Policies:     map[string]evidence.Policy{fading: other},
			Observations: []evidence.Observation{observation("2", c, 1)},
		}
		err := f.refused(batch)
		var conflict *heed.SettingsError
		if !errors.As(err, &conflict) || !errors.Is(err, heed.ErrConflict) {
			t.Errorf("another policy is refused with %q, which is no SettingsError", err)
		} else if want := policies[fading].Conflict(fading, other); err.Error() != want.Error() && !strings.HasSuffix(err.Error(), ": "+want.Error()) {
			t.Errorf("the error is %q, want %q", err, want)
		}
	}
	_ = f.refused(store.Batch{Policies: map[string]evidence.Policy{fading: {HalfLife: time.Nanosecond}}})
	f.expect("after other policies", []evidence.Observation{first}, c)
	f.commit(store.Batch{
		Reset:        []store.Selection{{Kind: fading, Scope: "scope"}},
		Observations: []evidence.Observation{observation("3", c, 1)}, // now with no policy
	})
	f.setTime(start.Add(10 * halfLife))
	if got := f.sums(c).Mass; got != 1 {
		t.Errorf("a cell that was reset and opened with another policy counts %v, want 1", got)
	}
	// A batch that takes back all evidence of a cell may open it with another policy.
	fourth := observation("4", c, 1)
	fourth.Source = "ann"
	f.commit(store.Batch{Policies: policies, Retract: []string{"3"}, Observations: []evidence.Observation{fourth}})
	f.commit(store.Batch{Expunge: []string{"ann"}, Observations: []evidence.Observation{observation("5", c, 1)}})
	if got := f.sums(c).Mass; got != 1 {
		t.Errorf("a cell that was emptied and opened with another policy counts %v, want 1", got)
	}
}

func rebuildCounts(t tb, s Subject) {
	f := newFixture(t, s)
	observations, _ := some(rand.New(rand.NewPCG(3, 4)), 100)
	c := cell(plain, "item", "a")
	for _, o := range observations {
		o.Cell = c
		f.commit(store.Batch{Observations: []evidence.Observation{o}})
	}
	// From now on the kind fades and keeps origins apart, as the other kind does. Both must then have the same.
	f.commit(store.Batch{Policies: map[string]evidence.Policy{plain: policies[origin]}, Rebuild: []evidence.Cell{c}})
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

func restartLeavesOut(t tb, s Subject) {
	f := newFixture(t, s)
	c, untouched := cell(fading, "i", "n"), cell(fading, "i", "other")
	at := func(id string, hours int) evidence.Observation {
		o := observation(id, c, 1)
		o.At = start.Add(time.Duration(hours) * time.Hour)
		return o
	}
	still := observation("still", untouched, 1)
	f.add(at("1", -5), at("2", -3), at("3", -1), still)
	// A restart before some of what was seen: the rest counts on, and the restart's own batch may add to it.
	f.commit(store.Batch{
		Policies:     policies,
		Restart:      []store.Restart{{Cell: c, At: start.Add(-3 * time.Hour)}},
		Observations: []evidence.Observation{at("4", -2)},
	})
	f.add(at("too late", -4))
	want := []evidence.Observation{at("2", -3), at("3", -1), at("4", -2), still}
	f.expect("after a restart", want, c, untouched)
	f.commit(store.Batch{Retract: []string{"1", "too late", "3"}})
	f.expect("after retracting from before and after it", slices.Delete(want, 1, 2), c, untouched)
	f.commit(store.Batch{Restart: []store.Restart{{Cell: c, At: start.Add(time.Second)}}})
	f.expect("after a restart behind all", []evidence.Observation{still}, c, untouched)
	f.setTime(start.Add(time.Hour))
	f.add(at("5", 1))
	f.expect("going on after it", []evidence.Observation{at("5", 1), still}, c, untouched)
}

func restartForward(t tb, s Subject) {
	f := newFixture(t, s)
	c := cell(plain, "i", "n")
	f.commit(store.Batch{Restart: []store.Restart{{Cell: c, At: start}}})
	f.commit(store.Batch{Restart: []store.Restart{{Cell: c, At: start.Add(-time.Hour)}}})
	before := observation("before", c, 1)
	before.At = start.Add(-time.Minute)
	f.add(before, observation("after", c, 1))
	f.expect("after a restart that would go back", []evidence.Observation{observation("after", c, 1)}, c)
}

func retractNeverSeen(t tb, s Subject) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 5 {
		observations, cells := some(rng, 120)
		f := newFixture(t, s)
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
		f.commit(store.Batch{Retract: gone})
		f.expect("after retracting a third", kept, cells...)
		f.commit(store.Batch{Retract: gone})
		f.add(observations...)
		f.expect("after retracting it again and delivering all again", kept, cells...)
	}
}

// retractBesideMany retracts in a batch with enough observations for a bounded history to forget older ones.
func retractBesideMany(t tb, s Subject) {
	for _, take := range []func(*store.Batch){
		func(b *store.Batch) { b.Retract = []string{"old"} },
		func(b *store.Batch) { b.Expunge = []string{"ann"} },
	} {
		f := newFixture(t, s)
		c := cell(plain, "i", "n")
		old := observation("old", c, 1)
		old.At, old.Source = start.Add(-time.Hour), "ann"
		f.add(old)
		var b store.Batch
		for i := range 300 {
			b.Observations = append(b.Observations, observation(fmt.Sprint(i), c, 0))
		}
		take(&b)
		f.commit(b)
		f.expect("after taking back one observation beside 300 new ones", b.Observations, c)
	}
}

func retractUnknown(t tb, s Subject) {
	f := newFixture(t, s)
	c := cell(plain, "i", "n")
	f.add(observation("known", c, 1))
	if err := f.refused(store.Batch{Retract: []string{"known", "unknown"}}); !errors.Is(err, heed.ErrNotFound) {
		t.Errorf("retracting an unknown id: %v, want ErrNotFound", err)
	}
	f.expect("after a retraction that was refused", []evidence.Observation{observation("known", c, 1)}, c)
	_ = f.refused(store.Batch{Retract: []string{"new"}, Observations: []evidence.Observation{observation("new", c, 1)}})
}

// retractForgotten retracts an observation after enough time and enough others that a store may have forgotten it.
func retractForgotten(t tb, s Subject) {
	f := newFixture(t, s)
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
	f.sweep(time.Time{})
	_, err := f.store.Commit(ctx, store.Batch{Retract: []string{"first"}})
	switch {
	case err == nil:
		observations = observations[1:]
	case !errors.Is(err, evidence.ErrForgotten) && !errors.Is(err, heed.ErrNotFound):
		t.Errorf("retracting what may be forgotten: %v, want success, ErrForgotten or ErrNotFound", err)
	}
	f.expect("after retracting what may be forgotten", observations, c)
}

func expungeNeverSeen(t tb, s Subject) {
	rng := rand.New(rand.NewPCG(7, 8))
	for range 5 {
		observations, cells := some(rng, 120)
		f := newFixture(t, s)
		f.add(observations...)
		kept := slices.DeleteFunc(slices.Clone(observations), func(o evidence.Observation) bool {
			return o.Source == "ann" || o.Source == "bob"
		})
		f.commit(store.Batch{Expunge: []string{"ann", "bob", "nobody"}})
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
		_ = f.refused(store.Batch{Expunge: []string{""}})
	}
}

func resetSelects(t tb, s Subject) {
	cells := []evidence.Cell{
		{Kind: plain, Scope: "s", Item: "i", Name: "n"}, {Kind: plain, Scope: "s", Item: "i", Name: "m"},
		{Kind: plain, Scope: "s", Item: "j", Name: "n"}, {Kind: plain, Scope: "t", Item: "i", Name: "n"},
		{Kind: fading, Scope: "s", Item: "i", Name: "n"},
	}
	for _, selection := range []store.Selection{
		{Kind: plain, Scope: "s"}, {Kind: plain, Scope: "s", Item: "i"}, {Kind: plain, Scope: "s", Name: "n"},
		{Kind: plain, Scope: "s", Item: "i", Name: "m"}, {Kind: plain, Scope: "nowhere"},
	} {
		f := newFixture(t, s)
		var observations, kept []evidence.Observation
		for i, c := range cells {
			observations = append(observations, observation(fmt.Sprint(i), c, 1))
			if !selection.Covers(c) {
				kept = append(kept, observations[i])
			}
		}
		f.add(observations...)
		f.commit(store.Batch{Reset: []store.Selection{selection}})
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

func historyNewestFirst(t tb, s Subject) {
	f := newFixture(t, s)
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
	f.commit(store.Batch{Retract: []string{"2"}})
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

func listInOrder(t tb, s Subject) {
	f := newFixture(t, s)
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

// listSample asks as heed's own stores are asked where a sample would do. A store that knows nothing of this lists everything. One that
// draws lists whole items in order, says how many it gave of how many, and goes neither by names nor by arrival.
func listSample(t tb, s Subject) {
	const items, most = 400, 200
	f := newFixture(t, s)
	name := func(arrival int) string { return fmt.Sprintf("%03d", arrival*7%items) }
	var observations []evidence.Observation
	early := make(map[string]bool)
	for i := range items {
		early[name(i)] = i < items/2
		for _, arm := range []string{"a", "b"} {
			observations = append(observations, observation(fmt.Sprint(i, arm), cell(plain, name(i), arm), 1))
		}
	}
	f.add(observations...)
	listed := func(most int) (sampling.Sample, []string) {
		sample := sampling.Sample{Most: most}
		var names []string
		for _, part := range all(f, f.store.List(sampling.Of(ctx, &sample), plain, "scope")) {
			names = append(names, part.Cell.Item+part.Cell.Name)
		}
		return sample, names
	}
	if sample, names := listed(items); sample.All != 0 || len(names) != 2*items {
		t.Errorf("a sample of all %d items has %d cells, and tells of %+v", items, len(names), sample)
	}
	sample, names := listed(most)
	whole := sample.All == 0 && len(names) == 2*items
	first, soon := 0, 0
	for i := 0; i+1 < len(names); i += 2 {
		item := names[i][:3]
		if names[i] != item+"a" || names[i+1] != item+"b" {
			t.Fatalf("a sample has %q and %q together", names[i], names[i+1])
		}
		if item < "200" {
			first++
		}
		if early[item] {
			soon++
		}
	}
	given := len(names) / 2
	if !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("a sample is out of order: %q", names)
	}
	if !whole && (given <= most/5 || given >= 2*most || sample.Given != given || sample.All < items/3 || sample.All > 3*items) {
		t.Errorf("a sample of about %d of %d items has %d, and tells of %+v", most, items, given, sample)
	}
	if 5*first < given || 5*first > 4*given || 5*soon < given || 5*soon > 4*given {
		t.Errorf("of %d items in a sample, %d have a name in the first half, and %d came in the first half", given, first, soon)
	}
}

func scopesInOrder(t tb, s Subject) {
	f := newFixture(t, s)
	for i, scope := range []string{"b", "", "a/c", "gone"} {
		c := evidence.Cell{Kind: plain, Scope: scope, Item: "i"}
		f.add(observation(fmt.Sprint(i), c, 1), observation(fmt.Sprint("again", i), c, 1))
	}
	f.add(observation("otherwise", evidence.Cell{Kind: fading, Scope: "c", Item: "i"}, 1))
	f.commit(store.Batch{Reset: []store.Selection{{Kind: plain, Scope: "gone"}}})
	if got, want := all(f, f.store.Scopes(ctx, plain)), []string{"", "a/c", "b"}; !slices.Equal(got, want) {
		t.Errorf("the scopes are %q, want %q", got, want)
	}
	if got := all(f, f.store.Scopes(ctx, "unheard")); len(got) > 0 {
		t.Errorf("a kind without evidence has the scopes %q", got)
	}
}

// retractUncounted takes back what a bounded history may have dropped, after a reset or an expunging has done so already.
func retractUncounted(t tb, s Subject) {
	for what, take := range map[string]store.Batch{
		"a reset":                       {Reset: []store.Selection{{Kind: origin, Scope: "scope"}}},
		"expunging its source":          {Expunge: []string{"ann"}},
		"forgetting its source":         {Forget: []string{"ann"}},
		"a restart behind all there is": {Restart: []store.Restart{{Cell: cell(origin, "i", "n"), At: start.Add(time.Second)}}},
	} {
		f := newFixture(t, s)
		c := cell(origin, "i", "n")
		many := func(prefix, source string, at time.Time) {
			var observations []evidence.Observation
			for i := range 300 {
				o := observation(fmt.Sprint(prefix, i), c, 1)
				o.Source, o.At = source, at
				observations = append(observations, o)
			}
			f.add(observations...)
			f.sweep(time.Time{})
		}
		many("before", "ann", start)
		f.commit(take)
		many("after", "bob", start.Add(2*time.Second))
		before := f.state(c)
		if _, err := f.store.Commit(ctx, store.Batch{Retract: []string{"before0"}}); err != nil {
			t.Errorf("retracting after %s what no longer counts: %v", what, err)
		}
		if receipt := f.commit(store.Batch{Withdraw: []string{"before1"}}); len(receipt.Kept) > 0 {
			t.Errorf("after %s, what no longer counts is called kept: %q", what, receipt.Kept)
		}
		if got := f.state(c); !reflect.DeepEqual(got, before) {
			t.Errorf("retracting after %s what no longer counts changed\n%+v to\n%+v", what, before, got)
		}
	}
}

// withdraws makes enough observations for a bounded history to drop the first. Each id is either taken back or reported as kept.
func withdraws(t tb, s Subject) {
	f := newFixture(t, s)
	c, d := cell(plain, "i", "n"), cell(plain, "i", "other")
	var crowd []evidence.Observation
	for i := range 300 {
		o := observation(fmt.Sprint("crowd", i), c, 1)
		o.At = start.Add(time.Duration(i) * time.Millisecond)
		crowd = append(crowd, o)
	}
	f.add(crowd...)
	f.sweep(time.Time{})
	f.add(observation("alone", d, 1), observation("retracted", d, 1))
	f.commit(store.Batch{Retract: []string{"retracted"}})
	asked := []string{"crowd0", "alone", "unknown", "crowd299", "retracted"}
	receipt := f.commit(store.Batch{
		Withdraw: asked, Observations: []evidence.Observation{observation("new", d, 0)}, Records: []store.Record{record(notes, "r", value{})},
	})
	f.has("with a withdrawal", notes, "r", value{})
	kept := slices.Clone(receipt.Kept)
	for _, id := range []string{"alone", "crowd299", "retracted"} {
		if slices.Contains(kept, id) {
			t.Errorf("%q can be taken back, and is called kept", id)
		}
	}
	if !slices.Contains(kept, "unknown") {
		t.Errorf("an id that was never seen is not called kept: %q", kept)
	}
	want := crowd[:299]
	if !slices.Contains(kept, "crowd0") {
		want = crowd[1:299]
	}
	for _, id := range kept {
		if !slices.Contains(asked, id) {
			t.Errorf("%q is called kept, and nobody asked for it", id)
		}
	}
	f.expect("after a withdrawal", append([]evidence.Observation{observation("new", d, 0)}, want...), c, d)
	f.add(observation("alone", d, 1))
	f.expect("after delivering again what was withdrawn", append([]evidence.Observation{observation("new", d, 0)}, want...), c, d)
	if receipt := f.commit(store.Batch{Withdraw: []string{"alone"}}); len(receipt.Kept) > 0 {
		t.Errorf("what was withdrawn already is called kept: %q", receipt.Kept)
	}
}

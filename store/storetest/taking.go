package storetest

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// policyKept: see the comments of [evidence.Policy].
func policyKept(f *fixture) {
	first := seen("1", fadingCell, 1)
	f.add(first)
	for _, other := range []evidence.Policy{
		{}, {HalfLife: 2 * halfLife}, {HalfLife: halfLife, ByOrigin: true},
	} {
		batch := under(seen("2", fadingCell, 1))
		batch.Policies = map[string]evidence.Policy{fading: other}
		err, want := f.refused(batch), policies[fading].Conflict(fading, other)
		f.Check(errors.As(err, new(*heed.SettingsError)) && errors.Is(err, heed.ErrConflict) &&
			strings.HasSuffix(": "+err.Error(), ": "+want.Error()),
			"another policy is refused with %q, want the SettingsError %q", err, want)
	}
	tooShort := map[string]evidence.Policy{fading: {HalfLife: time.Nanosecond}}
	_ = f.refused(store.Batch{Policies: tooShort})
	f.expect(observations{first}, fadingCell)

	// A reset opens a cell for another policy.
	f.commit(store.Batch{
		Reset:        []evidence.Cell{fadingCell},
		Observations: observations{seen("2", fadingCell, 1)},
	})
	f.setTime(10 * halfLife)
	f.Equal("the sum", f.sums(fadingCell).Mass, 1)
	// So does taking back all of its evidence.
	retract := under(from("ann", seen("3", fadingCell, 1)))
	retract.Retract = []string{"2"}
	f.commit(retract)
	f.commit(store.Batch{
		Expunge:      []store.SourceOf{{Cell: fadingCell, Source: "ann"}},
		Observations: observations{seen("4", fadingCell, 1)},
	})
	f.Equal("the sum", f.sums(fadingCell).Mass, 1)
}

func rebuildCounts(f *fixture) {
	all := some(rand.New(rand.NewPCG(3, 4)), 100)
	for i := range all {
		all[i].Cell = originCell
		f.commit(store.Batch{Observations: all[i : i+1]}) // under no policy
	}
	f.commit(store.Batch{Policies: policies, Rebuild: []evidence.Cell{originCell}})
	f.expect(all, originCell)
}

// restart returns a batch of observations with a restart.
func restart(c evidence.Cell, after time.Duration, all ...observation) store.Batch {
	batch := under(all...)
	batch.Restart = []store.Restart{{Cell: c, At: start.Add(after)}}
	return batch
}

func restartLeavesOut(f *fixture) {
	untouched := cell(fading, "i", "other")
	at := func(id string, hours time.Duration) observation {
		return dated(hours*time.Hour, seen(id, fadingCell, 1))
	}
	still := seen("still", untouched, 1)
	f.add(at("1", -5), at("2", -3), at("3", -1), still)
	// The restart is before some of what was seen.
	f.commit(restart(fadingCell, -3*time.Hour, at("4", -2)))
	f.add(at("too late", -4))
	f.expect(observations{at("2", -3), at("3", -1), at("4", -2), still}, fadingCell, untouched)
	// Both from before and after it can be retracted.
	f.commit(store.Batch{Retract: []string{"1", "too late", "3"}})
	f.expect(observations{at("2", -3), at("4", -2), still}, fadingCell, untouched)
	// The restart is behind all.
	f.commit(restart(fadingCell, time.Second))
	f.expect(observations{still}, fadingCell, untouched)
	f.setTime(time.Hour)
	f.add(at("5", 1))
	f.expect(observations{at("5", 1), still}, fadingCell, untouched)
	// A restart only moves forward.
	f.commit(restart(fadingCell, -time.Hour))
	f.add(at("before", 0))
	f.expect(observations{at("5", 1), still}, fadingCell, untouched)
}

// commitsBatch takes back by a batch.
func commitsBatch(b store.Batch) func(*fixture) {
	return func(f *fixture) {
		f.after("%+v", b)
		f.commit(b)
	}
}

// runs takes back by a job.
func runs(job store.Job) func(*fixture) {
	return func(f *fixture) {
		f.after("%+v", job)
		f.run(job)
	}
}

// takesBack adds observations to a fresh store and takes some of them back. The cells and their
// history must be as if those had never been seen, also after all observations were delivered
// again.
func (f *fixture) takesBack(all observations, taken func(observation) bool,
	ways ...func(*fixture)) {
	f = f.fresh()
	f.add(all...)
	kept := slices.DeleteFunc(slices.Clone(all), taken)
	check := func() {
		cells := store.CellsOf(all...)
		f.expect(kept, cells...)
		for _, c := range cells {
			f.Check(!slices.ContainsFunc(f.history(c), taken), "the history: %+v", f.history(c))
		}
	}
	for _, take := range ways {
		take(f)
		check()
	}
	f.after("delivering again what was taken back")
	f.add(all...)
	check()
}

func takenBack(f *fixture) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 2 {
		all := some(rng, 200)
		var gone []string
		for _, o := range all {
			if rng.IntN(3) == 0 {
				gone = append(gone, o.ID)
			}
		}
		retract := commitsBatch(store.Batch{Retract: gone})
		f.takesBack(all, func(o observation) bool { return slices.Contains(gone, o.ID) },
			retract, retract)
		f.takesBack(all, func(o observation) bool { return o.Source == "ann" || o.Source == "bob" },
			runs(store.Job{Expunge: []string{"ann", "bob", "nobody"}}))
		f.takesBack(all, func(o observation) bool { return o.Source == "ann" },
			runs(store.Job{Forget: []string{"ann", "nobody"}}))
		for _, s := range []store.Selection{
			{Kind: plain, Scope: "scope"}, {Kind: plain, Scope: "scope", Item: "i"},
			{Kind: plain, Scope: "scope", Name: "a"}, {Kind: plain, Scope: "scope", Item: "i", Name: "a"},
			{Kind: plain, Scope: "nowhere"},
		} {
			f.takesBack(all, func(o observation) bool { return s.Covers(o.Cell) },
				runs(store.Job{Reset: []store.Selection{s}}))
		}
	}
	err := store.Run(ctx, f.store, store.Job{Expunge: []string{""}})
	f.Check(faultOf(err) == "Expunge[0]", "to expunge no name: %v", err)
}

// retractBesideMany takes back an old observation in a batch with so many others that a bounded
// history forgets older ones.
func retractBesideMany(f *fixture) {
	for _, take := range []store.Batch{
		{Retract: []string{"old"}}, {Expunge: []store.SourceOf{{Cell: plainCell, Source: "ann"}}},
	} {
		f = f.fresh()
		f.add(from("ann", dated(-time.Hour, seen("old", plainCell, 1))))
		take.Observations = crowd("", plainCell, 0)
		f.commit(take)
		f.expect(take.Observations, plainCell)
	}
}

// retractForgotten retracts an observation after enough time and enough others that a store may
// have forgotten it.
func retractForgotten(f *fixture) {
	all := crowd("", plainCell, 0)
	f.add(all[0])
	f.setTime(1000 * 24 * time.Hour)
	f.add(all[1:]...)
	f.sweep(time.Time{})
	_, err := f.store.Commit(ctx, store.Batch{Retract: []string{all[0].ID}})
	if err == nil {
		all = all[1:]
	}
	f.Check(err == nil || errors.Is(err, evidence.ErrForgotten) || errors.Is(err, heed.ErrNotFound),
		"Commit: %v, want success, ErrForgotten or ErrNotFound", err)
	f.expect(all, plainCell)
}

// retractUncounted takes back what a bounded history may have dropped, after something else has
// taken it out of the sums.
func retractUncounted(f *fixture) {
	whole := store.Selection{Kind: origin, Scope: "scope"}
	for what, take := range map[string]func(*fixture){
		"a reset":               runs(store.Job{Reset: []store.Selection{whole}}),
		"expunging its source":  runs(store.Job{Expunge: []string{"ann"}}),
		"forgetting its source": runs(store.Job{Forget: []string{"ann"}}),
		"a restart behind all":  commitsBatch(restart(originCell, time.Second)),
	} {
		f = f.fresh()
		f.after("%s", what)
		f.add(crowd("ann", originCell, 0)...)
		f.sweep(time.Time{})
		take(f)
		f.add(crowd("bob", originCell, 2*time.Second)...)
		f.sweep(time.Time{})
		before := f.read(originCell)
		f.commit(store.Batch{Retract: []string{"ann0"}})
		f.Equal("the ids kept", f.commit(store.Batch{Withdraw: []string{"ann1"}}).Kept, nil)
		f.Equal("the parts", f.read(originCell), before)
	}
}

// withdraws makes enough observations for a bounded history to drop the first. Each id is either
// taken back or reported as kept.
func withdraws(f *fixture) {
	many := crowd("ann", plainCell, 0)
	f.add(many...)
	f.sweep(time.Time{})
	f.add(seen("alone", otherCell, 1), seen("retracted", otherCell, 1))
	f.commit(store.Batch{Retract: []string{"retracted"}})
	batch := under(seen("new", otherCell, 0))
	batch.Withdraw = []string{"ann0", "alone", "unknown", "ann299", "retracted"}
	batch.Records = records{note("r", value{})}
	kept := slices.Sorted(slices.Values(f.commit(batch).Kept))
	want := append(observations{seen("new", otherCell, 0)}, many[1:299]...)
	if len(kept) > 0 && kept[0] == "ann0" {
		kept, want = kept[1:], append(want, many[0])
	}
	f.Equal("the ids kept, ann0 apart", kept, []string{"unknown"})
	f.has(notes, "r", value{})
	f.expect(want, plainCell, otherCell)
	// What was withdrawn is delivered again.
	f.add(seen("alone", otherCell, 1))
	f.expect(want, plainCell, otherCell)
	f.Equal("the ids kept", f.commit(store.Batch{Withdraw: []string{"alone"}}).Kept, nil)
}

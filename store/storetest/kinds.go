package storetest

import (
	"fmt"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// late returns a record of a number of minutes after the start.
func late(kind, id string, minutes int, keys ...string) store.Record {
	return at(time.Duration(minutes)*time.Minute, record(kind, id, value{}, keys...))
}

func limitFor(f *fixture) {
	f.setTime(61 * time.Minute)
	f.write(late(brief, "old", -10, "k"), late(brief, "due", 0, "k"), late(brief, "young", 2, "k"),
		late(brief, "waits", 600, "k"), late(notes, "for good", -1_000_000))
	f.write(over(f.write(late(brief, "moved", 0)), late(brief, "moved", 50, "k")))
	for range 2 {
		f.sweep(time.Time{})
		f.both(by(brief), "young", "moved", "waits")
		f.both(by(brief, "k"), "young", "moved", "waits")
		f.gone(brief, "old", "due")
		f.has(notes, "for good", value{})
	}
	// A day passed, and they are more than a small step.
	f.write(repeat(700, func(i int) store.Record {
		return late(brief, fmt.Sprint(i), i/100, "k")
	})...)
	f.setTime(24 * time.Hour)
	f.write(late(brief, "young again", 24*60, "k"))
	f.sweep(f.time())
	f.both(by(brief), "young again")
	f.both(by(brief, "k"), "young again")
}

func limitMost(f *fixture) {
	swept := func(oldest ...string) {
		f.sweep(time.Time{})
		f.both(by(few), oldest...)
		f.both(by(few, "k"), oldest...)
	}
	for _, n := range []int{3, 9, 1, 7, 5} { // the oldest by their time, and not by their coming
		f.write(late(few, fmt.Sprint(n), n, "k"), late(notes, fmt.Sprint(n), n))
	}
	swept("5", "7", "9")
	f.gone(few, "3")
	f.both(by(notes), "1", "3", "5", "7", "9")
	// One moves, and one is removed.
	f.write(over(f.get(few, "9").Revision, late(few, "9", 4, "k")), late(few, "8", 8, "k"))
	swept("5", "7", "8")
	f.remove(few, "7")
	f.write(late(few, "0", 0, "k"))
	swept("0", "5", "8")
	f.write(repeat(300, func(i int) store.Record {
		return late(few, fmt.Sprint("many", i), 10+i, "k")
	})...)
	swept("many297", "many298", "many299")
}

func limitRefuse(f *fixture) {
	fill := func(ids ...string) records {
		return repeat(len(ids), func(i int) store.Record { return record(filled, ids[i], value{}) })
	}
	f.write(fill("a", "b", "c")...)
	exchanged := append(fill("d", "e"), removal(filled, "a", f.get(filled, "a").Revision))
	for what, batches := range map[string][]store.Batch{
		"a fourth":                  {{ID: "batch", Records: append(fill("d"), note("n", value{}))}},
		"a fourth written once":     {{Records: records{once(fill("d")[0])}}},
		"a fourth in another batch": {{}, {Records: fill("d")}},
		"more than are removed":     {{Records: exchanged}},
	} {
		f.after("%s", what)
		f.refusedBy(evidence.ErrFull, batches...)
		f.both(by(filled), "a", "b", "c")
		f.gone(notes, "n")
	}
	// A change, a record that is there already and an exchange take no room.
	revision := f.write(over(f.get(filled, "c").Revision, record(filled, "c", value{N: 1})))
	f.commit(store.Batch{ID: "batch", Records: records{once(fill("a")[0]), once(fill("b")[0])}})
	f.write(append(fill("d"), removal(filled, "c", revision))...)
	f.sweep(time.Time{})
	f.both(by(filled), "a", "b", "d")
	// A removal makes room.
	f.remove(filled, "a")
	f.write(fill("e")...)
	f.both(by(filled), "b", "d", "e")
	f.refusedBy(evidence.ErrFull, store.Batch{Records: fill("f")})
}

// limitsWin looks at what a store keeps to, of several limits for a kind.
func limitsWin(f *fixture) {
	write := func() {
		f.write(late(few, "0", 0), late(few, "1", 1), late(few, "2", 2), late(few, "3", 3),
			late(brief, "old", -1000), late(filled, "a", 0))
	}
	f.declare(store.Kind{Name: few}) // which leaves the limits out, and changes nothing
	f.declare(store.Kind{Name: brief, Limits: store.Limits{For: 100 * time.Hour}})
	write()
	f.sweep(time.Time{})
	f.both(by(few), "1", "2", "3")
	f.both(by(brief), "old")
	f.declare(store.Kind{Name: brief, Limits: store.Limits{For: time.Hour}})
	f.sweep(time.Time{})
	f.both(by(brief))

	f = newFixture(f.TB, f.subject, map[string]store.Limits{
		few: {Most: 1}, brief: {}, filled: {Most: 1, Refuse: true}, "suite.unheard": {For: time.Minute},
	})
	f.declare(kinds...)
	write()
	f.refusedBy(evidence.ErrFull, store.Batch{Records: records{late(filled, "b", 0)}})
	f.sweep(time.Time{})
	f.both(by(few), "3")
	f.both(by(brief), "old")
}

// sweepClocks sweeps with a caller's clock that is ahead of the store's, and with one behind it.
func sweepClocks(f *fixture) {
	o := seen("1", plainCell, 1)
	batch := under(o)
	batch.ID, batch.Records = "batch", records{record(brief, "r", value{})}
	f.commit(batch)
	// The caller's clock is ahead.
	for _, ahead := range []time.Duration{2 * time.Hour, 100 * 365 * 24 * time.Hour} {
		f.sweep(start.Add(ahead))
		f.has(brief, "r", value{})
		f.Equal("the known ids", f.add(o).Duplicates, []string{"1"})
		f.Check(f.commit(batch).Duplicate, "a batch is unknown")
		f.Equal("the history", f.history(plainCell), observations{o})
	}
	f.setTime(2 * time.Hour)
	// The caller's clock is behind.
	f.sweep(start.Add(30 * time.Minute))
	f.has(brief, "r", value{})
	// It is due by both clocks.
	f.sweep(f.time())
	f.gone(brief, "r")
	f.expect(observations{o}, plainCell)
}

// version reads the version of the kind of rare records.
func (f *fixture) version() uint64 {
	found := f.snapshot(nil, []store.Ref{ref(notes, "none"), ref(rare, "")}).Records
	if len(found) != 2 || found[1].Ref != ref(rare, "") || !found[1].Body.IsZero() {
		f.Fatalf("Read of a version returns %+v", found)
	}
	return found[1].Revision
}

func versionRaised(f *fixture) {
	raises := func(what string, do func()) {
		before := f.version()
		do()
		now := f.version()
		f.Check(now > before, "%s leaves the version at %d, which was %d", what, now, before)
		f.Equal("a version that is read again", f.version(), now)
	}
	commits := func(what string, batches ...store.Batch) {
		raises(what, func() { f.commits(batches...) })
	}
	// A copy may be empty: a version rises also if the kind has no records.
	reset := func(what string) {
		f.add(seen(what, plainCell, 1))
		commits(what, store.Batch{Reset: []evidence.Cell{plainCell}})
	}
	reset("a reset before the first record")
	named := record(rare, "a", value{Of: "ann"}, store.PersonKey("ann"))
	commits("a new record", store.Batch{Records: records{named}})
	commits("a change", store.Batch{Records: records{over(f.get(rare, "a").Revision, named)}})
	commits("one of two batches", store.Batch{Records: records{note("a", value{})}},
		store.Batch{Records: records{once(record(rare, "b", value{}))}})
	raises("forgetting", func() { f.forget("ann") })
	before := f.version()
	f.parallel(8, 1, func(caller, _ int) error {
		together := once(record(rare, fmt.Sprint("together", caller), value{}))
		_, err := f.store.Commit(ctx, store.Batch{Records: records{together}})
		return err
	})
	f.Check(f.version() >= before+8, "8 commits raise %d to %d", before, f.version())
	raises("a removal", func() { f.remove(rare, "a") })
	f.add(seen("1", plainCell, 1))
	commits("expunging", store.Batch{Expunge: []store.SourceOf{{Cell: plainCell, Source: "ann"}}})
	commits("a reset", store.Batch{Reset: []evidence.Cell{plainCell}})
	commits("a rebuild", store.Batch{Rebuild: []evidence.Cell{plainCell}})
	commits("a restart", restart(plainCell, 0))
	f.setTime(2 * time.Hour)
	raises("a sweep", func() { f.sweep(time.Time{}) })
	f.gone(rare, "b")
	reset("a reset after the last record")
	f.finds(by(rare)) // a version is no record
}

func versionDeclared(f *fixture) {
	for _, kind := range []string{notes, "suite.unknown"} {
		var read store.Snapshot
		err := f.store.Read(ctx, &read, nil, []store.Ref{ref(rare, ""), ref(kind, "")})
		f.Check(faultOf(err) != "" && len(read.Records) == 0,
			"the version of kind %q is %+v, and the error %v", kind, read.Records, err)
	}
	f.declare(store.Kind{Name: rare}) // which leaves the version out, and takes nothing away
	before := f.version()
	f.write(record(rare, "a", value{}))
	f.Check(f.version() > before, "a commit did not raise the version")
}

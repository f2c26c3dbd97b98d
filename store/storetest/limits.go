package storetest

import (
	"fmt"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

func (f *fixture) sweep(now time.Time) {
	f.Helper()
	if err := f.store.Sweep(ctx, now); err != nil {
		f.Fatalf("Sweep: %v", err)
	}
}

// minutes returns a record of n minutes after the start.
func minutes(r store.Record, n int) store.Record { return at(r, 60*n) }

func limitFor(t tb, s Subject) {
	f := newFixture(t, s)
	f.setTime(start.Add(61 * time.Minute))
	f.write(minutes(record(brief, "old", value{}, "k"), -10), minutes(record(brief, "due", value{}, "k"), 0), minutes(record(brief, "young", value{}, "k"), 2))
	f.write(minutes(record(brief, "waits", value{}, "k"), 600), minutes(record(notes, "for good", value{}), -1_000_000))
	f.sweep(time.Time{})
	for range 2 {
		for _, keys := range [][]string{nil, {"k"}} {
			f.both("after an hour", store.Query{Kind: brief, Keys: keys}, "young", "waits")
		}
		f.gone("after an hour", brief, "old")
		f.gone("after an hour", brief, "due")
		f.has("after an hour", notes, "for good", value{})
		f.sweep(f.time())
	}
	revision := f.write(record(brief, "due", value{N: 2}))
	f.write(over(minutes(record(brief, "due", value{N: 3}), 50), revision))
	f.sweep(f.time())
	f.has("moved before it was due", brief, "due", value{N: 3})
	f.setTime(start.Add(24 * time.Hour))
	f.sweep(f.time())
	f.both("after a day", store.Query{Kind: brief})
	for i := range 700 { // more than a small step
		if i%100 == 0 {
			var batch []store.Record
			for j := range 100 {
				batch = append(batch, minutes(record(brief, fmt.Sprint("many", i+j), value{}, "k"), i/100))
			}
			f.write(batch...)
		}
	}
	f.write(minutes(record(brief, "young again", value{}, "k"), 24*60))
	f.sweep(time.Time{})
	f.both("after many", store.Query{Kind: brief, Keys: []string{"k"}}, "young again")
}

func limitMost(t tb, s Subject) {
	f := newFixture(t, s)
	for i, n := range []int{3, 9, 1, 7, 5} { // the oldest by their time, and not by their coming
		f.write(minutes(record(few, fmt.Sprint(n), value{}, "k"), n))
		f.write(record(notes, fmt.Sprint(i), value{}))
	}
	f.sweep(time.Time{})
	f.both("of five, three", store.Query{Kind: few, Keys: []string{"k"}}, "5", "7", "9")
	f.gone("of five, three", few, "3")
	f.both("of another kind", store.Query{Kind: notes}, "0", "1", "2", "3", "4")
	f.write(minutes(over(record(few, "9", value{}), f.get(few, "9").Revision), 4))
	f.write(minutes(record(few, "8", value{}), 8))
	f.sweep(time.Time{})
	f.both("after one has moved", store.Query{Kind: few}, "5", "7", "8")
	f.remove(few, "7", f.get(few, "7").Revision)
	f.write(minutes(record(few, "0", value{}), 0))
	f.sweep(time.Time{})
	f.both("after a removal", store.Query{Kind: few}, "0", "5", "8")
	var batch []store.Record
	for i := range 300 {
		batch = append(batch, minutes(record(few, fmt.Sprint("many", i), value{}), 10+i))
	}
	f.write(batch...)
	f.sweep(time.Time{})
	f.both("of many, three", store.Query{Kind: few}, "many297", "many298", "many299")
}

func limitRefuse(t tb, s Subject) {
	f := newFixture(t, s)
	c := cell(plain, "i", "n")
	f.write(record(filled, "a", value{}), record(filled, "b", value{}))
	revision := f.write(record(filled, "c", value{}))
	full := func(what string, batches ...store.Batch) {
		f.refusedBy(evidence.ErrFull, batches...)
		f.both(what, store.Query{Kind: filled}, "a", "b", "c")
	}
	full("after a fourth", store.Batch{
		ID: "batch", Observations: []evidence.Observation{observation("1", c, 1)},
		Records: []store.Record{record(notes, "n", value{}), record(filled, "d", value{})},
	})
	f.gone("with a record that was too much", notes, "n")
	f.expect("with a record that was too much", nil, c)
	full("after a fourth written once", store.Batch{Records: []store.Record{once(record(filled, "d", value{}))}})
	full("after a fourth in another batch", store.Batch{}, store.Batch{Records: []store.Record{record(filled, "d", value{})}})
	full("after more than are removed", store.Batch{Records: []store.Record{removal(filled, "a", f.get(filled, "a").Revision), record(filled, "d", value{}), record(filled, "e", value{})}})
	// A change, one that is there already and an exchange take no room.
	revision = f.write(over(record(filled, "c", value{N: 1}), revision))
	f.commit(store.Batch{ID: "batch", Records: []store.Record{once(record(filled, "a", value{})), once(record(filled, "b", value{}))}})
	f.write(record(filled, "d", value{}), removal(filled, "c", revision))
	f.both("after an exchange", store.Query{Kind: filled}, "a", "b", "d")
	f.sweep(time.Time{})
	f.both("after a sweep", store.Query{Kind: filled}, "a", "b", "d")
	f.remove(filled, "a", f.get(filled, "a").Revision)
	f.write(record(filled, "e", value{}))
	f.both("with room again", store.Query{Kind: filled}, "b", "d", "e")
	f.refusedBy(evidence.ErrFull, store.Batch{Records: []store.Record{record(filled, "f", value{})}})
}

func limitsWin(t tb, s Subject) {
	f := newLimited(t, s, map[string]store.Limits{
		few: {Most: 1}, brief: {}, filled: {Most: 1, Refuse: true}, "suite.unheard": {For: time.Minute},
	})
	f.declare(kinds...)
	f.write(minutes(record(few, "1", value{}), 1), minutes(record(few, "2", value{}), 2), minutes(record(brief, "old", value{}), -1000))
	f.write(record(filled, "a", value{}))
	f.refusedBy(evidence.ErrFull, store.Batch{Records: []store.Record{record(filled, "b", value{})}})
	f.sweep(time.Time{})
	f.both("by the store's limit", store.Query{Kind: few}, "2")
	f.both("without a limit of the store", store.Query{Kind: brief}, "old")

	f = newFixture(t, s)
	f.declare(store.Kind{Name: few}) // zero limits change nothing
	f.declare(store.Kind{Name: brief, Limits: store.Limits{For: 100 * time.Hour}})
	for i := range 4 {
		f.write(minutes(record(few, fmt.Sprint(i), value{}), i))
	}
	f.write(minutes(record(brief, "old", value{}), -1000))
	f.sweep(time.Time{})
	f.both("after declaring no limits", store.Query{Kind: few}, "1", "2", "3")
	f.both("after declaring another limit", store.Query{Kind: brief}, "old")
	f.declare(store.Kind{Name: brief, Limits: store.Limits{For: time.Hour}})
	f.sweep(time.Time{})
	f.both("after declaring a shorter limit", store.Query{Kind: brief})
}

// sweepClocks sweeps with a caller's clock that is ahead of the store's, and with one that is behind.
func sweepClocks(t tb, s Subject) {
	f := newFixture(t, s)
	c := cell(plain, "i", "n")
	o := observation("1", c, 1)
	f.add(o)
	f.commit(store.Batch{ID: "batch"})
	f.write(record(brief, "r", value{}))
	for _, ahead := range []time.Duration{2 * time.Hour, 100 * 365 * 24 * time.Hour} {
		f.sweep(start.Add(ahead))
		f.has("after a sweep by a clock that is ahead", brief, "r", value{})
		if receipt := f.add(o); len(receipt.Duplicates) != 1 {
			t.Errorf("a sweep by a clock that is ahead made an id unknown")
		}
		if receipt := f.commit(store.Batch{ID: "batch"}); !receipt.Duplicate {
			t.Errorf("a sweep by a clock that is ahead made a batch unknown")
		}
		if got := all(f, f.store.History(ctx, c)); len(got) != 1 {
			t.Errorf("a sweep by a clock that is ahead left the history %+v", got)
		}
	}
	f.setTime(start.Add(2 * time.Hour))
	f.sweep(start.Add(30 * time.Minute))
	f.has("after a sweep by a clock that is behind", brief, "r", value{})
	f.sweep(f.time())
	f.gone("after a sweep when it was due", brief, "r")
	f.expect("after sweeps", []evidence.Observation{o}, c)
}

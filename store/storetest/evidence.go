package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

func idOnce(f *fixture) {
	first, other := seen("once", plainCell, 1), seen("other", plainCell, 0)
	both := observations{seen("event", plainCell, 1), seen("event", fadingCell, 0)}
	f.Equal("the known ids at first", f.add(append(both, first)...).Duplicates, nil)
	again := dated(-time.Hour, first)
	again.Reward = 0 // the store must not look at this
	f.Equal("the known ids", f.add(again, other, other).Duplicates, []string{"once"})
	elsewhere := again
	elsewhere.Cell = otherCell
	f.Equal("the known ids, each once", f.add(again, elsewhere).Duplicates, []string{"once"})
	f.add(both...)
	f.after("a batch with an id that was known, and with the new id %q twice in one cell", other.ID)
	f.expect(append(both, first, other), plainCell, otherCell, fadingCell)
	f.commit(store.Batch{Retract: []string{"event"}})
	f.expect(observations{first, other}, plainCell, fadingCell)
}

func batchOnce(f *fixture) {
	b := under(seen("batch", plainCell, 1), seen("second", plainCell, 1))
	b.ID, b.Records = "batch", records{note("r", value{N: 1})}
	first := f.commit(b)
	f.Check(!first.Duplicate && len(first.Duplicates) == 0, "the first receipt: %+v", first)
	revision := f.write(over(first.Revision, note("r", value{N: 2})))
	more := b
	more.Observations = append(slices.Clone(b.Observations), seen("third", plainCell, 1))
	more.Records = append(slices.Clone(b.Records), once(note("b", value{})))
	for _, again := range []store.Batch{
		b, // whose revision is stale
		more,
		{Expect: []store.Precondition{expect("r", first.Revision)}},
		{Retract: []string{"never seen"}},
		otherPolicy("2", plainCell),
	} {
		again.ID = "batch"
		receipt := f.commit(again)
		f.Check(receipt.Duplicate && receipt.Revision == 0, "%+v again returns %+v", again, receipt)
	}
	receipts := f.commits(b, store.Batch{ID: "other", Records: records{note("other", value{N: 3})}})
	f.Check(receipts[0].Duplicate && !receipts[1].Duplicate && receipts[1].Revision > 0,
		"a known batch and a new one return %+v", receipts)
	f.finds(by(notes), "other", "r")
	f.has(notes, "other", value{N: 3})
	f.Equal("the revision", f.has(notes, "r", value{N: 2}).Revision, revision)
	f.expect(b.Observations, plainCell)
	f.Check(f.commit(store.Batch{ID: "second"}).Duplicate, "an observation's id is no batch's, too")
}

func anyOrder(f *fixture) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 3 {
		f = f.fresh()
		seen := some(rng, 150)
		seen[0].At = start.Add(-300 * halfLife) // which has nearly faded by now
		delivered := slices.Concat(seen, seen[:50])
		rng.Shuffle(len(delivered), func(i, j int) {
			delivered[i], delivered[j] = delivered[j], delivered[i]
		})
		for len(delivered) > 0 {
			n := min(1+rng.IntN(9), len(delivered))
			f.add(delivered[:n]...)
			delivered = delivered[n:]
		}
		f.expect(seen, store.CellsOf(seen...)...)
		f.setTime(500 * time.Hour)
		f.expect(seen, store.CellsOf(seen...)...)
	}
}

func clockBack(f *fixture) {
	f.add(seen("1", fadingCell, 1))
	before := f.read(fadingCell)
	for _, back := range []time.Duration{time.Hour, 24 * time.Hour, 50 * 365 * 24 * time.Hour} {
		f.setTime(-back)
		mass := f.sums(fadingCell).Mass
		f.Check(mass >= 0 && mass <= 1, "with a clock %v back it counts %v", back, mass)
		f.add(dated(-back, seen(fmt.Sprint(back), plainCell, 1)))
	}
	f.setTime(0)
	f.Equal("a cell", f.read(fadingCell), before)
	f.Equal("the known ids", f.add(seen("1", fadingCell, 1)).Duplicates, []string{"1"})
}

// concurrentSums has callers commit observations and records at the same time. Each caller has some
// alone, and all callers have the others in common, in different orders.
func concurrentSums(f *fixture) {
	const callers, each = 8, 41
	var left atomic.Int64
	handles := f.handles()
	f.parallel(callers, each, func(caller, i int) error {
		own := seen(fmt.Sprintf("%d-%d", caller, i), otherCell, 0.5)
		own.Weight = float64(1+i%16) / 16 // with such weights, sums are exact in any order
		same := fmt.Sprint((i*(2*caller+1) + caller) % each)
		batch := under(own, seen(same, plainCell, 1))
		batch.Records = records{note(own.ID, value{}, "k"), once(note(same, value{}, "same"))}
		receipts, err := handles[caller%len(handles)].Commit(ctx, batch)
		for _, receipt := range receipts {
			left.Add(int64(len(receipt.Left)))
		}
		return err
	})
	// A record is named as well, because cells alone may be a second old.
	read := f.snapshot([]evidence.Cell{otherCell, plainCell}, []store.Ref{ref(notes, "none")})
	sums := make(map[evidence.Cell]evidence.Sums)
	for _, p := range read.Parts {
		sums[p.Cell] = sums[p.Cell].Plus(p.Tally.At(evidence.InstantOf(f.time())))
	}
	other := sums[otherCell]
	f.Equal("mass and reward", [2]float64{other.Mass, other.Reward}, [2]float64{158.5, 79.25})
	f.Equal("the sum of ids from several callers", sums[plainCell].Mass, each)
	f.Equal("the records of one caller each", len(f.ids(by(notes, "k"))), callers*each)
	f.Equal("the records of all callers", len(f.ids(by(notes, "same"))), each)
	f.Equal("the records that receipts call left", left.Load(), (callers-1)*each)
}

func partsInReceipt(f *fixture) {
	sorted := func(parts []evidence.Part) []string {
		texts := repeat(len(parts), func(i int) string { return fmt.Sprintf("%+v", parts[i]) })
		slices.Sort(texts)
		return texts
	}
	as := func(source, id string) observation { return from(source, seen(id, originCell, 1)) }
	f.add(as("ann", "1"), as("bob", "2"), seen("3", otherCell, 1))
	taking := under(as("bob", "7"), seen("8", plainCell, 1))
	taking.Expunge = []store.SourceOf{{Cell: originCell, Source: "ann"}}
	for _, batches := range [][]store.Batch{
		{under(as("cy", "4"), from("ann", seen("5", plainCell, 1)), as("ann", "6"))},
		{under(as("cy", "4"))}, // which is known
		{taking},
		{{ID: "b"}, under(as("", "9")), under(as("dee", "10"))},
	} {
		for i := range batches {
			batches[i].PartsOf = store.CellsOf(batches[i].Observations...)
		}
		for i, receipt := range f.commits(batches...) {
			read := f.read(batches[i].PartsOf...)
			f.Equal("the parts of a receipt", sorted(receipt.Parts), sorted(read))
		}
	}
	one := under(as("ann", "12"), from("ann", seen("13", plainCell, 1)))
	one.PartsOf = []evidence.Cell{plainCell}
	f.Equal("the parts of one cell of two", f.commit(one).Parts, f.read(plainCell))
}

func historyNewestFirst(f *fixture) {
	var added observations
	for i, minutes := range []time.Duration{3, 1, 4, 1, 5} {
		o := dated(-minutes*time.Minute, seen(fmt.Sprint(i), originCell, 0.25))
		o.Weight, o.Channel, o.Source, o.Session = 2.5, "channel", "source", "session"
		added = append(added, o)
	}
	precise := dated(-2*time.Minute+1234567*time.Nanosecond, seen("precise", originCell, 1))
	precise.At = precise.At.In(time.FixedZone("", 3600))
	f.add(append(added, precise)...)
	f.commit(store.Batch{Retract: []string{"2"}})
	precise.At = precise.At.UTC().Truncate(time.Microsecond)
	want := observations{added[3], added[1], precise, added[0], added[4]}
	f.Equal("the history", f.history(originCell), want)
	f.Equal("the history of no evidence", f.history(cell(origin, "i", "none")), nil)
}

func listInOrder(f *fixture) {
	var want []evidence.Cell
	for _, item := range []string{"", "a", "b"} {
		for _, name := range []string{"m", "n"} {
			want = append(want, cell(plain, item, name))
			f.add(seen(item+name, cell(plain, item, name), 1))
		}
	}
	for _, scope := range []string{"scope2", "", "a/c", "gone"} {
		f.add(seen("in "+scope, evidence.Cell{Kind: plain, Scope: scope, Item: "a"}, 1))
	}
	f.add(seen("otherwise", evidence.Cell{Kind: fading, Scope: "c", Item: "a"}, 1))
	f.run(store.Job{Reset: []store.Selection{{Kind: plain, Scope: "gone"}}})
	var got []evidence.Cell
	for _, part := range all(f, f.store.List(ctx, store.CellQuery{Kind: plain, Scope: "scope"})) {
		got = append(got, part.Cell)
		f.Equal("the sum of a listed cell", part.Tally.Mass, 1)
	}
	f.Equal("the listed cells", got, want)
	f.Equal("the cells of a scope without", f.cells(store.CellQuery{Kind: plain, Scope: "none"}), nil)
	scopes := []string{"", "a/c", "scope", "scope2"}
	f.Equal("the scopes", all(f, f.store.Scopes(ctx, plain)), scopes)
	f.Equal("the scopes of an unknown kind", all(f, f.store.Scopes(ctx, "unheard")), nil)
}

// listSample asks for a sample. A store that draws no samples lists everything. A store that draws
// lists whole items in order, reports how many it gave of how many, and prefers neither some names
// nor some arrivals.
func listSample(f *fixture) {
	const items, most = 400, 200
	early := make(map[string]bool) // whether an item was among the first to arrive
	var added observations
	for i := range items {
		item := fmt.Sprintf("%03d", i*7%items)
		early[item] = i < items/2
		added = append(added, seen(item+"a", cell(plain, item, "a"), 1),
			seen(item+"b", cell(plain, item, "b"), 1))
	}
	f.add(added...)
	sample := store.Sample{Most: items}
	q := store.CellQuery{Kind: plain, Scope: "scope", Sample: &sample}
	got := len(f.cells(q))
	f.Check(sample.All == 0 && got == 2*items,
		"a sample of all %d items has %d cells, and reports %+v", items, got, sample)
	sample = store.Sample{Most: most}
	given, small, soon := 0, 0, 0
	for pair := range slices.Chunk(f.cells(q), 2) {
		item := pair[0].Item
		f.Equal("the cells of an item in a sample", pair,
			[]evidence.Cell{cell(plain, item, "a"), cell(plain, item, "b")})
		given++
		if item < "200" {
			small++
		}
		if early[item] {
			soon++
		}
	}
	f.Check(sample.All == 0 && given == items || given > most/5 && given < 2*most &&
		sample.Given == given && sample.All >= items/3 && sample.All <= 3*items,
		"a sample of about %d of %d items has %d, and reports %+v", most, items, given, sample)
	for _, n := range []int{small, soon} {
		f.Check(5*n >= given && 5*n <= 4*given,
			"of %d items, %d have a name in the first half, and %d came in the first half",
			given, small, soon)
	}
}

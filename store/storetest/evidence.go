package storetest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

func readsBack(f *fixture) {
	for i, reward := range []float64{1, 0.25, 0.5} {
		o := dated(-time.Duration(i)*time.Minute, seen(fmt.Sprint(i), plainCell, reward))
		o.Weight = float64(i + 1)
		f.add(o)
	}
	one := func(minutes time.Duration) evidence.Count {
		return evidence.Count{N: 1, Last: evidence.InstantOf(start.Add(minutes * time.Minute))}
	}
	f.Equal("three observations", f.tally(plainCell), evidence.Tally{
		Mass: 6, Squares: 14, Reward: 3, RewardSquares: 1.875,
		Positive: one(0), Negative: one(-1), Neutral: one(-2),
	})
	f.Equal("the parts of a cell without evidence", f.read(otherCell), nil)
}

func idOnce(f *fixture) {
	first, other := seen("once", plainCell, 1), seen("other", plainCell, 0)
	f.Equal("the known ids at first", f.add(first).Duplicates, nil)
	again := dated(-time.Hour, first)
	again.Reward = 0 // the store must not look at this
	f.Equal("the known ids", f.add(again, other, other).Duplicates, []string{"once"})
	elsewhere := again
	elsewhere.Cell = otherCell
	f.Equal("the known ids, each once", f.add(again, elsewhere).Duplicates, []string{"once"})
	f.after("a batch with an id that was known, and with the new id %q twice in one cell", other.ID)
	f.expect(observations{first, other}, plainCell, otherCell)
}

func idOnceConcurrently(f *fixture) {
	const callers, ids = 8, 101
	f.parallel(callers, ids, func(caller, i int) error {
		// Each caller goes through the ids in another order.
		id := fmt.Sprint((i*(2*caller+1) + caller) % ids)
		_, err := f.store.Commit(ctx, under(seen(id, plainCell, 1)))
		return err
	})
	f.Equal("the sum of ids from several callers", f.sums(plainCell).Mass, ids)
}

func idOfSeveralCells(f *fixture) {
	both := observations{seen("event", plainCell, 1), seen("event", fadingCell, 0)}
	f.add(both...)
	f.add(both...)
	f.expect(both, plainCell, fadingCell)
	f.commit(store.Batch{Retract: []string{"event"}})
	f.expect(nil, plainCell, fadingCell)
}

func batchOnce(f *fixture) {
	batch := under(seen("batch", plainCell, 1), seen("second", plainCell, 1))
	batch.ID, batch.Records = "batch", records{once(note("a", value{Text: "did"}))}
	receipt := f.commit(batch)
	f.Check(!receipt.Duplicate && len(receipt.Duplicates) == 0, "the first receipt: %+v", receipt)
	batch.Observations = append(batch.Observations, seen("third", plainCell, 1))
	batch.Records = append(batch.Records, once(note("b", value{Text: "did"})))
	f.Check(f.commit(batch).Duplicate, "a batch whose id is known is no duplicate")
	f.Equal("the sum of a batch that came twice", f.sums(plainCell).Mass, 2)
	f.finds(by(notes), "a")
	f.add(seen("spent", plainCell, 1))
	spent := store.Batch{ID: "spent", Observations: observations{seen("fourth", plainCell, 1)}}
	f.Check(f.commit(spent).Duplicate, "a batch with the id of an observation is no duplicate")
}

func invalidInput(f *fixture) {
	for field, spoil := range map[string]func(*observation){
		"ID":        func(o *observation) { o.ID = "" },
		"Cell.Kind": func(o *observation) { o.Cell.Kind = "" },
		"Cell":      func(o *observation) { o.Cell.Item, o.Cell.Name = "", "" },
		"Cell.Item": func(o *observation) { o.Cell.Item = "not \xff UTF-8" },
		"Cell.Name": func(o *observation) { o.Cell.Name = strings.Repeat("n", evidence.MaxText+1) },
		"Source":    func(o *observation) { o.Source = "a\x00b" },
		"At":        func(o *observation) { o.At = time.Time{} },
		"Session":   func(o *observation) { o.Session = "\x00" },
		"Channel":   func(o *observation) { o.Channel = "\xc3" },
	} {
		f.invalid(field, spoil)
	}
	for _, x := range []float64{
		math.NaN(), math.Inf(1), math.Inf(-1), -1, -math.SmallestNonzeroFloat64, math.MaxFloat64,
	} {
		f.invalid("Reward", func(o *observation) { o.Reward = x })
		f.invalid("Weight", func(o *observation) { o.Weight = x })
		f.invalid("Share", func(o *observation) { o.Share = x })
	}
	for _, at := range []time.Time{
		start.AddDate(-400, 0, 0), start.AddDate(9000, 0, 0), time.Unix(math.MinInt64, 0),
	} {
		f.invalid("At", func(o *observation) { o.At = at })
	}
	f.expect(nil, plainCell)
}

// invalid commits an observation that must be refused for a field.
func (f *fixture) invalid(field string, spoil func(*observation)) {
	o := seen("id", plainCell, 1)
	spoil(&o)
	f.Equal("the field at fault", faultOf(f.refused(under(o))), "Observations[0]."+field)
}

func futureRefused(f *fixture) {
	f.invalid("At", func(o *observation) { o.At = start.Add(evidence.MaxSkew + time.Second) })
	f.add(dated(evidence.MaxSkew, seen("ahead", fadingCell, 1)))
	mass := f.sums(fadingCell).Mass
	f.Check(math.Abs(mass-1) <= 1e-9, "an observation ahead of the clock counts %v, want 1", mass)
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

func concurrentSums(f *fixture) {
	const callers, each = 16, 40
	f.parallel(callers, each, func(caller, i int) error {
		o := seen(fmt.Sprintf("%d-%d", caller, i), plainCell, 0.5)
		o.Weight = float64(1+i%16) / 16 // with such weights, sums are exact in any order
		other := o
		other.Cell = otherCell
		_, err := f.store.Commit(ctx, under(o, other))
		return err
	})
	for _, c := range []evidence.Cell{plainCell, otherCell} {
		sums := f.sums(c)
		f.Equal("mass and reward", [2]float64{sums.Mass, sums.Reward}, [2]float64{308, 154})
	}
}

// lookalikes are texts that look alike or mean something to databases.
var lookalikes = []string{
	"a", "A", "a ", " a", "ä", "a\u0308", "a:b", "a|b", "a/b", "a'b", `a"b`, `a\b`, "a\nb", "%", "_",
	"a%", "',$1);--", "名前", "🙂", "\ufeffa", "null", "0", "a=b",
}

func cellsApart(f *fixture) {
	var cells []evidence.Cell
	for _, text := range lookalikes {
		cells = append(cells,
			evidence.Cell{Kind: plain, Scope: text, Item: "x"},
			evidence.Cell{Kind: plain, Scope: "x", Item: text},
			evidence.Cell{Kind: plain, Scope: "x", Name: text},
			evidence.Cell{Kind: plain, Scope: "x", Item: text, Name: "x"},
			evidence.Cell{Kind: plain + text, Item: text})
	}
	for i, c := range cells {
		o := seen(fmt.Sprint("cell ", i), c, 1)
		o.Weight = float64(i + 1)
		f.add(o)
	}
	for i, c := range cells {
		f.Equal(fmt.Sprintf("the sum of cell %q", c), f.tally(c).Mass, float64(i+1))
	}
	for i, text := range lookalikes {
		f.Equal("the known ids", f.add(seen(text, cells[i], 0)).Duplicates, nil)
	}
}

func partsInOrder(f *fixture) {
	sibling := cell(origin, "i", "m")
	for i, key := range [][2]string{{"b", "x"}, {"a", "y"}, {"", ""}, {"a", "x"}, {"b", ""}} {
		o := from(key[1], seen(fmt.Sprint(i), originCell, 1))
		o.Channel = key[0]
		f.add(o)
	}
	f.add(seen("sibling", sibling, 1))
	read := store.Snapshot{Parts: []evidence.Part{{Channel: "what was there"}}}
	cells := []evidence.Cell{sibling, cell(origin, "i", "none"), originCell, sibling}
	f.Must("Read", f.store.Read(ctx, &read, cells, nil))
	var got [][3]string
	for _, p := range read.Parts {
		got = append(got, [3]string{p.Cell.Name, p.Channel, p.Source})
	}
	f.Equal("the parts", got, [][3]string{
		{"", "what was there", ""}, {"m", "", ""},
		{"n", "", ""}, {"n", "a", "x"}, {"n", "a", "y"}, {"n", "b", ""}, {"n", "b", "x"},
		{"m", "", ""},
	})
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
	f.Equal("the parts that no batch asked for", f.add(as("", "11")).Parts, nil)
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
	f.add(seen("elsewhere", evidence.Cell{Kind: plain, Scope: "scope2", Item: "a"}, 1),
		seen("otherwise", cell(fading, "a", "n"), 1))
	var got []evidence.Cell
	for _, part := range all(f, f.store.List(ctx, store.CellQuery{Kind: plain, Scope: "scope"})) {
		got = append(got, part.Cell)
		f.Equal("the sum of a listed cell", part.Tally.Mass, 1)
	}
	f.Equal("the listed cells", got, want)
	empty := all(f, f.store.List(ctx, store.CellQuery{Kind: plain}))
	f.Equal("the parts of an empty scope", empty, nil)
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
	got := f.cells(q)
	f.Check(sample.All == 0 && len(got) == 2*items,
		"a sample of all %d items has %d cells, and tells of %+v", items, len(got), sample)
	sample = store.Sample{Most: most}
	got = f.cells(q)
	var want []evidence.Cell
	small, soon := 0, 0 // items with a name in the first half, and items that came in the first half
	for _, c := range got {
		if c.Name != "a" {
			continue
		}
		want = append(want, c, cell(plain, c.Item, "b"))
		if c.Item < "200" {
			small++
		}
		if early[c.Item] {
			soon++
		}
	}
	f.listed("the cells of a sample, which has whole items", got, want...)
	given := len(want) / 2
	f.Check(sample.All == 0 && given == items || given > most/5 && given < 2*most &&
		sample.Given == given && sample.All >= items/3 && sample.All <= 3*items,
		"a sample of about %d of %d items has %d, and tells of %+v", most, items, given, sample)
	for _, n := range []int{small, soon} {
		f.Check(5*n >= given && 5*n <= 4*given,
			"of %d items, %d have a name in the first half, and %d came in the first half",
			given, small, soon)
	}
}

func scopesInOrder(f *fixture) {
	for _, scope := range []string{"b", "", "a/c", "gone"} {
		c := evidence.Cell{Kind: plain, Scope: scope, Item: "i"}
		f.add(seen("1 "+scope, c, 1), seen("2 "+scope, c, 1))
	}
	f.add(seen("otherwise", evidence.Cell{Kind: fading, Scope: "c", Item: "i"}, 1))
	f.run(store.Job{Reset: []store.Selection{{Kind: plain, Scope: "gone"}}})
	f.Equal("the scopes", all(f, f.store.Scopes(ctx, plain)), []string{"", "a/c", "b"})
	f.Equal("the scopes of an unknown kind", all(f, f.store.Scopes(ctx, "unheard")), nil)
}

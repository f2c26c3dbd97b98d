package storetest

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

func readsBack(t tb, s Subject) {
	f := newFixture(t, s)
	for i, reward := range []float64{1, 0.25, 0.5} {
		o := observation(fmt.Sprint(i), cell(plain, "i", "n"), reward)
		o.Weight = float64(i + 1)
		o.At = start.Add(-time.Duration(i) * time.Minute)
		f.add(o)
	}
	parts := f.read(cell(plain, "i", "n"))
	if len(parts) != 1 {
		t.Fatalf("a cell with three observations has %d parts, want 1", len(parts))
	}
	at := func(i int) evidence.Instant { return evidence.InstantOf(start.Add(-time.Duration(i) * time.Minute)) }
	want := evidence.Part{Cell: cell(plain, "i", "n"), Tally: evidence.Tally{
		Mass: 6, Squares: 14, Reward: 3, RewardSquares: 1.875,
		Positive: evidence.Count{N: 1, Last: at(0)},
		Negative: evidence.Count{N: 1, Last: at(1)},
		Neutral:  evidence.Count{N: 1, Last: at(2)},
	}}
	if parts[0] != want {
		t.Errorf("read %+v, want %+v", parts[0], want)
	}
	if parts := f.read(cell(plain, "i", "other")); len(parts) != 0 {
		t.Errorf("a cell without evidence has parts: %+v", parts)
	}
}

// shares: what two sources cause together is as much evidence as what one causes alone, also after one of them is taken back.
func shares(t tb, s Subject) {
	f := newFixture(t, s)
	c := cell(plain, "i", "n")
	f.add(evidence.Observation{ID: "ann", Cell: c, Source: "ann", Reward: 1, Weight: 2, Share: 0.25, At: start})
	f.add(evidence.Observation{ID: "bob", Cell: c, Source: "bob", Reward: 0, Weight: 2, Share: 0.75, At: start})
	both := evidence.Tally{
		Mass: 2, Squares: 4, Reward: 0.5, RewardSquares: 0.5,
		Positive: evidence.Count{N: 1, Last: evidence.InstantOf(start)}, Negative: evidence.Count{N: 1, Last: evidence.InstantOf(start)},
	}
	if parts := f.read(c); len(parts) != 1 || parts[0].Tally != both {
		t.Errorf("the shares of an event are %+v, want %+v", parts, both)
	}
	f.commit(store.Batch{Expunge: []string{"bob"}})
	one := evidence.Tally{Mass: 0.5, Squares: 1, Reward: 0.5, RewardSquares: 0.5, Positive: both.Positive}
	if parts := f.read(c); len(parts) != 1 || parts[0].Tally != one {
		t.Errorf("one share of an event is %+v, want %+v", parts, one)
	}
}

func weightZero(t tb, s Subject) {
	f := newFixture(t, s)
	c := cell(fading, "i", "n")
	o := observation("zero", c, 1)
	o.Weight = 0
	f.add(o)
	if parts := f.read(c); len(parts) != 0 {
		t.Errorf("an observation of weight 0 left %+v", parts)
	}
	o.Weight = 1
	if receipt := f.add(o); !reflect.DeepEqual(receipt.Duplicates, []string{"zero"}) {
		t.Errorf("the id of an observation of weight 0 is not known: %+v", receipt)
	}
}

func idOnce(t tb, s Subject) {
	f := newFixture(t, s)
	c := cell(plain, "i", "n")
	o := observation("once", c, 1)
	if receipt := f.add(o); receipt.Duplicate || len(receipt.Duplicates) > 0 {
		t.Errorf("the first of an id is called a duplicate: %+v", receipt)
	}
	other := observation("other", c, 0)
	o.At, o.Reward = o.At.Add(-time.Hour), 0 // the store must not look at this
	receipt := f.add(o, other, other)
	if !reflect.DeepEqual(receipt.Duplicates, []string{"once"}) {
		t.Errorf("duplicates are %q, want the id seen before", receipt.Duplicates)
	}
	o.Cell = cell(plain, "elsewhere", "n")
	f.add(o)
	f.expect("after deliveries in double", []evidence.Observation{observation("once", c, 1), other}, c, o.Cell)
}

func idOnceConcurrently(t tb, s Subject) {
	f := newFixture(t, s)
	const callers, ids = 8, 101
	c := cell(plain, "i", "n")
	f.parallel(callers, func(caller int) error {
		for i := range ids {
			// Each caller goes through the ids in an order of its own.
			o := observation(fmt.Sprint((i*(2*caller+1)+caller)%ids), c, 1)
			if _, err := f.store.Commit(ctx, store.Batch{Observations: []evidence.Observation{o}}); err != nil {
				return err
			}
		}
		return nil
	})
	if got := f.sums(c).Mass; got != ids {
		t.Errorf("%d ids, each from %d callers, count %v", ids, callers, got)
	}
}

func idOfSeveralCells(t tb, s Subject) {
	f := newFixture(t, s)
	a, b := cell(plain, "i", "a"), cell(fading, "j", "b")
	both := []evidence.Observation{observation("event", a, 1), observation("event", b, 0)}
	f.add(both...)
	f.add(both...)
	f.expect("an event of two cells, delivered twice", both, a, b)
	f.commit(store.Batch{Retract: []string{"event"}})
	f.expect("the event retracted", nil, a, b)
}

func batchOnce(t tb, s Subject) {
	f := newFixture(t, s)
	c := cell(plain, "i", "n")
	batch := store.Batch{
		ID:           "batch",
		Observations: []evidence.Observation{observation("batch", c, 1), observation("second", c, 1)},
		Records:      []store.Record{once(record(notes, "a", value{Text: "did"}))},
	}
	if receipt := f.commit(batch); receipt.Duplicate || len(receipt.Duplicates) > 0 {
		t.Errorf("the first batch of an id is called a duplicate: %+v", receipt)
	}
	batch.Observations = append(batch.Observations, observation("third", c, 1))
	batch.Records = append(batch.Records, once(record(notes, "b", value{Text: "did"})))
	if receipt := f.commit(batch); !receipt.Duplicate {
		t.Errorf("a batch whose id is known is not called a duplicate: %+v", receipt)
	}
	if got := f.sums(c).Mass; got != 2 {
		t.Errorf("a batch delivered twice counts %v, want 2", got)
	}
	f.finds("after a batch delivered twice", store.Query{Kind: notes}, "a")
	f.add(observation("spent", c, 1))
	if receipt := f.commit(store.Batch{ID: "spent", Observations: []evidence.Observation{observation("fourth", c, 1)}}); !receipt.Duplicate {
		t.Errorf("a batch whose id is that of an observation is not called a duplicate: %+v", receipt)
	}
}

func allOrNothing(t tb, s Subject) {
	f := newFixture(t, s)
	opened, fresh := cell(fading, "i", "opened"), cell(fading, "i", "fresh")
	f.add(observation("0", opened, 1))
	wrong := observation("wrong", opened, 1)
	wrong.Reward = 2
	for what, spoil := range map[string]func(*store.Batch){
		"another policy":    func(b *store.Batch) { b.Policies = nil },
		"an invalid reward": func(b *store.Batch) { b.Observations = append(b.Observations, wrong) },
		"an unknown id":     func(b *store.Batch) { b.Retract = []string{"never seen"} },
		"a nameless record": func(b *store.Batch) { b.Records = append(b.Records, record(notes, "", value{})) },
	} {
		batch := store.Batch{
			ID:           "batch",
			Policies:     policies,
			Observations: []evidence.Observation{observation("1", fresh, 1), observation("2", opened, 1)},
			Records:      []store.Record{record(notes, "a", value{Text: "did"}), once(record(notes, "e", value{}))},
		}
		spoil(&batch)
		_ = f.refused(batch)
		f.expect("after a batch refused for "+what, []evidence.Observation{observation("0", opened, 1)}, opened, fresh)
		f.gone("after a batch refused for "+what, notes, "a")
		f.gone("after a batch refused for "+what, notes, "e")
	}
	if receipt := f.add(observation("1", fresh, 1)); len(receipt.Duplicates) > 0 {
		t.Errorf("a refused batch made its ids known")
	}
}

func invalidInput(t tb, s Subject) {
	f := newFixture(t, s)
	c := cell(plain, "i", "n")
	for field, spoil := range map[string]func(*evidence.Observation){
		"ID":        func(o *evidence.Observation) { o.ID = "" },
		"Cell.Kind": func(o *evidence.Observation) { o.Cell.Kind = "" },
		"Cell":      func(o *evidence.Observation) { o.Cell = evidence.Cell{Kind: plain, Scope: "scope"} },
		"Cell.Item": func(o *evidence.Observation) { o.Cell.Item = "not \xff UTF-8" },
		"Cell.Name": func(o *evidence.Observation) { o.Cell.Name = strings.Repeat("n", evidence.MaxText+1) },
		"Source":    func(o *evidence.Observation) { o.Source = "a\x00b" },
		"At":        func(o *evidence.Observation) { o.At = time.Time{} },
		"Session":   func(o *evidence.Observation) { o.Session = "\x00" },
		"Channel":   func(o *evidence.Observation) { o.Channel = "\xc3" },
	} {
		o := observation("id", c, 1)
		spoil(&o)
		f.refusedField(o, field)
	}
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, -math.SmallestNonzeroFloat64, math.MaxFloat64} {
		o := observation("id", c, x)
		f.refusedField(o, "Reward")
		o = observation("id", c, 1)
		o.Weight = x
		f.refusedField(o, "Weight")
		o = observation("id", c, 1)
		o.Share = x
		f.refusedField(o, "Share")
	}
	for _, at := range []time.Time{start.AddDate(-400, 0, 0), start.AddDate(9000, 0, 0), time.Unix(math.MinInt64, 0)} {
		o := observation("id", c, 1)
		o.At = at
		f.refusedField(o, "At")
	}
	f.expect("after invalid input", nil, c)
}

func (f *fixture) refusedField(o evidence.Observation, field string) {
	f.Helper()
	err := f.refused(store.Batch{Observations: []evidence.Observation{o}})
	var fault *heed.InputError
	if !errors.As(err, &fault) || fault.Field != "Observations[0]."+field {
		f.Errorf("an observation with an invalid %s is refused with %q, which is no InputError of that field", field, err)
	}
}

func futureRefused(t tb, s Subject) {
	f := newFixture(t, s)
	c := cell(fading, "i", "n")
	o := observation("ahead", c, 1)
	o.At = start.Add(evidence.MaxSkew + time.Second)
	f.refusedField(o, "At")
	o.At = start.Add(evidence.MaxSkew)
	f.add(o)
	if got := f.sums(c).Mass; math.Abs(got-1) > 1e-9 {
		t.Errorf("an observation ahead of the clock counts %v, want 1", got)
	}
}

func anyOrder(t tb, s Subject) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 3 {
		observations, cells := some(rng, 150)
		f := newFixture(t, s)
		delivered := append([]evidence.Observation(nil), observations...)
		delivered = append(delivered, observations[:50]...) // some come twice
		rng.Shuffle(len(delivered), func(i, j int) { delivered[i], delivered[j] = delivered[j], delivered[i] })
		for len(delivered) > 0 {
			n := min(1+rng.IntN(9), len(delivered))
			f.add(delivered[:n]...)
			delivered = delivered[n:]
		}
		f.expect("shuffled, doubled and split", observations, cells...)
		f.setTime(start.Add(500 * time.Hour))
		f.expect("500 hours later", observations, cells...)
	}
}

func lateEvidence(t tb, s Subject) {
	f := newFixture(t, s)
	c := cell(fading, "i", "n")
	late := observation("late", c, 1)
	late.At = start.Add(-300 * halfLife)
	less := observation("less late", c, 0)
	less.At = start.Add(-halfLife)
	observations := []evidence.Observation{observation("now", c, 1), late, less}
	for _, o := range observations {
		f.add(o)
	}
	f.expect("late observations", observations, c)
}

func clockBack(t tb, s Subject) {
	f := newFixture(t, s)
	c := cell(fading, "i", "n")
	f.add(observation("1", c, 1))
	before := f.state(c)
	for _, back := range []time.Duration{time.Hour, 24 * time.Hour, 50 * 365 * 24 * time.Hour} {
		f.setTime(start.Add(-back))
		if got := f.sums(c).Mass; !(got >= 0 && got <= 1) {
			t.Errorf("with a clock %v back an observation counts %v", back, got)
		}
		f.add(evidence.Observation{ID: fmt.Sprint(back), Cell: cell(plain, "i", "n"), Weight: 1, At: f.time()})
	}
	f.setTime(start)
	if got := f.state(c); !reflect.DeepEqual(got, before) {
		t.Errorf("a clock that went back and came again changed %+v to %+v", before, got)
	}
	if receipt := f.add(observation("1", c, 1)); len(receipt.Duplicates) != 1 {
		t.Errorf("a clock that went back made an id unknown")
	}
}

func concurrentSums(t tb, s Subject) {
	f := newFixture(t, s)
	const callers, each = 16, 40
	c, d := cell(plain, "i", "n"), cell(plain, "j", "n")
	f.parallel(callers, func(caller int) error {
		for i := range each {
			o := observation(fmt.Sprintf("%d-%d", caller, i), c, float64(i%65)/64)
			o.Weight = float64(1+i%16) / 16 // with such weights sums are exact in any order
			o2 := o
			o2.Cell = d
			if _, err := f.store.Commit(ctx, store.Batch{Observations: []evidence.Observation{o, o2}}); err != nil {
				return err
			}
		}
		return nil
	})
	var mass, reward float64
	for i := range each {
		mass += float64(1+i%16) / 16 * callers
		reward += float64(1+i%16) / 16 * float64(i%65) / 64 * callers
	}
	for _, c := range []evidence.Cell{c, d} {
		if got := f.sums(c); got.Mass != mass || got.Reward != reward {
			t.Errorf("concurrent commits sum to %v of %v, want %v of %v exactly", got.Reward, got.Mass, reward, mass)
		}
	}
}

func cellsApart(t tb, s Subject) {
	f := newFixture(t, s)
	texts := []string{"a", "A", "a ", "ä", "a\u0308", "a:b", "a|b", "a/b", "a'b", `a"b`, `a\b`, "a\nb", "%", "_", "a%", "',$1);--", "名前", "🙂", "\ufeffa"}
	var cells []evidence.Cell
	for _, text := range texts {
		cells = append(cells,
			evidence.Cell{Kind: plain, Scope: text, Item: "x"},
			evidence.Cell{Kind: plain, Scope: "x", Item: text},
			evidence.Cell{Kind: plain, Scope: "x", Name: text},
			evidence.Cell{Kind: plain, Scope: "x", Item: text, Name: "x"},
			evidence.Cell{Kind: plain + text, Item: text})
	}
	for i, c := range cells {
		o := observation(fmt.Sprintf("%d", i), c, 1)
		o.Weight = float64(i + 1)
		f.add(o)
	}
	for i, c := range cells {
		parts := f.read(c)
		if len(parts) != 1 || parts[0].Cell != c || parts[0].Tally.Mass != float64(i+1) {
			t.Errorf("cell %q of %d reads as %+v", c, i, parts)
		}
	}
	for i, text := range texts {
		if receipt := f.add(observation(text, cells[i], 0)); len(receipt.Duplicates) > 0 {
			t.Errorf("id %q passes for one that was seen", text)
		}
	}
}

func partsInOrder(t tb, s Subject) {
	f := newFixture(t, s)
	c, d := cell(origin, "i", "n"), cell(origin, "i", "m")
	froms := [][2]string{{"b", "x"}, {"a", "y"}, {"", ""}, {"a", "x"}, {"b", ""}}
	for i, from := range froms {
		o := observation(fmt.Sprint(i), c, 1)
		o.Channel, o.Source = from[0], from[1]
		f.add(o)
	}
	f.add(observation("d", d, 1))
	before := evidence.Part{Channel: "what was there"}
	read := store.Snapshot{Parts: []evidence.Part{before}}
	if err := f.store.Read(ctx, &read, []evidence.Cell{d, cell(origin, "i", "none"), c, d}, nil); err != nil {
		t.Fatalf("Read: %v", err)
	}
	parts := read.Parts
	want := []string{"what was there/", "m //", "n //", "n a/x", "n a/y", "n b/", "n b/x", "m //"}
	var got []string
	for i, p := range parts {
		if i == 0 && p == before {
			got = append(got, "what was there/")
			continue
		}
		text := p.Cell.Name + " " + p.Channel + "/" + p.Source
		if p.Channel == "" {
			text = p.Cell.Name + " //"
		}
		got = append(got, text)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read the parts %q, want %q", got, want)
	}
}

func partsInReceipt(t tb, s Subject) {
	f := newFixture(t, s)
	c, d, e := cell(origin, "i", "n"), cell(plain, "i", "m"), cell(plain, "i", "untouched")
	from := func(id string, c evidence.Cell, source string) evidence.Observation {
		o := observation(id, c, 1)
		o.Source = source
		return o
	}
	sorted := func(parts []evidence.Part) []evidence.Part {
		return slices.SortedFunc(slices.Values(parts), func(a, b evidence.Part) int {
			return cmp.Or(evidence.Cell.Compare(a.Cell, b.Cell), cmp.Compare(a.Channel, b.Channel),
				cmp.Compare(a.Source, b.Source))
		})
	}
	f.add(from("1", c, "ann"), from("2", c, "bob"), from("3", e, ""))
	for round, batches := range [][]store.Batch{
		{{Observations: []evidence.Observation{from("4", c, "cy"), from("5", d, "ann"), from("6", c, "ann")}}},
		{{Observations: []evidence.Observation{from("4", c, "cy")}}}, // which is known
		{{Expunge: []string{"ann"}, Observations: []evidence.Observation{from("7", c, "bob"), from("8", d, "")}}},
		{{ID: "b"}, {Observations: []evidence.Observation{from("9", c, "")}}, {Observations: []evidence.Observation{from("10", c, "dee")}}},
	} {
		for i := range batches {
			b := &batches[i]
			b.Policies, b.PartsOf = policies, store.CellsOf(b.Observations...)
		}
		for i, receipt := range f.commits(batches...) {
			got, want := sorted(receipt.Parts), sorted(f.read(batches[i].PartsOf...))
			if !slices.Equal(got, want) {
				t.Errorf("in round %d, the receipt of batch %d has the parts\n%+v\nand a read has\n%+v", round, i, got, want)
			}
		}
	}
	if receipt := f.add(observation("11", c, 1)); len(receipt.Parts) > 0 {
		t.Errorf("a receipt has parts although the batch asked for none: %+v", receipt.Parts)
	}
	some := store.Batch{Policies: policies, PartsOf: []evidence.Cell{d}}
	some.Observations = []evidence.Observation{from("12", c, "ann"), from("13", d, "ann")}
	for _, receipt := range f.commits(some) {
		got, want := sorted(receipt.Parts), sorted(f.read(d))
		if !slices.Equal(got, want) {
			t.Errorf("the batch asked for the parts\n%+v\nand the receipt has\n%+v", want, got)
		}
	}
}

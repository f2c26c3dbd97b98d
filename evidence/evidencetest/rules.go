package evidencetest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
)

// start is the time at which the suite's clock stands first.
var start = time.Date(2026, 3, 14, 15, 9, 26, 535897000, time.UTC)

// A fixture is a store under test with its clock.
type fixture struct {
	tb
	store evidence.Store
	mu    sync.Mutex
	now   time.Time
}

func newFixture(t tb, newStore NewStore) *fixture {
	t.Helper()
	f := &fixture{tb: t, now: start}
	store, err := newStore(f.time)
	if err != nil {
		t.Fatalf("the store can't be made: %v", err)
	}
	f.store = store
	return f
}

func (f *fixture) time() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

func (f *fixture) setTime(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = now
}

var ctx = context.Background()

func (f *fixture) commit(b evidence.Batch) evidence.Receipt {
	f.Helper()
	receipt, err := f.store.Commit(ctx, b)
	if err != nil {
		f.Fatalf("Commit: %v", err)
	}
	return receipt
}

func (f *fixture) add(observations ...evidence.Observation) evidence.Receipt {
	f.Helper()
	return f.commit(evidence.Batch{Policies: policies, Observations: observations})
}

// refused commits a batch that must be refused.
func (f *fixture) refused(b evidence.Batch) error {
	f.Helper()
	_, err := f.store.Commit(ctx, b)
	if err == nil {
		f.Fatalf("Commit of %+v: no error", b)
	}
	return err
}

func (f *fixture) read(cells ...evidence.Cell) []evidence.Part {
	f.Helper()
	parts, err := f.store.Read(ctx, nil, cells...)
	if err != nil {
		f.Fatalf("Read: %v", err)
	}
	return parts
}

// sums reads one cell, all its parts together.
func (f *fixture) sums(c evidence.Cell) evidence.Sums {
	f.Helper()
	return evidence.Caps{}.Pool(f.read(c), evidence.InstantOf(f.time()))
}

func all[T any](f *fixture, seq iter.Seq2[T, error]) (all []T) {
	f.Helper()
	for one, err := range seq {
		if err != nil {
			f.Fatalf("the loop ended with %v", err)
		}
		all = append(all, one)
	}
	return all
}

// The kinds of cells in the suite, by their policies.
const (
	plain  = "suite.plain"
	fading = "suite.fading"
	origin = "suite.origin" // fades, and keeps origins apart
)

const halfLife = 36 * time.Hour

var policies = map[string]evidence.Policy{
	fading: {HalfLife: halfLife},
	origin: {HalfLife: halfLife, ByOrigin: true},
}

func cell(kind, item, name string) evidence.Cell {
	return evidence.Cell{Kind: kind, Scope: "scope", Item: item, Name: name}
}

func observation(id string, c evidence.Cell, reward float64) evidence.Observation {
	return evidence.Observation{ID: id, Cell: c, Reward: reward, Weight: 1, At: start}
}

// A state is what can be seen of some cells: what two stores must agree on that have seen the same.
type state map[string]evidence.Tally

func (f *fixture) state(cells ...evidence.Cell) state {
	f.Helper()
	seen := make(state)
	for _, part := range f.read(cells...) {
		seen[fmt.Sprintf("%q %q %q", part.Cell, part.Channel, part.Source)] = part.Tally
	}
	return seen
}

// expect compares a state with what the observations add up to, one by one and without any cleverness.
func (f *fixture) expect(what string, observations []evidence.Observation, cells ...evidence.Cell) {
	f.Helper()
	now := evidence.InstantOf(f.time())
	for _, c := range cells {
		want := naive(observations, c, f.time())
		parts := f.read(c)
		if len(parts) != len(want) {
			f.Errorf("%s: %v has %d parts, want %d", what, c, len(parts), len(want))
			continue
		}
		for _, part := range parts {
			w, ok := want[[2]string{part.Channel, part.Source}]
			switch {
			case !ok:
				f.Errorf("%s: %v has a part of channel %q and source %q", what, c, part.Channel, part.Source)
			case !near(part.Tally.At(now), w.sums):
				f.Errorf("%s: %v is %+v, want %+v", what, c, part.Tally.At(now), w.sums)
			case part.Tally.Positive != w.counts[0], part.Tally.Negative != w.counts[1], part.Tally.Neutral != w.counts[2]:
				f.Errorf("%s: %v counts %v %v %v, want %v", what, c,
					part.Tally.Positive, part.Tally.Negative, part.Tally.Neutral, w.counts)
			}
		}
	}
}

type expected struct {
	sums   evidence.Sums
	counts [3]evidence.Count
}

// naive adds up the observations of a cell, by origin where its kind keeps origins apart.
func naive(observations []evidence.Observation, c evidence.Cell, now time.Time) map[[2]string]*expected {
	policy := policies[c.Kind]
	parts := make(map[[2]string]*expected)
	for _, o := range observations {
		if o.Cell != c || o.Weight == 0 {
			continue
		}
		var from [2]string
		if policy.ByOrigin {
			from = [2]string{o.Channel, o.Source}
		}
		part := parts[from]
		if part == nil {
			part = &expected{}
			parts[from] = part
		}
		fade := 1.
		if policy.HalfLife > 0 {
			fade = math.Exp2(-float64(now.Sub(o.At)) / float64(policy.HalfLife))
		}
		w := o.Weight * fade
		part.sums = part.sums.Plus(evidence.Sums{
			Mass: w, Squares: w * o.Weight, Reward: w * o.Reward, RewardSquares: w * o.Reward * o.Reward,
		})
		count := &part.counts[2]
		switch {
		case o.Reward > 0.5:
			count = &part.counts[0]
		case o.Reward < 0.5:
			count = &part.counts[1]
		}
		count.N++
		count.Last = max(count.Last, evidence.InstantOf(o.At))
	}
	return parts
}

// near compares sums within a relative error of 1e-9.
func near(a, b evidence.Sums) bool {
	closeTo := func(x, y float64) bool { return math.Abs(x-y) <= 1e-9*max(1e-3, math.Abs(x), math.Abs(y)) }
	return closeTo(a.Mass, b.Mass) && closeTo(a.Squares, b.Squares) &&
		closeTo(a.Reward, b.Reward) && closeTo(a.RewardSquares, b.RewardSquares)
}

// some returns random observations of some cells of all kinds, from four sources on two channels.
func some(rng *rand.Rand, n int) (observations []evidence.Observation, cells []evidence.Cell) {
	for _, kind := range []string{plain, fading, origin} {
		for _, name := range []string{"a", "b"} {
			cells = append(cells, cell(kind, "item", name))
		}
	}
	for i := range n {
		observations = append(observations, evidence.Observation{
			ID:   fmt.Sprintf("some-%d", i),
			Cell: cells[rng.IntN(len(cells))],
			// Some rewards are whole, some half and some between, and some weights 0.
			Reward:  []float64{0, 1, 0.5, rng.Float64()}[rng.IntN(4)],
			Weight:  []float64{0, 1, rng.Float64(), 10 * rng.Float64()}[rng.IntN(4)],
			Channel: []string{"", "spoken"}[rng.IntN(2)],
			Source:  []string{"", "ann", "bob", "cy"}[rng.IntN(4)],
			Session: fmt.Sprint(rng.IntN(5)),
			At:      start.Add(-time.Duration(rng.Int64N(int64(100 * 24 * time.Hour)))).Truncate(time.Microsecond),
		})
	}
	return observations, cells
}

func readsBack(t tb, newStore NewStore) {
	f := newFixture(t, newStore)
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

func weightZero(t tb, newStore NewStore) {
	f := newFixture(t, newStore)
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

func idOnce(t tb, newStore NewStore) {
	f := newFixture(t, newStore)
	c := cell(plain, "i", "n")
	o := observation("once", c, 1)
	if receipt := f.add(o); receipt.Duplicate || len(receipt.Duplicates) > 0 {
		t.Errorf("the first of an id is called a duplicate: %+v", receipt)
	}
	other := observation("other", c, 0)
	o.At, o.Reward = o.At.Add(-time.Hour), 0 // what it says now is of no account
	receipt := f.add(o, other, other)
	if !reflect.DeepEqual(receipt.Duplicates, []string{"once"}) {
		t.Errorf("duplicates are %q, want the id seen before", receipt.Duplicates)
	}
	o.Cell = cell(plain, "elsewhere", "n")
	f.add(o)
	f.expect("after deliveries in double", []evidence.Observation{observation("once", c, 1), other}, c, o.Cell)
}

func idOnceConcurrently(t tb, newStore NewStore) {
	f := newFixture(t, newStore)
	const callers, ids = 8, 200
	c := cell(plain, "i", "n")
	f.parallel(callers, func(caller int) error {
		for i := range ids {
			// Each caller goes through the ids in an order of its own.
			o := observation(fmt.Sprint((i*(2*caller+1)+caller)%ids), c, 1)
			if _, err := f.store.Commit(ctx, evidence.Batch{Observations: []evidence.Observation{o}}); err != nil {
				return err
			}
		}
		return nil
	})
	if got := f.sums(c).Mass; got != ids {
		t.Errorf("%d ids, each from %d callers, count %v", ids, callers, got)
	}
}

// parallel runs the function in n goroutines.
func (f *fixture) parallel(n int, do func(i int) error) {
	f.Helper()
	var wait sync.WaitGroup
	failures := make([]error, n)
	for i := range n {
		wait.Add(1)
		go func() {
			defer wait.Done()
			failures[i] = do(i)
		}()
	}
	wait.Wait()
	if err := errors.Join(failures...); err != nil {
		f.Fatalf("concurrent commits: %v", err)
	}
}

func idOfSeveralCells(t tb, newStore NewStore) {
	f := newFixture(t, newStore)
	a, b := cell(plain, "i", "a"), cell(fading, "j", "b")
	both := []evidence.Observation{observation("event", a, 1), observation("event", b, 0)}
	f.add(both...)
	f.add(both...)
	f.expect("an event of two cells, delivered twice", both, a, b)
	f.commit(evidence.Batch{Retract: []string{"event"}})
	f.expect("the event retracted", nil, a, b)
}

func batchOnce(t tb, newStore NewStore) {
	f := newFixture(t, newStore)
	c := cell(plain, "i", "n")
	batch := evidence.Batch{
		ID:           "batch",
		Observations: []evidence.Observation{observation("batch", c, 1), observation("second", c, 1)},
		Audit:        []evidence.AuditEntry{{ID: "a", Action: "did", At: start}},
	}
	if receipt := f.commit(batch); receipt.Duplicate || len(receipt.Duplicates) > 0 {
		t.Errorf("the first batch of an id is called a duplicate: %+v", receipt)
	}
	batch.Observations = append(batch.Observations, observation("third", c, 1))
	batch.Audit = append(batch.Audit, evidence.AuditEntry{ID: "b", Action: "did", At: start})
	if receipt := f.commit(batch); !receipt.Duplicate {
		t.Errorf("a batch whose id is known is not called a duplicate: %+v", receipt)
	}
	if got := f.sums(c).Mass; got != 2 {
		t.Errorf("a batch delivered twice counts %v, want 2", got)
	}
	if got := all(f, f.store.Audit(ctx)); len(got) != 1 {
		t.Errorf("a batch delivered twice left %d audit entries, want 1", len(got))
	}
}

func allOrNothing(t tb, newStore NewStore) {
	f := newFixture(t, newStore)
	opened, fresh := cell(fading, "i", "opened"), cell(fading, "i", "fresh")
	f.add(observation("0", opened, 1))
	wrong := observation("wrong", opened, 1)
	wrong.Reward = 2
	for what, spoil := range map[string]func(*evidence.Batch){
		"another policy":    func(b *evidence.Batch) { b.Policies = nil },
		"an invalid reward": func(b *evidence.Batch) { b.Observations = append(b.Observations, wrong) },
		"an unknown id":     func(b *evidence.Batch) { b.Retract = []string{"never seen"} },
		"a nameless event":  func(b *evidence.Batch) { b.Events = append(b.Events, evidence.Event{Topic: "t", At: start}) },
	} {
		batch := evidence.Batch{
			ID:           "batch",
			Policies:     policies,
			Observations: []evidence.Observation{observation("1", fresh, 1), observation("2", opened, 1)},
			Audit:        []evidence.AuditEntry{{ID: "a", Action: "did", At: start}},
			Events:       []evidence.Event{{ID: "e", Topic: "t", At: start}},
		}
		spoil(&batch)
		_ = f.refused(batch)
		f.expect("after a batch refused for "+what, []evidence.Observation{observation("0", opened, 1)}, opened, fresh)
		if audit, events := all(f, f.store.Audit(ctx)), all(f, f.store.Outbox(ctx)); len(audit)+len(events) > 0 {
			t.Errorf("a batch refused for %s left audit entries %v or events %v", what, audit, events)
		}
	}
	if receipt := f.add(observation("1", fresh, 1)); len(receipt.Duplicates) > 0 {
		t.Errorf("a refused batch made its ids known")
	}
}

func invalidInput(t tb, newStore NewStore) {
	f := newFixture(t, newStore)
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
	err := f.refused(evidence.Batch{Observations: []evidence.Observation{o}})
	var fault *heed.InputError
	if !errors.As(err, &fault) || fault.Field != "Observations[0]."+field {
		f.Errorf("an observation with an invalid %s is refused with %q, which is no InputError of that field", field, err)
	}
}

func futureRefused(t tb, newStore NewStore) {
	f := newFixture(t, newStore)
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

func anyOrder(t tb, newStore NewStore) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 5 {
		observations, cells := some(rng, 150)
		f := newFixture(t, newStore)
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

func lateEvidence(t tb, newStore NewStore) {
	f := newFixture(t, newStore)
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

func clockBack(t tb, newStore NewStore) {
	f := newFixture(t, newStore)
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

func concurrentSums(t tb, newStore NewStore) {
	f := newFixture(t, newStore)
	const callers, each = 16, 100
	c, d := cell(plain, "i", "n"), cell(plain, "j", "n")
	f.parallel(callers, func(caller int) error {
		for i := range each {
			o := observation(fmt.Sprintf("%d-%d", caller, i), c, float64(i%65)/64)
			o.Weight = float64(1+i%16) / 16 // with such weights sums are exact in any order
			o2 := o
			o2.Cell = d
			if _, err := f.store.Commit(ctx, evidence.Batch{Observations: []evidence.Observation{o, o2}}); err != nil {
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

func cellsApart(t tb, newStore NewStore) {
	f := newFixture(t, newStore)
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

func partsInOrder(t tb, newStore NewStore) {
	f := newFixture(t, newStore)
	c, d := cell(origin, "i", "n"), cell(origin, "i", "m")
	froms := [][2]string{{"b", "x"}, {"a", "y"}, {"", ""}, {"a", "x"}, {"b", ""}}
	for i, from := range froms {
		o := observation(fmt.Sprint(i), c, 1)
		o.Channel, o.Source = from[0], from[1]
		f.add(o)
	}
	f.add(observation("d", d, 1))
	before := evidence.Part{Channel: "what was there"}
	parts, err := f.store.Read(ctx, []evidence.Part{before}, d, cell(origin, "i", "none"), c, d)
	if err != nil {
		t.Fatalf("Read: %v", err)
	}
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

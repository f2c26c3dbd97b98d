package storetest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// start is the time at which the suite's clock stands first.
var start = time.Date(2026, 3, 14, 15, 9, 26, 535897000, time.UTC)

// A fixture is a store under test with its clock.
type fixture struct {
	tb
	subject Subject
	options Options
	store   store.Store
	mu      sync.Mutex
	now     time.Time
}

func newFixture(t tb, s Subject) *fixture {
	t.Helper()
	return newLimited(t, s, nil)
}

// newLimited makes a store that is opened with limits.
func newLimited(t tb, s Subject, limits map[string]store.Limits) *fixture {
	t.Helper()
	f := &fixture{tb: t, subject: s, now: start}
	f.options = Options{Now: f.time, Limits: limits}
	st, err := s.New(f.options)
	if err != nil {
		t.Fatalf("the store can't be made: %v", err)
	}
	f.store = st
	f.declare(kinds...)
	return f
}

// handles returns the store and, if there can be one, another handle of it.
func (f *fixture) handles() []store.Store {
	f.Helper()
	if f.subject.Another == nil {
		return []store.Store{f.store}
	}
	other, err := f.subject.Another(f.store, f.options)
	if err == nil {
		err = other.Declare(ctx, kinds...)
	}
	if err != nil {
		f.Fatalf("another handle can't be opened: %v", err)
	}
	return []store.Store{f.store, other}
}

func (f *fixture) declare(kinds ...store.Kind) {
	f.Helper()
	if err := f.store.Declare(ctx, kinds...); err != nil {
		f.Fatalf("Declare: %v", err)
	}
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

// commits commits batches together.
func (f *fixture) commits(batches ...store.Batch) []store.Receipt {
	f.Helper()
	receipts, err := f.store.Commit(ctx, batches...)
	if err != nil {
		f.Fatalf("Commit: %v", err)
	}
	if len(receipts) != len(batches) {
		f.Fatalf("Commit of %d batches returns %d receipts", len(batches), len(receipts))
	}
	return receipts
}

func (f *fixture) commit(b store.Batch) store.Receipt {
	f.Helper()
	return f.commits(b)[0]
}

func (f *fixture) add(observations ...evidence.Observation) store.Receipt {
	f.Helper()
	return f.commit(store.Batch{Policies: policies, Observations: observations})
}

// refused commits batches that must be refused.
func (f *fixture) refused(batches ...store.Batch) error {
	f.Helper()
	_, err := f.store.Commit(ctx, batches...)
	if err == nil {
		f.Fatalf("Commit of %+v: no error", batches)
	}
	return err
}

// refusedBy commits batches that must be refused with this error.
func (f *fixture) refusedBy(want error, batches ...store.Batch) {
	f.Helper()
	if err := f.refused(batches...); !errors.Is(err, want) {
		f.Errorf("Commit: %v, want %v", err, want)
	}
}

func (f *fixture) snapshot(cells []evidence.Cell, refs []store.Ref) (s store.Snapshot) {
	f.Helper()
	if err := f.store.Read(ctx, &s, cells, refs); err != nil {
		f.Fatalf("Read: %v", err)
	}
	return s
}

func (f *fixture) read(cells ...evidence.Cell) []evidence.Part {
	f.Helper()
	return f.snapshot(cells, nil).Parts
}

// sums reads one cell, all its parts together.
func (f *fixture) sums(c evidence.Cell) evidence.Sums {
	f.Helper()
	return evidence.Caps{}.Pool(f.read(c), evidence.InstantOf(f.time()))
}

// The kinds of records in the suite.
const (
	notes  = "suite.note"   // kept for good, and name nobody
	cases  = "suite.case"   // name people
	wholes = "suite.whole"  // go with the person
	brief  = "suite.brief"  // are kept for an hour
	few    = "suite.few"    // are three
	filled = "suite.filled" // are three, and no more are taken
	rare   = "suite.rare"   // have a version, name people, and are kept for an hour
)

var kinds = []store.Kind{
	{Name: notes},
	{Name: cases, Caused: []string{"of", "sources"}, Decided: []string{"by", "approvals.*.actor", "payload.~.by"}},
	{Name: wholes, Caused: []string{"of"}, Whole: true},
	{Name: brief, Limits: store.Limits{For: time.Hour}},
	{Name: few, Limits: store.Limits{Most: 3}},
	{Name: filled, Limits: store.Limits{Most: 3, Refuse: true}},
	{Name: rare, Limits: store.Limits{For: time.Hour}, Caused: []string{"of"}, Versioned: true},
}

// A value is what the suite keeps in records.
type value struct {
	Text      string            `json:"text,omitempty"`
	N         int64             `json:"n,omitempty"`
	X         float64           `json:"x,omitempty"`
	Flag      bool              `json:"flag,omitempty"`
	When      time.Time         `json:"when,omitzero"`
	Of        string            `json:"of,omitempty"`
	By        string            `json:"by,omitempty"`
	Sources   []string          `json:"sources,omitempty"`
	Approvals []approval        `json:"approvals,omitempty"`
	Payload   []byte            `json:"payload,omitempty"`
	Details   map[string]string `json:"details,omitempty"`
}

type approval struct {
	Actor string `json:"actor"`
	Text  string `json:"text,omitempty"`
}

func ref(kind, id string) store.Ref { return store.Ref{Kind: kind, ID: id} }

func place(v value) (id string, at time.Time, keys []string) { return v.Text, start, nil }

// record returns a record to write, that is new and of the start.
func record(kind, id string, v value, keys ...string) store.Record {
	return store.Record{Ref: ref(kind, id), At: start, Keys: keys, Body: store.Of(v)}
}

// over returns the record with the revision that it shall be written over.
func over(r store.Record, revision uint64) store.Record {
	r.Revision = revision
	return r
}

func once(r store.Record) store.Record { return over(r, store.Once) }

func removal(kind, id string, revision uint64) store.Record {
	return store.Record{Ref: ref(kind, id), Revision: revision}
}

func expect(kind, id string, revision uint64) store.Precondition {
	return store.Precondition{Ref: ref(kind, id), Revision: revision}
}

// write commits records and returns the revision that they got.
func (f *fixture) write(records ...store.Record) uint64 {
	f.Helper()
	receipt := f.commit(store.Batch{Records: records})
	if receipt.Revision == 0 || receipt.Revision == store.Once {
		f.Fatalf("a receipt of a batch that writes has the revision %d", receipt.Revision)
	}
	return receipt.Revision
}

// remove removes a record.
func (f *fixture) remove(kind, id string, revision uint64) {
	f.Helper()
	f.commit(store.Batch{Records: []store.Record{removal(kind, id, revision)}})
}

// get reads one record.
func (f *fixture) get(kind, id string) store.Record {
	f.Helper()
	records := f.snapshot(nil, []store.Ref{ref(kind, id)}).Records
	if len(records) != 1 || records[0].Ref != ref(kind, id) {
		f.Fatalf("Read of record %q of kind %q returns %+v", id, kind, records)
	}
	return records[0]
}

func (f *fixture) decode(r store.Record) value {
	f.Helper()
	v, err := store.Decode[value](r.Body)
	if err != nil {
		f.Fatalf("record %q of kind %q can't be decoded: %v", r.ID, r.Kind, err)
	}
	return v
}

// has checks that a record is there and has this value, and returns it.
func (f *fixture) has(what, kind, id string, want value) store.Record {
	f.Helper()
	r := f.get(kind, id)
	if r.Revision == 0 {
		f.Errorf("%s: record %q of kind %q is not there", what, id, kind)
		return r
	}
	if got := f.decode(r); !sameJSON(got, want) {
		f.Errorf("%s: record %q of kind %q is %+v, want %+v", what, id, kind, got, want)
	}
	return r
}

// gone checks that a record is not there.
func (f *fixture) gone(what, kind, id string) {
	f.Helper()
	if r := f.get(kind, id); r.Revision != 0 || !r.Body.IsZero() {
		f.Errorf("%s: record %q of kind %q is there, with revision %d", what, id, kind, r.Revision)
	}
	for r := range f.find(store.Query{Kind: kind}) {
		if r.ID == id {
			f.Errorf("%s: record %q of kind %q is found", what, id, kind)
		}
	}
}

// find yields what a query selects.
func (f *fixture) find(q store.Query) iter.Seq[store.Record] {
	return func(yield func(store.Record) bool) {
		for r, err := range f.store.Find(ctx, q) {
			if err != nil {
				f.Fatalf("Find of %+v: %v", q, err)
			}
			if !yield(r) {
				return
			}
		}
	}
}

// ids returns the ids that a query selects.
func (f *fixture) ids(q store.Query) (ids []string) {
	f.Helper()
	for r := range f.find(q) {
		ids = append(ids, r.ID)
	}
	return ids
}

// finds checks which ids a query selects, in which order.
func (f *fixture) finds(what string, q store.Query, want ...string) {
	f.Helper()
	if got := f.ids(q); !slices.Equal(got, want) {
		f.Errorf("%s: Find yields %q, want %q", what, got, want)
	}
}

// sameJSON compares values by their JSON, so that nil and empty are the same.
func sameJSON(a, b any) bool {
	x, err := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err == nil && err2 == nil && string(x) == string(y)
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
		w := o.Weight * cmp.Or(o.Share, 1) * fade
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
			Share:   []float64{0, 1, 0.25}[rng.IntN(3)],
			Channel: []string{"", "spoken"}[rng.IntN(2)],
			Source:  []string{"", "ann", "bob", "cy"}[rng.IntN(4)],
			Session: fmt.Sprint(rng.IntN(5)),
			At:      start.Add(-time.Duration(rng.Int64N(int64(100 * 24 * time.Hour)))).Truncate(time.Microsecond),
		})
	}
	return observations, cells
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

package memstore_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
)

// Note is what the records of these tests hold.
type note struct {
	Text string `json:"text"`
	By   string `json:"by,omitempty"`
	Seen string `json:"seen,omitempty"`
}

var notes = store.Kind{Name: "note", Decided: []string{"by"}, Caused: []string{"seen"}}

func newStore(t testing.TB, cfg memstore.Config, kinds ...store.Kind) *memstore.Store {
	st, err := memstore.New(cfg)
	require.NoError(t, err)
	require.NoError(t, st.Declare(ctx, kinds...))
	return st
}

func record(id string, revision uint64, at time.Time, n note, keys ...string) store.Record {
	return store.Record{Ref: store.Ref{Kind: "note", ID: id}, Revision: revision, At: at, Keys: keys,
		Body: store.Of(n)}
}

func put(t testing.TB, st store.Store, b ...store.Batch) []store.Receipt {
	receipts, err := st.Commit(ctx, b...)
	require.NoError(t, err)
	return receipts
}

func found(t testing.TB, st store.Store, q store.Query) (ids []string) {
	for r, err := range st.Find(ctx, q) {
		require.NoError(t, err)
		ids = append(ids, r.ID)
	}
	return ids
}

func get(t testing.TB, st store.Store, id string) (store.Record, note) {
	var s store.Snapshot
	require.NoError(t, st.Read(ctx, &s, nil, []store.Ref{{Kind: "note", ID: id}}))
	if s.Records[0].Revision == 0 {
		return s.Records[0], note{}
	}
	n, err := store.Decode[note](s.Records[0].Body)
	require.NoError(t, err)
	return s.Records[0], n
}

func TestStoreKeepsTheContract(t *testing.T) {
	storetest.Run(t, storetest.Subject{
		New: func(o storetest.Options) (store.Store, error) {
			return memstore.New(memstore.Config{Now: o.Now, Retention: store.Retention{Limits: o.Limits}})
		},
		Reopen: func(st store.Store, o storetest.Options) (store.Store, error) {
			return reload(t, st.(*memstore.Store),
				memstore.Config{Now: o.Now, Retention: store.Retention{Limits: o.Limits}}), nil
		},
	})
}

func TestStoreZeroValue(t *testing.T) {
	var st memstore.Store
	assert.Empty(t, found(t, &st, store.Query{Kind: "note"}))
	_, err := st.Commit(ctx, store.Batch{}, store.Batch{
		Records: []store.Record{record("a", 0, start, note{})}})
	fault := (*heed.InputError)(nil)
	require.ErrorAs(t, err, &fault)
	assert.Equal(t, "Batches[1].Records[0].Kind", fault.Field, "an undeclared kind")
	require.NoError(t, st.Declare(ctx, notes))
	put(t, &st, store.Batch{
		Observations: []evidence.Observation{observe("1", time.Now())},
		Records:      []store.Record{record("a", 0, start, note{})},
	})
	assert.Equal(t, []string{"a"}, found(t, &st, store.Query{Kind: "note"}))
	require.NoError(t, st.Sweep(ctx, time.Time{}))
	assert.Empty(t, put(t, &st), "no batch, no receipt")
}

func TestStorePagesAndTies(t *testing.T) {
	st := newStore(t, memstore.Config{}, notes)
	var want []string
	for i := range 1000 {
		id := fmt.Sprint(i)
		put(t, st, store.Batch{Records: []store.Record{record(id, 0,
			start.Add(time.Duration(i/10)*time.Second), note{}, "all=1")}})
		want = append(want, id)
	}
	for _, keys := range [][]string{nil, {"all=1"}} {
		q := store.Query{Kind: "note", Keys: keys, Oldest: true, Limit: 7}
		var got []string
		for {
			n := len(got)
			for r, err := range st.Find(ctx, q) {
				require.NoError(t, err)
				got = append(got, r.ID)
				q.After = r.Place
			}
			if len(got) == n {
				break
			}
		}
		assert.Equal(t, want, got)
	}
	newest := found(t, st, store.Query{Kind: "note", Limit: 3})
	assert.Equal(t, []string{"999", "998", "997"}, newest)
	_, err := st.Commit(ctx, store.Batch{Records: []store.Record{record("5", 3, start, note{})}})
	assert.ErrorIs(t, err, heed.ErrConflict)
}

// TestStoreFindBesideMoves changes the moment of each record while a loop is at it: each is met
// once.
func TestStoreFindBesideMoves(t *testing.T) {
	st := newStore(t, memstore.Config{}, notes)
	const all = 5000
	b := store.Batch{}
	for i := range all {
		b.Records = append(b.Records, record(fmt.Sprint(i), 0, start.Add(time.Duration(i)*time.Second),
			note{}))
	}
	put(t, st, b)
	met := make(map[string]bool)
	for r, err := range st.Find(ctx, store.Query{Kind: "note", Oldest: true}) {
		require.NoError(t, err)
		require.False(t, met[r.ID], "met twice")
		met[r.ID] = true
		now, _ := get(t, st, r.ID) // which is not what was found, if it moved since
		put(t, st, store.Batch{Records: []store.Record{record(r.ID, now.Revision,
			r.At.Add(all*time.Second), note{})}})
		if last, _ := get(t, st, fmt.Sprint(all-1)); len(met) == 100 {
			put(t, st, store.Batch{Records: []store.Record{record(last.ID, last.Revision,
				start.Add(-time.Hour), note{})}})
		}
	}
	assert.Len(t, met, all)
}

// TestStoreFindCostsWhatItReads leaves loops over few and over many records early: both make as
// many copies. A loop that adds a record for each one that it meets ends.
func TestStoreFindCostsWhatItReads(t *testing.T) {
	copies := func(all, read int) float64 {
		st := newStore(t, memstore.Config{}, notes)
		var b store.Batch
		for i := range all {
			b.Records = append(b.Records, record(fmt.Sprint(i), 0, start, note{}, "k=1"))
		}
		put(t, st, b)
		return testing.AllocsPerRun(10, func() {
			n := 0
			for _, err := range st.Find(ctx, store.Query{Kind: "note", Keys: []string{"k=1"}}) {
				require.NoError(t, err)
				if n++; n == read {
					break
				}
			}
			require.Equal(t, read, n)
		})
	}
	for _, read := range []int{1, 50, 200} {
		assert.InDelta(t, copies(500, read), copies(5000, read), 30, "%d read", read)
	}

	st := newStore(t, memstore.Config{}, notes)
	put(t, st, store.Batch{Records: []store.Record{record("a", 0, start, note{}),
		record("b", 0, start, note{})}})
	met := 0
	for r, err := range st.Find(ctx, store.Query{Kind: "note"}) {
		require.NoError(t, err)
		met++
		require.Less(t, met, 10)
		put(t, st, store.Batch{Records: []store.Record{record(r.ID+"a", 0, r.At, note{})}})
	}
	assert.Equal(t, 2, met)
}

func TestStoreForget(t *testing.T) {
	whole := store.Kind{Name: "whole", Caused: []string{"seen"}, Whole: true}
	st := newStore(t, memstore.Config{}, notes, whole)
	ann := store.PersonKey("Ann")
	put(t, st, store.Batch{Records: []store.Record{
		record("decided", 0, start, note{Text: "x", By: "Ann"}, ann, "k=1"),
		record("caused", 0, start, note{Text: "y", Seen: "Ann"}, ann),
		record("other", 0, start, note{Text: "z", By: "Bob"}, store.PersonKey("bob")),
		{Ref: store.Ref{Kind: "whole", ID: "w"}, At: start, Keys: []string{ann},
			Body: store.Of(note{Seen: "Ann"})},
		{Ref: store.Ref{Kind: "whole", ID: "other"}, At: start, Keys: []string{ann},
			Body: store.Of(note{Seen: "ann"})},
	}})
	before, _ := get(t, st, "decided")
	run(t, st, store.Job{Forget: []string{"Ann"}})
	assert.Empty(t, found(t, st, store.Query{Kind: "note", Keys: []string{ann}}))
	assert.Equal(t, []string{"other"}, found(t, st, store.Query{Kind: "whole"}), "of somebody else")
	after, n := get(t, st, "decided")
	assert.Regexp(t, "^forgotten-", n.By)
	assert.Equal(t, []string{store.PersonKey(n.By), "k=1"}, after.Keys)
	assert.Greater(t, after.Revision, before.Revision)
	_, n = get(t, st, "caused")
	assert.Equal(t, note{Text: "y"}, n)
	_, n = get(t, st, "other")
	assert.Equal(t, "Bob", n.By)
	_, err := st.Commit(ctx, store.Batch{Records: []store.Record{record("decided", before.Revision,
		start, note{})}})
	assert.ErrorIs(t, err, heed.ErrConflict, "whoever had read the name must not write it back")
}

func TestStoreLimits(t *testing.T) {
	kinds := []store.Kind{{Name: "note", Limits: store.Limits{Most: 3}},
		{Name: "full", Limits: store.Limits{Most: 2, Refuse: true}}}
	clock := newClock()
	st := newStore(t, memstore.Config{Now: clock.time,
		Retention: store.Retention{Limits: map[string]store.Limits{"aged": {For: time.Hour}}}},
		append(kinds, store.Kind{Name: "aged", Limits: store.Limits{Most: 1}})...)
	for i := range 10 {
		put(t, st, store.Batch{Records: []store.Record{record(fmt.Sprint(i), 0,
			start.Add(time.Duration(-i)*time.Second), note{})}})
	}
	assert.Equal(t, []string{"0", "1", "2"}, found(t, st, store.Query{Kind: "note"}))
	of := func(kind, id string, at time.Time) store.Record {
		return store.Record{Ref: store.Ref{Kind: kind, ID: id}, At: at, Body: store.Of(note{})}
	}
	put(t, st, store.Batch{Records: []store.Record{of("full", "1", start), of("full", "2", start)}})
	_, err := st.Commit(ctx, store.Batch{Records: []store.Record{of("full", "3", start),
		of("aged", "3", start)}})
	require.ErrorIs(t, err, evidence.ErrFull)
	assert.Empty(t, found(t, st, store.Query{Kind: "aged"}))
	first := store.Record{Ref: store.Ref{Kind: "full", ID: "1"},
		Revision: put(t, st, store.Batch{Records: []store.Record{of("aged", "1", start),
			of("aged", "2", clock.time())}})[0].Revision - 1}
	put(t, st, store.Batch{Records: []store.Record{first, of("full", "3", start)}})
	assert.Equal(t, []string{"3", "2"}, found(t, st, store.Query{Kind: "full"}))
	require.NoError(t, st.Sweep(ctx, clock.time().Add(24*time.Hour)))
	assert.Len(t, found(t, st, store.Query{Kind: "aged"}), 2,
		"a moment ahead of the clock drops nothing")
	clock.advance(time.Hour + time.Second)
	require.NoError(t, st.Sweep(ctx, clock.time().Add(-time.Minute)))
	assert.Len(t, found(t, st, store.Query{Kind: "aged"}), 2)
	require.NoError(t, st.Sweep(ctx, time.Time{}))
	assert.Empty(t, found(t, st, store.Query{Kind: "aged"}))
}

// A later declaration also applies to the records that are there already, and to tenants' records.
func TestALaterDeclarationDropsRecords(t *testing.T) {
	st := newStore(t, memstore.Config{}, notes, store.Kind{Name: "other"})
	acme, err := store.Tenant(st, "acme")
	require.NoError(t, err)
	for _, of := range []store.Store{st, acme} {
		for i := range 3 {
			r := record(fmt.Sprint(i), 0, start.Add(time.Duration(i)*time.Second), note{})
			put(t, of, store.Batch{Records: []store.Record{r}})
			r.Kind = "other"
			put(t, of, store.Batch{Records: []store.Record{r}})
		}
	}
	require.NoError(t, st.Declare(ctx, store.Kind{Name: "note", Limits: store.Limits{Most: 1}}))
	for _, of := range []store.Store{st, acme} {
		assert.Equal(t, []string{"2"}, found(t, of, store.Query{Kind: "note"}))
		assert.Len(t, found(t, of, store.Query{Kind: "other"}), 3)
		r := record("3", 0, start.Add(time.Minute), note{})
		put(t, of, store.Batch{Records: []store.Record{r}})
		assert.Equal(t, []string{"3"}, found(t, of, store.Query{Kind: "note"}))
	}
}

// An observation that went with a reset, an expunging or a rebuild can be retracted, though
// the history has lost others since. One that was lost can't be, and Withdraw keeps it.
func TestStoreRetractsAfterReset(t *testing.T) {
	for name, b := range map[string]store.Batch{
		"reset":   {Reset: []evidence.Cell{cell}},
		"expunge": expunging("ann"),
		"restart": {Restart: []store.Restart{{Cell: cell, At: start.Add(-2 * time.Hour)}}},
	} {
		st := newStore(t,
			memstore.Config{Retention: store.Retention{HistoryPerCell: 3}, Now: newClock().time})
		old := observe("old", start.Add(-3*time.Hour))
		old.Source = "ann"
		put(t, st, store.Batch{Observations: []evidence.Observation{old,
			observe("held", start.Add(-time.Hour))}})
		put(t, st, b)
		for i := range 4 {
			put(t, st, store.Batch{Observations: []evidence.Observation{observe(fmt.Sprint(i), start)}})
		}
		put(t, st, store.Batch{Retract: []string{"old"}})
		_, err := st.Commit(ctx, store.Batch{Retract: []string{"0"}})
		require.ErrorIs(t, err, evidence.ErrForgotten, name)
		kept := put(t, st, store.Batch{Withdraw: []string{"0", "never", "3", "old"}})[0].Kept
		assert.Equal(t, []string{"0", "never"}, kept, name)
	}
	// A rebuild keeps in mind which observations the cell still holds: one that is lost afterwards is
	// missed.
	st := newStore(t,
		memstore.Config{Retention: store.Retention{HistoryPerCell: 1}, Now: newClock().time})
	put(t, st, store.Batch{Observations: []evidence.Observation{observe("1", start)}})
	put(t, st, store.Batch{Rebuild: []evidence.Cell{cell}})
	put(t, st, store.Batch{Observations: []evidence.Observation{observe("2",
		start.Add(time.Second))}})
	_, err := st.Commit(ctx, store.Batch{Retract: []string{"1"}})
	assert.ErrorIs(t, err, evidence.ErrForgotten)
}

// Each method makes the zero value ready.
func TestTheFirstCallOfAZeroValue(t *testing.T) {
	for range new(memstore.Store).List(ctx, store.CellQuery{Kind: "kind"}) {
		t.Error("a list of nothing")
	}
	for range new(memstore.Store).History(ctx, cell) {
		t.Error("a history of nothing")
	}
	require.NoError(t, new(memstore.Store).Sweep(ctx, time.Time{}))
}

// A query with several keys finds the records that have all of them, each once, also if a record
// has a key twice, and not by keys that it no longer has.
func TestRecordsByKeys(t *testing.T) {
	st := newStore(t, memstore.Config{}, notes)
	receipt := put(t, st, store.Batch{Records: []store.Record{
		record("1", 0, start, note{}, "a", "a", "b"), record("2", 0, start, note{}, "a"),
		record("3", 0, start, note{}, "b"),
	}})[0]
	read := func(keys ...string) (ids []string) {
		var s store.Snapshot
		q := store.Query{Kind: "note", Keys: keys, Oldest: true}
		require.NoError(t, st.Read(ctx, &s, nil, nil, q))
		for _, r := range s.Found[0] {
			ids = append(ids, r.ID)
		}
		assert.Equal(t, ids, found(t, st, q))
		return ids
	}
	assert.Equal(t, []string{"1"}, read("a", "b"))
	assert.Equal(t, []string{"1", "2"}, read("a"))
	assert.Equal(t, []string{"1", "3"}, read("b"))
	put(t, st, store.Batch{Records: []store.Record{
		record("1", receipt.Revision, start, note{}, "c")}})
	assert.Equal(t, []string{"2"}, read("a"))
	assert.Equal(t, []string{"3"}, read("b"))
	assert.Equal(t, []string{"1"}, read("c"))
}

// A loop over records does not meet those that go, or lose the key, before it comes to them.
func TestARecordGoesBeforeTheLoopComes(t *testing.T) {
	st := newStore(t, memstore.Config{}, notes)
	const n = 200
	var b store.Batch
	for i := range n {
		b.Records = append(b.Records, record(fmt.Sprint(i), 0, start, note{}, "k"))
	}
	revision := put(t, st, b)[0].Revision
	var ids []string
	for r, err := range st.Find(ctx, store.Query{Kind: "note", Keys: []string{"k"}, Oldest: true}) {
		require.NoError(t, err)
		ids = append(ids, r.ID)
		if len(ids) == 40 { // the loop has noted more than it has copied
			var b store.Batch
			for i := 80; i < n; i++ {
				r := record(fmt.Sprint(i), revision, start, note{}, "another key")
				if i%2 == 0 {
					r.Body = store.Body{}
				}
				b.Records = append(b.Records, r)
			}
			put(t, st, b)
		}
	}
	assert.Len(t, ids, 80)
}

// Taking evidence of a tenant away raises the versions of its kinds, also of those without records,
// and so does a declaration that drops records.
func TestVersionsRise(t *testing.T) {
	st := newStore(t, memstore.Config{Now: newClock().time},
		store.Kind{Name: "versioned", Versioned: true}, store.Kind{Name: "plain"})
	acme, err := store.Tenant(st, "acme")
	require.NoError(t, err)
	version := func() uint64 {
		var s store.Snapshot
		require.NoError(t, acme.Read(ctx, &s, nil, []store.Ref{{Kind: "versioned"}}))
		return s.Records[0].Revision
	}
	put(t, acme, store.Batch{Observations: []evidence.Observation{observe("a", start)}})
	first := version()
	put(t, acme, store.Batch{Reset: []evidence.Cell{cell}})
	second := version()
	assert.Greater(t, second, first)
	for i := range 3 {
		put(t, acme, store.Batch{Records: []store.Record{{At: start, Body: store.Of(i),
			Ref: store.Ref{Kind: "versioned", ID: fmt.Sprint(i)}}}})
	}
	third := version()
	assert.Greater(t, third, second)
	require.NoError(t, st.Declare(ctx, store.Kind{Name: "versioned", Limits: store.Limits{Most: 1}}))
	assert.Greater(t, version(), third)
}

// A kind that refuses more than it may have refuses nothing as long as it has no limit, and a kind
// that was not declared has no records of a tenant either.
func TestKindsOfRecords(t *testing.T) {
	st := newStore(t, memstore.Config{},
		store.Kind{Name: "note", Limits: store.Limits{Refuse: true}})
	put(t, st, store.Batch{Records: []store.Record{record("1", 0, start, note{})}})
	acme, err := store.Tenant(st, "acme")
	require.NoError(t, err)
	_, err = acme.Commit(ctx, store.Batch{Records: []store.Record{{
		Ref: store.Ref{Kind: "undeclared", ID: "1"}, At: start, Body: store.Of(1)}}})
	require.ErrorAs(t, err, new(*heed.InputError))
}

// A list of all cells of a tenant is in order, without sums. A list of a kind has the sums.
func TestCellsOfATenant(t *testing.T) {
	st := newStore(t, memstore.Config{Now: newClock().time})
	acme, err := store.Tenant(st, "acme")
	require.NoError(t, err)
	for i := range 20 {
		o := observe(fmt.Sprint(i), start)
		o.Cell.Item = fmt.Sprint("item ", i%10, i)
		put(t, acme, store.Batch{Observations: []evidence.Observation{o}})
	}
	observed(t, st, observe("a", start))
	var all []evidence.Cell
	for p, err := range st.List(ctx, store.CellQuery{Kind: "@acme"}) {
		require.NoError(t, err)
		assert.Zero(t, p.Tally.N())
		all = append(all, p.Cell)
	}
	assert.Len(t, all, 20)
	assert.True(t, slices.IsSortedFunc(all, evidence.Cell.Compare))
	for _, p := range listed(t, acme, "kind") {
		assert.EqualValues(t, 1, p.Tally.N())
	}
}

// A countdown is a context that ends after it was asked a number of times.
type countdown struct {
	context.Context
	left int
}

func (c *countdown) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// A sweep that is cut short returns the error of its context, and the next one finishes.
func TestASweepEndsWithItsContext(t *testing.T) {
	clock := newClock()
	limit := store.Kind{Name: "note", Limits: store.Limits{For: time.Minute}}
	for n := 0; ; n++ {
		st := newStore(t, memstore.Config{Now: clock.time}, limit)
		at := clock.time()
		put(t, st, store.Batch{Records: []store.Record{record("1", 0, at, note{})},
			Observations: []evidence.Observation{observe("a", at)}})
		clock.advance(100 * 24 * time.Hour)
		left := &countdown{ctx, n}
		err := st.Sweep(left, time.Time{})
		if left.left >= 0 {
			require.NoError(t, err)
			assert.Empty(t, found(t, st, store.Query{Kind: "note"}))
			assert.Empty(t, put(t, st, store.Batch{Observations: []evidence.Observation{
				observe("a", clock.time())}})[0].Duplicates)
			return
		}
		require.ErrorIs(t, err, context.Canceled, n)
	}
}

// A store that lost all its contents is empty, so a dump can be loaded into it.
func TestAStoreThatIsEmptyAgain(t *testing.T) {
	_, file := full(t)
	clock := newClock()
	st := newStore(t, memstore.Config{Now: clock.time}, notes)
	revision := put(t, st, store.Batch{Observations: []evidence.Observation{observe("a", start)},
		Records: []store.Record{record("1", 0, start, note{})}})[0].Revision
	put(t, st, store.Batch{Reset: []evidence.Cell{cell}, Records: []store.Record{
		{Ref: store.Ref{Kind: "note", ID: "1"}, Revision: revision}}})
	require.ErrorIs(t, st.Load(ctx, bytes.NewReader(file)), heed.ErrConflict, "an id is known")
	clock.advance(100 * 24 * time.Hour)
	require.NoError(t, st.Sweep(ctx, time.Time{}))
	require.NoError(t, st.Load(ctx, bytes.NewReader(file)))
}

// A record that its kind keeps for a minute is kept for exactly that, counted from its moment.
func TestTheLastMomentOfARecord(t *testing.T) {
	clock := newClock()
	st := newStore(t, memstore.Config{Now: clock.time},
		store.Kind{Name: "note", Limits: store.Limits{For: time.Minute}})
	put(t, st, store.Batch{Records: []store.Record{record("1", 0, start, note{})}})
	for _, left := range []int{1, 0} {
		clock.advance(time.Minute * time.Duration(left))
		if left == 0 {
			clock.advance(time.Microsecond)
		}
		require.NoError(t, st.Sweep(ctx, time.Time{}))
		assert.Len(t, found(t, st, store.Query{Kind: "note"}), left)
	}
}

package memstore_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
)

func observed(t testing.TB, st store.Store, observations ...evidence.Observation) store.Receipt {
	return put(t, st, store.Batch{Observations: observations})[0]
}

// sums returns the one tally of a cell.
func sums(t testing.TB, st store.Store, c evidence.Cell) evidence.Tally {
	var s store.Snapshot
	require.NoError(t, st.Read(ctx, &s, []evidence.Cell{c}, nil))
	if len(s.Parts) == 0 {
		return evidence.Tally{}
	}
	require.Len(t, s.Parts, 1)
	return s.Parts[0].Tally
}

func TestStoreForgetsHistoryByNumber(t *testing.T) {
	st := newStore(t,
		memstore.Config{Retention: store.Retention{HistoryPerCell: 3}, Now: newClock().time})
	at := func(minute int) time.Time { return start.Add(time.Duration(minute-10) * time.Minute) }
	for _, minute := range []int{5, 1, 3, 4, 2} {
		observed(t, st, observe(fmt.Sprint(minute), at(minute)))
	}
	assert.Equal(t, []string{"5", "4", "3"}, history(t, st, cell),
		"those that happened last are kept")
	for _, id := range []string{"1", "2"} {
		_, err := st.Commit(ctx, store.Batch{Retract: []string{"5", id}})
		assert.ErrorIs(t, err, evidence.ErrForgotten)
	}
	assert.EqualValues(t, 5, sums(t, st, cell).N(), "nothing was retracted")
	put(t, st, store.Batch{Retract: []string{"5", "4", "3"}})
	got := sums(t, st, cell)
	assert.Equal(t, evidence.Count{N: 2, Last: evidence.InstantOf(at(2))}, got.Positive,
		"the last moment is that of what was forgotten")
	put(t, st, store.Batch{Retract: []string{"5"}})
	for what, b := range map[string]store.Batch{
		"rebuild": {Rebuild: []evidence.Cell{cell}},
		"restart": {Restart: []store.Restart{{Cell: cell, At: at(2)}}},
	} {
		_, err := st.Commit(ctx, b)
		assert.ErrorIs(t, err, evidence.ErrForgotten, what)
	}
	put(t, st, store.Batch{Restart: []store.Restart{{Cell: cell, At: at(9)}}})
	assert.Zero(t, sums(t, st, cell).N(), "a restart behind all needs no history")
	observed(t, st, observe("10", at(10)))
	put(t, st, store.Batch{Rebuild: []evidence.Cell{cell}})
	assert.EqualValues(t, 1, sums(t, st, cell).N())
}

// A dump and a load keep which observations the history has lost.
func TestLostHistoryStaysLostInADump(t *testing.T) {
	cfg := memstore.Config{Retention: store.Retention{HistoryPerCell: 1}, Now: newClock().time}
	st := newStore(t, cfg)
	observed(t, st, observe("1", start.Add(-time.Minute)), observe("2", start))
	loaded := reload(t, st, cfg)
	_, err := loaded.Commit(ctx, store.Batch{Retract: []string{"1"}})
	require.ErrorIs(t, err, evidence.ErrForgotten)
	receipt := put(t, loaded, store.Batch{Withdraw: []string{"1", "2"}})[0]
	assert.Equal(t, []string{"1"}, receipt.Kept)
	assert.EqualValues(t, 1, sums(t, loaded, cell).N())
}

// Where origins are apart, a source that was expunged leaves nothing that its later evidence could
// be taken for, also if the history had lost it.
func TestAnExpungedSourceBeginsAgain(t *testing.T) {
	st := newStore(t, memstore.Config{
		Retention: store.Retention{HistoryPerCell: 1}, Now: newClock().time,
	})
	apart := map[string]evidence.Policy{cell.Kind: {ByOrigin: true}}
	minutes := -10
	see := func(ids ...string) {
		for _, id := range ids {
			minutes++
			o := observe(id, start.Add(time.Duration(minutes)*time.Minute))
			o.Source = "ann"
			put(t, st, store.Batch{Policies: apart, Observations: []evidence.Observation{o}})
		}
	}
	see("1", "2")
	put(t, st, expunging("ann"))
	see("3", "4")
	put(t, st, store.Batch{Retract: []string{"1"}})
	assert.EqualValues(t, 2, sums(t, st, cell).N())
	_, err := st.Commit(ctx, store.Batch{Retract: []string{"3"}})
	assert.ErrorIs(t, err, evidence.ErrForgotten)
}

// A commit that is refused leaves the loss of an observation as it was. A dump keeps it as well,
// because the loss belongs to the source.
func TestTheLossOfASource(t *testing.T) {
	cfg := memstore.Config{Retention: store.Retention{HistoryPerCell: 1}, Now: newClock().time}
	st := newStore(t, cfg, notes)
	see := func(of store.Store, n int, source string) {
		o := observe(fmt.Sprint(n), start.Add(time.Duration(n-9)*time.Minute))
		o.Source = source
		put(t, of, store.Batch{
			Policies:     map[string]evidence.Policy{cell.Kind: {ByOrigin: true}},
			Observations: []evidence.Observation{o},
		})
	}
	for i, source := range []string{"ann", "bob", "ann", "bob"} {
		see(st, i+1, source)
	}
	missing := store.Precondition{Ref: store.Ref{Kind: "note", ID: "x"}, Revision: 9}
	_, err := st.Commit(ctx, expunging("ann"),
		store.Batch{Expect: []store.Precondition{missing}})
	require.ErrorIs(t, err, heed.ErrConflict)
	for _, of := range []*memstore.Store{st, reload(t, st, cfg)} {
		for _, id := range []string{"1", "2", "3"} {
			_, err := of.Commit(ctx, store.Batch{Retract: []string{id}})
			require.ErrorIs(t, err, evidence.ErrForgotten, id)
		}
		put(t, of, expunging("ann"))
		see(of, 5, "ann")
		see(of, 6, "ann")
		put(t, of, store.Batch{Retract: []string{"1", "3"}})
		for _, id := range []string{"2", "5"} {
			_, err = of.Commit(ctx, store.Batch{Retract: []string{id}})
			require.ErrorIs(t, err, evidence.ErrForgotten, id)
		}
	}
}

// In a store without history, an observation that counts nothing is not lost: its source can be
// expunged.
func TestWhatCountsNothingIsNotLost(t *testing.T) {
	st := newStore(t, memstore.Config{Now: newClock().time})
	nothing := observe("1", start)
	nothing.Source, nothing.Weight = "ann", 0
	observed(t, st, nothing, observe("2", start))
	loaded := reload(t, st, memstore.Config{Retention: store.Retention{NoHistory: true}})
	put(t, loaded, expunging("ann"))
	assert.EqualValues(t, 1, sums(t, loaded, cell).N())
}

// TestAnIDThatIsForgottenComesAgain and is retracted, though its first cell has lost it.
func TestAnIDThatIsForgottenComesAgain(t *testing.T) {
	clock := newClock()
	st := newStore(t, memstore.Config{Retention: store.Retention{HistoryPerCell: 1,
		HistoryFor: time.Hour, IDsFor: time.Hour},
		Now: clock.time})
	observed(t, st, observe("a", start.Add(-time.Minute)))
	observed(t, st, observe("b", start))
	clock.advance(2 * time.Hour)
	require.NoError(t, st.Sweep(ctx, time.Time{}))
	again := observe("a", clock.time())
	again.Cell.Name = "other"
	observed(t, st, again)
	put(t, st, store.Batch{Retract: []string{"a"}})
	assert.Zero(t, sums(t, st, again.Cell).N())
}

// To retract after a source is gone takes nothing back, and does not ask for the history that
// another source has lost.
func TestRetractAfterItsSourceIsGone(t *testing.T) {
	st := newStore(t,
		memstore.Config{Retention: store.Retention{HistoryPerCell: 1}, Now: newClock().time})
	for i, source := range []string{"ann", "bob", "bob"} {
		o := observe(fmt.Sprint(i), start.Add(time.Duration(i)*time.Second))
		o.Source = source
		put(t, st, store.Batch{Policies: map[string]evidence.Policy{cell.Kind: {ByOrigin: true}},
			Observations: []evidence.Observation{o}})
	}
	put(t, st, expunging("ann"))
	put(t, st, store.Batch{Retract: []string{"0"}})
	assert.EqualValues(t, 2, sums(t, st, cell).N())
}

// A commit fails for want of history only where the history lacks an observation that matters to
// it.
func TestLostHistory(t *testing.T) {
	st := newStore(t,
		memstore.Config{Retention: store.Retention{HistoryPerCell: 2}, Now: newClock().time})
	at := func(minute int) time.Time { return start.Add(time.Duration(minute-10) * time.Minute) }
	zero, unnamed := observe("zero", at(0)), observe("unnamed", at(0))
	zero.Weight, zero.Cell.Name, unnamed.Cell.Name = 0, "other", ""
	for i := range 4 {
		observed(t, st, observe(fmt.Sprint(i), at(i+1)))
		zero.ID, zero.At = fmt.Sprint("zero", i), at(i)
		unnamed.ID, unnamed.At = fmt.Sprint("unnamed", i), at(i)
		observed(t, st, zero)
		observed(t, st, unnamed)
	}
	never := cell
	never.Name = "never"
	put(t, st, store.Batch{Rebuild: []evidence.Cell{never}})
	put(t, st, store.Batch{Retract: []string{"zero0"}})
	put(t, st, store.Batch{Restart: []store.Restart{{Cell: cell, At: at(3)}}})
	assert.EqualValues(t, 2, sums(t, st, cell).N())
}

func TestAListingEndsWithItsContext(t *testing.T) {
	st := newStore(t, memstore.Config{Now: newClock().time})
	observed(t, st, observe("1", start))
	observed(t, st, observe("2", start))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var errs []error
	for _, err := range st.History(ctx, cell) {
		errs = append(errs, err)
		cancel()
	}
	assert.Equal(t, []error{nil, context.Canceled}, errs)
}

func TestStoreForgetsHistoryByTime(t *testing.T) {
	clock := newClock()
	st := newStore(t, memstore.Config{Retention: store.Retention{HistoryFor: time.Hour,
		IDsFor: 24 * time.Hour}, Now: clock.time})
	observed(t, st, observe("1", clock.time()))
	clock.advance(40 * time.Minute)
	observed(t, st, observe("2", clock.time()))
	clock.advance(30 * time.Minute)
	assert.Equal(t, []string{"2"}, history(t, st, cell))
	_, err := st.Commit(ctx, store.Batch{Retract: []string{"1"}})
	assert.ErrorIs(t, err, evidence.ErrForgotten)
	clock.advance(time.Hour)
	require.NoError(t, st.Sweep(ctx, time.Time{}))
	assert.Empty(t, history(t, st, cell))
	assert.EqualValues(t, 2, sums(t, st, cell).N(), "the sums outlive the history")
	assert.Equal(t, []string{"1"}, observed(t, st, observe("1", start)).Duplicates,
		"and so do the ids")
}

// TestStoreKnowsIDsLongEnough delivers ids again all along the time for which they are promised to
// be known, in a store that is swept now and then.
func TestStoreKnowsIDsLongEnough(t *testing.T) {
	clock := newClock()
	st := newStore(t, memstore.Config{Retention: store.Retention{HistoryFor: time.Hour,
		IDsFor: 2 * time.Hour}, Now: clock.time})
	recorded := make(map[string]time.Time)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 5000 {
		clock.advance(time.Duration(rng.IntN(20)) * time.Second)
		if i%100 == 0 {
			require.NoError(t, st.Sweep(ctx, time.Time{}))
		}
		id := fmt.Sprint(rng.IntN(i/2 + 1))
		before, known := recorded[id]
		receipt := observed(t, st, observe(id, clock.time()))
		switch duplicate := len(receipt.Duplicates) > 0; {
		case known && clock.time().Sub(before) < 2*time.Hour:
			require.True(t, duplicate, "an id of %v ago is not known", clock.time().Sub(before))
		case !known, clock.time().Sub(before) > 4*time.Hour+time.Minute:
			require.False(t, duplicate)
			recorded[id] = clock.time()
		case !duplicate:
			recorded[id] = clock.time()
		}
	}
}

func TestStoreWithoutHistory(t *testing.T) {
	st := newStore(t,
		memstore.Config{Retention: store.Retention{NoHistory: true}, Now: newClock().time})
	named := observe("named", start)
	named.Source = "ann"
	apart := named
	apart.ID, apart.Cell.Kind = "apart", "apart"
	policies := map[string]evidence.Policy{"apart": {ByOrigin: true}}
	put(t, st, store.Batch{Policies: policies, Observations: []evidence.Observation{apart}})
	again := apart
	again.ID, again.Source = "again", "bob"
	put(t, st, store.Batch{
		Expunge: []store.SourceOf{{Cell: apart.Cell, Source: "ann"}},
		Policies: map[string]evidence.Policy{"apart": {ByOrigin: true,
			HalfLife: time.Hour}}, Observations: []evidence.Observation{again},
	})
	assert.EqualValues(t, 1, sums(t, st, apart.Cell).N(),
		"a cell that keeps origins apart needs no history")
	observed(t, st, named)
	assert.Empty(t, history(t, st, cell))
	for what, b := range map[string]store.Batch{
		"retract": {Retract: []string{"named"}}, "expunge": expunging("ann"),
		"rebuild": {Rebuild: []evidence.Cell{cell}},
	} {
		_, err := st.Commit(ctx, b)
		assert.ErrorIs(t, err, evidence.ErrForgotten, what)
	}
	_, err := st.Commit(ctx, store.Batch{Retract: []string{"never"}})
	assert.ErrorIs(t, err, heed.ErrNotFound)
	assert.EqualValues(t, 1, sums(t, st, cell).N())
	restart := store.Batch{Restart: []store.Restart{{Cell: cell, At: start.Add(time.Second)}}}
	put(t, st, restart)
	assert.Zero(t, sums(t, st, cell).N())
	observed(t, st, observe("after", start.Add(2*time.Second)))
	put(t, st, restart) // no further than it was
	assert.EqualValues(t, 1, sums(t, st, cell).N())
}

// TestStoreReusesOrigins expunges sources over and over: the names of one must not pass to another.
func TestStoreReusesOrigins(t *testing.T) {
	st := newStore(t,
		memstore.Config{Retention: store.Retention{HistoryPerCell: 2}, Now: newClock().time})
	policies := map[string]evidence.Policy{"kind": {ByOrigin: true}}
	for round := range 20 {
		for i := range 5 {
			o := observe(fmt.Sprintf("%d-%d", round, i), start.Add(-time.Duration(i)*time.Minute))
			o.Source = []string{"stays", fmt.Sprint("goes", round)}[i%2]
			put(t, st, store.Batch{Policies: policies, Observations: []evidence.Observation{o}})
		}
		run(t, st, store.Job{Expunge: []string{fmt.Sprint("goes", round)}})
		got := sums(t, st, cell)
		assert.EqualValues(t, 3*(round+1), got.N())
		assert.Equal(t, evidence.InstantOf(start), got.Last())
	}
}

// TestStoreGivesMemoryBack fills a store with items and resets most of them, over and over. Those
// that stay keep their names, and the memory of the others is given back.
func TestStoreGivesMemoryBack(t *testing.T) {
	st := newStore(t,
		memstore.Config{Retention: store.Retention{NoHistory: true}, Now: newClock().time})
	item := func(i int) evidence.Cell {
		return evidence.Cell{Kind: "kind", Scope: fmt.Sprint("scope", i%2),
			Item: fmt.Sprintf("%0*d", 900+i%100, i)}
	}
	const each = 4_000
	var before uint64
	for round := range 4 {
		for i := range each {
			o := observe(fmt.Sprint(round, "-", i), start)
			o.Cell = item(round*each + i)
			observed(t, st, o)
		}
		run(t, st, store.Job{Reset: []store.Selection{{Kind: "kind", Scope: "scope0"}}})
		stay := item(round*each + 1)
		assert.EqualValues(t, 1, sums(t, st, stay).N())
		n := 0
		for part, err := range st.List(ctx, store.CellQuery{Kind: "kind", Scope: "scope1"}) {
			require.NoError(t, err)
			require.True(t, len(part.Cell.Item) >= 900 && part.Tally.N() == 1)
			n++
		}
		assert.Equal(t, each/2, n)
		run(t, st, store.Job{Reset: []store.Selection{{Kind: "kind", Scope: "scope1"}}})
		switch now := heap(); round {
		case 0:
			before = now
		default:
			assert.Less(t, float64(now), 1.5*float64(before)+2e6, "round %d", round)
		}
	}
}

func TestStoreConfigFaults(t *testing.T) {
	_, err := memstore.New(memstore.Config{
		Retention: store.Retention{HistoryPerCell: -1, HistoryFor: 48 * time.Hour, IDsFor: time.Hour,
			Limits: map[string]store.Limits{"note": {Most: -1}}},
	})
	var fields []string
	for fault := range heed.ConfigErrors(err) {
		fields = append(fields, fault.Field)
	}
	assert.Equal(t, []string{"HistoryPerCell", "IDsFor", `Limits["note"].Most`}, fields)
	_,
		err = memstore.New(memstore.Config{Retention: store.Retention{HistoryFor: 90 * 24 * time.Hour}})
	require.NoError(t, err, "ids are kept for as long as history unless they are said to be")
	var st memstore.Store
	for i := range 101 {
		observed(t, &st, observe(fmt.Sprint(i), time.Now()))
	}
	assert.Len(t, history(t, &st, cell), 100)
}

// A store with the default keeps as much as a kind was declared with, and one with a number of its
// own keeps that.
func TestAKindAsksForHistory(t *testing.T) {
	for _, test := range []struct{ perCell, declared, after, want int }{
		{0, 0, 0, 100}, {0, 150, 0, 150}, {0, 50, 0, 100}, {10, 150, 0, 10}, {0, 150, 120, 120},
	} {
		st := newStore(t, memstore.Config{Retention: store.Retention{HistoryPerCell: test.perCell},
			Now: newClock().time},
			store.Kind{Name: "k", History: test.declared}, store.Kind{Name: "k", History: test.after})
		cell := evidence.Cell{Kind: "k", Item: "i"}
		for i := range 200 {
			_, err := st.Commit(t.Context(), store.Batch{Observations: []evidence.Observation{
				{ID: fmt.Sprint(i), Cell: cell, Reward: 1, Weight: 1,
					At: newClock().time().Add(time.Duration(i) * time.Microsecond)},
			}})
			require.NoError(t, err)
		}
		n := 0
		for _, err := range st.History(t.Context(), cell) {
			require.NoError(t, err)
			n++
		}
		assert.Equal(t, test.want, n, test)
	}
}

// An observation is kept for exactly as long as the store was opened with, and then it is gone for
// readers, before a sweep as well.
func TestTheLastMomentOfHistory(t *testing.T) {
	clock := newClock()
	st := newStore(t, memstore.Config{Now: clock.time,
		Retention: store.Retention{HistoryFor: time.Hour}})
	named := observe("a", start)
	named.Source = "ann"
	other := observe("b", start)
	other.Cell.Item = "unnamed"
	apart := named
	apart.ID, apart.Cell.Kind = "c", "apart"
	put(t, st, store.Batch{Observations: []evidence.Observation{named, other, apart},
		Policies: map[string]evidence.Policy{"apart": {ByOrigin: true}}})
	naming := func() (parts int, err error) {
		for _, err := range st.List(ctx, store.CellQuery{Kind: "", Naming: "ann"}) {
			if err != nil {
				return 0, err
			}
			parts++
		}
		return parts, nil
	}
	clock.advance(time.Hour)
	require.NoError(t, st.Sweep(ctx, time.Time{}))
	assert.Equal(t, []string{"a"}, history(t, st, cell))
	n, err := naming()
	require.NoError(t, err)
	assert.Equal(t, 2, n)
	clock.advance(time.Microsecond)
	assert.Empty(t, history(t, st, cell))
	_, err = naming()
	require.ErrorIs(t, err, evidence.ErrForgotten)
	_, err = st.Commit(ctx, store.Batch{Retract: []string{"a"}})
	require.ErrorIs(t, err, evidence.ErrForgotten)

	put(t, st, store.Batch{Reset: []evidence.Cell{cell}})
	n, err = naming()
	require.NoError(t, err, "neither a loss of no source counts, nor one of a source apart")
	assert.Equal(t, 1, n)
	dumped := func() string {
		var file bytes.Buffer
		require.NoError(t, st.Dump(ctx, &file))
		return file.String()
	}
	assert.Contains(t, dumped(), `"id":"c"`)
	require.NoError(t, st.Sweep(ctx, time.Time{}))
	assert.NotContains(t, dumped(), `"id":"c"`, "the sweep drops it")
}

// A list of the cells that name a source has their parts that may hold it, or a part without sums.
func TestNamingASource(t *testing.T) {
	st := newStore(t, memstore.Config{Now: newClock().time})
	of := func(kind, item, source string) evidence.Observation {
		return evidence.Observation{ID: kind + item + source, Source: source, Reward: 1, Weight: 1,
			At: start, Cell: evidence.Cell{Kind: kind, Item: item}}
	}
	put(t, st, store.Batch{Policies: map[string]evidence.Policy{"apart": {ByOrigin: true}},
		Observations: []evidence.Observation{of("apart", "1", "ann"), of("apart", "1", "bob"),
			of("apart", "2", "bob"), of("apart", "ann", "bob"), of("joint", "1", "ann"),
			of("joint", "1", "bob"), of("joint", "2", "bob")}})
	var got []string
	for p, err := range st.List(ctx, store.CellQuery{Naming: "ann"}) {
		require.NoError(t, err)
		got = append(got, fmt.Sprint(p.Cell.Kind, " ", p.Cell.Item, " ", p.Source, p.Tally.N()))
	}
	assert.Equal(t, []string{"apart 1 ann1", "apart ann 0", "joint 1 2"}, got)
}

// A cell without weight leaves nothing behind when its history ends, or without a history.
func TestWithoutWeight(t *testing.T) {
	for _, none := range []bool{false, true} {
		clock := newClock()
		st := newStore(t, memstore.Config{Now: clock.time,
			Retention: store.Retention{NoHistory: none, HistoryFor: time.Hour}})
		o := observe("a", start)
		o.Weight = 0
		put(t, st, store.Batch{Observations: []evidence.Observation{o}})
		listed := func() (n int) {
			for p, err := range st.List(ctx,
				store.CellQuery{Kind: cell.Kind, Scope: cell.Scope, Empty: true}) {
				require.NoError(t, err)
				assert.Zero(t, p.Tally.N())
				n++
			}
			return n
		}
		assert.Equal(t, !none, listed() == 1)
		clock.advance(2 * time.Hour)
		require.NoError(t, st.Sweep(ctx, time.Time{}))
		assert.Zero(t, listed())
	}
}

// A scope whose cells were all restarted has no evidence, and is not listed.
func TestScopesHaveEvidence(t *testing.T) {
	st := newStore(t, memstore.Config{Now: newClock().time})
	other := cell
	other.Scope = "other"
	observed(t, st, observe("a", start))
	put(t, st, store.Batch{Restart: []store.Restart{{Cell: other, At: start}}})
	for scope, err := range st.Scopes(ctx, cell.Kind) {
		require.NoError(t, err)
		assert.Equal(t, cell.Scope, scope)
	}
}

// An observation without weight settles no policy, and neither what is known nor a restart changes
// the policy that is settled.
func TestWhatSettlesAPolicy(t *testing.T) {
	st := newStore(t, memstore.Config{Now: newClock().time})
	half := map[string]evidence.Policy{cell.Kind: {HalfLife: time.Hour}}
	light, known := observe("light", start), observe("known", start)
	light.Weight, known.Cell.Kind = 0, "another kind"
	put(t, st, store.Batch{Observations: []evidence.Observation{light, known}},
		store.Batch{Policies: half, Observations: []evidence.Observation{observe("a", start)}})
	assert.Equal(t, time.Hour, sums(t, st, cell).HalfLife)
	put(t, st, store.Batch{Restart: []store.Restart{{Cell: cell, At: start.Add(-time.Second)}}})
	put(t, st, store.Batch{Policies: half,
		Observations: []evidence.Observation{observe("b", start.Add(-time.Second))}})
	assert.EqualValues(t, 2, sums(t, st, cell).N(), "what is of the moment of the restart counts")
	_, err := st.Commit(ctx,
		store.Batch{Observations: []evidence.Observation{known, observe("c", start)}})
	require.ErrorAs(t, err, new(*heed.SettingsError))
}

// A batch restarts and rebuilds all cells that it names, also behind one without evidence.
func TestTakingFromSeveralCells(t *testing.T) {
	st := newStore(t, memstore.Config{Now: newClock().time})
	other, none := cell, cell
	other.Name, none.Name = "other", "none"
	second := observe("b", start)
	second.Cell = other
	observed(t, st, observe("a", start), second)
	half := map[string]evidence.Policy{cell.Kind: {HalfLife: time.Hour}}
	put(t, st, store.Batch{Policies: half, Rebuild: []evidence.Cell{none, cell, other}})
	assert.Equal(t, time.Hour, sums(t, st, other).HalfLife)
	later := start.Add(time.Second)
	put(t, st, store.Batch{Policies: half,
		Restart: []store.Restart{{Cell: cell, At: later}, {Cell: other, At: later}}})
	assert.Zero(t, sums(t, st, cell).N())
	assert.Zero(t, sums(t, st, other).N())
}

// A cell that has the name of a source and evidence of others keeps its restart if the source goes.
func TestAnExpungedNameKeepsItsRestart(t *testing.T) {
	st := newStore(t, memstore.Config{Now: newClock().time})
	ann := cell
	ann.Item = "ann"
	seen := observe("a", start)
	seen.Cell, seen.Source = ann, "bob"
	put(t, st, store.Batch{Restart: []store.Restart{{Cell: ann, At: start}}})
	observed(t, st, seen)
	put(t, st, store.Batch{Expunge: []store.SourceOf{{Cell: ann, Source: "ann"}}})
	seen.ID, seen.At = "late", start.Add(-time.Minute)
	observed(t, st, seen)
	assert.EqualValues(t, 1, sums(t, st, ann).N())
	put(t, st, store.Batch{Expunge: []store.SourceOf{{Cell: ann, Source: "bob"}}})
	observed(t, st, observe("of another cell", start))
	seen.ID, seen.Source = "later", ""
	observed(t, st, seen)
	assert.Zero(t, sums(t, st, ann).N(), "the name is not that source's")
}

// An id that came again after it was forgotten can be taken back, although the history had lost it
// when it came first.
func TestAnIDThatComesAgainIsNotLost(t *testing.T) {
	clock := newClock()
	st := newStore(t, memstore.Config{Retention: store.Retention{HistoryPerCell: 1,
		HistoryFor: time.Hour, IDsFor: time.Hour}, Now: clock.time})
	observed(t, st, observe("a", start))
	observed(t, st, observe("b", start.Add(time.Second)))
	clock.advance(2 * time.Hour)
	require.NoError(t, st.Sweep(ctx, time.Time{}))
	observed(t, st, observe("a", clock.time()))
	put(t, st, store.Batch{Retract: []string{"a"}})
	assert.EqualValues(t, 2, sums(t, st, cell).N(), "what was seen first stays")
}

package memstore_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
)

// A move is what a goroutine does to two records: it reads one, or writes both over the revisions
// that it has read.
type move struct {
	read  int // 1 or 2; 0: it writes both
	over  [2]uint64
	value int
}

type told struct {
	revision uint64 // that was read, or given
	value    int
	refused  bool
}

type pair struct {
	revision uint64
	value    int
}

// pairModel is two records that are always written together.
var pairModel = porcupine.Model{
	Init: func() any { return pair{} },
	Step: func(state, input, output any) (bool, any) {
		now, in, out := state.(pair), input.(move), output.(told)
		switch {
		case in.read > 0:
			return out.revision == now.revision && out.value == now.value, now
		case in.over != [2]uint64{now.revision, now.revision}:
			return out.refused, now
		}
		return !out.refused && out.revision > now.revision, pair{out.revision, in.value}
	},
	Equal: func(a, b any) bool { return a == b },
}

// Goroutines read two records one at a time and write both. All that they are told is a history
// that they could have had one after the other.
func TestStoreIsLinearizable(t *testing.T) {
	for round := range 20 {
		st := newStore(t, memstore.Config{}, notes)
		began := time.Now()
		var mu sync.Mutex
		var history []porcupine.Operation
		var wait sync.WaitGroup
		for worker := range 4 {
			wait.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(round), uint64(worker)))
				var seen [2]uint64
				for i := range 50 {
					m := move{read: rng.IntN(4), value: worker*1000 + i}
					if m.read == 3 {
						m.read = 0
					}
					m.over = seen
					call := time.Since(began).Nanoseconds()
					out := play(t, st, m)
					op := porcupine.Operation{
						ClientId: worker, Input: m, Call: call, Output: out,
						Return: time.Since(began).Nanoseconds(),
					}
					if m.read > 0 {
						seen[m.read-1] = out.revision
					}
					mu.Lock()
					history = append(history, op)
					mu.Unlock()
				}
			})
		}
		wait.Wait()
		require.True(t, porcupine.CheckOperations(pairModel, history))
	}
}

func play(t *testing.T, st store.Store, m move) told {
	if m.read > 0 {
		r, n := get(t, st, fmt.Sprint(m.read))
		out := told{revision: r.Revision}
		_, _ = fmt.Sscan(n.Text, &out.value)
		return out
	}
	var b store.Batch
	for i, over := range m.over {
		b.Records = append(b.Records, record(fmt.Sprint(i+1), over, start,
			note{Text: fmt.Sprint(m.value)}))
	}
	receipts, err := st.Commit(ctx, b)
	if err != nil {
		assert.ErrorIs(t, err, heed.ErrConflict)
		return told{refused: true}
	}
	return told{revision: receipts[0].Revision}
}

// TestStoreUnderFire lets goroutines do everything at once. The race detector watches. At the end
// what was only added must all be there, the indexes must agree with the records, and a dump must
// agree with the store.
func TestStoreUnderFire(t *testing.T) {
	kind := store.Kind{Name: "note", Decided: []string{"by"}, Limits: store.Limits{Most: 150}}
	st := newStore(t,
		memstore.Config{Retention: store.Retention{HistoryPerCell: 50}, Now: newClock().time}, kind,
		store.Kind{Name: "full", Limits: store.Limits{Most: 20, Refuse: true}})
	const callers, rounds = 8, 60
	var wait sync.WaitGroup
	for caller := range callers {
		wait.Go(func() {
			f := fire{t, st, caller, rand.New(rand.NewPCG(uint64(caller), 1))}
			for i := range rounds {
				f.round(i)
			}
		})
	}
	wait.Wait()
	var n uint64
	for i := range 3 {
		for part, err := range st.List(ctx, store.CellQuery{Kind: "steady"}) {
			require.NoError(t, err)
			if part.Cell.Item == fmt.Sprint(i) {
				n += part.Tally.N()
			}
		}
	}
	assert.EqualValues(t, callers*rounds, n)
	assert.Len(t, found(t, st, store.Query{Kind: "note"}), 150)
	byKey := 0
	for i := range 5 {
		for r, err := range st.Find(ctx, store.Query{Kind: "note",
			Keys: []string{store.Key("k", fmt.Sprint(i))}}) {
			require.NoError(t, err)
			require.Contains(t, r.Keys, store.Key("k", fmt.Sprint(i)))
			byKey++
		}
	}
	assert.Equal(t, 150, byKey)
	assert.LessOrEqual(t, len(found(t, st, store.Query{Kind: "full"})), 20)
	loaded := reload(t, st,
		memstore.Config{Retention: store.Retention{HistoryPerCell: 50}, Now: newClock().time})
	assert.Equal(t, listed(t, st, "kind"), listed(t, loaded, "kind"))
	assert.Equal(t, found(t, st, store.Query{Kind: "note"}),
		found(t, loaded, store.Query{Kind: "note"}))
}

type fire struct {
	t      *testing.T
	st     *memstore.Store
	caller int
	rng    *rand.Rand
}

func (f *fire) try(b ...store.Batch) {
	_, err := f.st.Commit(ctx, b...)
	for _, expected := range []error{evidence.ErrForgotten, evidence.ErrFull, heed.ErrConflict} {
		if errors.Is(err, expected) {
			return
		}
	}
	assert.NoError(f.t, err)
}

func (f *fire) round(i int) {
	rng, id := f.rng, fmt.Sprint(f.caller, "-", i)
	steady := observe("steady-"+id, start)
	steady.Cell = evidence.Cell{Kind: "steady", Item: fmt.Sprint(i % 3)}
	wild := observe("wild-"+id, start)
	wild.Cell.Item, wild.Source = fmt.Sprint(rng.IntN(5)), fmt.Sprint("source", rng.IntN(3))
	policies := map[string]evidence.Policy{"kind": {HalfLife: time.Hour, ByOrigin: true}}
	b := store.Batch{Policies: policies, Observations: []evidence.Observation{steady, wild}}
	b.PartsOf = store.CellsOf(b.Observations...)
	if rng.IntN(6) == 0 {
		b.Reset = []evidence.Cell{cell}
		b.Reset[0].Item = fmt.Sprint(rng.IntN(5))
	}
	r := record(id, 0, start.Add(time.Duration(rng.IntN(50))*time.Second), note{By: "Ann"},
		store.Key("k", fmt.Sprint(rng.IntN(5))), store.PersonKey("ann"))
	receipts, err := f.st.Commit(ctx, b, store.Batch{ID: "batch-" + id, Records: []store.Record{r}})
	if !assert.NoError(f.t, err) {
		return
	}
	switch rng.IntN(8) {
	case 0:
		f.try(store.Batch{Retract: []string{wild.ID}})
	case 1:
		assert.NoError(f.t, store.Run(ctx, f.st, store.Job{Forget: []string{"ann", "source1"}}))
	case 2:
		f.try(store.Batch{Withdraw: []string{wild.ID, "never"}})
	case 3:
		assert.NoError(f.t, f.st.Sweep(ctx, time.Time{}))
	case 4:
		for range f.st.Find(ctx, store.Query{Kind: "note", Keys: []string{"k=1"}}) {
		}
	case 5:
		assert.NoError(f.t, f.st.Dump(ctx, io.Discard))
	case 6:
		assert.ErrorIs(f.t, f.st.Load(ctx, &bytes.Buffer{}), heed.ErrConflict)
	case 7:
		r.Revision, r.Keys[0] = receipts[1].Revision, store.Key("k", fmt.Sprint(rng.IntN(5)))
		full := record(id, store.Once, start, note{})
		full.Kind = "full"
		f.try(store.Batch{Records: []store.Record{r}}, store.Batch{Records: []store.Record{full}})
	}
}

// TestStoreConcurrentSums lets 16 goroutines add 10,000 outcomes each, with weights whose sums are
// exact in any order.
func TestStoreConcurrentSums(t *testing.T) {
	st := newStore(t, memstore.Config{Retention: store.Retention{NoHistory: true}})
	const callers, each = 16, 1_000
	other := cell
	other.Item = "other"
	var wait sync.WaitGroup
	for caller := range callers {
		wait.Go(func() {
			for i := range each {
				o := observe(fmt.Sprintf("%d-%d", caller, i), start)
				o.Weight, o.Reward = float64(1+i%64)/64, float64(i%65)/64
				o2 := o
				o2.Cell = other
				if _, err := st.Commit(ctx, store.Batch{Observations: []evidence.Observation{o,
					o2}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	var mass, reward float64
	for i := range each {
		mass += callers * float64(1+i%64) / 64
		reward += callers * float64(1+i%64) / 64 * float64(i%65) / 64
	}
	var s store.Snapshot
	require.NoError(t, st.Read(ctx, &s, []evidence.Cell{cell, other}, nil))
	require.Len(t, s.Parts, 2)
	for _, part := range s.Parts {
		require.Equal(t, mass, part.Tally.Mass)
		require.Equal(t, reward, part.Tally.Reward)
		require.EqualValues(t, callers*each, part.Tally.N())
	}
}

// Items of the scope come and go while it is listed. Those that stay are listed once each, and in
// order.
func TestListMissesNothing(t *testing.T) {
	const items = 10_000 // several steps of each shard
	st := newStore(t, memstore.Config{})
	var all, come []evidence.Observation
	var want []string
	for i := range items {
		o := observe(fmt.Sprint(i), start)
		if o.Cell.Item = fmt.Sprintf("%06d stays", i); i%20 > 0 {
			want = append(want, o.Cell.Item)
		} else {
			o.Cell.Item = fmt.Sprintf("%06d comes", i)
			come = append(come, o)
		}
		all = append(all, o)
	}
	put(t, st, store.Batch{Observations: all})
	var wait sync.WaitGroup
	listed := make(chan struct{})
	wait.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-listed:
				return
			default:
			}
			o := &come[n%len(come)]
			_, err := st.Commit(ctx, store.Batch{Retract: []string{o.ID}})
			assert.NoError(t, err)
			o.ID = fmt.Sprint("again ", n)
			_, err = st.Commit(ctx, store.Batch{Observations: []evidence.Observation{*o}})
			assert.NoError(t, err)
		}
	})
	for range 3 {
		var all, got []string
		for part, err := range st.List(ctx, store.CellQuery{Kind: cell.Kind, Scope: cell.Scope}) {
			require.NoError(t, err)
			if all = append(all, part.Cell.Item); strings.HasSuffix(part.Cell.Item, "stays") {
				got = append(got, part.Cell.Item)
			}
		}
		assert.True(t, slices.Equal(want, got), "%d that stay, of %d", len(got), len(want))
		assert.True(t, slices.IsSorted(all))
		assert.Len(t, slices.Compact(slices.Clone(all)), len(all), "each is listed once")
	}
	close(listed)
	wait.Wait()
}

// Goroutines that add to one cell and ask for its parts are each told another count, as if they had
// come one after the other. What a commit with several batches is told is as it was after all of
// them.
func TestPartsOfUnderFire(t *testing.T) {
	st := newStore(t, memstore.Config{})
	const workers, each = 8, 100
	cells := []evidence.Cell{{Kind: "k", Item: "a"}, {Kind: "k", Item: "b"}}
	told := make([][]uint64, workers)
	var wait sync.WaitGroup
	for worker := range workers {
		wait.Go(func() {
			for i := range each {
				batches := make([]store.Batch, 2)
				for b := range batches {
					for _, c := range cells {
						batches[b].Observations = append(batches[b].Observations, evidence.Observation{
							ID:   fmt.Sprint(worker, i, b, c.Item),
							Cell: c, Reward: 1, Weight: 1, At: start,
						})
					}
					batches[b].PartsOf = []evidence.Cell{cells[1], cells[0]}
				}
				receipts, err := st.Commit(ctx, batches...)
				if !assert.NoError(t, err) {
					return
				}
				for _, r := range receipts {
					if assert.Len(t, r.Parts, 2) && assert.Equal(t, cells[1], r.Parts[0].Cell) {
						assert.Equal(t, r.Parts[0].Tally, r.Parts[1].Tally)
						assert.Equal(t, receipts[0].Parts[0].Tally, r.Parts[0].Tally)
					}
				}
				told[worker] = append(told[worker], receipts[1].Parts[0].Tally.N())
			}
		})
	}
	wait.Wait()
	all := slices.Concat(told...)
	slices.Sort(all)
	for i, n := range all {
		require.EqualValues(t, 2*(i+1), n)
	}
	known := evidence.Observation{ID: "0 0 0a", Cell: cells[0], Reward: 1, Weight: 1, At: start}
	for _, duplicate := range []bool{false, true} {
		receipts, err := st.Commit(ctx, store.Batch{
			ID: "once", PartsOf: cells[:1], Observations: []evidence.Observation{known},
		})
		require.NoError(t, err)
		if receipts[0].Duplicate {
			assert.True(t, duplicate)
			assert.Empty(t, receipts[0].Parts)
			continue
		}
		assert.Equal(t, []string{known.ID}, receipts[0].Duplicates, "it counts no more")
		assert.EqualValues(t, 2*workers*each, receipts[0].Parts[0].Tally.N())
	}
}

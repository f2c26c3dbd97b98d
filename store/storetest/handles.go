package storetest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// counters is a typed view of records. A value's Text is its id.
var counters = store.View[value]{
	Kind: store.Kind{Name: rare},
	Place: func(v value) (id string, at time.Time, keys []string) {
		return v.Text, start, []string{"k"}
	},
}

// count is a step that adds 1 to the number of a record, and an observation.
func count(st store.Store, record, observation string) error {
	return store.Do(ctx, st, func(tx *store.Tx) error {
		row, err := counters.In(tx, record)
		if err != nil {
			return err
		}
		runtime.Gosched() // so that others have read the same, on one processor, too
		counters.Put(tx, value{Text: record, N: row.Value.N + 1}, row.Revision)
		tx.Observe(seen(observation, plainCell, 1))
		return nil
	})
}

// number returns the number of observations in parts.
func number(parts []evidence.Part) (n uint64) {
	for _, part := range parts {
		n += part.Tally.N()
	}
	return n
}

// stepsConcurrent counts in two records by steps of many callers, on each handle of the store.
func stepsConcurrent(f *fixture) {
	const callers, each = 8, 16
	handles := f.handles()
	f.parallel(callers, each, func(caller, i int) error {
		st := handles[(caller+i/2)%len(handles)]
		return count(st, fmt.Sprint("counter", i%2), fmt.Sprintf("%d-%d", caller, i))
	})
	for _, f.store = range handles {
		for _, id := range []string{"counter0", "counter1"} {
			f.has(rare, id, value{Text: id, N: callers * each / 2})
		}
		refs := []store.Ref{ref(rare, "counter0")} // with a record, no cache may answer
		parts := f.snapshot([]evidence.Cell{plainCell}, refs).Parts
		f.Equal("the number of observations", number(parts), callers*each)
	}
}

// race has callers commit a batch each at once, on each handle, and returns how many succeeded. The
// others must conflict.
func (f *fixture) race(handles []store.Store, callers int, batch func(caller int) store.Batch) int {
	var won atomic.Int64
	f.parallel(callers, 1, func(caller, _ int) error {
		_, err := handles[caller%len(handles)].Commit(ctx, batch(caller))
		if errors.Is(err, heed.ErrConflict) {
			return nil
		}
		won.Add(1)
		return err
	})
	return int(won.Load())
}

// oneWins has many callers write over the same revision, each together with a record that no other
// caller writes. In every second round there is no record yet.
func oneWins(f *fixture) {
	handles := f.handles()
	for round := range 6 {
		id, revision := fmt.Sprint(round), uint64(0)
		if round%2 == 0 {
			revision = f.write(note(id, value{}))
		}
		won := f.race(handles, 8, func(caller int) store.Batch {
			return store.Batch{Records: records{
				note(fmt.Sprint(id, " of ", caller), value{}, "won="+id),
				over(revision, note(id, value{N: int64(caller)})),
			}}
		})
		f.Equal("the callers that won", won, 1)
		f.finds(by(notes, "won="+id), fmt.Sprint(id, " of ", f.decode(f.get(notes, id)).N))
	}
	// Each of two callers writes one record, and relies on the other record as it was.
	for round := range 25 {
		ids := []string{fmt.Sprint("a", round), fmt.Sprint("b", round)}
		revision := f.write(note(ids[0], value{}), note(ids[1], value{}))
		won := f.race(handles, 2, func(caller int) store.Batch {
			return store.Batch{
				Expect:  []store.Precondition{expect(ids[1-caller], revision)},
				Records: records{over(revision, note(ids[caller], value{N: 1}))},
			}
		})
		f.Check(won <= 1, "two commits that rely on what the other writes were both made")
	}
}

// readConsistent reads a record, its version, what a query finds and a cell, while steps change all
// of them. It keeps what was read by its version, like a cache.
func readConsistent(f *fixture) {
	var mu sync.Mutex
	kept := make(map[uint64]int64) // by version, the least number that was read with it
	look := func() (int64, error) {
		var s store.Snapshot
		cells, refs := []evidence.Cell{plainCell}, []store.Ref{ref(rare, "counter"), ref(rare, "")}
		if err := f.store.Read(ctx, &s, cells, refs, by(rare, "k")); err != nil {
			return 0, err
		}
		least := int64(math.MaxInt64)
		for _, r := range append(s.Records[:1:1], s.Found[0]...) {
			row, err := counters.Of(r)
			if err != nil {
				return 0, err
			}
			least = min(least, row.Value.N)
		}
		if row, _ := counters.Of(s.Records[0]); number(s.Parts) < uint64(row.Value.N) {
			return 0, fmt.Errorf("a record counts %d observations: %+v", row.Value.N, s.Parts)
		}
		mu.Lock()
		defer mu.Unlock()
		version := s.Records[1].Revision
		if before, ok := kept[version]; ok {
			least = min(least, before)
		}
		kept[version] = least
		return least, nil
	}
	var done atomic.Bool
	f.AtOnce(2, func(caller int) {
		if caller == 0 {
			for err := error(nil); err == nil && !done.Load(); {
				_, err = look()
				f.Check(err == nil, "a read while steps change what it reads: %v", err)
			}
			return
		}
		defer done.Store(true)
		for i := range int64(60) {
			err := count(f.store, "counter", fmt.Sprint(i))
			least, err2 := look()
			f.Check(err == nil && err2 == nil && least > i,
				"the version of the number %d was read with %d (%v, %v)", i+1, least, err, err2)
		}
	})
}

// errorOf returns the errors that a loop yields.
func errorOf[T any](seq iter.Seq2[T, error]) (failure error) {
	for _, err := range seq {
		failure = errors.Join(failure, err)
	}
	return failure
}

func contextDone(f *fixture) {
	f.add(seen("1", plainCell, 1))
	f.write(note("r", value{}), record(brief, "old", value{}))
	f.setTime(2 * time.Hour)
	done, cancel := context.WithCancel(ctx)
	cancel()
	late := under(seen("2", plainCell, 1))
	late.Records = records{note("new", value{})}
	_, err := f.store.Commit(done, late)
	for method, err := range map[string]error{
		"Commit":  err,
		"Declare": f.store.Declare(done, store.Kind{Name: "suite.late"}),
		"Read":    f.store.Read(done, &store.Snapshot{}, nil, []store.Ref{ref(notes, "r")}),
		"Find":    errorOf(f.store.Find(done, by(notes))),
		"List":    errorOf(f.store.List(done, store.CellQuery{Kind: plain, Scope: "scope"})),
		"Scopes":  errorOf(f.store.Scopes(done, plain)),
		"History": errorOf(f.store.History(done, plainCell)),
		"Sweep":   f.store.Sweep(done, time.Time{}),
	} {
		f.Check(errors.Is(err, context.Canceled) && !errors.Is(err, heed.ErrOutcomeUnknown),
			"%s: %v, want %v", method, err, context.Canceled)
	}
	f.expect(observations{seen("1", plainCell, 1)}, plainCell)
	f.gone(notes, "new")
	f.has(brief, "old", value{})
	_ = f.refused(store.Batch{Records: records{record("suite.late", "r", value{})}})
}

// reopened checks some rules again with a store that is opened again after each commit.
func reopened(f *fixture) {
	if f.subject.Reopen == nil {
		f.Skip("the subject has no Reopen")
	}
	f.subject.paired = false
	for _, check := range []func(*fixture){
		idOnce, batchOnce, historyNewestFirst, policyKept, restartLeavesOut, recordReadBack,
		revisionHolds, findOrder, placesStay, sweepClocks,
	} {
		f := f.fresh()
		f.where = "opened again and again: "
		f.Prefix = f.where
		current, changed := f.store, false
		f.store = &Failing{pick: func(method string) store.Store { // which never fails
			if changed {
				current = f.opened(f.subject.Reopen(current, f.options))
			}
			changed = method == "Commit"
			return current
		}}
		check(f)
	}
	// A job can't be opened again between its commits, but pseudonyms stay.
	f = f.fresh()
	for _, id := range []string{"1", "2"} {
		f.write(record(cases, id, value{By: "ann"}, annKey))
		f.forget("ann")
		f.store = f.opened(f.subject.Reopen(f.store, f.options))
	}
	f.has(cases, "2", f.decode(f.get(cases, "1")))
}

package storetest

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// change reads a record, changes its value and writes it, until nobody was quicker.
func (f *fixture) change(id string, do func(*value) store.Batch) error {
	for try := 0; ; try++ {
		var s store.Snapshot
		if err := f.store.Read(ctx, &s, nil, []store.Ref{ref(notes, id)}); err != nil {
			return err
		}
		var v value
		if s.Records[0].Revision > 0 {
			old, err := store.Decode[value](s.Records[0].Body)
			if err != nil {
				return err
			}
			v = old
		}
		b := do(&v)
		b.Records = append(b.Records, over(record(notes, id, v), s.Records[0].Revision))
		runtime.Gosched() // so that others have read the same, on one processor, too
		if _, err := f.store.Commit(ctx, b); !errors.Is(err, heed.ErrConflict) || try == 1000 {
			return err
		}
	}
}

// writersConcurrent counts in two records, from many callers, and adds an observation with each change.
func writersConcurrent(t tb, s Subject) {
	f := newFixture(t, s)
	const callers, each = 8, 8
	c := cell(plain, "i", "n")
	f.parallel(callers, func(caller int) error {
		for i := range each {
			err := f.change(fmt.Sprint("counter", i%2), func(v *value) store.Batch {
				v.N++
				return store.Batch{Observations: []evidence.Observation{observation(fmt.Sprintf("%d-%d", caller, i), c, 1)}}
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	for _, id := range []string{"counter0", "counter1"} {
		f.has("after concurrent writers", notes, id, value{N: callers * each / 2})
	}
	if got := f.sums(c).Mass; got != callers*each {
		t.Errorf("%d concurrent changes with an observation each count %v", callers*each, got)
	}
}

// oneWins has many callers write over the same revision, each with a record of its own, new and old records by turns.
func oneWins(t tb, s Subject) {
	f := newFixture(t, s)
	const callers = 8
	for round := range 6 {
		id, revision := fmt.Sprint(round), uint64(0)
		if round%2 == 0 {
			revision = f.write(record(notes, id, value{}))
		}
		var won atomic.Int64
		f.parallel(callers, func(caller int) error {
			_, err := f.store.Commit(ctx, store.Batch{Records: []store.Record{
				record(notes, fmt.Sprint(id, " of ", caller), value{}, "won="+id),
				over(record(notes, id, value{N: int64(caller)}), revision),
			}})
			switch {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, heed.ErrConflict):
				return err
			}
			return nil
		})
		if n := won.Load(); n != 1 {
			t.Errorf("of %d writers over one revision %d won", callers, n)
		}
		if got := f.ids(store.Query{Kind: notes, Keys: []string{"won=" + id}}); len(got) != 1 {
			t.Errorf("writers over one revision left %q beside it", got)
		}
		if got := f.decode(f.get(notes, id)); len(f.ids(store.Query{Kind: notes, Keys: []string{"won=" + id}})) == 1 {
			f.finds("of the one that won", store.Query{Kind: notes, Keys: []string{"won=" + id}}, fmt.Sprint(id, " of ", got.N))
		}
	}
}

// expectConcurrent has two callers. Each writes one record and relies on the other record as it was. Only one may succeed.
func expectConcurrent(t tb, s Subject) {
	f := newFixture(t, s)
	for round := range 25 {
		a, b := fmt.Sprint("a", round), fmt.Sprint("b", round)
		revision := f.write(record(notes, a, value{}), record(notes, b, value{}))
		var made atomic.Int64
		f.parallel(2, func(caller int) error {
			mine, other := a, b
			if caller == 1 {
				mine, other = b, a
			}
			_, err := f.store.Commit(ctx, store.Batch{
				Expect:  []store.Precondition{expect(notes, other, revision)},
				Records: []store.Record{over(record(notes, mine, value{N: 1}), revision)},
			})
			if errors.Is(err, heed.ErrConflict) {
				return nil
			}
			made.Add(1)
			return err
		})
		if n := made.Load(); n > 1 {
			t.Fatalf("two commits that each rely on what the other writes were both made, in round %d", round)
		}
	}
}

// addersConcurrent has many callers write records that are new to all, and records that all of them write once.
func addersConcurrent(t tb, s Subject) {
	f := newFixture(t, s)
	const callers, each = 8, 20
	var left atomic.Int64
	f.parallel(callers, func(caller int) error {
		for i := range each {
			receipts, err := f.store.Commit(ctx, store.Batch{Records: []store.Record{
				record(notes, fmt.Sprintf("%d-%d", caller, i), value{}, "k"),
				once(record(notes, fmt.Sprint("shared", (i+caller)%each), value{N: int64(caller)}, "shared")),
			}})
			if err != nil {
				return err
			}
			left.Add(int64(len(receipts[0].Left)))
		}
		return nil
	})
	if got := len(f.ids(store.Query{Kind: notes, Keys: []string{"k"}})); got != callers*each {
		t.Errorf("of %d records that were added concurrently %d are found", callers*each, got)
	}
	if got := len(f.ids(store.Query{Kind: notes, Keys: []string{"shared"}})); got != each {
		t.Errorf("of %d records that were written once by all %d are found", each, got)
	}
	if n := left.Load(); n != (callers-1)*each {
		t.Errorf("%d receipts call a record left, want %d", n, (callers-1)*each)
	}
}

// readConsistent reads a record and a cell while commits change both.
func readConsistent(t tb, s Subject) {
	f := newFixture(t, s)
	c := cell(plain, "i", "n")
	const rounds = 60
	var done atomic.Bool
	var wait sync.WaitGroup
	defer wait.Wait()
	defer done.Store(true)
	var failure atomic.Pointer[string]
	wait.Go(func() {
		for !done.Load() {
			var s store.Snapshot
			if err := f.store.Read(ctx, &s, []evidence.Cell{c}, []store.Ref{ref(notes, "counter")}); err != nil {
				text := err.Error()
				failure.Store(&text)
				return
			}
			v, _ := store.Decode[value](s.Records[0].Body)
			var n uint64
			for _, part := range s.Parts {
				n += part.Tally.N()
			}
			if s.Records[0].Revision > 0 && n < uint64(v.N) {
				text := fmt.Sprintf("a record tells of %d observations, and the parts read with it hold %d", v.N, n)
				failure.Store(&text)
			}
		}
	})
	for i := range rounds {
		err := f.change("counter", func(v *value) store.Batch {
			v.N++
			return store.Batch{Observations: []evidence.Observation{observation(fmt.Sprint(i), c, 1)}}
		})
		if err != nil {
			t.Fatalf("Commit: %v", err)
		}
	}
	if text := failure.Load(); text != nil {
		t.Errorf("%s", *text)
	}
}

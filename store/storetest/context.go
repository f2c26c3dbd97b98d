package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

func contextDone(t tb, s Subject) {
	f := newFixture(t, s)
	c := cell(plain, "i", "n")
	f.commit(store.Batch{
		Observations: []evidence.Observation{observation("1", c, 1)},
		Records:      []store.Record{record(notes, "r", value{}), record(brief, "old", value{})},
	})
	f.setTime(start.Add(2 * time.Hour))
	done, cancel := context.WithCancel(ctx)
	cancel()
	var failures []error
	note := func(err error) { failures = append(failures, err) }
	_, err := f.store.Commit(done, store.Batch{Observations: []evidence.Observation{observation("2", c, 1)}, Records: []store.Record{record(notes, "new", value{})}})
	note(err)
	note(f.store.Declare(done, store.Kind{Name: "suite.late"}))
	var read store.Snapshot
	note(f.store.Read(done, &read, []evidence.Cell{c}, []store.Ref{ref(notes, "r")}))
	for _, err := range f.store.Find(done, store.Query{Kind: notes}) {
		note(err)
	}
	for _, err := range f.store.List(done, plain, "scope") {
		note(err)
	}
	for _, err := range f.store.Scopes(done, plain) {
		note(err)
	}
	for _, err := range f.store.History(done, c) {
		note(err)
	}
	note(f.store.Sweep(done, time.Time{}))
	if len(failures) != 8 || slices.ContainsFunc(failures, func(err error) bool { return !errors.Is(err, context.Canceled) }) {
		t.Errorf("with a context that is done the eight methods gave %v", failures)
	}
	f.expect("after a commit whose context was done", []evidence.Observation{observation("1", c, 1)}, c)
	f.gone("after a commit whose context was done", notes, "new")
	f.has("after a sweep whose context was done", brief, "old", value{})
	if _, err := f.store.Commit(ctx, store.Batch{Records: []store.Record{record("suite.late", "r", value{})}}); err == nil {
		t.Errorf("a kind is declared by a call whose context was done")
	}
}

// open opens the store again.
func (f *fixture) open() {
	f.Helper()
	st, err := f.subject.Reopen(f.store, f.options)
	if err != nil {
		f.Fatalf("the store can't be opened again: %v", err)
	}
	f.store = st
	f.declare(kinds...)
}

// reopened opens a store again, and looks for everything that it had.
func reopened(t tb, s Subject) {
	f := newFixture(t, s)
	c, d := cell(origin, "i", "n"), cell(fading, "i", "n")
	first := observation("1", c, 1)
	first.Source, first.Channel, first.Session = "ann", "channel", "session"
	f.commit(store.Batch{ID: "batch", Policies: policies, Observations: []evidence.Observation{first, observation("2", d, 0.25), observation("3", d, 1)}})
	f.commit(store.Batch{Retract: []string{"3"}})
	f.commit(store.Batch{Policies: policies, Restart: []store.Restart{{Cell: d, At: start.Add(-time.Minute)}}})
	for i := range 5 {
		f.write(record(notes, fmt.Sprint(4-i), value{N: int64(i)}, "k"))
	}
	f.write(people()...)
	gone := f.write(record(notes, "gone", full))
	f.remove(notes, "gone", gone)
	revision := f.write(record(notes, "full", full, "k", "full=1"))
	place := slices.Collect(f.find(store.Query{Kind: notes, Oldest: true, Limit: 2}))[1].Place
	before := f.state(c, d)
	for range 2 {
		f.open()
		if got := f.state(c, d); !sameJSON(got, before) {
			t.Errorf("opened again, a store has %+v, and had %+v", got, before)
		}
		if got := all(f, f.store.History(ctx, c)); len(got) != 1 || got[0] != first {
			t.Errorf("opened again, a store has the history %+v", got)
		}
		if got := f.has("opened again", notes, "full", full); got.Revision != revision || !slices.Equal(got.Keys, []string{"k", "full=1"}) {
			t.Errorf("opened again, a record of revision %d is %+v", revision, got)
		}
		f.both("opened again", store.Query{Kind: notes, Keys: []string{"k"}}, "4", "3", "2", "1", "0", "full")
		f.finds("opened again", store.Query{Kind: notes, After: place, Oldest: true}, "2", "1", "0", "full")
		f.finds("opened again", store.Query{Kind: notes, Keys: []string{"full=1"}}, "full")
		f.gone("opened again", notes, "gone")
	}
	f.afterOpening(first, c, d, gone)
}

// afterOpening goes on with a store that was opened again.
func (f *fixture) afterOpening(first evidence.Observation, c, d evidence.Cell, gone uint64) {
	f.Helper()
	if receipt := f.commit(store.Batch{ID: "batch"}); !receipt.Duplicate {
		f.Errorf("opened again, a store does not know its batches")
	}
	late := observation("late", d, 1)
	late.At = start.Add(-time.Hour)
	if receipt := f.add(first, observation("3", d, 1), late); len(receipt.Duplicates) != 2 {
		f.Errorf("opened again, a store knows only the observations %q", receipt.Duplicates)
	}
	f.expect("opened again", []evidence.Observation{first, observation("2", d, 0.25)}, c, d)
	if err := f.refused(store.Batch{Observations: []evidence.Observation{observation("4", d, 1)}}); !errors.Is(err, heed.ErrConflict) {
		f.Errorf("opened again, a store takes another policy: %v", err)
	}
	if again := f.write(record(notes, "gone", value{})); again <= gone {
		f.Errorf("opened again, a store gives the revision %d to a record that had %d", again, gone)
	}
	f.write(record(notes, "last", value{}, "k"))
	f.both("opened again and written", store.Query{Kind: notes, Keys: []string{"k"}}, "4", "3", "2", "1", "0", "full", "last")
	f.commit(store.Batch{Retract: []string{"2"}, Forget: []string{"ann"}})
	f.open()
	f.expect("after taking back and opening again", nil, c, d)
	f.finds("after forgetting and opening again", store.Query{Kind: cases, Keys: []string{store.PersonKey("ann")}})
	f.has("after forgetting and opening again", cases, "of", value{By: "bob"})
}

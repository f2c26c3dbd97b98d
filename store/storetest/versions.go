package storetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// readFinds asks for queries beside records and cells.
func readFinds(t tb, s Subject) {
	f := newFixture(t, s)
	c := cell(plain, "i", "n")
	f.add(observation("1", c, 1))
	f.write(record(notes, "a", value{N: 1}, "k"), at(record(notes, "b", value{N: 2}, "k", "l"), 1), record(cases, "c", value{}, "k"))
	queries := []store.Query{
		{Kind: notes, Keys: []string{"k"}}, {Kind: notes, Keys: []string{"none"}}, {Kind: notes, Oldest: true, Limit: 1},
		{Kind: notes, Keys: []string{"l", "k"}}, {Kind: cases},
	}
	want := [][]string{{"b", "a"}, nil, {"a"}, {"b"}, {"c"}}
	read := store.Snapshot{Found: [][]store.Record{nil}}
	for range 2 {
		if err := f.store.Read(ctx, &read, []evidence.Cell{c}, []store.Ref{ref(notes, "a")}, queries...); err != nil {
			t.Fatalf("Read: %v", err)
		}
	}
	if len(read.Records) != 2 || len(read.Parts) != 2 || len(read.Found) != 1+2*len(want) {
		t.Fatalf("two reads of a record, a cell and %d queries append to one list: %+v", len(want), read)
	}
	for i, found := range read.Found[1:] {
		var ids []string
		for _, r := range found {
			if ids = append(ids, r.ID); r.Revision == 0 || r.Body.IsZero() {
				t.Errorf("query %d finds %+v", i%len(want), r)
			}
		}
		if !slices.Equal(ids, want[i%len(want)]) {
			t.Errorf("query %d finds %q, want %q", i%len(want), ids, want[i%len(want)])
		}
	}
	err := f.store.Read(ctx, &read, nil, nil, store.Query{})
	if fault := (*heed.InputError)(nil); !errors.As(err, &fault) {
		t.Errorf("a query that is not valid gives %v", err)
	}
}

// version reads the version of the kind of rare records.
func (f *fixture) version() uint64 {
	f.Helper()
	records := f.snapshot(nil, []store.Ref{ref(notes, "none"), ref(rare, "")}).Records
	if len(records) != 2 || records[1].Ref != ref(rare, "") || !records[1].Body.IsZero() {
		f.Fatalf("Read of a version gives %+v", records)
	}
	return records[1].Revision
}

func versionRaised(t tb, s Subject) {
	f := newFixture(t, s)
	last := f.version()
	raised := func(what string, do func()) {
		f.Helper()
		do()
		now := f.version()
		if now <= last {
			f.Errorf("%s leaves the version at %d, which was %d", what, now, last)
		}
		if last = now; f.version() != now {
			f.Errorf("a read changes the version")
		}
	}
	var revision uint64
	raised("a new record", func() { revision = f.write(record(rare, "a", value{Of: "ann"}, store.PersonKey("ann"))) })
	raised("a changed one", func() {
		revision = f.write(over(record(rare, "a", value{Of: "ann", N: 2}, store.PersonKey("ann")), revision))
	})
	raised("one of two batches", func() {
		f.commits(store.Batch{Records: []store.Record{record(notes, "a", value{})}}, store.Batch{Records: []store.Record{once(record(rare, "b", value{}))}})
	})
	raised("a person forgotten", func() { f.commit(store.Batch{Forget: []string{"ann"}}) })
	const callers = 8
	f.parallel(callers, func(caller int) error {
		_, err := f.store.Commit(ctx, store.Batch{Records: []store.Record{once(record(rare, fmt.Sprint("together", caller), value{}))}})
		return err
	})
	if now := f.version(); now < last+callers {
		f.Errorf("%d commits at the same time raise the version from %d to %d", callers, last, now)
	}
	last = f.version()
	raised("a removal", func() { f.remove(rare, "a", f.get(rare, "a").Revision) })
	c := cell(plain, "i", "n")
	f.add(observation("1", c, 1))
	raised("a source expunged", func() { f.commit(store.Batch{Expunge: []string{"ann"}}) })
	raised("a reset", func() { f.commit(store.Batch{Reset: []store.Selection{{Kind: c.Kind, Scope: c.Scope}}}) })
	raised("a rebuild", func() { f.commit(store.Batch{Rebuild: []evidence.Cell{c}}) })
	raised("a restart", func() { f.commit(store.Batch{Restart: []store.Restart{{Cell: c, At: start}}}) })
	raised("a sweep", func() {
		f.setTime(start.Add(2 * time.Hour))
		f.sweep(time.Time{})
	})
	f.gone("after a sweep", rare, "b")
	f.finds("a version is no record", store.Query{Kind: rare})
}

// readRare reads the version of the rare records, and the least number in what else is read.
func (f *fixture) readRare() (version uint64, n int64, err error) {
	var s store.Snapshot
	q := store.Query{Kind: rare, Keys: []string{"k"}}
	if err := f.store.Read(ctx, &s, nil, []store.Ref{ref(rare, "r"), ref(rare, "")}, q); err != nil {
		return 0, 0, err
	}
	if s.Records[0].Revision > 0 {
		v, _ := store.Decode[value](s.Records[0].Body)
		n = v.N
	}
	if len(s.Found[0]) > 0 {
		v, _ := store.Decode[value](s.Found[0][0].Body)
		n = min(n, v.N)
	}
	return s.Records[1].Revision, n, nil
}

// versionConsistent keeps what was read by its version, as a cache does, while commits change it.
func versionConsistent(t tb, s Subject) {
	f := newFixture(t, s)
	var mu sync.Mutex
	kept := make(map[uint64]int64)
	var done atomic.Bool
	var failure atomic.Pointer[string]
	var wait sync.WaitGroup
	defer wait.Wait()
	defer done.Store(true)
	for range 2 {
		wait.Go(func() {
			for !done.Load() {
				version, n, err := f.readRare()
				if err != nil {
					text := err.Error()
					failure.Store(&text)
					return
				}
				mu.Lock()
				if before, ok := kept[version]; !ok || n < before {
					kept[version] = n
				}
				mu.Unlock()
			}
		})
	}
	var revision uint64
	for n := range int64(60) {
		revision = f.write(over(record(rare, "r", value{N: n}, "k"), revision))
		version, _, err := f.readRare()
		if err != nil {
			t.Fatalf("Read: %v", err)
		}
		mu.Lock()
		before, ok := kept[version]
		mu.Unlock()
		if ok && before < n {
			text := fmt.Sprintf("version %d was read with %d before, and now is that of %d", version, before, n)
			failure.Store(&text)
		}
	}
	if text := failure.Load(); text != nil {
		t.Errorf("%s", *text)
	}
}

func versionDeclared(t tb, s Subject) {
	f := newFixture(t, s)
	for _, kind := range []string{notes, "suite.unknown"} {
		var read store.Snapshot
		err := f.store.Read(ctx, &read, nil, []store.Ref{ref(rare, ""), ref(kind, "")})
		if fault := (*heed.InputError)(nil); !errors.As(err, &fault) || len(read.Records) > 0 {
			t.Errorf("the version of kind %q is %+v, and the error %v", kind, read.Records, err)
		}
	}
	f.declare(store.Kind{Name: rare}) // which says nothing of a version
	before := f.version()
	f.write(record(rare, "a", value{}))
	if f.version() <= before {
		t.Errorf("a later declaration takes the version away")
	}
}

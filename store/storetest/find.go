package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// at returns a record of the given number of seconds after the start.
func at(r store.Record, seconds int) store.Record {
	r.At = start.Add(time.Duration(seconds) * time.Second)
	return r
}

func reversed(ids []string) []string {
	ids = slices.Clone(ids)
	slices.Reverse(ids)
	return ids
}

// both checks what a query finds, oldest first, and the reverse.
func (f *fixture) both(what string, q store.Query, oldest ...string) {
	f.Helper()
	q.Oldest = true
	f.finds(what, q, oldest...)
	q.Oldest = false
	f.finds(what, q, reversed(oldest)...)
}

func findOrder(t tb, s Subject) {
	f := newFixture(t, s)
	// Several of one moment are in one batch, in one commit and in several commits; ids are in no order.
	f.write(at(record(notes, "m", value{}, "k"), 5), at(record(notes, "c", value{}, "k"), 5), at(record(notes, "x", value{}, "k"), 1))
	f.write(at(record(notes, "a", value{}, "k"), 5))
	f.commits(
		store.Batch{Records: []store.Record{at(record(notes, "z", value{}, "k"), 5), at(record(notes, "y", value{}, "k"), -3)}},
		store.Batch{Records: []store.Record{once(at(record(notes, "b", value{}, "k"), 5)), once(at(record(notes, "n", value{}, "k"), 9))}},
	)
	f.write(at(record(cases, "other kind", value{}, "k"), 5))
	want := []string{"y", "x", "m", "c", "a", "z", "b", "n"}
	for _, keys := range [][]string{nil, {"k"}} {
		f.both("by time and first writing", store.Query{Kind: notes, Keys: keys}, want...)
		for limit := 1; limit < 10; limit++ {
			n := min(limit, len(want))
			f.finds("limited", store.Query{Kind: notes, Keys: keys, Oldest: true, Limit: limit}, want[:n]...)
			f.finds("limited", store.Query{Kind: notes, Keys: keys, Limit: limit}, reversed(want)[:n]...)
		}
		five, six := start.Add(5*time.Second), start.Add(6*time.Second)
		f.both("since is inclusive", store.Query{Kind: notes, Keys: keys, Since: five}, want[2:]...)
		f.both("until is exclusive", store.Query{Kind: notes, Keys: keys, Until: five}, want[:2]...)
		f.both("of one moment", store.Query{Kind: notes, Keys: keys, Since: five, Until: six}, want[2:7]...)
		f.both("of no moment", store.Query{Kind: notes, Keys: keys, Since: six, Until: six})
		f.both("by the microsecond", store.Query{Kind: notes, Keys: keys, Since: five.Add(time.Microsecond)}, "n")
	}
}

func findRewritten(t tb, s Subject) {
	f := newFixture(t, s)
	revisions := make(map[string]uint64)
	for _, id := range []string{"a", "b", "c", "d"} {
		revisions[id] = f.write(record(notes, id, value{}, "k=1", "old="+id))
	}
	for _, id := range []string{"c", "a", "a", "d"} {
		revisions[id] = f.write(over(record(notes, id, value{N: 1}, "k=1", "new="+id), revisions[id]))
	}
	for _, keys := range [][]string{nil, {"k=1"}} {
		f.both("after rewriting", store.Query{Kind: notes, Keys: keys}, "a", "b", "c", "d")
	}
	for _, id := range []string{"a", "c", "d"} {
		f.finds("by a key that went", store.Query{Kind: notes, Keys: []string{"old=" + id}})
		f.finds("by a key that came", store.Query{Kind: notes, Keys: []string{"new=" + id, "k=1"}}, id)
	}
	f.finds("by a key that stayed", store.Query{Kind: notes, Keys: []string{"old=b"}}, "b")
	// A record that moves stands where its new moment is, and among others of it in the order of first writing.
	revisions["b"] = f.write(over(at(record(notes, "b", value{}, "k=1"), 7), revisions["b"]))
	revisions["d"] = f.write(over(at(record(notes, "d", value{}, "k=1"), 7), revisions["d"]))
	f.write(at(record(notes, "e", value{}, "k=1"), 7))
	revisions["a"] = f.write(over(at(record(notes, "a", value{}, "k=1"), 7), revisions["a"]))
	for _, keys := range [][]string{nil, {"k=1"}} {
		f.both("after moving", store.Query{Kind: notes, Keys: keys}, "c", "a", "b", "d", "e")
		f.both("where they were", store.Query{Kind: notes, Keys: keys, Until: start.Add(time.Second)}, "c")
	}
	f.finds("by a key that went as the record moved", store.Query{Kind: notes, Keys: []string{"new=a"}})
	revisions["a"] = f.write(over(record(notes, "a", value{}), revisions["a"]))
	f.both("after moving back", store.Query{Kind: notes}, "a", "c", "b", "d", "e")
	f.finds("after losing all keys", store.Query{Kind: notes, Keys: []string{"k=1"}, Oldest: true}, "c", "b", "d", "e")
	f.remove(notes, "a", revisions["a"])
	f.write(record(notes, "a", value{}))
	f.both("removed and made again", store.Query{Kind: notes}, "c", "a", "b", "d", "e")
}

// findSelects asks random queries of records that differ in everything.
func findSelects(t tb, s Subject) {
	f := newFixture(t, s)
	rng := rand.New(rand.NewPCG(1, 2))
	var written []store.Record
	for i := range 120 {
		var keys []string
		for _, name := range []string{"a", "b", "c"} {
			if rng.IntN(3) > 0 {
				keys = append(keys, store.Key(name, fmt.Sprint(rng.IntN(3))))
			}
		}
		r := at(record([]string{notes, cases}[rng.IntN(2)], fmt.Sprint(i), value{}, keys...), rng.IntN(20))
		f.write(r)
		written = append(written, r)
	}
	slices.SortStableFunc(written, func(a, b store.Record) int { return a.At.Compare(b.At) })
	for range 150 {
		q := store.Query{Kind: notes, Oldest: true}
		for _, name := range []string{"b", "a", "c"} {
			if rng.IntN(3) == 0 {
				q.Keys = append(q.Keys, store.Key(name, fmt.Sprint(rng.IntN(3))))
			}
		}
		if rng.IntN(3) == 0 {
			q.Since = start.Add(time.Duration(rng.IntN(20)) * time.Second)
		}
		if rng.IntN(3) == 0 {
			q.Until = start.Add(time.Duration(rng.IntN(20)) * time.Second)
		}
		var want []string
		for _, r := range written {
			if r.Kind == q.Kind && !slices.ContainsFunc(q.Keys, func(key string) bool { return !slices.Contains(r.Keys, key) }) &&
				!r.At.Before(q.Since) && (q.Until.IsZero() || r.At.Before(q.Until)) {
				want = append(want, r.ID)
			}
		}
		f.both(fmt.Sprintf("%+v", q), q, want...)
		if limit := 1 + rng.IntN(9); len(want) > limit {
			q.Limit = limit
			f.finds(fmt.Sprintf("%+v", q), q, want[:limit]...)
		}
	}
}

func findInvalid(t tb, s Subject) {
	f := newFixture(t, s)
	f.write(record(notes, "r", value{}))
	for field, q := range map[string]store.Query{
		"Kind": {}, "Limit": {Kind: notes, Limit: -1}, "Keys[0]": {Kind: notes, Keys: []string{"\x00"}}, "After": {Kind: notes, After: "no such place"},
	} {
		rounds := 0
		for r, err := range f.store.Find(ctx, q) {
			rounds++
			if fault := (*heed.InputError)(nil); !errors.As(err, &fault) || fault.Field != field {
				t.Errorf("a query with a fault of %s gives %+v and %v", field, r, err)
			}
		}
		if rounds != 1 {
			t.Errorf("a query with a fault of %s goes %d rounds", field, rounds)
		}
	}
}

// findPages goes through records page by page, while others are added before and behind, are rewritten and go.
func findPages(t tb, s Subject) {
	for _, oldest := range []bool{false, true} {
		for _, size := range []int{1, 3, 40, 64} {
			f := newFixture(t, s)
			var batch []store.Record
			for i := range 40 { // many are of one moment
				batch = append(batch, at(record(notes, fmt.Sprint(i), value{}, "k", fmt.Sprint("half=", i%2)), i/9*10))
			}
			f.write(batch...)
			q := store.Query{Kind: notes, Keys: []string{"k"}, Oldest: oldest, Limit: size}
			seen := make(map[string]int)
			for page := 0; ; page++ {
				n, last := 0, store.Record{}
				for r := range f.find(q) {
					seen[r.ID]++
					last = r
					n++
				}
				if n < size {
					break
				}
				if page > 100 {
					t.Fatalf("pages of %d never end", size)
				}
				q.After = last.Place
				for _, seconds := range []int{-5, 15, 45} {
					if page < 10 {
						f.write(at(record(notes, fmt.Sprint("added ", page, seconds), value{}, "k"), seconds))
					}
				}
				switch page {
				case 0: // the record at the boundary may change, and go: its place stays one to go on from
					f.write(over(at(record(notes, last.ID, value{N: 1}), 0), last.Revision))
				case 1:
					f.remove(notes, last.ID, last.Revision)
				}
			}
			for i := range 40 {
				if n := seen[fmt.Sprint(i)]; n != 1 {
					t.Errorf("in pages of %d (oldest first: %v), record %d comes %d times", size, oldest, i, n)
				}
			}
			for id, n := range seen {
				if n > 1 {
					t.Errorf("in pages of %d (oldest first: %v), record %q comes %d times", size, oldest, id, n)
				}
			}
		}
	}
	f := newFixture(t, s)
	f.write(at(record(notes, "a", value{}), 1), at(record(notes, "b", value{}), 1), at(record(notes, "c", value{}), 2))
	places := make(map[string]string)
	for r := range f.find(store.Query{Kind: notes}) {
		places[r.ID] = r.Place
	}
	f.finds("behind, newest first", store.Query{Kind: notes, After: places["b"]}, "a")
	f.finds("behind, oldest first", store.Query{Kind: notes, After: places["b"], Oldest: true}, "c")
	f.finds("behind, with a bound", store.Query{Kind: notes, After: places["c"], Since: start.Add(time.Second)}, "b", "a")
	f.finds("behind the last", store.Query{Kind: notes, After: places["c"], Oldest: true})
}

// loopsAreFree ends every loop early, after it has called the store from within.
func loopsAreFree(t tb, s Subject) {
	f := newFixture(t, s)
	c := cell(plain, "i", "a")
	for i, name := range []string{"a", "b", "c"} {
		f.commit(store.Batch{
			Observations: []evidence.Observation{observation(fmt.Sprint(i), cell(plain, "i", name), 1), observation(fmt.Sprint("again", i), c, 1)},
			Records:      []store.Record{record(notes, name, value{}, "k")},
		})
	}
	rounds := 0
	inside := func() {
		f.snapshot([]evidence.Cell{c}, []store.Ref{ref(notes, "a")})
		f.add(observation(fmt.Sprint("inside", rounds), c, 1))
		f.write(record(notes, fmt.Sprint("inside", rounds), value{}, "k"))
		for range f.find(store.Query{Kind: notes, Keys: []string{"k"}, Limit: 1}) {
			rounds++
		}
	}
	for range f.store.List(ctx, plain, "scope") {
		inside()
		break
	}
	for range f.store.Scopes(ctx, plain) {
		inside()
		break
	}
	for range f.store.History(ctx, c) {
		inside()
		break
	}
	for range f.store.Find(ctx, store.Query{Kind: notes}) {
		inside()
		break
	}
	for range f.store.Find(ctx, store.Query{Kind: notes, Keys: []string{"k"}, Oldest: true}) {
		inside()
		break
	}
	if rounds != 5 {
		t.Errorf("%d of 5 loops had something to show", rounds)
	}
}

// longLoop loops over more records than a store reads at a time, and changes others meanwhile.
func longLoop(t tb, s Subject) {
	for _, oldest := range []bool{false, true} {
		f := newFixture(t, s)
		const n = 1300
		var batch []store.Record
		for i := range n {
			batch = append(batch, at(record(notes, fmt.Sprint(i), value{N: int64(i)}, "k"), i/100))
		}
		f.write(batch...)
		seen := make(map[string]int)
		rounds := 0
		for r := range f.find(store.Query{Kind: notes, Keys: []string{"k"}, Oldest: oldest}) {
			seen[r.ID]++
			if rounds++; rounds%100 == 1 {
				f.write(at(record(notes, fmt.Sprint("added", rounds), value{}, "k"), rounds/100))
				r.Body, r.Place = store.Of(value{Text: "rewritten"}), ""
				f.write(r)
			}
		}
		for i := range n {
			if seen[fmt.Sprint(i)] != 1 {
				t.Errorf("a loop over %d records (oldest first: %v) meets record %d %d times", n, oldest, i, seen[fmt.Sprint(i)])
			}
		}
	}
}

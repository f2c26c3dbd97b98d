package storetest

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// findOrder writes records of a few moments, changes, moves and removes some, and compares what is
// found with a list of them.
func findOrder(f *fixture) {
	rng := rand.New(rand.NewPCG(1, 2))
	moment := func() time.Time { return start.Add(time.Duration(rng.IntN(12)) * time.Second) }
	keys := func(names ...string) (keys []string) {
		for _, name := range names {
			if rng.IntN(2) > 0 {
				keys = append(keys, store.Key(name, fmt.Sprint(rng.IntN(3))))
			}
		}
		return keys
	}
	random := func(kind, id string) store.Record {
		r := record(kind, id, value{}, keys("a", "b", "c")...)
		r.At = moment()
		return r
	}
	var there records // in the order of their first writing
	gone := ref(notes, "0")
	for i := range 30 {
		var added records // in two batches of two
		n := fmt.Sprint(i + 1)
		for k, id := range []string{"a" + n, gone.ID, "z" + n, n} {
			added = append(added, random([]string{notes, cases}[k/3], id))
		}
		added[2].Revision = store.Once
		batches := []store.Batch{{Records: added[:2]}, {Records: slices.Clip(added[2:])}}
		gone.ID = n
		if i > 0 { // one is rewritten, and one is removed, to be new in the next round
			n := rng.IntN(len(there) - 1)
			changed := random(there[n].Kind, there[n].ID)
			was := there[n+1].Ref
			batches[1].Records = append(batches[1].Records,
				over(f.get(changed.Kind, changed.ID).Revision, changed),
				removal(was.Kind, was.ID, f.get(was.Kind, was.ID).Revision))
			there[n] = changed
			there = slices.Delete(there, n+1, n+2)
			if was.Kind == notes {
				gone = was
			}
		}
		f.commits(batches...)
		there = append(there, added...)
		if i%3 == 0 {
			f.findsLike(there, func() store.Query {
				q := by([]string{notes, cases}[rng.IntN(2)], keys("b", "a", "c")...)
				if rng.IntN(2) > 0 {
					q.Since = moment().Add(-4 * time.Second)
				}
				if rng.IntN(2) > 0 {
					q.Until = moment().Add(4 * time.Second)
				}
				return q
			})
		}
	}
}

// findsLike compares what random queries find with a list of all records, in the order of their
// first writing.
func (f *fixture) findsLike(there records, random func() store.Query) {
	sorted := slices.Clone(there)
	slices.SortStableFunc(sorted, func(a, b store.Record) int { return a.At.Compare(b.At) })
	for i := range 20 {
		q := random()
		var want []string
		for _, r := range sorted {
			lacks := func(key string) bool { return !slices.Contains(r.Keys, key) }
			if r.Kind == q.Kind && !slices.ContainsFunc(q.Keys, lacks) &&
				!r.At.Before(q.Since) && (q.Until.IsZero() || r.At.Before(q.Until)) {
				want = append(want, r.ID)
			}
		}
		f.both(q, want...)
		q.Limit = 1 + i/2
		n := min(q.Limit, len(want))
		f.finds(q, reversed(want)[:n]...)
		q.Oldest = true
		f.finds(q, want[:n]...)
	}
}

func findPages(f *fixture) {
	placesStay(f)
	for _, size := range []int{1, 3, 40, 64} {
		f.pages(40, size)
	}
	f.pages(1300, 0) // more than a store reads at a time
}

// placesStay reads on from places, which later commits leave as they are.
func placesStay(f *fixture) {
	f.write(at(0, note("a", value{})), at(time.Second, note("b", value{})),
		at(time.Second, note("c", value{})), at(2*time.Second, note("d", value{})))
	places := make(map[string]string)
	for _, r := range f.find(by(notes)) {
		places[r.ID] = r.Place
	}
	f.write(note("later", value{}))
	f.remove(notes, "later")
	f.finds(store.Query{Kind: notes, After: places["c"]}, "b", "a")
	f.finds(store.Query{Kind: notes, After: places["c"], Oldest: true}, "d")
	f.finds(store.Query{Kind: notes, After: places["d"], Since: start.Add(time.Second)}, "c", "b")
	f.finds(store.Query{Kind: notes, After: places["d"], Oldest: true})
}

// pages reads records in pages of a size, or in one loop if that is 0, while others are added
// before and behind. The last record that was read may change, move and go: its place stays one to
// go on from.
func (f *fixture) pages(n, size int) {
	for _, oldest := range []bool{false, true} {
		f := f.fresh()
		q := store.Query{Kind: notes, Keys: []string{"k"}, Limit: size, Oldest: oldest}
		f.after("pages of %+v", q)
		f.write(repeat(n, func(i int) store.Record { // many are of one moment
			return at(time.Duration(i/9*10)*time.Second, note(fmt.Sprint(i), value{}, "k"))
		})...)
		seen, pages := make(map[string]int), 0
		for more := true; more && pages < 100; {
			more = false
			read := 0
			for r, err := range f.store.Find(ctx, q) {
				f.Must("Find", err)
				seen[r.ID]++
				if read++; read == q.Limit || size == 0 && read%100 == 1 {
					f.disturb(pages, r)
					pages++
					q.After, more = r.Place, size > 0
				}
			}
		}
		for i := range n {
			f.Equal(fmt.Sprint("the times that record ", i, " was met"), seen[fmt.Sprint(i)], 1)
		}
		for id, times := range seen {
			f.Check(times == 1, "record %q was met %d times", id, times)
		}
	}
}

// disturb adds records, and changes, moves or removes one.
func (f *fixture) disturb(round int, last store.Record) {
	for _, seconds := range []time.Duration{-5, 15, 45} {
		added := note(fmt.Sprint("added ", round, int(seconds)), value{}, "k")
		if round < 10 {
			f.write(at(seconds*time.Second, added))
		}
	}
	switch round % 6 {
	case 0:
		f.write(over(last.Revision, note(last.ID, value{N: 1})))
	case 1:
		f.remove(notes, last.ID)
	case 2:
		last.Body, last.Place = store.Of(value{Text: "rewritten"}), ""
		f.write(last)
	}
}

// firstRound calls the function in the first round of a loop, which it ends then.
func firstRound[T any](seq iter.Seq2[T, error], do func()) {
	for range seq {
		do()
		break
	}
}

// loopsAreFree ends every loop early, after it called the store from within.
func loopsAreFree(f *fixture) {
	for _, name := range []string{"a", "b", "c"} {
		batch := under(seen("1 "+name, cell(plain, "i", name), 1), seen("2 "+name, plainCell, 1))
		batch.Records = records{note(name, value{}, "k")}
		f.commit(batch)
	}
	rounds := 0
	inside := func() {
		rounds++
		f.snapshot([]evidence.Cell{plainCell}, []store.Ref{ref(notes, "a")})
		f.add(seen(fmt.Sprint("inside", rounds), plainCell, 1))
		f.write(note(fmt.Sprint("inside", rounds), value{}, "k"))
		f.Equal("the records found inside", len(f.find(store.Query{Kind: notes, Limit: 1})), 1)
	}
	firstRound(f.store.List(ctx, store.CellQuery{Kind: plain, Scope: "scope"}), inside)
	firstRound(f.store.Scopes(ctx, plain), inside)
	firstRound(f.store.History(ctx, plainCell), inside)
	firstRound(f.store.Find(ctx, by(notes)), inside)
	firstRound(f.store.Find(ctx, store.Query{Kind: notes, Keys: []string{"k"}, Oldest: true}), inside)
	f.Equal("the loops with something to show", rounds, 5)
}

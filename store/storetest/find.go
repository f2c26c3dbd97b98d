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

// within returns a query with bounds of time.
func within(since, until time.Time, q store.Query) store.Query {
	q.Since, q.Until = since, until
	return q
}

func findOrder(f *fixture) {
	later := func(id string, seconds time.Duration) store.Record {
		return at(seconds*time.Second, note(id, value{}, "k"))
	}
	// Records of one moment are in one batch, in one commit and in several; ids are in no order.
	f.write(later("m", 5), later("c", 5), later("x", 1))
	f.write(later("a", 5))
	f.commits(
		store.Batch{Records: records{later("z", 5), later("y", -3)}},
		store.Batch{Records: records{once(later("b", 5)), once(later("n", 9))}},
	)
	f.write(at(5*time.Second, record(cases, "other kind", value{}, "k")))
	want := []string{"y", "x", "m", "c", "a", "z", "b", "n"}
	five, six, never := start.Add(5*time.Second), start.Add(6*time.Second), time.Time{}
	for _, q := range []store.Query{by(notes), by(notes, "k")} {
		f.both(q, want...)
		f.both(within(five, never, q), want[2:]...) // since is inclusive
		f.both(within(never, five, q), want[:2]...) // until is exclusive
		f.both(within(five, six, q), want[2:7]...)
		f.both(within(six, six, q))
		f.both(within(five.Add(time.Microsecond), never, q), "n")
		for q.Limit = 1; q.Limit < 10; q.Limit++ {
			n := min(q.Limit, len(want))
			q.Oldest = false
			f.finds(q, reversed(want)[:n]...)
			q.Oldest = true
			f.finds(q, want[:n]...)
		}
	}
}

func findRewritten(f *fixture) {
	rewrite := func(id string, after time.Duration, keys ...string) {
		f.write(over(f.get(notes, id).Revision, at(after, note(id, value{N: 1}, keys...))))
	}
	everywhere := func(oldest ...string) {
		f.both(by(notes), oldest...)
		f.both(by(notes, "k=1"), oldest...)
	}
	for _, id := range []string{"a", "b", "c", "d"} {
		f.write(note(id, value{}, "k=1", "old="+id))
	}
	for _, id := range []string{"c", "a", "a", "d"} {
		rewrite(id, 0, "k=1", "new="+id)
	}
	// Rewritten records stay where they are.
	everywhere("a", "b", "c", "d")
	for _, id := range []string{"a", "c", "d"} {
		f.finds(by(notes, "old="+id))
		f.finds(by(notes, "new="+id, "k=1"), id)
	}
	f.finds(by(notes, "old=b"), "b")
	// Those that move are of their new moment.
	rewrite("b", time.Minute, "k=1")
	rewrite("d", time.Minute, "k=1")
	f.write(at(time.Minute, note("e", value{}, "k=1")))
	rewrite("a", time.Minute, "k=1")
	everywhere("c", "a", "b", "d", "e")
	f.both(within(time.Time{}, start.Add(time.Second), by(notes)), "c")
	f.both(within(time.Time{}, start.Add(time.Second), by(notes, "k=1")), "c")
	f.finds(by(notes, "new=a"))
	// One moves back, and loses its keys.
	rewrite("a", 0)
	f.both(by(notes), "a", "c", "b", "d", "e")
	f.both(by(notes, "k=1"), "c", "b", "d", "e")
	// A record that is removed and written again is a new one.
	f.remove(notes, "a")
	f.write(note("a", value{}))
	f.both(by(notes), "c", "a", "b", "d", "e")
}

// findSelects asks random queries of records that differ in everything.
func findSelects(f *fixture) {
	rng := rand.New(rand.NewPCG(1, 2))
	second := func() time.Duration { return time.Duration(rng.IntN(20)) * time.Second }
	keys := func(names ...string) (keys []string) {
		for _, name := range names {
			if rng.IntN(2) > 0 {
				keys = append(keys, store.Key(name, fmt.Sprint(rng.IntN(3))))
			}
		}
		return keys
	}
	written := repeat(120, func(i int) store.Record {
		kind := []string{notes, cases}[rng.IntN(2)]
		return at(second(), record(kind, fmt.Sprint(i), value{}, keys("a", "b", "c")...))
	})
	for _, r := range written {
		f.write(r)
	}
	slices.SortStableFunc(written, func(a, b store.Record) int { return a.At.Compare(b.At) })
	for range 150 {
		q := by(notes, keys("b", "a", "c")...)
		q.Since = start.Add(second() - 10*time.Second)
		q.Until = start.Add(second() + 5*time.Second)
		var want []string
		for _, r := range written {
			lacks := func(key string) bool { return !slices.Contains(r.Keys, key) }
			if r.Kind == q.Kind && !slices.ContainsFunc(q.Keys, lacks) &&
				!r.At.Before(q.Since) && r.At.Before(q.Until) {
				want = append(want, r.ID)
			}
		}
		f.both(q, want...)
		q.Oldest, q.Limit = true, 1+rng.IntN(9)
		f.finds(q, want[:min(q.Limit, len(want))]...)
	}
}

func findInvalid(f *fixture) {
	f.write(note("r", value{}))
	for field, q := range map[string]store.Query{
		"Kind": {}, "Limit": {Kind: notes, Limit: -1}, "Keys[0]": by(notes, "\x00"),
		"After": {Kind: notes, After: "no such place"},
	} {
		var faults []string
		for _, err := range f.store.Find(ctx, q) {
			faults = append(faults, faultOf(err))
		}
		f.Equal("the fields at fault, by round", faults, []string{field})
	}
}

func findPages(f *fixture) {
	f.write(at(0, note("a", value{})), at(time.Second, note("b", value{})),
		at(time.Second, note("c", value{})), at(2*time.Second, note("d", value{})))
	places := make(map[string]string)
	for _, r := range f.find(by(notes)) {
		places[r.ID] = r.Place
	}
	f.finds(store.Query{Kind: notes, After: places["c"]}, "b", "a")
	f.finds(store.Query{Kind: notes, After: places["c"], Oldest: true}, "d")
	f.finds(store.Query{Kind: notes, After: places["d"], Since: start.Add(time.Second)}, "c", "b")
	f.finds(store.Query{Kind: notes, After: places["d"], Oldest: true})
	for _, size := range []int{1, 3, 40, 64} {
		f.fresh().pages(store.Query{Kind: notes, Keys: []string{"k"}, Limit: size})
		f.fresh().pages(store.Query{Kind: notes, Keys: []string{"k"}, Limit: size, Oldest: true})
	}
}

// pages reads records page by page, while others are added before and behind. The last record of a
// page may change and go: its place stays one to go on from.
func (f *fixture) pages(q store.Query) {
	f.after("pages of %+v", q)
	f.write(repeat(40, func(i int) store.Record { // many are of one moment
		return at(time.Duration(i/9*10)*time.Second, note(fmt.Sprint(i), value{}, "k"))
	})...)
	seen := make(map[string]int)
	for page := range 100 {
		found := f.find(q)
		for _, r := range found {
			seen[r.ID]++
		}
		if len(found) < q.Limit {
			break
		}
		last := found[q.Limit-1]
		q.After = last.Place
		for _, seconds := range []time.Duration{-5, 15, 45} {
			if page < 10 {
				added := note(fmt.Sprint("added ", page, int(seconds)), value{}, "k")
				f.write(at(seconds*time.Second, added))
			}
		}
		switch page {
		case 0:
			f.write(over(last.Revision, note(last.ID, value{N: 1})))
		case 1:
			f.remove(notes, last.ID)
		}
	}
	f.onceEach(seen, 40)
}

// onceEach checks that the records with the first numbers were met once, and others once at most.
func (f *fixture) onceEach(seen map[string]int, n int) {
	for i := range n {
		f.Equal(fmt.Sprint("the times that record ", i, " was met"), seen[fmt.Sprint(i)], 1)
	}
	for id, times := range seen {
		f.Check(times == 1, "record %q was met %d times", id, times)
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

// longLoop loops over more records than a store reads at a time, and changes others in between.
func longLoop(f *fixture) {
	const n = 1300
	for _, oldest := range []bool{false, true} {
		f = f.fresh()
		f.write(repeat(n, func(i int) store.Record {
			return at(time.Duration(i/100)*time.Second, note(fmt.Sprint(i), value{N: int64(i)}, "k"))
		})...)
		seen, rounds := make(map[string]int), 0
		q := store.Query{Kind: notes, Keys: []string{"k"}, Oldest: oldest}
		for r, err := range f.store.Find(ctx, q) {
			f.Must("Find", err)
			seen[r.ID]++
			if rounds++; rounds%100 == 1 {
				added := note(fmt.Sprint("added", rounds), value{}, "k")
				f.write(at(time.Duration(rounds/100)*time.Second, added))
				r.Body, r.Place = store.Of(value{Text: "rewritten"}), ""
				f.write(r)
			}
		}
		f.onceEach(seen, n)
	}
}

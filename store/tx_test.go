package store_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
)

// do runs a step on a store that has the number a, which is 1, and returns the store.
func do(t *testing.T, step func(tx *store.Tx) error) (*scripted, error) {
	st := newScripted(t)
	put(t, st.Store, number{"a", 1})
	return st, store.Do(ctx, st, step)
}

func in(t *testing.T, tx *store.Tx, id string) store.Row[number] {
	row, err := numbers.In(tx, id)
	require.NoError(t, err)
	return row
}

func TestAStepSeesWhatItWrites(t *testing.T) {
	st, err := do(t, func(tx *store.Tx) error {
		a, b := in(t, tx, "a"), in(t, tx, "b")
		require.Zero(t, b.Revision)

		assert.False(t, tx.Writes(numbers.Ref("a")))
		numbers.Put(tx, number{"a", 2}, a.Revision)
		assert.True(t, tx.Writes(numbers.Ref("a")))
		assert.Equal(t, number{"a", 2}, in(t, tx, "a").Value)
		assert.Equal(t, a.Revision, in(t, tx, "a").Revision)

		numbers.Put(tx, number{"b", 1}, 0)
		b = in(t, tx, "b")
		assert.Equal(t, number{"b", 1}, b.Value)
		assert.NotZero(t, b.Revision, "it is there, as the step sees it")
		numbers.Put(tx, number{"b", 2}, b.Revision)
		tx.Expect(numbers.Expect("b", b.Revision))
		assert.Equal(t, 2, in(t, tx, "b").Value.N)

		var s store.Snapshot
		require.NoError(t, tx.Read(&s, nil, []store.Ref{numbers.Ref("a"), numbers.Ref("b")}))
		first, err := numbers.Of(s.Records[0])
		require.NoError(t, err)
		assert.Equal(t, 1, first.Value.N, "Read returns what was read")
		assert.Zero(t, s.Records[1].Revision)
		return nil
	})
	require.NoError(t, err)
	assert.Equal(t, 2, st.reads)
	assert.Equal(t, 2, value(t, st, "a"))
	assert.Equal(t, 2, value(t, st, "b"))
}

// Each query that differs from the others is read, and a query that was read is not read again.
func TestEachQueryIsReadOnce(t *testing.T) {
	base := store.Query{Kind: numbers.Name, Keys: []string{"all"}, Since: start, Limit: 7}
	st := newScripted(t)
	tx := store.Reading(ctx, st)
	read := func(q store.Query) (reads int) {
		before := st.reads
		require.NoError(t, tx.Read(&store.Snapshot{}, nil, nil, q))
		return st.reads - before
	}
	for _, change := range []func(q *store.Query){
		func(*store.Query) {}, func(q *store.Query) { q.Keys = nil },
		func(q *store.Query) { q.Since = start.Add(1) }, func(q *store.Query) { q.Until = start },
		func(q *store.Query) { q.Oldest = true }, func(q *store.Query) { q.Limit = 8 },
		func(q *store.Query) { q.After = "0.0" }, func(q *store.Query) { q.Kind = "heed.kinds" },
	} {
		q := base
		change(&q)
		assert.Equal(t, 1, read(q), "%+v", q)
		assert.Zero(t, read(q), "%+v", q)
		assert.Zero(t, read(base))
	}
}

// One read of several cells gives each its own parts, in the order of the call.
func TestEachCellHasItsOwnParts(t *testing.T) {
	st := newScripted(t)
	other, none := cell, cell
	other.Item, none.Item = "other", "none"
	seen := observed("b")
	seen.Cell = other
	_, err := st.Commit(ctx, store.Batch{
		Observations: []evidence.Observation{observed("a"), seen},
	})
	require.NoError(t, err)
	var s store.Snapshot
	tx := store.Reading(ctx, st)
	require.NoError(t, tx.Read(&s, []evidence.Cell{cell, none, other}, nil))
	require.NoError(t, tx.Read(&s, []evidence.Cell{other}, nil))
	var cells []evidence.Cell
	for _, p := range s.Parts {
		cells = append(cells, p.Cell)
	}
	assert.Equal(t, []evidence.Cell{cell, other, other}, cells)
	assert.Equal(t, 1, st.reads)
}

// A store that can't be reached is an error of each read, and not a record that is missing.
func TestAViewOfAStoreThatIsAway(t *testing.T) {
	st := &storetest.Failing{Store: newScripted(t)}
	st.SetAway(true)
	_, err := numbers.Get(ctx, st, "a")
	require.ErrorIs(t, err, storetest.ErrFailed)
	_, err = numbers.In(store.Reading(ctx, st), "a")
	require.ErrorIs(t, err, storetest.ErrFailed)
	for _, err := range numbers.Find(ctx, st, store.Query{}) {
		require.ErrorIs(t, err, storetest.ErrFailed)
	}
}

// A record that is written once, and was expected not to be there, conflicts with one that another
// step wrote in between.
func TestOnceKeepsAnExpectation(t *testing.T) {
	st := newScripted(t)
	st.script[1] = func(commit func() error) error {
		put(t, st.Store, number{"b", 5})
		return commit()
	}
	var seen []int
	require.NoError(t, store.Do(ctx, st, func(tx *store.Tx) error {
		b := in(t, tx, "b")
		seen = append(seen, b.Value.N)
		tx.Expect(numbers.Expect("b", b.Revision))
		numbers.Put(tx, number{"b", 1}, store.Once)
		return nil
	}))
	assert.Equal(t, []int{0, 5}, seen)
	assert.Equal(t, 5, value(t, st, "b"))
}

func TestAStepRemoves(t *testing.T) {
	remove := func(t *testing.T, tx *store.Tx, id string) {
		tx.Put(numbers.Removal(id, in(t, tx, id).Revision))
		row := in(t, tx, id)
		assert.Zero(t, row.Revision)
		assert.Zero(t, row.Value)
	}
	t.Run("what is there", func(t *testing.T) {
		st, err := do(t, func(tx *store.Tx) error {
			remove(t, tx, "a")
			return nil
		})
		require.NoError(t, err)
		assert.Equal(t, -1, value(t, st, "a"))
	})
	t.Run("what is there, and writes it again", func(t *testing.T) {
		st, err := do(t, func(tx *store.Tx) error {
			remove(t, tx, "a")
			numbers.Put(tx, number{"a", 5}, in(t, tx, "a").Revision)
			return nil
		})
		require.NoError(t, err)
		assert.Equal(t, 5, value(t, st, "a"))
	})
	t.Run("what it has added", func(t *testing.T) {
		st, err := do(t, func(tx *store.Tx) error {
			numbers.Put(tx, number{"b", 5}, 0)
			numbers.Put(tx, number{"c", 5}, 0)
			remove(t, tx, "b")
			return nil
		})
		require.NoError(t, err)
		assert.Equal(t, -1, value(t, st, "b"))
		assert.Equal(t, 5, value(t, st, "c"))
	})
	t.Run("what it has added, and another writer has, too", func(t *testing.T) {
		st := newScripted(t)
		st.script[1] = func(commit func() error) error {
			put(t, st.Store, number{"b", 7})
			return commit()
		}
		runs := 0
		require.NoError(t, store.Do(ctx, st, func(tx *store.Tx) error {
			if runs++; in(t, tx, "b").Revision > 0 {
				return nil
			}
			numbers.Put(tx, number{"b", 5}, 0)
			remove(t, tx, "b")
			return nil
		}))
		assert.Equal(t, 2, runs)
		assert.Equal(t, 7, value(t, st, "b"))
	})
}

// Several packages may name the same record in a step: once, expected, and to write.
func TestRecordsOfSeveralPackages(t *testing.T) {
	once := func(tx *store.Tx, id string, n int) { numbers.Put(tx, number{id, n}, store.Once) }
	for name, test := range map[string]struct {
		step func(t *testing.T, tx *store.Tx)
		want map[string]int
	}{
		"once what is there": {func(t *testing.T, tx *store.Tx) {
			once(tx, "a", 5)
			assert.Equal(t, 1, in(t, tx, "a").Value.N)
		}, map[string]int{"a": 1}},
		"once what is there, and then changed": {func(t *testing.T, tx *store.Tx) {
			once(tx, "a", 5)
			numbers.Put(tx, number{"a", 6}, in(t, tx, "a").Revision)
		}, map[string]int{"a": 6}},
		"changed, and then once": {func(t *testing.T, tx *store.Tx) {
			numbers.Put(tx, number{"a", 6}, in(t, tx, "a").Revision)
			once(tx, "a", 5)
		}, map[string]int{"a": 6}},
		"once, twice": {func(t *testing.T, tx *store.Tx) {
			once(tx, "b", 5)
			once(tx, "b", 6)
			assert.Equal(t, 5, in(t, tx, "b").Value.N)
		}, map[string]int{"b": 5}},
		"once, and then changed": {func(t *testing.T, tx *store.Tx) {
			once(tx, "b", 5)
			numbers.Put(tx, number{"b", 6}, in(t, tx, "b").Revision)
		}, map[string]int{"b": 6}},
		"once, and then removed": {func(t *testing.T, tx *store.Tx) {
			once(tx, "b", 5)
			tx.Put(numbers.Removal("b", in(t, tx, "b").Revision))
			assert.Zero(t, in(t, tx, "b").Revision)
		}, map[string]int{"b": -1}},
		"removed, and then once": {func(t *testing.T, tx *store.Tx) {
			tx.Put(numbers.Removal("a", in(t, tx, "a").Revision))
			once(tx, "a", 5)
		}, map[string]int{"a": 5}},
		"expected, and then changed": {func(t *testing.T, tx *store.Tx) {
			tx.Expect(numbers.Expect("b", 0), numbers.Expect("a", in(t, tx, "a").Revision),
				numbers.Expect("b", 0))
			numbers.Put(tx, number{"a", 6}, in(t, tx, "a").Revision)
		}, map[string]int{"a": 6}},
		"changed, and then expected": {func(t *testing.T, tx *store.Tx) {
			row := in(t, tx, "a")
			numbers.Put(tx, number{"a", 6}, row.Revision)
			tx.Expect(numbers.Expect("a", row.Revision))
		}, map[string]int{"a": 6}},
		"expected, and then once": {func(t *testing.T, tx *store.Tx) {
			tx.Expect(numbers.Expect("a", in(t, tx, "a").Revision), numbers.Expect("b", 0))
			once(tx, "a", 6)
			once(tx, "b", 6)
		}, map[string]int{"a": 1, "b": 6}},
		"once, and then expected": {func(t *testing.T, tx *store.Tx) {
			once(tx, "a", 6)
			once(tx, "b", 6)
			tx.Expect(numbers.Expect("a", in(t, tx, "a").Revision), numbers.Expect("b", 0))
		}, map[string]int{"a": 1, "b": 6}},
	} {
		t.Run(name, func(t *testing.T) {
			st, err := do(t, func(tx *store.Tx) error {
				test.step(t, tx)
				return nil
			})
			require.NoError(t, err)
			for id, want := range test.want {
				assert.Equal(t, want, value(t, st, id), id)
			}
		})
	}
	for name, step := range map[string]func(tx *store.Tx, revision uint64){
		"expected otherwise than written": func(tx *store.Tx, revision uint64) {
			tx.Expect(numbers.Expect("a", revision+1))
			numbers.Put(tx, number{"a", 2}, revision)
		},
		"written otherwise than expected": func(tx *store.Tx, revision uint64) {
			numbers.Put(tx, number{"a", 2}, revision)
			tx.Expect(numbers.Expect("a", revision+1))
		},
		"expected twice": func(tx *store.Tx, revision uint64) {
			tx.Expect(numbers.Expect("a", revision), numbers.Expect("a", revision+1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			runs := 0
			st, err := do(t, func(tx *store.Tx) error {
				revision := in(t, tx, "a").Revision
				if runs++; runs == 1 {
					step(tx, revision)
				}
				return nil
			})
			require.NoError(t, err)
			assert.Equal(t, 2, runs, "it is a conflict")
			assert.Equal(t, 1, value(t, st, "a"))
		})
	}
}

func TestBatchesOfSeveralPackages(t *testing.T) {
	policies := map[string]evidence.Policy{"cell": {}}
	st, err := do(t, func(tx *store.Tx) error {
		tx.Add(store.Batch{
			ID: "x", Policies: policies, Observations: []evidence.Observation{observed("1")},
		})
		tx.Add(store.Batch{
			ID: "x", Policies: map[string]evidence.Policy{"other": {HalfLife: time.Hour}, "cell": {}},
		})
		tx.Add(store.Batch{})
		tx.Observe(observed("2"), observed("2"))
		tx.Then(func(r store.Receipt, err error) { assert.NoError(t, err) })
		return nil
	})
	require.NoError(t, err)
	assert.Equal(t, "x", st.last.ID)
	assert.Len(t, policies, 1, "the maps of callers stay as they are")
	for name, test := range map[string]struct {
		field string
		step  func(tx *store.Tx)
	}{
		"two ids": {"ID", func(tx *store.Tx) {
			tx.Add(store.Batch{ID: "x"})
			tx.Add(store.Batch{ID: "y"})
		}},
		"two policies": {`Policies["cell"]`, func(tx *store.Tx) {
			tx.Add(store.Batch{Policies: policies, Observations: []evidence.Observation{observed("1")}})
			tx.Add(store.Batch{Policies: map[string]evidence.Policy{"cell": {HalfLife: time.Hour}}})
		}},
		"the first of two faults": {`Policies["cell"]`, func(tx *store.Tx) {
			tx.Add(store.Batch{ID: "x", Policies: policies})
			tx.Add(store.Batch{Policies: map[string]evidence.Policy{"cell": {HalfLife: time.Hour}}})
			tx.Add(store.Batch{ID: "y"})
		}},
		"what it adds is taken back": {"Retract[0]", func(tx *store.Tx) {
			tx.Observe(observed("1"))
			tx.Add(store.Batch{Retract: []string{"1"}})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			runs := 0
			_, err := do(t, func(tx *store.Tx) error {
				runs++
				test.step(tx)
				return nil
			})
			var fault *heed.InputError
			require.ErrorAs(t, err, &fault)
			assert.Equal(t, test.field, fault.Field)
			assert.Equal(t, 1, runs)
		})
	}
}

// What is wanted is read by the first read, and nothing is read twice.
func TestOneRoundTrip(t *testing.T) {
	all := store.Query{Kind: numbers.Name, Keys: []string{"all"}}
	st, err := do(t, func(tx *store.Tx) error {
		wanted := store.Wants{Refs: make([]store.Ref, 1, 9), Queries: []store.Query{all, all}}
		wanted.Refs[0] = numbers.Ref("b")
		tx.Want(wanted, store.Wants{Cells: []evidence.Cell{cell, cell}}, store.Wants{
			Refs: []store.Ref{numbers.Ref("c")},
		})
		assert.Equal(t, store.Ref{}, wanted.Refs[:2][1], "the lists of callers stay as they are")
		a := in(t, tx, "a")
		assert.Equal(t, 1, a.Value.N)
		var s store.Snapshot
		refs := []store.Ref{numbers.Ref("c"), numbers.Ref("a"), numbers.Ref("a")}
		require.NoError(t, tx.Read(&s, []evidence.Cell{cell, cell}, refs, all))
		assert.Equal(t, []uint64{0, a.Revision, a.Revision},
			[]uint64{s.Records[0].Revision, s.Records[1].Revision, s.Records[2].Revision})
		require.Len(t, s.Found, 1)
		require.Len(t, s.Found[0], 1)
		s.Found[0][0] = store.Record{}
		require.NoError(t, tx.Read(&s, nil, nil, all))
		assert.Equal(t, "a", s.Found[1][0].ID, "what was found is a copy")
		tx.Want(store.Wants{Refs: []store.Ref{numbers.Ref("d")}})
		require.NoError(t, tx.Read(&s, nil, refs), "which needs not go to the store for what is wanted")
		return nil
	})
	require.NoError(t, err)
	assert.Equal(t, 1, st.reads)
	assert.Equal(t, 1, st.finds, "a query that is wanted twice is read once")

	tx := store.Reading(ctx, st)
	require.NoError(t, tx.Fetch())
	assert.Equal(t, 1, st.reads, "nothing is wanted")
	tx.Want(store.Wants{Refs: []store.Ref{numbers.Ref("a")}})
	require.NoError(t, tx.Fetch())
	assert.Equal(t, 2, st.reads)
	assert.Equal(t, 1, in(t, tx, "a").Value.N)
	assert.Equal(t, 2, st.reads)
	numbers.Put(tx, number{"a", 9}, 1)
	assert.Equal(t, 1, value(t, st, "a"), "nothing is committed")
}

// Many names are kept apart like few.
func TestManyNames(t *testing.T) {
	const n = 100
	st, err := do(t, func(tx *store.Tx) error {
		for i := range n {
			numbers.Put(tx, number{fmt.Sprint(i), i}, 0)
			tx.Expect(numbers.Expect(fmt.Sprint("expected ", i), 0))
			tx.Expect(numbers.Expect("expected 0", 0))
		}
		for i := range n {
			row := in(t, tx, fmt.Sprint(i))
			if assert.Equal(t, i, row.Value.N); i%3 == 0 {
				tx.Put(numbers.Removal(row.ID, row.Revision))
			} else if i%3 == 1 {
				numbers.Put(tx, number{row.ID, -i}, row.Revision)
			}
		}
		return nil
	})
	require.NoError(t, err)
	assert.Zero(t, st.reads)
	assert.Len(t, st.last.Expect, n+(n+2)/3, "each once, and what was added and removed")
	require.NoError(t, store.Do(ctx, st, func(tx *store.Tx) error {
		var w store.Wants
		for i := range 2 * n {
			w.Add(store.Wants{Refs: []store.Ref{numbers.Ref(fmt.Sprint(i % n))}})
		}
		tx.Want(w)
		for i := range n {
			row := in(t, tx, fmt.Sprint(i))
			assert.Equal(t, i%3 == 0, row.Revision == 0)
			assert.Equal(t, []int{0, -i, i}[i%3], row.Value.N)
		}
		return nil
	}))
	assert.Equal(t, 1, st.reads)
}

// In one call, versions are no newer than records, and records no newer than parts, whatever was
// read before.
func TestOrderOfReads(t *testing.T) {
	st := newScripted(t)
	version := store.Ref{Kind: numbers.Name}
	change := func(n int) {
		row, _ := numbers.Get(ctx, st.Store, "a")
		_, err := st.Store.Commit(ctx, store.Batch{
			Records:      []store.Record{numbers.Record(number{"a", n}, row.Revision)},
			Observations: []evidence.Observation{observed(fmt.Sprint(n))},
		})
		require.NoError(t, err)
	}
	change(1)
	tx := store.Reading(ctx, st)
	var s store.Snapshot
	require.NoError(t, tx.Read(&s, []evidence.Cell{cell}, nil))
	change(2)
	require.NoError(t, tx.Read(&s, nil, nil, store.Query{Kind: numbers.Name}))
	assert.Equal(t, 2, in(t, tx, "a").Value.N)
	s = store.Snapshot{}
	require.NoError(t, tx.Read(&s, []evidence.Cell{cell}, []store.Ref{numbers.Ref("a")}))
	assert.EqualValues(t, 2, s.Parts[0].Tally.N(), "the parts hold what came with the record")
	reads := st.reads
	change(3)
	require.NoError(t, tx.Read(&s, []evidence.Cell{cell}, []store.Ref{numbers.Ref("a")}))
	assert.Equal(t, reads, st.reads, "nothing is read twice without need")
	s = store.Snapshot{}
	all := store.Query{Kind: numbers.Name}
	require.NoError(t, tx.Read(&s, nil, []store.Ref{version, numbers.Ref("a")}, all))
	for _, r := range []store.Record{s.Records[1], s.Found[0][0]} {
		row, err := numbers.Of(r)
		require.NoError(t, err)
		assert.Equal(t, 3, row.Value.N, "the version tells of it")
	}
	tx, reads = store.Reading(ctx, st), st.reads
	for range 2 {
		require.NoError(t, tx.Read(&s, nil, []store.Ref{version}))
	}
	assert.Equal(t, reads+1, st.reads, "a version is not read twice either")

	tx = store.Reading(ctx, st)
	assert.Equal(t, 3, in(t, tx, "a").Value.N)
	require.NoError(t, tx.Read(&store.Snapshot{}, nil, nil, all))
	change(4)
	s = store.Snapshot{}
	few := store.Query{Kind: numbers.Name, Limit: 1}
	require.NoError(t, tx.Read(&s, nil, []store.Ref{version, numbers.Ref("a")}, all, few))
	require.Len(t, s.Found, 2)
	for _, r := range []store.Record{s.Records[1], s.Found[0][0], s.Found[1][0]} {
		row, err := numbers.Of(r)
		require.NoError(t, err)
		assert.Equal(t, 4, row.Value.N, "what was read before the version is read again")
	}
}

func TestStatesAndEnds(t *testing.T) {
	type key struct{}
	var order []string
	_, err := do(t, func(tx *store.Tx) error {
		made := 0
		for range 2 {
			state := tx.State(key{}, func() any {
				made++
				assert.Equal(t, "other", tx.State("other", func() any { return "other" }))
				return &made
			})
			assert.Same(t, &made, state)
		}
		assert.Equal(t, 1, made)
		assert.Equal(t, "other", tx.State("other", func() any { return "made again" }))
		for _, name := range []string{"first", "second"} {
			tx.Then(func(store.Receipt, error) { order = append(order, "then "+name) })
			tx.Before(func() error {
				order = append(order, "before "+name)
				if name == "first" {
					tx.Before(func() error {
						order = append(order, "before last")
						return nil
					})
				}
				numbers.Put(tx, number{name, 1}, 0)
				return nil
			})
		}
		return nil
	})
	require.NoError(t, err)
	assert.Equal(
		t, []string{"before first", "before second", "before last", "then second", "then first"}, order,
	)
}

// TestStepsAgreeWithAnOracle makes random steps, whose commits are disturbed. The oracle is a map
// that each run of a step has to itself, and the store itself, read record by record.
func TestStepsAgreeWithAnOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		inner := &memstore.Store{}
		require.NoError(t, inner.Declare(ctx, numbers.Kind))
		st := &scripted{Store: inner, script: make(map[int]func(func() error) error)}
		ids := []string{"a", "b", "c"}
		content := func() map[string]int {
			all := make(map[string]int)
			for row, err := range numbers.Find(ctx, inner, store.Query{}) {
				require.NoError(t, err)
				all[row.ID] = row.Value.N
			}
			return all
		}
		for step := range rapid.IntRange(1, 6).Draw(t, "steps") {
			w := &walk{t: t, ids: ids, id: fmt.Sprint(step)}
			w.draw()
			first := st.commits + 1
			clear(st.script)           // what an earlier step has not reached
			var applied map[string]int // by a run whose outcome was unknown
			for i := range rapid.IntRange(0, 3).Draw(t, "faults") {
				switch rapid.IntRange(0, 2).Draw(t, "fault") {
				case 0:
					st.script[first+i] = before
				case 1:
					st.script[first+i] = func(commit func() error) error {
						err := after(commit)
						if applied == nil && errors.Is(err, heed.ErrOutcomeUnknown) {
							applied = w.want
						}
						return err
					}
				default:
					id := rapid.SampledFrom(ids).Draw(t, "overtaken")
					n := rapid.IntRange(50, 60).Draw(t, "by")
					st.script[first+i] = func(commit func() error) error {
						if applied == nil { // or else the oracle is done
							row, _ := numbers.Get(ctx, inner, id)
							_, err := inner.Commit(ctx, store.Batch{
								Records: []store.Record{numbers.Record(number{id, n}, row.Revision)},
							})
							require.NoError(t, err)
						}
						return commit()
					}
				}
			}
			require.NoError(t, store.Do(ctx, st, func(tx *store.Tx) error {
				w.run(tx, content())
				tx.Then(func(r store.Receipt, _ error) {
					// another writer was there before a record that is written once
					for _, ref := range r.Left {
						w.touched[ref.ID] = false
					}
				})
				return nil
			}))
			want := w.want
			if applied != nil {
				want = applied
			}
			after := content()
			for _, id := range ids {
				wanted, there := want[id]
				got, found := after[id]
				if w.touched[id] {
					require.Equal(t, there, found, "is %q there", id)
					require.Equal(t, wanted, got, id)
				}
			}
			var s store.Snapshot
			require.NoError(t, inner.Read(ctx, &s, []evidence.Cell{cell}, nil))
			require.EqualValues(t, step+1, s.Parts[0].Tally.N())
		}
	})
}

// A walk is a random step: a list of operations that are drawn once, and made in each run.
type walk struct {
	t       *rapid.T
	ids     []string
	id      string
	ops     []operation
	want    map[string]int
	touched map[string]bool
}

type operation struct {
	what string
	id   string
	n    int
}

func (w *walk) draw() {
	for range rapid.IntRange(0, 8).Draw(w.t, "operations") {
		w.ops = append(w.ops, operation{
			rapid.SampledFrom([]string{"want", "get", "raise", "remove", "once", "expect"}).Draw(w.t,
				"what"),
			rapid.SampledFrom(w.ids).Draw(w.t, "id"), rapid.IntRange(1, 9).Draw(w.t, "n"),
		})
	}
}

// run makes the step on a store that has this content, and notes what there should be afterwards.
func (w *walk) run(tx *store.Tx, has map[string]int) {
	w.want, w.touched = maps.Clone(has), make(map[string]bool)
	for _, op := range w.ops {
		if op.what == "want" {
			tx.Want(store.Wants{Refs: []store.Ref{numbers.Ref(op.id)}, Cells: []evidence.Cell{cell}})
			continue
		}
		row, err := numbers.In(tx, op.id)
		require.NoError(w.t, err)
		n, there := w.want[op.id]
		require.Equal(w.t, there, row.Revision > 0, op)
		require.Equal(w.t, n, row.Value.N, op)
		switch op.what {
		case "raise":
			numbers.Put(tx, number{op.id, n + op.n}, row.Revision)
			w.want[op.id] = n + op.n
		case "remove":
			if !there {
				continue
			}
			tx.Put(numbers.Removal(op.id, row.Revision))
			delete(w.want, op.id)
		case "once":
			numbers.Put(tx, number{op.id, op.n}, store.Once)
			if !there {
				w.want[op.id] = op.n
			}
		case "expect":
			var s store.Snapshot
			require.NoError(w.t, tx.Read(&s, nil, []store.Ref{numbers.Ref(op.id)}))
			tx.Expect(numbers.Expect(op.id, s.Records[0].Revision))
		default:
			continue
		}
		w.touched[op.id] = true
	}
	tx.Add(store.Batch{ID: "step " + w.id, Observations: []evidence.Observation{observed(w.id)}})
}

// A step has each policy that was added once, and does not change the caller's map. Two policies
// for one kind are a fault.
func TestPoliciesOfAStep(t *testing.T) {
	first, second := make(map[string]evidence.Policy), make(map[string]evidence.Policy)
	for i := range 20 {
		of := second
		if i < 10 {
			of = first
		}
		of[fmt.Sprint("k", i)] = evidence.Policy{HalfLife: time.Duration(i+1) * time.Hour}
	}
	maps.Copy(second, first)
	own := maps.Clone(first)
	for range 10 { // in any order
		st, err := do(t, func(tx *store.Tx) error {
			for _, policies := range []map[string]evidence.Policy{first, second, first} {
				tx.Add(store.Batch{Policies: policies})
			}
			tx.Observe(evidence.Observation{ID: "o", Cell: evidence.Cell{Kind: "k1", Item: "i"},
				Reward: 1, Weight: 1, At: time.Now()})
			return nil
		})
		require.NoError(t, err)
		assert.Equal(t, second, st.last.Policies)
		assert.Equal(t, own, first)
	}
	_, err := do(t, func(tx *store.Tx) error {
		tx.Add(store.Batch{Policies: first})
		tx.Add(store.Batch{Policies: map[string]evidence.Policy{"k3": {}}})
		return nil
	})
	var fault *heed.InputError
	require.ErrorAs(t, err, &fault)
	assert.Equal(t, `Policies["k3"]`, fault.Field)
}

// A record and a query that one call reads for the first time go to the store together, a query by
// the keys that it had then.
func TestWhatOneCallReads(t *testing.T) {
	st := newScripted(t)
	put(t, st.Store, number{"a", 1})
	st.reads = 0
	tx := store.Reading(ctx, st)
	keys := []string{"all"}
	var s store.Snapshot
	refs := []store.Ref{numbers.Ref("a")}
	require.NoError(t, tx.Read(&s, nil, refs, store.Query{Kind: numbers.Name, Keys: keys}))
	assert.Equal(t, 1, st.reads)
	assert.NotZero(t, s.Records[0].Revision)
	require.Len(t, s.Found[0], 1)
	keys[0] = "none"
	other := store.Query{Kind: numbers.Name, Keys: []string{"other"}}
	all := store.Query{Kind: numbers.Name, Keys: []string{"all"}}
	require.NoError(t, tx.Read(&s, nil, nil, all, other))
	assert.Equal(t, 2, st.reads)
	assert.Equal(t, 1, st.finds, "the other query alone")
	assert.Len(t, s.Found[1], 1)
	assert.Empty(t, s.Found[2])

	var w store.Wants
	w.Add(store.Wants{Cells: []evidence.Cell{cell}}, store.Wants{Refs: refs},
		store.Wants{Queries: []store.Query{all}})
	assert.Equal(t, store.Wants{Cells: []evidence.Cell{cell}, Refs: refs,
		Queries: []store.Query{all}}, w)
}

// A read within a context of the caller ends with it, and a later one has the context of the step.
func TestWithin(t *testing.T) {
	tx := store.Reading(ctx, newScripted(t))
	done, cancel := context.WithCancel(ctx)
	cancel()
	read := func() error { return tx.Read(&store.Snapshot{}, []evidence.Cell{cell}, nil) }
	require.ErrorIs(t, tx.Within(done, read), context.Canceled)
	require.NoError(t, read())
	require.Equal(t, ctx, tx.Context())
	assert.Equal(t, "drawn", tx.ID(func() string { return "drawn" }), "also outside of a step")
}

// Every field of a batch that a step adds reaches the store.
func TestAStepAddsAWholeBatch(t *testing.T) {
	added := store.Batch{
		ID: "id", Policies: map[string]evidence.Policy{"cell": {}},
		Reset:   []evidence.Cell{{Kind: "cell", Item: "reset"}},
		Rebuild: []evidence.Cell{{Kind: "cell", Item: "rebuild"}},
		Restart: []store.Restart{{Cell: evidence.Cell{Kind: "cell", Item: "restart"}, At: start}},
		Retract: []string{"retract"}, Withdraw: []string{"withdraw"}, Forgotten: []string{"ann"},
		Expunge:      []store.SourceOf{{Cell: evidence.Cell{Kind: "cell", Item: "e"}, Source: "ann"}},
		Observations: []evidence.Observation{observed("o")}, PartsOf: []evidence.Cell{cell},
		Records: []store.Record{numbers.Record(number{"b", 1}, 0)},
		Expect:  []store.Precondition{numbers.Expect("c", 0)},
	}
	st, err := do(t, func(tx *store.Tx) error {
		tx.Add(added)
		return nil
	})
	require.ErrorIs(t, err, heed.ErrNotFound, "no such id to retract")
	assert.Equal(t, added, st.last)
	for _, b := range []store.Batch{{Expect: added.Expect}, {Restart: added.Restart},
		{Records: added.Records, Observations: added.Observations}} {
		st, err := do(t, func(tx *store.Tx) error {
			tx.Add(b)
			return nil
		})
		require.NoError(t, err)
		assert.Equal(t, 1, st.commits)
	}
}

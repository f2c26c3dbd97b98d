package store_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
)

// A number is a record of the tests.
type number struct {
	ID string
	N  int
}

var (
	ctx     = context.Background()
	start   = time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)
	numbers = store.View[number]{
		Kind:  store.Kind{Name: "number", Versioned: true},
		Place: func(n number) (string, time.Time, []string) { return n.ID, start, []string{"all"} },
	}
	cell = evidence.Cell{Kind: "cell", Item: "item"}
)

// A scripted store does to its commits what the test has written down, by number from 1. It counts
// calls.
type scripted struct {
	store.Store
	script  map[int]func(commit func() error) error
	commits int
	last    store.Batch // that was given to Commit
	reads   int
	finds   int // the queries of the last read
}

func newScripted(t testing.TB) *scripted {
	st := &memstore.Store{}
	require.NoError(t, st.Declare(ctx, numbers.Kind))
	return &scripted{Store: st, script: make(map[int]func(func() error) error)}
}

func (s *scripted) Commit(
	ctx context.Context, batches ...store.Batch,
) (receipts []store.Receipt, err error) {
	s.commits++
	s.last = batches[0]
	commit := func() error {
		receipts, err = s.Store.Commit(ctx, batches...)
		return err
	}
	if do := s.script[s.commits]; do != nil {
		if err := do(commit); err != nil {
			return nil, err
		}
		return receipts, nil
	}
	return receipts, commit()
}

func (s *scripted) Read(
	ctx context.Context, into *store.Snapshot, cells []evidence.Cell, refs []store.Ref,
	finds ...store.Query,
) error {
	s.reads++
	s.finds = len(finds)
	return s.Store.Read(ctx, into, cells, refs, finds...)
}

// put writes a number outside of any step.
func put(t testing.TB, st store.Store, n number) {
	row, err := numbers.Get(ctx, st, n.ID)
	if !errors.Is(err, heed.ErrNotFound) {
		require.NoError(t, err)
	}
	_, err = st.Commit(ctx, store.Batch{Records: []store.Record{numbers.Record(n, row.Revision)}})
	require.NoError(t, err)
}

func value(t testing.TB, st store.Store, id string) int {
	row, err := numbers.Get(ctx, st, id)
	if errors.Is(err, heed.ErrNotFound) {
		return -1
	}
	require.NoError(t, err)
	return row.Value.N
}

func observations(t testing.TB, st store.Store) (n uint64) {
	var s store.Snapshot
	require.NoError(t, st.Read(ctx, &s, []evidence.Cell{cell}, nil))
	for _, p := range s.Parts {
		n += p.Tally.N()
	}
	return n
}

func observed(id string) evidence.Observation {
	return evidence.Observation{ID: id, Cell: cell, Reward: 1, Weight: 1, At: start}
}

// count is a step that is safe to repeat: its batch has an ID.
func count(tx *store.Tx) error {
	row, err := numbers.In(tx, "a")
	if err != nil {
		return err
	}
	numbers.Put(tx, number{"a", row.Value.N + 1}, row.Revision)
	tx.Add(store.Batch{ID: "count", Observations: []evidence.Observation{observed("o")}})
	return nil
}

var errBroken = errors.New("the connection broke")

func before(func() error) error { return fmt.Errorf("%w: %w", heed.ErrOutcomeUnknown, errBroken) }

func after(commit func() error) error {
	if err := commit(); err != nil {
		return err
	}
	return before(nil)
}

func TestDoRunsAStepAgain(t *testing.T) {
	for name, test := range map[string]struct {
		first func(t *testing.T, st *scripted, commit func() error) error
		want  int // the number in the end
		runs  int
		reads int
	}{
		"another writer is quicker": {func(t *testing.T, st *scripted, commit func() error) error {
			put(t, st.Store, number{"a", 10})
			return commit()
		}, 11, 2, 2},
		"the outcome is unknown, before": {func(_ *testing.T, _ *scripted, commit func() error) error {
			return before(commit)
		}, 2, 2, 3},
		"the outcome is unknown, after": {func(_ *testing.T, _ *scripted, commit func() error) error {
			return after(commit)
		}, 2, 1, 2},
		"and another writer comes next": {func(t *testing.T, st *scripted, commit func() error) error {
			err := after(commit)
			put(t, st.Store, number{"a", 10})
			return err
		}, 10, 2, 3},
		"another writer writes the same": {func(t *testing.T, st *scripted, commit func() error) error {
			put(t, st.Store, number{"a", 2})
			return before(commit)
		}, 3, 2, 3},
	} {
		t.Run(name, func(t *testing.T) {
			st := newScripted(t)
			put(t, st.Store, number{"a", 1})
			st.script[1] = func(commit func() error) error { return test.first(t, st, commit) }
			runs, ends := 0, []error{}
			require.NoError(t, store.Do(ctx, st, func(tx *store.Tx) error {
				runs++
				tx.Then(func(_ store.Receipt, err error) { ends = append(ends, err) })
				return count(tx)
			}))
			assert.Equal(t, test.runs, runs)
			assert.Equal(t, test.reads, st.reads, "each run reads, and after a lost reply")
			assert.Equal(t, test.want, value(t, st, "a"))
			assert.EqualValues(t, 1, observations(t, st))
			require.Len(t, ends, test.runs)
			for _, err := range ends[:test.runs-1] {
				require.Error(t, err)
			}
			require.NoError(t, ends[test.runs-1])
		})
	}
}

func TestDoEndsAtOnce(t *testing.T) {
	settings := &heed.SettingsError{Component: "a", Field: "HalfLife"}
	for name, failure := range map[string]error{
		"another error":       errBroken,
		"a settings error":    settings,
		"a final conflict":    store.Final(fmt.Errorf("known: %w", heed.ErrConflict)),
		"a size error":        &heed.SizeError{What: "Batches", Size: 2, Most: 1},
		"a wrapped one":       fmt.Errorf("commit: %w", settings),
		"a final, not known":  store.Final(heed.ErrOutcomeUnknown),
		"the context's error": context.Canceled,
	} {
		t.Run(name, func(t *testing.T) {
			for _, where := range []string{"step", "before", "commit"} {
				st := newScripted(t)
				st.script[1] = func(commit func() error) error {
					if where == "commit" {
						return failure
					}
					return commit()
				}
				runs := 0
				var end error
				err := store.Do(ctx, st, func(tx *store.Tx) error {
					runs++
					tx.Then(func(r store.Receipt, err error) { end = err })
					tx.Before(func() error {
						if where == "before" {
							return failure
						}
						return nil
					})
					if err := count(tx); err != nil || where == "step" {
						return errors.Join(err, failure)
					}
					return nil
				})
				require.ErrorIs(t, err, failure, where)
				require.EqualError(t, err, failure.Error(), "nothing is added to the error of one run")
				require.ErrorIs(t, end, failure, where)
				assert.Equal(t, 1, runs, where)
				assert.Equal(t, -1, value(t, st, "a"), where)
			}
		})
	}
	require.NoError(t, store.Final(nil))
}

// An error after an outcome that was unknown leaves it unknown: the first run may have taken
// effect.
func TestDoKeepsWhatIsUnknown(t *testing.T) {
	st := newScripted(t)
	st.script[1] = func(commit func() error) error {
		err := after(commit)
		put(t, st.Store, number{"a", 10})
		return err
	}
	runs := 0
	err := store.Do(ctx, st, func(tx *store.Tx) error {
		if runs++; runs == 2 {
			return errors.New("refused")
		}
		return count(tx)
	})
	require.ErrorIs(t, err, heed.ErrOutcomeUnknown)
	require.ErrorIs(t, err, errBroken)
	require.ErrorContains(t, err, "refused")
	assert.Equal(t, 2, runs)
	assert.Equal(t, 10, value(t, st, "a"))

	st = newScripted(t)
	st.script[1] = before
	st.script[2] = func(func() error) error { return heed.ErrConflict }
	require.NoError(t, store.Do(ctx, st, count), "an unknown outcome does not matter after a commit")
	assert.Equal(t, 3, st.commits)
}

// A conflict is over when the step runs again: an error after it is just that error.
func TestDoForgetsAConflict(t *testing.T) {
	runs := 0
	err := store.Do(ctx, newScripted(t), func(*store.Tx) error {
		runs++
		return []error{heed.ErrConflict, errBroken}[runs-1]
	})
	assert.Equal(t, errBroken, err)
}

// In a bubble the pauses are exact: each is random and bounded, and there is an end.
func TestDoPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newScripted(t)
		for i := range store.Tries {
			st.script[i+1] = func(func() error) error { return heed.ErrConflict }
		}
		begin, last := time.Now(), time.Now()
		var pauses []time.Duration
		err := store.Do(ctx, st, func(tx *store.Tx) error {
			pauses = append(pauses, time.Since(last))
			last = time.Now()
			return count(tx)
		})
		require.ErrorIs(t, err, heed.ErrConflict)
		assert.Len(t, pauses, store.Tries)
		distinct := make(map[time.Duration]bool)
		for i, pause := range pauses {
			assert.Less(t, pause, 30*time.Millisecond)
			if i > 0 && i < 6 {
				assert.Less(t, pause, 200*time.Microsecond<<i, "the pause before try %d", i+1)
			}
			distinct[pause] = true
		}
		assert.Greater(t, len(distinct), store.Tries/2, "pauses are random")
		assert.Greater(t, time.Since(begin), 500*time.Millisecond)
		assert.Less(t, time.Since(begin), store.Tries*30*time.Millisecond)
	})
}

func TestDoEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		done, cancel := context.WithCancel(ctx)
		cancel()
		runs := 0
		step := func(tx *store.Tx) error {
			runs++
			return count(tx)
		}
		st := newScripted(t)
		require.ErrorIs(t, store.Do(done, st, step), context.Canceled)
		assert.Zero(t, runs)

		within, cancel := context.WithTimeout(ctx, 40*time.Millisecond)
		defer cancel()
		for i := range store.Tries {
			st.script[i+1] = before
		}
		begin := time.Now()
		err := store.Do(within, st, step)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, heed.ErrOutcomeUnknown, "the error of the last try")
		assert.Equal(t, 40*time.Millisecond, time.Since(begin), "the pause ends with the context")
		assert.Greater(t, runs, 1)

		within, cancel = context.WithTimeout(ctx, 40*time.Millisecond)
		defer cancel()
		err = store.Do(within, st, func(*store.Tx) error { return heed.ErrConflict })
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, heed.ErrConflict, "the error of the last try")
	})
}

func TestAStepThatAddsNothing(t *testing.T) {
	st := newScripted(t)
	put(t, st.Store, number{"a", 1})
	var receipt store.Receipt
	require.NoError(t, store.Do(ctx, st, func(tx *store.Tx) error {
		tx.Then(func(r store.Receipt, err error) {
			require.NoError(t, err)
			receipt = r
		})
		tx.Add(store.Batch{Policies: map[string]evidence.Policy{"cell": {}}})
		row, err := numbers.In(tx, "a")
		assert.Equal(t, 1, row.Value.N)
		return err
	}))
	assert.Zero(t, st.commits)
	assert.Equal(t, store.Receipt{}, receipt)
	require.NoError(t, store.Do(ctx, st, func(tx *store.Tx) error {
		tx.Add(store.Batch{ID: "an ID counts"})
		tx.Then(func(r store.Receipt, _ error) { receipt = r })
		return nil
	}))
	assert.Equal(t, 1, st.commits)
	require.NoError(t, store.Do(ctx, st, func(tx *store.Tx) error {
		tx.Add(store.Batch{
			ID: "an ID counts", Records: []store.Record{numbers.Record(number{"b", 1}, 0)},
		})
		tx.Then(func(r store.Receipt, _ error) { receipt = r })
		return nil
	}))
	assert.True(t, receipt.Duplicate)
	assert.Equal(t, -1, value(t, st, "b"))
}

// If a step panics, or the store does, packages learn that the run is over, and the next step can
// have the turn.
func TestAPanicEndsAStep(t *testing.T) {
	for name, script := range map[string]func(st *scripted, tx *store.Tx){
		"in the step":   func(*scripted, *store.Tx) { panic("host") },
		"before commit": func(_ *scripted, tx *store.Tx) { tx.Before(func() error { panic("host") }) },
		"in the store": func(st *scripted, _ *store.Tx) {
			st.script[2] = func(func() error) error { panic("host") }
		},
	} {
		t.Run(name, func(t *testing.T) {
			st, ended, runs := newScripted(t), 0, 0
			st.script[1] = func(func() error) error { return heed.ErrConflict }
			assert.PanicsWithValue(t, "host", func() {
				_ = store.Do(ctx, st, func(tx *store.Tx) error {
					runs++
					tx.Then(func(_ store.Receipt, err error) {
						require.Error(t, err)
						ended++
					})
					if runs == 2 { // with the turn of the store
						script(st, tx)
					}
					return count(tx)
				})
			})
			assert.Equal(t, []int{2, 2}, []int{runs, ended})
			began := time.Now()
			st.commits, st.script[2] = 0, nil
			require.NoError(t, store.Do(ctx, st, count))
			assert.Less(t, time.Since(began), time.Second)
			assert.Equal(t, 1, value(t, st, "a"))
		})
	}
}

// A Tx that a callback has kept reads nothing, changes nothing, and leaves later runs alone.
func TestATxThatIsKept(t *testing.T) {
	st := newScripted(t)
	st.script[1] = func(func() error) error { return heed.ErrConflict }
	var kept *store.Tx
	draws := 0
	draw := func() string {
		draws++
		return fmt.Sprint(draws)
	}
	var ids []string
	require.NoError(t, store.Do(ctx, st, func(tx *store.Tx) error {
		if kept != nil {
			assert.Equal(t, "2", kept.ID(draw))
			numbers.Put(kept, number{"b", 1}, 0)
		}
		ids = append(ids, tx.ID(draw))
		kept = tx
		return count(tx)
	}))
	assert.Equal(t, []string{"1", "1"}, ids)
	assert.Equal(t, 2, draws, "once for the step, and once for the one that is kept")
	var input *heed.InputError
	_, err := numbers.In(kept, "unread")
	require.ErrorAs(t, err, &input)
	assert.Equal(t, "tx", input.Field)
	require.ErrorAs(t, kept.Read(&store.Snapshot{}, []evidence.Cell{cell}, nil), &input)
	kept.Want(store.Wants{Cells: []evidence.Cell{cell}})
	require.ErrorAs(t, kept.Fetch(), &input)
	numbers.Put(kept, number{"b", 1}, 0)
	kept.Observe(observed("late"))
	assert.Equal(t, -1, value(t, st, "b"))
	assert.EqualValues(t, 1, observations(t, st))
	assert.Equal(t, 2, st.commits)
}

// A step may add a record, remove it and add it again, with the revision that it was given first.
func TestAStepChangesItsMind(t *testing.T) {
	for _, revision := range []uint64{0, store.Once} {
		st := newScripted(t)
		require.NoError(t, store.Do(ctx, st, func(tx *store.Tx) error {
			numbers.Put(tx, number{"a", 1}, revision)
			row, err := numbers.In(tx, "a")
			if err != nil {
				return err
			}
			tx.Put(numbers.Removal("a", row.Revision))
			tx.Expect(numbers.Expect("a", row.Revision))
			numbers.Put(tx, number{"a", 2}, row.Revision)
			return nil
		}))
		assert.Equal(t, 1, st.commits)
		assert.Equal(t, 2, value(t, st, "a"))
	}
}

// A loop over values continues behind a record that can't be decoded, and its error names it.
func TestFindContinuesBehindDamage(t *testing.T) {
	st := newScripted(t)
	var all []store.Record
	for _, id := range []string{"a", "b", "c"} {
		all = append(all, numbers.Record(number{ID: id}, 0))
	}
	all[1].Body = store.Raw([]byte("[7]"))
	_, err := st.Commit(ctx, store.Batch{Records: all})
	require.NoError(t, err)
	var found []string
	for row, err := range numbers.Find(ctx, st, store.Query{Oldest: true}) {
		found = append(found, row.ID)
		var bad interface{ Damaged() store.Ref }
		if row.ID != "b" {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, heed.ErrDamaged)
		require.ErrorContains(t, err, `number "b": store: damaged record: `)
		require.ErrorAs(t, err, &bad)
		assert.Equal(t, numbers.Ref("b"), bad.Damaged())
	}
	assert.Equal(t, []string{"a", "b", "c"}, found)
}

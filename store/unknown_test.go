package store_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// After a commit whose reply was lost, the caller gets the result of the run that took effect.
func TestALostReply(t *testing.T) {
	once := func(id string, n int) store.Record { return numbers.Record(number{id, n}, store.Once) }
	for name, test := range map[string]struct {
		before []store.Record
		step   store.Batch
		other  []store.Record // what another writer commits after the reply was lost
		left   []string
		runs   int
		again  bool // the second run is a duplicate
		known  bool // and finds its observation known
	}{
		"a new record": {step: store.Batch{Records: []store.Record{numbers.Record(number{"a", 1}, 0)}},
			runs: 1},
		"a record once": {step: store.Batch{Records: []store.Record{once("a", 1)}}, runs: 1},
		"records, some of which were there": {before: []store.Record{once("b", 1), once("c", 2)},
			step: store.Batch{Records: []store.Record{
				once("b", 1), once("c", 1), numbers.Record(number{"a", 1}, 0)}},
			left: []string{"b", "c"}, runs: 1},
		"a record once that was there": {before: []store.Record{once("a", 2)},
			step: store.Batch{Records: []store.Record{once("a", 1)}}, left: []string{"a"}, runs: 2},
		"an observation": {step: store.Batch{Observations: []evidence.Observation{observed("o")},
			PartsOf: []evidence.Cell{cell}}, runs: 1},
		"observations, one id": {step: store.Batch{Observations: []evidence.Observation{
			observed("o"), {ID: "o", Cell: evidence.Cell{Kind: "cell", Item: "x"}, Reward: 1, Weight: 1,
				At: start}}, PartsOf: []evidence.Cell{cell}}, runs: 1},
		"a batch that counts once": {step: store.Batch{ID: "once",
			Observations: []evidence.Observation{observed("o")}, PartsOf: []evidence.Cell{cell}},
			runs: 1},
		"an ID alone": {step: store.Batch{ID: "alone"}, runs: 1},
		"a batch that counts once, with a record of later": {step: store.Batch{ID: "once",
			Records: []store.Record{once("a", 1), numbers.Record(number{"b", 1}, 0)}},
			other: []store.Record{numbers.Record(number{"b", 5}, 1)}, runs: 2, again: true},
		"evidence that is taken away": {step: store.Batch{Reset: []evidence.Cell{cell}}, runs: 2},
		"evidence that is taken away, and added": {step: store.Batch{Reset: []evidence.Cell{cell},
			Observations: []evidence.Observation{observed("o")}}, runs: 2, known: true},
		"two new records": {step: store.Batch{Records: []store.Record{
			numbers.Record(number{"a", 1}, 0), numbers.Record(number{"b", 1}, 0)}}, runs: 1},
		"a removal": {before: []store.Record{once("b", 1)},
			step: store.Batch{Records: []store.Record{numbers.Record(number{"a", 1}, 0),
				numbers.Removal("b", 1)}}, runs: 1},
	} {
		t.Run(name, func(t *testing.T) {
			st := newScripted(t)
			_, err := st.Store.Commit(ctx, store.Batch{Records: test.before})
			require.NoError(t, err)
			st.script[1] = func(commit func() error) error {
				err := after(commit)
				for _, r := range test.other {
					row, failure := numbers.Get(ctx, st.Store, r.ID)
					require.NoError(t, failure)
					r.Revision = row.Revision
					_, failure = st.Store.Commit(ctx, store.Batch{Records: []store.Record{r}})
					require.NoError(t, failure)
				}
				return err
			}
			runs, got := 0, store.Receipt{}
			require.NoError(t, store.Do(ctx, st, func(tx *store.Tx) error {
				runs++
				b := test.step
				b.Records = slices.Clone(b.Records)
				tx.Add(b)
				tx.Then(func(r store.Receipt, _ error) { got = r })
				return nil
			}))
			assert.Equal(t, test.runs, runs)
			assert.Equal(t, test.again, got.Duplicate)
			assert.Equal(t, test.known, len(got.Duplicates) > 0)
			var left []string
			for _, ref := range got.Left {
				left = append(left, ref.ID)
			}
			assert.Equal(t, test.left, left)
			assert.Equal(t, len(test.step.PartsOf) > 0, len(got.Parts) > 0)
			if row, err := numbers.Get(ctx, st, "a"); err == nil && !got.Duplicate && test.runs == 1 {
				assert.Equal(t, row.Revision, got.Revision)
			}
		})
	}
}

// If the store can't be asked, the outcome stays unknown, and the step runs again.
func TestALostReplyThatCantBeResolved(t *testing.T) {
	st := newScripted(t)
	st.script[1] = after
	st.script[2] = func(func() error) error { return errBroken } // the question
	runs := 0
	require.NoError(t, store.Do(ctx, st, func(tx *store.Tx) error {
		runs++
		return count(tx)
	}))
	assert.Equal(t, 2, runs)
	assert.Equal(t, 1, value(t, st, "a"))
	assert.EqualValues(t, 1, observations(t, st))
}

// If a commit was to remove another record as well, a record that another writer wrote in the same
// way does not show that the commit took effect.
func TestALostCommitThatWasToRemove(t *testing.T) {
	st := newScripted(t)
	put(t, st.Store, number{"b", 1})
	st.script[1] = func(func() error) error {
		put(t, st.Store, number{"a", 1})
		return before(nil)
	}
	runs := 0
	require.NoError(t, store.Do(ctx, st, func(tx *store.Tx) error {
		runs++
		numbers.Put(tx, number{"a", 1}, in(t, tx, "a").Revision)
		tx.Put(numbers.Removal("b", in(t, tx, "b").Revision))
		return nil
	}))
	assert.Equal(t, 2, runs)
	assert.Equal(t, -1, value(t, st, "b"))
}

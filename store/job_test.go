package store_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

var signed = store.Kind{Name: "signed", Decided: []string{"by"}}

func signedBy(name string) store.Batch {
	return store.Batch{Records: []store.Record{{
		Ref: store.Ref{Kind: signed.Name, ID: "1"}, At: start, Keys: []string{store.PersonKey(name)},
		Body: store.Raw([]byte(`{"by":"` + name + `"}`)),
	}}}
}

func forget(name string) store.Job { return store.Job{Forget: []string{name}, At: start} }

// TestForgetAgain after a job that was cut off leaves no record of that job, which has the name.
func TestForgetAgain(t *testing.T) {
	for cut := 2; cut <= 3; cut++ {
		st := newScripted(t)
		require.NoError(t, st.Declare(ctx, signed))
		_, err := st.Store.Commit(ctx, signedBy("ann"))
		require.NoError(t, err)
		broken := errors.New("broken")
		st.script[cut] = func(func() error) error { return broken }
		require.ErrorIs(t, store.Run(ctx, st, forget("ann")), broken)
		jobs := func() (n int) {
			for _, err := range st.Find(ctx, store.Query{Kind: "heed.job"}) {
				require.NoError(t, err)
				n++
			}
			return n
		}
		require.NoError(t, store.Run(ctx, st, forget("bob")))
		assert.Equal(t, 1, jobs(), "a job that names somebody else is left to the sweep")
		require.NoError(t, store.Run(ctx, st, forget("ann")))
		assert.Zero(t, jobs(), "cut off at commit %d", cut)
	}
}

// TestForgetAPseudonym changes nothing: a pseudonym is its own.
func TestForgetAPseudonym(t *testing.T) {
	st := newScripted(t)
	require.NoError(t, st.Declare(ctx, signed))
	require.NoError(t, store.Run(ctx, st, forget("ann")))
	key, err := store.PseudonymKeyIn(store.Reading(ctx, st))
	require.NoError(t, err)
	_, err = st.Store.Commit(ctx, signedBy(key.Of("ann")))
	require.NoError(t, err)
	st.commits = 0
	require.NoError(t, store.Run(ctx, st, forget(key.Of("ann"))))
	assert.Equal(t, 2, st.commits, "the job begins and ends")
}

// TestForgetWhatComesBetween takes out evidence of the person that others commit while the job
// takes the person out of records. The job of this test has three commits: it begins, changes the
// record, and ends.
func TestForgetWhatComesBetween(t *testing.T) {
	for at := 1; at <= 2; at++ {
		st := newScripted(t)
		require.NoError(t, st.Declare(ctx, signed))
		_, err := st.Store.Commit(ctx, signedBy("ann"))
		require.NoError(t, err)
		st.script[at] = func(commit func() error) error {
			if err := commit(); err != nil {
				return err
			}
			_, err := st.Store.Commit(ctx, store.Batch{Observations: []evidence.Observation{{
				ID: "late", Cell: evidence.Cell{Kind: "arm", Item: "i", Name: "a"},
				Source: "ann", Reward: 1, Weight: 1, At: start,
			}}})
			return err
		}
		require.NoError(t, store.Run(ctx, st, forget("ann")))
		for part, err := range st.List(ctx, store.CellQuery{Naming: "ann"}) {
			t.Errorf("after commit %d: %v, %v", at, part, err)
		}
	}
}

// TestForgetThatAnotherEnds returns when this handle's store has erased its copies: the other's may
// be about to.
func TestForgetThatAnotherEnds(t *testing.T) {
	st := newScripted(t)
	require.NoError(t, st.Declare(ctx, signed))
	_, err := st.Store.Commit(ctx, signedBy("ann"))
	require.NoError(t, err)
	st.script[1] = func(commit func() error) error {
		if err := commit(); err != nil {
			return err
		}
		return store.Resume(ctx, st.Store)
	}
	require.NoError(t, store.Run(ctx, st, forget("ann")))
	assert.Equal(t, []string{"ann"}, st.last.Forgotten)
}

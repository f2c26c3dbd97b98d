package store_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/stores"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
)

var signed = store.Kind{Name: "signed", Decided: []string{"by"}}

func signedBy(name string) store.Batch {
	return store.Batch{Records: []store.Record{{
		Ref: store.Ref{Kind: signed.Name, ID: "1"}, At: start, Keys: []string{store.PersonKey(name)},
		Body: store.Raw([]byte(`{"by":"` + name + `"}`)),
	}}}
}

func forget(name string) store.Job { return store.Job{Forget: []string{name}, At: start} }

// jobs counts the jobs that have begun and not ended.
func jobs(t *testing.T, st store.Store) (n int) {
	t.Helper()
	for _, err := range st.Find(ctx, store.Query{Kind: "heed.job"}) {
		require.NoError(t, err)
		n++
	}
	return n
}

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
		require.NoError(t, store.Run(ctx, st, forget("bob")))
		assert.Equal(t, 1, jobs(t, st), "a job that names somebody else is left to the sweep")
		require.NoError(t, store.Run(ctx, st, forget("ann")))
		assert.Zero(t, jobs(t, st), "cut off at commit %d", cut)
	}
}

// TestForgetAPseudonym changes nothing: a pseudonym is its own.
func TestForgetAPseudonym(t *testing.T) {
	st := newScripted(t)
	require.NoError(t, st.Declare(ctx, signed))
	require.NoError(t, store.Run(ctx, st, forget("ann")))
	key, err := stores.PseudonymKeyIn(store.Reading(ctx, st))
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

// A job without a person to forget has nothing left to do here if another runner ends it.
func TestAJobThatAnotherEnds(t *testing.T) {
	st := newScripted(t)
	st.script[1] = func(commit func() error) error {
		if err := commit(); err != nil {
			return err
		}
		return store.Resume(ctx, st.Store)
	}
	require.NoError(t, store.Run(ctx, st, store.Job{Reset: []store.Selection{{Kind: "arm"}}}))
	assert.Equal(t, 1, st.commits)
}

// A step that runs again with the ID of its batch goes on with the job that it began.
func TestAStepGoesOnWithItsJob(t *testing.T) {
	st := newScripted(t)
	broken := errors.New("broken")
	st.script[2] = func(func() error) error { return broken }
	step := func(tx *store.Tx) error {
		tx.Add(store.Batch{ID: "reset"})
		tx.Start(store.Job{Reset: []store.Selection{{Kind: "arm"}}})
		return nil
	}
	require.ErrorIs(t, store.Do(ctx, st, step), broken)
	require.Equal(t, 1, jobs(t, st))
	require.NoError(t, store.Do(ctx, st, step))
	assert.Zero(t, jobs(t, st))
}

// A job that does nothing begins none, and one that does something else leaves an earlier one to
// the sweep.
func TestJobsThatShareNothing(t *testing.T) {
	st := newScripted(t)
	require.NoError(t, store.Run(ctx, st, store.Job{At: start}))
	assert.Zero(t, st.commits)
	of := func(kind, scope, item, name string) store.Job {
		return store.Job{Reset: []store.Selection{{Kind: kind, Scope: scope, Item: item, Name: name}}}
	}
	st.script[2] = func(func() error) error { return errBroken }
	require.ErrorIs(t, store.Run(ctx, st, of("arm", "s", "i", "a")), errBroken)
	for _, other := range []store.Job{
		of("tool", "s", "i", "a"), of("arm", "t", "i", "a"), of("arm", "s", "j", "a"),
		of("arm", "s", "i", "b"), {Expunge: []string{"ann"}},
	} {
		require.NoError(t, store.Run(ctx, st, other))
		assert.Equal(t, 1, jobs(t, st), "%+v", other)
	}
	require.NoError(t, store.Resume(ctx, st))
	assert.Zero(t, jobs(t, st))
}

// Whatever call of the store fails, a sweep that resumes jobs returns the error or has no job left.
func TestResumingFails(t *testing.T) {
	storetest.FailEach(func(at int, after bool) bool {
		st := newScripted(t)
		st.script[2] = func(func() error) error { return errBroken }
		require.ErrorIs(t, store.Run(ctx, st, forget("ann")), errBroken)
		failing := &storetest.Failing{Store: st, At: at, After: after}
		if err := store.Resume(ctx, failing); err == nil {
			assert.Zero(t, jobs(t, st), "call %d", at)
		} else {
			require.ErrorIs(t, err, storetest.ErrFailed)
		}
		return failing.Failed()
	})
}

// A job that conflicts again and again returns the error in the end, and a sweep finishes it.
func TestAJobGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newScripted(t)
		for i := range store.Tries {
			st.script[2+i] = func(func() error) error { return heed.ErrConflict }
		}
		err := store.Run(ctx, st, store.Job{Reset: []store.Selection{{Kind: "arm"}}})
		require.ErrorIs(t, err, heed.ErrConflict)
		assert.Equal(t, 1+store.Tries, st.commits)
		assert.Equal(t, 1, jobs(t, st))
		require.NoError(t, store.Resume(ctx, st))
		assert.Zero(t, jobs(t, st))
	})
}

// A job that is asked for again finishes the first one, which would otherwise take what comes after
// it.
func TestAJobAskedForAgain(t *testing.T) {
	seen := store.Batch{Observations: []evidence.Observation{{
		ID: "1", Cell: evidence.Cell{Kind: "arm", Item: "i", Name: "a"}, Source: "ann", Reward: 1,
		Weight: 1, At: start,
	}}}
	reset := func(item, name string) store.Job {
		return store.Job{Reset: []store.Selection{{Kind: "arm", Item: item, Name: name}}}
	}
	rebuild := func(life time.Duration) store.Job {
		return store.Job{Rebuild: map[string]evidence.Policy{"arm": {HalfLife: life}}}
	}
	for what, job := range map[string][2]store.Job{
		"reset":       {reset("", ""), reset("", "")},
		"item":        {reset("", ""), reset("i", "")},
		"alternative": {reset("i", ""), reset("", "a")},
		"expunge":     {{Expunge: []string{"ann"}}, {Expunge: []string{"ann"}}},
		"forget":      {{Forget: []string{"ann"}}, {Forget: []string{"ann"}}},
		"leave":       {{Leave: "acme"}, {Leave: "acme"}},
		"rebuild":     {rebuild(2 * time.Hour), rebuild(0)},
	} {
		st := newScripted(t)
		of, err := store.Tenant(st.Store, job[0].Leave)
		require.NoError(t, err)
		_, err = of.Commit(ctx, seen)
		require.NoError(t, err)
		broken := errors.New("broken")
		st.script[2] = func(func() error) error { return broken }
		require.ErrorIs(t, store.Run(ctx, st, job[0]), broken, what)
		require.NoError(t, store.Run(ctx, st, job[1]), what)
		assert.Zero(t, jobs(t, st), what)
		later := seen
		later.Observations = slices.Clone(seen.Observations)
		later.Observations[0].ID = "2"
		_, err = of.Commit(ctx, later)
		require.NoError(t, err, what)
		require.NoError(t, store.Resume(ctx, st.Store), what)
		n := 0
		for _, err := range of.List(ctx, store.CellQuery{Kind: "arm"}) {
			require.NoError(t, err)
			n++
		}
		assert.Equal(t, 1, n, "%s: what came after the job", what)
	}
}

// TestLeavingTwiceAtOnce takes nothing of a tenant that is back when the second job ends. The two
// jobs begin before either sees the other.
func TestLeavingTwiceAtOnce(t *testing.T) {
	for cut := 2; cut <= 3; cut++ {
		st, leave := newScripted(t), store.Job{Leave: "acme", At: start}
		require.NoError(t, st.Declare(ctx, signed))
		acme, err := store.Tenant(st.Store, "acme")
		require.NoError(t, err)
		_, err = acme.Commit(ctx, signedBy("ann"))
		require.NoError(t, err)
		st.script[1] = func(commit func() error) error {
			first := newScripted(t)
			first.Store = st.Store
			first.script[cut] = func(func() error) error { return heed.ErrUnavailable }
			require.ErrorIs(t, store.Run(ctx, first, leave), heed.ErrUnavailable)
			return commit()
		}
		require.NoError(t, store.Run(ctx, st, leave))
		_, err = acme.Commit(ctx, signedBy("bob"))
		require.NoError(t, err)
		require.NoError(t, store.Resume(ctx, st.Store))
		assert.Zero(t, jobs(t, st), cut)
		n := 0
		for _, err := range acme.Find(ctx, store.Query{Kind: signed.Name}) {
			require.NoError(t, err)
			n++
		}
		assert.Equal(t, 1, n, "cut off at commit %d", cut)
	}
}

// TestLeavingTakesNoSecondTry: the job of a tenant with one record has three commits. It begins,
// removes the record, and ends.
func TestLeavingTakesNoSecondTry(t *testing.T) {
	st := newScripted(t)
	require.NoError(t, st.Declare(ctx, signed))
	acme, err := store.Tenant(st.Store, "acme")
	require.NoError(t, err)
	_, err = acme.Commit(ctx, signedBy("ann"))
	require.NoError(t, err)
	require.NoError(t, store.Run(ctx, st, store.Job{Leave: "acme", At: start}))
	assert.Equal(t, 3, st.commits)
}

// TestATenantIsNoPerson, and a person with a name like a tenant's is no tenant.
func TestATenantIsNoPerson(t *testing.T) {
	st := newScripted(t)
	require.NoError(t, st.Declare(ctx, signed))
	_, err := st.Store.Commit(ctx, signedBy("@acme"), store.Batch{
		Observations: []evidence.Observation{{
			ID: "1", Cell: evidence.Cell{Kind: "arm", Item: "i", Name: "a"}, Source: "@acme", Reward: 1,
			Weight: 1, At: start,
		}},
		Records: []store.Record{{
			Ref: store.Ref{Kind: signed.Name, ID: "2"}, At: start,
			Keys: []string{store.Key("tenant", "acme")}, Body: store.Raw([]byte(`{}`)),
		}},
	})
	require.NoError(t, err)
	require.NoError(t, store.Run(ctx, st, store.Job{Leave: "acme", At: start}))
	var left store.Snapshot
	require.NoError(t, st.Read(ctx, &left, []evidence.Cell{{Kind: "arm", Item: "i", Name: "a"}},
		[]store.Ref{{Kind: signed.Name, ID: "1"}, {Kind: signed.Name, ID: "2"}}))
	assert.Len(t, left.Parts, 1)
	assert.NotZero(t, left.Records[0].Revision, "of the person")
	assert.Zero(t, left.Records[1].Revision, "of the tenant")
}

// A job does not begin if a record that it has to change can't be read.
func TestAJobThatCantEndDoesNotBegin(t *testing.T) {
	st := newScripted(t)
	require.NoError(t, st.Declare(ctx, signed))
	b := signedBy("ann")
	b.Records[0].Body = store.Raw([]byte(`"no object`))
	_, err := st.Store.Commit(ctx, b)
	require.NoError(t, err)
	require.ErrorContains(t, store.Run(ctx, st, forget("ann")), "damaged record")
	assert.Zero(t, st.commits)
}

// Forgetting somebody changes the events that wait in the outbox: the store's, and in the view of a
// tenant the tenant's.
func TestForgetInTheOutbox(t *testing.T) {
	const outbox = "stream.outbox"
	st := newScripted(t)
	acme, err := store.Tenant(st, "acme")
	require.NoError(t, err)
	bravo, err := store.Tenant(st, "bravo")
	require.NoError(t, err)
	all := []store.Store{st, acme, bravo}
	for _, one := range all {
		require.NoError(t, one.Declare(ctx, store.Kind{Name: outbox, Decided: signed.Decided}))
		b := signedBy("ann")
		b.Records[0].Kind = outbox
		_, err := one.Commit(ctx, b)
		require.NoError(t, err)
	}
	named := func() (names []bool) {
		for _, one := range all {
			var s store.Snapshot
			require.NoError(t, one.Read(ctx, &s, nil, []store.Ref{{Kind: outbox, ID: "1"}}))
			text, err := s.Records[0].Body.JSON()
			require.NoError(t, err)
			names = append(names, strings.Contains(string(text), "ann"))
		}
		return names
	}
	require.NoError(t, store.Run(ctx, st, forget("ann")))
	assert.Equal(t, []bool{false, true, true}, named())
	require.NoError(t, store.Run(ctx, acme, forget("ann")))
	assert.Equal(t, []bool{false, false, true}, named())
	for _, one := range all[1:] {
		n := 0
		for rec, err := range one.Find(ctx, store.Query{Kind: outbox}) {
			require.NoError(t, err)
			assert.Equal(t, "1", rec.ID)
			n++
		}
		assert.Equal(t, 1, n, "a tenant finds its events alone")
	}
}

var causedBy = store.Kind{Name: "caused", Caused: []string{"by"}}

// filled returns a store with evidence and records that several steps of a job have to change, in
// the view of a tenant, too.
func filled(t *testing.T) (st *scripted, views []store.Store) {
	t.Helper()
	st = newScripted(t)
	acme, err := store.Tenant(st, "acme")
	require.NoError(t, err)
	views = []store.Store{st, acme}
	for _, view := range views {
		require.NoError(t, view.Declare(ctx, causedBy))
		var b store.Batch
		for i := range 240 {
			b.Observations = append(b.Observations, evidence.Observation{
				ID: fmt.Sprint(i), Reward: 1, Weight: 1, At: start,
				Source: []string{"ann", "bob", "bob", "bob"}[i%4],
				Cell: evidence.Cell{Kind: []string{"arm", "other"}[i%4/2], Scope: "s",
					Item: fmt.Sprint(i % 12)},
			})
		}
		for i := range 300 {
			r := signedBy([]string{"ann", "bob"}[i%3/2]).Records[0]
			r.Kind, r.ID = causedBy.Name, fmt.Sprint(i)
			b.Records = append(b.Records, r)
		}
		_, err := view.Commit(ctx, b)
		require.NoError(t, err)
	}
	st.commits = 0
	return st, views
}

// image returns what each cell and each record is like.
func image(t *testing.T, views []store.Store) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for i, view := range views {
		for r, err := range view.Find(ctx, store.Query{Kind: causedBy.Name}) {
			require.NoError(t, err)
			text, err := r.Body.JSON()
			require.NoError(t, err)
			all[fmt.Sprint(i, r.ID)] = string(text)
		}
		for _, kind := range []string{"arm", "other"} {
			for part, err := range view.List(ctx, store.CellQuery{Kind: kind, Scope: "s"}) {
				require.NoError(t, err)
				all[fmt.Sprint(i, part.Cell)] += fmt.Sprintf("%+v", part)
			}
		}
	}
	return all
}

// A job that is cut off after any of its commits leaves each cell and each record as it was or as
// the job leaves it, and the next sweep finishes the job.
func TestAJobIsCutOffAnywhere(t *testing.T) {
	cutOff := errors.New("cut off")
	for name, job := range map[string]store.Job{
		"several parts": {
			Rebuild: map[string]evidence.Policy{"other": {HalfLife: time.Hour}},
			Reset:   []store.Selection{{Kind: "arm", Scope: "s", Item: "4"}},
			Forget:  []string{"ann"}, At: start,
		},
		"a tenant leaves": {Leave: "acme", At: start},
	} {
		whole, views := filled(t)
		before := image(t, views)
		require.NoError(t, store.Run(ctx, whole, job))
		after := image(t, views)
		require.Greater(t, whole.commits, 3, name)
		require.NotEqual(t, before, after, name)
		for cut := 2; cut <= whole.commits; cut++ {
			at := fmt.Sprintf("%s, cut off at commit %d", name, cut)
			st, all := filled(t)
			views := all
			st.script[cut] = func(func() error) error { return cutOff }
			require.ErrorIs(t, store.Run(ctx, st, job), cutOff, at)
			if job.Leave != "" {
				late := signedBy("bob")
				late.Records[0].Kind = causedBy.Name
				err := views[1].Read(ctx, &store.Snapshot{}, nil, []store.Ref{late.Records[0].Ref})
				require.ErrorIs(t, err, store.ErrLeft, at)
				_, err = views[1].Commit(ctx, late)
				require.ErrorIs(t, err, store.ErrLeft, at)
				views = views[:1] // the other can't be read
			}
			for id, is := range image(t, views) {
				assert.Contains(t, []string{before[id], after[id]}, is, "%s: %s", at, id)
			}
			require.NoError(t, st.Sweep(ctx, time.Time{}), at)
			assert.Zero(t, jobs(t, st), at)
			assert.Equal(t, after, image(t, all), at)
		}
	}
}

package store_test

import (
	"context"
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
	"github.com/heedhq/heed/memstore"
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

// A job whose record is damaged keeps no other job from its end.
func TestResumePassesOverDamage(t *testing.T) {
	for _, at := range []time.Time{start.Add(-time.Hour), start.Add(time.Hour)} {
		st := newScripted(t)
		st.script[2] = func(func() error) error { return errors.New("away") }
		job := forget("ann")
		job.At = start
		require.ErrorContains(t, store.Run(ctx, st, job), "the job has begun")
		_, err := st.Store.Commit(ctx, store.Batch{Records: []store.Record{{
			Ref: store.Ref{Kind: "heed.job", ID: "bad"}, At: at, Body: store.Raw([]byte("[7]")),
		}}})
		require.NoError(t, err)
		require.ErrorIs(t, store.Resume(ctx, st.Store), heed.ErrDamaged)
		left := 0
		for _, err := range st.Find(ctx, store.Query{Kind: "heed.job"}) {
			require.NoError(t, err)
			left++
		}
		assert.Equal(t, 1, left)
	}
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

// Whatever call of the store fails, a job returns the error, unless the store shows that a commit
// took effect. A job that has not begun has changed nothing, and a sweep finishes one that has.
func TestAJobFails(t *testing.T) {
	for name, job := range map[string]store.Job{
		"forget":  forget("ann"),
		"leave":   {Leave: "acme", At: start},
		"expunge": {Expunge: []string{"ann"}, At: start},
		"cells": {
			Rebuild: map[string]evidence.Policy{"other": {HalfLife: time.Hour}},
			Reset:   []store.Selection{{Kind: "arm", Scope: "s", Item: "4"}},
		},
	} {
		whole, views := filled(t, 30)
		before := image(t, views)
		require.NoError(t, store.Run(ctx, whole, job))
		done := image(t, views)
		storetest.FailEach(func(at int, after bool) bool {
			st, views := filled(t, 30)
			failing := &storetest.Failing{Store: st, At: at, After: after}
			err := store.Run(ctx, failing, job)
			what := fmt.Sprintf("%s, call %d, after its effect: %v: %v", name, at, after, err)
			switch {
			case err == nil:
				require.True(t, after || !failing.Failed(), what)
			case jobs(t, st) == 0 && !strings.Contains(err.Error(), "the job has begun"):
				require.ErrorIs(t, err, storetest.ErrFailed, what)
				require.Equal(t, before, image(t, views), what)
				return true
			default:
				require.ErrorIs(t, err, storetest.ErrFailed, what)
				require.NoError(t, store.Resume(ctx, st), what)
			}
			require.Zero(t, jobs(t, st), what)
			require.Equal(t, done, image(t, views), what)
			return failing.Failed()
		})
	}
}

// A job with a fault is refused with the field, and begins nothing.
func TestJobsThatAreRefused(t *testing.T) {
	st := newScripted(t)
	for field, all := range map[string][]store.Job{
		"Rebuild":       {{Rebuild: map[string]evidence.Policy{"": {}}}},
		"HalfLife":      {{Rebuild: map[string]evidence.Policy{"arm": {HalfLife: -1}}}},
		"Leave":         {{Leave: "a\nb"}, {Leave: "\xff"}},
		"Reset[1].Kind": {{Reset: []store.Selection{{Kind: "arm"}, {Item: "i"}}}},
		"Expunge[1]":    {{Expunge: []string{"ann", ""}}, {Expunge: []string{"ann", "\x00"}}},
		"Forget[0]":     {{Forget: []string{""}}, {Forget: []string{"\xff"}}},
	} {
		for _, job := range all {
			job.At = start
			assertField(t, store.Run(ctx, st, job), field, fmt.Sprintf("%+v", job))
		}
	}
	assert.Zero(t, st.commits)
	require.NoError(t, store.Run(ctx, st, store.Job{Leave: "acme", Forget: []string{"ann"},
		Expunge: []string{"bob"}, Rebuild: map[string]evidence.Policy{"arm": {}},
		Reset: []store.Selection{{Kind: "arm"}}}))
	assert.Equal(t, 2, st.commits, "a job of everything begins and ends")
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

// A job that progresses between conflicts does not give up, however many conflicts there are, but
// it ends with its context.
func TestAJobThatGetsOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newScripted(t)
		var b store.Batch
		for i := range 150 { // in two steps
			o := observed(fmt.Sprint(i))
			o.Cell.Item, o.At = o.ID, time.Now()
			b.Observations = append(b.Observations, o)
		}
		_, err := st.Store.Commit(ctx, b)
		require.NoError(t, err)
		for i := range 2 * store.Tries {
			if (i+1)%(store.Tries-1) != 0 {
				st.script[2+i] = func(func() error) error { return heed.ErrConflict }
			}
		}
		job := store.Job{Reset: []store.Selection{{Kind: "cell"}}}
		require.NoError(t, store.Run(ctx, st, job))
		assert.Greater(t, st.commits, 2*(store.Tries-2))

		st = newScripted(t)
		within, cancel := context.WithTimeout(ctx, 40*time.Millisecond)
		defer cancel()
		for i := range store.Tries {
			st.script[2+i] = func(func() error) error { return heed.ErrConflict }
		}
		err = store.Run(within, st, job)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, heed.ErrConflict, "the error of the last try")
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
		back := signedBy("bob")
		back.Observations = []evidence.Observation{observed("late")}
		_, err = acme.Commit(ctx, back)
		require.NoError(t, err)
		require.NoError(t, store.Resume(ctx, st.Store))
		assert.Zero(t, jobs(t, st), cut)
		n := 0
		for _, err := range acme.Find(ctx, store.Query{Kind: signed.Name}) {
			require.NoError(t, err)
			n++
		}
		assert.Equal(t, 1, n, "cut off at commit %d", cut)
		assert.EqualValues(t, 1, observations(t, acme), "cut off at commit %d", cut)
	}
}

// TestLeavingTakesNothingNew if another job has removed the tenant since the job listed its cells,
// and the tenant is back. The first job of this test is cut off after it began. The second one has
// listed the cells when the first one ends.
func TestLeavingTakesNothingNew(t *testing.T) {
	st, leave := newScripted(t), store.Job{Leave: "acme", At: start}
	acme, err := store.Tenant(st.Store, "acme")
	require.NoError(t, err)
	commit := func(id string) {
		_, err := acme.Commit(ctx, store.Batch{Observations: []evidence.Observation{observed(id)}})
		require.NoError(t, err)
	}
	commit("old")
	cut := func(at int, run func(st store.Store) error) {
		other := newScripted(t)
		other.Store = st.Store
		for i := range 2 {
			other.script[at+i] = func(func() error) error { return errBroken }
		}
		require.ErrorIs(t, run(other), errBroken)
	}
	st.script[1] = func(begin func() error) error {
		cut(2, func(other store.Store) error { return store.Run(ctx, other, leave) })
		return begin()
	}
	st.script[2] = func(step func() error) error {
		cut(3, func(other store.Store) error { return store.Resume(ctx, other) })
		require.Equal(t, 1, jobs(t, st))
		commit("new")
		return step()
	}
	require.NoError(t, store.Run(ctx, st, leave))
	assert.Zero(t, jobs(t, st))
	assert.EqualValues(t, 1, observations(t, acme))
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
	for i, body := range []string{"1", `"no object`, "3"} {
		b := signedBy("ann")
		b.Records[0].ID, b.Records[0].Body = fmt.Sprint(i), store.Raw([]byte(body))
		_, err := st.Store.Commit(ctx, b)
		require.NoError(t, err)
	}
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
func filled(t *testing.T, records int) (st *scripted, views []store.Store) {
	t.Helper()
	st = newScripted(t)
	acme, err := store.Tenant(st, "acme")
	require.NoError(t, err)
	views = []store.Store{st, acme}
	for _, view := range views {
		require.NoError(t, view.Declare(ctx, causedBy))
		var b store.Batch
		for i := range records * 4 / 5 {
			b.Observations = append(b.Observations, evidence.Observation{
				ID: fmt.Sprint(i), Reward: 1, Weight: 1, At: start,
				Source: []string{"ann", "bob", "bob", "bob"}[i%4],
				Cell: evidence.Cell{Kind: []string{"arm", "other"}[i%4/2], Scope: "s",
					Item: fmt.Sprint(i % 12)},
			})
		}
		for i := range records {
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
		whole, views := filled(t, 300)
		before := image(t, views)
		require.NoError(t, store.Run(ctx, whole, job))
		after := image(t, views)
		require.Greater(t, whole.commits, 3, name)
		require.NotEqual(t, before, after, name)
		for cut := 2; cut <= whole.commits; cut++ {
			at := fmt.Sprintf("%s, cut off at commit %d", name, cut)
			st, all := filled(t, 300)
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

// steps returns how many commits a job makes between the one that begins it and the one that ends
// it, on a store with this content. Cut off before any of them, it does the same in the end.
func steps(t *testing.T, job store.Job, content store.Batch) int {
	t.Helper()
	kinds := []store.Kind{signed, causedBy,
		{Name: "whole", Caused: []string{"by"}, Whole: true}, {Name: "pair", Caused: []string{"by"}}}
	fill := func() (st *scripted, view store.Store) {
		st = newScripted(t)
		require.NoError(t, st.Declare(ctx, kinds...))
		view, err := store.Tenant(st.Store, job.Leave)
		require.NoError(t, err)
		_, err = view.Commit(ctx, content)
		require.NoError(t, err)
		return st, view
	}
	read := func(view store.Store) (left []string) {
		for _, kind := range kinds {
			for r, err := range view.Find(ctx, store.Query{Kind: kind.Name}) {
				require.NoError(t, err)
				text, err := r.Body.JSON()
				require.NoError(t, err)
				if job.Forget != nil { // a pseudonym depends on the store's key
					text = []byte(fmt.Sprint(strings.Contains(string(text), `"ann"`), len(r.Keys)))
				}
				left = append(left, fmt.Sprintf("%v %s", r.Ref, text))
			}
		}
		for part, err := range view.List(ctx, store.CellQuery{Kind: "cell", Empty: true}) {
			require.NoError(t, err)
			left = append(left, fmt.Sprintf("%+v", part))
		}
		return left
	}
	whole, view := fill()
	before := read(view)
	require.NoError(t, store.Run(ctx, whole, job))
	done := read(view)
	require.NotEqual(t, before, done)
	for at := 2; at < whole.commits; at++ {
		cut, view := fill()
		cut.script[at] = func(func() error) error { return errBroken }
		require.ErrorIs(t, store.Run(ctx, cut, job), errBroken)
		require.NoError(t, store.Resume(ctx, cut))
		require.Equal(t, done, read(view))
	}
	return whole.commits - 2
}

// A step of a job changes at most 500 keys, and ten of them are for the job's record and versions.
// A record counts as one key, and one for each key that it gains or loses. A cell has one, two for
// each of its sums, and one for each observation in a history that goes.
func TestAStepIsBounded(t *testing.T) {
	records := func(n int, of func(i int) store.Record) (b store.Batch) {
		for i := range n {
			r := of(i)
			r.ID = fmt.Sprint(i)
			b.Records = append(b.Records, r)
		}
		return b
	}
	named := func(kind, by string, keys ...string) func(int) store.Record {
		return func(int) store.Record {
			r := signedBy(by).Records[0]
			r.Kind, r.Keys = kind, append(r.Keys, keys...)
			return r
		}
	}
	cells := func(sources []string, counts ...int) (b store.Batch) {
		b.Policies = map[string]evidence.Policy{"cell": {ByOrigin: true}}
		for i, n := range counts {
			for k := range n {
				o := observed(fmt.Sprint(i, " ", k))
				o.Cell.Item, o.Source = fmt.Sprint(i), sources[k%len(sources)]
				b.Observations = append(b.Observations, o)
			}
		}
		return b
	}
	ones := func(n, of int) []int { return slices.Repeat([]int{of}, n) }
	ann, two := []string{"ann"}, []string{"ann", "bob"}
	reset := store.Job{Reset: []store.Selection{{Kind: "cell"}}}
	rebuild := store.Job{Rebuild: map[string]evidence.Policy{"cell": {HalfLife: time.Hour}}}
	leave, gone := store.Job{Leave: "acme"}, forget("ann")
	expunge := store.Job{Expunge: ann}
	for name, test := range map[string]struct {
		job       store.Job
		one, more store.Batch // what fits into one step, and what needs a second one
	}{
		"caused, the key goes": {gone, records(245, named("caused", "ann")),
			records(246, named("caused", "ann"))},
		"decided, a key more": {gone, records(163, named("signed", "ann")),
			records(164, named("signed", "ann"))},
		"a whole record, all keys": {gone, records(122, named("whole", "ann", "a=1", "b=1")),
			records(123, named("whole", "ann", "a=1", "b=1"))},
		"other keys stay": {gone, records(245, named("caused", "ann", "a=1", "b=1")),
			records(250, named("caused", "ann", "a=1", "b=1"))},
		"a tenant's records": {leave, records(245, named("caused", "ann")),
			records(246, named("caused", "ann"))},
		"a tenant's cells":       {leave, cells(ann, ones(163, 1)...), cells(ann, ones(164, 1)...)},
		"cells that are rebuilt": {rebuild, cells(ann, ones(163, 1)...), cells(ann, ones(170, 1)...)},
		"of two sums each":       {rebuild, cells(two, ones(98, 2)...), cells(two, ones(99, 2)...)},
		"cells that are reset":   {reset, cells(ann, 3, 90, 80), cells(ann, 99, 100, 100, 100, 77)},
		"to the last key": {reset, cells(ann, 99, 100, 100, 100, 76),
			cells(ann, 99, 100, 100, 100, 77)},
		"a source": {expunge, cells(ann, ones(122, 1)...), cells(ann, ones(123, 1)...)},
	} {
		assert.Equal(t, 1, steps(t, test.job, test.one), name)
		assert.Equal(t, 2, steps(t, test.job, test.more), name)
	}
	full := records(490, named("caused", "ann"))
	assert.Equal(t, 2, steps(t, gone, full), "each as full as the other")
}

// A person who is named again and again while a job runs does not keep it for ever: it looks for
// records eight times.
func TestForgetSomebodyBusy(t *testing.T) {
	st := newScripted(t)
	require.NoError(t, st.Declare(ctx, causedBy))
	named := func(n int) {
		b := signedBy("ann")
		b.Records[0].Kind, b.Records[0].ID = causedBy.Name, fmt.Sprint(n)
		_, err := st.Store.Commit(ctx, b)
		require.NoError(t, err)
	}
	named(0)
	for n := 1; n < 20; n++ {
		st.script[n] = func(commit func() error) error {
			named(n)
			return commit()
		}
	}
	require.NoError(t, store.Run(ctx, st, forget("ann")))
	assert.Equal(t, 1+8+1, st.commits)
}

// A record that names two people who are forgotten together is changed once, and those behind it
// are changed as well.
func TestForgetTwoOfOneRecord(t *testing.T) {
	st := newScripted(t)
	require.NoError(t, st.Declare(ctx, causedBy))
	for i, names := range [][]string{{"bob"}, {"ann", "bob"}, {"ann"}, {"bob"}} {
		b := signedBy("ann")
		r := &b.Records[0]
		r.Kind, r.ID, r.Keys = causedBy.Name, fmt.Sprint(i), nil
		for _, name := range names {
			r.Keys = append(r.Keys, store.PersonKey(name))
		}
		r.Body = store.Of(map[string][]string{"by": names})
		_, err := st.Store.Commit(ctx, b)
		require.NoError(t, err)
	}
	require.NoError(t, store.Run(ctx, st, store.Job{Forget: []string{"ann", "bob"}, At: start}))
	n := 0
	for r, err := range st.Find(ctx, store.Query{Kind: causedBy.Name}) {
		require.NoError(t, err)
		text, err := r.Body.JSON()
		require.NoError(t, err)
		assert.JSONEq(t, `{"by":[]}`, string(text))
		assert.Empty(t, r.Keys)
		n++
	}
	assert.Equal(t, 4, n)
	assert.Equal(t, 3, st.commits)
}

// A job changes only the cells that it names. A tenant that leaves keeps no cell, not even a cell
// without evidence that has a person's name.
func TestWhatJobsDoToCells(t *testing.T) {
	half := map[string]evidence.Policy{"arm": {HalfLife: time.Hour}}
	arm := func(item string) evidence.Cell { return evidence.Cell{Kind: "arm", Item: item} }
	seen := func(c evidence.Cell, id string) evidence.Observation {
		return evidence.Observation{ID: id, Cell: c, Source: "bob", Reward: 1, Weight: 1, At: start}
	}
	first := store.Batch{Observations: []evidence.Observation{seen(arm("i"), "1"),
		seen(arm("j"), "2"), seen(evidence.Cell{Kind: "tool", Item: "i"}, "3")}}
	listed := func(st store.Store) (cells []string) {
		for _, kind := range []string{"arm", "tool"} {
			for p, err := range st.List(ctx, store.CellQuery{Kind: kind, Empty: true}) {
				require.NoError(t, err)
				cells = append(cells, fmt.Sprint(p.Cell.Kind, " ", p.Cell.Item, " ", p.Tally.N()))
			}
		}
		return cells
	}
	st := newScripted(t)
	acme, err := store.Tenant(st.Store, "acme")
	require.NoError(t, err)
	for _, view := range []store.Store{st.Store, acme} {
		_, err := view.Commit(ctx, first)
		require.NoError(t, err)
	}
	all := []string{"arm i 1", "arm j 1", "tool i 1"}
	require.NoError(t, store.Run(ctx, st,
		store.Job{Reset: []store.Selection{{Kind: "arm", Item: "i"}}}))
	assert.Equal(t, all[1:], listed(st))
	receipts, err := st.Store.Commit(ctx, first)
	require.NoError(t, err)
	assert.Equal(t, []string{"1", "2", "3"}, receipts[0].Duplicates, "the ids stay known")

	later := store.Batch{Policies: half, Observations: []evidence.Observation{seen(arm("j"), "4")}}
	_, err = st.Store.Commit(ctx, later)
	require.ErrorAs(t, err, new(*heed.SettingsError))
	require.NoError(t, store.Run(ctx, st, store.Job{Rebuild: half}))
	_, err = st.Store.Commit(ctx, later)
	require.NoError(t, err)
	assert.Equal(t, []string{"arm j 2", "tool i 1"}, listed(st))
	assert.Equal(t, all, listed(acme))

	_, err = acme.Commit(ctx, store.Batch{Restart: []store.Restart{{Cell: arm("cem"), At: start}}})
	require.NoError(t, err)
	require.NoError(t, store.Run(ctx, st, store.Job{Leave: "acme"}))
	assert.Equal(t, []string{"acme"}, st.last.Forgotten, "copies elsewhere go, too")
	assert.Empty(t, listed(acme))
	assert.Equal(t, []string{"arm j 2", "tool i 1"}, listed(st))
	_, err = store.Pseudonyms.Get(ctx, st, "key")
	require.ErrorIs(t, err, heed.ErrNotFound, "of nobody who was forgotten")
}

// A job needs the history of what it takes away. Where that is lost, the job does not begin.
func TestAJobWithoutHistory(t *testing.T) {
	inner, err := memstore.New(memstore.Config{Retention: store.Retention{HistoryPerCell: 1}})
	require.NoError(t, err)
	st := newScripted(t)
	st.Store = inner
	for i := range 4 {
		o := observed(fmt.Sprint(i))
		o.Cell.Item, o.Source = fmt.Sprint(i%2), "ann"
		_, err := st.Store.Commit(ctx, store.Batch{Observations: []evidence.Observation{o}})
		require.NoError(t, err)
	}
	err = store.Run(ctx, st, store.Job{Rebuild: map[string]evidence.Policy{"cell": {HalfLife: 1e12}}})
	require.ErrorIs(t, err, evidence.ErrForgotten)
	require.ErrorContains(t, err, `kind "cell"`)
	require.ErrorIs(t, store.Run(ctx, st, store.Job{Expunge: []string{"ann"}}), evidence.ErrForgotten)
	require.ErrorIs(t, store.Run(ctx, st, forget("ann")), evidence.ErrForgotten)
	assert.Zero(t, st.commits)
}

// A job of a tenant is finished by the tenant's next job or by any sweep, and not by a job of the
// store itself, which finishes its own.
func TestJobsOfATenant(t *testing.T) {
	st := newScripted(t)
	acme, err := store.Tenant(st, "acme")
	require.NoError(t, err)
	views := []store.Store{st, acme}
	for i, view := range []store.Store{acme, st} { // the tenant's job is the older one
		_, err := view.Commit(ctx, store.Batch{Observations: []evidence.Observation{observed("o")}})
		require.NoError(t, err)
		st.script[st.commits+2] = func(func() error) error { return errBroken }
		job := store.Job{Reset: []store.Selection{{Kind: "cell"}}, At: start.Add(time.Duration(i))}
		require.ErrorIs(t, store.Run(ctx, view, job), errBroken)
	}
	have := func() (n []uint64) {
		for _, view := range views {
			n = append(n, observations(t, view))
		}
		return n
	}
	assert.Equal(t, []uint64{1, 1}, have())
	require.NoError(t, store.Run(ctx, st, store.Job{Reset: []store.Selection{{Kind: "cell"}}}))
	assert.Equal(t, []uint64{0, 1}, have())
	assert.Equal(t, 1, jobs(t, st))
	_, err = st.Commit(ctx, store.Batch{Observations: []evidence.Observation{observed("later")}})
	require.NoError(t, err)
	require.NoError(t, store.Resume(ctx, st))
	assert.Equal(t, []uint64{1, 0}, have())
	assert.Zero(t, jobs(t, st))
}

// A job dates the key of pseudonyms that it makes, and a job without a date begins at the epoch.
func TestAJobDatesTheKey(t *testing.T) {
	for at, want := range map[time.Time]time.Time{start: start, {}: time.Unix(0, 0)} {
		st := newScripted(t)
		require.NoError(t, store.Run(ctx, st, store.Job{Forget: []string{"ann"}, At: at}))
		key, err := store.Pseudonyms.Get(ctx, st, "key")
		require.NoError(t, err)
		assert.True(t, want.Equal(key.Value.Since), key.Value.Since)
	}
}

// Of two equal calls at once, the second finds that the first has begun, and finishes its job.
func TestAJobThatAnEqualCallBegins(t *testing.T) {
	seen := evidence.Observation{
		ID: "1", Cell: evidence.Cell{Kind: "arm", Item: "i", Name: "a"}, Reward: 1, Weight: 1,
		At: start,
	}
	reset := func(st store.Store) error {
		return store.Do(ctx, st, func(tx *store.Tx) error {
			tx.Add(store.Batch{ID: "reset"})
			tx.Start(store.Job{Reset: []store.Selection{{Kind: "arm"}}})
			return nil
		})
	}
	first := newScripted(t)
	first.script[2] = func(func() error) error { return errBroken }
	second := &scripted{Store: first.Store, script: map[int]func(func() error) error{
		1: func(commit func() error) error {
			require.ErrorIs(t, reset(first), errBroken)
			return commit()
		},
	}}
	_, err := first.Store.Commit(ctx, store.Batch{Observations: []evidence.Observation{seen}})
	require.NoError(t, err)
	require.NoError(t, reset(second))
	assert.Zero(t, jobs(t, second))
	var read store.Snapshot
	require.NoError(t, first.Store.Read(ctx, &read, []evidence.Cell{seen.Cell}, nil))
	assert.Empty(t, read.Parts)
}

package feedback_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
)

// notes are records of a host.
var notes = store.View[string]{
	Kind:  store.Kind{Name: "host.note"},
	Place: func(text string) (string, time.Time, []string) { return "note", start, nil },
}

// noting has a store that counts, and keeps records of the host.
func noting(t *testing.T) (*world, *storetest.Failing) {
	sound := newStore(t, nil)
	require.NoError(t, sound.Declare(ctx, notes.Kind))
	st := &storetest.Failing{Store: sound}
	return newWorld(t, feedback.Config{Store: st, Now: time.Now}), st
}

func noted(t *testing.T, st store.Store) string {
	row, err := notes.Get(ctx, st, "note")
	if !errors.Is(err, heed.ErrNotFound) {
		require.NoError(t, err)
	}
	return row.Value
}

// annotate records a correction with a note of the host, in one step.
func (w *world) annotate(f feedback.Feedback) (duplicate bool, err error) {
	err = store.Do(ctx, w.store, func(tx *store.Tx) error {
		tx.Want(feedback.WantsOf(w.Service, f.ID))
		row, err := notes.In(tx, "note")
		if err != nil {
			return err
		}
		notes.Put(tx, row.Value+"x", row.Revision)
		duplicate, err = w.RecordIn(tx, f)
		return err
	})
	return duplicate, err
}

// A correction and a host's record are one read and one commit, and stand or fall together.
func TestRecordInAStepOfTheHost(t *testing.T) {
	w, st := noting(t)
	f := w.correction("ann", long)
	st.Fail(0, false)
	duplicate, err := w.annotate(f)
	require.NoError(t, err)
	assert.False(t, duplicate)
	assert.Equal(t, []int{1, 1, 2}, []int{st.Calls("Read"), st.Calls("Commit"), st.Calls()})
	evaluated, err := w.Evaluate(ctx, f.ID)
	require.NoError(t, err)
	assert.Equal(t, feedback.EdgeCase, evaluated.Class)

	duplicate, err = w.annotate(f)
	require.NoError(t, err)
	assert.True(t, duplicate)
	assert.Equal(t, "xx", noted(t, st),
		"what the host adds counts, also if the correction is known")

	f.Summary = "something else"
	begun := st.Calls()
	_, err = w.annotate(f)
	require.ErrorIs(t, err, heed.ErrConflict)
	assert.Equal(t, begun+1, st.Calls(), "it does not run again")
	f.ID, f.Reviewer = "other", ""
	_, err = w.annotate(f)
	var fault *heed.InputError
	require.ErrorAs(t, err, &fault)
	assert.Equal(t, "xx", noted(t, st), "nothing of a step is kept that fails")
}

// Whichever call of the store fails, all of the step is kept or none of it.
func TestAStepFailsAsAWhole(t *testing.T) {
	runs := 0
	storetest.FailEach(func(at int, effect bool) bool {
		w, st := noting(t)
		f := w.correction("ann", long)
		st.Fail(at, effect)
		_, err := w.annotate(f)
		if !st.Failed() {
			return false
		}
		runs++
		if err != nil || !effect {
			require.ErrorIs(t, err, storetest.ErrFailed)
		}
		st.Fail(0, false)
		_, err = w.Feedback(ctx, f.ID)
		assert.Equal(t, noted(t, st) == "x", err == nil, "call %d, with its effect: %t", at, effect)
		return true
	})
	assert.Equal(t, 4, runs)
}

// A quick store has another writer commit something before the first commits.
type quick struct {
	store.Store
	before func()
	times  int
}

func (q *quick) Commit(ctx context.Context, batches ...store.Batch) ([]store.Receipt, error) {
	if q.times > 0 {
		q.times--
		q.before()
	}
	return q.Store.Commit(ctx, batches...)
}

// If another writer is quicker, the step runs again, and sees what the other has recorded.
func TestAConflictRunsTheStepAgain(t *testing.T) {
	sound, _ := noting(t)
	q := &quick{Store: sound.store, times: 1}
	w := newWorld(t, feedback.Config{Store: q, Now: time.Now})
	f := w.correction("ann", long)
	q.before = func() {
		_, err := sound.Record(ctx, f)
		require.NoError(t, err)
	}
	duplicate, err := w.annotate(f)
	require.NoError(t, err)
	assert.True(t, duplicate)
	assert.Equal(t, "x", noted(t, q))

	q.times, q.before = 1, func() {
		_, err := sound.annotate(f)
		require.NoError(t, err)
	}
	_, err = w.annotate(f)
	require.NoError(t, err)
	assert.Equal(t, "xxx", noted(t, q))
}

// Rules are read together with what the host reads. If the service has read them before, only their
// version is.
func TestInjectAndCheckInAStep(t *testing.T) {
	w, st := noting(t)
	d := rule("Do not name a database")
	d.Check.Forbid = "(?i)postgres"
	r := w.activate(d)
	other := newWorld(t, feedback.Config{Store: st, Now: time.Now})
	for round := range 2 {
		st.Fail(0, false)
		id := fmt.Sprint("answer", round)
		err := store.Do(ctx, st, func(tx *store.Tx) error {
			wants := other.rules.Wants("prd")
			assert.Equal(t, round == 0, len(wants.Queries) > 0)
			tx.Want(wants)
			if _, err := notes.In(tx, "note"); err != nil {
				return err
			}
			in, err := other.rules.InjectIn(tx, "prd", "base", "task")
			require.NoError(t, err)
			want, err := w.rules.Inject(ctx, "prd", "base", "task")
			require.NoError(t, err)
			assert.Equal(t, want, in)
			st.Fail(0, false)
			found, err := other.rules.CheckIn(tx,
				feedback.Checked{ID: id, Agent: "prd", Text: "Use Postgres"})
			require.NoError(t, err)
			require.Len(t, found, 1)
			assert.Equal(t, r.ID, found[0].Rule)
			assert.Zero(t, st.Calls(), "the step has read the version")
			return nil
		})
		require.NoError(t, err)
	}
	e, err := feedback.Measure(ctx, w.Service, r.ID, w.rule(r.ID).Since)
	require.NoError(t, err)
	assert.Equal(t, 2, e.Checks.Hits, "what was found counts with the commit")
	err = store.Do(ctx, st, func(tx *store.Tx) error {
		_, err := other.rules.CheckIn(tx,
			feedback.Checked{ID: "never", Agent: "prd", Text: "Use Postgres"})
		return errors.Join(err, errors.New("the host gives up"))
	})
	require.ErrorContains(t, err, "gives up")
	e, err = feedback.Measure(ctx, w.Service, r.ID, w.rule(r.ID).Since)
	require.NoError(t, err)
	assert.Equal(t, 2, e.Checks.Hits)
}

// An injection names just the rules in its text.
func TestInjectionNamesItsRules(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	texts := map[string]string{}
	for i := range 26 { // more than fit; every third text is long
		text := "Name " + strings.Repeat(string(rune('a'+i)), 3)
		if i%3 == 0 {
			text += strings.Repeat(" long", 90)
		}
		r := w.activate(rule(text))
		texts[r.ID] = r.Text
	}
	in := w.inject("prd", w.inject("prd", "base").Prompt)
	require.Len(t, in.Rules, 20)
	omitted := 0
	for id, text := range texts {
		shown := strings.Contains(in.Section, ": "+text+"\n")
		assert.Equal(t, shown, slices.Contains(in.Rules, id), text)
		if !shown {
			omitted++
		}
	}
	assert.Len(t, in.Omitted, omitted)
	assert.Equal(t, 1, strings.Count(in.Prompt, feedback.Heading))
}

// A review that does not say what it decides is neither an approval nor a rejection.
func TestAReviewSaysWhatItDecides(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	p := w.propose("paul", rule("Be brief"))
	for _, decision := range []feedback.Decision{"", feedback.ApprovedWithChanges, "yes"} {
		_, err := w.review(p, decision, "ann")
		var fault *heed.InputError
		require.ErrorAs(t, err, &fault)
		assert.Equal(t, "Decision", fault.Field)
	}
	assert.Empty(t, w.pending().Approvals)
}

// A restored rule supersedes nothing, so naming an active rule in Supersedes is refused. What it
// named when it was made hides no contradiction.
func TestARestorationContradictsWhatItNames(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	old := w.activate(rule("Name the database"))
	_, err := w.rules.Move(ctx, order(old.ID), feedback.StateRetired)
	require.NoError(t, err)
	now := w.activate(rule("Do not name the database"))
	d := w.rule(old.ID).Draft
	d.Change, d.Of, d.Supersedes = feedback.Restore, old.ID, []string{now.ID}
	_, err = w.rules.Propose(ctx, feedback.Submission{Draft: d, Actor: "olga", Reason: "x"})
	assert.ErrorIs(t, err, heed.ErrConflict)
	p, err := w.asks("olga", old.ID, feedback.Restore)
	require.NoError(t, err)
	require.NotEmpty(t, p.Conflicts)
	assert.Equal(t, now.ID, p.Conflicts[0].ID)
	_, err = w.review(p, approve, "dan")
	assert.Equal(t, conflict, feedback.Refusal(err))
	assert.Equal(t, feedback.StateRetired, w.rule(old.ID).Status)
}

// A reviewer is not shown a draft that the store never had: Authorize gets the stored draft.
func TestDraftsThatWereNotStoredAreForgotten(t *testing.T) {
	sound := newStore(t, nil)
	st := &storetest.Failing{Store: sound}
	var asked *feedback.Draft
	w := newWorld(t, feedback.Config{
		Store: st, Now: time.Now, NewID: func() string { return "same" },
		Authorize: func(_ context.Context,
			act feedback.Act) error {
			asked = act.Draft
			return nil
		},
	})
	st.Fail(2, false) // the commit
	_, err := w.rules.Propose(ctx, feedback.Submission{Draft: rule("Never stored"), Actor: "paul",
		Reason: "x"})
	require.ErrorIs(t, err, storetest.ErrFailed)
	st.Fail(0, false)
	ids := 0
	other := newWorld(t, feedback.Config{Store: st, Now: time.Now, NewID: func() string {
		if ids++; ids == 1 {
			return "same"
		}
		return fmt.Sprint("id", ids)
	}})
	p, err := other.rules.Propose(ctx, feedback.Submission{Draft: rule("Stored by another"),
		Actor: "paul", Reason: "x"})
	require.NoError(t, err)
	require.Equal(t, "same", p.ID)
	_, _ = w.review(p, approve, "dan")
	require.NotNil(t, asked)
	assert.Equal(t, "Stored by another", asked.Text)
}

func ExampleService_RecordIn() {
	ctx := context.Background()
	st, err := memstore.New(memstore.Config{})
	if err != nil {
		panic(err)
	}
	service, err := feedback.New(ctx, feedback.Config{Store: st})
	if err != nil {
		panic(err)
	}
	type ticket struct{ ID, State string }
	tickets := store.View[ticket]{
		Kind:  store.Kind{Name: "host.ticket"},
		Place: func(t ticket) (string, time.Time, []string) { return t.ID, time.Unix(1e9, 0), nil },
	}
	if err := st.Declare(ctx, tickets.Kind); err != nil {
		panic(err)
	}
	f := feedback.Feedback{
		ID: "review-1", Gate: "code", Agent: "coder", Decision: feedback.Rejected, Reviewer: "ann",
		At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Summary: "Tests are missing",
	}
	err = store.Do(ctx, st, func(tx *store.Tx) error {
		row, err := tickets.In(tx, "t-7")
		if err != nil {
			return err
		}
		tickets.Put(tx, ticket{"t-7", "reopened"}, row.Revision)
		_, err = service.RecordIn(tx, f)
		return err
	})
	fmt.Println(err)
	evaluated, err := service.Evaluate(ctx, f.ID)
	fmt.Println(evaluated.Class, err)
	// Output:
	// <nil>
	// edge_case <nil>
}

// A proposal counts what was taken out from behind it, because its approvers had relied on that.
func TestAProposalCountsWhatWasTakenOut(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	heldOpen(w)
	w.says("bob", "tests are missing")
	w.flush()
	for n := range 2 {
		assert.Equal(t, n, w.pending().Withdrawn)
		_, err := w.Split(ctx, feedback.Act{
			ID: w.pending().Evidence[0], Actor: "cleo", Reason: "it means something else",
		})
		require.NoError(t, err)
	}
}

package strategy_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
	"github.com/heedhq/heed/strategy"
)

// chooseIn chooses in a step, and returns how often the step ran.
func chooseIn(t testing.TB, l *strategy.Learner, q strategy.Query) (c strategy.Choice, runs int) {
	require.NoError(t, store.Do(ctx, l.Config().Store, func(tx *store.Tx) (err error) {
		runs++
		tx.Want(l.Wants(q))
		c, err = l.SelectIn(tx, q)
		return err
	}))
	return c, runs
}

// TestOneSessionHasOneArm for eight processes at the same time, each with another key, which would
// draw another arm.
func TestOneSessionHasOneArm(t *testing.T) {
	cfg := withFixtures(t, strategy.Config{Answers: "host.answer"})
	learners := make([]*strategy.Learner, 8)
	for i := range learners {
		cfg.Seed = rand.NewPCG(uint64(i), 1)
		learners[i] = newLearner(t, cfg)
	}
	reruns := 0
	for session := range 50 {
		q := strategy.Query{Session: fmt.Sprint(session), Item: "i"}
		chosen, runs := make([]strategy.Choice, len(learners)), make([]int, len(learners))
		var all sync.WaitGroup
		begin := make(chan struct{})
		for i, l := range learners {
			all.Go(func() {
				<-begin
				chosen[i], runs[i] = chooseIn(t, l, q)
			})
		}
		close(begin)
		all.Wait()
		for i, c := range chosen {
			assert.Equal(t, chosen[0].Record(), c.Record())
			reruns += runs[i] - 1
			again, _ := chooseIn(t, learners[i], q)
			assert.Equal(t, c.ID, again.ID)
		}
	}
	t.Log("steps that ran again:", reruns)
	for range cfg.Store.Find(ctx, store.Query{Kind: "host.answer"}) {
		t.Fatal("a step writes no answer")
	}
}

// A step draws what Select draws, by the session or by the key.
func TestAStepDrawsTheSame(t *testing.T) {
	for _, q := range []strategy.Query{
		{Session: "s", Item: "i"}, {Session: "s", Category: "c"}, {Key: "k", Item: "i"}, {Key: "k"},
		{Session: "s", Key: "k", Item: "i"},
	} {
		alone, step := newLearner(t, strategy.Config{}), newLearner(t, strategy.Config{})
		got, _ := chooseIn(t, step, q)
		assert.Equal(t, drawn(choose(t, alone, q)), drawn(got), "%v", q)
		if q.Session == "" {
			again, _ := chooseIn(t, step, q)
			assert.Equal(t, drawn(got), drawn(again), "%v", q)
			assert.Equal(t, drawn(got), drawn(choose(t, step, q)), "%v", q)
			q.Key = "another"
			other, _ := chooseIn(t, step, q)
			assert.NotEqual(t, drawn(got), drawn(other))
		}
	}
}

// TestTripsOfSteps counts what a step reads and writes to choose and to credit.
func TestTripsOfSteps(t *testing.T) {
	st := &storetest.Failing{Store: newStore(t, (&clock{}).Now)}
	l := newLearner(t, strategy.Config{Store: st})
	choose(t, l, strategy.Query{Item: "i"}) // it loads the segment
	trips := func(read, commit int, q strategy.Query) {
		t.Helper()
		st.Fail(0, false)
		chooseIn(t, l, q)
		assert.Equal(t, []int{read, commit, read + commit},
			[]int{st.Calls("Read"), st.Calls("Commit"), st.Calls()})
	}
	trips(1, 0, strategy.Query{Item: "i"})
	trips(1, 0, strategy.Query{Item: "i", Key: "k"})
	trips(1, 1, strategy.Query{Item: "i", Session: "s"})
	trips(0, 0, strategy.Query{Item: "i", Session: "s"})
	trips(1, 0, strategy.Query{Item: "i", Session: "frozen", Frozen: true})
	l = newLearner(t, l.Config())
	choose(t, l, strategy.Query{Item: "i"})
	trips(1, 0, strategy.Query{Item: "i", Session: "s"})
	require.NoError(t, l.EndSession(ctx, "s"))
	trips(1, 1, strategy.Query{Item: "i", Session: "s"})
}

// A session's choice lasts until the session ends, the time is over, or the arm is no longer
// permitted.
func TestASessionsChoiceInSteps(t *testing.T) {
	for _, unrecorded := range []bool{false, true} {
		c := &clock{}
		l := newLearner(t, strategy.Config{Now: c.Now, Unrecorded: unrecorded})
		q := strategy.Query{Session: "s", Item: "i"}
		first, _ := chooseIn(t, l, q)
		c.Advance(time.Hour - 1)
		again, _ := chooseIn(t, l, q)
		assert.Equal(t, first.ID, again.ID)
		c.Advance(1)
		second, _ := chooseIn(t, l, q)
		assert.NotEqual(t, first.ID, second.ID)
		q.Arms = slices.DeleteFunc([]strategy.ArmID{"a", "b", "c", "d"}, func(arm strategy.ArmID) bool {
			return arm == second.Arm
		})
		third, _ := chooseIn(t, l, q)
		assert.NotEqual(t, second.Arm, third.Arm)
		require.NoError(t, l.EndSession(ctx, "s"))
		fourth, _ := chooseIn(t, l, q)
		assert.NotEqual(t, third.ID, fourth.ID)
	}
}

// A frozen query uses what is known, and leaves nothing behind.
func TestAFrozenQueryChangesNothing(t *testing.T) {
	l := newLearner(t, strategy.Config{Topic: "t"})
	q := strategy.Query{Session: "s", Item: "i", Frozen: true}
	for range 3 {
		choose(t, l, q)
		chooseIn(t, l, q)
	}
	assert.Empty(t, outbox(t, l.Config().Store))
	assert.Zero(t, l.Remembered())
	for _, kind := range []string{"strategy.answer", "strategy.session"} {
		for range l.Config().Store.Find(ctx, store.Query{Kind: kind}) {
			t.Fatal(kind)
		}
	}
	q.Frozen = false
	alone := choose(t, l, q)
	step, _ := chooseIn(t, l, q)
	q.Frozen = true
	assert.Equal(t, alone.ID, choose(t, l, q).ID)
	again, _ := chooseIn(t, l, q)
	assert.Equal(t, step.ID, again.ID)
}

// A step's choice can't be made of what Select refuses.
func TestStepsRefuseBadQueries(t *testing.T) {
	l := newLearner(t, strategy.Config{})
	for field, q := range map[string]strategy.Query{
		"Arms":    {Arms: []strategy.ArmID{"a", "b", "a"}, Shares: []float64{0.4, 0.2, 0.4}},
		"Session": {Session: "\xff"},
		"Key":     {Key: "\xff"}, "Shares": {Shares: []float64{1}},
	} {
		_, err := l.Select(ctx, q)
		assertInputError(t, err, field)
		tx := store.Reading(ctx, l.Config().Store)
		_, err = l.SelectIn(tx, q)
		assertInputError(t, err, field)
		assert.Empty(t, l.Wants(q))
	}
}

// TestADamagedRecordOfASession gives the default arm, with the error.
func TestADamagedRecordOfASession(t *testing.T) {
	for damaged, test := range map[string]struct {
		answers string
		record  int // of what a choice reads
	}{
		"the session's": {"host.answer", 0}, "its choice's": {"host.answer", 1},
		"its choice's own": {"", 1},
	} {
		cfg := withFixtures(t, strategy.Config{Answers: test.answers})
		q := strategy.Query{Session: "s", Item: "i"}
		chooseIn(t, newLearner(t, cfg), q)
		refs := newLearner(t, cfg).Wants(q).Refs
		require.Len(t, refs, 2)
		ref := refs[test.record]
		var s store.Snapshot
		require.NoError(t, cfg.Store.Read(ctx, &s, nil, []store.Ref{ref}))
		_, err := cfg.Store.Commit(ctx, store.Batch{Records: []store.Record{
			{Ref: ref, Revision: s.Records[0].Revision, At: start, Body: store.Raw([]byte(`{"id": 5}`))},
		}})
		require.NoError(t, err)
		l := newLearner(t, cfg)
		err = store.Do(ctx, cfg.Store, func(tx *store.Tx) error {
			c, err := l.SelectIn(tx, q)
			assert.True(t, c.Record().Fallback, damaged)
			return err
		})
		require.ErrorIs(t, err, heed.ErrDamaged, damaged)
	}
}

// The choice that a step takes over from another process learns from its outcome.
func TestAChoiceOfAnotherProcessIsCredited(t *testing.T) {
	cfg := withFixtures(t, strategy.Config{Answers: "host.answer"})
	q := strategy.Query{Session: "s", Item: "i"}
	first, _ := chooseIn(t, newLearner(t, cfg), q)
	l := newLearner(t, cfg)
	again, _ := chooseIn(t, l, q)
	require.Equal(t, first.ID, again.ID)
	credit(t, l, again, 1)
	assert.Equal(t, 1., massOf(kept(t, cfg.Store, q, "arm")))
}

package strategy_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/injection"
)

var errStore = errors.New("the disk is on fire")

// newFaulty returns a learner of the catalogue over a store that can be made to fail.
func newFaulty(t *testing.T) (*strategy.Learner, *faulty) {
	st := &faulty{Store: newStore(t, (&clock{}).Now)}
	return newLearner(t, strategy.Config{Store: st, Arms: injection.Arms()}), st
}

// Select returns the default arm with the store's error, and does not remember the choice.
func TestSelectFallsBackWhereTheStoreCannotBeRead(t *testing.T) {
	for _, session := range []string{"s", ""} {
		for name, fail := range map[string]func(*faulty, *error){
			"List": func(f *faulty, err *error) { f.list.Store(err) },
			"Read": func(f *faulty, err *error) { f.read.Store(err) },
		} {
			t.Run(name+" "+session, func(t *testing.T) {
				l, st := newFaulty(t)
				q := strategy.Query{Session: session, Item: "i", Category: "c", Context: "x"}
				fail(st, &errStore)
				c, err := l.Select(ctx, q)
				require.ErrorIs(t, err, errStore)
				assert.True(t, c.Record().Fallback)
				assert.Equal(t, injection.Deferred, c.Arm)
				assert.Equal(t, "explicit", c.Parameter("trigger"))
				assert.Equal(t, "0", c.Parameter("max_wait_ms"))
				assert.Equal(t, []string{session, "i", "c", "x"},
					[]string{c.Session, c.Item, c.Category, c.Context})
				assert.Equal(t, start, c.At)
				assert.Equal(t, 1., c.Propensity())
				for _, d := range c.Record().Draws {
					t.Errorf("%v was drawn", d)
				}
				assert.Zero(t, l.Remembered())
				read := throughJSON(t, c)
				assert.True(t, read.Record().Fallback)
				assert.Equal(t, 1., read.Propensity())
				_, err = l.Beliefs(ctx, q)
				assert.ErrorIs(t, err, errStore)

				fail(st, nil)
				drawn := choose(t, l, q)
				assert.False(t, drawn.Record().Fallback)
				assert.NotEqual(t, c.ID, drawn.ID)
				for _, c := range []strategy.Choice{c, read} {
					disposition, err := l.Observe(ctx, strategy.Outcome{Choice: c, Value: 1, Confidence: 1})
					require.NoError(t, err)
					assert.Contains(t, []strategy.Disposition{strategy.Applied, strategy.Duplicate},
						disposition)
				}
				arms := kept(t, st, q, "arm")
				require.Len(t, arms, 1)
				assert.Equal(t, "deferred", arms[0].Cell.Name)
				assert.Equal(t, 1., arms[0].Tally.Mass)
			})
		}
	}
}

func TestTheFallbackIsPermitted(t *testing.T) {
	l, st := newFaulty(t)
	st.list.Store(&errStore)
	for _, test := range []struct {
		permitted []strategy.ArmID
		want      strategy.ArmID
	}{
		{nil, injection.Deferred},
		{[]strategy.ArmID{injection.MainContext, injection.Deferred}, injection.Deferred},
		{[]strategy.ArmID{injection.Subagent, injection.MainContext}, injection.Subagent},
	} {
		c, err := l.Select(ctx, strategy.Query{Session: "s", Item: "i", Arms: test.permitted})
		assert.ErrorIs(t, err, errStore)
		assert.Equal(t, test.want, c.Arm)
		_, err = injection.Of(c)
		assert.NoError(t, err, "a host can act on it")
	}
}

func TestARememberedChoiceNeedsNoStore(t *testing.T) {
	l, st := newFaulty(t)
	q := strategy.Query{Session: "s", Item: "i"}
	c := choose(t, l, q)
	st.read.Store(&errStore)
	st.list.Store(&errStore)
	assert.Equal(t, c, choose(t, l, q))
}

// TestWhatCannotBeStoredIsNotCounted, and can be delivered again.
func TestWhatCannotBeStoredIsNotCounted(t *testing.T) {
	for name, fail := range map[string]func(*faulty, *error){
		"Commit": func(f *faulty, err *error) { f.commit.Store(err) },
	} {
		t.Run(name, func(t *testing.T) {
			l, st := newFaulty(t)
			q := strategy.Query{Session: "s", Item: "i"}
			o := strategy.Outcome{Choice: choose(t, l, q), Value: 1, Confidence: 1}
			before := means(t, l, q)
			fail(st, &errStore)
			disposition, err := l.Observe(ctx, o)
			assert.ErrorIs(t, err, errStore)
			assert.Empty(t, disposition)
			fail(st, nil)
			assert.Empty(t, everything(t, st, q))
			assert.Equal(t, before, means(t, l, q))
			disposition, err = l.Observe(ctx, o)
			require.NoError(t, err)
			assert.Equal(t, strategy.Applied, disposition)
		})
	}
}

// A forgetful store fails to be read once it has committed.
type forgetful struct{ *faulty }

func (f forgetful) Commit(ctx context.Context, batches ...store.Batch) ([]store.Receipt, error) {
	receipts, err := f.faulty.Commit(ctx, batches...)
	if len(batches[0].Observations) > 0 {
		f.read.Store(&errStore)
	}
	return receipts, err
}

// TestWhatIsStoredIsApplied though the store fails afterwards: the segment is then read again when
// it next can be.
func TestWhatIsStoredIsApplied(t *testing.T) {
	st := &faulty{Store: newStore(t, (&clock{}).Now)}
	l := newLearner(t, strategy.Config{Store: forgetful{st}, Pooling: strategy.Copy{}})
	q := strategy.Query{Session: "s", Item: "i", Arms: []strategy.ArmID{"a"}}
	credit(t, l, choose(t, l, q), 1)
	q.Session = "another"
	_, err := l.Select(ctx, q)
	assert.ErrorIs(t, err, errStore)
	st.read.Store(nil)
	assert.Equal(t, evidence.Beta{Alpha: 2, Beta: 1},
		beliefs(t, l, strategy.Query{Item: "new"})[0].Level)
}

func TestRefreshReportsWhatFailed(t *testing.T) {
	l, st := newFaulty(t)
	q := strategy.Query{Item: "i"}
	require.NoError(t, l.Refresh(ctx), "of no segments")
	try(t, l, q, injection.Subagent, 1)
	want := means(t, l, q)
	st.list.Store(&errStore)
	assert.ErrorIs(t, l.Refresh(ctx), errStore)
	assert.Equal(t, want, means(t, l, q), "what was held in memory stays")
	st.list.Store(nil)
	assert.NoError(t, l.Refresh(ctx))
}

// A slow store answers when the context is done, which it is as soon as the store is asked.
type slow struct {
	store.Store
	asked func()
}

func (s *slow) Read(ctx context.Context, into *store.Snapshot, cells []evidence.Cell,
	refs []store.Ref, finds ...store.Query) error {
	if s.asked == nil {
		return s.Store.Read(ctx, into, cells, refs, finds...)
	}
	s.asked()
	<-ctx.Done()
	return ctx.Err()
}

func TestSelectFallsBackWhereTheStoreIsTooSlow(t *testing.T) {
	st := &slow{Store: newStore(t, (&clock{}).Now)}
	l := newLearner(t, strategy.Config{Store: st})
	for _, session := range []string{"s", ""} {
		short, cancel := context.WithCancel(ctx)
		st.asked = cancel
		c, err := l.Select(short, strategy.Query{Session: session, Item: "i"})
		assert.ErrorIs(t, err, context.Canceled)
		assert.True(t, c.Record().Fallback)
		assert.Equal(t, strategy.ArmID("a"), c.Arm)
		assert.Zero(t, l.Remembered())
	}
}

// TestADisabledLearnerChoosesTheDefault and learns nothing, and asks nothing of its store.
func TestADisabledLearnerChoosesTheDefault(t *testing.T) {
	st := &memstore.Store{}
	l := newLearner(t, strategy.Config{Store: st, Disabled: true,
		Arms: injection.Arms()})
	c, err := l.Select(ctx, strategy.Query{Session: "s", Item: "i"})
	require.NoError(t, err)
	assert.Equal(t, injection.Deferred, c.Arm)
	assert.True(t, c.Record().Fallback)
	disposition, err := l.Observe(ctx, strategy.Outcome{Choice: c, Value: 1, Confidence: 1})
	require.NoError(t, err)
	assert.Equal(t, strategy.Dropped, disposition)
	assert.Empty(t, read(t, st, c.Cells()...))
	c, err = l.Select(ctx, strategy.Query{Session: "s", Item: "i",
		Arms: []strategy.ArmID{injection.Subagent}})
	require.NoError(t, err)
	assert.Equal(t, injection.Subagent, c.Arm, "only what is permitted")
}

package strategy_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/injection"
)

// blocked is a store whose reads wait.
type blocked struct {
	store.Store
	reading, goOn chan struct{}
}

func (b *blocked) Read(ctx context.Context, into *store.Snapshot, cells []evidence.Cell,
	refs []store.Ref, finds ...store.Query) error {
	if b.reading != nil {
		b.reading <- struct{}{}
		<-b.goOn
	}
	return b.Store.Read(ctx, into, cells, refs, finds...)
}

// TestWaitingForALoadEnds with the context, as an error.
func TestWaitingForALoadEnds(t *testing.T) {
	cfg := withFixtures(t, strategy.Config{Arms: []strategy.Arm{{ID: "a"}, {ID: "b"}}})
	st := &blocked{Store: cfg.Store}
	cfg.Store = st
	l := newLearner(t, cfg)
	st.reading, st.goOn = make(chan struct{}), make(chan struct{})
	first := make(chan error)
	go func() {
		_, err := l.Select(ctx, strategy.Query{Item: "i"})
		first <- err
	}()
	<-st.reading
	short, cancel := context.WithTimeout(ctx, 5*time.Millisecond)
	defer cancel()
	second := make(chan error, 1)
	go func() {
		_, err := l.Select(short, strategy.Query{Item: "i"})
		second <- err
	}()
	require.ErrorIs(t, <-second, context.DeadlineExceeded)
	close(st.goOn)
	require.NoError(t, <-first)
}

// As an item's own at once, as its segment's after a refresh, asked for or in time.
func TestWhatOthersLearnIsSeen(t *testing.T) {
	for name, refresh := range map[string]func(*testing.T, *strategy.Learner, *clock){
		"asked for": func(t *testing.T, l *strategy.Learner,
			_ *clock) {
			require.NoError(t, l.Refresh(ctx))
		},
		"in time": func(_ *testing.T, _ *strategy.Learner, c *clock) { c.Advance(10 * time.Minute) },
	} {
		for _, pooling := range []strategy.Pooling{strategy.TwoLevel{}, strategy.Copy{}} {
			t.Run(fmt.Sprint(name, " ", pooling), func(t *testing.T) {
				c := &clock{}
				cfg := withFixtures(t, strategy.Config{Now: c.Now, Pooling: pooling, Arms: []strategy.Arm{
					{ID: "a"}, {ID: "b", Parameters: []strategy.Parameter{{Name: "n",
						Values: []string{"1", "2"}}}},
				}})
				here, there := newLearner(t, cfg), newLearner(t, cfg)
				item, other := strategy.Query{Item: "i"}, strategy.Query{Item: "new"}
				before := means(t, here, other)
				for range 30 {
					q := item
					q.Arms = []strategy.ArmID{"b"}
					choice := choose(t, there, q)
					credit(t, there, choice, map[string]float64{"1": -0.5, "2": 1}[choice.Parameter("n")])
				}
				if pooling == (strategy.TwoLevel{}) {
					assert.Greater(t, means(t, here, item)[1], 0.6, "as its own")
				}
				assert.Equal(t, before, means(t, here, other))
				c.Advance(10*time.Minute - 1)
				assert.Equal(t, before, means(t, here, other))

				refresh(t, here, c)
				assert.Equal(t, means(t, newLearner(t, cfg), other), means(t, here, other))
				assert.Greater(t, means(t, here, other)[1], before[1])
				twos := 0
				for range 100 {
					if choose(t, here, strategy.Query{Item: "i", Arms: []strategy.ArmID{"b"}}).Parameter(
						"n") == "2" {
						twos++
					}
				}
				assert.Greater(t, twos, 80, "values of parameters too")
			})
		}
	}
}

// A segment whose time of loading lies in the future counts as old.
func TestAClockThatIsPutBackKeepsNothingOld(t *testing.T) {
	c := &clock{}
	cfg := withFixtures(t, strategy.Config{Now: c.Now,
		Store: newStore(t, func() time.Time { return start.Add(5 * time.Hour) })})
	here, there := newLearner(t, cfg), newLearner(t, cfg)
	other := strategy.Query{Item: "new"}
	c.Advance(5 * time.Hour)
	before := means(t, here, other)
	c.Advance(-4 * time.Hour)
	for range 10 {
		try(t, there, strategy.Query{Item: "i"}, "b", 1)
	}
	assert.Greater(t, means(t, here, other)[1], before[1])
}

// TestExpungingASourceRemovesItsInfluence, after a refresh.
func TestExpungingASourceRemovesItsInfluence(t *testing.T) {
	for _, pooling := range poolings {
		for _, trust := range []evidence.Trust{{}, {Instruments: []string{"liar"}}} {
			t.Run(fmt.Sprint(pooling, trust), func(t *testing.T) {
				st := newStore(t, (&clock{}).Now)
				cfg := strategy.Config{Store: st, Pooling: pooling, Trust: trust}
				l, untouched := newLearner(t, cfg), newLearner(t,
					strategy.Config{Pooling: pooling, Trust: trust})
				observe := func(l *strategy.Learner, item, source string, arm strategy.ArmID,
					value float64) {
					c := choose(t, l, strategy.Query{Item: item, Arms: []strategy.ArmID{arm}})
					_, err := l.Observe(ctx, strategy.Outcome{Choice: c, Value: value, Confidence: 1,
						Source: source})
					require.NoError(t, err)
				}
				for n := range 30 {
					item := fmt.Sprint(n % 3)
					for _, l := range []*strategy.Learner{l, untouched} {
						observe(l, item, "honest", "a", 1)
						observe(l, item, "honest", "b", -0.5)
					}
					observe(l, item, "liar", "b", 1)
				}
				err := store.Run(ctx, st, store.Job{Expunge: []string{"liar"}})
				require.NoError(t, err)
				require.NoError(t, l.Refresh(ctx))
				for _, item := range []string{"new", "0"} {
					if pooling == (strategy.Copy{}) && item != "new" {
						continue // what it copied has no source any more
					}
					got := means(t, l, strategy.Query{Item: item})
					require.NoError(t, untouched.Refresh(ctx))
					for i, want := range means(t, untouched, strategy.Query{Item: item}) {
						assert.InDelta(t, want, got[i], 1e-9, "of arm %d of item %s", i, item)
					}
				}
			})
		}
	}
}

// Another learner of the store has arms and values of its own, and keeps what was learned of the
// others.
func TestArmsMayComeAndGo(t *testing.T) {
	for _, pooling := range poolings {
		st := newStore(t, (&clock{}).Now)
		before := newLearner(t, strategy.Config{Store: st, Pooling: pooling,
			Arms: plain("a", "b", "c")})
		after := newLearner(t, strategy.Config{Store: st, Pooling: pooling, Arms: plain("d", "c", "b")})
		q := strategy.Query{Item: "i"}
		for arm, value := range map[strategy.ArmID]float64{"a": 1, "b": -1, "c": 1} {
			for range 10 {
				try(t, before, q, arm, value)
			}
		}
		mean := means(t, after, q)
		assert.Equal(t, 0.5, mean[0], "%v", pooling)
		assert.Greater(t, mean[1], 0.85, "%v", pooling)
		assert.Less(t, mean[2], 0.15, "%v", pooling)
		late := choose(t, before, strategy.Query{Item: "i", Arms: []strategy.ArmID{"a"}})
		_, err := after.Observe(ctx, strategy.Outcome{Choice: late, Value: 1, Confidence: 1})
		assertInputError(t, err, "Choice.Arm")
	}
}

// TestConcurrentUse lets 16 goroutines do all that a learner can. Then each of their outcomes is in
// the store and in the memory of the learner.
func TestConcurrentUse(t *testing.T) {
	for _, pooling := range []strategy.Pooling{strategy.TwoLevel{}, strategy.Copy{Sessions: 5},
		strategy.Alone{}} {
		t.Run(fmt.Sprintf("%+v", pooling), func(t *testing.T) {
			t.Parallel()
			const goroutines, items = 8, 5
			outcomes := long(30, 120)
			cfg := withFixtures(t, strategy.Config{Pooling: pooling,
				Arms: injection.Arms(), Cache: strategy.Cache{Size: 50}})
			l := newLearner(t, cfg)
			var wait sync.WaitGroup
			for g := range goroutines {
				wait.Go(func() {
					for n := range outcomes {
						q := strategy.Query{Session: fmt.Sprint(n % 30), Item: fmt.Sprint(g * n % items),
							Category: "c"}
						c, err := l.Select(ctx, q)
						assert.NoError(t, err)
						disposition, err := l.Observe(ctx,
							strategy.Outcome{Choice: c, ID: fmt.Sprint(g, n), Value: float64(n%3 - 1),
								Confidence: 1})
						assert.NoError(t, err)
						assert.Equal(t, strategy.Applied, disposition)
						switch {
						case n%40 == g:
							assert.NoError(t, l.Refresh(ctx))
						case n%10 == 0:
							assert.NoError(t, l.EndSession(ctx, q.Session))
						case n%10 == 5:
							_, err = l.Beliefs(ctx, q)
							assert.NoError(t, err)
							_, err = itemReport(l, q)
							assert.NoError(t, err)
							if n == 5 {
								c.Propensity()
							}
							_ = fmt.Sprint(l.Config().Arms, drawn(c))
						}
					}
				})
			}
			wait.Wait()
			q := strategy.Query{Category: "c"}
			assert.Equal(t, float64(goroutines*outcomes), massOf(kept(t, cfg.Store, q, "arm")))
			fresh := strategy.Query{Category: "c", Item: "new"}
			held, anew := levels(beliefs(t, l, fresh)), levels(beliefs(t, newLearner(t, cfg), fresh))
			var mass float64
			for i := range held {
				if pooling == (strategy.TwoLevel{}) {
					assert.InDelta(t, anew[i].Mean(), held[i].Mean(), 0.02)
				} else {
					assert.InDelta(t, anew[i].Alpha, held[i].Alpha, 1e-9)
					assert.InDelta(t, anew[i].Beta, held[i].Beta, 1e-9)
				}
				mass += held[i].Alpha + held[i].Beta
			}
			if _, ok := pooling.(strategy.Copy); ok {
				assert.InDelta(t, goroutines*outcomes+8, mass, 1e-9, "the priors are worth 8")
			}
		})
	}
}

// absentMinded is a store whose reply to a commit is lost once.
type absentMinded struct {
	store.Store
	lost bool
}

func (f *absentMinded) Commit(
	ctx context.Context, batches ...store.Batch,
) ([]store.Receipt, error) {
	receipts, err := f.Store.Commit(ctx, batches...)
	if len(batches[0].Observations) > 0 && !f.lost {
		f.lost = true
		return nil, errors.New("the connection was lost")
	}
	return receipts, err
}

// TestACommitWhoseReplyIsLost is counted once, and the segment knows of it.
func TestACommitWhoseReplyIsLost(t *testing.T) {
	l := newLearner(t, strategy.Config{Store: &absentMinded{Store: &memstore.Store{}}})
	outcome := strategy.Outcome{Choice: choose(t, l, strategy.Query{Item: "i"}), Value: 1,
		Confidence: 1}
	_, err := l.Observe(ctx, outcome)
	require.ErrorContains(t, err, "lost")
	disposition, err := l.Observe(ctx, outcome)
	require.NoError(t, err)
	assert.Equal(t, strategy.Duplicate, disposition)
	beliefs, err := l.Beliefs(ctx, strategy.Query{Item: "another item"})
	require.NoError(t, err)
	var most float64
	for _, belief := range beliefs {
		most = max(most, belief.Mean())
	}
	assert.Greater(t, most, 0.55, "what one item has shown tells of another")
}

// A source can be expunged at any time, also when the store keeps no history at all.
func TestASourceCanBeExpungedWithoutHistory(t *testing.T) {
	st, err := memstore.New(memstore.Config{Retention: store.Retention{NoHistory: true},
		Now: (&clock{}).Now})
	require.NoError(t, err)
	l := newLearner(t, strategy.Config{Store: st})
	choice := choose(t, l, strategy.Query{Item: "i"})
	_, err = l.Observe(ctx, strategy.Outcome{Choice: choice, Value: 1, Confidence: 1, Source: "ann"})
	require.NoError(t, err)
	err = store.Run(ctx, st, store.Job{Expunge: []string{"ann"}})
	require.NoError(t, err)
	assert.Empty(t, read(t, st, choice.Cells()...))
}

// counting is a store that counts how often a segment is read, and says no to commits when it is
// told to.
type counting struct {
	store.Store
	lists  int
	refuse error
}

func (c *counting) List(ctx context.Context, q store.CellQuery) iter.Seq2[evidence.Part, error] {
	c.lists++
	return c.Store.List(ctx, q)
}

func (c *counting) Commit(ctx context.Context, batches ...store.Batch) ([]store.Receipt, error) {
	if c.refuse != nil && len(batches[0].Observations) > 0 {
		return nil, c.refuse
	}
	return c.Store.Commit(ctx, batches...)
}

// A caller who is told no again and again must not have the segment read each time. An
// error that may hide a success is another thing.
func TestARefusedOutcomeCostsNoRefresh(t *testing.T) {
	st := &counting{Store: newStore(t, (&clock{}).Now)}
	l := newLearner(t, strategy.Config{Store: st})
	outcome := strategy.Outcome{Choice: choose(t, l, strategy.Query{Item: "i"}), Value: 1,
		Confidence: 1}
	for _, test := range []struct {
		refuse error
		reads  int
	}{
		{&heed.InputError{Field: "At"}, 0}, {&heed.SettingsError{}, 0}, {evidence.ErrFull, 0},
		{errors.New("no connection"), 1},
	} {
		before := st.lists
		st.refuse = test.refuse
		_, err := l.Observe(ctx, outcome)
		require.ErrorIs(t, err, test.refuse)
		choose(t, l, strategy.Query{Item: "i"})
		assert.Equal(t, test.reads, st.lists-before, "%v", test.refuse)
	}
	late := outcome
	late.At = start.Add(time.Hour)
	st.refuse = nil
	var fault *heed.InputError
	_, err := l.Observe(ctx, late)
	require.ErrorAs(t, err, &fault)
	assert.Equal(t, "At", fault.Field)
}

// crowdOut has a learner use so many other segments that the earlier ones leave the memory.
func crowdOut(t *testing.T, l *strategy.Learner) {
	_, most := strategy.Segments(l)
	for n := range most {
		_, err := l.Beliefs(ctx, strategy.Query{Context: fmt.Sprint("of a client ", n)})
		require.NoError(t, err)
	}
}

// TestSegmentsThatClientsName do not fill the memory, and one that left it is read again.
func TestSegmentsThatClientsName(t *testing.T) {
	l := newLearner(t, strategy.Config{Arms: plain("a", "b")})
	q := strategy.Query{Context: "x", Item: "i", Arms: []strategy.ArmID{"a"}}
	credit(t, l, choose(t, l, q), 1)
	other := strategy.Query{Context: "x", Item: "new"}
	before := means(t, l, other)
	crowdOut(t, l)
	n, most := strategy.Segments(l)
	assert.LessOrEqual(t, n, most)
	assert.Equal(t, before, means(t, l, other))

	// The segment leaves the memory while a step has it, and is read before the step's commit.
	choice := choose(t, l, q)
	require.NoError(t, store.Do(ctx, l.Config().Store, func(tx *store.Tx) error {
		_, err := l.ObserveIn(tx, strategy.Outcome{Choice: choice, Value: -1, Confidence: 1})
		crowdOut(t, l)
		assert.Equal(t, before, means(t, l, other))
		return err
	}))
	assert.Equal(t, means(t, newLearner(t, l.Config()), other), means(t, l, other))

	// The same again, and the store's reply to the commit is lost.
	cfg := l.Config()
	cfg.Store = &absentMinded{Store: cfg.Store}
	l = newLearner(t, cfg)
	choice, before = choose(t, l, q), means(t, l, other)
	require.ErrorContains(t, store.Do(ctx, cfg.Store, func(tx *store.Tx) error {
		_, err := l.ObserveIn(tx, strategy.Outcome{Choice: choice, Value: -1, Confidence: 1})
		crowdOut(t, l)
		assert.Equal(t, before, means(t, l, other))
		return err
	}), "lost")
	assert.NotEqual(t, before, means(t, l, other))
	assert.Equal(t, means(t, newLearner(t, cfg), other), means(t, l, other))
}

// A segment's memory does not fade until it is read again. An outcome adds what it is, also to an
// item whose own evidence has faded in the store.
func TestMemoryFadesWhenItIsRead(t *testing.T) {
	c := &clock{}
	l := newLearner(t, strategy.Config{Now: c.Now, Pooling: strategy.Copy{}, Arms: plain("a"),
		HalfLife: 10 * time.Hour, Refresh: 1000 * time.Hour})
	for range 3 {
		try(t, l, strategy.Query{Item: "i"}, "a", 0)
		c.Advance(10 * time.Hour)
	}
	level := func() evidence.Beta { return beliefs(t, l, strategy.Query{Item: "new"})[0].Level }
	assert.InDelta(t, 1+3./2, level().Alpha, 1e-9)
	assert.InDelta(t, 1+3./2, level().Beta, 1e-9)
	require.NoError(t, l.Refresh(ctx))
	assert.InDelta(t, 1+7./16, level().Alpha, 1e-9)
	assert.InDelta(t, 1+7./16, level().Beta, 1e-9)
}

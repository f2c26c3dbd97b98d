package strategy_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

// A torn store lists each cell as it is when the loop comes to it, and calls a function before
// that.
type torn struct {
	store.Store
	between func()
}

func (s *torn) List(ctx context.Context, q store.CellQuery) iter.Seq2[evidence.Part, error] {
	return func(yield func(evidence.Part, error) bool) {
		var cells []evidence.Cell
		for p, err := range s.Store.List(ctx, q) {
			if err != nil {
				yield(evidence.Part{}, err)
				return
			}
			cells = append(cells, p.Cell)
		}
		for _, cell := range slices.Compact(cells) {
			if s.between != nil {
				s.between()
			}
			var read store.Snapshot
			if err := s.Store.Read(ctx, &read, []evidence.Cell{cell}, nil); err != nil {
				yield(evidence.Part{}, err)
				return
			}
			for _, p := range read.Parts {
				if !yield(p, nil) {
					return
				}
			}
		}
	}
}

// building is a pooling that calls a function before it makes a model, and another one after.
type building struct {
	strategy.Pooling
	before, after *func()
}

func (p building) Model(s strategy.Segment, items []strategy.Item) strategy.Model {
	if *p.before != nil {
		(*p.before)()
	}
	m := p.Pooling.Model(s, items)
	if *p.after != nil {
		(*p.after)()
	}
	return m
}

// Outcomes, corrections and resets may come at any moment of a load. Afterwards the learner
// believes the same as one that has just been made, also for a new item and in the next load.
func TestOutcomesDuringALoad(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := &clock{}
		st := &torn{Store: newStore(t, c.Now)}
		var before, after func()
		bonus := strategy.Exploration{Bonus: 0.1, MinSamples: rapid.IntRange(1, 8).Draw(rt, "samples")}
		cfg := strategy.Config{Now: c.Now, Store: st, Arms: plain("a", "b", "c"), Exploration: bonus,
			Pooling: building{strategy.Copy{}, &before, &after}}
		l := newLearner(t, cfg)
		n := 0
		var made []strategy.Outcome
		act := func() {
			if n++; len(made) > 0 && rapid.IntRange(0, 19).Draw(rt, "what") == 0 {
				o := made[len(made)-1]
				made = made[:len(made)-1]
				require.NoError(t, l.Retract(ctx, o.Choice, []string{o.ID}, "", ""))
				return
			}
			arm := rapid.SampledFrom([]strategy.ArmID{"a", "b", "c"}).Draw(rt, "arm")
			item := fmt.Sprint("i", rapid.IntRange(0, 4).Draw(rt, "item"))
			o := strategy.Outcome{ID: fmt.Sprint(n), Value: rapid.Float64Range(-1, 1).Draw(rt, "value"),
				Confidence: 1}
			var err error
			o.Choice, err = l.Record(ctx, strategy.Query{Item: item}, arm, 1)
			require.NoError(t, err)
			_, err = l.Observe(ctx, o)
			require.NoError(t, err)
			made = append(made, o)
		}
		some := func(most int) func() {
			return func() {
				for range rapid.IntRange(0, most).Draw(rt, "outcomes") {
					act()
				}
			}
		}
		some(8)()
		st.between, before, after = some(1), some(2), some(40)
		require.NoError(t, l.Refresh(ctx))
		st.between, before, after = nil, nil, nil
		for range 2 {
			some(3)()
			fresh := newLearner(t, cfg)
			for _, item := range []string{"i0", "new"} {
				q := strategy.Query{Item: item}
				got, want := beliefs(t, l, q), beliefs(t, fresh, q)
				for i := range want {
					require.InDelta(t, want[i].Level.Alpha, got[i].Level.Alpha, 1e-9)
					require.InDelta(t, want[i].Level.Beta, got[i].Level.Beta, 1e-9)
				}
				require.Equal(t, bonuses(choose(t, fresh, q)), bonuses(choose(t, l, q)))
			}
			require.NoError(t, l.Refresh(ctx))
		}
	})
}

func bonuses(c strategy.Choice) (all []float64) {
	for _, d := range c.Record().Draws {
		all = append(all, d.Bonus)
	}
	return all
}

// TestOutcomesDoNotWaitForAList lets a list of the segment hang. Outcomes and choices return
// meanwhile. The list ends, and the segment has the outcomes.
func TestOutcomesDoNotWaitForAList(t *testing.T) {
	st := &torn{Store: newStore(t, (&clock{}).Now)}
	l := newLearner(t, strategy.Config{Store: st, Pooling: strategy.Copy{}})
	try(t, l, strategy.Query{Item: "i"}, "a", 1)
	listing, goOn := make(chan struct{}), make(chan struct{})
	st.between = func() {
		close(listing)
		<-goOn
	}
	var wait sync.WaitGroup
	wait.Go(func() { assert.NoError(t, l.Refresh(ctx)) })
	<-listing
	soon, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for n := range 100 {
		c, err := l.Select(soon, strategy.Query{Item: fmt.Sprint(n % 3), Arms: []strategy.ArmID{"b"}})
		require.NoError(t, err)
		_, err = l.Observe(soon, strategy.Outcome{Choice: c, Value: 1, Confidence: 1})
		require.NoError(t, err)
	}
	held := levels(beliefs(t, l, strategy.Query{Item: "new"}))
	assert.InDelta(t, 101, held[1].Alpha, 1e-9)
	close(goOn)
	wait.Wait()
	assert.Equal(t, held, levels(beliefs(t, l, strategy.Query{Item: "new"})))
}

// TestACallThatWaitsForALoadEndsWithItsContext lets the first list of a segment hang.
func TestACallThatWaitsForALoadEndsWithItsContext(t *testing.T) {
	st := &torn{Store: newStore(t, (&clock{}).Now)}
	cfg := strategy.Config{Store: st, Pooling: strategy.Copy{}}
	try(t, newLearner(t, cfg), strategy.Query{Item: "i"}, "a", 1)
	l := newLearner(t, cfg)
	listing, goOn := make(chan struct{}), make(chan struct{})
	st.between = func() {
		close(listing)
		<-goOn
	}
	var wait sync.WaitGroup
	wait.Go(func() {
		_, err := l.Beliefs(ctx, strategy.Query{Item: "i"})
		assert.NoError(t, err)
	})
	<-listing
	ended, cancel := context.WithCancel(ctx)
	cancel()
	_, err := l.Beliefs(ended, strategy.Query{Item: "i"})
	close(goOn)
	wait.Wait()
	assert.ErrorIs(t, err, context.Canceled)
}

// What a process read last serves for as long as the store is away. Any other failure is an error.
func TestBeliefsWhileTheStoreIsAway(t *testing.T) {
	c := &clock{}
	st := &faulty{Store: newStore(t, c.Now)}
	l := newLearner(t, strategy.Config{Store: st, Now: c.Now})
	try(t, l, strategy.Query{Item: "i"}, "a", 1)
	want := means(t, l, strategy.Query{Item: "i"})
	c.Advance(time.Hour) // it is to be read again
	for _, failure := range []error{heed.ErrUnavailable, errStore} {
		st.list.Store(&failure)
		got, err := l.Beliefs(ctx, strategy.Query{Item: "i"})
		if !errors.Is(failure, heed.ErrUnavailable) {
			require.ErrorIs(t, err, errStore)
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, want[0], got[0].Mean())
	}
}

package strategy_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

// A delayed is a store that holds the reply of its next commit back.
type delayed struct {
	store.Store
	holds      bool
	done, goOn chan struct{}
}

func (s *delayed) Commit(ctx context.Context, b ...store.Batch) ([]store.Receipt, error) {
	r, err := s.Store.Commit(ctx, b...)
	if s.holds && err == nil { // not after a conflict
		s.holds = false
		close(s.done)
		<-s.goOn
	}
	return r, err
}

// Two commits change one cell, and the second ends first. One of the two takes silence back.
func TestReceiptsOutOfOrder(t *testing.T) {
	for _, silentFirst := range []bool{true, false} {
		c := &clock{}
		st := &delayed{
			Store: newStore(t, c.Now), done: make(chan struct{}), goOn: make(chan struct{}),
		}
		cfg := withFixtures(t, strategy.Config{
			Store: st, Now: c.Now, Arms: plain("a", "b"),
			Silence: strategy.Silence{After: time.Hour, Confidence: 0.5},
		})
		l := newLearner(t, cfg)
		q, other := strategy.Query{Item: "i"}, strategy.Query{Item: "o"}
		q.Arms = []strategy.ArmID{"a"}
		for n := range 200 {
			try(t, l, strategy.Query{Item: fmt.Sprint(n % 20)}, "a", float64(n%3-1))
		}
		first := choose(t, l, q)
		c.Advance(2 * time.Hour)
		require.Equal(t, 1, sweep(t, l))
		second := choose(t, l, q)
		means(t, l, other)
		if !silentFirst {
			first, second = second, first
		}
		st.holds = true
		ended := make(chan error)
		go func() {
			_, err := l.Observe(ctx, strategy.Outcome{Choice: first, Value: 1, Confidence: 1})
			ended <- err
		}()
		<-st.done
		credit(t, l, second, 1)
		close(st.goOn)
		require.NoError(t, <-ended)
		assert.InDeltaSlice(t, means(t, newLearner(t, cfg), other), means(t, l, other), 1e-4,
			"silent first: %v", silentFirst)
	}
}

// The values of parameters are as the latest receipt has them, too, whichever comes first.
func TestReceiptsOfParametersOutOfOrder(t *testing.T) {
	c := &clock{}
	st := &delayed{
		Store: newStore(t, c.Now), done: make(chan struct{}), goOn: make(chan struct{}),
	}
	cfg := withFixtures(t, strategy.Config{Store: st, Now: c.Now, Arms: parametered})
	seeded := func() *strategy.Learner {
		cfg.Seed = rand.NewPCG(1, 2)
		return newLearner(t, cfg)
	}
	l := seeded()
	var made []strategy.Choice
	for n := 0; len(made) < 4; n++ {
		q := strategy.Query{Key: fmt.Sprint(n), Arms: []strategy.ArmID{"a"}}
		if one := choose(t, l, q); one.Parameter("n") == "2" {
			made = append(made, one)
		} else {
			credit(t, l, one, -1)
		}
	}
	st.holds = true
	ended := make(chan error)
	go func() {
		_, err := l.Observe(ctx, strategy.Outcome{Choice: made[0], Value: 1, Confidence: 1})
		ended <- err
	}()
	<-st.done
	for _, one := range made[1:] {
		credit(t, l, one, 1)
	}
	close(st.goOn)
	require.NoError(t, <-ended)
	same := func(when string) {
		fresh := seeded()
		for n := range 100 {
			q := strategy.Query{Key: fmt.Sprint(when, n), Frozen: true}
			assert.Equal(t, choose(t, fresh, q).Parameter("n"), choose(t, l, q).Parameter("n"), when)
		}
	}
	same("out of order")
	require.NoError(t, l.Retract(ctx, made[0], []string{""}, "ann", "a mistake"))
	same("taken back")
}

// A learner that observes, and does not choose, never reads the segment again.
func TestItemsOfOutcomesAreBounded(t *testing.T) {
	cfg := withFixtures(t, strategy.Config{Arms: plain("a", "b")})
	l, other := newLearner(t, cfg), newLearner(t, cfg)
	strategy.SampleItems(l, 10)
	choose(t, l, strategy.Query{})
	for n := range 200 {
		credit(t, l, choose(t, other, strategy.Query{Item: fmt.Sprint(n)}), 1)
	}
	assert.LessOrEqual(t, strategy.ItemsOf(l), 11)
	choose(t, l, strategy.Query{})
	assert.Greater(t, means(t, l, strategy.Query{Item: "new"})[0], 0.8)
}

// As if many revised what they said of old answers.
func TestRevisionsRestartNothing(t *testing.T) {
	c := &clock{}
	cfg := withFixtures(t, strategy.Config{
		Store: newStore(t, c.Now), Now: c.Now, Arms: plain("a", "b"),
	})
	l := newLearner(t, cfg)
	made := make([]strategy.Choice, 50)
	for n := range made {
		c.Advance(time.Minute)
		made[n] = choose(t, l, strategy.Query{Item: "i", Arms: []strategy.ArmID{"a"}})
		credit(t, l, made[n], 1)
	}
	for _, choice := range made[:20] {
		c.Advance(time.Minute)
		_, err := revise(l, "", strategy.Outcome{Choice: choice, ID: "2", Value: -1, Confidence: 1})
		require.NoError(t, err)
	}
	for _, entry := range audited(t, cfg.Store) {
		assert.Equal(t, "strategy.revise", entry.Action)
	}
}

// A reply comes after a hundred later outcomes. They stay learned, for parameters as well.
func TestALateReceiptTakesNothingBack(t *testing.T) {
	c := &clock{}
	st := &delayed{
		Store: newStore(t, c.Now), done: make(chan struct{}), goOn: make(chan struct{}),
	}
	l := newLearner(t, strategy.Config{Store: st, Now: c.Now, Arms: parametered})
	q := strategy.Query{Arms: []strategy.ArmID{"a"}}
	observe := func() error {
		choice, err := l.Select(ctx, q)
		if err != nil {
			return err
		}
		value := map[string]float64{"1": -1, "2": 1}[choice.Parameter("n")]
		_, err = l.Observe(ctx, strategy.Outcome{Choice: choice, Value: value, Confidence: 1})
		return err
	}
	require.NoError(t, observe())
	first := choose(t, l, q)
	st.holds = true
	ended := make(chan error)
	go func() {
		_, err := l.Observe(ctx, strategy.Outcome{Choice: first, Value: 0, Confidence: 1})
		ended <- err
	}()
	<-st.done
	for range 100 {
		require.NoError(t, observe())
	}
	close(st.goOn)
	require.NoError(t, <-ended)
	twos := 0
	for range 100 {
		if choose(t, l, q).Parameter("n") == "2" {
			twos++
		}
	}
	assert.Greater(t, twos, 90)
}

// The first outcomes were mistakes. If they are revised or retracted, no arm has changed.
func TestWhatWasTakenBackShowsNoChange(t *testing.T) {
	for name, mend := range map[string]func(l *strategy.Learner, c strategy.Choice) error{
		"revised": func(l *strategy.Learner, c strategy.Choice) error {
			_, err := revise(l, "1", strategy.Outcome{Choice: c, ID: "2", Value: 1, Confidence: 1})
			return err
		},
		"retracted": func(l *strategy.Learner, c strategy.Choice) error {
			return l.Retract(t.Context(), c, []string{"1"}, "ann", "a mistake")
		},
	} {
		c := &clock{}
		cfg := withFixtures(t, strategy.Config{
			Store: newStore(t, c.Now), Now: c.Now, Arms: plain("a", "b"),
		})
		l := newLearner(t, cfg)
		for n := range 60 {
			c.Advance(time.Minute)
			o := strategy.Outcome{
				Choice: choose(t, l, strategy.Query{Item: "i", Arms: []strategy.ArmID{"a"}}),
				ID:     "1", Value: 1, Confidence: 1,
			}
			if n < 20 {
				o.Value = -1
			}
			_, err := l.Observe(t.Context(), o)
			require.NoError(t, err, name)
			if n < 20 {
				require.NoError(t, mend(l, o.Choice), name)
			}
		}
		for _, entry := range audited(t, cfg.Store) {
			assert.NotContains(t, entry.Action, "restart", name)
		}
	}
}

// After a reset of the segment, the items that are chosen for later take no memory each.
func TestCountsOfResetsAreBounded(t *testing.T) {
	l := newLearner(t, withFixtures(t, strategy.Config{Arms: plain("a", "b")}))
	try(t, l, strategy.Query{Item: "first"}, "a", 1)
	require.NoError(t, l.Reset(ctx, strategy.Reset{Reason: "a new model"}))
	for n := range 200 {
		choose(t, l, strategy.Query{Item: fmt.Sprint(n)})
	}
	assert.LessOrEqual(t, strategy.ResetItems(l, strategy.Query{}), 1)
}

// Outcomes leave notes for a load that is under way alone.
func TestOutcomesLeaveNoNotesWithoutALoad(t *testing.T) {
	l := newLearner(t, strategy.Config{})
	for range 5 {
		try(t, l, strategy.Query{}, "a", 1)
	}
	assert.Zero(t, strategy.Notes(l, strategy.Query{}))
}

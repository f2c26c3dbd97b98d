package store_test

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
)

// A slow step conflicts at its first try, and takes a time at its second.
type slowStep struct {
	tries     int
	takes     time.Duration // 0: a fifth of a second
	began     time.Time     // the last try
	now, most *atomic.Int32 // how many second tries run, now and at most
}

func (s *slowStep) run(*store.Tx) error {
	if s.tries++; s.tries == 1 {
		return heed.ErrConflict
	}
	now := s.now.Add(1)
	defer s.now.Add(-1)
	for {
		before := s.most.Load()
		if now <= before || s.most.CompareAndSwap(before, now) {
			break
		}
	}
	s.began = time.Now()
	time.Sleep(cmp.Or(s.takes, 200*time.Millisecond))
	return nil
}

// TestStepsThatConflictTakeTurns as long as they want the same store and do not wait too long.
func TestStepsThatConflictTakeTurns(t *testing.T) {
	one, another := &memstore.Store{}, &memstore.Store{}
	for _, c := range []struct {
		name   string
		stores []store.Store
		most   int32
		takes  time.Duration // without the pauses of up to a millisecond
	}{
		{"one store", []store.Store{one, one, one, one}, 1, 800 * time.Millisecond},
		{"two stores", []store.Store{one, another, one, another}, 2, 400 * time.Millisecond},
		{"values that can't be compared", []store.Store{list{Store: one}, list{Store: one}}, 2,
			200 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var all sync.WaitGroup
				var now, most atomic.Int32
				for _, st := range c.stores {
					all.Go(func() {
						step := &slowStep{now: &now, most: &most}
						assert.NoError(t, store.Do(ctx, st, step.run))
						assert.Equal(t, 2, step.tries)
					})
				}
				all.Wait()
				assert.Equal(t, c.most, most.Load())
				assert.WithinDuration(t, began.Add(c.takes), time.Now(), 10*time.Millisecond)
			})
		})
	}
}

// list is a store of a type that can't be a key of a map.
type list struct {
	store.Store
	_ []int
}

// TestAStepInAStepTakesNoTurnForever although both wait for the same one.
func TestAStepInAStepTakesNoTurnForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newScripted(t)
		began, outer, inner := time.Now(), 0, 0
		require.NoError(t, store.Do(ctx, st, func(*store.Tx) error {
			if outer++; outer == 1 {
				return heed.ErrConflict
			}
			return store.Do(ctx, st, func(*store.Tx) error {
				if inner++; inner < 3 {
					return heed.ErrConflict
				}
				return nil
			})
		}))
		assert.Equal(t, []int{2, 3}, []int{outer, inner})
		assert.Zero(t, store.Turns())
		assert.WithinDuration(t, began.Add(5*time.Second), time.Now(), 100*time.Millisecond)
	})
}

// TestAStepThatWaitsForItsTurnEndsWithItsContext, and leaves the turn to the next one.
func TestAStepThatWaitsForItsTurnEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newScripted(t)
		var all sync.WaitGroup
		var now, most atomic.Int32
		all.Go(func() {
			step := &slowStep{now: &now, most: &most}
			assert.NoError(t, store.Do(ctx, st, step.run))
		})
		time.Sleep(100 * time.Millisecond) // the first one has its turn
		within, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		step := &slowStep{now: &now, most: &most}
		err := store.Do(within, st, step.run)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, heed.ErrConflict)
		assert.Equal(t, 1, step.tries)
		third := &slowStep{now: &now, most: &most}
		require.NoError(t, store.Do(ctx, st, third.run))
		all.Wait()
		assert.Zero(t, store.Turns(), "no store is remembered that no step waits for")
		assert.EqualValues(t, 1, most.Load())
	})
}

// TestAStepWaitsAsLongAsTheTurnMoves on, and then five seconds for the step that has it.
func TestAStepWaitsAsLongAsTheTurnMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newScripted(t)
		var all sync.WaitGroup
		var now, most atomic.Int32
		began := time.Now()
		steps := []*slowStep{{takes: 2 * time.Second}, {takes: 2 * time.Second},
			{takes: 20 * time.Second}, {}}
		for _, step := range steps {
			step.now, step.most = &now, &most
			all.Go(func() { assert.NoError(t, store.Do(ctx, st, step.run)) })
			time.Sleep(10 * time.Millisecond) // so that they come in this order
		}
		all.Wait()
		for i, want := range []time.Duration{0, 2, 4, 10} {
			assert.WithinDuration(t, began.Add(want*time.Second), steps[i].began, 100*time.Millisecond, i)
		}
		assert.EqualValues(t, 2, most.Load(), "the last one has waited long enough")
		assert.Zero(t, store.Turns())
	})
}

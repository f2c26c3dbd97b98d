package heed_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
)

type sweeper func(now time.Time) error

func (s sweeper) Sweep(_ context.Context, now time.Time) error { return s(now) }

func TestSweep(t *testing.T) {
	var calls []string
	named := func(name string, err error) heed.Sweeper {
		return sweeper(func(now time.Time) error {
			require.Equal(t, time.Unix(42, 0), now)
			calls = append(calls, name)
			return err
		})
	}
	broken, worse := errors.New("broken"), errors.New("worse")
	err := heed.Sweep(t.Context(), time.Unix(42, 0), named("a", broken), named("b", nil),
		named("c", worse))
	require.ErrorIs(t, err, broken)
	require.ErrorIs(t, err, worse)
	require.Equal(t, []string{"a", "b", "c"}, calls, "one that fails keeps none from its turn")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, heed.Sweep(ctx, time.Unix(42, 0), named("d", nil)), context.Canceled)
	require.Equal(t, []string{"a", "b", "c"}, calls, "nothing is swept once the context has ended")
}

func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var swept atomic.Int64
		var fails atomic.Bool
		failure := errors.New("no connection")
		result := make(chan error, 1)
		go func() {
			result <- heed.Run(ctx, time.Minute, sweeper(func(now time.Time) error {
				assert.True(t, now.IsZero(), "each sweeper uses its own clock")
				swept.Add(1)
				if fails.Load() {
					return failure
				}
				return nil
			}))
		}()
		synctest.Wait()
		require.EqualValues(t, 1, swept.Load(), "the first sweep is at once")
		time.Sleep(3*time.Minute + time.Second)
		synctest.Wait()
		require.EqualValues(t, 4, swept.Load())
		fails.Store(true)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		require.EqualValues(t, 6, swept.Load(), "a sweep that fails is tried again")
		cancel()
		require.ErrorIs(t, <-result, failure)
	})
}

func TestRunOfNoInterval(t *testing.T) {
	var fault *heed.InputError
	err := heed.Run(t.Context(), 0)
	require.EqualError(t, err, "heed: run: every: must be positive")
	require.ErrorAs(t, err, &fault)
	require.Equal(t, "every", fault.Field)
}

// The context ends while the sweepers work, and one of them fails for a reason of its own.
func TestRunTellsOfAFailureAtItsEnd(t *testing.T) {
	failure := errors.New("disk full")
	ctx, cancel := context.WithCancel(t.Context())
	fails := sweeper(func(time.Time) error { cancel(); return failure })
	ends := sweeper(func(time.Time) error { return fmt.Errorf("sweep: %w", ctx.Err()) })
	err := heed.Run(ctx, time.Hour, fails, ends)
	require.ErrorIs(t, err, failure)
	require.NotErrorIs(t, err, context.Canceled)

	ctx, cancel = context.WithCancel(t.Context())
	require.NoError(t, heed.Run(ctx, time.Hour,
		sweeper(func(time.Time) error { cancel(); return nil }), ends))
}

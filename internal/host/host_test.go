package host_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/host"
)

func TestCall(t *testing.T) {
	assert.NoError(t, host.Call("it", func() error { return nil }))
	boom := errors.New("boom")
	assert.Equal(t, boom, host.Call("it", func() error { return boom }))
	err := host.Call("the model", func() error { panic(boom) })
	var panicked *heed.PanicError
	require.ErrorAs(t, err, &panicked)
	assert.Equal(t, boom, panicked.Value)
	assert.EqualError(t, err, "the model panicked: boom")
	assert.Contains(t, string(panicked.Stack), "TestCall")
}

func TestPanicAndEndOfAGoroutine(t *testing.T) {
	g := host.NewGate(1)
	var panicked *heed.PanicError
	_, err := host.Pass(t.Context(), g, "the model",
		func(context.Context) (int, error) { panic("boom") })
	require.ErrorAs(t, err, &panicked)
	assert.Equal(t, "boom", panicked.Value)
	_, err = host.Pass(t.Context(), g, "the model",
		func(context.Context) (int, error) { runtime.Goexit(); return 0, nil })
	require.ErrorAs(t, err, &panicked)
	assert.EqualError(t, err, "the model ended its goroutine")
	n, err := host.Pass(t.Context(), g, "the model",
		func(context.Context) (int, error) { return 7, nil })
	require.NoError(t, err, "its place is free again")
	assert.Equal(t, 7, n)
}

func TestHangingCallsAreGivenUpAtTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, deaf := host.NewGate(2), make(chan struct{})
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		var all sync.WaitGroup
		var called atomic.Int64
		for range 100 {
			all.Go(func() {
				_, err := host.Pass(short, g, "it", func(context.Context) (int,
					error) {
					called.Add(1)
					<-deaf
					return 0, nil
				})
				assert.ErrorIs(t, err, context.DeadlineExceeded)
			})
		}
		all.Wait()
		assert.Equal(t, time.Second, time.Since(began))
		assert.EqualValues(t, 2, called.Load())
		assert.Equal(t, 2, g.GivenUp())
		_, err := host.Pass(t.Context(), g, "it", func(context.Context) (int, error) { return 0, nil })
		assert.ErrorIs(t, err, host.ErrBusy)

		close(deaf)
		synctest.Wait()
		assert.Zero(t, g.GivenUp())
		_, err = host.Pass(t.Context(), g, "it", func(context.Context) (int, error) { return 0, nil })
		assert.NoError(t, err)
		assert.Zero(t, g.GivenUp(), "a call that returns was not given up")
	})
}

func TestACallWaitsForAPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, began := host.NewGate(2), time.Now()
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				_, err := host.Pass(t.Context(), g, "it",
					func(context.Context) (int, error) { time.Sleep(time.Second); return 0, nil })
				assert.NoError(t, err)
			})
		}
		all.Wait()
		assert.Equal(t, 2*time.Second, time.Since(began))
	})
}

func TestNothingIsCalledWhenTheContextIsOver(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := host.Pass(over, host.NewGate(1), "it",
		func(context.Context) (int, error) { t.Error("called"); return 0, nil })
	assert.ErrorIs(t, err, context.Canceled)
}

func TestAGateWithoutALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, deaf := host.NewGate(0), make(chan struct{})
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var all sync.WaitGroup
		var called atomic.Int64
		for range 1000 {
			all.Go(func() {
				_, err := host.Pass(short, g, "it", func(context.Context) (int, error) {
					called.Add(1)
					<-deaf
					return 0, nil
				})
				assert.ErrorIs(t, err, context.DeadlineExceeded)
			})
		}
		all.Wait()
		assert.EqualValues(t, 1000, called.Load(), "no call waits for another")
		_, err := host.Pass(t.Context(), g, "it", func(context.Context) (int, error) { return 0, nil })
		assert.ErrorIs(t, err, host.ErrBusy, "calls that never return are limited all the same")
		close(deaf)
		synctest.Wait()
		_, err = host.Pass(t.Context(), g, "it", func(context.Context) (int, error) { return 0, nil })
		assert.NoError(t, err)
	})
}

package watch_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/watch"
)

func TestNobodyIsTold(t *testing.T) {
	w := watch.New(nil, "strategy/x", time.Now)
	assert.Nil(t, w)
	w.Failed(t.Context(), "model", errors.New("boom"))
}

func TestTell(t *testing.T) {
	type key struct{}
	var told []heed.Notice
	w := watch.New(func(ctx context.Context, n heed.Notice) {
		assert.NoError(t, ctx.Err(), "the caller's end is not the observer's")
		assert.Equal(t, "kept", ctx.Value(key{}))
		told = append(told, n)
	}, "strategy/x", func() time.Time { return time.Unix(7, 0) })
	over, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "kept"))
	cancel()
	boom := errors.New("boom")
	w.Tell(over, heed.Selected{Component: w.Name(), Arm: "a"})
	w.Failed(over, "model", boom)
	w.Failed(over, "model", nil)
	assert.Equal(t, []heed.Notice{
		heed.Selected{Component: "strategy/x", Arm: "a"},
		heed.Failed{Component: "strategy/x", At: time.Unix(7, 0), What: "model", Err: boom},
	}, told)
}

func TestAPanicIsContainedAndTold(t *testing.T) {
	for name, end := range map[string]func(){"panic": func() { panic("boom") },
		"end of the goroutine": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			var told []heed.Failed
			w := watch.New(func(_ context.Context, n heed.Notice) {
				if failed, ok := n.(heed.Failed); ok {
					told = append(told, failed)
				} else {
					end()
				}
			}, "strategy/x", time.Now)
			w.Tell(t.Context(), heed.Selected{})
			require.Len(t, told, 1)
			assert.Equal(t, "observer", told[0].What)
			assert.ErrorAs(t, told[0].Err, new(*heed.PanicError))
		})
	}
	always := watch.New(func(context.Context, heed.Notice) { panic("always") }, "strategy/x",
		time.Now)
	always.Tell(t.Context(), heed.Selected{})
}

func TestAnObserverThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var told []heed.Notice
		deaf := make(chan struct{})
		w := watch.New(func(_ context.Context, n heed.Notice) {
			<-deaf
			mu.Lock()
			defer mu.Unlock()
			told = append(told, n)
		}, "strategy/x", time.Now)
		began := time.Now()
		for range 8 {
			w.Tell(t.Context(), heed.Selected{})
		}
		assert.Equal(t, 800*time.Millisecond, time.Since(began))
		for range 100 {
			w.Tell(t.Context(), heed.Selected{})
		}
		assert.Equal(t, 800*time.Millisecond, time.Since(began), "nobody waits for it any more")

		close(deaf)
		synctest.Wait()
		assert.Len(t, told, 8)
		w.Tell(t.Context(), heed.Observed{})
		require.Len(t, told, 10)
		assert.Equal(t, heed.Observed{}, told[8])
		assert.EqualError(t, told[9].(heed.Failed).Err, "it was too slow, and 100 notices were dropped")
		w.Tell(t.Context(), heed.Observed{})
		assert.Len(t, told, 11)
	})
}

// Notices of many callers at once that find no place in time are counted, too.
func TestNoticesOfABurstAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		told := 0
		var failed []heed.Failed
		deaf := make(chan struct{})
		w := watch.New(func(_ context.Context, n heed.Notice) {
			<-deaf
			mu.Lock()
			defer mu.Unlock()
			told++
			if n, ok := n.(heed.Failed); ok {
				failed = append(failed, n)
			}
		}, "strategy/x", time.Now)
		var all sync.WaitGroup
		for range 40 {
			all.Go(func() { w.Tell(t.Context(), heed.Selected{}) })
		}
		all.Wait()
		close(deaf)
		synctest.Wait()
		assert.Equal(t, 8, told)
		w.Tell(t.Context(), heed.Selected{})
		require.Len(t, failed, 1)
		assert.EqualError(t, failed[0].Err, "it was too slow, and 32 notices were dropped")
	})
}

package host_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/internal/host"
)

func TestOneHolderAtATime(t *testing.T) {
	l, sum := host.NewLock(), 0
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			if assert.NoError(t, l.Lock(t.Context())) {
				sum++
				l.Unlock()
			}
		})
	}
	all.Wait()
	assert.Equal(t, 100, sum)
}

func TestTryLock(t *testing.T) {
	l := host.NewLock()
	assert.True(t, l.TryLock())
	assert.False(t, l.TryLock())
	l.Unlock()
	assert.True(t, l.TryLock())
}

func TestWaitingEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, began := host.NewLock(), time.Now()
		require.NoError(t, l.Lock(t.Context()))
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		assert.ErrorIs(t, l.Lock(short), context.DeadlineExceeded)
		assert.Equal(t, time.Second, time.Since(began))
		l.Unlock()
		assert.True(t, l.TryLock(), "the one that gave up does not hold it")
	})
}

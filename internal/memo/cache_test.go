package memo_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/internal/memo"
)

var (
	ctx   = context.Background()
	start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
)

func always(*string) bool { return true }

// get asks for a value that says which of its key's values it is.
func get(t *testing.T, c *memo.Cache[string], group, name string, now time.Time) (string, bool) {
	v, hit, err := c.Do(ctx, group, name, now, always, func(v *string, number uint64) error {
		*v = fmt.Sprintf("%s/%s#%d", group, name, number)
		return nil
	})
	require.NoError(t, err)
	return *v, hit
}

func TestCacheRemembersUntilItsTime(t *testing.T) {
	c := memo.New[string](10, time.Hour)
	for _, test := range []struct {
		after time.Duration
		value string
		hit   bool
	}{
		{0, "g/a#0", false}, {time.Minute, "g/a#0", true}, {time.Hour - 1, "g/a#0", true},
		{time.Hour, "g/a#1", false}, {time.Hour + 1, "g/a#1", true}, {2*time.Hour - 1, "g/a#1", true}, {3 * time.Hour, "g/a#2", false},
	} {
		value, hit := get(t, c, "g", "a", start.Add(test.after))
		assert.Equal(t, test.value, value, "%v", test.after)
		assert.Equal(t, test.hit, hit, "%v", test.after)
	}
	assert.Equal(t, 1, c.Len())
}

func TestCacheDropsAGroup(t *testing.T) {
	for _, room := range []int{10, 10_000} {
		c := memo.New[string](room, time.Hour)
		for _, name := range []string{"a", "b", "c"} {
			get(t, c, "g", name, start)
		}
		get(t, c, "h", "a", start)
		c.Drop("g")
		c.Drop("nobody")
		assert.Equal(t, 1, c.Len())
		value, hit := get(t, c, "g", "b", start)
		assert.False(t, hit)
		assert.Equal(t, "g/b#0", value)
		_, hit = get(t, c, "h", "a", start)
		assert.True(t, hit)
	}
}

func TestCacheForgetsWhatWasNotUsedLongest(t *testing.T) {
	c := memo.New[string](3, time.Hour)
	for _, name := range []string{"a", "b", "c", "a", "d"} {
		get(t, c, "g", name, start)
	}
	for name, kept := range map[string]bool{"a": true, "c": true, "d": true} {
		_, hit := get(t, c, "g", name, start)
		assert.Equal(t, kept, hit, name)
	}
	_, hit := get(t, c, "g", "b", start)
	assert.False(t, hit)
	assert.Equal(t, 3, c.Len())
}

func TestCacheIsBounded(t *testing.T) {
	for _, room := range []int{1, 7, 2000} {
		c := memo.New[string](room, time.Hour)
		for i := range 20_000 {
			get(t, c, fmt.Sprint("group", i/3), fmt.Sprint(i), start.Add(time.Duration(i)))
		}
		assert.LessOrEqual(t, c.Len(), room+16)
		assert.Greater(t, c.Len(), room/2)
	}
}

func TestCacheGivesOneGroupAllItsRoom(t *testing.T) {
	const room = 10_000
	c := memo.New[string](room, time.Hour)
	for i := range room {
		get(t, c, "g", fmt.Sprint(i), start)
	}
	for i := range room {
		_, hit := get(t, c, "g", fmt.Sprint(i), start)
		require.True(t, hit)
	}
}

func TestCacheKeepsWhatIsBeingMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memo.New[string](1, time.Hour)
		first := make(chan string)
		go func() {
			v, _, err := c.Do(ctx, "g", "a", start, always, func(v *string, _ uint64) error {
				time.Sleep(time.Minute)
				*v = "made once"
				return nil
			})
			assert.NoError(t, err)
			first <- *v
		}()
		synctest.Wait()
		get(t, c, "g", "b", start) // there is no room for both
		v, hit, err := c.Do(ctx, "g", "a", start, always, nil)
		require.NoError(t, err)
		assert.True(t, hit)
		assert.Equal(t, "made once", *v)
		assert.Equal(t, "made once", <-first)
	})
}

func TestCacheMakesAgainWhatIsNotUsable(t *testing.T) {
	c := memo.New[string](10, time.Hour)
	get(t, c, "g", "a", start)
	v, hit, err := c.Do(ctx, "g", "a", start, func(v *string) bool { return *v != "g/a#0" }, func(v *string, number uint64) error {
		*v = fmt.Sprint("other#", number)
		return nil
	})
	require.NoError(t, err)
	assert.False(t, hit)
	assert.Equal(t, "other#1", *v)
}

// TestCacheMakesAValueOnce lets a hundred callers race for each of a thousand keys.
func TestCacheMakesAValueOnce(t *testing.T) {
	c := memo.New[string](100_000, time.Hour)
	var made atomic.Int64
	var wait sync.WaitGroup
	const callers, keys = 100, 1000
	for range callers {
		wait.Go(func() {
			for i := range keys {
				_, _, err := c.Do(ctx, fmt.Sprint(i%50), fmt.Sprint(i), start, always, func(*string, uint64) error {
					made.Add(1)
					return nil
				})
				assert.NoError(t, err)
			}
		})
	}
	wait.Wait()
	assert.EqualValues(t, keys, made.Load())
}

func TestCacheWaitsOnlyAsLongAsTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memo.New[string](10, time.Hour)
		failure := errors.New("could not be made")
		first := make(chan error, 1)
		go func() {
			_, _, err := c.Do(ctx, "g", "a", start, always, func(*string, uint64) error {
				time.Sleep(time.Minute)
				return failure
			})
			first <- err
		}()
		synctest.Wait()
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, _, err := c.Do(short, "g", "a", start, always, nil)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		// One who waits long enough makes the value where the first failed.
		value, hit := get(t, c, "g", "a", start)
		assert.False(t, hit)
		assert.Equal(t, "g/a#0", value)
		assert.ErrorIs(t, <-first, failure)
	})
}

func TestCacheSurvivesAPanic(t *testing.T) {
	c := memo.New[string](10, time.Hour)
	assert.Panics(t, func() {
		_, _, _ = c.Do(ctx, "g", "a", start, always, func(*string, uint64) error { panic("oh") })
	})
	assert.Zero(t, c.Len())
	_, hit := get(t, c, "g", "a", start)
	assert.False(t, hit)
}

func TestCacheDropWhileMaking(t *testing.T) {
	c := memo.New[string](10, time.Hour)
	v, _, err := c.Do(ctx, "g", "a", start, always, func(v *string, _ uint64) error {
		c.Drop("g")
		*v = "made all the same"
		return nil
	})
	require.NoError(t, err)
	assert.Equal(t, "made all the same", *v)
	assert.Zero(t, c.Len())
}

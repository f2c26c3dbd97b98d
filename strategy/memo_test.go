package strategy

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
)

var memoStart = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func always(*string) bool { return true }

// get asks for a value that says which of its key's values it is.
func get(t *testing.T, c *memo[string], group, name string, now time.Time) (string, bool) {
	v, hit, err := c.Do(t.Context(), group, name, now, always, func(v *string, number uint64) error {
		*v = fmt.Sprintf("%s/%s#%d", group, name, number)
		return nil
	})
	require.NoError(t, err)
	return *v, hit
}

func TestMemoRemembersUntilItsTime(t *testing.T) {
	c := newMemo[string](10, time.Hour)
	for _, test := range []struct {
		after time.Duration
		value string
		hit   bool
	}{
		{0, "g/a#0", false}, {time.Minute, "g/a#0", true}, {time.Hour - 1, "g/a#0", true},
		{time.Hour, "g/a#1", false}, {time.Hour + 1, "g/a#1", true}, {2*time.Hour - 1, "g/a#1", true},
		{3 * time.Hour, "g/a#2", false},
	} {
		value, hit := get(t, c, "g", "a", memoStart.Add(test.after))
		assert.Equal(t, test.value, value, "%v", test.after)
		assert.Equal(t, test.hit, hit, "%v", test.after)
	}
	assert.Equal(t, 1, c.Len())
}

func TestMemoDropsAGroup(t *testing.T) {
	for _, room := range []int{10, 10_000} {
		c := newMemo[string](room, time.Hour)
		for _, name := range []string{"a", "b", "c"} {
			get(t, c, "g", name, memoStart)
		}
		get(t, c, "h", "a", memoStart)
		c.Drop("g")
		c.Drop("nobody")
		assert.Equal(t, 1, c.Len())
		value, hit := get(t, c, "g", "b", memoStart)
		assert.False(t, hit)
		assert.Equal(t, "g/b#0", value)
		_, hit = get(t, c, "h", "a", memoStart)
		assert.True(t, hit)
	}
}

func TestMemoForgetsWhatWasNotUsedLongest(t *testing.T) {
	c := newMemo[string](3, time.Hour)
	for _, name := range []string{"a", "b", "c", "a", "d"} {
		get(t, c, "g", name, memoStart)
	}
	for name, kept := range map[string]bool{"a": true, "c": true, "d": true} {
		_, hit := get(t, c, "g", name, memoStart)
		assert.Equal(t, kept, hit, name)
	}
	_, hit := get(t, c, "g", "b", memoStart)
	assert.False(t, hit)
	assert.Equal(t, 3, c.Len())
}

func TestMemoIsBounded(t *testing.T) {
	for _, room := range []int{1, 7, 2000} {
		c := newMemo[string](room, time.Hour)
		for i := range 20_000 {
			get(t, c, fmt.Sprint("group", i/3), fmt.Sprint(i), memoStart.Add(time.Duration(i)))
		}
		assert.LessOrEqual(t, c.Len(), room+16)
		assert.Greater(t, c.Len(), room/2)
	}
}

func TestMemoGivesOneGroupAllItsRoom(t *testing.T) {
	const room = 10_000
	c := newMemo[string](room, time.Hour)
	for i := range room {
		get(t, c, "g", fmt.Sprint(i), memoStart)
	}
	for i := range room {
		_, hit := get(t, c, "g", fmt.Sprint(i), memoStart)
		require.True(t, hit)
	}
}

func TestMemoKeepsWhatIsBeingMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newMemo[string](1, time.Hour)
		first := make(chan string)
		go func() {
			v, _, err := c.Do(t.Context(), "g", "a", memoStart, always, func(v *string, _ uint64) error {
				time.Sleep(time.Minute)
				*v = "made once"
				return nil
			})
			assert.NoError(t, err)
			first <- *v
		}()
		synctest.Wait()
		get(t, c, "g", "b", memoStart) // there is no room for both
		v, hit, err := c.Do(t.Context(), "g", "a", memoStart, always, nil)
		require.NoError(t, err)
		assert.True(t, hit)
		assert.Equal(t, "made once", *v)
		assert.Equal(t, "made once", <-first)
	})
}

func TestMemoMakesAgainWhatIsNotUsable(t *testing.T) {
	c := newMemo[string](10, time.Hour)
	get(t, c, "g", "a", memoStart)
	v, hit, err := c.Do(t.Context(), "g", "a", memoStart,
		func(v *string) bool { return *v != "g/a#0" }, func(v *string, number uint64) error {
			*v = fmt.Sprint("other#", number)
			return nil
		})
	require.NoError(t, err)
	assert.False(t, hit)
	assert.Equal(t, "other#1", *v)
}

// TestMemoMakesAValueOnce lets a hundred callers race for each of a thousand keys.
func TestMemoMakesAValueOnce(t *testing.T) {
	c := newMemo[string](100_000, time.Hour)
	var made atomic.Int64
	var wait sync.WaitGroup
	const callers, keys = 100, 1000
	for range callers {
		wait.Go(func() {
			for i := range keys {
				_, _, err := c.Do(t.Context(), fmt.Sprint(i%50), fmt.Sprint(i), memoStart, always,
					func(*string, uint64) error {
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

func TestMemoWaitsOnlyAsLongAsTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newMemo[string](10, time.Hour)
		failure := errors.New("could not be made")
		first := make(chan error, 1)
		go func() {
			_, _, err := c.Do(t.Context(), "g", "a", memoStart, always, func(*string, uint64) error {
				time.Sleep(time.Minute)
				return failure
			})
			first <- err
		}()
		synctest.Wait()
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _, err := c.Do(short, "g", "a", memoStart, always, nil)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		// One who waits long enough makes the value where the first failed.
		value, hit := get(t, c, "g", "a", memoStart)
		assert.False(t, hit)
		assert.Equal(t, "g/a#0", value)
		assert.ErrorIs(t, <-first, failure)
	})
}

func TestMemoSurvivesAPanic(t *testing.T) {
	c := newMemo[string](10, time.Hour)
	assert.Panics(t, func() {
		_, _, _ = c.Do(t.Context(), "g", "a", memoStart, always,
			func(*string, uint64) error { panic("oh") })
	})
	assert.Zero(t, c.Len())
	_, hit := get(t, c, "g", "a", memoStart)
	assert.False(t, hit)
}

func TestMemoDropWhileMaking(t *testing.T) {
	c := newMemo[string](10, time.Hour)
	v, _, err := c.Do(t.Context(), "g", "a", memoStart, always, func(v *string, _ uint64) error {
		c.Drop("g")
		*v = "made all the same"
		return nil
	})
	require.NoError(t, err)
	assert.Equal(t, "made all the same", *v)
	assert.Zero(t, c.Len())
}

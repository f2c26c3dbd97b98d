package strategy

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// usable makes a test of whether a choice in a memo can still be used.
func usable(is bool) func(*remembered) bool { return func(*remembered) bool { return is } }

// ask puts a choice, unless there is one, and reports whether there was.
func ask(c *memo, session, name string) bool {
	return c.Get(session, name) != nil ||
		c.Put(session, name, &remembered{}, c.Drops(), usable(true)) == nil
}

func TestMemoKeepsTheFirstThatCanBeUsed(t *testing.T) {
	c := newMemo(10)
	one, two := &remembered{}, &remembered{}
	assert.Nil(t, c.Get("s", "a"))
	assert.Same(t, one, c.Put("s", "a", one, 0, usable(true)))
	assert.Same(t, one, c.Put("s", "a", two, 0, usable(true)))
	assert.Same(t, one, c.Get("s", "a"))
	assert.Same(t, two, c.Put("s", "a", two, 0, usable(false)))
	assert.Same(t, two, c.Get("s", "a"))
	assert.Equal(t, 1, c.Len())
	assert.Nil(t, c.Get("s", "b"))
	assert.Nil(t, c.Get("other", "a"))
}

func TestMemoDropsASession(t *testing.T) {
	c := newMemo(10)
	for _, name := range []string{"a", "b", "c"} {
		ask(c, "s", name)
	}
	ask(c, "h", "a")
	c.Drop("s", 0)
	c.Drop("nobody", 0)
	assert.Equal(t, 1, c.Len())
	assert.False(t, ask(c, "s", "b"))
	assert.True(t, ask(c, "h", "a"))
}

// A choice that was begun before its session ended is returned and not kept.
func TestMemoKeepsNoChoiceOfAnEndedSession(t *testing.T) {
	const most = len(memo{}.dropped)
	drop := func(n int) func(*memo) {
		return func(c *memo) {
			for i := range n {
				c.Drop(fmt.Sprint("other", i), 1)
			}
		}
	}
	endedThenOthers := func(c *memo) {
		c.Drop("s", 0)
		drop(most - 1)(c)
	}
	for name, test := range map[string]struct {
		before, since func(*memo)
		epoch         uint64
		kept          bool
	}{
		"others ended":                  {drop(0), drop(most), 0, true},
		"too many ended to know":        {drop(0), drop(most + 1), 0, false},
		"many ended before":             {drop(3 * most), drop(most), 0, true},
		"it ended":                      {drop(5), endedThenOthers, 0, false},
		"it ended before":               {func(c *memo) { c.Drop("s", 0) }, drop(5), 0, true},
		"it is of an earlier epoch":     {func(c *memo) { c.Drop("s", 2) }, drop(5), 1, false},
		"it is of the epoch that began": {func(c *memo) { c.Drop("s", 2) }, drop(5), 2, true},
	} {
		t.Run(name, func(t *testing.T) {
			c, r := newMemo(10), &remembered{}
			r.made.Epoch = test.epoch
			test.before(c)
			since := c.Drops()
			test.since(c)
			assert.Same(t, r, c.Put("s", "a", r, since, usable(true)))
			assert.Equal(t, test.kept, c.Get("s", "a") != nil)
		})
	}
}

func TestMemoForgetsWhatWasNotUsedLongest(t *testing.T) {
	c := newMemo(3)
	for _, name := range []string{"a", "b", "c", "a", "d"} {
		ask(c, "s", name)
	}
	for name, kept := range map[string]bool{"a": true, "b": false, "c": true, "d": true} {
		assert.Equal(t, kept, c.Get("s", name) != nil, name)
	}
	assert.Equal(t, 3, c.Len())
}

func TestMemoIsBounded(t *testing.T) {
	for _, room := range []int{1, 7, 2000} {
		c := newMemo(room)
		for i := range 5000 {
			ask(c, fmt.Sprint("session", i/3), fmt.Sprint(i))
			require.LessOrEqual(t, c.Len(), room)
		}
		assert.Equal(t, room, c.Len())
	}
}

func TestMemoGivesOneSessionAllItsRoom(t *testing.T) {
	const room = 10_000
	c := newMemo(room)
	for i := range room {
		ask(c, "s", fmt.Sprint(i))
	}
	for i := range room {
		require.True(t, ask(c, "s", fmt.Sprint(i)))
	}
}

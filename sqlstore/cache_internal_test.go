package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/heedhq/heed/evidence"
)

// A cell of many people takes the room of many cells.
func TestCacheHasRoom(t *testing.T) {
	for _, n := range []int{9, 99} {
		c, now := newCache(), time.Now()
		parts := make([]evidence.Part, n)
		last := evidence.Cell{Kind: "k"}
		room := shardRoom * cacheShards / (1 + len(parts))
		for i := range 2 * room {
			last.Name = fmt.Sprint(i)
			c.put(c.ticket(last), last, parts, now)
			if i%16 == 0 {
				c.put(c.ticket(last), last, parts, now)
				gone := evidence.Cell{Name: last.Name}
				c.put(c.ticket(gone), gone, parts, now)
				c.drop(gone)
			}
			if i != room*3/4 {
				continue
			}
			first, ok := evidence.Cell{Kind: "k"}, true
			for n := 0; n <= i && ok; n++ {
				first.Name = fmt.Sprint(n)
				_, ok = c.get(first, now)
			}
			assert.True(t, ok, "three quarters of the room are too much")
		}
		for i := range c.shards {
			s := &c.shards[i]
			assert.LessOrEqual(t, len(s.cells)*(1+len(parts)), shardRoom)
			assert.Equal(t, len(s.cells)*len(parts), s.parts)
		}
		_, ok := c.get(last, now.Add(stale-1))
		assert.True(t, ok)
		_, ok = c.get(last, now.Add(stale))
		assert.False(t, ok)
		c.clear()
		assert.Zero(t, c.shard(last).parts)
	}
}

// An error after the end of its context is found as that end, whatever the driver made of it, and
// other errors stay as they are.
func TestBecause(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	lost := errors.New("the connection is lost")
	for _, err := range []error{lost, fmt.Errorf("query: %w", context.Canceled)} {
		assert.ErrorIs(t, because(ended, err), err)
		assert.ErrorIs(t, because(ended, err), context.Canceled)
		assert.Equal(t, err, because(t.Context(), err))
	}
	assert.NotErrorIs(t, because(t.Context(), lost), context.Canceled)
	assert.NoError(t, because(ended, nil))
}

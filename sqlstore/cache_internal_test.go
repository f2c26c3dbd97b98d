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

func TestCacheHasRoom(t *testing.T) {
	c, now := newCache(), time.Now()
	last := evidence.Cell{Kind: "k"}
	for i := range 2 * shardRoom * cacheShards {
		last.Item = fmt.Sprint(i)
		c.put(c.ticket(last), last, nil, now)
	}
	all := 0
	for i := range c.shards {
		assert.LessOrEqual(t, len(c.shards[i].cells), shardRoom)
		all += len(c.shards[i].cells)
	}
	assert.Greater(t, all, shardRoom*cacheShards/2)
	_, ok := c.get(last, now.Add(stale-1))
	assert.True(t, ok)
	_, ok = c.get(last, now.Add(stale))
	assert.False(t, ok)
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

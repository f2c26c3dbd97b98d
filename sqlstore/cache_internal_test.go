package sqlstore

import (
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

//go:build !race

package strategy

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/fair"
)

// A sourceCache names sources like Trust.Apart does by the parts of a cell, counts a part for each
// channel of a source, and forgets what is old or too much.
func TestSourceCache(t *testing.T) {
	c, trust := newSourceCache(), &evidence.Trust{Instruments: []string{"ci"}}
	full, few := evidence.Cell{Kind: "k", Name: "full"}, evidence.Cell{Kind: "k", Name: "few"}
	now := time.Unix(1e9, 0)
	c.expire(now, time.Minute)
	_, known := c.apart(trust, full, "ann")
	assert.False(t, known)
	var parts []evidence.Part
	for i := range fair.MostParts - 1 {
		parts = append(parts, evidence.Part{Cell: full, Source: fmt.Sprint("p", i)})
	}
	c.read([]evidence.Cell{full, few}, parts)
	assert.Empty(t, c.unknown([]evidence.Cell{full, few}))

	same := func(source string) {
		t.Helper()
		name, known := c.apart(trust, full, source)
		assert.True(t, known)
		assert.Equal(t, fair.Apart(*trust, parts, source), name)
	}
	add := func(channel, source string) int {
		parts = append(parts, evidence.Part{Cell: full, Channel: channel, Source: source})
		return c.count(&evidence.Observation{Cell: full, Channel: channel, Source: source})
	}
	same("late")
	assert.Equal(t, fair.MostParts, add("thumbs", "p1"), "another part of a source")
	for _, source := range []string{"late", "p1", "p2", "ci", ""} {
		same(source)
	}
	assert.Equal(t, fair.MostParts+1, add("", fair.Place("late")))
	assert.Equal(t, fair.MostParts+1, c.count(&evidence.Observation{Cell: full, Source: "p2"}))
	name, _ := c.apart(trust, few, "late")
	assert.Equal(t, "late", name)
	assert.Zero(t, c.count(&evidence.Observation{Cell: evidence.Cell{Kind: "other"}}))

	for cell := range maxCached / 4096 {
		of := evidence.Cell{Kind: "k", Item: fmt.Sprint(cell)}
		c.read([]evidence.Cell{of}, nil)
		for i := range 4096 {
			c.count(&evidence.Observation{Cell: of, Source: fmt.Sprint(i)})
		}
	}
	assert.Greater(t, c.size, maxCached)
	c.expire(now, time.Minute)
	assert.LessOrEqual(t, c.size, maxCached/2)
	left := 0
	for _, of := range c.cells {
		left += len(of.known)
	}
	assert.Equal(t, left, c.size)
	c.expire(now.Add(time.Minute), time.Minute)
	assert.Empty(t, c.cells)
	assert.Zero(t, c.size)
}

//go:build !race

package strategy

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

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

// What a cell was before observations is what it is without them, whose ever they are. The parts
// stay, and observations that are not there are noticed.
func TestShareWithout(t *testing.T) {
	now := evidence.InstantOf(time.Unix(1e9, 0))
	rapid.Check(t, func(t *rapid.T) {
		s := &segment{crowd: fair.New(evidence.Trust{}, 1)}
		var before []evidence.Part
		var made []evidence.Observation
		for _, source := range []string{"ann", "bob", "kim"} {
			for _, channel := range []string{"x", "y"} {
				part := evidence.Part{Channel: channel, Source: source}
				n := rapid.IntRange(0, 2).Draw(t, "n")
				for range n {
					reward := rapid.SampledFrom([]float64{0, 0.25, 0.5, 1}).Draw(t, "reward")
					part.Tally.Add(rapid.Float64Range(0.1, 3).Draw(t, "weight"), 1, reward, now)
				}
				if n > 0 {
					before = append(before, part)
				}
			}
		}
		s.crowd.Hear(nil, 0, before, now)
		s.crowd.Settle(func(func([][]fair.Voice) bool) {})
		want := s.crowd.Share(0, before, now)
		parts := slices.Clone(before)
		for i := range rapid.IntRange(0, 3).Draw(t, "made") {
			if i >= len(parts) {
				break
			}
			part := &parts[rapid.IntRange(0, len(parts)-1).Draw(t, "of")]
			o := evidence.Observation{Channel: part.Channel, Source: part.Source, Weight: 1.5, Share: 1,
				Reward: rapid.SampledFrom([]float64{0, 0.5, 0.75}).Draw(t, "of"), At: now.Time()}
			part.Tally.Add(o.Weight, o.Share, o.Reward, now)
			made = append(made, o)
		}
		given := slices.Clone(parts)
		was, ok := s.shareWithout(0, parts, made, now)
		require.True(t, ok)
		require.Equal(t, given, parts)
		require.InDelta(t, want.Mass, was.Mass, 1e-9)
		require.InDelta(t, want.Reward, was.Reward, 1e-9)

		stranger := evidence.Observation{Channel: "z", Source: "ann", Weight: 1, Share: 1,
			At: now.Time()}
		_, ok = s.shareWithout(0, parts, append(made, stranger), now)
		require.False(t, ok)
		require.Equal(t, given, parts)
	})
}

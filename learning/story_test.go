package learning_test

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/learning"
)

// A day is what one user does in reaction to a reminder, three times a day.
type day struct {
	reactions [3]string // "silence", "undo", "ignore", "good", "bad" or "meh"
	about     string
}

// month is thirty days with a reminder to stretch: it begins well, is in the way while a deadline
// nears, is nearly given up, and finds its place again.
func month() []day {
	var days []day
	add := func(n int, about string, reactions ...string) {
		for range n {
			days = append(days, day{[3]string(reactions), about})
		}
	}
	add(2, "a new reminder, mostly let be", "silence", "silence", "good")
	add(5, "it is liked", "silence", "silence", "silence")
	add(1, "the deadline nears", "undo", "silence", "ignore")
	add(6, "it is in the way", "undo", "bad", "undo")
	add(2, "it is not even looked at", "ignore", "ignore", "ignore")
	add(4, "the deadline is over", "silence", "ignore", "meh")
	add(10, "it is liked again", "silence", "good", "silence")
	return days
}

// TestThirtyDays plays a month and compares the confidence at the end of each day with
// testdata/story.txt. Run it with HEED_UPDATE=1 to write that file again.
func TestThirtyDays(t *testing.T) {
	f := newFixture(t, learning.Config{HalfLife: 4 * 24 * time.Hour, Diminish: 0.1})
	f.put(learning.Heuristic{ID: "stretch", Condition: "two hours at the desk"})
	var story strings.Builder
	fmt.Fprintf(&story, "day  confidence                                            fires  rate  "+
		"what happens\n")
	var curve []float64
	for d, today := range month() {
		for i, reaction := range today.reactions {
			event := fmt.Sprintf("day %d, %d", d+1, i)
			f.fire("stretch", event, "desk")
			f.clock.Advance(5 * time.Second)
			f.react(event, reaction)
			f.clock.Advance(4 * time.Hour)
			f.sweep()
		}
		f.clock.Advance(12*time.Hour - 15*time.Second)
		s := f.standing("stretch")
		curve = append(curve, s.Confidence)
		fmt.Fprintf(&story, "%3d  %.3f %-46s  %5d  %.2f  %s\n", d+1, s.Confidence,
			strings.Repeat("▇", int(math.Round(s.Confidence*46))), s.Fires, rate(s), today.about)
	}
	if os.Getenv("HEED_UPDATE") != "" {
		require.NoError(t, os.WriteFile("testdata/story.txt", []byte(story.String()), 0o600))
	}
	want, err := os.ReadFile("testdata/story.txt")
	require.NoError(t, err)
	assert.Equal(t, string(want), story.String())

	require.Len(t, curve, 30)
	assert.Greater(t, curve[6], 0.8, "liked for a week")
	assert.Less(t, curve[15], 0.4, "in the way for another")
	assert.Greater(t, curve[29], 0.7, "liked again")
	for d := 8; d < 16; d++ {
		assert.Less(t, curve[d], curve[d-1], "it only falls while it is in the way")
	}
	for d := 20; d < 30; d++ {
		assert.Greater(t, curve[d], curve[d-1], "and only rises when it is liked again")
	}
}

func (f *fixture) react(event, reaction string) {
	f.Helper()
	score := map[string]int{"bad": 1, "meh": 2, "good": 3}[reaction]
	switch {
	case reaction == "undo":
		f.event("keyboard", "undo that reminder")
	case reaction == "ignore":
		f.event("desk", "typing on")
	case score > 0:
		f.say(learning.Judgement{HeuristicID: "stretch", EventID: event, Person: "ann",
			Scale: learning.UserScale, Score: score})
	}
}

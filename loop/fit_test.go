package loop_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
)

// A trusted heuristic that is less similar than AnswerFit does not answer: the model is shown it.
func TestAnswerFit(t *testing.T) {
	zone := trusted(learning.Heuristic{ID: "zone",
		Condition: "how to set the time zone of an account", Action: "Open Settings, then Time."})
	w := newWorld(t, loop.Config{Tuning: loop.Tuning{AnswerFit: 0.5},
		Lessons: loop.Lessons{Heuristics: []learning.Heuristic{zone}}})
	near := w.answer(loop.Event{Text: "How do I set the password of my account?"})
	assert.Equal(t, decision.Model, near.Result.Path)
	assert.Equal(t, []string{"zone"}, near.Result.ShownIDs)
	assert.Empty(t, near.Result.CreditID)
	fits := w.answer(loop.Event{Text: "How do I set the time zone of my account?"})
	assert.Equal(t, decision.Heuristic, fits.Result.Path)
	shadow := w.cfg
	shadow.Control, shadow.Tuning.AnswerFit = 1, 0.9
	agent, err := loop.New(ctx, shadow)
	require.NoError(t, err)
	plan, err := agent.Prepare(ctx, loop.Event{Text: "How do I set the time zone of my account?"})
	require.NoError(t, err)
	assert.Empty(t, plan.Would)

	_, err = loop.New(ctx, loop.Config{Tuning: loop.Tuning{
		Fit: 0.4, AnswerFit: 0.3}})
	var fault *heed.ConfigError
	require.ErrorAs(t, err, &fault)
	assert.Equal(t, "Tuning.AnswerFit", fault.Field)
}

// A heuristic whose confidence is below half of its initial one is no candidate.
func TestHalfOfTheTrust(t *testing.T) {
	w := newWorld(t, loop.Config{Lessons: loop.Lessons{
		Heuristics: []learning.Heuristic{trusted(rotating)}}})
	for i, now := 0, 1.; now > 0.35; i++ {
		require.Less(t, i, 20)
		now = w.confidence("rotate")
		plan, err := w.Prepare(ctx, loop.Event{ID: fmt.Sprint(i), Text: full})
		require.NoError(t, err)
		assert.Len(t, plan.Candidates, map[bool]int{true: 1}[now >= 0.8/2], now)
		_, err = w.Learning().Judge(ctx, learning.Judgement{HeuristicID: "rotate",
			EventID: fmt.Sprint("past ", i), Person: "ann", Value: -1, Weight: 0.25})
		require.NoError(t, err)
	}
}

// The table of docs/trust.md: how many of 32 events that a condition is for, and of 32 that are
// only near it, trigrams let through.
func TestNearEvents(t *testing.T) {
	text, err := os.ReadFile("testdata/near.tsv")
	require.NoError(t, err)
	var meant, near []float64
	for line := range strings.Lines(string(text)) {
		if fields := strings.Split(strings.TrimSpace(line), "\t"); !strings.HasPrefix(line, "#") {
			similar, err := heed.Trigrams{}.Similar(ctx, fields[0], fields[1:])
			require.NoError(t, err)
			require.Len(t, similar, 4)
			meant, near = append(meant, similar[:2]...), append(near, similar[2:]...)
		}
	}
	through := func(all []float64, fit float64) (n int) {
		for _, similarity := range all {
			if similarity >= fit {
				n++
			}
		}
		return n
	}
	require.Len(t, near, 32)
	for fit, want := range map[float64][2]int{0.22: {21, 30}, 0.3: {19, 24}, 0.4: {15, 17},
		0.5: {14, 3}} {
		assert.Equal(t, want, [2]int{through(meant, fit), through(near, fit)}, fit)
	}
}

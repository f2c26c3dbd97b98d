package loop_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/llm"
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

// The decider compares answers with heuristics by the agent's similarity, or by its own.
func TestTheSimilarityOfAnswers(t *testing.T) {
	mine, own := alikeness{1}, alikeness{0.5}
	for name, test := range map[string]struct {
		tuning loop.Tuning
		want   heed.Similarity
	}{
		"trigrams":    {loop.Tuning{}, heed.Trigrams{}},
		"the agent's": {loop.Tuning{Similarity: mine}, mine},
		"its own": {
			loop.Tuning{Similarity: mine, Decision: decision.Config{Similarity: own}}, own,
		},
	} {
		w := newWorld(t, loop.Config{Tuning: test.tuning})
		assert.Equal(t, test.want, w.Decision().Config().Similarity, name)
	}
}

// A pickyFunc is a similarity that fails for some texts.
type pickyFunc func(one string, others []string) error

func (f pickyFunc) Similar(_ context.Context, one string, others []string) ([]float64, error) {
	numbers := make([]float64, len(others))
	for i := range numbers {
		numbers[i] = 0.9
	}
	return numbers, f(one, others)
}

// If the heuristics of other domains can't be compared, a plan leaves out the candidates of the
// event's domain as well, because a better one may be missing.
func TestASimilarityThatFailsForSome(t *testing.T) {
	of := trusted(rotating)
	of.ID, of.Domain, of.Condition = "of the domain", "ops", "a disk of the domain"
	fails := pickyFunc(func(_ string, others []string) error {
		if slices.Contains(others, rotating.Condition) {
			return &llm.Error{Failure: llm.Unreachable}
		}
		return nil
	})
	w := newWorld(t, loop.Config{
		Tuning:  loop.Tuning{Similarity: fails},
		Lessons: loop.Lessons{Heuristics: []learning.Heuristic{trusted(rotating), of}},
	})
	for range 2 { // with a library, too
		p, err := w.Prepare(ctx, loop.Event{Text: full, Domain: "ops"})
		require.NoError(t, err)
		assert.Contains(t, p.LeftOut, loop.LeftOut{What: "candidates", Why: "failure"})
		assert.False(t, p.Ready)
	}
}

// With a similarity of the host, a note fits from Tuning.Fit on, like a heuristic. By trigrams
// the least similarity of a note is a constant.
func TestHowSimilarANoteIs(t *testing.T) {
	for _, test := range []struct {
		tuning loop.Tuning
		fits   bool
	}{
		{loop.Tuning{Similarity: alikeness{0.59}}, false},
		{loop.Tuning{Similarity: alikeness{0.6}}, true},
		{loop.Tuning{Similarity: alikeness{0.3}, Fit: 0.3}, true},
		{loop.Tuning{Similarity: alikeness{0.3}, Fit: 0.31}, false},
		{loop.Tuning{}, true}, {loop.Tuning{Fit: 0.9}, true},
	} {
		w := newWorld(t, loop.Config{Tuning: test.tuning, Lessons: loop.Lessons{
			Notes: []loop.Note{{ID: "n", Topic: "The disk of db-1", Text: "See room 3."}},
		}})
		p, err := w.Prepare(ctx, loop.Event{Text: "The disk of db-2 is so full"})
		require.NoError(t, err)
		assert.Equal(t, test.fits, len(p.Notes) > 0, "%+v", test.tuning)
	}
}

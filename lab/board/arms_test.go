package board

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/lab/internal/kit"
)

// answers are two requests of each half.
const answers = `{"task": "x", "question": "a 0", "scores": {"m": 0.25, "n": 1}}
{"task": "x", "question": "a 1", "scores": {"m": 0, "n": 0.5}}
{"task": "y", "question": "a 2", "scores": {"m": 1, "n": 0}}
{"task": "y", "question": "a 129", "scores": {"m": 1, "n": 1}}
`

func answersFile(t *testing.T, text string) string {
	name := filepath.Join(t.TempDir(), "answers.jsonl")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

// Each recorded request is in one half, and comes about as often as the others.
func TestAnswersAreAWorld(t *testing.T) {
	times := make(map[string]map[string]int) // by half, and by the request's scores
	for _, half := range []string{"tuning", "last", "all"} {
		w, err := readAnswers(answersFile(t, answers), half)
		require.NoError(t, err)
		tr := troubles()
		times[half] = make(map[string]int)
		trial := w.trial(&tr[0], 6, 1, 7)
		require.Len(t, trial.requests, 6)
		for _, r := range trial.requests {
			assert.Equal(t, r.grades, r.rates)
			assert.Len(t, r.grades, 2)
			assert.NotEmpty(t, r.vector)
			times[half][fmt.Sprint(r.topic, r.grades)]++
			g := game{trial: trial}
			assert.InDelta(t, r.grades[1], g.outcome(&r, 1, nil).quality, 0)
		}
	}
	assert.Equal(t, map[string]int{"x[0.25 1]": 3, "y[1 1]": 3}, times["tuning"])
	assert.Equal(t, map[string]int{"x[0 0.5]": 3, "y[1 0]": 3}, times["last"])
	assert.Len(t, times["all"], 4)
	for text, fault := range map[string]string{
		"":                            "has no requests",
		"{":                           "line 1",
		`{"question":"a 0"}` + "\n{}": "has scores of 0 models",
	} {
		_, err := readAnswers(answersFile(t, text), "tuning")
		if err == nil {
			_, err = readAnswers(answersFile(t, text), "last")
		}
		require.ErrorContains(t, err, fault)
	}
	_, err := readAnswers("missing", "all")
	assert.ErrorIs(t, err, os.ErrNotExist)
}

// With many arms heed has less regret than plain Thompson sampling, also if outcomes are graded.
func TestManyArms(t *testing.T) {
	for _, world := range []string{"20 arms, ±0.4", "10 arms, ±0.4, graded"} {
		s := study{requests: 300, runs: 4, seed: 7, troubles: troubles()[:1], policies: manyArms}
		for _, w := range armWorlds() {
			if w.name == world {
				s.worlds = append(s.worlds, w)
			}
		}
		cells := s.play(context.Background())
		require.Len(t, cells, 2)
		assert.Less(t, cells[1].ratio.Mean, 1., world)
	}
}

func TestCommandOfRequests(t *testing.T) {
	var out bytes.Buffer
	text := strings.Repeat(answers, 10)
	call := kit.NewCall("board", &out, "requests", "-runs", "1", "-requests", "60", "-answers",
		answersFile(t, text))
	require.NoError(t, Run(context.Background(), call))
	for _, name := range []string{"plain Thompson", "cells of the text", "true topic"} {
		assert.Contains(t, out.String(), name)
	}
	assert.ErrorIs(t, Run(context.Background(), kit.NewCall("board", &out, "requests")), kit.ErrUsage)
}

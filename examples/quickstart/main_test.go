package main

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/examples/internal/show"
)

func run(t *testing.T, in string, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := command(t.Context(), args, strings.NewReader(in), &out)
	return out.String(), err
}

// helped reads the counts that a run ends with.
func helped(t *testing.T, out string) (first, last int) {
	t.Helper()
	_, line, found := strings.Cut(out, "Answers as Ann wants them: ")
	require.True(t, found, out)
	var of int
	_, err := fmt.Sscanf(line, "%d of the first %d, %d of the last", &first, &of, &last)
	require.NoError(t, err)
	return first, last
}

func TestAnswersGetBetter(t *testing.T) {
	sumFirst, sumLast := 0, 0
	const seeds = 20
	for seed := range seeds {
		out, err := run(t, "", "-seed", fmt.Sprint(seed))
		require.NoError(t, err)
		first, last := helped(t, out)
		sumFirst, sumLast = sumFirst+first, sumLast+last
	}
	assert.Less(t, sumFirst, 10*seeds, "at first, a third of 15 by chance")
	assert.Greater(t, sumLast, 14*seeds-seeds/2, "of the last 15, nearly all")
}

func TestGoesOnFromTheDatabase(t *testing.T) {
	file := filepath.Join(t.TempDir(), "heed.db")
	_, err := run(t, "", "-db", file)
	require.NoError(t, err)
	out, err := run(t, "", "-db", file, "-questions", "30")
	require.NoError(t, err)
	first, _ := helped(t, out)
	assert.GreaterOrEqual(t, first, 14, "it begins where the first run ended")
}

func TestAPersonAsks(t *testing.T) {
	var in strings.Builder
	for range 30 {
		in.WriteString("The disk of db-1 is full!\n")
		in.WriteString("\n") // no thumb
	}
	out, err := run(t, in.String(), "-me")
	require.NoError(t, err)
	assert.Equal(t, 30, strings.Count(out, "agent  "))
	assert.Contains(t, out, "(command)")
	assert.Contains(t, out, "(explain)")

	out, err = run(t, "\nWhat?\n+\n", "-me")
	require.NoError(t, err)
	assert.Contains(t, out, "I don't know.")
}

func TestEveryAnswerIsInTheScript(t *testing.T) {
	for _, q := range questions {
		assert.Equal(t, q.kind, kind(q.text))
		for _, arm := range arms {
			assert.NotEmpty(t, q.answers[arm.ID], "%s %s", q.text, arm.ID)
		}
	}
}

func TestBadArguments(t *testing.T) {
	for name, args := range map[string][]string{"few": {"-questions", "9"}, "unknown": {"-x"},
		"too many": {"more"}} {
		t.Run(name, func(t *testing.T) {
			_, err := run(t, "", args...)
			require.ErrorIs(t, err, show.ErrUsage)
		})
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out bytes.Buffer
	require.ErrorIs(t, command(ctx, nil, strings.NewReader(""), &out), context.Canceled)
}

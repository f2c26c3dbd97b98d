package main

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/examples/internal/show"
)

func silent(int, int) {}

// A report is what a run has printed.
type report string

func runOn(t *testing.T, db string, tasks int) report {
	t.Helper()
	var out bytes.Buffer
	done := 0
	err := command(context.Background(), []string{"-db", db, "-tasks", strconv.Itoa(tasks)}, &out,
		func(d, of int) {
			assert.Equal(t, done+1, d)
			assert.Equal(t, tasks, of)
			done = d
		})
	require.NoError(t, err)
	require.Equal(t, tasks, done)
	return report(out.String())
}

// after returns the rest of the line that begins so.
func (r report) after(t *testing.T, start string) string {
	t.Helper()
	match := regexp.MustCompile(`(?m)^` + start + `(.*)$`).FindStringSubmatch(string(r))
	require.NotNil(t, match, "%s is not in:\n%s", start, r)
	return match[1]
}

var ofArm = regexp.MustCompile(`(?m)^  (\w+) .* \(outcomes: (\d+)\)$`)

// outcomes returns how many count at the start and at the end of the run.
func (r report) outcomes(t *testing.T) (start, end int) {
	t.Helper()
	before, after, found := strings.Cut(string(r), "At the end,")
	require.True(t, found)
	sum := func(text string) (all int) {
		for _, match := range ofArm.FindAllStringSubmatch(text, -1) {
			n, err := strconv.Atoi(match[2])
			require.NoError(t, err)
			all += n
		}
		return all
	}
	return sum(before), sum(after)
}

func (r report) beliefs(start, end string) string {
	_, rest, _ := strings.Cut(string(r), start+"\n")
	rest, _, _ = strings.Cut(rest, end)
	return rest
}

func TestTheSecondRunContinues(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "what? 100%#.db") // which must not be taken for options
	first := runOn(t, db, 150)
	assert.Contains(t, first,
		"At the start, after 0 tasks:\n  nothing is known\nOutcomes of the run before: 0.\n")
	start, end := first.outcomes(t)
	assert.Equal(t, 0, start)
	assert.Equal(t, 130, end)
	assert.NotEqual(t, strings.Repeat(" large", 10)+".", first.after(t, "The first choices:"),
		"it has to find out")

	second := runOn(t, db, 60)
	assert.FileExists(t, db)
	assert.Equal(t, first.beliefs("At the end, after 150 tasks:", "?"),
		second.beliefs("At the start, after 150 tasks:", "Still open"))
	start, end = second.outcomes(t)
	assert.Equal(t, 130, start)
	assert.Equal(t, 130+20+40, end)
	assert.Equal(t, "20.", second.after(t, "Outcomes of the run before: "))
	assert.Equal(t, strings.Repeat(" large", 10)+".", second.after(t, "The first choices:"),
		"it knows")
	assert.Equal(t, first.after(t, "Left open: "), second.after(t, "Still open: "),
		"the same choice, and not just the same arm")
	assert.Contains(t, second.after(t, "Left open: "), "task 209 has ")
}

// Runs that are over before any outcome has come lose none, nor count one twice.
func TestShortRuns(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "heed.db")
	for run := range 4 {
		r := runOn(t, db, 7)
		start, end := r.outcomes(t)
		assert.Equal(t, 7*max(run-1, 0), start)
		assert.Equal(t, 7*run, end)
		assert.Equal(t, 1+min(run, 1), strings.Count(string(r), " open: "))
	}
}

func TestAnInterruptedRunIsTakenUp(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "heed.db")
	ctx, cancel := context.WithCancel(context.Background())
	err := command(ctx, []string{"-db", db, "-tasks", "50"}, io.Discard, func(done, _ int) {
		if done == 5 {
			cancel()
		}
	})
	require.ErrorIs(t, err, context.Canceled)
	r := runOn(t, db, 25)
	assert.Contains(t, r, "At the start, after 5 tasks:")
	assert.NotContains(t, r, "Still open")
	start, end := r.outcomes(t)
	assert.Equal(t, 5, start)
	assert.Equal(t, 10, end)
}

func TestFaults(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args  []string
		code  int
		fault string
	}{
		{[]string{"-help"}, 0, "help requested"},
		{[]string{"-nonsense"}, 2, "flag provided but not defined"},
		{[]string{"-db", "heed.db", "more"}, 2, `unexpected argument "more"`},
		{nil, 2, "-db must name a file"},
		{[]string{"-db", ":memory:"}, 2, "-db must name a file"},
		{[]string{"-db", "heed.db", "-tasks", "0"}, 2, "-tasks 0 must be at least 1"},
		{[]string{"-db", filepath.Join(t.TempDir(), "none", "heed.db")}, 1,
			"unable to open database file"},
		{[]string{"-db", "postgres://localhost:1/heed?connect_timeout=5"}, 1, "failed to connect"},
	} {
		err := command(context.Background(), test.args, io.Discard, silent)
		require.ErrorContains(t, err, test.fault, strings.Join(test.args, " "))
		assert.Equal(t, test.code, show.ExitCode(err), "%v", test.args)
	}
}

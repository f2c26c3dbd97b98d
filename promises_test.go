//go:build !race

package heed_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	promised  = regexp.MustCompile("\\| `(?:HEED_LONG=1 )?(?:bash \\.ci/alone ([^ `]+) )?go (?:test|run) ((?:[^`|]|\\\\\\|)+)` \\|")
	lineName  = regexp.MustCompile(`Name:\s+"(S\d+|[a-z]+)`)
	testName  = regexp.MustCompile(`(?m)^func ((?:Test|Benchmark)\w*)\(`)
	selecting = regexp.MustCompile(`-(run|bench) '?([^' ]+)'?`)
)

// TestPromises checks that each command in docs/operate.md runs a test or a benchmark: in each
// package of the command, and for each name that it selects by. A command may run lines of the
// scorecard too.
func TestPromises(t *testing.T) {
	page, err := os.ReadFile("docs/operate.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(page), "\n| promise | shown by |\n")
	require.True(t, found)
	commands := promised.FindAllStringSubmatch(table, -1)
	rows := strings.Count(table, "\n| ")
	assert.Len(t, commands, rows, "each promise has a command")
	for _, command := range commands {
		if lines, found := strings.CutPrefix(command[2], "./lab scorecard "); found {
			assert.Subset(t, linesOfScorecard(t), strings.Fields(lines), command[2])
			continue
		}
		var all []string
		for _, arg := range strings.Fields(command[2]) {
			if !strings.HasPrefix(arg, ".") {
				continue
			}
			found := declaredIn(t, filepath.Join(command[1], arg))
			assert.NotEmpty(t, found, command[2])
			all = append(all, found...)
		}
		for _, selected := range selecting.FindAllStringSubmatch(command[2], -1) {
			if selected[2] == "-" { // none
				continue
			}
			kind := map[string]string{"run": "Test", "bench": "Benchmark"}[selected[1]]
			for name := range strings.SplitSeq(selected[2], `\|`) {
				matches := regexp.MustCompile(`^` + kind + `.*` + name)
				assert.True(t, slices.ContainsFunc(all, matches.MatchString), "%s: %s", command[2], name)
			}
		}
	}
}

// linesOfScorecard returns the first words of the lines: "S1".
func linesOfScorecard(t *testing.T) (names []string) {
	for _, dir := range []string{"lab/scorecard/*.go", "lab/*/line.go"} {
		files, err := filepath.Glob(dir)
		require.NoError(t, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, found := range lineName.FindAllStringSubmatch(string(text), -1) {
				names = append(names, found[1])
			}
		}
	}
	return names
}

// declaredIn returns the tests and benchmarks of a package.
func declaredIn(t *testing.T, dir string) (names []string) {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, found := range testName.FindAllStringSubmatch(string(text), -1) {
			names = append(names, found[1])
		}
	}
	return names
}

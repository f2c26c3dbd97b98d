package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const docsFile = "README.md"

// answered are the commands of a page with what they print.
var answered = regexp.MustCompile("(?s)```console\n\\$ (.*?)\n(.*?)```")

// TestTheDocumentationIsWhatTheCommandPrints runs each command of the page, in order and in a
// terminal.
func TestTheDocumentationIsWhatTheCommandPrints(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(docsFile)
	require.NoError(t, err)
	assert.LessOrEqual(t, strings.Count(string(page), "\n"), 150, "it is one page")
	db := sqliteFile(t)
	statement(t, db, stillOpen)
	calls := 0
	got := answered.ReplaceAllStringFunc(string(page), func(block string) string {
		calls++
		line := answered.FindStringSubmatch(block)[1]
		env, now := []string{"HEED_DB=" + db}, "HEED_NOW="+asOf
		words, present := strings.CutPrefix(line, "HEED_NOW= ")
		if present { // as a shell reads it
			now = "HEED_NOW="
		}
		r := call{args: typed(strings.TrimPrefix(strings.TrimPrefix(words, "heed"), " ")),
			env: append(env, now)}.onTerminal(t, 100)
		require.Zero(t, r.code, r.out)
		shows := strings.ReplaceAll(ansi.Strip(r.out), longAfter("2026-01-15"), "2026-01-15")
		return "```console\n$ " + line + "\n" + hide(db, shows) + "```"
	})
	assert.GreaterOrEqual(t, calls, 4)
	if *update {
		require.NoError(t, os.WriteFile(docsFile, []byte(got), 0o644))
		return
	}
	assert.Equal(t, string(page), got,
		"go test ./cmd/heed -update writes the answers in cmd/heed/README.md again")
}

// typed returns the words of a line, with quotes around those that have blanks.
func typed(line string) (args []string) {
	for i, part := range strings.Split(line, `"`) {
		if i%2 == 1 {
			args = append(args, part)
		} else {
			args = append(args, strings.Fields(part)...)
		}
	}
	return args
}

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/charmbracelet/x/ansi"
	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false,
	"write the golden files and the answers in cmd/heed/README.md again")

// A result is what a run of the command has left.
type result struct {
	out, err string
	code     int
}

// environ is the environment of every run: nothing of the tester's own that could change what is
// printed, except for which mutant of the code runs: see lab/mutants.
func environ(extra ...string) []string {
	all := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "USER=olive",
		"TERM=xterm-256color", asCommand}
	for _, name := range []string{"HEED_MUTANT", "HEED_MUTANT_TRACE"} {
		if value := os.Getenv(name); value != "" {
			all = append(all, name+"="+value)
		}
	}
	return append(all, extra...)
}

// A call is one run of the command.
type call struct {
	args  []string
	env   []string
	input string
}

// run runs the command without a terminal.
func (c call) run(t testing.TB) result {
	t.Helper()
	cmd := exec.Command(command, c.args...)
	cmd.Env, cmd.Stdin = environ(c.env...), strings.NewReader(c.input)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return result{out.String(), errOut.String(), cmd.ProcessState.ExitCode()}
}

// start starts the command in a terminal of some width, and types the input when it is asked for
// something.
func (c call) start(t testing.TB, width int) (*exec.Cmd, *os.File) {
	t.Helper()
	cmd := exec.Command(command, c.args...)
	cmd.Env = environ(c.env...)
	screen, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 50, Cols: uint16(width)})
	require.NoError(t, err)
	watchdog := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	t.Cleanup(func() {
		watchdog.Stop()
		assert.NoError(t, screen.Close())
	})
	_, err = screen.WriteString(c.input)
	require.NoError(t, err)
	return cmd, screen
}

// onTerminal runs the command in a terminal.
func (c call) onTerminal(t testing.TB, width int) result {
	t.Helper()
	cmd, screen := c.start(t, width)
	out, _ := io.ReadAll(screen) // which ends with an error when the other side is closed
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return result{out: strings.ReplaceAll(string(out), "\r\n", "\n"),
		code: cmd.ProcessState.ExitCode()}
}

// golden compares a text with the file of this name.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err, "go test -update writes it")
	assert.Equal(t, string(want), got, name)
}

// at returns the arguments of a command that reads a store as at the tests' moment.
func at(db string, args ...string) []string {
	return append([]string{"--db", db, "--now", asOf}, args...)
}

// listings are the commands that print what is in a store.
var listings = map[string][]string{
	"overview":      {},
	"status":        {"strategy", "status"},
	"distributions": {"strategy", "--agent", "strategy", "distributions"},
	"show": {"strategy", "--agent", "strategy", "show", "correction", "--context",
		"interactive"},
	"show-shared": {"strategy", "--agent", "models", "show", "law"},
	"item":        {"strategy", "--agent", "strategy", "learning", "explain-first"},
	"history": {"strategy", "--agent", "strategy", "history", "prefer-tabs", "--limit",
		"12"},
	"confidence":     {"confidence"},
	"confidence-one": {"confidence", "lights-off-at-ten", "--limit", "3"},
	"patterns":       {"patterns"},
	"patterns-one":   {"patterns", "split-by-file"},
	"rules":          {"rules", "list"},
	"rules-show":     {"rules", "show", "7d0c2b13-rule"},
	"audit":          {"store", "audit"},
	"doctor":         {"doctor"},
}

// goldens are the listings that have golden files: those of the commands that the strategy document
// names, and one table of each other kind.
var goldens = []string{
	"overview", "status", "distributions", "show", "item", "history", "confidence", "patterns",
	"rules", "audit", "doctor",
}

// narrow are the listings whose tables fit into a narrow terminal.
var narrow = []string{"history", "confidence", "confidence-one", "audit", "status"}

// hide takes out of an output what differs from run to run.
func hide(db, text string) string { return strings.ReplaceAll(text, db, "agent.db") }

func TestListings(t *testing.T) {
	t.Parallel()
	db := sqliteFile(t)
	for name, args := range listings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plain := call{args: at(db, args...)}.run(t)
			require.Zero(t, plain.code, plain.err)
			assert.Empty(t, plain.err)
			assert.NotContains(t, plain.out, "\x1b", "no escapes")
			inJSON := call{args: append([]string{"--json"}, at(db, args...)...)}.run(t)
			require.Zero(t, inJSON.code, inJSON.err)
			require.True(t, json.Valid([]byte(inJSON.out)), inJSON.out)
			if slices.Contains(goldens, name) {
				golden(t, name+".txt", hide(db, plain.out))
				golden(t, name+".json", hide(db, inJSON.out))
			}
			assert.Contains(t, plain.out, parts[name])
			if slices.Contains(narrow, name) {
				table, _, _ := strings.Cut(plain.out, "A heuristic answers by itself")
				assertFits(t, table, 80)
			}
		})
	}
}

// parts are what the listings without golden files contain.
var parts = map[string]string{
	"show-shared":    "100 %",
	"confidence-one": "It began with a confidence of 0.500, which counts like 2.000 observations.",
	"patterns-one":   "inverted needs observations: at least 3",
	"rules-show":     "approved by maria on 2026-01-0",
}

// TestListingsOfTheAgent looks at a store that a whole application has filled.
func TestListingsOfTheAgent(t *testing.T) {
	t.Parallel()
	if !long {
		t.Skip("HEED_LONG is not set")
	}
	db := agentFile(t)
	of := func(args ...string) string {
		r := call{args: append([]string{"--db", db, "--now", "2026-03-07T15:00:00Z"}, args...)}.run(t)
		require.Zero(t, r.code, r.err)
		assert.Empty(t, r.err)
		return r.out
	}
	for command, part := range map[string]string{
		"strategy status": "interactive", "strategy show preference": "note-report",
		"strategy learning note-report": "preference",
		"strategy history note-report":  "observed", "confidence": "runbook-queue",
		"confidence runbook-queue": "It began with",
		"patterns":                 "pattern-split-by-layer", "rules list": "rule-030",
		"answers event-00599 --prompt": "system prompt", "store audit": "feedback.propose",
		"doctor": "Nothing is wrong.",
	} {
		assert.Contains(t, of(strings.Fields(command)...), part, command)
	}
	r := call{args: []string{"--db", db, "store", "forget", "user-00", "--yes", "--reason",
		"x"}}.run(t)
	require.Zero(t, r.code, r.err)
	assert.Contains(t, of("doctor"), "Nothing is wrong.")
}

func assertFits(t *testing.T, text string, width int) {
	t.Helper()
	for line := range strings.Lines(text) {
		assert.LessOrEqual(t, ansi.StringWidth(strings.TrimRight(line, "\n")), width, line)
	}
}

func TestNamesFromTheStoreDoNothingToATerminal(t *testing.T) {
	t.Parallel()
	db := sqliteFile(t)
	hostile(t, db, "red\x1b[31m\ntwo\u202e")
	hostile(t, db, "backwards\u202e")
	for _, r := range []result{
		call{args: at(db, "strategy", "--agent", "strategy", "show", "hostile")}.run(t),
		call{args: at(db, "strategy", "--agent", "strategy", "show", "hostile")}.onTerminal(t, 200),
		call{args: at(db, "strategy", "--agent", "strategy", "item", "red\x1b[31m\ntwo\u202e")}.run(
			t),
		call{args: at(db, "strategy", "--agent", "strategy", "item", "red\x1b[31m")}.run(t),
	} {
		assert.NotContains(t, r.out+r.err, "\x1b")
		assert.NotContains(t, r.out+r.err, "\u202e")
		assert.NotContains(t, r.out+r.err, "\ntwo")
	}
}

func TestEveryCommandHasHelpWithExamples(t *testing.T) {
	t.Parallel()
	parser, err := newParser(&commands{}, os.Stdout, os.Stderr)
	require.NoError(t, err)
	for _, node := range parser.Model.Leaves(true) {
		assert.Regexp(t, `^[A-Z]`, node.Help, node.Path())
		for _, value := range append(slices.Clone(node.Positional), valuesOf(node.Flags)...) {
			assert.NotEmpty(t, value.Help, "%s %s", node.Path(), value.Name)
		}
	}
	for _, node := range leaves(t) {
		help := call{args: append(strings.Fields(node.path), "--help")}.run(t)
		require.Zero(t, help.code, node.path)
		assert.Contains(t, help.out, "Examples:", node.path)
		assert.Contains(t, help.out, "heed ", node.path)
		assertFits(t, help.out, 100)
	}
	for words, flag := range map[string]string{"help": "--help",
		"help rules show": "rules show --help"} {
		assert.Equal(t, call{args: strings.Fields(flag)}.run(t),
			call{args: strings.Fields(words)}.run(t), words)
	}
}

func valuesOf(flags []*kong.Flag) (all []*kong.Value) {
	for _, flag := range flags {
		all = append(all, flag.Value)
	}
	return all
}

type leaf struct{ path, help string }

// leaves returns the commands, in order.
func leaves(t testing.TB) (all []leaf) {
	parser, err := newParser(&commands{}, os.Stdout, os.Stderr)
	require.NoError(t, err)
	for _, node := range parser.Model.Leaves(true) {
		var words []string // without aliases
		for n := node; n.Parent != nil; n = n.Parent {
			words = append([]string{n.Name}, words...)
		}
		name := strings.Join(words, " ")
		all = append(all, leaf{name, node.Help})
	}
	return all
}

func TestNowIsATimeOrADay(t *testing.T) {
	t.Parallel()
	db := sqliteFile(t)
	status := func(now ...string) string {
		r := call{args: []string{"--db", db, "strategy", "status"}, env: now}.run(t)
		require.Zero(t, r.code, r.err)
		return r.out
	}
	faded := status("HEED_NOW=2027-01-09T00:00:00Z")
	assert.Equal(t, faded, status("HEED_NOW=2027-01-09"))
	assert.NotEqual(t, faded, status("HEED_NOW=2026-01-09"))
	assert.Contains(t, status("HEED_NOW="), "interactive", "an empty one is none")
	assert.Equal(t, faded, call{args: []string{"--db", db, "--now", "2027-01-09", "strategy",
		"status"}, env: []string{"HEED_NOW=2026-01-09"}}.run(t).out)
	early := call{args: []string{"--db", db, "--now", "2026-01-05", "doctor"}}.run(t)
	assert.NotContains(t, early.out, "future", "no clock was wrong")
}

func TestEmptyLists(t *testing.T) {
	t.Parallel()
	db := sqliteFile(t)
	for command, what := range map[string]string{
		"store audit --action foo --name bar": "audit entries other than single statements " +
			"(--kind statement)",
		"store audit --kind statement --name bar":                                 "audit entries",
		"confidence --domain foo":                                                 "heuristics",
		"patterns --state deprecated":                                             "patterns",
		"rules list --agent models":                                               "rules or proposals",
		"strategy --agent strategy history say-please --stage pending --since 1h": "choices",
	} {
		r := call{args: at(db, strings.Fields(command)...)}.run(t)
		assert.Zero(t, r.code, r.err)
		assert.Equal(t, "There are no "+what+" here.\n", r.out)
	}
}

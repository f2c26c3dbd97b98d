package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const docsFile = "../../docs/cli.md"

const docsHead = `# The heed command

` + "`heed`" + ` is for those who run an agent that learns with heed. It reads the tables of package ` + "`sqlstore`" + `, in SQLite or
PostgreSQL, while the hosts run: it shows what was learned and how sure that is, and has it forgotten where somebody with a
reason says so.

    go build -C cmd/heed -o ~/bin/heed .   # in a clone; ~/bin must be on the PATH, for the completion too
    source <(heed completion bash)         # or zsh, or fish
    export HEED_DB=agent.db                # or postgres://user@host/database, or --db

What follows is the help of each command and what it prints on a terminal of 100 columns, about a store that
[examples/agent](../examples/agent/doc.go) has filled in six days (and a learner of models, and a colleague with two proposals):
` + "`go test ./cmd/heed -update`" + ` writes this page, and the tests compare it.

- On a terminal there are lines, colours and bars that fit its width (` + "`NO_COLOR`" + ` is honoured); elsewhere there are plain columns.
- ` + "`--json`" + ` writes JSON: a list for what lists, an object for one thing. Fields are added and not renamed.
- The exit code is 0, 1 where what was asked for could not be done or a signal came first, and 2 where it was not asked for properly.
  What went wrong is one line on standard error that says what to do. For what others hold in the database it waits 10 seconds.
- What changes something asks on a terminal, needs ` + "`--yes`" + ` elsewhere, takes a ` + "`--reason`" + `, and is in the audit under ` + "`--actor`" + `.
  Who somebody is, the command does not check: whoever can write to the store can say anything.
- Listings are as of the end of those days in March, as ` + "`--now`" + ` says; changes were made later, when much had faded. ` + "`HEED_NOW`" + ` is
  ` + "`--now`" + ` for all commands of a shell; what changes something refuses both.
- What an application has configured is in the store, and the command reads it there.
- A bar is where a rate lies with a probability of 90 %, ` + "`├──●──┤`" + `, with its mean, on a scale from 0 to 1 that all bars share.
`

// examples are what the page shows of each command, by its name.
var examples = map[string][]string{
	"strategy status":        {"strategy status"},
	"strategy distributions": {"strategy --learner strategy distributions"},
	"strategy show":          {"strategy --learner strategy show preference", "strategy --learner models show law"},
	"strategy item":          {"strategy --learner strategy item note-report"},
	"strategy history":       {"strategy --learner strategy history note-report"},
	"strategy reset":         {`strategy --learner strategy reset corection --yes --reason "there is a new model"`, `strategy --learner strategy reset correction --yes --reason "there is a new model"`},
	"strategy reset-item":    {`strategy --learner strategy reset-item note-dashboard --yes --reason "its text is new"`},
	"strategy rebuild":       {`strategy --learner models rebuild --half-life 720h --yes --reason "models change"`},
	"confidence show":        {"confidence", "confidence runbook-queue --limit 5"},
	"confidence pin":         {`confidence pin learned-10 --at 0.5 --yes --reason "let it prove itself"`, "confidence learned-10 --limit 1"},
	"confidence rebuild":     {`confidence rebuild --half-life 168h --yes --reason "a week says more"`},
	"confidence unpin":       {`confidence unpin learned-10 --yes --reason "it has"`},
	"patterns show":          {"patterns", "patterns pattern-split-by-layer-ui-logic-data"},
	"patterns promote":       {`patterns promote pattern-split-by-component --yes --reason "agreed on in the team"`},
	"patterns deprecate":     {`patterns deprecate pattern-split-by-component --yes --reason "components span teams now"`},
	"patterns restore":       {`patterns restore pattern-split-by-component --yes --reason "the team has changed"`},
	"patterns reset":         {`patterns reset pattern-split-by-feature --yes --reason "the tool was replaced"`, "patterns"},
	"patterns rebuild":       {`patterns rebuild --half-life 720h --yes --reason "we change our ways often"`},
	"rules list":             {"rules list"},
	"rules show":             {"rules show 7d0c2b13", "rules show rule-11"},
	"rules approve":          {`rules approve 7d0c2b13 --yes --reason "I saw it too"`, `rules approve 7d0c2b13 --yes --reason "I saw it too" --hash HASH`},
	"rules reject":           {`rules reject 7d0c2b11 --yes --reason "the bot does it"`},
	"rules pin":              {`rules pin 7d0c2b13 --yes --reason "it must not be left out"`},
	"rules unpin":            {`rules unpin 7d0c2b13 --yes --reason "the migration is over"`},
	"rules retire":           {`rules retire 7d0c2b13 --yes --reason "it is checked by a hook now"`},
	"rules restore":          {`rules restore 7d0c2b13 --yes --reason "the hook is gone"`},
	"rules revoke":           {`rules revoke 7d0c2b13 --yes --reason "there are no migrations any more"`},
	"rules audit":            {"rules audit --limit 8"},
	"traces":                 {"traces --limit 8", "traces answer-600"},
	"forget":                 {`forget user-02 --yes --reason "user-02 asked for it"`, `forget user-02 --yes --reason "they asked for it"`},
	"audit":                  {"audit --limit 8"},
	"doctor":                 {"doctor"},
	"migrate":                {"migrate"},
	"export":                 {"export backup.jsonl"},
	"import":                 {"--db restored.db import backup.jsonl"},
	"completion":             {"completion fish"},
}

// a clock's time that differs from run to run: the store was filled in March.
var today = regexp.MustCompile(`20\d\d-\d\d-\d\d \d\d:\d\d:\d\d`)

func TestTheDocumentationIsWhatTheCommandPrints(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	require.NoError(t, os.Rename(agentFile(t), "agent.db"))
	statement(t, "agent.db", keepOpen(expiry))
	health, _ := output(t, "doctor") // while all is as the agent has left it
	hash := read[struct{ Hash string }](t, "--db", "agent.db", "rules", "show", "7d0c2b13").Hash[:12]
	var b strings.Builder
	b.WriteString(docsHead)
	group := ""
	for _, leaf := range leaves(t) {
		if of := strings.Fields(leaf.path)[0]; of != group && of != leaf.path {
			group = of
			fmt.Fprintf(&b, "\n## heed %s\n\n```text\n%s```\n", group, call{args: []string{group, "--help"}}.run(t).out)
		}
		help := call{args: append(strings.Fields(leaf.path), "--help")}.run(t)
		fmt.Fprintf(&b, "\n## heed %s\n\n```text\n%s```\n", leaf.path, help.out)
		shown, ok := examples[strings.Join(wordsOf(leaf.path), " ")]
		require.True(t, ok, "there is no example of %s", leaf.path)
		for _, example := range shown {
			example = strings.ReplaceAll(example, "HASH", hash)
			shows, called := output(t, example)
			if example == "doctor" {
				shows = health
			}
			fmt.Fprintf(&b, "\n```console\n$ %s\n%s```\n", called, shows)
		}
	}
	got := strings.ReplaceAll(b.String(), longAfter(expiry), expiry)
	file := filepath.Join(origin, docsFile)
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(want), got, "go test ./cmd/heed -update writes docs/cli.md anew")
}

// expiry is the day on which the proposals in agentFile expire.
const expiry = "2026-03-14"

// origin is the directory of the package.
var origin, _ = os.Getwd()

// wordsOf returns the words of a command's path that name it.
func wordsOf(path string) (names []string) {
	for _, word := range strings.Fields(path) {
		if !strings.ContainsAny(word, "<[(=") {
			names = append(names, word)
		}
	}
	return names
}

// output is what an example prints on a terminal, and how it was called: what fades as at the tests' moment, what changes now.
func output(t *testing.T, example string) (shows, called string) {
	fades := []string{"strategy", "confidence", "patterns", "traces", "doctor"}
	if slices.Contains(fades, strings.Fields(example)[0]) && !strings.Contains(example, "--yes") {
		example = "--now " + agentAsOf + " " + example
	}
	var args []string
	for i, part := range strings.Split(example, `"`) {
		if i%2 == 1 {
			args = append(args, part)
		} else {
			args = append(args, strings.Fields(part)...)
		}
	}
	r := call{args: args, env: []string{"NO_COLOR=1", "HEED_DB=agent.db"}}.onTerminal(t, 100)
	return today.ReplaceAllStringFunc(ansi.Strip(r.out), func(when string) string {
		if when > "2026-03-16" && when < "2096" {
			return "2026-03-07 15:00:00"
		}
		return when
	}), "heed " + example
}

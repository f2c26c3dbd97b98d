// Command heed is for people who run an agent that learns with heed. It shows what was learned and how sure that is, and
// changes it when somebody gives a reason. It reads the tables of package sqlstore, in SQLite or PostgreSQL. It needs no
// configuration of the host.
//
// Every command has a --help with examples. docs/cli.md shows the most important ones.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode"

	"github.com/alecthomas/kong"
)

// The exit codes.
const (
	done   = 0
	failed = 1 // the command failed, or was interrupted
	misuse = 2 // it was not called properly
)

type commands struct {
	DB      string           `name:"db" env:"HEED_DB" placeholder:"FILE|DSN" help:"The store: a file of SQLite, or the DSN of PostgreSQL (postgres://… or host=…)."`
	JSON    bool             `name:"json" help:"Write JSON instead of text."`
	Now     instant          `env:"HEED_NOW" placeholder:"TIME" help:"Show evidence as faded at this time (2026-01-31T15:04:05Z) or day (2026-01-31). Later events are shown, too."`
	Version kong.VersionFlag `help:"Print the version."`

	Overview   overviewCommand    `cmd:"" default:"1" help:"Sum up a store: what was learned, what waits for a person, what is wrong. heed does the same."`
	Strategy   strategyCommands   `cmd:"" help:"Show which of several ways works best."`
	Confidence confidenceCommands `cmd:"" help:"Show how far heuristics are trusted, and why."`
	Patterns   patternsCommands   `cmd:"" help:"Show which ways of working to follow, and which to avoid."`
	Rules      rulesCommands      `cmd:"" help:"Show and decide about rules that were learned from reviewers."`
	Explain    explainCommand     `cmd:"" help:"Show why an answer of package loop was given, and what became of it."`
	Traces     tracesCommand      `cmd:"" help:"Show how answers came about."`
	MCP        mcpCommand         `cmd:"" name:"mcp" help:"Let the model of an MCP client, such as a desktop application, learn."`
	Serve      serveCommand       `cmd:"" help:"Show all of this in pages, and serve an API for programs in other languages."`
	Demo       demoCommand        `cmd:"" help:"Look at an agent that learns, in pages, without a store or a key."`
	Forget     forgetCommand      `cmd:"" help:"Take a person out of the store."`
	Audit      auditCommand       `cmd:"" help:"List who changed something, when and why."`
	Doctor     doctorCommand      `cmd:"" help:"Check the store: its file, tables, records and sweeps."`
	Rebuild    rebuildCommand     `cmd:"" help:"Change how evidence is kept: half-lives, and sources apart."`
	Migrate    migrateCommand     `cmd:"" help:"Make heed's tables, or bring them up to date."`
	Replay     replayCommand      `cmd:"" help:"Learn from a log of past requests, and estimate what heed would have earned."`
	Backup     backupCommand      `cmd:"" help:"Copy a store that is in use."`
	Export     exportCommand      `cmd:"" help:"Write all of heed's tables as lines of JSON."`
	Import     importCommand      `cmd:"" help:"Fill an empty store from an export."`
	Completion completion         `cmd:"" help:"Print the completion script for a shell."`
	Complete   completeCommand    `cmd:"" name:"__complete" hidden:"" passthrough:""`
}

// newParser returns the grammar of the command line.
func newParser(c *commands, out, errOut *os.File) (*kong.Kong, error) {
	parser, err := kong.New(c, kong.Name("heed"),
		kong.Description("Show, explain and change what an agent has learned with heed."),
		kong.Writers(out, errOut), kong.Vars{"version": version(), "statuses": strings.Join(statuses, ", ")}, kong.ValueFormatter(withDefault),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, FlagsLast: true, WrapUpperBound: 100}))
	if err == nil {
		describe(parser.Model.Node)
	}
	return parser, err
}

// withDefault adds the default of a flag to its help.
func withDefault(v *kong.Value) string {
	text := kong.DefaultHelpValueFormatter(v)
	if v.HasDefault && v.Default != "" {
		text += " By default " + v.Default + "."
	}
	return text
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends it at once
	err := run(ctx, os.Args[1:])
	stop()
	if errors.Is(err, context.Canceled) {
		err = errInterrupted
	}
	code := done
	if err != nil {
		fmt.Fprintln(os.Stderr, "heed: "+oneLine(err))
		code = failed
	}
	var wrong *usageError
	var parse *kong.ParseError
	if errors.As(err, &wrong) || errors.As(err, &parse) {
		code = misuse
	}
	os.Exit(code)
}

func run(ctx context.Context, args []string) error {
	var c commands
	parser, err := newParser(&c, os.Stdout, os.Stderr)
	if err != nil {
		return err
	}
	parsed, err := parser.Parse(asFlags(args))
	if err != nil {
		return hint(err)
	}
	return parsed.Run(newSession(ctx, &c, parser, parsed.Selected().Name))
}

// asFlags has heed help and heed version do what --help and --version do.
func asFlags(args []string) []string {
	switch {
	case len(args) == 0:
	case args[0] == "help":
		return append(slices.Clone(args[1:]), "--help")
	case args[0] == "version":
		return []string{"--version"}
	}
	return args
}

// hint says which help to read.
func hint(err error) error {
	var parse *kong.ParseError
	if !errors.As(err, &parse) {
		return err
	}
	command := "heed"
	if parse.Context != nil && parse.Context.Selected() != nil {
		var names []string
		for n := parse.Context.Selected(); n != nil; n = n.Parent {
			names = append(names, n.Name) // FullPath names aliases, too, which can't be typed
		}
		slices.Reverse(names)
		command = strings.Join(names, " ")
	}
	return fmt.Errorf("%w: see %s --help", err, command)
}

// errInterrupted says that a signal has ended the command.
var errInterrupted = errors.New("interrupted")

// A usageError says that a command was not called properly.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

// oneLine writes an error so that it takes one line, and no more of a terminal than that.
func oneLine(err error) string {
	text := strings.ReplaceAll(err.Error(), "\n", "; ")
	var b strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	return b.String()
}

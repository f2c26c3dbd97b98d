// Command heed is for those who run an agent that learns with heed: it shows what was learned, and how sure that is, and has
// it forgotten where somebody with a reason says so. It reads the tables of package sqlstore, in SQLite or PostgreSQL, and
// needs nothing else: no configuration of the host, no network.
//
// Every command has a --help with examples; docs/cli.md shows each at work.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
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
	failed = 1 // what was asked for could not be done
	misuse = 2 // it was not asked for as it has to be
)

type commands struct {
	DB      string           `name:"db" env:"HEED_DB" placeholder:"FILE|DSN" help:"The store: a file of SQLite, or the DSN of PostgreSQL (postgres://… or host=…)."`
	JSON    bool             `name:"json" help:"Write JSON instead of text."`
	Now     instant          `env:"HEED_NOW" placeholder:"TIME" help:"Have evidence faded, and \"how long ago\" counted, as at this moment (2026-01-31T15:04:05Z) or day (2026-01-31). What came later is shown all the same."`
	Version kong.VersionFlag `help:"Print the version."`

	Strategy   strategyCommands   `cmd:"" help:"Which of several ways works: what strategy learners believe."`
	Confidence confidenceCommands `cmd:"" help:"How far heuristics are trusted, and why."`
	Patterns   patternsCommands   `cmd:"" help:"Which ways of working to follow, and which to avoid."`
	Rules      rulesCommands      `cmd:"" help:"Rules that were learned from reviewers: proposed, approved, retired."`
	Traces     tracesCommand      `cmd:"" help:"How answers came about."`
	Forget     forgetCommand      `cmd:"" help:"Take a person out of the store."`
	Audit      auditCommand       `cmd:"" help:"List who had what changed, when and why."`
	Doctor     doctorCommand      `cmd:"" help:"Look the store over: schema, counts, anomalies."`
	Migrate    migrateCommand     `cmd:"" help:"Make heed's tables, or bring them up to date."`
	Export     exportCommand      `cmd:"" help:"Write all of heed's tables as lines of JSON."`
	Import     importCommand      `cmd:"" help:"Fill an empty store with what export has written."`
	Completion completion         `cmd:"" help:"Print what a shell needs to complete heed's commands and names."`
	Complete   completeCommand    `cmd:"" name:"__complete" hidden:"" passthrough:""`
}

func (commands) Help() string {
	return `Examples:

    heed --db agent.db strategy status
    heed --db agent.db strategy show correction
    HEED_DB=postgres://localhost/agent heed doctor

It exits with 0, with 1 where what was asked for could not be done or was interrupted, and with 2 where it was not asked for
properly.`
}

// newParser returns the grammar of the command line.
func newParser(c *commands, out, errOut *os.File) (*kong.Kong, error) {
	return kong.New(c, kong.Name("heed"),
		kong.Description("What an agent has learned with heed: shown, explained, and forgotten where there is a reason to."),
		kong.Writers(out, errOut), kong.Vars{"version": version(), "statuses": strings.Join(statuses, ", ")}, kong.ValueFormatter(withDefault),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, FlagsLast: true, WrapUpperBound: 100}))
}

// withDefault tells what a flag says where it is not given.
func withDefault(v *kong.Value) string {
	text := kong.DefaultHelpValueFormatter(v)
	if v.HasDefault && v.Default != "" {
		text += " By default " + v.Default + "."
	}
	return text
}

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return "heed " + info.Main.Version
	}
	return "heed (devel)"
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
	return parsed.Run(newSession(ctx, &c, parser))
}

// asFlags has heed, heed help and heed version do what --help and --version do.
func asFlags(args []string) []string {
	switch {
	case len(args) == 0:
		return []string{"--help"}
	case args[0] == "help":
		return append(slices.Clone(args[1:]), "--help")
	case args[0] == "version":
		return []string{"--version"}
	}
	return args
}

// hint tells where to read on.
func hint(err error) error {
	var parse *kong.ParseError
	if !errors.As(err, &parse) {
		return err
	}
	command := "heed"
	if parse.Context != nil && parse.Context.Selected() != nil {
		command = parse.Context.Selected().FullPath()
	}
	return fmt.Errorf("%w: see %s --help", err, command)
}

// errInterrupted says that a signal has ended the command.
var errInterrupted = errors.New("interrupted")

// A usageError says that a command was not given as it has to be.
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

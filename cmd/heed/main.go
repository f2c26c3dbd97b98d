// Command heed is for people who run an agent that learns with heed. It shows what was learned and
// how sure that is, and changes it when somebody gives a reason. It reads the tables of package
// sqlstore, in SQLite or PostgreSQL. It needs no configuration of the host.
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
	DB      string  `name:"db" env:"HEED_DB" placeholder:"FILE|DSN"`
	JSON    bool    `name:"json"`
	Now     instant `env:"HEED_NOW" placeholder:"TIME"`
	Version kong.VersionFlag

	Overview   overviewCommand    `cmd:"" default:"1"`
	Strategy   strategyCommands   `cmd:""`
	Confidence confidenceCommands `cmd:""`
	Patterns   patternsCommands   `cmd:""`
	Rules      rulesCommands      `cmd:""`
	Explain    explainCommand     `cmd:""`
	MCP        mcpCommand         `cmd:"" name:"mcp"`
	Serve      serveCommand       `cmd:""`
	Demo       demoCommand        `cmd:""`
	Doctor     doctorCommand      `cmd:""`
	Store      storeCommands      `cmd:""`
	Completion completion         `cmd:""`
	Complete   completeCommand    `cmd:"" name:"__complete" hidden:"" passthrough:""`
}

// newParser returns the grammar of the command line.
func newParser(c *commands, out, errOut *os.File) (*kong.Kong, error) {
	parser, err := kong.New(c, kong.Name("heed"),
		kong.Description("Show, explain and change what an agent has learned with heed."),
		kong.Writers(out, errOut), kong.Vars{"version": version(), "states": states},
		kong.ValueFormatter(withDefault),
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
	if gone := goneName(parser.Model.Node, args); err != nil && gone != "" {
		return &usageError{fmt.Sprintf("heed %s is gone: it is heed %s now", gone, renamed[gone])}
	}
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

// renamed has the new names of commands that there were before.
var renamed = map[string]string{
	"traces": "explain", "replay": "strategy replay",
	"forget": "store forget", "audit": "store audit", "migrate": "store migrate",
	"backup": "store backup", "export": "store export",
	"import": "store import", "rebuild": "store rebuild", "mend": "doctor, and a backup,",
}

// goneName returns the word that names a command by its old name, or "".
func goneName(root *kong.Node, args []string) string {
	for _, arg := range args {
		if slices.ContainsFunc(root.Children, func(n *kong.Node) bool { return n.Name == arg }) {
			return ""
		}
		if renamed[arg] != "" {
			return arg
		}
	}
	return ""
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
